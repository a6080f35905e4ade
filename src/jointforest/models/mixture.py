"""The model as every query sees it: a schema and weighted parts. Immutable."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..data.schema import Schema
from .base import Distribution
from .box_forest.box_forest import BoxForest
from .box_forest.forest import Forest
from .hidden_tree.hidden_tree import CHOW_LIU


@dataclass(frozen=True)
class Mixture:
    """M(x) = sum_k exp(log_weight[k]) P_k(x); each part P_k is a distribution over all columns of the schema.

    Attributes
    ----------
    schema : Schema
    parts : tuple of K Distribution
    log_weight : float64 array (K,)
        ``exp`` of it sums to 1.
    """

    schema: Schema
    parts: tuple[Distribution, ...]
    log_weight: np.ndarray

    @property
    def is_forest(self) -> bool:
        """Whether the only part is a forest of boxes."""
        return len(self.parts) == 1 and isinstance(self.parts[0], BoxForest)

    @property
    def forest(self) -> Forest:
        """The forest, where it is the only part; a ValueError elsewhere."""
        return self.forest_for("this")

    def forest_for(self, question: str) -> Forest:
        """The forest, for a question that only forests answer; a ValueError that names the question elsewhere."""
        if len(self.parts) == 1 and isinstance(self.parts[0], BoxForest):
            return self.parts[0].forest
        kinds = ", ".join(part.kind for part in self.parts)
        needs = f"{question} needs a joint that is one forest of boxes; this one has the parts: {kinds}"
        hint = "; learn with leaf='quantile' to have one" if CHOW_LIU in kinds else ""
        raise ValueError(needs + hint)


def of_part(part: Distribution) -> Mixture:
    """The model whose only part is this one."""
    return Mixture(part.schema, (part,), np.zeros(1))


def of_forest(forest: Forest) -> Mixture:
    """The model whose only part is this forest."""
    return of_part(BoxForest(forest))
