"""What is added to the counts of numbers: normals over codes and over states."""

import numpy as np
import pandas as pd
import pytest

from jointforest import HiddenTreeForest
from jointforest.learners.hidden_tree.constants import FIXED
from jointforest.learners.hidden_tree.em import Maximisation, Smoothing, Tables, flat_columns, nodes_of, to_tree
from jointforest.learners.hidden_tree.structure import CodeTable, code_columns

from ...oracle import hidden_learning as oracle


def ordered(n_codes: int, rows: int):
    return code_columns(CodeTable(np.arange(rows)[:, None] % n_codes, np.array([n_codes]), np.array([True])))[0]


def fitted(columns, pairs, cells, smoothing):
    """What is fitted to the counts of nodes that each have the one before as their parent: arrays as of the counts."""
    m = len(columns)
    n_states = np.array([cell.shape[1] for cell in cells])
    n_codes = np.array([column.n_codes for column in columns])
    nodes = nodes_of(np.arange(m, dtype=np.int32), np.arange(m, dtype=np.int32) - 1, n_states, n_codes)
    counts = Tables(*(np.concatenate([x.ravel() for x in tables]).astype(np.float32) for tables in (pairs, cells)))
    step = Maximisation(nodes, columns, smoothing)
    step.fit_normals(counts, smoothing)
    return step.normals, step.tables(counts, smoothing), nodes


def normals(count, column, smoothing):
    """Each state's normal over the codes, (H, K), of counts (H, K)."""
    cells = np.vstack([count.T, np.zeros((1, len(count)))])
    found, _, _ = fitted((column,), [count.sum(axis=1)], [cells], smoothing)
    return found.cell.reshape(cells.shape)[:-1].T


def is_smooth(column, smoothing):
    return flat_columns((column,), smoothing).is_smooth[0]


def tree_of(emission, blank, columns, smoothing):
    """A tree of one node with these counts, (H, K) and (H,)."""
    _, tables, nodes = fitted(columns, [emission.sum(axis=1) + blank], [np.vstack([emission.T, blank])], smoothing)
    return to_tree(nodes, tables, columns)


def test_bins_that_are_wide_are_no_heaps_unless_they_stand_out():
    assert is_smooth(ordered(16, 256), Smoothing())
    codes = np.repeat([0, 1, 2], [900, 50, 50])[:, None]
    column = code_columns(CodeTable(codes, np.array([3]), np.array([True])))[0]
    found = normals(np.full((1, 3), 10.0, np.float32), column, Smoothing())
    # the first is more than twice the others, which are alike: it keeps a third of the state's rows
    assert found[0, 0] == pytest.approx(2 / 9, rel=1e-3) and found[0, 1:].sum() == pytest.approx(4 / 9, rel=1e-3)


def test_point_masses_get_rows_of_their_own_and_none_of_normals():
    codes = np.concatenate([np.full(400, 5), np.arange(600) % 20])[:, None]
    column = code_columns(CodeTable(codes, np.array([20]), np.array([True])))[0]
    found = normals(np.full((1, 20), 10.0, np.float32), column, Smoothing(point_mass=0.1))
    assert found[0, 5] == pytest.approx(19 / 20 / 20, abs=1e-4)
    assert (np.delete(found[0], 5) > 0.0).all()
    assert found.sum() == pytest.approx(19 / 20, abs=1e-4)  # the state's share of codes that are no point masses


def test_a_states_normal_lies_over_its_rows_and_is_wider_with_few():
    column = ordered(20, 400)
    count = np.zeros((3, 20), np.float32)
    count[:, 4:7] = np.array([[1.0], [100.0], [100.0]])
    count[2] = 15.0  # a state all over the place, by whose spread the others' is judged
    found = normals(count, column, Smoothing(point_mass=0.1))
    assert np.argmax(found[1]) in (4, 5, 6)
    assert found[0, 4:7].sum() < found[1, 4:7].sum()
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-4)


def test_few_rows_are_as_narrow_as_states_are():
    column = ordered(20, 400)
    count = 10.0 * np.eye(20, dtype=np.float32)  # a state a code, of ten rows each
    found = normals(count, column, Smoothing(point_mass=0.1))
    assert (found.argmax(axis=1) == np.arange(20)).all()
    near = np.abs(np.subtract.outer(np.arange(20), np.arange(20))) <= 1
    assert ((found * near).sum(axis=1) > 0.98).all()  # a dependence as narrow as a code is not blurred


@pytest.mark.parametrize("seed", range(3))
def test_normals_of_states_against_the_oracle(seed):
    rng = np.random.default_rng(seed)
    codes = np.append(np.arange(12), rng.integers(0, 12, 200))[:, None]
    codes[rng.random(200 + 12) < 0.3] = 4  # a point mass
    column = code_columns(CodeTable(codes, np.array([12]), np.array([True])))[0]
    smoothing = Smoothing(point_mass=0.2)
    count = rng.gamma(0.3, 20.0, (5, 12)).astype(np.float32)
    light = flat_columns((column,), smoothing).is_light
    assert light.sum() == 11
    expected = oracle.state_normals(count.tolist(), column.marginal.tolist(), light.tolist())
    found = normals(count, column, smoothing)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-6)
    share = count[:, ~light].sum(axis=1) / count.sum(axis=1)  # of the point mass, the same with pseudo-rows
    with_rows = count + 30.0 * found
    np.testing.assert_allclose(with_rows[:, ~light].sum(axis=1) / with_rows.sum(axis=1), share, atol=1e-4)


def test_valleys_count_as_if_they_were_filled_up_to_the_lower_peak():
    # 100 rows a code; the codes' values are ten apart, but for 90 between the fifth and the sixth
    column = ordered(10, 1_000)
    value = np.append(np.arange(5) * 10.0, 130.0 + np.arange(5) * 10.0)
    plain, column = flat_columns((column,), Smoothing()), column._replace(center=value)
    filled = flat_columns((column,), Smoothing())
    more = filled.score - plain.score
    step = column.score[5] - column.score[4]
    np.testing.assert_allclose(more, np.repeat([0.0, 8.0 * step], 5), atol=1e-12)
    edges = filled.edge[1:-1] - plain.edge[1:-1]
    np.testing.assert_allclose(edges, np.repeat([0.0, 4.0 * step, 8.0 * step], [4, 1, 4]), atol=1e-12)
    # a density with one peak has no valley, and neither levels nor point masses make one
    for one in (np.cumsum([9, 4, 2, 1, 1, 1, 2, 3, 5, 8]), 10.0 * np.arange(10)):
        np.testing.assert_array_equal(
            flat_columns((column._replace(center=one * 1.0),), Smoothing()).score, plain.score
        )
    massive = Smoothing(point_mass=0.05)
    peaks = column._replace(marginal=np.array([0.1] * 4 + [0.03, 0.14] + [0.1] * 4), around=np.full(10, 0.02))
    np.testing.assert_array_equal(flat_columns((peaks,), massive).score, column.score)


@pytest.mark.parametrize("n", [400, 1200])
def test_groups_have_their_standard_deviation(n):
    """Groups of amounts at 60, 100 and 200: what hidden trees say given the group, beside counting."""
    ratio = []
    for seed in range(3):
        rng = np.random.default_rng([seed, n])
        group = rng.choice(list("abc"), n, p=[0.5, 0.3, 0.2])
        amount = (np.select([group == "a", group == "b"], [60, 100], 200) + rng.normal(0, 15, n)).round(2)
        table = pd.DataFrame({"shop": group, "amount": amount, "day": rng.integers(1, 8, n)})
        joint = HiddenTreeForest(4, random_state=0).fit(table).joint_
        ratio += [joint.given(shop=x).std("amount") / amount[group == x].std(ddof=0) for x in "abc"]
    assert np.mean(ratio) < {400: 1.25, 1200: 1.12}[n]  # 1.43 and 1.25 with cuts of equal weight and plain scores
    assert np.min(ratio) > 0.9


def near(count, cells, column):
    """Where the rows of the parent's states would go, (H_parent, H), of counts (H_parent, H) and (H, K)."""
    root = np.vstack([count.sum(axis=1), np.zeros(len(count))])
    cells = np.vstack([cells.T, np.zeros((1, len(cells)))])
    pairs = [count.sum(axis=1), count]
    found, _, _ = fitted((ordered(1, 10), column), pairs, [root, cells], Smoothing(near=3.0))
    return found.transition[len(count) :].reshape(count.shape)


@pytest.mark.parametrize("seed", range(4))
def test_near_states_against_the_oracle(seed):
    rng = np.random.default_rng(seed)
    column = ordered(12, 600)
    count = rng.gamma(0.3, 20.0, (5, 7)).astype(np.float32)
    emission = rng.gamma(0.3, 20.0, (7, 12)).astype(np.float32)
    score = flat_columns((column,), Smoothing()).score
    expected = oracle.near_states(count.tolist(), emission.T.tolist(), score.tolist(), FIXED.near_variance)
    np.testing.assert_allclose(near(count, emission, column), expected, rtol=1e-3, atol=1e-6)


def test_near_states_follow_the_childs_places():
    column = ordered(20, 400)
    emission = np.kron(np.eye(5), np.full((1, 4), 5.0)).astype(np.float32)  # five states from low to high
    count = np.zeros((4, 5), np.float32)
    count[0, 2], count[1, [1, 3]], count[3] = 50.0, 25.0, 20.0
    found = near(count, emission, column)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-5)
    assert found[0, 2] > found[0, 1] > found[0, 0] > 0.0
    assert found[0, 1] == pytest.approx(found[0, 3], rel=0.05)
    assert found[1, 2] > found[1, 0]  # between its rows, where none went
    np.testing.assert_allclose(found[2], count.sum(axis=0) / count.sum(), atol=0.03)  # no rows: the shares of all


@pytest.mark.parametrize("seed", range(4))
def test_tables_against_the_oracle(seed):
    """Two columns of levels, the second the child of the first; a fifth of the cells are missing."""
    rng = np.random.default_rng(seed)
    n_codes, n_states = np.array([3, 40]), np.array([4, 9])
    codes = rng.integers(0, n_codes + 1, (300, 2))
    columns = code_columns(CodeTable(codes, n_codes, np.zeros(2, bool)))
    cells = [rng.gamma(0.2, 20.0, (K + 1, H)).astype(np.float32) for K, H in zip(n_codes, n_states, strict=True)]
    if seed == 3:
        cells[1][-1] = 0.0  # no row misses the second
    pairs = [rng.gamma(0.2, 20.0, (1, 4)).astype(np.float32), rng.gamma(0.2, 20.0, (4, 9)).astype(np.float32)]
    _, tables, nodes = fitted(columns, pairs, cells, Smoothing(transition=0.1, marginal=0.05, extra=0.7))
    tree = to_tree(nodes, tables, columns)
    for k in range(2):
        expected = oracle.transition_table(pairs[k].tolist(), cells[k].tolist(), 0.1, 0.7)
        np.testing.assert_allclose(tree.transition[k], expected, rtol=1e-4, atol=1e-7)
        emission = oracle.emission_table(cells[k].tolist(), columns[k].marginal.tolist(), 0.05)
        np.testing.assert_allclose(tree.emission[k], emission, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("n_states", [8, 128])
def test_groups_far_apart_lend_each_other_next_to_nothing(seed: int, n_states: int) -> None:
    """The standard deviation within narrow groups: half a percent of mass in another group would make it ten times."""
    rng = np.random.default_rng(seed)
    names = list("abcd")[: rng.integers(2, 5)]
    scale = 10.0 ** rng.integers(-2, 5)
    middle = dict(zip(names, scale * 100.0 * rng.permutation(len(names)), strict=True))
    group = rng.choice(names, 600)
    y = pd.Series(group).map(middle) + scale * rng.normal(size=600)
    frame = pd.DataFrame({"group": group, "y": y, "other": rng.choice(list("xyz"), 600), "noise": rng.normal(size=600)})
    joint = HiddenTreeForest(n_states=n_states, max_leaf_nodes=1, max_iter=3, random_state=seed).fit(frame).joint_
    for name in names:
        wanted = frame.loc[frame["group"] == name, "y"].std()
        assert joint.given(group=name).std("y") < 3.0 * wanted
