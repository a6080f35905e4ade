"""What is derived of the parameters of leaves."""

from __future__ import annotations

import numpy as np

from jointforest.data.schema import Columns
from jointforest.models.box_forest.leaves import derived
from jointforest.models.box_forest.leaves.derived import make_leaves
from jointforest.models.box_forest.leaves.table import ParameterTables


def test_logs_of_levels_are_those_of_each_row() -> None:
    """Whether rows beside each other are alike, differ in one level alone, or are of two chunks."""
    n = derived._CHUNK + 3
    rng = np.random.default_rng(0)
    mass = rng.dirichlet(np.ones(3), n)
    alike = rng.random(n) < 0.5
    for row in range(1, n):
        if alike[row]:
            mass[row] = mass[row - 1]
    mass[5], mass[6] = [0.5, 0.25, 0.25], [0.5, 0.5, 0.0]
    mass[derived._CHUNK] = mass[derived._CHUNK - 1]
    none, start = np.empty(0), np.zeros(1, np.int32)
    columns = Columns(np.ones(1, np.uint8), start, none, none, start, none, np.array([0, 3], np.int32))
    table = np.zeros((n, 0))
    parameters = ParameterTables(
        np.zeros(n), np.full(n, -np.log(n)), table, table, table, table, table, table, mass, np.zeros((n, 1))
    )
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(make_leaves(columns, parameters).log_level, np.log(mass), rtol=1e-15)
