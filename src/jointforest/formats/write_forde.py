"""A forest as the parameters of R's arf."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from ..forest.forest import Forest
from ..forest.part import ForestPart
from ..leaves.levels.masses import dense_levels
from ..leaves.table import NORMAL
from ..model.model import Model
from .forde import FIELDS, LEVELS, NUMBERS, TOLERANCE


def write_forde(model: Model, folder: str | os.PathLike[str]) -> None:
    """Write the parameters of a model to ``forest``, ``cnt``, ``cat`` and ``meta.parquet`` in a folder.

    Raises
    ------
    ValueError
        If the model has what these parameters cannot say; the message names it.
    """
    import pyarrow as pa
    from pyarrow import parquet

    forest = _plain_forest(model)
    leaves, columns, schema = forest.leaves, forest.columns, forest.schema
    L, T = len(leaves.log_weight), len(forest.trees.root)
    cvg = np.exp(leaves.log_weight)
    of_tree = np.bincount(leaves.tree[:L], cvg, T)
    if np.abs(of_tree - 1.0 / T).max() > TOLERANCE:
        raise ValueError("trees weigh differently; arf gives each the same weight")
    f_idx, first = np.arange(1, L + 1), np.searchsorted(leaves.tree[:L], np.arange(T))
    tables: dict[str, Any] = {
        "forest": {
            "f_idx": f_idx,
            "tree": leaves.tree[:L] + 1,
            "leaf": np.arange(L) - first[leaves.tree[:L]] + 1,
            "cvg": cvg * T,
        }
    }
    meta = [_meta(forest, j) for j in range(len(schema.columns))]
    tables["meta"] = dict(zip(("variable", "class", "family", "decimals"), zip(*meta, strict=True), strict=True))
    cnt, cat = [], []
    for j, column in enumerate(schema.columns):
        slot, absent = int(columns.slot[j]), leaves.missing_rate[:, j]
        if column.is_categorical:
            mass = dense_levels(columns, leaves, slot)[:L]
            leaf, level = np.nonzero(mass > 0)
            val = [_text(column.levels[k]) for k in level.tolist()]
            cat.append((f_idx[leaf], [column.name] * len(leaf), val, mass[leaf, level], absent[leaf]))
        else:
            is_normal = leaves.family[:L, slot] == NORMAL
            mu, sigma = (np.where(is_normal, of[:L, slot], np.nan) for of in (leaves.a, leaves.b))
            ends = leaves.lo[:L, slot], leaves.hi[:L, slot]
            cnt.append((f_idx, [column.name] * L, *ends, mu, sigma, absent))
    for name, parts in (("cnt", cnt), ("cat", cat)):
        if parts:
            fields = (*FIELDS[name], "NA_share")
            tables[name] = {
                field: np.concatenate(of) for field, of in zip(fields, zip(*parts, strict=True), strict=True)
            }
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        parquet.write_table(pa.table(table), Path(folder) / f"{name}.parquet")


def _plain_forest(model: Model) -> Forest:
    """The one forest of the model, all of which can be said; a ValueError names what cannot."""
    part = model.parts[0]
    if len(model.parts) > 1 or not isinstance(part, ForestPart):
        raise ValueError("only one forest can be written as parameters of arf, no mixture and no hidden trees")
    forest = part.forest
    if forest.has_background:
        raise ValueError("the background has no counterpart in arf: learn with epsilon=0")
    if len(forest.leaves.node_kind):
        raise ValueError("leaves of dependent columns, or quantile leaves, have no counterpart in arf: leaf='normal'")
    for column in forest.schema.columns:
        what = None
        if column.atoms:
            what = f"values with a mass of their own ({', '.join(f'{value:g}' for value in column.atoms[:3])}, ...)"
        elif column.kind == "datetime":
            what = "dates"
        elif column.step > 0 and (column.decimals > 15 or abs(column.step - 10.0**-column.decimals) > 1e-12):
            what = f"a grid of {column.step:g}"
        if what:
            raise ValueError(f"column {column.name!r}: {what} has no counterpart in arf; kinds= makes it 'continuous'")
    return forest


def _meta(forest: Forest, j: int) -> tuple[str, str, str, int | None]:
    """Variable, R's class, family and decimals of a column."""
    column, slot = forest.schema.columns[j], int(forest.columns.slot[j])
    if column.is_categorical:
        return column.name, {"boolean": "logical", "ordered": "ordered"}.get(column.kind, "factor"), LEVELS, None
    found = np.unique(forest.leaves.family[: len(forest.leaves.log_weight), slot])
    if len(found) > 1 or int(found[0]) not in NUMBERS:
        raise ValueError(
            f"column {column.name!r}: its leaves are of several families, or of one that arf does not have"
        )
    is_whole = column.kind == "integer"
    decimals = column.decimals if column.step > 0 else None
    return column.name, "integer" if is_whole else "numeric", NUMBERS[int(found[0])], decimals


def _text(level: Any) -> str:
    """A level as R writes it."""
    return {True: "TRUE", False: "FALSE"}[level] if isinstance(level, bool) else str(level)
