"""GradientBoosting* of scikit-learn: trees of numbers, on float32 values, added to a constant."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from .sklearn_trees import tree_of
from .table import Ensemble, join, labels_of, library_of


def read(model: Any) -> Ensemble:
    """What a fitted GradientBoostingClassifier or GradientBoostingRegressor computes.

    Parameters
    ----------
    model : fitted GradientBoosting* of scikit-learn

    Returns
    -------
    Ensemble
        Of ``loss="exponential"`` the sums are twice the model's ``decision_function``, for a logistic link.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If it is not fitted.
    ValueError
        If its ``init`` is a model of its own.

    Examples
    --------
    >>> from sklearn.ensemble import GradientBoostingClassifier
    >>> ensemble = read(GradientBoostingClassifier(n_estimators=3).fit([[0.0], [1.0]], ["no", "yes"]))
    >>> ensemble.link, ensemble.classes
    ('logistic', ('no', 'yes'))
    """
    check_is_fitted(model)
    if model.init is not None and model.init != "zero":
        raise ValueError(
            f"{library_of(model)} has init={type(model.init).__name__}: it starts from a model that is no constant; "
            "train it with init=None or 'zero'"
        )
    of_classes = is_classifier(model)
    n_outputs = model.estimators_.shape[1]
    scale = 2.0 if model.loss == "exponential" else 1.0  # P = 1 / (1 + exp(-2 F))
    trees = []
    for stage in model.estimators_:
        for k, tree in enumerate(tree.tree_ for tree in stage):
            value = np.zeros((tree.node_count, n_outputs))
            value[:, k] = scale * model.learning_rate * tree.value[:, 0, 0]
            trees.append(tree_of(tree, value))
    link = "identity" if not of_classes else "logistic" if n_outputs == 1 else "softmax"
    return join(
        trees,
        base=_base(model, link, n_outputs),
        link=link,
        names=getattr(model, "feature_names_in_", None),
        categories=[None] * model.n_features_in_,
        classes=labels_of(model.classes_) if of_classes else None,
        library=library_of(model),
    )


def _base(model: Any, link: str, n_outputs: int) -> np.ndarray:
    """The constant that it starts from: of classes their shares, through the inverse of the link."""
    if model.init == "zero":
        return np.zeros(n_outputs)
    any_row = np.zeros((1, model.n_features_in_))
    if link == "identity":
        return np.asarray(model.init_.predict(any_row), dtype=np.float64)
    eps = np.finfo(np.float64).eps
    share = np.clip(model.init_.predict_proba(any_row)[0], eps, 1 - eps)
    if link == "logistic":
        return np.log(share[1:] / (1 - share[1:]))
    return np.log(share) - np.log(share).mean()
