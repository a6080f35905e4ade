"""A forest whose one-column marginals are given ones: raking, as conditioning on likelihoods."""

# See docs/concepts/reshaping.md.

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ...data.evidence import Evidence
from ...runtime.warnings import warn
from .condition import condition
from .histogram import Bins, bins_between, mass_in_leaves
from .leaves.levels import WideLevels, levels_of_slot, mixed_over_rows, weighed_sums
from .posterior import LeafPosterior, OneRow
from .structure import Forest

_FAR = 0.015
"""Columns whose marginal is farther than this from the wanted one are raked."""
_LOST = 0.1
"""Columns whose marginal stays farther than this from the wanted one are warned of."""
_CLOSE = 0.008
"""How close a raked column's CDF is inside of its bins."""
WITHIN = 0.02
"""By how much the CDF in a leaf may be off, so that fewer leaves are cut into pieces."""
POINTS = 512
"""Most places at which CDFs are held against each other, even in probability, beside the atoms."""
ROUNDS = 3
"""Most times that a forest is raked: what is raked late may move the others."""
_SWEEPS = 100
"""Most times that each column is raked."""
_DONE = 1e-4
"""Largest distance of the CDFs at the bins' ends at which the sweeps end."""
_CHUNK = 4096
"""Parameter rows at a time, which bounds memory."""
_LEAST = 1e-6
"""Mass of a bin from which a factor is learned; a factor of less mass would be a ratio of rounding errors."""


class Raked(NamedTuple):
    """One column.

    wanted : float64 array (B,). The probability that each bin shall have.
    mass : float64 array (L, B), or WideLevels. Of the bins in the leaves.
    distance : float. Of the column's marginal from the wanted one: total variation of levels, Kolmogorov's of numbers.
    """

    bins: Bins
    wanted: np.ndarray
    mass: np.ndarray | WideLevels
    distance: float


def rake(forest: Forest, X: np.ndarray) -> Forest:
    """The distribution nearest in KL divergence to this one whose columns have the marginals of rows X (n, d)."""
    # The density times a factor of each level or bin, by iterative proportional fitting of the columns whose marginal
    # is more than `_FAR` from that of the known cells. A column of several bins is cut into pieces in a leaf.
    for _ in range(ROUNDS):
        raked = _far_columns(forest, X)
        if not raked:
            break
        forest = _tilted_forest(forest, raked)
    else:
        _warn_of_far(forest, _far_columns(forest, X))
    return forest


def _warn_of_far(forest: Forest, raked: dict[int, Raked]) -> None:
    """Warn of columns whose marginals could not be had: there is no mass to move, or they contradict each other."""
    far = [f"{forest.schema.names[j]!r} ({one.distance:.2f} off)" for j, one in raked.items() if one.distance > _LOST]
    if far:
        warn(
            f"rake: marginals stay apart from the table's: {', '.join(far)}; the joint has no rows that have them all, "
            "learn one of such a table"
        )


def _far_columns(forest: Forest, X: np.ndarray) -> dict[int, Raked]:
    """The columns that are far from the rows' marginals."""
    known = OneRow(forest, Evidence.nothing(X.shape[1]))
    far = {}
    for j in range(X.shape[1]):
        there = ~np.isnan(X[:, j])
        if there.any():
            question = _level_bins if forest.columns.is_categorical[j] else _column_bins
            raked = question(forest, known.posterior, j, X[there, j])
            if raked is not None:
                far[j] = raked
    return far


def _tilted_forest(forest: Forest, raked: dict[int, Raked]) -> Forest:
    """The forest times factors of these columns; the background keeps its weight."""
    factors = _fitted_factors(np.exp(forest.leaves.log_weight), raked)
    tilted = condition(forest, _soft_evidence(forest, raked, factors), seen=False, within=WITHIN)
    if not tilted.has_background:
        return tilted
    is_back = np.arange(-len(tilted.leaves.log_weight), 0) >= -tilted.n_background
    epsilon = np.logaddexp.reduce(forest.leaves.log_weight[-forest.n_background :])
    now = np.logaddexp.reduce(tilted.leaves.log_weight[is_back])
    others = np.log(-np.expm1(epsilon)) - np.log(-np.expm1(now))
    log_weight = tilted.leaves.log_weight + np.where(is_back, epsilon - now, others)
    return replace(tilted, leaves=tilted.leaves._replace(log_weight=log_weight))


def _level_bins(forest: Forest, post: LeafPosterior, j: int, x: np.ndarray) -> Raked | None:
    """Levels of one column as bins; None where their shares are close enough."""
    slot = forest.columns.slot[j]
    first, stop = forest.columns.level_start[slot : slot + 2].tolist()
    of_entry = np.exp(post.log_weight)
    wanted = np.bincount(x.astype(np.int64), minlength=stop - first) / len(x)
    mass = levels_of_slot(forest.columns, forest.leaves, int(slot), post.leaf.astype(np.int64))
    have = mixed_over_rows(mass, of_entry)
    distance = 0.5 * float(np.abs(have - wanted).sum())
    if distance <= _FAR:
        return None
    end = np.arange(stop - first) + 0.5
    return Raked(Bins(end - 1.0, end), wanted, mass, distance)


def _column_bins(forest: Forest, post: LeafPosterior, j: int, x: np.ndarray) -> Raked | None:
    """Bins of one column of numbers, as few as do; None where its CDF is close enough."""
    values = np.sort(x)
    bins = bins_between(forest, j, _compared_points(forest, j, values))
    wanted = np.searchsorted(values, bins.hi, side="right") / len(values)
    mass = _mass_in_leaves(forest, j, post.leaf, bins)
    have = np.cumsum(np.exp(post.log_weight) @ mass)
    distance = float(np.abs(have - wanted).max(initial=0.0))
    if distance <= _FAR:
        return None
    ends = _ends_of_bins(have / have[-1], wanted)
    mass = np.add.reduceat(mass, np.append(0, ends[:-1] + 1), axis=1)
    bins = Bins(np.append(-np.inf, bins.hi[ends[:-1]]), bins.hi[ends])
    return Raked(bins, np.diff(wanted[ends], prepend=0.0), mass, distance)


def _compared_points(forest: Forest, j: int, values: np.ndarray) -> np.ndarray:
    """Where CDFs are held against each other: quantiles of sorted values (n,), atoms and places just below them."""
    slot = forest.columns.slot[j]
    atoms = forest.columns.atom_value[forest.columns.atoms_of(slot)]
    step = float(forest.columns.step[slot])
    below = atoms - step if step > 0.0 else np.nextafter(atoms, -np.inf)
    even = np.quantile(values, np.arange(1, POINTS) / POINTS, method="inverted_cdf")
    places = np.unique(np.concatenate([even, atoms, below]))
    return np.asarray(places[(places >= values[0]) & (places < values[-1])])


def _mass_in_leaves(forest: Forest, j: int, rows: np.ndarray, bins: Bins) -> np.ndarray:
    """P(column j in bin) in leaves (m,), float32 (m, B)."""
    nothing = Evidence.nothing(len(forest.columns.slot), _CHUNK)
    parts = [rows[first : first + _CHUNK] for first in range(0, len(rows), _CHUNK)]
    return np.concatenate([mass_in_leaves(forest, nothing, j, part, bins).astype(np.float32) for part in parts])


def _ends_of_bins(have: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Places (k,) of (m,) at which bins end, the last m - 1: CDFs that are equal there are `_CLOSE` in between."""
    # Greedy: each bin is as long as it can be.
    have, wanted = np.append(0.0, have), np.append(0.0, wanted)
    first, last, ends = 0, len(have) - 1, []
    while first < last:
        for end in range(last, first, -1):
            mass, aim = have[end] - have[first], wanted[end] - wanted[first]
            inside = slice(first + 1, end)
            if end == first + 1 or (
                mass > _LEAST
                and aim > 0.0
                and np.abs(wanted[first] + (have[inside] - have[first]) / mass * aim - wanted[inside]).max() <= _CLOSE
            ):
                break
        ends.append(end - 1)
        first = end
    return np.array(ends)


def _fitted_factors(weight: np.ndarray, columns: dict[int, Raked]) -> dict[int, np.ndarray]:
    """Factors of the bins of each column, by iterative proportional fitting of leaves' weights (L,)."""
    factors = {j: np.ones(len(column.wanted)) for j, column in columns.items()}
    log_weight = np.log(np.maximum(weight, 1e-300))
    norm: dict[int, np.ndarray] = {j: np.ones(len(weight)) for j in columns}
    for _ in range(_SWEEPS):
        farthest = 0.0
        for j, column in columns.items():
            now = np.exp(log_weight - log_weight.max())
            have = mixed_over_rows(column.mass, now / now.sum() / norm[j]) * factors[j]
            farthest = max(farthest, float(np.abs(np.cumsum(have - column.wanted)).max()))
            learned = (have > _LEAST) & (column.wanted > 0.0)
            factors[j] = np.where(learned, factors[j] * column.wanted / np.where(learned, have, 1.0), factors[j])
            new = weighed_sums(column.mass, factors[j])
            new = np.where(new > 0.0, new, 1.0)
            log_weight += np.log(new / norm[j])
            norm[j] = new
        if farthest <= _DONE:
            break
    return factors


def _soft_evidence(forest: Forest, columns: dict[int, Raked], factors: dict[int, np.ndarray]) -> Evidence:
    """One row of soft evidence whose likelihoods are the factors."""
    d = len(forest.columns.slot)
    region = np.full((1, d), -1, np.int32)
    most = max(int(np.diff(forest.columns.atom_start).max(initial=0)), 1)
    logs, atoms, of_atoms = [], [], np.zeros((len(columns), most))
    for r, (j, column) in enumerate(columns.items()):
        region[0, j] = r
        log_factor = np.log(factors[j])
        logs.append(log_factor - log_factor.max())
        if forest.columns.is_categorical[j]:
            atoms.append(0)
            continue
        slot = forest.columns.slot[j]
        atoms_of_slot = forest.columns.atom_value[forest.columns.atoms_of(slot)]
        atoms.append((1 << len(atoms_of_slot)) - 1)
        of_atoms[r, : len(atoms_of_slot)] = logs[-1][np.searchsorted(column.bins.hi, atoms_of_slot)]
    return Evidence.nothing(d)._replace(
        region=region,
        run_start=np.cumsum([0, *map(len, logs)]).astype(np.int32),
        run_lo=np.concatenate([column.bins.lo for column in columns.values()]),
        run_hi=np.concatenate([column.bins.hi for column in columns.values()]),
        run_log_weight=np.concatenate(logs),
        atoms=np.array(atoms, np.uint64),
        atom_log_weight=of_atoms,
    )
