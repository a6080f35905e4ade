"""The constants of leaf densities, each with the reason for its value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Constants:
    """Numbers that no parameter sets. Experiments are in ``docs/experiments/quantile-leaves.md``; where none is named,
    a value was set by hand."""

    edge_rows: float = 5.0
    """``bounds="auto"`` cuts open sides of boxes where the leaves put more than so many rows' mass beyond all data.
    Less mass is rounding of the normal tails, which a cut would only make wrong elsewhere."""

    quantile_noise: float = 0.25
    """A quantile leaf of w rows is not followed closer than this over sqrt(w): its own CDF is not that close to the
    truth. The values .5 and 1 were worse in large leaves and better in small ones."""
    quantile_margin: float = 0.5
    """How far an open box of a quantile leaf reaches beyond the column's values, in standard deviations of the column.
    A margin of .1 was worse in small leaves."""
    quantile_extra_rows: float = 3.0
    """Rows' worth of the pooled variance within leaves that the variance of a quantile leaf may have in addition, so
    that a leaf of few rows keeps a width."""
    quantile_narrowest: float = 0.1
    """Least width of a piece, in median gaps between neighbouring values of the column: narrower pieces are spikes."""
    quantile_bytes: int = 2**31
    """Size that the pieces of a forest's quantile leaves may have."""


FIXED = Constants()
