"""A column's scale, the slow way: a cloud of points with masses (cells one by one, Gauss rules), and sums over it."""

from __future__ import annotations

import math

import numpy as np

from jointforest.data.discretization.discretizer import Scale

NODES, WEIGHTS = np.polynomial.legendre.leggauss(12)
FAR = 60.0
"""Tails are followed until exp(-60)."""


def cells_between(scale: Scale, lo: float, hi: float) -> list[float]:
    """Centres of the grid's cells in (lo, hi]; both finite."""
    first = math.floor((lo - scale.origin) / scale.step) - 2
    last = math.ceil((hi - scale.origin) / scale.step) + 2
    centres = (scale.origin + k * scale.step for k in range(first, last + 1))
    return [c for c in centres if lo + scale.step / 4 < c < hi - scale.step / 4]


def segment_cloud(scale: Scale, s: int, cuts: list[float]) -> tuple[np.ndarray, np.ndarray, float]:
    """Points and masses of exp(-rate (x - anchor)) on one segment, and the anchor; no Gauss panel straddles a cut."""
    lo, hi, rate = float(scale.lo[s]), float(scale.hi[s]), float(scale.rate[s])
    if lo == hi:
        return np.array([lo]), np.ones(1), lo
    anchor = lo if math.isfinite(lo) else hi
    lo = lo if math.isfinite(lo) else hi - FAR / -rate - scale.step
    hi = hi if math.isfinite(hi) else lo + FAR / rate + scale.step
    if scale.step > 0:
        x = np.array(cells_between(scale, lo, hi))
        return x, np.exp(-rate * (x - anchor)), anchor
    panels = max(4, math.ceil(abs(rate) * (hi - lo)))
    edges = sorted({*np.linspace(lo, hi, panels + 1).tolist(), *(c for c in cuts if lo < c < hi)})
    left, right = np.array(edges[:-1]), np.array(edges[1:])
    x = (left + right)[:, None] / 2 + (right - left)[:, None] / 2 * NODES
    mass = np.exp(-rate * (x - anchor)) * WEIGHTS * (right - left)[:, None] / 2
    return x.ravel(), mass.ravel(), anchor


def cloud(scale: Scale, cuts: list[float] | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Code, place, share of the code, and whether it is a point with a mass of its own: of all segments."""
    parts = []
    for s in range(len(scale.lo)):
        x, mass, _ = segment_cloud(scale, s, cuts or [])
        is_mass = np.full(len(x), scale.step > 0 or scale.lo[s] == scale.hi[s])
        parts.append((np.full(len(x), scale.code[s]), x, math.exp(scale.log_mass[s]) * mass / mass.sum(), is_mass))
    code, x, mass, is_mass = (np.concatenate(column) for column in zip(*parts, strict=True))
    return code, x, mass, is_mass


def by_code(scale: Scale, code: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Sum of masses in each code, (K,)."""
    return np.array([math.fsum(mass[code == k]) for k in range(scale.n_codes)])


def mean_variance(scale: Scale) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of each code, each (K,); 0 where it has nothing."""
    code, x, mass, _ = cloud(scale)
    total = by_code(scale, code, mass)
    total = np.where(total > 0, total, 1.0)
    mean = by_code(scale, code, mass * x) / total
    return mean, by_code(scale, code, mass * (x - mean[code]) ** 2) / total


def up_to(scale: Scale, at: float) -> np.ndarray:
    """Share of each code at or below a point, (K,); on a grid of the cells with centres there."""
    code, x, mass, _ = cloud(scale, [at])
    return by_code(scale, code, np.where(x <= at + 1e-9 * scale.step, mass, 0.0))


def inside(scale: Scale, runs: list[tuple[float, float]], kept: set[float], atoms: tuple[float, ...]) -> np.ndarray:
    """Share of each code in a region: runs (lo, hi], and of the atoms those that are kept."""
    code, x, mass, is_mass = cloud(scale, [edge for run in runs for edge in run])
    in_runs = np.array([any(lo < at <= hi for lo, hi in runs) for at in x])
    if scale.step == 0:
        an_atom = is_mass & np.isin(x, atoms)
        in_runs = np.where(an_atom, np.isin(x, list(kept)), in_runs)
    return by_code(scale, code, np.where(in_runs, mass, 0.0))


def base_density(scale: Scale, at: float) -> tuple[int, float]:
    """Code of a value, and its base density: mass of its cell over the step, mass of a point, else the density."""
    if scale.step > 0:
        code, x, mass, _ = cloud(scale)
        near = int(np.argmin(np.abs(x - at)))
        return int(code[near]), float(mass[near]) / scale.step
    hits = [s for s in range(len(scale.lo)) if scale.lo[s] == scale.hi[s] == at]
    s = (hits or [s for s in range(len(scale.lo)) if scale.lo[s] < at <= scale.hi[s]])[0]
    _, mass, anchor = segment_cloud(scale, s, [])
    height = math.exp(-scale.rate[s] * (at - anchor)) / mass.sum()
    return int(scale.code[s]), math.exp(scale.log_mass[s]) * float(height)
