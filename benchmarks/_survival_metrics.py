"""Measures of survival curves on censored rows: C-index and Brier score by IPCW, and D-calibration."""

from __future__ import annotations

import numpy as np


def kaplan_meier(time: np.ndarray, event: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Times at which events happen (k,), ascending, and the share that survives each, (k,)."""
    at, died = np.unique(time[event], return_counts=True)
    at_risk = len(time) - np.searchsorted(np.sort(time), at)
    return at, np.cumprod(1.0 - died / at_risk)


def steps(at: np.ndarray, share: np.ndarray, t: np.ndarray, left: bool = False) -> np.ndarray:
    """The step function with these values from each time on, 1 before; ``left``: its limit from the left."""
    return np.append(1.0, share)[np.searchsorted(at, t, side="left" if left else "right")]


def kept(time: np.ndarray, event: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Kaplan-Meier of the time of censoring: what weights by inverse probability of censoring are made of.

    Of rows with the same time, events come first: they are not at risk of being censored.
    """
    at, lost = np.unique(time[~event], return_counts=True)
    at_risk = len(time) - np.searchsorted(np.sort(time), at)
    at_risk = at_risk - np.array([np.sum(time[event] == t) for t in at], dtype=int)
    return at, np.cumprod(1.0 - lost / at_risk)


def brier(
    time: np.ndarray, event: np.ndarray, at: np.ndarray, survival: np.ndarray, censoring: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    """Brier score at each of q times, of survival curves (n, q) (Graf et al. 1999)."""
    dead = (time[:, None] <= at) & event[:, None]
    alive = time[:, None] > at
    # an event at t counts with the share not censored by t, as scikit-survival has it
    of_event = np.maximum(steps(*censoring, time), 1e-9)[:, None]
    of_time = np.maximum(steps(*censoring, at), 1e-9)
    loss = np.where(dead, survival**2 / of_event, 0.0) + np.where(alive, (1.0 - survival) ** 2 / of_time, 0.0)
    return loss.mean(axis=0)


def integrated(at: np.ndarray, score: np.ndarray) -> float:
    """Mean over time of a score, by trapezoids."""
    return float(np.trapezoid(score, at) / (at[-1] - at[0]))


def concordance(
    time: np.ndarray, event: np.ndarray, risk: np.ndarray, tau: float, censoring: tuple[np.ndarray, np.ndarray]
) -> float:
    """C-index by IPCW up to ``tau`` (Uno et al. 2011)."""
    first = np.flatnonzero(event & (time < tau))
    weight = np.maximum(steps(*censoring, time[first]), 1e-9) ** -2
    later = (time[None, :] > time[first, None]) | ((time[None, :] == time[first, None]) & ~event[None, :])
    right = later * ((risk[first, None] > risk[None, :]) + 0.5 * (risk[first, None] == risk[None, :]))
    return float((weight * right.sum(axis=1)).sum() / (weight * later.sum(axis=1)).sum())


def calibration_bins(event: np.ndarray, survival: np.ndarray, bins: int = 10) -> np.ndarray:
    """Rows by the survival probability at their own time, (bins,) (Haider et al. 2020).

    A censored row is spread over what lies below its probability.
    """
    count = np.zeros(bins)
    edge = np.linspace(0.0, 1.0, bins + 1)
    place = np.clip(np.ceil(survival * bins).astype(int) - 1, 0, bins - 1)
    np.add.at(count, place[event], 1.0)
    for s, k in zip(survival[~event], place[~event], strict=True):
        if s <= 0.0:
            count[0] += 1.0
            continue
        count[k] += (s - edge[k]) / s
        count[:k] += 1.0 / (bins * s)
    return count
