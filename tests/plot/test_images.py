"""Pictures of leaves: each with its own likeliest level."""

from __future__ import annotations

import matplotlib
import numpy as np
import pandas as pd

import jointforest as jf
from jointforest import plot

matplotlib.use("Agg")


def test_each_leaf_has_its_mean_picture_its_share_and_its_label() -> None:
    rng = np.random.default_rng(0)
    label = rng.choice(["dark", "light"], 300, p=[0.3, 0.7])
    brightness = np.where(label == "dark", 0.0, 10.0)[:, None] + rng.normal(size=(300, 4))
    said = np.where((label == "light") & (rng.random(300) < 0.2), "bright", label)
    frame = pd.DataFrame(brightness, columns=list("abcd")).assign(label=said)
    joint = jf.JointTree(min_samples_leaf=0.25, max_leaf_nodes=2, random_state=0).fit(frame).joint_
    figure = plot.leaf_images(joint, (2, 2))
    titles = [ax.get_title().split("\n") for ax in figure.axes]
    shares = [np.mean(label == "light"), np.mean(label == "dark")]
    assert titles == [[f"{100 * share:.1f}%", name] for share, name in zip(shares, ["light", "dark"], strict=True)]
    means = [float(np.mean(ax.images[0].get_array())) for ax in figure.axes]
    assert abs(means[0] - 10.0) < 0.5 and abs(means[1]) < 0.5
    matplotlib.pyplot.close(figure)
