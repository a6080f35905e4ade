"""New leaf values of any ensemble: the targets as numbers, and the loss that goes with the link."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ensembles.table import Ensemble
from ...ground.checks import check, check_number
from ..expectation.expectation import Rows
from ..expectation.match import MatchedEnsemble
from .log_loss import refit_log_loss
from .squared_loss import METHODS, is_average, refit_squared


def refit_values(
    matched: MatchedEnsemble,
    rows: Rows,
    y: np.ndarray,
    method: str = "auto",
    weight_decay: float | None = None,
    weight: np.ndarray | None = None,
    m: int = 128,
    seed: int = 0,
    n_jobs: int | None = -1,
) -> np.ndarray:
    """Leaf values by the expected squared loss (`refit_squared`) or log-loss (`refit_log_loss`).

    Parameters
    ----------
    matched : MatchedEnsemble
    rows : Rows
        n rows.
    y : float64 array (n, K)
        As `targets` gives it.
    method : {"auto", "bagging", "forest", "boosting"}
        "auto": "bagging" if the model is an average of trees, else "boosting".
    weight_decay : float or None
        None: 0 of squared loss, one over the sum of weights of log-loss.
    weight, m, seed, n_jobs
        As of `refit_log_loss`.

    Returns
    -------
    float64 array (L, K)

    Raises
    ------
    ValueError
        A method that there is not, or that does not fit the link; a link with no loss of its own; a negative or no
        weight decay where there has to be some; rows of probability 0.
    """
    ensemble = matched.ensemble
    link = ensemble.link
    check("method", method, ("auto", *METHODS))
    if link == "exp":
        raise ValueError(
            f"the {ensemble.library} predicts the exponential of a sum, by one of several losses (Poisson, gamma, "
            "Tweedie, ...): there is no refit of these, only of squared loss and log-loss"
        )
    if weight_decay is None:
        weight_decay = 0.0 if link == "identity" else 1.0 / (len(y) if weight is None else float(weight.sum()))
    check_number("weight_decay", weight_decay, 0, np.inf, without="high", text="a number of at least 0")
    if method == "auto":
        method = "bagging" if is_average(ensemble) else "boosting"
    if link == "identity":
        return refit_squared(matched, rows, y, method, weight_decay, weight, n_jobs=n_jobs)
    if method == "bagging":
        raise ValueError(
            f"method='bagging': the {ensemble.library} adds up log-odds, its trees are no predictions of their own; "
            "use 'boosting' or 'forest'"
        )
    if method == "forest" and weight_decay == 0:
        raise ValueError(
            "method='forest': log-loss has no minimum where rows of a leaf are of one class; give a weight_decay"
        )
    return refit_log_loss(matched, rows, y, method, weight_decay, weight, m, seed, n_jobs)


def targets(ensemble: Ensemble, y: Any, n: int) -> np.ndarray:
    """What n rows are to be predicted as, in the model's outputs.

    Parameters
    ----------
    ensemble : Ensemble
    y : array_like (n,)
        Numbers; labels, if the model is a classifier.
    n : int

    Returns
    -------
    float64 array (n, K)
        Of classes 1 for the row's, else 0; of a logistic link (K = 1) 1 for the second.

    Raises
    ------
    ValueError
        Another number of entries, missing ones, numbers that are not finite, labels that the model does not know.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from jointforest.ensembles.read import read_ensemble
    >>> model = read_ensemble(DecisionTreeClassifier().fit([[0.0], [1.0]], ["no", "yes"]))
    >>> targets(model, ["yes", "no"], 2)
    array([[0., 1.],
           [1., 0.]])
    """
    cells = np.asarray(y, dtype=object)
    if cells.shape != (n,):
        raise ValueError(f"y: expected one entry for each of the {n} rows of X, got shape {cells.shape}")
    missing = [i for i, cell in enumerate(cells.tolist()) if _is_missing(cell)]
    if missing:
        raise ValueError(
            f"y: {len(missing)} of {n} entries are missing, the first in row {missing[0]}; only X may have missing "
            "cells: leave these rows out"
        )
    if ensemble.classes is None:
        try:
            numbers = cells.astype(np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"y: expected numbers for the {ensemble.library}, got {cells[0]!r}") from None
        if not np.isfinite(numbers).all():
            raise ValueError("y: infinite numbers")
        if ensemble.link == "logistic" and ((numbers < 0) | (numbers > 1)).any():
            raise ValueError(f"y: the {ensemble.library} predicts shares; expected numbers from 0 to 1")
        return numbers[:, None]
    place = {label: k for k, label in enumerate(ensemble.classes)}
    unknown = [cell for cell in cells.tolist() if cell not in place]
    if unknown:
        raise ValueError(
            f"y: {unknown[0]!r} is no class of the {ensemble.library}, which has {list(ensemble.classes)[:8]}"
        )
    shares = np.eye(len(place))[[place[cell] for cell in cells.tolist()]]
    return shares[:, 1:] if ensemble.link == "logistic" else shares


def _is_missing(cell: Any) -> bool:
    return cell is None or type(cell).__name__ == "NAType" or cell != cell  # pandas.NA compares to nothing


def row_weights(weight: Any, n: int) -> np.ndarray:
    """Weights of n rows, (n,): 1 if None.

    Raises
    ------
    ValueError
        Another number of them, negative ones, or none above 0.

    Examples
    --------
    >>> row_weights(None, 2)
    array([1., 1.])
    """
    if weight is None:
        weight = np.ones(n)
    weight = np.asarray(weight, dtype=np.float64)
    if weight.shape != (n,) or not (np.isfinite(weight) & (weight >= 0)).all() or not weight.any():
        raise ValueError(f"sample_weight: expected {n} finite numbers of at least 0, some above 0")
    return weight
