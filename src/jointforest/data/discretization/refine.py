"""A scale with finer codes and the same base density."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from .discretizer import Scale, log_part, point_at


class Refined(NamedTuple):
    """A scale whose codes are parts of those of another one.

    scale : Scale
    code : int64 array (K,). The code of the other scale that each code is a part of.
    share : float64 array (K,). Share of that code's mass.
    """

    scale: Scale
    code: np.ndarray
    share: np.ndarray


def refined(scale: Scale, parts: int) -> Refined:
    """Each code of a number cut into parts of about equal mass: at most so many, as points and cells stay whole."""
    lo, hi, rate, code, share, before = (
        of[scale.by_code] for of in (scale.lo, scale.hi, scale.rate, scale.code, scale.share, scale.share_before)
    )
    aim = (np.arange(scale.n_codes)[:, None] + np.arange(1, parts) / parts).ravel()
    at = np.maximum(np.searchsorted(code + before, aim, side="right") - 1, 0)
    fraction = np.clip((aim - (code + before)[at]) / np.maximum(share[at], 1e-300), 0.0, 1.0)
    cut = point_at(lo[at], hi[at], rate[at], fraction)
    if scale.step > 0.0:  # between two cells
        cut = scale.origin + (np.floor((cut - scale.origin) / scale.step) + 0.5) * scale.step
    at, cut = np.unique(np.stack([at, cut])[:, (cut > lo[at]) & (cut < hi[at])], axis=1)
    at = at.astype(np.int64)
    of, begin = np.append(np.arange(len(lo)), at), np.append(lo, cut)
    order = np.lexsort((begin, of))
    of, begin = of[order], begin[order]
    end = np.where(np.diff(of, append=-1) == 0, np.append(begin[1:], np.inf), hi[of])
    part, piece = share[of], np.isin(of, at)
    whole = of[piece]
    part[piece] *= np.exp(log_part(lo[whole], hi[whole], rate[whole], begin[piece], end[piece]))
    middle = np.cumsum(part) - 0.5 * part
    middle -= (np.cumsum(np.bincount(code, share, scale.n_codes)) - np.bincount(code, share, scale.n_codes))[code[of]]
    place = np.clip(np.floor(middle * parts), 0, parts - 1).astype(np.int64)
    found, new = np.unique(code[of] * parts + place, return_inverse=True)
    mass = np.bincount(new, part, len(found))
    with np.errstate(divide="ignore"):
        log_mass = np.log(part / mass[new])
    fine = replace(
        scale, n_codes=len(found), lo=begin, hi=end, rate=rate[of], code=new.astype(np.int32), log_mass=log_mass
    )
    return Refined(fine, found // parts, mass)
