"""Chunks of work on a thread pool; the answer does not depend on the number of threads."""

# Public functions take ``n_jobs`` and set the number of threads with it (`threaded`, `use_jobs`). Internal functions do
# not pass it on: `map_ordered` and `workers` read the number that is set.

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from functools import cache, wraps
from numbers import Integral
from typing import Any, TypeVar, cast

import numpy as np

from .progress import bar

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

Run = Callable[[Callable[..., Any], list], list]
"""A function that returns ``[work(*item) for item in items]``: see `workers`."""


_limit: ContextVar[int | None] = ContextVar("threads", default=None)
"""Number of threads that the current public call may use; None outside of public calls."""


def n_threads() -> int:
    """Number of threads that the current call may use; all cores outside of public calls."""
    limit = _limit.get()
    return _n_threads(-1) if limit is None else limit


@contextlib.contextmanager
def use_jobs(n_jobs: int | None) -> Iterator[None]:
    """Set the number of threads of the code inside; a nested call never gets more threads than the outer one."""
    asked, outer = _n_threads(n_jobs), _limit.get()
    token = _limit.set(asked if outer is None else min(asked, outer))
    try:
        yield
    finally:
        _limit.reset(token)


def threaded(method: F) -> F:
    """Decorate a public function: its argument ``n_jobs``, or else the attribute of its object, sets the threads."""
    is_argument = "n_jobs" in (method.__kwdefaults__ or {})

    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        with use_jobs(kwargs.get("n_jobs", -1) if is_argument else args[0].n_jobs):
            return method(*args, **kwargs)

    return cast(F, call)


def _n_threads(n_jobs: Any) -> int:
    """Number of threads for scikit-learn's ``n_jobs`` (None is 1, -1 all cores, -2 all but one)."""
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise ValueError(f"n_jobs must be None or a non-zero integer (-1: all cores), got {n_jobs!r}")
    if int(n_jobs) > 0:
        return int(n_jobs)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    return max(1, cores + 1 + int(n_jobs))


def chunks(n: int, size: int) -> list[tuple[int, int]]:
    """Bounds (start, stop) of the chunks of n rows, each of ``size`` rows but the last."""
    return [(start, min(start + size, n)) for start in range(0, n, size)]


def map_ordered(work: Callable[..., T], items: list, what: str = "") -> Iterator[T]:
    """Yield ``work(*item)`` for each item, in order, with at most ``4 * threads`` results in memory."""
    threads = min(n_threads(), len(items))
    with bar(len(items), what) as step:
        if threads <= 1:
            for item in items:
                yield work(*item)
                step()
            return
        with _pool(threads) as pool:
            waiting = []
            for item in items:
                waiting.append(pool.submit(work, *item))
                if len(waiting) >= 4 * threads:
                    yield waiting.pop(0).result()
                    step()
            for future in waiting:
                yield future.result()
                step()


def _pool(threads: int) -> ThreadPoolExecutor:
    """A pool whose threads start no threads of their own."""
    return ThreadPoolExecutor(threads, initializer=_limit.set, initargs=(1,))


def one_by_one(work: Callable[..., Any], items: list) -> list:
    """A `Run` without threads."""
    return [work(*item) for item in items]


@contextlib.contextmanager
def workers() -> Iterator[Run]:
    """Yield a `Run` whose threads are kept between its calls."""
    threads = n_threads()
    if threads <= 1:
        yield one_by_one
        return
    with _pool(threads) as pool:

        def run(work: Callable[..., Any], items: list) -> list:
            if len(items) == 1:
                return one_by_one(work, items)
            return list(pool.map(lambda item: work(*item), items))

        yield run


def one_blas_thread(in_kernels: bool = False) -> contextlib.AbstractContextManager[Any]:
    """Compute each matrix product in one thread, because the order of sums must not depend on their number."""
    return _controller(in_kernels).limit(limits=1, user_api="blas")


@cache
def _controller(in_kernels: bool) -> Any:
    import numpy  # noqa: F401  the controller finds only a BLAS that is loaded

    if in_kernels:
        import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


# ---- Products of matrices in float32.

of_finite = np.errstate(invalid="ignore")
"""Decorator of functions that multiply finite numbers: OpenBLAS sometimes sets the flag "invalid value" for these."""
