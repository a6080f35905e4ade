"""Puts faults into the source, one at a time, and reports whether the tests notice them.

cosmic-ray draws the faults. A fault of `src/jointforest/a/b.py` is shown to `tests/a/test_b.py` where it exists, then
to the tests that import the module, then to all of `tests/a/`, until a test fails. Tests that take longer than
``--limit`` are recorded as such. cosmic-ray runs in an environment of its own under benchmarks/.peers, and the tests
on a copy. Faults that no test notices are printed: if one changes nothing, write the reason into
``_mutants_equivalent.json``; otherwise write the missing test. ``--again`` repeats the recorded faults that were not
noticed. ``--near`` runs the nearest tests only.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import hypothesis  # noqa: F401  (so that the tests' processes have it)
import numba
import pytest
from _common import HERE, arguments, finish, progress, recorded_tables
from peers import peer_python

PINS = ["cosmic-ray==8.7.0"]
PACKAGE = HERE.parent / "src" / "jointforest"
BY_HAND = HERE / "_mutants_by_hand.json"
EQUIVALENT = HERE / "_mutants_equivalent.json"
TITLE = "Faults put in, one at a time"


def faults(files: list[Path], n: int, seed: int) -> list[dict]:
    """So many faults, each in one line of one file, drawn at random: file, line, what it was and is."""
    worker = [peer_python("mutants", PINS), str(HERE / "_mutants_worker.py")]
    asked = json.dumps({"files": [str(path) for path in files], "n": n, "seed": seed})
    done = subprocess.run(worker, input=asked, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    found = []
    for fault in json.loads(done.stdout):
        path, k = Path(fault["file"]), fault["line"] - 1
        was, now = path.read_text(encoding="utf-8").splitlines()[k], fault["code"].splitlines()[k]
        row = {"file": str(path.relative_to(PACKAGE)), "line": k + 1, "was": was.strip(), "fault": now.strip()}
        found.append(row)
    return found


def tests_of(name: str, tests: Path) -> Iterator[list[Path]]:
    """The tests of a file of the package, such as ``table/grids.py``.

    Its own; others that import it; those of its room, of the house, and of the face where they are named like it.
    """
    path = Path(name)
    own, room = tests / path.parent / f"test_{path.stem}.py", tests / path.parent
    while not list(room.rglob("test_*.py")):
        room = room.parent
    module = re.compile(".".join(["jointforest", *path.with_suffix("").parts]) + r"\b")
    nearest = [p for p in sorted(tests.rglob("test_*.py")) if p != own and module.search(p.read_text(encoding="utf-8"))]
    named = [p for p in (tests / "face").glob("test_*.py") if path.parent.name[:6] in p.name]
    far = {tests / "test_house.py", *named, *(tests.glob("test_*.py") if room == tests else room.rglob("test_*.py"))}
    far -= {own, *nearest}
    yield from ([own] if own.exists() else [], nearest, sorted(far, key=lambda p: p.stat().st_size))


def cost(fault: dict, tests: Path) -> int:
    """What the tests of a fault take, roughly: bytes of the first that are run."""
    first = next(filter(None, tests_of(fault["file"], tests)))
    return sum(path.stat().st_size for path in first)


def outcome(folder: Path, name: str, limit: float, stages: int) -> dict[str, str]:
    """``"yes"`` and the test that notices, ``"NO"`` if none does, ``"time"`` if they took longer than the limit."""
    cache = folder / "cache"
    if name.endswith("_kernels.py"):  # what is compiled with the fault in it must not replace what is not
        cache = folder / "faulty"
        shutil.rmtree(cache, ignore_errors=True)
        shutil.copytree(folder / "cache", cache)
    for tests in list(filter(None, tests_of(name, folder / "tests")))[:stages]:
        child = os.fork()
        if not child:
            run_tests(folder, cache, tests)
        until = time.monotonic() + limit
        while not (done := os.waitpid(child, os.WNOHANG))[0]:
            if time.monotonic() > until:
                os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return {"noticed": "time"}
            time.sleep(0.05)  # waitpid has no limit of its own
        if os.waitstatus_to_exitcode(done[1]) not in (0, 5):  # 5: no tests
            said = re.findall(
                r"^(?:FAILED|ERROR) (\S+)", (folder / "said.txt").read_text(errors="replace"), re.MULTILINE
            )
            return {"noticed": "yes", "by": (said or ["?"])[0].removeprefix("tests/")}
    return {"noticed": "NO"}


def run_tests(folder: Path, cache: Path, tests: list[Path]) -> NoReturn:
    """In a process that has the libraries already, but nothing of the package."""
    os.setsid()
    os.chdir(folder)
    said = os.open(folder / "said.txt", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(said, stream)
    for module in [m for m in sys.modules if m.split(".")[0] in ("jointforest", "tests")]:
        del sys.modules[module]
    sys.path[:0] = [str(folder / "src"), str(folder)]
    os.environ |= {"PYTHONPATH": os.pathsep.join(sys.path[:2]), "NUMBA_CACHE_DIR": str(cache)}
    numba.config.CACHE_DIR = str(cache)
    sys.dont_write_bytecode = True
    os._exit(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-W", "ignore", *map(str, tests)]))


def copied() -> Path:
    """A copy of what the tests need; kernels compiled for the copy before are kept."""
    folder = HERE / ".peers" / "mutants_copy"
    (folder / "cache").mkdir(parents=True, exist_ok=True)
    for part in ("src", "tests", "docs", "examples", "benchmarks", "pyproject.toml", "README.md"):
        source, at = HERE.parent / part, folder / part
        if source.is_file():
            shutil.copy2(source, at)
            continue
        shutil.rmtree(at, ignore_errors=True)
        shutil.copytree(source, at, ignore=shutil.ignore_patterns(".peers", "__pycache__"))
    return folder


def put_in(before: str, fault: dict) -> str | None:
    """The source with a fault put in where its line is, nearest to where it was."""
    lines = before.splitlines(keepends=True)
    at = [k for k, line in enumerate(lines) if line.strip() == fault["was"]]
    if not at:
        return None
    k = min(at, key=lambda k: abs(k + 1 - fault["line"]))
    lines[k] = lines[k].replace(fault["was"], fault["fault"])
    return "".join(lines)


def main() -> None:
    options = arguments(
        __doc__,
        faults=dict(type=int, default=100, help="how many"),
        files=dict(nargs="*", default=[], help="files of the package, such as table/grids.py; default: all"),
        kernels=dict(action="store_true", help="where no files are named: those of kernels, else all others"),
        again=dict(action="store_true", help="no new faults: those recorded that were not noticed"),
        near=dict(action="store_true", help="only the nearest tests: own ones, or else those that import the module"),
        by_hand=dict(action="store_true", help="no drawn faults: those of _mutants_by_hand.json"),
        limit=dict(type=float, default=900.0, help="seconds for the tests of one fault"),
    )  # fmt: skip
    files = [PACKAGE / name for name in options.files]
    files = files or sorted(p for p in PACKAGE.rglob("*.py") if p.stem.endswith("_kernels") == options.kernels)
    found = {}
    if not options.quick:
        found = {(r["file"], r["fault"]): r for r in recorded_tables("mutants").get(TITLE, [])}
    folder = copied()
    if options.again:
        asked = [row for row in found.values() if row["noticed"] != "yes" and "equivalent" not in row and "was" in row]
    elif options.by_hand:
        asked = [{"line": 0} | row for row in json.loads(BY_HAND.read_text()) if PACKAGE / row["file"] in files]
    else:
        asked = faults(files, 2 if options.quick else options.faults, options.seed)
    asked = [row for row in asked if options.again or (row["file"], row["fault"]) not in found]
    for row in sorted(asked, key=lambda row: cost(row, folder / "tests")):
        at = folder / "src" / "jointforest" / row["file"]
        before, status = at.read_text(encoding="utf-8"), at.stat()
        code = put_in(before, row)
        if code is None:
            progress(f"no longer there: {row}")
            found.pop((row["file"], row["fault"]), None)
            continue
        at.write_text(code, encoding="utf-8")
        row |= outcome(folder, row["file"], options.limit, 1 if options.near else 3)
        at.write_text(before, encoding="utf-8")
        os.utime(at, ns=(status.st_atime_ns, status.st_mtime_ns))  # compiled kernels are known by their files' times
        progress(f"{row}")
        found[row["file"], row["fault"]] = row
        record(list(found.values()), options.quick)


def record(rows: list[dict], quick: bool) -> None:
    """Write what was found, with the reasons why faults that lived change nothing."""
    reasons = {(r["file"], r["fault"]): r["equivalent"] for r in json.loads(EQUIVALENT.read_text())}
    for row in rows:
        if row["noticed"] != "yes" and (row["file"], row["fault"]) in reasons:
            row["equivalent"] = reasons[row["file"], row["fault"]]
    rows = sorted(rows, key=lambda r: (r["noticed"], r["file"], r["line"]))
    noticed = sum(r["noticed"] == "yes" for r in rows)
    equivalent = sum("equivalent" in r for r in rows)
    share = noticed / max(len(rows) - equivalent, 1)
    counts = {"faults": len(rows), "noticed": noticed, "equivalent": equivalent, "share of others noticed": share}
    finish("mutants", {TITLE: rows, "Noticed": [counts]}, {}, quick)


if __name__ == "__main__":
    main()
