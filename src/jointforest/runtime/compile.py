"""How kernels are compiled: Python calls an `entry`; only kernels call a `kernel`."""

# A decorated function is compiled at its first call; until then not even numba is imported. `numba_internals` makes
# compilation several times shorter, but overrides private parts of numba. So it is used only with tested releases. With
# others, kernels are plain numba functions, which give the same answers.

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import Any

TESTED_RELEASES = ("0.66", "0.67", "0.68")
"""The series of numba that `numba_internals` supports; see CONTRIBUTING.md."""

_making = threading.RLock()
"""Held while numba's function is made: two threads would make two of them, and compile both."""


class _Kernel:
    """A function that numba compiles when it is first needed."""

    made_by = ""
    """The function of `compiler` that makes it."""

    def __init__(self, function: Callable) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self._compiled: Any = None

    @property
    def compiled(self) -> Any:
        """Numba's function."""
        with _making:
            if self._compiled is None:
                self._compiled = getattr(compiler(), self.made_by)(self.py_func)
            return self._compiled

    def __call__(self, *arguments: Any) -> Any:
        raise TypeError(f"{self.py_func.__qualname__} is not callable: it is a kernel, which only kernels call")


class Entry(_Kernel):
    """A kernel that Python calls."""

    made_by = "entry"

    def __init__(self, function: Callable) -> None:
        super().__init__(function)
        self._run: Callable = self._first_call

    def __call__(self, *arguments: Any) -> Any:
        return self._run(*arguments)

    def _first_call(self, *arguments: Any) -> Any:
        self._run = self.compiled
        return self._run(*arguments)


class Kernel(_Kernel):
    """A kernel that only kernels call."""

    made_by = "kernel"

    @property
    def _numba_type_(self) -> Any:
        """What numba asks for when it compiles a kernel that calls this one."""
        return self.compiled._numba_type_


def entry(function: Callable) -> Any:
    """Return a kernel that Python calls, compiled at its first call and kept on disk."""
    return Entry(function)


def kernel(function: Callable) -> Any:
    """Return a kernel that only kernels call."""
    return Kernel(function)


@functools.cache
def compiler() -> ModuleType:
    """The module that compiles under the installed release of numba; imports numba."""
    import numba

    with suppress(ImportError):  # a numba without its interface of events compiles without a word on the terminal
        from . import compile_notice as compile_notice
    if ".".join(numba.__version__.split(".")[:2]) in TESTED_RELEASES:
        from . import numba_internals

        return numba_internals
    from . import plain_numba

    return plain_numba
