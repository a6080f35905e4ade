"""Histories on Dask: the joint of `fit_batches`, and its answers, however the rows of subjects are spread."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.integrations import dask as jfd

from .tables import cut

VISITS = jf.datasets.make_visits(120, random_state=0)
VISITS = VISITS.assign(patient="p" + VISITS["patient"].astype(str))
GAPS = VISITS.assign(weight=VISITS["weight"].mask(VISITS.index % 5 == 0), sex=VISITS["sex"].mask(VISITS.index % 3 == 0))


@pytest.fixture(scope="module")
def joint() -> jf.HistoryJoint:
    return jf.HistoryForest(random_state=0).fit_batches(VISITS, group="patient", order="date").joint_


@pytest.fixture(autouse=True)
def in_this_process() -> Iterator[None]:
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.mark.parametrize("ends", [[], [0, 3, 3, 100, 101, 400]])
def test_joint_is_that_of_batches(joint: jf.HistoryJoint, ends: list[int]) -> None:
    learner = jfd.HistoryForest(random_state=0)
    found = learner.fit(cut(VISITS.sample(frac=1, random_state=1), ends), group="patient", order="date").joint_
    np.testing.assert_array_equal(found.log_density(VISITS), joint.log_density(VISITS))
    local = pickle.loads(pickle.dumps(learner)).to_local()
    assert type(local) is jf.HistoryForest and local.joint_.info() == joint.info()


@pytest.mark.parametrize("npartitions", [1, 7])
def test_log_densities_of_subjects(joint: jf.HistoryJoint, npartitions: int) -> None:
    found = jfd.log_density(joint, dd.from_pandas(VISITS, npartitions=npartitions))
    assert found.name == "log_density" and found.index.name == "patient" and found.dtype == np.float64
    in_order = found.compute()[joint.subjects(VISITS)]
    np.testing.assert_allclose(in_order, joint.log_density(VISITS), rtol=1e-12)
    few = jfd.log_density(joint, dd.from_pandas(VISITS.iloc[:3], npartitions=1).repartition(npartitions=3))
    assert len(few.compute()) == VISITS.iloc[:3]["patient"].nunique()


@pytest.mark.parametrize("npartitions", [1, 7])
def test_imputed_cells(joint: jf.HistoryJoint, npartitions: int) -> None:
    lazy = dd.from_pandas(GAPS, npartitions=npartitions)
    filled = jfd.impute(joint, lazy, random_state=0)
    whole = filled.compute()
    assert list(filled.columns) == list(GAPS.columns) and (filled.dtypes == whole.dtypes).all()
    whole = whole.sort_index()
    assert whole.index.equals(GAPS.index) and not whole.isna().any().any()
    here = joint.impute(lazy.compute(), random_state=0)
    for name in GAPS:
        known = GAPS[name].notna().to_numpy()
        assert (whole[name][known].astype(here[name].dtype) == here[name][known]).all()
    assert abs(whole["weight"] - here["weight"]).mean() < 0.3
    assert not jfd.impute(joint, lazy, "sample", 0).compute().isna().any().any()


def test_what_does_not_go(joint: jf.HistoryJoint) -> None:
    lazy = dd.from_pandas(VISITS, npartitions=2)
    with pytest.raises(ValueError, match="order: the batches of an engine have no order"):
        jfd.HistoryForest().fit(lazy, group="patient")
    with pytest.raises(TypeError, match="expected a Dask DataFrame"):
        jfd.HistoryForest().fit(VISITS, group="patient", order="date")
    with pytest.raises(TypeError, match="expected a Dask DataFrame"):
        jfd.log_density(joint, VISITS)
    with pytest.raises(ValueError, match="group: there is no column 'patient'"):
        jfd.impute(joint, lazy.drop(columns="patient"))
    without = jf.fit(VISITS.drop(columns="date"), group="patient", random_state=0)
    with pytest.raises(ValueError, match="learned without order"):
        jfd.log_density(without, lazy)
    with pytest.raises(ValueError, match="method must be"):
        jfd.impute(joint, lazy, "median")


def test_forecasts_by_partition(joint: jf.HistoryJoint) -> None:
    """What the page on Dask says."""

    def next_weights(part: pd.DataFrame) -> pd.DataFrame:
        if not len(part):
            return pd.DataFrame({"patient": part["patient"], "weight": np.empty(0)})
        found = joint.forecast(part, random_state=0)
        return pd.DataFrame({"patient": found.subjects, "weight": found.mean("weight")[:, 0]})

    lazy = dd.from_pandas(VISITS, npartitions=4).shuffle("patient")
    found = lazy.map_partitions(next_weights, meta=next_weights(VISITS.iloc[:0])).compute()
    assert sorted(found["patient"]) == sorted(VISITS["patient"].unique()) and found["weight"].between(30, 200).all()
