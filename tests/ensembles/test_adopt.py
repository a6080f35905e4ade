"""Adopted scikit-learn forests against scikit-learn's own routing, weights and predictions."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor

from jointforest.data.frames import encode
from jointforest.data.schema import Schema, snap
from jointforest.ensembles.evaluate import SplitTree, cell_edges, find_leaf, float64_thresholds, level_sets, to_trees
from jointforest.learners.generative.from_sklearn import adopt, read_forest
from jointforest.learners.generative.targets import Training, read_training
from jointforest.models.box_forest.files import check_trees
from jointforest.models.box_forest.structure import leaf_boxes, with_weights
from jointforest.runtime.threads import use_jobs

from ..learners.growing.test_grow import make_columns

CLASSIFIERS = [
    DecisionTreeClassifier(random_state=0),
    DecisionTreeClassifier(max_leaf_nodes=9, random_state=0),
    ExtraTreeClassifier(random_state=0),
    RandomForestClassifier(4, random_state=0),
    RandomForestClassifier(4, max_samples=0.5, min_samples_leaf=3, ccp_alpha=0.002, random_state=0),
    ExtraTreesClassifier(4, random_state=0),
    ExtraTreesClassifier(4, bootstrap=True, criterion="entropy", random_state=0),
]
REGRESSORS = [
    DecisionTreeRegressor(random_state=0),
    ExtraTreeRegressor(random_state=0),
    RandomForestRegressor(3, min_samples_leaf=2, random_state=0),
    RandomForestRegressor(3, criterion="absolute_error", max_depth=4, random_state=0),
    ExtraTreesRegressor(3, random_state=0),
]


def name_of(forest: object) -> str:
    return type(forest).__name__


def table(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Columns of all sorts, classes, and a number to predict; every feature is a number, as scikit-learn wants it."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "density": rng.normal(size=n),
            "tiny": rng.normal(size=n) * 1e-42,  # float32 has no more than a few hundred numbers there
            "crowded": 1 + rng.integers(0, 40, n) * 2.0**-26 + rng.normal(size=n) * 2.0**-40,  # within a few floats
            "count": rng.poisson(3.0, n),
            "large": rng.integers(2**25, 2**25 + 30, n),  # float32 tells but every fourth of them
            "price": np.round(rng.gamma(2.0, 3.0, n), 1),
            "half": rng.integers(-9, 9, n) / 2,
            "code": rng.integers(0, 70, n),
            "label": rng.choice([-3.5, 0.1, 7.0, 1e9], n),
            "flag": rng.random(n) < 0.4,
        }
    )
    score = frame["density"] + 0.3 * frame["count"] + (frame["code"] % 3) - 0.1 * frame["price"] + 2 * frame["flag"]
    score = score.to_numpy() + rng.normal(size=n)
    return frame, np.digitize(score, [0.5, 2.0]), score


KINDS = {"code": "categorical", "label": "categorical"}


def adopted(forest, frame, y) -> tuple[Training, object]:
    kind = "categorical" if read_forest(forest).classes is not None else "continuous"
    training = read_training(frame, y, kind, KINDS if "code" in frame else {})
    return training, adopt(forest, training, np.ones(len(y)), 0)


def node_of_leaf(forest, training: Training) -> np.ndarray:
    """scikit-learn's node of each leaf of the adopted trees."""
    features = training.schema.columns[:-1]
    numbers = np.concatenate([np.array(c.levels, dtype=float) for c in features] + [np.zeros(100)])
    return to_trees(training.columns, read_forest(forest).trees, np.arange(len(features)), numbers)[1]


def cells_of(training: Training, frame) -> np.ndarray:
    """Rows as the queries see them: not snapped; the target is not known."""
    features = Schema(training.schema.columns[:-1], training.schema.frame)
    return np.column_stack([encode(features, frame)[0], np.full(len(frame), np.nan)])


def applied(forest, frame) -> np.ndarray:
    """scikit-learn's leaf of each row in each tree; (T, n)."""
    return np.atleast_2d(forest.apply(frame).T)


# -- thresholds


def around(x: float) -> list[float]:
    """The number and its next float64 and float32 neighbours, and the middles between those."""
    with np.errstate(over="ignore"):
        single = np.float32(x)
        neighbours = [np.nextafter(single, np.float32(s)) for s in (-np.inf, np.inf)]
    near = [x, float(single), *map(float, neighbours), *((float(single) + float(v)) / 2 for v in neighbours)]
    near += [float(np.nextafter(v, s)) for v in near for s in (-np.inf, np.inf)]
    return near


singles = st.floats(width=32, allow_nan=False, allow_infinity=False)
doubles = st.floats(allow_nan=False, allow_infinity=False)
neighbours_middle = singles.map(lambda x: (float(x) + float(np.nextafter(np.float32(x), np.float32(np.inf)))) / 2)


@given(st.one_of(singles, doubles, neighbours_middle, st.sampled_from([0.1, 1e-46, -1e-46, 3.4028235e38, 1e39, -1e39])))
def test_a_float64_threshold_parts_numbers_as_float32_does(threshold: float) -> None:
    found = float64_thresholds(np.array([threshold]))[0]
    for x in [*around(threshold), *around(found)]:
        with np.errstate(over="ignore"):
            expected = np.float32(x) <= np.float64(threshold)
        assert (x <= found) == expected, x


def test_the_middle_of_two_float32_goes_to_the_even_one() -> None:
    even, odd = np.float32(1.0), np.nextafter(np.float32(1.0), np.float32(2))
    middle = (float(even) + float(odd)) / 2
    above = np.nextafter(odd, np.float32(2))
    assert float64_thresholds(np.array([float(even)]))[0] == middle
    assert float64_thresholds(np.array([float(odd)]))[0] == np.nextafter((float(odd) + float(above)) / 2, 0)


def test_thresholds_that_part_nothing() -> None:
    assert float64_thresholds(np.array([np.inf]))[0] == np.inf
    assert cell_edges(np.array([1e38, -1e38, np.inf]), 0.1, 0.0).tolist() == [np.inf, -np.inf, np.inf]


@given(
    st.sampled_from(["1", "0.5", "0.25", "0.1", "0.01", "0.001", "0.000001", "0.125", "0.2", "86400", "2"]),
    st.integers(-(10**9), 10**9),
    st.sampled_from([-0.5, -0.4999, -1e-3, -1e-9, 0.0, 1e-9, 1e-3, 0.4999, 0.5]),
)
def test_cells_keep_the_side_of_their_centre(step_text: str, cell: int, offset: float) -> None:
    step = float(step_text)
    threshold = (cell + offset) * step
    edge = cell_edges(float64_thresholds(np.array([threshold])), step, 0.0)[0]
    columns = make_columns([0], [step])
    for k in range(cell - 3, cell + 4):
        given_value = float(Decimal(step_text) * k)  # the float that a file with this decimal would hold
        expected = np.float32(given_value) <= np.float64(threshold)
        snapped = snap(columns, np.array([[given_value]]))[0, 0]
        assert (given_value <= edge) == expected == (snapped <= edge)


@pytest.mark.parametrize("decimals", [1, 2, 3])
def test_every_decimal_that_is_no_sum_of_powers_of_two(decimals: int) -> None:
    """Cut at each float32 value itself, where one bit decides; and sums such as 0.1 + 0.2 are in the cell of 0.3."""
    step = 10.0**-decimals
    k = np.arange(-2000, 2001)
    value = np.array([float(Decimal(int(i)).scaleb(-decimals)) for i in k])
    assert np.array_equal(value, np.round(value, decimals))
    threshold = value.astype(np.float32).astype(np.float64)
    edge = cell_edges(float64_thresholds(threshold), step, 0.0)
    for shift in (-1, 0, 1):
        other = np.roll(value, shift)[1:-1]
        expected = other.astype(np.float32) <= threshold[1:-1]
        for given_value in (other, snap(make_columns([0], [step]), other[:, None])[:, 0], other * 3 - other * 2):
            assert np.array_equal(given_value <= edge[1:-1], expected)


@given(st.lists(singles, min_size=1, max_size=140, unique=True), st.lists(singles, min_size=1, max_size=5))
def test_level_sets(numbers: list[float], thresholds: list[float]) -> None:
    sets, place = level_sets(np.array(numbers), np.array(thresholds, dtype=float))
    assert sets.shape[1] == (len(numbers) + 63) // 64
    for threshold, words in zip(thresholds, sets[place], strict=True):
        members = {k for k in range(64 * len(words)) if int(words[k // 64]) >> (k % 64) & 1}
        assert members == {k for k, number in enumerate(numbers) if np.float32(number) <= np.float64(threshold)}


# -- routing


@pytest.mark.parametrize("forest", CLASSIFIERS + REGRESSORS, ids=name_of)
def test_every_row_ends_in_the_same_leaf(forest) -> None:
    frame, classes, score = table(400, 0)
    fitted = forest.fit(frame, classes if forest in CLASSIFIERS else score)
    training, assigned = adopted(fitted, frame, classes if forest in CLASSIFIERS else score)
    check_trees(training.columns, assigned.trees, has_background=False)
    node = node_of_leaf(fitted, training)
    assert np.array_equal(node[assigned.leaf_of], applied(fitted, frame))

    other, _, _ = table(3000, 1)  # values between those of the training rows, and at every float64 near a cut
    thresholds = [t.threshold[(t.left >= 0) & (t.feature < 3)] for t in read_forest(fitted).trees]
    near = np.array([x for t in np.unique(np.concatenate(thresholds)) for x in around(t)])
    rng = np.random.default_rng(2)
    for column in ("density", "tiny", "crowded"):
        other[column] = np.where(rng.random(3000) < 0.7, rng.choice(near, 3000), other[column])
    cells = cells_of(training, other)
    found = find_leaf(assigned.trees, cells, np.ones((len(assigned.leaf_of), 3000)), 0)
    assert np.array_equal(node[found], applied(fitted, other))


@given(st.integers(0, 10**6))
def test_routing_of_random_numbers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 3)) * 10.0 ** rng.integers(-40, 36, 3)
    X[:, 2] = X[0, 2] * (1 + rng.integers(-4, 5, 60) * 2.0**-24)  # float32 neighbours and their middles
    forest = ExtraTreesClassifier(2, max_features=None, random_state=seed).fit(X, rng.integers(0, 3, 60))
    columns = make_columns([0, 0, 0])
    trees, node = to_trees(columns, read_forest(forest).trees, np.arange(3), np.empty(0))
    check_trees(columns, trees, has_background=False)
    more = np.concatenate([X, np.nextafter(X, 0), np.nextafter(X, np.inf), X * (1 + rng.normal(size=X.shape) * 1e-7)])
    found = find_leaf(trees, more, np.ones((2, len(more))), 0)
    assert np.array_equal(node[found], forest.apply(more).T)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, np.asarray])
def test_features_are_matched_by_name_or_by_place(library) -> None:
    frame, y, _ = table(200, 3)
    frame = frame[["density", "count", "price"]].astype(float)
    forest = RandomForestClassifier(3, random_state=0).fit(frame, y)
    reordered = frame if library is np.asarray else frame[["price", "density", "count"]]
    given_frame = library(reordered.to_numpy()) if library is np.asarray else library(reordered)
    _, assigned = adopted(forest, given_frame, y)
    expected = read_forest(forest).rows[0].max()
    assert assigned.weight[0].sum() == expected
    leaves = applied(forest, frame)
    for found, wanted in zip(assigned.leaf_of, leaves, strict=True):
        assert len(np.unique(found)) == len(np.unique(wanted)) == len(np.unique(found + 10**6 * wanted))


def test_a_forest_fitted_on_an_array_takes_columns_by_place() -> None:
    frame, y, _ = table(200, 3)
    frame = frame[["density", "count"]].astype(float)
    forest = DecisionTreeClassifier(random_state=0).fit(frame.to_numpy(), y)
    training, assigned = adopted(forest, frame, y)
    assert np.array_equal(node_of_leaf(forest, training)[assigned.leaf_of[0]], forest.apply(frame.to_numpy()))


# -- splits that send everything one way


def split_tree(rows: list[tuple[int, float, int, int]]) -> SplitTree:
    feature, threshold, left, right = zip(*rows, strict=True)
    return SplitTree(np.array(feature), np.array(threshold, dtype=float), np.array(left), np.array(right))


LEAF = (-2, -2.0, -1, -1)


def test_empty_sides_are_collapsed_onto_the_other_side() -> None:
    columns = make_columns([0, 3, 0], [1.0, 0.0])
    first = split_tree(
        [
            (0, 2.2, 1, 6),  # 0
            (0, 2.4, 2, 5),  # 1: cells up to 2 again: its right side is empty
            (1, -1.0, 3, 4),  # 2: no level goes left
            LEAF,
            LEAF,  # 4: count <= 2
            LEAF,
            (2, np.inf, 7, 8),  # 6: all go left
            LEAF,  # 7: count > 2
            LEAF,
        ]
    )
    second = split_tree([(2, np.inf, 1, 4), (2, 0.0, 2, 3), LEAF, LEAF, (0, 1.0, 5, 6), LEAF, LEAF])
    plain = split_tree([(1, 0.5, 1, 2), LEAF, LEAF])
    trees, node = to_trees(columns, [first, second, plain], np.arange(3), np.array([0.0, 1.0, 2.0]))
    check_trees(columns, trees, has_background=False)
    lo, hi, allowed = leaf_boxes(trees, columns)
    assert (lo < hi).all() and allowed.any(axis=1).all()
    assert node.tolist() == [4, 7, 2, 3, 1, 2]
    assert trees.root.tolist() == [0, 3, 6]
    X = np.array([[2.0, 0.0, 5.0], [3.0, 1.0, -5.0]])
    assert node[find_leaf(trees, X, np.ones((3, 2)), 0)].tolist() == [[4, 7], [3, 2], [1, 2]]


def test_a_tree_without_splits_and_one_whose_split_parts_nothing() -> None:
    columns = make_columns([0])
    trees, node = to_trees(
        columns, [split_tree([LEAF]), split_tree([(0, -1e300, 1, 2), LEAF, LEAF])], np.arange(1), np.empty(0)
    )
    check_trees(columns, trees, has_background=False)
    # -1e300 is infinite as float32, so this split still parts a few numbers from the others
    assert node.tolist() == [0, 1, 2]
    assert find_leaf(trees, np.array([[-1e299], [0.0]]), np.ones((2, 2)), 0).tolist() == [[0, 0], [1, 2]]


# -- weights


def shares_of_classes(assigned, y: np.ndarray, n_classes: int) -> np.ndarray:
    """Average over trees of the class shares in each row's leaf, by the weights of the rows."""
    total = np.zeros((len(y), n_classes))
    for leaf, weight in zip(assigned.leaf_of, assigned.weight, strict=True):
        held = np.array([np.bincount(leaf, weight * (y == c), minlength=leaf.max() + 1) for c in range(n_classes)])
        total += (held[:, leaf] / held[:, leaf].sum(axis=0)).T
    return total / len(assigned.leaf_of)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 1.0, 1: 0.5, 2: 3.0}, "balanced_subsample"])
@pytest.mark.parametrize("forest", CLASSIFIERS[2:], ids=name_of)
def test_leaves_hold_the_classes_that_the_forest_predicts(forest, class_weight, weighted: bool) -> None:
    if class_weight == "balanced_subsample" and isinstance(forest, DecisionTreeClassifier):
        class_weight = "balanced"
    frame, y, _ = table(300, 4)
    rng = np.random.default_rng(5)
    weight = rng.integers(0, 4, len(y)) * 0.7 if weighted else np.ones(len(y))
    fitted = type(forest)(**{**forest.get_params(), "class_weight": class_weight})
    fitted.fit(frame, y, sample_weight=weight if weighted else None)
    training = read_training(frame, y, "categorical", KINDS)
    assigned = adopt(fitted, training, weight, 0)
    check_trees(training.columns, assigned.trees, has_background=False)
    assert np.abs(shares_of_classes(assigned, y, 3) - fitted.predict_proba(frame)).max() <= 1e-12
    for t, rows in enumerate(read_forest(fitted).rows):
        root = assigned.trees.root[t]
        sides = rows[read_forest(fitted).trees[t].left[0]], rows[read_forest(fitted).trees[t].right[0]]
        assert assigned.trees.weight[assigned.trees.left[root]] == pytest.approx(sides[0] / sum(sides))


@pytest.mark.parametrize("forest", [f for f in REGRESSORS if f.criterion != "absolute_error"], ids=name_of)
def test_leaves_hold_the_means_that_the_forest_predicts(forest) -> None:
    frame, _, score = table(300, 6)
    fitted = forest.fit(frame, score)
    _, assigned = adopted(fitted, frame, score)
    found = np.zeros(len(score))
    for leaf, weight in zip(assigned.leaf_of, assigned.weight, strict=True):
        mean = np.bincount(leaf, weight * score) / np.maximum(np.bincount(leaf, weight), 1e-300)
        found += mean[leaf] / len(assigned.leaf_of)
    np.testing.assert_allclose(found, fitted.predict(frame), rtol=1e-12, atol=1e-12)


def test_labels_of_all_sorts() -> None:
    frame, y, _ = table(120, 7)
    for labels in (np.array(["low", "mid", "high"])[y], y > 0, y.astype(float) - 1, pd.Series(y).astype(str)):
        forest = RandomForestClassifier(2, random_state=0).fit(frame, labels)
        training, assigned = adopted(forest, frame, labels)
        levels = [training.schema.columns[-1].levels.index(c) for c in forest.classes_.tolist()]
        codes = training.X[:, -1].astype(int)
        found = shares_of_classes(assigned, codes, len(levels))[:, levels]
        assert np.abs(found - forest.predict_proba(frame)).max() <= 1e-12


# -- missing cells


def test_rows_with_missing_cells_take_sides_as_often_as_the_others() -> None:
    rng = np.random.default_rng(8)
    n = 20_000
    x = rng.random(n)
    y = (x < 0.3).astype(int)
    x[::2] = np.nan
    forest = DecisionTreeClassifier(max_depth=1).fit(x[1::2, None], y[1::2])
    trees, node = to_trees(make_columns([0]), read_forest(forest).trees, np.arange(1), np.empty(0))
    found = node[find_leaf(trees, x[:, None], np.ones((1, n)), 3)[0]]
    assert np.array_equal(found[1::2], forest.apply(x[1::2, None]))
    assert np.mean(found[::2] == 1) == pytest.approx(np.mean(found[1::2] == 1), abs=0.02)
    weight = np.where(found == 1, 0.1, 1.0)[None]
    lighter = node[find_leaf(trees, x[:, None], weight, 3)[0]]
    assert np.mean(lighter[::2] == 1) == pytest.approx(0.03 / 0.73, abs=0.02)


def test_missing_cells_at_learning_and_threads() -> None:
    frame, y, _ = table(500, 9)
    rng = np.random.default_rng(0)
    frame = frame[["density", "count", "price"]].astype(float)
    frame = frame.mask(rng.random(frame.shape) < 0.2)
    forest = RandomForestClassifier(6, random_state=0).fit(frame, y)
    training = read_training(frame, y, "categorical", {})
    one, two, other = (
        use_jobs(n_jobs)(adopt)(forest, training, np.ones(500), seed) for seed, n_jobs in ((0, 1), (0, 2), (1, 1))
    )
    check_trees(training.columns, one.trees, has_background=False)
    assert np.array_equal(one.leaf_of, two.leaf_of)
    assert not np.array_equal(one.leaf_of, other.leaf_of)
    for leaf, mine, wanted in zip(one.leaf_of, one.weight, read_forest(forest).samples, strict=True):
        assert np.array_equal(mine, np.bincount(wanted, minlength=500))
        assert np.all(np.bincount(leaf - leaf.min(), mine) > 0)


def test_leaves_that_only_missing_cells_lead_to_are_left_out() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(400, 2))
    y = (x[:, 0] > 0).astype(int)
    y[::5] = 2
    x[::5, 1] = np.nan  # that the cell is missing tells the class
    forest = RandomForestClassifier(5, max_features=None, random_state=0).fit(x, y)
    trees, _ = to_trees(make_columns([0, 0]), read_forest(forest).trees, np.arange(2), np.empty(0))
    assert np.any(read_forest(forest).trees[0].threshold == np.inf)  # how scikit-learn writes "is missing"
    assert trees.leaf.max() + 1 < sum(int((t.left < 0).sum()) for t in read_forest(forest).trees)
    training = read_training(x, y, "categorical", {})
    assigned = adopt(forest, training, np.ones(400), 0)
    check_trees(training.columns, assigned.trees, has_background=False)
    for leaf, weight in zip(assigned.leaf_of, assigned.weight, strict=True):
        assert np.all(np.bincount(leaf - leaf.min(), weight) > 0)
    in_leaf = sum(np.bincount(leaf, w, assigned.trees.leaf.max() + 1) for leaf, w in zip(*assigned[1:], strict=True))
    assert np.all(in_leaf > 0)


def test_rows_that_alone_filled_a_leaf_are_missed() -> None:
    frame, y, _ = table(300, 14)
    forest = DecisionTreeClassifier(random_state=0).fit(frame, y)
    end = forest.apply(frame)
    with pytest.raises(ValueError, match="fitted on other rows"):
        adopted(forest, frame[end != end[0]], y[end != end[0]])


# -- what is refused


def test_other_estimators_are_refused_by_name() -> None:
    X, y = make_classification(60, 4, random_state=0)
    refused = {
        "GradientBoostingClassifier": GradientBoostingClassifier(n_estimators=1).fit(X, y),
        "its best_estimator_": GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1]}, cv=2).fit(X, y),
        "the pipeline's last step": make_pipeline(StandardScaler(), DecisionTreeClassifier()).fit(X, y),
        "got the class itself": RandomForestClassifier,
        "NoneType": None,
    }
    for message, forest in refused.items():
        with pytest.raises(TypeError, match=message):
            read_forest(forest)
    with pytest.raises(NotFittedError, match="RandomForestClassifier"):
        read_forest(RandomForestClassifier())
    with pytest.raises(ValueError, match="DecisionTreeClassifier has 2 targets"):
        read_forest(DecisionTreeClassifier().fit(X, np.column_stack([y, y])))
    with pytest.raises(ValueError, match="monotonic_cst"):
        read_forest(DecisionTreeClassifier(monotonic_cst=[1, 0, 0, 0]).fit(X, y))


@pytest.mark.parametrize("forest", [CLASSIFIERS[0], CLASSIFIERS[3], CLASSIFIERS[5], REGRESSORS[2]], ids=name_of)
def test_other_rows_are_refused(forest) -> None:
    frame, classes, score = table(300, 10)
    y = classes if hasattr(forest, "class_weight") else score
    fitted = forest.fit(frame, y)
    changed = frame.assign(density=frame["density"].to_numpy()[::-1])
    for other, target in ((frame[:-20], y[:-20]), (changed, y), (frame, np.roll(y, 1)), (table(300, 11)[0], y)):
        with pytest.raises(ValueError, match="fitted on other rows"):
            adopted(fitted, other, target)


def test_weights_that_differ_are_refused() -> None:
    frame, y, _ = table(300, 10)
    weighted = DecisionTreeClassifier(random_state=0).fit(frame, y, sample_weight=np.arange(300.0))
    with pytest.raises(ValueError, match="sample_weight"):
        adopted(weighted, frame, y)
    training = read_training(frame, y, "categorical", KINDS)
    for weight in (np.zeros(300), np.arange(300.0)):
        with pytest.raises(ValueError, match="sample_weight"):
            adopt(CLASSIFIERS[0].fit(frame, y), training, weight, 0)


def test_other_columns_classes_and_targets_are_refused() -> None:
    frame, y, score = table(100, 12)
    frame = frame[["density", "count"]]
    forest = DecisionTreeClassifier(random_state=0).fit(frame, y)
    with pytest.raises(ValueError, match="on 2 features, and the table has 1"):
        adopted(forest, frame[["density"]], y)
    with pytest.raises(ValueError, match="lacks its feature 'count'"):
        adopted(forest, frame.rename(columns={"count": "counts"}), y)
    with pytest.raises(ValueError, match="other classes: 2 is none of the target"):
        adopted(forest, frame, np.minimum(y, 1))
    training = read_training(frame, score, "continuous", {})
    with pytest.raises(TypeError, match="expected a regressor for the target 'y', got DecisionTreeClassifier"):
        adopt(forest, training, np.ones(100), 0)
    text = frame.assign(count=frame["count"].astype(str))
    with pytest.raises(ValueError, match=r"'count' holds text .* kinds=\{'count': 'categorical'\}"):
        adopted(forest, text, y)
    dates = frame.assign(count=pd.to_datetime(frame["count"], unit="D"))
    with pytest.raises(ValueError, match="'count' holds dates"):
        adopted(forest, dates, y)


def test_a_tree_that_no_row_reaches_is_refused() -> None:
    trees, _ = to_trees(make_columns([0]), [split_tree([LEAF])] * 2, np.arange(1), np.empty(0))
    with pytest.raises(ValueError, match="tree 1: no row"):
        with_weights(trees, np.array([1.0, 0.0]))
