"""Entropy of what each code holds."""

from __future__ import annotations

import numpy as np

from .scale import Scale
from .segments import distance, log_norm, mean_variance


def code_entropy(scale: Scale) -> np.ndarray:
    """Entropy in nats of the distribution inside each code, (K,); 0 for codes that a region leaves nothing of.

    Against the measure of `codes_of`: points count 1, cells of a grid their width, numbers their length.

    Examples
    --------
    >>> from jointforest.table.schema import Column
    >>> from jointforest.table.scale.learn import learn_scale
    >>> scale = learn_scale(Column("age", "integer", "int64", step=1.0), np.repeat([30.0, 31.0], 50), None, 8)
    >>> code_entropy(scale).round(2)
    array([0., 0.])
    """
    of_segment = np.where(scale.share > 0.0, _of_segments(scale) - scale.log_share, 0.0)
    return np.bincount(scale.code, scale.share * of_segment, scale.n_codes)


def _of_segments(scale: Scale) -> np.ndarray:
    """Entropy of each segment, (S,): its log density falls with the distance from its anchor."""
    length, rate = distance(scale.hi, scale.lo), scale.rate
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        anchor = np.where(rate >= 0, scale.lo, scale.hi)
        mean = np.abs(mean_variance(scale.lo, scale.hi, rate, scale.step)[0] - anchor)
        fall = np.where(rate == 0, 0.0, np.abs(rate) * (mean - 0.5 * scale.step))
        if scale.step > 0.0:
            cell = np.abs(rate) * scale.step
            cells = np.rint(np.where(np.isinf(length), np.inf, length) / scale.step)
            found = fall + log_norm(cell, cells) - log_norm(cell, np.ones(len(cell))) + np.log(scale.step)
        else:
            found = fall + log_norm(rate, length)
    return np.where(scale.is_point, 0.0, found)
