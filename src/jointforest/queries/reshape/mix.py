"""Several models as one: their weighted sum."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...forest.part import ForestPart
from ...forest.reshape.merge import merge
from ...model.model import Model
from ...model.part import Part


def mix(models: Sequence[Model], weight: np.ndarray) -> Model:
    """M(x) = sum_i weight[i] M_i(x), of models of one schema; their forests become one forest.

    So a mixture of forests answers every question of forests, robustness and rules included.

    Parameters
    ----------
    models : sequence of Model
        At least one, with equal schemas.
    weight : float64 array
        One a model, above 0; they sum to 1.

    Returns
    -------
    Model
    """
    parts = [part for model in models for part in model.parts]
    log_weight = np.concatenate([model.log_weight + np.log(w) for model, w in zip(models, weight, strict=True)])
    is_forest = np.array([isinstance(part, ForestPart) for part in parts])
    if is_forest.sum() > 1:
        forests = [part.forest for part in parts if isinstance(part, ForestPart)]
        total = np.logaddexp.reduce(log_weight[is_forest])
        others: list[Part] = [part for part, forest in zip(parts, is_forest, strict=True) if not forest]
        parts = [ForestPart(merge(forests, log_weight[is_forest] - total)), *others]
        log_weight = np.concatenate([[total], log_weight[~is_forest]])
    return Model(models[0].schema, tuple(parts), log_weight - np.logaddexp.reduce(log_weight))
