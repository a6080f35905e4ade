"""Which columns depend on each other, of rows drawn from the joint: a matrix, a tree, what predicts a column."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..data.discretization.dependence import coarse, mutual_information, spanning_tree
from ..explorer.shown import ShownJoint

DRAWS = 10_000
"""Most of the joint's drawn rows that are counted."""
MOST_IN_MATRIX = 30
"""Columns of the matrix."""
STRONGEST = 12
"""Columns that are named for a target."""
LEAST = 0.1
"""Weaker dependences are not named: chance is not far."""
_CODES = 16


class Dependence(NamedTuple):
    """Mutual information of each two of d columns.

    Attributes
    ----------
    names : tuple of str
    bits : float64 array (d, d)
    strength : float64 array (d, d)
        sqrt(1 - exp(-2 I)), I in nats: of normal columns their correlation without its sign.
    order, parent : int32 array (d,)
        The spanning tree of the strongest (Chow, Liu): see `spanning_tree`.
    """

    names: tuple[str, ...]
    bits: np.ndarray
    strength: np.ndarray
    order: np.ndarray
    parent: np.ndarray


def dependence(shown: ShownJoint) -> Dependence | None:
    """The dependences of a joint; None of a single column."""
    columns = shown.columns
    if len(columns) < 2:
        return None
    X = shown.draws[:DRAWS]
    codes, n_codes = np.empty(X.shape, np.int64), np.empty(len(columns), np.int64)
    for j, column in enumerate(columns):
        known = ~np.isnan(X[:, j])  # a rule may make cells missing
        if column.is_categorical:
            code, n_codes[j] = X[known, j], len(column.levels)
        else:
            cuts = np.unique(np.quantile(X[known, j], np.arange(1, _CODES) / _CODES)) if known.any() else X[:0, j]
            code, n_codes[j] = np.searchsorted(cuts, X[known, j]), len(cuts) + 1
        codes[:, j] = n_codes[j]
        codes[known, j] = code
    is_ordered = np.array([not column.is_categorical for column in columns])
    information = mutual_information(*coarse(codes, n_codes, is_ordered))
    names = tuple(column.name for column in columns)
    strength = np.sqrt(-np.expm1(-2.0 * information))
    return Dependence(names, information / np.log(2.0), strength, *spanning_tree(information))


def matrix(found: Dependence) -> dict[str, Any]:
    """The columns that depend most on others, those that hang together side by side."""
    keep = set(np.argsort(-found.strength.max(axis=1), kind="stable")[:MOST_IN_MATRIX].tolist())
    some = [j for j in found.order.tolist() if j in keep]
    rows = [
        {
            "name": found.names[i],
            "cells": [None if i == j else _cell(found.strength[i, j]) for j in some],
        }
        for i in some
    ]
    return {"rows": rows, "left_out": len(found.names) - len(some)}


def tree(found: Dependence) -> dict[str, Any]:
    """The tree of the strongest dependences: its middle, and the branches of it, which stay whole on a page.

    A branch is a list of columns, each below the one that it hangs on.
    """
    order, parent = found.order.tolist(), found.parent.tolist()
    children: list[list[int]] = [[] for _ in order]
    for k, above in enumerate(parent[1:], 1):
        children[above].append(k)
    lines, waiting = [], [(0, 0)]
    while waiting:
        k, depth = waiting.pop()
        about = {"name": found.names[order[k]], "depth": min(depth, 9), "above": None, "bits": "", "strength": ""}
        if k:
            i, j = order[k], order[parent[k]]
            about |= {"above": found.names[j], "bits": f"{found.bits[i, j]:.2f}"}
            about["strength"] = f"{found.strength[i, j]:.2f}"
        lines.append(about)
        strongest_last = sorted(children[k], key=lambda c: (found.strength[order[c], order[k]], -c))
        waiting += [(c, depth + 1) for c in strongest_last]
    branches: list[list[dict[str, Any]]] = []
    for line in lines[1:]:
        if line["depth"] == 1:
            branches.append([])
        branches[-1].append(line)
    return {"root": lines[0]["name"], "branches": branches}


def predictors(found: Dependence, target: str) -> list[dict[str, str]]:
    """The columns that say most of a target, each alone, the strongest first."""
    j = found.names.index(target)
    best = np.argsort(-found.strength[j], kind="stable")[:STRONGEST].tolist()
    return [
        {
            "name": found.names[i],
            "bits": f"{found.bits[i, j]:.2f}",
            "strength": f"{found.strength[i, j]:.2f}",
            "width": f"{100 * found.strength[i, j]:.1f}",
        }
        for i in best
        if i != j and found.strength[i, j] >= LEAST
    ]


def _cell(strength: float) -> dict[str, str]:
    return {"text": f"{strength:.2f}".lstrip("0"), "tone": f"q{round(10 * float(strength))}"}
