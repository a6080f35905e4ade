"""What the page needs to answer by itself, as JSON: columns and cuts, trees, and their tables as text of base 64."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from ..explore.answers import table
from ..explore.numbers import all_shown, to_shown
from ..explore.subject import Subject
from ..hidden.hidden_trees import HiddenTrees
from ..language.render import column_text
from ..table.scale import distribution, draws
from ..table.scale.scale import Scale
from ..table.schema import Column
from .embed import Embedded


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
        return draws.levels(scale, np.eye(scale.n_codes), len(column.levels))
    below = distribution.cdf(scale, cuts[1:-1])
    return np.diff(np.vstack([np.zeros(scale.n_codes), below, np.ones(scale.n_codes)]), axis=0).T
