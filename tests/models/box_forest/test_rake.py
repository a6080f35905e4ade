"""Raking: marginals as the table's, by empirical CDFs; the density by its definition; joined pieces by brute force."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.models.box_forest import rake as raking
from jointforest.models.box_forest.condition import ColumnParts, joined_parts
from jointforest.models.box_forest.files import check_forest


def skewed(n: int, seed: int) -> pd.DataFrame:
    """A price with a heap of zeros, a skewed size with missing cells, a group, and a count."""
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1])
    price = np.where(rng.random(n) < 0.3, 0.0, rng.exponential(10.0, n) ** 2.0)
    size = np.exp(1.5 * rng.normal(size=n)) + (group == "b")
    size[rng.random(n) < 0.03] = np.nan
    return pd.DataFrame({"price": price, "size": size, "group": group, "count": rng.geometric(0.1, n)})


def kolmogorov(joint: jf.Joint, cells: pd.Series) -> float:
    """Largest distance of the joint's CDF and the cells', at each value, those of a density from below, too."""
    known = np.sort(cells.dropna().to_numpy(float))
    values = np.unique(known)
    upper = (known[:, None] <= values).mean(axis=0)
    found = np.abs(joint.marginal(cells.name).cdf(values) - upper).max()
    if joint.kinds[cells.name] in ("continuous", "mixed"):
        lower = (known[:, None] < values).mean(axis=0)
        found = max(found, np.abs(joint.marginal(cells.name).cdf(np.nextafter(values, -np.inf)) - lower).max())
    return float(found)


@pytest.fixture(scope="module")
def learned() -> tuple[pd.DataFrame, jf.Joint, jf.Joint]:
    frame = skewed(1_200, 0)
    joint = jf.AdversarialForest(5, min_samples_leaf=20, leaf="normal", random_state=0).fit(frame).joint_
    return frame, joint, joint.rake(frame)


def test_marginals_agree_with_the_table(learned: tuple[pd.DataFrame, jf.Joint, jf.Joint]) -> None:
    frame, joint, raked = learned
    names = ["price", "size", "count"]
    assert max(kolmogorov(joint, frame[name]) for name in names) > 0.03
    assert max(kolmogorov(raked, frame[name]) for name in names) <= 0.02
    share = frame["group"].value_counts(normalize=True)
    assert sum(abs(p - share[level]) for level, p in raked.marginal("group").proba().items()) / 2 <= 0.02


def test_held_out_rows_are_not_less_likely(learned: tuple[pd.DataFrame, jf.Joint, jf.Joint]) -> None:
    _, joint, raked = learned
    test = skewed(2_000, 1)
    gain = raked.log_density(test) - joint.log_density(test)
    assert gain.mean() > 2 * gain.std() / np.sqrt(len(gain))


def test_a_raked_forest_is_sound_and_keeps_the_rest(learned: tuple[pd.DataFrame, jf.Joint, jf.Joint]) -> None:
    _, joint, raked = learned
    before, after = joint.distribution.forest, raked.distribution.forest
    check_forest(after.schema, after.columns, after.trees, after.leaves, after.has_background)
    assert np.exp(after.leaves.log_weight).sum() == pytest.approx(1.0, abs=1e-12)
    assert after.leaves.log_weight[-1] == before.leaves.log_weight[-1]
    np.testing.assert_array_equal(after.leaves.missing_rate, before.leaves.missing_rate)
    np.testing.assert_array_equal(after.trees.leaf, before.trees.leaf)


def test_the_density_is_the_old_one_times_a_factor_of_each_column(
    learned: tuple[pd.DataFrame, jf.Joint, jf.Joint], monkeypatch: pytest.MonkeyPatch
) -> None:
    """log of the ratio of densities is a sum over columns: it adds up over the corners of a rectangle."""
    frame, _, _ = learned
    monkeypatch.setattr(raking, "WITHIN", 0.0)
    monkeypatch.setattr(raking, "ROUNDS", 1)
    joint = jf.AdversarialForest(3, epsilon=0.0, random_state=1).fit(frame).joint_
    raked = joint.rake(frame)
    rows = frame.dropna().head(40).reset_index(drop=True)
    other = rows.iloc[::-1].reset_index(drop=True)
    first, second = rows.assign(price=other["price"]), other.assign(price=rows["price"])

    def ratio(cells: pd.DataFrame) -> np.ndarray:
        return raked.log_density(cells) - joint.log_density(cells)

    possible = np.isfinite(joint.log_density(first)) & np.isfinite(joint.log_density(second))
    assert possible.sum() > 10
    assert np.abs(ratio(rows)).max() > 0.05
    corners = ratio(rows) + ratio(other) - ratio(first) - ratio(second)
    np.testing.assert_allclose(corners[possible], 0.0, atol=1e-9)


def test_another_table_moves_levels_numbers_and_what_depends_on_them() -> None:
    frame = skewed(1_200, 2)
    frame["big"] = (frame["size"].fillna(0) > 1.5) & (frame["group"] != "c")
    joint = jf.JointTree(random_state=0).fit(frame).joint_
    older = frame[(frame["group"] != "a") | (np.arange(len(frame)) % 3 == 0)]
    raked = joint.rake(older)
    for level, p in raked.marginal("group").proba().items():
        assert abs(p - (older["group"] == level).mean()) <= 0.02
    assert max(kolmogorov(raked, older[name]) for name in ("price", "size", "count")) <= 0.02
    assert abs(raked.given(group="b").proba("big")[True] - joint.given(group="b").proba("big")[True]) < 0.1


def test_levels_that_learning_did_not_see_are_warned_of_and_count_as_missing() -> None:
    frame = skewed(600, 3)
    joint = jf.JointTree(random_state=0).fit(frame).joint_
    other = frame.assign(group=frame["group"].where(frame["group"] != "a", "new"))
    with pytest.warns(jf.UnseenLevelWarning, match="new"):
        raked = joint.rake(other)
    known = other["group"][other["group"] != "new"]
    for level, p in raked.marginal("group").proba().items():
        assert abs(p - (known == level).mean()) <= 0.02


def test_marginals_that_cannot_be_had_are_warned_of(learned: tuple[pd.DataFrame, jf.Joint, jf.Joint]) -> None:
    frame, joint, _ = learned
    with pytest.warns(UserWarning, match=r"rake: .*'price' \(.* off\).*learn one of such a table"):
        raked = joint.rake(frame.assign(price=frame["price"] + 1e6))
    assert raked.probability("price > 1e5") < 0.9
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        joint.rake(frame.assign(price=0.9 * frame["price"]))


def test_a_joint_that_agrees_is_itself() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.choice(["u", "v"], 500), "y": rng.choice(["s", "t"], 500)})
    joint = jf.AdversarialForest(3, random_state=0).fit(frame).joint_
    assert joint.rake(frame) is joint


def test_columns_without_known_cells_stay(learned: tuple[pd.DataFrame, jf.Joint, jf.Joint]) -> None:
    frame, joint, _ = learned
    raked = joint.rake(frame[["price"]])
    assert kolmogorov(raked, frame["price"]) <= 0.02


def test_refusals(learned: tuple[pd.DataFrame, jf.Joint, jf.Joint]) -> None:
    frame, joint, _ = learned
    with pytest.raises(ValueError, match="rake: the frame has no rows"):
        joint.rake(frame.head(0))
    hidden = jf.HiddenTreeForest(n_states=4, max_iter=1, max_leaf_nodes=1, random_state=0).fit(frame).joint_
    with pytest.raises(ValueError, match="rake needs a joint that is one forest"):
        hidden.rake(frame)


@pytest.mark.parametrize("within", [0.0, 0.01, 0.1])
def test_joined_pieces_are_near(within: float) -> None:
    rng = np.random.default_rng(0)
    n_rows, n_runs = 60, 9
    plain = rng.dirichlet(np.full(n_runs, 0.4), n_rows)
    plain[rng.random(plain.shape) < 0.2] = 0.0
    log_weight = -rng.exponential(0.3, n_runs)
    mass = plain * np.exp(log_weight)
    row, run = np.nonzero(mass)
    found = joined_parts(ColumnParts(row, run + 4, run + 4, np.log(mass[row, run])), n_rows, 4, log_weight, within)
    assert len(found.first) <= len(row) and np.all(np.diff(found.piece) >= 0)
    for r in range(n_rows):
        own = found.piece == r
        if not mass[r].any():
            assert not own.any()
            continue
        assert found.first[own][0] == 4 and found.last[own][-1] == 3 + n_runs
        np.testing.assert_array_equal(found.first[own][1:], found.last[own][:-1] + 1)
        share = np.exp(found.log_mass[own])
        assert share.sum() == pytest.approx(mass[r].sum())
        wanted, reached = np.cumsum(mass[r]) / mass[r].sum(), 0.0
        for k, (first, last) in enumerate(zip(found.first[own] - 4, found.last[own] - 4, strict=True)):
            inside = np.cumsum(plain[r, first : last + 1])
            line = reached + share[k] * inside / inside[-1] if inside[-1] > 0 else np.full(last + 1 - first, reached)
            reached += share[k]
            assert np.abs(line / mass[r].sum() - wanted[first : last + 1]).max() <= within + 1e-6
