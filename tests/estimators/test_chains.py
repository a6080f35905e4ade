"""Draws of an imputer: slopes and spread are kept, intervals cover, donors are observed cells, rules hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import RidgeCV

import jointforest as jf
from jointforest.estimators.chained import (
    _RIDGE,
    average_means,
    cell_means,
    coding_of,
    follow_chain,
    learn_chain,
    ridge,
)
from jointforest.estimators.imputer import bootstrap

pytestmark = pytest.mark.smoke  # runs on wheels

COARSE = jf.JointTree(leaf="quantile", max_depth=1, random_state=0)


def normals(n: int, seed: int) -> pd.DataFrame:
    """y = a + b + noise of variance 1; a and b correlated by 1/2."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    b = 0.5 * a + np.sqrt(0.75) * rng.normal(size=n)
    return pd.DataFrame({"a": a, "b": b, "y": a + b + rng.normal(size=n)})


def slopes(table: Any) -> np.ndarray:
    Z = np.column_stack([np.ones(len(table)), table[["a", "b"]].to_numpy(float)])
    return np.asarray(np.linalg.lstsq(Z, table["y"].to_numpy(float), rcond=None)[0][1:])


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_slopes_are_kept_where_the_joint_flattens_them() -> None:
    """The standard error of a slope of the complete rows is 1 / sqrt(1200 * 0.75) = 0.03."""
    frame = normals(1200, 0)
    masked = frame.mask(np.random.default_rng(1).random(frame.shape) < 0.25)
    flat = jf.HiddenTreeForest(n_states=2, n_jobs=1, random_state=0)
    drawn = flat.fit(masked).joint_.impute(masked, "sample", 4, 0)
    assert np.mean([slopes(table) for table in drawn]) < 0.9
    for proper in (False, True):
        kept = jf.JointImputer(flat, m=4, proper=proper, random_state=0).fit(masked).impute(masked)
        np.testing.assert_allclose(np.mean([slopes(table) for table in kept], axis=0), 1.0, atol=0.1)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("learner", [COARSE, jf.HiddenTreeForest(n_states=4, smoothing=30, n_jobs=1, random_state=0)])
def test_draws_are_centred_and_spread_as_a_known_joint_says(learner: Any) -> None:
    """A hidden y given a and b is normal around a + b with variance 1; 600 of 1200 are hidden, five draws each."""
    frame = normals(1200, 3)
    masked = frame.copy()
    masked.loc[::2, "y"] = np.nan
    drawn = jf.JointImputer(learner, m=5, random_state=0).fit(masked).impute(masked)
    apart = np.concatenate([(table["y"] - frame["a"] - frame["b"])[::2] for table in drawn])
    assert apart.mean() == pytest.approx(0.0, abs=0.15)
    assert apart.std() == pytest.approx(1.0, abs=0.1)
    assert abs(np.corrcoef(apart, np.tile(frame["a"][::2], 5))[0, 1]) < 0.1


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("proper", [False, True])
def test_pooled_intervals_cover_what_is_true(proper: bool) -> None:
    """Means 0 and slopes 1 of 16 samples of 100 rows: 80 intervals of 95 %."""
    covered = []
    for seed in range(16):
        frame = normals(100, seed)
        masked = frame.mask(np.random.default_rng(seed + 100).random(frame.shape) < 0.2)
        tables = jf.JointImputer(COARSE, m=5, proper=proper, random_state=0).fit(masked).impute(masked)
        found = []
        for table in tables:
            Z = np.column_stack([np.ones(100), table[["a", "b"]]])
            beta = slopes(table)
            noise = table["y"].to_numpy() - table["y"].mean() - (Z[:, 1:] - Z[:, 1:].mean(axis=0)) @ beta
            square = (noise @ noise / 97 * np.diag(np.linalg.inv(Z.T @ Z)))[1:]
            found.append(([*table.mean(), *beta], [*(table.var() / 100), *square]))
        pooled = jf.pool(*zip(*found, strict=True), df=97)
        true = np.array([0.0, 0.0, 0.0, 1.0, 1.0])
        covered += ((pooled.low <= true) & (true <= pooled.high)).tolist()
    assert np.mean(covered) > 0.9


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_levels_are_drawn_as_a_known_joint_says() -> None:
    """c is u with probability 0.8 where z is p, and 0.3 where it is q."""
    rng = np.random.default_rng(0)
    z = rng.choice(["p", "q"], 2000)
    c = np.where(rng.random(2000) < np.where(z == "p", 0.8, 0.3), "u", "v")
    masked = pd.DataFrame({"z": z, "c": c})
    masked.loc[:999, "c"] = None
    learner = jf.HiddenTreeForest(n_states=4, n_jobs=1, random_state=0)
    drawn = pd.concat([table[:1000] for table in jf.JointImputer(learner, random_state=0).fit(masked).impute(masked)])
    share = (drawn["c"] == "u").groupby(drawn["z"]).mean()
    assert share["p"] == pytest.approx(0.8, abs=0.06) and share["q"] == pytest.approx(0.3, abs=0.06)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("proper", [False, True])
def test_enforced_rules_hold_in_drawn_tables_and_known_cells_stay(proper: bool) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 9, 400), rng.integers(0, 7, 400)
    frame = pd.DataFrame({"a": a, "b": b, "t": a + b, "x": np.round(a + rng.normal(size=400), 1)})
    frame["k"] = np.where(frame["x"] > 4, "high", "low")
    masked = frame.mask(rng.random(frame.shape) < 0.3)
    learner = jf.HiddenTreeForest(n_states=4, rules=["t = a + b"], n_jobs=1, random_state=0)
    imputer = jf.JointImputer(learner, m=2, proper=proper, random_state=0).fit(masked)
    for table in imputer.impute(masked):
        assert (table["t"] == table["a"] + table["b"]).all()
        assert table["x"].isin(masked["x"]).all() and table["k"].isin(["high", "low"]).all()
        for name in frame:
            assert (table[name] == masked[name])[masked[name].notna()].all()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_rules_hold_that_the_joints_of_bootstraps_do_not_find() -> None:
    """A found equation needs 100 rows; the table has 113 of them, a bootstrap about 70."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 40, 140)
    frame = pd.DataFrame({"a": a, "b": 3 * a + 2, "x": np.round(a + rng.normal(size=140), 1)})
    masked = frame.mask(rng.random(frame.shape) < 0.1)
    learner = jf.HiddenTreeForest(n_states=4, n_jobs=1, random_state=0)
    imputer = jf.JointImputer(learner, m=2, proper=True, random_state=0).fit(masked)
    enforced = [[rule.is_enforced for rule in joint.rules] for joint in (imputer.joint_, *imputer.joints_)]
    assert enforced == [[True], [], []]
    for table in imputer.impute(masked):
        assert (table["b"] == 3 * table["a"] + 2).all()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_chains_learn_from_some_rows_of_a_large_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 100 donors only those among 80 of the 200 rows are used."""
    monkeypatch.setattr("jointforest.estimators.imputer._ROWS", 80)
    frame = normals(200, 0)
    masked = frame.copy()
    masked.loc[::2, "y"] = np.nan
    tables = jf.JointImputer(COARSE, m=20, random_state=0).fit(masked).impute(masked)
    drawn = {value for table in tables for value in table["y"][::2]}
    assert drawn <= set(masked["y"].dropna()) and 20 < len(drawn) < 60


def test_ridge_is_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    for n, p, K in [(12, 3, 1), (80, 20, 1), (25, 40, 3), (300, 6, 4)]:
        D = rng.normal(size=(n, p))
        y, weight = D[:, :1] + rng.normal(size=(n, K)), rng.integers(1, 4, n).astype(float)
        peer = RidgeCV(_RIDGE).fit(D, y, sample_weight=weight)
        slopes_found, constant = ridge(D, y, weight)
        np.testing.assert_allclose(slopes_found, np.atleast_2d(peer.coef_), atol=1e-10)
        np.testing.assert_allclose(constant, peer.intercept_, atol=1e-10)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_other_rows_are_filled_with_observed_cells() -> None:
    """Rows that were not learned from: cells of donors; what is known stays, levels never seen, too."""
    rng = np.random.default_rng(0)
    frame = normals(200, 0).assign(c=pd.Categorical(rng.choice(list("uv"), 200)))
    imputer = jf.JointImputer(COARSE, m=2, proper=True, random_state=0).fit(frame)
    new = normals(50, 1).assign(c=["w"] * 5 + ["u"] * 45)
    new.loc[:9, "a"] = np.nan
    new.loc[20:29, "c"] = None
    for filled in imputer.impute(new):
        assert filled["a"][:10].isin(frame["a"]).all() and filled["c"][20:30].isin(["u", "v"]).all()
        assert (filled["a"][10:] == new["a"][10:]).all() and (filled["y"] == new["y"]).all()
        assert filled["c"].astype(str)[:5].tolist() == ["w"] * 5
    assert imputer.impute(frame)[0].equals(frame)


def test_a_line_is_followed() -> None:
    """y = 3 - 2 x without noise: a missing y is one of the five observed ones that are nearest in x."""
    x = np.random.default_rng(0).normal(size=100)
    cells = np.column_stack([x, 3.0 - 2.0 * x])
    start = cells.copy()
    cells[::4, 1] = np.nan
    start[::4, 1] = 0.0
    schema = jf.JointTree().fit(pd.DataFrame(start, columns=["x", "y"])).joint_.schema
    coding = coding_of(schema, cells)
    nothing = {j: np.zeros((100, 1)) for j in range(2)}
    chain = learn_chain(coding, cells, start, nothing, np.ones(100), np.random.default_rng(0))
    unseen = np.zeros(cells.shape, dtype=bool)
    drawn = follow_chain(coding, chain, cells, unseen, start, nothing, np.random.default_rng(1))[::4, 1]
    donors = np.delete(cells[:, 1], np.arange(0, 100, 4))
    for value, wanted in zip(drawn, 3.0 - 2.0 * x[::4], strict=True):
        assert value in donors[np.argsort(np.abs(donors - wanted))[:5]]


def test_levels_are_drawn_as_often_as_they_are() -> None:
    """A column that nothing tells of: its drawn levels are as frequent as its known ones (predictions tie)."""
    rng = np.random.default_rng(0)
    cells = np.column_stack([np.ones(4000), (rng.random(4000) < 0.3).astype(float)])
    cells[2000:, 1] = np.nan
    frame = pd.DataFrame({"one": np.ones(4), "c": pd.Categorical(list("uvuv"))})
    coding = coding_of(jf.JointTree().fit(frame).joint_.schema, cells)
    nothing = {0: np.zeros((4000, 1)), 1: np.zeros((4000, 1))}
    start = np.nan_to_num(cells)
    chain = learn_chain(coding, cells, start, nothing, np.ones(4000), rng)
    drawn = follow_chain(coding, chain, cells, np.zeros(cells.shape, dtype=bool), start, nothing, rng)[2000:, 1]
    assert drawn.mean() == pytest.approx(np.nanmean(cells[:2000, 1]), abs=0.05)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_joints_say() -> None:
    """The joints' own predictions, without the cell; levels that a joint never saw have probability 0 there."""
    frame = normals(120, 0).assign(c=["u", "v", "w"] * 40)
    whole = COARSE.fit(frame).joint_
    part = COARSE.fit(frame[frame["c"] != "v"]).joint_
    asked = {0: np.arange(120), 3: np.arange(120)}
    means = cell_means([whole, part], whole.schema, frame, asked)
    some = cell_means([whole, part], whole.schema, frame, {0: np.array([3, 7])})[0]
    np.testing.assert_array_equal(some[:, [3, 7]], means[0][:, [3, 7]])
    assert np.isnan(np.delete(some, [3, 7], axis=1)).all()
    np.testing.assert_allclose(means[0][0, :, 0], whole.predict(frame, "a"))
    np.testing.assert_allclose(means[3][0], whole.predict_proba(frame, "c"))
    assert (means[3][1, :, 1] == 0.0).all()
    np.testing.assert_allclose(means[3][1][:, [0, 2]], part.predict_proba(frame, "c"))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("proper", [False, True])
def test_chains_hear_what_joints_say(proper: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Proper draws: those that did not draw the row; else the only joint."""
    frame = normals(60, 0)
    heard = []

    def listen(coding: Any, cells: Any, start: Any, posterior_means: dict, *rest: Any) -> Any:
        heard.append(posterior_means)
        return learn_chain(coding, cells, start, posterior_means, *rest)

    monkeypatch.setattr("jointforest.estimators.imputer.learn_chain", listen)
    imputer = jf.JointImputer(COARSE, m=3, proper=proper, random_state=5).fit(frame)
    imputer.impute(frame)
    counts = np.stack([bootstrap(60, imputer._seed, k) for k in range(3)]) if proper else np.zeros((1, 60))
    assert len(heard) == 3 and len(imputer.joints_) == len(counts)
    for j, name in enumerate(frame):
        of_joint = [joint.predict(frame, name) for joint in imputer.joints_]
        for i in range(60):
            says = [each[i] for each, count in zip(of_joint, counts, strict=True) if count[i] == 0]
            want = (np.mean(says) - frame[name].mean()) / frame[name].std(ddof=0) if says else np.nan
            assert all(means[j][i, 0] == pytest.approx(want, nan_ok=True) for means in heard)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_only_joints_that_left_a_row_out_count() -> None:
    frame = normals(50, 0)
    joints = [COARSE.fit(frame[k::2]).joint_ for k in range(2)]
    schema, counted = joints[0].schema, np.array([[True, False], [True, False]]).repeat(25, axis=1)
    means = cell_means(joints, schema, frame, {0: np.arange(50)}, counted)
    assert np.isnan(means[0][:, 25:]).all()
    found = average_means(coding_of(schema, np.array([[0.0, 0.0, 0.0], [2.0, 2.0, 2.0]])), means)[0]
    says = np.mean([joint.predict(frame[:25], "a") for joint in joints], axis=0)
    np.testing.assert_allclose(found[:25, 0], says - 1.0)
    assert np.isnan(found[25:]).all()
