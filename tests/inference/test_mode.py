"""Modes against every row of a discrete model, and against many rows of any model."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from scipy.stats import norm

from jointforest.data.evidence import build
from jointforest.models.box_forest import modes as branch
from jointforest.models.box_forest.leaves.table import NORMAL, UNIFORM
from jointforest.models.box_forest.mode_kernels import leaf_modes
from jointforest.models.box_forest.modes import ModePoints, largest_box, modes, problem_of, search
from jointforest.models.box_forest.posterior import log_density
from jointforest.models.box_forest.structure_kernels import MIXED

from ..oracle.boxes import leaf_boxes
from ..oracle.evidence import Set, cell
from ..random_cases.cells import make_evidence
from ..random_cases.evidence import random_cells, random_point
from ..random_cases.models import cell_centre, cell_number, random_model, seeds
from ..wrapped import joint_of

LEVELS = ("boolean", "ordered", "boolean", "categorical")


def agrees(model, evidence, X) -> np.ndarray:
    """Which complete rows agree with the one row of evidence, from the definition of regions; bool (n,)."""
    held = np.ones(len(X), bool)
    for j, column in enumerate(model.schema.columns):
        known, x = cell(evidence, 0, j), X[:, j]
        if isinstance(known, Set):
            inside = np.zeros(len(X), bool)
            for lo, hi in known.runs:
                inside |= (lo < x) & (x <= hi)
            for k, value in enumerate(column.atoms if column.kind == "mixed" else ()):
                inside = np.where(x == value, k in known.atoms, inside)
            held &= inside
        elif known is not None:
            held &= x == known
    return held


@given(seeds)
@settings(max_examples=60, deadline=None)
def test_modes_of_levels_by_enumeration(seed: int) -> None:
    """The search closes the gap in forests; a tree of disjoint leaves has none."""
    one = seed % 4 == 0
    model = random_model(seed, 1 if one else 3, 3, background=not one, kinds=LEVELS, mixed=0.0 if one else None)
    evidence = make_evidence([random_cells(np.random.default_rng(seed), model, 4)[3]])
    free = [range(len(column.levels)) for column in model.schema.columns]
    X = np.array(list(product(*free)), float)
    density = np.where(agrees(model, evidence, X), log_density(model, build(model.schema, X)), -np.inf)
    if density.max() == -np.inf:
        with pytest.raises(ValueError, match="probability 0"):
            modes(model, evidence, 1)
        return
    found = modes(model, evidence, 1, 0 if one else 10_000)
    assert np.all(agrees(model, evidence, found.X))
    assert found.log_density[0] == pytest.approx(density.max(), abs=1e-9)
    assert density.max() - 1e-12 <= found.log_bound <= density.max() + 1e-9


@given(seeds)
@settings(max_examples=30, deadline=None)
def test_modes_on_grids_of_cells_by_enumeration(seed: int) -> None:
    kinds = ("integer", "boolean", "rounded")
    model = random_model(seed, 3, 3, background=seed % 2 > 0, kinds=kinds)
    evidence = make_evidence([random_cells(np.random.default_rng(seed), model, 4)[3]])
    axes = []
    for j, column in enumerate(model.schema.columns):
        known = cell(evidence, 0, j)
        if column.is_categorical:
            axes.append(np.arange(len(column.levels)))
        elif known is not None and not isinstance(known, Set):
            axes.append(np.array([known]))
        else:
            first, last = (cell_number(column, x) for x in (column.minimum, column.maximum))
            axes.append(np.array([cell_centre(column, k) for k in range(first - 5, last + 6)]))
    X = np.stack([x.ravel() for x in np.meshgrid(*axes, indexing="ij")], axis=1).astype(float)
    held = agrees(model, evidence, X)
    best = log_density(model, build(model.schema, X[held])).max(initial=-np.inf)
    if log_density(model, evidence)[0] == -np.inf:
        return
    found = modes(model, evidence, 1)
    assert best <= found.log_bound + 1e-9
    assert found.log_bound <= found.log_density[0] + 1e-8
    inside = [found.X[0, j] in axes[j] for j in range(3)]
    if all(inside):
        assert found.log_density[0] == pytest.approx(best, abs=1e-8)


@given(seeds)
@settings(max_examples=30, deadline=None)
def test_modes_of_numbers_by_a_grid(seed: int) -> None:
    """One and two numbers: no point of a fine grid is above the bound, and the bound is near the best row."""
    kinds = (("continuous",), ("mixed",), ("continuous", "continuous"), ("mixed", "continuous"))[seed % 4]
    model = random_model(seed, 3, 2, background=seed % 3 > 0, kinds=kinds)
    nothing = make_evidence([[None] * len(kinds)])
    axes = []
    for column in model.schema.columns:
        wide = column.maximum - column.minimum
        line = np.linspace(column.minimum - wide, column.maximum + wide, 20_001 if len(kinds) == 1 else 301)
        axes.append(np.concatenate([line, column.atoms]))
    X = np.stack([x.ravel() for x in np.meshgrid(*axes, indexing="ij")], axis=1)
    best = log_density(model, build(model.schema, X)).max()
    found = modes(model, nothing, 1, 3000)
    assert best <= found.log_bound + 1e-9
    assert best <= found.log_density[0] + 1e-9  # rows are made better until they are modes
    assert found.log_bound <= found.log_density[0] + (1e-5 if len(kinds) == 1 else 1e-3)


@given(seeds)
@settings(max_examples=40, deadline=None)
def test_no_row_is_above_the_bound(seed: int) -> None:
    model = random_model(seed, n_trees=1 + seed % 3, max_depth=3, background=seed % 2 > 0)
    nothing = make_evidence([[None] * len(model.columns.slot)])
    rng = np.random.default_rng(seed)
    others = make_evidence([list(random_point(rng, model)) for _ in range(300)])
    best = log_density(model, others).max()
    last = ModePoints(np.empty((0, 0)), np.array([-np.inf]), np.inf)
    for budget in (0, 30, 300):
        found = modes(model, nothing, 3, budget)
        assert np.all(np.diff(found.log_density) <= 0) and np.all(np.isfinite(found.X))
        assert best <= found.log_bound + 1e-9 and found.log_density[0] <= found.log_bound
        assert found.log_bound <= last.log_bound + 1e-9 and found.log_density[0] >= last.log_density[0] - 1e-9
        last = found
    if seed % 6 == 0 and not (model.trees.feature == MIXED).any():  # one tree, no background
        assert found.log_density[0] == pytest.approx(found.log_bound, abs=1e-9)


def bound_alone(model, evidence, best: float, budget: int) -> float:
    """What branch and bound says if it is told of a row of this log density, and never of a better one."""
    problem, box = problem_of(model, evidence), largest_box(model.columns, evidence)
    leaf, _, log_bound = leaf_modes(problem, box)
    return search(problem, box, leaf, log_bound, best, lambda x: best, budget)


@given(seeds)
@settings(max_examples=60, deadline=None)
def test_the_search_alone_finds_the_greatest_density_of_levels(seed: int) -> None:
    """A search that loses a part of the space would end below the greatest density."""
    model = random_model(seed, 3, 3, kinds=LEVELS)
    free = [range(len(column.levels)) for column in model.schema.columns]
    X = np.array(list(product(*free)), float)
    density = log_density(model, build(model.schema, X))
    nothing = make_evidence([[None] * len(LEVELS)])
    for below in (0.03, 0.3, 5.0):
        bound = bound_alone(model, nothing, density.max() - below, 100_000)
        assert bound == pytest.approx(density.max(), abs=1e-8)
    bound = bound_alone(model, nothing, np.median(density), 3)
    assert bound >= density.max() - 1e-12


@given(seeds)
@settings(max_examples=60, deadline=None)
def test_the_search_alone_is_never_below_a_row(seed: int) -> None:
    """Numbers with grids, atoms and without, and evidence; the mode was found by other means."""
    kinds = (("continuous", "mixed"), ("mixed", "integer"), ("rounded", "continuous"))[seed % 3]
    model = random_model(seed, 3, 3, background=seed % 2 > 0, kinds=kinds)
    evidence = make_evidence([random_cells(np.random.default_rng(seed), model, 4)[3]])
    if log_density(model, evidence)[0] == -np.inf:
        return
    best = modes(model, evidence, 1, 0).log_density[0]
    for below in (0.01, 0.3, 5.0):
        for budget in (10, 100, 1000):
            assert bound_alone(model, evidence, best - below, budget) >= best - 1e-9


def test_a_search_without_room_ends_with_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_model(7, 3, 3, kinds=("continuous", "mixed"), mixed=0.0)
    nothing = make_evidence([[None, None]])
    loose, tight = modes(model, nothing, 1, 0), modes(model, nothing, 1)
    monkeypatch.setattr(branch, "_MOST_HELD", 2 * len(model.leaves.log_weight))
    short = modes(model, nothing, 1)
    assert tight.log_bound < short.log_bound < loose.log_bound


@given(seeds)
@settings(max_examples=30, deadline=None)
def test_rows_are_of_different_cells(seed: int) -> None:
    """No two rows lie in the same box of every tree, and all agree with the evidence."""
    model = random_model(seed, 2, 3)
    evidence = make_evidence([random_cells(np.random.default_rng(seed), model, 4)[3]])
    assume(log_density(model, evidence)[0] > -np.inf)
    found = modes(model, evidence, 5, 50)
    assert np.all(agrees(model, evidence, found.X))
    rows = build(model.schema, found.X)
    cells = set()
    for i in range(len(found.X)):
        inside = [all_inside(box, rows.value[i], model) for box in leaf_boxes(model).values()]
        cells.add(tuple(np.flatnonzero(inside)))
    assert len(cells) == len(found.X)


def all_inside(box, x, model) -> bool:
    """Whether a complete row lies in a box of `oracle.leaf_boxes`."""
    bounds, levels = box
    numbers = all(lo < x[j] <= hi for j, (lo, hi) in bounds.items())
    return numbers and all(int(x[j]) in allowed for j, allowed in levels.items())


def test_a_spike_is_found() -> None:
    """A part so narrow that floats hardly tell its ends: its density is the mode, and no row is above the bound."""
    model = random_model(5, 3, 2, kinds=("continuous", "continuous"), mixed=0.0)
    leaves = model.leaves
    leaves.family[0] = UNIFORM
    lo = np.maximum(leaves.lo[0], -3.0)
    leaves.lo[0], leaves.hi[0] = lo, np.nextafter(np.nextafter(lo, np.inf), np.inf)
    leaves.log_norm[0] = np.log(leaves.hi[0] - leaves.lo[0])
    found = modes(model, make_evidence([[None, None]]), 1)
    expected = leaves.log_weight[0] - leaves.log_norm[0].sum()
    assert found.log_density[0] == pytest.approx(expected, abs=1e-9) and expected > 50
    assert found.log_bound == pytest.approx(expected, abs=1e-9)


def test_a_point_between_leaves_is_found() -> None:
    """Two broad normals side by side: their sum is greatest where neither is."""
    model = random_model(0, 2, 0, background=False, kinds=("continuous",), mixed=0.0)
    leaves = model.leaves
    leaves.log_weight[:] = np.log(0.5)
    leaves.family[:], leaves.a[:, 0], leaves.b[:] = NORMAL, (-0.9, 0.9), 1.0
    leaves.lo[:], leaves.hi[:], leaves.log_norm[:], leaves.log_rest[:] = -np.inf, np.inf, 0.0, 0.0
    found = modes(model, make_evidence([[None]]), 1)
    assert found.X[0, 0] == pytest.approx(0.0, abs=1e-4)
    assert found.log_density[0] == pytest.approx(norm.logpdf(0.9), abs=1e-9)
    assert found.log_bound == pytest.approx(norm.logpdf(0.9), abs=1e-6)


def test_ties_are_all_there() -> None:
    model = random_model(2, 1, 2, background=False, kinds=("boolean", "boolean"), mixed=0.0)
    model.leaves.log_weight[:] = -np.log(len(model.leaves.log_weight))
    first = modes(model, make_evidence([[None, None]]), 1)
    every = modes(model, make_evidence([[None, None]]), 9)
    assert len(every.X) == len(model.leaves.log_weight)
    tied = int(np.sum(every.log_density >= every.log_density[0] - 1e-12))
    assert len(first.X) == tied


def test_mode_of_a_joint() -> None:
    joint = joint_of(random_model(3, 2, 3, kinds=("integer", "continuous", "boolean")))
    best = joint.given(c2=True).mode(2)
    assert best.rows["c2"].all() and len(best.rows) == len(best.log_density) >= 2
    np.testing.assert_allclose(joint.log_density(best.rows), best.log_density, rtol=1e-12)
    first, *listed = str(best).splitlines()
    assert first.endswith(f"above {best.log_bound:.6g}") and len(listed) == len(best.rows)
    assert listed[0].startswith(f"log-density {best.log_density[0]:.6g}: c0 = ") and "c2 = true" in listed[0]
    with pytest.raises(ValueError, match="positive integer"):
        joint.given(c2=True).mode(0)
    with pytest.raises(ValueError, match="budget"):
        joint.given(c2=True).mode(budget=-1)
    assert joint.given(c2=True).mode(budget=0).log_bound >= best.log_bound
    with pytest.raises(ValueError, match="one row"):
        joint.given(joint.sample(2, random_state=0)).mode()
