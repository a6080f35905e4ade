"""Whether the level masses of columns of many levels are what `WideLevels` promises."""

from __future__ import annotations

import numpy as np

from ..leaves.levels.level_kernels import fill_wide
from ..leaves.levels.wide import WideLevels, layout, words_of
from ..table.columns import Columns
from ..trees.boxes import tree_boxes
from ..trees.check import check_array, need, need_all
from ..trees.nodes import Trees

WIDE_FIELDS = {
    "share": (np.float64, ("G", "W")),
    "share_row": (np.int32, ("R", "w")),
    "scale": (np.float64, ("R", "w")),
    "words": (np.uint64, ("B",)),
    "set_at": (np.int32, ("R", "w")),
    "own_start": (np.int64, ("R w + 1",)),
    "own_level": (np.int32, ("E",)),
    "own_mass": (np.float64, ("E",)),
}
"""Type and shape of the fields of `WideLevels` that are not derived from others."""

_ROWS = 1024  # whose masses are looked at at a time


def check_wide(columns: Columns, wide: WideLevels, n_rows: int) -> None:
    """Check every field for itself, so that kernels may read them.

    Raises
    ------
    ValueError
        Naming the first field, and the entry of it, that is not as `WideLevels` promises.
    """
    where = layout(columns)
    w = len(where.slots)
    for name in ("share", "words", "own_level"):
        need(isinstance(getattr(wide, name), np.ndarray), f"leaves.wide.{name}: expected an array")
    sizes = {"R": n_rows, "w": w, "W": int(where.start[-1]), "G": len(wide.share), "B": wide.words.size}
    sizes |= {"E": wide.own_level.size, "R w + 1": n_rows * w + 1}
    for name, (dtype, shape) in WIDE_FIELDS.items():
        check_array(f"leaves.wide.{name}", getattr(wide, name), dtype, tuple(sizes[s] for s in shape))
    need(np.array_equal(wide.place, where.place), "leaves.wide.place does not agree with the columns")
    need(np.array_equal(wide.start, where.start), "leaves.wide.start does not agree with the columns")
    for name in ("share", "scale", "own_mass"):
        of = getattr(wide, name)
        need_all(f"leaves.wide.{name}", np.isfinite(of) & (of >= 0), of, "a finite number of at least 0")
    number = wide.share_row
    need_all("leaves.wide.share_row", (number >= 0) & (number < len(wide.share)), number, "a row of leaves.wide.share")
    size = np.diff(where.start).astype(np.int64)
    fits = (wide.set_at >= 0) & (wide.set_at + words_of(size) <= len(wide.words))
    need_all("leaves.wide.set_at", fits, wide.set_at, "a set of levels within leaves.wide.words")
    beyond = (wide.words[wide.set_at + words_of(size) - 1] >> ((size - 1) % 64).astype(np.uint64)) >> np.uint64(1)
    need_all("leaves.wide.words of set", beyond == 0, beyond, "no bits beyond the column's levels")
    _check_lists(wide, size, n_rows)


def _check_lists(wide: WideLevels, size: np.ndarray, n_rows: int) -> None:
    """Each row's list of levels lies in the arrays, and rises."""
    start, level = wide.own_start, wide.own_level
    need(start[0] == 0 and start[-1] == len(level), "leaves.wide.own_start: expected 0 first, the lists' end last")
    need_all("leaves.wide.own_start", (start >= 0) & (start <= len(level)), start, "a place in the lists")
    need_all("leaves.wide.own_start", np.diff(start, prepend=0) >= 0, start, "a place not before the one before it")
    of = np.repeat(np.tile(size, n_rows), np.diff(start))
    need_all("leaves.wide.own_level", (level >= 0) & (level < of), level, "a level of the column")
    rises = np.diff(level, prepend=-1) > 0
    rises[start[:-1][start[:-1] < len(level)]] = True  # where a list begins
    need_all("leaves.wide.own_level", rises, level, "levels that rise within a list")


def check_wide_masses(columns: Columns, trees: Trees, wide: WideLevels, leaf: np.ndarray) -> None:
    """Check that the masses of parameter rows, of the leaves (R,), sum to 1 and are 0 outside the leaves' boxes.

    Needs trees, and fields of ``wide``, that were checked before.
    """
    where = layout(columns)
    if not len(where.slots):
        return
    order = np.argsort(leaf, kind="stable")
    first = np.minimum.reduceat(np.where(trees.leaf >= 0, trees.leaf, len(trees.leaf)), trees.root)
    for t in range(len(trees.root)):
        allowed = tree_boxes(trees, columns, t)[2]
        own = order[slice(*np.searchsorted(leaf, [first[t], first[t] + len(allowed)], sorter=order))]
        for at in range(0, len(own), _ROWS):
            rows = own[at : at + _ROWS]
            for k, slot in enumerate(where.slots.tolist()):
                levels = slice(columns.level_start[slot], columns.level_start[slot + 1])
                _check_rows(wide, k, slot, rows, allowed[leaf[rows] - first[t], levels])


def _check_rows(wide: WideLevels, k: int, slot: int, rows: np.ndarray, allowed: np.ndarray) -> None:
    mass = np.zeros(allowed.shape)
    fill_wide(wide, k, rows, mass)
    outside = (mass != 0) & ~allowed
    if outside.any():
        row, level = np.argwhere(outside)[0]
        raise ValueError(
            f"leaves.wide of categorical slot {slot}, row {rows[row]}: level {level} has mass {mass[row, level]}, "
            "expected 0 outside the leaf's box"
        )
    total = mass.sum(axis=1)
    off = ~(np.abs(total - 1) <= 1e-6)
    if off.any():
        row = int(np.argmax(off))
        raise ValueError(
            f"leaves.wide of categorical slot {slot}, row {rows[row]}: masses sum to {total[row]:.9g}, expected 1"
        )
