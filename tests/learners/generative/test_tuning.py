"""What out-of-bag rows choose."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.learners.generative import supervised


def table() -> tuple[pd.DataFrame, np.ndarray]:
    """A skewed column of 40 levels, and a number that tells the class."""
    rng = np.random.default_rng(0)
    n = 600
    share = 1.0 / np.arange(1, 41) ** 1.5
    y = rng.integers(2, size=n)
    levels = [f"m{k:02d}" for k in rng.choice(40, n, p=share / share.sum())]
    return pd.DataFrame({"many": levels, "number": rng.normal(size=n) + 2 * y}), y


def bent(forest: jf.GenerativeForestClassifier) -> float:
    """Total variation of the column of levels, the rows' and the joint's."""
    frame, y = table()
    rows = frame["many"].value_counts(normalize=True)
    found = pd.Series(forest.fit(frame, y).joint_.marginal("many").proba()).reindex(rows.index)
    return float(0.5 * np.abs(found - rows).sum())


@pytest.mark.parametrize(("sigmas", "rows"), [(-1.0, 0.3), (0.5, 0.3), (1.5, 2.0)])
def test_more_pseudo_rows_must_be_better_by_more_than_chance(
    monkeypatch: pytest.MonkeyPatch, sigmas: float, rows: float
) -> None:
    rng = np.random.default_rng(1)
    loss, noise = rng.random(400), rng.normal(size=400)
    noise = (noise - noise.mean()) / noise.std()
    losses, chosen, choose = cycle([loss, loss - sigmas / np.sqrt(400) + noise]), [], supervised.choose_smoothing
    monkeypatch.setattr(supervised, "choose_beta", lambda *rest: (0.0, next(losses)))
    monkeypatch.setattr(supervised, "choose_smoothing", lambda *rest: chosen.append(choose(*rest)) or chosen[-1])
    forest = jf.GenerativeForestClassifier(20, min_samples_leaf=5, beta=0.0, random_state=0)
    assert bent(forest) < 0.05
    assert [(settings.smoothing, settings.prior) for settings in chosen] == [(rows, "marginal")]


def test_the_paper_s_prior_bends_them() -> None:
    assert bent(jf.GenerativeForestClassifier(20, smoothing=1.0, prior="uniform", random_state=0)) > 0.15
    assert bent(jf.GenerativeForestClassifier(20, smoothing=0.3, random_state=0)) < 0.05


def test_classes_of_few_rows_at_a_time_are_judged_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(300, 3)), np.repeat(np.arange(100), 3)  # more classes than leaves hold densely
    found, choose = [], supervised.choose_beta
    monkeypatch.setattr(supervised, "choose_beta", lambda *rest: found.append(choose(*rest)) or found[-1])
    for at_once in (supervised.FIXED.answers_at_once, 4 * 100 * 7):
        monkeypatch.setattr(supervised, "FIXED", replace(supervised.FIXED, answers_at_once=at_once))
        jf.GenerativeForestClassifier(4, random_state=0).fit(X, y)
    (whole, parts) = found[: len(found) // 2], found[len(found) // 2 :]
    for (beta, loss), (same, again) in zip(whole, parts, strict=True):
        assert beta == same and len(loss) > 100
        np.testing.assert_array_equal(loss, again)
