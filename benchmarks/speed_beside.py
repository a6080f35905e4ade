"""Compares the warm speed of each verb with that of a base revision, as ratios of medians.

Processes of both revisions take turns. Processor seconds of all threads stand beside wall time; they depend less on
other programs. Compilation is done before the clock starts, each revision with a cache of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from _common import HERE, arguments, finish, progress, verdict
from start import worktree


def seconds(source: Path, cache: Path, data: Path, rows: int, repeats: int, verbs: str) -> dict[str, list[float]]:
    """Seconds, and those of processors, by verb of the package of a working tree."""
    command = [sys.executable, str(HERE / "_speed_worker.py"), str(data.resolve()), str(rows), str(repeats), verbs]
    env = {**os.environ, "PYTHONPATH": str(source / "src"), "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    if done.returncode:
        raise SystemExit(f"the process of {source.name} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    options = arguments(
        __doc__, base=dict(default="161fda1", help="revision"), turns=dict(type=int, default=3),
        repeats=dict(type=int, default=3), rows=dict(type=int, default=10_000),
        verbs=dict(
            choices=("all", "adversarial", "hidden"),
            default="all",
            help="adversarial: learning by these forests, draws, filling by draws; hidden: learning hidden trees",
        ),
    )  # fmt: skip
    rows = 1_000 if options.quick else options.rows
    turns = 1 if options.quick else options.turns
    found: dict[str, list[dict[str, list[float]]]] = {"base": [], "this": []}
    with tempfile.TemporaryDirectory() as caches, worktree(options.base) as base:
        if base is None:
            raise SystemExit("name a revision with --base")
        for turn in range(turns):
            for name, source in (("base", base), ("this", HERE.parent)):
                found[name].append(
                    seconds(source, Path(caches) / name, options.data, rows, options.repeats, options.verbs)
                )
                progress(f"turn {turn + 1} of {turns}: {name}")
    table = []
    for verb in found["this"][0]:
        mine, its = (np.median([turn[verb] for turn in found[name]], axis=0) for name in ("this", "base"))
        ratio, of_processors = (float(x) for x in mine / its)
        row = {"verb": verb, "seconds": float(mine[0]), "base: seconds": float(its[0]), "ratio": ratio}
        table.append(row | {"ratio of processors' seconds": of_processors} | verdict(ratio, 1.05))
    settings = {"base": options.base, "rows": rows, "turns": turns, "repeats": options.repeats}
    finish("speed_beside", {"Adult, warm, medians of the turns' best": table}, settings, options.quick, options.verbs)


if __name__ == "__main__":
    main()
