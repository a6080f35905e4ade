"""The rows of a table as joint trees want them, row by row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...ground.records import record
from ...table.columns import Columns
from ..ranks import Ranks

MAX_BINS = 256
_MORE_BINS = 64  # of targets that are no columns


@record
class JointRows(NamedTuple):
    """Table of n rows and d columns for trees that split all columns at once.

    A column is a *target* with one statistic a level (weights), or two if it is numeric (weight, weighted sum).

    Attributes
    ----------
    ranks : int32 array (d, n)
        See `ranks.Ranks.codes`; of the columns that may split.
    bins : int16 array (n, d)
        Level, or bin of the rank (quantile bins of the whole table); -1 where missing.
    z : float64 array (n, p)
        Numbers, each column with mean 0 and variance 1 (0 if constant); NaN where missing.
    n_bins : int32 array (d,)
        Number of bins, or of levels.
    last_rank : int32 array, bin_start : int64 array (d + 1,)
        ``last_rank[bin_start[j] + b]`` is the largest rank of bin b of column j; the level b if categorical.
    is_categorical, is_ordered : uint8 arrays (d,)
    slot : int32 array (d,)
        Column of ``z``, if numeric.
    first : int64 array (d + 1,)
        Statistics of target k are ``first[k]..first[k + 1] - 1``.
    owner : int32 array (S,)
        Target of each statistic.
    """

    ranks: np.ndarray
    bins: np.ndarray
    z: np.ndarray
    n_bins: np.ndarray
    last_rank: np.ndarray
    bin_start: np.ndarray
    is_categorical: np.ndarray
    is_ordered: np.ndarray
    slot: np.ndarray
    first: np.ndarray
    owner: np.ndarray


def joint_rows(
    columns: Columns, is_ordered: np.ndarray, ranks: Ranks, X: np.ndarray, max_bins: int = MAX_BINS
) -> JointRows:
    """`JointRows` of the cells X (n, d), whose ranks these are."""
    n, d = X.shape
    bins = np.empty((n, d), dtype=np.int16)
    z = np.empty((n, len(columns.step)))
    n_bins = ranks.n_codes.copy()
    last_rank: list[np.ndarray] = []
    for j in range(d):
        if columns.is_categorical[j]:
            bins[:, j] = ranks.codes[j]
            last_rank.append(np.arange(n_bins[j], dtype=np.int32))
            continue
        bin_of = _bins(np.bincount(ranks.codes[j] + 1, minlength=ranks.n_codes[j] + 1)[1:], max_bins)
        n_bins[j] = bin_of[-1] + 1
        last_rank.append(np.searchsorted(bin_of, np.arange(n_bins[j]), side="right").astype(np.int32) - 1)
        bins[:, j] = np.append(bin_of, -1).astype(np.int16)[ranks.codes[j]]
        z[:, columns.slot[j]] = _standard(X[:, j])
    width = np.where(columns.is_categorical == 1, ranks.n_codes, 2)
    return JointRows(
        ranks=ranks.codes,
        bins=bins,
        z=z,
        n_bins=n_bins,
        last_rank=np.concatenate(last_rank),
        bin_start=np.cumsum([0] + [len(last) for last in last_rank]),
        is_categorical=columns.is_categorical,
        is_ordered=is_ordered,
        slot=columns.slot,
        first=np.cumsum([0, *width]).astype(np.int64),
        owner=np.repeat(np.arange(d, dtype=np.int32), width),
    )


def with_targets(data: JointRows, values: np.ndarray) -> JointRows:
    """The rows with q more targets, numbers in (0, 1) spread evenly, (n, q), NaN where missing; they split nothing."""
    q = values.shape[1]
    d, p = data.bins.shape[1], data.z.shape[1]
    bins = np.where(np.isnan(values), -1, np.minimum(np.nan_to_num(values) * _MORE_BINS, _MORE_BINS - 1))
    return JointRows(
        ranks=data.ranks,
        bins=np.concatenate([data.bins, bins.astype(np.int16)], axis=1),
        z=np.concatenate([data.z, (values - 0.5) * np.sqrt(12.0)], axis=1),
        n_bins=_append(data.n_bins, np.full(q, _MORE_BINS)),
        last_rank=_append(data.last_rank, np.tile(np.arange(_MORE_BINS), q)),
        bin_start=_append(data.bin_start, data.bin_start[-1] + _MORE_BINS * np.arange(1, q + 1)),
        is_categorical=_append(data.is_categorical, np.zeros(q)),
        is_ordered=_append(data.is_ordered, np.zeros(q)),
        slot=_append(data.slot, p + np.arange(q)),
        first=_append(data.first, data.first[-1] + 2 * np.arange(1, q + 1)),
        owner=_append(data.owner, np.repeat(np.arange(d, d + q), 2)),
    )


def _append(array: np.ndarray, more: np.ndarray) -> np.ndarray:
    """Both, one after the other, in the dtype of the first."""
    return np.concatenate([array, more.astype(array.dtype)])


def _bins(count: np.ndarray, max_bins: int) -> np.ndarray:
    """Bin of each rank, from the rows of each rank: the rank itself, or quantile bins if there are many."""
    if len(count) <= max_bins:
        return np.arange(len(count))
    middle = np.cumsum(count) - count / 2
    return np.unique((middle * (max_bins / count.sum())).astype(np.int64), return_inverse=True)[1]


def _standard(x: np.ndarray) -> np.ndarray:
    """Numbers less their mean over their standard deviation, without overflow."""
    centred = x - np.nanmin(x) / 2 - np.nanmax(x) / 2
    centred /= np.nanmax(np.abs(centred)) or 1.0
    centred -= np.nanmean(centred)
    return centred / (np.nanstd(centred) or 1.0)
