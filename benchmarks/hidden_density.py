"""Measures densities of hidden trees: binary tables, Adult, a correlated normal and the gef tables.

Start and states of binary tables are chosen on the validation rows. A mixture then learns training and validation
rows, and the test rows are read once. Rows of tables that are not run again stay in the file of results.
"""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import numpy as np
import pandas as pd
from _common import adult_split, arguments, finish, progress, read, recorded_tables, timed, verdict
from scipy.stats import multivariate_normal

from jointforest.api.exchange import mix
from jointforest.api.joint import Joint
from jointforest.evaluation.fidelity import fidelity
from jointforest.learners.adversarial.adversarial_forest import AdversarialForest
from jointforest.learners.hidden_tree.hidden_tree_forest import HiddenTreeForest

BINARY = {"nltcs": 5.99, "plants": 12.26, "jester": 51.94, "dna": 80.82, "pumsb_star": 23.71}
STATES = (8, 16, 32, 64, 128)
GEF = ("electricity", "wine", "segment", "wdbc", "diabetes", "vehicle", "vowel", "cmc", "credit-g", "texture", "robot",
       "authent")  # fmt: skip
SCORES = {"electricity": 0.60, "wine": 0.85}
TITLES = {
    "binary": "Binary tables, mean NLL of the test rows",
    "adult": "Adult, 9,561 test rows, log-mass of cells",
    "normal": "Correlated normal",
    "gef": "gef/ tables with their classes, 80 % to learn",
    "scores": "gef/ tables with their classes, two-sample test of drawn rows",
}


def nll(joint: Joint, rows: pd.DataFrame) -> float:
    return -float(joint.log_density(rows).mean())


def binary(options: Namespace, name: str) -> dict[str, Any]:
    train, valid = (read(options.data, f"debd/{name}.{part}") for part in ("train", "valid"))
    both = pd.concat([train, valid], ignore_index=True)
    if options.quick:
        train, both = train.iloc[:1_000], both.iloc[:1_000]
    sizes = [states for states in STATES if states <= options.most_states]
    fixed = {
        "kinds": dict.fromkeys(train.columns, "categorical"),
        "max_leaf_nodes": 1,
        "smoothing": 30.0,
        "random_state": 0,
    }
    tried: dict[tuple[str, int], float] = {}

    def judge(start: str, states: int) -> float:
        joint = HiddenTreeForest(n_states=states, start=start, **fixed).fit(train).joint_
        tried[start, states] = nll(joint, valid)
        progress(f"{name}, {start} start, {states} states: {tried[start, states]:.3f} on validation rows")
        return tried[start, states]

    start = min(("shared", "local"), key=lambda one: judge(one, sizes[min(1, len(sizes) - 1)]))
    if len(sizes) > 1 and judge(start, sizes[0]) > tried[start, sizes[1]]:
        for states in sizes[2:3] if options.quick else sizes[2:]:
            if judge(start, states) > min(tried.values()):
                break
    start, states = min(tried, key=tried.__getitem__)
    seconds, joint = timed(lambda: mixture(both, options.members, states, {"start": start, **fixed}))
    test = nll(joint, read(options.data, f"debd/{name}.test"))
    chosen = {
        "start": start,
        "states": states,
        "most states tried": sizes[-1],
        "valid NLL, one tree": tried[start, states],
    }
    return {"table": name, **chosen, "members": options.members, "NLL (nats)": test,
            **verdict(test, BINARY[name]), "fit (s)": seconds}  # fmt: skip


def mixture(rows: pd.DataFrame, members: int, states: int, settings: dict[str, Any]) -> Joint:
    """Half of the members have the states given, half twice as many: what one tree learns by heart, others do not."""
    more = min(2 * states, STATES[-1])
    halves = {(states, 0): members - members // 2, (more, 1): members // 2}
    joints = [
        HiddenTreeForest(n, n_states=h, **{**settings, "random_state": seed}).fit(rows).joint_
        for (h, seed), n in halves.items()
        if n
    ]
    return joints[0] if len(joints) == 1 else mix(joints, [n / members for n in halves.values()])


def adult(options: Namespace, seed: int) -> dict[str, Any]:
    learn, test = adult_split(options.data, seed, 2_000 if options.quick else 23_000)
    found = nll(HiddenTreeForest(options.members, random_state=seed).fit(learn).joint_, test)
    return {"split": seed, "members": options.members, "hidden trees": found} | verdict(found, 27.2)


def normal(options: Namespace, seed: int) -> dict[str, Any]:
    """The table of `density_normal.py`: 10 columns of covariance 0.9^|i-j|, 2,000 rows to learn, 1,000 to test."""
    rng = np.random.default_rng(seed)
    covariance = 0.9 ** np.abs(np.subtract.outer(np.arange(10), np.arange(10)))
    frame = pd.DataFrame(rng.multivariate_normal(np.zeros(10), covariance, size=3_000)).add_prefix("x")
    truth = -float(multivariate_normal(np.zeros(10), covariance).logpdf(frame.iloc[2_000:]).mean())
    learner = HiddenTreeForest(options.members, random_state=seed).fit(frame.iloc[: 300 if options.quick else 2_000])
    found = nll(learner.joint_, frame.iloc[2_000:])
    return {"replicate": seed, "truth": truth, "members": options.members, "states": learner.settings_.n_states,
            "hidden trees": found, **verdict(found, 7.2)}  # fmt: skip


def gef(options: Namespace, name: str) -> dict[str, Any]:
    frame = read(options.data, f"gef/{name}")
    if options.quick:
        frame = frame.iloc[:300]
    order = np.random.default_rng(0).permutation(len(frame))
    cut = int(0.8 * len(frame))
    learn, test = (frame.iloc[part].reset_index(drop=True) for part in (order[:cut], order[cut:]))
    forest = AdversarialForest(random_state=0).fit(learn).joint_
    seconds, hidden = timed(lambda: HiddenTreeForest(options.members, random_state=0).fit(learn).joint_)
    both = mix([forest, hidden], [0.5, 0.5])
    row = {"table": name, "rows": len(frame), "members": options.members}
    for label, joint in {"adversarial forest": forest, "hidden trees": hidden, "half and half": both}.items():
        row[label] = nll(joint, test)
    row["hidden trees better"] = "yes" if row["hidden trees"] < row["adversarial forest"] else "NO"
    row["half and half better"] = "yes" if row["half and half"] < row["adversarial forest"] else "NO"
    return {**row, "fit (s)": seconds}


def scores(options: Namespace, name: str) -> dict[str, Any]:
    """Of one hidden tree forest at its defaults; 1: a classifier cannot tell its rows from the table's.

    Also beside the table's distinct rows: rows that stand in a table several times give it away, whatever is drawn.
    """
    frame = read(options.data, f"gef/{name}")
    if options.quick:
        frame = frame.iloc[:1_000]
    seconds, joint = timed(lambda: HiddenTreeForest(random_state=0).fit(frame).joint_)
    found, distinct = (
        fidelity(joint, rows, only=["told_apart"], random_state=0).told_apart.score
        for rows in (frame, frame.drop_duplicates(ignore_index=True))
    )
    row = {"table": name, "score": found, **verdict(found, SCORES[name], at_most=False)}
    return {**row, "score, distinct rows": distinct, "fit (s)": seconds}


def main() -> None:
    options = arguments(
        __doc__, members=dict(type=int, default=4), most_states=dict(type=int, default=STATES[-1]),
        tables=dict(nargs="*", default=list(BINARY)), replicates=dict(type=int, default=3),
        gef=dict(nargs="*", default=list(GEF)), splits=dict(type=int, default=3),
        scores=dict(nargs="*", default=list(SCORES), choices=list(SCORES)),
    )  # fmt: skip
    before = {} if options.quick else recorded_tables("hidden_density")
    tables = {title: list(before.get(title, [])) for title in TITLES.values()}
    work = [("binary", binary, options.tables), ("normal", normal, range(options.replicates)),
            ("gef", gef, options.gef), ("scores", scores, options.scores),
            ("adult", adult, range(options.splits))]  # fmt: skip
    for kind, measure, cases in work:
        for case in cases:
            row = measure(options, case)
            progress(f"{row}")
            kept = [one for one in tables[TITLES[kind]] if next(iter(one.values())) != case]
            tables[TITLES[kind]] = [*kept, row]
            finish("hidden_density", tables, {}, options.quick)


if __name__ == "__main__":
    main()
