"""Hidden trees as named arrays, and back: what a model file holds of them.

Tables of all nodes of a tree are one array, row after row and node after node; so are the segments of all scales. Where
states are codes, in the leaves of a forest, the emissions are these codes, which are few and often the same; the forest
is there as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..hidden.check import check_hidden
from ..hidden.grown import Grown
from ..hidden.hidden_trees import HiddenTrees
from ..hidden.part import HiddenPart
from ..hidden.tree import HiddenTree
from ..table.scale.scale import Scale
from ..table.schema import Schema
from ..trees.check import TREE_FIELDS
from ..trees.nodes import Trees

_SEGMENTS = {"lo": "f8", "hi": "f8", "rate": "f8", "code": "i4", "log_mass": "f8"}
_OF_ALL = {"log_weight": "f8", "scales.n_codes": "i4", "scales.n_segments": "i4"}
_OF_TREE = {"column": "i4", "parent": "i4", "n_states": "i4", "transition": "f", "emission": "f or codes", "blank": "f"}
_TYPES = {"f": ("f4", "f8"), "f or codes": ("f4", "f8", "i4")}
_OF_ALL |= {f"scales.{name}": kind for name, kind in _SEGMENTS.items()}
_OF_GROWN = frozenset({f"grown.{name}" for name in TREE_FIELDS} | {"grown.stands_in"})


def hidden_names(about: dict[str, Any], most: int) -> frozenset[str]:
    """Names of the arrays of hidden trees that these metadata tell of; there are at most so many trees.

    Raises
    ------
    ValueError
        If the metadata are not those of hidden trees.
    """
    n = about.get("n_trees")
    if set(about) - {"has_background"} != {"kind", "n_trees"} or type(n) is not int or not 1 <= n <= most:
        raise ValueError("the metadata of hidden trees are n_trees, their number, and has_background, if in leaves")
    if type(about.get("has_background", False)) is not bool:
        raise ValueError("has_background of hidden trees in leaves is true or false")
    of_grown: frozenset[str] = _OF_GROWN if "has_background" in about else frozenset()
    return frozenset(_OF_ALL) | of_grown | {f"{t}.{name}" for t in range(n) for name in _OF_TREE}


def hidden_to_arrays(part: HiddenPart) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What the metadata say of hidden trees, and their arrays; a ValueError if they are broken."""
    hidden = part.hidden
    check_hidden(hidden)
    scales = hidden.scales
    arrays = {
        "log_weight": hidden.log_weight,
        "scales.n_codes": np.array([scale.n_codes for scale in scales], np.int32),
        "scales.n_segments": np.array([len(scale.lo) for scale in scales], np.int32),
    }
    arrays |= {f"scales.{name}": np.concatenate([getattr(scale, name) for scale in scales]) for name in _SEGMENTS}
    for t, tree in enumerate(hidden.trees):
        arrays |= {f"{t}.column": tree.column, f"{t}.parent": tree.parent}
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


def hidden_from_arrays(schema: Schema, about: dict[str, Any], arrays: dict[str, np.ndarray]) -> HiddenPart:
    """The hidden trees, every field checked; a ValueError if one is not as it must be."""
    for name, array in arrays.items():
        if name in _OF_GROWN:
            continue  # `check_hidden` knows them
        kind = _OF_ALL.get(name) or _OF_TREE[name.split(".", 1)[1]]
        allowed = _TYPES.get(kind, (kind,))
        if array.ndim != 1 or array.dtype not in [np.dtype(one) for one in allowed]:
            raise ValueError(f"{name}: expected one axis and the type {' or '.join(allowed)}")
    scales = _scales(schema, {name: arrays[name] for name in _OF_ALL})
    made: dict[tuple[int, bytes], np.ndarray] = {}
    trees = [
        _tree(
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
    return HiddenPart(hidden)


def _scales(schema: Schema, arrays: dict[str, np.ndarray]) -> tuple[Scale, ...]:
    d, n_codes, size = len(schema.columns), arrays["scales.n_codes"], arrays["scales.n_segments"]
    if len(n_codes) != d or len(size) != d or (n_codes < 1).any() or (size < 1).any():
        raise ValueError(f"scales: n_codes and n_segments must be {d} numbers, at least 1")
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


def _tree(
    arrays: dict[str, np.ndarray], n_codes: list[int], what: str, made: dict[tuple[int, bytes], np.ndarray]
) -> HiddenTree:
    """One tree; tables that pick codes are taken from those ``made`` for other trees, where these have them."""
    column, parent, H = arrays["column"], arrays["parent"], arrays["n_states"].tolist()
    m = len(H)
    if m == 0 or len(column) != m or len(parent) != m or min(H) < 1:
        raise ValueError(f"{what}: column, parent and n_states must have an entry a node, n_states at least 1")
    if (column < -1).any() or (column >= len(n_codes)).any():
        raise ValueError(f"{what}: column must be from -1 to {len(n_codes) - 1}")
    if parent[0] != -1 or (parent[1:] < 0).any() or (parent[1:] >= np.arange(1, m)).any():
        raise ValueError(f"{what}: parents must come before their children, and there is one root")
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
    return HiddenTree(column, parent, transition, emission, blank)


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
    if sum(sizes) != len(flat):
        raise ValueError(f"{what} has {len(flat)} entries, expected {sum(sizes)}")
    return np.split(flat, np.cumsum(sizes)[:-1])
