"""The result of `fidelity`, as numbers, a page, a table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from .. import cards
from ..cards import Html, signed
from ..data.frames import from_cells
from .columns_and_pairs import ComparedPairs, Marginals
from .held_out import Copies, Coverage, HeldOut, Membership
from .statements import Statements
from .two_sample_test import ToldApart

# ---- The figures of `fidelity`, as plain data.

FIGURES = ("marginals", "pairs", "told_apart", "held_out", "coverage", "copies", "membership", "statements")
"""Their names, as `fidelity` takes them."""


@dataclass(frozen=True)
class Figures:
    """All figures: see `result.Fidelity`."""

    of: str
    n_table: int
    n_rows: int
    n_held_out: int
    library: str
    notes: tuple[str, ...]
    statements: Statements | None = None
    marginals: Marginals | None = None
    marginals_held_out: Marginals | None = None
    pairs: ComparedPairs | None = None
    pairs_held_out: ComparedPairs | None = None
    told_apart: ToldApart | None = None
    told_apart_held_out: ToldApart | None = None
    told_apart_as_many: ToldApart | None = None
    held_out: HeldOut | None = None
    coverage: Coverage | None = None
    copies: Copies | None = None
    membership: Membership | None = None


# ---- A `Fidelity` as text and as HTML: the same lines, the headline first.

WORST = 5
"""Columns and pairs that are named."""

_Line = tuple[str, str, float | None]
Section = tuple[str, list[_Line]]
"""A title, and lines of a name, a value as text, and as a share of 1 where it is one."""


def text(f: Figures) -> str:
    """The page as text."""
    lines = headlines(f)
    for title, rows in sections(f):
        width = max(len(name) for name, _ in rows)
        lines += ["", title, *(f"  {name:<{width}}  {value}".rstrip() for name, value in rows)]
    if f.notes:
        lines += ["", *(f"({note})" for note in f.notes)]
    return "\n".join(lines)


TOLD = (0.9, 0.7, 0.4)
"""Scores of the two-sample test from which on rows are very good, good and fair."""
CLOSE = (0.97, 0.93, 0.85)
"""Mean shapes and trends from which on they are very good, good and fair."""


def html(f: Figures) -> str:
    """The page as a self-contained piece of HTML, in the colours of what is around it."""
    first, *others = headlines(f)
    tiles = []
    for title, rows in sections_with_shares(f):
        lines = [
            (cards.shortened_text(name), "" if share is None else Html(cards.bar_svg(share)), value)
            for name, value, share in rows
        ]
        tiles.append(cards.card(title, "", cards.table_html(lines, wraps=True)))
    notes = [cards.soft(f"({note})") for note in f.notes]
    scale = "The full width of a bar is 1, or 100%."
    return cards.view_html(first, others, [cards.grid(tiles, 400), *(f"<p>{note}</p>" for note in notes)], scale)


def verdict(score: float, steps: tuple[float, float, float]) -> str:
    """A score in words, by the scores from which on it is very good, good and fair."""
    said = ("very good", "good", "fair: look at what differs most before you rely on it")
    named = (words for words, step in zip(said, steps, strict=True) if score >= step)
    return next(named, "poor: do not use these rows in place of the table's; a larger budget may help")


def headlines(f: Figures) -> list[str]:
    """Score, score against held-out rows, shape and trend: as many lines as there are."""
    whose = "the joint's rows" if f.of == "joint" else "these rows"
    lines = []
    if f.told_apart is not None:
        test = f.told_apart
        lines.append(
            f"Two-sample test of {whose} and the table's ({test.classifier}): score {test.score:.2f} "
            f"(1 = cannot be told apart, 0 = always), {verdict(test.score, TOLD)}"
        )
    if f.told_apart_held_out is not None:
        test, same = f.told_apart_held_out, f.told_apart_as_many
        beside = "" if same is None else f"; with as many rows of the table: {same.score:.2f}"
        lines.append(f"The same with {test.n_rows:,} held-out rows: score {test.score:.2f}{beside}")
    means = []
    if f.marginals is not None and not math.isnan(f.marginals.shape):
        new = None if f.marginals_held_out is None else f.marginals_held_out.shape
        means.append(f"shape of columns {f.marginals.shape:.3f}{_beside(new, '{:.3f}')}")
    if f.pairs is not None and not math.isnan(f.pairs.trend):
        new = None if f.pairs_held_out is None else f.pairs_held_out.trend
        means.append(f"trend of pairs {f.pairs.trend:.3f}{_beside(new, '{:.3f}')}")
    if means:
        figures = [f.marginals.shape if f.marginals else math.nan, f.pairs.trend if f.pairs else math.nan]
        worst = min(figure for figure in figures if not math.isnan(figure))
        said = ", ".join(means)
        lines.append(f"{said[0].upper()}{said[1:]} (1 = the same as in the table), {verdict(worst, CLOSE)}")
    if f.statements is not None:
        lines.append(f"{f.statements.in_words}; {verdict(1.0 - f.statements.off, CLOSE)}")
    return lines or [f"{f.n_rows:,} rows beside a table of {f.n_table:,}"]


def sections(f: Figures) -> list[tuple[str, list[tuple[str, str]]]]:
    """Titles, and lines of a name and a value."""
    return [(title, [(name, value) for name, value, _ in rows]) for title, rows in sections_with_shares(f)]


def sections_with_shares(f: Figures) -> list[Section]:
    """Titles, and lines of a name, a value, and the value as a share of 1 where it is one."""
    listed: list[Section] = []
    if f.statements is not None and f.statements.wrong:
        of = f.statements.wrong[:WORST]
        listed.append(("Statements that are off by more than chance", [(one.text, one.beside, one.off) for one in of]))
    if f.marginals is not None and f.marginals.distance:
        new = {} if f.marginals_held_out is None else f.marginals_held_out.distance
        worst = list(f.marginals.distance.items())[:WORST]
        lines: list[_Line] = [(name, f"{value:.3f}" + _beside(new.get(name), "{:.3f}"), value) for name, value in worst]
        listed.append(("Columns that differ most (distance)", lines))
        gaps = sorted(f.marginals.missing.items(), key=lambda item: -abs(item[1]))[:WORST]
        if gaps:
            listed.append(
                ("Missing cells, share more than in the table", [(name, f"{value:+.3f}", None) for name, value in gaps])
            )
    if f.pairs is not None and f.pairs.similarity:
        listed.append(("Pairs that differ most (similarity)", _worst_pairs(f)))
    if f.told_apart is not None and any(f.told_apart.columns.values()):
        most = list(f.told_apart.columns.items())[:WORST]
        used: list[_Line] = [(name, f"{share:.0%}", share) for name, share in most if share > 0.0]
        listed.append(("What the classifier used", used))
    return listed + _held_out(f)


def _worst_pairs(f: Figures) -> list[_Line]:
    """The worst pairs; of numbers both correlations."""
    assert f.pairs is not None
    new = {} if f.pairs_held_out is None else f.pairs_held_out.similarity
    lines: list[_Line] = []
    for names, value in list(f.pairs.similarity.items())[:WORST]:
        both = f.pairs.correlation.get(names)
        more = "" if both is None else f"  correlation {both[0]:+.2f} in the table, {both[1]:+.2f} in the rows"
        lines.append((", ".join(names), f"{value:.3f}{_beside(new.get(names), '{:.3f}')}{more}", value))
    return lines


def _held_out(f: Figures) -> list[Section]:
    """Density, intervals, copies and membership."""
    listed: list[Section] = []
    if f.held_out is not None:
        h = f.held_out
        rows: list[_Line] = [("the joint", signed(f"{h.log_density:.3f}"), None)]
        rows.append(("independent columns", signed(f"{h.independent:.3f}"), None))
        if h.impossible > 0.0:
            rows.append(("rows of density 0", f"{h.impossible:.2%}", h.impossible))
        listed.append(("Held-out rows: mean log-density (higher is better)", rows))
    if f.coverage is not None and f.coverage.share:
        worst = list(f.coverage.share.items())[:WORST]
        lines: list[_Line] = [(name, f"{share:.0%}", share) for name, share in worst]
        listed.append(("Held-out cells within their 90% intervals", lines))
    if f.copies is not None:
        c = f.copies
        rows = [("exact copies of a row of the table", f"{c.share:.2%}" + _beside(c.share_held_out, "{:.2%}"), c.share)]
        new = (None, None) if c.distance_held_out is None else c.distance_held_out
        for name, mine, theirs in zip(("median", "5% quantile"), c.distance, new, strict=True):
            rows.append((f"distance to the closest row, {name}", f"{mine:.3f}" + _beside(theirs, "{:.3f}"), None))
        listed.append(("Copies", rows))
    if f.membership is not None:
        m = f.membership
        advantage = _plus_minus(m.advantage, m.standard_error)
        rows = [("advantage by distance to the closest drawn row (0: chance, 1: always right)", advantage, None)]
        if m.density_advantage is not None and m.density_error is not None:
            advantage = _plus_minus(m.density_advantage, m.density_error)
            rows.append(("advantage by density under the joint (0: chance, 1: always right)", advantage, None))
        rows.append(
            (
                "drawn rows nearer to the table than to held-out rows (0.5: chance)",
                _plus_minus(m.nearer, m.nearer_error),
                None,
            )
        )
        listed.append(("Guessing which rows were learned from", rows))
    return listed


def _plus_minus(value: float, error: float) -> str:
    return f"{signed(f'{value:.3f}')} (standard error {error:.3f})"


def _beside(value: float | None, form: str) -> str:
    return "" if value is None else f" (held-out rows {form.format(value)})"


@dataclass(frozen=True, repr=False)
class Fidelity(Figures):
    """How true a joint, or rows, are to a table; made by `fidelity`, and printed as a page.

    Attributes
    ----------
    of : {"joint", "rows"}
    n_table, n_rows, n_held_out : int
        Rows of the table, of what was compared with it, and held out.
    library : {"pandas", "polars", "pyarrow", "numpy"}
        Of the table; `to_frame` answers in it.
    notes : tuple of str
        What was left out or cut, and why.
    statements : Statements or None
        Exact answers of the joint beside counts of rows: how many, and the ``wrong`` ones, the worst first.
    marginals : Marginals or None
        ``distance`` by column, the worst first, and ``shape``.
    pairs : Pairs or None
        ``similarity`` by pair, the worst first, and ``trend``.
    marginals_held_out, pairs_held_out : Marginals and Pairs, or None
        The same of the held-out rows beside the table: what chance gives so many rows.
    told_apart : ToldApart or None
        ``score`` of a classifier against the table's rows, and the ``columns`` that it used.
    told_apart_held_out : ToldApart or None
        The same against held-out rows.
    told_apart_as_many : ToldApart or None
        Against as many of the table's rows as were held out, because fewer rows are harder to tell apart.
    held_out : HeldOut or None
        ``log_density`` of held-out rows beside ``independent`` columns.
    coverage : Coverage or None
        ``share`` of held-out cells in their 90 % intervals, by column.
    copies : Copies or None
        ``share`` of rows that are in the table, and the ``distance`` to the closest.
    membership : Membership or None
        ``advantage`` of an attack that guesses which rows were learned from; only with held-out rows.

    Examples
    --------
    >>> joint = jf.AdversarialForest(n_estimators=5, random_state=0).fit(penguins.iloc[:200]).joint_
    >>> found = jf.fidelity(joint, penguins.iloc[:200], penguins.iloc[200:], random_state=0)
    >>> str(found).split()[1:4], found.to_frame().columns.tolist()
    (['test', 'of', 'the'], ['figure', 'column', 'second_column', 'value'])
    """

    @property
    def headline(self) -> str:
        """The score in one line; where there is none, shape and trend."""
        return text(self).split("\n", 1)[0]

    def __str__(self) -> str:
        return text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html(self)

    def to_frame(self) -> Any:
        """All figures as a frame of the table's library, with the columns figure, column, second_column and value."""
        rows = self._rows()
        names = ("figure", "column", "second_column", "value")
        cells = {name: [row[k] for row in rows] for k, name in enumerate(names)}
        return from_cells(cells, self.library, {"value": float})

    def _rows(self) -> list[tuple[str, str | None, str | None, float]]:
        """Every number with its figure's name and its columns."""
        rows: list[tuple[str, str | None, str | None, float | None]] = []
        if self.statements is not None:
            rows += [("statements", None, None, self.statements.n)]
            rows += [("statement_off", one.text, None, one.off) for one in self.statements.wrong]
        for name in ("told_apart", "told_apart_held_out", "told_apart_as_many"):
            one = getattr(self, name)
            if one is not None:
                rows.append((name, None, None, one.score))
                rows += [(f"{name}_used", column, None, share) for column, share in one.columns.items()]
        for end, marginals, pairs in (
            ("", self.marginals, self.pairs),
            ("_held_out", self.marginals_held_out, self.pairs_held_out),
        ):
            if marginals is not None:
                rows.append((f"shape{end}", None, None, marginals.shape))
                rows += [(f"distance{end}", column, None, value) for column, value in marginals.distance.items()]
                rows += [(f"missing{end}", column, None, value) for column, value in marginals.missing.items()]
            if pairs is not None:
                rows.append((f"trend{end}", None, None, pairs.trend))
                rows += [(f"similarity{end}", a, b, value) for (a, b), value in pairs.similarity.items()]
        if self.pairs is not None:
            for k, name in enumerate(("correlation_table", "correlation_rows")):
                rows += [(name, a, b, both[k]) for (a, b), both in self.pairs.correlation.items()]
        if self.held_out is not None:
            rows.append(("log_density", None, None, self.held_out.log_density))
            rows.append(("log_density_independent", None, None, self.held_out.independent))
        if self.coverage is not None:
            rows += [("coverage", column, None, share) for column, share in self.coverage.share.items()]
        if self.copies is not None:
            rows += _of_copies(self.copies)
        if self.membership is not None:
            rows += _of_membership(self.membership)
        return [(figure, a, b, value) for figure, a, b, value in rows if value is not None]


def _of_copies(c: Copies) -> list[tuple[str, None, None, float | None]]:
    """Rows of `Fidelity.to_frame` on copies."""
    new = (None, None) if c.distance_held_out is None else c.distance_held_out
    values = [c.share, c.share_held_out, c.distance[0], c.distance[1], new[0], new[1]]
    names = ["copies", "copies_held_out", "closest_median", "closest_5_percent"]
    names += ["closest_held_out_median", "closest_held_out_5_percent"]
    return [(name, None, None, value) for name, value in zip(names, values, strict=True)]


def _of_membership(m: Membership) -> list[tuple[str, None, None, float | None]]:
    """Rows of `Fidelity.to_frame` on membership."""
    names = ("advantage", "standard_error", "density_advantage", "density_error", "nearer", "nearer_error")
    return [(f"membership_{name}", None, None, getattr(m, name)) for name in names]
