"""Queries in words, answered."""

from __future__ import annotations

from typing import Any

from ..data.conditions import Interval, Not, check_hard
from ..data.schema import Column
from ..inference.information.integral import Estimate, exact
from ..models.base import Distribution
from ..query_language.parser import Query, parse_query
from .pairs import deviation_of, mean_of_sum, variance_of
from .posterior import N_SAMPLES, Posterior, posterior_of, with_event


def ask(model: Distribution, text: str) -> Any:
    """Answer of a query; see `Joint.query`."""
    query = _parsed(model, text)
    return _answer(model, query, posterior_of(model, dict(query.evidence)))


def ask_with_support(model: Distribution, text: str) -> tuple[Any, float, Column | None]:
    """Answer of a query, the number of training rows that its evidence stands for, and the column of its values."""
    query = _parsed(model, text)
    posterior = posterior_of(model, dict(query.evidence))
    answer = _answer(model, query, posterior)
    is_value = query.function in ("E", "Mode", "Median", "Q")
    column = model.schema[query.column] if is_value and query.column is not None else None
    return answer, float(posterior.n_rows) if query.evidence else model.schema.n_rows, column


def _parsed(model: Distribution, text: str) -> Query:
    """The query that a text is; its names and levels are those of the model."""
    if not isinstance(text, str):
        raise TypeError(f"expected a query as text, such as 'E(age | sex = Female)', got {type(text).__name__}")
    query = parse_query(text, model.schema.kinds_asked, model.schema.reasons_aside)
    _check_column_names(model, query)
    return query


def _answer(model: Distribution, query: Query, posterior: Posterior) -> Any:
    """What a query asks of the posterior given its evidence."""
    if query.sum is not None:
        answer = {"E": mean_of_sum, "Var": variance_of, "Sd": deviation_of}[query.function]
        posterior.check()
        return posterior.give(answer(posterior.state, query.sum))
    if query.compared:
        return _comparison(posterior, query)
    if query.column is not None and query.other is not None:
        return {"Cov": posterior.cov, "Corr": posterior.corr}[query.function](query.column, query.other)
    if query.function == "logp":
        return _log_density_of_event(posterior, query)
    if query.column is None:
        return posterior.probability(dict(query.event))
    if query.function == "P":
        is_number = model.schema[query.column].kind == "integer" and model.schema[query.column].is_flag
        return (
            {x: posterior.probability({query.column: x}) for x in (0, 1)}
            if is_number
            else posterior.proba(query.column)
        )
    if query.function == "Mode":
        return posterior.marginal(query.column).likeliest()
    if query.function == "Q":
        return {level: posterior.quantile(query.column, level) for level in query.levels}
    if query.function == "Median":
        return posterior.quantile(query.column, 0.5)
    return {"E": posterior.mean, "Var": posterior.var, "Sd": posterior.std}[query.function](query.column)


def _check_column_names(model: Distribution, query: Query) -> None:
    """Refuse a word that stands for a level but names another column, such as in P(size > width)."""
    for name, condition in query.event:
        column = model.schema[name]
        inner = condition.condition if isinstance(condition, Not) else condition
        values = (inner.lo, inner.hi) if isinstance(inner, Interval) else (inner,)
        for value in values:
            is_level = not column.is_categorical or not isinstance(value, str) or column.code(value) is not None
            if not is_level and value in model.schema.names:
                raise ValueError(
                    f"column {name!r}: {value!r} is not one of its {len(column.levels)} levels, but it is a column; "
                    f"to compare the two columns, write it in backticks: `{value}`"
                )


def _comparison(posterior: Posterior, query: Query) -> Estimate:
    """P(comparison, event | evidence) = P(event | evidence) P(comparison | event, evidence)."""
    if not query.event:
        return posterior.probability_of(query.compared, N_SAMPLES, 0)
    share = float(posterior.probability(dict(query.event)))
    if share == 0.0:
        return exact(0.0)
    model, both, _ = with_event(posterior.state, dict(query.event))
    assert model is not None
    estimate = Posterior(model.observe(both), one=True).probability_of(query.compared, N_SAMPLES, 0)
    return Estimate(share * estimate.value, share * estimate.standard_error, estimate.method)


def _log_density_of_event(posterior: Posterior, query: Query) -> float:
    """log p(event | evidence), values counted by their density."""
    check_hard(dict(query.event))
    posterior.check()
    return float(posterior.log_event(dict(query.event), as_regions=False)[0])
