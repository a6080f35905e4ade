"""`compare_tables`: changes that were planted, information by counting, false alarms, and odd tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import jointforest as jf
from tests.drift.tables import plans
from tests.oracle import drift as oracle


def test_a_change_of_a_marginal_is_found_and_counted() -> None:
    old, new = plans(1_000, 0), plans(800, 1, free=0.45)
    found = jf.compare_tables(old, new, random_state=0)
    assert found.p_value <= 0.001
    change = found.changes[0]
    assert change.columns == ("plan",)
    shares = [f"{100 * (f.plan == 'free').mean():.1f}% ({(f.plan == 'free').sum()} of {len(f):,})" for f in (old, new)]
    assert change.sentence == f"share of plan = free: {shares[0]} -> {shares[1]}"
    assert change.adjusted == found.p_value
    # region follows plan as before, so that its change is explained, and the pair has not changed
    explained_by = {c.columns: c.explained_by for c in found.changes}
    assert explained_by[("region",)] == ("plan",)
    assert ("plan", "region") not in explained_by


def test_information_is_that_of_counted_rows() -> None:
    old, new = plans(1_000, 0)[["plan", "region"]], plans(800, 1, free=0.45)[["plan", "region"]]
    new.loc[:200, "region"] = "east"
    new.loc[new.index > 700, "region"] = np.nan
    new.loc[300:600, "region"] = np.random.default_rng(0).permutation(new.loc[300:600, "region"])
    found = {c.columns: c for c in jf.compare_tables(old, new, level=1.0, random_state=0).changes}
    both, n = pd.concat([old, new]).astype(object).fillna("missing"), 1_800
    is_new = [False] * 1_000 + [True] * 800
    for name in ("plan", "region"):
        kinds = both[name].nunique()
        expected = oracle.information(both[name].tolist(), is_new) - (kinds - 1) / (2 * n)
        assert found[(name,)].information == pytest.approx(expected, abs=1e-9)
    expected = oracle.beyond(both["plan"].tolist(), both["region"].tolist(), is_new)
    assert expected > 0.01
    # rows of levels that one table lacks have no freedom beyond the single columns
    of_both = both[both["region"].isin(old["region"])]
    freedom = len(of_both.drop_duplicates()) - (of_both["plan"].nunique() + of_both["region"].nunique() - 1)
    assert found["plan", "region"].information == pytest.approx(expected - freedom / (2 * n), abs=5e-4)


def test_a_change_of_a_pair_alone_is_found() -> None:
    old, new = plans(1_500, 0), plans(1_500, 1)
    new["size"] = np.random.default_rng(2).permutation(new["size"])
    found = jf.compare_tables(old, new, random_state=0)
    assert found.p_value <= 0.01
    assert found.changes[0].columns == ("hours", "size")
    for frame, text in ((old, found.changes[0].sentence.split(": ")[1].split(" ")[0]),
                        (new, found.changes[0].sentence.split("-> ")[1].split(" ")[0])):  # fmt: skip
        assert float(text.replace("−", "-")) == pytest.approx(
            frame["hours"].corr(frame["size"], "spearman"), abs=0.0051
        )
    assert not any(len(c.columns) == 1 for c in found.changes)


def test_a_change_of_one_subgroup_is_found_and_measured() -> None:
    old, new = plans(2_000, 0), plans(2_000, 1)
    inside = new.plan == "pro"
    new.loc[inside, "hours"] += 4
    found = jf.compare_tables(old, new, random_state=0)
    change = found.changes[0]
    assert change.columns == ("plan", "hours")
    means = [f[f.plan == "pro"]["hours"].mean() for f in (old, new)]
    numbers = change.sentence.removeprefix("mean of hours where plan = pro: ").split(" (")[0].split(" -> ")
    assert [float(text) for text in numbers] == pytest.approx(means, abs=0.06)
    assert change.regions[0].startswith("share of plan = pro and hours from")


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("change", ["shift", "spread"])
@pytest.mark.parametrize("order", [["g", "x"], ["x", "g"]])
def test_the_group_that_is_named_is_the_one_that_changed(share: float, change: str, order: list[str]) -> None:
    """Beside the sum of both changes, the rows of the other group deviate as much."""
    for seed in range(4):
        random = np.random.default_rng(seed)
        old, new = (
            pd.DataFrame({"g": random.choice(["a", "b"], 600, p=[1 - share, share]), "x": random.normal(size=600)})
            for _ in range(2)
        )
        inside = new["g"] == "b"
        new["x"] = new["x"].where(~inside, new["x"] + 1.5 if change == "shift" else 3 * new["x"])
        found = jf.compare_tables(old[order], new[order], random_state=0).changes
        (pair,) = [c for c in found if len(c.columns) == 2]
        assert " where g = b: " in pair.sentence
        assert "g = b" in pair.regions[0]


def test_a_change_that_few_bins_hide_is_not_explained_by_another_one() -> None:
    old, new = plans(1_500, 0), plans(1_500, 1, free=0.6)
    codes = np.concatenate([np.repeat(np.arange(12), 100), np.repeat(np.arange(12, 42), 10)])
    for k, frame in enumerate((old, new)):
        code = np.random.default_rng(k).permutation(codes)
        code[: 60 * k] = 41  # still rarer than twelve others
        frame["code"] = [f"c{one}" for one in code]
    found = {c.columns: c for c in jf.compare_tables(old, new, random_state=0).changes}
    assert found[("code",)].explained_by == ()
    assert found[("code",)].sentence.startswith("share of code = c41: ")
    assert found[("region",)].explained_by == ("plan",)


def test_a_change_that_tells_most_new_rows_explains_no_independent_one() -> None:
    """Where cells have new rows only, no column adds anything: also one that changed for another reason."""
    explained = []
    for seed in range(8):
        random = np.random.default_rng(seed)
        old, new = (pd.DataFrame({"day": random.integers(0, 90, 800)}) for _ in range(2))
        for frame in (old, new):
            frame["end"] = frame["day"] + random.integers(0, 3, 800)
            frame["amount"] = random.lognormal(size=800)
            frame["use"] = np.where(frame["day"] > 45, 2.0, 0.0) + random.normal(size=800)
        new["end"] = random.permutation(new["end"])
        new["amount"] *= 1.5
        explained += [
            c.explained_by for c in jf.compare_tables(old, new, random_state=0).changes if "amount" in c.columns
        ]
    assert len(explained) >= 8 and not any(explained)


def rows_within(frame: pd.DataFrame, text: str) -> np.ndarray:
    """The rows of which a text such as "x from 1 to 2 and y = 3" says that they are meant."""
    inside = np.ones(len(frame), bool)
    for part in text.split(" and "):
        name, _, ends = part.replace(" = ", " from ").partition(" from ")
        low, _, high = ends.replace("−", "-").replace(",", "").partition(" to ")
        read = {"M": pd.Timestamp, "m": pd.Timedelta}.get(frame[name].dtype.kind, float)
        inside &= frame[name].between(read(low), read(high or low)).to_numpy()
    return inside


@pytest.mark.parametrize("name", ["rounded", "whole", "any", "small", "large", "day", "moment", "span", "zeros"])
def test_intervals_in_sentences_hold_the_rows_that_are_counted(name: str) -> None:
    n_regions = 0
    for seed in range(5):
        random = np.random.default_rng(seed)
        x = random.lognormal(3.0, 0.6, (2, 700))
        moment = pd.Timestamp("2024-01-01")
        cells = {
            "rounded": x.round(2), "whole": x.round(), "any": x, "small": -x * 1e-5, "large": x * 12_345.678,
            "day": moment + pd.to_timedelta(x.round().ravel(), unit="D").to_numpy().reshape(x.shape),
            "moment": moment + pd.to_timedelta((x * 9_000).round().ravel(), unit="s").to_numpy().reshape(x.shape),
            "span": pd.to_timedelta((x * 900).round().ravel(), unit="s").to_numpy().reshape(x.shape),
            "zeros": np.where(random.random(x.shape) < 0.5, 0.0, (x - 20.0).round(1)),
        }[name]  # fmt: skip
        old, new = (pd.DataFrame({name: of, "other": (y + random.normal(0, 2, 700)).round(1)})
                    for of, y in zip(np.asarray(cells), x, strict=True))  # fmt: skip
        new["other"] = random.permutation(new["other"])
        for change in jf.compare_tables(old, new, random_state=0).changes:
            for region in change.regions:
                where, _, shares = region.removeprefix("share of ").partition(": ")
                counts = [int(text.split(" of ")[0]) for text in shares.split("(")[1:]]
                assert counts == [int(rows_within(frame, where).sum()) for frame in (old, new)], region
                n_regions += 1
    assert n_regions >= 10


def test_missing_cells_and_new_levels_are_changes() -> None:
    old, new = plans(600, 0), plans(600, 1)
    new.loc[:80, "hours"] = np.nan
    new.loc[100:112, "region"] = "moon"
    sentences = [c.sentence for c in jf.compare_tables(old, new, random_state=0).changes]
    assert "share of missing cells of hours: 0.0% (0 of 600) -> 13.5% (81 of 600)" in sentences
    assert "share of region = moon: 0.0% (0 of 600) -> 2.2% (13 of 600)" in sentences


def test_means_of_dates_are_dates() -> None:
    old, new = plans(300, 0), plans(300, 1)
    new["day"] += pd.Timedelta("20D")
    change = jf.compare_tables(old, new, random_state=0).changes[0]
    days = [frame["day"].mean().round("D").date().isoformat() for frame in (old, new)]
    assert change.sentence == f"mean of day: {days[0]} -> {days[1]} (300 -> 300 cells)"


@pytest.mark.parametrize(("rows", "others"), [(50, 50), (240, 60)])
def test_false_alarms_are_as_rare_as_they_should_be(rows: int, others: int) -> None:
    frames = [plans(rows + others, k)[["plan", "region", "hours", "size"]] for k in range(60)]
    found = [jf.compare_tables(frame[:rows], frame[rows:], random_state=0) for frame in frames]
    alarms = sum(one.p_value <= 0.05 for one in found)
    assert alarms <= 9  # 3 expected; more than 9 have a probability of 0.1 %
    assert sum(bool(one.changes) for one in found) <= 9
    assert np.mean([one.p_value for one in found]) == pytest.approx(0.5, abs=0.12)


def test_permutations_of_groups_keep_the_level() -> None:
    frames = [plans(2_600, k)[["plan", "hours"]] for k in range(40)]
    found = [jf.compare_tables(a, b, random_state=0) for a, b in zip(frames[::2], frames[1::2], strict=True)]
    assert sum(one.p_value <= 0.05 for one in found) <= 5
    assert min(one.p_value for one in found) > 0.001


def test_the_result_does_not_depend_on_threads_or_the_library() -> None:
    old, new = plans(200, 0), plans(300, 1, free=0.5)
    found = [jf.compare_tables(old, new, random_state=3, n_jobs=n) for n in (1, 2)]
    assert found[0].changes == found[1].changes and found[0].p_value == found[1].p_value
    for convert, kind in ((pl.from_pandas, pl.DataFrame), (pa.Table.from_pandas, pa.Table)):
        other = jf.compare_tables(convert(old), convert(new), random_state=3)
        assert other.changes == found[0].changes and other.p_value == found[0].p_value
        assert isinstance(other.findings, kind)
    frame = found[0].findings
    assert frame["column"].tolist() == [c.columns[0] for c in found[0].changes]
    assert frame["change"].tolist() == [c.sentence for c in found[0].changes]


def test_columns_that_cannot_be_compared_are_named() -> None:
    old, new = plans(120, 0), plans(100, 1)
    old["id"], new["id"] = [f"c{k:03}" for k in range(120)], [f"c{k:03}" for k in range(30, 130)]
    old["empty"] = new["empty"] = np.nan
    old["gone"], new["extra"] = 1, 2
    old["code"], new["code"] = ["a", "b"] * 60, [1, 2] * 50
    found = jf.compare_tables(old, new, random_state=0)
    assert set(found.left_out) == {"id", "empty", "gone", "extra", "code"}
    assert found.left_out["code"] == "holds text such as 'a' in the old table, and numbers in the new one"
    assert found.left_out["gone"] == "is not in the new table"
    assert "'empty' is not compared: it has no known cell" in repr(found)


def test_dates_spans_and_lists_that_do_not_go_together_are_left_out() -> None:
    old, new = plans(120, 0), plans(100, 1)
    old["day"] = old["day"].dt.tz_localize("Europe/Vienna")
    old["size"] = pd.to_timedelta(old["size"], unit="h")
    new["parts"], old["parts"] = [[1, 2]] * 100, 1.0
    found = jf.compare_tables(old, new, random_state=0)
    assert found.left_out == {
        "day": "holds dates with a time zone in the old table, and dates without a time zone in the new one",
        "size": "holds time spans in the old table, and numbers in the new one",
        "parts": "holds values of a type that is not supported",
    }
    zones = [old.assign(day=old["day"].dt.tz_convert(zone))[["day", "plan"]] for zone in ("UTC", "Asia/Tokyo")]
    assert jf.compare_tables(*zones, random_state=0).p_value == 1.0  # the same moments


def ranges(rows: int) -> dict[str, Any]:
    """Columns with cells that are ranges, of all types that hold them, and one without."""
    x = np.arange(rows, dtype=float)
    some, texts = x.astype(object), np.array([f"{k:.0f}" for k in x + 10], object)
    some[:9], texts[:20] = [jf.between(1, 3)] * 9, "<5"
    return {"type": pd.arrays.IntervalArray.from_arrays(x, x + 2, "both"), "some": some, "texts": texts, "plain": x}


@pytest.mark.parametrize("in_old", ["type", "some", "texts", "plain"])
@pytest.mark.parametrize("in_new", ["type", "some", "texts", "plain"])
def test_columns_with_ranges_are_left_out(in_old: str, in_new: str) -> None:
    old, new = (plans(n, n)[["plan", "hours"]] for n in (120, 100))
    old["size"], new["size"] = ranges(120)[in_old], ranges(100)[in_new]
    found = jf.compare_tables(old, new, random_state=0)
    expected = {"has cells that are ranges"} if (in_old, in_new) != ("plain", "plain") else set()
    if {in_old, in_new} in ({"texts", "some"}, {"texts", "plain"}):
        held = ("text such as '<5'", "numbers") if in_old == "texts" else ("numbers", "text such as '<5'")
        expected = {"holds {} in the old table, and {} in the new one".format(*held)}
    assert set(found.left_out.values()) == expected
    assert len(found.row_scores(random_state=0)) == 100


def test_tables_of_ranges_alone_are_refused() -> None:
    frame = pd.DataFrame({"size": ranges(120)["texts"]})
    with pytest.raises(ValueError, match="no column can be compared: 'size' has cells that are ranges"):
        jf.compare_tables(frame, frame)
    with pytest.raises(ValueError, match="no column can be monitored: 'size' has cells that are ranges"):
        jf.Monitor(frame)


def test_the_first_text_that_is_no_number_is_named() -> None:
    old, new = plans(120, 0), plans(100, 1)
    new["size"] = ["12.5", "12", "oops", "13"] * 25
    found = jf.compare_tables(old, new, random_state=0)
    assert found.left_out == {"size": "holds numbers in the old table, and text such as 'oops' in the new one"}


def test_a_column_that_became_known_is_a_change() -> None:
    old, new = plans(60, 0), plans(60, 1)
    old["size"] = np.nan
    assert jf.compare_tables(old, new, random_state=0).changes[0].columns == ("size",)


def test_one_column_and_arrays_are_compared() -> None:
    random = np.random.default_rng(0)
    old, new = random.normal(size=(80, 1)), random.normal(1.0, size=(80, 1))
    found = jf.compare_tables(old, new, random_state=0)
    assert found.changes[0].columns == ("x0",)
    assert found.findings.shape == (1, 8)
    assert np.asarray(found.row_scores(random_state=0)).shape == (80, 3)


def test_tables_without_rows_or_columns_in_common_are_refused() -> None:
    frame = plans(60, 0)
    with pytest.raises(ValueError, match="the new table has no rows"):
        jf.compare_tables(frame, frame[:0])
    with pytest.raises(ValueError, match="no column can be compared: 'plan' is not in the new table"):
        jf.compare_tables(frame[["plan"]], frame[["hours"]])
    with pytest.raises(ValueError, match="no column can be compared: 'id' names the rows"):
        jf.compare_tables(*(pd.DataFrame({"id": [f"c{k:03}" for k in range(200)]}),) * 2)
    with pytest.raises(ValueError, match="level"):
        jf.compare_tables(frame, frame, level=2.0)


def test_rows_have_no_scores_if_every_column_separates_the_tables() -> None:
    old, new = plans(100, 0)[["day"]], plans(100, 1)[["day"]] + pd.Timedelta("900D")
    with pytest.raises(ValueError, match="no column is left to score rows by: each of 'day' has other values"):
        jf.compare_tables(old, new, random_state=0).row_scores()


def test_rows_are_scored_by_the_old_table_without_its_dates() -> None:
    old, new = plans(400, 0), plans(50, 1)
    new["day"] += pd.Timedelta("100D")
    new.loc[0, "hours"] = 200.0
    found = jf.compare_tables(old, new, random_state=0)
    scores = found.row_scores(random_state=0)
    assert scores["row"].tolist() == list(range(50))
    assert scores["percentile"].argmin() == 0 and scores["percentile"].median() > 20
    joint = jf.HiddenTreeForest(n_states=4, random_state=0).fit(old.drop(columns="day")).joint_
    assert len(found.row_scores()) == len(found.row_scores(random_state=np.random.default_rng(0))) == 50
    by_joint = found.row_scores(joint)
    assert by_joint["log_density"].argmin() == 0
