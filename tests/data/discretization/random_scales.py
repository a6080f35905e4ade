"""Random small scales of every kind, made segment by segment."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from jointforest.data.discretization.discretizer import Scale

KINDS = ("continuous", "mixed", "grid", "levels")


@st.composite
def scales(draw: st.DrawFn, kinds: tuple[str, ...] = KINDS) -> Scale:
    """Scales of up to 6 codes with points, flat pieces, falling and rising ones and open tails."""
    return random_scale(draw(st.sampled_from(kinds)), np.random.default_rng(draw(st.integers(0, 2**32))))


def random_scale(kind: str, random: np.random.Generator) -> Scale:
    """One scale of a kind."""
    if kind == "levels":
        n_levels = int(random.integers(1, 8))
        n_codes = int(random.integers(1, n_levels + 1))
        code = random.permutation(np.append(np.arange(n_codes), random.integers(0, n_codes, n_levels - n_codes)))
        place = np.arange(float(n_levels))
        return normalised(n_codes, 0.0, 0.0, place, place, np.zeros(n_levels), code, random)
    step, origin = (float(random.choice([1.0, 0.1, 3.0])), float(random.normal())) if kind == "grid" else (0.0, 0.0)
    m = int(random.integers(1, 9))
    if step > 0:
        edges = origin + (np.cumsum(random.integers(1, 9, m + 1)) - 5 - 0.5) * step
    else:
        edges = np.cumsum(random.gamma(1.0, 1.0, m + 1)) - 2.0
    lo, hi = edges[:-1], edges[1:]
    width = (hi - lo).clip(0.1)
    rate = np.where(random.random(m) < 0.5, 0.0, random.normal(size=m) * 3 / width)
    tails = random.random(2) < 0.7
    if tails[0]:
        lo, hi = np.append(-np.inf, lo), np.append(edges[0], hi)
        rate = np.append(-random.gamma(1.0, 1.0) - 0.05, rate)
    if tails[1]:
        lo, hi, rate = np.append(lo, edges[-1]), np.append(hi, np.inf), np.append(rate, random.gamma(1.0, 1.0) + 0.05)
    if kind == "mixed":
        at = edges[random.random(m + 1) < 0.6]
        lo, hi, rate = np.append(lo, at), np.append(hi, at), np.append(rate, np.zeros(len(at)))
        order = np.lexsort((hi, lo))
        lo, hi, rate = lo[order], hi[order], rate[order]
    keep = random.random(len(lo)) < 0.85
    keep[int(random.integers(len(keep)))] = True
    lo, hi, rate = lo[keep], hi[keep], rate[keep]
    n_codes = int(random.integers(1, min(6, len(lo)) + 1))
    code = np.sort(np.append(np.arange(n_codes), random.integers(0, n_codes, len(lo) - n_codes)))
    return normalised(n_codes, step, origin, lo, hi, rate, code, random)


def normalised(n_codes, step, origin, lo, hi, rate, code, random) -> Scale:  # type: ignore[no-untyped-def]
    """The scale with random masses that sum to 1 in each code."""
    mass = random.gamma(0.7, 1.0, len(lo)) + 1e-6
    log_mass = np.log(mass / np.bincount(code, mass, n_codes)[code])
    return Scale(n_codes, step, origin, lo, hi.copy(), rate, code.astype(np.int32), log_mass)


def atoms_of(scale: Scale) -> tuple[float, ...]:
    """The points of a scale as a column would have them as its atoms."""
    return tuple(scale.lo[scale.lo == scale.hi].tolist())
