"""Joints asked about Dask frames: the answers of the joint itself, with the right types, index and divisions."""

from __future__ import annotations

from pathlib import Path

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest

import jointforest as jf
from jointforest.integrations import dask as jfd

from .tables import cut, table

pytestmark = [
    pytest.mark.filterwarnings("ignore:levels never seen"),
    pytest.mark.filterwarnings("ignore:.*unlike anything"),
]


@pytest.fixture(scope="module")
def joint() -> jf.Joint:
    return jf.JointTree(2, min_samples_leaf=20, random_state=0).fit(table()).joint_


@pytest.fixture(autouse=True)
def in_this_process():
    with dask.config.set(scheduler="synchronous"):
        yield


def check_metadata(found: dd.DataFrame | dd.Series) -> None:
    """What is promised is what each partition holds."""
    for part in dask.compute(*found.to_delayed()):
        dd.utils.assert_eq(part.iloc[:0], found._meta, check_index=False, check_divisions=False)
        kinds = part.dtypes if part.ndim == 2 else part.dtype
        assert np.all(kinds == (found.dtypes if part.ndim == 2 else found.dtype))


@pytest.mark.parametrize("ends", [[], [0, 0, 13, 14, 100]])
def test_answers_are_those_of_the_joint(joint: jf.Joint, ends: list[int]) -> None:
    frame = table(120, 1)
    lazy = cut(frame, ends)
    density = jfd.log_density(joint, lazy)
    check_metadata(density)
    assert density.name == "log_density" and np.array_equal(density.compute(), joint.log_density(frame))
    for target in ("g", "x", "day", "flag"):
        predicted = jfd.predict(joint, lazy, target)
        check_metadata(predicted)
        assert (
            predicted.name == target
            and predicted.compute().tolist() == pd.Series(joint.predict(frame, target)).tolist()
        )
    shares = jfd.predict_proba(joint, lazy, "flag")
    check_metadata(shares)
    assert shares.columns.tolist() == [False, True]
    assert np.array_equal(shares.compute(), joint.predict_proba(frame, "flag"))
    filled = jfd.impute(joint, lazy)
    check_metadata(filled)
    pd.testing.assert_frame_equal(filled.compute().reset_index(drop=True), joint.impute(frame))


def test_index_and_divisions_stay(joint: jf.Joint) -> None:
    frame = table(120, 1).set_index(pd.Index(np.arange(160) * 3, name="id"))
    lazy = dd.from_pandas(frame, npartitions=4)
    for found in (jfd.log_density(joint, lazy), jfd.impute(joint, lazy), jfd.predict(joint, lazy[["x", "k"]], "g")):
        assert found.divisions == lazy.divisions
        assert found.compute().index.equals(frame.index)
    beside = lazy.assign(p=jfd.log_density(joint, lazy)).compute()
    assert np.array_equal(beside["p"], joint.log_density(frame))


def test_draws_that_fill_cells(joint: jf.Joint) -> None:
    frame = table(120, 1)
    found = jfd.impute(joint, cut(frame, [50]), "sample", 0)
    check_metadata(found)
    drawn = found.compute().reset_index(drop=True)
    known = frame.notna()
    assert drawn.notna().all(axis=None) and (drawn.where(known) == frame.where(known)).where(known, True).all(axis=None)
    assert drawn.equals(jfd.impute(joint, cut(frame, [50]), "sample", 0).compute().reset_index(drop=True))
    assert not drawn.equals(jfd.impute(joint, cut(frame, [50]), "sample", 1).compute().reset_index(drop=True))
    gaps = cut(frame.iloc[[0, 0]].assign(x=np.nan), [1])
    assert len(set(jfd.impute(joint, gaps, "sample", 0)["x"].compute())) == 2  # another draw in each partition


@pytest.mark.parametrize("missing", [False, True])
def test_draws_are_those_of_the_joint(joint: jf.Joint, missing: bool) -> None:
    found = jfd.sample(joint, 262_144 + 10, 3, missing)
    assert found.divisions == (0, 262_144, 262_153)
    if not missing:
        check_metadata(found)
    whole = joint.sample(262_144 + 10, 3, missing)
    pd.testing.assert_frame_equal(found.compute(), whole)
    assert len(jfd.sample(joint, 0, 3).compute()) == 0


def test_joints_of_other_frames(tmp_path: Path) -> None:
    """A joint learned from polars or an array, or read from a file, answers Dask frames in pandas."""
    frame = table()[["g", "x"]]
    joint = jf.JointTree(random_state=0).fit(pl.from_pandas(frame)).joint_
    joint.save(tmp_path / "one.joint")
    for one in (joint, jf.load(tmp_path / "one.joint")):
        filled = jfd.impute(one, cut(frame, [7]))
        check_metadata(filled)
        assert filled.compute()["x"].notna().all()
        assert isinstance(jfd.sample(one, 5, 0).compute(), pd.DataFrame)


def test_what_is_no_dask_frame(joint: jf.Joint) -> None:
    with pytest.raises(TypeError, match="expected a Dask DataFrame, got DataFrame; ask the joint itself"):
        jfd.log_density(joint, table())
    with pytest.raises(ValueError, match="method must be 'mean' or 'sample', got 'mode'"):
        jfd.impute(joint, cut(table(), []), "mode")
    with pytest.raises(ValueError, match="no column 'none'"):
        jfd.predict(joint, cut(table(), []), "none")
    with pytest.raises(ValueError, match="non-negative integer"):
        jfd.sample(joint, -1)
