"""Measures densities of held-out rows of Adult: the paper's leaves beside the default model.

The first table has densities, with every number continuous. They compare with published figures, but tied values
flatter them. The second table has the log-mass of each value's rounding cell (x - 1/2, x + 1/2], which compares
models.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from _common import adult_split, arguments, finish, mean_and_error, progress, timed, verdict

from jointforest.data.evidence import Evidence, build
from jointforest.data.frames import encode
from jointforest.learners.adversarial.adversarial_forest import AdversarialForest
from jointforest.models.box_forest.posterior import log_density

TARGET = 39.4
# The paper's leaves and stopping rule: no atoms, no background, alpha = 0.1.
PLAIN = {
    "leaf": "normal_moments",
    "bounds": "no",
    "prior": "uniform",
    "smoothing": 0.1,
    "min_spread": 0.001,
    "delta": 0.0,
    "epsilon": 0.0,
}
# A leaf whose values all tie needs some width (here: a part of a row of the column's pooled variance); the density says
# mostly how much it got, so several are shown. The one held against the target was picked on other splits.
WIDTHS = (0.3, 0.1, 0.05)
SHOWN = 0.05


def cells(joint, frame: pd.DataFrame, numbers: list[str]) -> Evidence:
    """Evidence that each whole number lies within half a unit of its value; missing cells stay missing."""
    x, unseen = encode(joint.schema, frame)
    region = np.full(x.shape, -1, dtype=np.int32)
    lows: list[np.ndarray] = []
    for j, name in enumerate(joint.columns):
        if name not in numbers:
            continue
        known = ~np.isnan(x[:, j])
        values, code = np.unique(x[known, j], return_inverse=True)
        region[known, j] = code + sum(map(len, lows))
        lows.append(values - 0.5)
        x[:, j] = np.nan
    low = np.concatenate(lows)
    evidence = build(joint.schema, X=np.ascontiguousarray(x), unseen=unseen)
    return evidence._replace(
        region=region,
        run_start=np.arange(len(low) + 1, dtype=np.int32),
        run_lo=low,
        run_hi=low + 1.0,
        atoms=np.zeros(len(low), dtype=np.uint64),
    )


def main() -> None:
    options = arguments(__doc__, repeats=dict(type=int, default=5, help="random splits and fits"))
    repeats, learn_rows, trees = (2, 2_000, 3) if options.quick else (options.repeats, 23_000, 10)
    names = {width: f"plain, spread_rows={width:g}" for width in WIDTHS}
    density: dict[str, list[float]] = {name: [] for name in names.values()}
    mass: dict[str, list[float]] = {name: [] for name in [*names.values(), "default"]}
    worst = {name: 0.0 for name in mass}
    seconds: dict[str, list[float]] = {name: [] for name in mass}
    for repeat in range(repeats):
        learn, test = adult_split(options.data, options.seed + repeat, learn_rows)
        numbers = [name for name in learn if pd.api.types.is_integer_dtype(learn[name])]
        common = dict(n_estimators=trees, min_samples_leaf=5, random_state=options.seed + repeat)
        kinds = dict.fromkeys(numbers, "continuous")
        forests = {
            name: AdversarialForest(kinds=kinds, spread_rows=width, **common, **PLAIN) for width, name in names.items()
        }
        forests["default"] = AdversarialForest(**common)
        for name, forest in forests.items():
            spent, joint = timed(lambda forest=forest, learn=learn: forest.fit(learn).joint_)
            seconds[name].append(spent)
            if name == "default":
                wrong = {c: k for c, k in joint.kinds.items() if c in numbers and k != "integer"}
                if wrong:
                    raise SystemExit(f"expected whole-number columns to be of kind integer, got {wrong}")
                log_mass = joint.log_density(test)  # on a grid of step 1 the density is the mass of the cell
            else:
                density[name].append(-float(np.mean(joint.log_density(test))))
                log_mass = log_density(joint.distribution.forest, cells(joint, test, numbers))
            mass[name].append(-float(np.mean(log_mass)))
            worst[name] = max(worst[name], float(np.max(-log_mass)))
        progress(
            f"split {repeat + 1} of {repeats}: density of {names[SHOWN]} {density[names[SHOWN]][-1]:.3f}, "
            + "log-mass "
            + ", ".join(f"{name} {values[-1]:.3f}" for name, values in mass.items())
        )

    as_density = []
    for name, values in density.items():
        mean, error = mean_and_error(values)
        row = {"model": name, "NLL (nats)": mean, "standard error": error}
        as_density.append(row | (verdict(mean, TARGET) if name == names[SHOWN] else {}))
    as_density.append({"model": "arf 0.2.4 (R), reference run", "NLL (nats)": 39.27})

    best = min(names.values(), key=lambda name: float(np.mean(mass[name])))
    gain, gain_error = mean_and_error(np.subtract(mass[best], mass["default"]))
    as_mass = []
    for name, values in mass.items():
        mean, error = mean_and_error(values)
        row = {"model": name, "-log P(cells) (nats)": mean, "standard error": error, "worst row": worst[name],
               "fit (s, median)": float(np.median(seconds[name]))}  # fmt: skip
        if name == "default":
            row |= {"target": "< best plain", "met": "yes" if gain > 0 else "NO"}
        as_mass.append(row)
    as_mass.append({"model": "gain on the best plain", "-log P(cells) (nats)": gain, "standard error": gain_error})
    settings = {"learn": learn_rows, "trees": trees, "min_samples_leaf": 5, "repeats": repeats, "plain": PLAIN,
                "width held against the target": SHOWN, "seed": options.seed}  # fmt: skip
    tables = {
        "Every number a density (tied values flatter it); mean NLL over every test row": as_density,
        "Log-mass of rounding cells; mean over every test row": as_mass,
    }
    finish("density_adult", tables, settings, options.quick)


if __name__ == "__main__":
    main()
