"""Compares answers of this working tree with those of a base revision, bit by bit.

Each revision answers in one process, with the same seed. The exit code is 1 if an answer fails or differs by more than
a relative 1e-12.
"""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from _common import HERE, print_table

ROOT = HERE.parent
LIMIT = 1e-12
Answer = tuple[np.ndarray, list[str]]


def difference(a: Answer, b: Answer) -> float:
    """Largest relative difference of the numbers; infinite where texts, lengths or what is finite differ."""
    (x, texts), (y, others) = a, b
    if texts != others or x.shape != y.shape or any(text.startswith("raised ") for text in texts):
        return np.inf
    unequal = ~((x == y) | (np.isnan(x) & np.isnan(y)))
    x, y = x[unequal], y[unequal]
    if not np.all(np.isfinite(x) & np.isfinite(y)):
        return np.inf
    return float(np.max(np.abs(x - y) / np.maximum(np.abs(x), np.abs(y)), initial=0.0))


def what(a: Answer, b: Answer) -> str:
    """A word on how two answers differ."""
    if a[1] != b[1]:
        changed = (f"{x!r} became {y!r}" for x, y in zip(a[1], b[1], strict=False) if x != y)
        return next(changed, "texts")[:90]
    if a[1] and a[1][0].startswith("raised "):
        return a[1][0][:90]
    if a[0].shape != b[0].shape:
        return f"{len(a[0])} numbers became {len(b[0])}"
    return f"{int(np.sum(~((a[0] == b[0]) | (np.isnan(a[0]) & np.isnan(b[0])))))} of {len(a[0])} numbers"


def ask(source: Path, data: Path | None) -> dict[str, Answer]:
    """All answers of the package of a working tree, from a process of its own that compiles its kernels anew."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "answers.pickle"
        command = [sys.executable, str(HERE / "_answers.py"), str(out), *([str(data)] if data else [])]
        environment = {**os.environ, "PYTHONPATH": str(source / "src"), "NUMBA_CACHE_DIR": str(Path(folder) / "cache")}
        subprocess.run(command, cwd=folder, env=environment, check=True)
        return pickle.loads(out.read_bytes())


def ask_revision(base: str, data: Path | None) -> dict[str, Answer]:
    """All answers of a revision, checked out for as long as it takes."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "base"
        subprocess.run(["git", "worktree", "add", "--detach", "--quiet", str(tree), base], cwd=ROOT, check=True)
        try:
            return ask(tree, data)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--base", default="161fda1", help="revision to compare with (default 161fda1)")
    parser.add_argument("--data", type=Path, help="folder of the tables: 2,000 rows of adult are asked, too")
    parser.add_argument("--kept", type=Path, help="file of the base revision's answers: read, or written if absent")
    options = parser.parse_args()
    data = options.data and options.data.resolve()
    if options.kept and options.kept.exists():
        old = pickle.loads(options.kept.read_bytes())
    else:
        old = ask_revision(options.base, data)
        if options.kept:
            options.kept.write_bytes(pickle.dumps(old))
    new = ask(ROOT, data)
    rows = []
    for name in old.keys() | new.keys():
        missing = np.empty(0), ["raised nothing: it was not asked"]
        a, b = old.get(name, missing), new.get(name, missing)
        far = difference(a, b)
        rows.append({"answer": name, "difference": far, "what": "" if far == 0.0 else what(a, b)})
    rows.sort(key=lambda row: (row["difference"], row["answer"]))
    bad = [row for row in rows if not row["difference"] <= LIMIT]
    shown = [{**row, "difference": "equal" if row["difference"] == 0.0 else f"{row['difference']:.1e}"} for row in rows]
    print_table(shown, f"Answers of {options.base} and of this working tree")
    same = sum(row["difference"] == 0.0 for row in rows)
    print(f"\n{len(rows)} answers: {same} equal bit by bit, {len(bad)} differ by more than {LIMIT:g} or fail")
    raise SystemExit(1 if bad else 0)


if __name__ == "__main__":
    main()
