"""Entropies under hidden trees: of the codes, and of what lies inside each code."""

from __future__ import annotations

import numpy as np

from ...hidden.hidden_trees import HiddenTrees
from ...hidden.joint_codes import joint_codes
from ...hidden.part import HiddenPart
from ...model.model import Model
from ...table.scale.codes import codes_of
from ...table.scale.entropy import code_entropy
from .projection import Columns, View


def hidden_of(model: Model) -> HiddenTrees | None:
    """The hidden trees of a model that has no other part."""
    part = model.parts[0]
    return part.hidden if len(model.parts) == 1 and isinstance(part, HiddenPart) else None


def hidden_entropy(v: View, hidden: HiddenTrees, of: Columns) -> float | None:
    """Entropy of a few columns, exact: H(codes) + sum_j sum_c p(code_j = c) H(x_j | c); None if they are too many."""
    p = joint_codes(hidden, [v.number[k] for k in of])
    if p is None:
        return None
    some = p[p > 0.0]
    total = -float(some @ np.log(some))
    for axis, k in enumerate(of):
        marginal = p.sum(axis=tuple(a for a in range(p.ndim) if a != axis))
        total += float(marginal @ code_entropy(hidden.scales[v.number[k]]))
    return total


def inside_codes(v: View, hidden: HiddenTrees, of: Columns, X: np.ndarray) -> tuple[float, np.ndarray]:
    """Entropy that lies inside the columns' codes, exact, and its log density for rows X (n, k) of the view, (n,)."""
    total, log_inside = 0.0, np.zeros(len(X))
    for k in of:
        scale = hidden.scales[v.number[k]]
        marginal = joint_codes(hidden, [v.number[k]])
        assert marginal is not None
        total += float(marginal @ code_entropy(scale))
        log_inside += codes_of(scale, X[:, k])[1]
    return total, log_inside
