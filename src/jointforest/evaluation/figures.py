"""The figures of `fidelity`, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

from .copies import Copies
from .held_out import Coverage, HeldOut
from .marginals import Marginals
from .membership import Membership
from .pairs import Pairs
from .told_apart import ToldApart

FIGURES = ("marginals", "pairs", "told_apart", "held_out", "coverage", "copies", "membership")
"""Their names, as `fidelity` takes them."""


@dataclass(frozen=True)
class Figures:
    """All that was found: see `result.Fidelity`."""

    of: str
    n_table: int
    n_rows: int
    n_held_out: int
    library: str
    notes: tuple[str, ...]
    marginals: Marginals | None = None
    marginals_held_out: Marginals | None = None
    pairs: Pairs | None = None
    pairs_held_out: Pairs | None = None
    told_apart: ToldApart | None = None
    told_apart_held_out: ToldApart | None = None
    told_apart_as_many: ToldApart | None = None
    held_out: HeldOut | None = None
    coverage: Coverage | None = None
    copies: Copies | None = None
    membership: Membership | None = None
