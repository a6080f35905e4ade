"""Queries and conditions as text."""

from .errors import QuerySyntaxError
from .parser import parse_conditions, parse_event, parse_query
from .query import Query
from .render import conditions_text
from .sums import Comparison, Sum

__all__ = [
    "Comparison",
    "Query",
    "QuerySyntaxError",
    "Sum",
    "conditions_text",
    "parse_conditions",
    "parse_event",
    "parse_query",
]
