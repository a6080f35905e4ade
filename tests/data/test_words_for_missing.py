"""Words such as None and NA in columns of text: levels or missing cells, said aloud, and the same in later files."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.cli import app
from jointforest.data.csv_files import CsvForm
from jointforest.data.infer_schema import infer_schema
from jointforest.data.reading import reading_of
from jointforest.data.table_files import find_form, read_table, read_with_texts

N = 400
RNG = np.random.default_rng(0)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    from click.testing import CliRunner

    monkeypatch.chdir(tmp_path)

    def call(*words: object) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            done = CliRunner().invoke(app, list(map(str, words)))
        assert done.exit_code == 0, done.output
        return done

    return call


def some(share: float, word: str, others: list[str]) -> list[str]:
    is_word = np.arange(N) < round(share * N)
    return np.where(RNG.permutation(is_word), word, RNG.choice(others, N)).tolist()


def read_column(tmp_path: Path, cells: list[str], **form: Any) -> tuple[list[Any], list[str]]:
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["c,x", *(f"{cell},{k}" for k, cell in enumerate(cells)), ""]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table = read_table(str(path), csv=find_form(str(path), CsvForm(separator="", **form)))
    return table["c"].to_pylist(), [str(one.message).removeprefix(f"{path}: ") for one in caught]


@pytest.mark.parametrize(
    ("share", "word", "others", "is_level", "is_said"),
    [
        (0.89, "None", ["Minor", "Medium", "Severe"], True, True),
        (0.02, "None", ["Minor", "Medium", "Severe"], True, True),
        (0.15, "NA", ["AF", "AS", "EU", "OC", "SA"], True, True),
        (0.03, "NA", ["Ex", "Gd", "TA", "Fa"], True, True),
        (0.94, "NA", ["Grvl", "Pave"], True, True),
        (0.60, "n/a", ["rent", "own"], True, True),
        (0.30, "NA", ["male", "female"], False, True),
        (0.03, "NA", ["male", "female"], False, False),
        (0.40, "?", ["b", "c", "e"], False, True),
        (0.90, "NULL", ["b", "c", "e"], False, True),
        (0.05, "?", ["Private", "State-gov"], False, False),
        (0.30, "NA", ["$1.50", "$2.75", "$10.00"], False, False),
        (0.30, "None", ["12 kg", "15 kg", "7 kg"], False, False),
    ],
)
def test_words_are_levels_where_a_person_reads_them_so(
    tmp_path: Path, share: float, word: str, others: list[str], is_level: bool, is_said: bool
) -> None:
    cells = some(share, word, others)
    read, said = read_column(tmp_path, cells)
    assert read == (cells if is_level else [None if cell == word else cell for cell in cells])
    how = f"is taken as {'a level of' if is_level else 'missing in'} column 'c' ({cells.count(word)} of {N} cells)"
    expected = f"the text {word!r} {how}; --na {word} makes it missing, --keep {word} a level"
    assert said == ([expected] if is_said else [])
    for form, kept in (({"sure": (word,)}, False), ({"kept": (word,)}, True)):
        read, said = read_column(tmp_path, cells, **form)
        assert read == [None if cell == word and not kept else cell for cell in cells] and said == []


def test_a_word_that_is_kept_is_a_level_of_codes_and_missing_among_numbers(tmp_path: Path) -> None:
    codes, amounts = some(0.3, "NA", ["A12", "B7", "C99"]), some(0.3, "NA", ["$1.50", "$2.75", "$10.00"])
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["code,amount", *map(",".join, zip(codes, amounts, strict=True)), ""]))
    schema = infer_schema(read_table(str(path), csv=find_form(str(path), CsvForm(kept=("NA",)))))
    assert schema["code"].levels == ("A12", "B7", "C99", "NA")
    assert schema["amount"].n_observed == N - amounts.count("NA") and schema["amount"].maximum == 10.0


def test_a_word_among_numbers_proves_that_none_means_missing(tmp_path: Path) -> None:
    path, cells = tmp_path / "t.csv", some(0.1, "None", ["a", "b"])
    path.write_text("\n".join(["c,x", *(f"{c},{k if k % 5 else 'None'}" for k, c in enumerate(cells)), ""]))
    with pytest.warns(UserWarning, match=r"'None' is taken as missing in column 'c' \(40 of 400 cells\)"):
        table, texts = read_with_texts(str(path), None, CsvForm(), ())
    assert table["c"].null_count == 40 and table["x"].null_count == 80
    assert texts is not None and texts["x"].null_count == 80


def test_one_warning_names_all_columns_of_a_word(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    frame = pd.DataFrame({name: some(0.9, "NA", ["Gravel", "Paved"]) for name in "ab"})
    frame.to_csv(path, index=False)
    with pytest.warns(UserWarning, match=r"'NA' is taken as a level of columns 'a' \(360 of 400 cells\), 'b' \(360"):
        read_table(str(path))


def test_answers_count_the_level_and_later_files_are_read_alike(run: Callable[..., Any]) -> None:
    large = RNG.random(N) < 0.3
    damage = np.where(RNG.random(N) < np.where(large, 0.6, 0.95), "None", RNG.choice(["Minor", "Major"], N))
    frame = pd.DataFrame(
        {"damage": damage, "size": np.where(large, "Large", "Small"), "sex": some(0.05, "NA", ["m", "f"])}
    )
    frame["y"] = np.where(np.arange(N) % 9, np.arange(N).astype(str), "NA")
    frame.to_csv("t.csv", index=False)
    run("fit", "t.csv", "-o", "t.joint", "--learner", "adversarial", "--trees", 10, "--seed", 0, "--jobs", 1)
    joint = jf.load("t.joint")
    assert joint.levels("damage") == ("Major", "Minor", "None") and joint.levels("sex") == ("f", "m")
    expected = np.mean(damage[large] == "None")
    assert joint.query("P(damage = 'None' | size = Large)") == pytest.approx(expected, abs=0.06)
    rows = frame.iloc[:40].assign(damage=["None", "Minor", "", "NA"] * 10)
    rows.to_csv("new.csv", index=False)
    run("impute", "t.joint", "new.csv", "-o", "filled.csv", "--jobs", 1)
    filled = pd.read_csv("filled.csv", keep_default_na=False)
    assert filled["damage"][0::4].eq("None").all() and filled["damage"][1::4].eq("Minor").all()
    assert not filled.isin(["", "NA"]).any(axis=None)
    known = rows["y"] != "NA"
    assert filled["y"][known].astype(str).tolist() == rows["y"][known].tolist()
    run("fit", "t.csv", "-o", "u.joint", "--na", "None", "--learner", "adversarial", "--trees", 2, "--jobs", 1)
    assert jf.load("u.joint").levels("damage") == ("Major", "Minor")
    run("impute", "u.joint", "new.csv", "-o", "filled.csv", "--jobs", 1)
    assert set(pd.read_csv("filled.csv", keep_default_na=False)["damage"]) <= {"Major", "Minor"}


def test_several_files_are_read_alike(run: Callable[..., Any]) -> None:
    for k, share in enumerate((0.1, 0.9)):
        pd.DataFrame({"c": some(share, "None", ["a", "b"]), "x": RNG.normal(size=N)}).to_csv(f"{k}.csv", index=False)
    learn = ["fit", "0.csv", "1.csv", "-o", "t.joint", "--learner", "hidden", "--trees", 1, "--jobs", 1]
    run(*learn)
    assert jf.load("t.joint").levels("c") == ("a", "b")
    run(*learn, "--keep", "None")
    assert jf.load("t.joint").levels("c") == ("None", "a", "b")


def test_words_among_the_levels_of_frames_are_noted() -> None:
    frame = pd.DataFrame({"c": some(0.3, "Unknown", ["a", "b"]), "d": ["x", "y"] * (N // 2)})
    reading = reading_of(infer_schema(frame))
    assert reading.columns[0].notes == (
        "the level 'Unknown' (120 of 400 cells) may mean a missing cell; if so, make such cells missing: in pandas by "
        "frame['c'].mask(frame['c'] == 'Unknown'), of CSV on the command line by --na=Unknown",
    )
    assert reading.columns[1].notes == ()
    assert reading_of(infer_schema(frame, {"c": "categorical"})).columns[0].notes == ()


@pytest.mark.parametrize("cell", ["-999", "-999.0", "-999.00"])
def test_whole_numbers_that_mean_missing_may_have_zeros_behind_the_point(cell: str, tmp_path: Path) -> None:
    path = tmp_path / "numbers.csv"
    path.write_text("x,y\n" + "".join(f"{cell if k % 9 == 0 else k / 4:},{k}\n" for k in range(90)))
    form = find_form(str(path), CsvForm())
    assert read_table(str(path), None, form._replace(na=(*form.na, "-999")))["x"].null_count == 10


def test_declared_categories_are_no_tick_box_and_signs_are_levels() -> None:
    film = pd.Series(["x", None] * 20, dtype=pd.CategoricalDtype(["x", "y", "z"]))
    schema = infer_schema(pd.DataFrame({"film": film, "blood": ["+", "-"] * 20}))
    assert schema["film"].levels == ("x", "y", "z") and schema["blood"].levels == ("+", "-")
    assert not any("may mean" in column.remark for column in schema.columns)
