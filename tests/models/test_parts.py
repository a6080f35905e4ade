"""Models of several parts: a forest and a toy kind of part, every question against enumeration of all rows."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.api.joint import Joint
from jointforest.data.conditions import About, Likely
from jointforest.data.evidence import build
from jointforest.data.frames import encode
from jointforest.models.mixture import Mixture

from ..random_cases.table_part import TableDistribution

PLACES, SIZES, FLAGS = ("here", "there", "nowhere"), range(10), (False, True)
ALL = pd.DataFrame(list(itertools.product(PLACES, SIZES, FLAGS)), columns=["place", "size", "flag"])
INSIDE = {"size": jf.between(0, 9)}
WEIGHTS = np.array([0.6, 0.4])


def table(seed: int, n: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    size = rng.binomial(9, rng.choice([0.2, 0.7], n))
    place = np.array(PLACES)[np.minimum(rng.poisson(size / 4), 2)]
    return pd.DataFrame({"place": place, "size": size, "flag": rng.random(n) < size / 10})


@cache
def mixture() -> Joint:
    forest = jf.AdversarialForest(n_estimators=3, random_state=0).fit(table(0)).joint_
    rng = np.random.default_rng(1)
    rows = encode(forest.schema, ALL.sample(25, random_state=1))[0]
    toy = TableDistribution(forest.schema, rows, rng.dirichlet(np.ones(len(rows))))
    return Joint(Mixture((forest.distribution.components[0], toy), np.log(WEIGHTS)))


@cache
def mass() -> np.ndarray:
    """p(x, size in 0..9) of every row of `ALL`: from each part's own density of complete rows."""
    model = mixture().distribution
    evidence = build(model.schema, *encode(model.schema, ALL))
    return sum(w * np.exp(part.log_density(evidence)) for w, part in zip(WEIGHTS, model.components, strict=True))


EVIDENCE = [
    {},
    {"place": "here"},
    {"place": ["here", "nowhere"]},
    {"flag": True, "size": jf.between(2, 6)},
    {"size": 3},
    {"place": jf.likely({"here": 2.0, "there": 0.5})},
    {"place": jf.likely({"here": 0.1, "there": 0.2}, others=0.05), "size": jf.about(4, sd=1.5)},
    {"size": jf.AllOf(jf.between(2, 8), jf.about(3.3, sd=2), jf.likely({5: 1.0, jf.between(6, 7): 0.5}, others=0.1))},
]


def likelihood(said: object, x: object) -> float:
    """How likely evidence is where its column is x."""
    if isinstance(said, jf.AllOf):
        return float(np.prod([likelihood(part, x) for part in said.conditions]))
    if isinstance(said, jf.Interval):
        return float(said.lo <= x <= said.hi)
    if isinstance(said, Likely):
        found = [weight for key, weight in said.likelihoods if likelihood(key, x)] or [said.others]
        return found[0] / max(said.others, *(weight for _, weight in said.likelihoods))
    if isinstance(said, About):
        nearest = round(said.value)
        return float(np.exp(0.5 * ((nearest - said.value) ** 2 - (x - said.value) ** 2) / said.sd**2))
    return float(x in said if isinstance(said, list) else x == said)


def agrees(known: dict) -> np.ndarray:
    """The likelihood of the evidence under each row of `ALL`."""
    fits = np.ones(len(ALL))
    for name, said in known.items():
        fits *= [likelihood(said, x) for x in ALL[name]]
    return fits


@pytest.mark.parametrize("known", EVIDENCE, ids=str)
def test_every_mixed_answer_is_what_enumeration_gives(known: dict) -> None:
    p = mass() * agrees(known)
    share = p / p.sum()
    given = mixture().given(INSIDE, **known)
    assert given.log_probability == pytest.approx(np.log(p.sum()), abs=1e-12)
    for level, found in given.proba("place").items():
        assert found == pytest.approx(share[ALL["place"] == level].sum(), abs=1e-12)
    size = ALL["size"].to_numpy()
    mean = share @ size
    assert given.mean("flag") == pytest.approx(share @ ALL["flag"], abs=1e-12)
    assert given.mean("size") == pytest.approx(mean, abs=1e-10)
    assert given.var("size") == pytest.approx(share @ (size - mean) ** 2, abs=1e-10)
    below = np.array([share[size <= k].sum() for k in SIZES])
    np.testing.assert_allclose(given.marginal("size").cdf(np.arange(10.0)), below, atol=1e-12)
    np.testing.assert_allclose(given.marginal("size").pdf(np.arange(10.0)), np.diff(below, prepend=0.0), atol=1e-12)
    q = np.array([0.013, 0.21, 0.5, 0.77, 0.99])
    np.testing.assert_allclose(given.quantile("size", q), [np.argmax(below >= level) for level in q], atol=1e-9)
    event = share @ agrees({"place": "there", "size": jf.between(0, 4)})
    assert given.probability("place = there and size <= 4") == pytest.approx(event, abs=1e-12)


@pytest.mark.parametrize("known", EVIDENCE, ids=str)
def test_conditioned_and_marginal_models_are_mixtures_again(known: dict) -> None:
    p = mass() * agrees(known)
    conditioned = mixture().condition(INSIDE, **known)
    assert len(conditioned.distribution.components) == 2
    np.testing.assert_allclose(np.exp(conditioned.log_density(ALL)), p / p.sum(), atol=1e-12)
    kept = mixture().condition(INSIDE).select("place", "flag")
    whole = mass() / mass().sum()
    for place, flag in itertools.product(PLACES, FLAGS):
        rows = (ALL["place"] == place) & (ALL["flag"] == flag)
        frame = pd.DataFrame({"place": [place], "flag": [flag]})
        assert np.exp(kept.log_density(frame)[0]) == pytest.approx(whole[rows].sum(), abs=1e-12)


def test_frames_are_answered_row_by_row_and_imputed() -> None:
    joint = mixture()
    frame = pd.DataFrame({"place": ["here", None, "there"], "size": [3, 4, None], "flag": [None, True, False]})
    frame = frame.astype({"size": "Float64", "flag": "boolean"})
    filled = joint.impute(frame)
    for i, known in enumerate(
        ({"place": "here", "size": 3}, {"size": 4, "flag": True}, {"place": "there", "flag": False})
    ):
        given = joint.given(known)
        assert joint.given(frame).proba("place")[i].tolist() == pytest.approx(list(given.proba("place").values()))
        assert joint.given(frame).quantile("size", 0.3)[i] == given.quantile("size", 0.3)
        if i == 0:
            assert bool(filled["flag"].iloc[0]) == (given.mean("flag") > 0.5)
        elif i == 1:
            assert filled["place"].iloc[1] == max(given.proba("place"), key=given.proba("place").get)
        else:
            assert filled["size"].iloc[2] == round(given.mean("size"))
    cells = joint.attribution(ALL.iloc[:4])
    alone = joint.log_density(ALL.iloc[:4]) - joint.log_density(ALL.iloc[:4].drop(columns="size"))
    np.testing.assert_allclose(cells[:, 1], alone, atol=1e-12)


def test_draws_follow_the_mixture() -> None:
    joint, n = mixture().condition(INSIDE), 20_000
    drawn = joint.sample(n, random_state=3)
    pd.testing.assert_frame_equal(drawn, joint.sample(n, random_state=3, n_jobs=1))
    counts = drawn.groupby(["place", "size", "flag"], observed=False).size()
    expected = n * mass() / mass().sum()
    found = np.array([counts.get((place, size, flag), 0) for place, size, flag in ALL.itertuples(index=False)])
    often = expected > 5
    statistic = (((found - expected) ** 2 / expected)[often]).sum()
    assert statistic < 2.0 * often.sum()  # about the 1e-6 quantile for some 50 degrees of freedom
    given = mixture().given(place="here", size=jf.between(2, 6)).sample(500, random_state=0)
    assert set(given["place"]) == {"here"} and given["size"].between(2, 6).all()


def test_evidence_that_one_part_rules_out_is_the_other_parts() -> None:
    joint = mixture()
    forest = Joint(Mixture(joint.distribution.components[:1], np.zeros(1)))
    far = {"size": jf.between(15, 30)}  # the table has no such row
    assert joint.given(far).mean("size") == pytest.approx(forest.given(far).mean("size"), rel=1e-12)
    assert joint.given(far).quantile("size", 0.5) == forest.given(far).quantile("size", 0.5)
    assert len(joint.condition(far).distribution.components) == 1
    assert joint.given(far).background_weight == pytest.approx(forest.given(far).background_weight, rel=1e-12)


@pytest.mark.parametrize(
    ("ask", "name"),
    [
        (lambda joint: joint.tree_text(), "tree_text"),
        (lambda joint: joint.reverse("place = here"), "reverse"),
        (lambda joint: joint.robustness(ALL, "place"), "robustness"),
        (lambda joint: joint.predict(ALL, "place", beta=0.5), "beta"),
    ],
)
def test_what_a_kind_of_part_cannot_answer_it_says_by_name(ask, name: str) -> None:
    with pytest.raises(ValueError, match=rf"{name}.* one forest of boxes; this one has the components: forest, table"):
        ask(mixture())


MESSAGE = "holds forests and hidden trees; this joint has a component of the kind 'table'"


def test_a_kind_of_part_that_files_do_not_know_is_not_saved(tmp_path) -> None:
    with pytest.raises(ValueError, match=MESSAGE):
        mixture().save(tmp_path / "never.joint")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("background", [True, False])
def test_a_mixture_of_forests_is_a_forest(background: bool, tmp_path) -> None:
    penguins = jf.datasets.load_penguins()
    epsilon = 0.01 if background else 0.0
    joints = [
        jf.AdversarialForest(n_estimators=2, leaf="quantile", random_state=0, epsilon=epsilon).fit(penguins).joint_,
        jf.AdversarialForest(n_estimators=3, random_state=1, epsilon=0.001).fit(penguins).joint_,
    ]
    both = jf.mix(joints, [3, 1])
    each = np.array([joint.log_density(penguins) for joint in joints])
    np.testing.assert_allclose(both.log_density(penguins), np.logaddexp(*(each + np.log([[0.75], [0.25]]))), rtol=1e-12)
    assert both.n_trees == 5 and both.n_leaves == sum(joint.n_leaves for joint in joints)
    assert both.epsilon == pytest.approx(0.75 * epsilon + 0.25 * 0.001)
    parts = Joint(Mixture(tuple(joint.distribution.components[0] for joint in joints), np.log([0.75, 0.25])))
    a, b = both.given(species="Gentoo"), parts.given(species="Gentoo")
    assert a.mean("body_mass_g") == pytest.approx(b.mean("body_mass_g"), rel=1e-12)
    assert a.quantile("bill_depth_mm", [0.1, 0.5]).tolist() == pytest.approx(
        b.quantile("bill_depth_mm", [0.1, 0.5]).tolist()
    )
    assert a.background_weight == pytest.approx(b.background_weight, rel=1e-9)
    assert a.mode(budget=10).log_bound >= both.log_density(a.mode(budget=10).rows)[0] - 1e-9
    assert both.robustness(penguins.head(5), "species").shape == (5,)
    assert both.entropy("species").value == pytest.approx(
        -sum(p * np.log(p) for p in both.given().proba("species").values()), abs=1e-9
    )
    both.save(tmp_path / "both.joint")
    np.testing.assert_array_equal(jf.load(tmp_path / "both.joint").log_density(penguins), both.log_density(penguins))


def test_the_background_counts_by_its_parts_weight_wherever_it_stands() -> None:
    joint = mixture()
    turned = Joint(Mixture(joint.distribution.components[::-1], joint.distribution.log_weight[::-1]))
    alone = Joint(Mixture(joint.distribution.components[:1], np.zeros(1)))
    assert alone.epsilon > 0
    assert joint.epsilon == turned.epsilon == pytest.approx(WEIGHTS[0] * alone.epsilon)


def test_mix_refuses_what_is_not_of_one_schema() -> None:
    learner = jf.AdversarialForest(n_estimators=1, random_state=0).fit(table(0))
    one = learner.joint_
    other = jf.AdversarialForest(n_estimators=1, random_state=0).fit(table(2, 250)).joint_
    with pytest.raises(ValueError, match=r"column '\w+' has another \w+ in joint 1"):
        jf.mix([one, other])
    with pytest.raises(ValueError, match="has the columns"):
        jf.mix([one, one.select("place", "size")])
    with pytest.raises(ValueError, match="2 positive numbers"):
        jf.mix([one, one], [1.0])
    with pytest.raises(ValueError, match="2 positive numbers"):
        jf.mix([one, one], [1.0, 0.0])
    with pytest.raises(ValueError, match="at least one joint"):
        jf.mix([])
    with pytest.raises(TypeError, match="mix: expected a list of joints, got one Joint"):
        jf.mix(one)
    with pytest.raises(TypeError, match="AdversarialForest at place 1; give its joint_"):
        jf.mix([one, learner])
