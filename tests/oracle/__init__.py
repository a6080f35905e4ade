"""A slow, obvious oracle for every query, from the definition; shares no code with the package.

The forest density is the mixture of Watson et al. (AISTATS 2023, section 4, Alg. 2), as in `docs/design.md`:

    M(x) = sum_l w_l * 1[x in B_l] * prod_j D_lj(x_j)

over the leaves l of all trees, with boxes ``B_l`` half-open, ``(lo, hi]``. In a leaf with a circuit the value of the
circuit's root stands for the product over j, by recursion. Every function here goes through all leaves.
Its only source of numbers are the plain arrays of a `Model` and of an `Evidence`. It is meant for mild parameters,
where differences of distribution functions are accurate.
"""

from tests.oracle import expectation, refit
from tests.oracle.boxes import leaf_boxes, n_levels
from tests.oracle.column import Given, cdf, given, level_probability, pdf, probability_of, quantile
from tests.oracle.density import background_weight, log_density, log_joint, log_leaf, log_sum, posterior
from tests.oracle.evidence import Set, cell, is_level_in
from tests.oracle.moments import impute, mean_variance, missing_rate
from tests.oracle.robustness import Interior, TooMany, Vertices, contaminated, leaf_sum
from tests.oracle.slot import NORMAL, STUDENT, UNIFORM, level_mass, piece
from tests.oracle.trees import combined, without_densities

__all__ = [
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
