"""A model conditioned on evidence, as a model of its own. See docs/modes.md."""

from __future__ import annotations

import numpy as np

from ...model.model import Model
from ...table.evidence import Evidence
from ..posterior.mixing import log_joint


def condition(model: Model, evidence: Evidence) -> Model:
    """The distribution given evidence, exact: each part given it, weighed by how well it fits the part.

    Parameters
    ----------
    model : Model
    evidence : Evidence
        One row; its penalty is no part of the distribution.

    Returns
    -------
    Model
        Of all columns, see `forest.reshape.condition`. Parts in which the evidence is impossible are gone.

    Raises
    ------
    ValueError
        If the evidence has probability 0, or a value so far out on its grid that no number lies between cells.
    """
    joint = log_joint(model, evidence)[0]
    possible = np.flatnonzero(joint > -np.inf).tolist() or [0]  # a part says what is wrong if none is
    parts = tuple(model.parts[k].condition(evidence) for k in possible)
    if len(parts) == 1:
        return Model(parts[0].schema, parts, np.zeros(1))
    return Model(parts[0].schema, parts, joint[possible] - np.logaddexp.reduce(joint[possible]))
