"""Chow-Liu trees: the columns joined by the spanning tree of greatest mutual information."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...data.discretization.dependence import coarse, mutual_information, spanning_tree

_MORE = 1e-3  # share by which a pair that is joined outweighs what it replaces


def information_of(table: CodeTable) -> np.ndarray:
    """`mutual_information` of the columns of a table by coarse classes, (d, d)."""
    # For a column that stands for several, it is the largest of these.
    if not any(table.views):
        return mutual_information(*coarse(table.codes, table.n_codes, table.is_ordered), table.weight)
    apart = table.apart()
    each = mutual_information(*coarse(apart.codes, apart.n_codes, apart.is_ordered), table.weight)
    start = np.concatenate([[0], np.cumsum([max(len(views), 1) for views in table.views])[:-1]])
    found = np.maximum.reduceat(np.maximum.reduceat(each, start, axis=0), start, axis=1)
    np.fill_diagonal(found, 0.0)
    return np.asarray(found)


def join(information: np.ndarray, a: int, b: int) -> np.ndarray:
    """Information (d, d) by which the spanning tree joins columns a and b for the weakest link between them."""
    # The pair has a little more than the link that gives way to it.
    weakest = min(information[u, v] for u, v in path(*spanning_tree(information), a, b))
    information = information.copy()
    information[a, b] = information[b, a] = max(information[a, b], weakest * (1.0 + _MORE) + _MORE**3)
    return information


def path(order: np.ndarray, parent: np.ndarray, a: int, b: int) -> list[tuple[int, int]]:
    """Links of a tree that lead from column a to column b, as pairs of columns."""
    place = {column: k for k, column in enumerate(order.tolist())}
    links, low, high = [], place[a], place[b]
    while low != high:
        if low < high:  # parents come before their children: the later one goes up
            low, high = high, low
        links.append((int(order[low]), int(order[parent[low]])))
        low = int(parent[low])
    return links


# ---- Codes as learning sees them: how many a column has, how common they are, where they lie on a normal scale.

_BESIDE = 2  # codes on either side that a point mass must exceed


class View(NamedTuple):
    """What the codes of a column say of another one, which the column stands for.

    code : int64 array (K + 1,). The other column's code for each code, ``n_codes`` for a missing cell.
    n_codes : int
    is_ordered : bool. Whether its codes are ordered numbers.
    """

    code: np.ndarray
    n_codes: int
    is_ordered: bool


class CodeTable(NamedTuple):
    """Rows of codes.

    codes : int array (n, d). Codes 0..n_codes[j] - 1; a missing cell has the code ``n_codes[j]``.
    n_codes : int array (d,)
    is_ordered : bool array (d,). Whether a column's codes are ordered bins of numbers; other codes are levels.
    weight : float array (n,) or None. Weights of the rows.
    views : tuple of d tuples of View, or empty. Of columns that stand for several others: each of these, by the codes.
    gaps : tuple of d int arrays (K_j,), or empty. How many gaps between values lie below each code.
    far : tuple of d bool arrays (K_j,), or empty. Which codes hold one value far from all others.
    center : tuple of d float64 arrays (K_j,), or empty. Mean value in each code of a number.
    known : int array (n, d) or None. What is known of cells: a code, ``n_codes[j]``, or ``n_codes[j]`` + 1 + r of a
        cell of which only the column's r-th range is known; ``codes`` then has a draw from the range. None: the codes.
    covers : tuple of d float64 arrays (R_j, K_j), or empty. Share of each code that lies in each range.
    """

    codes: np.ndarray
    n_codes: np.ndarray
    is_ordered: np.ndarray
    weight: np.ndarray | None = None
    views: tuple[tuple[View, ...], ...] = ()
    gaps: tuple[np.ndarray, ...] = ()
    far: tuple[np.ndarray, ...] = ()
    center: tuple[np.ndarray, ...] = ()
    known: np.ndarray | None = None
    covers: tuple[np.ndarray, ...] = ()

    def take(self, rows: np.ndarray) -> CodeTable:
        """Some of the rows."""
        weight, known = (None if x is None else x[rows] for x in (self.weight, self.known))
        return self._replace(codes=self.codes[rows], weight=weight, known=known)

    def select(self, columns: np.ndarray) -> CodeTable:
        """Some of the columns."""
        codes = np.ascontiguousarray(self.codes[:, columns])
        views = tuple(self.views[j] for j in columns.tolist()) if self.views else ()
        return self._replace(
            codes=codes,
            n_codes=self.n_codes[columns],
            is_ordered=self.is_ordered[columns],
            views=views,
            gaps=tuple(self.gaps[j] for j in columns.tolist()) if self.gaps else (),
            far=tuple(self.far[j] for j in columns.tolist()) if self.far else (),
            center=tuple(self.center[j] for j in columns.tolist()) if self.center else (),
            known=None if self.known is None else np.ascontiguousarray(self.known[:, columns]),
            covers=tuple(self.covers[j] for j in columns.tolist()) if self.covers else (),
        )

    def apart(self) -> CodeTable:
        """The table with the columns that others stand for in their place."""
        codes: list[np.ndarray] = []
        about: list[tuple[int, bool]] = []
        for j, views in enumerate(self.views):
            seen = [(view.code[self.codes[:, j]], view.n_codes, view.is_ordered) for view in views]
            seen = seen or [(self.codes[:, j], int(self.n_codes[j]), bool(self.is_ordered[j]))]
            codes += [code for code, _, _ in seen]
            about += [(K, is_ordered) for _, K, is_ordered in seen]
        n_codes, is_ordered = (np.array(what) for what in zip(*about, strict=True))
        return CodeTable(np.column_stack(codes), n_codes, is_ordered, self.weight)

    def weighed_rows(self) -> np.ndarray:
        """Which rows have any weight."""
        return np.arange(len(self.codes)) if self.weight is None else np.flatnonzero(self.weight > 0)


class CodeColumn(NamedTuple):
    """One column of codes; a missing cell has the code K.

    marginal : float64 array (K,). Share of each code; 0 of codes that cannot be.
    edge : float64 array (K + 1,). Ends of the codes' intervals in normal scores, from -inf to inf; empty where the
        codes have no order.
    score : float64 array (K,). Mean of a standard normal within each code's interval; empty where the codes have no
        order.
    around : float64 array (K,). Mean share of the two codes on either side, fewer at the ends; empty where the codes
        have no order.
    known : float. Share of the rows that know their cell.
    views : tuple of (int64 array (K + 1,), CodeColumn). The columns that this one stands for, and their code for each
        code: see `View`.
    gaps : int64 array (K,) or None. How many gaps between values lie below each code; None where there is none.
    far : bool array (K,) or None. Which codes hold one value far from all others; None where there is none.
    center : float64 array (K,) or None. Mean value in each code; None where it is not known, or the codes have no
        order.
    """

    marginal: np.ndarray
    edge: np.ndarray
    score: np.ndarray
    around: np.ndarray
    known: float = 1.0
    views: tuple[tuple[np.ndarray, CodeColumn], ...] = ()
    gaps: np.ndarray | None = None
    far: np.ndarray | None = None
    center: np.ndarray | None = None

    @property
    def n_codes(self) -> int:
        return len(self.marginal)

    @property
    def is_ordered(self) -> bool:
        return len(self.edge) > 0


def code_columns(table: CodeTable, allowed: list[np.ndarray] | None = None) -> tuple[CodeColumn, ...]:
    """The columns of a table; codes never seen count half a row, but for those that are not allowed."""
    columns = []
    for j, K in enumerate(table.n_codes.tolist()):
        count = np.bincount(table.codes[:, j], weights=table.weight, minlength=K + 1) + 0.0
        column = code_column(count, bool(table.is_ordered[j]), None if allowed is None else allowed[j])
        if table.gaps and table.gaps[j].any():
            column = column._replace(gaps=table.gaps[j])
        if table.far and table.far[j].any():
            column = column._replace(far=table.far[j])
        if table.center and table.is_ordered[j]:
            column = column._replace(center=table.center[j])
        if table.views and table.views[j]:
            views = [(view.code, np.bincount(view.code, count, view.n_codes + 1), view) for view in table.views[j]]
            column = column._replace(
                views=tuple((code, code_column(seen, view.is_ordered, seen[:-1] > 0)) for code, seen, view in views)
            )
        columns.append(column)
    return tuple(columns)


def code_column(count: np.ndarray, is_ordered: bool, allowed: np.ndarray | None) -> CodeColumn:
    """The column whose codes, and a missing cell, occur so often each, (K + 1,); see `code_columns`."""
    from scipy.special import ndtri

    rows, count = count.sum(), count[:-1]
    known = float(count.sum() / rows) if rows > 0.0 else 1.0
    count = np.where((count == 0.0) & (True if allowed is None else allowed), 0.5, count)
    marginal = count / count.sum()
    edge = score = around = np.empty(0)
    if is_ordered:
        inner = np.clip(np.cumsum(marginal)[:-1], 0.0, 1.0)
        edge = np.concatenate([[-np.inf], ndtri(inner), [np.inf]])
        density = np.exp(-0.5 * edge**2) / np.sqrt(2 * np.pi)
        score = -np.diff(density) / np.where(marginal > 0, marginal, np.inf)
        around = _around(marginal)
    return CodeColumn(marginal, edge, score, around, known)


def _around(share: np.ndarray) -> np.ndarray:
    """Mean of the `_BESIDE` entries on either side of each, (K,); 0 where there is none."""
    window = np.ones(2 * _BESIDE + 1)
    total, n = (np.convolve(np.pad(x, _BESIDE), window, "valid") - x for x in (share, np.ones(len(share))))
    return total / np.maximum(n, 1.0)
