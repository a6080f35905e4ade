"""CSV files: in which form they are, what is read from them, and what looks wrong in them."""

from __future__ import annotations

import codecs
import csv as lines
import io
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from ..runtime.warnings import warn

if TYPE_CHECKING:
    import pyarrow as pa


SPREADSHEET_ERRORS = frozenset(
    ("#N/A", "#N/A N/A", "#DIV/0!", "#VALUE!", "#REF!", "#NUM!", "#NAME?", "#NULL!", "#SPILL!", "#CALC!")
)
"""Texts that mean a missing cell in every column."""
NA = ("", "NA", "N/A", "n/a", "<NA>", "NaN", "nan", "NULL", "null", "None", "?", *sorted(SPREADSHEET_ERRORS))
"""What stands for a missing cell in CSV files."""

_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_SHOWN = {"\t": "tab"}
_NOT_CP1252 = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")
"""Bytes that no text in Windows-1252 has."""
_CHUNK = 1 << 20
_WORD_ENDS = (b" ", b",", b";", b"|", b"\t", b'"', b"\n", b"\r")
_LONGEST_WORD = 20
_MOST = 1000
"""Distinct texts of a column that are looked at."""


class CsvForm(NamedTuple):
    """How a CSV file is written.

    Attributes
    ----------
    na : tuple of str
        Spellings of missing cells.
    separator : str
        One character.
    encoding : str
        Empty: the one that the bytes show (`find_encoding`).
    decimal : str
        ``.`` or ``,``; between commas numbers with decimal commas stand in quotes.
    """

    na: tuple[str, ...] = NA
    separator: str = ","
    encoding: str = ""
    decimal: str = "."


class Spelling(NamedTuple):
    """How CSV files write missing cells and numbers, where the command line was told so.

    Attributes
    ----------
    na : tuple of str
        Texts that mean a missing cell.
    decimal : str
        ``.`` or ``,``.
    """

    na: tuple[str, ...]
    decimal: str


def check_form(form: CsvForm) -> None:
    """Raise ValueError if no CSV file can have this form."""
    if len(form.separator) != 1 or form.separator in '"\r\n':
        raise ValueError(f"--sep: expected one character, or tab, got {form.separator!r}")
    try:
        codecs.lookup(form.encoding or "utf-8")
    except LookupError:
        raise ValueError(f"--encoding: {form.encoding!r} is not known; such as utf-8, utf-16, latin-1") from None


def read_csv(source: Any, name: str, form: CsvForm, text: Iterable[str] = (), doubt: bool = True) -> pa.Table:
    """A table from an Arrow file, which is read from its start.

    Parameters
    ----------
    source : pyarrow.NativeFile
    name : str
        What messages call it.
    form : CsvForm
    text : iterable of str
        Columns to be read as text, even if they look like numbers.
    doubt : bool
        Whether to warn.

    Raises
    ------
    ValueError
        If it is no such table; the message names the file.

    Warns
    -----
    UserWarning
        If its header looks like data or like a title, two columns have one name, or its text is no UTF-8.
    """
    import pyarrow as pa
    from pyarrow import csv

    check_form(form)
    if not form.encoding:
        form = form._replace(encoding=find_encoding(source, name, doubt))
    source.seek(0)
    head = source.read(4096)
    _check_encoding(head, name, form)
    first = codecs.getincrementaldecoder(form.encoding)("replace").decode(head)
    options = csv.ConvertOptions(
        null_values=list(form.na),
        strings_can_be_null=True,
        quoted_strings_can_be_null="" in form.na,
        column_types=dict.fromkeys(text, pa.string()),
        decimal_point="." if form.decimal == form.separator else form.decimal,
    )

    names: list[str] = []

    def read() -> pa.Table:
        source.seek(0)
        return csv.read_csv(
            source,
            read_options=csv.ReadOptions(encoding=form.encoding, column_names=names, skip_rows=1 if names else 0),
            parse_options=csv.ParseOptions(newlines_in_values=True, delimiter=form.separator),
            convert_options=options,
        )

    try:
        table = read()
        if len(set(table.column_names)) < table.num_columns:
            names += numbered(table.column_names, name, doubt)
            table = read()
        codes = _must_be_text(table, read, options)
        if codes:
            options.column_types = dict.fromkeys([*text, *codes], pa.string())
            options.include_columns = []
            table = read()
    except (pa.ArrowException, UnicodeError) as error:
        hint = _separator_hint(first, form) or _cells_hint(str(error))
        if isinstance(error, UnicodeError):
            hint = f"its bytes are not {form.encoding}; say --encoding, such as latin-1"
        raise ValueError(f"{name} is not a csv table: {error}{f'; {hint}' if hint else ''}") from None
    if form.decimal == form.separator:
        table = _with_quoted_decimals(table, form.decimal, set(text))
    _check_separator(table, name, form)
    for field in table.schema:
        if pa.types.is_binary(field.type):
            raise ValueError(
                f"{name}: column {field.name!r} holds bytes that are not UTF-8; leave out --encoding, or say another"
            )
    if doubt:
        _doubt_header(table, name)
    return table


def _must_be_text(table: pa.Table, read: Callable[[], pa.Table], options: Any) -> list[str]:
    """Columns that are no numbers although they were read as such: codes with leading zeros; and times of day."""
    import pyarrow as pa
    import pyarrow.compute as pc

    whole = [field.name for field in table.schema if pa.types.is_integer(field.type)]
    times = [field.name for field in table.schema if pa.types.is_time(field.type)]
    if not whole:
        return times
    given = options.column_types
    options.column_types, options.include_columns = dict.fromkeys(whole, pa.string()), whole
    texts = read()
    options.column_types, options.include_columns = given, []
    coded = [n for n in whole if pc.any(pc.match_substring_regex(texts[n], r"^\s*[+-]?0\d")).as_py()]
    return coded + times


def _with_quoted_decimals(table: pa.Table, decimal: str, text: set[str]) -> pa.Table:
    """The table with numbers in columns of texts that are all numbers with this decimal sign, but those in ``text``."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for j, field in enumerate(table.schema):
        cells = table.column(j)
        if not pa.types.is_string(field.type) or field.name in text or cells.null_count == len(cells):
            continue
        if pc.all(pc.match_substring_regex(cells, rf"^\s*[+-]?\d+({decimal}\d+)?\s*$")).as_py():
            plain = pc.utf8_trim_whitespace(pc.replace_substring(cells, decimal, "."))
            table = table.set_column(j, field.name, plain.cast(pa.float64()))
    return table


def find_encoding(source: Any, name: str, doubt: bool = True) -> str:
    """The encoding of a text that is read from its start: by its first bytes, else UTF-8, else Windows-1252.

    Raises
    ------
    ValueError
        If it is none of them; the message names the file.

    Warns
    -----
    UserWarning
        If it is Windows-1252, which is a guess.
    """
    source.seek(0)
    head = source.read(4096)
    wide = _wide_encoding(head)
    if wide:
        return wide
    if b"\0" in head:
        raise ValueError(f"{name} is no text file: it has zero bytes; if it is one, say --encoding")
    word = _not_utf8(source)
    if word is None:
        return "utf-8"
    source.seek(0)
    if any(_NOT_CP1252.search(chunk) for chunk in iter(lambda: source.read(_CHUNK), b"")):
        raise ValueError(
            f"{name}: its text is neither UTF-8 nor Windows-1252; say --encoding, such as cp437, cp1250 or shift_jis"
        )
    if doubt:
        shown = word.decode("cp1252")
        warn(
            f"{name}: its text is not UTF-8 and is read as Windows-1252, such as {shown!r}; if that is wrong, "
            "say --encoding",
            UserWarning,
        )
    return "cp1252"


def _not_utf8(source: Any) -> bytes | None:
    """The first word of a text that is not UTF-8, None if all is."""
    source.seek(0)
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for chunk in iter(lambda: source.read(_CHUNK), b""):
            decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        before, after = error.object[: error.start], error.object[error.start :]
        start = max(before.rfind(sign) for sign in _WORD_ENDS) + 1
        rest = re.match(rb"[^\s,;|\t\"]*", after)
        return before[start:][-_LONGEST_WORD:] + (rest[0] if rest else b"")[:_LONGEST_WORD]
    return None


def _wide_encoding(head: bytes) -> str:
    """UTF-16 or UTF-32, as the first bytes of a text say; empty if they do not."""
    marks = (
        ("utf-32", (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)),
        ("utf-16", (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)),
    )
    for encoding, signs in marks:
        if head.startswith(signs):
            return encoding
    # without a mark: every other byte of Latin letters is zero
    even, odd = (head[k::2].count(0) / max(len(head[k::2]), 1) for k in (0, 1))
    return "utf-16-le" if odd > 0.4 and even < 0.05 else "utf-16-be" if even > 0.4 and odd < 0.05 else ""


def with_separator(head: bytes, form: CsvForm) -> CsvForm:
    """The form with the separator that gives all first lines the same number of cells, the most; else commas."""
    encoding = form.encoding or _wide_encoding(head) or "utf-8"  # separators are ASCII
    text = codecs.getincrementaldecoder(encoding)("replace").decode(head)
    best, most = ",", 1
    for separator in _SEPARATORS:
        if form.decimal == separator:
            continue
        try:
            rows = [row for row in lines.reader(io.StringIO(text, newline=""), delimiter=separator) if row][:50]
        except lines.Error:
            continue
        rows = rows[:-1] if len(head) >= 65536 and len(rows) > 1 else rows  # the last one may be cut
        counts = set(map(len, rows))
        if len(counts) == 1 and max(counts) > most:
            best, most = separator, max(counts)
    return form._replace(separator=best)


def write_csv_texts(table: pa.Table, file: BinaryIO, separator: str) -> None:
    """Write a table of texts as they are, in quotes only where they need them; what is missing is empty."""
    out = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = lines.writer(out, delimiter=separator, lineterminator="\n")
    writer.writerow(table.column_names)
    for batch in table.to_batches(max_chunksize=10_000):
        writer.writerows(zip(*(column.to_pylist() for column in batch.columns), strict=True))
    out.detach()


def keep_texts(filled: pa.Table, known: pa.Table, form: CsvForm) -> pa.Table:
    """A table of texts: known cells as they were written, the others as the filled table has them.

    Parameters
    ----------
    filled : pyarrow.Table
        n rows, no cell missing that ``known`` has.
    known : pyarrow.Table
        n rows of texts, null where missing; columns are found by name.
    form : CsvForm
        Of the file that ``known`` came from; filled numbers get its decimal sign.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = {}
    for name in filled.column_names:
        cells = filled[name]
        kind = cells.type.value_type if pa.types.is_dictionary(cells.type) else cells.type
        texts = cells.cast(kind).cast(pa.string())
        if form.decimal != "." and (pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
            texts = pc.replace_substring(texts, ".", form.decimal)
        if name in known.column_names:
            if pa.types.is_boolean(kind):
                texts = _spelled_alike(cells, texts, known[name])
            # texts are kept already, and some of them, such as "-", are missing cells
            texts = texts if pa.types.is_string(cells.type) else pc.coalesce(known[name], texts)
        columns[name] = texts
    return pa.table(columns)


def _spelled_alike(cells: pa.ChunkedArray, texts: pa.ChunkedArray, known: pa.ChunkedArray) -> pa.ChunkedArray:
    """Texts of booleans, spelled as in the first known cell of each."""
    import pyarrow.compute as pc

    for value in (True, False):
        same = pc.equal(cells, value)
        spelled = known.filter(pc.fill_null(same, False)).drop_null()
        if len(spelled):
            texts = pc.if_else(same, spelled[0], texts)
    return texts


def _check_encoding(head: bytes, name: str, form: CsvForm) -> None:
    """A ValueError if the first bytes are those of UTF-16 and the form says otherwise."""
    found = _wide_encoding(head)
    wide = form.encoding.lower().replace("_", "-").startswith(("utf-16", "utf-32", "utf16", "utf32"))
    if found and not wide:
        raise ValueError(
            f"{name}: its text looks like {found.upper()}, expected {form.encoding}; say --encoding {found}"
        )


def _cells_hint(problem: str) -> str:
    """What to do about lines with other numbers of cells, from what the parser says of them."""
    counts = re.search(r"Expected (\d+) columns?, got (\d+)", problem)
    if counts is None:
        return ""
    if int(counts[2]) > int(counts[1]):
        return "if the first lines are a title or comments, remove them, so that the names of the columns come first"
    return "a line has fewer cells than the first one: add the cells that are missing, or remove the line"


def _separator_hint(first: str, form: CsvForm) -> str:
    """What to say if the header has more of another separator than of the one asked for."""
    header = first.partition("\n")[0]
    for separator, said in _SEPARATORS.items():
        if separator != form.separator and header.count(separator) > header.count(form.separator):
            return f"if its cells are separated by {said}, say --sep '{_SHOWN.get(separator, separator)}'"
    return ""


def _check_separator(table: pa.Table, name: str, form: CsvForm) -> None:
    """A ValueError if the one column of a CSV table looks like several, in its name and its first row."""
    if table.num_columns != 1:
        return
    header = table.column_names[0]
    first = str(table.column(0)[0].as_py()) if table.num_rows else header
    for separator, said in _SEPARATORS.items():
        if separator != form.separator and separator in header and first.count(separator) == header.count(separator):
            raise ValueError(
                f"{name}: its one column {header!r} looks like several, separated by {said}; "
                f"say --sep '{_SHOWN.get(separator, separator)}'"
            )


def _doubt_header(table: pa.Table, name: str) -> None:
    """Warn if most names of columns look like values of theirs."""
    import pyarrow as pa

    nameless = sum(re.fullmatch(r"(_\d+)?", field.name) is not None for field in table.schema)
    if 2 * nameless > table.num_columns:
        warn(
            f"{name}: the first line names {table.num_columns - nameless} of {table.num_columns} columns; if it is a "
            "title, remove the lines above the names of the columns",
            UserWarning,
        )
        return
    odd = []
    for field in table.schema:
        if pa.types.is_integer(field.type) or pa.types.is_floating(field.type):
            alike = is_number(field.name)
        else:
            alike = pa.types.is_string(field.type) and field.name in _some_texts(table[field.name])
        odd += [field.name] if alike else []
    if 2 * len(odd) > table.num_columns and not _is_count(odd):
        shown = ", ".join(map(repr, odd[:3]))
        warn(
            f"{name}: the first line, with {shown}, looks like cells, but was taken for the names of the columns; "
            "if it holds none, put one line of names above it",
            UserWarning,
        )


def _some_texts(column: pa.ChunkedArray) -> set[str]:
    """Distinct texts among the first cells of a column that are not missing."""
    return set(column.slice(0, _MOST).drop_null().to_pylist())


def is_number(text: str) -> bool:
    """Whether Python reads a text as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_count(names: list[str]) -> bool:
    """Whether names are whole numbers one after the other, such as years: good names for columns."""
    if not all(re.fullmatch(r"-?[0-9]{1,9}", name) for name in names):
        return False
    numbers = [int(name) for name in names]
    return len(numbers) > 1 and numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def numbered(given: Sequence[str], name: str = "", doubt: bool = True) -> list[str]:
    """Names of the columns of a file, or of a frame, with a number behind each that is there already, such as ``a_2``.

    A warning names them.
    """
    names: list[str] = []
    for column in given:
        new, k = column, 2
        while new in names or (new != column and new in given):
            new, k = f"{column}_{k}", k + 1
        names.append(new)
    if doubt and names != list(given):
        pairs = [(old, new) for old, new in zip(given, names, strict=True) if old != new]
        shown = ", ".join(f"{old!r} is now {new!r}" for old, new in pairs[:5])
        of = f"{name}: " if name else ""
        warn(f"{of}columns with the same name are numbered: {shown}{', ...' if len(pairs) > 5 else ''}", UserWarning)
    return names
