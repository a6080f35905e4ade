"""A mixture of joints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..queries.reshape.mix import mix as mix_models
from .joint import Joint


def mix(joints: Sequence[Any], weights: Any = None) -> Joint:
    """One joint that is the weighted sum of several: a row comes from joint k with probability ``weights[k]``.

    Every question is answered exactly: given evidence, each joint counts by how well the evidence fits it.

    Parameters
    ----------
    joints : sequence of Joint
        At least one, learned with the same schema: names, kinds, grids, atoms and levels.
    weights : sequence of float, optional
        One a joint, above 0; they are divided by their sum. Default: equal ones.

    Returns
    -------
    Joint
        Forests become one forest, which answers every question that forests do.

    Raises
    ------
    TypeError
        If one of them is no Joint.
    ValueError
        If there is none, schemas differ, or the weights are not as many positive numbers.

    Examples
    --------
    >>> import jointforest as jf
    >>> penguins = jf.datasets.load_penguins()
    >>> joints = [jf.AdversarialForest(n_estimators=2, random_state=k).fit(penguins).joint_ for k in range(2)]
    >>> both = jf.mix(joints, [0.75, 0.25])
    >>> alone = [joint.probability("species = Gentoo") for joint in joints]
    >>> bool(abs(both.probability("species = Gentoo") - 0.75 * alone[0] - 0.25 * alone[1]) < 1e-12)
    True
    """
    if isinstance(joints, Joint):
        raise TypeError("mix: expected a list of joints, got one Joint; write mix([a, b])")
    joints = list(joints)
    if not joints:
        raise ValueError("mix: expected at least one joint, got none")
    for k, joint in enumerate(joints):
        if not isinstance(joint, Joint):
            hint = "; give its joint_" if hasattr(joint, "joint_") else ""
            raise TypeError(f"mix: expected joints, got {type(joint).__name__} at place {k}{hint}")
        _need_equal(joints[0], joint, k)
    return Joint(mix_models([joint.model for joint in joints], _weights(weights, len(joints))))


def _weights(given: Any, n: int) -> np.ndarray:
    """The weights as shares."""
    if given is None:
        return np.full(n, 1.0 / n)
    try:
        weight = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"weights: expected {n} positive numbers, got {given!r}") from None
    if weight.shape != (n,) or not np.all(np.isfinite(weight) & (weight > 0)):
        raise ValueError(f"weights: expected {n} positive numbers, one a joint, got {given!r}")
    share: np.ndarray = weight / weight.max()
    return share / share.sum()


def _need_equal(first: Joint, other: Joint, k: int) -> None:
    """A ValueError that names the first column in which two schemas differ."""
    if first.schema == other.schema:
        return
    if first.columns != other.columns:
        raise ValueError(f"mix: joint {k} has the columns {other.columns[:8]}, the first has {first.columns[:8]}")
    for mine, its in zip(first.schema.columns, other.schema.columns, strict=True):
        for field in ("kind", "dtype", "step", "origin", "atoms", "levels", "minimum", "maximum", "n_observed"):
            a, b = getattr(mine, field), getattr(its, field)
            if a != b and not (a != a and b != b):
                raise ValueError(
                    f"mix: column {mine.name!r} has another {field} in joint {k} ({str(b)[:60]}) than in the first "
                    f"({str(a)[:60]}); learn both with one schema: the same rows, or the same kinds and levels"
                )
    raise ValueError(f"mix: joint {k} was learned from another kind of frame ({other.schema.frame}) than the first")
