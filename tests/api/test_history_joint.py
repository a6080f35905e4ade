"""Joints of histories: frames in and out, files, bad input."""

from __future__ import annotations

import dataclasses
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.models.file import ModelFileError, contents
from jointforest.models.history import history_model
from jointforest.models.history.columns import GAP
from jointforest.models.history.files import history_from_arrays


@cache
def visits() -> pd.DataFrame:
    return jf.datasets.make_visits(200, random_state=0)


@cache
def joint() -> jf.HistoryJoint:
    return jf.fit(visits(), group="patient", order="date", random_state=0)


def test_columns_are_sorted_out() -> None:
    assert joint().constant == ("sex",) and joint().varying == ("status", "weight", "pressure")
    assert joint().info()["subjects"] == 200 and "weight" in joint().info()["changes"]


def test_the_order_of_rows_and_the_library_do_not_matter() -> None:
    pytest.importorskip("polars")
    mixed = visits().sample(frac=1.0, random_state=1)
    by_patient = dict(zip(joint().subjects(mixed), joint().log_density(mixed), strict=True))
    expected = joint().log_density(visits())
    np.testing.assert_allclose([by_patient[k] for k in joint().subjects(visits())], expected)
    polars = jf.datasets.make_visits(200, random_state=0, frame="polars")
    np.testing.assert_allclose(joint().log_density(polars), expected)


def test_threads_and_seeds() -> None:
    other = jf.fit(visits(), group="patient", order="date", random_state=0, n_jobs=1)
    pd.testing.assert_frame_equal(other.sample(20, 3, n_jobs=1), joint().sample(20, 3))
    gaps = visits().assign(weight=visits()["weight"].mask(visits().index % 3 == 0))
    pd.testing.assert_frame_equal(other.impute(gaps, random_state=1, n_jobs=1), joint().impute(gaps, random_state=1))


def test_files(tmp_path: Path) -> None:
    joint().save(tmp_path / "v.joint")
    again = jf.load(tmp_path / "v.joint")
    np.testing.assert_array_equal(again.log_density(visits()), joint().log_density(visits()))
    pd.testing.assert_frame_equal(again.sample(10, 0), joint().sample(10, 0))
    data = bytearray((tmp_path / "v.joint").read_bytes())
    data[-3] ^= 1
    (tmp_path / "w.joint").write_bytes(data)
    with pytest.raises(ModelFileError, match="checksum"):
        jf.load(tmp_path / "w.joint")


@pytest.mark.parametrize(
    ("name", "at", "value"),
    [
        ("child", 0, 10**6),
        ("child", -1, -(10**9)),
        ("root", 0, 1),
        ("table", 0, -1.0),
        ("table", 0, np.nan),
        ("tree_class", 0, 3),
        ("tree_start", 1, 0),
        ("lengths", 0, -1),
        ("0.repeat", 0, 2.0),
        ("line_share", 0, 2.0),
        ("expect.root", -1, 10**6),
        ("expect.child", 0, 10**6),
        ("expect.child", -1, -100),
        ("expect.column", 0, 50),
    ],
)
def test_damaged_arrays_are_refused(name: str, at: int, value: float) -> None:
    about, arrays = contents(joint().model)
    arrays = arrays | {name: arrays[name].copy()}
    arrays[name][at] = value
    with pytest.raises(ValueError, match=r"\w"):
        history_from_arrays(about["schema"], about["histories"], arrays)


def test_a_change_s_density_is_a_density() -> None:
    rows = visits()[visits()["patient"] == 1].iloc[:2].assign(pressure=np.nan, status=[None, None])
    grid = np.arange(0.0, 200.0, 0.1).round(1)
    many = pd.concat([rows.assign(patient=k, weight=[rows["weight"].iloc[0], x]) for k, x in enumerate(grid)])
    unknown = rows.assign(weight=[rows["weight"].iloc[0], np.nan])
    total = np.log(0.1 * np.exp(joint().log_density(many, ended=False)).sum())
    assert total == pytest.approx(joint().log_density(unknown, ended=False)[0], abs=0.02)


def test_a_table_of_constant_columns_is_refused() -> None:
    with pytest.raises(ValueError, match="every column is constant within subjects"):
        jf.fit(visits()[["patient", "sex"]], group="patient")


def test_changes_of_whole_numbers_are_predicted_in_small_tables() -> None:
    rng = np.random.default_rng(0)
    walks = rng.integers(0, 40, (120, 1)) + rng.choice([-1, 0, 1], (120, 12)).cumsum(axis=1)
    frame = pd.DataFrame({"id": np.repeat(np.arange(120), 12), "x": walks.ravel()})
    for smoothing, changes in ((1.0, ["x"]), (0.5, [])):
        joint = jf.HistoryForest(smoothing=smoothing, random_state=0).fit(frame, group="id").joint_
        assert joint.info()["changes"] == changes
    gaps = frame.assign(x=frame["x"].where(frame.index % 12 != 5).astype(float))
    filled = jf.fit(frame, group="id", random_state=0).impute(gaps, random_state=0)
    # between two neighbours of a walk with steps of variance 2/3, their mean has the variance 1/3
    assert np.sqrt(np.mean((filled["x"] - frame["x"])[5::12] ** 2)) < 0.9


def test_probabilities_of_events_in_rows_to_come() -> None:
    found = joint().forecast(visits()[visits()["patient"] < 40], 2, n_draws=200, random_state=0)
    draws = found.sample(200)
    by_row = [draws["patient"], draws["step"]]
    level = list(joint().schema["status"].levels).index("ill")
    np.testing.assert_allclose(found.probability("status = 'ill'"), found.proba("status")[..., level], atol=1e-6)
    np.testing.assert_allclose(
        found.probability({"status": ["ill", "well", "severe"]}), 1.0 - found.missing_probability("status"), atol=1e-6
    )
    np.testing.assert_allclose(
        found.probability("pressure > 130") + found.probability("pressure <= 130"), 1.0, atol=1e-6
    )
    for event, drawn in (
        ("status = 'ill' and pressure > 130", (draws["status"] == "ill") & (draws["pressure"] > 130)),
        ("weight <= 70", draws["weight"] <= 70),
        ("status != 'well', weight > 70", (draws["status"] != "well") & (draws["weight"] > 70)),
    ):
        share = drawn.groupby(by_row).mean().unstack().to_numpy()
        np.testing.assert_allclose(found.probability(event), share, atol=1e-9)
    share = (draws["pressure"] > 130).groupby(by_row).mean().unstack().to_numpy()
    assert np.abs(found.probability("pressure > 130") - share).mean() < 0.04
    with pytest.raises(ValueError, match="missing_probability"):
        found.probability("status is missing")


def test_verbs_of_single_rows_say_what_to_ask_instead() -> None:
    others = {name for name in dir(jf.Joint) if not name.startswith("_")} - set(dir(joint()))
    assert {"query", "given", "report"} <= others
    for name in others:
        assert not hasattr(joint(), name)
        with pytest.raises(AttributeError, match=f"a joint of histories has no '{name}': "):
            getattr(joint(), name)
    with pytest.raises(AttributeError, match=r"query.*joint.forecast\(frame\).probability"):
        joint().query  # noqa: B018
    with pytest.raises(AttributeError, match="object has no attribute 'nothing'"):
        joint().nothing  # noqa: B018
    with pytest.raises(TypeError, match="joints of histories cannot be mixed"):
        jf.mix([joint(), joint()])


def test_draws_of_a_forecast_come_in_the_library_of_the_table() -> None:
    polars = pytest.importorskip("polars")
    frame = jf.datasets.make_visits(60, random_state=0, frame="polars")
    found = jf.fit(frame, group="patient", order="date", random_state=0).forecast(frame, random_state=0).sample(2)
    assert isinstance(found, polars.DataFrame) and found["draw"].max() == 2


def test_numbers_lie_in_their_intervals() -> None:
    test = jf.datasets.make_visits(300, random_state=1)
    place, last = test.groupby("patient").cumcount(), test.groupby("patient")["date"].transform("size") - 1
    found = joint().forecast(test[place < last], random_state=0)
    for name in ("weight", "pressure"):
        truth = test[place == last][name].to_numpy()
        low, high = found.interval(name, 0.9)[:, 0].T
        assert 0.82 < ((low <= truth) & (truth <= high)).mean() < 0.97


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda f: f.assign(date=f["date"].iloc[0]), "rows of each subject have one .date., which does not order them"),
        (lambda f: f.drop(columns="patient"), "group: there is no column 'patient'"),
        (lambda f: f.assign(patient=f["patient"].where(f.index > 0)), "group: column 'patient' is missing in 1 of"),
        (lambda f: f.assign(date=f["date"].where(f.index > 0)), "order: column 'date' is missing in 1 of"),
        (lambda f: f.iloc[:0], "no rows"),
        (lambda f: f[["patient", "date"]], "no column beside"),
        (lambda f: f.groupby("patient").head(1), "every subject has a single row"),
        (lambda f: f.assign(date=[f"d{k}" for k in range(len(f))]), "order: column 'date': expected numbers or dates"),
    ],
)
def test_bad_tables_are_refused(change, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        jf.fit(change(visits().copy()), group="patient", order="date")


def test_thousands_of_rows_and_single_ones() -> None:
    rng = np.random.default_rng(0)
    value = np.cumsum(rng.normal(size=3203)).round(2)
    subject = np.repeat([1, 2, 3, 4, 5], [3000, 200, 1, 1, 1])
    frame = pd.DataFrame({"who": subject, "t": np.arange(3203), "x": value})
    other = jf.fit(frame, group="who", order="t", random_state=0)
    gaps = frame.assign(x=frame["x"].mask(frame.index % 100 == 50))
    assert np.isfinite(other.log_density(gaps)).all()
    filled = other.impute(gaps, random_state=0)
    assert np.abs(filled["x"] - value).max() < 6.0
    assert other.forecast(frame, 5, random_state=0).mean("x").shape == (5, 5)
    assert other.sample(2, 0)["who"].nunique() == 2


def test_cells_that_are_never_missing_are_never_drawn_missing() -> None:
    trees, columns = joint().model.conditionals, joint().model.columns
    first_row = len(columns.head) + [v.source for v in columns.rows].index(GAP)
    for number in range(len(trees.target_codes)):
        node = int(trees.root[trees.tree_start[number]])
        while trees.child[node] >= 0:
            node = int(trees.child[node])
        of_missing = trees.table[-1 - trees.child[node]]
        assert of_missing > 0.99 if number == first_row else of_missing == 0.0


def test_forecasts_name_times_and_refuse_what_is_too_large() -> None:
    found = joint().forecast(visits(), 2, random_state=0)
    assert found.columns == ("date", "status", "weight", "pressure")
    last = visits().groupby("patient")["date"].max().to_numpy()
    assert (found.mean("date")[:, 0] > last).all() and (found.mean("date")[:, 1] > found.mean("date")[:, 0]).all()
    low, high = found.interval("date")[:, 0].T
    assert (low > last).all() and (low <= high).all()
    with pytest.raises(ValueError, match="holds the times of rows"):
        found.proba("date")
    with pytest.raises(ValueError, match=r"needs .* GB, and 2 GB are allowed; ask about \d+ subjects"):
        joint().forecast(visits(), 10_000)


def test_answers_do_not_depend_on_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    gaps = visits().assign(weight=visits()["weight"].mask(visits().index % 3 == 0))
    gaps["status"] = gaps["status"].mask(visits().index % 4 == 0)
    expected = [joint().impute(gaps, "sample", random_state=1), joint().impute(gaps, random_state=1)]
    means = joint().forecast(gaps, 2, random_state=1).mean("weight")
    monkeypatch.setattr(history_model, "CHUNK_BYTES", 10_000)
    found = [joint().impute(gaps, "sample", random_state=1), joint().impute(gaps, random_state=1)]
    for one, other in zip(found, expected, strict=True):
        pd.testing.assert_frame_equal(one, other)
    np.testing.assert_array_equal(joint().forecast(gaps, 2, random_state=1).mean("weight"), means)


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="objective does not go with group"):
        jf.fit(visits(), group="patient", objective="likelihood")
    with pytest.raises(ValueError, match="goes with group"):
        jf.fit(visits(), order="date")
    with pytest.raises(ValueError, match="do not go with group"):
        jf.fit(visits(), group="patient", budget="best")
    with pytest.raises(ValueError, match="steps"):
        joint().forecast(visits(), 0)
    with pytest.raises(ValueError, match="holds numbers"):
        joint().forecast(visits().head(5)).proba("weight")


def test_absent_columns_are_unknown() -> None:
    assert np.isfinite(joint().log_density(visits().head(40).drop(columns="weight"))).all()


def test_columns_may_be_numbers() -> None:
    numbered = visits().set_axis(range(visits().shape[1]), axis=1)
    other = jf.fit(numbered, group=0, order=1, random_state=0)
    np.testing.assert_array_equal(other.log_density(numbered), joint().log_density(visits()))
    assert other.impute(numbered, random_state=0).columns.tolist() == numbered.columns.tolist()
    assert other.sample(3, 0).columns.tolist() == numbered.columns.tolist()


def test_columns_with_the_same_name_are_numbered() -> None:
    twice = visits().assign(again=visits()["status"]).rename(columns={"again": "status"})
    with pytest.warns(UserWarning, match="numbered: 'status' is now 'status_2'"):
        other = jf.fit(twice, group="patient", order="date", random_state=0)
    with pytest.warns(UserWarning, match="numbered"):
        filled = other.impute(twice, random_state=0)
    assert filled.columns.tolist() == [*visits().columns, "status_2"]


def test_columns_called_like_those_of_a_forecast_are_kept() -> None:
    steps = visits().rename(columns={"status": "step"})
    drawn = jf.fit(steps, group="patient", order="date", random_state=0).forecast(steps, 2, random_state=0).sample(3)
    assert drawn.columns.tolist()[:3] == ["draw", "step_2", "patient"]
    assert set(drawn["step"]) <= {"well", "ill", "severe"} and set(drawn["step_2"]) == {1, 2}


def test_first_values_of_changes_are_drawn_as_learned() -> None:
    rng = np.random.default_rng(0)
    first = rng.choice([0, 50, 100, 150, 200], 150, p=[0.4, 0.1, 0.2, 0.2, 0.1])
    walks = first[:, None] + np.hstack([np.zeros((150, 1), int), rng.choice([-5, 0, 5], (150, 7))]).cumsum(axis=1)
    frame = pd.DataFrame({"id": np.repeat(np.arange(150), 8), "x": walks.ravel()})
    joint = jf.fit(frame, group="id", random_state=0)
    assert joint.info()["changes"] == ["x"]
    drawn = joint.sample(400, random_state=0)
    assert (drawn["x"] % 5 == 0).mean() > 0.95
    begin = drawn.groupby("id")["x"].first()
    assert (begin == 0).mean() == pytest.approx((first == 0).mean(), abs=0.1)


def test_rows_of_one_time_stay_in_the_order_of_the_table() -> None:
    rng = np.random.default_rng(0)
    subject = np.repeat(np.arange(200), 6)
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.choice([0, 0, 1, 3], (200, 6)).cumsum(axis=1).ravel(), "D")
    frame = pd.DataFrame({"id": subject, "day": day, "x": np.tile(np.arange(6.0), 200) + rng.normal(0, 0.1, 1200)})
    ties = (frame.groupby("id")["day"].diff() == pd.Timedelta(0)).sum()
    with pytest.warns(UserWarning, match=f"order: {ties} rows have the 'day' of the row before, such as of subject"):
        joint = jf.fit(frame, group="id", order="day", random_state=0)
    drawn = joint.sample(500, random_state=0)
    gaps = drawn.groupby("id")["day"].diff().dropna()
    assert (gaps == pd.Timedelta(0)).mean() == pytest.approx(ties / 1000, abs=0.05)
    assert drawn.groupby("id")["day"].is_monotonic_increasing.all()
    assert drawn.groupby("id")["x"].diff().mean() == pytest.approx(1.0, abs=0.05)
    # a table whose rows stand in another order has the same histories, if rows of one time keep theirs
    other = frame.sort_values("day", kind="stable")
    assert np.sort(joint.log_density(other)) == pytest.approx(np.sort(joint.log_density(frame)), abs=1e-12)
    assert joint.forecast(frame, 2, random_state=0).mean("day").shape == (200, 2)
    gaps = frame.assign(x=frame["x"].mask(frame.index % 6 == 3))
    assert np.abs(joint.impute(gaps, random_state=0)["x"] - frame["x"]).max() < 1.0


def test_lengths_are_drawn_from_all_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = joint().sample(300, 0)
    monkeypatch.setattr(history_model, "MANY_LENGTHS", 4)  # hypotheses about the length are then few
    again = jf.HistoryJoint(dataclasses.replace(joint().model))
    assert len(again.model._lengths[0]) < drawn.groupby("patient").size().nunique()
    pd.testing.assert_frame_equal(again.sample(300, 0), drawn)


def test_times_of_forecasts_rise() -> None:
    table = visits().assign(date=lambda t: t["date"] + pd.to_timedelta(t.index % 3, "D"))
    found = jf.fit(table, group="patient", order="date", random_state=0).forecast(table, steps=4).sample(20)
    gap = found.groupby(["patient", "draw"])["date"].diff().dropna()
    assert (gap > pd.Timedelta(0)).all()
