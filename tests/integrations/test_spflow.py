"""Forests as circuits of SPFlow: the circuit with modules of our own that sum and multiply, and what is refused.

SPFlow itself, which needs torch, is asked by ``benchmarks/spflow_densities.py``.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import truncnorm, uniform

import jointforest as jf
from jointforest.data.frames import encode
from jointforest.integrations.spflow import circuit
from jointforest.models.box_forest.merge import merge

PENGUINS = jf.datasets.load_penguins()
NUMBERS = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]
KINDS = dict.fromkeys(NUMBERS, "continuous")


def column_density(X, column, name, *parameters):
    """Log-densities (n, channels) of one column, 0 where it is missing."""
    x = X[:, column, None]
    if name == "categorical":
        (mass,) = parameters
        with np.errstate(divide="ignore"):
            found = np.log(mass.T[np.nan_to_num(X[:, column]).astype(int)])
    elif name == "uniform":
        lo, hi = parameters
        found = np.where((x > lo) & (x <= hi), uniform.logpdf(x, lo, hi - lo), -np.inf)
    else:
        loc, scale, lo, hi = parameters
        found = truncnorm.logpdf(x, (lo - loc) / scale, (hi - loc) / scale, loc, scale)
    return np.where(np.isnan(x), 0.0, found)


def plain_modules(X):
    """What `circuit` asks for, as log-densities (n, channels) of the rows X."""

    def mixture(inputs, log_weight):
        assert np.isclose(np.exp(log_weight).sum(), 1)
        return logsumexp(np.hstack(inputs) + log_weight, axis=1, keepdims=True)

    def product_of(inputs):
        return np.sum(inputs, axis=0)

    def product(distributions):
        return product_of([column_density(X, *distribution) for distribution in distributions])

    return SimpleNamespace(mixture=mixture, product=product, product_of=product_of)


LEARNERS = {
    "normal": jf.AdversarialForest(3, leaf="normal", epsilon=0, kinds=KINDS, random_state=0),
    "quantile": jf.AdversarialForest(2, leaf="quantile", epsilon=0, kinds=KINDS, random_state=0),
    "joint tree": jf.JointTree(min_samples_leaf=20, epsilon=0, kinds=KINDS, random_state=0),
    "LearnSPN": jf.GenerativeForestClassifier(
        2, leaf="spn", min_samples_leaf=80, epsilon=0, kinds=KINDS, random_state=0
    ),
}


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_sums_and_products_have_the_joints_log_densities(name, missing):
    rows = PENGUINS.dropna().reset_index(drop=True)
    learner = LEARNERS[name]
    joint = (learner.fit(rows.drop(columns="sex"), rows["sex"]) if name == "LearnSPN" else learner.fit(rows)).joint_
    rows = rows.mask(np.random.default_rng(0).random(rows.shape) < missing)
    X, _ = encode(joint.schema, rows)
    found = circuit(joint.distribution.forest_for("this"), plain_modules(X))[:, 0]
    np.testing.assert_allclose(found, joint.log_density(rows), rtol=1e-9, atol=1e-9)


@pytest.mark.filterwarnings("ignore:the joint has lost")
def test_products_that_come_after_other_leaves_keep_their_weights():
    rows = PENGUINS.dropna().reset_index(drop=True)
    trees = [jf.JointTree(leaf=leaf, min_samples_leaf=60, epsilon=0, kinds=KINDS) for leaf in ("quantile", "normal")]
    forests = [tree.fit(rows).joint_.distribution.forest_for("this") for tree in trees]
    forest = merge(forests, np.log([0.3, 0.7]))
    is_product = np.diff(forest.leaves.node_start) == 0
    assert not is_product[0] and is_product[-1]
    X, _ = encode(forest.schema, rows)
    each = [np.exp(circuit(one, plain_modules(X))[:, 0]) for one in (*forests, forest)]
    np.testing.assert_allclose(each[2], 0.3 * each[0] + 0.7 * each[1], rtol=1e-9)


def test_levels_alone_may_have_a_background():
    rows = PENGUINS[["species", "island", "sex"]]
    joint = jf.AdversarialForest(3, random_state=0).fit(rows).joint_
    found = circuit(joint.distribution.forest_for("this"), plain_modules(encode(joint.schema, rows)[0]))[:, 0]
    np.testing.assert_allclose(found, joint.log_density(rows), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("learner", "words"),
    [
        (jf.JointTree(epsilon=0), r"column 'bill_length_mm': a grid of 0\.1"),
        (jf.JointTree(kinds=KINDS), "column 'bill_length_mm': SPFlow has no Student t.*epsilon=0"),
        (jf.HiddenTreeForest(n_states=4, n_estimators=1), "a circuit of SPFlow needs a joint that is one forest"),
    ],
)
def test_what_has_no_counterpart(learner, words):
    joint = learner.fit(PENGUINS).joint_
    with pytest.raises(ValueError, match=words):
        joint.to_spflow()


def test_without_spflow(monkeypatch):
    joint = jf.JointTree(random_state=0).fit(PENGUINS[["species", "island"]]).joint_
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "jointforest.integrations.spflow_modules", raising=False)
    with pytest.raises(ImportError, match=r"pip install 'jointforest\[spflow\]'"):
        joint.to_spflow()
