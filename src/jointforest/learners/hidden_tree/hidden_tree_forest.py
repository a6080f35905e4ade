"""Hidden tree forests: a mixture of hidden Chow-Liu trees on each column's own scale."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from ...api.joint import Joint
from ...data.discretization.refine import refined
from ...data.evidence import build
from ...data.ranges import Ranges
from ...data.schema import Schema
from ...evaluation.columns_and_pairs import lost_pairs, some, table_cells
from ...evaluation.statements import broken_rules, warn_lost
from ...evaluation.two_sample_test import quick_score
from ...models.base import Distribution
from ...models.hidden_tree.hidden_tree import HiddenTree
from ...models.hidden_tree.hidden_trees import HiddenTrees
from ...runtime.parameters import VERBOSE, Number, parameter
from ...runtime.progress import write_line
from ...runtime.threads import one_blas_thread, threaded
from ..base import TableScores, as_frame, rows_with_weight, warn_lost_dependence
from ..batches.improve import improve
from ..batches.sample import fold_of, take_weighed
from ..rows import check_cells, read_training_rows
from ..rules import FEWEST_TRIED_ROWS, Reduced, reduce_table, wanted_rules
from .choose import choose_settings, settings_for_likelihood
from .codes import scales_of, share_of_informed, table_of
from .constants import FIXED
from .em import Smoothing
from .factors import factor_tree
from .learn import LearnSettings, Progress
from .leaves import Learned, complete_codes, learn_trees
from .missing_cells import with_missing_cells
from .structure import CodeTable


@dataclass(eq=False, repr=False)
class HiddenTreeForest(TableScores):
    """Learn the joint distribution of a table with hidden trees.

    Columns are joined in a tree by mutual information (Chow, Liu 1968), each has a hidden state, tables lead from
    state to state and from a state to the codes of the column's own scale: a hidden Chow-Liu tree (Liu, Van den
    Broeck, "Tractable Regularization of Probabilistic Circuits", NeurIPS 2021), here for tables of any columns. The
    states start as clusters of rows, and stepwise expectation maximisation improves them.

    Parameters
    ----------
    n_estimators : int
        Members of the mixture. More raise the likelihood of rows that were not learned from. In tables of fewer than
        5,000 rows the members have 1, 2, 4 and 8 leaves in turn, and conditional answers are better with four of
        them; from 2,000 rows on, with eight.
    n_states : "auto" or int
        States of each column. With more states, drawn rows resemble real ones more; with fewer, the density is
        smoother and learning faster. "auto": 256; 384 in tables of 5,000 to 8,191 rows, which have too few rows for
        leaves (below); both times the share of known cells. In smaller tables, and with ``objective="likelihood"``, the
        number up to 256 with the highest validation log-likelihood.
    n_bins : "auto" or int
        Most codes of a numeric column. "auto": 128; in tables of fewer than 5,000 rows the root of their number, at
        least 16.
    max_leaf_nodes : "auto" or int
        Leaves of a decision tree that cuts the table first, each leaf with a hidden tree of its own. "auto": 1, which
        means no tree, or 8 where that has the higher validation log-likelihood. It is 1 in tables of fewer than 32 rows
        for each state, and with ``objective="likelihood"``. In tables of fewer than 5,000 rows see ``n_estimators``.
    start : "auto", "shared", "local" or "factors"
        First states: clusters of rows over all columns, or for each column others, of what depends on it. "auto":
        "local" where half of the columns or more are numbers, else "shared". Tables of fewer than 5,000 rows have
        "shared", unless ``objective="likelihood"`` or ``n_states`` is given: then the start with the higher validation
        log-likelihood is taken. "factors" learns no transition tables: the states, 512 if not given, are draws of the
        factors of rows from a factor analysis, and there are no passes. It keeps the dependence between numbers in
        tables of few rows, at the cost of a lower log-density; ``max_leaf_nodes``, ``max_iter`` and ``smoothing``
        have no effect. A number has a code for each three rows, 16 to 64, if ``n_bins`` does not say otherwise.
    max_iter : "auto" or int
        Most passes over the rows; they end when held-out rows (a tenth) gain no more. "auto": 8, fewer of more than
        71,000 rows, at least 2.
    smoothing : "auto" or float
        Rows added to each state's codes of a number, in the shape of the state's own normal. "auto": 30; in tables of
        fewer than 5,000 rows 30 or 5, and with ``objective="likelihood"`` 5, 30 or 100, by validation log-likelihood.
    objective : "draws" or "likelihood"
        What "auto" settings are for. "draws": drawn rows that a classifier cannot tell from those of the table.
        "likelihood": a high log-density of new rows. The validation log-likelihood then chooses states and smoothing
        for tables of any size, and the start of tables of fewer than 5,000 rows. From 5,000 rows on, passes hide a
        fifth of the cells (dropout). A value of one row may have a point mass, as values often recur. With
        ``rules="auto"`` no found rule is enforced. An attacker can often tell more easily which rows were learned (on
        two of three tables, see ``docs/experiments/population.md``).
    kinds : dict or None
        Kinds of columns by name, where the inferred ones are not wanted, e.g. ``{"age": "continuous"}``; cells of
        which only a range is known: see ``docs/how-to/ranges.md``.
    rules : "auto", "all", "off" or list
        Rules between columns that are enforced: rows that contradict them have probability 0, and are never drawn.
        "auto": found rules about missing cells, found conversions and sums, and found functions and combinations of
        few values (none of these with ``objective="likelihood"``); "all": all that are found; "off" or False: none. A
        list has rules of `jf.rule`, or their texts, and "auto" or "all" if found rules are wanted beside them. See
        ``docs/how-to/rules.md``.
    n_jobs : int or None
        Threads (-1: all cores). The result does not depend on it.
    random_state : int, RandomState or None
    verbose : bool
        Whether to print each pass to standard error.

    Attributes
    ----------
    joint_ : Joint
        The model.
    settings_ : LearnSettings
        What was given or chosen: states, start, passes, smoothing.
    feature_names_in_ : ndarray of str
        Only after frames.
    n_features_in_ : int

    Notes
    -----
    The maths, and what each ingredient is worth: ``docs/concepts/hidden-tree-forest.md``. Matrix products are
    single-threaded and in float32; another processor, or another BLAS, may round the last digits differently.

    Examples
    --------
    >>> joint = jf.HiddenTreeForest(n_states=16, random_state=0).fit(penguins).joint_
    >>> joint.given(island="Torgersen").proba("species")["Adelie"] > 0.9
    True
    """

    n_estimators: int = parameter(1, Number(1, whole=True))
    _: KW_ONLY
    n_states: str | int = parameter("auto", "auto", Number(1, 4_096, whole=True))
    n_bins: str | int = parameter("auto", "auto", Number(2, 4_096, whole=True))
    max_leaf_nodes: str | int = parameter("auto", "auto", Number(1, 10_000, whole=True))
    start: str = parameter("auto", "auto", "shared", "local", "factors")
    max_iter: str | int = parameter("auto", "auto", Number(0, whole=True))
    smoothing: str | float = parameter("auto", "auto", Number(0))
    objective: str = parameter("draws", "draws", "likelihood")
    kinds: dict[str, Any] | None = None
    rules: Any = "auto"
    n_jobs: int | None = -1
    random_state: Any = None
    verbose: bool = parameter(False, *VERBOSE)

    @threaded
    def fit(self, X: Any, y: None = None, sample_weight: Any = None) -> Self:
        """Learn from a frame (pandas, polars, pyarrow) or a 2-d array; cells may be missing.

        Parameters
        ----------
        X : frame of n rows
        y : ignored
        sample_weight : array-like (n,), optional
            Weights of the rows, not negative; their size does not matter. A row of weight 0 is left out.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter is out of its range, or the table or the weights cannot be used.

        Warns
        -----
        LostDependenceWarning
            If columns that depend on each other in the table do so less in ``joint_``; it names them. So it does where
            many drawn rows break orders or sums that hold in all rows of the table.
        """
        self._check()
        X, weight = rows_with_weight(as_frame(X), sample_weight)
        rows = read_training_rows(X, self.kinds)
        self._name_columns(rows.schema.all_columns.names, rows.schema.frame)
        model = self._learn_ruled(rows.schema, rows.X, weight, self._draw_seed(), rows.ranges)
        self.joint_ = Joint(model)
        X = rows.X
        if not self._warns:
            return self
        if self.objective == "draws" and self.rules == "auto":  # other values say what is enforced
            hint = "rules='all' (--rules all), which may slow answers"
            warn_lost(broken_rules(model, X), hint, "draws break rules that all rows obey")
        if rows.ranges is not None:  # imputed values of ranges do not depend on the other cells of the row
            exact = np.flatnonzero((rows.ranges.number < 0).all(axis=0)).tolist()
            if len(exact) < 2:
                return self
            model, X = model.marginalize(exact), X[:, exact]
        warn_lost_dependence(model, X, weight, lost_pairs(model, X, weight))
        return self

    @threaded
    def fit_batches(self, source: Any, sample_weight: str | None = None) -> Self:
        """Learn from a table larger than memory, in one to three passes over batches of its rows.

        Structure and tables are learned from a sample of the rows, 500,000 at most; where the table has more, one step
        of expectation maximisation over all rows then makes the tables, and the weights, those of the whole table. The
        sample, and so the structure, does not depend on how the table is cut into batches or on the order of its rows;
        the tables differ by rounding in float32. See ``docs/how-to/large-tables.md``.

        Parameters
        ----------
        source : path or list of paths, pyarrow.dataset.Dataset, polars.LazyFrame, DuckDB relation, callable, or a frame
            As `AdversarialForest.fit_batches` takes it.
        sample_weight : str, optional
            The column that holds the weights of the rows, as `fit` takes them; it is no part of the joint.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter is out of its range, the table cannot be used (each message names the column), or the source
            gives other rows when it is asked again.
        FileNotFoundError
            If there is no such file.

        Examples
        --------
        >>> from jointforest import HiddenTreeForest, datasets
        >>> penguins = datasets.load_penguins()
        >>> forest = HiddenTreeForest(n_states=8, random_state=0)
        >>> forest.fit_batches(lambda: (penguins[k : k + 100] for k in range(0, 344, 100))).joint_
        Joint(7 columns: species, island, bill_length_mm, bill_depth_mm, ...; 1 hidden tree of 8 states)
        """
        self._check()
        fold = fold_of(source)
        seed = self._draw_seed()
        fold, sample, weight, weights = take_weighed(fold, self.kinds, FIXED.batch_rows, seed, sample_weight)
        check_cells(sample.schema.names, sample.X)
        self._name_columns(sample.schema.all_columns.names, sample.schema.frame)
        if sample.is_whole:
            self.joint_ = Joint(self._learn_ruled(sample.schema, sample.X, weight, seed, sample.ranges))
            return self
        if self.rules not in ("auto", "off", False):
            raise ValueError("rules: a table learned in batches is not checked for rules; leave rules out, or use fit")
        if self.start == "factors":
            raise ValueError("start='factors' is for tables of few rows; this one does not fit into one sample of rows")
        first = self._learn(sample.schema, sample.X, weight, seed, ranges=sample.ranges)
        first = improve(fold, sample.n, first, self.n_estimators, self.settings_.smoothing, weights)
        self.joint_ = Joint(HiddenTree(first))
        return self

    def _learn_ruled(
        self, schema: Schema, X: np.ndarray, weight: np.ndarray | None, seed: int, ranges: Ranges | None = None
    ) -> Distribution:
        """The distribution of a table, in coordinates that cannot break its rules if there are any."""
        wanted = wanted_rules(self.rules, schema, X, self.objective, ranges)
        reduced = reduce_table(wanted, X, compound_trial(wanted.schema, X, seed))
        if reduced is None:
            return HiddenTree(self._learn(wanted.schema, X, weight, seed, ranges=ranges))
        ranges = reduced.ranges_of(schema, ranges)
        return reduced.ruled(HiddenTree(self._learn(reduced.schema, reduced.X, weight, seed, ranges=ranges)))

    def _learn(
        self,
        schema: Schema,
        cells: np.ndarray,
        weight: np.ndarray | None,
        seed: int,
        settings: LearnSettings | None = None,
        ranges: Ranges | None = None,
    ) -> HiddenTrees:
        n_bins = self._most_bins(len(cells))
        fine = FIXED.fine_ends if len(cells) < FIXED.many_rows else 0.0
        singles = self.objective == "likelihood"
        # codes of factors are cut into parts, and values of ranges are no values of the table
        at_spaces = fine > 0.0 and ranges is None and self.start != "factors"
        scales = scales_of(schema, cells, weight, n_bins, fine, singles, ranges, at_spaces)
        if self.start == "factors":
            parts = [1 if column.is_categorical else FIXED.parts_of_codes for column in schema.columns]
            fine_scales = tuple(map(refined, scales, parts))
            scales = tuple(of.scale for of in fine_scales)
        table = table_of(schema, scales, cells, weight, ranges)
        with one_blas_thread(in_kernels=True):
            self.settings_ = settings or self._settings(table, seed)
            if ranges is not None and self.settings_.full:
                of_rows = min(FIXED.many_rows / max(len(cells), 1), 1.0)
                more = round(FIXED.full_passes_of_ranges * share_of_informed(table) * of_rows)
                self.settings_ = self.settings_._replace(full=max(self.settings_.full, more))
            seeds = np.random.default_rng(seed).integers(2**31, size=self.n_estimators).tolist()
            if self.settings_.start == "factors":
                members = [
                    Learned(
                        (factor_tree(table, fine_scales, self.settings_.n_states, FIXED.factors_of_trees[t % 2], own),),
                        np.ones(1),
                    )
                    for t, own in enumerate(seeds)
                ]
            else:
                each = [self._of_member(t, len(cells)) for t in range(self.n_estimators)]
                complete = complete_codes(table, seed) if each[-1].n_leaves > 1 else None
                members = [
                    learn_trees(table, each[t], own, self._progress(t), complete=complete)
                    for t, own in enumerate(seeds)
                ]
        trees = tuple(tree for member in members for tree in member.trees)
        log_weight = np.log(np.concatenate([member.share for member in members]) / len(members))
        with one_blas_thread():
            return with_missing_cells(HiddenTrees(schema, scales, trees, log_weight), table, seed)

    def _of_member(self, t: int, n: int) -> LearnSettings:
        """Settings of tree t of the mixture: in small tables of n rows each has twice as many leaves as the last."""
        # Few leaves learn dependence from all rows, and many have the conditional distributions of the rows in them.
        settings = self.settings_._replace(perturb=FIXED.perturb if t else 0.0)
        if n >= FIXED.many_rows or not isinstance(self.max_leaf_nodes, str):
            return settings
        n_leaves = min(2 ** min(t, 3), max(n // FIXED.fewest_rows_of_leaves, 1))
        return settings._replace(n_leaves=n_leaves, n_states=max(settings.n_states // min(n_leaves, 2), 1))

    def _most_bins(self, n: int) -> int:
        """Most codes of a number in a table of n rows."""
        if not isinstance(self.n_bins, str):
            return self.n_bins
        if self.start == "factors":
            return int(np.clip(n // FIXED.rows_a_code, FIXED.fewest_bins, FIXED.most_codes))
        return FIXED.bins if n >= FIXED.many_rows else max(FIXED.fewest_bins, round(n**0.5))

    def _passes(self, n: int) -> int:
        """Most passes over n rows."""
        if not isinstance(self.max_iter, str):
            return self.max_iter
        return int(np.clip(np.ceil(FIXED.visits / max(n, 1)), FIXED.fewest_passes, FIXED.most_passes))

    def _settings(self, table: CodeTable, seed: int) -> LearnSettings:
        """The given settings; the others are those of large tables, or chosen by validation log-likelihood."""
        n = len(table.codes)
        if self.start == "factors":
            n_states = FIXED.states_of_factors if isinstance(self.n_states, str) else self.n_states
            return LearnSettings(n_states=n_states, start="factors", passes=0)
        is_large = n >= FIXED.many_rows
        is_chosen = self.objective == "likelihood"
        passes = self._passes(n)
        settings, free = LearnSettings(n_states=FIXED.states, passes=passes), []
        if is_large:
            settings = settings._replace(start="local" if table.is_ordered.mean() >= 0.5 else "shared", refit=True)
        else:
            point_mass = max(FIXED.point_mass, FIXED.point_mass_bins / self._most_bins(n))
            settings = settings._replace(smoothing=Smoothing(near=FIXED.near, point_mass=point_mass))
        if not isinstance(self.n_states, str):
            settings = settings._replace(n_states=self.n_states)
        elif not is_large:
            free.append("n_states")
        elif not is_chosen:
            is_small = n < FIXED.leaves * FIXED.states * FIXED.rows_a_state
            known = float(np.mean(table.codes < table.n_codes))
            settings = settings._replace(n_states=round((FIXED.more_states if is_small else FIXED.states) * known))
        if not isinstance(self.max_leaf_nodes, str):
            settings = settings._replace(n_leaves=self.max_leaf_nodes)
        elif is_large:
            free += ["joined"] if is_chosen else ["n_leaves", "joined"]
        if self.start != "auto":
            settings = settings._replace(start=self.start)
        elif not is_large and (is_chosen or self.n_states != "auto"):  # few given states may need a local start
            free.append("start")
        if not isinstance(self.smoothing, str):
            settings = settings._replace(smoothing=settings.smoothing._replace(normal=float(self.smoothing)))
        elif is_chosen:
            free += ["near", "normal"] if is_large else ["near", "normal", "transition"]
        elif not is_large:  # trials prefer more smoothing than draws need
            free.append("few_normal")
        if is_large and is_chosen and passes > 0:
            are_free = self.n_states == "auto", self.smoothing == "auto"
            settings = settings_for_likelihood(table, settings, are_free, seed)
        if free and passes > 0:
            fewest = 1 if is_large or is_chosen else -(-n // FIXED.most_rows_a_state)
            settings = choose_settings(table, settings, free, seed, fewest)
        if is_large:
            settings = settings._replace(
                full=min(
                    FIXED.full_passes_of_leaves if settings.n_leaves > 1 else FIXED.full_passes, max(passes // 2, 1)
                )
            )
        return settings

    def _progress(self, tree: int) -> Progress | None:
        """What tells each pass on standard error."""
        if not self.verbose:
            return None
        start = time.monotonic()

        def tell(now: int, most: int, held_out: float) -> None:
            spent = time.monotonic() - start
            write_line(
                f"hidden tree {tree + 1} of {self.n_estimators}: pass {now} of {most}, {spent:.1f} s, "
                f"held-out mean log-probability of codes {held_out:.4f}"
            )

        return tell


def as_chosen(fitted: HiddenTreeForest) -> HiddenTreeForest:
    """An unfitted learner whose states, start and smoothing are those that a fitted one has chosen by trials."""
    chosen = fitted.settings_
    given = {"n_states": chosen.n_states, "start": chosen.start, "smoothing": chosen.smoothing.normal}
    return clone(fitted).set_params(**given) if fitted.objective == "draws" else clone(fitted)


def compound_trial(schema: Schema, X: np.ndarray, seed: int) -> Callable[[Reduced | None, Reduced], bool] | None:
    """Whether a table X (n, d) is learned better in other coordinates, by short fits to some of its rows."""
    # Validation rows must be more probable, and draws no easier to tell from them. None of few rows, where no
    # classifier would learn enough.
    rows = X[some(len(X), FIXED.compound_rows, np.random.default_rng(seed))]
    if len(rows) < FEWEST_TRIED_ROWS:
        return None
    n_held = len(rows) // 4
    order = np.random.default_rng([seed, 1]).permutation(len(rows))
    held, learned = rows[order[:n_held]], rows[order[n_held:]]
    short = HiddenTreeForest(
        n_states=FIXED.compound_states, max_leaf_nodes=1, max_iter=FIXED.short_passes, smoothing=FIXED.compound_normal,
        start="shared",
    )  # fmt: skip
    unseen = np.zeros(rows.shape, bool)

    def measured(reduced: Reduced | None) -> tuple[float, float]:
        """Validation log-likelihood, and the score of draws."""
        if reduced is None:
            model: Distribution = HiddenTree(short._learn(schema, learned, None, seed))
        else:
            model = reduced.ruled(HiddenTree(short._learn(reduced.schema, reduced.of_rows(learned), None, seed)))
        drawn = model.sample(build(schema), len(rows), seed, True)
        score = quick_score(table_cells(schema, rows, unseen), table_cells(schema, drawn, unseen), seed)
        return float(model.log_density(build(schema, held)).mean()), score

    seen: list[tuple[Reduced | None, tuple[float, float]]] = []

    def is_better(best: Reduced | None, other: Reduced) -> bool:
        if not seen:
            seen.append((best, measured(best)))
        seen.append((other, measured(other)))
        before, after = (next(found for one, found in seen if one is reduced) for reduced in (best, other))
        return after[0] > before[0] and after[1] > before[1] - FIXED.compound_score

    return is_better
