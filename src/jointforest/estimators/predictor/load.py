"""Predictors from files."""

from __future__ import annotations

import os

import numpy as np

from ...api.joint import Joint
from ...models.file import ModelFileError
from .classifier import JointClassifier
from .files import read_predictor
from .regressor import JointRegressor

_LABELS = "biufUO"
"""Kinds of NumPy types that labels of classes may have."""


def load_predictor(path: str | os.PathLike[str]) -> JointClassifier | JointRegressor:
    """The predictor in a file that `JointClassifier.save` or `JointRegressor.save` wrote.

    Nothing in the file is executed, and every field is checked: loading a file from elsewhere is safe.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    JointClassifier or JointRegressor
        Its ``fitted_by`` is None, and its parameters have their defaults.

    Raises
    ------
    OSError
        If the file cannot be read.
    ModelFileError
        A ValueError: if it is no model file, holds a joint alone, is damaged, or is of a newer format.

    Examples
    --------
    >>> import tempfile, jointforest as jf
    >>> penguins = jf.datasets.load_penguins()
    >>> X, y = penguins[["bill_length_mm", "island"]], penguins["species"]
    >>> clf = jf.JointClassifier(random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     clf.save(f"{folder}/species.joint")
    ...     again = jf.load_predictor(f"{folder}/species.joint")
    >>> bool((again.predict_proba(X) == clf.predict_proba(X)).all())
    True
    """
    saved = read_predictor(path)
    schema = saved.joint.schema
    predictor: JointClassifier | JointRegressor = JointClassifier() if saved.kind == "classifier" else JointRegressor()
    predictor._set(Joint(saved.joint), saved.members, saved.pool, saved.known, saved.seed, saved.alone, None)
    features = schema.all_columns.names[:-1]
    predictor.n_features_in_ = len(features)
    if schema.frame != "numpy":
        predictor.feature_names_in_ = np.array(features, dtype=object)
    if isinstance(predictor, JointClassifier):
        predictor.classes_ = _learned_classes(list(schema.columns[-1].levels), saved.labels, path)
    return predictor


def _learned_classes(levels: list, labels: str, path: str | os.PathLike[str]) -> np.ndarray:
    """The classes (K,) as they were given at learning."""
    try:
        dtype = np.dtype(labels)
        classes = np.array(levels, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise ModelFileError(f"{os.fspath(path)}: labels: {error}") from None
    if dtype.kind not in _LABELS or classes.tolist() != levels:
        raise ModelFileError(f"{os.fspath(path)}: labels of another type")
    return classes
