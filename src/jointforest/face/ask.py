"""Queries in words, answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..language import Query, parse_query
from ..queries.posterior.density import log_density
from ..table.evidence import intersect
from .posterior import Posterior

if TYPE_CHECKING:
    from .joint import Joint


def ask(joint: Joint, text: str) -> Any:
    """Answer of a query; see `Joint.query`."""
    if not isinstance(text, str):
        raise TypeError(f"expected a query as text, such as 'E(age | sex = Female)', got {type(text).__name__}")
    query = parse_query(text, joint.kinds)
    posterior = joint.given(dict(query.evidence))
    if query.function == "logp":
        return _log_density(joint, posterior, query)
    if query.column is None:
        return posterior.probability(dict(query.event))
    if query.function == "P":
        return posterior.proba(query.column)
    if query.function == "Mode":
        return posterior._likeliest(query.column)
    if query.function == "Q":
        return {level: posterior.quantile(query.column, level) for level in query.levels}
    if query.function == "Median":
        return posterior.quantile(query.column, 0.5)
    return {"E": posterior.mean, "Var": posterior.var, "Sd": posterior.std}[query.function](query.column)


def _log_density(joint: Joint, posterior: Posterior, query: Query) -> float:
    """log p(event | evidence), values counted by their density."""
    posterior.weighed.check()
    both = intersect(joint.schema, posterior.weighed.evidence, dict(query.event))
    return float((log_density(joint.model, both) - np.asarray(posterior.log_probability))[0])
