"""Learning histories from batches: one joint, however the rows of subjects are cut; samples keep subjects whole."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

import jointforest as jf
from jointforest.data.frames import read
from jointforest.data.sample_rows import row_keys
from jointforest.learners.batches.sample import Pass
from jointforest.learners.history import history_forest
from jointforest.learners.history import history_forest as sampling

VISITS = jf.datasets.make_visits(120, random_state=0)


def cut(frame: pd.DataFrame, ends: list[int]) -> Callable[[], list[pd.DataFrame]]:
    bounds = [0, *sorted(ends), len(frame)]
    return lambda: [frame.iloc[a:b] for a, b in itertools.pairwise(bounds)]


def learned(source: object, seed: int = 0, order: str | None = "date", most_rows: int = 10**6) -> jf.HistoryJoint:
    with patch.object(history_forest, "FIXED", replace(history_forest.FIXED, batch_rows=most_rows)):
        return jf.HistoryForest(random_state=seed).fit_batches(source, group="patient", order=order).joint_


def keys_of(frame: pd.DataFrame, seed: int = 0) -> np.ndarray:
    forest = jf.HistoryForest(random_state=seed)
    return row_keys([("patient", read(frame).cells("patient"))], len(frame), forest._draw_seed())


def test_a_small_table_is_learned_as_in_memory() -> None:
    by_key = VISITS.iloc[np.argsort(keys_of(VISITS), kind="stable")]
    whole = jf.HistoryForest(random_state=0).fit(by_key, group="patient", order="date").joint_
    found = learned(cut(VISITS, [10, 11, 400]))
    np.testing.assert_array_equal(found.log_density(VISITS), whole.log_density(VISITS))
    assert found.info() == whole.info()


@settings(max_examples=6, deadline=None)
@given(st.lists(st.integers(0, 300), max_size=6), st.integers(0, 99))
def test_joint_does_not_depend_on_cuts_or_order(ends: list[int], seed: int) -> None:
    shuffled = VISITS.sample(frac=1, random_state=seed)
    one, two = learned(VISITS, most_rows=400), learned(cut(shuffled, ends), most_rows=400)
    np.testing.assert_array_equal(one.log_density(VISITS), two.log_density(VISITS))


@pytest.mark.parametrize("most_rows", [1, 50, 400])
@pytest.mark.parametrize("size", [7, 100])
def test_the_sample_has_all_rows_of_the_subjects_with_the_smallest_keys(most_rows: int, size: int) -> None:
    shuffled = VISITS.sample(frac=1, random_state=1)
    parts = cut(shuffled, list(range(size, len(shuffled), size)))()
    reader, n = sampling.sample_subjects(lambda one, _: one.over(parts), "patient", "date", most_rows, 5)
    keys = row_keys([("patient", read(shuffled).cells("patient"))], len(shuffled), 5)
    distinct, counts = np.unique(keys, return_counts=True)
    n_kept = max(1, int((np.cumsum(counts) <= most_rows).sum()))
    expected = shuffled[np.isin(keys, distinct[:n_kept])]
    found = pd.DataFrame({name: reader.cells(name).values for name in ("patient", "pressure")})
    assert n == len(VISITS)
    assert sorted(map(tuple, found.to_numpy())) == sorted(map(tuple, expected[["patient", "pressure"]].to_numpy()))


def test_rows_without_times_keep_their_order() -> None:
    rows = VISITS.drop(columns="date")
    by_key = rows.iloc[np.argsort(keys_of(rows), kind="stable")]
    whole = jf.HistoryForest(random_state=0).fit(by_key, group="patient").joint_
    found = learned(cut(rows, [10, 300]), order=None)
    np.testing.assert_array_equal(found.log_density(rows), whole.log_density(rows))


def test_sources(tmp_path: Path) -> None:
    expected = learned(VISITS).log_density(VISITS)
    table = pa.Table.from_pandas(VISITS, preserve_index=False)
    for k in range(3):
        parquet.write_table(table.slice(k * 200, 200 if k < 2 else None), tmp_path / f"{k}.parquet")
    for source in (tmp_path, pl.from_pandas(VISITS).lazy(), table):
        np.testing.assert_allclose(learned(source).log_density(VISITS), expected)


def test_an_engine_merges_samples_in_any_order() -> None:
    class Engine:
        def fold(self, one: Pass, n: int | None = None) -> object:
            one = pickle.loads(pickle.dumps(one))
            parts = cut(VISITS, [100, 101, 300])()
            sums = [pickle.loads(pickle.dumps(one.over([part]))) for part in parts]
            return one.together(sums[::-1])

    np.testing.assert_array_equal(learned(Engine()).log_density(VISITS), learned(VISITS).log_density(VISITS))
    with pytest.raises(ValueError, match="order: the batches of an engine have no order"):
        learned(Engine(), order=None)


def test_levels_that_differ_between_batches() -> None:
    parts = [part.astype({"status": "category"}) for part in cut(VISITS, [3, 300])()]
    parts = [part.assign(status=part["status"].cat.remove_unused_categories()) for part in parts]
    found = learned(lambda: parts)
    assert found.schema.columns[found.schema.index("status")].levels == ("ill", "severe", "well")
    np.testing.assert_allclose(found.log_density(VISITS), learned(VISITS).log_density(VISITS))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda part: part.drop(columns="weight"), "a part of the table lacks 'weight'"),
        (lambda part: part.assign(weight="heavy"), "column 'weight': cells of sort"),
        (lambda part: part.assign(patient=None), "group: column 'patient' is missing"),
        (lambda part: part.rename(columns={"date": "day"}), "order: there is no column 'date'"),
        (lambda part: pl.from_pandas(part), "a part of the table is of polars, another of pandas"),
    ],
)
def test_batches_that_do_not_go_together(change: Callable, says: str) -> None:
    parts = cut(VISITS, [200])()
    with pytest.raises(ValueError, match=says):
        learned(lambda: [parts[0], change(parts[1])])


def test_no_rows() -> None:
    with pytest.raises(ValueError, match="the source gave no rows"):
        learned(lambda: [VISITS.iloc[:0]])
    with pytest.raises(ValueError, match="the source gave no rows"):
        learned(list)
