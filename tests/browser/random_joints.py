"""Random joints of every kind that a report embeds, over columns of every kind: nothing is learned."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jointforest.api.joint import Joint
from jointforest.data.schema import KINDS
from jointforest.inference.sampling import sample
from jointforest.models.base import Distribution
from jointforest.models.box_forest.box_forest import BoxForest
from jointforest.models.hidden_tree.hidden_tree import HiddenTree
from jointforest.models.mixture import Mixture

from ..random_cases.cells import make_evidence
from ..random_cases.hidden_parts import random_hidden
from ..random_cases.models import random_model

COLUMNS = 4


def forest(seed: int) -> BoxForest:
    """A forest, some nodes without a split in two of three."""
    kinds = np.random.default_rng(seed).choice(KINDS, COLUMNS).tolist()
    return BoxForest(random_model(seed, n_trees=2, max_depth=2, kinds=tuple(kinds)))


def beside(model: Distribution, seed: int) -> HiddenTree:
    """Hidden trees with random tables, of the schema of another distribution, with scales learned from its draws."""
    nothing = make_evidence([[None] * len(model.schema.columns)])
    X = sample(model, nothing, 200, seed)
    for j, column in enumerate(model.schema.columns):
        if not column.is_categorical:  # tables that are learned from have no value beyond a column's ends
            inside = (X[:, j] >= column.minimum) & (X[:, j] <= column.maximum)
            X[~inside, j] = X[np.flatnonzero(inside)[0], j]
    return HiddenTree(random_hidden(model.schema, X, seed))


def mixture(*parts: Distribution) -> Mixture:
    return Mixture(parts, np.log(np.arange(1.0, len(parts) + 1.0) / sum(range(1, len(parts) + 1))))


def mixture_with_a_forest(seed: int) -> Mixture:
    first = forest(seed)
    return mixture(first, beside(first, seed))


def mixture_of_hidden_trees(seed: int) -> Mixture:
    of = forest(seed)
    return mixture(beside(of, seed), beside(of, seed + 1))


MODELS: dict[str, Callable[[int], Distribution]] = {
    "forest": forest,
    "hidden trees": lambda seed: beside(forest(seed), seed),
    "mixture of hidden trees": mixture_of_hidden_trees,
    "mixture with a forest": mixture_with_a_forest,
}


def random_joint(kind: str, seed: int) -> Joint:
    """A random joint of a kind, a key of `MODELS`."""
    return Joint(MODELS[kind](seed))
