"""Notes of a comparison: renamed levels, and values typed in wrong, which are too few for any test of change."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.drift.compare import Words, read_two


def _table(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Columns of levels with and without rare ones, and of numbers and dates with short and long tails."""
    return pd.DataFrame(
        {
            "few": rng.choice(["red", "green", "blue"], n, p=[0.5, 0.3, 0.2]),
            "counts": [f"l{k}" for k in rng.poisson(3, n)],
            "rare": [f"l{k}" for k in np.minimum(rng.zipf(1.6, n), 500)],
            "normal": np.round(rng.normal(100.0, 15.0, n), 2),
            "amount": np.round(np.exp(rng.normal(4.0, 1.0, n)), 2),
            "long": np.round(rng.standard_t(3, n), 1),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 90, n), unit="D"),
        }
    )


def test_tables_of_one_source_have_hardly_any_notes() -> None:
    n_notes = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        old, new = (_table(rng, int(n)) for n in rng.integers(50, 600, 2))
        n_notes += len(Words(read_two(old, new)).notes())
    assert n_notes <= 5


def test_repeated_rows_are_named_with_their_number() -> None:
    rng = np.random.default_rng(0)
    old, new = _table(rng, 300), _table(rng, 250)
    assert not jf.compare_tables(old, old, random_state=0).notes  # rows of both tables are no copies in one
    copies = pd.concat([new, new[:40]])
    note = "40 of 290 {} rows repeat an earlier one; if they are copies, p-values are too small"
    assert note.format("new") in jf.compare_tables(old, copies, random_state=0).notes
    assert note.format("old") in jf.compare_tables(copies, old, random_state=0).notes


@pytest.mark.parametrize("seed", range(4))
def test_renamed_levels_are_named_with_both_names(seed: int) -> None:
    rng = np.random.default_rng(seed)
    old, new = _table(rng, 300), _table(rng, 250)
    level = ["red", "green", "blue"][seed % 3]
    new["few"] = new["few"].replace(level, level.upper())
    n_old, n_new = (old["few"] == level).sum(), (new["few"] == level.upper()).sum()
    found = jf.compare_tables(old, new, random_state=0)
    note = f"few: levels only in the new table: {level.upper()} ({n_new} rows); levels only in the old table: "
    note += f"{level} ({n_old} rows)"
    assert note in found.notes
    assert f"  note: {note}" in repr(found).splitlines()


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("normal", 99999.0, "99,999"),
        ("normal", -9999.0, "−9999"),
        ("amount", 9999999.0, "9,999,999"),
        ("day", pd.Timestamp("2204-01-02"), "2204-01-02"),
    ],
)
def test_a_value_typed_in_wrong_is_named(name: str, value: object, text: str) -> None:
    rng = np.random.default_rng(5)
    old, new = _table(rng, 300), _table(rng, 250)
    new.loc[7, name] = value
    found = jf.compare_tables(old, new, random_state=0)
    assert f"{name} has values far from all others: {text} (1 row)" in found.notes
    old.loc[3, name] = value  # which is no change then
    assert jf.compare_tables(old, new, random_state=0).notes == ()
