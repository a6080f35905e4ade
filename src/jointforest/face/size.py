"""How large a model is: trees, leaves and hidden states of its parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..explain.box_trees import of_part
from ..explain.tree_nodes import n_trees
from ..hidden.part import HiddenPart
from ..model.model import Model


def part_sizes(model: Model) -> list[dict[str, Any]]:
    """Kind, weight and size of each part: trees and leaves without the background, or hidden trees and most states."""
    found = []
    for part, weight in zip(model.parts, np.exp(model.log_weight).tolist(), strict=True):
        size: dict[str, Any] = {"kind": part.kind, "weight": weight}
        if (trees := of_part(part)) is not None:
            size["trees"] = n_trees(trees)
            size["leaves"] = len(trees.log_weight) - int(trees.has_background)
        elif isinstance(part, HiddenPart):
            size["trees"] = len(part.hidden.trees)
            size["states"] = max(int(tree.n_states.max()) for tree in part.hidden.trees)
        found.append(size)
    return found


def size_text(size: dict[str, Any]) -> str:
    """One of `part_sizes` in words."""
    if "leaves" in size:
        trees = "1 tree" if size["trees"] == 1 else f"{size['trees']} trees"
        what = "" if size["kind"] == "forest" else "Chow-Liu "
        return f"{trees}, 1 {what}leaf" if size["leaves"] == 1 else f"{trees}, {size['leaves']} {what}leaves"
    if "states" in size:
        trees = "1 hidden tree" if size["trees"] == 1 else f"{size['trees']} hidden trees"
        return f"{trees} of {size['states']} states"
    return str(size["kind"])
