"""Inner kernels, which only kernels call, made callable for a test."""

from __future__ import annotations

from functools import cache
from typing import Any

from jointforest.runtime.compile import entry


@cache
def compiled(kernel: Any) -> Any:
    """The kernel as Python can call it, kept on disk as entries are."""
    return entry(kernel.py_func)
