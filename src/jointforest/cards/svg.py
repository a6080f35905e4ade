"""Small pictures as SVG elements: bars of shares, histograms, steps of a waterfall.

Colours are attributes, so no styles are needed. Pictures can be read on white and on black.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from .format import percent

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
