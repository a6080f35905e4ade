"""Measures seconds and memory of joint trees on a made table, beside pyjpt.

The table has 4 numbers and 3 columns of 7, 20 and 300 levels. pyjpt runs in an environment of its own under
benchmarks/.peers, made on first use, on the same rows in the same run. Both split as long as anything improves.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from _common import HERE, arguments, finish, peak_memory, progress, timed, verdict
from peers import peer_python, run_json

from jointforest.learners.joint_tree.joint_tree import JointTree

PINS = ["pyjpt==1.3.4", "numpy==2.3.5", "pandas==2.3.3", "scipy==1.17.1", "pyarrow"]
LEVELS = {"few": 7, "some": 20, "many": 300}
MIN_LEAF = 0.01
GROUPS = 12
LIMITS = {1_000_000: 12.0, 10_000_000: 150.0}
MEMORY = 6.0


def generate(n: int, seed: int) -> pd.DataFrame:
    """A mixture of groups, each with normal numbers and level frequencies of its own."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, GROUPS, n)
    centre = 2 * rng.normal(size=(GROUPS, 4))
    columns: dict[str, object] = {f"x{j}": centre[group, j] + rng.normal(size=n) for j in range(4)}
    for name, k in LEVELS.items():
        cumulative = rng.dirichlet(np.full(k, 0.5), GROUPS).cumsum(axis=1)
        code, draw = np.empty(n, dtype=np.int16), rng.random(n)
        for g in range(GROUPS):
            code[group == g] = np.minimum(np.searchsorted(cumulative[g], draw[group == g]), k - 1)
        columns[name] = pd.Categorical.from_codes(code, [f"{name}{c:03d}" for c in range(k)])
    return pd.DataFrame(columns)


def everything(joint: object, value: str) -> None:
    """Posterior of all columns given a level."""
    posterior = joint.given(few=value)
    for name in joint.columns:
        if joint.levels(name):
            posterior.proba(name)
        else:
            posterior.quantile(name, [0.05, 0.5, 0.95])


def ours(frame: pd.DataFrame, values: list[str]) -> dict:
    fit, tree = timed(lambda: JointTree(min_samples_leaf=MIN_LEAF, min_impurity_decrease=0, random_state=0).fit(frame))
    joint = tree.joint_
    test = frame.iloc[:100_000]
    joint.log_density(test.iloc[:100])
    likelihood = statistics.median(timed(lambda: joint.log_density(test))[0] for _ in range(3))
    everything(joint, values[0])
    posterior = statistics.median(timed(lambda v=v: everything(joint, v))[0] for v in values * 5)
    return {"fit": fit, "rate": len(test) / likelihood, "posterior": posterior, "leaves": joint.n_leaves}


def pyjpt(frame: pd.DataFrame, values: list[str]) -> dict:
    """One run of pyjpt on these rows."""
    python = peer_python("pyjpt", PINS)
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "train.parquet"
        frame.astype(dict.fromkeys(LEVELS, str)).to_parquet(table)
        found = run_json([python, HERE / "_pyjpt_worker.py", table, "--min-leaf", MIN_LEAF, "--density-rows", 1000,
                          "--column", "few", "--values", *values])  # fmt: skip
    seconds = found["seconds"]
    return {"fit": seconds["fit"], "rate": 1000 / seconds["likelihood"], "posterior": seconds["posterior"],
            "leaves": found["leaves"], "versions": found["versions"]}  # fmt: skip


def main() -> None:
    options = arguments(
        __doc__,
        rows=dict(type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000]),
        peer_rows=dict(type=int, default=1_000_000, help="largest table that pyjpt gets (0: none)"),
    )
    sizes = [20_000] if options.quick else sorted(options.rows)
    ours(generate(30_000, options.seed), ["few001"])  # compiled, or read from the cache
    values = [f"few{c:03d}" for c in range(LEVELS["few"])]
    rows, compared, versions = [], [], {}
    for n in sizes:
        frame = generate(n, options.seed)
        a = ours(frame, values)
        row = {"rows": n, "leaves": a["leaves"], "fit (s)": a["fit"], "peak (GB)": peak_memory() / 1e9}
        if n in LIMITS:
            row |= verdict(a["fit"], LIMITS[n])
        rows.append(row)
        progress(f"{n:,} rows: {a['fit']:.1f} s")
        if n > options.peer_rows:
            continue
        b = pyjpt(frame, values)
        versions = b["versions"]
        progress(f"{n:,} rows, pyjpt: {b['fit']:.1f} s")
        for what, one, two, ratio, target in [
            ("fit (s)", a["fit"], b["fit"], b["fit"] / a["fit"], 10.0),
            ("likelihood (rows/s)", a["rate"], b["rate"], a["rate"] / b["rate"], 500.0),
            ("posterior of all columns (s)", a["posterior"], b["posterior"], b["posterior"] / a["posterior"], None),
        ]:
            line = {"rows": n, "what": what, "jointforest": one, "pyjpt": two, "ratio": ratio}
            if target is not None:
                line |= verdict(ratio, target, at_most=False)
            else:
                line |= verdict(one, 0.005)
            compared.append(line | {"leaves": a["leaves"], "leaves, pyjpt": b["leaves"]})
    tables = {"JointTree, minimum leaf 1 % (the peak includes the table)": rows}
    if compared:
        tables["The same rows with pyjpt"] = compared
    if not options.quick and rows[-1]["rows"] >= 10_000_000:
        tables["Memory"] = [{"peak (GB)": rows[-1]["peak (GB)"]} | verdict(rows[-1]["peak (GB)"], MEMORY)]
    finish("joint_tree_speed", tables, {"seed": options.seed, "versions": versions}, options.quick)


if __name__ == "__main__":
    main()
