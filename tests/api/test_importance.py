"""Importance of columns over a table, against sums over all rows of a small one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import jointforest as jf

from ..oracle.shapley import conditional_value, shapley
from ..random_cases.hidden_parts import ALL, small_table
from .test_shapley import INPUTS, classifier, forest, hidden, regressor


def table(n: int = 60) -> tuple[pd.DataFrame, np.ndarray]:
    rows = small_table(6, n)
    y = (rows["size"] * (1 + rows["grade"]) + 3 * rows["flag"] + np.random.default_rng(0).normal(size=n)).to_numpy()
    return rows, y


def squared(answer: Any, y: float) -> Any:
    return (answer - y) ** 2


def log(answer: Any, y: int) -> Any:
    return -np.log(answer[..., y])


def sage_of_rows(of: Any, rows: pd.DataFrame, answers: np.ndarray, y: np.ndarray, loss: Any) -> np.ndarray:
    """Each row's Shapley values (n, 3) of the loss that columns take away, by enumeration."""
    probability, groups = np.exp(of.log_density(ALL)), tuple((name,) for name in INPUTS)
    out = []
    for i in range(len(rows)):
        value = conditional_value(ALL, probability, answers, rows.iloc[i].to_dict(), groups)
        out.append(shapley(3, lambda S, v=value, i=i: -loss(v(S), y[i])))
    return np.array(out)


def test_sage_is_the_mean_over_rows_of_what_columns_take_from_the_loss() -> None:
    (rows, y), model = table(), regressor()
    each = sage_of_rows(forest(), rows, model.predict(ALL[INPUTS]), y, squared)
    predictor = jf.ExpectedPredictor(model, forest(), n_draws=2000)
    found = jf.sage(predictor, forest(), rows, y)
    assert found.feature_names == tuple(INPUTS) and found.n_rows == 60
    np.testing.assert_allclose(found.standard_error, each.std(axis=0, ddof=1) / np.sqrt(60), rtol=0.1)
    assert (abs(found.values - each.mean(axis=0)) < 0.15 * found.standard_error).all()
    assert found.loss == pytest.approx(np.mean((model.predict(rows[INPUTS]) - y) ** 2), rel=1e-9)
    same = jf.sage(lambda X: model.predict(X), forest(), rows[INPUTS], y, n_draws=2000)
    assert (abs(same.values - each.mean(axis=0)) < 0.15 * found.standard_error).all()
    assert str(found).startswith("Importance(60 rows, loss ") and "size: " in str(found)


def test_few_draws_do_not_add_to_the_loss() -> None:
    (rows, y), model = table(25), regressor()
    truth = sage_of_rows(hidden(), rows, model.predict(ALL[INPUTS]), y, squared).mean(axis=0)
    found = np.array(
        [jf.sage(model.predict, hidden(), rows[INPUTS], y, n_draws=4, random_state=k).values for k in range(12)]
    )
    error = found.std(axis=0, ddof=1) / np.sqrt(12)
    assert (abs(found.mean(axis=0) - truth) < 4 * error).all()


def test_sage_of_classes() -> None:
    rows, model = small_table(8, 50), classifier("three")
    y = rows["place"].to_numpy()
    code = np.array([list(model.classes_).index(label) for label in y])
    each = sage_of_rows(forest(), rows, model.predict_proba(ALL[INPUTS]), code, log)
    predictor = jf.ExpectedPredictor(model, forest(), n_draws=2000)
    found = jf.sage(predictor, forest(), rows, y)
    assert (abs(found.values - each.mean(axis=0)) < 0.2 * found.standard_error + 1e-3).all()
    same = jf.sage(model.predict_proba, forest(), rows[INPUTS], code, n_draws=1000)
    assert (abs(same.values - each.mean(axis=0)) < 0.3 * found.standard_error + 1e-3).all()
    two = jf.sage(jf.ExpectedPredictor(classifier(), forest()), forest(), rows, y == "here")
    assert np.isfinite(two.values).all() and two.loss > 0


def test_sampled_coalitions_differ_by_row() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(np.round(rng.normal(size=(40, 14)), 1), columns=[f"c{j}" for j in range(14)])
    joint = jf.AdversarialForest(n_estimators=2, random_state=0).fit(X).joint_
    found = jf.sage(lambda F: 3 * F["c0"] + F["c1"], joint, X, 3 * X["c0"] + X["c1"], n_draws=8, n_coalitions=60)
    assert found.values.argmax() == 0 and abs(found.loss) < 1e-9
    rest = np.delete(np.arange(14), [0, 1])
    assert (abs(found.values[rest]) < 5 * found.standard_error[rest]).all()
    again = jf.sage(
        lambda F: 3 * F["c0"] + F["c1"], joint, X, 3 * X["c0"] + X["c1"], n_draws=8, n_coalitions=60, n_jobs=1
    )
    np.testing.assert_array_equal(found.values, again.values)


@pytest.mark.parametrize("kind", ["predictor", "function"])
def test_conditional_importance_is_the_loss_with_the_column_drawn_anew(kind: str) -> None:
    (rows, y), model = table(), regressor()
    p, answers = np.exp(forest().log_density(ALL)), model.predict(ALL[INPUTS])
    truth = np.empty((60, 4))
    given = ["place", *INPUTS]
    names = INPUTS if kind == "predictor" else given
    for i in range(60):
        now = (model.predict(rows[INPUTS].iloc[[i]])[0] - y[i]) ** 2
        for k, name in enumerate(names):
            others = [other for other in names if other != name]
            weight = p * (ALL[others] == rows.iloc[i][others]).all(axis=1)
            truth[i, k] = weight @ (answers - y[i]) ** 2 / weight.sum() - now
    if kind == "predictor":
        found = jf.conditional_importance(jf.ExpectedPredictor(model, forest()), forest(), rows, y, n_repeats=300)
        truth = truth[:, :3]
    else:
        found = jf.conditional_importance(lambda X: model.predict(X[INPUTS]), forest(), rows, y, n_repeats=300)
        assert found.values[0] == 0.0  # the model does not use it
    assert found.feature_names == tuple(names)
    assert (abs(found.values - truth.mean(axis=0)) <= 0.25 * found.standard_error + 1e-12).all()
    np.testing.assert_allclose(found.standard_error, truth.std(axis=0, ddof=1) / np.sqrt(60), rtol=0.15, atol=1e-12)


def test_a_column_that_the_others_determine_has_no_conditional_importance() -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(0, 4, 400)
    X = pd.DataFrame({"a": a, "twice": 2 * a, "b": rng.integers(0, 4, 400)})
    joint = jf.HiddenTreeForest(n_states=8, random_state=0).fit(X).joint_
    y = X["a"] + X["b"]
    found = jf.conditional_importance(lambda F: F["a"] + F["b"], joint, X.head(100), y.head(100))
    assert found.values[0] < 0.1 * found.values[2]
    both = jf.conditional_importance(
        lambda F: F["a"] + F["b"], joint, X.head(100), y.head(100), groups={"both": ["a", "twice"]}
    )
    assert both.values[0] > 0.5 * both.values[1] and both.feature_names == ("both", "b")


def test_missing_cells_count_as_drawn() -> None:
    rows, y = table()
    holes = rows[INPUTS].astype({"size": "Float64"})
    holes.loc[::3, "size"] = pd.NA
    found = jf.conditional_importance(regressor().predict, forest(), holes, y)
    assert np.isfinite(found.values).all() and found.loss > jf.conditional_importance(
        regressor().predict, forest(), rows[INPUTS], y).loss  # fmt: skip
    assert np.isfinite(jf.sage(jf.ExpectedPredictor(regressor(), forest()), forest(), holes, y).values).all()


def test_what_cannot_be_is_said() -> None:
    rows, y = table(10)
    predictor = jf.ExpectedPredictor(classifier("three"), forest())
    for X, truth, options, message in (
        (rows, y, {}, "is no class of the model; expected one of"),
        (rows, y[:5], {}, r"y: expected 10 entries"),
        (rows, y, dict(loss="squared"), "squared' is for answers that are one number"),
        (rows, y, dict(loss="gain"), "loss must be one of"),
    ):
        for ask in (jf.sage, jf.conditional_importance):
            with pytest.raises(ValueError, match=message):
                ask(predictor, forest(), X, truth, **options)
    with pytest.raises(ValueError, match="finite numbers"):
        jf.sage(regressor().predict, forest(), rows[INPUTS], np.full(10, np.nan))
    with pytest.raises(ValueError, match=r"y: expected numbers.*got 'a'"):
        jf.sage(regressor().predict, forest(), rows[INPUTS], np.full(10, "a"))
    with pytest.raises(ValueError, match=r"expected one of \['"):
        jf.sage(predictor, forest(), rows, np.full(10, "Atlantis"))
    with pytest.raises(ValueError, match="another joint"):
        jf.sage(predictor, hidden(), rows, rows["place"])
    with pytest.raises(TypeError, match=r"such as model\.predict"):
        jf.sage(regressor(), forest(), rows, y)
    with pytest.raises(ValueError, match="at least 2 rows"):
        jf.conditional_importance(regressor().predict, forest(), rows[INPUTS].head(1), y[:1])
    with pytest.raises(ValueError, match=r"at least 2 rows.*got 0"):
        jf.sage(regressor().predict, forest(), rows[INPUTS].head(0), y[:0])
