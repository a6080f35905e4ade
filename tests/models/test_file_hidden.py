"""Files of hidden trees, and of mixtures with a forest: the same answers, the same bytes, every promise checked."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jointforest.data.schema import Column, Schema, SetAside
from jointforest.data.written_forms import WrittenForm
from jointforest.models import file as store
from jointforest.models.base import Distribution
from jointforest.models.box_forest.box_forest import BoxForest
from jointforest.models.file import ModelFileError, load_model, save_model
from jointforest.models.hidden_tree.files import check_hidden, hidden_from_arrays, hidden_to_arrays
from jointforest.models.hidden_tree.hidden_tree import HiddenTree
from jointforest.models.hidden_tree.hidden_trees import HiddenTrees, TreeTables
from jointforest.models.mixture import Mixture
from jointforest.query_language.rules import rule

from ..random_cases.hidden_trees import random_evidence, random_hidden, random_plain, random_tree
from ..random_cases.models import random_model
from .test_file import assert_same
from .test_file_fuzz import damaged, forged_array, forged_json, sealed


def fit_for_files(hidden: HiddenTrees) -> HiddenTrees:
    """The same over columns of a numpy table, whose types are simple."""
    columns = tuple(replace(c, dtype="object[str]" if c.is_categorical else "float64") for c in hidden.schema.columns)
    return replace(hidden, schema=Schema(columns, "pandas"))


def model_of(seed: int, dtype: type = np.float32) -> Distribution:
    """A model whose only part are random hidden trees."""
    hidden = fit_for_files(random_hidden(seed, dtype=dtype))
    return HiddenTree(hidden)


def plain_model(seed: int) -> Distribution:
    """A model whose only part are random trees whose states are codes."""
    hidden = fit_for_files(random_plain(seed))
    return HiddenTree(hidden)


@pytest.mark.parametrize("seed", range(4))
def test_states_that_are_codes(tmp_path: Path, seed: int) -> None:
    model = plain_model(seed)
    save_model(model, tmp_path / "plain.joint")
    again = load_model(tmp_path / "plain.joint")
    hidden, read = model.components[0].hidden, again.components[0].hidden  # type: ignore[attr-defined]
    assert_same_hidden(hidden, read)
    about, arrays = hidden_to_arrays(model.components[0].hidden)
    for t, tree in enumerate(hidden.trees):
        assert arrays[f"{t}.emission"].dtype == np.int32 and len(arrays[f"{t}.emission"]) == tree.n_states.sum()
    for wrong in (-1, 10_000):
        broken = {**arrays, "0.emission": arrays["0.emission"].copy()}
        broken["0.emission"][0] = wrong
        with pytest.raises(ValueError, match="codes that are states must rise"):
            hidden_from_arrays(hidden.schema, about, broken)


@cache
def mixture() -> Distribution:
    """A forest and hidden trees over its columns."""
    from jointforest.data.discretization.learn import learn_scale

    forest = random_model(5, n_trees=2, max_depth=3)
    columns = tuple(
        replace(c, dtype="object[str]") if c.kind in ("categorical", "ordered") else c for c in forest.schema.columns
    )
    forest = replace(forest, schema=Schema(columns, forest.schema.frame))
    rng = np.random.default_rng(0)
    rows = [
        rng.integers(len(c.levels), size=40).astype(float)
        if c.is_categorical
        else c.center + np.round(rng.uniform(c.minimum, c.maximum, 40) / (c.step or 1e-9)) * (c.step or 1e-9)
        for c in columns
    ]
    scales = tuple(learn_scale(column, x, None, 4) for column, x in zip(columns, rows, strict=True))
    trees = tuple(random_tree(rng, scales, np.float32, 0.0) for _ in range(2))
    hidden = HiddenTrees(forest.schema, scales, trees, np.log([0.25, 0.75]))
    return Mixture((*BoxForest(forest).components, HiddenTree(hidden)), np.log([0.6, 0.4]))


def assert_same_hidden(one: HiddenTrees, other: HiddenTrees) -> None:
    """Every array of the two is equal bit for bit, and of the same type."""
    assert one.schema.to_dict() == other.schema.to_dict()
    np.testing.assert_array_equal(one.log_weight, other.log_weight)
    for a, b in zip(one.scales, other.scales, strict=True):
        assert (a.n_codes, a.step, a.origin) == (b.n_codes, b.step, b.origin)
        for name in ("lo", "hi", "rate", "code", "log_mass"):
            assert getattr(a, name).dtype == getattr(b, name).dtype
            assert getattr(a, name).tobytes() == getattr(b, name).tobytes()
    for s, t in zip(one.trees, other.trees, strict=True):
        for name in ("column", "parent"):
            np.testing.assert_array_equal(getattr(s, name), getattr(t, name))
        for name in ("transition", "emission", "blank"):
            for table, again in zip(getattr(s, name), getattr(t, name), strict=True):
                assert table.dtype == again.dtype and table.shape == again.shape
                assert table.tobytes() == again.tobytes()


@pytest.mark.parametrize("seed", range(25))
def test_hidden_trees_come_back_as_they_were(seed: int, tmp_path: Path) -> None:
    model = model_of(seed, np.float32 if seed % 2 else np.float64)
    save_model(model, tmp_path / "m.joint")
    again = load_model(tmp_path / "m.joint")
    assert_same_hidden(model.components[0].hidden, again.components[0].hidden)
    evidence = random_evidence(seed, model.components[0].hidden, 5)
    np.testing.assert_array_equal(model.log_density(evidence), again.log_density(evidence))
    drawn = [of.components[0].sample(evidence, 3, 0, True) for of in (model, again)]
    np.testing.assert_array_equal(*drawn)
    save_model(again, tmp_path / "again.joint")
    assert (tmp_path / "again.joint").read_bytes() == (tmp_path / "m.joint").read_bytes()


def test_conditioned_and_marginal_hidden_trees_are_saved(tmp_path: Path) -> None:
    model = model_of(3)
    part = model.components[0]
    row = part.sample(random_evidence(3, part.hidden, 1), 1, 0, False)
    evidence = random_evidence(3, part.hidden, 1)._replace(value=np.where(np.arange(row.shape[1]) < 1, row, np.nan))
    for other in (part.condition(evidence), part.marginalize([0, row.shape[1] - 1])):
        save_model(other, tmp_path / "m.joint")
        assert_same_hidden(other.hidden, load_model(tmp_path / "m.joint").components[0].hidden)


def test_a_mixture_comes_back_as_it_was(tmp_path: Path) -> None:
    model = mixture()
    save_model(model, tmp_path / "m.joint")
    again = load_model(tmp_path / "m.joint")
    assert [part.kind for part in again.components] == ["forest", "hidden trees"]
    assert_same(model.components[0].forest, again.components[0].forest)
    assert_same_hidden(model.components[1].hidden, again.components[1].hidden)
    np.testing.assert_array_equal(model.log_weight, again.log_weight)
    evidence = random_evidence(0, model.components[1].hidden, 6)
    np.testing.assert_array_equal(model.log_density(evidence), again.log_density(evidence))
    save_model(again, tmp_path / "again.joint")
    assert (tmp_path / "again.joint").read_bytes() == (tmp_path / "m.joint").read_bytes()
    turned = Mixture(model.components[::-1], model.log_weight[::-1].copy())
    save_model(turned, tmp_path / "m.joint")
    assert [part.kind for part in load_model(tmp_path / "m.joint").components] == ["hidden trees", "forest"]


def test_a_part_of_another_schema_is_not_saved(tmp_path: Path) -> None:
    one, other = model_of(1), model_of(2)
    with pytest.raises(ValueError, match="component 1 has another schema"):
        save_model(Mixture((one.components[0], other.components[0]), np.log([0.5, 0.5])), tmp_path / "m.joint")
    with pytest.raises(ValueError, match="log_weight"):
        save_model(Mixture(one.components, np.ones(1)), tmp_path / "m.joint")
    assert not list(tmp_path.iterdir())


# ------------------------------------------------------------------------------------------- every promise is checked


def changed(tables: tuple[np.ndarray, ...], k: int, at: Any, value: float) -> tuple[np.ndarray, ...]:
    """The tables with one entry of the k-th changed."""
    return tuple(_with(table, at, value) if i == k else table for i, table in enumerate(tables))


def _with(table: np.ndarray, at: Any, value: float) -> np.ndarray:
    table = table.copy()
    table[at] = value
    return table


def test_each_broken_promise_is_named() -> None:
    hidden = random_hidden(4, 4, zeros=0.0, dtype=np.float32)
    check_hidden(hidden)
    tree = hidden.trees[0]

    def broken(message: str, **fields: Any) -> None:
        other: TreeTables = replace(tree, **fields)
        with pytest.raises(ValueError, match=message):
            check_hidden(replace(hidden, trees=(other, *hidden.trees[1:])))

    broken("column: expected int32", column=tree.column.astype(np.int64))
    broken("parent: expected shape", parent=tree.parent[:-1])
    broken("node 0 must be the root", parent=_with(tree.parent, 0, 0))
    broken("parents must come before", parent=_with(tree.parent, 2, 2))
    broken("there is one root", parent=_with(tree.parent, 1, -1))
    broken("columns must have one node", column=_with(tree.column, 0, tree.column[1]))
    broken("columns must have one node", column=_with(tree.column, 0, 9))
    broken("columns must have one node", column=_with(tree.column, 0, -1))
    broken("one table of each kind", transition=tree.transition[:-1])
    broken("one table of each kind", blank=tree.blank[:-1])
    broken("float32 or float64", transition=tuple(t.astype(np.float16) for t in tree.transition))
    broken("emission must be float32", emission=tuple(t.astype(np.float64) for t in tree.emission))
    broken("transition must be", transition=(np.concatenate([tree.transition[0]] * 2), *tree.transition[1:]))
    broken("emission must be", emission=(tree.emission[0][:, :-1], *tree.emission[1:]))
    broken("transition has an entry below 0 or NaN", transition=changed(tree.transition, 1, (0, 0), -0.1))
    broken("transition has an entry below 0 or NaN", transition=changed(tree.transition, 1, (0, 0), np.nan))
    broken("emission: rows must sum to 1", emission=changed(tree.emission, 2, (0, 0), np.inf))
    broken("emission: rows must sum to 1", emission=changed(tree.emission, 2, (0, 0), 1.5))
    broken("blank must be", blank=changed(tree.blank, 0, 0, 1.5))
    broken("blank must be", blank=changed(tree.blank, 0, 0, np.nan))
    n = len(hidden.trees)
    for wrong in (hidden.log_weight + 0.1, hidden.log_weight[:-1], np.full(n, np.nan), hidden.log_weight.astype("f4")):
        with pytest.raises(ValueError, match="weight"):
            check_hidden(replace(hidden, log_weight=wrong))
    with pytest.raises(ValueError, match="3 scales for 4 columns"):
        check_hidden(replace(hidden, scales=hidden.scales[:-1]))
    scale = hidden.scales[1]
    with pytest.raises(ValueError, match="column 'c1'"):
        wrong_scale = replace(scale, log_mass=scale.log_mass + 0.1)
        check_hidden(replace(hidden, scales=(hidden.scales[0], wrong_scale, *hidden.scales[2:])))


def test_a_code_that_a_scale_has_nothing_of_is_never_drawn() -> None:
    seed = next(s for s in range(99) if random_hidden(s, 2, kinds=("levels",), zeros=0.0).scales[0].n_codes > 1)
    hidden = random_hidden(seed, 2, kinds=("levels",), zeros=0.0)
    scale = hidden.scales[0]
    some = scale.code != 0
    cut = replace(scale, **{name: getattr(scale, name)[some] for name in ("lo", "hi", "rate", "code", "log_mass")})
    with pytest.raises(ValueError, match="column 'c0' has a code that its scale has nothing of"):
        check_hidden(replace(hidden, scales=(cut, hidden.scales[1])))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({}, "a list of objects"),
        ([], "a list of objects"),
        ([1], "a list of objects"),
        ([{"kind": "boxes"}], "unknown kind 'boxes'"),
        ([{"kind": "hidden trees"}], "n_trees"),
        ([{"kind": "hidden trees", "n_trees": 0}], "n_trees"),
        ([{"kind": "hidden trees", "n_trees": True}], "n_trees"),
        ([{"kind": "hidden trees", "n_trees": 10**12}], "n_trees"),
        ([{"kind": "hidden trees", "n_trees": 9}], "arrays missing"),
        ([{"kind": "forest", "has_background": True}], "arrays missing"),
        ([{"kind": "hidden trees", "n_trees": 1}] * 2, "arrays missing"),
    ],
)
def test_metadata_of_other_parts_are_refused(parts: Any, message: str, tmp_path: Path) -> None:
    about, arrays = store.contents(model_of(3))
    (tmp_path / "m.joint").write_bytes(store.pack(about | {"components": parts}, arrays))
    with pytest.raises(ModelFileError, match=message):
        load_model(tmp_path / "m.joint")


FIELDS = {5: "621b3ab64528e831"}
"""Digest of the names of all fields, by format."""


def test_the_format_number_changes_with_the_fields() -> None:
    """If this fails, increase `file.FORMAT`, say there what changed, and put the digest of the new fields beside it."""
    number = Column("a", "continuous", "float64", has_number_name=True)
    text = Column("b", "categorical", "str", aside=SetAside("ignored", 1), written=WrittenForm("amount", "str"))
    schema = Schema((number,), "pandas", ((1, text),), 1.0, (rule("a <= b"),)).to_dict()

    def fields(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: fields(inner) for name, inner in value.items()}
        return [fields(value[0])] if isinstance(value, list) and value else None

    described = [fields(schema)]
    for model in (BoxForest(random_model(0)), model_of(3)):
        about, arrays = store.contents(model)
        described.append([fields(about | {"schema": None}), sorted({re.sub(r"\d+", "#", name) for name in arrays})])
    digest = hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:16]
    assert FIELDS.get(store.FORMAT) == digest, f"the digest of the fields of format {store.FORMAT} is {digest}"


# --------------------------------------------------------------------------------------------------------------- fuzz


def exercise(model: Distribution) -> None:
    """A forged model that passed: its promises hold, and questions end without a crash."""
    for part in model.components:
        if not isinstance(part, HiddenTree):
            continue
        check_hidden(part.hidden)
        evidence = random_evidence(1, part.hidden, 4)
        with np.errstate(all="ignore"):
            assert part.log_density(evidence).shape == (4,)
            assert part.sample(evidence, 2, 0, True).shape == (8, len(model.schema.columns))
            assert part.impute(evidence)[0].shape == (4, len(model.schema.columns))
            for j, column in enumerate(model.schema.columns):
                if not column.is_categorical:
                    assert part.observe(evidence).quantile(j, np.array([1e-6, 0.5, 1 - 1e-6])).shape == (4, 3)


def loads(data: bytes, path: Path) -> Distribution | None:
    """The model in these bytes, or None if they are refused in the promised way."""
    path.write_bytes(data)
    try:
        return load_model(path)
    except ModelFileError as error:
        assert str(path) in str(error)
        return None


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    data = store.pack(*store.contents(mixture()))
    rng, accepted = np.random.default_rng(0), 0
    for i in range(800):
        bad = damaged(rng, data)
        model = loads(sealed(bad) if i % 2 else bad, tmp_path / "m.joint")
        if model is not None:
            accepted += 1
            assert i % 2
            exercise(model)
    assert 0 < accepted < 400


@pytest.mark.parametrize("seed", range(3))
def test_forged_arrays(seed: int, tmp_path: Path) -> None:
    about, arrays = store.contents(model_of(seed + 2))
    rng, accepted = np.random.default_rng(seed), 0
    for _ in range(300):
        names = rng.choice(sorted(arrays), size=rng.integers(1, 3))
        model = loads(
            store.pack(about, arrays | {n: forged_array(rng, arrays[n]) for n in names}), tmp_path / "m.joint"
        )
        if model is not None:
            accepted += 1
            exercise(model)
    assert 0 < accepted < 400


def test_forged_metadata(tmp_path: Path) -> None:
    about, arrays = store.contents(mixture())
    rng, accepted = np.random.default_rng(3), 0
    for _ in range(400):
        model = loads(store.pack(forged_json(rng, about), arrays), tmp_path / "m.joint")
        if model is not None:
            accepted += 1
            exercise(model)
    assert 0 < accepted < 300


def test_arrays_are_few_whatever_the_number_of_columns(tmp_path: Path) -> None:
    about, arrays = store.contents(model_of(3))
    assert len(json.dumps(about["components"])) < 100
    n_trees = about["components"][0]["n_trees"]
    assert len(arrays) == 9 + 7 * n_trees
