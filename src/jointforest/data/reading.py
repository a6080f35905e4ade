"""How a table was read: kinds of columns, what was converted or set aside and why, what looks wrong, and rules."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from ..cards.html import Html, table_html, view_html, words
from .rules.rule import Rule, enough_rows
from .schema import Column, Schema
from .table_files import about_column
from .times import is_clock, is_span

_CODE_NAME = re.compile(r"(^|[^a-z])(zip|zipcode|postcode|postal|plz|fips|naics|sic|icd|isbn|ean|code)([^a-z]|$)")
_LISTED = 3
"""Levels that a note names."""


@dataclass(frozen=True)
class ColumnReading:
    """How one column was read.

    kind : str. One of `data.schema.KINDS`; ``set aside`` if the column takes no part in the model.
    about : str. Its levels or its range.
    notes : tuple of str. What was converted or set aside and why, and what looks wrong; most columns have none.
    """

    name: str
    kind: str
    about: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Reading:
    """How a table was read; prints as a table, and has an HTML view in notebooks.

    columns : tuple of ColumnReading. In the order of the table.
    rules : tuple of Rule. Rules between columns that all rows obey, or nearly all.

    Examples
    --------
    >>> import jointforest as jf
    >>> joint = jf.JointTree(random_state=0).fit(jf.datasets.load_penguins()).joint_
    >>> joint.reading.columns[0].kind, joint.reading.notice
    ('categorical', '')
    """

    columns: tuple[ColumnReading, ...]
    rules: tuple[Rule, ...] = ()

    @property
    def notice(self) -> str:
        """The notes and the rules, a line each; empty if every column was taken as it is and there is no rule."""
        notes = [f"column {column.name!r}: {note}" for column in self.columns for note in column.notes]
        return "\n".join([*notes, *(f"rule: {in_words(rule)}" for rule in self.rules)])

    def __str__(self) -> str:
        names = [_visible(column.name) for column in self.columns]
        width = max(map(len, names), default=0)
        lines = []
        for name, column in zip(names, self.columns, strict=True):
            lines.append(f"{name:<{width}}  {column.kind:<11}  {column.about}".rstrip())
            lines += [f"{'':<{width}}  {'':<11}  note: {note}" for note in column.notes]
        lines += [f"rule: {in_words(rule)}" for rule in self.rules]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [
            (c.name, c.kind, Html("<br>".join([words(c.about), *(f"<i>{words(note)}</i>" for note in c.notes)])))
            for c in self.columns
        ]
        n = sum(len(c.notes) for c in self.columns)
        note = f", {n} {'note' if n == 1 else 'notes'}" if n else ""
        title = f"How the table was read: {len(self.columns)} columns{note}"
        tables = [table_html(rows, ("column", "kind", "levels or range"), wraps=True)]
        if self.rules:
            told = [(str(rule), f"{rule.rows:,}", said_of(rule)) for rule in self.rules]
            tables.append(table_html(told, ("rule between columns", "rows", ""), wraps=True))
        return view_html(title, [], tables)


def reading_of(schema: Schema) -> Reading:
    """How the table of a schema was read."""
    columns = tuple(_reading(column, schema.reasons_aside.get(column.name)) for column in schema.all_columns.columns)
    return Reading(columns, schema.rules)


def in_words(rule: Rule) -> str:
    """A rule, how many rows support it, and whether it is enforced."""
    return f"{rule} ({rule.rows:,} rows; {said_of(rule)})"


def said_of(rule: Rule) -> str:
    """Whether a rule is enforced, and if not why."""
    if rule.exceptions:
        return f"{rule.exceptions:,} {'exception' if rule.exceptions == 1 else 'exceptions'}, not enforced"
    if not rule.is_enforced and rule.rows < enough_rows(rule):
        return "few rows, not enforced"
    return "enforced" if rule.is_enforced else "not enforced"


def _reading(column: Column, why: str | None) -> ColumnReading:
    if why is not None:
        notes = (f"set aside, because it {why}", *([column.why_text] if column.why_text else []))
        return ColumnReading(column.name, "set aside", "", notes)
    return ColumnReading(column.name, column.kind, _about(column), tuple(_notes(column)))


def _about(column: Column) -> str:
    """The levels or the range of a column, in the form in which the table writes it."""
    if column.is_categorical:
        return about_column({"levels": list(column.levels)})
    ends = (column.minimum, column.maximum)
    if column.written is not None:
        return " to ".join(column.written.write(end + column.zero) for end in ends)
    if column.text(column.minimum):
        return " to ".join(map(column.text, ends))
    if column.kind == "datetime":
        return " to ".join(str(column.from_number(end)) for end in ends)
    low, high = map(column.from_number, ends)
    return about_column({"step": column.step, "atoms": list(column.atoms), "minimum": low, "maximum": high})


def _notes(column: Column) -> Iterator[str]:
    """What a user should know of how a column was read."""
    if is_span(column.dtype):
        yield f"{'times of day' if is_clock(column.dtype) else 'durations'}, counted in seconds"
    if column.dtype.startswith("period"):
        yield "periods, read as their first moments"
    if column.written is not None and column.written.sort == "tick":
        yield (
            f"{column.written.in_words}; if missing cells are unknown, say "
            f"kinds={{{column.name!r}: 'categorical'}}, or --kinds {column.name}=categorical"
        )
    elif column.written is not None:
        such = f", such as {column.written.example!r}" if column.n_ranges < column.n_observed else ""  # a cell has
        yield f"text read as {column.written.in_words}{such}"
        if column.written.exceptions:
            yield f"missing, as of another form: {_named(column.written.exceptions)}"
    if column.n_ranges:
        flag = f", by column {column.censored.flag!r}" if column.censored else ""
        yield f"{column.n_ranges:,} of {column.n_observed:,} known cells are ranges{flag}"
    yield from filter(None, (column.why_text, column.remark))
    texts = [level for level in column.levels if isinstance(level, str)]
    folded = Counter(" ".join(text.split()).casefold() for text in texts)
    alike = [text for text in texts if folded[" ".join(text.split()).casefold()] > 1]
    if alike:
        yield f"levels that differ by case or spaces only: {_named(alike)}"
    if column.n_observed > 1 and (len(column.levels) == 1 or column.minimum == column.maximum):
        yield "every known cell has the same value; the column stays in the model, and says nothing of others"
    if column.kind == "integer" and _CODE_NAME.search(column.name.lower()):
        yield (
            "whole numbers, which may be codes by the name; to learn them as levels, say "
            f"kinds={{{column.name!r}: 'categorical'}}, or --kinds {column.name}=categorical"
        )


def _visible(name: str) -> str:
    """The name of a column; in quotes if it is empty or has spaces at its ends, which would be invisible."""
    return name if name and name == name.strip() else repr(name)


def _named(texts: tuple[str, ...] | list[str]) -> str:
    return ", ".join(map(repr, texts[:_LISTED])) + (f" and {len(texts) - _LISTED} more" if len(texts) > _LISTED else "")
