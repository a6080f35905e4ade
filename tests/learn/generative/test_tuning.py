"""What out-of-bag rows choose."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import jointforest as jf


def table(seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """A skewed column of 40 levels, six others of four, and a number, which alone tells the class."""
    rng = np.random.default_rng(seed)
    n = 600
    share = 1.0 / np.arange(1, 41) ** 1.5
    frame = pd.DataFrame({"many": [f"m{k:02d}" for k in rng.choice(40, n, p=share / share.sum())]})
    y = rng.integers(2, size=n)
    for j in range(6):
        frame[f"x{j}"] = [f"v{k}" for k in rng.integers(4, size=n)]
    frame["number"] = rng.normal(size=n) + 2 * y
    return frame, y


@pytest.mark.parametrize("seed", range(4))
def test_chance_does_not_choose_what_bends_marginals(seed: int) -> None:
    frame, y = table(seed)
    joint = jf.GenerativeForestClassifier(20, random_state=seed).fit(frame, y).joint_
    rows = frame["many"].value_counts(normalize=True)
    found = pd.Series(joint.marginal("many").proba()).reindex(rows.index)
    assert 0.5 * np.abs(found - rows).sum() < 0.05


def test_the_paper_s_prior_bends_them() -> None:
    frame, y = table(0)
    joint = jf.GenerativeForestClassifier(20, smoothing=1.0, prior="uniform", random_state=0).fit(frame, y).joint_
    rows = frame["many"].value_counts(normalize=True)
    found = pd.Series(joint.marginal("many").proba()).reindex(rows.index)
    assert 0.5 * np.abs(found - rows).sum() > 0.15
