"""A trained ensemble matched with a joint: its features found among the columns, its nodes' regions written down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...ensembles.table import Ensemble
from ...forest.forest import Forest
from ...ground.records import record
from ...leaves.table import Leaves
from ...table.columns import Columns
from .components import Components, RegionMasses, dependent_size, joint_components, level_masses
from .features import Features, match_features
from .split_regions import SplitRegions, Splits, split_regions


@record
class MatchedArrays(NamedTuple):
    """What kernels know before any row: fields of `MatchedEnsemble`, and of its model.

    Attributes
    ----------
    columns, leaves, regions, components, splits, masses
    middle, half : float64 arrays (N, K)
    half_most : float64 array (N,)
        The largest half of a node's outputs.
    depth, dependent_size : int
    """

    columns: Columns
    leaves: Leaves
    regions: SplitRegions
    components: Components
    splits: Splits
    masses: RegionMasses
    middle: np.ndarray
    half: np.ndarray
    half_most: np.ndarray
    depth: int
    dependent_size: int


@dataclass(frozen=True)
class MatchedEnsemble:
    """An ensemble and what it takes to compute its expectations under a joint.

    Attributes
    ----------
    features : Features
    splits : Splits
    regions : SplitRegions
    components : Components
    middle, half : float64 arrays (N, K)
        Middle, and half the width, of the range of the values below each node.
    depth : int
        Most splits on the way to a leaf.
    dependent_size : int
        Most nodes of a component whose columns depend on each other.
    masses : RegionMasses
        Without a table, see `expectation.with_table`.
    model : Forest
    """

    features: Features
    splits: Splits
    regions: SplitRegions
    components: Components
    middle: np.ndarray
    half: np.ndarray
    depth: int
    dependent_size: int
    masses: RegionMasses
    model: Forest

    @property
    def ensemble(self) -> Ensemble:
        return self.features.ensemble

    def arrays(self) -> MatchedArrays:
        """What kernels read."""
        return MatchedArrays(
            self.model.columns, self.model.leaves, self.regions, self.components, self.splits, self.masses,
            self.middle, self.half, self.half.max(axis=1), self.depth, self.dependent_size,
        )  # fmt: skip


def match_ensemble(ensemble: Ensemble, model: Forest) -> MatchedEnsemble:
    """Match an ensemble's features with the columns of a joint, by name, and find its nodes' regions.

    Parameters
    ----------
    ensemble : Ensemble
    model : Forest
        It may have more columns. Features without names are the first columns.

    Returns
    -------
    MatchedEnsemble

    Raises
    ------
    ValueError
        A feature without a column; numbers where the other has levels, levels of which the model knows none, dates.
    """
    features = match_features(ensemble, model.schema)
    column, level_value = features.column, features.level_value
    splits, regions = split_regions(ensemble, model.columns, column, level_value)
    components = joint_components(model)
    no_place = np.full(len(regions.column), -1, dtype=np.int32)
    middle, half = _ranges(ensemble)
    return MatchedEnsemble(
        features=features,
        splits=splits,
        regions=regions,
        components=components,
        middle=middle,
        half=half,
        depth=int(_depths(ensemble).max()),
        dependent_size=dependent_size(model, components),
        masses=RegionMasses(level_masses(model, components), np.empty((0, 0)), no_place),
        model=model,
    )


def _ranges(ensemble: Ensemble) -> tuple[np.ndarray, np.ndarray]:
    """Middle and half width of the range of values below each node, (N, K)."""
    low = np.full((len(ensemble.feature), ensemble.value.shape[1]), np.inf)
    is_leaf = ensemble.leaf >= 0
    low[is_leaf] = ensemble.value[ensemble.leaf[is_leaf]]
    high = np.where(is_leaf[:, None], low, -np.inf)
    depth = _depths(ensemble)
    for level in range(int(depth.max()), 0, -1):
        nodes = np.flatnonzero((depth == level - 1) & ~is_leaf)
        left, right = ensemble.left[nodes], ensemble.right[nodes]
        low[nodes], high[nodes] = np.minimum(low[left], low[right]), np.maximum(high[left], high[right])
    return (low + high) / 2, (high - low) / 2


def _depths(ensemble: Ensemble) -> np.ndarray:
    depth = np.zeros(len(ensemble.feature), dtype=np.int64)
    level = ensemble.root.astype(np.int64)
    number = 0
    while len(level):
        depth[level] = number
        inner = level[ensemble.leaf[level] < 0]
        level = np.concatenate([ensemble.left[inner], ensemble.right[inner]])
        number += 1
    return depth
