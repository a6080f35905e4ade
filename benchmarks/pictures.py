"""Draws the pictures of docs/how-to/plots.md, docs/how-to/survival.md, docs/tutorials/ranges.md and pictures.md."""

from __future__ import annotations

import runpy
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from _common import HERE, arguments, progress, read
from matplotlib.figure import Figure

import jointforest as jf
from jointforest import plot
from jointforest.data import datasets
from jointforest.learners.joint_tree.joint_tree import JointTree

DOCS = HERE.parent / "docs" / "images"
ROW = 17
"""The test row of Adult whose prediction is explained."""


def save(figure: Figure, folder: Path, name: str) -> None:
    path = folder / f"{name}.png"
    figure.savefig(path, dpi=80, bbox_inches="tight")
    plt.close(figure)
    progress(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


CAREER = ["sex = Female", "age >= 40", "education in {Bachelors, Masters}", "occupation = 'Exec-managerial'"]
CAREER += ["hours_per_week >= 50"]
LATE = ["DepTime", "Month", "TaxiOut", "DepDelay", "UniqueCarrier", "AirTime"]
EVENING = ["DepTime >= 1700", "Month in {5, 6, 7}", "TaxiOut > 25", "DepDelay > 15"]


STATUS = ["well", "ill", "severe"]


def adult(data: Path, folder: Path, quick: bool) -> None:
    """Answers about Adult."""
    frame, test = read(data, "adult_train"), read(data, "adult_test")
    joint = jf.fit(frame.head(3_000) if quick else frame, budget="fast", random_state=0)
    values = jf.shapley("income", joint, test.head(150))
    save(plot.shapley_summary(values, output=">50K", most=10).figure, folder, "adult_summary")
    save(plot.evidence_sequence(joint, "income", CAREER).figure, folder, "adult_sequence")
    save(plot.pair(joint, "occupation", "income", frame).figure, folder, "adult_pair")
    save(plot.dependence(joint).figure, folder, "adult_dependence")
    row = jf.shapley("income", joint, test.iloc[[ROW]])
    save(plot.why(row, output=">50K").figure, folder, "adult_why")


def flights(data: Path, folder: Path, quick: bool) -> None:
    """Answers about flights from Houston."""
    frame = read(data, "flights/hflights")
    joint = jf.fit(frame.head(3_000) if quick else frame, budget="fast", random_state=0)
    save(plot.posterior(joint.given("ArrDelay > 60"), LATE), folder, "flights_late")
    save(plot.evidence_sequence(joint, "ArrDelay", EVENING).figure, folder, "flights_sequence")
    near = "DepDelay <= 120 and ArrDelay <= 120"
    few = frame[(frame["DepDelay"] <= 120) & (frame["ArrDelay"] <= 120)]
    ax = plot.pair(joint.given(near), "DepDelay", "ArrDelay", few)
    ax.axline((0, 0), slope=1, color="tab:red", linewidth=0.8)
    save(ax.figure, folder, "flights_delays")
    save(plot.pair(joint.given("DepDelay <= 60"), "UniqueCarrier", "DepDelay", frame[frame["DepDelay"] <= 60]).figure,
         folder, "flights_carriers")  # fmt: skip
    save(plot.dependence(joint).figure, folder, "flights_dependence")


def claims() -> pd.DataFrame:
    """3,000 claims of car insurance, one in six hundred of which is larger than 50,000."""
    rng = np.random.default_rng(0)
    n = 3000
    age, cause = rng.integers(18, 85, n), rng.choice(["glass", "collision", "injury"], n, p=[0.4, 0.5, 0.1])
    km = (8 + 6 * rng.gamma(2.0, 1.0, n) * np.where(age < 65, 1.3, 0.8)).round(1)
    scale = np.select([cause == "glass", cause == "collision"], [300.0, 1500.0], 3000.0) * np.where(age < 25, 1.6, 1.0)
    tail = np.select([cause == "glass", cause == "collision"], [6.0, 2.5], 1.5)
    amount = scale * (1.0 + rng.pareto(tail)) * np.exp(0.3 * rng.normal(size=n))
    return pd.DataFrame({"age": age, "km": km, "cause": cause, "amount": amount.round(-1)})


def damages(folder: Path) -> None:
    """Answers about a table with a heavy tail."""
    frame = claims()
    joint = jf.fit(frame, budget="fast", random_state=0)
    ax = plot.cdf(joint, "amount", frame)
    ax.set_xscale("log")
    save(ax.figure, folder, "claims_amounts")
    save(plot.posterior(joint.given("amount > 10000"), ["cause", "age", "km"]), folder, "claims_large")
    few = frame[frame["amount"] <= 10_000]
    save(plot.pair(joint.given("amount <= 10000"), "cause", "amount", few).figure, folder, "claims_causes")


def histories(folder: Path) -> None:
    """Answers about the visits of patients."""
    joint = jf.fit(datasets.make_visits(500, random_state=0), group="patient", order="date", random_state=0)
    last = datasets.make_visits(200, random_state=1).groupby("patient").tail(1).groupby("status").head(1)
    last = last.iloc[[last["status"].tolist().index(one) for one in STATUS]]
    forecast, steps = joint.forecast(last, steps=6, random_state=0), np.arange(1, 7)
    place = [joint.schema["status"].levels.index(one) for one in STATUS]
    for name, column in (("visits_status", "status"), ("visits_weight", "weight")):
        figure, axes = plt.subplots(1, 3, figsize=(9, 2.6), sharey=column == "status")
        for ax, status, k in zip(axes, last["status"], range(3), strict=True):
            ax.set_title(f"{status} now")
            ax.set_xlabel("visit from now")
            if column == "status":
                colours = ["tab:green", "tab:orange", "tab:red"]
                ax.stackplot(steps, *forecast.proba("status")[k].T[place], labels=STATUS, colors=colours)
            else:
                low, middle, high = forecast.quantile("weight", [0.05, 0.5, 0.95])[k].T
                ax.fill_between(steps, low, high, alpha=0.3)
                ax.plot(steps, middle)
        if column == "status":
            axes[-1].legend(loc="lower right")
        axes[0].set_ylabel(column)
        save(figure, folder, name)


def contracts() -> pd.DataFrame:
    """The customers of the page on times to an event."""
    rng = np.random.default_rng(0)
    n = 2000
    plan, seats = rng.choice(["basic", "pro"], n), rng.poisson(4, n) + 1.0
    months = rng.weibull(1.3, n) * np.where(plan == "pro", 40, 12) * seats**0.3
    so_far = rng.uniform(1, 48, n)
    customers = pd.DataFrame({"plan": plan, "seats": seats})
    customers["ended"], customers["months"] = months <= so_far, np.minimum(months, so_far).round(1)
    customers.loc[rng.random(n) < 0.2, "seats"] = None
    return customers


def main() -> None:
    options = arguments(__doc__, out=dict(type=Path, default=DOCS, help="folder to write to (default docs/images/)"))
    matplotlib.use("Agg")
    adult(options.data, options.out, options.quick)
    flights(options.data, options.out, options.quick)
    damages(options.out)
    histories(options.out)
    penguins = datasets.load_penguins()
    joint = JointTree(min_samples_leaf=0.05, random_state=0).fit(penguins).joint_
    save(plot.tree(joint), options.out, "plot_tree")
    save(plot.posterior(joint.given("body_mass_g > 5000")), options.out, "plot_posterior")

    pieces = ["island = Biscoe", "sex = FEMALE", "body_mass_g < 4500"]
    save(plot.evidence_sequence(joint, "species", pieces).figure, options.out, "plot_sequence")
    save(plot.pair(joint, "species", "body_mass_g", penguins).figure, options.out, "plot_pair")
    save(plot.dependence(joint).figure, options.out, "plot_dependence")
    row = penguins[penguins["sex"].isna() & penguins["body_mass_g"].notna()].head(1)
    save(plot.why(jf.shapley("species", joint, row)).figure, options.out, "plot_why")

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4))
    plot.cdf(joint, "flipper_length_mm", penguins, ax=axes[0])
    plot.cdf(joint.given(sex="MALE"), "body_mass_g", penguins[penguins["sex"] == "MALE"], ax=axes[1])
    save(figure, options.out, "plot_cdf")

    kinds = {"months": jf.censored(event="ended")}
    customers = contracts()
    joint = jf.HiddenTreeForest(kinds=kinds, random_state=0).fit(customers).joint_
    groups = ["plan = basic", "plan = pro"]
    save(plot.survival(joint, "months", groups, customers, standard_errors=True).figure, options.out, "plot_survival")

    example = runpy.run_path(str(HERE.parent / "examples" / "gallery" / "plot_ranges.py"))
    save(example["figure"], options.out, "ranges")

    iris = read(options.data, "jpt/iris")
    x, y, target = "petal length (cm)", "petal width (cm)", "target"
    tree = JointTree(features=[x, y], min_samples_leaf=0.05, min_impurity_decrease=0, random_state=0)
    tree.fit(iris[[x, y, target]])
    save(plot.regions(tree.joint_, x, y, target, iris[[x, y, target]]).figure, options.out, "plot_regions")

    digits = read(options.data, "jpt/digits")
    tree = JointTree(leaf="quantile", min_samples_leaf=0.02, min_impurity_decrease=0, random_state=0).fit(digits)
    save(plot.leaf_images(tree.joint_, (8, 8)), options.out, "plot_digits")


if __name__ == "__main__":
    main()
