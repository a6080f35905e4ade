"""What is left of columns when a neighbour is known: ranks by hand, who judges whom, trees that split for no more."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.data.frames import encode
from jointforest.data.infer_schema import infer_schema
from jointforest.data.schema import kernel_columns, snap
from jointforest.learners.chow_liu_leaves.learn import CodedRows, on_own_scales
from jointforest.learners.joint_tree.constants import FIXED
from jointforest.learners.joint_tree.joint_tree import BY_RANKS, ConditionalRanks, conditional_ranks
from jointforest.learners.rows import TableRows


def table_of(frame: pd.DataFrame) -> CodedRows:
    schema = infer_schema(frame)
    columns = kernel_columns(schema)
    X = snap(columns, encode(schema, frame)[0])
    return on_own_scales(TableRows(schema, columns, X, X))


def chain(n: int, seed: int = 0) -> pd.DataFrame:
    """Four columns, each of which depends on the one before alone; the third has levels."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    b = a + 0.5 * rng.normal(size=n)
    c = np.where(rng.random(n) < 0.8, np.digitize(b, [-1, 0, 1]), rng.integers(0, 4, n))
    d = c + rng.normal(size=n) * (1 + c)
    frame = pd.DataFrame({"a": a, "b": b, "c": np.array(list("wxyz"))[c], "d": d})
    frame.loc[rng.random(n) < 0.1, "b"] = np.nan
    return frame


def test_judges_are_what_the_neighbour_on_the_way_leaves() -> None:
    found = conditional_ranks(table_of(chain(3_000)), None, 0)
    judged = {(int(k), tuple(np.flatnonzero(judges).tolist()))
              for k, judges in zip(found.column, found.judges.T, strict=True)}  # fmt: skip
    sides = {(0, (1, 2, 3)), (1, (0,)), (1, (2, 3)), (2, (0, 1)), (2, (3,)), (3, (0, 1, 2))}
    assert judged == sides and not found.judges[found.column, np.arange(len(found.column))].any()
    assert (found.column == 2).sum() == 2 * 3  # the commonest levels but one


@pytest.mark.parametrize("is_weighted", [False, True])
def test_ranks_are_spread_evenly_whatever_the_neighbour(is_weighted: bool) -> None:
    frame = chain(2_000)
    table = table_of(frame)
    weight = np.random.default_rng(1).integers(0, 4, 2_000) + 0.0 if is_weighted else np.ones(2_000)
    found = conditional_ranks(table, weight if is_weighted else None, 0)
    q = int(np.flatnonzero((found.column == 3) & found.judges[2])[0])  # the last column, by the levels before it
    u = found.values[:, q]
    assert np.isnan(u[weight == 0]).all()
    for code in range(4):
        here = (table.codes[:, 2] == code) & (weight > 0)
        order = np.argsort(u[here])
        by_hand = (np.cumsum(weight[here][order]) - weight[here][order] / 2) / weight[here].sum()
        np.testing.assert_allclose(u[here][order], by_hand, atol=1e-12)
        assert (np.diff(table.codes[here, 3][order]) >= 0).all()
    of_b = found.values[:, found.column == 1]
    np.testing.assert_array_equal(np.isnan(of_b).all(axis=1), frame["b"].isna().to_numpy() | (weight == 0))


def test_a_copy_leaves_nothing_and_a_constant_has_nothing() -> None:
    frame = chain(500).assign(copy=lambda f: f["c"].str.upper(), one=1.0)
    found: ConditionalRanks = conditional_ranks(table_of(frame), None, 0)
    names = [list(frame)[k] for k in found.column]
    assert "one" not in names
    by_copy = found.judges[list(frame).index("copy")]
    assert not by_copy[[k for k, name in enumerate(names) if name == "c"]].any()


def leaves(joint: jf.Joint) -> int:
    """Hidden trees, the background among them."""
    return len(joint.distribution.components[0].hidden.trees)  # type: ignore[attr-defined]


def split_by_rests(frame: pd.DataFrame, **settings: object) -> jf.Joint:
    """A tree whose splits are judged by conditional ranks, whatever held-out rows say."""

    class ByRests(jf.JointTree):
        def _preferred(self, *_: object) -> str:
            return BY_RANKS

    return ByRests(leaf="chow_liu", random_state=0, **settings).fit(frame).joint_


def test_only_what_the_tree_of_columns_does_not_say_is_split() -> None:
    frame = chain(3_000)
    assert leaves(split_by_rests(frame)) == 2
    assert leaves(split_by_rests(frame.assign(e=np.where(frame["a"] > 0, 1.0, -1.0) * frame["d"]))) > 2
    assert leaves(split_by_rests(frame, features=["a"], min_impurity_decrease=0)) > 2


def test_held_out_rows_choose(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    level = rng.integers(0, 40, (3, 2_000))
    frame = pd.DataFrame({f"level{k}": np.array([f"l{v}" for v in level[k]]) for k in range(3)}
                         | {f"group{k}": np.array([f"g{v // 10}" for v in level[k]]) for k in range(3)})  # fmt: skip
    assert leaves(jf.JointTree(leaf="chow_liu", random_state=0).fit(frame).joint_) == 2
    first, noise = rng.normal(size=(2, 3, 4_000))
    pairs = pd.DataFrame({f"{side}{k}": x for side, of in (("a", first), ("b", 0.9 * first + 0.44 * noise))
                          for k, x in enumerate(of)})  # fmt: skip
    assert leaves(jf.JointTree(leaf="chow_liu", random_state=0).fit(pairs).joint_) > 2
    few = replace(FIXED, trial_fewest_rows=10_000)
    monkeypatch.setattr("jointforest.learners.joint_tree.joint_tree.FIXED", few)
    assert leaves(jf.JointTree(leaf="chow_liu", random_state=0).fit(frame).joint_) > 2


def test_weights_are_repeated_rows_of_a_choice() -> None:
    frame = chain(400)
    few = jf.JointTree(leaf="chow_liu", random_state=0).fit(frame, sample_weight=np.ones(400)).joint_
    assert leaves(few) == leaves(jf.JointTree(leaf="chow_liu", random_state=0).fit(frame).joint_)
