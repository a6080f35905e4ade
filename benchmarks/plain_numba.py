"""Measures what `runtime/numba_internals.py` saves: compilation, kept code and warm calls beside plain numba.

Each way to compile runs in fresh processes, once with an empty cache and once with the cache that the first run left.
The ways take turns within each round. Compilation is counted in processor seconds, so that other work on the machine
disturbs it less. The ways after the second leave out one part of `numba_internals`.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from _common import HERE, arguments, finish, progress

RELEASED, PLAIN = "as released", "plain numba"
PARTS = (
    "inner kernels optimised",
    "records by value",
    "a signature for each integer type",
)


def measure(way: str, cache: Path) -> dict[str, dict[str, float]]:
    """What `_compile_worker.py` prints for one way to compile, by verb."""
    env = {**os.environ, "PYTHONPATH": str(HERE.parent / "src"), "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, str(HERE / "_compile_worker.py"), way]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{way} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout)


def megabytes(folder: Path) -> float:
    """Size of the files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def main() -> None:
    options = arguments(__doc__, repeats=dict(type=int, default=3, help="rounds"))
    rounds = 1 if options.quick else options.repeats
    ways = (RELEASED, PLAIN) if options.quick else (RELEASED, PLAIN, *PARTS)
    cold: dict[str, list] = {way: [] for way in ways}
    warm: dict[str, list] = {way: [] for way in ways}
    size: dict[str, list] = {way: [] for way in ways}
    for turn in range(rounds):
        for way in ways if turn % 2 == 0 else ways[::-1]:
            with tempfile.TemporaryDirectory() as folder:
                cold[way].append(measure(way, Path(folder)))
                size[way].append(megabytes(Path(folder)))
                warm[way].append(measure(way, Path(folder)))
            seconds = sum(verb["seconds"] for verb in cold[way][-1].values())
            progress(f"round {turn + 1}, {way}: {seconds:.0f} s")

    def median(runs: list, verb: str, key: str) -> float:
        return statistics.median(run[verb][key] for run in runs)

    def total(runs: list, key: str) -> float:
        return statistics.median(sum(verb[key] for verb in run.values()) for run in runs)

    by_verb = [
        {"verb": verb, "released: seconds": median(cold[RELEASED], verb, "seconds"),
         "plain: seconds": median(cold[PLAIN], verb, "seconds"),
         "released: first call with kept code": median(warm[RELEASED], verb, "wall"),
         "plain: first call with kept code": median(warm[PLAIN], verb, "wall"),
         "released: next call": median(warm[RELEASED], verb, "again"),
         "plain: next call": median(warm[PLAIN], verb, "again")}
        for verb in cold[RELEASED][0]
    ]  # fmt: skip
    released = total(cold[RELEASED], "seconds")
    by_way = [
        {"way": way, "seconds": total(cold[way], "seconds"), "ratio": total(cold[way], "seconds") / released,
         "functions": round(total(cold[way], "functions")), "kept code, MB": statistics.median(size[way]),
         "first calls with kept code": total(warm[way], "wall"), "next calls": total(warm[way], "again")}
        for way in ways
    ]  # fmt: skip
    tables = {
        "By verb: compilation in processor seconds, calls in wall seconds": by_verb,
        "By way to compile, all verbs together": by_way,
    }
    finish("plain_numba", tables, {"rounds": rounds}, options.quick)


if __name__ == "__main__":
    main()
