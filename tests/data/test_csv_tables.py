"""CSV files: their forms, what looks wrong in them, and texts that come back as they were."""

from __future__ import annotations

import io
import warnings
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from jointforest.data.csv_files import NA, CsvForm, UnlikeTable, keep_texts, write_csv_texts
from jointforest.data.table_files import read_table, read_with_texts

EXPECTED = {"name": ["café", None], "x": [1.5, -2.25], "n": [1000, 2]}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(("separator", "decimal"), [(",", "."), (";", ","), ("\t", ","), ("|", ".")])
def test_forms(tmp_path: Path, encoding: str, separator: str, decimal: str) -> None:
    rows = [["name", "x", "n"], ["café", "1.5".replace(".", decimal), "1000"], ["", "-2.25".replace(".", decimal), "2"]]
    path = tmp_path / "t.csv"
    path.write_bytes("\r\n".join(separator.join(row) for row in rows).encode(encoding))
    form = CsvForm(separator=separator, encoding="utf-8" if encoding == "utf-8-sig" else encoding, decimal=decimal)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_table(str(path), csv=form).to_pydict() == EXPECTED
    if encoding.startswith("utf-16"):
        with pytest.raises(ValueError, match=r"t.csv: its text looks like UTF-16.*--encoding utf-16"):
            read_table(str(path), csv=form._replace(encoding="utf-8"))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_encodings_are_found(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "t.csv").write_bytes(("name,x\ncafé,1\n" + "日本,2\n" * 3).encode(encoding))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = read_table(str(tmp_path / "t.csv"))
    assert table.to_pydict() == {"name": ["café", *["日本"] * 3], "x": [1, 2, 2, 2]}


def test_windows_1252_is_a_guess_that_is_said(tmp_path: Path) -> None:
    path, rows = tmp_path / "t.csv", "plain,1\n" * 300_000  # the first other byte is far from the start
    path.write_bytes(f'name,x\n{rows}5 €,2\n"Café Müller",3\n'.encode("cp1252"))
    with pytest.warns(UserWarning, match=r"t.csv: its text is not UTF-8 and is read as Windows-1252, such as '€'"):
        table, texts = read_with_texts(str(path), None, CsvForm(), ())
    assert table["name"].to_pylist()[-2:] == ["5 €", "Café Müller"]
    assert texts is not None and texts["name"].to_pylist()[-1] == "Café Müller"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_table(str(path), csv=CsvForm(encoding="cp1252"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,b\n1,\x00x\n2,y\n", "no text file: it has zero bytes"),
        (b"a,b\n1,\x81\x8d\n2,y\n", "neither UTF-8 nor Windows-1252; say --encoding: .*cp437 reads"),
        (b"# made by x\na,b\n1,2\n", "if lines that start so are comments, say --comment '#'"),
        (b"a,b,c\n1,2,3\n4,5\n", "a line has fewer cells than the first one"),
    ],
)
def test_files_that_are_no_table(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_table(str(tmp_path / "t.csv"))


@pytest.mark.parametrize(
    ("text", "form", "message"),
    [
        ("a;b\n1,5;2\n3,5;4\n", {}, "separated by semicolons, say --sep ';'"),
        ("a\tb\n1\t2\n3\t4\n", {}, "separated by tabs; say --sep 'tab'"),
        ("a,b\n1,2\n3,4\n", {"separator": ";"}, "separated by commas; say --sep ','"),
        ("a,b\n1,2\n", {"separator": ";;"}, "--sep: expected one character, or tab, got ';;'"),
        ("a,b\n1,2\n", {"separator": '"'}, "--sep"),
        ("a,b\n1,2\n", {"encoding": "utf-9"}, "--encoding: 'utf-9' is not known"),
        ("a,b\ncafé,2\n", {"encoding": "ascii"}, "not a csv table: 'ascii' codec"),
    ],
)
def test_wrong_forms(tmp_path: Path, text: str, form: dict[str, str], message: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_table(str(path), csv=CsvForm(**form))


def test_decimal_commas_between_commas_stand_in_quotes(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('a,b,c,d\n"1,006",x,"1,5",1.5\n,"1,5","-2,25",2\n"5,700",z,7,3\n')
    form = CsvForm(decimal=",")
    table, texts = read_with_texts(str(tmp_path / "t.csv"), None, form, ())
    numbers = {"a": [1.006, None, 5.7], "b": ["x", "1,5", "z"], "c": [1.5, -2.25, 7.0], "d": [1.5, 2.0, 3.0]}
    assert table.to_pydict() == numbers and texts is not None and texts["a"].to_pylist() == ["1,006", None, "5,700"]
    assert read_table(str(tmp_path / "t.csv"), csv=form, text=["a"])["a"].to_pylist() == ["1,006", None, "5,700"]


def test_a_title_in_place_of_names_is_refused_or_doubted(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("Sales of 2023,,\n,,\nregion,product,amount\nN,a,1\n")
    with pytest.raises(UnlikeTable, match="names 1 of 3 columns; if it is a title, say --skip 2") as refused:
        read_table(str(tmp_path / "t.csv"))
    assert refused.value.otherwise == {"skip": 2}
    (tmp_path / "t.csv").write_text("region,,\nN,4,1\nS,5,2\n")  # whose next line holds no names
    with pytest.warns(UserWarning, match="names 1 of 3 columns; if it is a title, say --skip 1"):
        assert read_table(str(tmp_path / "t.csv")).num_rows == 2


@pytest.mark.parametrize("word", NA)
def test_words_for_missing(tmp_path: Path, word: str) -> None:
    (tmp_path / "t.csv").write_text(f"name,x\na,1\n{word},{word}\n")
    assert read_table(str(tmp_path / "t.csv")).to_pydict() == {"name": ["a", None], "x": [1, None]}
    plain = read_table(str(tmp_path / "t.csv"), csv=CsvForm(na=("-",)))
    assert plain["name"].to_pylist() == ["a", word]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1.5,2,a\n2.5,3,b\n3.5,4,a\n", "the first line, with '1.5', '2', 'a', looks like cells"),
        ("male,yes\nfemale,no\nmale,yes\n", "the first line"),
        (",a\n0,x\n1,y\n", None),
        ("5,x,y\n6,1,2\n", None),  # one name of three
        ("2019,2020,2021\n1,2,3\n", None),  # years
        ("0,1,2,y\n5,6,7,b\n", None),
        ("a,b\n1,2\n", None),
        ("price,n\n'1,5',1\n'1,5 EUR',1\n".replace("'", '"'), None),
    ],
)
def test_doubts(tmp_path: Path, text: str, words: str | None) -> None:
    (tmp_path / "t.csv").write_text(text)
    if words is None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            read_table(str(tmp_path / "t.csv"))
        return
    with pytest.warns(UserWarning, match=words) as told:
        read_with_texts(str(tmp_path / "t.csv"), "csv", CsvForm(), ())
    assert len(told) == 1


def test_a_column_said_to_be_text_is_not_doubted(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('code,n\n"1,5",007\n')
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = read_table(str(tmp_path / "t.csv"), text=["code", "n", "absent"])
    assert table.to_pydict() == {"code": ["1,5"], "n": ["007"]}


def test_texts_are_kept(tmp_path: Path) -> None:
    text = 'zip,price,ok,quoted,day\n00007,"1,50",TRUE,"a ""b""; c",2024-01-02\n,,,,\n01234,"-2,00",no,é,2024-01-03\n'
    (tmp_path / "t.csv").write_text(text)
    form = CsvForm()
    table, known = read_with_texts(str(tmp_path / "t.csv"), "csv", form, ["price", "ok"])
    assert known is not None
    filled = table.set_column(0, "zip", pa.array([7, 8, 1234]))
    filled = filled.set_column(1, "price", pa.array([1.5, 0.25, -2.0]))
    filled = filled.set_column(2, "ok", pa.array([True, False, False]))
    filled = filled.set_column(3, "quoted", pa.array(["x", "x,y", "x"]).dictionary_encode())
    filled = filled.append_column("more", pa.array([1, 2, 3]))
    kept = keep_texts(filled, known, form._replace(decimal=",")).to_pydict()
    assert kept["zip"] == ["00007", "8", "01234"] and kept["price"] == ["1,50", "0,25", "-2,00"]
    assert kept["ok"] == ["TRUE", "no", "no"] and kept["quoted"] == ['a "b"; c', "x,y", "é"]
    assert kept["day"] == ["2024-01-02", None, "2024-01-03"] and kept["more"] == ["1", "2", "3"]
    out = io.BytesIO()
    write_csv_texts(pa.table(kept), out, form)
    first = out.getvalue().decode().splitlines()[1]
    assert first == '00007,"1,50",TRUE,"a ""b""; c",2024-01-02,1'
    again = pd.read_csv(io.BytesIO(out.getvalue()), dtype=str, keep_default_na=False)
    assert again.to_dict("list") == {name: [cell or "" for cell in cells] for name, cells in kept.items()}
