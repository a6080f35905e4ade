"""Joints from what other tools hold."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ..formats import arrow
from ..formats.read_forde import read_forde
from .joint import Joint


def from_arrow(tables: Mapping[str, Any]) -> Joint:
    """The joint of Arrow tables that `Joint.to_arrow` gave.

    Nothing in them is executed, and every field is checked: tables from elsewhere are safe to read.

    Parameters
    ----------
    tables : dict of str to pyarrow.Table

    Returns
    -------
    Joint

    Raises
    ------
    ValueError
        If anything in the tables is not as it must be.

    Examples
    --------
    >>> import jointforest as jf
    >>> joint = jf.AdversarialForest(n_estimators=2, random_state=0).fit(jf.datasets.load_penguins()).joint_
    >>> jf.from_arrow(joint.to_arrow()).n_leaves == joint.n_leaves
    True
    """
    return Joint(arrow.from_arrow(tables))


def from_forde(folder: str | os.PathLike[str]) -> Joint:
    """The joint of parameters that the R package arf learned (its function ``forde``), written as Parquet.

    In R: ``for (part in c("cnt", "cat", "forest", "meta")) arrow::write_parquet(psi[[part]], file.path(folder,
    paste0(part, ".parquet")))``. The parameters say what leaves hold, not which tree led there: each leaf is asked,
    so that answers take time in proportion to their number. See ``docs/formats.md``.

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
