"""The node table of ensembles: its promises, evaluation by a walk in Python, frames that do not fit.

Also what tests of the adapters share: tables of all sorts, and comparisons with a library's own answers.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, softmax
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from jointforest.ensembles.evaluate import (
    apply_link,
    by_position,
    encode_features,
    leaves,
    level_codes,
    raw,
    raw_blocks,
)
from jointforest.ensembles.read import read_ensemble
from jointforest.ensembles.table import Ensemble, Tree, join_ensemble
from jointforest.runtime.threads import use_jobs

from ..random_cases.ensembles import random_ensemble, random_rows
from ..random_cases.models import random_model, seeds

LETTERS = list("abcdefgh")


def make_table(n: int, seed: int, missing: float = 0.15, letters: list[str] = LETTERS) -> pd.DataFrame:
    """Numbers with ties, at the edges of float32, huge and tiny ones, zeros; levels of text and of whole numbers."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "plain": rng.normal(size=n),
            "ties": np.round(rng.normal(size=n), 1),
            "crowded": 1 + rng.integers(0, 40, n) * 2.0**-25 + rng.choice([0.0, 2.0**-40, -(2.0**-40)], n),
            "huge": rng.normal(size=n) * 1e30,
            "tiny": rng.normal(size=n) * 1e-42,
            "large": rng.integers(2**25, 2**25 + 30, n).astype(float),
            "zeros": np.where(rng.random(n) < 0.4, 0.0, rng.integers(-3, 4, n)) + rng.choice([0.0, 1e-36, 1e-34], n),
            "letter": rng.choice(letters, n),
            "number": rng.choice([2, 3, 5, 7, 11], n),
        }
    )
    frame["number"] = frame["number"].astype(float)
    for name in frame.columns:
        frame.loc[rng.random(n) < missing, name] = np.nan
    frame["letter"] = pd.Categorical(frame["letter"], categories=sorted(set(letters)))
    frame["number"] = pd.Categorical(frame["number"].astype("Int64"), categories=[2, 3, 5, 7, 11])
    return frame


def make_target(frame: pd.DataFrame, seed: int) -> np.ndarray:
    """A number that every column has a part in, missing cells too."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=len(frame)) * 0.3
    for name in frame.columns:
        if name in ("letter", "number"):
            codes = frame[name].cat.codes.to_numpy()
            y += rng.normal(size=codes.max() + 2)[codes]
        else:
            x = frame[name].rank(pct=True).to_numpy()
            y += np.where(np.isnan(x), rng.normal(), rng.normal() * np.sin(4 * x + rng.normal()))
    return y


def numbers_only(frame: pd.DataFrame) -> pd.DataFrame:
    """The same rows with codes instead of levels, NaN where missing."""
    codes = {name: frame[name].cat.codes.replace(-1, np.nan).astype(float) for name in ("letter", "number")}
    return frame.assign(**codes)


def answers(ensemble: Ensemble, frame: Any) -> np.ndarray:
    """Predictions (n, K); of a logistic link with classes the probabilities of both."""
    out = apply_link(ensemble.link, raw(ensemble, *encode_features(ensemble, frame)))
    return np.hstack([1 - out, out]) if ensemble.link == "logistic" and ensemble.classes else out


def assert_same_leaves(ensemble: Ensemble, frame: Any, expected: np.ndarray) -> None:
    """Our leaves and the library's (n, T) are the same but for their numbers."""
    found = leaves(ensemble, *encode_features(ensemble, frame))
    expected = np.asarray(expected).reshape(len(found), -1)
    assert found.shape == expected.shape
    for ours, theirs in zip(found.T, expected.T, strict=True):
        pairs = np.unique(np.column_stack([ours, theirs]), axis=0)
        assert len(pairs) == len(np.unique(ours)) == len(np.unique(theirs))


def check(ensemble: Ensemble) -> None:
    """What the docstring of `Ensemble` promises."""
    n, n_features = len(ensemble.feature), len(ensemble.names)
    assert len(ensemble.categories) == n_features
    inner = ensemble.leaf < 0
    for name in ("feature", "levels_at", "left", "right", "leaf", "root"):
        assert getattr(ensemble, name).dtype == np.int32
    for name in ("missing_left", "other_left"):
        assert getattr(ensemble, name).dtype == bool and len(getattr(ensemble, name)) == n
    assert ensemble.threshold.dtype == ensemble.value.dtype == ensemble.base.dtype == np.float64
    assert ensemble.left_levels.dtype == np.uint64
    assert (ensemble.feature[inner] >= 0).all() and (ensemble.feature[~inner] == -1).all()
    assert (ensemble.feature < n_features).all()
    at = np.arange(n)
    for child in (ensemble.left, ensemble.right):
        assert (child[inner] > at[inner]).all() and (child[~inner] == -1).all()
    children = np.concatenate([ensemble.left[inner], ensemble.right[inner], ensemble.root])
    assert np.array_equal(np.sort(children), at)
    assert np.array_equal(ensemble.leaf[~inner], np.arange(len(ensemble.value)))
    assert ensemble.value.shape[1] == len(ensemble.base)
    assert not np.isnan(ensemble.threshold).any() and np.isfinite(ensemble.value).all()
    for node in np.flatnonzero(inner):
        levels = ensemble.categories[ensemble.feature[node]]
        assert (levels is None) == (ensemble.levels_at[node] < 0)
        if levels is not None:
            assert ensemble.levels_at[node] + (len(levels) + 63) // 64 <= len(ensemble.left_levels)
    if ensemble.classes is not None:
        assert len(ensemble.classes) == (2 if ensemble.link == "logistic" else len(ensemble.base))


# -- evaluation


def random_tree(rng: np.random.Generator, categories: list, n_outputs: int, n_inner: int) -> Tree:
    """A tree grown by splitting random leaves; nodes in a random order, some unreachable."""
    left, right, tips = [-1], [-1], [0]
    for _ in range(n_inner):
        node = tips.pop(int(rng.integers(len(tips))))
        left[node], right[node] = len(left), len(left) + 1
        tips += [left[node], right[node]]
        left += [-1, -1]
        right += [-1, -1]
    n = len(left)
    feature = rng.integers(0, len(categories), n)
    sets = {
        i: rng.random(len(categories[feature[i]])) < 0.5
        for i in range(n)
        if left[i] >= 0 and categories[feature[i]] is not None
    }
    flags = rng.random((2, n)) < 0.5
    threshold, value = rng.integers(-2, 3, n) / 2, rng.normal(size=(n, n_outputs))
    return Tree(feature, threshold, np.array(left), np.array(right), flags[0], flags[1], sets, value)


def shuffled(tree: Tree, rng: np.random.Generator) -> Tree:
    """The same tree with its nodes, but the root, in another order, and one more that nothing leads to."""
    n = len(tree.left)
    place = np.append(0, 1 + rng.permutation(n))[: n + 1]
    order = np.argsort(place)

    def moved(x: np.ndarray) -> np.ndarray:
        return np.concatenate([x, x[:1]])[order]

    def linked(child: np.ndarray) -> np.ndarray:
        return np.where(moved(child) >= 0, place[moved(child)], -1)

    return Tree(
        moved(tree.feature),
        moved(tree.threshold),
        linked(tree.left),
        linked(tree.right),
        moved(tree.missing_left),
        moved(tree.other_left),
        {int(place[i]): levels for i, levels in tree.left_levels.items()},
        moved(tree.value),
    )


def walk(tree: Tree, x: np.ndarray, other: np.ndarray) -> np.ndarray:
    """What the leaf of one row adds, straight from the definition."""
    node = 0
    while tree.left[node] >= 0:
        j = tree.feature[node]
        if other[j]:
            left = tree.other_left[node]
        elif np.isnan(x[j]):
            left = tree.missing_left[node]
        elif node in tree.left_levels:
            left = tree.left_levels[node][int(x[j])]
        else:
            left = x[j] <= tree.threshold[node]
        node = tree.left[node] if left else tree.right[node]
    return tree.value[node]


@given(st.integers(0, 10**6), st.integers(0, 12), st.integers(1, 3))
def test_sums_are_those_of_a_walk_down_each_tree(seed: int, n_inner: int, n_outputs: int) -> None:
    rng = np.random.default_rng(seed)
    categories = [None, tuple(range(70)), None, ("a", "b", "c")]
    trees = [shuffled(random_tree(rng, categories, n_outputs, n_inner), rng) for _ in range(3)]
    base = rng.normal(size=n_outputs)
    ensemble = join_ensemble(
        trees, base=base, link="identity", names=None, categories=categories, classes=None, library="test Model"
    )
    check(ensemble)
    X = np.column_stack([rng.integers(-2, 3, 40) / 2, rng.integers(0, 70, 40), rng.normal(size=40)])
    X = np.column_stack([X, rng.integers(0, 3, 40)])
    X[rng.random(X.shape) < 0.2] = np.nan
    other = np.isnan(X) & (rng.random(X.shape) < 0.5) & [False, True, False, True]
    expected = [base + sum(walk(tree, x, o) for tree in trees) for x, o in zip(X, other, strict=True)]
    np.testing.assert_allclose(use_jobs(1)(raw)(ensemble, X, other), expected, rtol=1e-12, atol=1e-12)
    assert np.array_equal(use_jobs(2)(raw)(ensemble, X, other), use_jobs(1)(raw)(ensemble, X, other))
    at = leaves(ensemble, X, other)
    assert np.allclose(ensemble.base + ensemble.value[at].sum(axis=1), expected)


def test_many_rows_are_answered_in_order_whatever_the_threads() -> None:
    frame = numbers_only(make_table(3000, 0))
    model = DecisionTreeRegressor(max_depth=5, random_state=0).fit(frame, make_target(frame_levels(frame), 0))
    ensemble = read_ensemble(model)
    assert np.array_equal(answers(ensemble, frame)[:, 0], model.predict(frame))
    X, other = encode_features(ensemble, frame)
    assert np.array_equal(use_jobs(1)(raw)(ensemble, X, other), use_jobs(3)(raw)(ensemble, X, other))
    assert raw(ensemble, X[:0], other[:0]).shape == (0, 1)


def frame_levels(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(**{name: pd.Categorical(frame[name]) for name in ("letter", "number")})


@given(st.lists(st.lists(st.floats(-800, 800), min_size=3, max_size=3), min_size=1, max_size=4))
def test_links(rows: list[list[float]]) -> None:
    x = np.array(rows)
    np.testing.assert_allclose(apply_link("logistic", x), expit(x), rtol=1e-13, atol=1e-300)
    np.testing.assert_allclose(apply_link("softmax", x), softmax(x, axis=1), rtol=1e-12, atol=1e-300)
    assert np.array_equal(apply_link("identity", x), x)
    with np.errstate(over="ignore"):
        assert np.array_equal(apply_link("exp", x / 2), np.exp(x / 2))


def test_an_unknown_link_is_refused() -> None:
    with pytest.raises(ValueError, match="link 'probit'"):
        apply_link("probit", np.zeros((1, 1)))


# -- frames


def toy(names: tuple[str, ...] | None = ("x", "letter", "count")) -> Ensemble:
    """Three features, one tree: x <= 0, then whether the letter is b, or the count 3."""
    tree = Tree(
        feature=np.array([0, 1, 2, 0, 0, 0, 0]),
        threshold=np.zeros(7),
        left=np.array([1, 3, 5, -1, -1, -1, -1]),
        right=np.array([2, 4, 6, -1, -1, -1, -1]),
        missing_left=np.array([True, False, False, False, False, False, False]),
        other_left=np.array([False, True, True, False, False, False, False]),
        left_levels={1: np.array([False, True]), 2: np.array([False, True])},
        value=np.arange(7.0)[:, None],
    )
    return join_ensemble(
        [tree],
        base=np.zeros(1),
        link="identity",
        names=names,
        categories=[None, ("a", "b"), (2, 3)],
        classes=None,
        library="test Model",
    )


def test_columns_go_by_name_in_any_order_from_any_library() -> None:
    data: dict[str, list] = {
        "letter": ["b", "a", "z", None, "b"],
        "count": [2, 3, 4, None, 3],
        "spare": ["s"] * 5,
        "x": [-1.0, 1.0, None, 1.0, 0.5],
    }
    expected = [3, 5, 3, 6, 5]
    for frame in (pd.DataFrame(data), pl.DataFrame(data), pl.DataFrame(data).to_arrow()):
        X, other = encode_features(toy(), frame)
        np.testing.assert_array_equal(X, [[-1, 1, 0], [1, 0, 1], [np.nan] * 3, [1, np.nan, np.nan], [0.5, 1, 1]])
        assert np.argwhere(other).tolist() == [[2, 1], [2, 2]]
        assert raw(toy(), X, other)[:, 0].tolist() == expected
    array = pd.DataFrame(data)[["x", "letter", "count"]].astype(object).to_numpy()
    assert answers(toy(), array)[:, 0].tolist() == expected


def test_an_absent_column_is_missing() -> None:
    X, other = encode_features(toy(), pd.DataFrame({"x": [1.0], "count": [2]}))
    np.testing.assert_array_equal(X, [[1, np.nan, 0]])
    assert not other.any()


def test_without_names_columns_go_by_position() -> None:
    ensemble = toy(None)
    assert by_position(ensemble) and not by_position(toy())
    frame = pd.DataFrame({"p": [1.0], "q": ["b"], "r": [3]})
    np.testing.assert_array_equal(encode_features(ensemble, frame)[0], [[1, 1, 1]])
    named = frame[["r", "p", "q"]].set_axis(list("201"), axis=1)
    np.testing.assert_array_equal(encode_features(ensemble, named)[0], [[1, 1, 1]])


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"x": ["low"]}, "'x'.*numbers, got the text 'low'"),
        ({"x": pd.to_datetime(["2020-01-01"])}, "'x'.*numbers, got dates"),
        ({"x": [np.inf]}, "'x': infinite"),
        ({"letter": pd.to_datetime(["2020-01-01"])}, "'letter'.*levels, got dates"),
        ({"letter": [0.5]}, "'letter'.*levels such as 'a', got the number 0.5"),
        ({"count": ["two"]}, "'count'.*levels such as 2, got the text 'two'"),
        ({"count": [2.5]}, "'count'.*levels such as 2, got the number 2.5"),
    ],
)
def test_columns_of_another_kind_are_refused_by_name(data: dict, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        encode_features(toy(), pd.DataFrame(data))


def test_another_number_of_columns_is_refused() -> None:
    with pytest.raises(ValueError, match="2 columns, the test Model was trained on 3"):
        encode_features(toy(), np.zeros((1, 2)))


def test_numbers_held_as_categories_are_numbers() -> None:
    frame = pd.DataFrame({"x": pd.Categorical([2, None, -3])})
    np.testing.assert_array_equal(encode_features(toy(), frame)[0][:, 0], [2, np.nan, -3])


def test_levels_meet_labels_of_other_types() -> None:
    assert level_codes((1.0, 2.5), [2.5, 1, True], "c").tolist() == [1, 0, 0]
    assert level_codes((False, True), [1.0, False], "c").tolist() == [1, 0]
    assert level_codes(("a", 7), [True, 7.0, "7", "a"], "c").tolist() == [-1, 1, -1, 0]
    assert level_codes((), ["a", 1.5], "c").tolist() == [-1, -1]


# -- what is no ensemble


def test_other_libraries_are_not_imported() -> None:
    code = (
        "import sys; from sklearn.tree import DecisionTreeClassifier as T; "
        "from jointforest.ensembles.read import read_ensemble; "
        "read_ensemble(T().fit([[0], [1]], [0, 1])); "
        "assert not {'xgboost', 'lightgbm', 'catboost'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (LinearRegression(), "LinearRegression is not supported: expected a fitted DecisionTree"),
        (
            make_pipeline(StandardScaler(), LinearRegression()).fit([[0.0], [1.0]], [0, 1]),
            "LinearRegression is not supported",
        ),
        (DecisionTreeRegressor, "the class DecisionTreeRegressor itself"),
        (None, "NoneType is not supported"),
    ],
)
def test_other_models_are_refused(model: object, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        read_ensemble(model)


def test_a_search_is_refused_with_a_hint() -> None:
    search = GridSearchCV(DecisionTreeRegressor(), {"max_depth": [1]}, cv=2).fit(np.zeros((4, 1)), np.arange(4))
    with pytest.raises(TypeError, match="best_estimator_"):
        read_ensemble(search)


def test_an_ensemble_is_one_already() -> None:
    ensemble = toy()
    assert read_ensemble(ensemble) is ensemble


def test_no_tree_is_refused() -> None:
    with pytest.raises(ValueError, match="no trees"):
        join_ensemble(
            [], base=np.zeros(1), link="identity", names=None, categories=[], classes=None, library="test Model"
        )


@given(seeds)
@settings(max_examples=40)
def test_blocks_of_rows_are_rows(seed: int) -> None:
    """Blocks in which some features are the same have, to the bit, the sums of their rows."""
    rng = np.random.default_rng(seed)
    model = random_model(seed, n_trees=1, max_depth=1)
    ensemble = random_ensemble(rng, model, n_trees=4, max_depth=5, n_outputs=1 + seed % 2)
    B, m, f = 6, int(rng.integers(1, 9)), len(ensemble.categories)
    X, other = random_rows(rng, model, ensemble, B * m)[2:]
    same = rng.random((B, f)) < 0.4
    for b in range(B):
        block = slice(b * m, (b + 1) * m)
        X[block, same[b]], other[block, same[b]] = X[b * m, same[b]], other[b * m, same[b]]
    np.testing.assert_array_equal(raw_blocks(ensemble, X, other, same), raw(ensemble, X, other))
    assert raw_blocks(ensemble, X[:0], other[:0], same[:0]).shape == (0, len(ensemble.base))
