"""Ranks of a table by the values of some of its rows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from jointforest.data.schema import Columns, snap
from jointforest.learners.growing.grow import between, rank

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
    found = between(np.array([low]), np.array([high]), step, origin)
    assert found.tolist() == [expected]
    assert low <= found[0] < high


def made(seed: int, missing: float) -> tuple[Columns, np.ndarray, np.ndarray]:
    """Columns, cells (n, 4) and some of their rows."""
    rng = np.random.default_rng(seed)
    columns = make_columns([0, 5, 0, 0], step=[0.0, 0.5, 0.0])
    x = rng.normal(size=(60, 4))
    x[:, 1] = rng.integers(0, 5, 60)
    x[:, 3] = np.round(x[:, 3])
    x[rng.random(x.shape) < missing] = np.nan
    return columns, snap(columns, x), np.sort(rng.choice(60, 15, replace=False))


@pytest.mark.parametrize("seed", range(4))
def test_cells_of_other_rows_go_where_the_sampled_splits_send_them(seed: int) -> None:
    columns, x, rows = made(seed, 0.2 * (seed % 2))
    ranks = rank(columns, x, rows)
    for j in (0, 2, 3):
        values = sorted({v for v in x[rows, j] if not np.isnan(v)})
        assert ranks.values[ranks.value_start[j] : ranks.value_start[j + 1]].tolist() == values
        assert ranks.n_codes[j] == len(values)
        step = 0.5 if j == 2 else 0.0
        cuts = [between(np.array([a]), np.array([b]), step, 0.0)[0] for a, b in itertools.pairwise(values)]
        for cell, code in zip(x[:, j], ranks.codes[j], strict=True):
            assert code == (-1 if np.isnan(cell) else sum(cell > cut for cut in cuts))
    assert (ranks.codes[1] == np.nan_to_num(x[:, 1], nan=-1)).all()
    own = rank(columns, x[rows])
    assert (ranks.codes[:, rows] == own.codes).all()
    assert (ranks.values == own.values).all()


def test_all_rows_or_one_of_each_value_rank_alike() -> None:
    columns, x, _ = made(1, 0.2)
    whole, same = rank(columns, x), rank(columns, x, np.arange(60))
    for a, b in zip(whole, same, strict=True):
        assert a.dtype == b.dtype
        assert a.tolist() == b.tolist()


def test_a_column_of_which_the_rows_say_nothing_is_not_ranked() -> None:
    columns, x, rows = made(0, 0.0)
    x[rows, 0] = np.nan
    ranks = rank(columns, x, rows)
    assert ranks.n_codes[0] == 0
    others = np.setdiff1d(np.arange(60), rows)
    assert (ranks.codes[0, rows] == -1).all()
    assert (ranks.codes[0, others] == 0).all()
