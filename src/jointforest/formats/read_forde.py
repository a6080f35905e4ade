"""A model of the parameters of R's arf."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from ..forest.check import check
from ..forest.forest import Forest
from ..leaves.derived import make_leaves
from ..leaves.levels.wide import WideLevels, layout, one_column, side_by_side
from ..leaves.table import NORMAL, UNIFORM, ParameterTables
from ..model.model import Model, of_forest
from ..table.schema import Column, Schema, kernel_columns
from ..trees.nodes import Trees
from .forde import FIELDS, LEVELS, NUMBERS, TOLERANCE


def read_forde(folder: str | os.PathLike[str]) -> Model:
    """The model of parameters that are Parquet files in a folder.

    Trees are not among them: each leaf becomes a tree of its own. Numbers are continuous, as arf has them.

    Raises
    ------
    FileNotFoundError
        If a file is missing.
    ValueError
        If a table lacks a field, or has values that no such model has; each message names the variable and the leaf.
    """
    tables = {name: _table(Path(folder), name) for name in ("forest", "meta")}
    family = dict(zip(tables["meta"]["variable"].tolist(), tables["meta"]["family"].tolist(), strict=True))
    if len(family) < len(tables["meta"]["variable"]) or not family:
        raise ValueError("meta: expected each variable once, at least one")
    unknown = [name for name, one in family.items() if one not in (*NUMBERS.values(), LEVELS)]
    if unknown:
        raise ValueError(f"variable {unknown[0]!r}: unknown family {family[unknown[0]]!r}")
    if LEVELS in family.values():
        tables["cat"] = _table(Path(folder), "cat")
    if set(family.values()) != {LEVELS}:
        tables["cnt"] = _table(Path(folder), "cnt")
    weight, place = _coverage(tables["forest"])
    columns, numbers, masses, absent = [], [], [], np.zeros((len(weight), len(family)))
    for j, (name, one) in enumerate(family.items()):
        which = "cat" if one == LEVELS else "cnt"
        own = {field: of[tables[which]["variable"] == name] for field, of in tables[which].items()}
        leaf = np.array([place.get(f, -1) for f in own["f_idx"].tolist()], np.int64)
        if (leaf < 0).any():
            raise ValueError(
                f"{which}: variable {name!r} has a leaf {own['f_idx'][leaf < 0][0]!r} that is not in forest"
            )
        lost = np.flatnonzero(np.bincount(leaf, minlength=len(weight)) == 0)
        if len(lost):
            raise ValueError(f"{which}: variable {name!r} is missing in leaf {list(place)[lost[0]]:g}")
        if "NA_share" in own:
            absent[leaf, j] = _share(own["NA_share"], name)
        if which == "cat":
            column, mass = _levels(name, own, leaf, len(weight))
            masses.append(mass)
        else:
            column, number = _numbers(name, one, own, leaf, len(weight))
            numbers.append(number)
        columns.append(column)
    return of_forest(_forest(Schema(tuple(columns), "pyarrow"), weight, numbers, masses, absent))


def _table(folder: Path, name: str) -> dict[str, np.ndarray]:
    """The columns of a table: text as object arrays, numbers as float64, NaN where missing."""
    import pyarrow as pa
    from pyarrow import parquet

    path = folder / f"{name}.parquet"
    if not path.exists():
        raise FileNotFoundError(f"no file {path}; arf's parameters are {', '.join(FIELDS)}")
    try:
        table = parquet.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{path} is not a whole parquet table: {error}") from None
    lacks = [field for field in FIELDS[name] if field not in table.column_names]
    if lacks:
        raise ValueError(f"{name}: no field {lacks[0]!r}; it has {', '.join(table.column_names)}")
    found = {}
    for field in (*FIELDS[name], "NA_share"):
        if field not in table.column_names:
            continue
        is_text = field in ("variable", "val", "class", "family")
        try:
            column = table[field].cast(pa.string() if is_text else pa.float64())
        except pa.ArrowException:
            raise ValueError(
                f"{name}: field {field!r} is {table[field].type}, not {'text' if is_text else 'numbers'}"
            ) from None
        found[field] = np.array(column.to_pylist(), object) if is_text else column.to_numpy().astype(np.float64)
    return found


def _coverage(forest: dict[str, np.ndarray]) -> tuple[np.ndarray, dict[float, int]]:
    """Weight of each leaf (L,), and its place by its f_idx."""
    f_idx, cvg = forest["f_idx"], forest["cvg"]
    place = {f: k for k, f in enumerate(f_idx.tolist())}
    trees, tree = np.unique(forest["tree"], return_inverse=True)
    if not len(cvg) or len(place) < len(f_idx) or np.isnan(f_idx).any():
        raise ValueError("forest: expected leaves, each with an f_idx of its own")
    wrong = np.flatnonzero(~(cvg > 0) | ~np.isfinite(cvg))
    if len(wrong):
        raise ValueError(
            f"forest: leaf {f_idx[wrong[0]]:g} has the coverage {cvg[wrong[0]]}, expected a number above 0"
        )
    total = np.bincount(tree.ravel(), cvg)
    if np.abs(total - 1.0).max() > TOLERANCE:
        raise ValueError(f"forest: the leaves of a tree cover {total[np.argmax(np.abs(total - 1.0))]:g}, expected 1")
    return cvg / total[tree.ravel()] / len(trees), place


def _share(share: np.ndarray, name: str) -> np.ndarray:
    """Shares of missing cells, none where there is no number."""
    share = np.where(np.isnan(share), 0.0, share)
    if ((share < 0) | (share > 1)).any():
        raise ValueError(f"variable {name!r}: NA_share must be from 0 to 1")
    return share


def _levels(name: str, own: dict[str, np.ndarray], leaf: np.ndarray, n: int) -> tuple[Column, WideLevels | np.ndarray]:
    """A column of levels, and their masses in n leaves: dense (n, K), or as one wide column."""
    val, prob = own["val"], own["prob"]
    if any(v is None for v in val.tolist()) or not (prob >= 0).all():
        raise ValueError(f"cat: variable {name!r} has a level without a name, or a probability that is none")
    levels, code = np.unique(val.astype(str), return_inverse=True)
    total = np.bincount(leaf, prob, n)
    if np.abs(total - 1.0).max() > TOLERANCE:
        raise ValueError(
            f"cat: probabilities of variable {name!r} sum to {total[np.argmax(np.abs(total - 1.0))]:g} in a leaf"
        )
    order = np.lexsort((code, leaf))
    leaf, code, prob = leaf[order], code[order], (prob / total[leaf])[order]
    if ((np.diff(leaf) == 0) & (np.diff(code) == 0)).any():
        raise ValueError(f"cat: variable {name!r} has a level twice in a leaf")
    column = Column(name, "categorical", "string", levels=tuple(levels.tolist()))
    K = len(levels)
    if len(layout(kernel_columns(Schema((column,), "pyarrow"))).slots):
        none = np.zeros(n)
        return column, one_column(none, np.zeros(K), np.ones((1, K), bool), leaf, code, prob)
    dense = np.zeros((n, K))
    dense[leaf, code] = prob
    return column, dense


def _numbers(
    name: str, family: str, own: dict[str, np.ndarray], leaf: np.ndarray, n: int
) -> tuple[Column, tuple[int, np.ndarray]]:
    """A column of numbers, and its family and parameters a, b, lo, hi (4, n) in n leaves."""
    if len(leaf) > n:
        raise ValueError(f"cnt: variable {name!r} is in a leaf twice")
    lo, hi, mu, sigma = (own[field] for field in ("min", "max", "mu", "sigma"))
    lo, hi = np.where(np.isnan(lo), -np.inf, lo), np.where(np.isnan(hi), np.inf, hi)
    is_normal = family == "truncnorm"
    if is_normal:
        fine = (lo < hi) & np.isfinite(mu) & np.isfinite(sigma) & (sigma > 0)
    else:
        fine = (lo < hi) & np.isfinite(lo) & np.isfinite(hi)
    if not fine.all():
        k = int(np.flatnonzero(~fine)[0])
        text = f"min {lo[k]:g}, max {hi[k]:g}, mu {mu[k]:g}, sigma {sigma[k]:g}"
        raise ValueError(f"cnt: variable {name!r} in leaf {own['f_idx'][k]:g} is no {family}: {text}")
    table = np.zeros((4, n))
    if is_normal:
        table[:2, leaf] = mu, sigma
    table[2:, leaf] = lo, hi
    centre = np.clip(mu, lo, hi) if is_normal else np.concatenate([lo, hi])
    column = Column(name, "continuous", "double", minimum=float(centre.min()), maximum=float(centre.max()))
    return column, (int(NORMAL if is_normal else UNIFORM), table)


def _forest(
    schema: Schema,
    weight: np.ndarray,
    numbers: list[tuple[int, np.ndarray]],
    masses: list[WideLevels | np.ndarray],
    absent: np.ndarray,
) -> Forest:
    """The forest of trees of one leaf each."""
    n, columns = len(weight), kernel_columns(schema)
    none, ones = np.full(n, -1, np.int32), np.ones(n)
    trees = Trees(none, np.zeros(n), none, np.empty(0, np.uint64), none, none, np.arange(n, dtype=np.int32), ones,
                  np.arange(n, dtype=np.int32))  # fmt: skip
    a, b, lo, hi = np.stack([table for _, table in numbers], axis=2) if numbers else np.zeros((4, n, 0))
    family = np.array([code for code, _ in numbers], np.uint8)
    wide = [of for of in masses if isinstance(of, WideLevels)]
    narrow = [of for of in masses if not isinstance(of, WideLevels)]
    tables = ParameterTables(
        tree=np.arange(n),
        log_weight=np.log(weight / weight.sum()),
        family=np.broadcast_to(family, (n, len(family))),
        a=a, b=b, lo=lo, hi=hi,
        atom_mass=np.zeros((n, 0)),
        level_mass=np.concatenate(narrow, axis=1) if narrow else np.zeros((n, 0)),
        missing_rate=absent,
        wide=side_by_side(layout(columns), wide, n),
    )  # fmt: skip
    leaves = make_leaves(columns, tables)
    check(schema, columns, trees, leaves, has_background=False)
    return Forest(schema, columns, trees, leaves, has_background=False)
