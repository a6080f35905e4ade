"""Modes of hidden trees with many columns: no single column can be changed for the better, and the bound holds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import jointforest as jf


@pytest.mark.parametrize("d", [41, 90])
def test_no_single_change_is_better(d: int) -> None:
    rng = np.random.default_rng(d)
    hidden = rng.integers(0, 4, 300)
    X = (rng.random((300, d)) < rng.random((4, d))[hidden]).astype(int) + rng.integers(0, 2, (300, d))
    frame = pd.DataFrame({f"c{j}": X[:, j].astype(str) for j in range(d)})
    joint = jf.HiddenTreeForest(n_states=6, max_iter=2, random_state=0).fit(frame).joint_
    found = joint.given(c0="1").mode()
    best, log_density = found.rows.iloc[[0]], float(found.log_density[0])
    assert best["c0"].iloc[0] == "1" and log_density <= float(found.log_bound) + 1e-9
    assert joint.log_density(best)[0] == pytest.approx(log_density)
    neighbours = pd.concat([best] * (2 * (d - 1)), ignore_index=True)
    for k in range(d - 1):
        others = sorted(set(joint.levels(f"c{k + 1}")) - {best[f"c{k + 1}"].iloc[0]})
        for i, level in enumerate(others[:2]):
            neighbours.loc[2 * k + i, f"c{k + 1}"] = level
    assert joint.log_density(neighbours).max() <= log_density + 1e-9
