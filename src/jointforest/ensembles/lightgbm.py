"""Models of LightGBM: float64 values, <=, sets of categories, three rules for missing values."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..runtime.parameters import need
from .table import Ensemble, Tree, join_ensemble, labels_of, model_library

# ---- LightGBM's rules for zeros: what is nearly 0 is 0, and 0 may be a missing value.

LARGEST_ZERO = float(np.float32(1e-35))
"""Numbers of at most this size are 0 to LightGBM."""
_BELOW_ZERO = float(np.nextafter(-LARGEST_ZERO, -np.inf))
_MOST_NODES = 2**20


def with_zeros(threshold: np.ndarray) -> np.ndarray:
    """Thresholds that part numbers as the given ones do once small numbers are turned into 0."""
    small = np.where(threshold >= 0, LARGEST_ZERO, _BELOW_ZERO)
    return np.where(np.abs(threshold) <= LARGEST_ZERO, small, threshold)


class _Test(NamedTuple):
    """A numeric split whose sides are a node of the old tree, or another test of the same feature."""

    threshold: float
    missing_left: bool
    left: int | _Test
    right: int | _Test


class _Reach(NamedTuple):
    """What can come to a node, of one feature: numbers in (lo, hi], and missing values or not."""

    lo: float
    hi: float
    missing: bool


_ALL = _Reach(-np.inf, np.inf, True)


def with_zeros_missing(tree: Tree, zero_is_missing: np.ndarray, library: str) -> Tree:
    """The tree in which zeros follow ``missing_left`` at the numeric splits with ``zero_is_missing``."""
    # Zeros that leave their side cut it in two parts, whose subtree then occurs twice, without what cannot be reached.
    zero_goes_left = tree.threshold >= 0
    moved = zero_is_missing & (tree.left >= 0) & (zero_goes_left != tree.missing_left)
    if not moved.any():
        return tree
    source: list[int] = []
    threshold: list[float] = []
    missing_left: list[bool] = []
    left: list[int] = []
    right: list[int] = []
    # what to place, below which new node, on its left side or not, and what can come there of each feature
    todo: list[tuple[int | _Test, int, int, bool, dict[int, _Reach]]] = [(0, 0, -1, False, {})]
    while todo:
        what, old, parent, on_left, reach = todo.pop()
        if not isinstance(what, _Test):
            old = what
        j = int(tree.feature[old])
        is_numeric = tree.left[old] >= 0 and old not in tree.left_levels
        if is_numeric:
            test = what if isinstance(what, _Test) else _test(tree, old, bool(moved[old]))
            here = reach.get(j, _ALL)
            side = _only_side(test, here)
            if side is not None:
                todo.append((side, old, parent, on_left, reach))
                continue
        new = len(source)
        if new >= _MOST_NODES:
            raise ValueError(f"{library}: zero_as_missing=True makes a tree of more than {_MOST_NODES} nodes")
        if parent >= 0:
            (left if on_left else right)[parent] = new
        source.append(old)
        left.append(-1)
        right.append(-1)
        threshold.append(test.threshold if is_numeric else 0.0)
        missing_left.append(test.missing_left if is_numeric else bool(tree.missing_left[old]))
        if is_numeric:
            low = _Reach(here.lo, test.threshold, here.missing and test.missing_left)
            high = _Reach(test.threshold, here.hi, here.missing and not test.missing_left)
            todo.append((test.right, old, new, False, {**reach, j: high}))
            todo.append((test.left, old, new, True, {**reach, j: low}))
        elif tree.left[old] >= 0:
            todo.append((int(tree.right[old]), old, new, False, reach))
            todo.append((int(tree.left[old]), old, new, True, reach))
    at = np.array(source)
    return Tree(
        feature=tree.feature[at],
        threshold=np.array(threshold),
        left=np.array(left),
        right=np.array(right),
        missing_left=np.array(missing_left),
        other_left=tree.other_left[at],
        left_levels={i: tree.left_levels[old] for i, old in enumerate(source) if old in tree.left_levels},
        value=tree.value[at],
    )


def _test(tree: Tree, node: int, moved: bool) -> _Test:
    """The split of a node, with zeros on the side of missing values if they are to be moved there."""
    threshold = float(tree.threshold[node])
    left, right = int(tree.left[node]), int(tree.right[node])
    if not moved:
        return _Test(threshold, bool(tree.missing_left[node]), left, right)
    if threshold >= 0:  # zeros go right
        above = _Test(LARGEST_ZERO, False, _Test(_BELOW_ZERO, False, left, right), left)
        return _Test(threshold, False, above, right)
    return _Test(threshold, True, left, _Test(LARGEST_ZERO, True, _Test(_BELOW_ZERO, True, right, left), right))


def _only_side(test: _Test, reach: _Reach) -> int | _Test | None:
    """The side to which all goes that can come, None if both."""
    goes_left = reach.lo < test.threshold or (reach.missing and test.missing_left)
    goes_right = reach.hi > test.threshold or (reach.missing and not test.missing_left)
    if goes_left and goes_right:
        return None
    return test.left if goes_left else test.right


_LINKS = {
    "regression": "identity",
    "regression_l1": "identity",
    "huber": "identity",
    "fair": "identity",
    "quantile": "identity",
    "mape": "identity",
    "lambdarank": "identity",
    "rank_xendcg": "identity",
    "binary": "logistic",
    "cross_entropy": "logistic",
    "poisson": "exp",
    "gamma": "exp",
    "tweedie": "exp",
    "multiclass": "softmax",
}
_CATEGORICAL, _DEFAULT_LEFT, _ZERO_IS_MISSING, _NAN_IS_MISSING = 1, 2, 4, 8  # bits of a split's decision type


def read(model: Any) -> Ensemble:
    """A LightGBM Booster or fitted estimator. Refused: linear trees, custom objectives, levels of unknown columns."""
    # Values are compared as float64, up to 1e-35 as 0; missing ones follow each split's rule. With early stopping the
    # best iteration counts. The sums of ``binary`` with ``sigmoid=s`` are s times the model's raw scores.
    library = model_library(model)
    booster = model.booster_ if hasattr(type(model), "booster_") else model  # raises NotFittedError
    text = booster.model_to_string()  # up to the best iteration
    head, *blocks = text.partition("\nend of trees")[0].split("\nTree=")
    header = _fields(head)
    link, scale = _link_and_factor(header.get("objective", ""), library)
    if hasattr(type(model), "classes_") and link not in ("logistic", "softmax"):
        raise ValueError(f"{library}: a classifier's objective {header['objective']!r} gives no probabilities")
    n_outputs = int(header["num_tree_per_iteration"])
    names = header["feature_names"].split()
    categories, codes = _lightgbm_levels(text, header["feature_infos"].split(), library)
    if "average_output" in header:
        scale /= len(blocks) // n_outputs
    return join_ensemble(
        [_grown(_fields(block), codes, i % n_outputs, n_outputs, scale, library) for i, block in enumerate(blocks)],
        base=np.zeros(n_outputs),
        link=link,
        names=None if names == [f"Column_{j}" for j in range(len(names))] else names,
        categories=categories,
        classes=_lightgbm_classes(model, header["objective"], n_outputs),
        library=library,
    )


def _fields(block: str) -> dict[str, str]:
    """The lines ``key=value`` of a block."""
    return {key: value for key, _, value in (line.partition("=") for line in block.splitlines())}


def _link_and_factor(objective: str, library: str) -> tuple[str, float]:
    """The link, and by what sums are multiplied before; an error that names what is not supported."""
    name, *parameters = objective.split() or ["custom"]
    if name == "custom":
        raise ValueError(
            f"{library} has an objective of its own, whose link is not known; train it with a built-in one"
        )
    need(name in _LINKS, f"{library}: objective {name!r} is not supported; expected one of {sorted(_LINKS)}")
    if "sqrt" in parameters:
        raise ValueError(f"{library} has reg_sqrt=True, which squares its sums; train it on the roots instead")
    sigmoid = [float(p.partition(":")[2]) for p in parameters if p.startswith("sigmoid:")]
    return _LINKS[name], sigmoid[0] if sigmoid else 1.0


def _lightgbm_classes(model: Any, objective: str, n_outputs: int) -> tuple[Any, ...] | None:
    if hasattr(type(model), "classes_"):
        return labels_of(model.classes_)
    if objective.startswith("binary"):
        return (0, 1)
    return tuple(range(n_outputs)) if n_outputs > 1 else None


def _lightgbm_levels(
    text: str, infos: Sequence[str], library: str
) -> tuple[list[tuple[Any, ...] | None], dict[int, Sequence[int]]]:
    """Levels of all features, pandas' labels or whole numbers as they are in the table; codes of categorical ones."""
    categorical = re.search(r"^\[categorical_feature: ([\d,]+)\]$", text, re.MULTILINE)
    if categorical:
        columns = sorted(int(j) for j in categorical[1].split(","))
    else:  # a model may come without its parameters; ranges of numbers are written [0:1]
        columns = [j for j, info in enumerate(infos) if info != "none" and not info.startswith("[")]
    labels = json.loads(text.rpartition("\npandas_categorical:")[2]) or []
    # a feature lists the codes that it had as 3:1:-1, where -1 stands for missing cells
    codes = {j: sorted(int(code) for code in infos[j].split(":") if code not in ("none", "-1")) for j in columns}
    categories: list[tuple[Any, ...] | None] = [None] * len(infos)
    if not labels:
        for j in columns:
            categories[j] = tuple(codes[j])
        return categories, dict(codes)
    if len(labels) != len(columns) or any(
        max(codes[j], default=-1) >= len(held) for j, held in zip(columns, labels, strict=True)
    ):
        raise ValueError(
            f"{library} was trained on {len(labels)} columns of pandas categories and splits {len(columns)} columns as "
            "levels, and does not say which belong together (ordered categories are split as numbers): train it with "
            "every column of unordered categories as a categorical feature, and with no others"
        )
    for j, held in zip(columns, labels, strict=True):
        categories[j] = tuple(held)
    return categories, {j: range(len(held)) for j, held in zip(columns, labels, strict=True)}


def _grown(
    fields: dict[str, str], codes: dict[int, Sequence[int]], output: int, n_outputs: int, scale: float, library: str
) -> Tree:
    def array(key: str, dtype: type) -> np.ndarray:
        return np.array([float(x) for x in fields.get(key, "").split()]).astype(dtype)

    if fields.get("is_linear") == "1":
        raise ValueError(f"{library} has linear models in its leaves (linear_tree=True); train it without")
    leaf_value = array("leaf_value", float)
    n_inner = len(leaf_value) - 1
    feature, threshold, kind = array("split_feature", int), array("threshold", float), array("decision_type", int)
    children = np.column_stack([array("left_child", int), array("right_child", int)]).reshape(-1, 2)
    children = np.where(children >= 0, children, n_inner + ~children)  # leaf k is written ~k
    is_set = kind & _CATEGORICAL > 0
    default_left = kind & _DEFAULT_LEFT > 0
    zero_is_missing = kind & _ZERO_IS_MISSING > 0
    has_default = zero_is_missing | (kind & _NAN_IS_MISSING > 0)
    missing_left = np.where(has_default, default_left, threshold >= 0) & ~is_set
    value = np.zeros((2 * n_inner + 1, n_outputs))
    value[n_inner:, output] = scale * leaf_value

    def padded(x: np.ndarray, fill: Any) -> np.ndarray:
        return np.append(x, np.full(n_inner + 1, fill, dtype=x.dtype))

    tree = Tree(
        feature=padded(feature, 0),
        threshold=padded(with_zeros(threshold), 0.0),
        left=padded(children[:, 0], -1),
        right=padded(children[:, 1], -1),
        missing_left=padded(missing_left, False),
        other_left=np.zeros(2 * n_inner + 1, dtype=bool),  # levels in no set go right, and missing cells too
        left_levels={},
        value=value,
    )
    words, bounds = array("cat_threshold", np.uint32), array("cat_boundaries", int)
    for node in np.flatnonzero(is_set):
        number = int(threshold[node])
        tree.left_levels[int(node)] = _has(words[bounds[number] : bounds[number + 1]], codes[feature[node]])
    return with_zeros_missing(tree, padded(zero_is_missing & ~is_set, False), library)


def _has(words: np.ndarray, codes: Sequence[int]) -> np.ndarray:
    """Whether the bit of each code is set."""
    bits = np.unpackbits(words.astype("<u4").view(np.uint8), bitorder="little")
    code = np.asarray(codes, dtype=np.int64)
    held = code < len(bits)
    held[held] = bits[code[held]] == 1
    return held
