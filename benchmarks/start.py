"""Measures import, the first answers of fresh processes, compilation by verb, and `make demo` on an empty cache.

Figures are wall times and processor seconds of fresh processes; those of compilation are processor seconds.
``--python FILE`` measures first answers in another environment, such as one with the wheel; ``--first`` measures these
alone. ``--base REV`` measures compilation and the demo for another revision, too, in the same run.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import urllib.request
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


def importing(python: Path, repeats: int) -> list[dict]:
    """Seconds of the import inside a process, and of whole processes with and without it."""
    code = (
        "import time, sys, json; before = set(sys.modules); start = time.perf_counter(); import jointforest; "
        "spent = time.perf_counter() - start; "
        "print(json.dumps([spent, sorted({m.split('.')[0] for m in set(sys.modules) - before})]))"
    )
    found = [json.loads(run([python, "-c", code])) for _ in range(repeats)]
    inside = statistics.median(seconds for seconds, _ in found)
    bare = median_seconds(lambda: run([python, "-c", "pass"]), repeats)
    heavy = sorted({module for _, modules in found for module in modules if module in HEAVY})
    return [
        {"what": "import jointforest", "seconds": inside} | verdict(inside, 0.01),
        {"what": "python -c pass", "seconds": bare},
        {"what": "heavy packages it loads", "seconds": None, "note": ", ".join(heavy) or "none", "target": "none",
         "met": "NO" if heavy else "yes"},
    ]  # fmt: skip


def first_answers(python: Path, data: Path, repeats: int, quick: bool, seed: int) -> list[dict]:
    """Seconds of fresh processes until the first answers; the joint of Adult has ten trees."""
    command = shutil.which("jointforest", path=str(python.parent))
    if command is None:
        raise SystemExit(f"no jointforest command beside {python}; install it: pip install '.[cli,pandas,explore]'")
    frame = read(data, "adult_train").iloc[: 2_000 if quick else None]
    readme = (HERE.parent / "README.md").read_text(encoding="utf-8")
    quick_start = readme.split("```python\n")[1].split("```")[0]
    asking = quick_start.split("\nX, y = ")[0]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "adult.joint"
        AdversarialForest(n_estimators=10, min_samples_leaf=5, random_state=seed).fit(frame).joint_.save(path)
        load = f"import jointforest as jf; joint = jf.load({str(path)!r}); print(joint.query({QUERY!r}))"
        size = f"model of {path.stat().st_size / 1e6:.1f} MB"
        tasks = [
            ("jf.load and the first query", lambda: run([python, "-c", load]), 0.5, size),
            ("jointforest query", lambda: run([command, "query", path, QUERY]), 0.5, size),
            ("learn 344 penguins, ask, impute, draw", lambda: run([python, "-c", asking], cwd=folder), 3.0, ""),
            ("quick start of README.md", lambda: run([python, "-c", quick_start], cwd=folder), 3.0,
             "also a classifier and the fidelity"),
            ("jointforest explore, until the first page", lambda: first_page([command, "explore", path]), 1.0, size),
        ]  # fmt: skip
        rows = []
        for what, task, limit, note in tasks:
            first, _ = timed(task)
            before = of_children()
            seconds = median_seconds(task, repeats)
            processor = (of_children() - before) / repeats
            progress(f"{what}: {seconds:.2f} s, of a processor {processor:.2f} s, the first time {first:.2f} s")
            row = {"what": what, "seconds": seconds, "processor seconds": processor, "first time": first, "note": note}
            rows.append(row | verdict(seconds, limit))
    return rows


def of_children() -> float:
    """Processor seconds of all processes that this one has started and awaited."""
    spent = os.times()
    return spent.children_user + spent.children_system


def first_page(command: list) -> None:
    """Start the explorer, ask what its page asks at first, and end it."""
    words = [str(word) for word in [*command, "--no-browser"]]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as served:
        try:
            assert served.stdout is not None
            url = served.stdout.readline().strip()
            for what, body in (("table", {}), ("posterior", {"evidence": []})):
                said = urllib.request.Request(
                    f"{url.rstrip('/')}/ask/{what}", json.dumps(body).encode(), {"Content-Type": "application/json"}
                )
                with urllib.request.urlopen(said) as answer:
                    answer.read()
        finally:
            served.terminate()


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
    options = arguments(
        __doc__, repeats=dict(type=int, default=10), base=dict(help="revision to compare with"),
        python=dict(type=Path, default=Path(sys.executable), help="interpreter of the first answers"),
        first=dict(action="store_true", help="measure the first answers alone"),
    )  # fmt: skip
    repeats = 3 if options.quick else options.repeats
    table = importing(options.python, repeats)
    table += first_answers(options.python, options.data, repeats, options.quick, options.seed)
    if options.first:
        return finish("start_first", {"First answers, median seconds": table}, {"repeats": repeats}, options.quick)
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
