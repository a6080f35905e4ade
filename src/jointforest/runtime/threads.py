"""Chunks of work on a thread pool; the answer does not depend on the number of threads.

The public interface takes ``n_jobs`` (`threaded`, `use_jobs`); what it calls reads the number where work is spread.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from functools import cache, wraps
from typing import Any, TypeVar, cast

import numpy as np

from .progress import bar

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

Run = Callable[[Callable[..., Any], list], list]
"""Gives ``[work(*item) for item in items]``: see `workers`."""


_limit: ContextVar[int | None] = ContextVar("threads", default=None)
"""Threads that the present call of the public interface may use; None outside of such a call."""


def n_threads() -> int:
    """Number of threads that work is spread over now."""
    limit = _limit.get()
    return _asked(-1) if limit is None else limit


@contextlib.contextmanager
def use_jobs(n_jobs: int | None) -> Iterator[None]:
    """Set the number of threads of the work inside; a call within a call never gets more than the outer one."""
    asked, outer = _asked(n_jobs), _limit.get()
    token = _limit.set(asked if outer is None else min(asked, outer))
    try:
        yield
    finally:
        _limit.reset(token)


def threaded(method: F) -> F:
    """Decorates public functions: their argument ``n_jobs``, or their object's, sets the number of threads."""
    is_argument = "n_jobs" in (method.__kwdefaults__ or {})

    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        with use_jobs(kwargs.get("n_jobs", -1) if is_argument else args[0].n_jobs):
            return method(*args, **kwargs)

    return cast(F, call)


def _asked(n_jobs: int | None) -> int:
    """Number of threads for scikit-learn's ``n_jobs`` (None is 1, -1 all cores, -2 all but one)."""
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or n_jobs == 0:
        raise ValueError(f"n_jobs must be None or a non-zero integer (-1: all cores), got {n_jobs!r}")
    if n_jobs > 0:
        return n_jobs
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    return max(1, cores + 1 + n_jobs)


def chunks(n: int, size: int) -> list[tuple[int, int]]:
    """Bounds (start, stop) of the chunks of n rows, each of ``size`` rows but the last."""
    return [(start, min(start + size, n)) for start in range(0, n, size)]


def map_ordered(work: Callable[..., T], items: list, what: str = "") -> Iterator[T]:
    """Yield ``work(*item)`` for each item, in the items' order; at most a few results wait unread.

    Long work has a progress bar (`runtime.progress`), which says ``what`` is done.
    """
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
    """A `Run` on threads that stay from one call to the next."""
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
    """Matrix products in one thread each: threads are ours, and the order of sums does not depend on them.

    ``in_kernels``: products of kernels, too, which are made by the BLAS of SciPy.
    """
    return _controller(in_kernels).limit(limits=1, user_api="blas")


@cache
def _controller(in_kernels: bool) -> Any:
    import numpy  # noqa: F401  a BLAS must be there to be found

    if in_kernels:
        import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


# ---- Products of matrices in float32.

of_finite = np.errstate(invalid="ignore")
"""Decorates functions that multiply finite numbers: OpenBLAS says "invalid value" of some such products, by chance."""
