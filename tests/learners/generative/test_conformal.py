"""Conformal intervals and sets: beside loops that follow the papers, and coverage of data whose law is known."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.learners.generative import supervised
from jointforest.learners.generative.targets import know_features
from jointforest.models.box_forest.posterior import tree_answers

from ...box_answers import mean_variance
from ...oracle import conformal as oracle

QUICK: dict[str, Any] = {"n_estimators": 20, "min_samples_leaf": 4, "smoothing": 0.3, "min_spread": 0.1, "beta": 0.5,
                         "conformal": True, "n_jobs": 1}  # fmt: skip


def rows(n: int, rng: np.random.Generator, missing: float = 0.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Three features, a number whose noise grows with the second, and a class."""
    X = rng.normal(size=(n, 3))
    y = 2 * X[:, 0] + X[:, 1] + (0.3 + 0.5 * (X[:, 1] > 0)) * rng.normal(size=n)
    label = np.digitize(X[:, 0] + 0.7 * rng.normal(size=n), [-0.6, 0.6])
    X[rng.random(X.shape) < missing] = np.nan
    return X, y, label


# -- beside the papers


@pytest.mark.parametrize("n", [1, 4, 9, 10, 19, 57])
@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.95])
def test_ranks_are_those_of_the_paper(n: int, level: float) -> None:
    values = np.random.default_rng(n).normal(size=n)
    alpha = 1 - level
    assert supervised.kth_smallest(values[:, None], level)[0] == oracle.upper_quantile(values.tolist(), alpha)
    assert -supervised.kth_smallest(-values[:, None], level)[0] == oracle.lower_quantile(values.tolist(), alpha)


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9])
def test_sets_are_those_of_the_paper_where_probabilities_tie(level: float) -> None:
    rng = np.random.default_rng(0)
    own, asked = rng.integers(0, 4, (19, 3)) / 4, rng.integers(0, 4, (19, 5, 3)) / 4
    y = rng.integers(0, 3, 19)
    found = supervised.label_set(supervised.CalibrationPairs(own, y.astype(float), asked), level)
    for r in range(5):
        mine = own[np.arange(19), y].tolist()
        assert found[r].tolist() == oracle.label_set(asked[:, r].tolist(), mine, 1 - level)


def test_ranks_by_hand() -> None:
    """Nine rows: (9 + 1) .9 = 9, the largest; .95 needs 19 of them; of 19 the 19th; .5 of three the second."""
    nine = np.arange(1.0, 10.0)[:, None]
    assert supervised.kth_smallest(nine, 0.9)[0] == 9 and supervised.kth_smallest(nine, 0.8)[0] == 8
    assert supervised.kth_smallest(nine, 0.95)[0] == math.inf
    assert supervised.kth_smallest(np.arange(1.0, 20.0)[:, None], 0.95)[0] == 19
    assert supervised.kth_smallest(np.array([[3.0], [1.0], [2.0]]), 0.5)[0] == 2


@pytest.mark.parametrize("spread", [1.0, 500.0, 1e300])
def test_averages_are_those_of_loops(spread: float) -> None:
    """Also where trees weigh nothing beside others, or have met the row with probability 0."""
    rng = np.random.default_rng(0)
    log_weight, answer = -spread * rng.random((4, 6)), rng.normal(size=(4, 6, 2))
    out = rng.random((5, 6)) < 0.4
    out[:, 0] = True
    both = supervised.left_out_averages(log_weight, answer, out)
    own = supervised.own_average(log_weight, answer, out[:4])
    for i, trees in enumerate(np.flatnonzero(each) for each in out):
        for k in range(2):
            for r in range(4):
                assert both[i, r, k] == pytest.approx(oracle.average(log_weight[r], answer[r, :, k], trees))
            if i < 4:
                assert own[i, k] == pytest.approx(oracle.average(log_weight[i], answer[i, :, k], trees))


def by_loops(forest: Any, X: np.ndarray, level: float, shift: float = 0.0) -> list[Any]:
    """Intervals or sets of rows, each row on its own, masks first: of a table whose rows all calibrate.

    ``shift`` is added to the probabilities of the rows' own classes.
    """
    kept, model = forest._calibration, forest.joint_.distribution.forest
    is_number = not hasattr(forest, "classes_")
    centre = float(kept.y.mean()) if is_number else None

    def ask(cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        log_tree, answer = tree_answers(model, know_features(model.schema, cells[None]), 3, centre)
        return forest.beta_ * np.maximum(log_tree[0], -1e300), answer[0]

    found = []
    for x in X:
        within = [i for i in range(len(kept.y)) if not (np.isnan(kept.X[i]) & ~np.isnan(x)).any()]
        exact = len(within) >= supervised.FIXED.pattern_fewest_rows
        some = (
            within[: supervised.FIXED.pattern_rows] if exact else range(min(len(kept.y), supervised.FIXED.union_rows))
        )
        of_own, of_asked = [], []
        for i in some:
            trees = np.flatnonzero(kept.out_of_bag[i])
            mask = np.isnan(x) if exact else np.isnan(x) | np.isnan(kept.X[i])
            for cells, into in ((kept.X[i], of_own), (x, of_asked)):
                weight, answer = ask(np.where(mask, np.nan, cells))
                into.append([oracle.average(weight, answer[:, k], trees) for k in range(answer.shape[1])])
        y = [kept.y[i] for i in some]
        if is_number:
            spreads = [[math.sqrt(s - (m - centre) ** 2) for m, s in each] for each in (of_own, of_asked)]
            scores = [abs(v - own[0]) / s for v, own, s in zip(y, of_own, spreads[0], strict=True)]
            found.append(oracle.interval([a[0] for a in of_asked], spreads[1], scores, 1 - level))
        else:
            own = [each[int(v)] + shift for each, v in zip(of_own, y, strict=True)]
            found.append(oracle.label_set(of_asked, own, 1 - level))
    return found


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_beside_loops(missing: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that calibrate a pattern alone, and (with cells missing at learning) unions of patterns."""
    monkeypatch.setattr(supervised, "FIXED", replace(supervised.FIXED, pattern_fewest_rows=12, pattern_rows=15))
    rng = np.random.default_rng(1)
    X, y, label = rows(40, rng, missing)
    new, _, _ = rows(6, rng, 0.3)
    params = {**QUICK, "n_estimators": 8, "random_state": 0}
    reg = jf.GenerativeForestRegressor(**params).fit(X, y)
    clf = jf.GenerativeForestClassifier(**params).fit(X, label)
    low, high = reg.predict_interval(new, 0.8)
    np.testing.assert_allclose(np.column_stack([low, high]), by_loops(reg, new, 0.8), rtol=1e-6)
    likeliest = clf.predict_proba(new).argmax(axis=1)
    found = clf.predict_set(new, 0.8)
    low_, high_ = (np.array(by_loops(clf, new, 0.8, shift)) for shift in (1e-9, -1e-9))  # equal scores may be rounded
    assert (low_ == high_).mean() > 0.8
    expected = np.where(low_ == high_, low_, found)
    expected[np.arange(6), likeliest] = True
    np.testing.assert_array_equal(found, expected)


def test_second_moments_of_a_tree() -> None:
    """A forest of one tree without background: its own mean and variance."""
    X, y, _ = rows(80, np.random.default_rng(0))
    forest = jf.GenerativeForestRegressor(n_estimators=1, bootstrap=False, epsilon=0.0, random_state=0).fit(X, y)
    model = forest.joint_.distribution.forest
    X[:, 1] = np.nan
    evidence = know_features(model.schema, X)
    answer = tree_answers(model, evidence, 3, 0.7)[1][:, 0]
    mean, variance = mean_variance(model, evidence, 3)
    np.testing.assert_allclose(answer[:, 0], mean)
    np.testing.assert_allclose(answer[:, 1] - (answer[:, 0] - 0.7) ** 2, variance, atol=1e-9)


# -- coverage


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_intervals_cover(missing: float) -> None:
    """Over tables drawn anew; of all rows, and of those with each pattern, as the theory promises and not much more."""
    inside: dict[str, list[float]] = {}
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, y, _ = rows(200, rng, missing)
        new, wanted, _ = rows(100, rng)
        forest = jf.GenerativeForestRegressor(**QUICK, random_state=seed).fit(X, y)
        patterns = {"none": new.copy(), "first": new.copy(), "all": np.full_like(new, np.nan)}
        patterns["first"][:, 0] = np.nan
        for name, cells in patterns.items():
            low, high = forest.predict_interval(cells, 0.8)
            inside.setdefault(name, []).append(float(((low <= wanted) & (wanted <= high)).mean()))
    for name, shares in inside.items():
        error = np.std(shares, ddof=1) / np.sqrt(len(shares))
        assert 0.8 - 3 * error - 0.01 < np.mean(shares) < 0.9 + 3 * error, name


def test_sets_cover() -> None:
    shares, sizes = [], []
    for seed in range(15):
        rng = np.random.default_rng(seed)
        X, _, label = rows(200, rng, 0.1)
        new, _, wanted = rows(150, rng, 0.3)
        forest = jf.GenerativeForestClassifier(**QUICK, random_state=seed).fit(X, label)
        found = forest.predict_set(new, 0.8)
        shares.append(float(found[np.arange(150), wanted].mean()))
        sizes.append(found.sum(axis=1).mean())
    error = np.std(shares, ddof=1) / np.sqrt(len(shares))
    assert 0.8 - 3 * error - 0.01 < np.mean(shares) < 0.93
    assert 1.0 < np.mean(sizes) < 2.4


def test_covers_heavy_tails_that_no_feature_tells_of() -> None:
    """Five trees of single rows, a target without mean or variance: the promise does not ask for a good model."""
    shares = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, _, _ = rows(150, rng)
        forest = jf.GenerativeForestRegressor(
            **{**QUICK, "n_estimators": 5, "min_samples_leaf": 1, "random_state": seed}
        ).fit(X, rng.standard_cauchy(150))
        low, high = forest.predict_interval(rng.normal(size=(200, 3)), 0.9)
        wanted = rng.standard_cauchy(200)
        shares.append(float(((low <= wanted) & (wanted <= high)).mean()))
    assert 0.87 < np.mean(shares) < 0.98


# -- habits


def test_too_few_rows_give_no_bound() -> None:
    X, y, label = rows(8, np.random.default_rng(0))
    low, high = jf.GenerativeForestRegressor(**QUICK, random_state=0).fit(X, y).predict_interval(X, 0.9)
    assert (low == -math.inf).all() and (high == math.inf).all()
    assert jf.GenerativeForestClassifier(**QUICK, random_state=0).fit(X, label).predict_set(X, 0.9).all()


def test_levels_nest_and_threads_do_not_matter() -> None:
    rng = np.random.default_rng(0)
    X, y, label = rows(150, rng, 0.2)
    frame = pd.DataFrame(X, columns=list("abc")).assign(d=np.where(X[:, 0] > 0, "up", "down"))
    one, two = (jf.GenerativeForestRegressor(**{**QUICK, "n_jobs": k}, random_state=0).fit(frame, y) for k in (1, 3))
    low, _ = one.predict_interval(frame, 0.8)
    np.testing.assert_array_equal(low, two.predict_interval(frame, 0.8)[0])
    wider = one.predict_interval(frame[["d", "a"]], 0.9), one.predict_interval(frame[["d", "a"]], 0.7)
    assert (wider[0][0] <= wider[1][0]).all() and (wider[0][1] >= wider[1][1]).all()
    clf = jf.GenerativeForestClassifier(**QUICK, random_state=0).fit(frame, label)
    sets = clf.predict_set(frame, 0.95), clf.predict_set(frame, 0.7)
    assert (sets[0] >= sets[1]).all() and (sets[1].sum(axis=1) >= 1).all()
    assert sets[1][np.arange(150), clf.predict(frame)].all()


def test_constant_target_and_no_rows() -> None:
    X, _, _ = rows(60, np.random.default_rng(0))
    forest = jf.GenerativeForestRegressor(**QUICK, random_state=0).fit(X, np.full(60, 7.0))
    low, high = forest.predict_interval(X[:3], 0.8)
    np.testing.assert_allclose(low, 7.0, atol=0.05)
    np.testing.assert_allclose(high, 7.0, atol=0.05)


def test_taken_over_from_scikit_learn() -> None:
    from sklearn.ensemble import RandomForestRegressor

    rng = np.random.default_rng(0)
    X, y, _ = rows(150, rng)
    forest = RandomForestRegressor(20, min_samples_leaf=4, random_state=0).fit(X, y)
    ours = jf.GenerativeForestRegressor.from_forest(forest, X, y, conformal=True, min_spread=0.1, beta=0.0)
    new, wanted, _ = rows(300, rng)
    low, high = ours.predict_interval(new, 0.8)
    assert 0.7 < ((low <= wanted) & (wanted <= high)).mean() < 0.95
    alone = RandomForestRegressor(5, bootstrap=False, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="every tree was grown on all rows"):
        jf.GenerativeForestRegressor.from_forest(alone, X, y, conformal=True)


def test_what_is_refused() -> None:
    X, y, label = rows(40, np.random.default_rng(0))
    plain = jf.GenerativeForestClassifier(n_estimators=3, min_samples_leaf=1).fit(X, label)
    with pytest.raises(ValueError, match="set conformal=True before fit"):
        plain.predict_set(X)
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        plain.predict_set(X, 1.0)
    with pytest.raises(ValueError, match="bootstrap=True, and another leaf"):
        jf.GenerativeForestRegressor(conformal=True, bootstrap=False).fit(X, y)
    with pytest.raises(ValueError, match="in batches no row is out of bag"):
        jf.GenerativeForestRegressor(conformal=True).fit_batches(lambda: [], "y")
