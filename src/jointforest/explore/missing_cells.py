"""How probable it is, given evidence, that a cell is missing."""

from __future__ import annotations

import math

import numpy as np

from ..forest.part import ForestPart
from ..queries.posterior.density import log_density
from ..queries.reshape.missing import given_missing
from ..table.conditions import Not
from ..table.missing import Missing
from .known import Known
from .subject import Subject


def missing_shares(subject: Subject, known: Known) -> list[float | None]:
    """P(the cell is missing | evidence) of each column; None where it never is, or the evidence is of the column."""
    able = [j for j, column in enumerate(subject.columns) if column.name in subject.given_missing]
    found: list[float | None] = [None] * len(subject.columns)
    shares = _by_leaves(known, able) if able else []
    for k, j in enumerate(able):
        column = subject.columns[j]
        said = known.conditions.get(column.name)
        if said is None:
            found[j] = shares[k] if shares is not None else _by_model(subject, known, column.name)
        elif isinstance(said, Missing):
            found[j] = 1.0
        elif said == Not(Missing()):
            found[j] = 0.0
    return found


def _by_leaves(known: Known, wanted: list[int]) -> list[float] | None:
    """Of a lone forest the mean of its leaves' rates; None of other models."""
    part = known.model.parts[0]
    if len(known.model.parts) > 1 or not isinstance(part, ForestPart) or known.weighed.known is None:
        return None
    post = known.weighed.known[0].posterior(None)
    weight = np.exp(post.log_weight - post.log_evidence[0])
    rates = part.forest.leaves.missing_rate
    return [min(float(weight @ rates[post.leaf, j]), 1.0) for j in wanted]


def _by_model(subject: Subject, known: Known, name: str) -> float:
    """By how well the evidence fits the model in which the cell is missing."""
    model, log_missing = subject.given_missing[name]
    if known.model is not subject.joint.model:
        found, log_missing = given_missing(known.model, {name: True})
        if found is None:
            return 0.0
        model = found
    both = float(log_density(model, known.evidence)[0]) + log_missing
    return min(math.exp(both - known.log_evidence), 1.0)
