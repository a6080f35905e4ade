"""Measures the certified gap of modes of forests by the budget of branch and bound, and the seconds.

The gap is the bound on the log-density of all rows less the log-density of the best row, without evidence.
"""

from __future__ import annotations

import time

from _common import arguments, finish, read

import jointforest as jf

BUDGETS = (0, 10, 100, 1_000, 10_000)


def gaps(joint: jf.Joint, name: str) -> dict[str, object]:
    """One row of the table: gap and CPU seconds of each budget, up to the one that closes it."""
    joint.given().mode(budget=2)  # compiles
    row: dict[str, object] = {"model": name, "leaves": joint.n_leaves}
    for budget in BUDGETS:
        before = time.process_time()
        found = joint.given().mode(budget=budget)
        gap = float(found.log_bound - found.log_density[0])
        row[f"{budget:,} cuts"] = f"{gap:.2g} ({time.process_time() - before:.2g} s)"
        if gap <= 2e-9:
            break
    return row


def main() -> None:
    options = arguments(__doc__)
    adult = read(options.data, "adult_train")
    tables = {"penguins": jf.datasets.load_penguins(), "Adult": adult[:2000] if options.quick else adult}
    rows = []
    for name, frame in tables.items():
        for n_trees in (10,) if options.quick else (10, 100):
            joint = jf.AdversarialForest(n_estimators=n_trees, random_state=options.seed).fit(frame).joint_
            rows.append(gaps(joint, f"{name}, {n_trees} trees"))
    finish("modes", {"Gap in nats (CPU seconds), by boxes cut at most": rows}, {"seed": options.seed}, options.quick)


if __name__ == "__main__":
    main()
