"""CSV files: in which form they are, what is read from them, and what looks wrong in them."""

from __future__ import annotations

import codecs
import csv as lines
import datetime as dt
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from ..runtime.warnings import warn

if TYPE_CHECKING:
    import pyarrow as pa


SPREADSHEET_ERRORS = frozenset(
    ("#N/A", "#N/A N/A", "#DIV/0!", "#VALUE!", "#REF!", "#NUM!", "#NAME?", "#NULL!", "#SPILL!", "#CALC!")
)
"""Texts that mean a missing cell in every column."""
_LEVEL_WORDS = ("None", "NA", "N/A", "n/a")
WORDS = (*_LEVEL_WORDS, "<NA>", "NaN", "nan", "NULL", "null", "?")
"""Words that mean a missing cell among numbers; the first ones may be levels of a column of text."""
NA = ("", *WORDS, *sorted(SPREADSHEET_ERRORS))
"""What stands for a missing cell in CSV files."""
_LARGE, _NOTED = 0.5, 0.1
"""Shares of a column of text beyond which such a word is a level, and from which on a warning names it."""

_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "spaces"}
_SHOWN = {"\t": "tab", " ": "space"}
_NOT_CP1252 = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")
"""Bytes that no text in Windows-1252 has."""
_NO_TEXT = {
    b"PK\x03\x04": "is an Excel workbook or another archive; name a workbook .xlsx, unpack any other",
    b"\xd0\xcf\x11\xe0": "is an old Excel workbook; save it as .xlsx or .csv",
    b"\x1f\x8b": "is compressed by gzip; unpack it",
    b"PAR1": "is a Parquet file; name it .parquet, or say --format parquet",
}
"""Files that are no text, by their first bytes, and what to do with them."""
_HIGH = re.compile(rb"[\x80-\xff]")
_UTF8 = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
"""Letters in UTF-8 that are not those of ASCII."""
_ASIAN_ENCODINGS = ("shift-jis", "gbk", "big5", "euc-kr")
_OTHER_ENCODINGS = ("cp1251", "cp1250", "koi8-r", "cp437", "mac-roman", *_ASIAN_ENCODINGS)
"""What a text may have that is neither UTF-8 nor Windows-1252."""
PATTERN = r"\+?(d|\.[1-9]f|\.\d[eE])|TRUE|True|%Y-%m-%d[T ]%H:%M(:%S)?(Z|[+-]\d\d:\d\d)?"
"""What `CsvForm.patterns` may hold."""
_DECIMAL_COMMAS = re.compile(r"[^,\n]+\n(\s*([+-]?\d+(,\d+)?)?\s*\n)*\s*[+-]?\d*(,\d*)?\s*")
"""A name, and below it numbers alone."""
_CHUNK = 1 << 20
_SAMPLE = 1 << 24
"""Bytes from which the encoding is inferred."""
HEAD_BYTES = 1 << 16
"""Bytes from which the form of a file is inferred."""
_WORD_ENDS = (b" ", b",", b";", b"|", b"\t", b'"', b"\n", b"\r")
_LONGEST_WORD = 20
_INFINITE = tuple(sign + word for sign in ("", "-", "+") for word in ("inf", "Inf", "INF", "infinity", "Infinity"))
_MOST_ZEROS = 6
"""Most zeros behind the decimal point of a whole number that stands for missing cells."""
_MOST = 1000
"""Distinct texts of a column that are examined."""


class CsvForm(NamedTuple):
    """How a CSV file is written.

    na : tuple of str. Spellings of missing cells.
    separator : str. One character; a space stands for any number of spaces and tabs.
    encoding : str. Empty: the one that the bytes show (`find_encoding`).
    decimal : str. ``.`` or ``,``; between commas numbers with decimal commas stand in quotes.
    has_names : bool. Whether the first line holds the names of the columns; else they are called x0, x1 and so on.
    comment : str. Lines that start with this text are no rows; empty if there are none.
    skip : int. Lines above the names.
    line_end : str. What ends the lines of an answer; files are read with any.
    patterns : dict of str to str. How columns of numbers, truth values and times are written, see `_pattern`.
    names : dict of str to str. Names in the file of columns that are numbered here.
    sure, kept : tuple of str. Spellings that mean missing in every column; and those that are levels of text.
    """

    na: tuple[str, ...] = NA
    separator: str = ","
    encoding: str = ""
    decimal: str = "."
    has_names: bool = True
    comment: str = ""
    skip: int = 0
    line_end: str = "\n"
    patterns: Mapping[str, str] = {}
    names: Mapping[str, str] = {}
    sure: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """What later files are like, where it differs from the usual form: for JSON."""
        fields = {name: value for name, value in self._asdict().items() if value != self._field_defaults[name]}
        as_plain = {"na": list, "patterns": dict}
        fields = {name: value for name, value in fields.items() if name not in OF_ONE_FILE}
        return {name: as_plain.get(name, lambda x: x)(value) for name, value in fields.items()}


OF_ONE_FILE = ("names", "sure", "kept")
"""Fields of `CsvForm` that do not apply to later files."""


class UnlikeTable(ValueError):
    """A file that is no table, but may be one with other fields of its `CsvForm`: without a title or comments."""

    def __init__(self, problem: str, hint: str, otherwise: dict[str, Any]) -> None:
        super().__init__(f"{problem}; {hint}" if hint else problem)
        self.otherwise = otherwise


def check_form(form: CsvForm) -> None:
    """Raise ValueError if no CSV file can have this form."""
    if len(form.separator) != 1 or form.separator in '"\r\n':
        raise ValueError(f"--sep: expected one character, or tab, got {form.separator!r}")
    try:
        codecs.lookup(form.encoding or "utf-8")
    except LookupError:
        raise ValueError(f"--encoding: {form.encoding!r} is not known; such as utf-8, utf-16, latin-1") from None


def read_csv(source: Any, name: str, form: CsvForm, text: Iterable[str] = (), doubt: bool = True) -> pa.Table:
    """A table from an Arrow file; columns in ``text`` are read as text; ``doubt`` warns of an unlikely header."""
    # With their levels, words for missing cells are text where they are levels; without, the words and the cells beside
    # them decide.
    import pyarrow as pa
    from pyarrow import csv

    check_form(form)
    if not form.encoding:
        form = form._replace(encoding=find_encoding(source, name, doubt))
    has_comments = bool(form.comment)
    source, form = _as_plain_lines(source, form)
    source.seek(0)
    head = source.read(HEAD_BYTES)
    _check_encoding(head, name, form)
    first = codecs.getincrementaldecoder(form.encoding)("replace").decode(head).removeprefix("\ufeff")
    options = csv.ConvertOptions(
        null_values=_spellings(form),
        strings_can_be_null=True,
        quoted_strings_can_be_null="" in form.na,
        column_types=dict.fromkeys(text, pa.string()),
        decimal_point="." if form.decimal == form.separator else form.decimal,
    )
    rows, starts = _first_rows(first, form, len(head) == HEAD_BYTES)
    names = _names_of(rows, form)

    def read() -> pa.Table:
        source.seek(0)
        n_before = starts[0] - form.skip + form.has_names if names else 0
        return csv.read_csv(
            source,
            read_options=csv.ReadOptions(
                encoding="utf-8" if form.encoding == "utf-8-sig" else form.encoding,
                column_names=names,
                skip_rows=form.skip,
                skip_rows_after_names=n_before,
            ),
            parse_options=csv.ParseOptions(newlines_in_values=True, delimiter=form.separator),
            convert_options=options,
        )

    try:
        table = read()
        if len(set(table.column_names)) < table.num_columns:
            names = numbered(table.column_names, name, doubt)
            table = read()
        codes = _must_be_text(table, read, options)
        if codes:
            options.column_types = dict.fromkeys([*text, *codes], pa.string())
            options.include_columns = []
            table = read()
    except (pa.ArrowException, UnicodeError) as error:
        hint, otherwise = _separator_hint(rows, form), dict[str, Any]()
        if isinstance(error, UnicodeError):
            hint = f"its bytes are not {form.encoding}; say --encoding, such as latin-1"
        elif not hint:
            hint, otherwise = _cells_hint(str(error), rows, starts, form.separator, has_comments)
        raise UnlikeTable(f"{name} is not a csv table: {error}", hint, otherwise) from None
    words = [word for word in form.na if word in WORDS and word not in form.sure]
    if words and (doubt or isinstance(text, Mapping)):
        options.null_values = [word for word in form.na if word not in words]
        kept = form.kept if not isinstance(text, Mapping) else text
        table = _with_words(table, read, options, words, kept, _among_numbers(table, rows, words), name)
    if _extra_cells(rows, form) == "separator" and table.column(-1).null_count == table.num_rows:
        table = table.remove_column(table.num_columns - 1)
    if form.decimal == form.separator:
        table = _with_quoted_decimals(table, form.decimal, set(text))
    _check_separator(table, name, form)
    for field in table.schema:
        if pa.types.is_binary(field.type):
            raise ValueError(
                f"{name}: column {field.name!r} holds bytes that are not UTF-8; leave out --encoding, or say another"
            )
    if doubt:
        _doubt_header(table, name, rows, starts, form)
    return table


def _with_words(
    table: pa.Table,
    read: Callable[[], pa.Table],
    options: Any,
    words: list[str],
    kept: Mapping[str, Iterable[Any]] | tuple[str, ...],
    proved: set[str],
    name: str,
) -> pa.Table:
    """The table in which words for missing cells that are probably levels are text; a warning names them."""
    # The levels or words in ``kept`` decide first; the words in ``proved`` also stand among numbers.
    import pyarrow as pa
    import pyarrow.compute as pc

    names = [field.name for field in table.schema if pa.types.is_string(field.type) and table[field.name].null_count]
    if not names:
        return table
    options.column_types, options.include_columns = dict.fromkeys(names, pa.string()), names
    texts, said = read(), dict[tuple[str, bool], list[str]]()
    for column in names:
        counts = {one["values"]: one["counts"] for one in texts[column].value_counts().to_pylist()}
        counts.pop(None, None)
        if isinstance(kept, Mapping):
            levels = {word for word in words if any(word == str(level).strip() for level in kept.get(column, ()))}
        elif 2 * sum(any(map(str.isdigit, text)) for text in counts) > len(counts):
            levels = set(kept).intersection(counts)  # numbers or dates with a sign, or codes: nothing else is a level
        else:
            levels = _levels_among(words, counts, proved).union(kept)
            for word, n in counts.items():
                if word not in kept and (word in levels or (word in words and n >= _NOTED * sum(counts.values()))):
                    where = f"{column!r} ({n:,} of {sum(counts.values()):,} cells)"
                    said.setdefault((word, word in levels), []).append(where)
        if levels:
            gone = pc.is_in(texts[column], pa.array([word for word in words if word not in levels], pa.string()))
            cells = pc.if_else(gone, pa.scalar(None, pa.string()), texts[column])
            table = table.set_column(table.column_names.index(column), column, cells)
    for (word, is_level), places in said.items():
        columns = f"column{'s' if len(places) > 1 else ''} {', '.join(places)}"
        means = f"is taken as a level of {columns}" if is_level else f"is taken as missing in {columns}"
        warn(f"{name}: the text {word!r} {means}; --na {word} makes it missing, --keep {word} a level", UserWarning)
    return table


def _among_numbers(table: pa.Table, rows: list[list[str]], words: list[str]) -> set[str]:
    """Words that stand in columns of numbers, in the first rows."""
    import pyarrow as pa

    numbers = [j for j, field in enumerate(table.schema) if not pa.types.is_string(field.type)]
    return {row[j] for row in rows[1:] if len(row) == table.num_columns for j in numbers}.intersection(words)


def _levels_among(words: list[str], counts: dict[str, int], proved: set[str]) -> set[str]:
    """Words for missing cells that rather are levels of a column with these texts, which occur so often each."""
    others, n = [text.strip() for text in counts if text not in words], sum(counts.values())
    levels = set()
    for word in set(counts).intersection(_LEVEL_WORDS, words):
        is_alike = len(others) > 2 and all(len(text) == len(word) and text.isalpha() for text in (*others, word))
        # no program but Python itself writes None for missing cells, and then among numbers, too
        if counts[word] > _LARGE * n or is_alike or (word == "None" and word not in proved):
            levels.add(word)
    return levels if others else set()


def _first_rows(text: str, form: CsvForm, is_cut: bool) -> tuple[list[list[str]], list[int]]:
    """The first rows of a text, as lists of cells, the names among them; and the number of lines above each."""
    found = lines.reader(io.StringIO(text, newline=""), delimiter=form.separator)
    rows: list[list[str]] = []
    starts: list[int] = []
    try:
        for number, row in enumerate(found):
            if number >= form.skip and row:
                rows.append(row)
                starts.append(number)
    except lines.Error:
        return [], []
    return (rows[:-1] if is_cut and len(rows) > 1 else rows), starts


def _extra_cells(rows: list[list[str]], form: CsvForm) -> str:
    """Why the first lines have one cell more than there are names, or one less; empty if they do not."""
    # A ``separator`` ends each line, or the ``names`` of rows, which R writes, begin it; or one ends the ``first``
    # line.
    if not form.has_names or len(rows) < 2 or _separator_hint(rows, form):
        return ""
    if not rows[0][-1] and all(len(row) == len(rows[0]) - 1 for row in rows[1:]):
        return "first"
    if not all(len(row) == len(rows[0]) + 1 for row in rows[1:]):
        return ""
    if not any(row[-1] for row in rows[1:]):
        return "separator"
    return "names" if len(rows[0]) > 1 and len({row[0] for row in rows[1:]}) == len(rows) - 1 else ""


def _names_of(rows: list[list[str]], form: CsvForm) -> list[str]:
    """Names of the columns that the first line does not give as they are; none if it does."""
    if not form.has_names or not rows:
        return [f"x{j}" for j in range(len(rows[0]))] if rows else []
    extra = _extra_cells(rows, form)
    names = {"separator": [*rows[0], ""], "names": ["rownames", *rows[0]], "first": rows[0][:-1]}
    return names[extra] if extra else []


def _as_plain_lines(source: Any, form: CsvForm) -> tuple[Any, CsvForm]:
    """The source without comments, and with tabs for spaces between cells; in memory, where there are any."""
    import pyarrow as pa

    if not form.comment and form.separator != " ":
        return source, form
    source.seek(0)
    text, form = _as_plain_text(source.read().decode(form.encoding), form)
    return pa.BufferReader(text.encode()), form._replace(encoding="utf-8")


def _as_plain_text(text: str, form: CsvForm) -> tuple[str, CsvForm]:
    """`_as_plain_lines` of a text."""
    if form.comment:
        text = re.sub(rf"^{re.escape(form.comment)}.*(\r?\n|\Z)", "", text, flags=re.MULTILINE)
    if form.separator == " ":
        text = re.sub(r"^[ \t]+|[ \t]+(?=\r?$)", "", text, flags=re.MULTILINE)
        text = re.sub(r'("(?:[^"]|"")*")|[ \t]+', lambda match: match[1] or "\t", text)
        form = form._replace(separator="\t")
    return text, form._replace(comment="")


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
    """The encoding of a text: by its first bytes, else UTF-8, else Windows-1252 with a warning."""
    source.seek(0)
    head = source.read(4096)
    for sign, what in _NO_TEXT.items():
        if head.startswith(sign):
            raise ValueError(f"{name} {what}")
    wide = _wide_encoding(head)
    if wide:
        return wide
    if b"\0" in head:
        raise ValueError(f"{name} is no text file: it has zero bytes; if it is one, say --encoding")
    word = _not_utf8(source)
    if word is None:
        return "utf-8"
    source.seek(0)
    data = source.read(_SAMPLE)
    n_high, valid = len(_HIGH.findall(data)), b"".join(_UTF8.findall(data))
    if len(valid) > 0.7 * n_high:
        line = data[: data.find(word)].count(b"\n") + 1
        raise ValueError(
            f"{name}: its text is UTF-8, but {word!r} in line {line} is not; correct it, or say --encoding cp1252, "
            "which reads all other such letters wrongly"
        )
    guess = word.decode("cp1252", "replace")
    source.seek(0)
    if any(_NOT_CP1252.search(chunk) for chunk in iter(lambda: source.read(_CHUNK), b"")) or _is_garbled(data):
        others = [(encoding, _decoded_word(word, encoding)) for encoding in _OTHER_ENCODINGS]
        shown = ", ".join(f"{encoding} reads {text!r}" for encoding, text in others if text) or "such as cp437"
        raise ValueError(f"{name}: its text is neither UTF-8 nor Windows-1252; say --encoding: {shown}")
    if doubt:
        warn(
            f"{name}: its text is not UTF-8 and is read as Windows-1252, such as {guess!r}; if that is wrong, "
            "say --encoding",
            UserWarning,
        )
    return "cp1252"


def _is_garbled(data: bytes) -> bool:
    """Whether a text is in another encoding than Windows-1252."""
    # Then words would be made of accented letters, or opening quotation marks would stand behind letters.
    for encoding in _ASIAN_ENCODINGS:
        try:
            text = codecs.getincrementaldecoder(encoding)().decode(data)
        except UnicodeDecodeError:
            continue
        signs = re.findall(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]+", text)
        if 2 * sum(len(run) for run in signs if len(run) > 1) > sum(map(len, signs)):
            return True
    text = data.decode("cp1252", "replace")
    words = [word for word in re.findall(r"[^\W\d_]{3,}", text) if not word.isascii()]
    n_accents = sum(not letter.isascii() for word in words for letter in word)
    return 2 * n_accents > sum(map(len, words)) or re.search(r"[^\W\d_][‚„†ˆ]", text) is not None


def _decoded_word(word: bytes, encoding: str) -> str:
    """A word in an encoding, empty if it holds no letters alone there."""
    try:
        text = word.decode(encoding)
    except UnicodeDecodeError:
        return ""
    return text if text.isalpha() else ""


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


def is_unicode(source: BinaryIO) -> bool:
    """Whether a text that is read from its start is UTF-8, UTF-16 or UTF-32."""
    source.seek(0)
    return bool(_wide_encoding(source.read(4096))) or _not_utf8(source) is None


def _wide_encoding(head: bytes) -> str:
    """UTF-16 or UTF-32, by the first bytes of a text; else empty."""
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


def found_form(head: bytes, form: CsvForm, otherwise: str) -> tuple[CsvForm, list[str]]:
    """The form with the separator, byte order mark and line ends of a file's first bytes; and its column names."""
    # The separator gives all first lines the same number of cells, the largest. Spaces come last, and only if at least
    # half of the columns then hold numbers.
    encoding = form.encoding or _wide_encoding(head) or "utf-8"  # separators are ASCII
    if head.startswith(codecs.BOM_UTF8) and encoding.lower() in ("utf-8", "utf8"):
        form = form._replace(encoding="utf-8-sig")
    text = codecs.getincrementaldecoder(encoding)("replace").decode(head)
    if encoding == "utf-8" and "\ufffd" in text[:-1]:  # names in Windows-1252, by which columns are matched
        text = head.decode("cp1252", "replace")
    form = form._replace(line_end="\r\n" if "\r\n" in text else "\n")
    said = re.match(r"\ufeff?sep=(.)\r?\n", text)  # as Excel writes, and reads
    if said and not form.separator:
        form = form._replace(separator=said[1], skip=form.skip + 1)
    form = form if form.separator else _with_separator(text, form, otherwise, len(head) >= HEAD_BYTES)
    plain, shown = _as_plain_text(text.removeprefix("\ufeff"), form)
    rows = _first_rows(plain, shown, len(head) >= HEAD_BYTES)[0]
    names = _names_of(rows, form) or (rows[0] if rows else [])
    cells = zip(*(row for row in rows[form.has_names :] if len(row) == len(names)), strict=True)
    own = numbered(names, doubt=False)
    found = {name: {_pattern(cell, form) for cell in of} for name, of in zip(own, cells, strict=False)}
    patterns = {name: pattern for name, of in found.items() if (pattern := _common_pattern(of - {""}))}
    given = {new: old for new, old in zip(own, names, strict=True) if new != old}
    return form._replace(patterns=patterns, names=given), own


def _common_pattern(patterns: set[str]) -> str:
    """The pattern of cells with these ones; empty if there is none, or it is the usual one."""
    bare = {pattern.lstrip("+-0") for pattern in patterns}
    pattern = bare.pop() if len(bare) == 1 else "no"
    has_plus = any(one.startswith("+") for one in patterns)
    if pattern == "no" or (pattern in patterns if has_plus else pattern == "d"):
        return ""
    return f"+{pattern}" if has_plus else pattern


def _pattern(cell: str, form: CsvForm) -> str:
    """How a cell is written: ``.2f``, ``TRUE``, ``%Y-%m-%dT%H:%M`` and the like; empty if missing, else ``no``."""
    # Of a number with a sign, the sign comes first, and of one that is zero without a sign, a 0.
    cell = cell.strip()
    if cell in form.na:
        return ""
    if cell in ("TRUE", "FALSE", "True", "False"):
        return "TRUE" if cell.isupper() else "True"
    number = re.fullmatch(rf"([+-]?)\d+(?:{re.escape(form.decimal)}(\d{{1,9}}))?(?:([eE])[+-]\d\d)?", cell)
    if number:
        sign, decimals, power = number.groups()
        sign = sign or ("" if re.search("[1-9]", cell) else "0")
        return f"{sign}.{len(decimals or '')}{power or 'f'}" if decimals or power else f"{sign}d"
    moment = re.fullmatch(r"\d{4}-\d\d-\d\d([T ])\d\d:\d\d(:\d\d)?(Z?|[+-]\d\d:\d\d)", cell)
    return f"%Y-%m-%d{moment[1]}%H:%M{':%S' if moment[2] else ''}{moment[3]}" if moment else "no"


def _with_separator(text: str, form: CsvForm, otherwise: str, is_cut: bool) -> CsvForm:
    """The form with the separator of the first lines."""
    best, most = form._replace(separator=otherwise), 1
    for separator in _SEPARATORS:
        if form.decimal == separator or (separator == " " and most > 1):
            continue
        trial = form._replace(separator=separator)
        plain, tried = _as_plain_text(text, trial)
        rows = _first_rows(plain, tried, is_cut)[0][:50]
        n_cells = max(map(len, rows), default=0)
        is_table = all(len(row) == n_cells for row in rows) or (_extra_cells(rows, trial) and len(rows[0]) > 1)
        if is_table and n_cells > most and (separator != " " or _has_numbers(rows, form.has_names)):
            best, most = trial, n_cells
        below = rows[_first_full(rows) :]
        if (
            most == 1
            and separator != " "
            and n_cells > 2
            and len(rows) > len(below) > 2
            and len(set(map(len, below))) == 1
        ):
            best = trial  # below a title, of which the user hears then
    if most == 1 and _DECIMAL_COMMAS.fullmatch(text):  # a single column, of which a comma is no separator
        return form._replace(separator=";")
    return best


def _has_numbers(rows: list[list[str]], has_names: bool) -> bool:
    """Whether at least half of the columns hold numbers, below a name that is none."""
    cells = list(zip(*(row[-len(rows[0]) :] for row in rows), strict=True))
    are_numbers = [not (has_names and is_number(of[0])) and all(map(is_number, of[has_names:])) for of in cells]
    return len(rows) > 2 and 2 * sum(are_numbers) >= len(cells)


def write_csv(table: pa.Table, file: BinaryIO, form: CsvForm, with_names: bool = True) -> None:
    """Write a table in a form."""
    import pyarrow as pa

    texts = [_texts_of(table[name], form, name) for name in table.column_names]
    write_csv_texts(pa.Table.from_arrays(texts, names=table.column_names), file, form, with_names)


def _texts_of(cells: pa.ChunkedArray, form: CsvForm, name: str) -> pa.ChunkedArray:
    """Cells as texts, in the pattern of their column where all of them fit it, and with the decimal sign of a form."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = cells.type.value_type if pa.types.is_dictionary(cells.type) else cells.type
    is_number = pa.types.is_floating(kind) or pa.types.is_integer(kind)
    cells, pattern = cells.cast(kind), form.patterns.get(name, "")
    if pa.types.is_duration(kind):
        from .times import PER_SECOND

        cells = pc.divide(cells.cast(pa.int64()).cast(pa.float64()), float(PER_SECOND[kind.unit]))
    try:
        texts = cells.cast(pa.string())
    except pa.ArrowNotImplementedError:  # of lists and the like, which the joint leaves out
        return pa.chunked_array([pa.array([None if cell is None else str(cell) for cell in cells.to_pylist()])])
    if pa.types.is_boolean(kind) and pattern in ("TRUE", "True"):
        texts = pc.utf8_upper(texts) if pattern == "TRUE" else pc.utf8_capitalize(texts)
    elif pa.types.is_timestamp(kind) and pattern[:1] == "%":
        local, zone, _ = re.split(r"(Z|[+-]\d\d:\d\d)?$", pattern, maxsplit=1)
        shift = dt.datetime.fromisoformat(f"2000-01-01T00:00{zone or ''}").utcoffset() or dt.timedelta(0)
        moments = pc.add(cells.cast(pa.timestamp(kind.unit)), pa.scalar(shift, pa.duration(kind.unit)))
        of_pattern = pc.strftime(moments.cast(pa.timestamp("s"), safe=False), local)
        if kind.tz == (zone and "UTC") and pc.strptime(of_pattern, local, kind.unit).equals(moments):
            texts = pc.binary_join_element_wise(of_pattern, zone or "", "")
    elif pa.types.is_floating(kind) and pattern.endswith("f"):
        decimals = int(pattern.lstrip("+")[1:-1])
        if pc.all(pc.less(pc.abs(cells), 1e15)).as_py() and pc.round(cells, decimals).equals(cells):
            texts = cells.cast(pa.decimal128(38, decimals), safe=False).cast(pa.string())
    elif is_number and pattern[-1:] in ("e", "E"):
        texts = pa.chunked_array([[None if x is None else f"{x:{pattern.lstrip('+')}}" for x in cells.to_pylist()]])
    if is_number and pattern[:1] == "+":
        texts = pc.if_else(pc.greater(cells, 0), pc.binary_join_element_wise("+", texts, ""), texts)
    if form.decimal != "." and (pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        texts = pc.replace_substring(texts, ".", form.decimal)
    return texts


def write_csv_texts(table: pa.Table, file: BinaryIO, form: CsvForm, with_names: bool = True) -> None:
    """Write a table of texts as they are, in quotes only where they need them; what is missing is empty."""
    import pyarrow as pa
    from pyarrow import csv

    out = io.StringIO(newline="")
    writer = lines.writer(out, delimiter=form.separator, lineterminator=form.line_end)
    if with_names:
        file.write(codecs.BOM_UTF8 if form.encoding == "utf-8-sig" else b"")
        writer.writerow(table.column_names if form.has_names else ())
        file.write(out.getvalue().encode() if form.has_names else b"")
    blank = "NA" if form.separator == " " else ""
    unquoted = csv.WriteOptions(include_header=False, delimiter=form.separator, quoting_style="none")
    for batch in table.to_batches(max_chunksize=100_000):
        plain = io.BytesIO()
        try:
            if blank or table.num_columns == 1:  # whose missing cells need quotes
                raise pa.ArrowInvalid
            csv.write_csv(batch, plain, unquoted)
            file.write(plain.getvalue().replace(b"\n", form.line_end.encode()))
        except pa.ArrowInvalid:
            out.seek(0)
            out.truncate()
            cells = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            writer.writerows([blank if cell is None else cell for cell in row] for row in cells)
            file.write(out.getvalue().encode())


def keep_texts(filled: pa.Table, known: pa.Table, form: CsvForm) -> pa.Table:
    """A table of texts: known cells as they were written, the others from the filled table (n rows)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = {}
    for name in filled.column_names:
        cells = filled[name]
        texts = _texts_of(cells, form, name)
        if name in known.column_names:
            if pa.types.is_boolean(cells.type):
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
    """A ValueError if the first bytes are those of UTF-16 and the form has another encoding."""
    found = _wide_encoding(head)
    wide = form.encoding.lower().replace("_", "-").startswith(("utf-16", "utf-32", "utf16", "utf32"))
    if found and not wide:
        raise ValueError(
            f"{name}: its text looks like {found.upper()}, expected {form.encoding}; say --encoding {found}"
        )


def _cells_hint(
    problem: str, rows: list[list[str]], starts: list[int], separator: str, has_comments: bool
) -> tuple[str, dict[str, Any]]:
    """What to do about lines with other numbers of cells, from the message of the parser, and the first rows."""
    # With the fields of `CsvForm` that do it, if they do.
    counts = re.search(r"Expected (\d+) columns?, got (\d+): (.*)", problem)
    if counts is None:
        return "", {}
    for line in (separator.join(rows[0]) if rows else "", counts[3]):
        mark = re.match(r"#|//|%|;", line)
        if mark and mark[0] != separator and not has_comments:
            return f"if lines that start so are comments, say --comment '{mark[0]}'", {"comment": mark[0]}
    if first := _first_full(rows):
        n = starts[first]
        return f"if the first lines are a title, say --skip {n}, so that the names of the columns come first", {
            "skip": n
        }
    if int(counts[2]) > int(counts[1]):
        return "a line has more cells than the first one: put texts that contain the separator in quotes", {}
    return "a line has fewer cells than the first one: add the cells that are missing, or remove the line", {}


def _first_full(rows: list[list[str]]) -> int:
    """The number of rows above the first one with as many cells as most rows, none of them empty."""
    usual = max(Counter(map(len, rows)).items(), key=lambda one: one[1])[0] if rows else 0
    if not rows or len(rows[0]) > usual:
        return 0
    return next((k for k, row in enumerate(rows[:-1]) if len(row) == usual and all(row)), 0)


def _separator_hint(rows: list[list[str]], form: CsvForm) -> str:
    """The hint if the header has more of another separator than of the one asked for."""
    header = form.separator.join(rows[0]) if rows else ""
    for separator, said in _SEPARATORS.items():
        if separator not in (form.separator, " ") and header.count(separator) > header.count(form.separator):
            return f"if its cells are separated by {said}, say --sep '{_SHOWN.get(separator, separator)}'"
    return ""


def _check_separator(table: pa.Table, name: str, form: CsvForm) -> None:
    """A ValueError if the one column of a CSV table looks like several, in its name and its first row."""
    if table.num_columns != 1:
        return
    header = table.column_names[0]
    first = str(table.column(0)[0].as_py()) if table.num_rows else header
    for separator, said in _SEPARATORS.items():
        is_other = separator not in (form.separator, " ")
        if is_other and separator in header and first.count(separator) == header.count(separator):
            raise ValueError(
                f"{name}: its one column {header!r} looks like several, separated by {said}; "
                f"say --sep '{_SHOWN.get(separator, separator)}'"
            )


def _doubt_header(table: pa.Table, name: str, rows: list[list[str]], starts: list[int], form: CsvForm) -> None:
    """Warn if most names of columns look like values of theirs, or if more lines of names follow the first."""
    import pyarrow as pa

    if not form.has_names:
        return
    if _extra_cells(rows, form) == "names":
        warn(f"{name}: each line has one cell more than the first one; the first cells are its 'rownames'", UserWarning)
    nameless = sum(re.fullmatch(r"(_\d+)?", field.name) is not None for field in table.schema)
    if 2 * nameless > table.num_columns:
        first = _first_full(rows)
        n_lines = starts[first] if first else starts[0] + 1
        problem = f"{name}: the first line names {table.num_columns - nameless} of {table.num_columns} columns"
        hint = f"if it is a title, say --skip {n_lines}, so that the names of the columns come first"
        if first and not any(map(is_number, rows[first])):
            raise UnlikeTable(problem, hint, {"skip": n_lines})
        warn(f"{problem}; {hint}", UserWarning)
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
            "if it holds none, say --header none",
            UserWarning,
        )
    _doubt_more_names(name, rows)


def _doubt_more_names(name: str, rows: list[list[str]]) -> None:
    """Warn if one or two lines below the names are texts in most columns that hold numbers otherwise."""
    cells = list(zip(*rows, strict=True)) if len(set(map(len, rows))) == 1 and len(rows) > 5 else []
    for n in (2, 1):
        odd = [
            column[1]
            for column in cells
            if not is_number(column[n] or "0")
            and sum(map(is_number, column[n + 1 :])) > 0.5 * len(column[n + 1 :])
            and all(is_number(cell or "0") or cell in NA for cell in column[n + 1 :])
        ]
        if len(odd) > 1:
            which = "line 2 holds" if n == 1 else "lines 2 and 3 hold"
            warn(
                f"{name}: {which} no numbers in {len(odd)} columns that have numbers below, such as {odd[0]!r}; if "
                f"these are more names or units, remove what is not needed of the first {n + 1} lines",
                UserWarning,
            )
            return


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


def _spellings(form: CsvForm) -> list[str]:
    """What stands for missing cells, whole numbers such as -999 also with zeros behind a decimal point."""
    # An infinite number stands for all of them, however they are written.
    whole = [word for word in form.na if re.fullmatch(r"-?\d+", word)]
    infinite = _INFINITE if any(word.lower() in ("inf", "infinity") for word in form.na) else ()
    zeros = (f"{word}{form.decimal}{'0' * k}" for word in whole for k in range(1, _MOST_ZEROS + 1))
    return [*form.na, *infinite, *zeros]


def _is_count(names: list[str]) -> bool:
    """Whether names are whole numbers one after the other, such as years: good names for columns."""
    if not all(re.fullmatch(r"-?[0-9]{1,9}", name) for name in names):
        return False
    numbers = [int(name) for name in names]
    return len(numbers) > 1 and numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def numbered(given: Sequence[str], name: str = "", doubt: bool = True) -> list[str]:
    """Names of columns, with a number behind each repeated one, such as ``a_2``; a warning names them."""
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
