"""Which columns depend on each other in the joint: a matrix or a map, and what predicts a column."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..data.discretization.dependence import spanning_tree
from ..explorer.shown import ShownJoint
from ..inference.information.classes import all_informations, information_of_rows
from ..inference.information.column_map import column_map

MOST_IN_MATRIX = 25
"""With more columns, a map takes the place of the matrix."""
MOST_IN_MAP = 60
"""Columns of the map."""
STRONGEST = 12
"""Columns that are named for a target."""
_LEAST = 0.1
"""Weaker dependences are not named: chance is not far."""


class Dependence(NamedTuple):
    """Mutual information of each two of d columns, of their classes: see `Joint.mutual_information`.

    names : tuple of str
    bits : float64 array (d, d)
    rows : float64 array (d, d), or None. The bits of rows of the table.
    strength : float64 array (d, d). sqrt(1 - exp(-2 I)), I in nats: of normal columns their correlation without its
        sign.
    order : int32 array (d,). Columns, each after the one on which it depends most: see `spanning_tree`.
    """

    names: tuple[str, ...]
    bits: np.ndarray
    rows: np.ndarray | None
    strength: np.ndarray
    order: np.ndarray


def find_dependence(shown: ShownJoint, X: np.ndarray | None = None) -> Dependence | None:
    """The dependences of a joint, and of rows X (n, d) of its table; None of a single column."""
    columns = shown.columns
    if len(columns) < 2:
        return None
    cuts = shown.class_cuts
    information = all_informations(shown.nothing, range(len(columns)), dict(enumerate(cuts)))
    rows = None if X is None else information_of_rows(X, columns, cuts) / np.log(2.0)
    names = tuple(column.name for column in columns)
    strength = np.sqrt(-np.expm1(-2.0 * information))
    return Dependence(names, information / np.log(2.0), rows, strength, spanning_tree(information)[0])


def matrix(found: Dependence) -> list[dict[str, Any]] | None:
    """The rows of a matrix, columns that depend on each other side by side; None of too many columns."""
    columns = found.order.tolist()
    if len(columns) > MOST_IN_MATRIX:
        return None
    return [
        {"name": found.names[i], "cells": [None if i == j else _cell(found, i, j) for j in columns]} for i in columns
    ]


_ROW, _WIDE, _THICK = 30, 110, 7
"""Pixels: height of a line of the map, width of its arcs, of the thickest one."""


def arcs(found: Dependence) -> dict[str, Any]:
    """The map of the columns that depend most on others, as `map_panel.js` draws it."""
    some = np.argsort(-found.strength.max(axis=1), kind="stable")[:MOST_IN_MAP].tolist()
    drawn = column_map(found.bits[np.ix_(some, some)])
    at = {k: _ROW * (line + 0.5) for line, k in enumerate(drawn.order)}
    most = max((bits for *_, bits in drawn.edges), default=1.0)
    paths = []
    for i, j, bits in drawn.edges:
        a, b = some[i], some[j]
        reach = max(_THICK, _WIDE - 14 - 0.32 * abs(at[i] - at[j]))
        paths.append(
            {
                "d": f"M{_WIDE} {at[i]:g}C{reach:g} {at[i]:g} {reach:g} {at[j]:g} {_WIDE} {at[j]:g}",
                "width": f"{max(1.0, _THICK * bits / most):.2f}",
                "title": f"{found.names[a]} and {found.names[b]}: {_bits(found, a, b)}",
            }
        )
    names = [found.names[some[k]] for k in drawn.order]
    return {"names": names, "paths": paths, "wide": _WIDE, "row": _ROW, "left_out": len(found.names) - len(some)}


def predictors(found: Dependence, target: str) -> list[dict[str, str]]:
    """The best predictors of a target, each alone, the strongest first."""
    j = found.names.index(target)
    best = np.argsort(-found.strength[j], kind="stable")[:STRONGEST].tolist()
    return [
        {
            "name": found.names[i],
            "bits": _bits(found, i, j),
            "strength": f"{found.strength[i, j]:.2f}",
            "width": f"{100 * found.strength[i, j]:.1f}",
        }
        for i in best
        if i != j and found.strength[i, j] >= _LEAST
    ]


def _bits(found: Dependence, i: int, j: int) -> str:
    beside = "" if found.rows is None else f" (table {found.rows[i, j]:.2f})"
    return f"{found.bits[i, j]:.2f} bits{beside}"


def _cell(found: Dependence, i: int, j: int) -> dict[str, str]:
    strength = float(found.strength[i, j])
    return {"text": f"{strength:.2f}".lstrip("0"), "tone": f"q{round(10 * strength)}", "title": _bits(found, i, j)}
