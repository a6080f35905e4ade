"""Predictors that learn in a moment: few folds, trees, iterations, and a small hidden tree for a joint."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from jointforest.estimators.predictor import additive, base, boosting, learn, members, pooling
from jointforest.estimators.predictor.constants import FIXED, Shape
from jointforest.learners.hidden_tree.hidden_tree_forest import HiddenTreeForest
from jointforest.learners.selection.choose import Chosen, Recipe, Task

SMALL = replace(
    FIXED,
    folds=2,
    trees=4,
    large_trees=4,
    shapes=(Shape(leaf_nodes=4, leaf_rows=5, l2=1.0, features=1.0),),
    fewest_trees=4,
    learning_rate=0.3,
    iterations_at_once=8,
    most_iterations=8,
    copies=2,
    draws=16,
    penalties=(10.0, 1.0),
)


def choose_small(task: Task) -> Chosen:
    """A hidden tree of four states, without a comparison."""
    learner = HiddenTreeForest(n_states=4, max_iter=1, max_leaf_nodes=1, start="shared", smoothing=1.0, n_jobs=1)
    recipe = Recipe((learner,), np.ones(1))
    return Chosen(recipe.learn(task.schema, task.cells, task.seed), recipe, (), {"small": 1.0}, "", "small", ())


@pytest.fixture(scope="module")
def quick() -> Iterator[None]:
    """Small constants and a small joint in all modules of predictors."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (additive, base, boosting, learn, members, pooling):
            patch.setattr(module, "FIXED", SMALL)
        patch.setattr(learn, "choose", choose_small)
        yield
