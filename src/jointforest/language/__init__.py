"""Queries and conditions as text."""

from .errors import QuerySyntaxError
from .parser import parse_conditions, parse_query
from .query import Query
from .render import conditions_text

__all__ = ["Query", "QuerySyntaxError", "conditions_text", "parse_conditions", "parse_query"]
