"""The constants of Chow-Liu leaves, each with the reason for its value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Constants:
    """Numbers that no parameter sets. Where no experiment is named, a value was set by hand."""

    codes: int = 64
    """Most codes of a numeric column. A table of two columns has as many cells as the square of it."""
    fine_ends: float = 1.0
    """How much finer the codes are at both ends of a column, from 0 to 1. Most of a correlation lies in heavy tails."""
    leaf_nodes: int = 120
    """Leaves of a tree of an adversarial forest by default; few, because a leaf has a table for each column."""

    table_rows: tuple[float, ...] = (0.3, 3.0, 30.0, 200.0, 1_000.0)
    """Rows of smoothed pairs that each code of the parent may receive in the tables of all rows. Each half of the
    rows scores what the other half learned."""
    floor_rows: float = 0.1
    """Rows of the child's marginal that are added to the smoothed pairs, so that no pair has a probability of 0."""
    pair_width: float = 0.2
    """Width of the kernel that smooths pairs of all rows, in normal scores of the column."""
    leaf_width: float = 0.1
    """Width of the kernel that smooths the marginals of leaves, in normal scores of the column."""
    marginal_rows: float = 2.0
    """Rows that are added to the codes of each leaf: those that the table's Chow-Liu tree gives in its box. With one
    row conditional means were 3 % better, but the log-density of new rows was lower."""
    pair_rows: float = 30.0
    """Rows of the table's pairs that are added to the codes of a child given each code of its parent."""
    least_share: float = 1e-6
    """Share of a code that no row has."""
    missing_rows: float = 1.0
    """Rows of the table's share of missing cells that are added to those of a leaf."""
    leaves_at_once: int = 64
    """Most leaves whose pairs are counted and whose marginals are adjusted at once, which bounds memory."""

    target_levels: int = 3
    """Most levels of a column that are targets of their own; rarer levels are too few rows to score splits."""
    least_left: float = 0.01
    """Share of a target's variance that a neighbour must leave. If less is left, there is nothing to score."""


FIXED = Constants()
