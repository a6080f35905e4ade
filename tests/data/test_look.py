"""A table has one schema, however it is cut, and whatever the order of its rows."""

from __future__ import annotations

import itertools
from functools import reduce

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jointforest.data import observe_table as tally
from jointforest.data.frames import read
from jointforest.data.infer_schema import checked_kinds, infer_schema, schema_of, to_count
from jointforest.data.observe_table import Size, add_table_counts, count, look, merge_looks


def by_parts(parts, kinds=None):
    readers = [read(part) for part in parts]
    seen = reduce(merge_looks, map(look, readers))
    kinds = checked_kinds(seen.names, kinds)
    wanted = to_count(seen, kinds)
    counted = reduce(add_table_counts, [count(reader, wanted) for reader in readers])
    return schema_of(seen, counted, kinds)


def table(n: int, seed: int) -> pd.DataFrame:
    """Columns of every kind: grids, heaps, atoms, text, categories, booleans, dates and times, with missing cells."""
    rng = np.random.default_rng(seed)
    day = pd.Timestamp("2024-03-01") + pd.to_timedelta(rng.integers(0, 90, n), "D")
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "zeros": np.where(rng.random(n) < 0.3, 0.0, rng.normal(size=n)),
            "whole": rng.integers(-5, 400, n),
            "cents": rng.integers(0, 300, n) / 100,
            "halves": rng.integers(0, 40, n) / 2,
            "heap": np.where(rng.random(n) < 0.2, 40, rng.integers(0, 1000, n)),
            "float32": (rng.integers(0, 30, n) / 10).astype(np.float32),
            "text": rng.choice(["a", "b", "ü"], n),
            "sort": pd.Categorical(rng.choice(["lo", "hi"], n), categories=["lo", "hi", "unused"]),
            "yes": rng.random(n) < 0.5,
            "day": day,
            "moment": day + pd.to_timedelta(rng.integers(0, 86_400, n), "s"),
        }
    )
    for name in ("x", "cents", "text", "day"):
        frame[name] = frame[name].mask(rng.random(n) < 0.1)
    return frame


@settings(max_examples=25)
@given(st.integers(0, 1000), st.lists(st.integers(1, 199), max_size=6, unique=True))
def test_schema_does_not_depend_on_the_cuts(seed, cuts):
    frame = table(200, seed)
    whole = str(infer_schema(frame))
    ends = [0, *sorted(cuts), len(frame)]
    parts = [frame.iloc[a:b].reset_index(drop=True) for a, b in itertools.pairwise(ends)]
    assert str(by_parts(parts)) == whole
    assert str(by_parts(parts[::-1])) == whole


@pytest.mark.parametrize("kinds", [None, {"heap": "mixed", "zeros": "continuous"}])
def test_columns_of_many_values_are_counted_again(monkeypatch, kinds):
    frame = table(6000, 3)
    frame["id"] = np.where(np.arange(6000) % 50 == 0, 77, np.random.default_rng(0).integers(0, 10**6, 6000))
    expected = str(infer_schema(frame, kinds))  # every value is counted
    assert "77.0" in expected
    monkeypatch.setattr(tally, "SIZE", Size(most=500, n_common=600))
    parts = [frame.iloc[k : k + 1500].reset_index(drop=True) for k in range(0, 6000, 1500)]
    assert not look(read(frame)).columns[0].what.values.tally.is_whole
    assert str(by_parts(parts, kinds)) == str(by_parts([parts[k] for k in (2, 0, 3, 1)], kinds)) == expected


def test_types_that_differ_from_part_to_part():
    first = pa.table(
        {"a": pa.array([1, 2]), "b": pa.array([None, None]), "t": pa.array([0, 86_400], pa.timestamp("s"))}
    )
    second = pa.table(
        {"b": pa.array(["u", "v"]), "t": pa.array([500_000, None], pa.timestamp("us")), "a": pa.array([0.5, None])}
    )
    schema = by_parts([first, second])
    assert schema.names == ("a", "b", "t") and str(schema) == str(by_parts([first, second.select(["a", "b", "t"])]))
    assert (schema["a"].kind, schema["a"].dtype) == ("rounded", "double")
    assert schema["b"].levels == ("u", "v")
    assert (schema["t"].dtype, schema["t"].step) == ("timestamp[us]", 1e-3)


def test_categories_of_other_orders_are_sorted():
    parts = [
        pd.DataFrame({"c": pd.Categorical(["b", "a"], categories=order)}) for order in (["b", "a"], ["a", "b", "z"])
    ]
    assert by_parts(parts)["c"].levels == by_parts(parts[::-1])["c"].levels == ("a", "b", "z")
    assert by_parts([parts[0], parts[0]])["c"].levels == ("b", "a")
    ordered = [pd.DataFrame({"c": part["c"].cat.as_ordered()}) for part in parts]
    with pytest.raises(ValueError, match=r"column 'c': an ordered category with other levels"):
        by_parts(ordered)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ({"a": [1.0]}, {"a": ["x"]}, r"column 'a': numbers in one part of the table, text in another"),
        ({"a": [1.0]}, {"b": [1.0]}, r"lacks 'a' and has 'b'|lacks 'b' and has 'a'"),
        ({"a": [True]}, {"a": [1.5]}, r"column 'a': booleans in one part"),
        (
            {"a": pd.to_datetime(["2024-01-01"])},
            {"a": pd.to_datetime(["2024-01-01"]).tz_localize("UTC")},
            r"column 'a': times of type .* use one zone",
        ),
    ],
)
def test_parts_that_do_not_go_together(first, second, message):
    with pytest.raises(ValueError, match=message):
        by_parts([pd.DataFrame(first), pd.DataFrame(second)])


def test_libraries_are_not_mixed():
    with pytest.raises(ValueError, match="of pyarrow, another of pandas"):
        by_parts([pd.DataFrame({"a": [1]}), pa.table({"a": [1]})])


def test_infinite_cells_of_a_late_part():
    with pytest.raises(ValueError, match=r"column 'a': 1 infinite value"):
        by_parts([pd.DataFrame({"a": [1.0, 2.0]}), pd.DataFrame({"a": [np.inf]})])


def test_a_part_without_known_cells_may_have_any_type():
    known, gaps = (
        pd.DataFrame({"a": ["x", "y"], "b": [1.5, 2.5]}),
        pd.DataFrame({"a": [np.nan, np.nan], "b": [None, None]}),
    )
    schema = infer_schema(pd.concat([known, gaps], ignore_index=True).astype({"a": "str"}))
    for parts in ([known, gaps], [gaps, known], [gaps, gaps, known]):
        found = by_parts(parts)
        assert [c.levels or c.minimum for c in found.columns] == [c.levels or c.minimum for c in schema.columns]
        assert [c.n_observed for c in found.columns] == [2, 2]


def test_categories_of_numbers_as_numbers():
    cells = pd.Categorical([3, 1, 3, None, 10, 1], categories=[10, 3, 1, 99])
    parts = [pd.DataFrame({"a": cells[k : k + 3]}) for k in (0, 3)]
    column = by_parts(parts, {"a": "integer"})["a"]
    assert (column.minimum, column.maximum, column.n_observed) == (1.0, 10.0, 5)
