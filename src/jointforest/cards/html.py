"""Views of HTML: a title, lines, cards with tables.

Every text from a table is escaped here. Views can be read without styles and SVG, which some sites remove.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from .svg import swatch

_CELL = "text-align:left;vertical-align:middle;padding:1px 8px 1px 0;border:0;background:none;white-space:nowrap"
_CARD = (
    "border:1px solid rgba(139,143,151,.45);border-radius:10px;padding:8px 12px;margin:0;min-width:0;overflow-x:auto"
)
_KNOWN = _CARD.replace("1px solid rgba(139,143,151,.45)", "2px solid #2a8f86")
_GRID = "display:grid;grid-template-columns:repeat(auto-fill,minmax(275px,1fr));gap:10px;margin:6px 0"
_SOFT = "opacity:.75;font-size:12px"
LONGEST = 60
"""Characters of a name or a level."""


class Html(str):
    """Text that is HTML already; any other text is escaped."""

    __slots__ = ()


def shortened_text(text: str, most: int = LONGEST) -> str:
    """A text of at most so many characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def words(text: str) -> str:
    """A text as HTML, in the direction of its own letters."""
    return text if isinstance(text, Html) else f"<bdi>{escape(text)}</bdi>"


def soft(text: str) -> Html:
    """A text of less weight."""
    return Html(f'<span style="{_SOFT}">{words(text)}</span>')


def view_html(title: str, lines: Iterable[str], pieces: Iterable[str], end: str = "") -> str:
    """A view: its title, lines below it, pieces of HTML, a last line."""
    out = [
        '<div style="font-family:system-ui,-apple-system,Segoe UI,Roboto,sans-serif;font-size:13px;line-height:1.45;'
        'max-width:76rem;font-variant-numeric:tabular-nums">'
    ]
    said = [f"<b>{words(title)}</b>", *(words(line) for line in lines if line)]
    out += [f'<p style="margin:4px 0">{"<br>".join(said)}</p>', *pieces]
    if end:
        out.append(f'<p style="margin:4px 0;{_SOFT}">{words(end)}</p>')
    return "".join([*out, "</div>"])


def grid(cards: Sequence[str], least: int = 275) -> str:
    """Cards side by side, each at least so many pixels wide."""
    style = _GRID.replace("275px", f"{least}px")
    return f'<div style="{style}">{"".join(cards)}</div>' if cards else ""


def card(name: str, aside: str, body: str, footer: str = "", is_known: bool = False) -> str:
    """One card: a name, a word beside it, a picture or table, a last line."""
    head = f"<b>{words(shortened_text(name))}</b>" + (f" {soft(aside)}" if aside else "")
    foot = f'<div style="{_SOFT}">{words(footer)}</div>' if footer else ""
    return f'<div style="{_KNOWN if is_known else _CARD}"><div>{head}</div>{body}{foot}</div>'


def table_html(rows: Iterable[Sequence[str]], header: Sequence[str] = (), wraps: bool = False) -> str:
    """A table without lines; cells are texts, or pieces of `Html`."""
    cell = _CELL.replace("nowrap", "normal") if wraps else _CELL
    out = ['<table style="border-collapse:collapse;margin:2px 0;border:0;font-size:13px">']
    if header:
        cells = (f'<th style="{cell};font-weight:600;opacity:.75">{escape(one)}</th>' for one in header)
        out.append(f'<tr style="background:none">{"".join(cells)}</tr>')
    for row in rows:
        out.append(
            '<tr style="background:none">' + "".join(f'<td style="{cell}">{words(one)}</td>' for one in row) + "</tr>"
        )
    return "".join([*out, "</table>"])


def text_html(text: str) -> str:
    """Lines of text for notebooks, none broken: what is too wide is scrolled."""
    return f'<pre style="white-space:pre;overflow-x:auto;line-height:1.4;font-size:12px">{escape(text)}</pre>'


def legend(now: str, before: str = "", more: str = "") -> Html:
    """What the colours mean."""
    said = f"{swatch()} {escape(now)}"
    if before:
        said += f" &nbsp; {swatch(True)} {escape(before)}"
    return Html(f'<span style="{_SOFT}">{said}{" &nbsp; " + escape(more) if more else ""}</span>')
