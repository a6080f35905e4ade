"""Pictures of joints: what is drawn is what queries, and the rows themselves, say."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgba

import jointforest as jf
from jointforest import plot
from jointforest.data.schema import Column
from jointforest.plot.distributions import draw_bins
from jointforest.plot.style import LEVEL_COLORS

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def close():
    yield
    matplotlib.pyplot.close("all")


@pytest.fixture(scope="module")
def penguins() -> pd.DataFrame:
    return jf.datasets.load_penguins()


@pytest.fixture(scope="module")
def joint(penguins: pd.DataFrame) -> jf.Joint:
    """One tree without background, so that a leaf is what is known given its rule."""
    return jf.JointTree(min_samples_leaf=0.05, epsilon=0, random_state=0).fit(penguins).joint_


def rules(joint: jf.Joint) -> dict[int, str]:
    return {rule["leaf"]: rule["rule"] for rule in joint.given().explain(1000).rules}


def mixed_table(n: int = 400) -> pd.DataFrame:
    """Two groups that differ in a date, a number with an atom, and awkward levels."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, n)
    day = np.datetime64("2024-01-01") + (100 * group + rng.integers(0, 50, n)).astype("timedelta64[D]")
    number = np.where(rng.random(n) < 0.4, 0.0, rng.normal(5 * group, 1))
    level = np.where(group == 1, 'say "a\\b"', "it's\n$b$ \\frac")
    return pd.DataFrame({"day": day, "number": number, "a level": level})


# -- trees


def test_panels_of_a_tree_are_its_leaves(joint: jf.Joint) -> None:
    figure = plot.tree(joint, columns=["island", "body_mass_g"])
    branches, *panels = figure.axes
    text = " ".join(found.get_text() for found in branches.texts)
    order = [int(leaf) for leaf in re.findall(r"leaf (\d+)", text)]
    assert sorted(order) == list(range(joint.n_leaves)) and len(panels) == 2 * len(order)
    lines = sorted(branches.texts, key=lambda found: found.get_position()[1])
    order = [int(leaf) for found in lines for leaf in re.findall(r"leaf (\d+)", found.get_text())]
    for leaf, (island, mass) in zip(order, zip(panels[::2], panels[1::2], strict=True), strict=True):
        known = joint.given(rules(joint)[leaf])
        heights = [bar.get_height() for bar in island.patches]
        np.testing.assert_allclose(heights, list(known.proba("island").values()), atol=1e-9)
        assert mass.patches[0].get_fill()
        steps = mass.patches[0].get_data()
        want = np.diff(known.marginal("body_mass_g").cdf(steps.edges))
        np.testing.assert_allclose(steps.values, want, atol=1e-9)
        assert mass.lines[0].get_xdata()[0] == pytest.approx(known.mean("body_mass_g"))


def test_a_tree_names_every_test(joint: jf.Joint, penguins: pd.DataFrame) -> None:
    texts = [found.get_text() for found in plot.tree(joint).axes[0].texts]
    outline = joint.tree_text()
    tests = [text for text in texts[::2] if text != "all rows"]
    assert len(tests) == 2 * joint.n_leaves - 2 and all(f" {test}  " in outline for test in tests)
    shares = [float(text.split("%")[0]) for text in texts[1::2] if "leaf" in text]
    assert sum(shares) == pytest.approx(100, abs=0.5)


def test_a_large_tree_is_cut_to_its_heaviest_nodes(joint: jf.Joint) -> None:
    figure = plot.tree(joint, columns=["body_mass_g"], max_leaves=1)
    steps = figure.axes[1].patches[0].get_data()
    want = np.diff(joint.marginal("body_mass_g").cdf(steps.edges))
    np.testing.assert_allclose(steps.values, want, atol=1e-9)
    assert figure.axes[0].texts[1].get_text() == f"100.0%  {joint.n_leaves} leaves"
    for most in range(2, joint.n_leaves + 1):
        shown = plot.tree(joint, columns=["sex"], max_leaves=most)
        assert len(shown.axes) - 1 == most
        ends = [found.get_text() for found in shown.axes[0].texts if "lea" in found.get_text()]
        assert len(ends) == most
        held = sum(int(re.search(r"(\d+) leaves|leaf", text).group(1) or 1) for text in ends)
        assert held == joint.n_leaves


def test_a_tree_is_saved_as_svg_that_needs_no_other_file(joint: jf.Joint, tmp_path) -> None:
    plot.tree(joint).savefig(tmp_path / "tree.svg")
    root = ElementTree.parse(tmp_path / "tree.svg").getroot()
    links = [value for node in root.iter() for name, value in node.attrib.items() if name.endswith("href")]
    assert root.tag.endswith("svg") and links and all(link.startswith(("#", "data:")) for link in links)


def test_dates_atoms_and_awkward_levels_are_drawn() -> None:
    frame = mixed_table()
    joint = jf.JointTree(random_state=0).fit(frame).joint_
    figure = plot.tree(joint)
    figure.canvas.draw()
    assert len(figure.axes) == 1 + 3 * joint.n_leaves and joint.n_leaves > 1
    plot.posterior(joint.given(number=0.0)).canvas.draw()
    plot.cdf(joint, "day", frame).figure.canvas.draw()


def test_of_a_forest_the_tree_asked_for() -> None:
    joint = jf.JointTree(3, min_samples_leaf=0.1, random_state=0).fit(mixed_table()).joint_
    for tree in range(3):
        leaves = int(re.search(r": (\d+) leaves", joint.tree_text(tree)).group(1))
        assert len(plot.tree(joint, tree, columns=["day"]).axes) == 1 + leaves
    with pytest.raises(ValueError, match="0 to 2"):
        plot.tree(joint, 3)


def test_errors_of_trees(joint: jf.Joint) -> None:
    with pytest.raises(ValueError, match="max_leaves"):
        plot.tree(joint, max_leaves=0)
    with pytest.raises(ValueError, match="body_mass"):
        plot.tree(joint, columns=["body_mass"])
    learner = jf.JointTree()
    for draw in (
        lambda: plot.tree(learner),
        lambda: plot.regions(learner, "bill_length_mm", "body_mass_g"),
        lambda: plot.leaf_images(learner, (2, 2)),
    ):
        with pytest.raises(TypeError, match=r"expected a Joint .* got JointTree"):
            draw()
    with pytest.raises(ValueError, match="list of names"):
        plot.tree(joint, columns="sex")
    with pytest.raises(ValueError, match="list of names"):
        plot.tree(joint, columns=3)


def test_long_tests_keep_to_two_short_lines() -> None:
    rng = np.random.default_rng(0)
    kind = np.array([f"a rather long level {k}" for k in range(20)])
    code = rng.integers(0, 20, 1000)
    frame = pd.DataFrame({"what kind of thing it is": kind[code], "x": (code % 2) * 5 + rng.normal(size=1000)})
    joint = jf.JointTree(features=["what kind of thing it is"], max_leaf_nodes=2, random_state=0).fit(frame).joint_
    left, right = plot.tree(joint).axes[0].texts[2:6:2]
    for text, start in ((left, "in {"), (right, "not in {")):
        column, levels = text.get_text().split("\n")
        assert column == "what kind of thing it is" and levels.startswith(start) and levels.endswith(" +9}")
        assert len(levels) <= 34


# -- regions


@pytest.fixture(scope="module")
def two(penguins: pd.DataFrame) -> tuple[jf.Joint, pd.DataFrame]:
    """A tree that splits two columns for a third."""
    frame = penguins[["species", "flipper_length_mm", "bill_length_mm"]].dropna()
    features = ["flipper_length_mm", "bill_length_mm"]
    tree = jf.JointTree(targets=["species"], features=features, min_samples_leaf=0.02, epsilon=0, random_state=0)
    return tree.fit(frame).joint_, frame


def test_boxes_tile_the_view_and_hold_the_rows(two: tuple[jf.Joint, pd.DataFrame]) -> None:
    joint, frame = two
    x, y = "flipper_length_mm", "bill_length_mm"
    ax = plot.regions(joint, x, y, "species", frame)
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    boxes = [(p.get_x(), p.get_y(), p.get_x() + p.get_width(), p.get_y() + p.get_height()) for p in ax.patches]
    area = sum((c - a) * (d - b) for a, b, c, d in boxes)
    assert len(boxes) == joint.n_leaves >= 3 and area == pytest.approx((right - left) * (high - low))
    inside = [(frame[x] > a) & (frame[x] <= c) & (frame[y] > b) & (frame[y] <= d) for a, b, c, d in boxes]
    assert np.all(np.sum(inside, axis=0) == 1)
    colours = dict(zip(joint.levels("species"), LEVEL_COLORS, strict=False))
    for patch, rows in zip(ax.patches, inside, strict=True):
        most = frame["species"][rows].mode()[0]
        assert patch.get_facecolor()[:3] == to_rgba(colours[most])[:3]
    assert {dots.get_label(): len(dots.get_offsets()) for dots in ax.collections} == dict(
        frame["species"].value_counts()
    )


def test_the_shade_is_the_density(two: tuple[jf.Joint, pd.DataFrame]) -> None:
    joint, frame = two
    ax = plot.regions(joint, "flipper_length_mm", "bill_length_mm", frame=frame)
    image = np.asarray(ax.images[0].get_array())
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    mass = (image**2).sum() * (right - left) * (high - low) / image.size
    view = joint.probability(f"{left} <= flipper_length_mm <= {right} and {low} <= bill_length_mm <= {high}")
    assert mass == pytest.approx(view, abs=0.03)
    top = np.unravel_index(image.argmax(), image.shape)
    at = [low + (high - low) * (top[0] + 0.5) / len(image), left + (right - left) * (top[1] + 0.5) / len(image)]
    point = pd.DataFrame({"flipper_length_mm": [at[1]], "bill_length_mm": [at[0]]})
    assert image.max() ** 2 == pytest.approx(np.exp(joint.log_density(point)[0]))


@pytest.mark.filterwarnings("error")
def test_regions_of_rows_that_are_no_levels_or_far_out(joint: jf.Joint, penguins: pd.DataFrame) -> None:
    ax = plot.regions(joint, "bill_length_mm", "body_mass_g", "sex", penguins.assign(sex=None))
    assert ax.get_legend() is None and not len(ax.collections)
    ax = plot.regions(joint, "bill_length_mm", "body_mass_g", "sex", penguins.assign(body_mass_g=1e300))
    assert ax.get_ylim()[0] < 1e300 < ax.get_ylim()[1]


def test_errors_of_regions(joint: jf.Joint) -> None:
    with pytest.raises(ValueError, match="'sex' is categorical"):
        plot.regions(joint, "sex", "body_mass_g")
    with pytest.raises(ValueError, match="both column 'body_mass_g'"):
        plot.regions(joint, "body_mass_g", "body_mass_g")
    with pytest.raises(ValueError, match="target must have levels"):
        plot.regions(joint, "bill_length_mm", "body_mass_g", "bill_depth_mm")
    ax = matplotlib.pyplot.subplots()[1]
    assert plot.regions(joint, "bill_length_mm", "body_mass_g", ax=ax) is ax


# -- distributions


def test_cdf_of_the_model_and_of_the_data(joint: jf.Joint, penguins: pd.DataFrame) -> None:
    big = joint.given(species="Gentoo")
    rows = penguins[penguins["species"] == "Gentoo"]
    for distribution, frame in ((joint, penguins), (big, rows)):
        for column in ("bill_length_mm", "body_mass_g"):
            model, data = plot.cdf(distribution, column, frame).lines
            x, up_to = model.get_data()
            np.testing.assert_allclose(up_to, distribution.marginal(column).cdf(x), atol=1e-12)
            values = np.sort(frame[column].dropna())
            x, share = data.get_data()
            np.testing.assert_array_equal(x[1:-1], values)
            want = np.searchsorted(values, values, side="right") / len(values)
            last = np.append(np.diff(values) > 0, True)
            np.testing.assert_allclose(share[1:-1][last], want[last])


def test_an_atom_is_a_step() -> None:
    frame = mixed_table()
    joint = jf.JointTree(random_state=0).fit(frame).joint_
    assert joint.schema["number"].atoms == (0.0,)
    x, up_to = plot.cdf(joint, "number").lines[0].get_data()
    at = int(np.flatnonzero(x == 0.0)[0])
    assert x[at - 1] == np.nextafter(0.0, -1.0)
    assert up_to[at] - up_to[at - 1] == pytest.approx((frame["number"] == 0).mean(), abs=0.01)


def test_errors_of_cdfs(joint: jf.Joint, penguins: pd.DataFrame) -> None:
    with pytest.raises(ValueError, match="no CDF"):
        plot.cdf(joint, "sex")
    with pytest.raises(ValueError, match="no value"):
        plot.cdf(joint, "body_mass_g", penguins[["sex"]])
    with pytest.raises(TypeError, match="expected a Posterior"):
        plot.posterior(joint)
    with pytest.warns(jf.UnsupportedEvidenceWarning), pytest.raises(ValueError, match="probability 0"):
        plot.posterior(joint.given(pd.DataFrame({"body_mass_g": [1e6]})))
    for draw in (plot.posterior, lambda posterior: plot.cdf(posterior, "body_mass_g")):
        with pytest.raises(ValueError, match="one row"):
            draw(joint.given(penguins))


def test_posteriors_of_all_columns(joint: jf.Joint) -> None:
    known = joint.given("body_mass_g > 5000")
    figure = plot.posterior(known)
    assert [ax.get_title().partition(":")[0] for ax in figure.axes] == list(joint.columns)
    before, after = (f"{source.mean('body_mass_g'):.0f}" for source in (joint.given(), known))
    assert f"body_mass_g: mean {before} → {after}" in [ax.get_title() for ax in figure.axes]
    for name, ax in zip(joint.columns, figure.axes, strict=True):
        if joint.levels(name):
            levels = [label.get_text() for label in ax.get_yticklabels()]
            widths = [bar.get_width() for bar in ax.patches]
            both = [source.proba(name)[level] for source in (joint.given(), known) for level in levels]
            np.testing.assert_allclose(widths, both, atol=1e-12)
            continue
        for patch, source in zip(ax.patches, (joint.given(), known), strict=True):
            steps = patch.get_data()
            np.testing.assert_allclose(steps.values, np.diff(source.marginal(name).cdf(steps.edges)), atol=1e-12)
            assert steps.values.sum() > 0.98
        interval, mean = ax.lines
        assert mean.get_xdata()[0] == pytest.approx(known.mean(name))
        np.testing.assert_allclose(interval.get_xdata(), known.interval(name))
    assert [ax.get_title() for ax in plot.posterior(known, ["sex"]).axes] == ["sex"]


def test_values_far_out_are_drawn(penguins: pd.DataFrame) -> None:
    joint = jf.JointTree(max_leaf_nodes=3, random_state=0).fit(penguins).joint_
    with pytest.warns(jf.UnsupportedEvidenceWarning):
        figure = plot.posterior(joint.given(body_mass_g=1e300), ["body_mass_g", "bill_length_mm"])
    assert figure.axes[0].lines[0].get_xdata()[0] == 1e300


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("hours", [1e-6, 0.001, 0.02, 0.5, 1.9, 9, 40, 100, 1000, 10_000, 14_000, 30_000, 1e5, 1e6])
def test_spans_of_dates_have_ticks(hours: float) -> None:
    ax = matplotlib.pyplot.subplots()[1]
    edges = 3600 * hours * np.linspace(0, 1, 11)
    draw_bins(ax, Column("day", "datetime", "datetime64[us]", origin=1.6e9), edges, np.ones(10))
    assert 1 <= len(ax.get_xticks()) <= 10


def test_dates_that_no_picture_can_show() -> None:
    day = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(60), unit="D")
    joint = jf.JointTree(random_state=0).fit(pd.DataFrame({"day": day, "x": np.arange(60.0)})).joint_
    with pytest.warns(jf.UnsupportedEvidenceWarning):
        far = joint.given(day="9999-12-31")
        for draw in (plot.posterior, lambda posterior: plot.cdf(posterior, "day")):
            with pytest.raises(ValueError, match=r"column 'day': dates from .* matplotlib draws the years 1 to 9999"):
                draw(far)
        plot.posterior(far, ["x"])


def test_of_many_levels_the_most_probable() -> None:
    rng = np.random.default_rng(0)
    code = np.minimum(rng.geometric(0.2, 2000), 30)
    joint = jf.JointTree(random_state=0).fit(pd.DataFrame({"k": pd.Categorical([f"L{c:02d}" for c in code])})).joint_
    levels = [label.get_text() for label in plot.posterior(joint.given()).axes[0].get_yticklabels()]
    assert levels[::-1] == [f"L{c:02d}" for c in range(1, 9)]


# -- pictures


def test_pictures_are_the_means_of_the_leaves() -> None:
    rng = np.random.default_rng(0)
    label = rng.integers(0, 3, 600)
    centre = np.array([[0, 5, 0, 5, 0, 5], [5, 0, 5, 0, 5, 0], [5, 5, 5, 0, 0, 0]])
    frame = pd.DataFrame(centre[label] + rng.normal(size=(600, 6)), columns=[f"p{k}" for k in range(6)])
    frame.insert(2, "label", np.array(["a", "b", "c"])[label])
    joint = jf.JointTree(epsilon=0, min_samples_leaf=0.1, random_state=0).fit(frame).joint_
    figure = plot.leaf_images(joint, (2, 3))
    assert len(figure.axes) >= joint.n_leaves >= 3
    shares = []
    for ax, rule in zip(figure.axes, joint.given().explain(100).rules, strict=True):
        known = joint.given(rule["rule"])
        want = [known.mean(f"p{k}") for k in range(6)]
        np.testing.assert_allclose(np.asarray(ax.images[0].get_array()).ravel(), want, atol=1e-9)
        share, level = ax.get_title().split("\n")
        assert level == max(known.proba("label"), key=known.proba("label").get)
        shares.append(float(share.split("%")[0]))
    assert sum(shares) == pytest.approx(100, abs=0.5) and shares == sorted(shares, reverse=True)
    part = plot.leaf_images(joint, (1, 2), ["p5", "p0"])
    np.testing.assert_allclose(
        part.axes[0].images[0].get_array()[0], figure.axes[0].images[0].get_array().ravel()[[5, 0]]
    )
    with pytest.raises(ValueError, match="6 columns"):
        plot.leaf_images(joint, (8, 8))
    with pytest.raises(ValueError, match="a pixel is a number"):
        plot.leaf_images(joint, (1, 2), ["p0", "label"])
    for shape in (6, "23", (6,), (-2, -3), (2.0, 3.0), None):
        with pytest.raises(ValueError, match="shape must be a pair of positive integers"):
            plot.leaf_images(joint, shape)
    for tree in (-1, "0", None, 5):
        with pytest.raises(ValueError, match="tree must be the number of a tree"):
            plot.leaf_images(joint, (2, 3), tree=tree)


# -- all marginals


def test_marginals_of_every_column(joint: jf.Joint) -> None:
    known = joint.given("body_mass_g > 5000")
    found = known.marginals()
    assert list(found) == list(joint.columns)
    assert found["body_mass_g"].mean() == known.mean("body_mass_g")
    assert found["island"].pmf("Biscoe") == known.proba("island")["Biscoe"]
