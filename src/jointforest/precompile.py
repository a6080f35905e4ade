"""Compiles all kernels now, so that no first call waits: ``python -m jointforest.precompile``."""

# The machine code goes to the user's folder of caches, or below ``NUMBA_CACHE_DIR``.

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from multiprocessing import get_context
from typing import Any

from .runtime.progress import bar


def compile_all(arguments: list[str] | None = None) -> None:
    """The command."""
    from .runtime import signatures
    from .runtime.compile import compiler

    parser = argparse.ArgumentParser(
        prog="python -m jointforest.precompile", description="Compiles all kernels now, so that no first call waits."
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes; by default one for each core")
    jobs = parser.parse_args(arguments).jobs
    if jobs < 1:
        parser.error(f"--jobs must be at least 1, got {jobs}")
    text = signatures.LIST.read_text()
    n = len(_listed_signatures(text))
    origins: Counter[str] = Counter()
    with bar(n, "compiling kernels") as step:
        for origin in _prepared(text, n, jobs):
            origins[origin] += 1
            step()
    parts = ", ".join(f"{number} {origin}" for origin, number in sorted(origins.items()))
    print(f"{n} kernels are ready: {parts}. {compiler().where_code_is()}")


def _prepared(text: str, n: int, jobs: int) -> Iterator[str]:
    """Prepare the entries of the list; yield where the code of each came from."""
    if jobs == 1:
        for number in range(n):
            yield _prepare(text, number)
        return
    with ProcessPoolExecutor(min(jobs, n), mp_context=get_context("spawn")) as pool:
        for future in as_completed([pool.submit(_prepare, text, number) for number in range(n)]):
            yield future.result()


def _prepare(text: str, number: int) -> str:
    """Find, or compile and keep, the entry at this place of the list; where its code came from."""
    from .runtime import compile_notice
    from .runtime.compile import compiler

    compile_notice.be_silent()
    entry, signature = _listed_signatures(text)[number]
    return compiler().prepare(entry.compiled, signature)


@cache
def _listed_signatures(text: str) -> Any:
    from .runtime import signatures
    from .runtime.compile import compiler

    return signatures.read_list(text, compiler().record_type)


if __name__ == "__main__":
    compile_all()
