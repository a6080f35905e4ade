"""A `Fidelity` as text and as HTML: the same lines, the headline first."""

from __future__ import annotations

import math
from html import escape

from .figures import Figures

WORST = 5
"""Columns and pairs that are named."""

Section = tuple[str, list[tuple[str, str]]]


def text(f: Figures) -> str:
    """The page as text."""
    lines = headlines(f)
    for title, rows in sections(f):
        width = max(len(name) for name, _ in rows)
        lines += ["", title, *(f"  {name:<{width}}  {value}".rstrip() for name, value in rows)]
    if f.notes:
        lines += ["", *(f"({note})" for note in f.notes)]
    return "\n".join(lines)


def html(f: Figures) -> str:
    """The page as a self-contained piece of HTML, in the colours of what is around it."""
    first, *rest = headlines(f)
    out = ['<div style="font-family:sans-serif;line-height:1.4">', f"<p><b>{escape(first)}</b>"]
    out += [f"<br>{escape(line)}" for line in rest] + ["</p>"]
    for title, rows in sections(f):
        out.append(f'<p style="margin:.6em 0 .2em"><b>{escape(title)}</b></p><table style="border-collapse:collapse">')
        cell = '<td style="text-align:left;padding:0 1.2em 0 0;background:none">'
        out += [f"<tr>{cell}{escape(name)}</td>{cell}{escape(value)}</td></tr>" for name, value in rows]
        out.append("</table>")
    out += [f'<p style="margin:.4em 0;opacity:.7">({escape(note)})</p>' for note in f.notes]
    return "".join([*out, "</div>"])


def headlines(f: Figures) -> list[str]:
    """Score, score against held-out rows, shape and trend: as many lines as there are."""
    whose = "the joint's rows" if f.of == "joint" else "these rows"
    lines = []
    if f.told_apart is not None:
        found = f.told_apart
        lines.append(
            f"{found.classifier} tells {whose} from the table's: score {found.score:.2f} "
            "(1 = cannot be told apart, 0 = always)"
        )
    if f.told_apart_held_out is not None:
        found, same = f.told_apart_held_out, f.told_apart_as_many
        beside = "" if same is None else f"; from as many of the table's: {same.score:.2f}"
        lines.append(f"... and from {found.n_rows:,} held-out rows: score {found.score:.2f}{beside}")
    means = []
    if f.marginals is not None and not math.isnan(f.marginals.shape):
        new = None if f.marginals_held_out is None else f.marginals_held_out.shape
        means.append(f"shape of columns {f.marginals.shape:.3f}{_beside(new, '{:.3f}')}")
    if f.pairs is not None and not math.isnan(f.pairs.trend):
        new = None if f.pairs_held_out is None else f.pairs_held_out.trend
        means.append(f"trend of pairs {f.pairs.trend:.3f}{_beside(new, '{:.3f}')}")
    if means:
        lines.append(", ".join(means) + "; 1 = the same as in the table")
    return lines or [f"{f.n_rows:,} rows beside a table of {f.n_table:,}"]


def sections(f: Figures) -> list[Section]:
    """Titles, and lines of a name and a value."""
    found: list[Section] = []
    if f.marginals is not None and f.marginals.distance:
        new = {} if f.marginals_held_out is None else f.marginals_held_out.distance
        worst = list(f.marginals.distance.items())[:WORST]
        lines = [(name, f"{value:.3f}" + _beside(new.get(name), "{:.3f}")) for name, value in worst]
        found.append(("Columns that differ most (distance)", lines))
        gaps = sorted(f.marginals.missing.items(), key=lambda item: -abs(item[1]))[:WORST]
        if gaps:
            found.append(
                ("Missing cells, share more than in the table", [(name, f"{value:+.3f}") for name, value in gaps])
            )
    if f.pairs is not None and f.pairs.similarity:
        found.append(("Pairs that differ most (similarity)", _pairs(f)))
    if f.told_apart is not None and any(f.told_apart.columns.values()):
        used = [(name, f"{share:.0%}") for name, share in list(f.told_apart.columns.items())[:WORST] if share > 0.0]
        found.append(("What the classifier used", used))
    return found + _held_out(f)


def _pairs(f: Figures) -> list[tuple[str, str]]:
    """The worst pairs; of numbers both correlations."""
    assert f.pairs is not None
    new = {} if f.pairs_held_out is None else f.pairs_held_out.similarity
    lines = []
    for names, value in list(f.pairs.similarity.items())[:WORST]:
        both = f.pairs.correlation.get(names)
        more = "" if both is None else f"  correlation {both[0]:+.2f} in the table, {both[1]:+.2f} in the rows"
        lines.append((", ".join(names), f"{value:.3f}{_beside(new.get(names), '{:.3f}')}{more}"))
    return lines


def _held_out(f: Figures) -> list[Section]:
    """Density, intervals, copies and membership."""
    found: list[Section] = []
    if f.held_out is not None:
        h = f.held_out
        rows = [("the joint", f"{h.log_density:.3f}"), ("independent columns", f"{h.independent:.3f}")]
        if h.impossible > 0.0:
            rows.append(("rows of density 0", f"{h.impossible:.2%}"))
        found.append(("Held-out rows, mean log-density in nats", rows))
    if f.coverage is not None and f.coverage.share:
        worst = list(f.coverage.share.items())[:WORST]
        found.append(("Held-out cells in their 90 % intervals", [(name, f"{share:.0%}") for name, share in worst]))
    if f.copies is not None:
        c = f.copies
        rows = [("exact copies of a row of the table", f"{c.share:.2%}" + _beside(c.share_held_out, "{:.2%}"))]
        new = (None, None) if c.distance_held_out is None else c.distance_held_out
        for name, mine, theirs in zip(("median", "5 % quantile"), c.distance, new, strict=True):
            rows.append((f"distance to the closest row, {name}", f"{mine:.3f}" + _beside(theirs, "{:.3f}")))
        found.append(("Copies", rows))
    if f.membership is not None:
        m = f.membership
        rows = [("advantage by distance to the closest synthetic row", _plus_minus(m.advantage, m.standard_error))]
        if m.density_advantage is not None and m.density_error is not None:
            rows.append(("advantage by density under the joint", _plus_minus(m.density_advantage, m.density_error)))
        rows.append(("rows nearer to the table than to held-out rows", _plus_minus(m.nearer, m.nearer_error)))
        found.append(("Guessing who was learned from (0 = chance, 1 = always; nearer: 0.5 = chance)", rows))
    return found


def _plus_minus(value: float, error: float) -> str:
    return f"{value:.3f} (standard error {error:.3f})"


def _beside(value: float | None, form: str) -> str:
    return "" if value is None else f" (held-out rows {form.format(value)})"
