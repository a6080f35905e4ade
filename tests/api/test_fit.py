"""`jf.fit` end to end: what it chooses, what it says, seeds and threads, budgets, tables of all sorts, errors."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import jointforest as jf

pytestmark = pytest.mark.smoke  # runs on wheels


@pytest.fixture(scope="module")
def penguins() -> pd.DataFrame:
    return jf.datasets.load_penguins()


@pytest.fixture(scope="module")
def joint(penguins: pd.DataFrame) -> jf.Joint:
    return jf.fit(penguins, budget="fast", random_state=0)


def blocks(n: int, seed: int) -> pd.DataFrame:
    """Six independent pairs of columns; within a pair one nearly tells the other."""
    rng = np.random.default_rng(seed)
    frame = {}
    for k in range(6):
        level = rng.integers(0, 6, n)
        other = np.where(rng.random(n) < 0.95, level, rng.integers(0, 6, n))
        frame |= {f"a{k}": pd.Categorical.from_codes(level, list("abcdef")), f"b{k}": other}
    return pd.DataFrame(frame).astype({f"b{k}": "category" for k in range(6)})


def hidden_share(joint: jf.Joint) -> float:
    """The weight of candidates that learn hidden trees: a joint tree of one leaf has one with Chow-Liu leaves."""
    return sum(weight for name, weight in joint.fitted_by.chosen.items() if "adversarial" not in name)


def test_independent_blocks_want_a_hidden_tree() -> None:
    joint = jf.fit(blocks(3_000, 0), budget="fast", random_state=0)
    assert hidden_share(joint) == 1.0
    assert [part.kind for part in joint.distribution.components] != ["forest"]
    alone = jf.AdversarialForest(10, random_state=0).fit(blocks(3_000, 0)).joint_
    test = blocks(500, 1)
    assert joint.log_density(test).mean() > alone.log_density(test).mean() + 1.0
    # draws are told from the rows of middling tables
    forest, hidden = (
        next(one for one in joint.fitted_by.candidates if name in one.name) for name in ("adversarial", "hidden")
    )
    assert forest.told_apart < 0.6 < 0.8 < hidden.told_apart
    assert "told apart" in str(joint.fitted_by)
    assert f"{hidden.told_apart:.2f}" in str(joint.fitted_by)


def test_many_rows_in_a_hurry_learn_what_hidden_trees_learn_by_hand() -> None:
    frame = blocks(5_000, 0)[["a0", "b0", "a1"]]
    joint = jf.fit(frame, budget="fast", random_state=3)
    by_hand = jf.HiddenTreeForest(n_states=128, max_iter=3, random_state=3).fit(frame).joint_
    np.testing.assert_array_equal(joint.log_density(frame), by_hand.log_density(frame))
    assert joint.fitted_by.chosen == {"1 hidden tree of 128 states": 1.0}
    assert joint.fitted_by.candidates == ()
    assert "no other learner was tried" in str(joint.fitted_by)


def test_few_smooth_rows_want_a_forest_or_a_mixture(penguins: pd.DataFrame, joint: jf.Joint) -> None:
    assert hidden_share(joint) < 1.0
    rng = np.random.default_rng(0)
    order = rng.permutation(len(penguins))
    train, test = penguins.iloc[order[:250]], penguins.iloc[order[250:]]
    found = jf.fit(train, budget="fast", random_state=0).log_density(test).mean()
    assert found > jf.AdversarialForest(random_state=0).fit(train).joint_.log_density(test).mean() - 0.05


def test_the_report_says_what_was_compared_and_chosen(joint: jf.Joint) -> None:
    report = joint.fitted_by
    assert isinstance(report, jf.FitReport)
    assert sum(report.chosen.values()) == pytest.approx(1.0)
    assert set(report.chosen) <= {one.name for one in report.candidates}
    best = max(report.candidates, key=lambda one: one.log_density)
    text = str(report)
    assert best.name in text
    assert f"{best.log_density:.4f}" in text
    assert "344 rows, each held out once in 5 folds" in text
    assert report.left_out == ()


def test_a_mixture_is_that_of_its_members(penguins: pd.DataFrame, joint: jf.Joint) -> None:
    weights = joint.fitted_by.chosen.values()
    assert np.exp(joint.distribution.log_weight) == pytest.approx(list(weights))


def test_other_joints_were_fitted_by_nothing(joint: jf.Joint, tmp_path: object) -> None:
    assert joint.select("species", "sex").fitted_by is None
    assert jf.mix([joint]).fitted_by is None


def test_the_seed_decides_and_threads_do_not(penguins: pd.DataFrame, joint: jf.Joint) -> None:
    again = jf.fit(penguins, budget="fast", random_state=0, n_jobs=1)
    np.testing.assert_array_equal(again.log_density(penguins), joint.log_density(penguins))
    assert again.fitted_by.chosen == joint.fitted_by.chosen
    few = penguins[["species", "body_mass_g"]].iloc[::4]
    zero, one = (jf.fit(few, budget="fast", random_state=seed).log_density(few) for seed in (0, 1))
    assert not np.array_equal(zero, one)


def test_a_budget_too_short_gives_the_best_so_far(penguins: pd.DataFrame) -> None:
    with pytest.warns(UserWarning, match=r"budget=1e-06 was too short: left out .*hidden tree.*, 3.. of 344 rows"):
        joint = jf.fit(penguins, budget=1e-6, random_state=0)
    assert list(joint.fitted_by.chosen.values()) == [1.0]
    assert len(joint.fitted_by.left_out) == 4
    assert np.isfinite(joint.log_density(penguins)).all()


def test_seconds_that_are_enough_leave_nothing_out(penguins: pd.DataFrame) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        joint = jf.fit(penguins[["species", "body_mass_g"]].iloc[::8], budget=39_999, random_state=0)
    assert joint.fitted_by.left_out == ()


def test_a_holdout_judges(penguins: pd.DataFrame) -> None:
    train, test = penguins.iloc[::2], penguins.iloc[1::2]
    joint = jf.fit(train, budget="fast", holdout=test, random_state=0)
    report = joint.fitted_by
    assert "172 rows of holdout" in report.held_out
    alone = {one.name: one.log_density for one in report.candidates}
    if len(report.chosen) == 1:  # learned from all rows but once: the joint is the one that was judged
        assert joint.log_density(test).mean() == pytest.approx(alone[next(iter(report.chosen))])
    else:
        assert joint.log_density(test).mean() > max(v for name, v in alone.items() if name != "mixture")


def test_verbose_tells_and_ends_with_the_headline(penguins: pd.DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    jf.fit(penguins.iloc[:100], budget="fast", random_state=0, verbose=True)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("adversarial forest: validation log-density -")
    assert any(line.startswith("chosen: ") for line in lines)
    assert "told apart" in lines[-1]


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_frames_of_all_libraries(library: str, joint: jf.Joint) -> None:
    frame = jf.datasets.load_penguins(library)
    mine = jf.fit(frame, budget="fast", random_state=0)
    found, expected = (
        # a joint tree splits levels in their order
        {one.name: one.log_density for one in of.fitted_by.candidates if one.name != "joint tree"}
        for of in (mine, joint)
    )
    assert found == pytest.approx(expected, abs=0.1)  # levels in another order may change a choice between near equals
    assert type(mine.sample(2, random_state=0)) is type(frame)
    assert type(joint.sample(2, random_state=0)) is pd.DataFrame


def test_dates_missing_cells_and_kinds() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=80)
    frame = pd.DataFrame(
        {
            "x": x,
            "count": rng.poisson(2, 80).astype(float),
            "when": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 100, 80), "D"),
            "flag": x > 0,
            "same": 1.0,
        }
    )
    frame.loc[:20, "x"] = np.nan
    joint = jf.fit(frame, budget="fast", kinds={"count": "categorical"}, random_state=0)
    assert joint.kinds["count"] == "categorical"
    assert np.isfinite(joint.log_density(frame)).all()
    assert joint.given(x=2.0).proba("flag")[True] > 0.7


@pytest.mark.parametrize(
    "X",
    [
        np.ones((1, 1)),
        np.array([[1.5, 2.5]]),
        np.ones((30, 2)),
        np.arange(4.0).reshape(2, 2),
        np.arange(12.0).reshape(6, 2),
        np.array([[1e140, 0.0], [-1e140, 1.0], [0.0, np.nan], [1e-140, 5.0]]),
    ],
    ids=["one cell", "one row", "equal rows", "two rows", "six rows", "huge and tiny"],
)
def test_tiny_tables(X: np.ndarray) -> None:
    joint = jf.fit(X, budget="fast", random_state=0)
    assert np.isfinite(joint.log_density(X)).all()
    assert joint.sample(3, random_state=0).shape == (3, X.shape[1])


@pytest.mark.parametrize("n", [1, 2, 3])
def test_next_to_no_rows_warn_of_no_parameter_that_nobody_gave(n: int, penguins: pd.DataFrame) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="min_samples_leaf")
        assert len(jf.fit(penguins.head(n), budget="fast", random_state=0).schema.columns) == 7


def test_a_column_with_one_known_cell_and_levels_seen_once() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=40), "name": [f"level {k}" for k in range(40)], "rare": [np.nan] * 40})
    frame.loc[17, "rare"] = 3.5
    joint = jf.fit(frame, budget="fast", random_state=0)
    assert np.isfinite(joint.log_density(frame)).all()
    assert all(np.isfinite(one.log_density) for one in joint.fitted_by.candidates)


@pytest.mark.parametrize(
    ("frame", "settings", "message"),
    [
        (np.empty((0, 2)), {}, "no rows"),
        (np.empty((3, 0)), {}, "no columns"),
        (np.array([[1.0], [np.inf]]), {}, "inf"),
        (np.full((3, 1), np.nan), {}, "all cells are missing"),
        (np.array([[1e200], [1.0]]), {}, "too large"),
        (np.ones((3, 1)), {"budget": "cheap"}, "budget must be"),
        (np.ones((3, 1)), {"random_state": -1}, "random_state"),
        (np.ones((3, 1)), {"n_jobs": 0}, "n_jobs"),
        (np.ones((3, 1)), {"kinds": {"nothing": "integer"}}, "nothing"),
        (np.ones((3, 1)), {"holdout": np.empty((0, 1))}, "holdout: the table has no rows"),
        (pd.DataFrame({"a": [1, 2]}), {"holdout": pd.DataFrame({"b": [1]})}, "holdout: there is no column 'a'"),
    ],
)
def test_errors_say_what_is_wrong(frame: object, settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        jf.fit(frame, **settings)


def test_the_objective_reaches_hidden_trees() -> None:
    """Few learned rows have each value, and half of the new rows have such values."""
    random = np.random.default_rng(0)
    values = random.choice(random.choice(10**6, 6_000, replace=False), 10_000)
    frame = pd.DataFrame({"x": values, "side": np.where(random.random(10_000) < 0.5, "a", "b")})
    rows, new = frame[:5_000], frame[5_000:]
    draws, likelihood = (
        jf.fit(rows, objective=objective, budget="fast", kinds={"x": "integer"}, random_state=0)
        for objective in ("draws", "likelihood")
    )
    assert likelihood.log_density(new).mean() > draws.log_density(new).mean() + 0.3
    with pytest.raises(ValueError, match="objective must be one of 'draws', 'likelihood', got 'nats'"):
        jf.fit(rows, objective="nats")


@pytest.mark.parametrize(("rule", "has_forests"), [("low <= high", False), ("a <-> b", True)])
def test_forests_are_no_candidates_where_rules_add_numbers(rule: str, has_forests: bool) -> None:
    rng = np.random.default_rng(0)
    low, a = rng.integers(0, 50, 120), rng.integers(0, 3, 120)
    frame = pd.DataFrame({"low": low, "high": low + rng.integers(0, 9, 120), "a": a, "b": np.array(list("uvw"))[a]})
    report = jf.fit(frame, budget="fast", rules=[rule], random_state=0).fitted_by
    assert report is not None
    assert ("adversarial forest" in [one.name for one in report.candidates]) == has_forests
