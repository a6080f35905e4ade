"""Measures the negative log-likelihood of a correlated normal with ten columns, beside the truth.

The covariance is 0.9^|i-j|; 2,000 rows to learn, 1,000 to test, 100 trees, 10 replicates. `plain` is the leaf of
Watson et al. 2023, Algorithm 2.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from _common import arguments, finish, mean_and_error, progress, timed, verdict
from scipy.stats import multivariate_normal

from jointforest.learners.adversarial.adversarial_forest import AdversarialForest

TARGET = 7.70
DIMENSION = 10
NAMES = [f"x{k}" for k in range(DIMENSION)]


def models(trees: int, seed: int) -> dict[str, AdversarialForest]:
    paper = {
        "kinds": dict.fromkeys(NAMES, "continuous"),
        "bounds": "no",
        "delta": 0.0,
        "spread_rows": 0.0,
        "min_spread": 1e-9,  # no two values tie: never reached
        "epsilon": 0.0,
    }

    def plain(min_rows: int, leaf: str) -> AdversarialForest:
        return AdversarialForest(trees, min_samples_leaf=min_rows, leaf=leaf, random_state=seed, **paper)

    return {
        "default": AdversarialForest(trees, random_state=seed),
        "paper's leaves, at least 5 rows": plain(5, "normal_moments"),
        "paper's leaves, at least 2 rows": plain(2, "normal_moments"),
        "the same, maximum likelihood, 5 rows": plain(5, "normal_mle"),
    }


def main() -> None:
    options = arguments(__doc__, replicates=dict(type=int, default=10))
    learn, test, trees, replicates = (2000, 1000, 100, options.replicates)
    if options.quick:
        learn, test, trees, replicates = 500, 200, 10, 2
    position = np.arange(DIMENSION)
    covariance = 0.9 ** np.abs(position[:, None] - position)
    truth = multivariate_normal(np.zeros(DIMENSION), covariance)

    nll: dict[str, list[float]] = {"truth": []}
    seconds: dict[str, list[float]] = {}
    for replicate in range(replicates):
        rng = np.random.default_rng([options.seed, replicate])
        rows = truth.rvs(learn + test, random_state=rng)
        frame = pd.DataFrame(rows, columns=NAMES)
        known, held_out = frame.iloc[:learn], frame.iloc[learn:]
        nll["truth"].append(-truth.logpdf(rows[learn:]).mean())
        for name, model in models(trees, replicate).items():
            spent, joint = timed(lambda model=model, known=known: model.fit(known).joint_)
            nll.setdefault(name, []).append(-float(np.mean(joint.log_density(held_out))))
            seconds.setdefault(name, []).append(spent)
        progress(f"replicate {replicate + 1} of {replicates}: " + ", ".join(f"{k} {v[-1]:.3f}" for k, v in nll.items()))

    table = []
    for name, values in nll.items():
        mean, error = mean_and_error(values)
        row = {"model": name, "NLL (nats)": mean, "standard error": error, "worst": max(values)}
        if name in seconds:
            row["fit (s, median)"] = float(np.median(seconds[name]))
        if name == "default":
            row |= verdict(mean, TARGET)
        table.append(row)
    settings = {"learn": learn, "test": test, "trees": trees, "replicates": replicates, "seed": options.seed}
    finish("density_normal", {"Multivariate normal: mean NLL of held-out rows": table}, settings, options.quick)


if __name__ == "__main__":
    main()
