"""Unions of half-open intervals ``(lo, hi]``: disjoint, ascending, never empty, never touching."""

from __future__ import annotations

from collections.abc import Iterable

Run = tuple[float, float]
Runs = tuple[Run, ...]


def union(parts: Iterable[Runs]) -> Runs:
    """Points in any of the parts.

    Examples
    --------
    >>> union([((0.0, 1.0),), ((1.0, 2.0), (5.0, 6.0))])
    ((0.0, 2.0), (5.0, 6.0))
    """
    merged: list[Run] = []
    for lo, hi in sorted(run for runs in parts for run in runs if run[0] < run[1]):
        if merged and lo <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(hi, merged[-1][1]))
        else:
            merged.append((lo, hi))
    return tuple(merged)


def intersection(a: Runs, b: Runs) -> Runs:
    """Points in both.

    Examples
    --------
    >>> intersection(((0.0, 4.0), (6.0, 8.0)), ((3.0, 7.0),))
    ((3.0, 4.0), (6.0, 7.0))
    """
    return tuple(run for run, _, _ in overlaps(a, b))


def overlaps(a: Runs, b: Runs) -> list[tuple[Run, int, int]]:
    """Each common part of a run of one and a run of the other, ascending, with these runs' numbers; runs may touch.

    Examples
    --------
    >>> overlaps(((0.0, 4.0), (4.0, 8.0)), ((3.0, 7.0),))
    [((3.0, 4.0), 0, 0), ((4.0, 7.0), 1, 0)]
    """
    common = []
    i = k = 0
    while i < len(a) and k < len(b):
        lo, hi = max(a[i][0], b[k][0]), min(a[i][1], b[k][1])
        if lo < hi:
            common.append(((lo, hi), i, k))
        if a[i][1] < b[k][1]:
            i += 1
        else:
            k += 1
    return common


def complement(runs: Runs, everything: Run) -> Runs:
    """Points of ``everything`` in no run.

    Examples
    --------
    >>> complement(((1.0, 2.0),), (0.0, 3.0))
    ((0.0, 1.0), (2.0, 3.0))
    """
    edges = [everything[0], *(edge for run in runs for edge in run), everything[1]]
    return tuple((lo, hi) for lo, hi in zip(edges[::2], edges[1::2], strict=True) if lo < hi)


def inside(runs: Runs, x: float) -> bool:
    """Whether a point is in a run."""
    return any(lo < x <= hi for lo, hi in runs)
