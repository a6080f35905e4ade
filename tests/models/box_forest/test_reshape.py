"""Conditioned joints and joints of some columns, against the same question asked of the whole joint."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

import jointforest as jf
from jointforest.models.box_forest import files as _validate
from jointforest.models.box_forest.condition import condition, marginalize
from jointforest.models.box_forest.posterior import log_density, sample, tree_log_density
from jointforest.models.box_forest.structure import Forest

from ... import oracle
from ...random_cases.cells import Cell, Region, make_evidence
from ...random_cases.evidence import random_cells, softened
from ...random_cases.models import cell_centre, cell_number, random_model, seeds
from ...wrapped import joint_of


def checked(model: Forest) -> Forest:
    """The model, once every array of it has been checked."""
    _validate.check_forest(model.schema, model.columns, model.trees, model.leaves, model.has_background)
    return model


def lies_in(model: Forest, j: int, x: float, region: Region) -> bool:
    """Whether a value (on a grid: the centre of its cell) lies in a region of column j."""
    return log_likelihood(model, j, x, region) > -np.inf


def log_likelihood(model: Forest, j: int, x: float, region: Region) -> float:
    """Log-likelihood of a value (on a grid: of the centre of its cell) by a region of column j."""
    column = model.schema.columns[j]
    if column.step == 0.0 and x in column.atoms:
        weights = dict(zip(region.atoms, region.atom_log_weights or [0.0] * len(region.atoms), strict=True))
        return weights.get(column.atoms.index(x), -np.inf)
    if column.step > 0.0:
        x = cell_centre(column, cell_number(column, x))
    weights_of_runs = region.run_log_weights or [0.0] * len(region.runs)
    return max([w for (lo, hi), w in zip(region.runs, weights_of_runs, strict=True) if lo < x <= hi], default=-np.inf)


def merged(known: list[Cell], more: list[Cell]) -> list[Cell]:
    """Both, where they speak of different columns; else what is known."""
    return [b if a is None else a for a, b in zip(known, more, strict=True)]


def without_known(known: list[Cell], more: list[Cell]) -> list[Cell]:
    return [b if a is None else None for a, b in zip(known, more, strict=True)]


@given(seeds)
@settings(max_examples=60, deadline=None)
def test_conditioned_joint_answers_as_conditioning_in_the_query(seed: int) -> None:
    model = random_model(seed, n_trees=1 + seed % 3, max_depth=1 + seed % 5, background=seed % 4 > 0)
    rng = np.random.default_rng(seed)
    known, *others = softened(rng, model, random_cells(rng, model, 8)[2:])
    before = make_evidence([known])
    if log_density(model, before)[0] == -np.inf:
        with pytest.raises(ValueError, match="probability 0"):
            condition(model, before)
        return
    new = checked(condition(model, before))
    both = make_evidence([merged(known, cells) for cells in others])
    asked = make_evidence([without_known(known, cells) for cells in others])
    want = log_density(model, both) - log_density(model, before)
    np.testing.assert_allclose(log_density(new, asked), want, rtol=1e-10, atol=1e-10)
    # the conditioned model by the definition
    np.testing.assert_allclose(oracle.log_density(new, asked), want, rtol=1e-9, atol=1e-9)


@given(seeds)
@settings(max_examples=40, deadline=None)
def test_conditioned_columns_are_cut_to_the_evidence(seed: int) -> None:
    model = random_model(seed, n_trees=2, max_depth=3)
    rng = np.random.default_rng(seed)
    known, *others = softened(rng, model, random_cells(rng, model, 10)[2:])
    before = make_evidence([[cell if isinstance(cell, Region) else None for cell in known]])
    if log_density(model, before)[0] == -np.inf:
        return
    new = checked(condition(model, before))
    for cells in others:  # values that lie in the regions, and others
        values: list[Cell] = [None if isinstance(cell, Region) else cell for cell in cells]
        want = -np.inf
        inside = all(
            x is None or not isinstance(r, Region) or lies_in(model, j, x, r)
            for j, (x, r) in enumerate(zip(values, known, strict=True))
        )
        if inside:
            rest: list[Cell] = [
                r if x is None and isinstance(r, Region) else x for x, r in zip(values, known, strict=True)
            ]
            want = log_density(model, make_evidence([rest]))[0] - log_density(model, before)[0]
            pairs = enumerate(zip(values, known, strict=True))
            want += sum(
                log_likelihood(model, j, x, r) for j, (x, r) in pairs if x is not None and isinstance(r, Region)
            )
        np.testing.assert_allclose(log_density(new, make_evidence([values]))[0], want, rtol=1e-9, atol=1e-9)
    draws = sample(new, make_evidence([[None] * len(known)]), 50, 1)
    for j, cell in enumerate(known):
        if isinstance(cell, Region):
            assert all(lies_in(model, j, x, cell) for x in draws[:, j])


def test_a_condition_of_too_many_pieces_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    joint = jf.JointTree(random_state=0).fit(jf.datasets.load_penguins()).joint_
    monkeypatch.setattr("jointforest.models.box_forest.condition._MOST_PIECES", 100)
    assert joint.condition(body_mass_g=jf.between(4000, 5000)).n_leaves > 0
    with pytest.raises(ValueError, match=r"cuts \d+ leaves into \d+ pieces; use given"):
        joint.condition(body_mass_g=jf.about(4500, sd=100))


@given(seeds)
@settings(max_examples=40, deadline=None)
def test_kept_columns_answer_as_with_the_others_missing(seed: int) -> None:
    model = random_model(seed, n_trees=1 + seed % 3, max_depth=1 + seed % 5, background=seed % 4 > 0)
    rng = np.random.default_rng(seed)
    d = len(model.columns.slot)
    kept = sorted(rng.choice(d, int(rng.integers(1, d + 1)), replace=False).tolist())
    new = checked(marginalize(model, kept))
    cells = softened(rng, model, random_cells(rng, model, 10))
    narrow = make_evidence([[row[j] for j in kept] for row in cells])
    wide = make_evidence([[row[j] if j in kept else None for j in range(d)] for row in cells])
    np.testing.assert_allclose(log_density(new, narrow), log_density(model, wide), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(tree_log_density(new, narrow), tree_log_density(model, wide), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(oracle.log_density(new, narrow), oracle.log_density(model, wide), rtol=1e-9, atol=1e-9)
    again = checked(marginalize(new, [0]))  # of a forest whose nodes may have lost their splits
    alone = make_evidence([[row[kept[0]]] for row in cells])
    first = make_evidence([[row[j] if j == kept[0] else None for j in range(d)] for row in cells])
    np.testing.assert_allclose(log_density(again, alone), log_density(model, first), rtol=1e-10, atol=1e-10)


def same(a: jf.Joint, b: jf.Joint, frame: object) -> None:
    np.testing.assert_array_equal(a.log_density(frame), b.log_density(frame))
    assert a.columns == b.columns and a.n_leaves == b.n_leaves


@pytest.mark.parametrize("leaf", ["normal", "quantile"])
def test_learned_joint(leaf: str, tmp_path: Path) -> None:
    penguins = jf.datasets.load_penguins()
    joint = jf.JointTree(leaf=leaf, n_estimators=2, random_state=0).fit(penguins).joint_
    known = {"island": ["Dream", "Biscoe"], "bill_length_mm": jf.AnyOf(jf.between(35, 42), jf.between(46, 50))}
    given = joint.condition(known, body_mass_g=4000.0)
    posterior = joint.given(known, body_mass_g=4000.0)
    assert given.given().mean("bill_depth_mm") == pytest.approx(posterior.mean("bill_depth_mm"), rel=1e-10)
    assert given.given().mean("bill_length_mm") == pytest.approx(posterior.mean("bill_length_mm"), rel=1e-10)
    assert given.given().proba("species") == pytest.approx(posterior.proba("species"), rel=1e-10)
    event = "flipper_length_mm > 190 and sex = MALE"
    assert given.probability(event) == pytest.approx(posterior.probability(event), rel=1e-10)
    rows = given.sample(100, random_state=0, missing=True)
    assert set(rows["island"]) <= {"Dream", "Biscoe"} and (rows["body_mass_g"] == 4000).all()
    assert rows["bill_length_mm"].map(lambda x: 35 <= x <= 42 or 46 <= x <= 50).all()
    given.save(tmp_path / "given.joint")
    same(given, jf.load(tmp_path / "given.joint"), rows)

    few = given.select("sex", "species", "bill_length_mm")
    assert few.columns == ("species", "bill_length_mm", "sex")
    narrow = rows[list(few.columns)]
    np.testing.assert_allclose(few.log_density(narrow), given.log_density(narrow), rtol=1e-10)
    few.save(tmp_path / "few.joint")
    same(few, jf.load(tmp_path / "few.joint"), narrow)


def test_number_without_grid_that_is_known() -> None:
    model = random_model(4, kinds=("continuous", "mixed", "datetime", "boolean"))
    x, atom = (
        0.5 * (model.schema.columns[0].minimum + model.schema.columns[0].maximum),
        model.schema.columns[1].atoms[0],
    )
    known: list[Cell] = [x, atom, None, None]
    joint = joint_of(checked(condition(model, make_evidence([known]))))
    assert joint.kinds["c0"] == "mixed" and joint.schema["c0"].atoms == (x,) and joint.schema["c1"].atoms == (atom,)
    assert joint.probability({"c0": x, "c1": atom}) == pytest.approx(1.0)
    assert joint.probability({"c0": jf.between(x + 1e-9, None)}) == 0.0
    again = joint_of(checked(condition(joint.distribution.forest, make_evidence([known]))))
    assert again.given(c3=True).log_probability == pytest.approx(joint.given(c3=True).log_probability)


def test_errors_name_what_is_wrong() -> None:
    joint = joint_of(random_model(4, kinds=("continuous", "categorical", "boolean")))
    with pytest.raises(ValueError, match="one row"):
        joint.condition(c2=jf.PerRow([True, False]))
    with pytest.raises(ValueError, match="probability 0"):
        joint.condition(c2=[])
    grid = joint_of(random_model(4, kinds=("integer", "boolean"), epsilon=0.1))
    with pytest.raises(ValueError, match=r"column 'c0': 1e\+20 is too far out"):
        grid.condition(c0=1e20)
    with pytest.raises(ValueError, match="no column 'c9'"):
        joint.select("c9")
    with pytest.raises(ValueError, match="at least one column"):
        joint.select()
    with pytest.raises(ValueError, match=r"select\(\*names\)"):
        joint.select(["c0", "c1"])
    with pytest.raises(ValueError, match="'c0' is named twice"):
        joint.select("c0", "c0")
    learner = jf.JointTree()
    for ask in (joint.compare, joint.divergence):
        with pytest.raises(TypeError, match="expected a Joint to compare with, got JointTree"):
            ask(learner)
