"""Queries and conditions as text."""

from .conditions import Comparison, Sum
from .parser import Query, parse_conditions, parse_event, parse_query
from .render import conditions_text
from .tokens import QuerySyntaxError

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
