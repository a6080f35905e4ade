"""Whole-array operations that NumPy lacks, checks of the arrays of files, and the memory that a question may use."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from .parameters import need

_MOST_KEPT = 12
"""Most results that are kept; the oldest is dropped first."""


class KeptResults:
    """The last few results of functions of arrays, found again by the identity of these arrays."""

    def __init__(self) -> None:
        self._found: dict[tuple[Any, ...], tuple[Any, Any]] = {}

    def of(self, name: tuple[Any, ...], make: Callable[..., Any], *arrays: Any) -> Any:
        """``make(*arrays)``, computed once for each name and these same array objects, which must not change."""
        key = (name, *map(id, arrays))
        kept = self._found.get(key)  # which holds the arrays too, so that no other array has their identity
        if kept is None:
            kept = self._found[key] = make(*arrays), arrays
            for old in list(self._found)[:-_MOST_KEPT]:
                self._found.pop(old, None)
        return kept[0]


def divided(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a / b, 0 where b is not positive."""
    return np.asarray(np.divide(a, b, out=np.zeros(np.broadcast_shapes(a.shape, b.shape)), where=b > 0.0))


def ranges(first: np.ndarray, count: np.ndarray) -> np.ndarray:
    """The numbers ``first[k], ..., first[k] + count[k] - 1`` of every k, one after the other."""
    return np.repeat(first - np.cumsum(count) + count, count) + np.arange(count.sum())


def sums_by_key(keys: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Different keys, ascending, and the sums of their counts."""
    order = np.argsort(keys, kind="stable")
    keys, counts = keys[order], counts[order]
    first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])[: len(keys)])
    return keys[first], np.add.reduceat(counts, first) if len(first) else counts


# ---- Checks of the arrays of a saved model: files are not trusted, and kernels check no bounds.

FINITE = -sys.float_info.max, sys.float_info.max
"""Least and largest finite number."""


class Field(NamedTuple):
    """What must be true of an array.

    types : str. Allowed types, separated by spaces, such as "f8".
    axes : str. The names of the sizes of its axes, such as "L p"; a number is a size.
    least, largest : float, optional. Least and greatest allowed number; NaN is then refused. None: no check.
    """

    types: str
    axes: str
    least: float | None = None
    largest: float = math.inf


def check_arrays(at: str, arrays: Mapping[str, Any], fields: Mapping[str, Field], **sizes: int) -> dict[str, int]:
    """Raise ValueError unless each array fits its field. The message starts with ``at``. Returns the sizes of axes."""
    # A size that is not given is that of the first array that has it.
    for name, of in fields.items():
        where, array = f"{at}{name}", arrays[name]
        need(isinstance(array, np.ndarray), f"{where}: expected an array, got {type(array).__name__}")
        types, axes = [np.dtype(one) for one in of.types.split()], of.axes.split()
        need(array.dtype in types, f"{where}: expected {' or '.join(map(str, types))}, got {array.dtype}")
        need(array.ndim == len(axes), f"{where}: expected shape ({', '.join(axes)}), got {array.shape}")
        shape = tuple(
            int(axis) if axis.isdigit() else sizes.setdefault(axis, n)
            for axis, n in zip(axes, array.shape, strict=True)
        )
        need(array.shape == shape, f"{where}: expected shape {shape}, got {array.shape}")
        need(array.flags.c_contiguous, f"{where}: expected a C-contiguous array")
        if of.least is not None:
            ends = (of.least, of.largest)
            text = "a finite number" if ends == FINITE else f"a number from {of.least:g} to {of.largest:g}"
            need_all(where, (array >= of.least) & (array <= of.largest), array, text)
    return sizes


def need_all(name: str, holds: np.ndarray, values: np.ndarray, expected: str) -> None:
    """Raise ValueError that names the first entry for which the condition does not hold."""
    if not holds.all():
        at = tuple(int(i) for i in np.argwhere(~holds)[0])
        where = ", ".join(map(str, at))
        raise ValueError(f"{name}[{where}] is {values[at]}, expected {expected}")


# ---- Memory that one question may use: what would use more is cut into pieces.

LIMIT = 2 << 30
"""Bytes of memory that one question may use, beside its answer."""


def at_once(bytes_each: float, share: float = 1.0) -> int:
    """How many equal pieces of work are done at once, at least one, in a share of `LIMIT`."""
    return max(int(share * LIMIT / max(bytes_each, 1.0)), 1)
