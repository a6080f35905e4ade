"""Hidden trees as densities: binary tables beside published figures, Adult, a correlated normal, gef/ tables.

Binary tables come as train, valid and test: states and smoothing are chosen on the validation rows, then a mixture is
learned on both, and the test rows are read once.
"""

from __future__ import annotations

from argparse import Namespace

import numpy as np
import pandas as pd
from _common import adult_split, arguments, finish, progress, read, timed, verdict
from scipy.stats import multivariate_normal

from jointforest import AdversarialForest, HiddenTreeForest, mix

BINARY = {"nltcs": 5.99, "plants": 12.26, "jester": 51.94, "dna": 80.82, "pumsb_star": 23.71}
STATES = (8, 16, 32, 64, 128)
GEF = ("electricity", "wine", "segment", "wdbc", "diabetes", "vehicle", "vowel", "cmc", "credit-g", "texture", "robot",
       "authent")  # fmt: skip


def as_levels(frame: pd.DataFrame) -> dict[str, str]:
    return dict.fromkeys(frame.columns, "categorical")


def binary(options: Namespace, name: str) -> dict:
    data, quick = options.data, options.quick
    train, valid = (read(data, f"debd/{name}.{part}") for part in ("train", "valid"))
    members = 2 if quick else options.members
    tried = {}
    for states in STATES[:2] if quick else STATES:
        learner = HiddenTreeForest(n_states=states, kinds=as_levels(train), random_state=0)
        joint = learner.fit(train.iloc[:1000] if quick else train).joint_
        tried[states] = -float(joint.log_density(valid).mean())
        progress(f"{name}, {states} states: {tried[states]:.3f} on validation rows")
        if tried[states] > min(tried.values()) + 0.02 * abs(min(tried.values())):
            break
    states = min(tried, key=tried.__getitem__)
    both = pd.concat([train, valid], ignore_index=True)
    learner = HiddenTreeForest(members, n_states=states, kinds=as_levels(train), random_state=0)
    seconds, fitted = timed(lambda: learner.fit(both.iloc[:1000] if quick else both))
    nll = -float(fitted.joint_.log_density(read(data, f"debd/{name}.test")).mean())
    chosen = {"states": states, "members": members, "valid NLL, one member": tried[states]}
    return {"table": name, **chosen, "NLL (nats)": nll} | verdict(nll, BINARY[name]) | {"fit (s)": seconds}


def adult(options: Namespace, seed: int) -> dict:
    learn, test = adult_split(options.data, seed, 2_000 if options.quick else 23_000)
    row: dict = {"split": seed}
    for members in (1, 4):
        joint = HiddenTreeForest(members, random_state=seed).fit(learn).joint_
        row[f"hidden trees, {members}"] = -float(joint.log_density(test).mean())
    return row | verdict(row["hidden trees, 4"], 27.2)


def normal(seed: int) -> dict:
    """The table of `density_normal.py`: 10 columns of covariance 0.9^|i-j|, 2,000 rows to learn, 1,000 to test."""
    rng = np.random.default_rng(seed)
    covariance = 0.9 ** np.abs(np.subtract.outer(np.arange(10), np.arange(10)))
    frame = pd.DataFrame(rng.multivariate_normal(np.zeros(10), covariance, size=3_000)).add_prefix("x")
    truth = -float(multivariate_normal(np.zeros(10), covariance).logpdf(frame.iloc[2_000:]).mean())
    row = {"replicate": seed, "truth": truth}
    for members in (1, 4):
        joint = HiddenTreeForest(members, random_state=seed).fit(frame.iloc[:2_000]).joint_
        row[f"hidden trees, {members}"] = -float(joint.log_density(frame.iloc[2_000:]).mean())
    return row | verdict(row["hidden trees, 4"], 7.2)


def gef(options: Namespace, name: str) -> dict:
    frame = read(options.data, f"gef/{name}")
    if options.quick:
        frame = frame.iloc[:300]
    order = np.random.default_rng(0).permutation(len(frame))
    cut = int(0.8 * len(frame))
    learn, test = (frame.iloc[part].reset_index(drop=True) for part in (order[:cut], order[cut:]))
    forest = AdversarialForest(random_state=0).fit(learn).joint_
    hidden = HiddenTreeForest(4, random_state=0).fit(learn).joint_
    both = mix([forest, hidden], [0.5, 0.5])
    row = {"table": name, "rows": len(frame)}
    for label, joint in {"adversarial forest": forest, "hidden trees": hidden, "half and half": both}.items():
        row[label] = -float(joint.log_density(test).mean())
    row["better"] = "yes" if min(row["hidden trees"], row["half and half"]) < row["adversarial forest"] else "NO"
    return row


def main() -> None:
    options = arguments(
        __doc__, members=dict(type=int, default=4), tables=dict(nargs="*", default=list(BINARY)),
        splits=dict(type=int, default=3), gef=dict(nargs="*", default=list(GEF)),
    )  # fmt: skip
    tables = {
        "Binary tables, mean NLL of the test rows": [binary(options, name) for name in options.tables],
        "Adult, 9,561 test rows, log-mass of cells": [adult(options, s) for s in range(options.splits)],
        "Correlated normal": [normal(seed) for seed in range(options.splits)],
        "gef/ tables with their classes, 80 % to learn": [gef(options, name) for name in options.gef],
    }
    settings = {"members": options.members, "splits": options.splits}
    finish("hidden_density", tables, settings, options.quick)


if __name__ == "__main__":
    main()
