"""What is known of one column in a few words, and as a picture of letters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..queries.column.distribution import quantile
from ..queries.column.histogram import bin_edges, histogram
from ..queries.column.levels import level_probability
from ..queries.column.moments import mean_variance
from ..queries.posterior.weighed import WeighedEvidence
from ..table import values as answers
from ..table.schema import Column

LISTED = 3
"""Levels that are named."""
LONGEST = 60
"""Characters of a name or a level."""
BINS = 20
"""Letters of a picture."""
_TAILS = np.array([0.05, 0.95])
_BLOCKS = " ▁▂▃▄▅▆▇█"


def in_words(weighed: WeighedEvidence, j: int) -> str:
    """Mean and 90 % interval of a column of numbers or dates, the most probable levels of another.

    Of several rows of evidence how many there are; of impossible evidence that it is. Nothing is warned of.
    """
    column, w = weighed.model.schema.columns[j], weighed
    if len(w) != 1:
        return f"given {w}"
    if math.isnan(w.background_share[0]):
        return "the evidence has probability 0"
    if column.is_categorical:
        return _levels(column, level_probability(w.model, w.evidence, j, known=w.known)[0])
    mean = float(mean_variance(w.model, w.evidence, j, known=w.known)[0][0])
    low, high = quantile(w.model, w.evidence, j, _TAILS, known=w.known)[0].tolist()
    if not all(map(math.isfinite, (mean, low, high))):
        return "too far out to be computed"
    if low == high:
        return shown_number(column, low)
    return (
        f"mean {shown_number(column, mean, True)}, 90 % in {shown_number(column, low)} to {shown_number(column, high)}"
    )


def picture(weighed: WeighedEvidence, j: int) -> str:
    """A histogram of a column of numbers or dates, a letter a bin; nothing of others, or where there is none."""
    column = weighed.model.schema.columns[j]
    if column.is_categorical or len(weighed) != 1 or math.isnan(weighed.background_share[0]):
        return ""
    try:
        mass = histogram(weighed, j, bin_edges(column, BINS))[0]
    except ValueError:  # no range was seen at learning
        return ""
    height = np.ceil((len(_BLOCKS) - 1) * np.clip(mass / max(mass.max(), 1e-300), 0.0, 1.0) - 1e-3)
    return "".join(_BLOCKS[max(int(h), 0)] for h in height.tolist())


def shown_number(column: Column, number: float, between_cells: bool = False) -> str:
    """A number or date of a column as people write it, a few digits."""
    if column.kind == "datetime":
        moment: Any = answers.scalar(column, number)
        return str(moment.isoformat(" ", "minutes")) if hasattr(moment, "hour") else str(moment)
    value = float(number) if between_cells or column.step == 0.0 else float(column.from_number(number))
    if abs(value) >= 1e15:
        return f"{value:.3g}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if between_cells or column.step == 0.0 else f"{value:g}"


def shown_share(share: float) -> str:
    """A probability in per cent."""
    if share == 0.0:
        return "0 %"
    if share < 0.001:
        return "< 0.1 %"
    return f"{100 * share:.1f} %" if share < 0.1 else f"{100 * share:.0f} %"


def shortened(text: str) -> str:
    """A text of at most `LONGEST` characters."""
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _levels(column: Column, share: np.ndarray) -> str:
    best = np.argsort(-share, kind="stable")[:LISTED].tolist()
    said = ", ".join(f"{shortened(str(column.levels[k]))} {shown_share(float(share[k]))}" for k in best)
    others = len(share) - len(best)
    return said + (f", {others:,} {'other' if others == 1 else 'others'}" if others else "")
