"""Joints, posteriors and marginals as text, and as static cards for notebooks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import cards
from ..cards import Html, Span, percent, shortened_text, signed
from ..data.evidence import build
from ..data.reading import axis_ticks, interval_in_words, number_text
from ..data.schema import Column
from ..inference.histogram import INNER, are_few_cells, divergence_bits, histogram, is_beyond, shown_edges
from ..inference.sampling import sample
from ..inference.support import SUPPORT
from ..models.base import Distribution, PosteriorState

# ---- What is known of one column in a few words.

_LISTED = 3
"""Levels that are named."""
WIDE = 20.0
"""The range of a column that is so many times as wide as its 90 % interval does not determine the digits."""
_TAILS = np.array([0.05, 0.95])


def column_in_words(state: PosteriorState, j: int) -> str:
    """Mean and 90% interval of a column of numbers or dates, the most probable levels of another; without warnings."""
    column, n = state.distribution.schema.columns[j], len(state.evidence.value)
    if n != 1:
        return f"given {n} rows of evidence"
    if math.isnan(state.background_weight()[0]):
        return "the evidence has probability 0"
    if column.is_categorical:
        return _level_lines(column, state.level_probabilities(j)[0])
    mean = float(state.moments(j)[0][0])
    low, high = state.quantile(j, _TAILS)[0].tolist()
    if not all(map(math.isfinite, (mean, low, high))):
        return "too far out to be computed"
    if low == high == mean:
        return number_text(column, low, column.minimum, column.maximum)
    is_wide = column.maximum - column.minimum > WIDE * (high - low) > 0.0  # an outlier does not take the digits away
    ends = (low, high) if is_wide else (column.minimum, column.maximum)
    return _in_numbers(column, _Spread(mean, low, high, True), *ends)


def _level_lines(column: Column, share: np.ndarray) -> str:
    best = np.argsort(-share, kind="stable")[:_LISTED].tolist()
    said = ", ".join(f"{shortened_text(str(column.levels[k]))} {percent(float(share[k]))}" for k in best)
    others = len(share) - len(best)
    return said + (f", {others:,} {'other' if others == 1 else 'others'}" if others else "")


# ---- Every column as a card.

_COLUMNS = 30
"""Columns that are shown."""
ALL, SOME = 12, 8
"""Up to so many levels all are shown, of more so many: the most probable."""
_LEVELS = 20
"""Levels that are shown of a marginal."""


QUICK, LARGE = 10_000, 100_000
"""A joint of one component with at most so many parameter rows is asked for means and quantiles; of others draws tell
them. Draws also tell the histograms of a forest with more than `LARGE` rows: all its leaves would take seconds."""
_DRAWS = 4_000
MANY, FEW = 40, 20
"""Bins of a histogram, and of one that is made of draws: of fewer draws a bar, chance would be seen."""


class _Spread(NamedTuple):
    """Mean, and ends of the interval with equal tails that holds 90 %; whether they are exact, not of draws."""

    mean: float
    low: float
    high: float
    is_exact: bool


class _Prior(NamedTuple):
    """The distribution of a column without evidence.

    edges : float64 array. Ends of its bins; nothing of levels.
    mass : float64 array. Of the bins, or levels.
    spread : _Spread or None. None of levels.
    missing : float. How often its cell is missing.
    """

    edges: np.ndarray
    mass: np.ndarray
    spread: _Spread | None
    missing: float


def _priors(model: Distribution, columns: Sequence[int]) -> list[_Prior]:
    """What is known without evidence of these columns."""
    kept = model.kept_views
    wanted = [j for j in columns if j not in kept]
    if wanted:
        nothing = model.observe(build(model.schema))
        drawn = _draws(nothing)
        missing = np.nan_to_num(nothing.missing_probabilities(wanted)).tolist()
        for j, share in zip(wanted, missing, strict=True):
            edges = _bin_ends(nothing, j, drawn)
            kept[j] = _Prior(
                edges, _shown_masses(nothing, j, edges, drawn), _mean_and_interval(nothing, j, drawn), float(share)
            )
    return [kept[j] for j in columns]


def _cost(model: Distribution) -> float:
    """Parameter rows of the largest component."""
    return max(component.density_cost() for component in model.components)


def _bin_ends(nothing: PosteriorState, j: int, drawn: np.ndarray | None) -> np.ndarray:
    """Ends of a column's bins, the same whatever the evidence; none of levels."""
    column, most = nothing.distribution.schema.columns[j], MANY if _cost(nothing.distribution) <= LARGE else FEW
    if column.is_categorical:
        return np.empty(0)
    low, high = (nothing.quantile(j, INNER)[0] if drawn is None else np.quantile(drawn[:, j], INNER)).tolist()
    return shown_edges(column, (low, high), most)


def _draws(state: PosteriorState) -> np.ndarray | None:
    """Rows drawn given the evidence, from which means and intervals are read; None where the joint is quicker."""
    model = state.distribution
    if len(model.components) == 1 and _cost(model) <= QUICK:
        return None
    return sample(model, state.evidence, _DRAWS, 0)


def _shown_masses(state: PosteriorState, j: int, edges: np.ndarray, drawn: np.ndarray | None) -> np.ndarray:
    """Masses of a column's bins, or levels: the joint's own, of a large forest those of draws."""
    if drawn is None or not len(edges) or _cost(state.distribution) <= LARGE:
        return np.maximum(histogram(state, j, edges)[0], 0.0)
    bin_of = np.clip(np.searchsorted(edges, drawn[:, j]) - 1, 0, len(edges) - 2)
    return np.bincount(bin_of, minlength=len(edges) - 1) / len(drawn)


def joint_html(title: str, model: Distribution) -> str:
    """A joint: its size, and every column's marginal distribution."""
    columns = model.schema.columns[:_COLUMNS]
    priors = _priors(model, range(len(columns)))
    tiles = [
        cards.card(column.name, column.kind, *_picture(column, prior.edges, prior[1:3], None, SOME, prior.missing))
        for column, prior in zip(columns, priors, strict=True)
    ]
    rows = f"learned from {model.schema.n_rows:,.0f} rows" if model.schema.n_rows else ""
    left = _left_out(len(model.schema.columns) - len(columns), "column")
    is_drawn = any(prior.spread is not None and not prior.spread.is_exact for prior in priors)
    said = cards.legend("probability without evidence", more=f"{_SCALES} {_ABOUT}" if is_drawn else _SCALES)
    return cards.view_html(title, [rows, said], [cards.grid(tiles)], left)


_ABOUT = f"About: from {_DRAWS:,} draws."
_SCALES = "Bars of levels: the full width is 100%. Line below a histogram: mean and 90% interval."


def posterior_html(
    title: str, state: PosteriorState, log_probability: float, support: str, before: Distribution
) -> str:
    """A posterior: how probable the evidence is, and each column given it, over what was known before."""
    if len(state.evidence.value) != 1:
        return cards.view_html(title, [], [])
    if log_probability == -math.inf:
        return cards.view_html(title, ["The evidence has probability 0."], [])
    said = [f"log-density of the evidence {signed(f'{log_probability:.4g}')}"]
    if log_probability <= 0.0:
        said = [
            f"probability of the evidence {_chance(log_probability)}",
            f"log-probability {signed(f'{log_probability:.4g}')}",
        ]
    lines = ["; ".join([*said, *([support] if support else [])])]
    if state.background_weight()[0] > SUPPORT:
        lines.append("The evidence is unlike anything learned: its answers are those of a background.")
    columns = state.distribution.schema.columns[:_COLUMNS]
    regions, drawn = state.evidence.cell_regions()[0], _draws(state)
    tiles = []
    least = 1e-300 if _cost(state.distribution) <= LARGE else 0.5 / _DRAWS  # a bin without a draw is not impossible
    for j, (column, prior) in enumerate(zip(columns, _priors(before, range(len(columns))), strict=True)):
        mass = _shown_masses(state, j, prior.edges, drawn)
        is_known = not math.isnan(state.evidence.value[0, j]) or regions[j] >= 0
        aside = "known" if is_known else _how_far_moved(mass, prior.mass, least)
        now, was = (mass, _mean_and_interval(state, j, drawn)), (prior.mass, prior.spread)
        tiles.append(cards.card(column.name, aside, *_picture(column, prior.edges, now, was, SOME), is_known=is_known))
    scales = _SCALES if drawn is None else f"{_SCALES} {_ABOUT}"
    lines.append(cards.legend("given the evidence", "without evidence", scales))
    left = _left_out(len(state.distribution.schema.columns) - len(columns), "column")
    return cards.view_html(title, lines, [cards.grid(tiles)], left)


def marginal_html(title: str, state: PosteriorState, j: int, has_evidence: bool) -> str:
    """A marginal: its levels, or its histogram, mean and interval."""
    column = state.distribution.schema.columns[j]
    if len(state.evidence.value) != 1 or math.isnan(state.background_weight()[0]):
        return cards.view_html(title, [column_in_words(state, j)], [])
    (prior,) = _priors(state.distribution, [j])
    drawn = _draws(state) if _cost(state.distribution) > LARGE else None
    mass = _shown_masses(state, j, prior.edges, drawn)
    before = (prior.mass, prior.spread) if has_evidence else None
    body, footer = _picture(column, prior.edges, (mass, _mean_and_interval(state, j, drawn)), before, _LEVELS)
    lines = [cards.legend("given the evidence", "without evidence")] if has_evidence else []
    left = _left_out(len(mass) - _LEVELS, "level") if column.is_categorical and len(mass) > max(ALL, _LEVELS) else ""
    return cards.view_html(title, lines, [cards.card(column.name, column.kind, body, footer)], left)


_Known = tuple[np.ndarray, _Spread | None]
"""Masses of a column's cuts or levels, and its mean and interval."""


def _picture(
    column: Column, edges: np.ndarray, now: _Known, before: _Known | None, most: int, missing: float = 0.0
) -> tuple[str, str]:
    """A column as a picture, and the line below it."""
    absent = f"missing {percent(missing)}" if missing >= 1e-9 else ""
    mass, spread = now
    if spread is None:
        return _bars(column, mass, None if before is None else before[0], most), absent
    low, high = float(edges[0]), float(edges[-1])
    was, marks_before = (None, None) if before is None else (before[0], _marks(before[1], low, high))
    ticks = axis_ticks(column, low, high)
    marks, beyond, is_few = _marks(spread, low, high), is_beyond(column, edges), are_few_cells(column, edges)
    drawn = cards.histogram_svg(column.name, mass, was, ticks, marks, marks_before, None, beyond, is_few)
    said = _in_numbers(column, spread, low, high)
    return drawn, f"{said}; {absent}" if absent else said


def _in_numbers(column: Column, spread: _Spread, first: float, last: float) -> str:
    """Mean and interval in words; the column's axis, from first to last, sets the digits."""
    mean, low, high = (number_text(column, x, first, last, of_means=k == 0) for k, x in enumerate(spread[:3]))
    about = "" if spread.is_exact else "about "
    return f"mean {about}{mean}, {interval_in_words(low, high, about)}"


def _marks(spread: _Spread | None, low: float, high: float) -> Span | None:
    """Mean and interval on an axis from low to high."""
    if spread is None or not all(map(math.isfinite, spread[:3])):
        return None
    first, last = (min(max((x - low) / (high - low), 0.0), 1.0) for x in (spread.low, spread.high))
    return Span(first, last, (spread.mean - low) / (high - low))


def _bars(column: Column, mass: np.ndarray, before: np.ndarray | None, most: int) -> str:
    """A bar for each level: all of few, of many the most probable."""
    few, longest = len(mass) <= max(ALL, most), 22 if most == SOME else 60
    shown = list(range(len(mass))) if few else np.argsort(-mass, kind="stable")[:most].tolist()
    rows: list[tuple[str, str, str]] = []
    for k in shown:
        was = None if before is None else float(before[k])
        drawn = Html(cards.bar_svg(float(mass[k]), was))
        rows.append((shortened_text(str(column.levels[k]), longest), drawn, percent(float(mass[k]))))
    n_others = len(mass) - len(shown)
    if n_others:
        share = max(1.0 - float(mass[shown].sum()), 0.0)
        rows.append((cards.soft(f"{n_others:,} other{'' if n_others == 1 else 's'}"), "", cards.soft(percent(share))))
    return cards.table_html(rows)


def _mean_and_interval(state: PosteriorState, j: int, drawn: np.ndarray | None) -> _Spread | None:
    """Mean and interval of a column: of draws, or without any the joint's own; None of levels."""
    if state.distribution.schema.columns[j].is_categorical:
        return None
    if drawn is None:
        low, high = state.quantile(j, _TAILS)[0].tolist()
        return _Spread(float(state.moments(j)[0][0]), low, high, True)
    low, high = np.quantile(drawn[:, j], _TAILS, method="inverted_cdf").tolist()
    return _Spread(float(drawn[:, j].mean()), low, high, False)


def _how_far_moved(mass: np.ndarray, before: np.ndarray, least: float) -> str:
    """How far the evidence moved a column; without evidence no bin counts as less than ``least``."""
    bits = divergence_bits(mass, before, least)
    return f"moved {bits:.2f} bits" if bits >= 0.005 else ""


def _chance(log_probability: float) -> str:
    """A probability in per cent, and as one row in so many."""
    share = math.exp(log_probability)
    if share > 0.5 or log_probability < -34.0:
        return percent(share)
    return f"{percent(share)} (1 row in {1.0 / share:,.0f})"


def _left_out(n: int, what: str) -> str:
    return f"and {n:,} {what}{'' if n == 1 else 's'} more" if n > 0 else ""


# ---- How large a model is: trees, leaves and hidden states of its parts.


def part_sizes(model: Distribution) -> list[dict[str, Any]]:
    """Kind, weight and size of each component: see `Distribution.size`."""
    weights = np.exp(model.log_weight).tolist()
    return [{"kind": part.kind, "weight": w} | part.size() for part, w in zip(model.components, weights, strict=True)]


def size_text(size: dict[str, Any]) -> str:
    """One of `part_sizes` in words."""
    if "leaves" in size:
        trees = "1 tree" if size["trees"] == 1 else f"{size['trees']} trees"
        what = "" if size["kind"] == "forest" else "Chow-Liu "
        return f"{trees}, 1 {what}leaf" if size["leaves"] == 1 else f"{trees}, {size['leaves']} {what}leaves"
    if "states" in size:
        trees = "1 hidden tree" if size["trees"] == 1 else f"{size['trees']} hidden trees"
        return f"{trees} of {size['states']} states"
    return str(size["kind"])
