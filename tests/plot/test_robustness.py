"""Pictures of robustness: the data in their artists."""

from __future__ import annotations

import matplotlib
import numpy as np
import pandas as pd
import pytest

from jointforest.inference.support import Uncertainty
from jointforest.plot.predictions import accuracy_by_epsilon, epsilon_against_density, extreme_rows

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def close():
    yield
    matplotlib.pyplot.close("all")


def test_accuracy_above_and_below_thresholds() -> None:
    rng = np.random.default_rng(0)
    epsilon, right = np.append(rng.random(300) / 2, np.nan), rng.random(301) < 0.7
    thresholds = (0.0, 0.1, 0.25, 0.4, 0.49)
    ax = accuracy_by_epsilon(epsilon, right, thresholds)
    for line, keep in zip(ax.lines, (np.greater_equal, np.less), strict=True):
        parts = {t: right[keep(epsilon, t)] for t in thresholds}
        want = [(t, rows.mean()) for t, rows in parts.items() if len(rows) >= 30]
        assert 0 < len(want) < len(thresholds)
        np.testing.assert_array_equal(line.get_xydata(), want)
    assert accuracy_by_epsilon(epsilon, right, ax=ax) is ax and len(ax.lines) == 4
    with pytest.raises(ValueError, match=r"\(301,\).*\(2,\)"):
        accuracy_by_epsilon(epsilon, right[:2])


def test_a_scatter_for_each_reading() -> None:
    density, epsilon = np.array([-1.0, -2, -9, -3]), np.array([0.4, 0.3, 0.2, 0.01])
    reading = np.array(["ordinary", "ordinary", "unfamiliar", "ambiguous"])
    ax = epsilon_against_density(Uncertainty(reading, epsilon, epsilon, density, density, reading))
    found = {dots.get_label(): np.asarray(dots.get_offsets()).tolist() for dots in ax.collections}
    assert found == {"ordinary": [[-1, 0.4], [-2, 0.3]], "ambiguous": [[-3, 0.01]], "unfamiliar": [[-9, 0.2]]}


def test_pictures_of_extreme_rows() -> None:
    X = np.arange(60.0).reshape(10, 6)
    epsilon = np.array([0.1, 0.5, 0.3, np.nan, 0.2, 0.4, 0.0, 0.35, 0.25, 0.15])
    figure = extreme_rows(X, epsilon, (2, 3), k=2)
    for ax, row in zip(figure.axes, (1, 5, 6, 0), strict=True):
        np.testing.assert_array_equal(ax.images[0].get_array(), X[row].reshape(2, 3))
        assert ax.get_title() == f"{epsilon[row]:.3f}"
    with pytest.raises(ValueError, match="6 columns"):
        extreme_rows(X, epsilon, (2, 2))
    with pytest.raises(ValueError, match="10 rows"):
        extreme_rows(X, epsilon[:3])


def test_tables_of_extreme_rows() -> None:
    X = pd.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "z"]})
    figure = extreme_rows(X, np.array([0.2, 0.4, 0.1]), k=1)
    text = [[cell.get_text().get_text() for _, cell in sorted(ax.tables[0].get_celld().items())] for ax in figure.axes]
    assert text == [["epsilon", "a", "b", "0.400", "2", "y"], ["epsilon", "a", "b", "0.100", "3", "z"]]
