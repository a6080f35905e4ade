"""Pictures of answers: what is drawn is what the joint, the table and the Shapley values say."""

from __future__ import annotations

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

import jointforest as jf
from jointforest import plot

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def penguins() -> pd.DataFrame:
    return jf.datasets.load_penguins()


@pytest.fixture(scope="module")
def joint(penguins: pd.DataFrame) -> jf.Joint:
    return jf.AdversarialForest(n_estimators=4, random_state=0).fit(penguins).joint_


@pytest.fixture(scope="module")
def hidden(penguins: pd.DataFrame) -> jf.Joint:
    return jf.HiddenTreeForest(n_states=8, random_state=0).fit(penguins).joint_


def table(n: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x = rng.normal(size=n)
    day = np.datetime64("2024-01-01") + rng.integers(0, 200, n).astype("timedelta64[D]")
    name = np.where(x > 0, "$high$", "low")
    return pd.DataFrame({"x": x, "y": x + rng.normal(size=n), "day": day, "kind": name, "flag": rng.random(n) < 0.3})


def test_a_posterior_says_its_evidence_and_what_its_colours_mean(joint: jf.Joint) -> None:
    known = joint.given(species="Gentoo")
    figure = plot.posterior(known, ["island", "body_mass_g"])
    assert figure.get_suptitle() == "Given species = 'Gentoo'"
    said = [text.get_text() for text in figure.legends[0].get_texts()]
    assert said == ["without evidence", "given the evidence", "mean and 90% interval"]
    island = figure.axes[0]
    n = len(island.patches) // 2
    prior = [bar.get_width() for bar in island.patches[:n]]
    np.testing.assert_allclose(sorted(prior), sorted(joint.given().proba("island").values()), atol=1e-9)
    assert island.get_xlim() == (0.0, 1.0)
    alone = plot.posterior(joint.given(), ["island"])
    assert [text.get_text() for text in alone.legends[0].get_texts()] == ["probability"]


def test_the_prior_of_missing_cells_is_without_all_evidence(joint: jf.Joint) -> None:
    known = joint.given("sex is missing")
    ax = plot.marginal(known, "body_mass_g")
    steps = ax.patches[0].get_data()
    want = np.diff(joint.marginal("body_mass_g").cdf(steps.edges))
    np.testing.assert_allclose(steps.values, want, atol=1e-6)


def test_axes_that_are_given_are_drawn_on(joint: jf.Joint, penguins: pd.DataFrame) -> None:
    values = jf.shapley("species", joint, penguins.head(3))
    found = jf.fidelity(joint, penguins[::2], penguins[1::2], only=["marginals", "pairs"], random_state=0)
    draws = [
        lambda ax: plot.marginal(joint, "island", ax=ax),
        lambda ax: plot.pair(joint, "island", "sex", penguins, ax=ax),
        lambda ax: plot.pair(joint, "body_mass_g", "bill_length_mm", penguins, ax=ax),
        lambda ax: plot.pair(joint, "body_mass_g", "sex", penguins, ax=ax),
        lambda ax: plot.dependence(joint, ax=ax),
        lambda ax: plot.evidence_sequence(joint, "species", ["island = Biscoe"], ax=ax),
        lambda ax: plot.why(values, ax=ax),
        lambda ax: plot.shapley_summary(values, ax=ax),
        lambda ax: plot.attribution(joint, penguins.head(20), ax=ax),
        lambda ax: plot.calibration(joint, penguins, "species", ax=ax),
        lambda ax: plot.fidelity(found, ax=ax),
    ]
    for draw in draws:
        figure, ax = plt.subplots()
        assert draw(ax) is ax
        figure.canvas.draw()
        assert ax.get_xlabel() or ax.get_title(loc="left")
        plt.close(figure)


@pytest.mark.parametrize("kind", ["joint", "hidden"])
def test_pairs_of_levels_are_conditional_probabilities(
    kind: str, request: pytest.FixtureRequest, penguins: pd.DataFrame
) -> None:
    model: jf.Joint = request.getfixturevalue(kind)
    ax = plot.pair(model, "species", "island", penguins)
    drawn = ax.images[0].get_array()
    want = [
        [model.given(species=s).proba("island")[i] for i in model.levels("island")] for s in model.levels("species")
    ]
    np.testing.assert_allclose(drawn, want, atol=1e-6)  # messages of hidden trees have single precision
    rows = ax.figure.axes[1].images[0].get_array()
    np.testing.assert_allclose(rows, pd.crosstab(penguins["species"], penguins["island"], normalize="index"))


def test_pairs_of_numbers_are_probabilities_of_cells(joint: jf.Joint, penguins: pd.DataFrame) -> None:
    known = joint.given(sex="MALE")
    ax = plot.pair(known, "flipper_length_mm", "body_mass_g", penguins[penguins["sex"] == "MALE"])
    mesh = ax.collections[0]
    across, upwards = mesh.get_coordinates()[0, :, 0], mesh.get_coordinates()[:, 0, 1]
    mass = np.asarray(mesh.get_array()).reshape(len(upwards) - 1, len(across) - 1)
    k, line = np.unravel_index(mass.argmax(), mass.shape)
    event = {"flipper_length_mm": (across[line], across[line + 1]), "body_mass_g": (upwards[k], upwards[k + 1])}
    want = known.probability({name: jf.between(*ends) for name, ends in event.items()})
    assert mass.max() == pytest.approx(want, abs=1e-9) and 0.95 < mass.sum() <= 1.0
    beside = ax.figure.axes[1]
    assert 0.9 < np.asarray(beside.collections[0].get_array()).sum() <= 1.0
    assert mesh.norm.vmax == beside.collections[0].norm.vmax


def test_numbers_given_levels(joint: jf.Joint, penguins: pd.DataFrame) -> None:
    ax = plot.pair(joint, "species", "body_mass_g", penguins)
    steps = [patch.get_data() for patch in ax.patches]
    joints, rows = steps[::2], steps[1::2]
    heights = [abs(one.values - one.baseline) for one in joints]
    top = max(float(height.max()) for height in [*heights, *(abs(one.values - one.baseline) for one in rows)])
    for level, height, one in zip(joint.levels("species"), heights, joints, strict=True):
        want = np.diff(joint.given(species=level).marginal("body_mass_g").cdf(one.edges))
        shown = height * max(w.max() for w in [want]) / max(height.max(), 1e-12)
        np.testing.assert_allclose(shown, want, atol=1e-6)
    assert top == pytest.approx(0.85)
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names[0] == f"Adelie ({joint.given().proba('species')['Adelie']:.0%})"


def test_dependent_columns_stand_side_by_side() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 2000))
    noise = rng.normal(size=(2, 2000)) * 0.2
    frame = pd.DataFrame({"a": a, "b": b, "a too": a + noise[0], "b too": b + noise[1]}).round(2)
    joint = jf.HiddenTreeForest(n_states=32, random_state=0).fit(frame).joint_
    ax = plot.dependence(joint)
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert {frozenset(names[:2]), frozenset(names[2:])} == {frozenset(["a", "a too"]), frozenset(["b", "b too"])}
    strength = np.asarray(ax.images[0].get_array())
    assert strength[0, 1] > 0.9 and strength[0, 2] < 0.2 and strength[0, 1] == strength[1, 0]
    assert len(plot.dependence(joint, ["a", "b"]).get_yticklabels()) == 2
    with pytest.raises(ValueError, match="one column only"):
        plot.dependence(joint.select("a"))


def test_a_sequence_of_evidence(joint: jf.Joint) -> None:
    ax = plot.evidence_sequence(joint, "species", ["island = Biscoe", "body_mass_g > 4500"])
    bars = np.array([[bar.get_width() for bar in group] for group in ax.containers])
    steps = [joint.given(), joint.given("island = Biscoe"), joint.given("island = Biscoe and body_mass_g > 4500")]
    want = np.array([list(step.proba("species").values()) for step in steps])
    np.testing.assert_allclose(bars.T, want, atol=1e-9)
    ax = plot.evidence_sequence(joint, "body_mass_g", ["island = Biscoe"])
    dots = [line.get_xdata()[0] for line in ax.lines if line.get_marker() == "o"]
    np.testing.assert_allclose(dots, [step.mean("body_mass_g") for step in steps[:2]])
    with pytest.raises(ValueError, match="list of texts"):
        plot.evidence_sequence(joint, "species", "island = Biscoe")
    with pytest.raises(ValueError, match="list of texts"):
        plot.evidence_sequence(joint, "species", [])


def test_a_waterfall_ends_at_the_prediction(joint: jf.Joint, penguins: pd.DataFrame) -> None:
    row = penguins.iloc[[200]]
    values = jf.shapley("species", joint, row)
    ax = plot.why(values, output="Gentoo", most=4)
    assert len(ax.patches) == 4
    start = joint.given().proba("species")["Gentoo"]
    end = float(joint.predict_proba(row, "species")[0, 2])
    assert ax.get_title(loc="left") == f"Gentoo: {start:.1%} without evidence, {end:.1%} for this row"
    moved = sum(bar.get_width() for bar in ax.patches)
    assert moved == pytest.approx(end - start, abs=1e-9)
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels[0] == "without evidence" and labels[-1] == "prediction" and labels[-2].endswith(" others")
    masses = jf.shapley("body_mass_g", joint, row)
    assert "for this row" in plot.why(masses).get_title(loc="left")
    with pytest.raises(TypeError, match="ShapleyValues"):
        plot.why(joint)


def test_a_summary_has_a_dot_for_each_known_cell(joint: jf.Joint, penguins: pd.DataFrame) -> None:
    rows = penguins.head(30)
    values = jf.shapley("body_mass_g", joint, rows)
    ax = plot.shapley_summary(values, most=3)
    size = np.abs(values.values).mean(axis=0)
    best = np.argsort(-size)[:3]
    for dots, k in zip(ax.collections, best, strict=True):
        name = values.feature_names[k]
        known = rows[name].notna().to_numpy()
        np.testing.assert_allclose(np.sort(dots.get_offsets()[:, 0]), np.sort(values.values[known, k]))
        assert np.abs(dots.get_offsets()[:, 1] - np.round(dots.get_offsets()[:, 1])).max() < 0.4


def test_an_odd_cell_is_first_and_marked(joint: jf.Joint, penguins: pd.DataFrame) -> None:
    odd = penguins.copy()
    odd.loc[7, "species"] = "Gentoo"
    ax = plot.attribution(joint, odd, 7)
    assert ax.get_yticklabels()[0].get_text() == "species = Gentoo"
    cells = joint.attribution(odd)
    j = list(odd.columns).index("species")
    dot = next(line for line in ax.lines if len(line.get_xdata()))
    assert dot.get_xdata()[0] == pytest.approx(cells[7, j])
    known = cells[~np.isnan(cells[:, j]), j]
    share = (np.sum(known <= cells[7, j] + 1e-9) - 1) / (len(known) - 1)
    assert f"{share:.0%} of rows as rare" in [text.get_text() for text in ax.texts]
    with pytest.raises(ValueError, match="number of a row"):
        plot.attribution(joint, odd, 344)


def test_a_cell_that_is_sure_is_not_the_most_unusual() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.choice(["x", "y"], 300), "same": "s", "c": np.round(rng.normal(size=300), 1)})
    frame["b"] = np.where(frame["a"] == "x", "p", "q")
    frame.loc[0, "c"] = 4.0
    ax = plot.attribution(jf.JointTree(random_state=0).fit(frame).joint_, frame, 0)
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names[0] == "c = 4" and names[-1] == "same = s"
    assert [text.get_text() for text in ax.texts][-1] == "100% of rows as rare"


def test_calibration_is_what_rows_say(joint: jf.Joint, penguins: pd.DataFrame) -> None:
    ax = plot.calibration(joint, penguins, "species", bins=1)
    p = joint.predict_proba(penguins, "species")
    points = {one.get_label(): one.lines[0].get_xydata()[0] for one in ax.containers}
    for k, level in enumerate(joint.levels("species")):
        np.testing.assert_allclose(points[level], [p[:, k].mean(), (penguins["species"] == level).mean()])
    ax = plot.calibration(joint, penguins, "bill_length_mm")
    low, high = joint.given(penguins.drop(columns="bill_length_mm")).interval("bill_length_mm", 0.8)
    x = penguins["bill_length_mm"].to_numpy()
    want = np.mean((low <= x) & (x <= high), where=~np.isnan(x))
    drawn = dict(np.round(ax.containers[0].lines[0].get_xydata(), 9).tolist())
    assert drawn[0.8] == pytest.approx(want, abs=1e-6)


def test_fidelity_shows_the_distances(joint: jf.Joint, penguins: pd.DataFrame) -> None:
    found = jf.fidelity(joint, penguins[::2], penguins[1::2], only=["marginals", "pairs"], random_state=0)
    ax = plot.fidelity(found, most=4)
    widths = [bar.get_width() for bar in ax.patches]
    similar = list(found.pairs.similarity.values())[:4]
    np.testing.assert_allclose(widths, [*list(found.marginals.distance.values())[:4], *(1 - np.array(similar))])
    with pytest.raises(TypeError, match=r"jointforest\.fidelity"):
        plot.fidelity(joint)


def test_dates_booleans_and_signs_of_formulas_are_drawn() -> None:
    frame = table()
    joint = jf.AdversarialForest(n_estimators=2, random_state=0).fit(frame).joint_
    for a, b in (("day", "x"), ("x", "day"), ("kind", "day"), ("flag", "kind"), ("y", "flag")):
        plot.pair(joint, a, b, frame).figure.canvas.draw()
    plot.evidence_sequence(joint, "day", ["x > 0", "kind = '$high$'"]).figure.canvas.draw()
    plot.posterior(joint.given(kind="$high$")).canvas.draw()
    plot.why(jf.shapley("flag", joint, frame.head(1))).figure.canvas.draw()
    plot.attribution(joint, frame).figure.canvas.draw()
    plot.calibration(joint, frame, "day").figure.canvas.draw()
    with pytest.raises(ValueError, match="twice"):
        plot.pair(joint, "x", "x")


def test_trees_of_mixtures_are_those_of_the_heaviest_forest(
    joint: jf.Joint, hidden: jf.Joint, penguins: pd.DataFrame
) -> None:
    both = jf.mix([joint, hidden], [0.4, 0.6])
    assert len(plot.tree(both, columns=["sex"]).axes) == len(plot.tree(joint, columns=["sex"]).axes)
    ax = plot.regions(both, "flipper_length_mm", "bill_length_mm", "species", penguins)
    assert len(ax.patches) > 1
    for draw in (plot.tree, lambda one: plot.regions(one, "flipper_length_mm", "bill_length_mm")):
        with pytest.raises(ValueError, match=r"hidden trees.*plot\.pair and plot\.posterior draw any joint"):
            draw(hidden)


def test_lines_of_a_pair_are_means_given_each_bin(joint: jf.Joint, penguins: pd.DataFrame) -> None:
    ax = plot.pair(joint, "flipper_length_mm", "body_mass_g", penguins)
    mesh, (mean, low, high) = ax.collections[0], ax.lines
    edges = mesh.get_coordinates()[0, :, 0]
    for x, y in zip(*mean.get_data(), strict=True):
        k = int(np.searchsorted(edges, x)) - 1
        given = joint.given(flipper_length_mm=jf.between(edges[k], edges[k + 1], closed="right"))
        assert y == pytest.approx(given.mean("body_mass_g"))
        ends = [line.get_ydata()[line.get_xdata() == x] for line in (low, high)]
        for end, want in zip(ends, given.interval("body_mass_g"), strict=True):
            assert not len(end) or end[0] == pytest.approx(want)
    rows = penguins.dropna(subset=["flipper_length_mm", "body_mass_g"])
    x, y = (one[0] for one in ax.figure.axes[1].lines[0].get_data())
    k = int(np.searchsorted(edges, x)) - 1
    mine = (rows["flipper_length_mm"] > edges[k]) & (rows["flipper_length_mm"] <= edges[k + 1])
    assert y == pytest.approx(rows["body_mass_g"][mine].mean())


def test_levels_without_order_are_sorted_by_what_is_shown(joint: jf.Joint, penguins: pd.DataFrame) -> None:
    ax = plot.pair(joint, "species", "body_mass_g")
    names = [label.get_text().split(" (")[0] for label in ax.get_yticklabels()]
    means = [joint.given(species=name).mean("body_mass_g") for name in names]
    assert means == sorted(means) and f"mean {means[0]:.0f}" in [text.get_text() for text in ax.texts]
    ax = plot.pair(joint, "island", "sex")
    shares = np.asarray(ax.images[0].get_array())[:, 1]
    assert list(shares) == sorted(shares, reverse=True)


def test_a_summary_names_what_lowers_and_what_raises(joint: jf.Joint, penguins: pd.DataFrame) -> None:
    rows = penguins.iloc[::6]
    values = jf.shapley("body_mass_g", joint, rows)
    ax = plot.shapley_summary(values)
    texts = {round(text.xy[1]): [] for text in ax.texts}
    for text in ax.texts:
        texts[round(text.xy[1])].append(text.get_text())
    names = [label.get_text().split("  (")[0] for label in ax.get_yticklabels()]
    assert texts[names.index("flipper_length_mm")] == ["low", "high"]
    k = values.feature_names.index("species")
    mean = pd.Series(values.values[:, k]).groupby(rows["species"].to_numpy()).mean()
    assert texts[names.index("species")] == [mean.idxmin(), mean.idxmax()]
    assert texts[-1] == ["lowered by", "raised by"]
