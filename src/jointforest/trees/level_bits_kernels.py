"""Kernel: is a level in a set of levels that is kept as bits?"""

from __future__ import annotations

import numpy as np

from ..ground.compile import kernel


@kernel
def has_level(words, first, level):
    """Whether a level is in the set that begins at word ``first`` of ``words`` (uint64): bit k % 64 of word k // 64."""
    return (words[first + (level >> 6)] >> np.uint64(level & 63)) & np.uint64(1) == np.uint64(1)
