"""Joint probability trees: one tree split on all columns at once, and forests of them."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from ..face.joint import Joint
from ..ground.threads import map_ordered, n_threads
from ..leaves.fit.fit import Settings, prepare
from ..model.model import of_forest
from ..table.columns import Columns
from ..table.frames import encode
from ..table.infer_schema import infer_schema
from ..table.schema import Schema, kernel_columns
from ..trees.grow.criterion_kernels import ENTROPY, GINI
from ..trees.grow.grow import RankTree, join
from ..trees.grow_joint.grow import JointSettings, grow_joint
from ..trees.grow_joint.row_kernels import joint_rows
from ..trees.nodes import Trees
from ..trees.ranks import rank, snap
from .adversarial.rounds import draw_rows
from .checks import check_cells, check_choice, check_number, count_features
from .densities import learn_densities

LEAVES = ("quantile", "normal", "normal_moments", "normal_mle", "uniform")
CRITERIA = {"entropy": ENTROPY, "gini": GINI}


class JointTree(BaseEstimator):
    """Learn the joint distribution of a table with a joint probability tree.

    A tree whose splits are judged on all columns at once: each split lessens the impurity of the other columns,
    variance for numbers and entropy for levels, as far as it goes, and in each leaf the columns are taken to be
    independent (Nyga, Picklum, Schierenbeck, Beetz, "Joint Probability Trees", 2023, section 3). With
    ``n_estimators`` > 1 it is a forest of such trees, each on a bootstrap of the rows, which the paper does not have.

    Parameters
    ----------
    n_estimators : int
        Number of trees. One tree can be read; a forest describes the table better.
    targets : sequence of str or None
        Columns whose impurity the splits lessen; None: all (if ``features`` are given, all others). Every column is
        part of the distribution in any case.
    features : sequence of str or None
        Columns that may split; None: all (if ``targets`` are given, all others).
    splitters : dict or None
        For a target, the columns that may split it: a split by any other column is not judged by it. Targets that are
        not named may be split by every feature.
    criterion : "entropy" or "gini"
        Impurity of categorical targets.
    min_samples_leaf : int or float
        Fewest rows of a leaf, or their share of all rows (in 0 to 1, both excluded).
    max_depth, max_leaf_nodes : int or None
        Limits of each tree; the splits that improve most rows most are made first.
    min_impurity_decrease : "auto" or float
        Smallest improvement that is worth a split: the mean, over the targets other than the split column, of the
        relative reduction of their impurity (paper, Eq. 19-20), 0 to 1. "auto": none but those that are hardly noise;
        a table of independent columns gets one leaf, at least 19 times in 20.
    max_features : "sqrt", "log2", None, int or float
        Columns tried at each node (None: all; a float: that share).
    bootstrap : bool
        Whether each tree of a forest is grown on rows drawn with replacement. A single tree takes every row once.
    leaf : "quantile", "normal", "normal_moments", "normal_mle" or "uniform"
        Density of numbers in a leaf. "quantile": a piecewise-linear CDF learned from the leaf's rows (paper, section
        3). The others: see `AdversarialForest`.
    quantile_epsilon : float
        Largest distance between the CDF of a quantile leaf and that of its rows, see `AdversarialForest`.
    epsilon : float
        Weight of the background; 0 leaves it out, and rows far from all others may then have density 0.
    kinds : dict or None
        Kinds of columns by name, where the inferred ones are not wanted, e.g. ``{"age": "continuous"}``.
    n_jobs : int or None
        Threads (-1: all cores). The result does not depend on it.
    random_state : int, RandomState or None

    Attributes
    ----------
    joint_ : Joint
        The model.
    feature_names_in_ : ndarray of str
    n_features_in_ : int

    Examples
    --------
    >>> import jointforest as jf
    >>> tree = jf.JointTree(min_samples_leaf=0.05, random_state=0).fit(jf.datasets.load_penguins())
    >>> gentoo = tree.joint_.given(species="Gentoo")
    >>> round(gentoo.mean("flipper_length_mm") / 10), round(gentoo.proba("island")["Biscoe"], 1)
    (22, 1.0)
    """

    def __init__(
        self,
        n_estimators: int = 1,
        *,
        targets: Sequence[str] | None = None,
        features: Sequence[str] | None = None,
        splitters: Mapping[str, Sequence[str]] | None = None,
        criterion: str = "entropy",
        min_samples_leaf: int | float = 0.01,
        max_depth: int | None = None,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: str | float = "auto",
        max_features: str | int | float | None = None,
        bootstrap: bool = True,
        leaf: str = "quantile",
        quantile_epsilon: float = 0.01,
        epsilon: float = 1e-3,
        kinds: dict[str, str] | None = None,
        n_jobs: int | None = -1,
        random_state: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.targets = targets
        self.features = features
        self.splitters = splitters
        self.criterion = criterion
        self.min_samples_leaf = min_samples_leaf
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.max_features = max_features
        self.bootstrap = bootstrap
        self.leaf = leaf
        self.quantile_epsilon = quantile_epsilon
        self.epsilon = epsilon
        self.kinds = kinds
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: None = None) -> JointTree:
        """Learn from a frame (pandas, polars, pyarrow) or a 2-d array; cells may be missing.

        Parameters
        ----------
        X : frame of n rows
        y : ignored

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter is out of its range, or the table cannot be used (each message names the column).
        """
        self._check()
        schema = infer_schema(X, self.kinds)
        judges = judging(schema, self.targets, self.features, self.splitters)
        columns = kernel_columns(schema)
        cells = snap(columns, encode(schema, X)[0])
        check_cells(schema.names, cells)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self.feature_names_in_ = np.array(schema.names, dtype=object)
        self.n_features_in_ = len(schema.names)
        trees, leaf_of, weight = self._grow(schema, columns, cells, judges, seed)
        table = prepare(columns, cells)
        del cells
        settings = Settings(leaf=self.leaf, quantile_epsilon=self.quantile_epsilon)
        model = learn_densities(schema, columns, table, trees, leaf_of, weight, settings, self.epsilon, self.n_jobs)
        self.joint_ = Joint(of_forest(model))
        return self

    def _grow(
        self, schema: Schema, columns: Columns, cells: np.ndarray, judges: np.ndarray, seed: int
    ) -> tuple[Trees, np.ndarray, np.ndarray]:
        """The forest, the leaf in which each row ends (T, n), and how much it counts there (T, n)."""
        n = len(cells)
        settings = JointSettings(
            criterion=CRITERIA[self.criterion],
            min_weight=count_rows(self.min_samples_leaf, n),
            max_depth=self.max_depth,
            max_leaf_nodes=self.max_leaf_nodes,
            min_impurity_decrease=None if isinstance(self.min_impurity_decrease, str) else self.min_impurity_decrease,
            max_features=count_features(self.max_features, max(int(judges.any(axis=1).sum()), 1)),
        )
        ranks = rank(columns, cells)
        is_ordered = np.array([c.kind == "ordered" for c in schema.columns], dtype=np.uint8)
        data = joint_rows(columns, is_ordered, ranks, cells)
        is_forest = self.n_estimators > 1

        def one(t: int) -> tuple[RankTree, np.ndarray, np.ndarray]:
            weight = draw_rows(n, n, True, seed, t) if is_forest and self.bootstrap else np.ones(n)
            tree, node = grow_joint(data, ranks, weight, judges, settings, seed, t, 1 if is_forest else self.n_jobs)
            return tree, node, weight

        grown = list(map_ordered(one, [(t,) for t in range(self.n_estimators)], self.n_jobs))
        rows_at = [np.bincount(node[w > 0], w[w > 0], minlength=len(tree.feature)) for tree, node, w in grown]
        trees = join(columns, ranks, [tree for tree, _, _ in grown], rows_at)
        first = np.cumsum([0] + [len(tree.feature) for tree, _, _ in grown[:-1]])
        leaf_of = [
            np.where(node >= 0, trees.leaf[node + at], -1) for (_, node, _), at in zip(grown, first, strict=True)
        ]
        return trees, np.array(leaf_of, dtype=np.int32), np.array([w for _, _, w in grown])

    def _check(self) -> None:
        """Refuse parameters out of range."""
        check_number("n_estimators", self.n_estimators, low=1, whole=True)
        check_choice("criterion", self.criterion, tuple(CRITERIA))
        count_rows(self.min_samples_leaf, 1)
        check_number("max_depth", self.max_depth, low=1, whole=True, none=True)
        check_number("max_leaf_nodes", self.max_leaf_nodes, low=2, whole=True, none=True)
        if self.min_impurity_decrease != "auto":
            check_number("min_impurity_decrease", self.min_impurity_decrease, low=0, high=1)
        check_choice("leaf", self.leaf, LEAVES)
        check_number("quantile_epsilon", self.quantile_epsilon, low=1e-6, high=1)
        check_number("epsilon", self.epsilon, low=0, high=0.5)
        n_threads(self.n_jobs)


def count_rows(min_samples_leaf: Any, n: int) -> float:
    """Fewest rows of a leaf, from a number or a share of n rows.

    Examples
    --------
    >>> count_rows(5, 1000), count_rows(0.01, 1000), count_rows(0.01, 20)
    (5.0, 10.0, 1.0)
    """
    if isinstance(min_samples_leaf, Integral):
        check_number("min_samples_leaf", min_samples_leaf, low=1, whole=True)
        return float(min_samples_leaf)
    share = float(min_samples_leaf) if isinstance(min_samples_leaf, Real) else math.nan
    if not 0 < share < 1:
        raise ValueError(f"min_samples_leaf must be a whole number >= 1 or a share in (0, 1), got {min_samples_leaf!r}")
    return float(max(1, math.ceil(share * n - 1e-9)))  # 0.07 * 100 is above 7


def judging(
    schema: Schema,
    targets: Sequence[str] | None,
    features: Sequence[str] | None,
    splitters: Mapping[str, Sequence[str]] | None,
) -> np.ndarray:
    """Which split columns j are judged by which targets k: bool (d, d); no column judges itself.

    Raises
    ------
    ValueError
        If a name is no column, or stands twice; if ``splitters`` names what is no target or no feature; if no column
        is left that may split another.

    Examples
    --------
    >>> import numpy as np
    >>> from jointforest.table.infer import infer_schema
    >>> schema = infer_schema(np.array([[1.0, 2.0, 3.0]]))
    >>> judging(schema, ["x2"], None, None).astype(int).tolist()
    [[0, 0, 1], [0, 0, 1], [0, 0, 0]]
    """
    d = len(schema.columns)
    chosen = {"targets": _members(schema, "targets", targets), "features": _members(schema, "features", features)}
    is_target, is_feature = chosen["targets"], chosen["features"]
    if is_target is None:
        is_target = np.ones(d, dtype=bool) if is_feature is None else ~is_feature
    if is_feature is None:
        is_feature = np.ones(d, dtype=bool) if targets is None else ~is_target
    judges = is_feature[:, None] & is_target[None, :]
    if splitters is not None and not isinstance(splitters, Mapping):
        raise ValueError(f"splitters must be a dict of lists of columns by target, or None; got {splitters!r}")
    for name, allowed in (splitters or {}).items():
        if not is_target[schema.index(name)]:
            raise ValueError(f"splitters: {name!r} is no target; name targets, and the columns that may split them")
        members = _members(schema, f"splitters[{name!r}]", allowed)
        if members is None:
            raise ValueError(f"splitters[{name!r}] is None; list columns, or leave {name!r} out to allow every feature")
        if (members & ~is_feature).any():
            odd = schema.names[int(np.flatnonzero(members & ~is_feature)[0])]
            raise ValueError(f"splitters[{name!r}]: column {odd!r} is not among the features")
        judges[:, schema.index(name)] &= members
    np.fill_diagonal(judges, False)
    if d > 1 and not judges.any():
        raise ValueError(
            "targets, features and splitters leave no column that may split another; "
            "let a column be a feature of a target other than itself, or leave them out"
        )
    return judges


def _members(schema: Schema, what: str, names: Sequence[str] | None) -> np.ndarray | None:
    """Which columns are named: bool (d,); None if None."""
    if names is None:
        return None
    if isinstance(names, str) or not isinstance(names, Collection) or not len(names):
        raise ValueError(f"{what} must be a list of names of columns, at least one, or None; got {names!r}")
    numbers = [schema.index(name) for name in names]
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"{what} names a column twice: {list(names)!r}")
    members = np.zeros(len(schema.columns), dtype=bool)
    members[numbers] = True
    return members
