"""Robustness against every combination of vertices of the credal sets, and against random points inside them."""

from __future__ import annotations

import math

import naive
import numpy as np
import pytest
from random_models import make_evidence, random_cells, random_model

from jointforest.model import Model
from jointforest.queries.levels import level_probability
from jointforest.queries.robustness import worst_margin
from jointforest.table.evidence import drop
from jointforest.table.regions import Evidence

EPSILONS = (0.0, 0.02, 0.2, 0.45, 0.8, 1.0)


def values_only(model: Model, seed: int, n: int, share: float | None = None) -> Evidence:
    """Random rows without regions; ``share`` of the cells are known, or those that `random_cells` leaves."""
    rng = np.random.default_rng(seed)
    rows = []
    for row in random_cells(rng, model, 3 * n):
        rows.append([x if isinstance(x, float) else None for x in row])
    if share is not None:
        rows = random_cells(rng, model, 2)[1:] * n if share == 1.0 else rows
    return make_evidence(rows[:n])


def complete_rows(model: Model, seed: int, n: int) -> Evidence:
    rows = [random_cells(np.random.default_rng([seed, k]), model, 2)[1] for k in range(n)]
    return make_evidence(rows)


def joint_masses(model: Model, evidence: Evidence, i: int, j: int, choice, c: float, unit=None) -> list[list]:
    """p_t(class, evidence) of each tree and class, under every choice of parameters."""
    classes = range(naive.n_levels(model, j))
    trees = range(len(model.trees.root))
    return [[naive.contaminated(model, evidence, i, j, k, choice, t, c, unit) for k in classes] for t in trees]


def enumerated_mixture(model: Model, evidence: Evidence, i: int, j: int, y: int, choice, c: float, unit=None):
    """The greatest p(class) - p(y) over all choices, for each class, trees' weights among them."""
    p = joint_masses(model, evidence, i, j, choice, c, unit)
    pi = choice.weights(("trees",), [naive.leaf_sum(model, int(root)) for root in model.trees.root])
    total = [0.0] * len(p[0])
    for t in range(len(p)):
        for k in range(len(total)):
            total[k] = choice.combined(np.add, total[k], choice.combined(np.multiply, pi[t], p[t][k]))
    return [choice.combined(np.subtract, total[k], total[y]) for k in range(len(total))]


def target_of(model: Model) -> int:
    """The last categorical column."""
    return int(np.flatnonzero(model.columns.is_categorical)[-1])


def small_model(seed: int, n_trees: int, kinds, circuits: float, background: bool = False) -> Model:
    return random_model(seed, n_trees, max_depth=2, background=background, kinds=kinds, circuits=circuits)


CASES = {
    "levels": (("boolean", "ordered", "boolean"), 0.0),
    "numbers": (("continuous", "boolean"), 0.0),
    "grids": (("integer", "categorical"), 0.0),
    "atoms": (("mixed", "boolean"), 0.0),
    "circuits": (("continuous", "boolean", "boolean"), 1.0),
    "circuits of levels": (("boolean", "boolean", "boolean"), 1.0),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("n_trees", [1, 2])
def test_mixture_by_enumeration_of_all_vertices(case: str, n_trees: int) -> None:
    kinds, circuits = CASES[case]
    n_done = 0
    for seed in range(60):
        model = small_model(seed, n_trees, kinds, circuits, background=n_trees == 1 and seed % 2 > 0)
        j = target_of(model)
        if naive.n_levels(model, j) == 1 or naive.n_levels(model, j) > 5:
            continue
        evidence = drop(values_only(model, seed, 4), j)
        epsilon = EPSILONS[seed % len(EPSILONS)]
        p = level_probability(model, evidence, j)
        got = worst_margin(model, evidence, j, epsilon, c=1.5)
        for i in range(4):
            choice = naive.Vertices(epsilon)
            y = int(np.argmax(p[i]))
            try:
                want = enumerated_mixture(model, evidence, i, j, y, choice, 1.5)
            except naive.TooMany:
                continue
            total = math.exp(naive.log_sum(naive.log_joint(model, evidence, i)))
            if total == 0.0:
                assert np.all(np.isnan(got[i]))
                continue
            want = [np.max(v) / total for v in want]
            np.testing.assert_allclose(got[i], want, rtol=1e-10, atol=1e-12)
            n_done += 1
    assert n_done > 20
