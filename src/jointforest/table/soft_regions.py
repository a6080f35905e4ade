"""What soft evidence means in a column, as the kernels see it: runs of cells and atoms with log-likelihoods."""

from __future__ import annotations

import math

import numpy as np

from .cell_places import center, place
from .conditions import AllOf, AnyOf, Not, normal
from .meaning import Region, intersected, meaning_of, weighed
from .schema import Column
from .soft_conditions import About, Likely, is_span, width

FAR = 8.0
"""Standard deviations of a measurement beyond which a value is ruled out: its likelihood is 1e-14 of the greatest."""
STEPS = 160
"""Steps of a staircase, each of a tenth of a standard deviation; wider cells of a grid are taken one by one."""


def soft_region(column: Column, condition: Likely | About) -> Region:
    """The region, with likelihoods, that soft evidence is.

    Raises
    ------
    ValueError
        Values and intervals that the column cannot have, or that overlap; a measurement of a column of levels.

    Examples
    --------
    >>> sex = Column("sex", "categorical", "str", levels=("Female", "Male"))
    >>> soft_region(sex, Likely((("Male", 0.8), ("Female", 0.2)))).runs
    ((-0.5, 0.5), (0.5, 1.5))
    """
    return _of_likely(column, condition) if isinstance(condition, Likely) else _of_about(column, condition)


def _of_likely(column: Column, condition: Likely) -> Region:
    parts = [(_part(column, key), key, likelihood) for key, likelihood in condition.likelihoods]
    for k, (one, key, _) in enumerate(parts):
        for other, second, _ in parts[:k]:
            both = intersected(one, other)
            if both.runs or both.atoms:
                raise ValueError(
                    f"column {column.name!r}: {second!r} and {key!r} overlap, so some value has two likelihoods; "
                    "name each value once (closed='left' or 'right' leaves an end out)"
                )
    if condition.others > 0.0:
        rest = meaning_of(column, AllOf(*(Not(normal(key)) for _, key, _ in parts)))
        assert isinstance(rest, Region)
        parts.append((rest, "others", condition.others))
    parts = [(part, key, x) for part, key, x in parts if x > 0.0 and (part.runs or part.atoms)]
    top = max((x for _, _, x in parts), default=1.0)
    # a quotient that underflows is tiny, but not ruled out
    logs = [min(math.log(x) - math.log(top), 0.0) if x < top else 0.0 for _, _, x in parts]
    runs = sorted((run, weight) for (part, _, _), weight in zip(parts, logs, strict=True) for run in part.runs)
    atoms, of_atoms = 0, [0.0] * len(column.atoms)
    for (part, _, _), weight in zip(parts, logs, strict=True):
        atoms |= part.atoms
        for k in range(len(column.atoms)):
            if part.atoms >> k & 1:
                of_atoms[k] = weight
    return weighed(runs, atoms, of_atoms)


def _part(column: Column, key: object) -> Region:
    """The region of one entry of `likely`."""
    key = normal(key)
    if key is None:
        raise ValueError(f"column {column.name!r}: likely(...) says how likely values are, not that one is missing")
    found = meaning_of(column, key if isinstance(key, AnyOf) else AnyOf(key))
    assert isinstance(found, Region)
    return found


def _of_about(column: Column, condition: About) -> Region:
    if column.is_categorical:
        raise ValueError(
            f"column {column.name!r} is {column.kind}: {condition!r} is a measurement of a number; "
            "use likely({level: likelihood, ...})"
        )
    if column.kind != "datetime" and is_span(condition.sd):
        raise ValueError(f"column {column.name!r} is {column.kind}: expected a number as sd, got {condition.sd!r}")
    mean, sd = column.to_number(condition.value), width(condition.sd)
    sharp = max(sd / 16.0, column.step)
    if not (math.isfinite(2.0 * FAR * sd) and abs(mean) < 2.0**49 * sharp):
        raise ValueError(
            f"column {column.name!r}: {condition!r} is finer, or wider, than numbers are; "
            "give the value itself, or None"
        )
    if column.step > 0.0:
        edges, weights = _on_grid(column, mean, sd)
    else:
        edges, weights = mean + sd * _PLACES, _WEIGHTS
    new = np.append(True, np.diff(weights) != 0.0)  # equal neighbours are one run
    edges, weights = np.append(edges[:-1][new], edges[-1]), weights[new]
    of_atoms = [_atom_weight(column, atom, mean, sd, edges, weights) for atom in column.atoms]
    held = sum(1 << k for k, weight in enumerate(of_atoms) if weight > -math.inf)
    of_atoms = [weight if weight > -math.inf else 0.0 for weight in of_atoms[: held.bit_length()]]
    return Region(
        tuple(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)),
        held,
        tuple(weights.tolist()) if weights.any() else (),
        tuple(of_atoms) if any(of_atoms) else (),
    )


def _atom_weight(column: Column, atom: float, mean: float, sd: float, edges: np.ndarray, weights: np.ndarray) -> float:
    """Log-likelihood of an atom, on a grid that of its cell; -inf if it is too far off."""
    if column.step > 0.0:
        k = int(np.searchsorted(edges, atom)) - 1
        return float(weights[k]) if 0 <= k < len(weights) else -math.inf
    z = (atom - mean) / sd
    return -0.5 * z * z if abs(z) <= FAR else -math.inf


def _on_grid(column: Column, mean: float, sd: float) -> tuple[np.ndarray, np.ndarray]:
    """Edges (k + 1,) and log-likelihoods (k,) of cells, or if the grid is fine of steps of cells; atoms' stay alone."""
    at, spread = place(column, mean), sd / column.step
    nearest = float(math.floor(at + 0.5))
    # likelihoods are relative to the best cell's: a precise measurement between two centres leaves both
    reach = math.hypot(FAR * spread, nearest - at)
    first, last = min(math.ceil(at - reach), nearest), max(math.floor(at + reach), nearest)
    ends = np.floor(np.linspace(first, last + 1.0, int(min(STEPS, last - first + 1)) + 1))
    alone = np.array([cell for atom in column.atoms if first <= (cell := center(column, atom)) <= last])
    if len(alone):
        ends = np.unique(np.concatenate([ends, alone, alone + 1.0]))
    lowest = ends[:-1]  # the numbers of the first cells of the steps
    with np.errstate(over="ignore"):
        weights = 0.5 * (nearest - lowest) * (nearest + lowest - 2.0 * at) / spread / spread
    several = np.diff(ends) > 1.0
    if several.any():
        weights[several] = _step_means((ends - 0.5 - at) / spread)[several]
    kept = np.flatnonzero(weights > -0.5 * FAR * FAR - 1.0)  # the others are at the ends
    ends, weights = ends[kept[0] : kept[-1] + 2], np.minimum(weights[kept[0] : kept[-1] + 1], 0.0)
    return column.center + (ends - 0.5) * column.step, weights


def _step_means(z: np.ndarray) -> np.ndarray:
    """Logs of the means of exp(-z^2 / 2) over the steps between these ascending places, (k - 1,)."""
    # Simpson's rule over few parts of each step: steps are short, or cells of a fine grid
    low, high = z[:-1], z[1:]
    points = low + (high - low) * np.linspace(0.0, 1.0, 9)[:, None]
    simpson = np.array([1, 4, 2, 4, 2, 4, 2, 4, 1]) / 24.0
    return np.asarray(np.log((simpson[:, None] * np.exp(-0.5 * points * points)).sum(axis=0)))


_PLACES = np.linspace(-FAR, FAR, STEPS + 1)
"""Edges of a staircase, in standard deviations from the measured value."""
_WEIGHTS = _step_means(_PLACES)
