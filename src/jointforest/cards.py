"""Static HTML and SVG of notebook views, with numbers as people read them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from decimal import ROUND_HALF_UP, Decimal
from html import escape
from typing import NamedTuple

import numpy as np

GROUPED = 1e4
"""The numbers of a column whose greatest is below this, such as years, are written without commas."""
_FAR = 1e9
"""From here on numbers are written with a power of ten."""
MINUS = "−"


def percent(share: float | None) -> str:
    """A proportion as per cent with one decimal; a value other than 0 or 1 never looks like 0 % or 100 %."""
    if share is None or math.isnan(share):
        return "–"
    if share in (0.0, 1.0):
        return "100%" if share else "0%"
    if 0.0 < share < 0.0005:
        return "<0.1%"
    if 0.9995 < share < 1.0:
        return ">99.9%"
    return f"{_rounded_decimal(100 * Decimal(repr(float(share))), 1)}%"


def number_writer(low: float, high: float, step: float = 0.0, of_means: bool = False) -> Callable[[float], str]:
    """The function that writes values, or means (``of_means``), of a column from low to high with this grid step."""
    span, largest = max(high - low, math.ulp(0.0)), max(abs(low), abs(high))
    is_whole = step > 0.0 and step == round(step)
    fine = max(0, 3 - math.ceil(math.log10(span)))
    digits = 0 if is_whole else min(12, fine)
    if is_whole and of_means:
        digits = min(2, fine) or int(span < 200.0)
    is_far = largest >= _FAR or (not is_whole and span < 1e-6)
    comma = "," if largest >= GROUPED else ""

    def write(x: float) -> str:
        number = Decimal(repr(float(x)))
        if is_far:
            return _scientific(number)
        text = f"{_rounded_decimal(number, digits):z{comma}f}"
        return signed(text.rstrip("0").rstrip(".") if "." in text else text)

    return write


def signed(text: str) -> str:
    """A number that begins with a hyphen as one that begins with a minus sign."""
    return text.replace("-", MINUS, 1) if text.startswith("-") else text


def _rounded_decimal(number: Decimal, digits: int) -> Decimal:
    return number.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)


def _scientific(number: Decimal) -> str:
    """A number with at most four digits and a power of ten, such as 1.235E9."""
    if not number:
        return "0E0"
    power = number.adjusted()
    mantissa = _rounded_decimal(number.scaleb(-power), 3)
    if abs(mantissa) >= 10:
        mantissa, power = mantissa / 10, power + 1
    text = f"{mantissa:f}".rstrip("0").rstrip(".")
    return f"{text}E{power}".replace("-", MINUS, int(number < 0))


# ---- Small pictures as SVG elements: bars of shares, histograms, steps of a waterfall.

# Colours are attributes, so no styles are needed. Pictures can be read on white and on black.

POSTERIOR = "#2a8f86"
"""What is known now: teal."""
PRIOR = "#dcd9d0"
"""What was known before the evidence: beige."""
PRIOR_LINE = "#a39e91"
"""The same where it is a line, or lies on a background of unknown colour."""
PRIOR_OPACITY = 0.4
"""How opaque `PRIOR_LINE` is as an area, so that it is `PRIOR` on white and a dark grey on black."""
TABLE = "#1b1e23"
"""Data of a table's rows, and all text on white."""
SOFT = "#5a606a"
"""Text of less weight, on white."""
LOWER = "#b4632f"
"""What lowers a prediction: orange. What raises it is `POSTERIOR`."""
EDGE = "#8b8f97"
"""Axes and borders."""


BAR, THICK, STEP = 92, 14, 150
"""Width and height of a bar of 100 %, and width of a waterfall, in pixels."""
WIDTH, HEIGHT, ABOVE = 246, 74, 14
"""Width and height of a histogram's bars, and the room above them for labels."""
_GHOST = f'fill="{PRIOR_LINE}" fill-opacity="{PRIOR_OPACITY}"'


def bar_svg(share: float, before: float | None = None) -> str:
    """A share as a bar, before the bar of what was known before; the full width is 100 %."""
    shapes = [f'<rect width="{BAR}" height="{THICK}" fill="{PRIOR_LINE}" fill-opacity="0.08"/>']
    if before is not None:
        end = _px(BAR * min(max(before, 0.0), 1.0))
        shapes.append(f'<rect width="{end}" height="{THICK}" {_GHOST}/>')
    shapes.append(
        f'<rect y="2" width="{_px(BAR * min(max(share, 0.0), 1.0))}" height="{THICK - 4}" fill="{POSTERIOR}"/>'
    )
    if before is not None:
        shapes.append(f'<path d="M{end} 0V{THICK}" stroke="{PRIOR_LINE}" stroke-width="2"/>')
    return _svg(BAR + 1, THICK, shapes)


def step(start: float, end: float, low: float, high: float) -> str:
    """A step of a waterfall from start to end on an axis from low to high: teal upwards, orange downwards."""
    left, right = (STEP * (x - low) / max(high - low, 1e-300) for x in sorted((start, end)))
    colour = POSTERIOR if end >= start else LOWER
    first = _px(STEP * (start - low) / max(high - low, 1e-300))
    return _svg(
        STEP + 1, THICK,
        [
            f'<rect x="{_px(left)}" y="2" width="{_px(max(right - left, 1.0))}" height="{THICK - 4}" '
            f'fill="{colour}"/>',
            f'<path d="M{first} 0V{THICK}" stroke="{PRIOR_LINE}" stroke-width="1.5"/>',
        ],
    )  # fmt: skip


def swatch(is_before: bool = False) -> str:
    """A square of a legend."""
    look = _GHOST if is_before else f'fill="{POSTERIOR}"'
    return _svg(12, 12, [f'<rect width="12" height="12" rx="2" {look}/>'])


class Span(NamedTuple):
    """Mean and interval of a column of numbers as positions, 0 to 1; a mean outside is None."""

    low: float
    high: float
    mean: float | None


CUT, CUT_AT, LEAST = 2.5, 1.6, 0.05
"""A bar of so many times the second tallest is cut at so many times it, if all others have at least so much."""
LABELLED = 0.25
"""A tallest bar of this share or more is labelled, cut or not."""


def histogram_svg(
    name: str,
    mass: np.ndarray,
    before: np.ndarray | None,
    ticks: Sequence[tuple[float, str]],
    span: Span | None,
    span_before: Span | None = None,
    rows: np.ndarray | None = None,
    beyond: tuple[bool, bool] = (False, False),
    is_each_labelled: bool = False,
) -> str:
    """Histogram of equally wide bins in front of that without evidence; ``rows`` is an outline of the table's rows."""
    # A bar that would make all others too small to be seen is broken in two, and labelled with its share.
    top, cut = _top(np.max([one for one in (mass, before, rows) if one is not None], axis=0))
    x = np.linspace(0.0, WIDTH, len(mass) + 1)
    shapes = []
    if before is not None:
        shapes.append(f'<path d="{_outline(x, before, top)}" {_GHOST}/>')
    shapes.append(f'<path d="{_separate_bars(x, mass, top)}" fill="{POSTERIOR}"/>')
    if rows is not None:
        shapes.append(f'<path d="{_outline(x, rows, top)}" fill="none" stroke="currentColor"/>')
    tallest = int(np.argmax(mass))
    is_labelled = mass[tallest] > min(top, LABELLED - 1e-12) or (cut and mass[tallest] > top)
    for k in np.flatnonzero(mass >= 0.0005).tolist() if is_each_labelled else [tallest] if is_labelled else []:
        shapes.append(_label(x, k, percent(float(mass[k])), mass[k] / top, is_each_labelled))
    base = ABOVE + HEIGHT
    shapes.append(f'<path d="M0 {base}H{WIDTH}" stroke="currentColor" stroke-opacity="0.5"/>')
    for one, y, colour in ((span_before, base + 9, PRIOR_LINE), (span, base + 5, POSTERIOR)):
        if one is not None:
            ends = f"M{_px(WIDTH * one.low)} {y}H{_px(max(WIDTH * one.high, WIDTH * one.low + 2))}"
            shapes.append(f'<path d="{ends}" stroke="{colour}" stroke-width="2"/>')
            if one.mean is not None and 0.0 <= one.mean <= 1.0:
                shapes.append(f'<circle cx="{_px(WIDTH * one.mean)}" cy="{y}" r="3" fill="{colour}"/>')
    for is_there, arrow in zip(beyond, ("M0 {0}l-5 -4v8z", "M{1} {0}l5 -4v8z"), strict=True):
        if is_there:
            shapes.append(f'<path d="{arrow.format(base - 5, WIDTH)}" fill="currentColor" fill-opacity="0.5"/>')
    for at, words in ticks:
        anchor = "start" if at < 0.08 else "end" if at > 0.92 else "middle"
        shapes.append(
            f'<text x="{_px(WIDTH * at)}" y="{base + 24}" text-anchor="{anchor}" font-size="11" '
            f'fill="currentColor" fill-opacity="0.75">{escape(words)}</text>'
        )
    return _svg(WIDTH, base + 28, shapes, f'role="img" aria-label="{escape(f"histogram of {name}")}"')


def _top(mass: np.ndarray) -> tuple[float, bool]:
    """The mass that reaches the top, and whether a bar is cut there."""
    high = np.sort(mass)
    if len(high) > 2 and high[-1] > CUT * high[-2] and high[:-1].sum() >= LEAST:
        return float(CUT_AT * high[-2]), True
    return max(float(high[-1]), 1e-12), False


def _outline(x: np.ndarray, mass: np.ndarray, top: float) -> str:
    """All bars as one area."""
    base = ABOVE + HEIGHT
    steps = (f"V{_height(share, top)}H{_px(right)}" for share, right in zip(mass.tolist(), x[1:], strict=True))
    return f"M0 {base}{''.join(steps)}V{base}Z"


def _separate_bars(x: np.ndarray, mass: np.ndarray, top: float) -> str:
    """The bars one by one, with a gap between them; those that are cut off have a slanting break."""
    base, found = ABOVE + HEIGHT, []
    gap = 0.6 if len(mass) <= 60 else 0.0
    for share, left, right in zip(mass.tolist(), (x[:-1] + gap).tolist(), (x[1:] - gap).tolist(), strict=True):
        if share <= 0.0:
            continue
        sides = _px(left), _px(right)
        if share > top * (1.0 + 1e-9):
            low, high = ABOVE + 0.30 * HEIGHT, ABOVE + 0.22 * HEIGHT
            found.append(f"M{sides[0]} {base}V{_px(low + 3)}L{sides[1]} {_px(low - 3)}V{base}Z")
            found.append(f"M{sides[0]} {_px(high + 3)}V{ABOVE}H{sides[1]}V{_px(high - 3)}Z")
        else:
            found.append(f"M{sides[0]} {base}V{_height(share, top)}H{sides[1]}V{base}Z")
    return "".join(found)


def _label(x: np.ndarray, k: int, words: str, height: float, is_small: bool) -> str:
    """The share of bin k above its bar."""
    at = 0.5 * (x[k] + x[k + 1])
    y = ABOVE + HEIGHT * (1.0 - min(height, 1.0)) - 3
    anchor = "start" if at < 0.08 * WIDTH else "end" if at > 0.92 * WIDTH else "middle"
    at = x[k] if anchor == "start" else x[k + 1] if anchor == "end" else at
    return (
        f'<text x="{_px(at)}" y="{_px(y)}" text-anchor="{anchor}" font-size="{9 if is_small else 11}" '
        f'fill="currentColor">{words}</text>'
    )


def _height(share: float, top: float) -> str:
    return _px(ABOVE + HEIGHT * (1.0 - min(share / top, 1.0)))


def _px(x: float) -> str:
    return f"{x:z.1f}".removesuffix(".0")


_IN_LINE = 'style="vertical-align:middle" aria-hidden="true"'


def _svg(width: int, height: int, shapes: Sequence[str], about: str = _IN_LINE) -> str:
    return f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" {about}>{"".join(shapes)}</svg>'


def round_ticks(low: float, high: float, whole: bool, most: int = 4) -> list[float]:
    """At most ``most`` round numbers from low to high."""
    power = 10.0 ** np.floor(np.log10(max((high - low) / most, 1e-300)))
    for digit in (1.0, 2.0, 2.5, 5.0, 10.0, 20.0, 25.0):
        width = digit * power
        if whole and width != round(width):
            continue
        first, last = np.ceil(low / width - 1e-9), np.floor(high / width + 1e-9)
        if last - first < most:
            return [float(f"{k * width:.12g}") for k in np.arange(first, last + 1)] or [low]
    return [low]


# ---- Views of HTML: a title, lines, cards with tables.

# Every text from a table is escaped here. Views can be read without styles and SVG, which some sites remove.

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
