"""Pictures of how far predictions can be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..inference.support import READINGS, Uncertainty
from .style import LEVEL_COLORS, LOWER, POSTERIOR, clean, in_percent, new_axes

_FEWEST = 30
"""An accuracy of fewer rows is left out."""
_THRESHOLDS = np.linspace(0.0, 0.5, 21)


def accuracy_by_epsilon(
    epsilon: np.ndarray,
    right: np.ndarray,
    thresholds: Sequence[float] | np.ndarray = _THRESHOLDS,
    ax: Axes | None = None,
) -> Axes:
    """Accuracy among the rows whose epsilon is at least a threshold, and among those below it.

    Parameters
    ----------
    epsilon : float array (n,)
        Robustness of n predictions; rows where it is NaN are left out.
    right : bool array (n,)
        Whether the predictions were right.
    thresholds : sequence of floats
    ax : Axes, optional

    Returns
    -------
    Axes
        With two lines, above and below; a point only where at least 30 rows remain.

    Raises
    ------
    ValueError
        If epsilon and right differ in length.

    References
    ----------
    A. Correia, R. Peharz, C. de Campos, "Towards Robust Classification with Deep Generative Forests", 2020, Figure 3.

    Examples
    --------
    >>> import numpy as np
    >>> from jointforest.plot import accuracy_by_epsilon
    >>> epsilon = np.linspace(0, 0.4, 200)
    >>> ax = accuracy_by_epsilon(epsilon, epsilon > 0.1)
    >>> [line.get_label() for line in ax.lines]
    ['epsilon at least', 'epsilon below']
    """
    epsilon, right = np.asarray(epsilon, dtype=float), np.asarray(right, dtype=bool)
    if epsilon.shape != right.shape:
        raise ValueError(f"epsilon has shape {epsilon.shape} and right {right.shape}; expected the same")
    epsilon, right = epsilon[~np.isnan(epsilon)], right[~np.isnan(epsilon)]
    ax = new_axes(5.4, 3.6) if ax is None else ax
    above = [(t, right[epsilon >= t]) for t in thresholds]
    below = [(t, right[epsilon < t]) for t in thresholds]
    for label, parts, colour in (("epsilon at least", above, POSTERIOR), ("epsilon below", below, LOWER)):
        points = [(t, rows.mean()) for t, rows in parts if len(rows) >= _FEWEST]
        ax.plot([t for t, _ in points], [share for _, share in points], marker=".", color=colour, label=label)
    ax.set(xlabel="threshold of epsilon", ylabel="accuracy")
    in_percent(ax.yaxis)
    ax.legend(frameon=False)
    clean(ax)
    return ax


def epsilon_against_density(uncertainty: Uncertainty, ax: Axes | None = None) -> Axes:
    """Epsilon of n predictions against the log-density of their rows, coloured by reading.

    Parameters
    ----------
    uncertainty : Uncertainty
        From ``uncertainty`` of a classifier or a joint.
    ax : Axes, optional

    Returns
    -------
    Axes
        With one scatter for each reading that occurs.

    Examples
    --------
    >>> import jointforest as jf
    >>> from jointforest.plot import epsilon_against_density
    >>> penguins = jf.datasets.load_penguins()
    >>> X, y = penguins.drop(columns="species"), penguins["species"]
    >>> clf = jf.GenerativeForestClassifier(n_estimators=5, random_state=0).fit(X, y)
    >>> ax = epsilon_against_density(clf.uncertainty(X))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('log-density', 'epsilon')
    """
    ax = new_axes(5.4, 3.6) if ax is None else ax
    for reading, colour in zip(READINGS, LEVEL_COLORS, strict=False):
        rows = uncertainty.reading == reading
        if rows.any():
            ax.scatter(uncertainty.log_density[rows], uncertainty.epsilon[rows], s=9, c=colour, label=reading)
    ax.set(xlabel="log-density", ylabel="epsilon")
    ax.legend(frameon=False)
    clean(ax)
    return ax


def extreme_rows(X: Any, epsilon: np.ndarray, shape: tuple[int, int] | None = None, k: int = 8) -> Figure:
    """The k most and the k least robust rows.

    Parameters
    ----------
    X : frame or array of n rows
    epsilon : float array (n,)
        Robustness of their predictions; rows where it is NaN are not shown.
    shape : pair of ints, optional
        Height and width of the picture that a row's numbers are; default: rows are shown as a table.
    k : int

    Returns
    -------
    Figure
        Two rows of pictures, the most robust above, or two tables; each with its epsilon.

    Raises
    ------
    ValueError
        If X and epsilon differ in length, or the columns do not make a picture of this shape.

    References
    ----------
    A. Correia, R. Peharz, C. de Campos, "Towards Robust Classification with Deep Generative Forests", 2020, Figure 4.

    Examples
    --------
    >>> import numpy as np
    >>> from jointforest.plot import extreme_rows
    >>> figure = extreme_rows(np.random.default_rng(0).random((20, 4)), np.linspace(0, 0.5, 20), (2, 2), k=3)
    >>> [ax.get_title() for ax in figure.axes]
    ['0.500', '0.474', '0.447', '0.000', '0.026', '0.053']
    """
    cells, epsilon = np.asarray(X), np.asarray(epsilon, dtype=float)
    if len(cells) != len(epsilon):
        raise ValueError(f"X has {len(cells)} rows and epsilon {len(epsilon)}; expected as many of both")
    if shape is not None and cells.shape[1] != shape[0] * shape[1]:
        raise ValueError(f"X has {cells.shape[1]} columns; a picture of shape {shape} needs {shape[0] * shape[1]}")
    order = np.argsort(epsilon, kind="stable")[: int(np.sum(~np.isnan(epsilon)))]
    most, least = order[::-1][:k], order[:k]
    if shape is None:
        return _both_ends(
            cells, [str(name) for name in getattr(X, "columns", range(cells.shape[1]))], epsilon, most, least
        )
    figure, axes = plt.subplots(2, max(len(most), 1), squeeze=False, figsize=(1.1 * max(len(most), 1), 2.8))
    for line, rows in zip(axes, (most, least), strict=True):
        for ax in line:
            ax.set_axis_off()
        for ax, row in zip(line, rows, strict=False):
            ax.imshow(cells[row].astype(float).reshape(shape), cmap="gray_r")
            ax.set_title(f"{epsilon[row]:.3f}", fontsize=8)
    return figure


def _both_ends(cells: np.ndarray, names: list[str], epsilon: np.ndarray, most: np.ndarray, least: np.ndarray) -> Figure:
    """Both ends as tables, epsilon first."""
    figure, axes = plt.subplots(2, 1, figsize=(1.2 * (len(names) + 1), 0.5 * (len(most) + 2)))
    for ax, rows, title in zip(axes, (most, least), ("most robust", "least robust"), strict=True):
        ax.set_axis_off()
        ax.set_title(title)
        text = [[f"{epsilon[row]:.3f}", *map(str, cells[row])] for row in rows]
        if text:
            ax.table(text, colLabels=["epsilon", *names], loc="center")
    return figure
