"""Answers to the first questions of a page, as plain dicts for JSON: the evidence, the table, and all columns."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ..data.conditions import Missing, Not, has_soft, without_missing
from ..data.evidence import build, is_met
from ..data.schema import Column
from ..inference.histogram import divergence_bits, even_edges, histogram, is_beyond
from ..inference.support import FEW_SUPPORTING, SUPPORT, rows_like, support_in_words
from ..models.base import Distribution
from ..runtime.threads import map_ordered
from .shown import BINS, ShownJoint, all_shown, described, from_shown, shares_of_rows, to_shown
from .state import (
    ImpossibleEvidence,
    place_of,
    python_call,
    read_evidence,
    sentence,
    shell_command,
    tidied,
    write_evidence,
    written_condition,
)

MODELS = 4
"""Most models, conditioned on missing cells, that are cached with their tables."""


class Known:
    """Evidence of one row.

    said : list or dict or None. As `state.read_evidence` reads it.

    model : Distribution. The joint, conditioned on which cells are missing.
    evidence : Evidence. The other conditions.
    is_density : bool. Whether p(evidence) is a density: of values without a grid, or with likelihoods.

    Raises ImpossibleEvidence if it has probability 0. Raises ValueError as `state.read_evidence`.
    """

    def __init__(self, shown: ShownJoint, said: Any) -> None:
        schema = shown.joint.schema
        self.conditions = tidied(schema, read_evidence(schema, said))
        self.sentence = sentence(self.conditions)
        rest, missing = without_missing(self.conditions, schema.tick_boxes)
        self._missing, self._shown = missing, shown
        model, self._log_missing = _model_given(shown, missing, tuple(rest))
        if model is None:
            raise ImpossibleEvidence(
                f"the evidence has probability 0: {self.sentence}; at learning such cells were never, or always, "
                "missing, or a rule makes cells missing with them of which the evidence says something"
            )
        self.model = model
        self.evidence = build(schema, conditions=rest)
        self.state = model.observe(self.evidence) if self.conditions else shown.nothing
        self.is_density = self._is_point() or any(map(has_soft, rest.values()))
        if self.log_probability == -math.inf:
            raise ImpossibleEvidence(
                f"the evidence has probability 0: {self.sentence}; drop or widen one of its conditions"
            )

    @cached_property
    def log_evidence(self) -> float:
        """log p(evidence) in the model."""
        return self.state.log_evidence + float(self.evidence.log_penalty[0])

    @cached_property
    def log_probability(self) -> float:
        """log p(all evidence): a probability, unless it contains values without a grid or likelihoods."""
        if not self.conditions:
            return 0.0
        values = zip(self.model.schema.columns, self.evidence.value[0].tolist(), strict=True)
        cells = sum(math.log(column.step) for column, x in values if column.step > 0.0 and not math.isnan(x))
        return self.log_evidence + self._log_missing + cells

    @cached_property
    def numbers(self) -> np.ndarray | None:
        """Which rows of the table satisfy the evidence, from 0; None without a table, or with likelihoods."""
        # None also of evidence on a column of which the table has ranges.
        X, index = self._shown.encoded, self.model.schema.index
        if X is None or any(map(has_soft, self.conditions.values())):
            return None
        if self._shown.ranged & {index(name) for name in self.conditions}:
            return None
        met = is_met(self.model.schema, self.evidence, X)
        for name, is_missing in self._missing.items():
            met &= np.isnan(X[:, self.model.schema.index(name)]) == is_missing
        return np.flatnonzero(met)

    @cached_property
    def rows(self) -> np.ndarray | None:
        """The rows of the table that satisfy the evidence, (n, d), as `numbers`."""
        return None if self._shown.encoded is None or self.numbers is None else self._shown.encoded[self.numbers]

    @property
    def is_supported(self) -> bool:
        """Whether leaves, and not the background alone, support the evidence."""
        return bool(self.state.background_weight()[0] <= SUPPORT)

    @cached_property
    def n_rows(self) -> float:
        """Number of training rows that the evidence stands for; NaN if the joint does not know its rows."""
        if not self.conditions:
            return self.model.schema.n_rows or math.nan
        log_probability = np.array([self.log_evidence + self._log_missing])
        return float(rows_like(self.model, self.evidence, log_probability)[0])

    @property
    def support(self) -> str:
        """How many rows support the answers, in words; with a table, its number of rows and the expected number."""
        learned = self.model.schema.n_rows
        if not self.conditions:
            return ""
        X = self._shown.encoded
        if X is None or self.rows is None or self.is_density or math.isnan(self.n_rows):
            return support_in_words(self.n_rows, learned)
        expected = self.n_rows * len(X) / learned
        return f"{len(self.rows):,} rows of the table, where the joint expects {expected:,.0f}"

    @property
    def is_extrapolated(self) -> bool:
        """Whether too few rows (`FEW_SUPPORTING`) support the answers: they come from the model's assumptions."""
        return self.n_rows < FEW_SUPPORTING

    def _is_point(self) -> bool:
        values = zip(self.model.schema.columns, self.evidence.value[0].tolist(), strict=True)
        return any(c.step == 0.0 and not c.is_categorical and not math.isnan(x) and x not in c.atoms for c, x in values)


def _model_given(
    shown: ShownJoint, missing: Mapping[str, bool], known: tuple[str, ...]
) -> tuple[Distribution | None, float]:
    """The model given which cells are missing, and the log-probability of that; the last few are kept."""
    # It is None where the ``known`` columns cannot have values then.
    if not missing:
        return shown.joint.distribution, 0.0
    kept, key = shown.said_missing, (tuple(missing.items()), known)
    found = kept.get(key)
    if found is None:
        found = shown.joint.distribution.given_missing_cells(missing, known)
        while len(kept) >= MODELS:
            kept.pop(next(iter(kept)), None)
        kept[key] = found
    return found


# ---- What the pages of one kind of joint may ask, and whether an answer is still wanted.


class Questions(NamedTuple):
    """What the pages of one kind of joint ask.

    asks : dict. What answers each question, by name.
    prepare : callable. Works out, once, what the questions need.
    waits : bool. Whether a question waits until this is done; otherwise it works out what it needs.
    compile_ahead : callable or None. Compiles what the buttons of a page ask; None if nothing is left to compile.
    """

    asks: dict[str, Callable[..., Any]]
    prepare: Callable[[Any], None]
    waits: bool
    compile_ahead: Callable[[Any], None] | None


class Overtaken(Exception):
    """Nobody waits for the answer any more."""


def always() -> bool:
    """Whether a question is still wanted, of those that nothing overtakes."""
    return True


# ---- One column given evidence: masses of bins or levels, mean and interval, divergence from before.

MOST_COUNTED = 20_000
"""Most rows of the table that are counted for the outline of a card."""
BEYOND = 0.01
"""Largest probability beyond what is learned of a column with which its mean is shown."""
_TAILS = np.array([0.05, 0.95])
"""Ends of the interval, as probabilities."""
_Three = tuple[float | None, float | None, float | None]


def column_answer(shown: ShownJoint, known: Known, j: int, is_exact: bool, axis: _Axis | None = None) -> dict[str, Any]:
    """The content of the card of column j, as a dict for JSON; on an axis with other edges, also these."""
    column, bins, before = shown.columns[j], shown.bins[j], shown.masses[j]
    fine = before if not known.conditions else np.maximum(histogram(known.state, j, bins.cuts)[0], 0.0)
    mass = bins.together(fine)
    if column.is_categorical:
        numbers = _interval_of_levels(column, mass)
    else:
        numbers = _exact(known, j, column) if is_exact else _of_bins(shown, known, j, fine)
        if column.learned_until < math.inf:
            numbers = _until_learned(known, j, column, numbers)
    rows = None if j in shown.ranged else known.rows
    found = {
        "mass": _short_masses(mass),
        "rows": None if rows is None else _short_masses(_shares_of_table(rows, j, column, bins.edges)),
        **dict(zip(("mean", "low", "high"), numbers, strict=True)),
        "moved": divergence_bits(mass, bins.together(before)) if known.conditions else 0.0,
    }
    return found if axis is None else found | _on_axis(known, rows, j, column, axis)


class _Axis(NamedTuple):
    """Ends of bins on another axis, and whether the outermost bins hold what lies beyond."""

    edges: np.ndarray
    is_whole: bool

    def shares(self, mass: np.ndarray) -> list[float]:
        """Masses of the bins, of those of the bins and of what is below and above them, (B + 2,)."""
        inner = mass[1:-1].copy()
        if self.is_whole:
            inner[[0, -1]] += mass[[0, -1]]
        return _short_masses(inner)


def _on_axis(known: Known, rows: np.ndarray | None, j: int, column: Column, axis: _Axis) -> dict[str, Any]:
    """Masses of the bins of another axis, and of what lies outside of them."""
    cuts = axis.edges.copy()
    cuts[0] = np.nextafter(cuts[0], -np.inf)  # a bin does not hold its lower end, and a point mass may lie there
    mass = np.maximum(known.state.histogram(j, cuts)[0], 0.0)
    wide = np.concatenate([[-np.inf], cuts, [np.inf]])
    return {
        "mass": axis.shares(mass),
        "outside": [] if axis.is_whole else _short_masses(mass[[0, -1]]),
        "rows": None if rows is None else axis.shares(_shares_of_table(rows, j, column, wide)),
        "edges": all_shown(column, axis.edges),
        "beyond": is_beyond(column, axis.edges),
    }


def _axes(shown: ShownJoint, said: Any) -> dict[int, _Axis]:
    """The axes that the page has chosen, by place of the column: from a low end to a high one, or logarithmic."""
    if not isinstance(said, list) or not all(isinstance(one, Mapping) for one in said):
        raise ValueError(f"axes: expected a list of objects, got {str(said)[:40]}")
    found = {}
    for one in said:
        j, is_log = place_of(one.get("column"), len(shown.columns), "axes"), one.get("log") is True
        column, ends = shown.columns[j], [one.get("low"), one.get("high")]
        if column.is_categorical or (is_log and not shown.is_heavy(j)):
            raise ValueError(f"axes: column {column.name!r} has no such axis")
        if is_log:
            edges = shown.log_edges(j)
        elif not all(isinstance(x, int | float) and not isinstance(x, bool) for x in ends) or ends[0] > ends[1]:
            raise ValueError(f"axes: column {column.name!r}: expected a low and a high end, got {ends}")
        else:
            edges = even_edges(column, from_shown(column, ends[0]), from_shown(column, ends[1]), BINS)
        found[j] = _Axis(edges, is_log)
    return found


def _short_masses(mass: np.ndarray) -> list[float]:
    """Masses short enough to send, without invisible digits."""
    return [float(f"{x:.9g}") for x in mass.tolist()]


def _shares_of_table(X: np.ndarray, j: int, column: Column, edges: np.ndarray) -> np.ndarray:
    """Share of each bin or level in the rows X of the table; of many rows, every k-th one is counted."""
    return shares_of_rows(X[:: max(-(-len(X) // MOST_COUNTED), 1), j], column, edges)


def _interval_of_levels(column: Column, mass: np.ndarray) -> _Three:
    """P(True) of a boolean column; for an ordered one, the ends of the interval as places of levels."""
    if column.kind == "boolean":
        return (float(mass[column.codes[True]]) if True in column.codes else 0.0), None, None
    if not column.is_ordered:
        return None, None, None
    low, high = np.minimum(np.searchsorted(np.cumsum(mass), _TAILS - 1e-12), len(mass) - 1).tolist()
    return None, low, high


def _exact(known: Known, j: int, column: Column) -> _Three:
    """Mean, and the ends of the interval with equal tails that contains 90 %, as the joint answers them."""
    state = known.state
    mean = float(state.moments(j)[0][0])
    low, high = state.quantile(j, _TAILS)[0].tolist()
    return to_shown(column, mean), to_shown(column, low), to_shown(column, high)


def _until_learned(known: Known, j: int, column: Column, numbers: _Three) -> _Three:
    """The same of times that are not over in some rows: no mean that rests on what is not learned, and no later end."""
    until = column.learned_until
    beyond = 1.0 - float(known.state.cdf(j, np.array([until]))[0, 0])
    last = to_shown(column, until)
    mean, *ends = numbers
    low, high = (x if x is None or last is None else min(x, last) for x in ends)
    return (None if beyond > BEYOND else mean), low, high


def _of_bins(shown: ShownJoint, known: Known, j: int, fine: np.ndarray) -> _Three:
    """The same from masses of cuts (C,); within each cut, the distribution is that without evidence."""
    column, bins = shown.columns[j], shown.bins[j]
    mean = float(fine @ shown.centers[j])
    low, high = np.interp(_TAILS, np.concatenate([[0.0], np.cumsum(fine)]), bins.cuts).tolist()
    if column.step > 0.0:
        low, high = (
            column.center + np.ceil((x - column.center) / column.step - 0.5 - 1e-6) * column.step for x in (low, high)
        )
    numbers = [to_shown(column, x) for x in (mean, low, high)]
    condition = known.conditions.get(column.name)
    written = {} if condition is None else written_condition(column, condition)
    least, most = written.get("low"), written.get("high")
    numbers = [x if x is None or least is None else max(x, least) for x in numbers]
    mean_, low_, high_ = (x if x is None or most is None else min(x, most) for x in numbers)
    return mean_, low_, high_


# ---- How probable it is, given evidence, that a cell is missing.


def _missing_shares(shown: ShownJoint, known: Known) -> list[float | None]:
    """P(the cell is missing | evidence) of each column; None if it never is, or if the column itself has evidence."""
    found: list[float | None] = [None] * len(shown.columns)
    asked = []
    for j, column in enumerate(shown.columns):
        condition = known.conditions.get(column.name)
        if isinstance(condition, Missing):
            found[j] = 1.0
        elif condition == Not(Missing()):
            found[j] = 0.0
        elif condition is None and column.name in shown.can_miss:
            asked.append(j)
    if asked:
        for j, x in zip(asked, known.state.missing_probabilities(asked).tolist(), strict=True):
            found[j] = min(x, 1.0)
    return found


# ---- What a page asks first: the table, and all columns given evidence.


def table(shown: ShownJoint, body: Mapping[str, Any]) -> dict[str, Any]:
    """The columns, and the bins of their histograms; ``body`` is not used."""
    can_miss = shown.can_miss
    return {
        "title": shown.title,
        "version": shown.version,
        "said": size(shown.joint),
        "rows": None if shown.rows is None else len(shown.rows),
        "columns": [
            described(column, bins.edges) | {"can_miss": column.name in can_miss, "heavy": shown.is_heavy(j)}
            for j, (column, bins) in enumerate(zip(shown.columns, shown.bins, strict=True))
        ],
    }


def posterior(shown: ShownJoint, body: Mapping[str, Any], is_wanted: Callable[[], bool] = always) -> dict[str, Any]:
    """Every column given ``evidence``, or the ``columns`` listed, on other ``axes`` if any; exact if ``exact``."""
    # Raises Overtaken if ``is_wanted``, called before each column, returns False.
    known = Known(shown, body.get("evidence"))
    wanted, is_exact = _places_asked(body.get("columns"), len(shown.columns)), body.get("exact") is True
    columns = columns_given(shown, known, wanted, is_exact, is_wanted, _axes(shown, body.get("axes") or []))
    asked = [shown.columns[j] for j in wanted] or shown.columns
    return {
        "id": body.get("id"),
        "version": shown.version,
        "evidence": write_evidence(shown.joint.schema, known.conditions),
        "sentence": known.sentence,
        "python": python_call(known.conditions),
        "shell": shell_command(shown.title, known.conditions, asked),
        "probability": None if known.is_density else min(math.exp(known.log_probability), 1.0),
        "log_probability": known.log_probability,
        "supported": known.is_supported,
        "support": known.support,
        "extrapolated": known.is_extrapolated,
        "columns": columns,
    }


def columns_given(
    shown: ShownJoint,
    known: Known,
    wanted: list[int],
    is_exact: bool,
    is_wanted: Callable[[], bool] = always,
    axes: Mapping[int, _Axis] = MappingProxyType({}),
) -> list[dict[str, Any]]:
    """The answers of the wanted columns, computed in parallel; the evidence is propagated once."""
    if not known.conditions and not is_exact and shown.kept and not axes:
        return [shown.kept[j] for j in wanted]

    def work(j: int) -> dict[str, Any]:
        if not is_wanted():
            raise Overtaken
        return column_answer(shown, known, j, is_exact, axes.get(j))

    missing = _missing_shares(shown, known)
    found = map_ordered(work, [(j,) for j in wanted])
    return [answer | {"missing": missing[j]} for j, answer in zip(wanted, found, strict=True)]


_PREPARING = threading.Lock()


def prepare(shown: ShownJoint) -> None:
    """Compute what every question needs before the first question; only once, also with several threads."""
    with _PREPARING:
        if not shown.kept:
            table(shown, {})
            found = columns_given(shown, Known(shown, None), list(range(len(shown.columns))), False)
            shown.kept.update(enumerate(found))


def size(joint: Any) -> str:
    """How large a joint is, in words."""
    sizes = [(len(joint.columns), "column"), (joint.n_trees, "tree"), (joint.n_leaves, "leaf")]
    plural = {"column": "columns", "tree": "trees", "leaf": "leaves"}
    words = [f"{n:,} {what if n == 1 else plural[what]}" for n, what in sizes if n]
    return ", ".join(words + ([f"up to {joint.n_states:,} hidden states a column"] if joint.n_states else []))


def _places_asked(said: Any, d: int) -> list[int]:
    if said is None:
        return list(range(d))
    if not isinstance(said, list):
        raise ValueError(f"columns: expected a list of places, got {type(said).__name__}")
    return [place_of(j, d, "columns") for j in said]
