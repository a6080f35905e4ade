"""Kernels as plain numba functions, under a release of numba that `compile` does not name."""

# Numba renews kept code when the file of the function changes, not when the file of a kernel that it calls does.
# Installing a release rewrites all files, so only those who edit kernels must remove kept code themselves.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba.core import types


def entry(function: Callable) -> Any:
    """Return a kernel that Python calls, compiled at its first call and kept on disk if there is a place to write."""
    try:
        return numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    except RuntimeError:  # numba found none
        return numba.njit(nogil=True, error_model="numpy")(function)


def kernel(function: Callable) -> Any:
    """Return a kernel that kernels call."""
    return entry(function)


def record_type(cls: type, fields: tuple[types.Type, ...]) -> types.Type:
    """The type of a record with fields of these types."""
    return types.BaseTuple.from_types(fields, cls)


def prepare(compiled: Any, signature: tuple[types.Type, ...]) -> str:
    """Have the code of an entry ready for arguments of these types; return what was done: kept or compiled."""
    compiled.compile(signature)
    return "kept" if compiled.stats.cache_hits else "compiled"


def where_code_is() -> str:
    """Where compiled code is kept, in a sentence."""
    return "Numba keeps them: this release of it is not one that jointforest was tested with."
