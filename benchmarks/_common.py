"""What the benchmarks share: arguments, tables, timing, results."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

HERE = Path(__file__).resolve().parent
DEFAULT_DATA = HERE.parent.parent / "shared" / "data"
PACKAGES = ("jointforest", "numpy", "numba", "scipy", "scikit-learn", "pandas", "pyarrow")


def arguments(description: str | None, **extra: dict[str, Any]) -> argparse.Namespace:
    """Parse ``--data``, ``--quick``, ``--seed`` and the extra options (name -> keywords of ``add_argument``)."""
    summary = (description or "").strip().splitlines()[0]
    parser = argparse.ArgumentParser(description=summary)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="folder of the tables (default ../shared/data)")
    parser.add_argument("--quick", action="store_true", help="a small run that shows that it works; proves nothing")
    parser.add_argument("--seed", type=int, default=0)
    for name, keywords in extra.items():
        parser.add_argument("--" + name.replace("_", "-"), **keywords)
    options = parser.parse_args()
    if not options.data.is_dir():
        parser.error(f"no folder {options.data}; give the folder of the tables with --data")
    return options


def read(data: Path, name: str) -> pd.DataFrame:
    """The table ``name`` (without .parquet) as a pandas frame."""
    return pq.read_table(data / f"{name}.parquet").to_pandas()


def adult_split(data: Path, seed: int, learn: int = 23_000) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Adult's training table cut at random: ``learn`` rows to learn from, the rest to test."""
    frame = read(data, "adult_train")
    order = np.random.default_rng(seed).permutation(len(frame))
    part = frame.iloc[order].reset_index(drop=True)
    return part.iloc[:learn].reset_index(drop=True), part.iloc[learn:].reset_index(drop=True)


def hide(frame: pd.DataFrame, rate: float, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """The frame with each cell made missing with probability ``rate``; and which cells were hidden.

    Cells that were missing already are not counted as hidden.
    """
    hidden = np.random.default_rng(seed).random(frame.shape) < rate
    hidden &= frame.notna().to_numpy()
    return frame.mask(hidden), hidden


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of one call, and its result."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def median_seconds(work: Callable[[], Any], repeats: int) -> float:
    """Median seconds of several calls."""
    return statistics.median(timed(work)[0] for _ in range(repeats))


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """Mean and its standard error (0 for a single value)."""
    array = np.asarray(values, dtype=float)
    return float(array.mean()), float(array.std(ddof=1) / np.sqrt(len(array))) if len(array) > 1 else 0.0


def peak_memory(process: int | str = "self") -> int:
    """Bytes of the largest resident set of this process so far, or of another one by its number.

    On Linux from VmHWM: ru_maxrss is inherited through exec, so a child of a large process would report its parent's.
    """
    try:
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def environment() -> dict[str, Any]:
    """Facts a reader needs beside a figure; no names of hosts or paths."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
        "cores": cores(),
        **versions,
    }


def verdict(value: float, limit: float, at_most: bool = True) -> dict[str, Any]:
    """The columns ``target`` and ``met`` of a row."""
    met = value <= limit if at_most else value >= limit
    return {"target": f"{'<=' if at_most else '>='} {limit:,g}", "met": "yes" if met else "NO"}


def show(value: Any) -> str:
    """One cell of a printed table."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (float, np.floating)):
        return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}" if abs(value) < 1 else f"{value:,.3f}"
    return f"{value:,}" if isinstance(value, (int, np.integer)) else str(value)


def print_table(rows: Sequence[dict[str, Any]], title: str = "") -> None:
    """Print rows as an aligned table; its columns are all keys in order of first appearance."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = [[show(row.get(name)) for name in names] for row in rows]
    widths = [max(len(name), *(len(line[k]) for line in cells)) for k, name in enumerate(names)]
    numeric = [all(isinstance(row.get(name), (int, float, np.number, type(None))) for row in rows) for name in names]
    if title:
        print(f"\n{title}")
    for line in [names, ["-" * width for width in widths], *cells]:
        pairs = zip(line, widths, numeric, strict=True)
        print("  ".join(cell.rjust(w) if right else cell.ljust(w) for cell, w, right in pairs).rstrip())
    sys.stdout.flush()


def over_seeds(runs: Sequence[dict[str, list[dict[str, Any]]]]) -> dict[str, list[dict[str, Any]]]:
    """Tables of one run a seed as tables of means, with ``NAME, spread``, the standard deviation over seeds.

    Lines that have the same text are one line; whole numbers stay what they are where all seeds have the same.
    """
    titles = list(dict.fromkeys(title for run in runs for title in run))
    return {title: _means([row for run in runs for row in run.get(title, [])], len(runs) > 1) for title in titles}


def _means(rows: list[dict[str, Any]], several: bool) -> list[dict[str, Any]]:
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(value for value in row.values() if isinstance(value, str)), []).append(row)
    found = []
    for mine in groups.values():
        line: dict[str, Any] = {}
        for name in dict.fromkeys(name for row in mine for name in row):
            values = [row[name] for row in mine if row.get(name) is not None]
            if not values or isinstance(values[0], str) or all(isinstance(v, int) and v == values[0] for v in values):
                line[name] = values[0] if values else None
                continue
            line[name] = float(np.mean(values))
            if several:
                line[f"{name}, spread"] = float(np.std(values, ddof=1)) if len(values) > 1 else None
        found.append(line)
    return found


def progress(text: str) -> None:
    """A line on standard error, so that long runs show that they live."""
    print(text, file=sys.stderr, flush=True)


def print_results(tables: dict[str, list[dict[str, Any]]], quick: bool) -> None:
    """Print every table, then the environment in one line."""
    for title, rows in tables.items():
        print_table(rows, title)
    print("\n" + ", ".join(f"{key} {value}" for key, value in environment().items()))
    if quick:
        print("This was a quick run, which is too small to show anything but that the script works.")


def finish(
    name: str, tables: dict[str, list[dict[str, Any]]], settings: dict[str, Any], quick: bool, part: str = ""
) -> None:
    """Print every table and write ``results/NAME.json`` (``NAME.quick.json`` for a quick run).

    A benchmark whose parts run separately names the part: the file then holds each part with its own settings.
    """
    print_results(tables, quick)
    path = results_path(f"{name}.quick" if quick else name)
    content: dict[str, Any] = {"environment": environment(), "settings": settings, "tables": tables}
    if part:
        recorded = json.loads(path.read_text()) if path.exists() else {}
        content = {"parts": recorded.get("parts", {}) | {part: content}}
    write_results(path, {"benchmark": name} | content)
    print(f"written: benchmarks/results/{path.name}")


def results_path(name: str) -> Path:
    """The file of a benchmark's results."""
    return HERE / "results" / f"{name}.json"


def recorded_tables(name: str, part: str = "") -> dict[str, list[dict[str, Any]]]:
    """The rows recorded by an earlier run, by the title of their table; empty if nothing is recorded."""
    path = results_path(name)
    content = json.loads(path.read_text()) if path.exists() else {}
    content = content.get("parts", {}).get(part, {}) if part else content
    tables: dict[str, list[dict[str, Any]]] = content.get("tables", {})
    return tables


def write_results(path: Path, content: dict[str, Any]) -> None:
    """Write results as JSON with one line per measured row, so that a new measurement changes one line."""
    path.parent.mkdir(exist_ok=True)
    unfinished = path.with_suffix(".json.tmp")  # an interrupted run leaves the recorded results complete
    unfinished.write_text(_one_line_per_row(content) + "\n")
    unfinished.replace(path)


def _one_line_per_row(value: Any) -> str:
    """JSON in which each row of a table stands on a line of its own, and so does all that holds no table."""
    if _is_table(value):
        return "[\n" + ",\n".join(json.dumps(row, default=_plain) for row in value) + "\n]"
    if isinstance(value, dict) and any(_holds_table(item) for item in value.values()):
        lines = [f"{json.dumps(key)}: {_one_line_per_row(item)}" for key, item in value.items()]
        return "{\n" + ",\n".join(lines) + "\n}"
    return json.dumps(value, default=_plain)


def _is_table(value: Any) -> bool:
    """Whether a value is a list of rows."""
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)


def _holds_table(value: Any) -> bool:
    """Whether there is a table in a value, at any depth."""
    return _is_table(value) or (isinstance(value, dict) and any(_holds_table(item) for item in value.values()))


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise TypeError(f"cannot write {type(value).__name__} as JSON")
