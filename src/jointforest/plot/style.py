"""What all pictures have in common: colours, axes without clutter, per cent, texts."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.ticker import PercentFormatter

from ..cards import EDGE, LOWER, POSTERIOR, PRIOR, PRIOR_LINE, SOFT, TABLE

__all__ = ["EDGE", "LEVEL_COLORS", "LOWER", "POSTERIOR", "PRIOR", "PRIOR_LINE", "SHADES", "SOFT", "TABLE"]

SHADES = LinearSegmentedColormap.from_list("jointforest", ["#ffffff", "#b9ddd8", POSTERIOR, "#0b3b38"])
"""From nothing to the most, evenly."""
LEVEL_COLORS = (POSTERIOR, LOWER, "#4a6fa5", "#c9a227", "#7b5ea7", PRIOR_LINE)
"""Colours of levels side by side, safe for colour-blind readers; the last one is that of all others."""


def new_axes(wide: float, high: float) -> Axes:
    """Axes of a figure of their own, in inches."""
    ax: Axes = plt.subplots(figsize=(wide, high), layout="constrained")[1]
    return ax


def clean(ax: Axes) -> None:
    """Leave out what is not informative: the frame above and on the right."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(EDGE)
    ax.tick_params(color=EDGE)


def in_percent(axis: Any, most: float = 1.0) -> None:
    """Write an axis of shares in per cent."""
    axis.set_major_formatter(PercentFormatter(1.0, decimals=0 if most >= 0.05 else 1))


def short(text: Any, most: int = 24) -> str:
    """Text cut to a length, in one line, that matplotlib takes for no formula."""
    text = " ".join(str(text).split())
    text = text if len(text) <= most else text[: most - 1] + "…"
    return text.replace("$", r"\$")
