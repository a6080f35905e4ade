"""New leaf values by expected loss, against least squares over all completions."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import jointforest as jf
from jointforest.inference import refit
from jointforest.inference.expectation.expectation import MatchedRows
from jointforest.inference.expectation.match import match_ensemble
from jointforest.inference.refit import complete, gather, pair_matrix, pair_product, refit_log_loss, refit_squared
from jointforest.runtime.threads import use_jobs

from ... import oracle
from ...random_cases.cells import make_evidence
from ...random_cases.ensembles import random_ensemble, random_rows
from ...random_cases.models import random_model, seeds

LEVELS = ("categorical", "boolean", "boolean")
DECAYS = st.sampled_from([0.0, 1e-3, 0.3])


class Case:
    """A random model of levels, an ensemble, rows with weights and targets, and all completions of these."""

    def __init__(self, seed, n=6, n_trees=3, link="identity", **options):
        rng = np.random.default_rng(seed)
        options = {"max_depth": 2, "kinds": LEVELS[: 2 + seed % 2], **options}
        self.model = random_model(seed, **options)
        n_outputs = {"logistic": 1, "softmax": 3}.get(link, 1 + seed % 2)
        self.ensemble = random_ensemble(rng, self.model, n_trees=n_trees, n_outputs=n_outputs, link=link)
        cells, rows, X, other = random_rows(rng, self.model, self.ensemble, n)
        self.rows = MatchedRows(make_evidence(cells), X, other)
        self.matched = match_ensemble(self.ensemble, self.model)
        self.y = rng.normal(size=(n, n_outputs))
        if link != "identity":
            self.y = np.eye(max(n_outputs, 2))[rng.integers(0, max(n_outputs, 2), n)][:, -n_outputs:]
        self.weight = rng.integers(0, 3, n) + rng.random(n)
        of, self.share, self.leaves = oracle.refit.completed(self.model, self.ensemble, rows, cells, self.weight)
        self.design = oracle.refit.design(self.leaves, len(self.ensemble.value))
        self.of, self.target = of, self.y[of] - self.ensemble.base
        self.mass = self.share @ self.design
        self.has_mass = self.mass > 1e-10 * self.weight.sum()

    def refit(self, method, decay=0.0):
        return refit_squared(self.matched, self.rows, self.y, method, decay, self.weight)

    def loss(self, value):
        return oracle.refit.squared_loss(self.design, self.target, self.share, value)


@settings(max_examples=30)
@given(seeds, DECAYS)
def test_bagging_is_least_squares_of_each_tree(seed, decay):
    case = Case(seed)
    value = case.refit("bagging", decay)
    for leaves in oracle.refit.tree_of_leaves(case.ensemble):
        theta = oracle.refit.least_squares(case.design[:, leaves], case.target, case.share, decay)
        kept = case.has_mass[leaves]
        np.testing.assert_allclose(3 * value[leaves][kept], theta[kept], atol=1e-10)


@settings(max_examples=30)
@given(seeds, DECAYS)
def test_forest_is_least_squares_of_all_trees(seed, decay):
    case = Case(seed)
    omega = 1 / 3 if seed % 3 else 1.0
    if seed % 3:
        case.matched = match_ensemble(case.ensemble._replace(library="test RandomForestRegressor"), case.model)
    value = case.refit("forest", decay)
    theta = oracle.refit.least_squares(case.design * omega, case.target, case.share, decay)
    kept = case.has_mass[:, None]
    np.testing.assert_allclose(
        case.loss(np.where(kept, value, 0)), case.loss(np.where(kept, theta * omega, 0)), rtol=1e-10
    )
    np.testing.assert_allclose(case.design @ (value * kept), case.design @ (theta * omega * kept), atol=1e-6)
    if decay > 0:
        np.testing.assert_allclose(value * kept, omega * theta * kept, atol=1e-10)
    else:
        assert case.loss(value) <= case.loss(case.refit("bagging")) + 1e-12


@settings(max_examples=30)
@given(seeds, DECAYS)
def test_boosting_is_least_squares_of_one_tree_after_the_other(seed, decay):
    case = Case(seed)
    value = case.refit("boosting", decay)
    rest = case.target
    for leaves in oracle.refit.tree_of_leaves(case.ensemble):
        kept = case.has_mass[leaves][:, None]
        theta = oracle.refit.least_squares(case.design[:, leaves], rest, case.share, decay) * kept
        np.testing.assert_allclose(value[leaves] * kept, theta, atol=1e-9)
        rest = rest - case.design[:, leaves] @ theta


@settings(max_examples=20)
@given(seeds)
@pytest.mark.parametrize("mixed", [0.0, 1.0])
def test_pairs(mixed, seed):
    case = Case(seed, mixed=mixed)
    sample = gather(case.matched, case.rows, case.y, case.weight)
    pairs = case.design.T @ (case.share[:, None] * case.design)
    np.testing.assert_allclose(use_jobs(1)(pair_matrix)(case.matched, sample), pairs, atol=1e-10)
    np.testing.assert_array_equal(
        use_jobs(1)(pair_matrix)(case.matched, sample), use_jobs(2)(pair_matrix)(case.matched, sample)
    )
    value = np.random.default_rng(seed).normal(size=case.ensemble.value.shape)
    np.testing.assert_allclose(use_jobs(1)(pair_product)(case.matched, sample, value), pairs @ value, atol=1e-10)


@settings(max_examples=15)
@given(seeds, DECAYS)
@pytest.mark.parametrize("method", ["forest", "boosting"])
def test_without_a_matrix(method, seed, decay):
    case = Case(seed)
    value = case.refit(method, decay)
    with patch.object(refit, "_MOST_LEAVES", 0):
        other = case.refit(method, decay)
    np.testing.assert_allclose(other, value, atol=1e-7 if decay == 0 else 1e-9)


@settings(max_examples=20)
@given(seeds)
def test_pairs_by_regions(seed):
    rng = np.random.default_rng(seed)
    model = random_model(seed, max_depth=2, n_trees=2)
    ensemble = random_ensemble(rng, model, n_trees=2, max_depth=2)
    cells, rows, X, other = random_rows(rng, model, ensemble, 3)
    n, matched = len(ensemble.value), match_ensemble(ensemble, model)
    sample = gather(matched, MatchedRows(make_evidence(cells), X, other), np.zeros((3, 1)), np.ones(3))
    pairs = np.zeros((n, n))
    for row, known in zip(rows, cells, strict=True):
        tests = [leaf for root in ensemble.root for leaf in oracle.expectation.leaf_tests(ensemble, root, row)]
        for a, to_a in tests:
            for b, to_b in tests:
                pairs[a, b] += oracle.expectation.probability(model, ensemble, to_a + to_b, known)
    np.testing.assert_allclose(pair_matrix(matched, sample), pairs, atol=1e-10)


def one_per_class(ensemble):
    """The ensemble with trees that add to one output each, as boosting has them."""
    value = ensemble.value.copy()
    for t, leaves in enumerate(oracle.refit.tree_of_leaves(ensemble)):
        value[np.ix_(leaves, np.arange(value.shape[1]) != t % value.shape[1])] = 0.0
    return ensemble._replace(value=value)


def log_loss(case, value, decay):
    """Expected log-loss of values, with the penalty, over all completions."""
    total = case.ensemble.base + case.design @ value
    if case.ensemble.link == "logistic":
        total = np.hstack([np.zeros_like(total), total])
        y = np.hstack([1 - case.y, case.y])[case.of]
    else:
        y = case.y[case.of]
    log_p = total - scipy.special.logsumexp(total, axis=1, keepdims=True)
    loss = -(case.share[:, None] * y * log_p).sum() / case.share.sum()
    return loss + 0.5 * decay * (value**2).sum()


def shares(case, value):
    """Probabilities of the outputs of all completions."""
    total = case.ensemble.base + case.design @ value
    return scipy.special.expit(total) if case.ensemble.link == "logistic" else scipy.special.softmax(total, axis=1)


@settings(max_examples=15)
@given(seeds, st.sampled_from([1e-2, 0.3]))
@pytest.mark.parametrize("link", ["logistic", "softmax"])
def test_forest_has_the_least_log_loss(link, seed, decay):
    case = Case(seed, link=link, n_trees=3)
    if seed % 4 > 1:
        case.ensemble = one_per_class(case.ensemble)
        case.matched = match_ensemble(case.ensemble, case.model)
    value = refit_log_loss(case.matched, case.rows, case.y, "forest", decay, case.weight)
    value = np.where(case.has_mass[:, None], value, 0.0)
    free = (case.ensemble.value != 0) & case.has_mass[:, None]
    assert (value[~free] == 0).all()

    slope = case.design.T @ (case.share[:, None] * (shares(case, value) - case.y[case.of])) / case.share.sum()
    np.testing.assert_allclose((slope + decay * value)[free], 0.0, atol=1e-9)  # enough, for the loss is convex


@settings(max_examples=15)
@given(seeds, st.sampled_from([0.0, 1e-2, 0.3]))
@pytest.mark.parametrize("link", ["logistic", "softmax"])
def test_boosting_takes_newton_steps(link, seed, decay):
    case = Case(seed, link=link, n_trees=3)
    case.ensemble = one_per_class(case.ensemble)
    case.matched = match_ensemble(case.ensemble, case.model)
    value = refit_log_loss(case.matched, case.rows, case.y, "boosting", decay, case.weight, m=4096)  # all completions
    seen, before = np.zeros(value.shape), log_loss(case, np.zeros(value.shape), 0.0)
    for t, leaves in enumerate(oracle.refit.tree_of_leaves(case.ensemble)):
        k = t % value.shape[1]
        p = shares(case, seen)[:, k]
        for leaf in (leaf for leaf in leaves if case.has_mass[leaf]):
            inside = case.share * case.design[:, leaf]
            slope = (inside * (p - case.y[case.of, k])).sum()
            bend = (inside * p * (1 - p)).sum() + decay * case.weight.sum()
            halvings = -np.log2(value[leaf, k] / (-slope / bend))
            assert abs(halvings - round(halvings)) < 1e-6 and halvings > -0.5
            seen[leaf] = value[leaf]
        after = log_loss(case, seen, 0.0)
        assert after <= before + 1e-9
        before = after


@pytest.mark.parametrize("mixed", [0.0, 0.7])
def test_completions_are_all_or_as_probable_as_they_should(mixed):
    for seed in range(4):
        case = Case(seed, link="logistic", mixed=mixed)
        sample = gather(case.matched, case.rows, case.y, case.weight)
        exact = complete(case.matched, sample, 128, 0)
        drawn = complete(case.matched, sample, 1, 0)  # a single one each
        n = len(case.ensemble.value)
        for got, target in ((exact.weight, case.share), (exact.target[:, 0], case.share * case.y[case.of, 0])):
            mass = oracle.refit.design(exact.leaf, n).T @ got
            np.testing.assert_allclose(mass, case.design.T @ target, atol=1e-10)
        np.testing.assert_allclose(drawn.weight.sum(), case.weight.sum())
        total = np.zeros(n)
        for draw in range(400):
            some = complete(case.matched, sample, 1, 1000 * draw)
            total += oracle.refit.design(some.leaf, n).T @ some.weight / 400
        np.testing.assert_allclose(total, case.mass, atol=0.2 * np.sqrt(case.weight.sum()))


def table(n=150, rate=0.3):
    """Features with missing cells, complete ones, and a number and a label that depend on them."""
    rng = np.random.default_rng(0)
    whole = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n), "c": rng.integers(0, 4, n).astype(float)})
    y = whole.a + (whole.c > 1) * whole.b + 0.1 * rng.normal(size=n)
    label = np.where(y > 0.5, "high", np.where(y < -0.5, "low", "mid"))
    return whole.mask(rng.random(whole.shape) < rate), whole, y.to_numpy(), label


def test_complete_rows_give_a_tree_its_own_values_back():
    _, X, y, label = table()
    joint = jf.AdversarialForest(n_estimators=3, random_state=0).fit(X).joint_
    for model, target in (
        (DecisionTreeRegressor(max_depth=4, random_state=0), y),
        (DecisionTreeClassifier(max_depth=4, random_state=0), label),
        (GradientBoostingRegressor(n_estimators=4, learning_rate=1.0, random_state=0), y),
    ):
        predictor = jf.ExpectedPredictor(model.fit(X, target), joint)
        again = predictor.refit(X, target)
        np.testing.assert_allclose(again._ensemble.value, predictor._ensemble.value, atol=1e-10)


def test_refitted_predictors():
    X, _, y, label = table()
    joint = jf.AdversarialForest(n_estimators=3, random_state=0).fit(X).joint_
    for model, target, methods in (
        (RandomForestRegressor(5, max_depth=3, random_state=0), y, ("bagging", "forest", "boosting")),
        (RandomForestClassifier(5, max_depth=3, random_state=0), label, ("bagging", "forest", "boosting")),
        (GradientBoostingClassifier(n_estimators=4, random_state=0), label, ("boosting", "forest")),
        (GradientBoostingClassifier(n_estimators=4, random_state=0), label == "high", ("boosting", "forest")),
    ):
        complete = X.notna().all(axis=1)
        predictor = jf.ExpectedPredictor(model.fit(X[complete], target[complete]), joint, n_draws=16)
        for method in methods:
            again = predictor.refit(X, target, 1e-3, method)
            assert again.predict(X).shape == (len(X),)
            twice = predictor.refit(pd.concat([X, X]), np.concatenate([target, target]), 1e-3, method)
            heavy = predictor.refit(X, target, 1e-3, method, np.full(len(X), 2.0))
            np.testing.assert_allclose(heavy._ensemble.value, again._ensemble.value, atol=1e-9)
            if model.__class__.__name__.startswith("Random"):
                np.testing.assert_allclose(twice._ensemble.value, again._ensemble.value, atol=1e-9)
        with pytest.raises(ValueError, match="method"):
            predictor.refit(X, target, method="stacking")


def test_errors():
    X, whole, y, label = table()
    joint = jf.AdversarialForest(n_estimators=3, random_state=0).fit(X).joint_
    forest = jf.ExpectedPredictor(RandomForestClassifier(2, max_depth=2).fit(whole, label), joint)
    with pytest.raises(ValueError, match="y: 1 of 150 entries are missing, the first in row 3"):
        forest.refit(X, [*label[:3], None, *label[4:]])
    with pytest.raises(ValueError, match="y: 'huge' is no class"):
        forest.refit(X, ["huge", *label[1:]])
    with pytest.raises(ValueError, match="one entry for each of the 150 rows"):
        forest.refit(X, label[1:])
    with pytest.raises(ValueError, match="weight_decay"):
        forest.refit(X, label, -1.0)
    with pytest.raises(ValueError, match="sample_weight"):
        forest.refit(X, label, sample_weight=np.zeros(150))
    boosted = jf.ExpectedPredictor(GradientBoostingClassifier(n_estimators=2).fit(whole, label), joint)
    with pytest.raises(ValueError, match="'bagging': the sklearn GradientBoostingClassifier adds up log-odds"):
        boosted.refit(X, label, method="bagging")
    with pytest.raises(ValueError, match="give a weight_decay"):
        boosted.refit(X, label, 0.0, method="forest")
    number = jf.ExpectedPredictor(DecisionTreeRegressor(max_depth=2).fit(whole, y), joint)
    with pytest.raises(ValueError, match="missing"):
        number.refit(X, np.where(y > 1, np.nan, y))
    with pytest.raises(ValueError, match="expected numbers"):
        number.refit(X, label)
    poisson = HistGradientBoostingRegressor(loss="poisson", max_iter=2).fit(whole, np.exp(y))
    with pytest.raises(ValueError, match="exponential of a sum"):
        jf.ExpectedPredictor(poisson, joint).refit(X, np.exp(y))


def test_rows_of_probability_zero_are_refused():
    model = random_model(12, kinds=("continuous", "categorical"), background=False, mixed=0.0)
    ensemble = random_ensemble(np.random.default_rng(0), model, n_trees=20)
    X = np.array([[1e9 if name == "c0" else np.nan for name in ensemble.names]])
    rows = MatchedRows(make_evidence([[1e9, None]]), X, np.zeros(X.shape, dtype=bool))
    with pytest.raises(ValueError, match="probability 0"):
        refit_squared(match_ensemble(ensemble, model), rows, np.zeros((1, 1)), "bagging")
    log_odds = match_ensemble(ensemble._replace(link="logistic"), model)
    with pytest.raises(ValueError, match="probability 0"):
        refit_log_loss(log_odds, rows, np.zeros((1, 1)), "boosting", 0.1)
