"""Pictures, with matplotlib (``pip install 'jointforest[plot]'``); nothing else in the package needs it."""

from .distributions import cdf, evidence_sequence, marginal, posterior
from .pairs import dependence, pair, regions
from .predictions import attribution, calibration, fidelity, shapley_summary, why
from .robustness import accuracy_by_epsilon, epsilon_against_density, extreme_rows
from .survival import survival
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
