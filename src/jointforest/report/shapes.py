"""Pictures of columns as SVG paths and shares, drawn in boxes of 100 by 40."""

from __future__ import annotations

import numpy as np

HEIGHT = 40


def steps(edges: np.ndarray, mass: np.ndarray, top: float) -> str:
    """A histogram as a filled path."""
    x = _places(edges)
    y = _heights(mass, top)
    return "M0 40" + "".join(f"V{b}H{right}" for b, right in zip(y, x[1:], strict=True)) + "V40Z"


def _places(edges: np.ndarray) -> list[str]:
    span = edges[-1] - edges[0]
    return [_short(100 * (edge - edges[0]) / span) for edge in edges]


def _heights(mass: np.ndarray, top: float) -> list[str]:
    return [_short(HEIGHT * (1 - min(share / top, 1.0))) for share in mass]


def _short(x: float) -> str:
    return f"{x:.2f}".rstrip("0").rstrip(".")
