"""Joints from files."""

from __future__ import annotations

import os

from ..model.file import load_model
from .joint import Joint


def load(path: str | os.PathLike[str]) -> Joint:
    """Load a joint distribution from a `.joint` file.

    Nothing in the file is executed, and every field is checked: loading a file from elsewhere is safe.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    Joint

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
    return Joint(load_model(path))
