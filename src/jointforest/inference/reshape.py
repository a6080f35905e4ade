"""A model conditioned on evidence, as a model of its own. See docs/how-to/find-modes.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..data.evidence import Evidence
from ..models.base import Distribution
from ..models.box_forest.box_forest import BoxForest
from ..models.box_forest.merge import merge
from ..models.mixture import Mixture
from .posterior import log_joint


def condition(model: Mixture, evidence: Evidence) -> Mixture:
    """The distribution given evidence, exact: each part given it, weighed by how well it fits the part.

    Parameters
    ----------
    model : Mixture
    evidence : Evidence
        One row; its penalty is no part of the distribution.

    Returns
    -------
    Mixture
        Of all columns, see `models.box_forest.condition`. Parts in which the evidence is impossible are gone.

    Raises
    ------
    ValueError
        If the evidence has probability 0, or a value so far out on its grid that no number lies between cells.
    """
    joint = log_joint(model, evidence)[0]
    possible = np.flatnonzero(joint > -np.inf).tolist() or [0]  # a part says what is wrong if none is
    parts = tuple(model.parts[k].condition(evidence) for k in possible)
    if len(parts) == 1:
        return Mixture(parts[0].schema, parts, np.zeros(1))
    return Mixture(parts[0].schema, parts, joint[possible] - np.logaddexp.reduce(joint[possible]))


# ---- The marginal distribution of some columns, as a model of its own. See docs/how-to/find-modes.md.


def marginalize(model: Mixture, columns: Sequence[int]) -> Mixture:
    """The marginal of a model over some of its columns, exact: that of each part, the weights as they were.

    Parameters
    ----------
    model : Mixture
    columns : sequence of int
        Numbers of the columns that stay, at least one; their order stays that of the table.

    Returns
    -------
    Mixture
        Answers as the old one does where the other columns are missing.

    Raises
    ------
    ValueError
        If no column is left.
    """
    parts = tuple(part.marginalize(list(columns)) for part in model.parts)
    return Mixture(parts[0].schema, parts, model.log_weight)


# ---- A model given which cells are missing, as a model of its own. See docs/reference/query-language.md.


def given_missing(model: Mixture, missing: Mapping[str, bool]) -> tuple[Mixture | None, float]:
    """The distribution given that cells are missing (or are known), exact, and the log-probability of that.

    Parameters
    ----------
    model : Mixture
    missing : mapping of column name to bool
        Whether the column's cell is missing.

    Returns
    -------
    model : Mixture or None
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
        parts: list[Distribution] = [part for part, _ in each if part is not None]
        model = Mixture(model.schema, tuple(parts), joint[joint > -np.inf] - log_p)
        log_probability += log_p
    return model, log_probability


# ---- Several models as one: their weighted sum.


def mix(models: Sequence[Mixture], weight: np.ndarray) -> Mixture:
    """M(x) = sum_i weight[i] M_i(x), of models of one schema; their forests become one forest.

    So a mixture of forests answers every question of forests, robustness and rules included.

    Parameters
    ----------
    models : sequence of Mixture
        At least one, with equal schemas.
    weight : float64 array
        One a model, above 0; they sum to 1.

    Returns
    -------
    Mixture
    """
    parts = [part for model in models for part in model.parts]
    log_weight = np.concatenate([model.log_weight + np.log(w) for model, w in zip(models, weight, strict=True)])
    is_forest = np.array([isinstance(part, BoxForest) for part in parts])
    if is_forest.sum() > 1:
        forests = [part.forest for part in parts if isinstance(part, BoxForest)]
        total = np.logaddexp.reduce(log_weight[is_forest])
        others: list[Distribution] = [part for part, forest in zip(parts, is_forest, strict=True) if not forest]
        parts = [BoxForest(merge(forests, log_weight[is_forest] - total)), *others]
        log_weight = np.concatenate([[total], log_weight[~is_forest]])
    return Mixture(models[0].schema, tuple(parts), log_weight - np.logaddexp.reduce(log_weight))
