"""A table under rules, the slow way: all its rows with their probabilities, and every answer as a sum over them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

NEAR = 1e-6
"""By how much numbers may differ that count as equal: rows are sums of floats."""


def written_out(sources, absences, columns, Z):
    """Rows of the table of rows of coordinates Z, by the definition of each column; NaN where a rule says missing."""
    X = np.empty((len(Z), len(sources)))
    for j, (source, absence, column) in enumerate(zip(sources, absences, columns, strict=True)):
        x = np.full(len(Z), float(source.constant))
        for term in source.terms:
            z = Z[:, term.at]
            x += term.coefficient * (z if term.table is None else np.array([term.table[int(k)] for k in z]))
        if column.step > 0.0:
            x = column.origin * (column.kind != "datetime") + column.step * np.rint(
                (x - column.origin * (column.kind != "datetime")) / column.step
            )
        if absence.by_rule:
            x[np.isin(Z[:, absence.where], absence.values)] = np.nan
        X[:, j] = x
    return X


@dataclass
class Rows:
    """All rows of a table (N, d), their probabilities (N,), widths of their cells (N, d), shares of missing cells.

    The width of a cell is that of its grid, 1 of a level or a point mass, and the weight of a quadrature point. The
    share (N, d) of missing cells is that of a row in which the cell has a value that is not seen. Cells of columns of
    one number (d,) are missing together.
    """

    X: np.ndarray
    p: np.ndarray
    width: np.ndarray
    missing: np.ndarray
    together: np.ndarray

    def of(self, columns):
        """The rows of some columns."""
        return Rows(
            self.X[:, columns], self.p, self.width[:, columns], self.missing[:, columns], self.together[columns]
        )

    def fits(self, evidence):
        """Probability of each row and of evidence, by number of a column.

        That is a value, ("set", values), ("interval", lo, hi), ("likely", {value: likelihood}, others), or whether the
        cell is missing.
        """
        out = self.p.copy()
        for j, said in evidence.items():
            out = out * self._likelihood(j, said)
        return out

    def _likelihood(self, j, said):
        x, exists = self.X[:, j], ~np.isnan(self.X[:, j])
        if isinstance(said, bool):
            share = np.where(exists, self.missing[:, j], 1.0)
            return share if said else 1.0 - share
        if not isinstance(said, tuple):
            return exists & near(x, said)
        if said[0] == "set":
            return exists & np.any([near(x, value) for value in said[1]], axis=0)
        if said[0] == "interval":
            return exists & (x >= said[1] - NEAR) & (x <= said[2] + NEAR)
        like = np.full(len(x), float(said[2]))
        for value, one in said[1].items():
            like[near(x, value)] = one
        return np.where(exists, like / max(*said[1].values(), said[2]), 0.0)

    def probability(self, event, given=None):
        """P(event | given)."""
        given = given or {}
        known = [j for said in (event, given) for j, one in said.items() if one is not True]
        if any(one is True and self.together[j] in self.together[known] for j, one in event.items()):
            return 0.0
        total = math.fsum(self.fits(given))
        both = self.fits(given) * self.fits(event) / np.where(self.p > 0.0, self.p, 1.0)
        never_seen = (self.missing[both > 0.0][:, known] > 1.0 - NEAR).all(axis=0)
        if any(one is True for one in event.values()) and never_seen.any():
            return 0.0  # what is known is missing in all of these rows
        return math.fsum(both) / total

    def log_density(self, values):
        """Log-density of values, by number of column; the widths of their cells are of the columns that are said."""
        rows = self.fits(values)
        with np.errstate(divide="ignore"):
            return float(np.log(np.sum(rows / np.prod(self.width[:, list(values)], axis=1))))

    def groups(self, columns):
        """Distinct values (G, k) of some columns, and the group of each row (N,): -1 where a column has no value."""
        some = np.flatnonzero(~np.isnan(self.X[:, columns]).any(axis=1))
        values, place = np.unique(np.round(self.X[np.ix_(some, columns)], 6), axis=0, return_inverse=True)
        group = np.full(len(self.X), -1)
        group[some] = place.reshape(-1)
        return values, group

    def group_log_density(self, columns, group, n):
        """Log-density (n,) of the values of each group."""
        some = group >= 0
        with np.errstate(divide="ignore"):
            share = self.p[some] / np.prod(self.width[np.ix_(some, columns)], axis=1)
            return np.log(np.bincount(group[some], share, n))

    def group_shares(self, columns, group, n):
        """Rows that have a group, and values in some columns; the share of each row in its group, (M,).

        Of the n groups, the last is how much of each one these rows are.
        """
        total = np.bincount(group[group >= 0], self.p[group >= 0], n)
        rows = np.flatnonzero((group >= 0) & ~np.isnan(self.X[:, columns]).any(axis=1))
        known = np.bincount(group[rows], self.p[rows], n)
        with np.errstate(invalid="ignore", divide="ignore"):
            return rows, self.p[rows] / known[group[rows]], known / total

    def known(self, columns, given=None):
        """Rows in which some columns have values, and their shares, given evidence."""
        share = self.fits(given or {}) * ~np.isnan(self.X[:, list(columns)]).any(axis=1)
        rows = np.flatnonzero(share > 0.0)
        return self.X[rows], share[rows] / share.sum(), rows

    def mean(self, j, given=None):
        X, share, _ = self.known([j], given)
        return math.fsum(share * X[:, j])

    def variance(self, j, given=None):
        return self.covariance(j, j, given)

    def covariance(self, a, b, given=None):
        """Covariance in the rows in which both columns have values."""
        X, share, _ = self.known([a, b], given)
        return math.fsum(share * (X[:, a] - share @ X[:, a]) * (X[:, b] - share @ X[:, b]))

    def below(self, j, points, given=None):
        """P(column <= x) at points."""
        X, share, _ = self.known([j], given)
        return np.array([math.fsum(share[X[:, j] <= x + NEAR]) for x in points])

    def quantile(self, j, q, given=None):
        """inf{x: P(column <= x) >= q}, and how far from a step of the distribution function q is."""
        X, share, _ = self.known([j], given)
        values, place = np.unique(np.round(X[:, j], 6), return_inverse=True)
        below = np.cumsum(np.bincount(place.reshape(-1), share))
        return values[min(np.searchsorted(below, q), len(values) - 1)], np.abs(below - q).min()

    def levels(self, j, n, given=None):
        """Probability of each of n levels."""
        X, share, _ = self.known([j], given)
        return np.array([math.fsum(share[X[:, j] == k]) for k in range(n)])

    def entropy(self, columns):
        """-E log p of some columns, in the rows in which all of them have values."""
        X, share, rows = self.known(columns)
        _, place = np.unique(np.round(X[:, list(columns)], 6), axis=0, return_inverse=True)
        place = place.reshape(-1)
        density = np.bincount(place, share / np.prod(self.width[rows][:, list(columns)], axis=1))[place]
        return -math.fsum(share * np.log(density))

    def mutual_information(self, a, b, given=()):
        """I(a; b | given) in the rows in which all of the columns have values."""
        X, share, rows = self.known([*a, *b, *given])
        kept = Rows(X, share, self.width[rows], self.missing[rows], self.together)
        signs = ((1, (*a, *given)), (1, (*b, *given)), (-1, (*a, *b, *given)), (-1, given))
        return sum(sign * kept.entropy(of) for sign, of in signs if of)

    def mode(self, given=None):
        """Greatest log-density of a row that agrees with evidence, of those that have values in all columns."""
        X, _, rows = self.known(range(self.X.shape[1]), given)
        _, place = np.unique(np.round(X, 6), axis=0, return_inverse=True)
        mass = np.bincount(place.reshape(-1), self.p[rows] / np.prod(self.width[rows], axis=1))
        return float(np.log(mass.max()))

    def compare(self, a, b, given=None):
        """P(a > b), in the rows in which both columns have values."""
        X, share, _ = self.known([a, b], given)
        return math.fsum(share[X[:, a] > X[:, b] + NEAR])

    def has_row(self, x):
        """Whether a row is one of the rows, NaN where they have none; cells that are not seen may be anything."""
        fits = np.ones(len(self.X), bool)
        for j, value in enumerate(x.tolist()):
            unseen = (self.missing[:, j] > 0.0) | np.isnan(self.X[:, j])
            fits &= unseen if math.isnan(value) else near(self.X[:, j], value)
        return bool((fits & (self.p > 0.0)).any())


def near(x, value):
    with np.errstate(invalid="ignore"):
        return np.abs(x - value) <= NEAR * max(1.0, abs(value))
