"""What the trees of each target may look at."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...models.history.columns import GAP, HistoryColumns
from ...models.history.contexts import (
    BACK,
    CHANGED,
    CHANGES,
    CODE,
    DISTINCT,
    EXCESS,
    EXPECTED,
    FIRST,
    FROM_EXPECTED,
    FROM_FIRST,
    FROM_LAG2,
    FROM_MEAN,
    FROM_USUAL,
    HEAD,
    HIGH,
    KNOWN,
    LAG2,
    LAST_CHANGE,
    LAST_EXCESS,
    LENGTH,
    LOW,
    MEAN,
    NOW,
    OFFSET_FIRST,
    OFFSET_MEAN,
    OFFSET_USUAL,
    POSITION,
    PREVIOUS,
    REMAINING,
    RUN,
    SOURCE,
)
from .trees import Target

OWN = (LAG2, FIRST, BACK, KNOWN, CHANGES, RUN, DISTINCT)
"""Memories of the column itself."""
OWN_NUMBER = (MEAN, LOW, HIGH, FROM_FIRST, FROM_LAG2, FROM_MEAN)
"""Those that need an order of the codes."""
BESIDE_EXPECTED = (EXPECTED, FROM_EXPECTED, EXCESS, LAST_EXCESS, FROM_USUAL)
"""Those of columns with an expectation tree."""


def targets_of(columns: HistoryColumns, others: Sequence[Sequence[int]]) -> list[Target]:
    """All targets; ``others[j]`` are the columns of a row whose codes the contexts of column j have."""
    h, d = len(columns.head), len(columns.rows)
    constant = range(h - int(columns.has_length))
    found = []
    for v, variable in enumerate(columns.head):
        contexts = [(HEAD, u) for u in range(v)]
        coding = variable.coding
        found.append(_target(v, coding.n_codes, not coding.column.is_categorical, coding.has_missing, contexts, ()))
    for j, variable in enumerate(columns.rows):
        coding, earlier = variable.coding, [i for i in others[j] if i < j]
        of_head = [(HEAD, u) for u in constant]
        length = [(LENGTH, 0)] if columns.has_length else []
        is_number = not coding.column.is_categorical
        contexts = length + of_head + [(NOW, i) for i in earlier]
        if coding.change is not None:
            contexts.append((POSITION, 0))
        may_miss = coding.has_missing or variable.source == GAP  # no row is before a first one
        found.append(_target(h + j, coding.n_codes, is_number, may_miss, contexts, ()))
    for j, variable in enumerate(columns.rows):
        coding, earlier = variable.coding, [i for i in others[j] if i < j]
        is_number = not coding.column.is_categorical
        contexts = [(POSITION, 0), *([(LENGTH, 0), (REMAINING, 0)] if columns.has_length else [])]
        contexts += [(HEAD, u) for u in constant]
        contexts += [(PREVIOUS, i) for i in (*others[j], j)]
        contexts += [(kind, i) for i in earlier for kind in (NOW, CHANGED)]
        contexts += [(kind, j) for kind in OWN + (OWN_NUMBER if is_number else ())]
        if coding.change is not None:
            contexts.append((LAST_CHANGE, j))
        has_expected = columns.expectations.root[j] >= 0
        contexts += [(kind, j) for kind in (BESIDE_EXPECTED if has_expected else ())]
        sorts: tuple[int, ...] = (SOURCE, OFFSET_FIRST, OFFSET_MEAN, CODE) if is_number else (SOURCE, CODE)
        if has_expected:
            sorts = (OFFSET_USUAL, *sorts)
        may_miss = coding.has_missing and variable.source != GAP
        found.append(_target(h + d + j, coding.n_targets, is_number, may_miss, contexts, sorts))
    return found


def _target(
    number: int,
    n_codes: int,
    is_number: bool,
    may_miss: bool,
    contexts: Sequence[tuple[int, int]],
    sorts: tuple[int, ...],
) -> Target:
    kinds = np.array([kind for kind, _ in contexts], dtype=np.int16)
    return Target(
        number, n_codes, is_number, may_miss, kinds, np.array([i for _, i in contexts], dtype=np.int16), sorts
    )
