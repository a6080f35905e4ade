"""Do synthetic rows, or a joint, give away who was in the table? Two simple attacks beside held-out rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .cells import Cells, some
from .copies import MOST_TABLE_ROWS, Ranks

ASKED_ROWS = 1_000
"""Rows of each sort that are asked about."""


@dataclass(frozen=True)
class Membership:
    """How well simple attacks tell rows of the table from held-out rows; 0 is chance, 1 is always.

    The attacker is shown one row of the table and one held-out row, and has to say which one was learned from: the one
    closer to a synthetic row (distance), or the one of greater density under the joint (density). The advantage is
    P(right) - P(wrong), which is 2 AUC - 1; ties count one half.

    Attributes
    ----------
    advantage, standard_error : float
        Of the attack by distance: that of `Copies`, by ranks among the synthetic rows.
    density_advantage, density_error : float or None
        Of the attack by density; None of rows without a joint.
    nearer, nearer_error : float
        Share of synthetic rows that are closer to the table than to as many held-out rows, ties by half, and its
        standard error: 0.5 is chance.
    n_rows : int
        Rows asked about, at most, of each sort.
    """

    advantage: float
    standard_error: float
    density_advantage: float | None
    density_error: float | None
    nearer: float
    nearer_error: float
    n_rows: int


def membership(
    real: Cells, rows: Cells, new: Cells, density: tuple[np.ndarray, np.ndarray] | None, random: np.random.Generator
) -> Membership:
    """Attacks by synthetic rows on the table and held-out rows.

    ``density`` are log-densities of rows of the table and of held-out rows, (a,) and (b,), where there is a joint.
    """
    near = Ranks(rows.take(some(len(rows.X), MOST_TABLE_ROWS, random)))
    inside, outside = (near.closest(table.take(some(len(table.X), ASKED_ROWS, random)).X) for table in (real, new))
    gained, error = advantage(-inside, -outside)
    by_density = (None, None) if density is None else advantage(*density)
    same = min(len(real.X), len(new.X), MOST_TABLE_ROWS)
    asked = rows.take(some(len(rows.X), ASKED_ROWS, random)).X
    to_table, to_new = (
        Ranks(real, table.take(some(len(table.X), same, random))).closest(asked) for table in (real, new)
    )
    nearer = (to_table < to_new) + 0.5 * (to_table == to_new)
    return Membership(
        advantage=gained,
        standard_error=error,
        density_advantage=by_density[0],
        density_error=by_density[1],
        nearer=float(nearer.mean()),
        nearer_error=float(nearer.std() / np.sqrt(len(nearer))),
        n_rows=max(len(inside), len(outside), len(asked)),
    )


def advantage(inside: np.ndarray, outside: np.ndarray) -> tuple[float, float]:
    """2 AUC - 1 of scores (a,) above scores (b,), ties by half, and its standard error (DeLong et al. 1988)."""
    above, below = _share_below(outside, inside), 1.0 - _share_below(inside, outside)
    value = 2.0 * float(above.mean()) - 1.0
    spread = sum(float(part.var(ddof=1)) / len(part) for part in (above, below) if len(part) > 1)
    return value, 2.0 * float(np.sqrt(spread))


def _share_below(scores: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Share of scores (a,) below each number (b,), ties by half, (b,)."""
    order = np.sort(scores)
    return (np.searchsorted(order, at, "left") + np.searchsorted(order, at, "right")) / (2.0 * len(order))
