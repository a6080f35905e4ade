"""Predictors in files: the file of their joint, to which the other members and the pool are added.

`jf.load` reads the joint from it. Nothing in a file is executed, and every field is checked.
"""

from __future__ import annotations

import os
import sys
from typing import Any, NamedTuple

import numpy as np

from ...data.schema import Schema, kernel_columns
from ...ensembles.table import ENSEMBLE_FIELDS, LINKS, Ensemble, check_ensemble
from ...inference.expectation.match import Features
from ...models.base import Distribution
from ...models.box_forest.box_forest import BoxForest
from ...models.box_forest.files import NAMES, forest_from_arrays, forest_to_arrays
from ...models.file import (
    PREDICTOR,
    ModelFileError,
    contents,
    model_of,
    opened,
    pack,
    read_about,
    read_start,
    write_atomically,
)
from ...runtime.arrays import FINITE, Field, check_arrays
from .additive import Additive
from .boosting import Boosted, boosting_table
from .members import (
    ADDITIVE,
    COMPLETED,
    EXPECTED,
    FOREST,
    JOINT,
    MASKED,
    NATIVE,
    Conditional,
    ExpectedAdditive,
    ExpectedBoosting,
    Member,
    NativeBoosting,
)
from .pooling import LEVELS, ClassPool, NumberPool, Pool


class Saved(NamedTuple):
    """What a file holds of a predictor.

    kind : {"classifier", "regressor"}
    known : float64 array (d,). How often each feature is known at learning.
    seed : int. Of draws.
    alone : int or None. Place of the member that alone answers rows without missing cells.
    labels : str. NumPy's name of the type of classes; empty of numbers.
    """

    joint: Distribution
    kind: str
    members: dict[str, Member]
    pool: Pool
    known: np.ndarray
    seed: int
    alone: int | None
    labels: str


def save_predictor(saved: Saved, path: str | os.PathLike[str]) -> None:
    """Write a predictor to a `.joint` file."""
    about, arrays = contents(saved.joint)
    own: dict[str, np.ndarray] = {"known": saved.known}
    for name, member in saved.members.items():
        own |= {f"{name}.{field}": array for field, array in _arrays_of(name, member).items()}
    own |= {f"pool.{field}": np.atleast_1d(value) for field, value in saved.pool._asdict().items()}
    forest = saved.members.get(FOREST)
    assert forest is None or isinstance(forest, Conditional)
    about[PREDICTOR] = {
        "kind": saved.kind,
        "members": list(saved.members),
        "links": {
            name: member.trees.features.ensemble.link
            for name, member in saved.members.items()
            if isinstance(member, ExpectedBoosting | NativeBoosting)
        },
        "has_background": forest is not None and forest.distribution.forest_for(FOREST).has_background,
        "beta": 1.0 if forest is None else float(forest.beta),
        "labels": saved.labels,
        "seed": saved.seed,
        "alone": saved.alone,
    }
    write_atomically(pack(about, arrays | {f"{PREDICTOR}.{name}": array for name, array in own.items()}), path)


def has_predictor(path: str | os.PathLike[str]) -> bool:
    """Whether a model file holds a predictor beside its joint."""
    return PREDICTOR in read_about(read_start(path))


def read_predictor(path: str | os.PathLike[str]) -> Saved:
    """What a file holds of a predictor, every field checked; a `ModelFileError` if it is not as it must be."""
    try:
        about, arrays = opened(read_start(path))
        if PREDICTOR not in about:
            raise ValueError("the file holds a joint and no predictor; read it by jf.load")
        return _saved_of(about, arrays)
    except ValueError as error:
        raise ModelFileError(f"{os.fspath(path)}: {error}") from error


# ---- What a file holds of members.


def _arrays_of(name: str, member: Member) -> dict[str, np.ndarray]:
    """Arrays of a member, by name; of the joint's own conditional nothing but its grid."""
    if isinstance(member, Conditional):
        forest = forest_to_arrays(member.distribution.forest_for(FOREST))[1] if name == FOREST else {}
        return {"grid": member.grid} | forest
    if isinstance(member, ExpectedAdditive):
        return member.model._asdict()
    assert isinstance(member, ExpectedBoosting | NativeBoosting)
    features, order = member.trees
    found = {field: np.ascontiguousarray(getattr(features.ensemble, field)) for field in ENSEMBLE_FIELDS}
    found = {field: array.view(np.uint8) if array.dtype == bool else array for field, array in found.items()}
    return found | {"column": features.column, "level_value": features.level_value, "order": order.astype(np.int64)}


_BOOSTED = ENSEMBLE_FIELDS | {"column": Field("i4", "f", 0), "level_value": Field("f8", "levels")}
_BOOSTED |= {"order": Field("i8", "classes")}
_ADDITIVE = {
    "base": Field("f8", "A", *FINITE),
    "start": Field("i8", "d+1"),
    "point": Field("f8", "P", *FINITE),
    "effect": Field("f8", "P A", *FINITE),
}
_LEAST = sys.float_info.min
"""Least positive number, for what must be above 0."""
_KNOTS_AND_WEIGHTS = {"knots": Field("f8", "B", 0.0, 1.0), "weight": Field("f8", "B M", 0.0, FINITE[1])}
_POOLS = {
    "classifier": _KNOTS_AND_WEIGHTS
    | {"prior": Field("f8", "K", _LEAST, FINITE[1]), "bias": Field("f8", "B K", *FINITE)},
    "regressor": _KNOTS_AND_WEIGHTS
    | {
        "centre": Field("f8", "1", *FINITE),
        "half": Field("f8", "1", _LEAST, FINITE[1]),
        "values": Field("f8", "values", *FINITE),
        "point": Field("f8", "points", *FINITE),
        "spread": Field("f8", "Q", *FINITE),
        "stretch": Field("f8", "B S", 0.0, FINITE[1]),
        "level": Field("f8", "B Q", 0.0, 1.0),
    },
}
_FIELDS = {"kind", "members", "links", "has_background", "beta", "labels", "seed", "alone"}


def _saved_of(about: dict[str, Any], arrays: dict[str, np.ndarray]) -> Saved:
    """The predictor of a file's contents, every field checked."""
    own = about.pop(PREDICTOR)
    start = f"{PREDICTOR}."
    mine = {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}
    joint = model_of(about, {name: array for name, array in arrays.items() if not name.startswith(start)})
    _check_about(own)
    names, is_class = own["members"], own["kind"] == "classifier"
    schema, target = joint.schema, joint.schema.columns[-1]
    _require(target.is_categorical == is_class, f"a {own['kind']}, but its target is {target.kind}")
    d, K = len(schema.columns) - 1, len(target.levels) if is_class else 1
    fields = {f"pool.{field}" for field in _POOLS[own["kind"]]} | {"known"}
    for name in names:
        fields |= {f"{name}.{field}" for field in _fields_of(name)}
    _require(set(mine) == fields, "arrays missing or unknown")
    check_arrays("the predictor's ", mine, {"known": Field("f8", "d", 0.0, 1.0)}, d=d)

    members: dict[str, Member] = {}
    for name in names:
        part = {field: mine[f"{name}.{field}"] for field in _fields_of(name)}
        if name in (FOREST, JOINT):
            grid = part["grid"]
            _require(grid.dtype == np.float64 and grid.ndim == 1 and (len(grid) == 0) == is_class, f"{name}: grid")
            _require(is_class or (len(grid) > 2 and bool((np.diff(grid) > 0).all())), f"{name}: grid does not rise")
            distribution = joint
            if name == FOREST:
                of = {"kind": "forest", "has_background": own["has_background"]}
                distribution = BoxForest(forest_from_arrays(schema, of, {field: part[field] for field in NAMES}))
            members[name] = Conditional(distribution, float(own["beta"]) if name == FOREST else 1.0, grid)
            continue
        if name == ADDITIVE:
            members[name] = ExpectedAdditive(_additive_of(schema, part, K), boosting_table(schema).is_level)
            continue
        trees = _boosted_of(schema, part, own["links"][name], K if is_class else 0)
        members[name] = ExpectedBoosting(trees, joint) if name in (EXPECTED, COMPLETED) else NativeBoosting(trees)
    pool = _pool_of(own["kind"], mine, len(names), sum(name in (FOREST, JOINT) for name in names), K, target.step)
    return Saved(joint, own["kind"], members, pool, mine["known"], own["seed"], own["alone"], own["labels"])


def _check_about(own: Any) -> None:
    """Refuse metadata of a predictor that are not as they must be."""
    _require(isinstance(own, dict) and set(own) == _FIELDS and own["kind"] in _POOLS, "metadata missing or unknown")
    names, links = own["members"], own["links"]
    known = [FOREST, JOINT, EXPECTED, MASKED, NATIVE, COMPLETED, ADDITIVE]
    _require(isinstance(names, list) and len(names) > 0 and all(name in known for name in names), "unknown members")
    _require(len(set(names)) == len(names), "a member is there twice")
    boosted = {name for name in names if name in (EXPECTED, MASKED, NATIVE, COMPLETED)}
    _require(isinstance(links, dict) and set(links) == boosted and all(x in LINKS for x in links.values()), "links")
    _require(type(own["has_background"]) is bool, "has_background: expected true or false")
    _require(isinstance(own["beta"], int | float) and 0 <= own["beta"] <= 1, "beta: not from 0 to 1")
    _require(type(own["seed"]) is int and 0 <= own["seed"] < 2**63, "seed: no whole number")
    _require(own["alone"] is None or (type(own["alone"]) is int and 0 <= own["alone"] < len(names)), "alone: no member")
    _require(isinstance(own["labels"], str) and len(own["labels"]) < 20, "labels: no type")


def _fields_of(name: str) -> frozenset[str]:
    """Names of a member's arrays."""
    if name in (EXPECTED, MASKED, NATIVE, COMPLETED):
        return frozenset(_BOOSTED)
    if name == ADDITIVE:
        return frozenset(Additive._fields)
    return frozenset({"grid"}) | (NAMES if name == FOREST else frozenset())


def _boosted_of(schema: Schema, part: dict[str, np.ndarray], link: str, K: int) -> Boosted:
    """Boosted trees from their arrays."""
    columns, d = kernel_columns(schema), len(schema.columns) - 1
    check_arrays("the predictor's ", part, _BOOSTED, levels=int(columns.level_start[-1]), classes=K)
    column, level_value, order = part["column"], part["level_value"], part["order"]
    _require(bool((column < d).all()) and len(np.unique(column)) == len(column), "column: out of range, or twice")
    n_levels = np.zeros(len(column), dtype=np.int64)
    for f, j in enumerate(column.tolist()):
        if columns.is_categorical[j]:
            slot = columns.slot[j]
            values = level_value[columns.levels_of(slot)]
            values = values[~np.isnan(values)]
            _require(bool(np.isfinite(values).all()), "level_value: not finite")
            if len(values) and bool((values == np.rint(values)).all()) and values.min() >= 0 and values.max() < 2**31:
                n_levels[f] = int(values.max()) + 1
    arrays = {field: part[field] for field in ENSEMBLE_FIELDS}
    arrays |= {field: part[field].astype(bool) for field in ("missing_left", "other_left")}
    names = tuple(schema.names[j] for j in column.tolist())
    outputs = part["base"].shape[0]
    classes = tuple(range(2 if link == "logistic" else outputs)) if K else None
    ensemble = Ensemble(**arrays, link=link, names=names, categories=(None,) * len(column), classes=classes,
                        library="a file")  # fmt: skip
    check_ensemble(ensemble, n_levels)
    n_answers = 2 if link == "logistic" else outputs
    _require(n_answers == (K or 1) and (link in ("logistic", "softmax") or not K or outputs == K), "base: wrong shape")
    _require(bool((np.sort(order) == np.arange(K)).all()), "order: no permutation")
    features = Features(ensemble, column, np.arange(len(column)), len(column), level_value, columns)
    return Boosted(features, order)


def _additive_of(schema: Schema, part: dict[str, np.ndarray], A: int) -> Additive:
    """An additive model from its arrays."""
    features, start, point = schema.columns[:-1], part["start"], part["point"]
    P = check_arrays("the predictor's ", part, _ADDITIVE, A=A, **{"d+1": len(features) + 1})["P"]
    _require(start[0] == 0 and start[-1] == P and bool((np.diff(start) > 0).all()), "start: not rising to the end")
    for column, first, stop in zip(features, start[:-1].tolist(), start[1:].tolist(), strict=True):
        own = point[first:stop]
        if column.is_categorical:
            _require(np.array_equal(own, np.arange(max(len(column.levels), 1))), "point: not the codes of the levels")
        else:
            _require(bool((np.diff(own) >= 0).all()), "point: falling")
    return Additive(part["base"], start, point, part["effect"])


def _pool_of(kind: str, mine: dict[str, np.ndarray], M: int, S: int, K: int, step: float) -> Pool:
    """The pool from its arrays; numbers have a grid of this step, or none."""
    pool = {name: mine[f"pool.{name}"] for name in _POOLS[kind]}
    check_arrays("the predictor's ", pool, _POOLS[kind], M=M, S=S, K=K, Q=len(LEVELS))
    knots = pool["knots"]
    _require(len(knots) > 1 and (knots[0], knots[-1]) == (0.0, 1.0), "knots: not from 0 to 1")
    _require(bool((np.diff(knots) > 0).all()), "knots do not rise")
    if kind == "classifier":
        return ClassPool(**pool)
    values, point = pool["values"], pool["point"]
    _require(len(values) == 2 or (step > 0.0 and len(values) > 0), "values: too few or too many")
    _require(bool((np.diff(values) >= 0).all() and (np.diff(point) > 0).all()), "values or point: not rising")
    _require(bool((np.diff(pool["level"]) >= 0).all()), "level: not rising")
    numbers: dict[str, Any] = {name: float(pool[name][0]) for name in ("centre", "half")}
    return NumberPool(**pool | numbers)


def _require(is_true: bool, what: str) -> None:
    if not is_true:
        raise ValueError(f"the predictor in the file is broken: {what}")
