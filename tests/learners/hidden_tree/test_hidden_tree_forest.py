"""Hidden tree forests as an estimator: what is learned, hard tables, weights, frames, scikit-learn's checks."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

import jointforest as jf
from jointforest.models.hidden_tree.files import check_hidden
from jointforest.runtime.warnings import UnseenLevelWarning, UnsupportedEvidenceWarning

from ...test_bad_tables import GOOD, assert_answers


def learn(frame: Any, sample_weight: Any = None, **settings: Any) -> jf.Joint:
    settings = {"n_states": 8, "random_state": 0} | settings
    return jf.HiddenTreeForest(**settings).fit(frame, sample_weight=sample_weight).joint_


@cache
def table(n: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    x = rng.normal(size=n)
    return pd.DataFrame(
        {
            "x": x,
            "k": rng.integers(0, 50, n),
            "c": np.where(x > 0, "a", "b"),
            "d": pd.date_range("2020", periods=n),
            "b": x + 0.3 * rng.normal(size=n) > 0.3,
        }
    )


# -- what is learned


def test_columns_that_hang_together_are_learned_together() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(size=2_000)
    frame = pd.DataFrame({"x": z + 0.1 * rng.normal(size=2_000), "y": z, "c": np.where(z > 1, "high", "low")})
    joint = learn(frame, n_states=32)
    assert joint.given(c="high").mean("x") == pytest.approx(frame["x"][frame["c"] == "high"].mean(), abs=0.1)
    drawn = joint.sample(4_000, random_state=0)
    assert drawn["x"].corr(drawn["y"]) > 0.95
    apart = sum(learn(frame[[name]]).log_density(frame[[name]]).mean() for name in frame)
    assert joint.log_density(frame).mean() > apart + 1.0


def test_few_rows_keep_the_dependence_of_columns_that_are_not_neighbours() -> None:
    """Two causes of eight columns: seven pairs are neighbours in the tree, and the others depend on each other, too."""
    slope = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        cause, noise = rng.normal(size=(400, 2)), rng.normal(size=(400, 8))
        angle = np.linspace(0.0, np.pi, 8)
        X = cause @ np.array([np.cos(angle), np.sin(angle)]) + 0.8 * noise
        joint = jf.HiddenTreeForest(random_state=seed, n_jobs=1).fit(pd.DataFrame(X, columns=list("abcdefgh"))).joint_
        tree = joint.distribution.hidden.trees[0]
        is_far = ~np.eye(8, dtype=bool)
        for column, above in zip(tree.column[1:], tree.column[tree.parent[1:]], strict=True):
            is_far[column, above] = is_far[above, column] = False
        drawn = joint.sample(4_000, random_state=0).to_numpy()
        wanted, found = np.corrcoef(X.T)[is_far], np.corrcoef(drawn.T)[is_far]
        slope.append(wanted @ found / (wanted @ wanted))
    assert np.mean(slope) > 0.7


def test_point_masses_keep_their_probability() -> None:
    """Claims are rare, and most amounts are 0: pseudo-rows of normals must not take from these values."""
    rng = np.random.default_rng(0)
    n = 8_000
    risk = rng.normal(size=n)
    claims = rng.poisson(0.05 * np.exp(0.5 * risk))
    amount = np.where(rng.random(n) < 0.6, 0.0, np.round(rng.lognormal(3.0 + 0.5 * risk, 1.0), 2))
    frame = pd.DataFrame({"risk": risk, "claims": claims, "amount": amount, "age": rng.integers(18, 80, n)})
    given = jf.HiddenTreeForest(n_states=64, max_leaf_nodes=1, random_state=0).fit(frame).joint_.given()
    for value in (0, 1):
        assert given.probability({"claims": value}) == pytest.approx(np.mean(claims == value), abs=0.001)
    assert given.probability({"amount": 0.0}) == pytest.approx(np.mean(amount == 0.0), abs=0.002)


def test_the_seed_alone_decides() -> None:
    frame = table()
    first = learn(frame, n_jobs=1, n_estimators=2)
    np.testing.assert_array_equal(learn(frame, n_jobs=3, n_estimators=2).log_density(frame), first.log_density(frame))
    other = learn(frame, random_state=1, n_estimators=2)
    assert not np.array_equal(other.log_density(frame), first.log_density(frame))
    a, b, *_ = first.distribution.components[0].hidden.trees
    assert not np.array_equal(a.emission[0], b.emission[0])


@pytest.mark.parametrize(
    "settings",
    [{"max_iter": 0}, {"n_states": 1}, {"n_states": 4096}, {"n_bins": 2}, {"n_bins": 4096}, {"smoothing": 0}],
)
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_settings_at_their_ends(settings: dict[str, Any]) -> None:
    joint = learn(table(), **settings)
    check_hidden(joint.distribution.components[0].hidden)
    assert_answers(joint, table())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_states": 0}, "n_states must be 'auto' or a whole number between 1 and 4096"),
        ({"n_bins": 1}, "n_bins must be 'auto' or a whole number between 2"),
        ({"n_estimators": 0}, "n_estimators must be a whole number at least 1"),
        ({"start": "warm"}, "start must be one of 'auto', 'shared', 'local'"),
        ({"objective": "nats"}, "objective must be one of 'draws', 'likelihood'"),
        ({"smoothing": -1}, "smoothing must be 'auto' or a number at least 0"),
        ({"max_iter": -1}, "max_iter must be .auto. or a whole number"),
        ({"kinds": {"z": "integer"}}, "there is no column 'z'"),
        ({"kinds": {"x": "real"}}, "'real' is no kind of column"),
    ],
)
def test_wrong_settings_are_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        learn(table(), **settings)


# -- tables


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("name", GOOD)
def test_hard_tables(name: str) -> None:
    joint = learn(GOOD[name])
    check_hidden(joint.distribution.components[0].hidden)
    assert_answers(joint, GOOD[name])


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_few_rows_choose_for_themselves() -> None:
    assert_answers(learn(table().head(20), n_states="auto"), table().head(20))


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame({"x": [1.0, np.inf]}), "'x'.*infinite"),
        (pd.DataFrame({"x": [np.nan, np.nan], "gone": [None, None]}), "'gone'.*all cells are missing"),
        (pd.DataFrame({"x": [1e300, 1.0]}), "'x'.*too large.*divide"),
        (pd.DataFrame({"x": [1e-300, 2e-300]}), "'x'.*multiply"),
        (pd.DataFrame({"x": np.empty(0)}), "no rows"),
    ],
    ids=str,
)
def test_tables_that_cannot_be_learned(frame: pd.DataFrame, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        learn(frame)


def test_every_kind_of_frame_gives_one_joint() -> None:
    frame = table()
    density = learn(frame).log_density(frame)
    np.testing.assert_array_equal(learn(pl.from_pandas(frame)).log_density(frame), density)
    np.testing.assert_array_equal(learn(pa.Table.from_pandas(frame)).log_density(frame), density)
    nullable = frame.convert_dtypes().astype({"c": "string[pyarrow]"})
    np.testing.assert_array_equal(learn(nullable).log_density(nullable), density)
    assert isinstance(learn(pl.from_pandas(frame)).sample(3, random_state=0), pl.DataFrame)
    numbers = frame[["x", "k"]].to_numpy()
    assert learn(numbers).sample(3, random_state=0).shape == (3, 2)


def test_missing_cells_of_every_kind() -> None:
    rng = np.random.default_rng(3)
    frame = table().convert_dtypes()
    holes = frame.mask(rng.random(frame.shape) < 0.2)
    joint = learn(holes)
    assert np.isfinite(joint.log_density(holes)).all()
    assert joint.impute(holes).notna().all().all()
    drawn = joint.sample(2_000, missing=True, random_state=0)
    assert drawn.isna().mean().to_numpy() == pytest.approx(holes.isna().mean().to_numpy(), abs=0.05)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("n_levels", [1_000, 10_000])
def test_thousands_of_levels(n_levels: int) -> None:
    rng = np.random.default_rng(0)
    k = np.r_[np.arange(n_levels), rng.integers(0, n_levels, 2_000)]
    frame = pd.DataFrame(
        {"c": np.array([f"level {i}" for i in range(n_levels)])[k], "x": k % 7 + 0.1 * rng.random(len(k))}
    )
    joint = learn(frame)
    assert np.isfinite(joint.log_density(frame)).all()
    probability = joint.given(x=3.0).proba("c")
    assert len(probability) == n_levels and sum(probability.values()) == pytest.approx(1.0)
    if n_levels == 1_000:  # with one row a level there is nothing to be learned of them
        assert sum(p for level, p in probability.items() if int(level.split()[1]) % 7 == 3) > 0.5
    assert set(joint.sample(100, random_state=0)["c"]) <= set(frame["c"])


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_more_columns_than_rows() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(size=(50, 1))
    x = z + rng.normal(size=(50, 80))
    x[rng.random(x.shape) < 0.05] = np.nan
    frame = pd.DataFrame(x, columns=[f"v{j}" for j in range(80)])
    joint = learn(frame)
    density = joint.log_density(frame)
    assert np.isfinite(density).all()
    np.testing.assert_allclose(joint.log_density(frame[frame.columns[::-1]]), density, rtol=1e-12)
    assert joint.impute(frame).notna().all().all()


# -- weights


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.full(200, -1.0), "got -1.0 in row 0"),
        (np.full(200, np.nan), "got nan in row 0"),
        (np.r_[1.0, np.inf, np.ones(198)], "got inf in row 1"),
        (np.zeros(200), "every weight is zero"),
        (np.ones(199), r"shape \(200,\)"),
    ],
)
def test_wrong_weights_are_refused(weight: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=f"sample_weight.*{message}"):
        learn(table(), weight)


def test_only_the_ratios_of_weights_count() -> None:
    frame = table()
    density = learn(frame).log_density(frame)
    for size in (1.0, 1e300, 1e-300, 5e-324):
        np.testing.assert_allclose(learn(frame, np.full(200, size)).log_density(frame), density, rtol=1e-12)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_rows_of_weight_0_are_not_learned() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"c": rng.choice(["a", "b"], 400), "x": rng.normal(size=400)})
    frame.loc[frame["c"] == "b", "x"] += 10.0
    joint = learn(frame, (frame["c"] == "a").astype(float))
    assert joint.given().proba("c")["a"] > 0.95
    assert joint.given().mean("x") < 1.0
    one = learn(frame, np.eye(400)[7])
    assert np.isfinite(one.log_density(frame)).all()


# -- questions far from the table


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("value", [1e5, -1e15, 1e100, 1e300, -1e305, 5e-324])
def test_far_values(value: float) -> None:
    joint, frame = _joint(), table()
    for name in ("x", "k"):
        rows = frame.iloc[:3].astype({"k": float})
        rows[name] = value
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            assert np.isfinite(joint.log_density(rows)).all()
            posterior = joint.given(rows.drop(columns="c"))
            assert np.isfinite(posterior.log_probability).all()
            assert posterior.proba("c").sum(axis=1) == pytest.approx(np.ones(3))
            assert not posterior.supported.any() or abs(value) < 1.0


def test_evidence_far_beyond_the_table_is_warned_of() -> None:
    joint, top = _joint(), float(table()["x"].max())
    with pytest.warns(UnsupportedEvidenceWarning, match="unlike anything learned"):
        joint.given(x=top + 1e3).proba("c")
    with pytest.warns(UnsupportedEvidenceWarning, match="unlike anything learned"):
        joint.given(f"x > {top + 1e3}").proba("c")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for known in (f"x > {top - 0.1}", f"x <= {top + 1e3}", f"x = {top + 0.01}", f"x = {top}"):
            assert joint.given(known).supported
            joint.given(known).proba("c")
    assert joint.given(table()).supported.all()


def test_unseen_levels_absent_columns_and_no_rows() -> None:
    joint, frame = _joint(), table()
    rows = frame.iloc[:4].assign(c=["a", "new", "b", "newer"])
    with pytest.warns(UnseenLevelWarning, match="'c': 'new', 'newer'"):
        density = joint.log_density(rows)
    missing = joint.log_density(rows.assign(c=None))
    assert density[[1, 3]] == pytest.approx(missing[[1, 3]] - np.log(201))
    assert joint.log_density(pd.DataFrame(index=range(3))) == pytest.approx(np.zeros(3))
    none = frame.iloc[:0]
    assert joint.log_density(none).shape == (0,)
    assert joint.impute(none).shape == (0, 5)
    assert joint.given(none).proba("c").shape == (0, 2)
    assert joint.predict(none, "c").shape == (0,)
    assert joint.sample(0, random_state=0).shape == (0, 5)


@cache
def _joint() -> jf.Joint:
    return learn(table())


# -- as a joint, and as an estimator


def test_what_it_says_of_itself(tmp_path) -> None:
    frame = table()
    joint = learn(frame, n_estimators=2)
    assert repr(joint) == "Joint(5 columns: x, k, c, d, ...; 3 hidden trees of 8 states)"  # the second has two leaves
    assert (joint.n_trees, joint.n_leaves, joint.n_states, joint.epsilon) == (3, 0, 8, 0.0)
    assert joint.info()["components"] == [{"kind": "hidden trees", "weight": 1.0, "trees": 3, "states": 8}]
    assert joint.given(c="a").supported and joint.given(c="a").background_weight == 0.0
    forest = jf.AdversarialForest(n_estimators=3, random_state=0).fit(frame).joint_
    both = jf.mix([forest, joint], [3, 1])
    assert repr(both).endswith(f"3 trees, {forest.n_leaves} leaves + 3 hidden trees of 8 states)")
    assert (both.n_trees, both.n_leaves, both.n_states) == (6, forest.n_leaves, 8)
    each = np.array([forest.log_density(frame), joint.log_density(frame)])
    np.testing.assert_allclose(both.log_density(frame), np.logaddexp(*(each + np.log([[0.75], [0.25]]))), rtol=1e-12)
    both.save(tmp_path / "both.joint")
    again = jf.load(tmp_path / "both.joint")
    assert repr(again) == repr(both)
    np.testing.assert_array_equal(again.log_density(frame), both.log_density(frame))
    pd.testing.assert_frame_equal(again.sample(20, random_state=0), both.sample(20, random_state=0))


def test_clones_and_names() -> None:
    learner = jf.HiddenTreeForest(n_states=4, kinds={"k": "continuous"}, random_state=0)
    assert clone(learner).get_params() == learner.get_params()
    learner.fit(table())
    assert list(learner.feature_names_in_) == ["x", "k", "c", "d", "b"] and learner.n_features_in_ == 5
    assert learner.joint_.kinds["k"] == "continuous"
    assert not hasattr(clone(learner), "joint_")


@pytest.mark.parametrize(("n", "given", "passes"), [(100, "auto", 8), (62_500, "auto", 8), (100_000, "auto", 5),
                                                    (10**7, "auto", 2), (10**7, 8, 8), (100, 0, 0)])  # fmt: skip
def test_passes_over_many_rows(n: int, given: str | int, passes: int) -> None:
    assert jf.HiddenTreeForest(max_iter=given)._passes(n) == passes


@pytest.mark.parametrize(("n", "states"), [(5_000, 384), (8_191, 384), (8_192, 256)])
def test_more_states_where_leaves_would_have_too_few(n: int, states: int) -> None:
    frame = pd.DataFrame({"x": np.arange(n) % 7, "y": np.arange(n) % 5})
    learner = jf.HiddenTreeForest(max_iter=0, random_state=0).fit(frame)
    assert learner.settings_.n_states == states
    assert jf.HiddenTreeForest(n_states=9, max_iter=0).fit(frame).settings_.n_states == 9


@pytest.mark.parametrize(("leaves", "passes", "full"), [(1, 8, 2), (2, 8, 4), (2, 6, 3), (1, 3, 1)])
def test_passes_over_all_rows_at_the_end(leaves: int, passes: int, full: int) -> None:
    frame = pd.DataFrame({"x": np.arange(5_000) % 7, "y": np.arange(5_000) % 5})
    learner = jf.HiddenTreeForest(n_states=2, max_leaf_nodes=leaves, max_iter=passes, random_state=0).fit(frame)
    assert learner.settings_.full == full


def test_likelihood_knows_values_that_recur() -> None:
    """Half of the new rows have values that few learned rows have: their mass is learned, and the dependence, too."""
    random = np.random.default_rng(0)
    possible = random.choice(10**6, 6_000, replace=False)
    level = random.integers(0, 3, 10_000)
    other = np.where(random.random(10_000) < 0.8, level, random.integers(0, 3, 10_000))
    frame = pd.DataFrame({"id": random.choice(possible, 10_000), "a": level, "b": other}).astype({"a": str, "b": str})
    rows, new = frame[:5_000], frame[5_000:]
    draws, likelihood = (
        jf.HiddenTreeForest(objective=objective, random_state=0, kinds={"id": "integer"}).fit(rows)
        for objective in ("draws", "likelihood")
    )
    assert draws.settings_.n_states == 384
    check_hidden(likelihood.joint_.distribution.components[0].hidden)
    found = likelihood.joint_.log_density(new).mean()
    known = new["id"].isin(rows["id"]).mean()
    pairs = pd.crosstab(new["a"], new["b"], normalize=True).to_numpy()
    best = (pairs * np.log(pairs)).sum() + known * np.log(known / rows["id"].nunique())
    best += (1 - known) * np.log((1 - known) / 10**6)
    assert found > draws.joint_.log_density(new).mean() + 0.3
    assert best - 0.3 < found < best + 0.05


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_levels_with_values_beyond_a_gap_keep_them(scale: float, missing: float) -> None:
    """The smoothing of a state does not reach beyond a gap, however far the next values are in ranks."""
    rng = np.random.default_rng(0)
    room = rng.choice(["suite", "single", "double"], 900, p=[0.05, 0.5, 0.45])
    rate = np.where(room == "suite", rng.uniform(300, 319, 900), rng.normal(110, 15, 900).clip(60, 159)) * scale
    frame = pd.DataFrame({"room": room, "rate": np.where(rng.random(900) < missing, np.nan, rate)})
    joint = learn(frame, n_estimators=4, n_states=64)
    assert joint.given(room="suite").mean("rate") == pytest.approx(frame.rate[room == "suite"].mean(), rel=0.03)
    assert joint.given(rate=jf.between(300 * scale, None)).proba("room")["suite"] > 0.97


@pytest.mark.parametrize("n", [200, 1000])
@pytest.mark.parametrize("is_chosen", [False, True])
def test_one_far_value_leaves_the_other_answers_right(n: int, is_chosen: bool) -> None:
    rng = np.random.default_rng(n)
    z = rng.integers(0, 3, n)
    frame = pd.DataFrame({"amount": (rng.gamma(2, 50, n) * (1 + z)).round(2), "z": np.array(list("abc"))[z]})
    frame["y"] = (rng.normal(size=n) + z).round(2)
    frame.loc[7, "amount"] = 99999.0
    joint = jf.fit(frame, budget="fast", random_state=0) if is_chosen else learn(frame, n_estimators=4, n_states=16)
    last = frame.amount.nlargest(2).iloc[1]
    rest = frame.amount[frame.amount <= last]
    usual = joint.given(amount=jf.between(None, 10 * last))  # the tail, too
    assert usual.mean("amount") == pytest.approx(rest.mean(), abs=0.25 * rest.std() / np.sqrt(n))
    assert usual.std("amount") == pytest.approx(rest.std(), rel=0.03)
    assert joint.given().mean("amount") == pytest.approx(frame.amount.mean(), rel=0.03)
    assert joint.given().std("amount") == pytest.approx(frame.amount.std(), rel=0.03)
    assert joint.probability({"amount": jf.between(10 * last, 9e4)}) < 0.05 / n
    assert joint.probability({"amount": jf.between(9e4, 1.1e5)}) == pytest.approx(1 / n, rel=0.1)
    for other in set("abc") - {frame.z[7]}:  # whose rows do not have it: off by less than if a tenth of a row had it
        rows = frame.amount[frame.z == other]
        assert joint.given(z=other).mean("amount") == pytest.approx(rows.mean(), abs=0.1 * 99999.0 / len(rows))


@pytest.mark.parametrize(
    "learn", [jf.HiddenTreeForest(random_state=0), jf.HiddenTreeForest(4, n_states=128, random_state=0)]
)
def test_means_of_a_small_table_given_a_group_are_those_of_the_rows(learn):
    """Many states of few rows do not pull the means of groups towards the mean of all rows."""
    for seed in range(2):
        rng = np.random.default_rng(seed)
        age = rng.uniform(20, 70, 1000).round()
        frame = pd.DataFrame({"age": age, "level": rng.lognormal(0.025 * age - 0.6, 0.35).round(2)})
        joint = learn.fit(frame).joint_
        for low in (20, 30, 40, 50, 60):
            rows = frame.level[(age >= low) & (age < low + 10)]
            mean = joint.given(f"age >= {low} and age < {low + 10}").mean("level")
            assert abs(mean - rows.mean()) < rows.std() / len(rows) ** 0.5
