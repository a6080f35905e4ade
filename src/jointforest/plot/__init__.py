"""Pictures, with matplotlib (``pip install 'jointforest[plot]'``); nothing else in the package needs it."""

from .distributions import cdf, evidence_sequence, marginal, posterior
from .pairs import dependence, pair, regions
from .predictions import (
    accuracy_by_epsilon,
    attribution,
    calibration,
    epsilon_against_density,
    extreme_rows,
    fidelity,
    shapley_summary,
    survival,
    why,
)
from .trees import leaf_images, tree

__all__ = [
    "accuracy_by_epsilon",
    "attribution",
    "calibration",
    "cdf",
    "dependence",
    "epsilon_against_density",
    "evidence_sequence",
    "extreme_rows",
    "fidelity",
    "leaf_images",
    "marginal",
    "pair",
    "posterior",
    "regions",
    "shapley_summary",
    "survival",
    "tree",
    "why",
]
