"""The pieces that likelihoods of runs cut a column into, and fewer of them where a leaf hardly tells."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Pieces(NamedTuple):
    """Pieces of one column in R parameter rows.

    Attributes
    ----------
    start : int64 array (R + 1,)
        Row r has the pieces ``start[r]:start[r + 1]``.
    first, last : int64 arrays (m,)
        Runs of the evidence that a piece begins and ends with.
    log_share : float64 array (m,)
        Log of the piece's share of the region's mass in the row; a row's first one has the atoms, too.
    log_first : float64 array (R,)
        Log mass of the first piece, atoms included.
    """

    start: np.ndarray
    first: np.ndarray
    last: np.ndarray
    log_share: np.ndarray
    log_first: np.ndarray


def joined(pieces: Pieces, atoms: np.ndarray, first_run: int, log_weight: np.ndarray, within: float) -> Pieces:
    """Neighbours joined as long as no row's CDF moves by more than ``within``.

    Parameters
    ----------
    pieces : Pieces
        One run each; the region's runs leave no gaps.
    atoms : float64 array (R,)
        Weighed mass of the atoms in each row.
    first_run : int
        The region's first run.
    log_weight : float64 array (Q,)
        Log-likelihood of each of the region's runs.
    within : float
    """
    n_rows, n_runs = len(atoms), len(log_weight)
    some = np.diff(pieces.start) > 0
    row = np.repeat(np.arange(n_rows), np.diff(pieces.start))
    head = np.minimum(pieces.start[:-1], max(len(pieces.log_share) - 1, 0))
    log_total = np.where(some, pieces.log_first - pieces.log_share[head], 0.0) if len(row) else np.zeros(n_rows)
    own = np.zeros((n_rows, n_runs))
    own[row, pieces.first - first_run] = np.exp(pieces.log_share + log_total[row])
    first = np.where(some, (own > 0.0).argmax(axis=1), 0)
    own[np.arange(n_rows), first] = np.maximum(own[np.arange(n_rows), first] - np.where(some, atoms, 0.0), 0.0)
    begins = _begins(own, own * np.exp(-log_weight), within)
    begins[~some] = False
    row, run = np.nonzero(begins)
    start = np.concatenate([[0], np.cumsum(begins.sum(axis=1))])
    below = np.concatenate([np.zeros((n_rows, 1)), np.cumsum(own, axis=1)], axis=1)
    stop = np.append(run[1:], n_runs)
    stop[start[1:][some] - 1] = n_runs
    mass = below[row, stop] - below[row, run]
    mass[start[:-1][some]] += atoms[some]
    with np.errstate(divide="ignore"):
        log_mass = np.log(mass)
    log_first = pieces.log_first.copy()
    log_first[some] = log_mass[start[:-1][some]]
    return Pieces(start, run + first_run, stop - 1 + first_run, log_mass - log_total[row], log_first)


def _begins(weighed: np.ndarray, plain: np.ndarray, within: float) -> np.ndarray:
    """Runs (R, Q) at which a piece begins, of masses with and without likelihoods, (R, Q) each: greedy, run by run.

    Inside a piece the two cumulative masses lie on a line, so a piece ends where no line is near all of them.
    """
    weighed, plain = (np.cumsum(x, axis=1) / np.maximum(x.sum(axis=1, keepdims=True), 1e-300) for x in (weighed, plain))
    n_rows, n_runs = weighed.shape
    begins = np.zeros((n_rows, n_runs), bool)
    begins[:, 0] = True
    at, of = np.zeros(n_rows), np.zeros(n_rows)  # cumulative masses where the piece begins
    low, high = np.zeros(n_rows), np.full(n_rows, np.inf)  # slopes of lines that are near
    for q in range(n_runs):
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = (weighed[:, q] - of) / (plain[:, q] - at)
            new = np.isfinite(slope) & ((slope < low * (1.0 - 1e-9)) | (slope > high * (1.0 + 1e-9)))
            if q:
                begins[new, q] = True
                at[new], of[new] = plain[new, q - 1], weighed[new, q - 1]
                low[new], high[new] = 0.0, np.inf
            width, rise = plain[:, q] - at, weighed[:, q] - of
            some = width > 1e-14
            low = np.where(some, np.maximum(low, (rise - within) / width), low)
            high = np.where(some, np.minimum(high, (rise + within) / width), high)
    return begins
