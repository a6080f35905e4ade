"""Random small hidden trees over the columns of a frame, in float64, and all rows of a small table."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd

import jointforest as jf
from jointforest.api.joint import Joint
from jointforest.data.discretization.learn import learn_scale
from jointforest.data.frames import encode
from jointforest.data.infer_schema import infer_schema
from jointforest.data.schema import Schema
from jointforest.models.hidden_tree.hidden_tree import HiddenTree
from jointforest.models.hidden_tree.hidden_trees import HiddenTrees, TreeTables

PLACES, SIZES, GRADES, FLAGS = ("here", "there", "nowhere"), range(7), range(5), (False, True)
ALL = pd.DataFrame(list(itertools.product(PLACES, SIZES, GRADES, FLAGS)), columns=["place", "size", "grade", "flag"])
INSIDE = {"size": jf.between(0, 6), "grade": jf.between(0, 4)}
"""Evidence that holds of all rows of `ALL`, and of no other."""


def small_table(seed: int, n: int = 300) -> pd.DataFrame:
    """Rows of `ALL`, drawn so that all columns depend on each other."""
    rng = np.random.default_rng(seed)
    size = rng.binomial(6, rng.choice([0.2, 0.7], n))
    grade = np.clip(rng.binomial(4, 0.5, n) + (size > 3), 0, 4)
    place = np.array(PLACES)[np.minimum(rng.poisson(size / 3), 2)]
    return pd.DataFrame({"place": place, "size": size, "grade": grade, "flag": rng.random(n) < size / 7})


def random_hidden(
    schema: Schema, X: np.ndarray, seed: int, n_trees: int = 2, n_states: int = 3, n_bins: int = 3
) -> HiddenTrees:
    """Hidden trees with random structures and tables; scales learned from rows X (n, d)."""
    rng = np.random.default_rng(seed)
    scales = tuple(learn_scale(column, X[:, j], None, n_bins) for j, column in enumerate(schema.columns))
    d = len(scales)
    trees = []
    for _ in range(n_trees):
        parent = np.array([-1, *(int(rng.integers(k)) for k in range(1, d))], np.int32)
        column = rng.permutation(d).astype(np.int32)
        states = rng.integers(1, n_states + 1, d)
        transition = [rng.dirichlet(np.full(states[k], 0.5), states[parent[k]] if k else 1) for k in range(d)]
        emission = [rng.dirichlet(np.full(scales[j].n_codes, 0.5), states[k]) for k, j in enumerate(column)]
        trees.append(TreeTables(column, parent, tuple(transition), tuple(emission)))
    return HiddenTrees(schema, scales, tuple(trees), np.log(rng.dirichlet(np.ones(n_trees))))


def hidden_joint(frame: pd.DataFrame, seed: int, schema: Schema | None = None, **sizes: int) -> Joint:
    """A joint whose only part is random hidden trees over the frame's columns."""
    if schema is None:
        schema = infer_schema(frame)
    part = HiddenTree(random_hidden(schema, encode(schema, frame)[0], seed, **sizes))
    return Joint(part)


def mixed_joint(frame: pd.DataFrame, seed: int) -> Joint:
    """A mixture of random hidden trees and a forest."""
    forest = jf.AdversarialForest(n_estimators=2, random_state=0).fit(frame).joint_
    return jf.mix([hidden_joint(frame, seed, forest.schema), forest], [0.6, 0.4])
