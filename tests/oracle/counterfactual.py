"""Counterfactuals the slow way: every row of a small table of weights, in plain Python.

``weights`` is a dict of complete rows (tuples) to probabilities; None in a row says that nothing is known of the cell.
"""

from __future__ import annotations

import itertools
import math


def mass(weights, row):
    """Probability of all complete rows that agree with a row where it is known."""
    return math.fsum(w for x, w in weights.items() if all(b is None or a == b for a, b in zip(x, row, strict=True)))


def replaced(row, j, value):
    return (*row[:j], value, *row[j + 1 :])


def share(weights, row, target, wanted):
    """P(target in wanted | the row's other cells); 0 where these are impossible."""
    others = replaced(row, target, None)
    whole = mass(weights, others)
    return math.fsum(mass(weights, replaced(row, target, v)) for v in wanted) / whole if whole > 0 else 0.0


def is_predicted(weights, row, target, wanted, values):
    """Whether one wanted level is the most probable, or several are more probable than not."""
    if mass(weights, replaced(row, target, None)) == 0.0:
        return False
    each = {v: share(weights, row, target, [v]) for v in values}
    if len(wanted) == 1:
        return each[wanted[0]] == max(each.values())
    return math.fsum(each[v] for v in wanted) > 0.5


def n_changes(row, other):
    return sum(a is not None and a != b for a, b in zip(row, other, strict=True))


def fewest_changes(row, free, values, will_do):
    """Fewest changes in the free columns after which a row will do (a function); None if no row will.

    ``values`` are those that each column may have.
    """
    choices = [values[j] if j in free and row[j] is not None else [row[j]] for j in range(len(row))]
    counts = [n_changes(row, other) for other in itertools.product(*choices) if will_do(other)]
    return min(counts) if counts else None


def gower(row, other, ranges):
    """Mean over known cells: |difference| / range where there is one, else 0 or 1."""
    known = [j for j, x in enumerate(row) if x is not None]
    parts = [abs(row[j] - other[j]) / ranges[j] if ranges[j] else float(row[j] != other[j]) for j in known]
    return math.fsum(parts) / len(parts)
