"""Mutual information of pairs of coded columns, and the spanning tree of greatest mutual information (Chow-Liu)."""

from __future__ import annotations

import numpy as np

CLASSES = 16
"""Most classes of a column when mutual information is measured."""
_WIDTH = 4_096  # most classes of all columns together


def coarse(
    codes: np.ndarray, n_codes: np.ndarray, is_ordered: np.ndarray, most: int = CLASSES
) -> tuple[np.ndarray, np.ndarray]:
    """Codes joined to at most ``most`` classes, int16 (n, d), -1 if missing; and the number of classes (d,)."""
    # Ordered codes form runs of about equal mass. Of the others, the most frequent have a class of their own.
    d = codes.shape[1]
    most = int(np.clip(_WIDTH // max(d, 1), 2, most))
    out = np.empty(codes.shape, dtype=np.int16)
    size = np.empty(d, dtype=np.int64)
    for j in range(d):
        K = int(n_codes[j])
        count = np.bincount(codes[:, j], minlength=K + 1)[:K].astype(np.float64)
        if most >= K:
            to = np.arange(K)
        elif is_ordered[j]:
            middle = (np.cumsum(count) - 0.5 * count) / max(count.sum(), 1.0)
            to = np.minimum((middle * most).astype(np.int64), most - 1)
        else:
            to = np.full(K, most - 1)
            to[np.argsort(-count, kind="stable")[: most - 1]] = np.arange(most - 1)
        out[:, j] = np.append(to, -1)[codes[:, j]]
        size[j] = to.max(initial=0) + 1
    return out, size


def mutual_information(classes: np.ndarray, size: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    """Mutual information of each pair of columns in nats, (d, d), corrected for bias and at least 0."""
    # (r - 1)(c - 1) / 2n is subtracted: the approximate mean of two independent columns with r and c classes in n rows.
    n = len(classes)
    start = np.concatenate([[0], np.cumsum(size)])
    total = np.zeros((start[-1], start[-1]))
    for first in range(0, n, 8_192):
        part = classes[first : first + 8_192]
        hot = np.zeros((len(part), start[-1]), dtype=np.float32)
        row, column = np.nonzero(part >= 0)
        hot[row, start[column] + part[row, column]] = 1.0
        heavy = hot if weight is None else hot * weight[first : first + 8_192, None].astype(np.float32)
        total += hot.T @ heavy
    return _information(total, start)


def _information(total: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Mutual information from the counts of all pairs of classes, (C, C); those of column j begin at ``start[j]``."""
    first = start[:-1]
    by_row = np.add.reduceat(total, first, axis=1)  # counts of each class in rows where another column is known
    n_pair = np.add.reduceat(by_row, first, axis=0)
    kinds = np.add.reduceat((by_row > 0).astype(np.float64), first, axis=0)
    of_pairs = np.add.reduceat(np.add.reduceat(times_log(total), first, axis=1), first, axis=0)
    of_rows = np.add.reduceat(times_log(by_row), first, axis=0)
    information = of_pairs - of_rows - of_rows.T + times_log(n_pair)
    with np.errstate(divide="ignore", invalid="ignore"):
        information = (information - (kinds - 1) * (kinds.T - 1) / 2) / n_pair
    information = np.where(n_pair > 0, np.maximum(information, 0.0), 0.0)
    np.fill_diagonal(information, 0.0)
    return 0.5 * (information + information.T)


def times_log(x: np.ndarray) -> np.ndarray:
    """x log x, which is 0 at 0."""
    return x * np.log(np.where(x > 0, x, 1.0))


def spanning_tree(information: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Maximum spanning tree from its centre (Prim): columns, parents first, and the position of each parent."""
    d = len(information)
    best, link = information[0].copy(), np.zeros(d, dtype=np.int64)
    best[0], edges = -np.inf, []
    for _ in range(d - 1):
        new = int(np.argmax(best))
        edges.append((int(link[new]), new))
        closer = (information[new] > best) & (best > -np.inf)
        best[new] = -np.inf
        closer[new] = False
        best[closer], link[closer] = information[new][closer], new
    near: list[list[int]] = [[] for _ in range(d)]
    for a, b in edges:
        near[a].append(b)
        near[b].append(a)
    root = _walk(near, _walk(near, 0)[0][-1])[0]
    path = [root[-1]]
    _, up = _walk(near, root[0])
    while up[path[-1]] >= 0:
        path.append(up[path[-1]])
    order, above = _walk(near, path[len(path) // 2])
    place = {column: k for k, column in enumerate(order)}
    parent = [place[above[column]] if above[column] >= 0 else -1 for column in order]
    return np.array(order, dtype=np.int32), np.array(parent, dtype=np.int32)


def _walk(near: list[list[int]], root: int) -> tuple[list[int], list[int]]:
    """Columns breadth first from a root, and the parent of each column (-1 for the root)."""
    order, above = [root], [-1] * len(near)
    for column in order:
        for other in near[column]:
            if other != above[column]:
                above[other] = column
                order.append(other)
    return order, above
