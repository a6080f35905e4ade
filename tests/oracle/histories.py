"""Histories, the slow way: every history of few rows one by one, cells by their trees, contexts as they are defined.

For models of columns that have a code for each value, and a code for each number of rows.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np


class History(NamedTuple):
    """Codes of head variables and of each row, and the probability of them all."""

    head: tuple
    rows: tuple
    p: float


def all_histories(model):
    """Every history: head variables, then as many rows as the last of them says."""
    found = []
    for head, p in heads(model, (), 1.0):
        length = int(model.lengths[head[-1] - 1])
        found += [History(head, rows, q) for rows, q in continued(model, head, length, (), p)]
    return found


def heads(model, head, p):
    """Every tuple of codes of head variables, of which the first are given, with its probability."""
    if len(head) == len(model.columns.head):
        return [(head, p)]
    share = distribution(model, len(head), head, 0, (), ())
    return [one for code, q in enumerate(share) if q > 0 for one in heads(model, (*head, code), p * q)]


def continued(model, head, length, rows, p):
    """Every way in which a history goes on to its end, with the probability of the whole."""
    if len(rows) == length:
        return [(rows, p)]
    n = len(model.columns.rows)
    first = len(model.columns.head) + (0 if not rows else n)
    found = [((), p)]
    for j in range(n):
        found = [
            ((*now, code), q * share)
            for now, q in found
            for code, share in enumerate(distribution(model, first + j, head, length, rows, now))
        ]
    return [one for now, q in found for one in continued(model, head, length, (*rows, now), q)]


def distribution(model, target, head, length, rows, now):
    """Distribution of the codes of one cell given all before it."""
    trees = model.conditionals
    h, n = len(model.columns.head), len(model.columns.rows)
    share = np.ones(int(trees.target_codes[target]))
    past = [row[(target - h) % n] for row in rows]
    usual = usual_code(model, (target - h) % n, head, length, rows, now) if target >= h + n else 0
    for tree in range(trees.tree_start[target], trees.tree_start[target + 1]):
        node = int(trees.root[tree])
        while trees.child[node] >= 0:
            value = context(model, int(trees.kind[node]), int(trees.column[node]), head, length, rows, now)
            node = int(trees.child[node]) + (value > trees.threshold[node])
        sort, at = int(trees.tree_class[tree]), -1 - int(trees.child[node])
        share *= [
            trees.table[at + (code if sort in (0, 4) else class_of(sort, code, past, usual))]
            for code in range(len(share))
        ]
    return share / share.sum()


def context(model, kind, column, head, length, rows, now):
    """What a split looks at; ``kind`` by the list in ``models/history/contexts.py``."""
    if kind in (0, 1, 2):
        return count((len(rows), length, length - len(rows))[kind])
    if kind == 3:
        return head[column]
    past = [row[column] for row in rows]
    known = [code for code in past if code > 0]
    if kind == 4:
        return now[column]
    if kind == 5:
        if model.columns.rows[column].coding.column.is_categorical:
            return 1 if now[column] == past[-1] else 2
        return less(now[column], past[-1])
    changes = [k for k in range(1, len(past)) if past[k] != past[k - 1]]
    return {
        6: lambda: past[-1],
        7: lambda: past[-2] if len(past) > 1 else past[-1],
        8: lambda: past[0],
        9: lambda: before_change(past),
        10: lambda: known[-1] if known else 0,
        11: lambda: count(len(changes)),
        12: lambda: count(len(past) - 1 - (changes[-1] if changes else 0)),
        13: lambda: mean(known),
        14: lambda: min(known, default=0),
        15: lambda: max(known, default=0),
        16: lambda: len(set(past)),
        17: lambda: less(past[-1], past[0]),
        18: lambda: less(past[-1], past[-2] if len(past) > 1 else past[-1]),
        19: lambda: less(past[-1], mean(known)),
        21: lambda: expected_code(model, column, head, length, rows, now),
        22: lambda: less(past[-1], expected_code(model, column, head, length, rows, now)),
        23: lambda: 64 + mean(excesses(model, column, head, length, rows)),
        24: lambda: (*(64 + one for one in excesses(model, column, head, length, rows)), 0)[
            len(known) - 1 if known else 0
        ],
        25: lambda: less(past[-1], usual_code(model, column, head, length, rows, now)),
    }[kind]()


def expected_code(model, column, head, length, rows, now):
    """The code in the leaf of the expectation tree of a column; 0 without a tree."""
    trees = model.columns.expectations
    node = int(trees.root[column])
    if node < 0:
        return 0
    while trees.child[node] >= 0:
        value = context(model, int(trees.kind[node]), int(trees.column[node]), head, length, rows, now)
        node = int(trees.child[node]) + (value > trees.threshold[node])
    return -1 - int(trees.child[node])


def excesses(model, column, head, length, rows):
    """Code less expected code, of each row in which the cell is not missing."""
    return [
        row[column] - expected_code(model, column, head, length, rows[:k], row[:column])
        for k, row in enumerate(rows)
        if row[column] > 0
    ]


def usual_code(model, column, head, length, rows, now):
    """The expected code plus the mean excess, within the codes; 0 without a tree."""
    if model.columns.expectations.root[column] < 0:
        return 0
    expected = expected_code(model, column, head, length, rows, now)
    most = model.columns.rows[column].coding.n_codes - 1
    return min(max(expected + mean(excesses(model, column, head, length, rows)), 1), most)


def class_of(sort, code, past, usual):
    """Class of a code in trees of ratios."""
    if sort == 1:
        return 0 if code == past[-1] else 1 if code == before_change(past) else 2 if code in past else 3
    reference = usual if sort == 5 else past[0] if sort == 2 else mean([one for one in past if one > 0])
    if code == 0:
        return 16
    if reference == 0:
        return 0
    ends = (-25, -12, -7, -4, -3, -2, -1, 0, 1, 2, 3, 4, 7, 12, 25)
    return next((k for k, end in enumerate(ends) if code - reference <= end), 15)


def before_change(past):
    """The last code that differed from the latest one; the latest one if none did."""
    return next((code for code in reversed(past) if code != past[-1]), past[-1])


def mean(known):
    return math.floor(sum(known) / len(known) + 0.5) if known else 0


def less(a, b):
    return 64 + a - b if a > 0 and b > 0 else 0


def count(n):
    return n if n <= 32 else min(32 + int(4 * math.log2(n / 32)), 127)


# ---- Questions.


def agrees(history, head, rows, ended):
    """Whether a history is what is known: codes, or sets of them; it has these rows, and if ``ended`` no more."""
    if len(history.rows) < len(rows) or (ended and len(history.rows) > len(rows)):
        return False
    cells = zip(history.head, head, strict=False)
    cells = itertools.chain(cells, *(zip(a, b, strict=True) for a, b in zip(history.rows, rows, strict=False)))
    return all(code in known if isinstance(known, set) else code == known for code, known in cells)


def given(histories, head, rows, ended):
    """Those that agree with what is known, with probabilities that sum to 1, and the probability of it."""
    kept = [one for one in histories if agrees(one, head, rows, ended)]
    total = math.fsum(one.p for one in kept)
    return [one._replace(p=one.p / total) for one in kept], total


def probabilities(histories, row, column, n_codes):
    """Distribution of the codes of a cell, among the histories that have the row."""
    share = np.zeros(n_codes)
    for one in histories:
        if len(one.rows) > row:
            share[one.rows[row][column]] += one.p
    return share / share.sum()
