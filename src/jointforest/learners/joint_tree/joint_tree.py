"""Joint probability trees: one tree split on all columns at once, and forests of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np

from ...data.evidence import build
from ...data.schema import Schema
from ...evaluation.columns_and_pairs import LostPair, lost_pairs
from ...models.base import Distribution
from ...models.box_forest.box_forest import BoxForest
from ...runtime.parameters import FLAG, Number, parameter
from ...runtime.threads import map_ordered
from .. import base
from ..batches.fill import Sizes, Structure
from ..batches.sample import MOST_ROWS, Sampled
from ..chow_liu_leaves.constants import FIXED as CHOW_LIU
from ..chow_liu_leaves.learn import CodedRows, chow_liu_part, chow_liu_tree, fill_chow_liu, on_own_scales
from ..growing.grow import RankTree, rank
from ..growing.grow_kernels import ENTROPY, GINI
from ..leaf_fitting.densities import AssignedRows, assign_rows, learn_densities
from ..leaf_fitting.fit import LEAF_DENSITIES, Settings
from .constants import FIXED
from .grow import JointSettings, grow_joint, joint_rows, with_targets

CRITERIA = {"entropy": ENTROPY, "gini": GINI}
INDEPENDENT, BY_COLUMNS, BY_RANKS = "independent", "by columns", "by conditional ranks"
"""Ways to learn: leaves of independent columns; Chow-Liu leaves, splits judged by whole columns, or by what such leaves
do not know."""
CHOW_LIU_WAYS = (BY_COLUMNS, BY_RANKS)
ALL_WAYS = (*CHOW_LIU_WAYS, INDEPENDENT)


@dataclass(eq=False, repr=False)
class JointTree(base.TableLearner):
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
        relative reduction of their impurity (paper, Eq. 19-20), 0 to 1. "auto": splits that chance hardly explains;
        a table of independent columns gets one leaf, at least 19 times in 20.
    max_features : "sqrt", "log2", None, int or float
        Columns tried at each node (None: all; a float: that share).
    bootstrap : bool
        Whether each tree of a forest is grown on rows drawn with replacement. A single tree takes every row once.
    leaf : "auto", "quantile", "normal", "normal_moments", "normal_mle", "uniform" or "chow_liu"
        Density in a leaf. "auto": "quantile", but "chow_liu" where the first tree would lose the dependence of two
        columns, as `LostDependenceWarning` reports it, unless quantile leaves validate better.
        "quantile": independent columns, of numbers a piecewise-linear CDF learned from the leaf's rows (paper, section
        3). The others, a truncated normal or uniform density of numbers, and "chow_liu", columns that depend on each
        other, in hidden trees: `AdversarialForest` describes them; splits are then judged by what such leaves would
        not know, if that raises the validation log-likelihood. See ``docs/concepts/joint-tree.md``.
    quantile_epsilon, epsilon, kinds, n_jobs, random_state
        As of `AdversarialForest`.

    Attributes
    ----------
    joint_ : Joint
    feature_names_in_ : ndarray of str, only if fitted on a frame
    n_features_in_ : int

    Examples
    --------
    >>> tree = jf.JointTree(min_samples_leaf=0.05, random_state=0).fit(jf.datasets.load_penguins())
    >>> gentoo = tree.joint_.given(species="Gentoo")
    >>> round(gentoo.mean("flipper_length_mm") / 10), round(gentoo.proba("island")["Biscoe"], 1)
    (22, 1.0)
    """

    n_estimators: int = parameter(1, Number(1, whole=True))
    _: KW_ONLY
    targets: Sequence[str] | None = None
    features: Sequence[str] | None = None
    splitters: Mapping[str, Sequence[str]] | None = None
    criterion: str = parameter("entropy", *CRITERIA)
    min_samples_leaf: int | float = 0.01
    max_depth: int | None = parameter(None, Number(1, whole=True), None)
    max_leaf_nodes: int | None = parameter(None, Number(2, whole=True), None)
    min_impurity_decrease: str | float = parameter("auto", "auto", Number(0, 1))
    max_features: str | int | float | None = parameter(None, *base.MAX_FEATURES)
    bootstrap: bool = parameter(True, *FLAG)
    leaf: str = parameter("auto", "auto", *LEAF_DENSITIES, "chow_liu")
    quantile_epsilon: float = parameter(0.01, Number(1e-6, 1))
    epsilon: float = parameter(1e-3, Number(0, 0.5))
    kinds: dict[str, Any] | None = None
    n_jobs: int | None = -1
    random_state: Any = None

    def _check(self) -> None:
        super()._check()
        base.fewest_rows(self.min_samples_leaf, 1)

    def _learn(self, rows: base.TableRows, weight: np.ndarray | None, seed: int) -> Distribution:
        least = base.fewest_rows(self.min_samples_leaf, len(rows.X))
        way = self._preferred(CHOW_LIU_WAYS, rows, weight, seed, least) if self.leaf == "chow_liu" else INDEPENDENT
        return self._made(way, rows, weight, seed, self.n_estimators, least)

    def _learn_and_compare(
        self, rows: base.TableRows, weight: np.ndarray | None, seed: int
    ) -> tuple[Distribution, list[LostPair]]:
        if self.leaf != "auto":
            return super()._learn_and_compare(rows, weight, seed)
        least = base.fewest_rows(self.min_samples_leaf, len(rows.X))
        first = self._made(INDEPENDENT, rows, weight, seed, 1, least)
        lost = lost_pairs(first, rows.X, weight)
        way = self._preferred(ALL_WAYS, rows, weight, seed, least) if lost else INDEPENDENT
        if way == INDEPENDENT and self.n_estimators == 1:
            return first, lost
        model = self._made(way, rows, weight, seed, self.n_estimators, least)
        return model, lost_pairs(model, rows.X, weight)

    def _learn_batches(self, sampled: Sampled, rows: base.TableRows, seed: int) -> Distribution:
        weight, least = sampled.weight, self._least_of_sample(rows, sampled.sample.n)
        way = INDEPENDENT
        if self.leaf == "chow_liu":
            way = self._preferred(CHOW_LIU_WAYS, rows, weight, seed, least)
        elif self.leaf == "auto":
            first = self._made(INDEPENDENT, rows, weight, seed, 1, least)
            if lost_pairs(first, rows.X, weight):
                way = self._preferred(ALL_WAYS, rows, weight, seed, least)
        if way == INDEPENDENT:
            return super()._learn_batches(sampled, rows, seed)
        table, assigned = self._grow_on_codes(way, rows, weight, seed, self.n_estimators, least)
        return fill_chow_liu(sampled, table, assigned.trees, seed, self.epsilon)

    def _preferred(
        self, ways: Sequence[str], rows: base.TableRows, weight: np.ndarray | None, seed: int, least: float
    ) -> str:
        """The way to learn with so many rows in a leaf that held-out rows prefer, on trial; the first where rows are
        few."""
        kept, held = base.trial_rows(len(rows.X), seed)
        if len(held) < FIXED.trial_fewest_rows:
            return ways[0]
        few, of_kept = min(self.n_estimators, FIXED.trial_trees), None if weight is None else weight[kept]
        least *= len(kept) / len(rows.X)
        tested, of_held = build(rows.schema, rows.X[held]), None if weight is None else weight[held]
        log_densities = [
            self._made(way, rows.take(kept), of_kept, seed, few, least).log_density(tested) for way in ways
        ]
        return ways[int(np.argmax([np.average(one, weights=of_held) for one in log_densities]))]

    def _made(
        self, way: str, rows: base.TableRows, weight: np.ndarray | None, seed: int, n_trees: int, least: float
    ) -> Distribution:
        """The first trees, with so many rows in a leaf."""
        if way != INDEPENDENT:
            table, assigned = self._grow_on_codes(way, rows, weight, seed, n_trees, least)
            return chow_liu_part(table, assigned, self.epsilon)
        assigned = self._grow(rows, weight, seed, n_trees, least)
        settings = self._leaf_settings()
        return BoxForest(learn_densities(rows.schema, rows.columns, rows.cells, assigned, settings, self.epsilon))

    def _grow_on_codes(
        self, way: str, rows: base.TableRows, weight: np.ndarray | None, seed: int, n_trees: int, least: float
    ) -> tuple[CodedRows, AssignedRows]:
        """The first trees for Chow-Liu leaves, and the codes that they are grown on."""
        table = on_own_scales(rows, weight)
        more = conditional_ranks(table, weight, seed) if way == BY_RANKS else None
        return table, self._grow(table.rows, weight, seed, n_trees, least, more)

    def _sampled_rows(self) -> int:
        return MOST_ROWS

    def _least_of_sample(self, rows: base.TableRows, n: int) -> float:
        """Fewest rows in a leaf, of a sample whose table of n fills it."""
        return max(base.fewest_rows(self.min_samples_leaf, n) * len(rows.X) / n, 1.0)

    def _structure(self, rows: base.TableRows, n: int, weight: np.ndarray | None, seed: int, sizes: Sizes) -> Structure:
        assigned = self._grow(rows, weight, seed, self.n_estimators, self._least_of_sample(rows, n))
        settings = self._leaf_settings()
        return Structure(rows.schema, rows.columns, rows.cells, assigned, settings, None, seed, first=rows.first)

    def _leaf_settings(self) -> Settings:
        """Densities of leaves of independent columns; of "auto" where nothing is lost."""
        return Settings(leaf="quantile" if self.leaf == "auto" else self.leaf, quantile_epsilon=self.quantile_epsilon)

    def _grow(
        self,
        rows: base.TableRows,
        of_rows: np.ndarray | None,
        seed: int,
        n_trees: int,
        least: float,
        more: ConditionalRanks | None = None,
    ) -> AssignedRows:
        """The first trees of the forest, with so many rows in a leaf, and where the rows end in them. ``more`` are
        targets in the place of the columns."""
        schema, columns, cells = rows.schema, rows.columns, rows.filled
        judges = judging(schema, self.targets, self.features, self.splitters)
        n = len(cells)
        base.warn_leaf_size(least, n)
        settings = JointSettings(
            criterion=CRITERIA[self.criterion],
            min_weight=least,
            max_depth=self.max_depth,
            max_leaf_nodes=self.max_leaf_nodes,
            min_impurity_decrease=None if isinstance(self.min_impurity_decrease, str) else self.min_impurity_decrease,
            max_features=base.count_features(self.max_features, max(int(judges.any(axis=1).sum()), 1)),
        )
        ranks = rank(columns, cells)
        is_ordered = np.array([c.kind == "ordered" for c in schema.columns], dtype=np.uint8)
        data = joint_rows(columns, is_ordered, ranks, cells)
        if more is not None:
            data = with_targets(data, more.values)
            judges = np.concatenate([np.zeros_like(judges), more.judges & judges[:, more.column]], axis=1)
        is_forest = self.n_estimators > 1

        def one(t: int) -> tuple[RankTree, np.ndarray, np.ndarray]:
            weight = base.draw_bootstrap(n, n, True, seed, t) if is_forest and self.bootstrap else np.ones(n)
            weight = weight if of_rows is None else weight * of_rows
            tree, node = grow_joint(data, ranks, weight, judges, settings, seed, t)
            return tree, node, weight

        grown = list(map_ordered(one, [(t,) for t in range(n_trees)], "growing trees"))
        return assign_rows(columns, ranks, *zip(*grown, strict=True))


def judging(
    schema: Schema,
    targets: Sequence[str] | None,
    features: Sequence[str] | None,
    splitters: Mapping[str, Sequence[str]] | None,
) -> np.ndarray:
    """Which split columns j are judged by which targets k: bool (d, d); no column judges itself. Raises ValueError if a
    name is no column, or stands twice; if ``splitters`` names what is no target or no feature; or if no column is left
    that may split another."""
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


# ---- Conditional ranks of each column given a neighbour in the Chow-Liu tree of the table: targets of joint trees.
# ---- Leaves that hold a Chow-Liu tree model the dependence of neighbours, so a split is worth only what it adds to
# ---- that. If the tree were all there is to the table, a column would be independent of a further one given its
# ---- neighbour on the way there; so a split by the further one is judged by what that neighbour leaves of the column.


class ConditionalRanks(NamedTuple):
    """Targets that are no columns of the table.

    values : float64 array (n, q). Ranks in (0, 1), evenly spread over the rows that have the neighbour's code; NaN
        where the column is missing.
    column : int array (q,). Whose rest it is.
    judges : bool array (d, q). Whether a split by column j is judged by it.
    """

    values: np.ndarray
    column: np.ndarray
    judges: np.ndarray


def conditional_ranks(table: CodedRows, weight: np.ndarray | None, seed: int) -> ConditionalRanks:
    """The conditional ranks of each column given each of its neighbours, from rows of weights (n,) or None."""
    n, d = table.codes.shape
    n_codes = np.array([scale.n_codes for scale in table.scales])
    is_ordered = np.array([not column.is_categorical for column in table.schema.columns])
    near = _neighbours(*chow_liu_tree(table.codes, n_codes, is_ordered))
    weight = np.ones(n) if weight is None else weight
    values, column, judges = [np.empty((n, 0))], [], []
    for k in range(d):
        toward = _first_steps(near, k)
        for m in near[k]:
            code = table.codes[:, m]
            for t, x in enumerate(_targets(table.rows.filled[:, k], int(n_codes[k]), bool(is_ordered[k]))):
                if _unexplained_share(x, code, weight) > CHOW_LIU.least_left:
                    values.append(_ranks(x, code, weight, np.random.default_rng([seed, k, m, t]))[:, None])
                    column.append(k)
                    judges.append(toward == m)
    return ConditionalRanks(
        np.concatenate(values, axis=1), np.array(column, int), np.array(judges, bool).reshape(-1, d).T
    )


def _neighbours(order: np.ndarray, parent: np.ndarray) -> list[list[int]]:
    """Columns next to each column of a tree."""
    near: list[list[int]] = [[] for _ in order]
    for k, above in enumerate(parent.tolist()):
        if above >= 0:
            near[order[k]].append(int(order[above]))
            near[order[above]].append(int(order[k]))
    return near


def _first_steps(near: list[list[int]], k: int) -> np.ndarray:
    """The neighbour of column k on the way to each column, (d,); -1 of k itself."""
    step = np.full(len(near), -1)
    for m in near[k]:
        reached = [(m, k)]
        for here, before in reached:
            step[here] = m
            reached += [(further, here) for further in near[here] if further != before]
    return step


def _targets(code: np.ndarray, n_codes: int, is_ordered: bool) -> list[np.ndarray]:
    """What is predicted of a column's codes (n,), NaN where missing: the code, or whether it is some level."""
    if is_ordered:
        return [code]
    count = np.bincount(code[~np.isnan(code)].astype(int), minlength=n_codes)
    common = np.argsort(-count, kind="stable")[: min(CHOW_LIU.target_levels, max(n_codes - 1, 1))]
    return [np.where(np.isnan(code), np.nan, code == level) for level in common]


def _unexplained_share(x: np.ndarray, code: np.ndarray, weight: np.ndarray) -> float:
    """Share of the variance of x (n,) that a neighbour's codes leave; 0 of a constant."""
    known = ~np.isnan(x) & (weight > 0.0)
    if not known.any():
        return 0.0
    x, code, weight = x[known], code[known], weight[known]
    x = x - np.average(x, weights=weight)
    mean = np.bincount(code, weight * x) / np.maximum(np.bincount(code, weight), 1e-300)
    of_all = weight @ x**2
    return float(weight @ (x - mean[code]) ** 2 / of_all) if of_all > 0.0 else 0.0


def _ranks(x: np.ndarray, code: np.ndarray, weight: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rank of each x (n,) among the rows with its code, by weight, in (0, 1), ties at random; NaN where missing."""
    # So the rest is independent of the neighbour, in its mean and in its spread; the noise test counts on both.
    known = np.flatnonzero(~np.isnan(x) & (weight > 0.0))
    known = known[np.lexsort((rng.random(len(known)), x[known], code[known]))]
    ends = np.cumsum(weight[known])
    first = np.searchsorted(code[known], code[known])
    last = np.searchsorted(code[known], code[known], side="right") - 1
    below = (ends - weight[known])[first]
    out = np.full(len(x), np.nan)
    out[known] = (ends - 0.5 * weight[known] - below) / (ends[last] - below)
    return out
