"""Kernels that all families of densities share: reading a density, and converting to and from units of b."""

from __future__ import annotations

import math
from typing import Any

from ....runtime.compile import kernel
from .table import Density


@kernel
def density_of(leaves, l, s):  # noqa: E741
    """The continuous part of numeric slot s in parameter row l."""
    a, b, lo, hi = leaves.a[l, s], leaves.b[l, s], leaves.lo[l, s], leaves.hi[l, s]
    return Density(leaves.family[l, s], a, b, lo, hi, leaves.log_norm[l, s])


@kernel
def standard(d, u, v):
    """The interval (u, v] in units of b from a, and its width, which cannot be had from rounded ends far out."""
    return (u - d.a) / d.b, (v - d.a) / d.b, (v - u) / d.b


@kernel
def place(d, u, v, anchor, t):
    """The point at distance t (in units of b) from u (anchor 1), below v (2) or from a (0)."""
    if anchor == 0:
        return d.a + d.b * t
    if anchor == 1:
        return u + d.b * t
    return v - d.b * t


_UNRESOLVED = 2.0**50
"""Beyond this many cells from 0, floats do not represent the edges of a cell accurately."""


def cell_by_mass(log_pdf: Any, log_mass: Any) -> Any:
    """A kernel for the log of the mass of a grid cell divided by its width, made from two kernels of a family."""

    @kernel
    def log_cell(d, centre, step):
        if abs(centre) > _UNRESOLVED * step:  # rounded edges would change the mass, and can equal the centre
            return log_pdf(d, centre)
        return log_mass(d, max(centre - 0.5 * step, d.lo), min(centre + 0.5 * step, d.hi)) - math.log(step)

    return log_cell
