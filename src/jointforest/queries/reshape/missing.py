"""A model given which cells are missing, as a model of its own. See docs/language.md."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...model.model import Model
from ...model.part import Part


def given_missing(model: Model, missing: Mapping[str, bool]) -> tuple[Model | None, float]:
    """The distribution given that cells are missing (or are known), exact, and the log-probability of that.

    Parameters
    ----------
    model : Model
    missing : mapping of column name to bool
        Whether the column's cell is missing.

    Returns
    -------
    model : Model or None
        None where it is impossible, as in columns that never lacked a cell at learning.
    log_probability : float

    Raises
    ------
    ValueError
        If a column is unknown.
    """
    log_probability = 0.0
    for name, is_missing in missing.items():
        j = model.schema.index(name)
        each = [part.given_missing(j, is_missing) for part in model.parts]
        joint = model.log_weight + np.array([log_p for _, log_p in each])
        log_p = float(np.logaddexp.reduce(joint))
        if log_p == -np.inf:
            return None, -np.inf
        parts: list[Part] = [part for part, _ in each if part is not None]
        model = Model(model.schema, tuple(parts), joint[joint > -np.inf] - log_p)
        log_probability += log_p
    return model, log_probability
