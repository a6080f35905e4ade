"""Forests as joints and in files, for tests that make forests by hand."""

from __future__ import annotations

import os

from jointforest.api.joint import Joint
from jointforest.models.box_forest.box_forest import BoxForest
from jointforest.models.box_forest.structure import Forest
from jointforest.models.file import load_model, save_model


def joint_of(forest: Forest) -> Joint:
    """The joint whose only part is this forest."""
    return Joint(BoxForest(forest))


def save_forest(forest: Forest, path: str | os.PathLike[str]) -> None:
    """Save the model whose only part is this forest."""
    save_model(BoxForest(forest), path)


def load_forest(path: str | os.PathLike[str]) -> Forest:
    """The forest of a model file."""
    return load_model(path).forest
