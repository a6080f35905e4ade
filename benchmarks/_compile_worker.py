"""Measures by verb, on the penguins, what compilation costs in this process, and prints it as JSON.

Without an argument it uses public names alone, so that it runs on any revision of the package on the path. The argument
names a way to compile of `plain_numba.py`.
"""

from __future__ import annotations

import json
import statistics
import sys
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

from numba.core import event
from sklearn.ensemble import RandomForestRegressor

import jointforest as jf

REPEATS = 5
NUMBERS = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm"]


class Compilations(event.Listener):
    """Thread seconds of the outermost compilations, and how many functions were compiled."""

    def __init__(self) -> None:
        self.seconds, self.count = 0.0, 0
        self._own, self._lock = threading.local(), threading.Lock()

    def on_start(self, what: event.Event) -> None:
        self._own.depth = getattr(self._own, "depth", 0) + 1
        if self._own.depth == 1:
            self._own.start = time.thread_time()

    def on_end(self, what: event.Event) -> None:
        self._own.depth -= 1
        with self._lock:
            self.count += 1
            if self._own.depth == 0:
                self.seconds += time.thread_time() - self._own.start


def seconds_of(work: Callable[[], Any]) -> float:
    """Wall seconds of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def choose(way: str) -> None:
    """Compile in another way, before any kernel is imported."""
    if way == "plain numba":  # an unknown version of numba, under which no private part of it is used
        import numba

        numba.__version__ = "9999.0"
        return
    from jointforest.runtime import records

    if way == "records by value":
        records.follow = lambda function: None
    from jointforest.runtime import numba_internals as internals

    if way == "inner kernels optimised":
        internals._INNER.pop("pipeline_class")
    elif way == "a signature for each integer type":
        internals._one_signature = lambda compiled: compiled
    elif way not in ("as released", "records by value"):
        raise SystemExit(f"unknown way to compile: {way}")


def main() -> None:
    warnings.simplefilter("ignore")
    if sys.argv[1:]:
        choose(sys.argv[1])
    seen, found = Compilations(), {}
    event.register("numba:compile", seen)

    def verb(name: str, work: Callable[[], Any]) -> Any:
        seconds, count, start = seen.seconds, seen.count, time.perf_counter()
        answer = work()
        spent = time.perf_counter() - start
        found[name] = {"seconds": seen.seconds - seconds, "functions": seen.count - count, "wall": spent}
        found[name]["again"] = statistics.median(seconds_of(work) for _ in range(REPEATS))
        print(f"{name}: {found[name]['seconds']:.1f} s", file=sys.stderr, flush=True)
        return answer

    penguins = jf.datasets.load_penguins()
    joint = verb("fit", lambda: jf.AdversarialForest(n_estimators=5, random_state=0).fit(penguins).joint_)
    verb("log_density", lambda: joint.log_density(penguins))
    verb("query", lambda: joint.query("P(species = 'Gentoo' | body_mass_g >= 4000, sex = 'MALE')"))
    heavy = joint.given("body_mass_g > 4000")
    verb("mean", lambda: heavy.mean("bill_depth_mm"))
    verb("interval", lambda: heavy.interval("bill_depth_mm"))
    verb("sample", lambda: heavy.sample(10, random_state=0))
    verb("impute", lambda: joint.impute(penguins))
    verb("mode", heavy.mode)
    X, y = penguins.drop(columns="species"), penguins["species"]
    forest = jf.GenerativeForestClassifier(n_estimators=5, random_state=0)
    verb("generative forest: fit", lambda: forest.fit(X, y))
    verb("generative forest: predict_proba", lambda: forest.predict_proba(X))
    verb("joint tree: fit", lambda: jf.JointTree(random_state=0).fit(penguins))
    verb("robustness", lambda: forest.robustness(X))
    whole = penguins.dropna()
    trained = RandomForestRegressor(5, max_depth=4, random_state=0).fit(whole[NUMBERS], whole["body_mass_g"])
    numbers = joint.select(*NUMBERS)
    verb("expected prediction", lambda: jf.ExpectedPredictor(trained, numbers).predict(penguins[NUMBERS]))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
