"""Hidden trees of a factor analysis: code masses, marginals, dependence of few rows, missing cells."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import jointforest as jf
from jointforest.data.discretization.discretizer import codes_of
from jointforest.learners.hidden_tree import hidden_tree_forest
from jointforest.learners.hidden_tree.constants import FIXED
from jointforest.learners.hidden_tree.factors import Axis, fit_complete, n_factors, number_masses, with_marginal

LOADING = np.array([[0.9, 0.0], [0.8, 0.3], [0.0, 0.9], [-0.5, 0.7], [0.6, 0.6], [-0.8, 0.1]])


def table(n: int, seed: int) -> pd.DataFrame:
    """Rows of a known factor model, one column of which is skewed and one whole numbers, and a level that depends."""
    rng = np.random.default_rng(seed)
    noise = np.sqrt(1.0 - (LOADING**2).sum(axis=1))
    x = rng.standard_normal((n, 2)) @ LOADING.T + noise * rng.standard_normal((n, len(LOADING)))
    frame = pd.DataFrame(x, columns=list("abcdef"))
    frame["e"] = np.exp(frame["e"])
    frame["f"] = np.rint(10.0 * frame["f"])
    frame["kind"] = np.where(x[:, 0] + 0.3 * rng.standard_normal(n) > 0.0, "high", "low")
    return frame


def learned(frame: pd.DataFrame, **settings: object) -> jf.Joint:
    return jf.HiddenTreeForest(start="factors", random_state=0, n_jobs=1, **settings).fit(frame).joint_


def correlations(frame: pd.DataFrame) -> np.ndarray:
    return frame.drop(columns="kind").astype(float).corr(method="spearman").to_numpy()[np.triu_indices(6, 1)]


def test_masses_are_integrals_of_two_normals() -> None:
    axis = Axis(np.array([-np.inf, -1.0, -0.2, 0.1, 0.9, np.inf]), np.linspace(-1.5, 1.5, 5), 0.04)
    place, noise, marginal = np.array([-0.7, 0.0, 2.1]), 0.3, np.full(5, 0.2)
    mass = (number_masses(axis, place, noise, marginal) - FIXED.odd_numbers * marginal) / (1.0 - FIXED.odd_numbers)
    scale, odd = np.sqrt(noise + axis.inside), FIXED.wider_share
    for s, mean in enumerate(place.tolist()):
        for k in range(5):
            low, high = max(axis.edge[k], -15.0), min(axis.edge[k + 1], 15.0)
            near, far = (quad(norm(mean, scale * times).pdf, low, high)[0] for times in (1.0, FIXED.wider_times))
            wanted = (1.0 - odd) * near + odd * far
            assert mass[s, k] == pytest.approx(wanted, abs=1e-7)


def test_raked_masses_have_the_marginal() -> None:
    rng = np.random.default_rng(0)
    share, marginal = rng.dirichlet(np.ones(30)), rng.dirichlet(np.ones(6))
    found = with_marginal(rng.random((30, 6)), share, marginal)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    np.testing.assert_allclose(share @ found, marginal, rtol=1e-4)


def test_factors_of_many_rows_have_the_covariance_of_their_model() -> None:
    rng = np.random.default_rng(1)
    noise = 1.0 - (LOADING**2).sum(axis=1)
    X = rng.standard_normal((50_000, 2)) @ LOADING.T + np.sqrt(noise) * rng.standard_normal((50_000, 6))
    loading, found = fit_complete(X, np.ones(len(X)), n_factors(6, 2))
    wanted = LOADING @ LOADING.T
    off = ~np.eye(6, dtype=bool)
    np.testing.assert_allclose((loading @ loading.T)[off], wanted[off], atol=0.03)
    np.testing.assert_allclose(found, noise, atol=0.03)


@pytest.mark.parametrize("seed", [0, 1])
def test_draws_keep_correlations_of_few_rows(seed: int) -> None:
    rows, many = table(150, seed), table(50_000, 99)
    drawn = learned(rows, n_estimators=2).sample(20_000, random_state=0)
    noise = np.abs(correlations(rows) - correlations(many)).mean()
    assert np.abs(correlations(drawn) - correlations(rows)).mean() < 0.05
    assert np.abs(correlations(drawn) - correlations(many)).mean() < 1.2 * noise + 0.02
    known = np.abs(correlations(many)) > 0.2
    slope = correlations(drawn)[known] @ correlations(rows)[known] / (correlations(rows)[known] ** 2).sum()
    assert 0.9 < slope < 1.05


def test_draws_of_few_rows_keep_more_dependence_than_transition_tables() -> None:
    rows = table(150, 2)
    plain = jf.HiddenTreeForest(n_states=16, random_state=0, n_jobs=1).fit(rows).joint_
    error = [np.abs(correlations(joint.sample(20_000, random_state=0)) - correlations(rows)).mean()
             for joint in (learned(rows), plain)]  # fmt: skip
    assert error[0] < 0.8 * error[1]


def test_held_out_rows_are_no_less_likely_in_a_mixture_than_in_transition_tables_alone() -> None:
    rows, others = table(150, 3), table(2_000, 4)
    plain = jf.HiddenTreeForest(n_states=16, random_state=0, n_jobs=1).fit(rows).joint_
    both = jf.mix([plain, learned(rows, n_estimators=2)], [0.5, 0.5])
    assert both.log_density(others).mean() > plain.log_density(others).mean()


def test_draws_are_no_copies() -> None:
    rows, fresh = table(150, 5), table(150, 6)
    drawn = learned(rows).sample(150, random_state=0)
    spread = rows.drop(columns="kind").std().to_numpy()

    def nearest(others: pd.DataFrame) -> np.ndarray:
        far = [(frame.drop(columns="kind") / spread).to_numpy(float) for frame in (drawn, others)]
        return np.abs(far[0][:, None] - far[1][None]).sum(axis=2).min(axis=1)

    assert (nearest(rows) < nearest(fresh)).mean() < 0.68


def test_marginals_are_those_of_the_table() -> None:
    rows = table(200, 7)
    joint = learned(rows)
    hidden = joint.distribution.hidden
    for j, name in enumerate(rows.columns[:-1]):
        code = codes_of(hidden.scales[j], rows[name].to_numpy(float))[0]
        counted = (np.bincount(code, minlength=hidden.scales[j].n_codes) / len(rows)).cumsum()
        tree = hidden.trees[0]
        masses = tree.emission[0] if j == 0 else tree.transition[tree.node[j]]
        assert np.abs((tree.transition[0][0] @ masses).cumsum() - counted).max() < 0.03
    assert joint.given().proba("kind")["high"] == pytest.approx((rows["kind"] == "high").mean(), abs=0.005)


def test_log_density_is_the_sum_over_states() -> None:
    rows = table(120, 8)
    joint, some = learned(rows, n_states=40), table(10, 9)
    hidden = joint.distribution.hidden
    tree = hidden.trees[0]
    cells = some.assign(kind=(some["kind"] == "low") * 1.0).to_numpy(float)
    by_state, base = np.log(tree.transition[0][0].astype(float))[None].repeat(len(some), 0), 0.0
    for j in range(cells.shape[1]):
        code, inside = codes_of(hidden.scales[j], cells[:, j])
        masses = tree.emission[0] if j == 0 else tree.transition[tree.node[j]]
        by_state, base = by_state + np.log(masses[:, code].T), base + inside
    wanted = np.logaddexp.reduce(by_state, axis=1) + base
    np.testing.assert_allclose(joint.log_density(some), wanted, rtol=2e-5, atol=2e-4)


def test_missing_cells_keep_dependence_and_every_question(tmp_path: Path) -> None:
    rows = table(300, 10)
    hidden = rows.mask(np.random.default_rng(0).random(rows.shape) < 0.25)
    joint = learned(hidden, n_estimators=2)
    drawn = joint.sample(200_000, random_state=0)
    assert np.abs(correlations(drawn) - correlations(rows)).mean() < 0.07
    assert drawn.notna().all().all()
    with_missing = joint.sample(5_000, random_state=0, missing=True)
    np.testing.assert_allclose(with_missing.isna().mean(), hidden.isna().mean(), atol=0.03)
    assert np.isfinite(joint.log_density(hidden)).all()
    given = joint.given(a=1.5)
    far = drawn[(drawn["a"] - 1.5).abs() < 0.25]
    assert given.mean("b") == pytest.approx(far["b"].mean(), abs=0.1)
    assert given.proba("kind")["high"] == pytest.approx((far["kind"] == "high").mean(), abs=0.05)
    joint.save(tmp_path / "factors.jf")
    again = jf.load(tmp_path / "factors.jf")
    np.testing.assert_array_equal(again.log_density(hidden), joint.log_density(hidden))


def test_weights_count_as_rows() -> None:
    rows = table(200, 11)
    weight = np.where(rows["kind"] == "high", 3.0, 1.0)
    joint = jf.HiddenTreeForest(start="factors", random_state=0, n_jobs=1).fit(rows, sample_weight=weight).joint_
    assert joint.given().proba("kind")["high"] == pytest.approx(
        np.average(rows["kind"] == "high", weights=weight), abs=0.01
    )


def test_few_or_constant_or_categorical_columns_are_learned() -> None:
    rng = np.random.default_rng(0)
    for frame in (
        pd.DataFrame({"x": rng.standard_normal(60)}),
        pd.DataFrame({"x": rng.standard_normal(60), "one": 1.0}),
        pd.DataFrame({"x": rng.choice(list("ab"), 60), "y": rng.choice(list("cd"), 60)}),
        pd.DataFrame({"x": [1.0, 2.0], "y": [3.0, 5.0]}),
    ):
        joint = learned(frame)
        assert np.isfinite(joint.log_density(frame)).all()
        assert list(joint.sample(5, random_state=0).columns) == list(frame.columns)


def test_tables_of_many_batches_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = table(200, 13)
    monkeypatch.setattr(hidden_tree_forest, "FIXED", replace(FIXED, batch_rows=100))
    with pytest.raises(ValueError, match="start='factors' is for tables of few rows"):
        jf.HiddenTreeForest(start="factors").fit_batches(lambda: (rows[k : k + 50] for k in range(0, 200, 50)))


def test_the_same_seed_gives_the_same_tree() -> None:
    rows = table(700, 12)  # more rows than states
    first, second = learned(rows), learned(rows)
    np.testing.assert_array_equal(first.log_density(rows), second.log_density(rows))
    assert first.distribution.hidden.trees[0].n_states[0] == FIXED.states_of_factors
