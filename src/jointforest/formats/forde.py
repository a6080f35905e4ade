"""Parameters of the R package arf, as its function ``forde`` gives them, in Parquet files.

An adversarial random forest is there a mixture over the leaves of all trees: p(x) = mean over trees of the sum over
leaves of cvg * product over variables of a truncated normal or uniform density, or of a level's probability (Watson et
al. 2023, equation 3).
"""

from __future__ import annotations

from ..leaves.table import NORMAL, UNIFORM

FIELDS = {
    "forest": ("f_idx", "tree", "leaf", "cvg"),
    "cnt": ("f_idx", "variable", "min", "max", "mu", "sigma"),
    "cat": ("f_idx", "variable", "val", "prob"),
    "meta": ("variable", "class", "family"),
}
"""Tables, and the fields that each must have; ``cnt`` and ``cat`` may have ``NA_share``, ``meta`` ``decimals``."""
NUMBERS = {int(NORMAL): "truncnorm", int(UNIFORM): "unif"}
"""arf's names of families of numbers."""
LEVELS = "multinom"
"""arf's name of the family of levels."""
TOLERANCE = 1e-6
"""By how much probabilities that should sum to 1 may not."""
