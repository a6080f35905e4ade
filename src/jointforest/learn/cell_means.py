"""What several joints say of each cell given the row's other known cells: means of numbers, probabilities of levels."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..face.joint import Joint
from ..queries.column.levels import level_probability
from ..queries.column.moments import mean_variance
from ..table.build_evidence import build
from ..table.frames import encode
from ..table.schema import Column, Schema


def cell_means(
    joints: list[Joint], schema: Schema, frame: Any, asked: np.ndarray, n_jobs: int | None
) -> dict[int, np.ndarray]:
    """Answers of m joints about columns of a frame, whose own cells are not looked at.

    Parameters
    ----------
    joints : list of m Joint
        Of the same columns; levels, and columns, that one of them does not have are taken up.
    schema : Schema
        Whose columns and levels count.
    frame : frame of n rows
    asked : int array
        Numbers of columns.
    n_jobs : int or None

    Returns
    -------
    dict of int to float64 array (m, n, K)
        Of a number its mean (K = 1), of levels the probability of each. NaN where a joint says nothing.
    """
    found: dict[int, list[np.ndarray]] = {int(j): [] for j in asked}
    for joint in joints:
        own = joint.schema
        values, unseen = encode(own, frame, schema.whole.names)
        evidence = build(own, values, unseen)
        for j, answers in found.items():
            column = schema.columns[j]
            answer = np.full((len(values), len(column.levels) or 1), np.nan)
            k = own.index(column.name) if column.name in own.names else -1
            if k >= 0 and own.columns[k].is_categorical == column.is_categorical:
                answer = _one(joint, own.columns[k], column, evidence.without(k), k, n_jobs)
            answers.append(answer)
    return {j: np.stack(answers) for j, answers in found.items()}


def _one(joint: Joint, own: Column, column: Column, evidence: Any, k: int, n_jobs: int | None) -> np.ndarray:
    """One joint's answer about its column k, in the numbers and levels of ``column``."""
    if not column.is_categorical:
        since = own.origin - column.origin if column.kind == "datetime" else 0.0
        return np.asarray(mean_variance(joint.model, evidence, k, n_jobs)[0])[:, None] + since
    share = level_probability(joint.model, evidence, k, n_jobs)
    answer = np.zeros((len(share), len(column.levels)))
    for code, level in enumerate(own.levels):
        if level in column.codes:
            answer[:, column.codes[level]] = share[:, code]
    answer[np.isnan(share).any(axis=1)] = np.nan
    return answer
