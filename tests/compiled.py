"""Inner kernels, which only kernels call, made callable for a test."""

from __future__ import annotations

from functools import cache
from typing import Any

from numba import njit


@cache
def compiled(kernel: Any) -> Any:
    """The kernel as Python can call it."""
    return njit(error_model="numpy")(kernel.py_func)
