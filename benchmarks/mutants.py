"""Do the tests notice: faults put into the source one at a time by cosmic-ray, and the tests of their room run.

A fault of `src/jointforest/a/b.py` is shown to `tests/a/test_b.py` where that is, then, if it lives, to all of
`tests/a/`. Noticed is what makes a test fail, or run longer than ``--limit``. cosmic-ray runs in its own environment
under benchmarks/.peers (made here on first use). Faults that lived are printed with their line: look whether each
changes anything at all, and write the test that is missing. What is recorded is kept, and what was noticed is not run
again, so that the same command shows the tests written since the faults that lived.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from _common import HERE, arguments, finish, progress
from peers import peer_python

PINS = ["cosmic-ray==8.7.0"]
PACKAGE = HERE.parent / "src" / "jointforest"
RESULTS = HERE / "results" / "mutants.json"
TITLE = "Faults put in, one at a time"


def faults(files: list[Path], n: int, seed: int) -> list[dict]:
    """So many faults, each in one place of one file, drawn at random."""
    worker = [peer_python("mutants", PINS), str(HERE / "_mutants_worker.py")]
    asked = json.dumps({"files": [str(path) for path in files], "n": n, "seed": seed})
    done = subprocess.run(worker, input=asked, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    return json.loads(done.stdout)


def tests_of(name: str, tests: Path) -> Iterator[Path]:
    """The tests of a file of the package, such as ``table/grids.py``: its own, then those of its room."""
    path = Path(name)
    own, room = tests / path.parent / f"test_{path.stem}.py", tests / path.parent
    if own.exists():
        yield own
    while not list(room.glob("test_*.py")) and room != tests:
        room = room.parent
    yield room


def lives(folder: Path, name: str, limit: float) -> bool:
    """Whether all tests of a file's room pass."""
    paths = {
        "PYTHONPATH": os.pathsep.join([str(folder / "src"), str(folder)]),
        "NUMBA_CACHE_DIR": str(folder / "cache"),
    }
    for path in tests_of(name, folder / "tests"):
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-W", "ignore", str(path)]
        try:
            done = subprocess.run(command, cwd=folder, env=os.environ | paths, capture_output=True, timeout=limit)
        except subprocess.TimeoutExpired:
            return False
        if done.returncode:
            return False
    return True


def main() -> None:
    options = arguments(
        __doc__,
        faults=dict(type=int, default=100, help="how many"),
        files=dict(nargs="*", default=[], help="files of the package, such as table/grids.py; default: all"),
        kernels=dict(action="store_true", help="by default: files of kernels, else all others"),
        limit=dict(type=float, default=600.0, help="seconds for the tests of one fault"),
    )  # fmt: skip
    files = [PACKAGE / name for name in options.files]
    files = files or sorted(p for p in PACKAGE.rglob("*.py") if p.stem.endswith("_kernels") == options.kernels)
    found = {}
    if RESULTS.exists() and not options.quick:
        found = {(r["file"], r["fault"]): r for r in json.loads(RESULTS.read_text())["tables"][TITLE]}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("src", "tests", "docs", "examples", "pyproject.toml", "README.md"):
            source = HERE.parent / part
            (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / part)
        for fault in faults(files, 2 if options.quick else options.faults, options.seed):
            own, line = Path(fault["file"]).relative_to(PACKAGE), fault["line"]
            row = {"file": str(own), "line": line, "fault": fault["code"].splitlines()[line - 1].strip()}
            key = row["file"], row["fault"]
            if found.get(key, {}).get("noticed") == "yes":
                continue
            at = folder / "src" / "jointforest" / own
            before = at.read_text(encoding="utf-8")
            at.write_text(fault["code"], encoding="utf-8")
            row["noticed"] = "NO" if lives(folder, str(own), options.limit) else "yes"
            at.write_text(before, encoding="utf-8")
            progress(f"{row}")
            found[key] = row
            rows = sorted(found.values(), key=lambda r: (r["noticed"], r["file"], r["line"]))
            share = sum(r["noticed"] == "yes" for r in rows) / len(rows)
            finish("mutants", {TITLE: rows, "Noticed": [{"faults": len(rows), "share": share}]}, {}, options.quick)


if __name__ == "__main__":
    main()
