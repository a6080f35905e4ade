"""Parameters of the R package arf, as its function ``forde`` gives them, in Parquet files."""

# p(x) is the mean over trees of the sum over leaves of cvg times a product of densities (Watson et al. 2023, equation
# 3).

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from ..data.schema import Column, Schema, kernel_columns
from ..runtime.parameters import need
from .base import Distribution
from .box_forest.box_forest import BoxForest
from .box_forest.files import check_forest
from .box_forest.leaves.derived import make_leaves
from .box_forest.leaves.levels import WideLevels, dense_levels, layout, one_column, side_by_side
from .box_forest.leaves.table import NORMAL, PIECES, UNIFORM, ParameterTables
from .box_forest.structure import Forest, Trees

_FIELDS = {
    "forest": ("f_idx", "tree", "leaf", "cvg"),
    "cnt": ("f_idx", "variable", "min", "max", "mu", "sigma"),
    "cat": ("f_idx", "variable", "val", "prob"),
    "meta": ("variable", "class", "family"),
}
"""Tables, and the fields that each must have; ``cnt`` and ``cat`` may have ``NA_share``, ``meta`` ``decimals``."""
NUMBERS = {int(NORMAL): "truncnorm", int(UNIFORM): "unif"}
"""arf's names of families of numbers."""
_LEVELS = "multinom"
"""arf's name of the family of levels."""
_TOLERANCE = 1e-6
"""By how much probabilities that should sum to 1 may not."""


# ---- A model of the parameters of R's arf.


def read_forde(folder: str | os.PathLike[str]) -> Distribution:
    """The model of FORDE parameters in Parquet files of a folder: each leaf becomes a tree, numbers are continuous."""
    tables = {name: _forde_table(Path(folder), name) for name in ("forest", "meta")}
    family = dict(zip(tables["meta"]["variable"].tolist(), tables["meta"]["family"].tolist(), strict=True))
    if len(family) < len(tables["meta"]["variable"]) or not family:
        raise ValueError("meta: expected each variable once, at least one")
    unknown = [name for name, one in family.items() if one not in (*NUMBERS.values(), _LEVELS)]
    if unknown:
        raise ValueError(f"variable {unknown[0]!r}: unknown family {family[unknown[0]]!r}")
    if _LEVELS in family.values():
        tables["cat"] = _forde_table(Path(folder), "cat")
    if set(family.values()) != {_LEVELS}:
        tables["cnt"] = _forde_table(Path(folder), "cnt")
    weight, place = _coverage(tables["forest"])
    columns, numbers, masses, absent = [], [], [], np.zeros((len(weight), len(family)))
    for j, (name, one) in enumerate(family.items()):
        which = "cat" if one == _LEVELS else "cnt"
        rows_of_column = {field: of[tables[which]["variable"] == name] for field, of in tables[which].items()}
        leaf = np.array([place.get(f, -1) for f in rows_of_column["f_idx"].tolist()], np.int64)
        if (leaf < 0).any():
            raise ValueError(
                f"{which}: variable {name!r} has a leaf {rows_of_column['f_idx'][leaf < 0][0]!r} that is not in forest"
            )
        lost = np.flatnonzero(np.bincount(leaf, minlength=len(weight)) == 0)
        if len(lost):
            raise ValueError(f"{which}: variable {name!r} is missing in leaf {list(place)[lost[0]]:g}")
        if "NA_share" in rows_of_column:
            absent[leaf, j] = _missing_share(rows_of_column["NA_share"], name)
        if which == "cat":
            column, mass = _forde_levels(name, rows_of_column, leaf, len(weight))
            masses.append(mass)
        else:
            column, number = _forde_numbers(name, one, rows_of_column, leaf, len(weight))
            numbers.append(number)
        columns.append(column)
    return BoxForest(_forest(Schema(tuple(columns), "pyarrow"), weight, numbers, masses, absent))


def _forde_table(folder: Path, name: str) -> dict[str, np.ndarray]:
    """The columns of a table: text as object arrays, numbers as float64, NaN where missing."""
    import pyarrow as pa
    from pyarrow import parquet

    path = folder / f"{name}.parquet"
    if not path.exists():
        raise FileNotFoundError(f"no file {path}; arf's parameters are {', '.join(_FIELDS)}")
    try:
        table = parquet.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{path} is not a whole parquet table: {error}") from None
    lacks = [field for field in _FIELDS[name] if field not in table.column_names]
    if lacks:
        raise ValueError(f"{name}: no field {lacks[0]!r}; it has {', '.join(table.column_names)}")
    columns = {}
    for field in (*_FIELDS[name], "NA_share"):
        if field not in table.column_names:
            continue
        is_text = field in ("variable", "val", "class", "family")
        try:
            column = table[field].cast(pa.string() if is_text else pa.float64())
        except pa.ArrowException:
            raise ValueError(
                f"{name}: field {field!r} is {table[field].type}, not {'text' if is_text else 'numbers'}"
            ) from None
        columns[field] = np.array(column.to_pylist(), object) if is_text else column.to_numpy().astype(np.float64)
    return columns


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
    if np.abs(total - 1.0).max() > _TOLERANCE:
        raise ValueError(f"forest: the leaves of a tree cover {total[np.argmax(np.abs(total - 1.0))]:g}, expected 1")
    return cvg / total[tree.ravel()] / len(trees), place


def _missing_share(share: np.ndarray, name: str) -> np.ndarray:
    """Shares of missing cells, none where there is no number."""
    share = np.where(np.isnan(share), 0.0, share)
    need(not ((share < 0) | (share > 1)).any(), f"variable {name!r}: NA_share must be from 0 to 1")
    return share


def _forde_levels(
    name: str, rows_of_column: dict[str, np.ndarray], leaf: np.ndarray, n: int
) -> tuple[Column, WideLevels | np.ndarray]:
    """A column of levels, and their masses in n leaves: dense (n, K), or as one wide column."""
    val, prob = rows_of_column["val"], rows_of_column["prob"]
    if any(v is None for v in val.tolist()) or not (prob >= 0).all():
        raise ValueError(f"cat: variable {name!r} has a level without a name, or a probability that is none")
    levels, code = np.unique(val.astype(str), return_inverse=True)
    total = np.bincount(leaf, prob, n)
    if np.abs(total - 1.0).max() > _TOLERANCE:
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


def _forde_numbers(
    name: str, family: str, rows_of_column: dict[str, np.ndarray], leaf: np.ndarray, n: int
) -> tuple[Column, tuple[int, np.ndarray]]:
    """A column of numbers, and its family and parameters a, b, lo, hi (4, n) in n leaves."""
    need(len(leaf) <= n, f"cnt: variable {name!r} is in a leaf twice")
    lo, hi, mu, sigma = (rows_of_column[field] for field in ("min", "max", "mu", "sigma"))
    lo, hi = np.where(np.isnan(lo), -np.inf, lo), np.where(np.isnan(hi), np.inf, hi)
    is_normal = family == "truncnorm"
    if is_normal:
        fine = (lo < hi) & np.isfinite(mu) & np.isfinite(sigma) & (sigma > 0)
    else:
        fine = (lo < hi) & np.isfinite(lo) & np.isfinite(hi)
    if not fine.all():
        k = int(np.flatnonzero(~fine)[0])
        text = f"min {lo[k]:g}, max {hi[k]:g}, mu {mu[k]:g}, sigma {sigma[k]:g}"
        raise ValueError(f"cnt: variable {name!r} in leaf {rows_of_column['f_idx'][k]:g} is no {family}: {text}")
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
    check_forest(schema, columns, trees, leaves, has_background=False)
    return Forest(schema, columns, trees, leaves, has_background=False)


# ---- A forest as the parameters of R's arf.


def write_forde(model: Distribution, folder: str | os.PathLike[str]) -> None:
    """Write a model to ``forest``, ``cnt``, ``cat`` and ``meta.parquet``; raises ValueError if they cannot hold it."""
    import pyarrow as pa
    from pyarrow import parquet

    forest = _plain_forest(model)
    leaves, columns, schema = forest.leaves, forest.columns, forest.schema
    L, T = len(leaves.log_weight), len(forest.trees.root)
    cvg = np.exp(leaves.log_weight)
    of_tree = np.bincount(leaves.tree, cvg, T)
    need(not np.abs(of_tree - 1.0 / T).max() > _TOLERANCE, "trees weigh differently; arf gives each the same weight")
    f_idx, first = np.arange(1, L + 1), np.searchsorted(leaves.tree, np.arange(T))
    tables: dict[str, Any] = {
        "forest": {
            "f_idx": f_idx,
            "tree": leaves.tree + 1,
            "leaf": np.arange(L) - first[leaves.tree] + 1,
            "cvg": cvg * T,
        }
    }
    meta = [_meta(forest, j) for j in range(len(schema.columns))]
    tables["meta"] = dict(zip(("variable", "class", "family", "decimals"), zip(*meta, strict=True), strict=True))
    cnt, cat = [], []
    for j, column in enumerate(schema.columns):
        slot, absent = int(columns.slot[j]), leaves.missing_rate[:, j]
        if column.is_categorical:
            mass = dense_levels(columns, leaves, slot)
            leaf, level = np.nonzero(mass > 0)
            val = [_level_in_r(column.levels[k]) for k in level.tolist()]
            cat.append((f_idx[leaf], [column.name] * len(leaf), val, mass[leaf, level], absent[leaf]))
        else:
            is_normal = leaves.family[:, slot] == NORMAL
            mu, sigma = (np.where(is_normal, of[:, slot], np.nan) for of in (leaves.a, leaves.b))
            ends = leaves.lo[:, slot], leaves.hi[:, slot]
            cnt.append((f_idx, [column.name] * L, *ends, mu, sigma, absent))
    for name, parts in (("cnt", cnt), ("cat", cat)):
        if parts:
            fields = (*_FIELDS[name], "NA_share")
            tables[name] = {
                field: np.concatenate(of) for field, of in zip(fields, zip(*parts, strict=True), strict=True)
            }
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        parquet.write_table(pa.table(table), Path(folder) / f"{name}.parquet")


def _plain_forest(model: Distribution) -> Forest:
    """The one forest of the model, which the format can hold; a ValueError names what it cannot."""
    forest = model.forest_for("a file with parameters of arf")
    need(not forest.has_background, "the background has no counterpart in arf: learn with epsilon=0")
    if (forest.leaves.family == PIECES).any():
        raise ValueError("quantile leaves, and numbers known to be in several intervals, have no counterpart in arf")
    for column in forest.schema.columns:
        what = None
        if column.atoms:
            what = f"values with a mass of their own ({', '.join(f'{value:g}' for value in column.atoms[:3])}, ...)"
        elif column.kind == "datetime":
            what = "dates"
        elif column.step > 0 and (column.decimals > 15 or abs(column.step - 10.0**-column.decimals) > 1e-12):
            what = f"a grid of {column.step:g}"
        need(not what, f"column {column.name!r}: {what} has no counterpart in arf; kinds= makes it 'continuous'")
    return forest


def _meta(forest: Forest, j: int) -> tuple[str, str, str, int | None]:
    """Variable, R's class, family and decimals of a column."""
    column, slot = forest.schema.columns[j], int(forest.columns.slot[j])
    if column.is_categorical:
        return column.name, {"boolean": "logical", "ordered": "ordered"}.get(column.kind, "factor"), _LEVELS, None
    families = np.unique(forest.leaves.family[:, slot])
    if len(families) > 1 or int(families[0]) not in NUMBERS:
        raise ValueError(
            f"column {column.name!r}: its leaves are of several families, or of one that arf does not have"
        )
    is_whole = column.kind == "integer"
    decimals = column.decimals if column.step > 0 else None
    return column.name, "integer" if is_whole else "numeric", NUMBERS[int(families[0])], decimals


def _level_in_r(level: Any) -> str:
    """A level as R writes it."""
    return {True: "TRUE", False: "FALSE"}[level] if isinstance(level, bool) else str(level)
