"""The constants of joint trees, each with the reason for its value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Constants:
    """Numbers that no parameter sets."""

    bins: int = 256
    """Most bins of a column in large nodes, as in histogram gradient boosting: a bin's number fits a byte."""
    target_bins: int = 64
    """Most bins of targets that are no columns. There are many of them, so fewer bins bound the time."""
    exact_rows: int = 16_384
    """Nodes of more rows are split at the edges of bins; the others between any two values. The bins of a node of so
    many rows hold 64 rows each."""
    table_cells: int = 1 << 22
    """Most cells of a table of bin by statistic: 32 MiB."""
    noise_level: float = 0.05
    """Chance at most with which a node of independent columns is split, with ``min_impurity_decrease=None``: the usual
    level of a test."""
    threads_from: int = 1 << 22
    """Work of a node, rows x targets, from which columns are examined in threads: below, starting them takes longer."""
    trial_fewest_rows: int = 20
    """Rows that can judge trees on trial; a standard error of fewer means nothing."""
    trial_trees: int = 5
    """Most trees on trial, which bounds the time."""


FIXED = Constants()
