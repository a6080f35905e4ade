"""Adversarial random forests: an unsupervised forest whose leaves hold independent columns."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...data.build_evidence import build
from ...models.base import Distribution
from ...models.box_forest.box_forest import BoxForest
from ...models.box_forest.forest import Forest
from ...models.box_forest.structure import Trees
from ...runtime.parameters import ANY, FLAG, VERBOSE, Allowed, Number
from ...runtime.progress import write_line
from ..base import FOREST, LEAVES, Rows, TableLearner
from ..batches.fill import Sizes, Structure, leaf_sizes
from ..batches.sample import Sampled
from ..chow_liu_leaves.leaves import LEAF_NODES, chow_liu_part, coded, fill_chow_liu, trees_of_values
from ..growing.ranks import rank
from ..leaf_fitting.assign_rows import Arrival, arrive
from ..leaf_fitting.densities import FittedTree, as_forest, fit_trees, learn_densities, quantile_trees
from ..leaf_fitting.fit import Settings, Table, prepare
from ..learnable import count_features, warn_leaf_size
from ..out_of_bag import oob_log_density
from .choose_leaves import quantile_slots
from .constants import FIXED
from .rounds import RoundSettings, prune_by, prune_forest, run, take_samples


class _Grown(NamedTuple):
    """A forest, and the rows that count in its leaves.

    Attributes
    ----------
    filled : Arrival
        The rows that fill leaves.
    in_bag : Arrival or None
        The rows that each tree drew; None unless they are asked for.
    drawn : bool array (T, n)
        Whether a tree drew a row; (T, 0) if neither ``leaf_rows="oob"`` nor ``oob_score`` asks for it.
    """

    filled: Arrival
    in_bag: Arrival | None
    drawn: np.ndarray


class AdversarialForest(TableLearner):
    """Learn the joint distribution of a table with an adversarial random forest.

    Forests learn to tell real rows from synthetic ones, which are drawn inside the leaves of the forest before,
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
        default 200,000: see ``docs/experiments/rows-for-growing.md``.
    delta : float
        Rounds end when the out-of-bag accuracy is at most ``0.5 + delta``.
    max_iters : "auto" or int
        Most rounds after the first. "auto": 10, but 0 where ``leaf="chow_liu"``: later rounds ask which columns depend
        on each other inside a leaf, which these leaves know.
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
        column's own scale; nearer to the table than all others. Robustness, raking and refitting are refused then;
        ``bounds`` to ``quantile_epsilon`` do not count. See ``docs/concepts/adversarial-forest.md``.
    bounds : "auto", "no", "local" or "global"
        Support: the leaf's box ("no", the paper); the box with its open sides cut at the column's span ("global"); the
        span of the leaf's own values ("local"); the box, cut like "global" only on a side of the column where the
        leaves would otherwise put the mass of more than five rows beyond all data ("auto").
    smoothing : float
        Pseudo-rows added to a leaf's levels (and to its atoms): in all with the prior "marginal", for each level with
        "uniform".
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
        Kinds of columns by name, where the inferred ones are not wanted, e.g. ``{"age": "continuous"}``.
    n_jobs : int or None
        Threads (-1: all cores). The result does not depend on it.
    random_state : int, RandomState or None
    verbose : int
        1 prints a line a round to standard error.

    Attributes
    ----------
    joint_ : Joint
        The model.
    oob_accuracy_ : list of float
        Out-of-bag accuracy of each round's forest, real against synthetic, on the rows that trees are grown on. Where
        these are 10,000 and more, the last may be of the forest's first four trees: see
        ``docs/concepts/adversarial-forest.md``.
    oob_log_density_ : float64 array (n,)
        Log-density of each training row by the trees that were grown without it, their leaf densities estimated on
        the rows they were grown on. NaN for a row that every tree drew. Only with ``oob_score=True``.
    feature_names_in_ : ndarray of str
    n_features_in_ : int

    Examples
    --------
    >>> import jointforest as jf
    >>> penguins = jf.datasets.load_penguins()
    >>> forest = jf.AdversarialForest(n_estimators=5, random_state=0).fit(penguins)
    >>> len(forest.joint_.sample(3, random_state=0))
    3
    """

    _allowed: ClassVar[dict[str, Allowed]] = {
        **FOREST,
        "min_samples_leaf": (Number(1, whole=True),),
        "max_leaf_nodes": ("auto", *FOREST["max_leaf_nodes"]),
        "max_samples": (
            Number(1, whole=True, text="a whole number >= 1"),
            Number(0, 1, without="low", text="a share in (0, 1]"),
            None,
        ),
        "delta": (Number(0, 0.5),),
        "max_iters": ("auto", Number(0, whole=True)),
        "leaf": ("auto", "normal", "normal_moments", "normal_mle", "uniform", "quantile", "chow_liu"),
        **LEAVES,
        "leaf_rows": ("all", "oob", "honest"),
        "bootstrap": FLAG,
        "early_stop": FLAG,
        "oob_score": FLAG,
        "kinds": ANY,
        "n_jobs": ANY,
        "random_state": ANY,
        "verbose": VERBOSE,
    }

    def __init__(  # noqa: PLR0913
        self,
        n_estimators: int = 30,
        *,
        min_samples_leaf: int = 2,
        max_features: str | int | float | None = "sqrt",
        max_depth: int | None = None,
        max_leaf_nodes: int | str | None = "auto",
        bootstrap: bool = True,
        max_samples: int | float | None = FIXED.max_samples,
        delta: float = 0.1,
        max_iters: int | str = "auto",
        early_stop: bool = True,
        leaf: str = "auto",
        bounds: str = "auto",
        smoothing: float = 0.2,
        prior: str = "marginal",
        spread_rows: float = 2.0,
        min_spread: float = 0.01,
        quantile_epsilon: float = 0.01,
        epsilon: float = 1e-3,
        leaf_rows: str = "all",
        oob_score: bool = False,
        kinds: dict[str, str] | None = None,
        n_jobs: int | None = -1,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.min_samples_leaf = min_samples_leaf
        self.max_features = max_features
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.bootstrap = bootstrap
        self.max_samples = max_samples
        self.delta = delta
        self.max_iters = max_iters
        self.early_stop = early_stop
        self.leaf = leaf
        self.bounds = bounds
        self.smoothing = smoothing
        self.prior = prior
        self.spread_rows = spread_rows
        self.min_spread = min_spread
        self.quantile_epsilon = quantile_epsilon
        self.epsilon = epsilon
        self.leaf_rows = leaf_rows
        self.oob_score = oob_score
        self.kinds = kinds
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check(self) -> None:
        super()._check()
        if self.oob_score and self.leaf_rows != "all":
            raise ValueError("oob_score=True needs leaf_rows='all': otherwise no tree is without a part of every row")
        if self.oob_score and self.leaf == "chow_liu":
            raise ValueError("oob_score=True needs another leaf than 'chow_liu', whose trees share the table's pairs")

    def _learn(self, rows: Rows, weight: np.ndarray | None, seed: int) -> Distribution:
        if self.leaf == "chow_liu":
            table = coded(rows, weight)
            return chow_liu_part(table, self._grow(table.rows, weight, seed).filled, self.epsilon, self.n_jobs)
        grown = self._grow(rows, weight, seed)
        cells = prepare(rows.columns, rows.X)
        quantile, model, plain = self._quantile(rows, cells, grown.filled, weight, seed)
        if grown.in_bag is not None:  # before the model, where that is to come: two forests take twice the memory
            plain = None
            evidence = build(rows.schema, rows.X)
            in_bag = self._densities(rows, cells, grown.in_bag, quantile)
            self.oob_log_density_ = oob_log_density(in_bag, evidence, grown.drawn, self.n_jobs)
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

    def _learn_batches(self, sampled: Sampled, rows: Rows, seed: int) -> Distribution:
        if self.leaf != "chow_liu":
            return super()._learn_batches(sampled, rows, seed)
        table = coded(rows, sampled.weight)

        def sizes(trees: Trees) -> np.ndarray:
            fold, sample, _, weights = sampled
            return leaf_sizes(fold, sample.n, rows.schema, rows.columns, seed, weights, trees_of_values(table, trees))

        trees = self._grow(table.rows, sampled.weight, seed, sizes).filled.trees
        return fill_chow_liu(sampled, table, trees, seed, self.epsilon, self.n_jobs)

    def _structure(self, rows: Rows, n: int, weight: np.ndarray | None, seed: int, sizes: Sizes) -> Structure:
        arrival = self._grow(rows, weight, seed, sizes).filled
        cells = prepare(rows.columns, rows.X)
        quantile, _, _ = self._quantile(rows, cells, arrival, weight, seed)
        return Structure(rows.schema, rows.columns, cells, arrival, self._leaf_settings(), quantile, seed)

    def _quantile(
        self, rows: Rows, cells: Table, arrival: Arrival, weight: np.ndarray | None, seed: int
    ) -> tuple[np.ndarray | None, Forest | None, list[FittedTree] | None]:
        """Slots that "auto" gives quantile leaves (None: ``leaf`` says it), the forest, if it is known by then, and its
        trees with normal leaves."""
        if self.leaf != "auto":
            return None, None, None
        settings = self._leaf_settings()
        plain = fit_trees(rows.columns, cells, arrival, settings, self.n_jobs)
        normal = as_forest(rows.schema, rows.columns, cells, arrival.trees, plain, self.epsilon)
        slots = quantile_slots(rows, cells, arrival, settings, plain, normal, weight, seed, self.n_jobs)
        return slots, None if slots.any() else normal, plain

    def _grow(self, rows: Rows, weight: np.ndarray | None, seed: int, sizes: Sizes | None = None) -> _Grown:
        """The generator of the last round, pruned, and where the rows end in it.

        Rows that leaves need are counted among these rows, or, by ``sizes``, among those of the table that they are of.
        """
        n = len(rows.X)
        warn_leaf_size(self.min_samples_leaf, n)
        sample = take_samples(n, weight, self.leaf_rows == "honest", self.max_samples, seed)
        ranks = rank(rows.columns, rows.X, sample.growing if sample.is_part else None)
        grow_all = len(sample.growing) == n and weight is None
        growing = ranks
        if not grow_all:
            growing = ranks._replace(codes=np.ascontiguousarray(ranks.codes[:, sample.growing]))
        forest, self.oob_accuracy_ = run(
            rows.schema, growing, self._round_settings(len(sample.growing)), seed, self._report
        )
        by_oob, T = self.leaf_rows == "oob", self.n_estimators
        drawn = np.zeros((T, n if by_oob or self.oob_score else 0), dtype=bool)
        if by_oob or self.oob_score:
            for mine, of_tree in zip(drawn, forest.drawn, strict=True):
                mine[sample.growing[of_tree]] = True
        used = ~drawn if by_oob else np.broadcast_to(sample.filling, (T, n))
        if not used.any(axis=1).all():
            raise ValueError(
                f"leaf_rows='oob' leaves a tree without rows: only {n} rows and every one drawn; "
                "use leaf_rows='all', or bootstrap=False"
            )

        def arrival(counts: np.ndarray) -> Arrival:
            counted = np.multiply(counts, 1.0 if weight is None else weight)
            return arrive(rows.columns, ranks, forest.trees, forest.leaf_node, np.broadcast_to(counted, (T, n)))

        if sizes is None:
            forest = prune_forest(forest, ranks.codes, used, self.min_samples_leaf, self.n_jobs, grow_all)
        else:
            rows_at = sizes(arrival(sample.filling).trees)
            forest = prune_by(forest, ranks.codes, rows_at, self.min_samples_leaf, self.n_jobs)
        return _Grown(arrival(used if by_oob else sample.filling), arrival(drawn) if self.oob_score else None, drawn)

    def _round_settings(self, n: int) -> RoundSettings:
        """Settings of the rounds on n real (and n synthetic) rows."""
        return RoundSettings(
            n_estimators=self.n_estimators,
            min_samples_leaf=self.min_samples_leaf,
            max_features=count_features(self.max_features, self.n_features_in_),
            max_depth=self.max_depth,
            max_leaf_nodes=self._leaf_nodes(),
            bootstrap=self.bootstrap,
            n_draws=2 * n if self.bootstrap else round(FIXED.sample_share * 2 * n),
            delta=self.delta,
            max_iters=self._rounds(),
            early_stop=self.early_stop,
            n_jobs=self.n_jobs,
        )

    def _rounds(self) -> int:
        """Most rounds after the first."""
        if isinstance(self.max_iters, str):  # "auto"
            return 0 if self.leaf == "chow_liu" else FIXED.rounds
        return self.max_iters

    def _leaf_nodes(self) -> int | None:
        """Most leaves of each tree."""
        if isinstance(self.max_leaf_nodes, str):  # "auto"
            return LEAF_NODES if self.leaf == "chow_liu" else None
        return self.max_leaf_nodes

    def _densities(
        self,
        rows: Rows,
        cells: Table,
        arrival: Arrival,
        quantile: np.ndarray | None = None,
        plain: list[FittedTree] | None = None,
    ) -> Forest:
        """The forest of independent columns in leaves, whose densities are estimated on the rows that arrive there.

        ``quantile``, bool (p,), are numeric slots with quantile leaves whatever ``leaf`` says; ``plain`` the trees with
        normal leaves, if they are known.
        """
        settings = self._leaf_settings()
        if plain is not None and quantile is not None:
            epsilon = settings.quantile_epsilon
            fitted = quantile_trees(rows.columns, cells, arrival, plain, quantile, epsilon, self.n_jobs)
            return as_forest(rows.schema, rows.columns, cells, arrival.trees, fitted, self.epsilon)
        return learn_densities(
            rows.schema, rows.columns, cells, arrival, settings, self.epsilon, self.n_jobs, quantile=quantile
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
