"""What a page asks of a joint, as plain dicts of JSON: the table, and all columns given evidence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..model.model import Model
from ..queries.column.distribution import quantile
from ..queries.column.histogram import histogram
from ..queries.column.moments import mean_variance
from ..queries.posterior.density import log_density
from ..queries.posterior.weighed import SUPPORT, WeighedEvidence
from ..queries.reshape.missing import given_missing
from ..table import times
from ..table.build_evidence import build
from ..table.conditions import Not, has_soft
from ..table.missing import Missing, without_missing
from ..table.schema import Column
from .numbers import all_shown, to_shown
from .state import (
    Conditions,
    place_of,
    python_call,
    read_evidence,
    sentence,
    shell_command,
    tidied,
    write_evidence,
)
from .subject import Bins, Subject

TAILS = np.array([0.05, 0.95])
_MOST_MODELS = 4


class ImpossibleEvidence(ValueError):
    """Evidence of probability 0."""


class Known:
    """Evidence as it was asked, tidied, and weighed once for all columns."""

    def __init__(self, subject: Subject, said: Any) -> None:
        schema = subject.joint.schema
        self.conditions = tidied(schema, read_evidence(schema, said))
        self.sentence = sentence(self.conditions)
        rest, missing = without_missing(self.conditions)
        model, self.log_missing = _model_given(subject, missing)
        if model is None:
            raise ImpossibleEvidence(
                f"the evidence has probability 0: {self.sentence}; at learning such cells were never, or always, "
                "missing"
            )
        self.model = model
        self.evidence = build(schema, conditions=rest)
        self.weighed = (
            WeighedEvidence(self.model, self.evidence, True, self.sentence) if self.conditions else subject.nothing
        )
        self.is_density = _is_density(subject, self.evidence, rest)
        if self.log_probability == -math.inf:
            raise ImpossibleEvidence(
                f"the evidence has probability 0: {self.sentence}; drop or widen one of its conditions"
            )

    @property
    def log_probability(self) -> float:
        """log p(evidence), a density where numbers without a grid have values, or likelihoods."""
        grid = [
            c.step
            for c, x in zip(self.model.schema.columns, self.evidence.value[0].tolist(), strict=True)
            if c.step > 0.0 and not math.isnan(x)
        ]
        return float(self.weighed.log_probability[0]) + self.log_missing + sum(map(math.log, grid))

    @property
    def supported(self) -> bool:
        """Whether leaves, and not the background alone, support the evidence."""
        return bool(self.weighed.background_share[0] <= SUPPORT)


def table(subject: Subject, body: Mapping[str, Any]) -> dict[str, Any]:
    """The columns, and how their histograms are cut."""
    can_miss = subject.given_missing
    return {
        "title": subject.title,
        "version": subject.version,
        "said": _size(subject),
        "rows": None if subject.rows is None else len(subject.rows),
        "columns": [
            _about(column, bins) | {"can_miss": column.name in can_miss}
            for column, bins in zip(subject.columns, subject.bins, strict=True)
        ],
    }


def posterior(subject: Subject, body: Mapping[str, Any]) -> dict[str, Any]:
    """Every column given evidence."""
    known = Known(subject, body.get("evidence"))
    wanted, is_exact = _places(body.get("columns"), len(subject.columns)), body.get("exact") is True
    shown = subject.columns[wanted[0] if wanted else 0]
    return {
        "id": body.get("id"),
        "version": subject.version,
        "evidence": write_evidence(subject.joint.schema, known.conditions),
        "sentence": known.sentence,
        "python": python_call(known.conditions),
        "shell": shell_command(subject.title, known.conditions, shown),
        "probability": None if known.is_density else min(math.exp(known.log_probability), 1.0),
        "log_probability": known.log_probability,
        "supported": known.supported,
        "columns": [_column(subject, known, j, is_exact) for j in wanted],
    }


def _about(column: Column, bins: Bins) -> dict[str, Any]:
    about: dict[str, Any] = {
        "name": column.name,
        "kind": column.kind,
        "levels": None,
        "labels": None,
        "edges": None,
        "step": None,
        "atoms": [],
        "zone": None,
    }
    if column.is_categorical:
        return about | {"levels": list(column.levels), "labels": [str(level) for level in column.levels]}
    step = column.step * 1e3 if column.kind == "datetime" else column.step
    zone = times.zone_of(column.dtype) if column.kind == "datetime" else None
    shown = {"edges": all_shown(column, bins.edges), "atoms": all_shown(column, bins.atoms)}
    return about | shown | {"step": step or None, "zone": zone}


def _size(subject: Subject) -> str:
    joint = subject.joint
    parts = [(len(subject.columns), "columns"), (joint.n_trees, "trees"), (joint.n_leaves, "leaves")]
    parts += [(joint.n_states, "hidden states a column")]
    return ", ".join(f"{n:,} {what[:-1] if n == 1 and what[-1] == 's' else what}" for n, what in parts if n)


def _places(said: Any, d: int) -> list[int]:
    if said is None:
        return list(range(d))
    if not isinstance(said, list):
        raise ValueError(f"columns: expected a list of places, got {type(said).__name__}")
    return [place_of(j, d, "columns") for j in said]


def _model_given(subject: Subject, missing: Mapping[str, bool]) -> tuple[Model | None, float]:
    """The model given which cells are missing; the last few are kept, with the tables they have made."""
    if not missing:
        return subject.joint.model, 0.0
    kept, key = subject.said_missing, tuple(missing.items())
    if key not in kept:
        found = given_missing(subject.joint.model, missing)
        while len(kept) >= _MOST_MODELS:
            kept.pop(next(iter(kept)), None)
        kept[key] = found
        return found
    return kept[key]


def _is_density(subject: Subject, evidence: Any, rest: Conditions) -> bool:
    """Whether p(evidence) is no probability: numbers without a grid have values, or there are likelihoods."""
    values = zip(subject.columns, evidence.value[0].tolist(), strict=True)
    is_point = any(c.step == 0.0 and not c.is_categorical and x not in (*c.atoms,) and x == x for c, x in values)
    return is_point or any(map(has_soft, rest.values()))


def _column(subject: Subject, known: Known, j: int, is_exact: bool) -> dict[str, Any]:
    """One column given evidence."""
    column, bins = subject.columns[j], subject.bins[j]
    is_free = not known.conditions
    fine = subject.masses[j] if is_free else np.maximum(histogram(known.weighed, j, bins.cuts)[0], 0.0)
    mass = fine if column.is_categorical else np.add.reduceat(fine, bins.first)
    before = subject.masses[j] if column.is_categorical else np.add.reduceat(subject.masses[j], bins.first)
    numbers = _exact_numbers if is_exact and not column.is_categorical else _numbers
    return {
        "mass": _rounded(mass),
        "atoms": _rounded(fine[bins.cell]) if len(bins.cell) else [],
        "missing": _missing(subject, known, column),
        **dict(zip(("mean", "low", "high"), numbers(known, j, column, bins, mass), strict=True)),
        "moved": 0.0 if is_free else _bits(mass, before),
    }


def _rounded(mass: np.ndarray) -> list[float]:
    """Masses short enough to send, digits that nobody sees left out."""
    return [float(f"{x:.12g}") for x in mass.tolist()]


def _missing(subject: Subject, known: Known, column: Column) -> float | None:
    """P(the cell is missing | evidence); None where it never is, or the evidence is of this column."""
    said = known.conditions.get(column.name)
    if said is not None:
        return 1.0 if isinstance(said, Missing) else 0.0 if said == Not(Missing()) else None
    if column.name not in subject.given_missing:
        return None
    if known.model is subject.joint.model:
        model, log_before = subject.given_missing[column.name]
    else:
        found, log_before = given_missing(known.model, {column.name: True})
        if found is None:
            return 0.0
        model = found
    both = float(log_density(model, known.evidence)[0]) + log_before
    return min(math.exp(both - float(known.weighed.log_probability[0])), 1.0)


def _numbers(
    known: Known, j: int, column: Column, bins: Bins, mass: np.ndarray
) -> tuple[float | None, float | None, float | None]:
    """Mean, and the ends of the interval with equal tails that holds 90 %, from the bins."""
    if column.kind == "boolean":
        return (float(mass[column.codes[True]]) if True in column.codes else 0.0), None, None
    if column.is_categorical:
        if not column.is_ordered:
            return None, None, None
        low, high = np.minimum(np.searchsorted(np.cumsum(mass), TAILS - 1e-12), len(mass) - 1).tolist()
        return None, low, high
    edges = bins.edges
    low, high = np.interp(TAILS, np.concatenate([[0.0], np.cumsum(mass)]), edges).tolist()
    if column.step > 0.0:
        low, high = (
            column.center + round((x - column.center) / column.step + shift) * column.step
            for x, shift in ((low, 1e-9), (high, -1e-9))
        )
    mean = float(mass @ (0.5 * (edges[:-1] + edges[1:])))
    return to_shown(column, mean), to_shown(column, low), to_shown(column, high)


def _exact_numbers(
    known: Known, j: int, column: Column, bins: Bins, mass: np.ndarray
) -> tuple[float | None, float | None, float | None]:
    """The same, the joint's own."""
    w = known.weighed
    mean = float(mean_variance(w.model, w.evidence, j, known=w.known)[0][0])
    low, high = quantile(w.model, w.evidence, j, TAILS, known=w.known)[0].tolist()
    return to_shown(column, mean), to_shown(column, low), to_shown(column, high)


def _bits(mass: np.ndarray, before: np.ndarray) -> float:
    """Kullback-Leibler divergence from what was known before, in bits."""
    some = mass > 0.0
    ratio = mass[some] / np.maximum(before[some], 1e-300)
    return max(float(mass[some] @ np.log2(ratio)), 0.0)
