"""How probable it is, given evidence, that a cell is missing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..forest.part import ForestPart
from ..ground.mixture_kernels import mix_rows
from ..hidden.missing import missing_shares as of_hidden_trees
from ..hidden.part import HiddenPart
from ..model.part import Part
from ..table.conditions import Not
from ..table.missing import Missing
from .known import Known
from .subject import Subject


def missing_shares(subject: Subject, known: Known) -> list[float | None]:
    """P(the cell is missing | evidence) of each column; None where it never is, or the evidence is of the column."""
    found: list[float | None] = [None] * len(subject.columns)
    asked = []
    for j, column in enumerate(subject.columns):
        said = known.conditions.get(column.name)
        if isinstance(said, Missing):
            found[j] = 1.0
        elif said == Not(Missing()):
            found[j] = 0.0
        elif said is None and column.name in subject.can_miss:
            asked.append(j)
    if asked:
        share = np.exp(known.log_parts - np.logaddexp.reduce(known.log_parts))
        some = np.flatnonzero(share > 0.0).tolist()
        weighed = known.weighed.known or ()
        each = sum(share[k] * _of_part(known.model.parts[k], known, weighed[k], asked) for k in some)
        for j, x in zip(asked, np.asarray(each).tolist(), strict=True):
            found[j] = min(x, 1.0)
    return found


def _of_part(part: Part, known: Known, weighed: Any, columns: list[int]) -> np.ndarray:
    """The same of one part that has weighed the evidence, of some columns, (len(columns),)."""
    if isinstance(part, HiddenPart):
        return of_hidden_trees(part.hidden, weighed, columns)
    if isinstance(part, ForestPart):
        rates = part.forest.leaves.missing_rate
        found = np.zeros(rates.shape[1])
        mix_rows(rates, *weighed.mixture(None), found)
        return found[columns]
    before = float(part.log_density(known.evidence)[0])
    return np.array([_by_condition(part, known, j, before) for j in columns])


def _by_condition(part: Part, known: Known, j: int, before: float) -> float:
    """P(cell j is missing | evidence) by how well the evidence fits the part where it is."""
    given, log_missing = part.given_missing(j, True)
    if given is None:
        return 0.0
    return math.exp(float(given.log_density(known.evidence)[0]) + log_missing - before)
