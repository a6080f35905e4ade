"""Queries and conditions as text."""

from .parser import Comparison, Query, QuerySyntaxError, Sum, parse_beside, parse_conditions, parse_event, parse_query
from .render import conditions_text

__all__ = [
    "Comparison",
    "Query",
    "QuerySyntaxError",
    "Sum",
    "conditions_text",
    "parse_beside",
    "parse_conditions",
    "parse_event",
    "parse_query",
]
