"""Frames of whole subjects from batches, however the batches cut them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jointforest as jf
from jointforest.data.history_rows import whole_subjects


def table(lengths: Iterable[int]) -> pd.DataFrame:
    """Subjects of so many rows each."""
    lengths = list(lengths)
    names = np.repeat([f"s{k}" for k in range(len(lengths))], lengths)
    return pd.DataFrame({"who": names, "x": np.arange(sum(lengths)) / 2})


def cut(frame: pd.DataFrame, ends: list[int], kind: Callable = lambda part: part) -> Callable[[], list]:
    bounds = [0, *sorted(min(end, len(frame)) for end in ends), len(frame)]
    return lambda: [kind(frame.iloc[a:b]) for a, b in itertools.pairwise(bounds)]


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=20),
    st.lists(st.integers(0, 99), max_size=12),
    st.integers(1, 30),
    st.sampled_from([lambda part: part, pl.from_pandas, lambda part: pa.Table.from_pandas(part, preserve_index=False)]),
)
def test_subjects_are_whole_and_frames_small(lengths: list[int], ends: list[int], n_rows: int, kind: Callable) -> None:
    frame = table(lengths)
    parts = list(whole_subjects(cut(frame, ends, kind), "who", n_rows))
    parts = [part if isinstance(part, pd.DataFrame) else part.to_pandas() for part in parts]
    again = pd.concat(parts, ignore_index=True)
    assert again["who"].tolist() == frame["who"].tolist()
    assert again["x"].tolist() == frame["x"].tolist()
    subjects = [set(part["who"]) for part in parts]
    assert sum(map(len, subjects)) == len(lengths)
    assert all(len(part) <= n_rows or len(of) == 1 for part, of in zip(parts, subjects, strict=True))
    # neighbours would not fit together
    assert all(len(a) + len(b) > n_rows or len(ends) > 0 for a, b in itertools.pairwise(parts))


@given(st.lists(st.integers(0, 30), max_size=6), st.integers(1, 30))
def test_rows_of_a_subject_that_stand_apart(ends: list[int], n_rows: int) -> None:
    frame = table([3, 5, 2, 7, 4])
    apart = pd.concat([frame, frame.iloc[[4]]])
    with pytest.raises(ValueError, match=r"group: the rows of subject 's1' stand apart; sort the table by 'who'"):
        list(whole_subjects(cut(apart, ends), "who", n_rows))


def test_bad_tables() -> None:
    frame = table([2, 2])
    with pytest.raises(ValueError, match="group: there is no column 'whom'"):
        list(whole_subjects(frame, "whom", 10))
    with pytest.raises(ValueError, match="group: column 'who' is missing in 1 of"):
        list(whole_subjects(frame.assign(who=frame["who"].mask(frame["x"] == 1.0)), "who", 10))
    assert list(whole_subjects(list, "who", 10)) == []
    assert sum(len(part) for part in whole_subjects(frame.iloc[:0], "who", 10)) == 0


def test_answers_in_batches_are_those_of_the_whole_table() -> None:
    visits = jf.datasets.make_visits(60, random_state=0)
    joint = jf.fit(visits, group="patient", order="date", random_state=0)
    parts = joint.in_batches(cut(visits, [1, 100, 103]), rows=50)
    found = np.concatenate([joint.log_density(part) for part in parts])
    np.testing.assert_array_equal(found, joint.log_density(visits))
    with pytest.raises(ValueError, match="rows"):
        joint.in_batches(visits, rows=0)
