"""Predictors and ranges: truth by integration, ranges that are values or missing cells, targets, files, errors."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingClassifier

import jointforest as jf
from jointforest import JointClassifier, JointRegressor

LIMIT = -0.2


def made(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Two numbers of correlation 0.5, labels, and a number, of which the expectations are known."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=n)
    x = 0.5 * w + np.sqrt(0.75) * rng.normal(size=n)
    label = (rng.random(n) < 1 / (1 + np.exp(w - 2 * x))).astype(int)
    return pd.DataFrame({"x": x.round(2), "w": w.round(2)}), label, (2 * x - w + rng.normal(size=n)).round(2)


def hide(x: pd.Series, limit: float = LIMIT) -> pd.Series:
    return pd.Series([jf.between(None, limit, "neither") if v < limit else v for v in x], dtype=object, name=x.name)


def truth(w: float, hi: float = np.inf) -> tuple[float, float]:
    """Probability of label 1 and mean of the number, given w and that x is below ``hi``."""
    x = np.linspace(-6.0, min(hi, 6.0), 4_001)
    weight = norm.pdf(x, 0.5 * w, np.sqrt(0.75))
    return tuple(float(np.average(of, weights=weight)) for of in (1 / (1 + np.exp(w - 2 * x)), 2 * x - w))


@pytest.fixture(scope="module")
def learned() -> dict[str, Any]:
    X, label, score = made(900, 0)
    X = X.assign(x=hide(X.x))
    return {
        "classifier": JointClassifier(random_state=0).fit(X, label),
        "regressor": JointRegressor(random_state=0).fit(X, score),
    }


def asked(predictor: Any, rows: pd.DataFrame) -> np.ndarray:
    return predictor.predict_proba(rows)[:, 1] if hasattr(predictor, "classes_") else predictor.predict(rows)


@pytest.mark.parametrize("kind", ["classifier", "regressor"])
def test_answers_given_ranges_are_integrals_over_them(learned: dict[str, Any], kind: str) -> None:
    w = [-1.0, 0.0, 1.0]
    rows = pd.DataFrame({"x": [jf.between(None, LIMIT, "neither")] * 3, "w": w})
    place, scale = (0, 1.0) if kind == "classifier" else (1, 2.0)
    off = asked(learned[kind], rows) - [truth(v, LIMIT)[place] for v in w]
    assert np.abs(off).max() < 0.15 * scale and np.abs(off).mean() < 0.1 * scale
    off = asked(learned[kind], rows.assign(x=np.nan)) - [truth(v)[place] for v in w]
    assert np.abs(off).max() < 0.15 * scale  # which says less


@pytest.mark.parametrize("kind", ["classifier", "regressor"])
def test_the_whole_line_is_a_missing_cell_and_saved_predictors_answer_alike(
    learned: dict[str, Any], kind: str, tmp_path: Path
) -> None:
    rows = made(50, 1)[0]
    whole, gone, below = (rows.assign(x=of) for of in (jf.between(None, None), np.nan, hide(rows.x)))
    np.testing.assert_array_equal(asked(learned[kind], whole), asked(learned[kind], gone))
    learned[kind].save(tmp_path / "p.joint")
    again = jf.load_predictor(tmp_path / "p.joint")
    np.testing.assert_allclose(asked(again, below), asked(learned[kind], below))


def test_ranges_of_one_value_are_the_value() -> None:
    X, label, _ = made(300, 3)
    k = (4 * X.x).round()
    one = pd.Series([jf.between(v - 0.4, v + 0.4) if i % 3 else v for i, v in enumerate(k)], dtype=object)
    a, b = (JointClassifier(random_state=0).fit(X.assign(x=of), label) for of in (k, one))
    np.testing.assert_allclose(a.predict_proba(X.assign(x=k)), b.predict_proba(X.assign(x=k)), atol=1e-6)
    np.testing.assert_allclose(b.predict_proba(X.assign(x=one)), b.predict_proba(X.assign(x=k)), atol=0.02)


def test_a_fitted_model_answers_in_expectation_over_ranges() -> None:
    X, label, _ = made(900, 3)
    model = HistGradientBoostingClassifier(max_iter=40, random_state=0).fit(X, label)
    predictor = JointClassifier.from_model(model, X, label, random_state=0)
    many = np.column_stack([np.linspace(-3.5, LIMIT - 0.01, 400), np.zeros(400)])
    weight = norm.pdf(many[:, 0], 0.0, np.sqrt(0.75))
    own = model.predict_proba(pd.DataFrame(many, columns=["x", "w"]))[:, 1]
    row = pd.DataFrame({"x": [jf.between(None, LIMIT, "neither")], "w": [0.0]})
    assert predictor.predict_proba(row)[0, 1] == pytest.approx(np.average(own, weights=weight), abs=0.06)


def test_targets_that_are_ranges() -> None:
    X, _, score = made(900, 4)
    limit = float(np.quantile(score, 0.35))
    y = hide(pd.Series(score, name="score"), limit)
    text = pd.Series([f"<{limit:.2f}" if isinstance(v, jf.Interval) else f"{v:.2f}" for v in y], name="score")
    reg, of_text = (JointRegressor(random_state=0).fit(X, one) for one in (y, text))
    dropped = JointRegressor(random_state=0).fit(X[score >= limit], score[score >= limit])
    new = made(500, 5)[0]
    wanted = 2 * new.x - new.w
    error, without = (np.sqrt(np.mean((one.predict(new) - wanted) ** 2)) for one in (reg, dropped))
    assert error < 0.35 and without > 0.7 and np.abs(of_text.predict(new) - reg.predict(new)).max() < 0.5
    assert np.mean(score < limit) == pytest.approx(np.mean(reg.predict_quantile(new, 0.5) < limit), abs=0.1)
    with pytest.raises(ValueError, match="R squared needs numbers; leave out the rows"):
        reg.score(X, y)


def test_times_beside_features_that_are_ranges() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=600).round(2)
    time, end = rng.exponential(np.exp(1.0 + x)), rng.exponential(6.0, 600)
    y = pd.DataFrame({"died": time <= end, "months": np.minimum(time, end)})
    reg = JointRegressor(random_state=0).fit(pd.DataFrame({"x": hide(pd.Series(x))}), y)
    low, high = reg.predict_survival_function(pd.DataFrame({"x": [jf.between(None, LIMIT, "neither"), 1.0]}))
    assert low(3.0) == pytest.approx((time[x < LIMIT] > 3.0).mean(), abs=0.12)
    assert high(3.0) == pytest.approx(np.exp(-3.0 / np.exp(2.0)), abs=0.12)


def test_errors(learned: dict[str, Any]) -> None:
    X, label, _ = made(60, 6)
    row = pd.DataFrame({"x": [jf.between(None, LIMIT)], "w": [0.0]})
    with pytest.raises(ValueError, match=r"column 'x' has 1 cell that is a range, .*not taken here"):
        learned["classifier"].explain(row)
    kinds = {"months": jf.censored(event="died")}
    with pytest.raises(ValueError, match=r"give JointRegressor\.fit a frame of 'months' and 'died' as y"):
        JointRegressor(kinds=kinds).fit(X.assign(died=label), pd.Series(X.w, name="months"))
    with pytest.raises(ValueError, match=r"column 'y' has .* ranges"):
        JointClassifier().fit(X[["w"]], pd.Series(hide(X.x).to_numpy(), name="y"))
