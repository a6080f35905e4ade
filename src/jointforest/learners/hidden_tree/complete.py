"""Rows of codes completed by draws of a factor analysis, from which the first states of rows with missing cells start.

Expectation maximisation finds a solution near its start. If the start replaced missing cells by means, dependence would
be lost in proportion to the number of missing cells. A factor analysis keeps the linear dependence of all columns: its
own expectation maximisation sums over missing cells exactly (Rubin and Thayer 1982).
"""

from __future__ import annotations

import numpy as np

from ...runtime.threads import of_finite
from .constants import FIXED
from .features import feature_tables, features
from .structure import CodeColumn, CodeTable


def completed(
    codes: np.ndarray, columns: tuple[CodeColumn, ...], rng: np.random.Generator, weight: np.ndarray | None = None
) -> np.ndarray:
    """Codes (n, d) with every missing cell drawn given the known cells of its row; the codes themselves if complete."""
    missing = codes == np.array([column.n_codes for column in columns])
    if not missing.any():
        return codes
    tables = feature_tables(columns)
    width = [table.shape[1] for table in tables]
    X = np.hstack(features(codes, columns))
    known = np.repeat(~missing, width, axis=1).astype(np.float32)
    drawn = draw_features(X, known, np.ones(len(X)) if weight is None else weight, rng)
    out = codes.copy()
    for j, (column, table, x) in enumerate(
        zip(columns, tables, np.split(drawn, np.cumsum(width)[:-1], axis=1), strict=True)
    ):
        rows = np.flatnonzero(missing[:, j])
        if len(rows) == 0:
            continue
        if column.is_ordered and not column.views:
            out[rows, j] = np.searchsorted(column.edge[1:-1], x[rows, 0])
        else:
            at_once = max(FIXED.cluster_cells // column.n_codes, 1)
            for some in np.split(rows, range(at_once, len(rows), at_once)):
                out[some, j] = _draw_levels(x[some], column, table[:-1], rng)
    return out


def order_in_ranges(
    table: CodeTable, columns: tuple[CodeColumn, ...], rng: np.random.Generator
) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """By column, rows with ranges, and the rows of the same range whose values they should have given other cells."""
    # Values are in the order of draws from a factor analysis given the other cells, within the range, and stay what
    # they are in all. Each round learns the factors anew.
    from scipy.special import ndtr, ndtri

    assert table.known is not None
    codes, tables = table.codes, feature_tables(columns)
    width = [of.shape[1] for of in tables]
    first = np.cumsum([0, *width])
    known = np.repeat(codes < table.n_codes, width, axis=1).astype(np.float32)
    X = np.hstack(features(codes, columns))
    weight = np.ones(len(X)) if table.weight is None else table.weight
    q = min(FIXED.factors, max(X.shape[1] - 1, 1))
    some = np.sort(rng.permutation(len(X))[: max(FIXED.factor_cells // max(X.shape[1], 1), 1)])
    found: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    for _ in range(FIXED.range_rounds if X.shape[1] > 1 else 0):
        centre, loading, noise = fit_factors(X[some], known[some], weight[some], q, rng)
        for j, (column, cover) in enumerate(zip(columns, table.covers, strict=True)):
            K, at = column.n_codes, int(first[j])
            rows = np.flatnonzero(table.known[:, j] > K)
            if not len(rows):
                continue
            others = known[rows]
            others[:, at] = 0.0
            mean, covariance = _factors((X[rows] - centre) * others, _patterns(others), loading, noise)
            middle = centre[at] + mean @ loading[at]
            sd = np.sqrt(noise[at] + np.einsum("k,nkl,l->n", loading[at], covariance, loading[at]))
            unit = np.sqrt(column.marginal @ (column.score - column.marginal @ column.score) ** 2) or 1.0
            edge = (column.edge - column.marginal @ column.score) / unit
            of = table.known[rows, j] - K - 1
            ends = edge[(cover > 0.0).argmax(axis=1)], edge[K - (cover[:, ::-1] > 0.0).argmax(axis=1)]
            low, high = ((end[of] - middle) / sd for end in ends)
            side = np.where(low > 0.0, -1.0, 1.0)  # of the lighter tail, where shares are exact
            a, b = ndtr(side * low), ndtr(side * high)
            drawn = middle + sd * side * ndtri(np.clip(a + rng.random(len(rows)) * (b - a), 1e-300, 1.0 - 1e-16))
            by_draw, by_code = rows[np.lexsort((drawn, of))], rows[np.lexsort((table.codes[rows, j], of))]
            found[j] = by_draw, by_code
            X[by_draw, at] = tables[j][table.codes[by_code, j], 0]
    return found


def _draw_levels(x: np.ndarray, column: CodeColumn, table: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A level for each row of features x (n, f) of a column, whose levels have the features ``table`` (K, f), (n,)."""
    # Features of levels are indicators, so that a drawn feature stands for a probability. Some of these are negative.
    # Setting them to 0 makes rare levels too frequent, so that shares are raked to their previous means. Columns that
    # stand for several have levels near the features that are drawn.
    share = np.repeat(column.marginal[None], len(x), axis=0)
    if column.views:
        near = x @ table.T - 0.5 * (table**2).sum(axis=1)
        share *= np.exp(near - near.max(axis=1, keepdims=True))
        share *= column.marginal / np.maximum(share.mean(axis=0), 1e-300)
    elif table.shape[1]:
        of_some = np.ptp(table, axis=0) > 0.0  # a single level has no variance
        x, table = x[:, of_some], table[:, of_some]
        level, low = table.argmax(axis=0), table.min(axis=0)
        share[:, level] = (x - low) / (table.max(axis=0) - low)
        others = np.setdiff1d(np.arange(column.n_codes), level)
        left = 1.0 - share[:, level].sum(axis=1)
        share[:, others] *= left[:, None] / max(column.marginal[others].sum(), 1e-12)
    wanted = np.maximum(share.mean(axis=0), 1e-3 * column.marginal)
    share = np.maximum(share, 1e-3 * column.marginal)
    for _ in range(FIXED.rakings):
        share /= share.sum(axis=1, keepdims=True)
        share *= wanted / np.maximum(share.mean(axis=0), 1e-300)
    cumulated = np.cumsum(share, axis=1)
    return np.minimum((cumulated < rng.random((len(x), 1)) * cumulated[:, -1:]).sum(axis=1), column.n_codes - 1)


@of_finite
def draw_features(X: np.ndarray, known: np.ndarray, weight: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Features (n, f) with unknown ones drawn from a factor analysis given the known ones of the row."""
    # ``known``, float32 (n, f) of ones and zeros, says which; the others are 0 in X.
    n, f = X.shape
    if f == 0:  # levels that are all too rare for features
        return X
    q = min(FIXED.factors, max(f - 1, 1))
    rows = np.sort(rng.permutation(n)[: max(FIXED.factor_cells // f, 1)])
    centre, loading, noise = fit_factors(X[rows], known[rows], weight[rows], q, rng)
    mean, covariance = _factors(X - centre * known, _patterns(known), loading, noise)
    z = mean + (np.linalg.cholesky(covariance) @ rng.standard_normal((n, q, 1)))[..., 0]
    drawn = centre + z @ loading.T + np.sqrt(noise) * rng.standard_normal((n, f))
    return np.asarray(np.where(known > 0.0, X, drawn), dtype=np.float32)


def fit_factors(
    X: np.ndarray, known: np.ndarray, weight: np.ndarray, q: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Centre (f,), loadings (f, q) and variances of noise (f,) of a factor analysis of the known features."""
    n, f = X.shape
    heavy = known * weight[:, None].astype(np.float32)
    mass = np.maximum(heavy.sum(axis=0), 1e-9)
    centre, square = (heavy * X).sum(axis=0) / mass, (heavy * X**2).sum(axis=0) / mass
    loading, noise = rng.standard_normal((f, q)) * 0.5 / np.sqrt(q), np.full(f, 0.5)
    patterns = _patterns(known)
    for _ in range(FIXED.factor_passes):
        mean, covariance = _factors(X - centre * known, patterns, loading, noise)
        # moments of the factors and of a constant, whose loading is the centre
        first = np.hstack([mean, np.ones((n, 1))])
        second = first[:, :, None] * first[:, None, :]
        second[:, :q, :q] += covariance
        moments = (heavy.T @ second.reshape(n, -1)).reshape(f, q + 1, q + 1) / mass[:, None, None]
        cross = (heavy * X).T @ first / mass[:, None]
        slopes = np.linalg.solve(moments + FIXED.factor_ridge * np.eye(q + 1), cross[..., None])[..., 0]
        loading, centre = slopes[:, :q], slopes[:, q]
        noise = np.maximum(square - (slopes * cross).sum(axis=1), FIXED.least_noise)
    return centre, loading, noise


def _factors(
    X: np.ndarray, known: tuple[np.ndarray, np.ndarray], loading: np.ndarray, noise: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Posterior mean (n, q) and covariance (n, q, q) of the factors of each row, which knows what `_patterns` gives."""
    q = loading.shape[1]
    scaled = loading / noise[:, None]
    outer = (scaled[:, :, None] * loading[:, None, :]).reshape(len(loading), q * q)
    patterns, of_row = known
    covariance = np.linalg.inv((patterns @ outer).reshape(-1, q, q) + np.eye(q))[of_row]
    return (covariance @ (X @ scaled)[..., None])[..., 0], covariance


def _patterns(known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct rows of ``known`` (n, f), and which of them each row is (n,): many rows know the same cells."""
    _, first, of_row = np.unique(np.packbits(known > 0.0, axis=1), axis=0, return_index=True, return_inverse=True)
    return known[first], of_row.reshape(-1)
