"""64-bit keys of cells and rows, by their content alone: what is sampled does not depend on where a row stands."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

import numpy as np

from ..cells import ColumnCells

_MISSING = np.uint64(0x9E3779B97F4A7C15)


def mixed(bits: np.ndarray) -> np.ndarray:
    """Scrambled 64-bit numbers, one to one (the finaliser of SplitMix64, Steele et al. 2014)."""
    z = np.asarray(bits, dtype=np.uint64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


def unmixed(keys: np.ndarray) -> np.ndarray:
    """The 64-bit numbers whose `mixed` these are."""
    z = np.asarray(keys, dtype=np.uint64)
    z = (z ^ (z >> np.uint64(31)) ^ (z >> np.uint64(62))) * np.uint64(pow(0x94D049BB133111EB, -1, 2**64))
    z = (z ^ (z >> np.uint64(27)) ^ (z >> np.uint64(54))) * np.uint64(pow(0xBF58476D1CE4E5B9, -1, 2**64))
    return np.asarray(z ^ (z >> np.uint64(30)) ^ (z >> np.uint64(60)))


def number_keys(values: np.ndarray) -> np.ndarray:
    """Key of each float64 number; -0 is 0."""
    return mixed((np.ascontiguousarray(values, dtype=np.float64) + 0.0).view(np.uint64))


def numbers_of(keys: np.ndarray) -> np.ndarray:
    """The float64 numbers whose `number_keys` these are."""
    return unmixed(keys).view(np.float64)


def label_key(label: Any) -> int:
    """Key of a level: of equal levels the same, whatever the process."""
    text = f"{'text' if isinstance(label, str) else 'number'}:{label if isinstance(label, str) else float(label)!r}"
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def cell_keys(cells: ColumnCells) -> np.ndarray:
    """Key of each cell of a column, uint64 (n,); a moment's does not depend on the unit it is stored in."""
    if cells.sort == "levels" and cells.codes is not None:
        of_label = np.array([label_key(label) for label in cells.labels] + [0], dtype=np.uint64)
        keys = of_label[cells.codes]
    elif cells.sort == "datetime":
        ticks = np.where(cells.missing, 0, cells.values)
        per_second = round(cells.per_second) if cells.per_second >= 1 else 1
        whole = ticks // per_second
        keys = number_keys(whole * round(max(1.0, 1 / cells.per_second))) ^ number_keys(
            (ticks - whole * per_second) / per_second
        )
    else:
        keys = number_keys(np.where(cells.missing, 0.0, cells.values))
    return np.where(cells.missing, _MISSING, keys)


def row_keys(columns: Iterable[tuple[str, ColumnCells]], n: int, seed: int) -> np.ndarray:
    """Key of each of n rows, uint64 (n,): of equal cells in columns of equal names, in whatever order, the same."""
    total = np.zeros(n, dtype=np.uint64)
    for name, cells in columns:
        total += mixed(cell_keys(cells) ^ np.uint64(label_key(name)))
    return mixed(total ^ mixed(np.full(1, seed, dtype=np.uint64)))
