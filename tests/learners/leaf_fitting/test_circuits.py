"""Circuit leaves: sound ones are densities that answer by enumeration, and unsound ones are refused by name.

The hypothesis tests of all queries run over random models with circuits, too; here are circuits worked out by hand.
"""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import stats

from jointforest.data.schema import Column, Schema, kernel_columns
from jointforest.models.box_forest.check import check
from jointforest.models.box_forest.leaves.derived import check_circuits, leaf_of_rows, make_leaves
from jointforest.models.box_forest.leaves.table import FACTORS, NORMAL, PRODUCT, SUM, UNIFORM, Circuits, ParameterTables
from jointforest.models.box_forest.posterior import (
    background_weight,
    cdf,
    chunk_posterior,
    impute,
    level_probability,
    log_density,
    mean_variance,
    posterior,
    quantile,
    sample,
    tree_log_density,
)
from jointforest.models.box_forest.structure import Forest, Trees
from jointforest.runtime.threads import use_jobs

from ... import oracle
from ...oracle.quadrature import complete, rule
from ...random_cases.cells import Cell, Region, make_evidence
from ...random_cases.evidence import random_evidence
from ...random_cases.models import random_model, seeds
from ...wrapped import load_forest, save_forest

EVERY = 1.0  # all leaves have a circuit


def by_hand() -> Forest:
    """One leaf over x, u, c: 1/4 N(x; 0, 1) c1 | 3/4 N(x; 10, 2) c2, times u uniform on (0, 1].

    A product of u with a sum of two products of x with c, where c1 = (0.9, 0.1) and c2 = (0.2, 0.8).
    """
    names = (Column("x", "continuous", "float64"), Column("u", "continuous", "float64"))
    schema = Schema((*names, Column("c", "categorical", "str", levels=("r", "s"))), "pandas")
    none, one = np.array([-1], np.int32), np.zeros(1)
    trees = Trees(none, one, none, np.empty(0, np.uint64), none, none, none + 1, one + 1.0, none + 1)
    layout = kernel_columns(schema)
    # row 0 is not used; 1: u; 2 and 3: x and c of the first product; 4: x and c of the second
    a = np.array([[99.0, 0.0], [99.0, 0.0], [0.0, 0.0], [99.0, 0.0], [10.0, 0.0]])
    b = np.array([[1.0, 1.0], [1.0, 1.0], [1.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
    lo, hi = np.tile([-np.inf, 0.0], (5, 1)), np.tile([np.inf, 1.0], (5, 1))
    level_mass = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.9, 0.1], [0.2, 0.8]])
    circuits = Circuits(
        node_start=np.array([0, 7], np.int32),
        node_kind=np.array([PRODUCT, FACTORS, SUM, PRODUCT, FACTORS, FACTORS, FACTORS], np.uint8),
        node_end=np.array([7, 2, 7, 6, 5, 6, 7], np.int32),
        node_log_weight=np.array([0.0, 0.0, 0.0, math.log(0.25), 0.0, 0.0, math.log(0.75)]),
        node_row=np.array([-1, 1, -1, -1, 2, 3, 4], np.int32),
        scope=np.array([[0, 1, 0], [1, 0, 0], [0, 0, 1], [1, 0, 1]], np.uint8),
    )
    leaves = make_leaves(
        layout,
        ParameterTables(
            np.zeros(5),
            [0.0],
            np.tile([NORMAL, UNIFORM], (5, 1)),
            a,
            b,
            lo,
            hi,
            np.empty((5, 0)),
            level_mass,
            np.zeros((1, 3)),
        ),
        circuits=circuits,
    )
    model = Forest(schema, layout, trees, leaves, has_background=False)
    check(schema, layout, trees, leaves, has_background=False)
    return model


LOW, HIGH = stats.norm(0.0, 1.0), stats.norm(10.0, 2.0)


def test_density_by_hand() -> None:
    rows: list[list[Cell]] = [
        [1.0, 0.5, 0.0],
        [None, 0.5, None],
        [9.0, None, None],
        [None, None, 1.0],
        [Region(((-1.0, 2.0), (8.0, math.inf))), Region(((0.25, 0.5),)), 1.0],
        [None, 1.5, None],
        [None, None, None],
    ]
    parts = [LOW.cdf(2) - LOW.cdf(-1) + LOW.sf(8), HIGH.cdf(2) - HIGH.cdf(-1) + HIGH.sf(8)]
    want = [
        0.25 * LOW.pdf(1.0) * 0.9 + 0.75 * HIGH.pdf(1.0) * 0.2,
        1.0,
        0.25 * LOW.pdf(9.0) + 0.75 * HIGH.pdf(9.0),
        0.25 * 0.1 + 0.75 * 0.8,
        0.25 * (0.25 * parts[0] * 0.1 + 0.75 * parts[1] * 0.8),
        0.0,
        1.0,
    ]
    np.testing.assert_allclose(np.exp(log_density(by_hand(), make_evidence(rows))), want, rtol=1e-12)


def test_readers_by_hand() -> None:
    model = by_hand()
    evidence = make_evidence([[None, None, 0.0], [None, 0.5, None]])
    low = np.array([0.225 / 0.375, 0.25])  # weight of the first product
    mean, variance = mean_variance(model, evidence, 0)
    np.testing.assert_allclose(mean, 10.0 * (1 - low), rtol=1e-12)
    np.testing.assert_allclose(variance, low * 1 + (1 - low) * 4 + 100 * low * (1 - low), rtol=1e-12)
    x = np.array([-1.0, 3.0, 12.0])
    want = low[:, None] * LOW.cdf(x) + (1 - low[:, None]) * HIGH.cdf(x)
    np.testing.assert_allclose(cdf(model, evidence, 0, x), want, rtol=1e-12)
    np.testing.assert_allclose(quantile(model, evidence, 0, want[0])[0], x, rtol=1e-8)
    at = make_evidence([[4.0, None, None]])
    share = np.array([0.25 * LOW.pdf(4.0), 0.75 * HIGH.pdf(4.0)])
    share /= share.sum()
    np.testing.assert_allclose(level_probability(model, at, 2)[0], share @ [[0.9, 0.1], [0.2, 0.8]], rtol=1e-12)
    np.testing.assert_allclose(impute(model, evidence), [[10 * (1 - low[0]), 0.5, 0.0], [7.5, 0.5, 1.0]], rtol=1e-12)


def test_entries_of_a_column_are_rows() -> None:
    """Of x and c the rows of the two products; of u its own row with all the weight; without a column the leaf."""
    model = by_hand()
    evidence = make_evidence([[4.0, None, None], [None, None, None]])
    share = np.log([0.25 * LOW.pdf(4.0), 0.75 * HIGH.pdf(4.0)])
    for j, rows, logs in ((0, [2, 4], share), (1, [1], [np.logaddexp(*share)]), (2, [3, 4], share)):
        post = chunk_posterior(model, evidence, 0, 2, j)
        assert post.leaf.tolist() == rows * 2
        np.testing.assert_allclose(post.log_weight[: len(rows)], logs, rtol=1e-12)
        np.testing.assert_allclose(post.log_evidence, [np.logaddexp(*share), 0.0], rtol=1e-12, atol=1e-15)
    assert posterior(model, evidence).leaf.tolist() == [0, 0]


def test_leaf_of_rows() -> None:
    leaves = by_hand().leaves
    assert leaf_of_rows(leaves.node_start, leaves.node_row).tolist() == [0] * 5
    assert leaves.node_scope.tolist() == [-1, 0, -1, -1, 1, 2, 3]


# --------------------------------------------------------------------------------------------------- random circuits


@pytest.mark.parametrize("kinds", [("continuous", "boolean"), ("integer", "mixed"), ("continuous", "continuous")])
@pytest.mark.parametrize("seed", [1, 2, 4])
def test_densities_integrate_to_one(kinds: tuple[str, ...], seed: int) -> None:
    model = random_model(seed, n_trees=1, max_depth=2, kinds=kinds, background=False, circuits=EVERY)
    (x, u), (y, w) = rule(model, 0, reach=100.0), rule(model, 1, reach=100.0)
    total = 0.0
    for at in range(0, len(x), block := max(1, 200_000 // len(y))):
        some = slice(at, at + block)
        rows = complete(np.column_stack([np.repeat(x[some], len(y)), np.tile(y, len(x[some]))]))
        total += float(np.exp(log_density(model, rows)) @ np.outer(u[some], w).ravel())
    assert total == pytest.approx(1.0, abs=1e-6)


@given(seeds)
@settings(max_examples=25)
def test_marginals_by_enumeration(seed: int) -> None:
    """Every marginal of a table of levels is the sum of its complete rows."""
    kinds = ("boolean", "categorical", "ordered", "boolean")
    model = random_model(seed % 1000, n_trees=2, kinds=kinds, circuits=EVERY)
    sizes = [min(len(c.levels), 5) for c in model.schema.columns]
    levels = [range(len(c.levels)) for c in model.schema.columns]
    rng = np.random.default_rng(seed)
    p = np.exp(log_density(model, complete(np.array(list(itertools.product(*levels)), dtype=float))))
    p = p.reshape([len(of) for of in levels])
    assert p.sum() == pytest.approx(1.0, rel=1e-12)
    for known in itertools.product((False, True), repeat=4):
        at = tuple(int(rng.integers(n)) if k else None for k, n in zip(known, sizes, strict=True))
        want = p[tuple(slice(None) if k is None else k for k in at)].sum()
        got = math.exp(log_density(model, make_evidence([[None if k is None else float(k) for k in at]]))[0])
        assert got == pytest.approx(want, rel=1e-11, abs=1e-300)


@given(seeds)
@settings(max_examples=30)
def test_an_event_and_its_complement_sum_to_one(seed: int) -> None:
    """P(A, rest) + P(not A, rest) = P(rest), A an interval or a set of levels of each column in turn."""
    model = random_model(seed, n_trees=2, circuits=EVERY)
    rest = random_evidence(model, seed, 3)
    for j, column in enumerate(model.schema.columns):
        cut = 0.5 if column.is_categorical else column.minimum + 0.4 * (column.maximum - column.minimum)
        if column.step > 0.0:
            cut = column.center + (round((cut - column.center) / column.step) + 0.5) * column.step
        sides = [((-math.inf, cut),), ((cut, math.inf),)]
        below = [k for k, a in enumerate(column.atoms) if a <= cut]
        above = [k for k, a in enumerate(column.atoms) if a > cut]
        for i in range(3):
            row: list[Cell] = [None if math.isnan(v) else float(v) for v in rest.value[i]]
            rows = [
                [*row[:j], cell, *row[j + 1 :]]
                for cell in (None, Region(sides[0], tuple(below)), Region(sides[1], tuple(above)))
            ]
            whole, one, other = np.exp(log_density(model, make_evidence(rows)))
            assert one + other == pytest.approx(whole, rel=1e-9, abs=1e-300)


def test_draws_of_levels_follow_the_joint_distribution() -> None:
    """Counts of all combinations of four columns, given nothing and given one of them."""
    kinds = ("boolean", "ordered", "boolean", "boolean")
    for seed in (1, 2, 5):
        model = random_model(seed, n_trees=2, max_depth=1, kinds=kinds, circuits=EVERY)
        levels = [range(len(c.levels)) for c in model.schema.columns]
        rows = np.array(list(itertools.product(*levels)), dtype=float)
        for known in (None, 1.0):
            evidence = make_evidence([[None, None, None, known]])
            p = np.exp(log_density(model, complete(rows)) - log_density(model, evidence)[0])
            p[(rows[:, 3] != known) & (known is not None)] = 0.0
            assert p.sum() == pytest.approx(1.0)
            draws = sample(model, evidence, 20_000, seed)
            cell = np.ravel_multi_index(draws.astype(int).T, [len(of) for of in levels])
            count = np.bincount(cell, minlength=len(p))
            assert not np.any(count[p < 1e-12])
            many = 20_000 * p > 5
            if many.sum() > 1:
                few = [20_000 - count[many].sum()], [20_000 - 20_000 * p[many].sum()]
                observed, expected = np.append(count[many], few[0]), np.append(20_000 * p[many], few[1])
                some = expected > 1e-6
                statistic = np.sum((observed - expected)[some] ** 2 / expected[some])
                assert stats.chi2.sf(statistic, some.sum() - 1) > 1e-5


def test_draws_do_not_depend_on_the_number_of_threads() -> None:
    model = random_model(4, circuits=EVERY)
    evidence = random_evidence(model, 4, 6)
    one = use_jobs(1)(sample)(model, evidence, 50, 3)
    np.testing.assert_array_equal(one, use_jobs(2)(sample)(model, evidence, 50, 3))


@given(seeds)
@settings(max_examples=25)
def test_trees_and_background_by_the_oracle(seed: int) -> None:
    model = random_model(seed, n_trees=3, circuits=0.7)
    evidence = random_evidence(model, seed, 5)
    got = tree_log_density(model, evidence)
    tree = model.leaves.tree[: len(model.leaves.log_weight)]
    for i in range(5):
        joint = oracle.log_joint(model, evidence, i)
        want = [oracle.log_sum(joint[tree == t]) for t in range(len(model.trees.root))]
        np.testing.assert_allclose(got[i], want, rtol=1e-9, atol=1e-9)
    want = [oracle.background_weight(model, evidence, i) for i in range(5)]
    np.testing.assert_allclose(background_weight(model, evidence), want, rtol=1e-9, atol=1e-12)


def test_rows_of_a_circuit_that_nobody_reads_change_nothing() -> None:
    """Row l of a leaf with a circuit, and the columns out of a row's scope."""
    model = random_model(8, circuits=0.6)
    leaves = model.leaves
    n_leaves = len(leaves.log_weight)
    unread = np.zeros((len(leaves.tree), len(model.columns.slot)), bool)
    unread[:n_leaves] = (np.diff(leaves.node_start) > 0)[:, None]
    unread[n_leaves:] = True
    number, column = np.nonzero(leaves.scope)
    unread[leaves.node_row[leaves.node_scope >= 0][number], column] = False
    numeric = np.flatnonzero(model.columns.is_categorical == 0)
    spoilt = {name: getattr(leaves, name).copy() for name in ("a", "b", "log_norm", "log_rest")}
    for array in spoilt.values():
        array[unread[:, numeric]] = math.nan
    mass, log_level, scale = leaves.level_mass.copy(), leaves.log_level.copy(), leaves.wide.scale.copy()
    for j in np.flatnonzero(model.columns.is_categorical):
        s = model.columns.slot[j]
        place = int(leaves.wide.place[s])
        if place < 0:
            scale[unread[:, j], -1 - place] = math.nan
            continue
        at = slice(place, place + len(model.schema.columns[j].levels))
        mass[unread[:, j], at] = log_level[unread[:, j], at] = math.nan
    other = dataclasses.replace(
        model,
        leaves=leaves._replace(**spoilt, level_mass=mass, log_level=log_level, wide=leaves.wide._replace(scale=scale)),
    )
    evidence = random_evidence(model, 8, 20)
    np.testing.assert_array_equal(log_density(model, evidence), log_density(other, evidence))
    np.testing.assert_array_equal(impute(model, evidence), impute(other, evidence))
    np.testing.assert_array_equal(sample(model, evidence, 5, 0), sample(other, evidence, 5, 0))
    for j in range(len(model.columns.slot)):
        read = level_probability if model.columns.is_categorical[j] else lambda *a: np.array(mean_variance(*a))
        np.testing.assert_array_equal(read(model, evidence, j), read(other, evidence, j))


def test_save_and_load(tmp_path) -> None:
    kinds = ("continuous", "mixed", "integer", "rounded", "boolean")
    model = random_model(7, kinds=kinds, circuits=EVERY)
    save_forest(model, tmp_path / "m.joint")
    again = load_forest(tmp_path / "m.joint")
    for name in model.leaves._fields:
        if name != "wide":
            found, array = getattr(again.leaves, name), getattr(model.leaves, name)
            np.testing.assert_array_equal(found, array)
            assert found.dtype == array.dtype
    evidence = random_evidence(model, 7, 10)
    np.testing.assert_array_equal(log_density(model, evidence), log_density(again, evidence))


# ------------------------------------------------------------------------------------------------------------- checks


def test_random_circuits_are_sound() -> None:
    for seed in range(20):
        model = random_model(seed, circuits=EVERY)
        check_circuits(model.leaves)
        check(model.schema, model.columns, model.trees, model.leaves, model.has_background)


def changed(**fields) -> Circuits:
    """The circuit worked out by hand as leaf 1 of three, with other fields."""
    leaves = by_hand().leaves
    of = Circuits(**{name: getattr(leaves, name) for name in Circuits._fields})
    row = np.where(of.node_row >= 0, of.node_row + np.int32(2), of.node_row)  # rows 0 to 2 are the leaves'
    return of._replace(**{"node_start": np.array([0, 0, 7, 7], np.int32), "node_row": row, **fields})


def put(name: str, at, value) -> Circuits:
    array = getattr(changed(), name).copy()
    array[at] = value
    return changed(**{name: array})


def test_the_circuit_by_hand_is_sound() -> None:
    check_circuits(changed())


@pytest.mark.parametrize(
    ("circuits", "message"),
    [
        (put("scope", ([1, 3], 1), 1), "leaf 1, node 0: not decomposable"),  # u beside the sum and below it
        (put("scope", (1, 1), 1), "leaf 1, node 2: not smooth"),
        (put("scope", (1, 2), 1), "leaf 1, node 3: not decomposable"),
        (put("scope", (3, 2), 0), "leaf 1, node 2: not smooth"),
        (put("scope", 0, [1, 1, 0]), "leaf 1, node 0: not decomposable"),
        (put("scope", 0, [0, 0, 0]), "leaf 1, node 1: a FACTORS node without columns"),
        (put("scope", (0, 0), 7), "zeros and ones"),
        (put("node_kind", 2, PRODUCT), "leaf 1, node 2: not decomposable"),
        (put("node_kind", 0, SUM), "leaf 1, node 0: not smooth"),
        (put("node_kind", 0, 3), r"node_kind\[0\] is 3"),
        (put("node_log_weight", 3, math.log(0.3)), "leaf 1, node 2: .* sum to 1"),
        (put("node_log_weight", 3, math.nan), r"node_log_weight\[3\] is nan"),
        (put("node_log_weight", 3, 2.0), r"node_log_weight\[3\] is 2"),
        (put("node_log_weight", 4, -1.0), "leaf 1, node 4: .* parent is no sum"),
        (put("node_log_weight", 0, -1.0), "leaf 1, node 0: .* parent is no sum"),
        (put("node_end", 0, 6), "leaf 1, node 0: node_end"),
        (put("node_end", 0, 8), "leaf 1, node 0: node_end"),
        (put("node_end", 3, 7), "leaf 1, node 3: not decomposable"),
        (put("node_end", 3, 3), "leaf 1, node 3: node_end"),
        (put("node_end", 3, 4), "leaf 1, node 3: a sum or product without children"),
        (put("node_end", 5, 7), "leaf 1, node 5: a FACTORS node with children"),
        (put("node_end", 5, -(2**31)), "leaf 1, node 5: node_end"),
        (put("node_start", slice(None), [0, 0, 6, 7]), "leaf 2, node 6: the root lacks columns"),
        (put("node_row", 0, 3), r"node_row\[0\] is 3, expected a row from 3 on of FACTORS nodes, -1 of others"),
        (put("node_row", 1, 2), r"node_row\[1\] is 2"),
        (put("node_row", 6, 7), "every row"),
        (put("node_row", 6, 5), "leaf 1, node 6: another node of its row describes the same column"),
        (put("node_start", 1, 9), "node_start"),
        (put("node_start", -1, 6), "node_start"),
    ],
)
def test_unsound_circuits_are_refused_by_leaf_and_node(circuits: Circuits, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_circuits(circuits)


def test_nodes_of_one_leaf_share_a_row() -> None:
    check_circuits(put("node_row", [4, 5, 6], [3, 3, 4]))  # u, x and c, which no two of the nodes describe
    one = np.array([FACTORS, FACTORS], np.uint8)
    two = Circuits(
        np.arange(3, dtype=np.int32), one, np.array([1, 2], np.int32), np.zeros(2), one, np.ones((2, 1), "u1")
    )
    check_circuits(two._replace(node_row=np.array([3, 2], np.int32)))
    with pytest.raises(ValueError, match="leaf 0, node 0: its row is another leaf's"):
        check_circuits(two._replace(node_row=np.array([2, 2], np.int32)))


def test_a_root_has_all_columns() -> None:
    three = changed()
    more = np.column_stack([three.scope, np.zeros(4, np.uint8)])
    with pytest.raises(ValueError, match="leaf 1, node 0: the root lacks columns"):
        check_circuits(three._replace(scope=more))


def test_unsound_circuits_are_not_loaded(tmp_path) -> None:
    model = by_hand()
    scope = model.leaves.scope.copy()
    scope[1, 1] = 1
    broken = dataclasses.replace(model, leaves=model.leaves._replace(scope=scope))
    with pytest.raises(ValueError, match="leaf 0, node 2: not smooth"):
        save_forest(broken, tmp_path / "m.joint")
