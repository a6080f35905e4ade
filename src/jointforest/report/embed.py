"""The joint that a report carries along: the joint itself where it is small and of hidden trees, else a smaller one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..explore.subject import Subject
from ..hidden.hidden_trees import HiddenTrees
from ..hidden.learn.columns import CodeTable
from ..hidden.learn.learn import LearnSettings, learn_tree
from ..hidden.part import HiddenPart
from ..model.model import of_part
from ..queries.column.histogram import histogram
from ..queries.rows.sampling import sample
from ..table.scale.codes import code_table
from ..table.scale.learn import learn_scale

MOST_BYTES = 750_000
"""Most bytes of tables; a third more as text."""
DRAWS = 20_000
"""Rows that a smaller joint is learned from."""
MOST_CELLS = 2_000_000
"""Most cells of these rows."""
STATES = 48, 32, 24, 16, 8, 4, 2
"""States a column of a smaller joint: the first number whose tables fit."""
BINS = 64
"""Codes of a number in a smaller joint."""
PASSES = 3


class Embedded(NamedTuple):
    """A joint of hidden trees.

    Attributes
    ----------
    subject : Subject
        With its bins.
    hidden : HiddenTrees
    is_itself : bool
        Whether it is the joint of the report.
    n_rows : int
        Draws that it was learned from; 0 if it is the joint itself.
    difference : float
        Largest difference of its share of a bin, a level or of missing cells, from the joint's.
    """

    subject: Subject
    hidden: HiddenTrees
    is_itself: bool
    n_rows: int
    difference: float


def embedded(subject: Subject) -> Embedded:
    """The joint itself if its tables are at most `MOST_BYTES`, else one learned from rows drawn from it."""
    parts = subject.joint.model.parts
    sizes = [_size(bins.cuts, column) for bins, column in zip(subject.bins, subject.columns, strict=True)]
    if len(parts) == 1 and isinstance(parts[0], HiddenPart) and _bytes(parts[0].hidden, sizes) <= MOST_BYTES:
        return Embedded(subject, parts[0].hidden, True, 0, 0.0)
    fitting = [n for n in STATES if 4 * sum(n * size + n * n + n for size in sizes) <= MOST_BYTES]
    n = max(min(DRAWS, MOST_CELLS // len(sizes)), 1)
    X = sample(subject.joint.model, subject.nothing.evidence, n, 0, missing=True)
    hidden = _learned(subject, X, fitting[0] if fitting else STATES[-1])
    small = Subject(type(subject.joint)(of_part(HiddenPart(hidden))), subject.title)
    return Embedded(small, hidden, False, n, _difference(subject, small))


def _learned(subject: Subject, X: np.ndarray, n_states: int) -> HiddenTrees:
    """A hidden tree with the schema of the joint, from draws (n, d)."""
    columns = subject.columns
    scales = tuple(learn_scale(column, X[:, j], None, BINS) for j, column in enumerate(columns))
    codes = code_table(scales, X)
    is_ordered = np.array([not column.is_categorical for column in columns])
    table = CodeTable(np.ascontiguousarray(codes), np.array([scale.n_codes for scale in scales]), is_ordered)
    settings = LearnSettings(n_states=n_states, passes=PASSES, full=1, refit=True)
    return HiddenTrees(subject.joint.schema, scales, (learn_tree(table, settings, 0),), np.zeros(1))


def _difference(subject: Subject, small: Subject) -> float:
    """Largest difference of two joints' shares of a bin or level, in the bins of the second."""
    found = [
        np.abs(histogram(subject.nothing, j, bins.cuts)[0] - mass).max()
        for j, (bins, mass) in enumerate(zip(small.bins, small.masses, strict=True))
    ]
    return float(max(found))


def _size(cuts: np.ndarray, column: Any) -> int:
    """Numbers that a state has of a column."""
    return len(column.levels) if column.is_categorical else len(cuts) - 1


def _bytes(hidden: HiddenTrees, sizes: list[int]) -> int:
    """Bytes of the tables in float32, sizes[j] masses a state of column j."""
    total = 0
    for tree in hidden.trees:
        for k, j in enumerate(tree.column.tolist()):
            H = tree.transition[k].shape[1]
            total += tree.transition[k].size + H + (H * sizes[j] if j >= 0 else 0)
    return 4 * total
