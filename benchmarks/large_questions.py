"""Measures seconds and memory of questions that can grow: columns of fine grids under rules, each asked alone."""

from __future__ import annotations

import multiprocessing
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from _common import arguments, finish, peak_memory, progress, verdict

import jointforest as jf

LIMIT, MOST_SECONDS = 2.0, 120.0
"""Gigabytes that a question may take beside the joint, and seconds after which it is given up."""
YEAR = 365 * 86_400


def of_seconds(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Two columns: pick-ups in a year, in seconds, and drop-offs minutes later."""
    start = rng.integers(0, YEAR, n)
    stop = start + 1 + rng.gamma(2.0, 400.0, n).astype(int)
    first = pd.Timestamp("2019-01-01")
    times = {"pickup": start, "dropoff": stop}
    return pd.DataFrame({name: first + pd.to_timedelta(x, unit="s") for name, x in times.items()})


def of_trips(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Taxi rides: ten columns, with fares and totals that add up."""
    frame = of_seconds(n, rng)
    minutes = (frame["dropoff"] - frame["pickup"]).dt.total_seconds() / 60.0
    frame["distance"] = np.round(minutes * rng.gamma(8.0, 0.03, n), 2)
    frame["fare"] = np.round((2.5 + 2.0 * frame["distance"] + 0.3 * minutes) * 2.0) / 2.0
    frame["tip"] = np.round(np.where(rng.random(n) < 0.4, 0.0, frame["fare"] * 0.2), 2)
    frame["tolls"] = np.where(rng.random(n) < 0.05, 5.76, 0.0)
    frame["total"] = np.round(frame["fare"] + frame["tip"] + frame["tolls"] + 0.8, 2)
    frame["passengers"] = rng.choice([1, 1, 1, 2, 3, 4, 5, 6], n)
    frame["color"] = rng.choice(["yellow", "green"], n, p=[0.85, 0.15])
    return frame


def of_cents(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Amounts of up to 20,000 in cents, and their sum."""
    kind = rng.random(n) < 0.5
    net = np.round(rng.gamma(2.0, np.where(kind, 900.0, 300.0)), 2)
    tax = np.round(rng.gamma(2.0, np.where(kind, 200.0, 100.0)), 2)
    return pd.DataFrame({"net": net, "tax": tax, "gross": np.round(net + tax, 2), "kind": np.where(kind, "a", "b")})


def of_three(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Three amounts in cents, and their sum."""
    frame = of_cents(n, rng).drop(columns="gross")
    frame["fee"] = np.round(rng.gamma(2.0, 20.0, n), 2)
    frame["gross"] = np.round(frame["net"] + frame["tax"] + frame["fee"], 2)
    return frame


Questions = dict[str, Callable[[jf.Joint], Any]]


def of_two_columns(a: str, b: str, given: str) -> Questions:
    """Questions about two columns of numbers or dates, one of which a rule makes of the other."""
    return {
        f"P({b} > {a})": lambda joint: joint.query(f"P({b} > {a})"),
        f"P({b} > {a} | {given})": lambda joint: joint.query(f"P({b} > {a} | {given})"),
        "covariance": lambda joint: joint.given().cov(a, b),
        "correlation given": lambda joint: joint.given(given).corr(a, b),
        "mutual information": lambda joint: joint.mutual_information(a, b),
        "entropy": lambda joint: joint.entropy(a, b),
        "joint histogram": lambda joint: joint.given().pair(a, b, 20),
        "mean and quantiles given": lambda joint: (
            joint.given(given).mean(b),
            joint.given(given).quantile(b, [0.1, 0.5, 0.9]),
        ),
        "histogram given": lambda joint: joint.given(given).marginal(b).histogram(),
        "rows drawn where": lambda joint: joint.sample(1_000, random_state=0, where=f"{b} > {a}"),
        "rows drawn given": lambda joint: joint.given(given).sample(1_000, random_state=0),
        "compare with itself": lambda joint: joint.compare(joint),
        "mode": lambda joint: joint.given(given).mode(),
        "report": lambda joint: joint.report(os.devnull),
    }


CASES: dict[str, tuple[Callable[..., pd.DataFrame], int, Questions]] = {
    "two columns of seconds in a year": (
        of_seconds, 6_000, of_two_columns("pickup", "dropoff", "dropoff > '2019-07-01'")),
    "taxi rides": (of_trips, 6_433, of_two_columns("pickup", "dropoff", "dropoff > '2019-07-01', tip > 0")),
    "sum of two amounts in cents": (of_cents, 6_000, of_two_columns("net", "gross", "gross > 2000")),
    "sum of three amounts in cents": (of_three, 6_000, of_two_columns("net", "gross", "gross > 2000")),
}  # fmt: skip


def main() -> None:
    options = arguments(__doc__, only={"default": "", "help": "part of the name of the tables to take"})
    rows = []
    for name, (make, n, questions) in CASES.items():
        if options.only not in name:
            continue
        frame = make(n // 10 if options.quick else n, np.random.default_rng(options.seed))
        start = time.monotonic()
        joint = jf.fit(frame, budget="fast", rules="all", random_state=options.seed)
        progress(f"{name}: {joint}, learned in {time.monotonic() - start:.1f} s; rules: {joint.rules}")
        with TemporaryDirectory() as folder:
            joint.save(path := Path(folder) / "asked.joint")
            for what in questions:
                rows.append({"table": name, "question": what} | asked(path, name, what))
                progress(f"{rows[-1]}")
    finish("large_questions", {"Questions that can grow": rows}, {"limit_gb": LIMIT}, options.quick)


def asked(path: Path, name: str, what: str) -> dict[str, Any]:
    """Seconds and gigabytes of one question, in a process of its own."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=answer, args=(path, name, what, theirs))
    process.start()
    theirs.close()
    answered = ours.poll(MOST_SECONDS + 30.0)
    try:
        given_up = {"seconds": MOST_SECONDS, "gigabytes": peak_memory(process.pid) / 2.0**30, "answer": "given up"}
        found = ours.recv() if answered else given_up
    except EOFError:
        found = {"seconds": float("nan"), "gigabytes": float("nan"), "answer": "the process was killed"}
    process.kill()
    process.join()
    return found | verdict(found["gigabytes"], LIMIT)


def answer(path: Path, name: str, what: str, pipe: Any) -> None:
    """Ask one question, and send what it took."""
    warnings.simplefilter("ignore")
    joint = jf.load(path)
    joint.given().mean(joint.columns[0])  # compiles
    before, start = peak_memory(), time.monotonic()
    try:
        found = str(CASES[name][2][what](joint))
    except (ValueError, TypeError) as error:
        found = f"{type(error).__name__}: {error}"
    said = " ".join(found.split())[:100]
    pipe.send({"seconds": time.monotonic() - start, "gigabytes": (peak_memory() - before) / 2.0**30, "answer": said})


if __name__ == "__main__":
    main()
