"""Why a column is predicted as it is: by how much each piece of the evidence moves the prediction."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .known import Known
from .shown import ShownJoint, to_shown
from .state import place_of, sentence, write_evidence

EXACT = 7
"""Up to so many conditions all their subsets are asked."""
ORDERS = 24
"""Of more, the mean over so many random orders is taken."""


def reasons(shown: ShownJoint, body: Mapping[str, Any]) -> dict[str, Any]:
    """By how much each condition of ``evidence`` moves the prediction of a column: conditional Shapley values."""
    known = Known(shown, body.get("evidence"))
    j = place_of(body.get("column"), len(shown.columns), "column")
    column = shown.columns[j]
    conditions = [name for name in known.conditions if name != column.name]
    if not conditions:
        raise ValueError(f"nothing is known but of column {column.name!r} itself: give evidence on another column")
    said = {one["column"]: one for one in write_evidence(shown.joint.schema, known.conditions)}
    pieces = [said[shown.joint.schema.index(name)] for name in conditions]
    level = None
    if column.is_categorical:
        whole = Known(shown, pieces).state.level_probabilities(j)[0]
        level = int(whole.argmax()) if body.get("level") is None else place_of(body["level"], len(whole), "level")

    def predicted(some: frozenset[int]) -> float:
        state = Known(shown, [pieces[k] for k in sorted(some)]).state
        return float(state.level_probabilities(j)[0, level] if level is not None else state.moments(j)[0][0])

    amounts, base, value = game_shapley(len(pieces), predicted)
    on_page = (lambda x: x) if column.is_categorical else (lambda x: to_shown(column, x))
    unit = 1e3 if column.kind == "datetime" else 1.0  # a difference of dates is one of milliseconds
    steps = [
        {"name": name, "said": sentence({name: known.conditions[name]}), "by": amount * unit}
        for name, amount in zip(conditions, amounts.tolist(), strict=True)
    ]
    steps.sort(key=lambda step: -abs(step["by"]))
    return {
        "column": column.name,
        "level": None if level is None else str(column.levels[level]),
        "base": on_page(base),
        "value": on_page(value),
        "steps": steps,
        "is_exact": len(pieces) <= EXACT,
    }


def game_shapley(n: int, value: Callable[[frozenset[int]], float]) -> tuple[np.ndarray, float, float]:
    """Shapley values (n,) of a game of n players, and its value of none and of all, without impossible coalitions."""
    # Exact for few players, else the mean over random orders, whose values also sum to the difference.
    kept: dict[frozenset[int], float] = {}

    def of(some: frozenset[int]) -> float:
        if some not in kept:
            kept[some] = value(some)
        return kept[some]

    amounts, everyone = np.zeros(n), frozenset(range(n))
    if n <= EXACT:
        for size in range(n):
            weight = 1.0 / (n * math.comb(n - 1, size))
            for some in map(frozenset, itertools.combinations(range(n), size)):
                for k in everyone - some:
                    amounts[k] += weight * (of(some | {k}) - of(some))
    else:
        rng = np.random.default_rng(0)
        for _ in range(ORDERS):
            so_far: frozenset[int] = frozenset()
            for k in rng.permutation(n).tolist():
                amounts[k] += (of(so_far | {k}) - of(so_far)) / ORDERS
                so_far |= {k}
    return amounts, of(frozenset()), of(everyone)
