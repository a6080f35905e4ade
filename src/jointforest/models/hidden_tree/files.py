"""Hidden trees as named arrays, and back: what a model file holds of them."""

# Tables of all nodes of a tree are one array, node after node; so are the segments of all scales. In the leaves of a
# forest, where states are codes, the codes replace the emissions.

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...data.discretization.check import check_scale
from ...data.discretization.discretizer import Scale
from ...data.schema import Schema, kernel_columns
from ...runtime.arrays import Field, check_arrays
from ...runtime.parameters import need
from ..box_forest.files import TREE_FIELDS, check_trees
from ..box_forest.structure import Trees
from .hidden_trees import Grown, HiddenTrees, TreeTables

# ---- What must be true of hidden trees that come from a file.

_SUM_ERROR = 1e-4
"""Most that a row of a table may be off 1: what float32 leaves of a sum of thousands of entries, with room."""


def check_hidden(hidden: HiddenTrees) -> None:
    """Raise ValueError, which names tree and field, unless the fields satisfy `HiddenTrees` and `TreeTables`."""
    columns = hidden.schema.columns
    need(len(hidden.scales) == len(columns), f"hidden trees: {len(hidden.scales)} scales for {len(columns)} columns")
    for scale, column in zip(hidden.scales, columns, strict=True):
        check_scale(scale, column)
    check_tree_weights(hidden.log_weight, len(hidden.trees), "hidden trees")
    for t, tree in enumerate(hidden.trees):
        what = f"hidden tree {t}"
        check_arrays(f"{what}: ", vars(tree), _OF_NODES)
        _check_shape(tree.column, tree.parent, len(columns), what)
        _check_tables(tree, [scale.n_codes for scale in hidden.scales], what)
        for j, scale in enumerate(hidden.scales):
            if tree.emission[tree.node[j]][:, np.isneginf(scale.log_code)].any():
                raise ValueError(f"{what}: column {columns[j].name!r} has a code that its scale has nothing of")
    if hidden.grown is not None:
        check_trees(kernel_columns(hidden.schema), hidden.grown.trees, hidden.grown.has_background)
        _check_leaves(hidden.grown, len(hidden.trees))


def _check_leaves(grown: Grown, n: int) -> None:
    """Each hidden tree has a leaf of its own, rising."""
    leaf, n_leaves = grown.leaf, int((grown.trees.leaf >= 0).sum())
    check_arrays("hidden trees: ", {"stands_in": leaf}, {"stands_in": Field("i4", "n", 0)}, n=n)
    if (np.diff(leaf) <= 0).any() or leaf[-1] >= n_leaves:
        raise ValueError(f"hidden trees: the leaves that they stand in must rise, from 0 to {n_leaves - 1}")
    if grown.has_background and leaf[-1] != n_leaves - 1:
        raise ValueError("hidden trees: the last one must stand in the background")


def check_tree_weights(log_weight: np.ndarray, n: int, what: str) -> None:
    """Raise ValueError unless there are n logarithms of weights that sum to 1."""
    check_arrays(f"{what}: ", {"log_weight": log_weight}, {"log_weight": Field("f8", "n", -np.inf, 1e-9)}, n=n)
    need(abs(np.exp(log_weight).sum() - 1.0) <= 1e-6, f"{what}: weights must sum to 1")


def _check_shape(column: np.ndarray, parent: np.ndarray, d: int, what: str) -> None:
    """Parents before their children, each column once."""
    need(len(parent) > 0 and parent[0] == -1, f"{what}: node 0 must be the root, with parent -1")
    if np.any(parent[1:] < 0) or np.any(parent[1:] >= np.arange(1, len(parent))):
        raise ValueError(f"{what}: parents must come before their children, and there is one root")
    if not np.array_equal(np.sort(column[column != -1]), np.arange(d)):
        raise ValueError(f"{what}: each of the {d} columns must have one node")


def _check_tables(tree: TreeTables, n_codes: list[int], what: str) -> None:
    """Shapes that fit each other, one type, shares that sum to 1."""
    m = len(tree.parent)
    if len(tree.transition) != m or len(tree.emission) != m or len(tree.blank) not in (0, m):
        raise ValueError(f"{what}: expected one table of each kind for each of {m} nodes")
    dtype = tree.transition[0].dtype
    need(dtype in (np.float32, np.float64), f"{what}: tables must be float32 or float64, got {dtype}")
    above = 1
    for k, j in enumerate(tree.column.tolist()):
        table = tree.transition[k]
        if k:
            above = tree.transition[tree.parent[k]].shape[1]
        states = table.shape[1] if table.ndim == 2 else 0
        _check_shares(table, (above, max(states, 1)), dtype, f"{what}, node {k}: transition")
        if j >= 0:
            _check_shares(tree.emission[k], (states, n_codes[j]), dtype, f"{what}, node {k}: emission")
        elif tree.emission[k].shape != (states, 0) or tree.emission[k].dtype != dtype:
            raise ValueError(f"{what}, node {k}: emission of a node without a column must have the shape ({states}, 0)")
        if tree.blank:
            blank = tree.blank[k]
            if blank.shape != (states,) or blank.dtype != dtype or not ((blank >= 0.0) & (blank <= 1.0)).all():
                raise ValueError(f"{what}, node {k}: blank must be {states} shares from 0 to 1, {dtype}")
    at = tree.missing_at
    if len(at) not in (0, m) or (at >= m).any():
        raise ValueError(f"{what}: missing_at must be empty, or name a node from 0 to {m - 1} for each node")


def _check_shares(table: np.ndarray, shape: tuple[int, int], dtype: np.dtype, what: str) -> None:
    if table.shape != shape or table.dtype != dtype:
        raise ValueError(f"{what} must be {dtype} of shape {shape}, got {table.dtype} of shape {table.shape}")
    need((table >= 0.0).all(), f"{what} has an entry below 0 or NaN")
    total = table.sum(axis=1, dtype=np.float64)
    need((np.abs(total - 1.0) <= _SUM_ERROR).all(), f"{what}: rows must sum to 1")


_SEGMENTS = {"lo": "f8", "hi": "f8", "rate": "f8", "code": "i4", "log_mass": "f8"}
_OF_ALL = {"log_weight": Field("f8", "n"), "scales.n_codes": Field("i4", "d", 1)}
_OF_ALL |= {"scales.n_segments": Field("i4", "d", 1)}
_OF_ALL |= {f"scales.{name}": Field(kind, "segments") for name, kind in _SEGMENTS.items()}
_OF_NODES = {"column": Field("i4", "m", -1), "parent": Field("i4", "m", -1), "missing_at": Field("i4", "at", 0)}
_OF_TREE = _OF_NODES | {"n_states": Field("i4", "m", 1), "transition": Field("f4 f8", "entries"),
                        "emission": Field("f4 f8 i4", "codes"), "blank": Field("f4 f8", "shares")}  # fmt: skip
_OF_GROWN = frozenset({f"grown.{name}" for name in TREE_FIELDS} | {"grown.stands_in"})


def hidden_names(about: dict[str, Any], most: int) -> frozenset[str]:
    """Names of the arrays of hidden trees by their metadata; raises ValueError if these are not valid."""
    n = about.get("n_trees")
    if set(about) - {"has_background"} != {"kind", "n_trees"} or type(n) is not int or not 1 <= n <= most:
        raise ValueError("the metadata of hidden trees are n_trees, their number, and has_background, if in leaves")
    if type(about.get("has_background", False)) is not bool:
        raise ValueError("has_background of hidden trees in leaves is true or false")
    of_grown: frozenset[str] = _OF_GROWN if "has_background" in about else frozenset()
    return frozenset(_OF_ALL) | of_grown | {f"{t}.{name}" for t in range(n) for name in _OF_TREE}


def hidden_to_arrays(hidden: HiddenTrees) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The metadata of hidden trees, and their arrays; a ValueError if they are broken."""
    check_hidden(hidden)
    scales = hidden.scales
    arrays = {
        "log_weight": hidden.log_weight,
        "scales.n_codes": np.array([scale.n_codes for scale in scales], np.int32),
        "scales.n_segments": np.array([len(scale.lo) for scale in scales], np.int32),
    }
    arrays |= {f"scales.{name}": np.concatenate([getattr(scale, name) for scale in scales]) for name in _SEGMENTS}
    for t, tree in enumerate(hidden.trees):
        arrays |= {f"{t}.column": tree.column, f"{t}.parent": tree.parent, f"{t}.missing_at": tree.missing_at}
        arrays[f"{t}.n_states"] = tree.n_states.astype(np.int32)
        is_plain = tree.is_plain and all((table.max(axis=1) == 1.0).all() for table in tree.emission)
        if is_plain:
            picked = [codes for codes in tree.picked if codes is not None]  # all of them
            arrays[f"{t}.emission"] = np.concatenate(picked).astype(np.int32)
        for name in ("transition", "blank") if is_plain else ("transition", "emission", "blank"):
            tables = [np.empty(0, tree.dtype), *(table.reshape(-1) for table in getattr(tree, name))]
            arrays[f"{t}.{name}"] = np.concatenate(tables)
    about = {"kind": "hidden trees", "n_trees": len(hidden.trees)}
    if hidden.grown is None:
        return about, arrays
    trees = hidden.grown.trees
    arrays |= {f"grown.{name}": getattr(trees, name) for name in TREE_FIELDS}
    arrays["grown.stands_in"] = hidden.grown.leaf
    return about | {"has_background": hidden.grown.has_background}, arrays


def hidden_from_arrays(schema: Schema, about: dict[str, Any], arrays: dict[str, np.ndarray]) -> HiddenTrees:
    """The hidden trees, every field checked; a ValueError if one is not as it must be."""
    check_arrays("", arrays, _OF_ALL, d=len(schema.columns))
    scales = _scales(schema, arrays)
    made: dict[tuple[int, bytes], np.ndarray] = {}
    trees = [
        _tree_of_arrays(
            {name: arrays[f"{t}.{name}"] for name in _OF_TREE}, [scale.n_codes for scale in scales], f"tree {t}", made
        )
        for t in range(about["n_trees"])
    ]
    grown = None
    if "has_background" in about:
        boxes = Trees(**{name: arrays[f"grown.{name}"] for name in TREE_FIELDS})
        grown = Grown(boxes, arrays["grown.stands_in"], about["has_background"])
    hidden = HiddenTrees(schema, scales, tuple(trees), arrays["log_weight"], grown)
    check_hidden(hidden)
    return hidden


def _scales(schema: Schema, arrays: dict[str, np.ndarray]) -> tuple[Scale, ...]:
    n_codes, size = arrays["scales.n_codes"], arrays["scales.n_segments"]
    pieces = {name: _cut(arrays[f"scales.{name}"], size.tolist(), f"scales.{name}") for name in _SEGMENTS}
    return tuple(
        Scale(
            K,
            0.0 if column.is_categorical else column.step,
            0.0 if column.is_categorical else column.center,
            *(pieces[name][j] for name in _SEGMENTS),
        )
        for j, (column, K) in enumerate(zip(schema.columns, n_codes.tolist(), strict=True))
    )


def _tree_of_arrays(
    arrays: dict[str, np.ndarray], n_codes: list[int], what: str, made: dict[tuple[int, bytes], np.ndarray]
) -> TreeTables:
    """One tree; tables that pick codes are taken from those ``made`` for other trees, where these have them."""
    check_arrays(f"{what}: ", arrays, _OF_TREE)
    column, parent, H = arrays["column"], arrays["parent"], arrays["n_states"].tolist()
    _check_shape(column, parent, len(n_codes), what)
    above = [1] + [H[k] for k in parent[1:].tolist()]
    codes = [n_codes[j] if j >= 0 else 0 for j in column.tolist()]
    transition = _tables(arrays["transition"], above, H, f"{what}: transition")
    if arrays["emission"].dtype == np.int32:
        picked = _cut(arrays["emission"], H, f"{what}: emission")
        dtype = arrays["transition"].dtype
        emission = tuple(_picking(own, K, dtype, what, made) for own, K in zip(picked, codes, strict=True))
    else:
        emission = _tables(arrays["emission"], H, codes, f"{what}: emission")
    blank = tuple(_cut(arrays["blank"], H, f"{what}: blank")) if len(arrays["blank"]) else ()
    return TreeTables(column, parent, transition, emission, blank, arrays["missing_at"])


def _picking(
    codes: np.ndarray, K: int, dtype: np.dtype, what: str, made: dict[tuple[int, bytes], np.ndarray]
) -> np.ndarray:
    """The emission of states that are codes of a column with K codes, (H, K)."""
    if (np.diff(codes) <= 0).any() or codes[0] < 0 or codes[-1] >= K:
        raise ValueError(f"{what}: codes that are states must rise, from 0 to {K - 1}")
    key = (K, codes.tobytes())
    if key not in made or made[key].dtype != dtype:
        made[key] = np.zeros((len(codes), K), dtype)
        made[key][np.arange(len(codes)), codes] = 1.0
    return made[key]


def _tables(flat: np.ndarray, rows: Sequence[int], columns: Sequence[int], what: str) -> tuple[np.ndarray, ...]:
    """Tables of these numbers of rows and columns."""
    pieces = _cut(flat, [a * b for a, b in zip(rows, columns, strict=True)], what)
    return tuple(piece.reshape(a, b) for piece, a, b in zip(pieces, rows, columns, strict=True))


def _cut(flat: np.ndarray, sizes: Sequence[int], what: str) -> list[np.ndarray]:
    """Pieces of these sizes, which must be all of an array."""
    need(sum(sizes) == len(flat), f"{what} has {len(flat)} entries, expected {sum(sizes)}")
    return np.split(flat, np.cumsum(sizes)[:-1])
