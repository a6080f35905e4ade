"""Answers about histories of columns of every kind, with unknown cells, against sums over every way that fits."""

from __future__ import annotations

import numpy as np
import pytest

from tests.random_cases.histories import case, comparisons


@pytest.mark.parametrize("seed", range(20))
def test_answers_agree_with_sums_over_all_ways(seed: int) -> None:
    one, rng = case(seed), np.random.default_rng([seed, 8])
    for _ in range(3):
        for compared in comparisons(one, rng):
            assert compared.z < 5.0, compared
