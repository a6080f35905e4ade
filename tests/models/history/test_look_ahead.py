"""Draws of unknown cells that look ahead, against sums over every value of the cells, by exact log-densities."""

from __future__ import annotations

import itertools
import math
from functools import cache
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.learners.history import learn

GRID = np.arange(31)
"""Values of the walk."""
KNOWN = {
    "the first cell": [np.nan, 29, 29, 28],
    "the first two": [np.nan, np.nan, 3, 4],
    "one in the middle": [12, np.nan, 14, 15],
    "all but the last": [np.nan, np.nan, np.nan, 25],
}


def walks(n: int) -> pd.DataFrame:
    """Walks of five rows on the grid, in steps of -2 to 2, most of which begin at its lower end."""
    rng = np.random.default_rng(0)
    first = np.where(rng.random(n) < 0.8, rng.integers(0, 8, n), rng.integers(0, len(GRID), n))
    steps = rng.choice([-2, -1, 0, 1, 2], (n, 4), p=(0.1, 0.2, 0.3, 0.25, 0.15))
    values = np.clip(np.cumsum(np.column_stack([first, steps]), axis=1), GRID[0], GRID[-1])
    return pd.DataFrame({"id": np.repeat(np.arange(n), 5), "x": values.ravel()})


@cache
def learned() -> jf.HistoryJoint:
    """A joint that predicts changes."""
    with (
        patch.object(learn, "_judge", lambda columns, *_: float(len(columns.changes))),
        patch.object(learn, "_may_change", lambda *_: True),
    ):
        joint = jf.HistoryForest(ends=False, random_state=0).fit(walks(3000), group="id").joint_
    (coding,) = (variable.coding for variable in joint.model.columns.rows)
    assert joint.model.columns.changes == (0,) and coding.is_single[1:-1].all() and not coding.repeat.any()
    return joint


def frame_of(values: list[float], subject: int = 0) -> pd.DataFrame:
    return pd.DataFrame({"id": subject, "x": np.asarray(values, dtype=np.float64)})


def enumerated(values: list[float]) -> tuple[float, np.ndarray]:
    """Density of what is known, and the means of the unknown cells given it, by a sum over all of their values."""
    unknown = np.flatnonzero(np.isnan(values))
    every = []
    for filled in itertools.product(GRID, repeat=len(unknown)):
        # other walks have hardly any probability: a step is at most 2
        if all(abs(a - b) <= 4 for a, b in itertools.pairwise(filled)):
            one = np.array(values, dtype=np.float64)
            one[unknown] = filled
            every.append(one)
    frame = pd.concat([frame_of(one, k) for k, one in enumerate(every)])
    density = np.exp(learned().log_density(frame))
    return density.sum(), density @ np.array(every)[:, unknown] / density.sum()


def walked(values: list[float], cap: int, seed: int, looks_ahead: bool) -> tuple[float, np.ndarray]:
    """The same by a particle filter."""
    joint = learned()
    histories = joint._read(frame_of(values), True, empty_is_unknown=True).coded.histories
    ((log_likelihood, means),) = joint.model.walk(
        histories, np.zeros(1, dtype=np.int64), cap=cap, seed=seed, looks_ahead=looks_ahead,
        each=lambda a, b, found: (found.log_likelihood[0], found.mean.copy()),
    )  # fmt: skip
    return math.exp(log_likelihood), means


@pytest.mark.parametrize("looks_ahead", [False, True])
@pytest.mark.parametrize("name", KNOWN)
def test_answers_with_many_hypotheses_are_exact(name: str, looks_ahead: bool) -> None:
    density, means = enumerated(KNOWN[name])
    found = [walked(KNOWN[name], 4000, seed, looks_ahead) for seed in range(8)]
    assert np.mean([one for one, _ in found]) == pytest.approx(density, rel=0.05)
    np.testing.assert_allclose(np.mean([one for _, one in found], axis=0), means, atol=0.2)


@pytest.mark.parametrize("name", KNOWN)
def test_few_hypotheses_give_unbiased_densities_that_vary_less(name: str) -> None:
    density, means = enumerated(KNOWN[name])
    errors = []
    for looks_ahead in (False, True):
        found = [walked(KNOWN[name], 30, seed, looks_ahead) for seed in range(300)]
        densities = np.array([one for one, _ in found])
        assert densities.mean() == pytest.approx(density, abs=4.0 * densities.std() / math.sqrt(300) + 1e-3 * density)
        errors.append(np.sqrt(np.mean((np.array([one for _, one in found]) - means) ** 2)))
    assert errors[1] < errors[0]
