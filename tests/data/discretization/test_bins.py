"""How bins are shared out among stretches of light places."""

from __future__ import annotations

import numpy as np
import pytest

from jointforest.data.discretization.counts import PlaceTally
from jointforest.data.discretization.learn import cut_places


def test_stretches_get_bins_by_weight_the_larger_remainder_first() -> None:
    # a heavy place between 8 rows and 52 rows, 6 codes: 1 + 2 + 3 spare ones, of which 0.4 and 2.6 are wanted
    rows = np.concatenate([np.ones(8), [60.0], np.ones(52)])
    place = np.arange(len(rows), dtype=float)
    bins = cut_places(PlaceTally(place, rows, rows, np.zeros(len(rows), bool), 0.5, -np.inf, np.inf), 6)
    assert bins.is_heavy.tolist() == (rows > 1).tolist()
    assert np.unique(bins.of_place[:8]).tolist() == [0]
    assert np.unique(bins.of_place[9:]).tolist() == [2, 3, 4, 5]
    assert np.bincount(bins.of_place[9:])[2:].tolist() == [13, 13, 13, 13]


@pytest.mark.parametrize("n", [200, 400, 1200])
def test_small_tables_have_few_bins_of_two_groups(n: int) -> None:
    mixed = np.zeros(2)
    n_codes = max(16, round(n**0.5))
    for seed in range(20):
        rng = np.random.default_rng([seed, n])
        group = rng.choice(3, n, p=[0.5, 0.3, 0.2])  # seven standard deviations apart
        place, at = np.unique(7.0 * group + rng.standard_normal(n), return_inverse=True)
        rows = np.ones(len(place))
        tally = PlaceTally(place, rows, rows, np.zeros(len(place), bool), 0.0, -np.inf, np.inf)
        for k in range(2):
            bins = cut_places(tally, n_codes, 0.5, at_spaces=k == 1).of_place
            assert set(np.diff(bins).tolist()) <= {0, 1}
            assert bins[-1] + 1 == n_codes
            count = np.zeros((n_codes, 3))
            np.add.at(count, (bins[at], group), 1.0)
            mixed[k] += np.sort(count)[:, :2].sum()  # rows in a bin most of whose rows are of another group
    assert mixed[0] > 0
    assert mixed[1] < 0.25 * mixed[0]


def test_evenly_spaced_places_are_cut_as_before() -> None:
    rows = np.ones(97)
    tally = PlaceTally(np.arange(97.0), rows, rows, np.zeros(97, bool), 0.5, -np.inf, np.inf)
    counts = np.bincount(cut_places(tally, 8, at_spaces=True).of_place)
    assert counts.tolist() == np.bincount(cut_places(tally, 8).of_place).tolist()
