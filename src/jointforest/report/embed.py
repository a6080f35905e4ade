"""The joint that a report carries along: the joint itself where it is small and of hidden trees, else a smaller one."""

from __future__ import annotations

import base64
from typing import Any, NamedTuple

import numpy as np

from ..data.discretization import base_density
from ..data.discretization.discretizer import Scale, code_table
from ..data.discretization.learn import learn_scale
from ..data.schema import Column
from ..explorer.answers import table
from ..explorer.subject import Subject, all_shown, to_shown
from ..inference.histogram import histogram
from ..inference.sampling import sample
from ..learners.hidden_tree.learn import LearnSettings, learn_tree
from ..learners.hidden_tree.structure import CodeTable
from ..models.hidden_tree.hidden_tree import HiddenTree
from ..models.hidden_tree.hidden_trees import HiddenTrees
from ..query_language.render import column_text

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
    tables = subject.joint.distribution.hidden_trees()
    sizes = [_size(bins.cuts, column) for bins, column in zip(subject.bins, subject.columns, strict=True)]
    if tables is not None and _bytes(tables, sizes) <= MOST_BYTES:
        return Embedded(subject, tables, True, 0, 0.0)
    fitting = [n for n in STATES if 4 * sum(n * size + n * n + n for size in sizes) <= MOST_BYTES]
    n = max(min(DRAWS, MOST_CELLS // len(sizes)), 1)
    X = sample(subject.joint.distribution, subject.nothing.evidence, n, 0, missing=True)
    hidden = _learned(subject, X, fitting[0] if fitting else STATES[-1])
    small = Subject(type(subject.joint)(HiddenTree(hidden)), subject.title)
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


# ---- What the page needs to answer by itself, as JSON: columns and cuts, trees, and their tables as text of base 64.


def wire(found: Embedded, title: str, said: str) -> dict[str, Any]:
    """All that ``in_page_source.js`` reads."""
    subject, hidden = found.subject, found.hidden
    about = table(subject, {}) | {"title": title, "said": said, "rows": None, "can": []}
    trees, tables = _trees(subject, hidden)
    return {"table": about, "columns": [_column(subject, j) for j in range(len(subject.columns))]} | {
        "trees": trees,
        "tables": base64.b64encode(np.concatenate(tables).astype("<f4").tobytes()).decode(),
    }


def _column(subject: Subject, j: int) -> dict[str, Any]:
    """How a column is cut: `Bins` in the page's numbers, the mean of each cut, the centre of a cell of its grid."""
    column, bins = subject.columns[j], subject.bins[j]
    if column.is_categorical:
        return {"quoted": column_text(column.name), "ordered": column.is_ordered}
    return {
        "quoted": column_text(column.name),
        "cuts": all_shown(column, bins.cuts),
        "first": bins.first.tolist(),
        "cell": bins.cell.tolist(),
        "centers": all_shown(column, subject.centers[j]),
        "center": to_shown(column, column.center) if column.step > 0.0 else None,
    }


def _trees(subject: Subject, hidden: HiddenTrees) -> tuple[list[dict[str, Any]], list[np.ndarray]]:
    """Trees without their tables, and the tables one after the other: of a node transition, masses of cuts, blank."""
    shares = [
        cut_shares(scale, column, bins.cuts)
        for scale, column, bins in zip(hidden.scales, subject.columns, subject.bins, strict=True)
    ]
    trees, tables = [], []
    for tree, log_weight in zip(hidden.trees, hidden.log_weight.tolist(), strict=True):
        n_cuts = []
        for k, j in enumerate(tree.column.tolist()):
            emission = tree.emission[k].astype(np.float64) @ shares[j] if j >= 0 else tree.emission[k]
            blank = tree.blank[k] if tree.blank else np.zeros(len(emission))
            tables += [tree.transition[k].ravel(), emission.ravel(), blank]
            n_cuts.append(emission.shape[1])
        about = {"column": tree.column.tolist(), "parent": tree.parent.tolist(), "states": tree.n_states.tolist()}
        trees.append(about | {"cuts": n_cuts, "log_weight": log_weight})
    return trees, tables


def cut_shares(scale: Scale, column: Column, cuts: np.ndarray) -> np.ndarray:
    """Share of each code's mass in each cut, or level, (K, C); what lies beyond the cuts is in the outermost."""
    if column.is_categorical:
        return base_density.levels(scale, np.eye(scale.n_codes), len(column.levels))
    below = base_density.cdf(scale, cuts[1:-1])
    return np.diff(np.vstack([np.zeros(scale.n_codes), below, np.ones(scale.n_codes)]), axis=0).T
