"""Small numeric kernels."""

from __future__ import annotations

import numpy as np

from jointforest.runtime.numeric_kernels import lowest_bit

from ..compiled import compiled


def test_the_lowest_bit_of_a_word() -> None:
    of = compiled(lowest_bit)
    for bit in range(64):
        for above in (0, 1, 0b1011, 2**64 - 1):
            assert of(np.uint64((1 << bit | above << (bit + 1)) % 2**64)) == bit
