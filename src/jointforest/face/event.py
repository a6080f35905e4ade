"""An event beside evidence: both together, and how probable the event is given the evidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..model.model import Model
from ..queries.posterior.density import log_density
from ..queries.posterior.weighed import WeighedEvidence
from ..queries.reshape.missing import given_missing
from ..table.build_evidence import intersect
from ..table.conditions import AnyOf
from ..table.evidence import Evidence
from ..table.missing import without_missing


def with_event(
    known: WeighedEvidence, event: Mapping[str, Any], as_regions: bool
) -> tuple[Model | None, Evidence, float]:
    """The model given the cells that the event says are missing, the evidence and the rest of it, log p of those cells.

    The model is None where the cells cannot be missing. With ``as_regions`` a value is a set of one: its mass counts.
    """
    conditions, missing = without_missing(event)
    model, log_missing = given_missing(known.model, missing)
    if as_regions:
        conditions = {name: AnyOf(condition) for name, condition in conditions.items()}
    return model, intersect(known.model.schema, known.evidence, conditions), log_missing


def log_event(
    known: WeighedEvidence, event: Mapping[str, Any], as_regions: bool, n_jobs: int | None = -1
) -> np.ndarray:
    """log p(event | evidence), (n,); NaN where the evidence has probability 0."""
    model, both, log_missing = with_event(known, event, as_regions)
    log_both = np.full(len(both.value), -np.inf) if model is None else log_density(model, both, n_jobs) + log_missing
    with np.errstate(invalid="ignore"):
        return log_both - known.log_probability
