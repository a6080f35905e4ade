"""Measures membership attacks, copies and closest rows for samples and joints of several learners.

Adult and credit-g: one part of the rows is learned, another is held out. For comparison there are rows that nobody
learned, and rows of which every tenth is a copy.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from _common import arguments, finish, over_seeds, progress, read

import jointforest as jf


def learners(n: int, seed: int) -> dict:
    states = 64 if n > 2_000 else 16
    return {
        "hidden tree": jf.HiddenTreeForest(n_states=states, n_estimators=1, random_state=seed),
        "adversarial forest": jf.AdversarialForest(n_estimators=10, random_state=seed),
    }


def figures(name: str, of: str, found: jf.Fidelity) -> dict:
    m, c = found.membership, found.copies
    return {
        "table": name, "rows": of, "advantage": m.advantage, "se": m.standard_error, "by density": m.density_advantage,
        "se of it": m.density_error, "nearer": m.nearer, "se of nearer": m.nearer_error, "copies": c.share,
        "copies, held out": c.share_held_out, "closest": c.distance[0], "closest, held out": c.distance_held_out[0],
    }  # fmt: skip


def one_table(name: str, frame: pd.DataFrame, n: int, seed: int) -> list[dict]:
    order = np.random.default_rng(seed).permutation(len(frame))
    learn, new, other = (frame.iloc[order[k * n : (k + 1) * n]].reset_index(drop=True) for k in range(3))
    only = ["copies", "membership"]
    tenth = pd.concat([other.iloc[n // 10 :], learn.iloc[: n // 10]], ignore_index=True)
    table = [
        figures(name, of, jf.fidelity(rows, learn, new, only=only, random_state=seed))
        for of, rows in (("rows of nobody", other), ("every tenth a copy", tenth), ("the table itself", learn))
    ]
    for of, learner in learners(n, seed).items():
        joint = learner.fit(learn).joint_
        table.append(figures(name, of, jf.fidelity(joint, learn, new, only=only, random_state=seed)))
        progress(str(table[-1]))
    return table


def main() -> None:
    warnings.simplefilter("ignore")
    options = arguments(__doc__, seeds=dict(type=int, nargs="+", default=[0]))
    sizes = {"adult_train": 2_000 if options.quick else 10_000, "gef/credit-g": 333}
    runs = [
        {
            f"{file}: {n:,} rows learned from, {n:,} held out": one_table(file, read(options.data, file), n, seed)
            for file, n in sizes.items()
        }
        for seed in options.seeds
    ]
    finish("membership", over_seeds(runs), {"rows": sizes, "seeds": options.seeds}, options.quick)


if __name__ == "__main__":
    main()
