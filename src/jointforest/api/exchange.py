"""Joints from what other tools hold."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..models.file import load_model, model_from_arrow
from ..models.forde import read_forde
from ..models.history.history_model import HistoryModel
from ..models.mixture import mixture_of as mix_models
from .history_joint import HistoryJoint
from .joint import Joint


def from_arrow(tables: Mapping[str, Any]) -> Joint:
    """The joint of Arrow tables that `Joint.to_arrow` gave.

    Nothing in them is executed, and every field is checked: tables from elsewhere are safe to read.

    Parameters
    ----------
    tables : dict of str to pyarrow.Table

    Raises
    ------
    ValueError
        If anything in the tables is not as it must be.

    Examples
    --------
    >>> joint = jf.AdversarialForest(n_estimators=2, random_state=0).fit(jf.datasets.load_penguins()).joint_
    >>> jf.from_arrow(joint.to_arrow()).n_leaves == joint.n_leaves
    True
    """
    return Joint(model_from_arrow(tables))


def from_forde(folder: str | os.PathLike[str]) -> Joint:
    """The joint of parameters that the R package arf learned (its function ``forde``), written as Parquet.

    In R: ``for (part in c("cnt", "cat", "forest", "meta")) arrow::write_parquet(psi[[part]], file.path(folder,
    paste0(part, ".parquet")))``. The parameters describe leaves, not trees: each leaf is asked,
    so that answers take time in proportion to their number. See ``docs/how-to/formats.md``.

    Parameters
    ----------
    folder : path
        With ``forest.parquet``, ``meta.parquet``, and ``cnt.parquet``, ``cat.parquet`` or both.

    Returns
    -------
    Joint
        Its log-density is that of the paper's formula.

    Raises
    ------
    FileNotFoundError
        If a file is missing.
    ValueError
        If a table lacks a field or has values that no such model has; each message names the variable and the leaf.

    References
    ----------
    Watson, Blesch, Kapar, Wright, "Adversarial random forests for density estimation and generative modeling" (2023),
    equation 3.

    Examples
    --------
    >>> import tempfile, jointforest as jf
    >>> penguins = jf.datasets.load_penguins()[["species", "bill_length_mm"]].dropna()
    >>> kinds = {"bill_length_mm": "continuous"}
    >>> joint = jf.AdversarialForest(2, leaf="normal", epsilon=0, kinds=kinds, random_state=0).fit(penguins).joint_
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     joint.to_forde(folder)
    ...     again = jf.from_forde(folder)
    >>> bool(abs(again.log_density(penguins) - joint.log_density(penguins)).max() < 1e-9)
    True
    """
    return Joint(read_forde(folder))


# ---- Joints from files.


def load(path: str | os.PathLike[str]) -> Any:
    """Load a joint distribution from a `.joint` file.

    Nothing in the file is executed, and every field is checked: loading a file from elsewhere is safe.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    Joint or HistoryJoint
        What was saved.

    Raises
    ------
    OSError
        If the file cannot be read.
    ModelFileError
        A ValueError: if it is no model file, is damaged, or was written by a newer format of the library.

    Examples
    --------
    >>> import tempfile, jointforest as jf
    >>> joint = jf.AdversarialForest(n_estimators=2, random_state=0).fit(jf.datasets.load_penguins()).joint_
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     joint.save(folder + "/penguins.joint")
    ...     again = jf.load(folder + "/penguins.joint")
    >>> again.n_leaves == joint.n_leaves
    True
    """
    model = load_model(path)
    return HistoryJoint(model) if isinstance(model, HistoryModel) else Joint(model)


# ---- A mixture of joints.


def mix(joints: Sequence[Any], weights: Any = None) -> Joint:
    """One joint that is the weighted sum of several: a row comes from joint k with probability ``weights[k]``.

    Every question is answered exactly: given evidence, each joint counts by how well the evidence fits it.

    Parameters
    ----------
    joints : sequence of Joint
        At least one, learned with the same schema: names, kinds, grids, point masses and levels.
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
            if isinstance(joint, HistoryJoint):
                hint = "; joints of histories cannot be mixed: learn one from all subjects"
            raise TypeError(f"mix: expected joints, got {type(joint).__name__} at place {k}{hint}")
        _need_equal(joints[0], joint, k)
    return Joint(mix_models([joint.distribution for joint in joints], _shares_of_weights(weights, len(joints))))


def _shares_of_weights(given: Any, n: int) -> np.ndarray:
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
    for column, twin in zip(first.schema.columns, other.schema.columns, strict=True):
        for field in ("kind", "dtype", "step", "origin", "atoms", "levels", "minimum", "maximum", "n_observed"):
            a, b = getattr(column, field), getattr(twin, field)
            if a != b and not (a != a and b != b):
                raise ValueError(
                    f"mix: column {column.name!r} has another {field} in joint {k} ({str(b)[:60]}) than in the first "
                    f"({str(a)[:60]}); learn both with one schema: the same rows, or the same kinds and levels"
                )
    raise ValueError(f"mix: joint {k} was learned from another kind of frame ({other.schema.frame}) than the first")
