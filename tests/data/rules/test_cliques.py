"""Groups of columns of which each two are linked, against all groups; and tables of many columns."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from jointforest.data.rules.functions import _cliques
from jointforest.learners.rows import read_training_rows


@pytest.mark.parametrize("size", [2, 3, 4])
def test_cliques_are_the_groups_whose_pairs_are_all_linked(size: int) -> None:
    rng = np.random.default_rng(size)
    for share in (0.0, 0.3, 0.7, 1.0):
        pairs = [pair for pair in itertools.combinations(range(9), 2) if rng.random() < share]
        every = itertools.combinations(range(9), size)
        expected = [group for group in every if set(itertools.combinations(group, 2)) <= set(pairs)]
        assert list(_cliques(pairs, size)) == expected


@pytest.mark.parametrize(("d", "is_found"), [(60, True), (210, False)])
def test_functions_of_two_columns_are_looked_for_in_tables_of_few_columns(d: int, is_found: bool) -> None:
    X = np.random.default_rng(0).integers(0, 2, (1_000, d))
    X[:, 2] = X[:, 0] ^ X[:, 1]
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(d)]).astype(str)
    found = {str(rule) for rule in read_training_rows(frame, None).schema.rules}
    assert found == ({"c0, c1 -> c2", "c0, c2 -> c1", "c1, c2 -> c0"} if is_found else set())
