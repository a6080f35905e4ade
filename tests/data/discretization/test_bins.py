"""How bins are shared out among stretches of light places."""

from __future__ import annotations

import numpy as np

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
