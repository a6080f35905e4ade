"""log p(evidence)."""

from __future__ import annotations

import numpy as np

from ...model.model import Model
from ...table.evidence import Evidence
from .mixing import log_joint


def log_density(model: Model, evidence: Evidence, n_jobs: int | None = -1) -> np.ndarray:
    """Log-density of each row of evidence; cells of which nothing is known are marginalised.

    Parameters
    ----------
    model : Model
    evidence : Evidence
        n rows. Values count with their density (grids: mass of the cell over the step), atoms, levels and regions with
        their mass.
    n_jobs : int or None
        Threads; the answer does not depend on it.

    Returns
    -------
    float64 array (n,)
        Natural logarithm, ``evidence.log_penalty`` added; -inf where the model gives probability 0.
    """
    if len(model.parts) == 1:
        return model.parts[0].log_density(evidence, n_jobs)
    return np.logaddexp.reduce(log_joint(model, evidence, n_jobs), axis=1)
