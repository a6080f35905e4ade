"""Soft evidence asked of learned joints: Bayes' rule, quadrature, what 0 and 1 mean, what is refused."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest

import jointforest as jf

pytestmark = pytest.mark.smoke  # runs on wheels

PENGUINS = jf.datasets.load_penguins()


@cache
def joint(leaf: str = "normal") -> jf.Joint:
    if leaf == "spn":  # mixtures
        rows = PENGUINS.dropna(subset=["sex"])
        learner = jf.GenerativeForestClassifier(n_estimators=2, leaf="spn", random_state=0)
        return learner.fit(rows.drop(columns="sex"), rows["sex"]).joint_
    return jf.AdversarialForest(n_estimators=4, leaf=leaf, random_state=0).fit(PENGUINS).joint_


@cache
def continuous() -> jf.Joint:
    """A joint of two columns without grid, one of them with an atom, and one of levels."""
    rng = np.random.default_rng(0)
    x, n = rng.normal(3.0, 2.0, 600), 600
    y = np.where(rng.random(n) < 0.3, 1.5, 0.5 * x + rng.standard_normal(n) / np.pi)
    frame = pd.DataFrame({"x": x * np.sqrt(2.0), "y": y, "big": np.where(x > 3.0, "yes", "no")})
    found = (
        jf.AdversarialForest(n_estimators=3, random_state=0, kinds={"x": "continuous", "y": "mixed"}).fit(frame).joint_
    )
    assert found.kinds == {"x": "continuous", "y": "mixed", "big": "categorical"}
    return found


def normal(x: np.ndarray, mean: float, sd: float) -> np.ndarray:
    return np.exp(-0.5 * ((x - mean) / sd) ** 2)


@pytest.mark.parametrize("leaf", ["normal", "quantile", "spn"])
def test_levels_follow_bayes_rule(leaf: str) -> None:
    weights = {"Adelie": 0.7, "Gentoo": 0.2, "Chinstrap": 0.1}
    known = {"island": ["Biscoe", "Dream"], "body_mass_g": jf.between(3000, 4500)}
    prior = joint(leaf).given(known)
    given = joint(leaf).given(known, species=jf.likely(weights))
    p = prior.proba("species")
    total = sum(p[level] * weight / 0.7 for level, weight in weights.items())
    assert given.log_probability == pytest.approx(prior.log_probability + np.log(total), abs=1e-12)
    for level, weight in weights.items():
        assert given.proba("species")[level] == pytest.approx(p[level] * weight / 0.7 / total, abs=1e-12)
    # other columns are mixtures of what they are under each level
    under = {level: joint(leaf).given(known, species=level) for level in weights}
    mean = sum(given.proba("species")[level] * under[level].mean("bill_length_mm") for level in weights)
    assert given.mean("bill_length_mm") == pytest.approx(mean, rel=1e-10)
    heavy = sum(given.proba("species")[level] * under[level].probability("body_mass_g > 4000") for level in weights)
    assert given.probability("body_mass_g > 4000") == pytest.approx(heavy, rel=1e-10)
    assert given.probability("species = Adelie") == pytest.approx(given.proba("species")["Adelie"], rel=1e-10)


def test_a_measurement_on_a_grid_is_a_sum_over_cells() -> None:
    cells = np.arange(4000.0, 5001.0, 25.0)  # the table's grid; 8 sd around 4500 are within
    assert joint().schema["body_mass_g"].step == 25.0
    prior = joint().given(species="Gentoo")
    p = 25.0 * prior.marginal("body_mass_g").pdf(cells) * normal(cells, 4500, 60)
    given = joint().given(species="Gentoo", body_mass_g=jf.about(4500, sd=60))
    assert given.log_probability == pytest.approx(prior.log_probability + np.log(p.sum()), abs=2e-3)
    mean = (p * cells).sum() / p.sum()
    assert given.mean("body_mass_g") == pytest.approx(mean, abs=0.2)
    assert given.std("body_mass_g") == pytest.approx(np.sqrt((p * (cells - mean) ** 2).sum() / p.sum()), rel=5e-3)


@pytest.mark.filterwarnings("ignore::jointforest.UnsupportedEvidenceWarning")
def test_a_measurement_of_a_density_is_an_integral() -> None:
    x = np.linspace(-20, 25, 200_001)
    for mean, sd in ((4.0, 2.0), (9.0, 0.5), (0.0, 5.0)):
        given = continuous().given(x=jf.about(mean, sd=sd))
        p = continuous().marginal("x").pdf(x) * normal(x, mean, sd)
        total = np.trapezoid(p, x)
        assert given.log_probability == pytest.approx(np.log(total), abs=2e-3)
        assert given.mean("x") == pytest.approx(np.trapezoid(p * x, x) / total, abs=2e-3 * sd)
        assert given.quantile("x", 0.3) == pytest.approx(
            np.interp(0.3 * total, np.cumsum(p) * (x[1] - x[0]), x), abs=0.02 * sd
        )
        big = np.array([continuous().given(pd.DataFrame({"x": x[::100]})).proba("big")[:, 1]])[0]
        assert given.proba("big")["yes"] == pytest.approx((p[::100] * big).sum() / p[::100].sum(), abs=2e-3)
    y = np.linspace(-8, 10, 100_001) + 1e-7
    given = continuous().given(y=jf.about(1.0, sd=0.7))
    marginal = continuous().marginal("y")
    on_atom = marginal.pdf(1.5) * normal(np.array(1.5), 1.0, 0.7)
    rest = marginal.pdf(y) * normal(y, 1.0, 0.7)
    total = on_atom + np.trapezoid(rest, y)
    assert given.log_probability == pytest.approx(np.log(total), abs=2e-3)
    assert given.marginal("y").pdf(1.5) == pytest.approx(on_atom / total, rel=2e-3)
    assert given.mean("y") == pytest.approx((1.5 * on_atom + np.trapezoid(rest * y, y)) / total, abs=2e-3)


def test_likelihoods_of_0_and_1_are_a_set() -> None:
    soft = joint().given(
        species=jf.likely({"Adelie": 1, "Gentoo": 1, "Chinstrap": 0}), flipper_length_mm=jf.likely({190: 3, 191: 3})
    )
    hard = joint().given(species=["Adelie", "Gentoo"], flipper_length_mm=[190, 191])
    assert soft.log_probability == hard.log_probability
    assert soft.proba("sex") == hard.proba("sex") and soft.mean("body_mass_g") == hard.mean("body_mass_g")
    pd.testing.assert_frame_equal(soft.sample(20, random_state=1), hard.sample(20, random_state=1))


def test_likelihoods_of_one_column_multiply_in_any_order() -> None:
    a, b = jf.about(4400, sd=300), jf.about(4700, sd=200)
    c = jf.between(4000, 5000)
    one = joint().given({"body_mass_g": a}, body_mass_g=jf.AllOf(b, c))
    other = joint().given({"body_mass_g": c}, body_mass_g=jf.AllOf(b, a))
    assert one.log_probability == pytest.approx(other.log_probability, abs=1e-12)
    assert one.mean("body_mass_g") == pytest.approx(other.mean("body_mass_g"), rel=1e-12)
    # two measurements are one of their weighted mean, but for a factor
    both = joint().given(body_mass_g=jf.AllOf(a, b))
    precision = 1 / 300**2 + 1 / 200**2
    mean = (4400 / 300**2 + 4700 / 200**2) / precision
    together = joint().given(body_mass_g=jf.about(mean, sd=precision**-0.5))
    assert both.mean("body_mass_g") == pytest.approx(together.mean("body_mass_g"), rel=1e-4)
    assert both.mean("bill_length_mm") == pytest.approx(together.mean("bill_length_mm"), rel=1e-4)


def test_frames_and_measurements_a_row() -> None:
    frame = PENGUINS[["island", "sex"]].iloc[:6]
    masses = np.array([3500.0, np.nan, 4000, 4500, 5000, 5500])
    given = joint().given(frame, body_mass_g=jf.about(masses, sd=150), species=jf.likely({"Gentoo": 0.2}, others=0.8))
    for i in range(6):
        known = {name: frame[name].iloc[i] for name in frame if isinstance(frame[name].iloc[i], str)}
        if not np.isnan(masses[i]):
            known["body_mass_g"] = jf.about(masses[i], sd=150)
        known["species"] = jf.likely({"Gentoo": 0.2}, others=0.8)
        alone = joint().given(known)
        assert given.log_probability[i] == pytest.approx(alone.log_probability, abs=1e-12)
        assert given.mean("body_mass_g")[i] == pytest.approx(alone.mean("body_mass_g"), rel=1e-12)
        assert given.proba("species")[i].tolist() == pytest.approx(list(alone.proba("species").values()), abs=1e-12)


def test_a_value_that_is_known_too_weighs_rows_by_its_likelihood() -> None:
    given = joint().given({"body_mass_g": 4450}, body_mass_g=jf.about(4350, sd=100))
    sure = joint().given(body_mass_g=4450)
    assert given.mean("bill_length_mm") == sure.mean("bill_length_mm")
    assert given.log_probability - sure.log_probability == pytest.approx(-0.5, abs=1e-9)
    soft = joint().given(body_mass_g=jf.about(4400, sd=100))
    inside = soft.probability({"body_mass_g": jf.between(4400, 4500)})
    density = soft.marginal("body_mass_g").cdf(np.array([4400.0 - 5.0, 4500.0]))
    assert inside == pytest.approx(density[1] - density[0], abs=0.03)


def test_conditioned_joints_answer_as_the_posterior() -> None:
    known = {"species": jf.likely({"Adelie": 0.5, "Gentoo": 1.0}), "body_mass_g": jf.about(4300, sd=250)}
    given, conditioned = joint().given(known), joint().condition(known)
    assert conditioned.given().mean("body_mass_g") == pytest.approx(given.mean("body_mass_g"), rel=1e-10)
    assert conditioned.given().mean("bill_depth_mm") == pytest.approx(given.mean("bill_depth_mm"), rel=1e-10)
    assert conditioned.given().proba("species") == pytest.approx(given.proba("species"), rel=1e-10)
    event = "sex = MALE and flipper_length_mm > 195"
    assert conditioned.probability(event) == pytest.approx(given.probability(event), rel=1e-10)
    few = joint().condition(species=jf.likely({"Adelie": 0.5, "Gentoo": 1.0}))
    best = few.given().mode(budget=50)
    assert best.rows["species"].iloc[0] in ("Adelie", "Gentoo") and best.log_bound >= best.log_density[0]


def test_explanations_read_soft_evidence() -> None:
    found = (
        joint().given(species=jf.likely({"Adelie": 0.9, "Gentoo": 0.1}), body_mass_g=jf.about(3700, sd=100)).explain(3)
    )
    levels = found.rules[0]["says"]["species"]["levels"]
    assert sum(levels.values()) == pytest.approx(1.0) and levels.get("Chinstrap", 0.0) == 0.0


def test_what_makes_no_sense_is_refused() -> None:
    soft = jf.likely({"Adelie": 0.9, "Gentoo": 0.1})
    with pytest.raises(ValueError, match=r"column 'species': an event either happens or not.*given\(\.\.\.\)"):
        joint().probability({"species": soft})
    with pytest.raises(ValueError, match="column 'species': an event either happens or not"):
        joint().reverse({"species": soft})
    with pytest.raises(ValueError, match="mode: the evidence on column 'species' is soft"):
        joint().given(species=soft).mode()
    with pytest.raises(ValueError, match="probability 0"):
        joint().given(species=jf.AllOf(soft, "Chinstrap")).mean("body_mass_g")


def test_text_of_soft_evidence() -> None:
    given = joint().given(
        species=jf.likely({"Adelie": 0.9, "Gentoo": 0.1}, others=0.05),
        flipper_length_mm=jf.likely({jf.between(200, None): 0.5, 190: 1}),
        body_mass_g=jf.AllOf(jf.about(3700, sd=100), jf.between(3000, 4000)),
    )
    assert repr(given) == (
        "Posterior(species likely {'Adelie': 0.9, 'Gentoo': 0.1, others: 0.05}, "
        "flipper_length_mm likely {flipper_length_mm >= 200: 0.5, 190: 1}, "
        "body_mass_g about 3700 sd 100 and 3000 <= body_mass_g <= 4000)"
    )


def test_soft_evidence_in_words() -> None:
    text = "species likely {Adelie: 0.9, Gentoo: 0.1}, body_mass_g about 3700 sd 100"
    given = joint().given(species=jf.likely({"Adelie": 0.9, "Gentoo": 0.1}), body_mass_g=jf.about(3700, sd=100))
    assert joint().query(f"E(bill_length_mm | {text})") == given.mean("bill_length_mm")
    assert joint().given(text).proba("sex") == given.proba("sex")
    assert repr(given) == f"Posterior({text.replace('Adelie', repr('Adelie')).replace('Gentoo', repr('Gentoo'))})"
    for function in ("P", "logp"):
        with pytest.raises(ValueError, match="column 'body_mass_g': an event either happens or not"):
            joint().query(f"{function}(body_mass_g about 3700 sd 100)")
    with pytest.raises(ValueError, match=r"column 'body_mass_g': .* cannot be negated"):
        joint().given("not (body_mass_g about 3700 sd 100)").mean("bill_length_mm")
