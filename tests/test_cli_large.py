"""The command line on tables larger than memory: batches answered one by one, files that appear whole or not at all."""

from __future__ import annotations

import io
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import jointforest as jf
from jointforest import cli, commands
from jointforest.data import batches, reading, table_files
from jointforest.inference import comparison, sampling
from jointforest.models.hidden_tree import posterior

BATCH = 48


def run(*words: object) -> tuple[int, str]:
    """Exit code, and what the command wrote to standard error."""
    err = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setattr(sys, "argv", ["jointforest", *map(str, words)])
        patch.setattr(sys, "stderr", err)
        with pytest.raises(SystemExit) as stop:
            cli.main()
    return int(stop.value.code), err.getvalue()


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BATCH", BATCH)
    monkeypatch.setattr(posterior, "_ROWS", 16)  # products of matrices are the same where the batches are


@pytest.fixture(scope="module", params=["forest", "hidden"])
def joint(request: pytest.FixtureRequest) -> jf.Joint:
    penguins = jf.datasets.load_penguins("pyarrow")
    if request.param == "forest":
        return jf.AdversarialForest(n_estimators=3, leaf="normal", random_state=0).fit(penguins).joint_
    return jf.HiddenTreeForest(n_states=4, max_iter=1, random_state=0).fit(penguins).joint_


@pytest.fixture
def home(joint: jf.Joint, tmp_path: Path) -> Path:
    """A folder with a model, and with the penguins, some cells of each column missing, as one file and as three."""
    joint.save(tmp_path / "m.joint")
    table = holes()
    parquet.write_table(table, tmp_path / "t.parquet", row_group_size=120)
    (tmp_path / "parts").mkdir()
    for k, start in enumerate((0, 96, 288)):
        part = table.slice(start, (96, 192, 56)[k])
        parquet.write_table(part, tmp_path / "parts" / f"{k}.parquet")
    return tmp_path


def holes() -> pa.Table:
    """The penguins without a tenth of their cells."""
    table = jf.datasets.load_penguins("pyarrow")
    rng = np.random.default_rng(3)
    gone = rng.random((table.num_rows, table.num_columns)) < 0.1
    return pa.table(
        {name: pa.compute.if_else(gone[:, j], None, table[name]) for j, name in enumerate(table.column_names)}
    )


def loaded(home: Path) -> jf.Joint:
    return jf.load(home / "m.joint")


@pytest.mark.parametrize("source", ["t.parquet", "parts"])
def test_answers_are_those_of_the_whole_table(home: Path, source: str) -> None:
    model, table, out = home / "m.joint", home / source, home / "out.parquet"
    whole, joint = holes(), loaded(home)
    code, said = run("score", model, table, "-o", out)
    found = joint.log_density(whole)
    assert (code, said) == (0, f"mean log-density {found.mean():.6g} over 344 rows\n")
    assert parquet.read_table(out)["log_density"].to_numpy().tolist() == found.tolist()
    for target in ("species", "body_mass_g"):
        assert run("predict", model, table, "--target", target, "-o", out) == (0, "")
        assert parquet.read_table(out)[target].to_pylist() == joint.predict(whole, target).tolist()
    assert run("predict", model, table, "--target", "sex", "--proba", "-o", out) == (0, "")
    share = np.column_stack([column.to_numpy() for column in parquet.read_table(out).columns])
    assert (share == joint.predict_proba(whole, "sex")).all()
    assert run("impute", model, table, "-o", out) == (0, "")
    assert parquet.read_table(out).equals(joint.impute(whole))
    assert run("impute", model, table, "-o", home / "out.csv") == (0, "")
    table_files.write_table(joint.impute(whole), str(home / "expected.csv"))
    assert (home / "out.csv").read_bytes() == (home / "expected.csv").read_bytes()


@pytest.mark.parametrize("source", ["t.parquet", "parts"])
@pytest.mark.parametrize("block", [96, 344, 1000])
def test_draws_are_those_of_the_whole_table(
    home: Path, monkeypatch: pytest.MonkeyPatch, source: str, block: int
) -> None:
    """However its rows lie in files and batches; of several blocks each is drawn anew."""
    out, whole, joint = home / "out.parquet", holes(), loaded(home)
    first = joint.impute(whole, "sample", random_state=1)
    monkeypatch.setattr(sampling, "DRAWS_AT_ONCE", block)
    expected = joint.impute(whole, "sample", random_state=1)
    assert expected.slice(0, block).equals(first.slice(0, block))
    twice = pa.concat_tables([whole.slice(0, 96), whole.slice(0, 96)])
    drawn = joint.impute(twice, "sample", random_state=1)
    assert not drawn.slice(0, 96).equals(drawn.slice(96))
    words = ("impute", home / "m.joint", home / source, "--method", "sample", "--seed", 1, "-o", out)
    assert run(*words) == (0, "")
    assert parquet.read_table(out).equals(expected)


def test_blocks_of_files_of_several_types() -> None:
    parts = [pa.table({"a": [1, 2, 3]}), pa.table({"a": [0.5]}), pa.table({"a": [4, 5]})]
    found = list(reading.in_blocks(((f"{k}", part) for k, part in enumerate(parts)), 2))
    assert [(file, table["a"].to_pylist()) for file, table in found] == [("0", [1, 2]), ("1", [3, 0.5]), ("2", [4, 5])]
    nothing = list(reading.in_blocks([("0", parts[0].slice(3))], 2))
    assert [table.num_rows for _, table in nothing] == [0]


def test_a_frame_of_pandas_comes_back_as_one(tmp_path: Path) -> None:
    penguins = jf.datasets.load_penguins("pandas")
    joint = jf.JointTree(min_samples_leaf=50).fit(penguins).joint_
    joint.save(tmp_path / "m.joint")
    penguins.to_parquet(tmp_path / "t.parquet")
    assert run("impute", tmp_path / "m.joint", tmp_path / "t.parquet", "-o", tmp_path / "o.parquet") == (0, "")
    import pandas as pd

    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "o.parquet"), joint.impute(penguins))


def test_a_level_never_seen_in_a_late_batch(home: Path) -> None:
    table, out = holes(), home / "out.parquet"
    island = pa.array([*table["island"].to_pylist()[:-1], "Bouvet"])
    mass = pa.array([*table["body_mass_g"].cast(pa.float64()).to_pylist()[:-1], 4000.25])
    table = table.set_column(1, "island", island).set_column(5, "body_mass_g", mass)
    assert table.column_names == jf.datasets.load_penguins("pyarrow").column_names
    parquet.write_table(table, home / "t.parquet")
    code, said = run("impute", home / "m.joint", home / "t.parquet", "-o", out)
    assert code == 0 and said.count("'Bouvet'") == 1
    with pytest.warns(jf.UnseenLevelWarning):
        expected = loaded(home).impute(table)
    assert parquet.read_table(out).to_pylist() == expected.to_pylist()
    assert parquet.read_table(out)["body_mass_g"].type == pa.float64()


def test_warnings_of_later_batches_are_counted(home: Path) -> None:
    table = holes().set_column(1, "island", pa.array(["Bouvet"] * 344))
    parquet.write_table(table, home / "t.parquet")
    code, said = run("score", home / "m.joint", home / "t.parquet", "-o", home / "out.parquet")
    assert code == 0 and said.count("Bouvet") == 1 and "the same of 7 later batches" in said


def test_files_of_other_columns(home: Path) -> None:
    for change, message in (
        (lambda t: t.drop_columns(["sex"]), "1.parquet: there is no column 'sex', which"),
        (lambda t: t.append_column("more", t["sex"]), "1.parquet: column 'more' is not in"),
        (lambda t: t.set_column(6, "sex", pa.array([1.5] * t.num_rows)), "1.parquet: column 'sex' is of type double"),
    ):
        parquet.write_table(change(holes().slice(96, 192)), home / "parts" / "1.parquet")
        (home / "out.csv").write_text("old")
        code, said = run("score", home / "m.joint", home / "parts", "-o", home / "out.csv")
        assert code == 1 and message in said and said.startswith("error: ") and said.count("\n") == 1
        assert (home / "out.csv").read_text() == "old" and not list(home.glob(".*"))


def test_a_file_whose_cells_the_model_cannot_take(home: Path) -> None:
    table = holes().slice(96, 192)
    infinite = pa.array([np.inf] * 192)
    parquet.write_table(table.set_column(2, "bill_length_mm", infinite), home / "parts" / "1.parquet")
    code, said = run("score", home / "m.joint", home / "parts", "-o", home / "out.csv")
    assert code == 1 and "1.parquet: column 'bill_length_mm'" in said and not (home / "out.csv").exists()


@pytest.mark.parametrize("damage", ["truncated", "overwritten"])
def test_a_damaged_table(home: Path, damage: str) -> None:
    raw = (home / "t.parquet").read_bytes()
    at = 3 * len(raw) // 8
    raw = raw[:-500] if damage == "truncated" else raw[:at] + b"\xff" * 200 + raw[at + 200 :]
    (home / "t.parquet").write_bytes(raw)
    (home / "out.parquet").write_text("old")
    code, said = run("score", home / "m.joint", home / "t.parquet", "-o", home / "out.parquet")
    assert code == 1 and "t.parquet is not a" in said and said.startswith("error: ") and said.count("\n") == 1
    assert (home / "out.parquet").read_text() == "old" and not list(home.glob(".*"))


class Full(io.FileIO):
    """A file on a disk with place for some bytes more."""

    left = 1500

    def write(self, data: Any) -> int:
        if len(bytes(data)) > self.left:
            raise OSError(28, "No space left on device")
        self.left -= len(bytes(data))
        return super().write(data)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_full_disk(home: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    out = home / f"out.{ending}"
    out.write_text("old")
    monkeypatch.setattr(table_files, "open", lambda path, mode: Full(path, mode), raising=False)
    code, said = run("score", home / "m.joint", home / "t.parquet", "-o", out)
    assert (code, said) == (1, f"error: {out}: No space left on device\n")
    assert out.read_text() == "old" and not list(home.glob(".*"))


def test_what_is_read_at_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    was = jf.Joint.log_density

    def seen(self: jf.Joint, frame: pa.Table) -> np.ndarray:
        sizes.append(frame.num_rows)
        return was(self, frame)

    monkeypatch.setattr(jf.Joint, "log_density", seen)
    assert run("score", home / "m.joint", home / "t.parquet", "-o", home / "out.parquet")[0] == 0
    assert sum(sizes) == 344 and max(sizes) == BATCH


def test_no_rows(home: Path) -> None:
    parquet.write_table(holes().slice(0, 0), home / "parts" / "0.parquet")
    for name in ("1.parquet", "2.parquet"):
        (home / "parts" / name).unlink()
    assert run("score", home / "m.joint", home / "parts", "-o", home / "out.parquet") == (0, "")
    assert parquet.read_table(home / "out.parquet").num_rows == 0


def each(*frames: pa.Table) -> Iterator[pa.Table]:
    yield from frames


def test_types_widen_from_the_start(tmp_path: Path) -> None:
    parts = pa.table({"a": [1, 2], "b": pa.array(["x", "y"]).dictionary_encode()}), pa.table({"a": [0.5], "b": ["z"]})
    reading.write_batches(lambda: each(*parts, parts[0]), str(tmp_path / "t.parquet"))
    found = parquet.read_table(tmp_path / "t.parquet")
    assert found.to_pydict() == {"a": [1.0, 2.0, 0.5, 1.0, 2.0], "b": ["x", "y", "z", "x", "y"]}


@pytest.mark.parametrize("missing", [(), ("--missing",)])
def test_draws_written_in_batches_are_those_of_one_call(
    home: Path, monkeypatch: pytest.MonkeyPatch, missing: tuple[str, ...]
) -> None:
    monkeypatch.setattr(sampling, "DRAWS_AT_ONCE", 100)
    words = ("sample", home / "m.joint", "-n", 344, "--given", "species = Gentoo", "--seed", 3, *missing)
    assert run(*words, "-o", home / "s.parquet") == (0, "")
    expected = loaded(home).given(species="Gentoo").sample(344, 3, bool(missing))
    assert parquet.read_table(home / "s.parquet").equals(expected)
    assert run(*words, "-o", home / "s.csv") == (0, "")
    assert csv.read_csv(home / "s.csv").num_rows == 344


def test_draws_that_a_comparison_keeps_are_written_in_batches(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for room in (sampling, comparison):
        monkeypatch.setattr(room, "DRAWS_AT_ONCE", 100)
    where = "bill_length_mm > 2.5 * bill_depth_mm, island in {Dream, Biscoe}"
    words = ("sample", home / "m.joint", "-n", 230, "--seed", 3, "--where", where, "-o", home / "s.parquet")
    assert run(*words) == (0, "")
    assert parquet.read_table(home / "s.parquet").equals(loaded(home).sample(230, 3, where=where))
    rare = (*words[:-3], "bill_length_mm > flipper_length_mm + body_mass_g", *words[-2:])
    code, said = run(*rare)
    assert code == 1 and "too rare" in said
    assert parquet.read_table(home / "s.parquet").num_rows == 230


LEARN = ("--learner", "adversarial", "--trees", 2, "--min-leaf", 30, "--seed", 1)


def test_a_folder_is_learned_like_its_files_and_its_rows(tmp_path: Path) -> None:
    table = jf.datasets.load_penguins("pyarrow")
    (tmp_path / "parts").mkdir()
    for k in range(3):
        parquet.write_table(table.slice(115 * k, 115), tmp_path / "parts" / f"{k}.parquet")
    parquet.write_table(table, tmp_path / "t.parquet")
    for k, sources in enumerate(
        (["parts"], ["parts/2.parquet", "parts/0.parquet", "parts/1.parquet"], ["t.parquet", "--out-of-core"])
    ):
        words = (tmp_path / word if "-" not in word else word for word in sources)
        code, said = run("fit", *words, "-o", tmp_path / f"{k}.joint", *LEARN)
        assert code == 0 and "344 rows, 7 columns: 2 trees" in said
    assert (tmp_path / "0.joint").read_bytes() == (tmp_path / "1.joint").read_bytes()
    assert (tmp_path / "0.joint").read_bytes() == (tmp_path / "2.joint").read_bytes()
    with pytest.warns(jf.LostDependenceWarning):
        joint = jf.AdversarialForest(2, min_samples_leaf=30, random_state=1).fit_batches(tmp_path / "t.parquet").joint_
    assert (jf.load(tmp_path / "0.joint").log_density(table) == joint.log_density(table)).all()


def test_many_rows_are_learned_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parquet.write_table(jf.datasets.load_penguins("pyarrow"), tmp_path / "t.parquet")
    asked: list[str] = []
    monkeypatch.setattr(commands, "joint_of_batches", lambda tables, target, learner, *_: asked.append(learner))
    monkeypatch.setattr(commands, "MOST_IN_MEMORY", 343)
    run("fit", tmp_path / "t.parquet", "-o", tmp_path / "m.joint")
    assert asked == ["adversarial"]


def test_csv_files_are_learned_as_one_table(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("zip;x;y\n" + "".join(f"0{k % 3};{k};{k}\n" for k in range(40)))
    (tmp_path / "b.csv").write_text("zip;x;y\n" + "".join(f"0{k % 4};{k},5;-\n" for k in range(40)))
    form = ("--sep", ";", "--decimal", ",", "--na", "-", "--kinds", "zip=categorical")
    code, said = run("fit", tmp_path / "a.csv", tmp_path / "b.csv", "-o", tmp_path / "m.joint", *LEARN, *form)
    assert code == 0 and "80 rows, 3 columns" in said
    assert jf.load(tmp_path / "m.joint").levels("zip") == ("00", "01", "02", "03")
    code, said = run("fit", tmp_path / "a.csv", tmp_path / "b.csv", "-o", tmp_path / "n.joint", *LEARN, "--sep", ";")
    assert code == 1 and "b.csv: column 'x' is of type string, in" in said and not (tmp_path / "n.joint").exists()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("a.parquet", "b.parquet", "--budget", "fast"), 2, "leave out --budget"),
        (("a.parquet", "--out-of-core", "--target", "z"), 1, "--target: there is no column 'z'"),
        (("a.parquet", "-"), 2, "standard input is read once"),
        (("a.parquet", "b.parquet"), 1, "b.parquet: there is no column 'x'"),
        (("a.parquet", "c.parquet"), 1, "c.parquet is not a parquet table"),
        (("a.parquet", "none.parquet"), 1, "none.parquet: No such file"),
        (("empty",), 1, "no file *.parquet in"),
    ],
)
def test_errors_of_fit(tmp_path: Path, words: tuple[str, ...], code: int, message: str) -> None:
    parquet.write_table(pa.table({"x": [1.5, 2.5], "y": ["a", "b"]}), tmp_path / "a.parquet")
    parquet.write_table(pa.table({"z": [1.5, 2.5], "y": ["a", "b"]}), tmp_path / "b.parquet")
    (tmp_path / "c.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:-20])
    (tmp_path / "empty").mkdir()
    paths = (tmp_path / word if word.endswith(("parquet", "empty")) else word for word in words)
    found, said = run("fit", *paths, "-o", tmp_path / "m.joint")
    assert found == code and message in said and "Traceback" not in said and not (tmp_path / "m.joint").exists()


def test_hidden_trees_of_a_folder(home: Path) -> None:
    code, said = run("fit", home / "parts", "-o", home / "h.joint", "--learner", "hidden", "--seed", "1")
    assert code == 0 and "344 rows, 7 columns: 1 hidden tree" in said
    whole = jf.HiddenTreeForest(random_state=1).fit_batches(home / "t.parquet").joint_
    table = parquet.read_table(home / "t.parquet")
    assert np.allclose(jf.load(home / "h.joint").log_density(table), whole.log_density(table), atol=1e-3)


@pytest.mark.parametrize(
    ("target", "kind"), [("species", jf.GenerativeForestClassifier), ("year", jf.GenerativeForestRegressor)]
)
def test_a_target_in_batches(home: Path, target: str, kind: type) -> None:
    table = jf.datasets.load_penguins("pyarrow")
    table = table.append_column("year", pa.array(2007.25 + np.arange(344) % 3))
    (home / "some").mkdir()
    for k in range(2):
        parquet.write_table(table.slice(172 * k, 172), home / "some" / f"{k}.parquet")
    words = ("--target", target, "--trees", 3, "--seed", 1)
    code, said = run("fit", home / "some", "-o", home / "g.joint", *words)
    assert code == 0 and "344 rows, 8 columns: 3 trees" in said
    joint = kind(3, random_state=1).fit_batches(home / "some", target).joint_
    assert (jf.load(home / "g.joint").log_density(table) == joint.log_density(table)).all()
