"""Imputers and outlier detectors of tables in which cells are ranges."""

import numpy as np
import pandas as pd
import pytest

import jointforest as jf

LIMIT = -0.2


def table(n: int = 800) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two numbers, and the same with the first below a limit, or missing."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(n, 2))
    real = pd.DataFrame({"x": z[:, 0].round(3), "y": (0.8 * z[:, 0] + 0.6 * z[:, 1]).round(3)})
    cells = real.astype({"x": object})
    cells["x"] = [jf.between(None, LIMIT, "neither") if v < LIMIT else v for v in real.x]
    cells.loc[rng.random(n) < 0.2, "x"] = np.nan
    return real, cells


@pytest.mark.parametrize("proper", [False, True])
def test_imputed_tables_with_ranges_filled_and_kept(proper: bool) -> None:
    real, cells = table()
    learner = jf.HiddenTreeForest(n_states=16, random_state=0)
    is_range, gone = cells.x.map(lambda v: isinstance(v, jf.Interval)), cells.x.isna()
    fill = jf.JointImputer(learner, ranges="fill", proper=proper, m=3, random_state=0).fit(cells)
    tables = fill.impute(cells)
    for one in tables:
        assert (one.x[is_range] < LIMIT).all() and one.x.notna().all()
        assert (one.x[~is_range & ~gone] == cells.x[~is_range & ~gone]).all()
        # missing cells lie below the limit, too: so do those of the table
        assert (one.x[gone] < LIMIT).mean() == pytest.approx((real.x < LIMIT).mean(), abs=0.12)
    found = np.mean([one.x.astype(float).corr(one.y) for one in tables])
    assert found == pytest.approx(real.x.corr(real.y), abs=0.06)
    assert np.mean([one.x.mean() for one in tables]) == pytest.approx(real.x.mean(), abs=0.06)
    assert not tables[0].x[is_range].equals(tables[1].x[is_range])
    keep = jf.JointImputer(learner, proper=proper, m=1, random_state=0, add_indicator=True).fit(cells)
    for one in (keep.impute(cells)[0], keep.transform(cells)):
        assert (one.x[is_range] == cells.x[is_range]).all() and one.x.notna().all()
        assert one["missingindicator_x"].equals(gone)  # a range is not missing


def test_flags_of_filled_times_are_left_empty() -> None:
    rng = np.random.default_rng(0)
    time, end = rng.exponential(8.0, 300).round(1), rng.exponential(12.0, 300).round(1)
    frame = pd.DataFrame({"months": np.minimum(time, end), "died": time <= end, "plan": rng.integers(0, 2, 300)})
    learner = jf.HiddenTreeForest(n_states=4, kinds={"months": jf.censored(event="died")}, random_state=0)
    joint = learner.fit(frame).joint_
    imputer = jf.JointImputer(learner, ranges="fill", random_state=0).fit(frame)
    for filled in (joint.impute(frame, "sample", random_state=0, ranges="fill"), imputer.impute(frame, 1)[0]):
        assert filled.died.isna().all() and (filled.months >= frame.months).all()
        own = [
            joint.log_density(pd.DataFrame({"months": [t], "plan": [p]}))[0] for t, p in filled.iloc[:20, ::2].values
        ]
        np.testing.assert_allclose(joint.log_density(filled)[:20], own)  # as exact times
    assert joint.impute(frame).died.equals(frame.died)
    array = frame.to_numpy(object)
    of_array = jf.HiddenTreeForest(n_states=4, kinds={"x0": jf.censored(event="x1")}, random_state=0).fit(array).joint_
    assert pd.isna(of_array.impute(array, ranges="fill")[:, 1]).all()


def test_scores_of_rows_with_ranges_are_probabilities_of_regions() -> None:
    _, cells = table(300)
    detector = jf.ForestOutlierDetector(jf.HiddenTreeForest(n_states=8, random_state=0), radius=0.5).fit(cells)
    joint, rows = detector.joint_, cells[cells.x.notna()].head(12)
    half = 0.5 * np.array([joint.given().std("x"), joint.given().std("y")])
    for (x, y), score in zip(rows.to_numpy(), detector.score_samples(rows), strict=True):
        near = x if isinstance(x, jf.Interval) else jf.between(x - half[0], x + half[0])
        own = joint.given(x=near, y=jf.between(y - half[1], y + half[1])).log_probability
        assert score == pytest.approx(own, abs=0.02)
    odd = pd.DataFrame({"x": [jf.between(3.4, None), jf.between(None, LIMIT)], "y": [-3.0, -1.0]})
    assert detector.predict(odd).tolist() == [-1, 1]
    assert detector.attribution(odd)[0, 0] < detector.attribution(odd)[1, 0]
