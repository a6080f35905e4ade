"""Quantiles from a distribution function: the smallest value at which it is high enough, and nothing before it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import ndtr

from jointforest.data.schema import Column
from jointforest.models.points import inverted

LEVELS = np.array([1e-6, 0.05, 0.2, 0.5, 0.7, 0.95, 1.0 - 1e-9])


def mixed(rng: np.random.Generator, atoms: tuple[float, ...]) -> Callable[[np.ndarray], np.ndarray]:
    """The distribution function of three normals and some atoms."""
    share = rng.dirichlet(np.ones(3 + len(atoms)))
    place, scale = rng.normal(0.0, 20.0, 3), rng.uniform(0.01, 10.0, 3)

    def below(x: np.ndarray) -> np.ndarray:
        return ndtr((x[:, None] - place) / scale) @ share[:3] + (x[:, None] >= np.array(atoms)) @ share[3:]

    return below


@pytest.mark.parametrize("seed", range(20))
def test_without_grid_the_float_before_is_not_enough(seed: int) -> None:
    rng = np.random.default_rng(seed)
    atoms = tuple(np.sort(rng.normal(0.0, 20.0, seed % 3)).tolist())
    below = mixed(rng, atoms)
    column = Column("x", "mixed" if atoms else "continuous", "float64", atoms=atoms)
    found = inverted(below, LEVELS, np.full(len(LEVELS), -500.0), np.full(len(LEVELS), 500.0), column)
    assert (below(found) >= LEVELS).all()
    before = np.nextafter(found, -np.inf)
    assert (below(before) < LEVELS + 1e-15).all()  # rounding of sums is not monotone
    assert all((found == atom).any() for atom in atoms if (np.diff(below(np.array([atom - 1e-9, atom]))) > 0.5).all())


@pytest.mark.parametrize("seed", range(20))
def test_on_a_grid_it_is_the_first_cell_that_is_enough(seed: int) -> None:
    rng = np.random.default_rng(seed)
    step, center = float(rng.choice([0.01, 0.5, 1.0, 7.0])), float(rng.choice([0.0, 0.25]))
    column = Column("x", "rounded", "float64", step=step, origin=center)
    smooth = mixed(rng, ())

    def below(x: np.ndarray) -> np.ndarray:
        return smooth(column.center + (np.rint((x - column.center) / step) + 0.5) * step)

    cells = column.center + np.arange(-np.ceil(500.0 / step), np.ceil(500.0 / step) + 1.0) * step
    found = inverted(below, LEVELS, np.full(len(LEVELS), cells[0]), np.full(len(LEVELS), cells[-1]), column)
    expected = cells[np.searchsorted(below(cells), LEVELS)]
    np.testing.assert_allclose(found, expected, atol=1e-9 * step)
