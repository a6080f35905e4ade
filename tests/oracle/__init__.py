"""A slow, obvious oracle for every query, from the definition; shares no code with the package.

The forest density is the mixture of Watson et al. (AISTATS 2023, section 4, Alg. 2), as in `docs/design.md`:

    M(x) = sum_l w_l * 1[x in B_l] * prod_j D_lj(x_j)

over the leaves l of all trees, with boxes ``B_l`` half-open, ``(lo, hi]``. Every function here goes through all leaves.
Its only source of numbers are the plain arrays of a `Model` and of an `Evidence`. It is meant for mild parameters,
where differences of distribution functions are accurate.
"""

from . import expectation, refit
from .boxes import leaf_boxes, n_levels
from .column import Given, cdf, given, level_probability, pdf, probability_of, quantile
from .density import background_weight, log_density, log_joint, log_leaf, log_sum, posterior
from .evidence import Set, cell, is_level_in
from .moments import impute, mean_variance, missing_rate
from .robustness import Interior, TooMany, Vertices, contaminated, leaf_sum
from .slot import LOGISTIC, NORMAL, STUDENT, UNIFORM, level_mass, piece
from .trees import combined, without_densities

__all__ = [
    "LOGISTIC",
    "NORMAL",
    "STUDENT",
    "UNIFORM",
    "Given",
    "Interior",
    "Set",
    "TooMany",
    "Vertices",
    "background_weight",
    "cdf",
    "cell",
    "combined",
    "contaminated",
    "expectation",
    "given",
    "impute",
    "is_level_in",
    "leaf_boxes",
    "leaf_sum",
    "level_mass",
    "level_probability",
    "log_density",
    "log_joint",
    "log_leaf",
    "log_sum",
    "mean_variance",
    "missing_rate",
    "n_levels",
    "pdf",
    "piece",
    "posterior",
    "probability_of",
    "quantile",
    "refit",
    "without_densities",
]
