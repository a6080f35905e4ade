"""Draws the pictures of docs/how-to/plots.md: a tree, regions, distribution functions, posteriors and leaves."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
from _common import HERE, arguments, progress, read
from matplotlib.figure import Figure

from jointforest import plot
from jointforest.data import datasets
from jointforest.learners.joint_tree.joint_tree import JointTree

DOCS = HERE.parent / "docs" / "images"


def save(figure: Figure, folder: Path, name: str) -> None:
    path = folder / f"{name}.png"
    figure.savefig(path, dpi=80, bbox_inches="tight")
    plt.close(figure)
    progress(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


def main() -> None:
    options = arguments(__doc__, out=dict(type=Path, default=DOCS, help="folder to write to (default docs/images/)"))
    matplotlib.use("Agg")
    penguins = datasets.load_penguins()
    joint = JointTree(min_samples_leaf=0.05, random_state=0).fit(penguins).joint_
    save(plot.tree(joint), options.out, "plot_tree")
    save(plot.posterior(joint.given("body_mass_g > 5000")), options.out, "plot_posterior")

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4))
    plot.cdf(joint, "flipper_length_mm", penguins, ax=axes[0])
    plot.cdf(joint.given(sex="MALE"), "body_mass_g", penguins[penguins["sex"] == "MALE"], ax=axes[1])
    save(figure, options.out, "plot_cdf")

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
