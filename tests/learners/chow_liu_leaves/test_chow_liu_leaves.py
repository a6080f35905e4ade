"""Learners with Chow-Liu leaves: rows coded, a fit on a small table, its answers against its own parts, odd tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.data.frames import encode
from jointforest.data.infer_schema import infer_schema
from jointforest.data.schema import kernel_columns, snap
from jointforest.learners.chow_liu_leaves.learn import on_own_scales
from jointforest.learners.rows import TableRows
from jointforest.models.hidden_tree.files import check_hidden
from jointforest.models.hidden_tree.hidden_trees import HiddenTrees

LEARNERS = [
    lambda: jf.AdversarialForest(n_estimators=4, leaf="chow_liu", random_state=0),
    lambda: jf.JointTree(leaf="chow_liu", random_state=0),
    lambda: jf.JointTree(n_estimators=3, leaf="chow_liu", random_state=0),
]


def hidden_of(joint: jf.Joint) -> HiddenTrees:
    return joint.distribution.components[0].hidden  # type: ignore[attr-defined]


def penguins(n: int = 250) -> tuple[pd.DataFrame, pd.DataFrame]:
    frame = jf.datasets.load_penguins()
    order = np.random.default_rng(0).permutation(len(frame))
    return frame.iloc[order[:n]].reset_index(drop=True), frame.iloc[order[n:]].reset_index(drop=True)


def test_coded_rows_are_whole_numbers_and_levels() -> None:
    frame = penguins()[0]
    schema = infer_schema(frame)
    columns = kernel_columns(schema)
    X = snap(columns, encode(schema, frame)[0])
    table = on_own_scales(TableRows(schema, columns, X, X))
    assert table.codes.shape == frame.shape
    np.testing.assert_array_equal(np.isnan(table.rows.X), frame.isna())
    for j, (column, scale) in enumerate(zip(table.rows.schema.columns, table.scales, strict=True)):
        known = table.rows.X[:, j][~np.isnan(table.rows.X[:, j])]
        assert (known == np.floor(known)).all() and known.min() >= 0 and known.max() < scale.n_codes
        assert column.kind == ("integer" if not schema.columns[j].is_categorical else schema.columns[j].kind)


@pytest.mark.parametrize("make", LEARNERS)
def test_penguins(make: Any) -> None:
    learn, held_out = penguins()
    grams = {"body_mass_g": "integer"}  # on its own grid, of 25 grams, the independent leaves are as good
    joint = make().set_params(kinds=grams).fit(learn).joint_
    hidden = hidden_of(joint)
    check_hidden(hidden)
    independent = jf.AdversarialForest(n_estimators=10, leaf="normal", kinds=grams, random_state=0).fit(learn).joint_
    assert joint.log_density(held_out).mean() > independent.log_density(held_out).mean() + 0.5
    gentoo = joint.given(species="Gentoo")
    assert gentoo.proba("island")["Biscoe"] > 0.9 and abs(gentoo.mean("flipper_length_mm") - 217) < 5
    drawn = joint.sample(2_000, random_state=0)
    assert list(drawn.columns) == list(learn.columns)
    assert abs(drawn["body_mass_g"].corr(drawn["flipper_length_mm"]) - 0.87) < 0.1
    assert not joint.impute(held_out).isna().any().any()
    kept = joint.select("island", "sex")
    np.testing.assert_allclose(
        kept.log_density(held_out[["island", "sex"]]), joint.log_density(held_out[["island", "sex"]]), atol=1e-4
    )
    np.testing.assert_allclose(np.exp(hidden.log_weight).sum(), 1.0)


def test_threads_change_nothing() -> None:
    learn, held_out = penguins()
    one, two = (
        jf.AdversarialForest(n_estimators=4, leaf="chow_liu", random_state=3, n_jobs=n).fit(learn).joint_
        for n in (1, 2)
    )
    np.testing.assert_array_equal(one.log_density(held_out), two.log_density(held_out))
    pd.testing.assert_frame_equal(one.sample(50, random_state=1), two.sample(50, random_state=1))


def test_trees_without_a_row_are_refused_by_name() -> None:
    learn, _ = penguins()
    with pytest.raises(ValueError, match="another leaf than 'chow_liu'"):
        jf.AdversarialForest(leaf="chow_liu", oob_score=True).fit(learn)


@pytest.mark.parametrize("leaf_rows", ["oob", "honest"])
def test_rows_of_leaves(leaf_rows: str) -> None:
    learn, held_out = penguins()
    forest = jf.AdversarialForest(n_estimators=4, leaf="chow_liu", leaf_rows=leaf_rows, random_state=0).fit(learn)
    assert np.isfinite(forest.joint_.log_density(held_out)).all() and forest.oob_accuracy_


ODD = {
    "one row": pd.DataFrame({"a": [1.5], "b": ["x"]}),
    "one column": pd.DataFrame({"a": np.linspace(0.0, 1.0, 40)}),
    "constant": pd.DataFrame({"a": [2.0] * 30, "b": ["x"] * 30, "c": [None] * 29 + [1.0]}),
    "wild": pd.DataFrame({"a": np.arange(60.0) ** 9, "b": [f"level {k}" for k in range(60)], "c": [True, False] * 30}),
    "dates": pd.DataFrame({"t": pd.date_range("2020", periods=50), "x": np.tile([0.0, 0.0, 1.3, 2.6, np.nan], 10)}),
}
"""Tables at the limits of what is learned."""


@pytest.mark.parametrize("make", LEARNERS)
@pytest.mark.parametrize("frame", ODD.values(), ids=ODD)
def test_odd_tables(make: Any, frame: pd.DataFrame) -> None:
    joint = make().fit(frame).joint_
    assert np.isfinite(joint.log_density(frame)).all()
    assert len(joint.sample(5, random_state=0)) == 5
    assert joint.impute(frame).shape == frame.shape
