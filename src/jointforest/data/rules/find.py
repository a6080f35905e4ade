"""All rules of a table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..schema import Schema, snapped
from .contradictions import CodedTable
from .equations import find_equations
from .functions import find_combinations, find_functions
from .missing import find_missing
from .orders import find_orders
from .rule import Equation, Order, Rule

_STEPS = (1.0, 0.1, 0.01, 1e-3, 1e-4)
"""Steps of the decimals that numbers usually have."""


def with_rules(schema: Schema, X: np.ndarray) -> Schema:
    """The schema of a table X (n, d), with the rules that are found in it."""
    return replace(schema, rules=find_rules(schema, X))


def find_rules(schema: Schema, X: np.ndarray) -> tuple[Rule, ...]:
    """The rules that hold in all rows of X (n, d), or in all but one in a thousand; implied ones are left out."""
    X = np.column_stack([x if c.is_categorical else snapped(c, x) for c, x in zip(schema.columns, X.T, strict=True)])
    table = CodedTable(schema, X)
    equations = find_equations(table)
    summed = [set(equation.columns) for equation in equations]
    functions = [rule for rule in find_functions(table) if not any(set(rule.columns) <= names for names in summed)]
    combinations = find_combinations(table, functions)
    return (*equations, *functions, *combinations, *find_orders(table, equations), *find_missing(table))


def find_broken_rules(schema: Schema, X: np.ndarray, most: float) -> list[Equation | Order]:
    """Equations and orders of columns of numbers that hold in all rows of X (n, d) but few: a share ``most`` of the
    rows for each sign between the columns."""
    numeric = [j for j, column in enumerate(schema.columns) if not column.is_categorical]
    columns = tuple(schema.columns[j] for j in numeric)
    X = np.column_stack([np.empty((len(X), 0)), *(snapped(c, X[:, j]) for c, j in zip(columns, numeric, strict=True))])
    table = CodedTable(Schema(columns, schema.frame), X)
    equations = find_equations(table, most)
    return [*equations, *find_orders(table, equations, most)]


def with_usual_grids(schema: Schema, X: np.ndarray, most: float) -> Schema:
    """The schema with the decimals that all cells of X (n, d) have but a share ``most`` of each column."""
    columns = []
    for column, x in zip(schema.columns, X.T, strict=True):
        x = x[~np.isnan(x)]
        steps = () if column.is_categorical or column.kind == "datetime" or not len(x) else _STEPS
        for step in steps:
            if step > column.step > 0.0 or column.step == 0.0:
                off = np.abs(x / step - np.rint(x / step))
                if np.count_nonzero(off > 1e-6 + 1e-12 * np.abs(x / step)) <= most * len(x):
                    column = replace(column, kind="rounded", step=step, origin=0.0, digits=0, atoms=())
                    break
        columns.append(column)
    return replace(schema, columns=tuple(columns))
