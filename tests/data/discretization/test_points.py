"""Which values of a grid are points: the choice against rows left out one by one, heaps and chance ties."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jointforest.data.discretization.counts import count_places
from jointforest.data.discretization.discretizer import codes_of
from jointforest.data.discretization.learn import (
    LEAST,
    MAX_POINTS,
    PlaceRuns,
    cut_places,
    learn_scale,
    point_rows,
    runs_of,
)
from jointforest.data.schema import Column

WHOLE = Column("x", "integer", "int64", step=1.0)


DISCOUNTS = (1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0, 34.0)  # of docs/concepts/discretization.md, as are the factors
OF_SINGLES = (0.0, 0.25, 0.5, 0.75)
FACTORS = (1.0, 0.75, 0.5, 0.25, 0.0)


def point_share(rows: dict[float, int], cells: int, discount: float, factor: float, value: float, fewest: int) -> float:
    """Probability of a value in a run of so many cells, learned from rows that all lie in it."""
    points = {x: factor * max(c - discount, 0.0) for x, c in rows.items() if c >= fewest}
    n = sum(rows.values())
    return (points.get(value, 0.0) + max(n - sum(points.values()), LEAST) / cells) / max(n, LEAST)


def values_of(seed: int) -> np.ndarray:
    """Chance ties of few or many rows, and heaps."""
    random = np.random.default_rng(seed)
    values = random.poisson(random.choice([2, 4, 6, 10, 40]), int(random.choice([30, 60, 400, 2000])))
    n_heaps = int(random.integers(0, 8))
    return np.append(values, np.repeat(random.integers(0, 20, n_heaps), random.integers(1, 60, n_heaps))).astype(float)


@given(st.integers(0, 2**32), st.booleans())
@example(0, False)
@example(1, False)
@example(4, False)
@example(12, False)
@example(16, False)
@example(31, False)
@example(5603, False)
@example(0, True)
@example(1, True)
@example(4, True)
def test_the_choice_makes_rows_left_out_likeliest(seed: int, singles: bool) -> None:
    """Of the examples each has another discount as the best one."""
    values = values_of(seed)
    tally = count_places(WHOLE, values, None)
    bins = cut_places(tally, 1)  # one bin, one run
    runs = runs_of(tally, bins)
    runs = PlaceRuns(np.zeros(1, np.intp), np.zeros(len(tally.place), np.intp), runs.lo[:1], runs.hi[-1:])
    if bins.is_heavy.any():
        return
    cells = int(runs.hi[0] - runs.lo[0])
    rows = dict(zip(*(x.tolist() for x in np.unique(values, return_counts=True)), strict=True))
    once, twice = (sum(c == times for c in rows.values()) for times in (1, 2))
    fits = {}
    fewest = 1 if singles else 2
    for discount in (once / (once + 2 * twice) if once else 0.0, *(OF_SINGLES if singles else ()), *DISCOUNTS):
        for factor in FACTORS:
            fits[discount, factor] = math.fsum(
                c * math.log(point_share({**rows, x: c - 1}, cells, discount, factor, x, fewest))
                for x, c in rows.items()
            )
    found = point_rows(tally, bins, runs, singles)
    best = max(fits.values())
    equal = [
        np.where(tally.rows >= fewest, factor * np.maximum(tally.rows - discount, 0.0), 0.0)
        for (discount, factor), fit in fits.items()
        if fit > best - 1e-9
    ]
    assert any(np.allclose(found, one) for one in equal)


def mass_of(values: np.ndarray, at: list[float]) -> np.ndarray:
    """Share of single values in a scale of one bin."""
    return np.asarray(np.exp(codes_of(learn_scale(WHOLE, values, None, 1), np.array(at))[1]))


def test_heaps_are_points_and_chance_ties_are_not() -> None:
    random = np.random.default_rng(0)
    smooth = np.rint(random.normal(0, 2000, 4000))
    assert len(np.unique(smooth)) < 3500
    tally = count_places(WHOLE, smooth, None)
    bins = cut_places(tally, 64)
    assert point_rows(tally, bins, runs_of(tally, bins)).sum() < 0.02 * len(smooth)
    heaps = np.where(random.random(4000) < 0.5, np.rint(smooth / 100) * 100, smooth)
    share = np.mean(heaps == 200)
    at_heap, beside = mass_of(heaps, [200.0, 201.0])
    assert at_heap == pytest.approx(share, rel=0.1)
    assert beside < share / 20


def test_values_of_single_rows_are_points_where_new_rows_share_them() -> None:
    """Each of 3,000 values spread over a million cells is as likely in a new row; only singles make that likely."""
    random = np.random.default_rng(0)
    possible = random.choice(10**6, 3_000, replace=False).astype(float)
    learned, new = random.choice(possible, 3_000), random.choice(possible, 3_000)
    fits = [codes_of(learn_scale(WHOLE, learned, None, 1, singles=singles), new)[1].mean() for singles in (False, True)]
    known = np.isin(new, learned).mean()
    best = known * np.log(known / len(np.unique(learned))) + (1 - known) * np.log((1 - known) / 10**6)
    assert fits[1] > fits[0] + 1.0
    assert fits[1] > best - 0.2
    smooth = np.rint(random.normal(0, 200_000, 4_000))
    tally = count_places(WHOLE, smooth, None)
    bins = cut_places(tally, 64)
    assert point_rows(tally, bins, runs_of(tally, bins), True).sum() < 0.02 * len(smooth)


def test_at_most_so_many_points() -> None:
    values = np.repeat(np.random.default_rng(1).choice(10**9, 20_000, replace=False).astype(float), 3)
    values = np.append(values, np.full(50, 7.0))
    scale = learn_scale(WHOLE, values, None, 4)
    cells = np.isclose(scale.hi - scale.lo, 1.0)
    assert 0.9 * MAX_POINTS < np.count_nonzero(cells) <= MAX_POINTS + 10
    assert np.exp(codes_of(scale, np.array([7.0]))[1][0]) > 40 / 60_050
