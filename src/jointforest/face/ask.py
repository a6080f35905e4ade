"""Queries in words, answered."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..language import Query, parse_query
from ..model.model import Model
from ..queries.posterior.density import log_density
from ..table.build_evidence import intersect
from ..table.conditions import check_hard
from .posterior import Posterior, posterior_of


def ask(model: Model, text: str) -> Any:
    """Answer of a query; see `Joint.query`."""
    if not isinstance(text, str):
        raise TypeError(f"expected a query as text, such as 'E(age | sex = Female)', got {type(text).__name__}")
    query = parse_query(text, {column.name: column.kind for column in model.schema.columns})
    posterior = posterior_of(model, dict(query.evidence))
    if query.function == "logp":
        return _log_density(posterior, query)
    if query.column is None:
        return posterior.probability(dict(query.event))
    if query.function == "P":
        return posterior.proba(query.column)
    if query.function == "Mode":
        return posterior.marginal(query.column).likeliest()
    if query.function == "Q":
        return {level: posterior.quantile(query.column, level) for level in query.levels}
    if query.function == "Median":
        return posterior.quantile(query.column, 0.5)
    return {"E": posterior.mean, "Var": posterior.var, "Sd": posterior.std}[query.function](query.column)


def _log_density(posterior: Posterior, query: Query) -> float:
    """log p(event | evidence), values counted by their density."""
    check_hard(dict(query.event))
    weighed = posterior.weighed
    weighed.check()
    both = intersect(weighed.model.schema, weighed.evidence, dict(query.event))
    return float((log_density(weighed.model, both) - np.asarray(weighed.log_probability))[0])
