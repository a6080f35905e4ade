"""Adversarial random forests: an unsupervised forest whose leaves hold independent columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from ...data.evidence import build
from ...data.schema import Schema
from ...models.base import Distribution
from ...models.box_forest.box_forest import BoxForest
from ...models.box_forest.posterior import LeafPosterior, oob_log_density, posterior
from ...models.box_forest.structure import Forest, Trees
from ...models.hidden_tree.hidden_tree import HiddenTree
from ...runtime.parameters import FLAG, VERBOSE, Number, parameter
from ...runtime.progress import write_line
from ...runtime.threads import map_ordered
from ..base import BOUNDS, MAX_FEATURES, PRIORS, TableLearner, count_features, draw_bootstrap, warn_leaf_size
from ..batches.fill import Sizes, Structure, leaf_sizes
from ..batches.sample import Sampled
from ..chow_liu_leaves.constants import FIXED as CHOW_LIU
from ..chow_liu_leaves.learn import chow_liu_part, fill_chow_liu, on_own_scales, trees_of_values
from ..growing.grow import GrowthSettings, Ranks, RankTree, find_leaves, grow, prune, rank
from ..leaf_fitting import densities
from ..leaf_fitting.fit import LEAF_DENSITIES, Settings, Table, TreeLeaves
from ..leaf_fitting.quantile import LeafCdfs, choose_slots, misfit_slots, n_pieces, small_enough
from ..leaf_fitting.quantile_kernels import gains_of_slot
from ..leaf_fitting.statistics_kernels import rows_by_leaf
from ..rows import TableRows
from .constants import FIXED
from .rounds_kernels import from_leaves, from_marginals


class _Grown(NamedTuple):
    """A forest, and the rows that count in its leaves.

    filled : AssignedRows. The rows that fill leaves.
    in_bag : AssignedRows or None. The rows that each tree drew; None unless they are asked for.
    drawn : bool array (T, n). Whether a tree drew a row; (T, 0) if nothing needs it.
    """

    filled: densities.AssignedRows
    in_bag: densities.AssignedRows | None
    drawn: np.ndarray


@dataclass(eq=False, repr=False)
class AdversarialForest(TableLearner):
    """Learn the joint distribution of a table with an adversarial random forest.

    Forests learn to separate real rows from synthetic ones, which are drawn in leaves of the forest before,
    until they cannot; then the columns are independent inside each leaf, and a product of one small distribution
    per column describes it (Watson, Blesch, Kapar, Wright, "Adversarial Random Forests for Density Estimation and
    Generative Modeling", AISTATS 2023, Algorithms 1 and 2).

    Parameters
    ----------
    n_estimators : int
        Number of trees. More trees give better densities; time and memory grow in proportion.
    min_samples_leaf : int
        Fewest real rows in a leaf, of all rows that fill it; leaves with fewer are pruned.
    max_features : "sqrt", "log2", None, int or float
        Columns tried at each split (None: all; a float: that share).
    max_depth : int or None
        Limit of each tree.
    max_leaf_nodes : "auto", int or None
        Most leaves of each tree; the best splits are made first. "auto": None, but 120 where ``leaf="chow_liu"``.
    bootstrap : bool
        Whether each tree is grown on rows drawn with replacement, as many as there are real and synthetic ones, or on
        0.632 of them drawn without.
    max_samples : int, float or None
        Most rows (or share of the rows) that trees are grown on, as many synthetic ones beside them; None: all. They
        are drawn at random once, for all trees; all rows of the table fill the leaves, prune them and weigh them. By
        default 200,000: see ``docs/experiments/adversarial-forest-defaults.md``.
    delta : float
        Rounds end when the out-of-bag accuracy is at most ``0.5 + delta``.
    max_iters : "auto" or int
        Most rounds after the first. "auto": 10, but 0 where ``leaf="chow_liu"``: later rounds ask which columns depend
        on each other inside a leaf, which these leaves describe.
    early_stop : bool
        End when a round's accuracy is not below that of the round before.
    leaf : "auto", "normal", "normal_moments", "normal_mle", "uniform", "quantile" or "chow_liu"
        Density in a leaf. With all but the last, columns are independent there, and numbers have one on its support.
        "auto": "normal", but "quantile" for each column that normal leaves misfit. These are columns whose rows are
        more than 0.01 away from rows drawn from the joint, in Kolmogorov distance beyond chance. If quantile leaves for
        all of them lower the validation log-likelihood, each column is tried alone, and those that raise it get them.
        No column gets them if the tables became larger than 2 GB.
        "normal": a truncated normal with the mean of the leaf's values, whose untruncated parent has their standard
        deviation. "normal_moments": the parent has their mean as well (the paper; truncation then moves the mean).
        "normal_mle": a truncated normal of maximum likelihood. "quantile": a piecewise-linear CDF, see
        ``quantile_epsilon``; ``bounds``, ``spread_rows`` and ``min_spread`` do not count.
        "chow_liu" (beyond the paper): columns depend on each other in a leaf, in a tree of pairs, on the codes of each
        column's own scale; nearer to the table than all others. ``joint_`` is then a mixture of hidden trees, one a
        leaf, and no forest of boxes: robustness, raking and refitting are refused, and ``bounds`` to
        ``quantile_epsilon`` do not count. See ``docs/concepts/adversarial-forest.md``.
    bounds : "auto", "no", "local" or "global"
        Support: the leaf's box ("no", the paper); the box with its open sides cut at the column's span ("global"); the
        span of the leaf's own values ("local"); the box, cut like "global" only on a side of the column where the
        leaves would otherwise put the mass of more than five rows beyond all data ("auto").
    smoothing : float
        Pseudo-rows added to a leaf's levels (and to its point masses): in all with the prior "marginal", for each level
        with "uniform".
    prior : "marginal" or "uniform"
        Where pseudo-rows come from: the column's own frequencies, or all levels alike (alpha in the paper).
    spread_rows : float
        Pseudo-rows with which the variance in a leaf is drawn to the column's pooled within-leaf variance (0: the
        paper).
    min_spread : float
        Smallest standard deviation in a leaf, in units of the column's.
    quantile_epsilon : float
        How closely the CDF of a quantile leaf follows that of its rows before it is given their mean and variance; of w
        rows never closer than ``0.25 / sqrt(w)`` and ``1 / w``, which is noise.
    epsilon : float
        Weight of the background; 0 leaves it out, and rows far from all others may then have density 0.
    leaf_rows : "all", "oob" or "honest"
        Rows that estimate the leaf densities: all; those each tree was not grown on; or those that take no part in
        growing, a random half at least ("honest").
    oob_score : bool
        Whether to compute ``oob_log_density_``.
    kinds : dict or None
        Kinds of columns by name, where the inferred ones are not wanted, e.g. ``{"age": "continuous"}``; cells of
        which only a range is known: see ``docs/how-to/ranges.md``.
    n_jobs : int or None
        Threads (-1: all cores). The result does not depend on it.
    random_state : int, RandomState or None
    verbose : int
        1 prints a line a round to standard error.

    Attributes
    ----------
    joint_ : Joint
    oob_accuracy_ : list of float
        Out-of-bag accuracy of each round's forest, real against synthetic, on the rows that trees are grown on. The
        last may be of the forest's first two or four trees: see ``docs/concepts/adversarial-forest.md``.
    oob_log_density_ : float64 array (n,)
        Log-density of each training row by the trees that were grown without it, their leaf densities estimated on
        the rows they were grown on. NaN for a row that every tree drew. Only with ``oob_score=True``.
    feature_names_in_ : ndarray of str, only if fitted on a frame
    n_features_in_ : int

    Examples
    --------
    >>> forest = jf.AdversarialForest(n_estimators=5, random_state=0).fit(penguins)
    >>> len(forest.joint_.sample(3, random_state=0))
    3
    """

    n_estimators: int = parameter(30, Number(1, whole=True))
    _: KW_ONLY
    min_samples_leaf: int = parameter(2, Number(1, whole=True))
    max_features: str | int | float | None = parameter("sqrt", *MAX_FEATURES)
    max_depth: int | None = parameter(None, Number(1, whole=True), None)
    max_leaf_nodes: int | str | None = parameter("auto", "auto", Number(2, whole=True), None)
    bootstrap: bool = parameter(True, *FLAG)
    max_samples: int | float | None = parameter(
        FIXED.max_samples,
        Number(1, whole=True, text="a whole number >= 1"),
        Number(0, 1, without="low", text="a share in (0, 1]"),
        None,
    )
    delta: float = parameter(0.1, Number(0, 0.5))
    max_iters: int | str = parameter("auto", "auto", Number(0, whole=True))
    early_stop: bool = parameter(True, *FLAG)
    leaf: str = parameter("auto", "auto", *LEAF_DENSITIES, "chow_liu")
    bounds: str = parameter("auto", *BOUNDS)
    smoothing: float = parameter(0.2, Number(0))
    prior: str = parameter("marginal", *PRIORS)
    spread_rows: float = parameter(2.0, Number(0))
    min_spread: float = parameter(0.01, Number(1e-9))
    quantile_epsilon: float = parameter(0.01, Number(1e-6, 1))
    epsilon: float = parameter(1e-3, Number(0, 0.5))
    leaf_rows: str = parameter("all", "all", "oob", "honest")
    oob_score: bool = parameter(False, *FLAG)
    kinds: dict[str, Any] | None = None
    n_jobs: int | None = -1
    random_state: Any = None
    verbose: int = parameter(0, *VERBOSE)

    def _check(self) -> None:
        super()._check()
        if self.oob_score and self.leaf_rows != "all":
            raise ValueError("oob_score=True needs leaf_rows='all': otherwise no tree is without a part of every row")
        if self.oob_score and self.leaf == "chow_liu":
            raise ValueError("oob_score=True needs another leaf than 'chow_liu', whose trees share the table's pairs")

    def _learn(self, rows: TableRows, weight: np.ndarray | None, seed: int) -> BoxForest | HiddenTree:
        if self.leaf == "chow_liu":
            table = on_own_scales(rows, weight)
            return chow_liu_part(table, self._grow(table.rows, weight, seed).filled, self.epsilon)
        grown = self._grow(rows, weight, seed)
        cells = rows.cells
        quantile, model, plain = self._quantile(rows, cells, grown.filled, weight, seed)
        if grown.in_bag is not None:  # before the model, where that is to come: two forests take twice the memory
            plain = None
            evidence = build(rows.schema, rows.X)
            in_bag = self._densities(rows, cells, grown.in_bag, quantile)
            self.oob_log_density_ = oob_log_density(in_bag, evidence, grown.drawn)
            del in_bag
        if model is None:
            model = self._densities(rows, cells, grown.filled, quantile, plain)
        return BoxForest(model)

    def _sampled_rows(self) -> int:
        if self.leaf_rows != "all" or self.oob_score:
            raise ValueError(
                "leaf_rows other than 'all' and oob_score=True need all rows at once, and fit_batches has a sample of "
                "them; leave these at their defaults"
            )
        most: Any = self.max_samples
        if not isinstance(most, Integral):
            raise ValueError(f"max_samples={most!r}: fit_batches keeps a sample of the rows; give a whole number")
        return int(most)

    def _learn_batches(self, sampled: Sampled, rows: TableRows, seed: int) -> Distribution:
        if self.leaf != "chow_liu":
            return super()._learn_batches(sampled, rows, seed)
        table = on_own_scales(rows, sampled.weight)

        def sizes(trees: Trees) -> np.ndarray:
            fold, sample, _, weights = sampled
            of_values = trees_of_values(table, trees)
            return leaf_sizes(fold, sample.n, rows.schema, rows.columns, seed, weights, rows.first, of_values)

        trees = self._grow(table.rows, sampled.weight, seed, sizes).filled.trees
        return fill_chow_liu(sampled, table, trees, seed, self.epsilon)

    def _structure(self, rows: TableRows, n: int, weight: np.ndarray | None, seed: int, sizes: Sizes) -> Structure:
        assigned = self._grow(rows, weight, seed, sizes).filled
        cells = rows.cells
        quantile, _, _ = self._quantile(rows, cells, assigned, weight, seed)
        settings = self._leaf_settings()
        return Structure(rows.schema, rows.columns, cells, assigned, settings, quantile, seed, first=rows.first)

    def _quantile(
        self, rows: TableRows, cells: Table, assigned: densities.AssignedRows, weight: np.ndarray | None, seed: int
    ) -> tuple[np.ndarray | None, Forest | None, list[TreeLeaves] | None]:
        """Slots that "auto" gives quantile leaves (None: as ``leaf`` says), the forest and normal trees, if known."""
        if self.leaf != "auto":
            return None, None, None
        settings = self._leaf_settings()
        plain = densities.fit_trees(rows.columns, cells, assigned, settings)
        normal = densities.as_forest(rows.schema, rows.columns, cells, assigned.trees, plain, self.epsilon)
        trial = _Trial(rows, cells, assigned, settings, weight, seed)
        misfit = misfit_slots(normal, rows.X, weight)
        slots = choose_slots(misfit, trial.fits, trial.gains, trial.weight, FIXED.trial_groups)
        return slots, None if slots.any() else normal, plain

    def _grow(self, rows: TableRows, weight: np.ndarray | None, seed: int, sizes: Sizes | None = None) -> _Grown:
        """The generator of the last round, pruned, and where the rows end in it."""
        n = len(rows.X)
        warn_leaf_size(self.min_samples_leaf, n)
        sample = take_samples(n, weight, self.leaf_rows == "honest", self.max_samples, seed)
        ranks = rank(rows.columns, rows.filled, sample.growing if sample.is_part else None)
        grow_all = len(sample.growing) == n and weight is None
        growing = ranks
        if not grow_all:
            growing = ranks._replace(codes=np.ascontiguousarray(ranks.codes[:, sample.growing]))
        settings = self._round_settings(len(sample.growing), len(rows.schema.columns))
        forest, self.oob_accuracy_ = run(rows.schema, growing, settings, seed, self._report)
        by_oob, T = self.leaf_rows == "oob", self.n_estimators
        drawn = np.zeros((T, n if by_oob or self.oob_score else 0), dtype=bool)
        if by_oob or self.oob_score:
            for drawn_rows, of_tree in zip(drawn, forest.drawn, strict=True):
                drawn_rows[sample.growing[of_tree]] = True
        used = ~drawn if by_oob else np.broadcast_to(sample.filling, (T, n))
        if not used.any(axis=1).all():
            raise ValueError(
                f"leaf_rows='oob' leaves a tree without rows: only {n} rows and every one drawn; "
                "use leaf_rows='all', or bootstrap=False"
            )

        def assigned(counts: np.ndarray) -> densities.AssignedRows:
            counted = np.multiply(counts, 1.0 if weight is None else weight)
            return densities.assign_rows(
                rows.columns, ranks, forest.trees, forest.leaf_node, np.broadcast_to(counted, (T, n))
            )

        if sizes is None:
            forest = prune_forest(forest, ranks.codes, used, self.min_samples_leaf, grow_all)
        else:
            rows_at = sizes(assigned(sample.filling).trees)
            forest = prune_by(forest, ranks.codes, rows_at, self.min_samples_leaf)
        return _Grown(assigned(used if by_oob else sample.filling), assigned(drawn) if self.oob_score else None, drawn)

    def _round_settings(self, n: int, d: int) -> RoundSettings:
        """Settings of the rounds on n real (and n synthetic) rows of d columns."""
        tree = GrowthSettings(
            max_features=count_features(self.max_features, d),
            keep_looking=False,  # as in the forests that the paper used
            # a node of twice as many rows, half of them synthetic, would have leaves of too few real rows
            min_samples_split=2 * self.min_samples_leaf + 1,
            max_depth=self.max_depth,
            max_leaf_nodes=self._leaf_nodes(),
        )
        return RoundSettings(
            n_estimators=self.n_estimators,
            tree=tree,
            bootstrap=self.bootstrap,
            n_draws=2 * n if self.bootstrap else round(FIXED.sample_share * 2 * n),
            delta=self.delta,
            max_iters=self._rounds(),
            early_stop=self.early_stop,
        )

    def _rounds(self) -> int:
        """Most rounds after the first."""
        if isinstance(self.max_iters, str):  # "auto"
            return 0 if self.leaf == "chow_liu" else FIXED.rounds
        return self.max_iters

    def _leaf_nodes(self) -> int | None:
        """Most leaves of each tree."""
        if isinstance(self.max_leaf_nodes, str):  # "auto"
            return CHOW_LIU.leaf_nodes if self.leaf == "chow_liu" else None
        return self.max_leaf_nodes

    def _densities(
        self,
        rows: TableRows,
        cells: Table,
        assigned: densities.AssignedRows,
        quantile: np.ndarray | None = None,
        plain: list[TreeLeaves] | None = None,
    ) -> Forest:
        """The forest with leaf densities estimated on the rows in them; ``quantile`` (p,) are quantile slots."""
        settings = self._leaf_settings()
        if plain is not None and quantile is not None:
            epsilon = settings.quantile_epsilon
            fitted = densities.quantile_trees(rows.columns, cells, assigned, plain, quantile, epsilon)
            return densities.as_forest(rows.schema, rows.columns, cells, assigned.trees, fitted, self.epsilon)
        return densities.learn_densities(
            rows.schema, rows.columns, cells, assigned, settings, self.epsilon, quantile=quantile
        )

    def _leaf_settings(self) -> Settings:
        """How leaf densities are estimated; with "auto", of the columns that normals fit."""
        leaf = "normal" if self.leaf == "auto" else self.leaf
        return Settings(
            leaf, self.bounds, self.smoothing, self.prior, self.spread_rows, self.min_spread, self.quantile_epsilon
        )

    def _report(self, turn: int, accuracy: float) -> None:
        """One line a round."""
        if self.verbose:
            write_line(f"round {turn}: out-of-bag accuracy {accuracy:.4f}")


# ---- The rounds (Watson et al. 2023, Algorithm 1): generate, discriminate, repeat.


class RoundSettings(NamedTuple):
    """Parameters of the rounds, as of `AdversarialForest`. Each tree draws ``n_draws`` rows."""

    n_estimators: int
    tree: GrowthSettings
    bootstrap: bool
    n_draws: int
    delta: float
    max_iters: int
    early_stop: bool


class Discriminator(NamedTuple):
    """A discriminator: its trees on ranks, and where the real rows end.

    leaf_node : int32 array (T, n). Node in which each real row ends, in each tree.
    drawn : bool array (T, n). Whether the real row was among those that tree was grown on.
    """

    trees: list[RankTree]
    leaf_node: np.ndarray
    drawn: np.ndarray


def run(
    schema: Schema, ranks: Ranks, settings: RoundSettings, seed: int, report: Callable[[int, float], None]
) -> tuple[Discriminator, list[float]]:
    """Run the rounds; return the generator and the accuracies."""
    # The rounds end when a forest has an out-of-bag accuracy of at most ``0.5 + delta``, after ``max_iters`` further
    # rounds, or (``early_stop``) when the accuracy no longer falls. If the first forest fails, or ``max_iters`` ends
    # the rounds, the generator is the latest forest. A forest that fails to separate real from synthetic rows is
    # dropped: the generator is then the forest that drew these synthetic rows. The first round sets real rows against
    # rows whose cells are drawn from each column alone; each later one against rows drawn inside the leaves of the
    # forest before.
    synthetic = np.empty_like(ranks.codes)
    from_marginals(ranks.codes, seed + 2, synthetic)
    forest, accuracy = _discriminate(schema, ranks, synthetic, settings, seed, 0)
    accuracies = [accuracy]
    report(0, accuracy)
    for turn in range(1, settings.max_iters + 1):
        if accuracies[-1] <= 0.5 + settings.delta:
            break
        _generate(forest, ranks, seed + 3 * turn + 2, synthetic)
        challenger, accuracy = _discriminate(schema, ranks, synthetic, settings, seed, turn)
        accuracies.append(accuracy)
        report(turn, accuracy)
        if accuracy <= 0.5 + settings.delta or (settings.early_stop and accuracy >= accuracies[-2]):
            break
        forest = challenger
    return forest, accuracies


def _discriminate(
    schema: Schema, ranks: Ranks, synthetic: np.ndarray, settings: RoundSettings, seed: int, turn: int
) -> tuple[Discriminator, float]:
    """Grow a forest that separates real rows (class 1) from synthetic ones; its out-of-bag accuracy."""
    # Rows that every tree drew do not count; without any other row the accuracy is 0.5. The other trees are not grown
    # if the first trees already show that the rounds end. The accuracy of votes exceeds chance by at most the square
    # root of their number times that of one vote.
    n = ranks.codes.shape[1]
    both = ranks._replace(codes=np.concatenate([ranks.codes, synthetic], axis=1))
    y = np.repeat(np.array([1, 0], dtype=np.int32), n)
    is_categorical = np.array([c.is_categorical for c in schema.columns], dtype=np.uint8)
    is_ordered = np.array([c.kind == "ordered" for c in schema.columns], dtype=np.uint8)
    first = turn * settings.n_estimators

    def one(t: int) -> tuple[RankTree, np.ndarray, np.ndarray, np.ndarray]:
        weight = draw_bootstrap(2 * n, settings.n_draws, settings.bootstrap, seed, first + t)
        how = {"seed": seed, "number": first + t}
        tree, node = grow(both, is_categorical, is_ordered, y, 2, weight, settings.tree, **how)
        of_class = [np.bincount(node[y == c], weight[y == c], len(tree.feature)) for c in (0, 1)]
        total = of_class[0] + of_class[1]
        margin = np.where(total > 0, of_class[1] / np.maximum(total, 1.0) - 0.5, 0.0)
        vote = np.where(weight == 0, margin[node], 0.0)
        return tree, node[:n], weight > 0, vote

    votes = np.zeros(2 * n)
    judged = np.zeros(2 * n, dtype=bool)
    trees: list[RankTree] = []
    nodes, drawn = [], []
    n_trees = settings.n_estimators
    ends = [k for k in FIXED.early_trees if k < n_trees and turn > 0] + [n_trees]
    for end in ends:
        batch = [(t,) for t in range(len(trees), end)]
        for tree, node, in_bag, vote in map_ordered(one, batch, "growing trees"):
            trees.append(tree)
            nodes.append(node)
            drawn.append(in_bag[:n])
            votes += vote
            judged |= ~in_bag
        right = np.where(votes == 0, 0.5, (votes > 0) == (y == 1))[judged]
        accuracy = float(right.mean()) if len(right) else 0.5
        at_most = accuracy + FIXED.early_errors * 0.5 / np.sqrt(max(len(right), 1))
        if at_most <= 0.5 + settings.delta * np.sqrt(end / n_trees):
            break
    return Discriminator(trees, np.array(nodes), np.array(drawn)), accuracy


def _generate(forest: Discriminator, ranks: Ranks, seed: int, out: np.ndarray) -> None:
    """Fill ``out`` (d, n) with rows drawn inside the leaves of the forest."""
    sizes = [len(t.feature) for t in forest.trees]
    rows = np.empty_like(forest.leaf_node)
    start = np.zeros((len(sizes), max(sizes) + 1), dtype=np.int64)
    for t, size in enumerate(sizes):
        rows[t], start[t, : size + 1] = rows_by_leaf(forest.leaf_node[t], size)
    from_leaves(ranks.codes, forest.leaf_node, rows, start, seed, out)


def prune_forest(
    forest: Discriminator, codes: np.ndarray, keep: np.ndarray, min_rows: int, has_these: bool = False
) -> Discriminator:
    """Prune each tree until ``min_rows`` of the real rows in ``keep`` (T, n) end in each leaf, and assign all rows."""

    def one(t: int) -> tuple[RankTree, np.ndarray]:
        node = forest.leaf_node[t] if has_these else None
        return densities.prune_small_leaves(forest.trees[t], codes, keep[t], min_rows, node)

    return _changed(forest, one, codes.shape[1])


def prune_by(forest: Discriminator, codes: np.ndarray, rows_at: np.ndarray, min_rows: int) -> Discriminator:
    """Prune leaves with fewer than ``min_rows`` of ``rows_at`` (L,) once, and assign all rows of ``codes`` (d, n)."""
    end = np.cumsum([(tree.left < 0).sum() for tree in forest.trees])

    def one(t: int) -> tuple[RankTree, np.ndarray]:
        tree = forest.trees[t]
        rows = np.zeros(len(tree.left), np.int64)
        is_leaf = tree.left < 0
        rows[is_leaf] = rows_at[end[t] - is_leaf.sum() : end[t]]
        pruned, _ = prune(tree, rows, min_rows)
        return pruned, find_leaves(pruned, codes)

    return _changed(forest, one, codes.shape[1])


def _changed(forest: Discriminator, one: Callable[[int], tuple[RankTree, np.ndarray]], n: int) -> Discriminator:
    """The forest with other trees, and the nodes in which n rows end in them."""
    trees, leaf_node = [], np.empty((len(forest.trees), n), dtype=np.int32)
    for t, (tree, node) in enumerate(map_ordered(one, [(t,) for t in range(len(forest.trees))], "pruning trees")):
        trees.append(tree)
        leaf_node[t] = node
    return forest._replace(trees=trees, leaf_node=leaf_node)


# ---- Which rows an adversarial forest is grown on, and which fill its leaves.


class _Samples(NamedTuple):
    """Rows of a table of n, by what they are for.

    growing : int64 array (m,). Numbers of the rows that trees are grown on, ascending; heavy rows occur several times.
    filling : bool array (n,). Rows that fill the leaves.
    is_part : bool. Whether fewer rows grow trees than could.
    """

    growing: np.ndarray
    filling: np.ndarray
    is_part: bool


def take_samples(
    n: int, weight: np.ndarray | None, honest: bool, max_samples: int | float | None, seed: int
) -> _Samples:
    """Which of n rows grow trees (``max_samples`` at most), and which fill leaves: all, unless ``honest``."""
    candidates = np.arange(n)
    if honest:  # tree t draws its rows by [seed, t]
        candidates = np.sort(np.random.default_rng([seed, 0, 1]).permutation(n)[: n // 2])
    m = _at_most(max_samples, len(candidates))
    is_part = m < len(candidates)
    growing = candidates
    if is_part and weight is None:
        growing = np.sort(np.random.default_rng([seed, 0, 3]).choice(candidates, m, replace=False, shuffle=False))
    elif weight is not None:
        if is_part:  # rows at even distances of a table in order are no sample
            candidates = np.random.default_rng([seed, 0, 3]).permutation(candidates)
        growing = np.sort(candidates[_evenly(weight[candidates], m, seed)])
    filling = np.ones(n, dtype=bool)
    if honest:
        filling[growing if is_part else candidates] = False
    return _Samples(growing, filling, is_part)


def _at_most(max_samples: int | float | None, n: int) -> int:
    """How many of n rows grow trees."""
    if max_samples is None:
        return n
    number: Any = max_samples
    return min(int(number), n) if isinstance(number, Integral) else max(1, round(number * n))


def _evenly(weight: np.ndarray, m: int, seed: int) -> np.ndarray:
    """Numbers of m rows, drawn at even distances along their weights (n,): each as often as its own, but for one."""
    at = (np.arange(m) + np.random.default_rng([seed, 0, 2]).random()) * (weight.sum() / m)
    return np.minimum(np.searchsorted(np.cumsum(weight), at, side="right"), len(weight) - 1)


# ---- The trial of quantile leaves: rows held out from the leaves of the same trees are its validation rows.


class _Trial:
    """Quantile leaves of some numeric slots against normal leaves, in the first trees of a forest.

    rows, cells : Rows, Table. The n rows, and the same prepared for leaf densities.
    assigned : AssignedRows. The trees, and where the rows end in them.
    weight : float64 array (n,), optional. Weights of the rows; None: all alike.
    """

    def __init__(
        self,
        rows: TableRows,
        cells: Table,
        assigned: densities.AssignedRows,
        settings: Settings,
        weight: np.ndarray | None,
        seed: int,
    ) -> None:
        self.rows, self.cells, self.assigned = rows, cells, assigned
        self.settings = settings
        n = len(rows.X)
        self.held = np.random.default_rng([seed, 4]).permutation(n)[: int(FIXED.trial_share * n)]
        self.asked = self.held[: FIXED.trial_rows]
        self.weight = None if weight is None else weight[self.asked]
        self._kept: dict[int, np.ndarray] = {}

    def fits(self, slots: np.ndarray) -> bool:
        """Whether the tables stay small enough, by the first tree."""
        [cdfs] = self._cdfs(densities.first_trees(self.assigned, 1), slots)
        return small_enough(n_pieces(cdfs.values()), len(self.assigned.trees.root))

    def gains(self, slots: np.ndarray) -> list[np.ndarray]:
        """Gain in the log-likelihood of each validation row; nothing where they are too few to choose by."""
        # Leaves are products, so that in each leaf that a row reaches only the densities of these columns change.
        if len(self.held) < FIXED.trial_fewest_rows:
            return []
        _, _, normal = self._normal
        lacking = slots & ~np.isin(np.arange(len(slots)), list(self._kept))
        if lacking.any():
            self._kept |= self._gains_in_leaves(lacking)
        changed = normal.log_weight + sum(self._kept[slot] for slot in np.flatnonzero(slots).tolist())
        return [np.logaddexp.reduceat(changed, normal.start[:-1]) - normal.log_evidence]

    @cached_property
    def _normal(self) -> tuple[densities.AssignedRows, Forest, LeafPosterior]:
        """The trees of the trial, with normal leaves without the validation rows, and the leaves of these."""
        is_large = len(self.rows.X) >= FIXED.trial_many_rows
        trees = densities.first_trees(self.assigned, FIXED.trial_few_trees if is_large else FIXED.trial_trees)
        weight = np.broadcast_to(trees.weight, trees.leaf_of.shape).copy()
        weight[:, self.held] = 0.0
        trees = trees._replace(weight=weight)
        schema, columns = self.rows.schema, self.rows.columns
        none = np.zeros(len(columns.step), bool)
        fitted = densities.fit_trees(columns, self.cells, trees, self.settings, quantile=none)
        forest = densities.as_forest(schema, columns, self.cells, trees.trees, fitted, FIXED.trial_epsilon)
        return trees, forest, posterior(forest, build(schema, self.rows.X[self.asked]))

    def _gains_in_leaves(self, slots: np.ndarray) -> dict[int, np.ndarray]:
        """By slot, what its log-density gains in each leaf that a validation row reaches, (M,)."""
        trees, forest, normal = self._normal
        columns, row = self.rows.columns, np.repeat(self.asked, np.diff(normal.start))
        by_tree, found = self._cdfs(trees, slots), {}
        for slot, j in densities.slots_and_columns(columns, slots):
            cdfs = [of_tree[slot] for of_tree in by_tree]
            size = np.concatenate([*(np.diff(of.start) for of in cdfs), [0]])  # none in the background
            start = np.concatenate([[0], np.cumsum(size)])
            knots = np.concatenate([of.x for of in cdfs]), np.concatenate([of.p for of in cdfs])
            value = self.rows.X[row, j]
            at = value, np.where(np.isnan(value), -1, self.cells.codes[j][row]).astype(np.int64)
            found[slot] = gains_of_slot(columns, forest.leaves, slot, normal.leaf, *at, start, *knots)
        return found

    def _cdfs(self, trees: densities.AssignedRows, slots: np.ndarray) -> list[dict[int, LeafCdfs]]:
        return densities.tree_cdfs(self.rows.columns, self.cells, trees, slots, self.settings.quantile_epsilon)
