"""A third kind of distribution, alone: every public question is answered, or refused by name.

The toy kind is a table of weighted rows. The expected answers are counted from those rows with pandas.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeRegressor

import jointforest as jf
from jointforest.api.joint import Joint
from jointforest.data.frames import encode
from jointforest.explorer import answers
from jointforest.explorer.shown import ShownJoint

from ..random_cases.table_part import TableDistribution

PLACES, SIZES, FLAGS = ("here", "there", "nowhere"), range(6), (False, True)
ALL = pd.DataFrame(list(itertools.product(PLACES, SIZES, FLAGS)), columns=["place", "size", "flag"])


@cache
def toy() -> tuple[Joint, pd.DataFrame, np.ndarray]:
    """The joint, its 20 rows, and their probabilities."""
    schema = jf.AdversarialForest(2, random_state=0).fit(pd.concat([ALL, ALL])).joint_.schema
    rows = ALL.sample(20, random_state=3).reset_index(drop=True)
    weight = np.random.default_rng(0).dirichlet(np.ones(len(rows)))
    return Joint(TableDistribution(schema, encode(schema, rows)[0], weight)), rows, weight


JOINT, ROWS, WEIGHT = toy()
IS_HERE = (ROWS["place"] == "here").to_numpy()
HERE = np.where(IS_HERE, WEIGHT, 0.0) / WEIGHT[IS_HERE].sum()
WHO = JOINT.given(place="here")


def mean(x: Any, weight: np.ndarray = HERE) -> float:
    return float(weight @ np.asarray(x, dtype=float))


def entropy(names: list[str]) -> float:
    p = pd.Series(WEIGHT).groupby([ROWS[name] for name in names]).sum().to_numpy()
    return float(-(p * np.log(p)).sum())


def variance(x: pd.Series) -> float:
    return mean((x - mean(x)) ** 2)


SIZE, FLAG = ROWS["size"], ROWS["flag"].astype(float)
COV = mean((SIZE - mean(SIZE)) * (FLAG - mean(FLAG)))
BELOW = np.array([mean(k >= SIZE) for k in SIZES])
MIDDLE = (int(np.argmax(BELOW >= 0.1)), int(np.argmax(BELOW >= 0.9)))


ANSWERS: list[tuple[str, Callable[[], Any], Any]] = [
    ("Joint.log_density", lambda: JOINT.log_density(ROWS), np.log(WEIGHT)),
    ("Joint.select", lambda: JOINT.select("size").log_density(ROWS[["size"]]),
     np.log([mean(k == SIZE, WEIGHT) for k in SIZE])),
    ("Joint.marginal", lambda: JOINT.marginal("size").mean(), mean(SIZE, WEIGHT)),
    ("Joint.probability", lambda: JOINT.probability("size >= 3"), mean(SIZE >= 3, WEIGHT)),
    ("Joint.query", lambda: JOINT.query("P(size >= 3 | place = here)"), mean(SIZE >= 3)),
    ("Joint.entropy", lambda: JOINT.entropy("place", "flag").value, entropy(["place", "flag"])),
    ("Joint.mutual_information", lambda: JOINT.mutual_information("place", "flag").value,
     entropy(["place"]) + entropy(["flag"]) - entropy(["place", "flag"])),
    ("Joint.condition", lambda: JOINT.condition(place="here").marginal("size").mean(), mean(SIZE)),
    ("Joint.predict_proba", lambda: JOINT.predict_proba(pd.DataFrame({"place": ["here"]}), "flag")[0, 1], mean(FLAG)),
    ("Joint.predict", lambda: JOINT.predict(pd.DataFrame({"place": ["here"]}), "size")[0], mean(SIZE)),
    ("Joint.given", lambda: WHO.mean("size"), mean(SIZE)),
    ("Posterior.log_probability", lambda: WHO.log_probability, np.log(WEIGHT[IS_HERE].sum())),
    ("Posterior.background_weight", lambda: WHO.background_weight, 0.0),
    ("Posterior.supported", lambda: WHO.supported, True),
    ("Posterior.mean", lambda: WHO.mean("size"), mean(SIZE)),
    ("Posterior.var", lambda: WHO.var("size"), variance(SIZE)),
    ("Posterior.std", lambda: WHO.std("size"), variance(SIZE) ** 0.5),
    ("Posterior.cov", lambda: WHO.cov("size", "flag"), COV),
    ("Posterior.corr", lambda: WHO.corr("size", "flag"), COV / (variance(SIZE) * variance(FLAG)) ** 0.5),
    ("Posterior.proba", lambda: WHO.proba("flag")[True], mean(FLAG)),
    ("Posterior.probability", lambda: WHO.probability("size > 1, flag = true"), mean((SIZE > 1) & ROWS["flag"])),
    ("Posterior.quantile", lambda: WHO.quantile("size", 0.5), int(np.argmax(BELOW >= 0.5))),
    ("Posterior.interval", lambda: WHO.interval("size", 0.8), MIDDLE),
    ("Posterior.marginal", lambda: WHO.marginal("size").mean(), mean(SIZE)),
    ("Marginal.pdf", lambda: WHO.marginal("size").pdf(2), mean(SIZE == 2)),
    ("Marginal.cdf", lambda: WHO.marginal("size").cdf(2), mean(SIZE <= 2)),
    ("Marginal.ppf", lambda: WHO.marginal("size").ppf(0.5), int(np.argmax(BELOW >= 0.5))),
    ("Marginal.interval", lambda: WHO.marginal("size").interval(0.8), MIDDLE),
    ("Marginal.pmf", lambda: WHO.marginal("flag").pmf(True), mean(FLAG)),
    ("Marginal.proba", lambda: WHO.marginal("flag").proba()[True], mean(FLAG)),
    ("Marginal.histogram", lambda: WHO.marginal("flag").histogram().mass, [1 - mean(FLAG), mean(FLAG)]),
    ("Marginal.likeliest", lambda: WHO.marginal("size").likeliest(), int(np.argmax([mean(k == SIZE) for k in SIZES]))),
    ("Marginal.mean", lambda: WHO.marginal("size").mean(), mean(SIZE)),
    ("Marginal.var", lambda: WHO.marginal("size").var(), variance(SIZE)),
    ("Marginal.std", lambda: WHO.marginal("size").std(), variance(SIZE) ** 0.5),
]  # fmt: skip


@pytest.mark.parametrize(("ask", "expected"), [(ask, e) for _, ask, e in ANSWERS], ids=[name for name, *_ in ANSWERS])
def test_an_answer_is_the_count(ask: Callable[[], Any], expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(ask(), dtype=float), np.asarray(expected, dtype=float), atol=1e-9)


REFUSED: list[tuple[str, Callable[[], Any], str]] = [
    ("Joint.tree_text", lambda: JOINT.tree_text(), "tree_text needs a joint that is one forest"),
    ("Joint.reverse", lambda: JOINT.reverse("place = here"), "reverse needs a joint that is one forest"),
    ("Joint.tree_log_density", lambda: JOINT.tree_log_density(ROWS), "needs a joint that is one forest"),
    ("Joint.rake", lambda: JOINT.rake(ROWS), "rake needs a joint that is one forest"),
    ("Joint.robustness", lambda: JOINT.robustness(ROWS, "flag"), "robustness needs a joint that is one forest"),
    ("Joint.uncertainty", lambda: JOINT.uncertainty(ROWS, "flag", ROWS), "robustness needs a joint that is one forest"),
    ("Joint.to_arrow", lambda: JOINT.to_arrow(), "a component of the kind 'table'"),
    ("Joint.to_forde", lambda: JOINT.to_forde("never"), "one forest of boxes"),
    ("Joint.save", lambda: JOINT.save("never.joint"), "a component of the kind 'table'"),
    ("Posterior.leaves", lambda: WHO.leaves(), "a table of leaves needs a joint that is one forest"),
    ("Posterior.explain", lambda: WHO.explain(), "an explanation needs forests and hidden trees"),
    ("Posterior.mode", lambda: WHO.mode(), "a certified mode needs"),
]


@pytest.mark.parametrize(("ask", "message"), [(ask, m) for _, ask, m in REFUSED], ids=[name for name, *_ in REFUSED])
def test_what_needs_another_kind_is_refused_by_name(ask: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ask()
    assert not Path("never").exists() and not Path("never.joint").exists()


def test_attribution_is_the_chain_rule() -> None:
    got = JOINT.attribution(ROWS)
    for i, j in itertools.product(range(3), range(3)):
        others = ROWS.drop(columns=ROWS.columns[j])
        rest = WEIGHT[(others == others.iloc[i]).all(axis=1)].sum()
        assert np.asarray(got)[i, j] == pytest.approx(np.log(WEIGHT[i] / rest))


def test_draws_have_the_law_of_the_table() -> None:
    for drawn, weight in ((JOINT.sample(4000, 0), WEIGHT), (WHO.sample(4000, 0), HERE)):
        counts = drawn.groupby(list(ROWS)).size()
        for row, p in zip(ROWS.itertuples(index=False), weight, strict=True):
            assert abs(counts.get(tuple(row), 0) / 4000 - p) < 5 * (p * (1 - p) / 4000) ** 0.5 + 1e-12
    assert (JOINT.sample(50, 0, where="size > 2")["size"] > 2).all()
    assert sum(len(block) for block in WHO.sample_batches(30, 0)) == 30
    assert (WHO.marginal("place").sample(5, 0) == "here").all()


def test_missing_cells_are_filled_by_the_mean_and_the_most_probable_level() -> None:
    rows = pd.DataFrame({"place": ["here", "here"], "size": [pd.NA, 3], "flag": pd.array([True, None], "boolean")})
    filled = JOINT.impute(rows)
    with_flag = np.where(ROWS["flag"], HERE, 0.0)
    assert filled["size"][0] == round(with_flag @ SIZE / with_flag.sum())
    with_size = np.where(SIZE == 3, HERE, 0.0)
    assert filled["flag"][1] == (with_size @ FLAG > with_size.sum() / 2)


def test_questions_of_several_columns_and_joints() -> None:
    assert WHO.marginals()["size"].mean() == pytest.approx(mean(SIZE))
    pair = WHO.pair("size", "flag")
    assert np.asarray(pair.probability).sum() == pytest.approx(1.0)
    other = Joint(TableDistribution(JOINT.schema, JOINT.distribution.rows, np.full(len(WEIGHT), 1 / len(WEIGHT))))
    kl = float(WEIGHT @ np.log(WEIGHT * len(WEIGHT)))
    assert JOINT.divergence(other, random_state=0).value == pytest.approx(kl, abs=0.1)
    assert set(JOINT.compare(other)) == set(ROWS)
    both = jf.mix([JOINT, other], [1, 3])
    np.testing.assert_allclose(np.exp(both.log_density(ROWS)), (WEIGHT + 3 / len(WEIGHT)) / 4)


def test_what_is_built_on_a_joint_works_with_it(tmp_path: Path) -> None:
    X = pd.DataFrame({"size": [1.0, 4.0, 2.0] * 20, "flag": [0.0, 1.0, 1.0] * 20})
    model = DecisionTreeRegressor(max_depth=2, random_state=0).fit(X, X["size"] + X["flag"])
    inputs = JOINT.select("size", "flag")
    predicted = jf.ExpectedPredictor(model, inputs).predict(pd.DataFrame({"size": [np.nan], "flag": [True]}))
    weight = np.where(ROWS["flag"], WEIGHT, 0.0)
    by_hand = model.predict(pd.DataFrame({"size": SIZE.astype(float), "flag": FLAG}))
    assert predicted[0] == pytest.approx(weight @ by_hand / weight.sum(), abs=0.05)
    is_true = JOINT.predict(ROWS.iloc[[0]].drop(columns="flag"), "flag")[0]
    assert len(JOINT.counterfactual(ROWS.iloc[[0]], "flag", not is_true, random_state=0).rows)
    about = answers.table(ShownJoint(JOINT, "toy"), {})
    assert [column["name"] for column in about["columns"]] == list(ROWS)
    assert JOINT.info()["components"][0]["kind"] == "table"
