"""jf.fit at each budget beside its candidates alone: what it chooses, log-density of test rows, seconds.

A fifth of each table, drawn at random, is the test; the rest is learned from. Log-densities are means over the test
rows, in nats: of numbers on a grid, levels and atoms their mass. "better": fit's minus the adversarial forest's; "se":
the standard error of that difference.
"""

from __future__ import annotations

import warnings

import numpy as np
from _common import arguments, finish, progress, read, timed

import jointforest as jf

TABLES = (
    "jpt/iris", "gef/wdbc", "gef/diabetes", "gef/vehicle", "gef/vowel", "gef/credit-g", "gef/cmc", "gef/segment",
    "jpt/abalone", "gef/wine", "adult_train",
)  # fmt: skip


def main() -> None:
    options = arguments(
        __doc__,
        tables=dict(nargs="+", default=TABLES),
        budgets=dict(nargs="+", default=("fast", "default")),
        repeats=dict(type=int, default=1),
    )
    tables, budgets = (("jpt/iris",), ("fast",)) if options.quick else (options.tables, options.budgets)
    warnings.simplefilter("ignore")
    rows = []
    for name in tables:
        for seed in range(options.seed, options.seed + options.repeats):
            table = read(options.data, name)
            order = np.random.default_rng(seed).permutation(len(table))
            few = len(table) // 5
            test, train = table.iloc[order[:few]], table.iloc[order[few:]]
            alone = {}
            for learner in (jf.AdversarialForest(random_state=seed), jf.HiddenTreeForest(random_state=seed)):
                seconds, fitted = timed(lambda learner=learner, train=train: learner.fit(train))
                alone[type(learner).__name__] = (fitted.joint_.log_density(test), seconds)
            forest, hidden = alone["AdversarialForest"][0], alone["HiddenTreeForest"][0]
            for budget in budgets:
                given = budget if budget.isalpha() else float(budget)
                seconds, joint = timed(lambda t=train, b=given, s=seed: jf.fit(t, budget=b, random_state=s))
                found = joint.log_density(test)
                rows.append(
                    {
                        "table": name,
                        "rows": len(train),
                        "seed": seed,
                        "budget": budget,
                        "chosen": " + ".join(f"{w:.2f} {one}" for one, w in joint.fitted_by.chosen.items()),
                        "fit": found.mean(),
                        "forest": forest.mean(),
                        "hidden trees": hidden.mean(),
                        "better": (found - forest).mean(),
                        "se": (found - forest).std() / np.sqrt(len(found)),
                        "seconds": seconds,
                        "s forest": alone["AdversarialForest"][1],
                        "s hidden": alone["HiddenTreeForest"][1],
                    }
                )
                progress(f"{name} {budget}: {rows[-1]['chosen']}, {rows[-1]['better']:+.3f} nats, {seconds:.1f} s")
    settings = {"seed": options.seed, "repeats": options.repeats}
    finish("fit", {"Log-density of test rows": rows}, settings, options.quick)


if __name__ == "__main__":
    main()
