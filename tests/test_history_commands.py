"""The command line with histories: fit --group, and what the other commands do with the joint."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import jointforest as jf

from .test_cli import run

__all__ = ["run"]


def visits() -> pd.DataFrame:
    """Visits of patients whose names are texts."""
    made = jf.datasets.make_visits(200, random_state=0)
    return made.assign(patient="0" + made["patient"].astype(str), date=made["date"].dt.strftime("%Y-%m-%d"))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with visits, the same with gaps, a joint of histories, and one of single rows."""
    folder = tmp_path_factory.mktemp("histories")
    table = visits()
    table.to_csv(folder / "visits.csv", index=False)
    gaps = table.assign(weight=table["weight"].mask(table.index % 5 == 0), sex=table["sex"].mask(table.index % 3 == 0))
    gaps.to_csv(folder / "gaps.csv", index=False)
    jf.AdversarialForest(n_estimators=2, random_state=0).fit(table[["sex", "weight"]]).joint_.save(
        folder / "rows.joint"
    )
    return folder


@pytest.fixture
def model(run: object, home: Path) -> Path:
    path = home / "v.joint"
    if not path.exists():
        done = run("fit", home / "visits.csv", "--group", "patient", "--order", "date", "--seed", 0, "-o", path)
        assert done.code == 0 and "200 subjects (patient)" in done.err and "in the order of date" in done.err
    return path


def table_of(text: str) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(text), dtype={"patient": str})


def test_the_joint_is_that_of_python(model: Path) -> None:
    expected = jf.fit(
        visits().assign(date=pd.to_datetime(visits()["date"])), group="patient", order="date", random_state=0
    )
    loaded = jf.load(model)
    frame = visits().assign(date=pd.to_datetime(visits()["date"]))
    np.testing.assert_array_equal(loaded.log_density(frame), expected.log_density(frame))
    assert isinstance(loaded.sample(2, 0), pd.DataFrame)


def test_several_files_are_learned_in_batches(run: object, home: Path) -> None:
    table = visits().assign(date=pd.to_datetime(visits()["date"]))
    for k, name in enumerate(("first.parquet", "second.parquet")):  # rows of most subjects are in both
        table.iloc[k::2].to_parquet(home / name)
    words = ("--group", "patient", "--order", "date", "--seed", 0, "-o", home / "parts.joint")
    done = run("fit", home / "first.parquet", home / "second.parquet", *words)
    assert done.code == 0 and "200 subjects (patient)" in done.err
    expected = jf.HistoryForest(random_state=0).fit_batches(table, group="patient", order="date").joint_
    np.testing.assert_allclose(jf.load(home / "parts.joint").log_density(table), expected.log_density(table))
    done = run("fit", home / "visits.csv", "--out-of-core", *words[:-1], home / "csv.joint", "--drop", "sex")
    assert done.code == 0 and jf.load(home / "csv.joint").columns == ("status", "weight", "pressure")


def test_info(run: object, model: Path) -> None:
    lines = run("info", model).out.splitlines()
    assert lines[0].startswith("200 subjects (patient)") and "trees" in lines[1]
    assert any(line.startswith("sex ") and line.endswith("constant within subjects") for line in lines)
    assert '"group": "patient"' in run("info", model, "--json").out


def test_score_writes_a_row_for_each_subject(run: object, home: Path, model: Path) -> None:
    done = run("score", model, home / "visits.csv")
    found = table_of(done.out)
    assert found["patient"].tolist() == visits()["patient"].unique().tolist()
    assert f"mean log-density {found['log_density'].mean():.6g} over 200 subjects" in done.err


def test_sample_draws_subjects(run: object, model: Path) -> None:
    drawn = table_of(run("sample", model, "-n", 7, "--seed", 1).out)
    assert drawn["patient"].nunique() == 7 and drawn.columns.tolist() == visits().columns.tolist()
    assert (pd.to_datetime(drawn["date"]).groupby(drawn["patient"]).diff().dropna() > pd.Timedelta(0)).all()


def test_impute_keeps_known_cells(run: object, home: Path, model: Path) -> None:
    gaps = pd.read_csv(home / "gaps.csv", dtype=str)
    for words in (("--seed", 0), ("--method", "sample", "--draws", 2, "--seed", 0)):
        done = run("impute", model, home / "gaps.csv", *words)
        filled = pd.read_csv(io.StringIO(done.out), dtype=str)
        if "draw" in filled:
            assert filled.pop("draw").value_counts().tolist() == [len(gaps)] * 2
            filled = filled.iloc[: len(gaps)]
        assert not filled.isna().any().any()
        assert ((filled == gaps) | gaps.isna()).all().all()
        known = gaps["sex"].notna() | gaps.groupby("patient")["sex"].transform("first").notna()
        assert (filled["sex"][known] == visits()["sex"][known]).all()


def test_forecast_has_a_row_for_each_subject_and_step(run: object, home: Path, model: Path) -> None:
    found = table_of(run("forecast", model, home / "visits.csv", "--steps", 2, "--level", 0.8, "--seed", 0).out)
    assert (
        found["step"].tolist() == [1, 2] * 200
        and found["patient"].tolist()[::2] == visits()["patient"].unique().tolist()
    )
    assert ((found["weight_low"] <= found["weight"]) & (found["weight"] <= found["weight_high"])).all()
    np.testing.assert_allclose(found[["status=well", "status=ill", "status=severe"]].sum(axis=1), 1.0, atol=1e-5)
    best = found[["status=well", "status=ill", "status=severe"]].idxmax(axis=1).str.removeprefix("status=")
    assert (best == found["status"]).all() and found["date"].str.fullmatch(r"\d{4}-\d\d-\d\d").all()
    assert found["end_probability"].between(0, 1).all()
    last = visits().groupby("patient", sort=False)["date"].last().to_numpy()
    assert (found["date_low"].to_numpy()[::2] > last).all() and (found["date_high"] >= found["date"]).all()
    drawn = table_of(run("forecast", model, home / "visits.csv", "--draws", 3, "--seed", 0).out)
    assert set(drawn["draw"]) <= {1, 2, 3} and drawn.columns.tolist() == ["draw", "step", *visits().columns]


@pytest.mark.parametrize("words", [("query", "E(weight)"), ("predict", "visits.csv", "--target", "weight"),
                                   ("report", "-o", "r.html")])  # fmt: skip
def test_what_is_not_offered_is_refused(run: object, home: Path, model: Path, words: tuple[str, ...]) -> None:
    more = [home / word if word.endswith(".csv") else word for word in words[1:]]
    done = run(words[0], model, *more)
    assert (
        done.code == 1 and "joint of histories, which this command cannot ask; info, explore, sample, score" in done.err
    )


def test_a_trained_model_beside_histories_is_refused(run: object, home: Path, model: Path) -> None:
    done = run("explore", model, "--model", home / "trees.json", "--no-browser")
    assert done.code == 2 and "holds one; trained models predict single rows" in done.err


def test_rows_without_subject_or_time_are_left_out(run: object, home: Path) -> None:
    table = visits()
    table.assign(patient=table["patient"].where(table.index > 1), date=table["date"].where(table.index != 7)).to_csv(
        home / "nobody.csv", index=False
    )
    done = run("fit", home / "nobody.csv", "--group", "patient", "--order", "date", "--seed", 0, "-o", home / "n.joint")
    assert done.code == 0 and f"{len(table) - 3} rows in the order of date" in done.err
    assert (
        "rows are left out: patient is missing there" in done.err and "rows are left out: date is missing" in done.err
    )


@pytest.mark.parametrize(
    ("words", "code", "fault"),
    [
        (("--order", "date"), 2, "--order goes with --group"),
        (("--group", "patient", "--target", "sex"), 2, "leave out --target"),
        (("--group", "patient", "--rules", "all"), 2, "leave out --rules"),
        (("--group", "patient", "--trees", "5"), 2, "leave out --trees"),
        (("--group", "patiens"), 1, "did you mean 'patient'"),
        (("--group", "patient", "--order", "status"), 1, "expected numbers or dates, got 'well'"),
        (("--group", "sex", "--order", "patient"), 1, "order: column 'patient'"),
        (("--group", "date", "--order", "date"), 1, "same column"),
        (("--group", "patient", "--columns", "weigth"), 1, "did you mean 'weight'"),
    ],
)
def test_bad_words_of_fit(run: object, home: Path, words: tuple[str, ...], code: int, fault: str) -> None:
    done = run("fit", home / "visits.csv", "-o", home / "bad.joint", *words)
    assert (done.code, fault in done.err) == (code, True), done.err
    assert not (home / "bad.joint").exists()


@pytest.mark.parametrize(
    ("words", "code", "fault"),
    [
        (("sample", "v.joint", "-n", "2", "--given", "sex = F"), 2, "forecast --draws"),
        (("sample", "v.joint", "-n", "0"), 2, "number of subjects"),
        (("sample", "v.joint", "-n", "2", "--missing"), 2, "as often as at learning"),
        (("forecast", "rows.joint", "visits.csv"), 1, "needs one of histories: fit --group"),
        (("forecast", "v.joint", "visits.csv", "--steps", "100000"), 1, "GB are allowed"),
        (("score", "v.joint", "nodate.csv"), 1, "order: there is no column 'date'"),
        (("score", "v.joint", "folder.d"), 1, "folder.d is a folder: this command takes one file"),
        (("impute", "v.joint", "folder.d"), 1, "folder.d is a folder: this command takes one file"),
        (("impute", "v.joint", "nobody.csv"), 1, "group: column 'patient' is missing in 1 of"),
    ],
)
def test_bad_input_of_answers(
    run: object, home: Path, model: Path, words: tuple[str, ...], code: int, fault: str
) -> None:
    table = visits()
    table.drop(columns="date").to_csv(home / "nodate.csv", index=False)
    table.assign(patient=table["patient"].where(table.index > 0)).to_csv(home / "nobody.csv", index=False)
    (home / "folder.d").mkdir(exist_ok=True)
    done = run(words[0], *[home / word if "." in word else word for word in words[1:]])
    assert (done.code, fault in done.err) == (code, True), done.err


def test_fidelity(run: object, home: Path, model: Path) -> None:
    done = run("fidelity", model, home / "visits.csv", "--holdout", home / "gaps.csv", "--seed", 0)
    assert done.code == 0
    assert all(words in done.out for words in ("200 drawn subjects", "triples", "drawn and held-out subjects"))
    assert run("fidelity", model, home / "visits.csv", "-o", home / "f.csv").code == 2


def test_the_order_of_rows_does_not_matter(run: object, home: Path, model: Path) -> None:
    visits().sample(frac=1.0, random_state=0).to_csv(home / "mixed.csv", index=False)
    mixed = table_of(run("score", model, home / "mixed.csv").out).set_index("patient")["log_density"]
    expected = table_of(run("score", model, home / "visits.csv").out).set_index("patient")["log_density"]
    pd.testing.assert_series_equal(mixed.loc[expected.index], expected)
