"""How many source files a call passes through, from a trace of the real call.

    python tools/measure_trips.py                       this source
    python tools/measure_trips.py --source ../old/src   another revision, beside it

Files: the modules of the package in which a Python function runs. Returns: pairs of modules in which the one calls the
other although the other was reached first, so that a reader has to go back. Kernels count where Python code calls them;
calls from kernel to kernel are compiled and leave no trace. Each call is made once before it is traced, so that imports
and compilation are not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

HERE = Path(__file__).resolve()


def calls() -> dict[str, Callable[[], Any]]:
    """The calls that are traced, by name."""
    import numpy as np
    from sklearn.ensemble import RandomForestRegressor

    import jointforest as jf

    frame = jf.datasets.load_penguins()
    numbers = frame[["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]].dropna()
    X, y = numbers.drop(columns="body_mass_g"), numbers["body_mass_g"].to_numpy()
    joint = jf.AdversarialForest(5, random_state=0).fit(frame).joint_
    of_inputs = jf.AdversarialForest(5, random_state=0).fit(X).joint_
    predictor = jf.ExpectedPredictor(RandomForestRegressor(5, max_depth=4, random_state=0).fit(X, y), of_inputs)
    holes = X.mask(np.random.default_rng(0).random(X.shape) < 0.3)
    return {
        "fit of AdversarialForest": lambda: jf.AdversarialForest(5, random_state=0).fit(frame),
        "fit of GenerativeForestClassifier": lambda: jf.GenerativeForestClassifier(5, random_state=0).fit(
            frame.drop(columns="species"), frame["species"]
        ),
        "fit of JointTree": lambda: jf.JointTree(random_state=0).fit(frame),
        "fit of HiddenTreeForest": lambda: jf.HiddenTreeForest(n_states=8, random_state=0).fit(frame),
        "jf.fit": lambda: jf.fit(frame, budget="fast", random_state=0),
        "mean": lambda: joint.given("body_mass_g > 4000").mean("bill_length_mm"),
        "sample": lambda: joint.sample(100, 0),
        "impute": lambda: joint.impute(frame),
        "expected prediction": lambda: predictor.predict(holes),
    }


def trips(call: Callable[[], Any], package: str) -> tuple[int, int]:
    """Numbers of files and of returns of a call, in this thread and in those it starts."""
    import threading

    order: dict[str, int] = {}
    returns: set[tuple[str, str]] = set()

    def trace(frame: FrameType, event: str, argument: Any) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(package):
            return
        here = frame.f_code.co_filename
        order.setdefault(here, len(order))
        caller = frame.f_back
        while caller is not None and not caller.f_code.co_filename.startswith(package):
            caller = caller.f_back
        if caller is not None:
            there = caller.f_code.co_filename
            if there != here and there in order and order[here] < order[there]:
                returns.add((there, here))

    threading.setprofile(trace)
    sys.setprofile(trace)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return len(order), len(returns)


def measure() -> dict[str, tuple[int, int]]:
    """Files and returns of each call, of the package that this process imports."""
    import warnings

    import jointforest

    warnings.simplefilter("ignore")
    package = str(Path(jointforest.__file__).parent)
    result = {}
    for name, call in calls().items():
        call()
        result[name] = trips(call, package)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--source", type=Path, help="folder src/ of another revision to put beside this one")
    parser.add_argument("--json", action="store_true", help="print plain data")
    arguments = parser.parse_args()
    here = measure()
    if arguments.json:
        print(json.dumps(here))
        return
    before: dict[str, list[int]] = {}
    if arguments.source:
        environment = os.environ | {"PYTHONPATH": str(arguments.source.resolve())}
        command = [sys.executable, str(HERE), "--json"]
        out = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
        before = json.loads(out.splitlines()[-1])
    print("| call | files | returns |" + (" files before | returns before |" if before else ""))
    print("|---|---|---|" + ("---|---|" if before else ""))
    for name, (files, returns) in here.items():
        row = f"| {name} | {files} | {returns} |"
        print(row + (f" {before[name][0]} | {before[name][1]} |" if before else ""))


if __name__ == "__main__":
    main()
