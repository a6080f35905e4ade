"""Ranks of a table by the values of some of its rows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from jointforest.data.schema import Columns, snap
from jointforest.learners.growing.grow import GrowthSettings, grow, rank, thresholds_between

from .test_grow import make_columns


@pytest.mark.parametrize(
    ("low", "high", "step", "origin", "expected"),
    [
        (0.0, 1.0, 0.0, 0.0, 0.5),
        (1.0, np.nextafter(1.0, 2.0), 0.0, 0.0, 1.0),
        (-1.7e308, 1.7e308, 0.0, 0.0, 0.0),
        (0.0, 1.0, 0.5, 0.0, 0.25),  # of the cells 0, 0.5 and 1 the edge next to the middle, below
        (0.0, 1.5, 0.5, 0.0, 0.75),
        (3.25, 3.75, 0.5, 0.25, 3.5),
    ],
)
def test_thresholds_lie_halfway_or_at_the_edge_of_a_cell(
    low: float, high: float, step: float, origin: float, expected: float
) -> None:
    found = thresholds_between(np.array([low]), np.array([high]), step, origin)
    assert found.tolist() == [expected]
    assert low <= found[0] < high


def made(seed: int) -> tuple[Columns, np.ndarray, np.ndarray]:
    """Columns, cells (n, 4) and some of their rows."""
    rng = np.random.default_rng(seed)
    columns = make_columns([0, 5, 0, 0], step=[0.0, 0.5, 0.0])
    x = rng.normal(size=(60, 4))
    x[:, 1] = rng.integers(0, 5, 60)
    x[:, 3] = np.round(x[:, 3])
    return columns, snap(columns, x), np.sort(rng.choice(60, 15, replace=False))


@pytest.mark.parametrize("seed", range(4))
def test_cells_of_other_rows_go_where_the_sampled_splits_send_them(seed: int) -> None:
    columns, x, rows = made(seed)
    ranks = rank(columns, x, rows)
    for j in (0, 2, 3):
        values = sorted(set(x[rows, j].tolist()))
        assert ranks.values[ranks.value_start[j] : ranks.value_start[j + 1]].tolist() == values
        assert ranks.n_codes[j] == len(values)
        step = 0.5 if j == 2 else 0.0
        cuts = [thresholds_between(np.array([a]), np.array([b]), step, 0.0)[0] for a, b in itertools.pairwise(values)]
        for cell, code in zip(x[:, j], ranks.codes[j], strict=True):
            assert code == sum(cell > cut for cut in cuts)
    assert (ranks.codes[1] == x[:, 1]).all()
    own = rank(columns, x[rows])
    assert (ranks.codes[:, rows] == own.codes).all()
    assert (ranks.values == own.values).all()


def test_all_rows_or_one_of_each_value_rank_alike() -> None:
    columns, x, _ = made(1)
    whole, same = rank(columns, x), rank(columns, x, np.arange(60))
    for a, b in zip(whole, same, strict=True):
        assert a.dtype == b.dtype
        assert a.tolist() == b.tolist()


def test_columns_without_a_known_cell_are_not_ranked_and_others_must_be_filled() -> None:
    columns, x, rows = made(0)
    x[:, 0] = np.nan
    ranks = rank(columns, x, rows)
    assert ranks.n_codes[0] == 0 and (ranks.codes[0] == -1).all()
    x[3, 2] = np.nan
    no, y = np.zeros(4, np.uint8), np.arange(60, dtype=np.int32) % 2
    with pytest.raises(ValueError, match="missing cells, which have to be filled"):
        grow(rank(columns, x), no, no, y, 2, np.ones(60), GrowthSettings(2), seed=0, number=0)
