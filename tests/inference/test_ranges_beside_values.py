"""Questions about tables in which some cells are ranges, such as <0.5 or 10-20."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import jointforest as jf

N = 240


def _table(seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """A table, and the numbers of its column ``level``, some of which are given as ranges."""
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.integers(-1, 4)
    decimals = int(max(1 - np.log10(scale), 0))
    site = rng.choice(["a", "b", "c"], N)
    number = np.round(rng.gamma(2.0, np.where(site == "a", 1.0, 3.0)) * scale, decimals)
    limit = float(np.round(np.quantile(number, 0.15), decimals))
    texts = [f"<{limit:.{decimals}f}" if x < limit else f"{x:.{decimals}f}" for x in number]
    width = float(np.round(2.0 * scale, decimals))
    if seed % 2:
        texts = [
            f"{x:.{decimals}f}-{x + width:.{decimals}f}" if k % 19 == 0 and x >= limit else text
            for k, (x, text) in enumerate(zip(number, texts, strict=True))
        ]
    frame = pd.DataFrame({"site": site, "level": texts, "age": rng.integers(18, 90, N)})
    return frame, number


def _joint(frame: pd.DataFrame | np.ndarray) -> jf.Joint:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return jf.HiddenTreeForest(n_states=4, max_iter=5, rules="off", random_state=0).fit(frame).joint_


@pytest.mark.parametrize("seed", range(6))
def test_ranges_are_left_out_of_checks(seed: int) -> None:
    frame, _ = _table(seed)
    is_range = frame["level"].str.contains(r"<|\d-").to_numpy()
    joint = _joint(frame)
    found = joint.check(frame)
    assert f"'level' has {is_range.sum()} cells that are ranges" in repr(found)
    cells = found.cells[found.cells["column"] == "level"].sort_values("row")
    assert cells["value"].tolist() == frame["level"].tolist()
    assert (cells["p_wrong"].to_numpy()[is_range] == 0.0).all()
    assert (cells["p_wrong"].to_numpy()[~is_range] > 0.0).any()
    # All other cells are judged as if the ranges were missing.
    without = joint.check(frame.assign(level=frame["level"].mask(is_range))).cells
    other = without[without["column"] == "level"].sort_values("row")
    np.testing.assert_allclose(cells["p_wrong"].to_numpy()[~is_range], other["p_wrong"].to_numpy()[~is_range])
    assert found.repair(0.0).frame["level"][is_range].tolist() == frame["level"][is_range].tolist()


@pytest.mark.parametrize("seed", range(2))
def test_columns_with_ranges_are_left_out_of_fidelity(seed: int) -> None:
    frame, _ = _table(seed)
    frame["id"] = [f"row {i}" for i in range(N)]  # which is set aside
    joint = _joint(frame)
    n = int(frame["level"].str.contains(r"<|\d-").sum())
    only = ["marginals", "pairs"]
    found = jf.fidelity(joint, frame, only=only, random_state=0)
    assert found.notes[0] == f"'level' is not compared: it has {n} cells that are ranges"
    expected = jf.fidelity(joint.select("site", "age"), frame[["site", "age"]], only=only, random_state=0)
    assert found.marginals.distance == expected.marginals.distance
    rows = jf.fidelity(joint.sample(50, random_state=0), frame, only=only, random_state=0)
    assert rows.notes[0] == found.notes[0]
    with pytest.raises(ValueError, match=f"no column can be compared: 'level' has {n} cells that are ranges"):
        jf.fidelity(joint.select("level"), frame[["level"]], random_state=0)


def test_arrays_with_ranges_are_compared_without_these_columns() -> None:
    rng = np.random.default_rng(0)
    number = rng.normal(1.0, 1.0, N)
    cells = np.array([[jf.between(None, 0.5) if x < 0.5 else x, *rng.normal(size=2)] for x in number], dtype=object)
    only = ["marginals", "pairs"]
    joint = _joint(cells)
    found = jf.fidelity(joint, cells, only=only, random_state=0)
    assert found.notes[0] == f"'x0' is not compared: it has {(number < 0.5).sum()} cells that are ranges"
    expected = jf.fidelity(joint.select("x1", "x2"), cells[:, 1:].astype(float), only=only, random_state=0)
    assert found.marginals.distance == expected.marginals.distance
    assert jf.fidelity(cells, cells, only=only, random_state=0).notes[0] == found.notes[0]


@pytest.mark.parametrize("seed", range(6))
def test_a_text_of_a_range_is_evidence(seed: int) -> None:
    frame, number = _table(seed)
    joint = _joint(frame)
    low, high = (float(np.round(x, 1)) for x in np.quantile(number, [0.3, 0.8]))
    same = {
        f"<{low}": jf.between(None, low, closed="neither"),
        f"< {low}": jf.between(None, low, closed="neither"),
        f"<={low}": jf.between(None, low),
        f">{high}": jf.between(high, None, closed="neither"),
        f"{low}-{high}": jf.between(low, high),
    }
    for text, interval in same.items():
        assert joint.given(level=text).proba("site") == joint.given(level=interval).proba("site")
        assert joint.probability({"level": text}) == joint.probability({"level": interval})
        rows = pd.DataFrame({"level": [text]})
        np.testing.assert_allclose(
            joint.given(rows).proba("site")[0], list(joint.given(level=text).proba("site").values())
        )
    assert joint.probability({"age": "<40"}) == joint.probability("age < 40")
    assert joint.probability({"age": ["<30", ">60"]}) == pytest.approx(joint.probability("age < 30 or age > 60"))
    for wrong in ("<much", f"{high}-{low}", "about 3"):
        with pytest.raises(ValueError, match="expected a number"):
            joint.given(level=wrong)


def test_levels_that_look_like_ranges_stay_levels() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.choice(["<18", "18-64", "65+"], N), "x": rng.normal(size=N)})
    joint = jf.HiddenTreeForest(n_states=4, kinds={"age": "categorical"}, random_state=0).fit(frame).joint_
    assert joint.probability({"age": "<18"}) == pytest.approx((frame["age"] == "<18").mean(), abs=0.02)
