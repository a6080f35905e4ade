"""Quantile leaves for the columns that normals bend, and for no others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.learners.adversarial import adversarial_forest
from jointforest.learners.leaf_fitting import densities, quantile
from jointforest.learners.leaf_fitting.densities import as_forest
from jointforest.models.box_forest.leaves.table import PIECES, UNIFORM
from jointforest.models.box_forest.structure import Forest, Trees


def bent(n: int) -> pd.DataFrame:
    """A column of two narrow humps, and two normal columns that depend on each other."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=n)
    humps = np.where(rng.random(n) < 0.5, -3.0, 3.0) + 0.1 * rng.standard_exponential(n)
    return pd.DataFrame({"a": a, "b": a + rng.normal(size=n), "humps": humps})


def distance(joint: jf.Joint, cells: pd.Series) -> float:
    """Kolmogorov distance of a column's rows and its exact marginal."""
    x = np.sort(cells.to_numpy())
    upper = np.arange(1, len(x) + 1) / len(x)
    below = joint.marginal(str(cells.name)).cdf(x)
    return float(max(np.abs(below - upper).max(), np.abs(below - upper + 1 / len(x)).max()))


def test_a_bent_column_gets_quantile_leaves_and_others_keep_normals() -> None:
    table = bent(4_000)
    learn, test = table[:3_000].reset_index(drop=True), table[3_000:].reset_index(drop=True)
    settings = {"n_estimators": 10, "min_samples_leaf": 20, "max_depth": 3, "random_state": 0}
    auto, normal = (jf.AdversarialForest(leaf=leaf, **settings).fit(learn).joint_ for leaf in ("auto", "normal"))
    assert distance(normal, learn["humps"]) > 0.05
    assert distance(auto, learn["humps"]) < 0.02
    assert auto.log_density(test).mean() > normal.log_density(test).mean() + 0.2
    for name in ("a", "b"):
        assert auto.marginal(name).cdf(0.7) == pytest.approx(normal.marginal(name).cdf(0.7), abs=1e-12)


def test_normals_stay_where_nothing_is_bent() -> None:
    table = bent(2_000)[["a", "b"]]
    auto, normal = (jf.AdversarialForest(5, leaf=leaf, random_state=0).fit(table).joint_ for leaf in ("auto", "normal"))
    np.testing.assert_array_equal(auto.log_density(table), normal.log_density(table))


def test_normals_stay_where_tables_would_be_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    table, settings = bent(1_000), {"n_estimators": 4, "min_samples_leaf": 20, "random_state": 0}
    normal, auto = (jf.AdversarialForest(leaf=leaf, **settings).fit(table).joint_ for leaf in ("normal", "auto"))
    assert auto.log_density(table).mean() > normal.log_density(table).mean()
    monkeypatch.setattr(quantile, "FIXED", replace(quantile.FIXED, quantile_bytes=100))
    small = jf.AdversarialForest(**settings).fit(table).joint_
    np.testing.assert_array_equal(small.log_density(table), normal.log_density(table))


def test_normals_stay_where_held_out_rows_like_them_better() -> None:
    """Skewed, independent of all others, in leaves of few rows: a CDF of its own in each learns these by heart."""
    rng = np.random.default_rng(1)
    a = rng.normal(size=(1_500, 4))
    table = pd.DataFrame(np.column_stack([a, a + 0.3 * rng.normal(size=a.shape)])).add_prefix("x")
    table["skewed"] = np.round(1e6 * rng.lognormal(sigma=0.6, size=len(table)))
    auto, normal = (jf.AdversarialForest(5, leaf=leaf, random_state=0).fit(table).joint_ for leaf in ("auto", "normal"))
    assert distance(normal, table["skewed"]) > 0.02
    np.testing.assert_array_equal(auto.log_density(table), normal.log_density(table))


def skewed_and_humps() -> pd.DataFrame:
    """Columns that leaves of few rows learn by heart, and one of two humps, whose shape these know."""
    rng = np.random.default_rng(1)
    a = rng.normal(size=(1_500, 4))
    table = pd.DataFrame(np.column_stack([a, a + 0.3 * rng.normal(size=a.shape)])).add_prefix("x")
    for k in range(4):
        table[f"skewed{k}"] = np.round(1e6 * rng.lognormal(sigma=0.6, size=len(table)))
    table["humps"] = np.where(rng.random(len(table)) < 0.5, -1.0, 1.0) + rng.uniform(-0.3, 0.3, len(table))
    return table


def test_columns_are_chosen_one_by_one_where_held_out_rows_do_not_like_all() -> None:
    table = skewed_and_humps()
    learn, test = table[:1_200].reset_index(drop=True), table[1_200:].reset_index(drop=True)
    auto, normal, quantile = (
        jf.AdversarialForest(5, leaf=leaf, random_state=0).fit(learn).joint_ for leaf in ("auto", "normal", "quantile")
    )
    assert distance(auto, learn["humps"]) < 0.5 * distance(normal, learn["humps"])
    for name in ("skewed0", "skewed1", "skewed2", "skewed3"):
        assert auto.marginal(name).cdf(1e6) == pytest.approx(normal.marginal(name).cdf(1e6), abs=1e-12)
    assert auto.log_density(test).mean() > normal.log_density(test).mean() + 0.1
    assert auto.log_density(test).mean() > quantile.log_density(test).mean() + 0.1


def test_each_column_is_judged_on_rows_that_its_leaves_did_not_see(monkeypatch: pytest.MonkeyPatch) -> None:
    """All at once first, then one by one; a column counts where rows of all weights like it better on average."""
    table, asked = skewed_and_humps()[["skewed0", "skewed1", "humps"]][:400], []
    weight = np.random.default_rng(0).integers(1, 3, len(table))
    replies = iter([-1.0, -1.0, 1.0, 1.0])

    def refused(gain: np.ndarray, weight: np.ndarray | None) -> bool:
        assert weight is not None and len(weight) == len(gain) == 100
        return False

    def gains(trial: adversarial_forest._Trial, slots: np.ndarray) -> list[np.ndarray]:
        assert len(trial.asked) == 100
        asked.append(slots.tolist())
        return [np.full(100, next(replies))]

    monkeypatch.setattr(adversarial_forest, "misfit_slots", lambda *_: np.ones(3, bool))
    monkeypatch.setattr(quantile, "not_worse", refused)
    monkeypatch.setattr(adversarial_forest._Trial, "gains", gains)
    joint = jf.AdversarialForest(3, min_samples_leaf=20, random_state=0).fit(table, sample_weight=weight).joint_
    assert asked == [[True] * 3, *np.eye(3, dtype=bool).tolist()]
    leaves = joint.distribution.forest.leaves
    plain = leaves.tree < 3  # the background is Student's
    is_quantile = np.isin(leaves.family[plain], (UNIFORM, PIECES)).all(axis=0)
    assert is_quantile.tolist() == [False, True, True]


@pytest.mark.parametrize("weighted", [False, True])
def test_threads_change_nothing(weighted: bool) -> None:
    table = bent(600)
    weight = np.random.default_rng(0).integers(0, 3, len(table)) if weighted else None
    first, second = (
        jf.AdversarialForest(4, min_samples_leaf=20, n_jobs=jobs, random_state=0)
        .fit(table, sample_weight=weight)
        .joint_
        for jobs in (1, 2)
    )
    np.testing.assert_array_equal(first.log_density(table), second.log_density(table))
    assert distance(first, table["humps"]) < 0.06


def test_quantile_leaves_of_one_row_at_a_side_of_their_box() -> None:
    """All mass lies beyond the value then, and there must not be more of it than 1."""
    table = bent(600)
    forest = jf.AdversarialForest(30, leaf="quantile", oob_score=True, random_state=0).fit(table)
    assert np.isfinite(forest.oob_log_density_).all()


def test_nothing_known_of_a_column() -> None:
    table = bent(200)
    table["unknown"] = np.nan
    joint = jf.AdversarialForest(3, random_state=0).fit(table).joint_
    assert np.isfinite(joint.log_density(table)).all()


@pytest.mark.parametrize("n", [1, 2, 5, 30])
def test_few_rows(n: int) -> None:
    table = bent(n)
    assert np.isfinite(jf.AdversarialForest(3, random_state=0).fit(table).joint_.log_density(table)).all()


def test_out_of_bag_densities_have_the_same_leaves() -> None:
    table, settings = bent(1_500), {"n_estimators": 10, "min_samples_leaf": 20, "oob_score": True, "random_state": 0}
    found = {leaf: jf.AdversarialForest(leaf=leaf, **settings).fit(table) for leaf in ("auto", "normal")}
    gain = found["auto"].oob_log_density_ - found["normal"].oob_log_density_
    assert np.nanmean(gain) > 0.1


@pytest.mark.parametrize(("many", "asked"), [(600, 3), (601, 10)])
def test_fewer_trees_are_asked_where_there_are_many_rows(
    many: int, asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def joined(schema: object, columns: object, table: object, trees: Trees, *rest: object) -> Forest:
        seen.append(len(trees.root))
        return as_forest(schema, columns, table, trees, *rest)

    monkeypatch.setattr(densities, "as_forest", joined)
    monkeypatch.setattr(adversarial_forest, "FIXED", replace(adversarial_forest.FIXED, trial_many_rows=many))
    jf.AdversarialForest(12, min_samples_leaf=20, random_state=0).fit(bent(600))
    assert [n_trees for n_trees in seen if n_trees < 12] == [asked]
