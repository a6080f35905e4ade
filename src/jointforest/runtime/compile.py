"""How kernels are compiled: Python calls an `entry`; only kernels call a `kernel` or an `array_kernel`.

Every new user waits for compilation. `numba_internals` makes it several times shorter, but overrides private parts of
numba, which any release may change. It serves only the releases that it was tested with. Under any other release,
kernels are plain numba functions, which give the same answers and take longer to compile.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numba

TESTED_RELEASES = ("0.66", "0.67", "0.68")
"""The series of numba that `numba_internals` supports; CONTRIBUTING.md says how to test and add one."""

if ".".join(numba.__version__.split(".")[:2]) in TESTED_RELEASES:
    from .numba_internals import array_kernel, entry, kernel
else:
    # Numba renews kept code when the file of the function changes, not when the file of a kernel that it calls does.
    # Installing a release rewrites all files, so only those who edit kernels must remove kept code themselves.

    def entry(function: Callable) -> Any:
        """Return a kernel that Python calls."""
        return numba.njit(cache=True, nogil=True, error_model="numpy")(function)

    def kernel(function: Callable) -> Any:
        """Return a kernel that only kernels call and that makes no arrays."""
        return entry(function)

    def array_kernel(function: Callable) -> Any:
        """Return a kernel that only kernels call and that makes arrays."""
        return entry(function)


with suppress(ImportError):  # a numba without its interface of events compiles without a word on the terminal
    from . import compile_notice as compile_notice

__all__ = ["TESTED_RELEASES", "array_kernel", "entry", "kernel"]
