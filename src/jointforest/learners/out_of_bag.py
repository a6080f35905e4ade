"""Log-densities of training rows by the trees that were grown without them."""

from __future__ import annotations

import numpy as np

from ..data.evidence import Evidence
from ..models.box_forest.forest import Forest
from ..models.box_forest.posterior import tree_log_density


def oob_log_density(model: Forest, evidence: Evidence, drawn: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """Log-density (n,) of each row by the trees that did not draw it and the background; NaN where every tree drew it.

    Parameters
    ----------
    model : Forest
        Its leaf densities are estimated on the rows that each tree drew.
    evidence : Evidence
        The n rows.
    drawn : bool array (T, n)
        Which rows each tree drew.
    n_jobs : int or None
        Threads; the answer does not depend on it.
    """
    by_tree = tree_log_density(model, evidence, n_jobs)
    n_trees = len(drawn)
    out_of_bag = ~drawn.T
    number = out_of_bag.sum(axis=1)
    trees = np.where(out_of_bag, by_tree[:, :n_trees], -np.inf)
    rescale = np.log(n_trees) - np.log(np.maximum(number, 1))
    density = np.logaddexp.reduce(np.column_stack([trees + rescale[:, None], by_tree[:, n_trees:]]), axis=1)
    return np.where(number > 0, density, np.nan)
