"""Joints learned from Dask frames, and asked about them (``pip install 'jointforest[dask]'``).

Learners are those of the package, of the same names; what they end in, ``joint_``, is an ordinary joint.
See ``docs/how-to/dask.md``.
"""

from .answers import impute, log_density, predict, predict_proba, sample
from .learners import (
    AdversarialForest,
    ForestOutlierDetector,
    GenerativeForestClassifier,
    GenerativeForestRegressor,
    HiddenTreeForest,
    HistoryForest,
    JointTree,
)

__all__ = [
    "AdversarialForest",
    "ForestOutlierDetector",
    "GenerativeForestClassifier",
    "GenerativeForestRegressor",
    "HiddenTreeForest",
    "HistoryForest",
    "JointTree",
    "impute",
    "log_density",
    "predict",
    "predict_proba",
    "sample",
]
