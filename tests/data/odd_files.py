"""Small files of unusual forms, each with the table that it stands for, or what is said of it."""

from __future__ import annotations

import datetime as dt
import io
import json
import zipfile
from collections.abc import Iterator
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

Cells = dict[str, tuple[str, list[Any]]]


class OddFile(NamedTuple):
    """A file, the form that a user says, and what is read and said.

    Attributes
    ----------
    name : str
        In words.
    file : str
        Name of the file, whose ending may say its format.
    content : bytes
    said : dict
        What the options of the command line say, as fields of `CsvForm`.
    columns : dict of str to (kind, cells)
        The columns that a person reads; none if the file is refused.
    words : str
        Part of the warning or the error; empty if nothing is to be said.
    aside : tuple of str
        Columns that are set aside.
    """

    name: str
    file: str
    content: bytes
    said: dict[str, Any]
    columns: Cells
    words: str = ""
    aside: tuple[str, ...] = ()


N = ("integer", [1, 3, 5, 7, 2, 4])
X = ("number", [2.5, 4.25, 6.5, 1.25, 3.0, 2.75])
REGION = ("text", ["N", "S", "E", "N", "S", "E"])
TABLE: Cells = {"region": REGION, "n": N, "x": X}
ROWS = [f"{region},{n},{x}" for region, n, x in zip(*(cells for _, cells in TABLE.values()), strict=True)]
TEXT = "\n".join(["region,n,x", *ROWS]) + "\n"


def odd_files() -> Iterator[OddFile]:
    """All of them."""
    yield from _of_cells()
    yield from _of_lines()
    yield from _of_rows()
    yield from _of_encodings()
    yield from _of_formats()


def _of_cells() -> Iterator[OddFile]:
    """More cells than names, and other separators."""
    yield _odd("a separator after each row", "\n".join(["region,n,x", *(f"{row}," for row in ROWS)]))
    yield _odd("a separator after the names", TEXT.replace("region,n,x\n", "region,n,x,\n"))
    yield _odd("a separator after each line", TEXT.replace("\n", ",\n"), words="column '': all cells are missing")
    yield _odd(
        "names of rows, as R writes them",
        '"mpg" "cyl"\n"Mazda RX4" 21.5 6\n"Datsun 710" 22.8 4\n"Valiant" 18.1 6\n',
        {"mpg": ("number", [21.5, 22.8, 18.1]), "cyl": ("integer", [6, 4, 6])},
        "the first cells are its 'rownames'",
        aside=("rownames",),
    )
    yield _odd(
        "names of rows between commas",
        "mpg,cyl\nMazda,21.5,6\nDatsun,22.8,4\nValiant,18.1,6\n",
        {"mpg": ("number", [21.5, 22.8, 18.1]), "cyl": ("integer", [6, 4, 6])},
        "the first cells are its 'rownames'",
        aside=("rownames",),
    )
    yield _odd(
        "numbers of rows, as R writes them",
        '"","mpg"\n"1",21.5\n"2",22.8\n"3",18.1\n',
        {"mpg": ("number", [21.5, 22.8, 18.1])},
        aside=("",),
    )
    yield _odd(
        "numbers of rows, as pandas writes them",
        "Unnamed: 0,mpg\n0,21.5\n2,22.8\n5,18.1\n",
        {"mpg": ("number", [21.5, 22.8, 18.1])},
        aside=("Unnamed: 0",),
    )
    yield _odd(
        "names of rows in a column of its own",
        "rownames,mpg\nMazda,21.5\nDatsun,22.8\nValiant,18.1\n",
        {"mpg": ("number", [21.5, 22.8, 18.1])},
        aside=("rownames",),
    )
    yield _odd("decimal commas in one column", "price\n1,5\n2,25\n3\n", {"price": ("number", [1.5, 2.25, 3.0])})
    yield _odd("a row with a cell more", "a,b\n1,2\n3,4,5\n6,7\n", {}, "a line has more cells than the first one")
    yield _odd("a separator that the first line says", "sep=;\n" + TEXT.replace(",", ";"))
    yield _odd("spaces", TEXT.replace(",", " "))
    yield _odd("columns in line by spaces", TEXT.replace(",", "   ").replace("\n", " \n  "), file="t.txt")
    yield _odd("spaces as said", "a b\nx y\nz w\n", {"a": _text("xz"), "b": _text("yw")}, separator=" ")
    yield _odd("one column of names", "full name\nAnn Lee\nBob Ray\n", {"full name": _text(["Ann Lee", "Bob Ray"])})
    yield _odd(
        "quoted text between spaces",
        'city n\n"New York" 1\nRome 2\n',
        {"city": _text(["New York", "Rome"]), "n": ("integer", [1, 2])},
        file="t.txt",
    )


def _of_lines() -> Iterator[OddFile]:
    """Lines above the names, comments, and no names."""
    title = "Sales of 2023\nAll shops\n" + TEXT
    yield _odd("a title", title, {}, "if the first lines are a title, say --skip 2, so that")
    yield _odd("a title above a blank line", title.replace("shops\n", "shops\n\n"), {}, "say --skip 3, so that")
    yield _odd("a title and a blank line as said", title.replace("shops\n", "shops\n\n"), skip=3)
    blank = "Sales of 2023,,\n,,\n\n" + TEXT
    yield _odd("a title from a spreadsheet", blank, None, "names 1 of 3 columns.*say --skip 3, so", is_read=False)
    yield _odd(
        "a title above tabs", title.replace(",", "\t"), {}, "if the first lines are a title, say --skip 2, so that"
    )
    yield _odd("a title above bars that is skipped", title.replace(",", "|"), skip=2)
    yield _odd("a title that is skipped", title, skip=2)
    yield _odd("a file without a line", "", {}, "is not a csv table: Empty CSV file")
    yield _odd("a title and a blank line", "Sales of 2023\n\n" + TEXT, skip=1)
    yield _odd("a title over all columns", "Sales,,\n,,\n" + TEXT, None, "say --skip 2, so that", is_read=False)
    commented = "# made by hand\n# on Monday\n" + TEXT + "# the end\n"
    yield _odd("comments", commented, {}, "if lines that start so are comments, say --comment '#'")
    yield _odd("comments below", TEXT + "## more ##\n" + TEXT, {}, "are comments, say --comment '#'")
    yield _odd("a row with a cell less", "a,b,c\n1,2,3\n4,5\n6,7\n", {}, "a line has fewer cells than the first one")
    yield _odd("comments that are left out", commented, comment="#")
    names = {name: TABLE[old] for name, old in zip(("x0", "x1", "x2"), TABLE, strict=True)}
    yield _odd("no names", "\n".join(ROWS), names, has_names=False)
    plain = "\n".join(f"  {n}  {x}" for n, x in zip(N[1], X[1], strict=True))
    yield _odd("no names above spaces", plain, {"x0": N, "x1": X}, file="t.dat", has_names=False)
    yield _odd("no names, unsaid", "\n".join(["N,1,2.5", *ROWS]), None, "say --header none", is_read=False)
    three = "shop,price,price,n\n,mean,std,\n,EUR,EUR,\n" + "".join(f"s{k},{k}.5,{k}.25,{k}\n" for k in range(9))
    yield _odd("three lines of names", three, None, "lines 2 and 3 hold no numbers in 2 columns", is_read=False)
    units = "shop,height,weight\n,cm,kg\n" + "".join(f"s{k},{k}.5,{k}.25\n" for k in range(9))
    yield _odd("a line of units", units, None, "line 2 holds no numbers in 2 columns", is_read=False)


def _of_rows() -> Iterator[OddFile]:
    """Rows at the end that are none."""
    more = {name: (kind, [*cells, None, None]) for name, (kind, cells) in TABLE.items()}
    yield _odd("blank rows at the end", TEXT + ",,\n,,\n", more, "the last 2 rows have no known cell")
    total = {"region": "Total", "n": 22, "x": 20.25}
    more = {name: (kind, [*cells, total[name]]) for name, (kind, cells) in TABLE.items()}
    yield _odd("a row of totals", TEXT + "Total,22,20.25\n", more, "like totals, with 'Total' in column 'region'")
    more = more | {"region": ("text", [*REGION[1], None])}
    yield _odd("a row of sums", TEXT + ",22,20.25\n", more, "with the sum of column 'n' and the sum of column 'x'")
    text = TEXT.replace("region", "patient_id") + "\n".join(ROWS * 3) + "\n"
    yield _odd("subjects of several rows", text, {"patient_id": ("text", REGION[1] * 4), "n": _more(N), "x": _more(X)})


def _of_encodings() -> Iterator[OddFile]:
    """Text in other encodings, and files that are no text."""
    names = "name,x\nMüller,1\ncafé,2\n"
    columns: Cells = {"name": _text(["Müller", "café"]), "x": ("integer", [1, 2])}
    yield _odd("cp437", names.encode("cp437"), {}, "neither UTF-8 nor Windows-1252; say --encoding: .*cp437 reads 'Mül")
    yield _odd("cp437 as said", names.encode("cp437"), columns, encoding="cp437")
    yield _odd("cp1251", "имя,x\nМосква,1\n".encode("cp1251"), {}, "cp1251 reads 'имя'")
    yield _odd("shift-jis", "名前,x\n山田,1\n鈴木,2\n".encode("shift-jis"), {}, "shift-jis reads '名前'")
    degrees = "temp °C,x\n20 °C,1\nOrléans,2\n"
    columns = {"temp °C": _text(["20 °C", "Orléans"]), "x": ("integer", [1, 2])}
    yield _odd("cp1252", degrees.encode("cp1252"), columns, "read as Windows-1252, such as '°C'")
    yield _odd("gbk", "名字,x\n张三,1\n".encode("gbk"), {}, "gbk reads '名字'")
    yield _odd(
        "one byte that is not UTF-8", names.encode() + b"M\xfcller,3\n", {}, r"UTF-8, but b'M\\xfcller' in line 4"
    )
    yield _odd("a workbook under another name", workbook([["a"], [1]]), {}, "is an Excel workbook or another archive")
    yield _odd("a file of gzip", b"\x1f\x8b\x08\x00abc", {}, "is compressed by gzip; unpack it")


def _of_formats() -> Iterator[OddFile]:
    """Excel workbooks and JSON."""
    day = dt.datetime(2024, 1, 2)
    rows = [
        ["name", "n", "x", "day", "moment", "ok", "zip"],
        ["Ann, Lee", 3, 2.5, day, dt.datetime(2024, 1, 2, 9, 30), True, "00017"],
        ["Bob", None, 4, dt.datetime(2024, 2, 1), dt.datetime(2024, 1, 3, 10, 15), False, "12345"],
    ]
    columns: Cells = {
        "name": _text(["Ann, Lee", "Bob"]),
        "n": ("integer", [3, None]),
        "x": ("number", [2.5, 4]),
        "day": ("date", [day, dt.datetime(2024, 2, 1)]),
        "moment": ("date", [dt.datetime(2024, 1, 2, 9, 30), dt.datetime(2024, 1, 3, 10, 15)]),
        "ok": ("text", [True, False]),
        "zip": _text(["00017", "12345"]),
    }
    yield _odd("a workbook", workbook(rows), columns, file="t.xlsx")
    yield _odd("a workbook with a title", workbook([["Sales"], *rows]), columns, file="t.xlsx", skip=1)
    yield _odd("a workbook of two sheets", workbook(rows, 2), columns, "first sheet 'S1' is read", file="t.xlsx")
    yield _odd("no workbook", TEXT, {}, "is not an Excel workbook", file="t.xlsx")
    objects = [
        {"title": "Up", "n": 3, "ok": True, "day": "2024-02-01"},
        {"title": 300, "n": None, "ok": False, "day": "2024-01-02"},
    ]
    columns = {
        "title": _text(["Up", "300"]),
        "n": ("integer", [3, None]),
        "ok": ("text", [True, False]),
        "day": ("date", [dt.datetime(2024, 2, 1), day]),
    }
    yield _odd("lines of JSON", "\n".join(map(json.dumps, objects)) + "\n", columns, file="t.jsonl")
    yield _odd("an array of JSON", json.dumps(objects, indent=2), columns, file="t.json")
    yield _odd(
        "JSON by columns", '{"a": {"0": 1}, "b": {"0": 2}}', {}, "expected an object for each row", file="t.json"
    )
    yield _odd("JSON without names", "[1, 2]\n[3, 4]\n", {}, "line 1 is not JSON", file="t.jsonl")
    yield _odd("no JSON", '{"a": 1}\n{"a": \n', {}, "line 2 is not JSON", file="t.jsonl")


def _odd(
    name: str,
    content: str | bytes,
    columns: Cells | None = TABLE,
    words: str = "",
    *,
    file: str = "t.csv",
    aside: tuple[str, ...] = (),
    is_read: bool = True,
    **said: Any,
) -> OddFile:
    data = content.encode() if isinstance(content, str) else content
    return OddFile(name, file, data, said, {} if columns is None and not is_read else columns or {}, words, aside)


def _text(cells: Any) -> tuple[str, list[Any]]:
    return "text", list(cells)


def _more(column: tuple[str, list[Any]]) -> tuple[str, list[Any]]:
    return column[0], column[1] * 4


def workbook(rows: list[list[Any]], n_sheets: int = 1) -> bytes:
    """A workbook whose first sheet has these rows."""
    spreadsheet = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    package = "http://schemas.openxmlformats.org/package/2006"
    relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    sheets = "".join(f'<sheet name="S{k}" sheetId="{k}" r:id="r{k}"/>' for k in range(1, n_sheets + 1))
    links = "".join(
        f'<Relationship Id="r{k}" Type="{relations}/worksheet" Target="worksheets/s{k}.xml"/>'
        for k in range(1, n_sheets + 1)
    )
    links += f'<Relationship Id="r0" Type="{relations}/styles" Target="styles.xml"/>'
    data = "".join(f"<row>{''.join(map(_cell, row))}</row>" for row in rows)
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" '
        f'Type="{relations}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{spreadsheet}" xmlns:r="{relations}">'
        f"<sheets>{sheets}</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships">{links}</Relationships>',
        "xl/styles.xml": f'<styleSheet xmlns="{spreadsheet}"><cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="22"/>'
        "</cellXfs></styleSheet>",
    }
    for k in range(1, n_sheets + 1):
        parts[f"xl/worksheets/s{k}.xml"] = f'<worksheet xmlns="{spreadsheet}"><sheetData>{data}</sheetData></worksheet>'
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as book:
        for path, text in parts.items():
            book.writestr(path, f'<?xml version="1.0" encoding="UTF-8"?>{text}')
    return out.getvalue()


def _cell(value: Any) -> str:
    if value is None:
        return "<c/>"
    if isinstance(value, bool):
        return f'<c t="b"><v>{int(value)}</v></c>'
    if isinstance(value, dt.datetime):
        return f'<c s="1"><v>{(value - dt.datetime(1899, 12, 30)) / dt.timedelta(days=1)}</v></c>'
    if isinstance(value, str):
        return f'<c t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    return f"<c><v>{value}</v></c>"
