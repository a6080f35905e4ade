"""Runs inside the arfpy environment (numpy, pandas, scipy, scikit-learn, arfpy only): one fit, density and sampling.

Prints one JSON object on the last line of standard output. arfpy 0.1.1 offers no likelihood, so `log_density` computes
the one its own parameters define, vectorised over rows and trees: a complete row meets one leaf a tree, its density
there is coverage x truncated normals x class probabilities, and trees are averaged.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import time
import warnings

import numpy as np
import pandas as pd
from arfpy import arf
from scipy.special import log_ndtr, logsumexp

warnings.filterwarnings("ignore")


def log_interval(a, b):
    """log(Phi(b) - Phi(a)), from the tail in which both are small."""
    flip = a > 0
    a, b = np.where(flip, -b, a), np.where(flip, -a, b)
    high, low = log_ndtr(b), log_ndtr(a)
    with np.errstate(divide="ignore", invalid="ignore"):
        return high + np.log1p(-np.exp(low - high))


def codes(model, frame):
    """The frame as arfpy sees it: levels as integers, -1 where missing."""
    coded = frame[model.orig_colnames].copy()
    for column, levels in model.levels.items():
        coded[column] = pd.Categorical(coded[column], categories=levels).codes
    return coded


class Density:
    """Tables of arfpy's parameters by (tree, node), made once after `forde`."""

    def __init__(self, model):
        self.model = model
        bounds = model.bnds[["tree", "nodeid", "cvg"]].drop_duplicates()
        nodes = max(tree.tree_.node_count for tree in model.clf.estimators_)
        self.number = np.full((model.num_trees, nodes), -1)
        self.number[bounds["tree"], bounds["nodeid"]] = np.arange(len(bounds))
        self.log_coverage = np.append(np.log(bounds["cvg"].to_numpy()), -np.inf)
        self.numeric = [c for c in model.orig_colnames if not model.factor_cols[c]]
        self.normal = {}
        for column in self.numeric:
            rows = model.params[model.params["variable"] == column]
            at = self.number[rows["tree"], rows["nodeid"]]
            table = np.full((len(bounds) + 1, 4), np.nan)
            table[at[at >= 0]] = rows[["mean", "sd", "min", "max"]].to_numpy()[at >= 0]
            self.normal[column] = table
        self.levels = {}
        for column, levels in model.levels.items():
            rows = model.class_probs[model.class_probs["variable"] == column]
            at = self.number[rows["tree"], rows["nodeid"]]
            table = np.zeros((len(bounds) + 1, len(levels) + 1))
            table[at[at >= 0], rows["value"].to_numpy().astype(int)[at >= 0]] = rows["prob"].to_numpy()[at >= 0]
            with np.errstate(divide="ignore"):
                self.levels[column] = np.log(table)  # the last level is -1: missing

    def log_density(self, frame):
        coded = codes(self.model, frame)
        leaf = self.number[np.arange(self.model.num_trees), self.model.clf.apply(coded)]
        total = self.log_coverage[leaf].copy()
        with np.errstate(divide="ignore", invalid="ignore"):
            for column, table in self.normal.items():
                mean, sd, low, high = table[leaf].transpose(2, 0, 1)
                x = coded[column].to_numpy(dtype=float)[:, None]
                z = (x - mean) / sd
                norm = log_interval((low - mean) / sd, (high - mean) / sd)
                part = -0.5 * z * z - 0.5 * np.log(2 * np.pi) - np.log(sd) - norm
                # a leaf whose rows all tie has a spike at their value: no density there, 0 elsewhere
                part = np.where(sd == 0, np.where(x == mean, np.inf, -np.inf), part)
                total += np.where(np.isnan(part), -np.inf, part)
            for column, table in self.levels.items():
                total += table[leaf, coded[column].to_numpy()[:, None]]
        total = np.where(np.isnan(total), -np.inf, total)
        return logsumexp(total, axis=1) - np.log(self.model.num_trees)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("train")
    parser.add_argument("--test")
    parser.add_argument("--trees", type=int, default=10)
    parser.add_argument("--min-leaf", type=int, default=5)
    parser.add_argument("--sample", type=int, default=10_000)
    parser.add_argument("--density-rows", type=int, default=None)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--out", help="Parquet file for the sampled rows")
    arguments = parser.parse_args()

    np.random.seed(arguments.seed)  # noqa: NPY002 - arfpy resamples with the global generator
    train = pd.read_parquet(arguments.train)
    test = pd.read_parquet(arguments.test) if arguments.test else train
    test = test.iloc[: arguments.density_rows]
    seconds = {}

    start = time.perf_counter()
    model = arf.arf(
        train,
        num_trees=arguments.trees,
        min_node_size=arguments.min_leaf,
        verbose=False,
        n_jobs=arguments.jobs,
        random_state=arguments.seed,
    )
    seconds["rounds"] = time.perf_counter() - start

    start = time.perf_counter()
    model.forde()
    seconds["densities"] = time.perf_counter() - start

    start = time.perf_counter()
    log_density = Density(model).log_density(test)
    seconds["log_density"] = time.perf_counter() - start

    start = time.perf_counter()
    synthetic = model.forge(arguments.sample)
    seconds["sample"] = time.perf_counter() - start
    if arguments.out:
        synthetic.to_parquet(arguments.out)

    finite = np.isfinite(log_density)
    infinite = log_density == np.inf
    print(
        json.dumps(
            {
                "seconds": seconds,
                "rows": {"train": len(train), "log_density": len(test), "sample": arguments.sample},
                "rounds": len(model.acc),
                "share_of_density_0": float(1 - finite.mean() - infinite.mean()),
                "share_of_infinite_density": float(infinite.mean()),
                "mean_nll_of_finite_rows": float(-log_density[finite].mean()) if finite.any() else None,
                "versions": {
                    p: importlib.metadata.version(p) for p in ("arfpy", "numpy", "pandas", "scikit-learn", "scipy")
                },
            }
        )
    )


if __name__ == "__main__":
    main()
