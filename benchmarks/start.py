"""Measures import, a warm `jointforest query`, compilation by verb, and `make demo` on an empty cache.

Figures are wall times of fresh processes; those of compilation are processor seconds. ``--base REV`` measures
compilation and the demo for another revision, too, in the same run.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from _common import HERE, arguments, finish, median_seconds, progress, read, timed, verdict

from jointforest.learners.adversarial.adversarial_forest import AdversarialForest

HEAVY = ("numpy", "numba", "llvmlite", "scipy", "sklearn", "pandas", "polars", "pyarrow", "narwhals", "safetensors",
         "click", "matplotlib", "dask")  # fmt: skip
QUERY = "P(income = '>50K' | age >= 40, sex = 'Female')"


def run(command: list, **keywords) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **keywords)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{done.stderr[-2000:]}")
    return done.stdout


def importing(repeats: int) -> list[dict]:
    """Seconds of the import inside a process, and of whole processes with and without it."""
    code = (
        "import time, sys, json; before = set(sys.modules); start = time.perf_counter(); import jointforest; "
        "spent = time.perf_counter() - start; "
        "print(json.dumps([spent, sorted({m.split('.')[0] for m in set(sys.modules) - before})]))"
    )
    found = [json.loads(run([sys.executable, "-c", code])) for _ in range(repeats)]
    inside = statistics.median(seconds for seconds, _ in found)
    bare = median_seconds(lambda: run([sys.executable, "-c", "pass"]), repeats)
    whole = median_seconds(lambda: run([sys.executable, "-c", "import jointforest"]), repeats)
    heavy = sorted({module for _, modules in found for module in modules if module in HEAVY})
    return [
        {"what": "import jointforest", "seconds": inside} | verdict(inside, 0.15),
        {"what": "python -c 'import jointforest'", "seconds": whole},
        {"what": "python -c pass", "seconds": bare},
        {"what": "heavy packages it loads", "seconds": None, "note": ", ".join(heavy) or "none", "target": "none",
         "met": "NO" if heavy else "yes"},
    ]  # fmt: skip


def querying(data: Path, repeats: int, quick: bool, seed: int) -> dict:
    """Seconds of one `jointforest query` on a model of Adult with 10 trees."""
    command = shutil.which("jointforest", path=str(Path(sys.executable).parent))
    if command is None:
        raise SystemExit("no jointforest command beside this interpreter; install it: pip install -e '.[cli,pandas]'")
    frame = read(data, "adult_train").iloc[: 2_000 if quick else None]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "adult.joint"
        AdversarialForest(n_estimators=10, min_samples_leaf=5, random_state=seed).fit(frame).joint_.save(path)
        answer = run([command, "query", path, QUERY])
        progress(f"{QUERY} -> {answer.strip()}")
        seconds = median_seconds(lambda: run([command, "query", path, QUERY]), repeats)
        size = path.stat().st_size / 1e6
    return {"what": "jointforest query, warm", "seconds": seconds, "note": f"model of {size:.1f} MB"} | verdict(
        seconds, 2.5
    )


def demo(base: Path | None) -> dict:
    """Seconds of `make demo` with an empty cache of compiled kernels, everything installed; and of the base's demo."""
    command = ["make", "-C", HERE.parent, f"VENV={sys.prefix}", "demo"]
    run(command)  # installs what the demo needs
    row: dict = {"what": "make demo, empty cache"}
    with tempfile.TemporaryDirectory() as cache:
        row["seconds"], _ = timed(lambda: run(command, env={**os.environ, "NUMBA_CACHE_DIR": cache}))
    if base is not None:
        with tempfile.TemporaryDirectory() as cache:
            env = {**os.environ, "NUMBA_CACHE_DIR": cache, "PYTHONPATH": str(base / "src")}
            seconds, _ = timed(lambda: run([sys.executable, base / "examples" / "demo.py"], env=env, cwd=base))
        row["note"] = f"base {seconds:.1f} s, ratio {row['seconds'] / seconds:.2f}"
    return row | verdict(row["seconds"], 60.0)


def compiling(source: Path) -> dict[str, dict]:
    """Processor seconds and functions compiled by verb, for the package of a working tree and an empty cache."""
    with tempfile.TemporaryDirectory() as cache:
        env = {**os.environ, "PYTHONPATH": str(source / "src"), "NUMBA_CACHE_DIR": cache}
        found = json.loads(run([sys.executable, HERE / "_compile_worker.py"], env=env))
    return found | {"all": {key: sum(verb[key] for verb in found.values()) for key in ("seconds", "functions", "wall")}}


def compilation(base: Path | None) -> list[dict]:
    """What each verb compiles, in their order in one process; beside the base's, if there is one."""
    mine = compiling(HERE.parent)
    if base is None:
        return [{"verb": verb, "seconds": of["seconds"], "functions": of["functions"]} for verb, of in mine.items()]
    its = compiling(base)
    rows = [
        {"verb": verb, "seconds": of["seconds"], "functions": of["functions"], "base: seconds": its[verb]["seconds"],
         "base: functions": its[verb]["functions"], "ratio": of["seconds"] / max(its[verb]["seconds"], 1e-9)}
        for verb, of in mine.items()
    ]  # fmt: skip
    rows[-1] |= verdict(rows[-1]["ratio"], 1 / 3)
    return rows


@contextmanager
def worktree(revision: str | None) -> Iterator[Path | None]:
    """A checkout of a revision in a temporary folder."""
    if revision is None:
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "base"
        run(["git", "-C", HERE.parent, "worktree", "add", "--detach", "--quiet", tree, revision])
        try:
            yield tree
        finally:
            run(["git", "-C", HERE.parent, "worktree", "remove", "--force", tree])


def main() -> None:
    options = arguments(__doc__, repeats=dict(type=int, default=10), base=dict(help="revision to compare with"))
    repeats = 3 if options.quick else options.repeats
    table = importing(repeats)
    table.append(querying(options.data, repeats, options.quick, options.seed))
    with worktree(options.base) as base:
        compiled = compilation(base)
        table.append(demo(base))
    settings = {"repeats": repeats, "query": QUERY, "base": options.base}
    tables = {
        "From a standing start, median seconds": table,
        "Compilation on an empty cache, processor seconds, penguins": compiled,
    }
    finish("start", tables, settings, options.quick)


if __name__ == "__main__":
    main()
