"""Compares `leaf="auto"` of joint trees with `leaf="quantile"`: held-out log-density and processor time.

Tables and splits are those of joint_tree_likelihood.py, with one tree and 30, by smallest leaf. The table has the mean
of the differences with its standard error. Where the first tree loses no dependence, both joints must be equal.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from _common import arguments, finish, progress
from joint_tree_likelihood import MIN_LEAF, TABLES, table

from jointforest.learners.joint_tree.joint_tree import JointTree


def fitted(train, leaf: str, **settings):
    """A joint and the processor's seconds that it took."""
    start = time.process_time()
    joint = JointTree(leaf=leaf, **settings).fit(train).joint_
    return joint, time.process_time() - start


def compare(train, test, **settings) -> dict:
    """One fit of each."""
    old, quantile_s = fitted(train, "quantile", **settings)
    new, auto_s = fitted(train, "auto", **settings)
    before, after = old.log_density(test), new.log_density(test)
    turned = not new.model.is_forest
    if not turned and not np.array_equal(before, after):
        raise SystemExit("no pair is lost, but the joints differ")
    return {"turned": turned, "quantile": before.mean(), "auto": after.mean(), "difference": after - before,
            "quantile_s": quantile_s, "auto_s": auto_s}  # fmt: skip


def line(name: str, trees: int, least: float, found: list[dict]) -> dict:
    """The mean over the splits."""
    difference = np.concatenate([one["difference"] for one in found])
    seconds = [sum(one[which] for one in found) for which in ("auto_s", "quantile_s")]
    return {
        "table": name, "trees": trees, "smallest leaf": f"{least:.0%}",
        "turned": f"{sum(one['turned'] for one in found)} of {len(found)}",
        "quantile": float(np.mean([one["quantile"] for one in found])),
        "auto": float(np.mean([one["auto"] for one in found])),
        "difference": float(difference.mean()),
        "standard error": float(difference.std() / np.sqrt(len(difference))),
        "processor seconds": seconds[0], "over quantile": seconds[0] / seconds[1],
    }  # fmt: skip


def main() -> None:
    warnings.simplefilter("ignore")
    options = arguments(
        __doc__,
        tables=dict(nargs="+", default=list(TABLES), choices=list(TABLES)),
        splits=dict(type=int, default=3, help="of tables of at least 1,000 rows; smaller ones get ten"),
        trees=dict(type=int, nargs="+", default=[1, 30]),
        rows=dict(type=int, default=0, help="most rows of a table (0: all)"),
    )
    names = ["iris"] if options.quick else options.tables
    rows = []
    for name in names:
        frame = table(options.data, name)
        if options.rows:
            frame = frame.sample(min(options.rows, len(frame)), random_state=options.seed).reset_index(drop=True)
        n_test = round(0.1 * len(frame))
        splits = 1 if options.quick else 10 if len(frame) < 1000 else options.splits
        for trees in options.trees:
            for least in MIN_LEAF:
                found = []
                for split in range(splits):
                    order = np.random.default_rng([options.seed, split]).permutation(len(frame))
                    test, train = (frame.iloc[part].reset_index(drop=True) for part in (order[:n_test], order[n_test:]))
                    found.append(compare(train, test, n_estimators=trees, min_samples_leaf=least, random_state=split))
                rows.append(line(name, trees, least, found))
                progress(str(rows[-1]))
    settings = {"seed": options.seed, "splits": options.splits, "rows": options.rows or "all"}
    finish("joint_tree_auto", {"Held-out log-density and processor time, auto and quantile leaves": rows}, settings,
           options.quick)  # fmt: skip


if __name__ == "__main__":
    main()
