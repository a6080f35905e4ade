"""Samples of rows by their content: the same in any order, and fair to rows that are common."""

from __future__ import annotations

import itertools
from functools import reduce

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jointforest.data.frames import read
from jointforest.data.observe_table import Size
from jointforest.data.sample_rows import (
    common_keys,
    count_common,
    merge_common,
    merge_samples,
    row_keys,
    sample_rows,
    sample_size,
    weighed_rows,
)


def rows_of(cells):
    """Each row as a tuple, None where missing."""
    columns = []
    for of in cells.values():
        values = [of.labels[k] for k in of.codes] if of.codes is not None else of.values.tolist()
        columns.append([None if gone else value for value, gone in zip(values, of.missing, strict=True)])
    return list(zip(*columns, strict=True))


def sampled(parts, size, seed=1):
    readers = [read(part.reset_index(drop=True)) for part in parts]
    found = reduce(lambda a, b: merge_samples(a, b, size), [sample_rows(reader, seed, size) for reader in readers])
    keys = common_keys(found, size)
    counted = reduce(merge_common, [count_common(reader, keys, seed) for reader in readers])
    cells, weight = weighed_rows(found, counted)
    return rows_of(cells), weight


def table(n, seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "a": rng.integers(0, 12, n).astype(float),
            "b": rng.choice(["x", "y", "z"], n),
            "t": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 3, n), "h"),
        }
    )
    frame.loc[rng.random(n) < 0.2, "a"] = np.nan
    return frame


@given(st.integers(0, 100), st.lists(st.integers(1, 119), max_size=5, unique=True), st.sampled_from([10, 30, 500]))
def test_sample_does_not_depend_on_order_or_cuts(seed, cuts, n_rows):
    frame = table(120, seed)
    shuffled = frame.sample(frac=1, random_state=seed)
    ends = [0, *sorted(cuts), len(frame)]
    parts = [shuffled.iloc[a:b] for a, b in itertools.pairwise(ends)]
    rows, weight = sampled([frame], sample_size(n_rows))
    again, other = sampled(parts, sample_size(n_rows))
    assert rows == again and weight.tolist() == other.tolist()
    assert weight.sum() == pytest.approx(120)
    if n_rows == 500:  # every row is in, as often as the table has it
        assert sum(weight[[row == rows[0] for row in rows]]) == sum(row == rows[0] for row in rows_of(cells_of(frame)))


def cells_of(frame):
    reader = read(frame)
    return {name: reader.cells(name) for name in reader.names}


def test_common_rows_are_always_in_and_stand_for_themselves():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=5000), "b": rng.normal(size=5000)})
    frame.iloc[:600] = 0.0
    for seed in range(5):
        rows, weight = sampled([frame.iloc[:3000], frame.iloc[3000:]], Size(200, 400), seed)
        assert weight[rows.index((0.0, 0.0))] == 600
        assert weight.sum() == pytest.approx(5000)
        assert np.ptp(np.delete(weight, rows.index((0.0, 0.0)))) == 0


def test_key_of_a_row_is_that_of_its_values():
    frame = table(50, 0)
    keys = row_keys(cells_of(frame).items(), 50, 0)
    other = frame[["t", "b", "a"]].astype({"t": "datetime64[s]", "b": "category"})
    assert (row_keys(cells_of(other).items(), 50, 0) == keys).all()
    assert (row_keys(cells_of(frame).items(), 50, 1) != keys).all()
    whole = frame[["a"]].dropna()
    ints = row_keys(cells_of(whole.astype(int)).items(), len(whole), 0)
    assert (ints == row_keys(cells_of(whole).items(), len(whole), 0)).all()
    assert len(np.unique(keys)) == len(set(rows_of(cells_of(frame))))
