"""Excel workbooks and JSON lines as the bytes of a CSV file, which then is read like any other."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..runtime.warnings import warn


def as_csv(path: str, form: str, doubt: bool = True) -> bytes:
    """A workbook (the first sheet) or JSON lines as CSV in UTF-8; raises ValueError, which names the file."""
    rows = _of_workbook(path, doubt) if form == "xlsx" else _of_json(path)
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerows([_text(cell) for cell in row] for row in rows)
    return out.getvalue().encode()


def _of_workbook(path: str, doubt: bool) -> list[list[Any]]:
    """The rows of the first sheet of a workbook, the names of the columns among them."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        raise ImportError(f"{path}: Excel workbooks need: pip install 'jointforest[excel]'") from None
    with open(path, "rb") as file:
        try:
            book = CalamineWorkbook.from_filelike(file)
            rows = book.get_sheet_by_index(0).to_python()
        except (CalamineError, IndexError) as error:
            raise ValueError(f"{path} is not an Excel workbook: {error}") from None
    if doubt and len(book.sheet_names) > 1:
        names = ", ".join(map(repr, book.sheet_names[1:4])) + (", ..." if len(book.sheet_names) > 4 else "")
        warn(f"{path}: the first sheet {book.sheet_names[0]!r} is read, and no other: {names}", UserWarning)
    return rows


def _of_json(path: str) -> Iterable[list[Any]]:
    """The rows of a file with an object on each line, or of an array of objects, and above them their keys."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeError as error:
        raise ValueError(f"{path}: its text is not UTF-8 ({error}); JSON is") from None
    if text.lstrip().startswith("["):
        objects = [(1, text)]
    else:
        objects = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    rows: list[Any] = []
    for number, line in objects:
        try:
            found = json.loads(line)
        except ValueError as error:
            raise ValueError(f"{path}, line {number} is not JSON: {error}") from None
        rows += found if isinstance(found, list) else [found]
    if not all(isinstance(row, dict) for row in rows) or (
        len(rows) == 1 and all(isinstance(cell, dict) for cell in rows[0].values())
    ):
        raise ValueError(f"{path}: expected an object for each row; pandas writes them by orient='records'")
    names = list(dict.fromkeys(name for row in rows for name in row))
    return [names, *([row.get(name) for name in names] for row in rows)]


def _text(cell: Any) -> str:
    """A cell as CSV writes it."""
    if cell is None or isinstance(cell, str):
        return cell or ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 2**53 else repr(cell)
    if isinstance(cell, dt.datetime):
        return str(cell.date() if cell.time() == dt.time() else cell)
    if isinstance(cell, dt.timedelta):
        seconds = cell.total_seconds()
        minutes, second = divmod(abs(seconds), 60)
        whole = f"{int(minutes) // 60}:{int(minutes) % 60:02d}:{int(second):02d}"
        return ("-" if seconds < 0 else "") + whole + (f"{second % 1:.6f}".rstrip("0")[1:] if second % 1 else "")
    return json.dumps(cell, ensure_ascii=False) if isinstance(cell, list | dict) else str(cell)
