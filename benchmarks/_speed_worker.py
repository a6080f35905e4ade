"""Seconds of each verb, and seconds of processors, warm, on rows of Adult, in a process of its own: prints JSON.

Uses public names alone, so that it runs on any revision of the package on the path.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _common import hide, read
from sklearn.ensemble import RandomForestRegressor

import jointforest as jf

TARGET, NUMBERS = "income", ["age", "education_num", "capital_gain", "hours_per_week"]


def verbs(frame: Any, rows: int) -> dict[str, Callable[[], Any]]:
    """What is timed: names of verbs and work on this many rows."""
    some = frame.iloc[:rows].reset_index(drop=True)
    masked, _ = hide(some, 0.3, 0)
    X, y = some.drop(columns=TARGET), some[TARGET]
    joint = jf.AdversarialForest(n_estimators=10, random_state=0).fit(some).joint_
    heavy = [joint.given(f"age >= {age}") for age in range(30, 50)]
    forest = jf.GenerativeForestClassifier(n_estimators=20, random_state=0, smoothing=0.1).fit(X, y)
    missing = masked.drop(columns=TARGET)
    numbers, trained = joint.select(*NUMBERS), RandomForestRegressor(30, max_depth=6, random_state=0)
    trained.fit(some[NUMBERS].to_numpy(float), some["age"] + some["hours_per_week"])
    predictor = jf.ExpectedPredictor(trained, numbers)
    few = masked[NUMBERS].iloc[: rows // 20]
    return {
        "fit": lambda: jf.AdversarialForest(n_estimators=10, random_state=0).fit(some),
        "log_density": lambda: joint.log_density(some),
        "log_density, 30 % missing": lambda: joint.log_density(masked),
        "query": lambda: [joint.query(f"P(income = '>50K' | age >= {age}, sex = 'Female')") for age in range(30, 50)],
        "mean": lambda: [known.mean("hours_per_week") for known in heavy],
        "interval": lambda: [known.interval("hours_per_week") for known in heavy],
        "sample": lambda: joint.sample(50_000, random_state=0),
        "impute": lambda: joint.impute(masked),
        "mode": lambda: heavy[0].mode(budget=200),
        "generative forest: fit": lambda: jf.GenerativeForestClassifier(
            n_estimators=20, random_state=0, smoothing=0.1
        ).fit(X, y),
        "generative forest: predict_proba": lambda: forest.predict_proba(missing),
        "joint tree: fit": lambda: jf.JointTree(random_state=0).fit(some),
        "robustness": lambda: forest.robustness(X.iloc[: rows // 10]),
        "expected prediction": lambda: predictor.predict(few),
    }


def verbs_of_adversarial_forests(frame: Any, rows: int) -> dict[str, Callable[[], Any]]:
    """Learning, with the leaf size of R's arf, drawing as many rows, and filling 500 others by draws."""
    model = jf.AdversarialForest(n_estimators=10, min_samples_leaf=5, random_state=0)
    some = frame.sample(rows, random_state=0).reset_index(drop=True)
    masked, _ = hide(frame.drop(frame.sample(rows, random_state=0).index)[:500].reset_index(drop=True), 0.3, 0)
    joint = model.fit(some).joint_
    return {
        "fit": lambda: model.fit(some),
        "sample as many rows": lambda: joint.sample(rows, random_state=0),
        "impute 500 rows by draws": lambda: joint.impute(masked, method="sample", random_state=0),
    }


def verbs_of_hidden_trees(frame: Any, rows: int) -> dict[str, Callable[[], Any]]:
    """Learning with the defaults."""
    some = frame.iloc[:rows].reset_index(drop=True)
    return {"hidden trees: fit": lambda: jf.HiddenTreeForest(random_state=0).fit(some)}


VERBS = {"all": verbs, "adversarial": verbs_of_adversarial_forests, "hidden": verbs_of_hidden_trees}


def main() -> None:
    warnings.simplefilter("ignore")
    data, rows, repeats = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    of = VERBS[sys.argv[4]]
    frame = read(data, "adult_train")
    frame = frame[[*frame.columns.drop(TARGET), TARGET]]
    for work in of(frame, 300).values():
        work()  # kernels come from the cache, or are compiled
    found = {}
    for name, work in of(frame, rows).items():
        spent = []
        for _ in range(repeats):
            start = np.array([time.perf_counter(), time.process_time()])
            work()
            spent.append(np.array([time.perf_counter(), time.process_time()]) - start)
        found[name] = np.min(spent, axis=0).tolist()
        print(f"{name}: {found[name][0]:.3f} s", file=sys.stderr, flush=True)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
