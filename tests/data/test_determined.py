"""Columns that are functions of another column: compared with a count of distinct pairs by pandas."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.data.infer_schema import infer_schema


def _table(n: int, seed: int) -> pd.DataFrame:
    """Columns a to f at random, and functions of some of them."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({name: rng.integers(0, k, n) for name, k in zip("abcdef", (2, 3, 5, 12, 40, n), strict=True)})
    frame["half_d"] = frame["d"] // 2
    frame["name_e"] = frame["e"].map(lambda k: f"level {k % 7}")
    frame["copy_c"] = frame["c"].map(lambda k: "vwxyz"[k])
    frame["x"] = rng.normal(size=n).round(6)
    frame["amount"] = frame["x"] * 2.0
    frame["near_d"] = frame["d"] // 2
    frame.loc[n // 2, "near_d"] = 11
    return frame


def _functions(frame: pd.DataFrame) -> dict[str, set[str]]:
    """The columns that each column is a function of, among pairs of known cells."""
    found: dict[str, set[str]] = {}
    for b in frame:
        for a in frame.columns.drop(b):
            known = frame[[a, b]].dropna()
            repeats = len(known) - known[a].nunique()
            is_function = len(known.drop_duplicates()) == known[a].nunique() and known[b].nunique() > 1
            if is_function and repeats > max(60, len(known) / 2):
                found.setdefault(str(b), set()).add(str(a))
    return found


@pytest.mark.parametrize(("n", "seed", "hidden"), [(200, 0, 0.0), (2000, 1, 0.0), (3000, 2, 0.1), (20_000, 3, 0.3)])
def test_functions_of_another_column_are_found(n: int, seed: int, hidden: float) -> None:
    frame = _table(n, seed)
    gone = np.random.default_rng(seed).random(frame.shape) < hidden
    frame = frame.mask(gone)
    expected = _functions(frame)
    found = {c.name: c.determined_by for c in infer_schema(frame).columns if c.determined_by}
    assert set(found) == set(expected) - {"c"} >= {"half_d", "name_e", "copy_c"}
    for b, a in found.items():
        assert a in expected[b]
        assert frame[a].nunique() == min(frame[one].nunique() for one in expected[b] if found.get(one) != b)
    assert found["copy_c"] == "c" and found.get("near_d") != "d"


def test_agreement_by_chance_is_no_function() -> None:
    rng = np.random.default_rng(0)
    for n in (3, 10, 40):
        frame = pd.DataFrame(rng.integers(0, 2, (n, 30)), columns=[f"x{j}" for j in range(30)])
        frame["key"] = rng.permutation(n)
        columns = infer_schema(frame).columns
        equal = _functions(frame) if n == 40 else {}
        assert {c.name for c in columns if c.determined_by} <= set(equal)


def test_the_reading_says_it_and_files_keep_it(tmp_path) -> None:
    joint = jf.JointTree(random_state=0).fit(_table(500, 0)[["c", "copy_c", "a"]]).joint_
    joint.save(tmp_path / "m.joint")
    again = jf.load(tmp_path / "m.joint")
    assert again.reading == joint.reading
    assert again.reading.notice == "column 'copy_c': a function of column 'c': rows that agree there agree here"


def test_codes_by_name_are_noted() -> None:
    frame = pd.DataFrame({"Zip code": np.arange(200) % 50 + 10_000, "zipped": np.arange(200) % 7})
    notice = jf.JointTree(random_state=0).fit(frame).joint_.reading.notice
    assert "column 'Zip code': whole numbers, which may be codes" in notice and "zipped" not in notice
