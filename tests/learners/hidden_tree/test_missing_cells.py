"""Learning from rows with missing cells: the joint of complete rows, and beside it which cells are missing."""

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.learners.hidden_tree.complete import completed, fit_factors
from jointforest.learners.hidden_tree.structure import CodeTable, code_columns

N = 3_000
CORRELATION = 2.25 / (2.25 + 2 / 3)  # of columns 3 z + u with a shared coin z and u uniform on 0, 1, 2


def complete(seed: int, d: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 2, N)
    return pd.DataFrame({f"x{j}": 3.0 * z + rng.integers(0, 3, N) for j in range(d)})


def hide(frame: pd.DataFrame, rate: float, how: str, seed: int) -> pd.DataFrame:
    """Cells missing completely at random, or with odds that depend on the last column, which stays known."""
    rng = np.random.default_rng([seed, 1])
    if how == "MCAR":
        return frame.mask(rng.random(frame.shape) < rate)
    share = np.where(frame.iloc[:, -1] >= 3, 1.5 * rate, 0.5 * rate)
    hidden = rng.random(frame.shape) < share[:, None]
    hidden[:, -1] = False
    return frame.mask(hidden)


def learn(frame: pd.DataFrame, seed: int) -> jf.Joint:
    return jf.HiddenTreeForest(random_state=seed, rules="off").fit(frame).joint_


@pytest.mark.parametrize("how", ["MCAR", "MAR"])
@pytest.mark.parametrize(("d", "rate"), [(2, 0.3), (2, 0.6), (4, 0.3), (4, 0.6)])
def test_dependence_is_that_of_complete_rows(d: int, rate: float, how: str) -> None:
    """A tenth of the pairs is known at least, so that a correlation has a standard error of .03 or less."""
    joint = learn(hide(complete(d, d), rate, how, d), d)
    drawn = joint.sample(20_000, random_state=0).corr().to_numpy()[np.triu_indices(d, 1)]
    assert drawn.min() > 0.9 * CORRELATION and drawn.max() < 1.08 * CORRELATION
    assert joint.given("x0 = 5").mean("x1") == pytest.approx(4.0, abs=0.2)
    assert joint.given("x0 = 1").mean("x1") == pytest.approx(1.0, abs=0.2)


@pytest.mark.parametrize("seed", range(3))
def test_levels_and_numbers_missing_at_random(seed: int) -> None:
    """P(level | number) of rows of which 40 % of the cells are missing, against the truth."""
    rng = np.random.default_rng(seed)
    g = rng.choice(4, N, p=[0.4, 0.3, 0.2, 0.1])
    x = 4.0 * g + rng.normal(size=N)
    h = np.where(rng.random(N) < 0.8, g, rng.integers(0, 4, N))
    frame = pd.DataFrame({"g": np.array(list("abcd"))[g], "x": x, "h": np.array(list("pqrs"))[h]}).astype(
        {"g": object, "h": object}
    )
    joint = learn(frame.mask(rng.random(frame.shape) < 0.4), seed)
    for k, level in enumerate("abcd"):
        assert joint.probability(f"g = {level}") == pytest.approx([0.4, 0.3, 0.2, 0.1][k], abs=0.03)
        assert joint.given(f"g = {level}").mean("x") == pytest.approx(4.0 * k, abs=0.45)
        assert joint.given(f"g = {level}").probability(f"h = {'pqrs'[k]}") == pytest.approx(0.85, abs=0.1)


def table_with_gaps(n: int = 4_000) -> pd.DataFrame:
    """a and b miss cells together; c more often where g is "q"; d anywhere."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.normal(size=n) for name in "abcd"}).assign(g=rng.choice(["p", "q"], n))
    together = rng.random(n) < 0.2
    frame.loc[together, ["a", "b"]] = np.nan
    frame.loc[rng.random(n) < np.where(frame["g"] == "q", 0.5, 0.1), "c"] = np.nan
    frame.loc[rng.random(n) < 0.15, "d"] = np.nan
    return frame


@pytest.mark.parametrize("leaves", [1, 3])
def test_missing_cells_are_drawn_as_often_as_in_the_table(leaves: int) -> None:
    frame = table_with_gaps()
    joint = jf.HiddenTreeForest(n_states=8, max_leaf_nodes=leaves, rules="off", random_state=0).fit(frame).joint_
    drawn = joint.sample(40_000, random_state=0, missing=True)
    assert (drawn["a"].isna() == drawn["b"].isna()).all()
    for name in "abcd":
        assert drawn[name].isna().mean() == pytest.approx(frame[name].isna().mean(), abs=0.01)
        assert joint.probability(f"{name} is missing") == pytest.approx(frame[name].isna().mean(), abs=0.01)
    for level in "pq":
        share = frame.loc[frame["g"] == level, "c"].isna().mean()
        assert drawn.loc[drawn["g"] == level, "c"].isna().mean() == pytest.approx(share, abs=0.03)
        assert joint.given(g=level).probability("c is missing") == pytest.approx(share, abs=0.03)
        assert joint.given("c is missing").proba("g")[level] == pytest.approx(
            (frame.loc[frame["c"].isna(), "g"] == level).mean(), abs=0.03
        )


def test_values_do_not_depend_on_which_cells_are_missing() -> None:
    """Nodes of missing cells hang below columns, so that the joint of complete rows is the same without them."""
    frame = table_with_gaps(1_000)
    joint = jf.HiddenTreeForest(n_states=8, rules="off", random_state=0).fit(frame).joint_
    rows = frame.dropna()
    tree = joint.distribution.hidden.trees[0]
    at = tree.missing_at[list(tree.node.values())]
    of_missing = np.unique(at[tree.column[at] < 0])
    assert len(of_missing) == 2 and not np.isin(tree.parent[tree.column >= 0], of_missing).any()
    alone = joint.select("a", "c", "g")
    some = rows[["a", "c", "g"]]
    assert np.allclose(alone.log_density(some), joint.log_density(some.assign(b=np.nan, d=np.nan)))
    assert alone.probability("c is missing") == pytest.approx(joint.probability("c is missing"), abs=1e-6)


@pytest.mark.parametrize("is_number", [False, True])
@pytest.mark.parametrize("n_trees", [1, 4])
def test_a_rare_code_keeps_what_it_says_of_missing_cells(n_trees: int, is_number: bool) -> None:
    """Cells that few rows of one code miss are missing for that code alone, though many states share these rows."""
    rng = np.random.default_rng(0)
    is_rare = np.isin(np.arange(1_000), rng.permutation(1_000)[:12])
    group = rng.integers(0, 6, 1_000)
    frame = pd.DataFrame({f"x{i}": np.round(group * rng.normal() + rng.normal(size=1_000), 2) for i in range(8)})
    frame["late"] = np.where(is_rare, np.nan, np.round(rng.normal(size=1_000), 2))
    frame["state"] = is_rare.astype(int) if is_number else np.where(is_rare, "off", "on")
    joint = jf.HiddenTreeForest(n_trees, rules="off", random_state=0).fit(frame).joint_
    rare, usual = ("state = 1", "state = 0") if is_number else ("state = 'off'", "state = 'on'")
    assert joint.query(f"P(late is missing | {rare})") > 0.95
    assert joint.query(f"P(late is missing | {usual})") < 0.001
    assert joint.query(f"P({rare} | late is not missing)") < 0.001
    drawn = joint.sample(20_000, random_state=0, missing=True)
    assert drawn.loc[drawn["state"].isin(["off", 1]), "late"].isna().mean() > 0.9


@pytest.mark.parametrize("learner", ["fit", "hidden trees"])
@pytest.mark.parametrize("kind", ["numbers", "dates"])
def test_cells_that_are_missing_below_a_limit_of_another_column(kind: str, learner: str) -> None:
    rng = np.random.default_rng(0)
    age = rng.integers(0, 90, 1_000)
    income = np.where(age < 18, np.nan, rng.lognormal(10.0, 0.5, 1_000).round())
    born = pd.Timestamp("2020-01-01") + pd.to_timedelta(30 * age, "D")
    frame = pd.DataFrame({"age": age if kind == "numbers" else born, "income": income, "x": rng.normal(size=1_000)})
    if learner == "fit":
        joint = jf.fit(frame, budget="fast", random_state=0)
    else:
        joint = jf.HiddenTreeForest(random_state=0).fit(frame).joint_
    low = "age < 18" if kind == "numbers" else "age < '2021-06-24'"  # 18 times 30 days after the first day
    assert joint.query(f"P(income is missing | {low})") > 0.93
    assert joint.query(f"P(income is missing | not {low})") < 0.02
    assert joint.query(f"P({low} | income is not missing)") < 0.02
    assert joint.query(f"P({low})") == pytest.approx(np.mean(age < 18), abs=0.01)


def test_what_is_known_of_one_column_says_which_cells_of_others_are_missing() -> None:
    """By evidence, by a conditioned joint and in draws, as in a group-by; without an effect on values."""
    rng = np.random.default_rng(0)
    d = rng.integers(0, 90, N).astype(float)
    together = rng.random(N) < 0.2
    frame = pd.DataFrame({"d": d, "t": d + rng.integers(0, 30, N), "u": rng.normal(size=N)})
    for name, share in (("d", 0.95), ("t", 0.9), ("u", 0.8)):
        frame.loc[together & (rng.random(N) < share), name] = np.nan
    joint = learn(frame, 0)
    late = frame[frame["d"] >= 60]
    given, conditioned = joint.given("d >= 60"), joint.condition("d >= 60")
    for name in ("t", "u"):
        share = late[name].isna().mean()
        assert given.probability(f"{name} is missing") == pytest.approx(share, abs=0.02)
        assert conditioned.probability(f"{name} is missing") == pytest.approx(share, abs=0.02)
        for asked in (given, conditioned, joint.given(pd.DataFrame({"d": [70.0, 80.0]}))):
            drawn = asked.sample(5_000, random_state=0, missing=True)
            assert drawn[name].isna().mean() == pytest.approx(share, abs=0.03)
        apart = frame.loc[frame["d"].isna(), name].isna().mean()
        assert joint.given("d is missing").probability(f"{name} is missing") == pytest.approx(apart, abs=0.03)
    assert given.probability("d is missing") == 0.0
    assert conditioned.given().mean("t") == pytest.approx(given.mean("t"), rel=1e-6)
    assert len(joint.given(pd.DataFrame({"d": [70.0, 80.0]})).sample(0, missing=True)) == 0


def test_levels_that_are_all_rare_are_drawn() -> None:
    """No level has a feature, so that a missing cell is drawn from the marginal."""
    frame = pd.DataFrame({"id": [f"r{k}" for k in range(700)] * 2, "x": np.arange(1_400) % 7})
    frame.loc[::35, "id"] = None
    joint = jf.HiddenTreeForest(n_states=4, kinds={"id": "categorical"}, random_state=0).fit(frame[["id"]]).joint_
    assert joint.sample(500, random_state=0)["id"].isin(frame["id"].dropna()).all()


def test_complete_tables_have_no_missing_probabilities() -> None:
    joint = learn(complete(0, 3), 0)
    assert not joint.distribution.hidden.trees[0].blank
    assert joint.probability("x0 is missing") == 0.0


def test_codes_that_are_drawn_have_the_dependence_and_the_levels_of_the_known_ones() -> None:
    rng = np.random.default_rng(0)
    n = 6_000
    x = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], n)
    g = (x[:, 0] + rng.normal(size=n) > 1.5).astype(int) * rng.integers(1, 3, n)
    truth = np.column_stack([*np.digitize(x, np.linspace(-2, 2, 19)).T, g])
    n_codes = np.array([20, 20, 3])
    is_missing = rng.random(truth.shape) < 0.3
    codes = np.where(is_missing, n_codes, truth)
    columns = code_columns(CodeTable(codes, n_codes, np.array([True, True, False])))
    drawn = completed(codes, columns, np.random.default_rng(1))
    assert np.array_equal(drawn[~is_missing], truth[~is_missing])
    assert completed(drawn, columns, rng) is drawn
    both = is_missing[:, 0] | is_missing[:, 1]
    assert np.corrcoef(drawn[both, :2].T)[0, 1] == pytest.approx(np.corrcoef(truth[both, :2].T)[0, 1], abs=0.05)
    lost = is_missing[:, 2]
    np.testing.assert_allclose(
        np.bincount(drawn[lost, 2], minlength=3) / lost.sum(), np.bincount(g, minlength=3) / n, atol=0.03
    )


def test_factors_have_the_covariance_of_known_features() -> None:
    """Against the covariance of a factor model that made the rows, of which half of the cells are missing."""
    rng = np.random.default_rng(2)
    loading = np.array([[0.9, 0.0], [0.8, 0.3], [0.0, 0.9], [0.1, -0.8], [0.5, 0.5]])
    noise = 1.0 - (loading**2).sum(axis=1)
    X = rng.normal(size=(20_000, 2)) @ loading.T + rng.normal(size=(20_000, 5)) * np.sqrt(noise) + 0.3
    known = (rng.random(X.shape) < 0.5).astype(np.float32)
    centre, found, left = fit_factors(X * known, known, np.ones(len(X)), 2, rng)
    np.testing.assert_allclose(centre, 0.3, atol=0.05)
    np.testing.assert_allclose(found @ found.T + np.diag(left), loading @ loading.T + np.diag(noise), atol=0.06)
