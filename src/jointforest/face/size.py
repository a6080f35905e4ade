"""How large a model is: trees, leaves and hidden states of its parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..forest.part import ForestPart
from ..hidden.part import HiddenPart
from ..model.model import Model


def part_sizes(model: Model) -> list[dict[str, Any]]:
    """Kind, weight and size of each part: trees and leaves without the background, or hidden trees and most states."""
    found = []
    for part, weight in zip(model.parts, np.exp(model.log_weight).tolist(), strict=True):
        size: dict[str, Any] = {"kind": part.kind, "weight": weight}
        if isinstance(part, ForestPart):
            background = int(part.forest.has_background)
            size["trees"] = len(part.forest.trees.root) - background
            size["leaves"] = len(part.forest.leaves.log_weight) - background
        elif isinstance(part, HiddenPart):
            size["trees"] = len(part.hidden.trees)
            size["states"] = max(int(tree.n_states.max()) for tree in part.hidden.trees)
        found.append(size)
    return found


def size_text(size: dict[str, Any]) -> str:
    """One of `part_sizes` in words."""
    if "leaves" in size:
        trees = "1 tree" if size["trees"] == 1 else f"{size['trees']} trees"
        return f"{trees}, 1 leaf" if size["leaves"] == 1 else f"{trees}, {size['leaves']} leaves"
    if "states" in size:
        trees = "1 hidden tree" if size["trees"] == 1 else f"{size['trees']} hidden trees"
        return f"{trees} of {size['states']} states"
    return str(size["kind"])
