"""How the cells of a column become codes: 0 for a missing cell, 1, 2, ... for the bins or levels of its scale."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...data.discretization.discretizer import Scale
from ...data.schema import Column

UNKNOWN = -1
"""Code of a cell of which nothing is known, not even whether it is missing."""
PRESENT = -2
"""Code of an unknown cell that is not missing."""


@dataclass(frozen=True, eq=False)
class Coding:
    """The codes of one variable of a history.

    Attributes
    ----------
    column : Column
    scale : Scale
        Of its values.
    change : Scale or None
        Of the changes from its last known value, where these are predicted.
    change_column : Column or None
        The changes as a column.
    has_missing : bool
        Whether cells were missing at learning; if so, an empty cell is a fact like any other.
    repeat : float64 array (K,)
        Of each code of several values: probability that a cell with the code of the cell before has its value, too.
    """

    column: Column
    scale: Scale
    change: Scale | None
    change_column: Column | None
    has_missing: bool
    repeat: np.ndarray

    @property
    def n_codes(self) -> int:
        """Codes of values, that of missing cells included."""
        return self.scale.n_codes + 1

    @property
    def n_targets(self) -> int:
        """Codes that are predicted in later rows."""
        return self.n_codes if self.change is None else self.change.n_codes + 1

    @cached_property
    def is_single(self) -> np.ndarray:
        """Which codes of the scale hold a single value, bool (K,)."""
        return single_values(self.scale)


def single_values(scale: Scale) -> np.ndarray:
    """Which codes hold one value: a point, or one cell of a grid."""
    pieces = np.bincount(scale.code, minlength=scale.n_codes)
    width = np.zeros(scale.n_codes)
    np.maximum.at(width, scale.code, np.where(np.isfinite(scale.hi - scale.lo), scale.hi - scale.lo, np.inf))
    alone = width <= scale.step * 1.000001 if scale.step > 0 else width == 0.0
    return np.asarray((pieces == 1) & alone)
