"""Proper draws of an imputer: slopes are kept, donors are observed cells, what joints say is honest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.estimators.chained import average_means, cell_means, coding_of, follow, learn_chain
from jointforest.estimators.imputer import Chains

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
    """The standard error of a slope of the complete rows is 1 / sqrt(400 * 0.75) = 0.06."""
    frame = normals(400, 0)
    masked = frame.mask(np.random.default_rng(1).random(frame.shape) < 0.25)
    plain = jf.JointImputer(COARSE, m=4, random_state=0).fit(masked).impute(masked)
    kept = jf.JointImputer(COARSE, m=4, proper=True, random_state=0).fit(masked).impute(masked)
    flat, true = (np.mean([slopes(table) for table in tables], axis=0) for tables in (plain, kept))
    assert flat.mean() < 0.9
    np.testing.assert_allclose(true, 1.0, atol=0.1)


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
    drawn = follow(coding, chain, cells, unseen, start, nothing, np.random.default_rng(1))[::4, 1]
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
    drawn = follow(coding, chain, cells, np.zeros(cells.shape, dtype=bool), start, nothing, rng)[2000:, 1]
    assert drawn.mean() == pytest.approx(np.nanmean(cells[:2000, 1]), abs=0.05)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_joints_say() -> None:
    """The joints' own predictions, without the cell; levels that a joint never saw have probability 0 there."""
    frame = normals(120, 0).assign(c=["u", "v", "w"] * 40)
    whole = COARSE.fit(frame).joint_
    part = COARSE.fit(frame[frame["c"] != "v"]).joint_
    means = cell_means([whole, part], whole.schema, frame, np.array([0, 3]), 1)
    np.testing.assert_allclose(means[0][0, :, 0], whole.predict(frame, "a"))
    np.testing.assert_allclose(means[3][0], whole.predict_proba(frame, "c"))
    assert (means[3][1, :, 1] == 0.0).all()
    np.testing.assert_allclose(means[3][1][:, [0, 2]], part.predict_proba(frame, "c"))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_chains_hear_of_a_row_what_joints_say_that_did_not_draw_it(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = normals(60, 0)
    counts = np.random.default_rng(0).poisson(0.7, (3, 60)).astype(float)
    joints = [COARSE.fit(frame, sample_weight=count).joint_ for count in counts]
    heard = []

    def listen(coding: Any, cells: Any, start: Any, honest: dict, *rest: Any) -> Any:
        heard.append(honest)
        return learn_chain(coding, cells, start, honest, *rest)

    monkeypatch.setattr("jointforest.estimators.imputer.learn_chain", listen)
    Chains(joints[0].schema, joints, frame, counts, np.ones(60), 0, 1)
    assert len(heard) == 3
    for j, name in enumerate(frame):
        of_joint = [joint.predict(frame, name) for joint in joints]
        for i in range(60):
            says = [of_joint[k][i] for k in range(3) if counts[k, i] == 0]
            want = (np.mean(says) - frame[name].mean()) / frame[name].std(ddof=0) if says else np.nan
            assert all(honest[j][i, 0] == pytest.approx(want, nan_ok=True) for honest in heard)


def test_only_joints_that_left_a_row_out_count() -> None:
    coding = coding_of(COARSE.fit(normals(50, 0)).joint_.schema, np.array([[0.0, 0.0, 0.0], [2.0, 2.0, 2.0]]))
    each = np.array([[[1.0], [5.0]], [[3.0], [7.0]]])
    found = average_means(coding, {0: each}, np.array([[True, False], [True, False]]))[0]
    assert found[0, 0] == pytest.approx(2.0 - 1.0) and np.isnan(found[1, 0])
