"""Arrays as one compressed text, which `unpack.js` reads; tables of probabilities with few bits each."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np

SMALLEST = 1e-30
"""Stands for a column's greatest entry where all its entries are 0."""


def quantized(table: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """A table (R, C) as whole numbers of so many bits, uint16 (R, C), and the greatest entry of each column (C,).

    An entry is ``greatest * (number / (2^bits - 1))^2``. The scale is that of the column, because what evidence says
    of a code is a column of a table: rare codes keep their digits. The square gives small entries more digits.
    """
    top = np.maximum(table.max(axis=0, initial=0.0), SMALLEST).astype(np.float32)
    if bits <= 8:  # its own last digits say nothing then, and bytes of zeros take no room
        top = (top.view(np.uint32) & np.uint32(0xFFFFF000)).view(np.float32)
    share = np.clip(table / top.astype(np.float64), 0.0, 1.0)
    return np.rint(np.sqrt(share) * (2**bits - 1)).astype(np.uint16), top


def restored(numbers: np.ndarray, top: np.ndarray, bits: int) -> np.ndarray:
    """The table that `quantized` wrote, float64 (R, C)."""
    return np.asarray(top.astype(np.float64) * (numbers / (2.0**bits - 1.0)) ** 2)


def distributions(table: np.ndarray) -> np.ndarray:
    """A table with rows that sum to 1, as they did before they were rounded."""
    return np.asarray(table / np.maximum(table.sum(axis=1, keepdims=True), SMALLEST))


class Packer:
    """Arrays one after the other, each described by a dict of JSON that says where it lies and of what kind it is."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._at = 0

    def array(self, numbers: np.ndarray, kind: str) -> dict[str, Any]:
        """Add an array of the kind "f8", "f4", "i4", "u2" or "u1", and describe it."""
        piece = np.ascontiguousarray(numbers, dtype=f"<{kind}").tobytes()
        return {"as": kind, "n": int(np.size(numbers))} | self._add(piece)

    def repeated(self, numbers: np.ndarray) -> dict[str, Any]:
        """Add numbers of which many are equal, exactly, and describe them: the different ones, and which each is."""
        different, place = np.unique(numbers, return_inverse=True)
        kind = "u2" if len(different) < 1 << 16 else "i4"
        return {"different": self.array(different, "f8"), "place": self.array(place.ravel(), kind)}

    def table(self, table: np.ndarray, bits: int) -> dict[str, Any]:
        """Add a table of probabilities (R, C), quantized, and describe it; the high bytes come before the low ones."""
        numbers, top = quantized(table, bits)
        planes = [numbers >> 8] if bits > 8 else []
        at = self._add(b"".join(plane.astype(np.uint8).tobytes() for plane in [*planes, numbers & 255]))
        return {"rows": table.shape[0], "columns": table.shape[1], "bits": bits, "top": self.array(top, "f4")} | at

    def text(self) -> str:
        """All arrays, compressed (zlib), in base 64."""
        # noise with few repeated runs, which this strategy is made for
        squeeze = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS, 9, zlib.Z_FILTERED)
        return base64.b64encode(squeeze.compress(b"".join(self._pieces)) + squeeze.flush()).decode()

    def _add(self, piece: bytes) -> dict[str, Any]:
        at, self._at = self._at, self._at + len(piece)
        self._pieces.append(piece)
        return {"at": at}
