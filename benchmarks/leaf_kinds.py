"""Compares leaf densities and supports of adversarial forests by held-out log-density on 14 tables.

Half of at most 8,000 rows to learn, the other half to test, 10 trees. Beside the log-density stands the largest
difference between a column's mean under the model and in the table, in standard deviations.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from _common import arguments, finish, progress, read

from jointforest.learners.adversarial.adversarial_forest import AdversarialForest

TABLES = ("large/fremtpl2freq", "gef/bank", "missing/titanic", "adult_train", "gef/electricity", "insurance",
          "jpt/dry_bean", "jpt/iris", "jpt/wine_quality", "jpt/abalone", "gef/wdbc", "gef/segment",
          "outlier/thyroid")  # fmt: skip
KINDS = {
    "normal_moments, no": {"leaf": "normal_moments", "bounds": "no"},
    "normal, no": {"leaf": "normal", "bounds": "no"},
    "normal, auto": {"leaf": "normal", "bounds": "auto"},
    "normal_mle, auto": {"leaf": "normal_mle", "bounds": "auto"},
}


def normal_table(seed: int) -> pd.DataFrame:
    """4,000 rows of a multivariate normal, d = 10, covariance 0.9^|i-j|."""
    place = np.arange(10)
    covariance = 0.9 ** np.abs(np.subtract.outer(place, place))
    rows = np.random.default_rng(seed).multivariate_normal(np.zeros(10), covariance, 4000)
    return pd.DataFrame(rows, columns=[f"x{k}" for k in place])


def main() -> None:
    options = arguments(__doc__)
    most, trees = (800, 3) if options.quick else (8000, 10)
    rows = []
    for name in ("normal, d=10", *TABLES):
        frame = normal_table(options.seed) if name.startswith("normal") else read(options.data, name)
        frame = frame.sample(min(most, len(frame)), random_state=options.seed).reset_index(drop=True)
        learn, test = frame.iloc[::2], frame.iloc[1::2]
        row: dict[str, object] = {"table": name}
        for kind, settings in KINDS.items():
            joint = AdversarialForest(trees, random_state=options.seed, **settings).fit(learn).joint_
            all_rows = joint.given()
            numbers = [c for c, k in joint.kinds.items() if k in ("continuous", "mixed", "integer", "rounded")]
            bias = max(abs(all_rows.mean(c) - learn[c].mean()) / learn[c].std() for c in numbers if learn[c].std() > 0)
            row |= {kind: float(joint.log_density(test).mean()), f"bias {list(KINDS).index(kind) + 1}": float(bias)}
        rows.append(row)
        progress(str(row))
    finish("leaf_kinds", {"Mean held-out log-density": rows}, {"trees": trees, "seed": options.seed}, options.quick)


if __name__ == "__main__":
    main()
