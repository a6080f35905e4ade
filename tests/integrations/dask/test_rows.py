"""Sums of the partitions of a Dask frame."""

from __future__ import annotations

from jointforest.integrations.dask import merge_sums


def test_merging_leaves_the_parts_as_they_are() -> None:
    """A worker that dies has its tasks run again, on parts that others still hold."""
    a, b = [[1.0]], [[2.0]]

    def merge(mine: list[list[float]], other: list[list[float]]) -> list[list[float]]:
        mine[0][0] += other[0][0]
        return mine

    assert merge_sums(merge, a, b) == [[3.0]]
    assert merge_sums(merge, a, b) == [[3.0]] and (a, b) == ([[1.0]], [[2.0]])
