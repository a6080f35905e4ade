"""Generative forests: a decision tree or random forest that is a joint distribution of features and target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from ...api.joint import Joint, need_joint
from ...data.evidence import Evidence
from ...data.frames import check_weights, read, refuse_ranges
from ...models.box_forest.box_forest import BoxForest
from ...models.box_forest.robustness import robustness
from ...models.box_forest.structure import Forest
from ...runtime.parameters import FLAG, Number, parameter
from ...runtime.threads import threaded, use_jobs
from ..base import BOUNDS, MAX_FEATURES, PRIORS, Learner, count_features, warn_leaf_size
from ..batches.fill import Structure, fill_leaves
from ..batches.sample import fold_of, take_weighed
from ..chow_liu_leaves.constants import FIXED as CHOW_LIU
from ..chow_liu_leaves.learn import chow_liu_part
from ..growing.grow import GrowthSettings
from ..growing.grow_kernels import ENTROPY, GINI
from ..leaf_fitting.densities import TARGET, AssignedRows, LearnComponents, learn_densities, learn_mixtures
from ..leaf_fitting.fit import LEAF_DENSITIES, Settings, has_scale
from ..leaf_fitting.learnspn import SpnSettings, class_components, spn_circuits, spn_components
from . import supervised, targets
from .constants import FIXED
from .supervised import Calibration, GrowSettings, calibration_rows, feature_importances, grow_forest

Filled = Callable[[Settings, Settings, np.ndarray | None], Forest]
"""The forest of all rows, by the settings of features, those of the target, and slots with quantile leaves."""


@dataclass(eq=False, repr=False)
class GenerativeForest(Learner):
    """What the classifier and the regressor share: parameters, learning, and the joint's own questions."""

    _target_kind = "categorical"
    beta_: float = field(init=False)
    _calibration: Calibration = field(init=False)
    _criteria: ClassVar[dict[str, int]] = {"gini": GINI, "entropy": ENTROPY}
    n_estimators: int = parameter(100, Number(1, whole=True))
    _: KW_ONLY
    criterion: str = parameter("gini", *_criteria)
    max_features: str | int | float | None = parameter("sqrt", *MAX_FEATURES)
    max_depth: int | None = parameter(None, Number(1, whole=True), None)
    max_leaf_nodes: int | None = parameter(None, Number(2, whole=True), None)
    min_samples_split: int = parameter(2, Number(2, whole=True))
    min_samples_leaf: int | str = parameter("auto", "auto", Number(1, whole=True))
    bootstrap: bool = parameter(True, *FLAG)
    max_samples: int | float | None = parameter(None, Number(0), None)
    leaf: str = parameter("normal", "auto", *LEAF_DENSITIES, "spn", "chow_liu")
    target_in_leaf: str = parameter("factorised", "factorised", "full")
    min_spn_samples: int = parameter(30, Number(2, whole=True))
    bounds: str = parameter("auto", *BOUNDS)
    smoothing: float | str = parameter("auto", "auto", Number(0))
    prior: str = parameter("marginal", *PRIORS)
    spread_rows: float = parameter(2.0, Number(0))
    min_spread: float | str = parameter("auto", "auto", Number(1e-9))
    epsilon: float = parameter(1e-3, Number(0, 0.5))
    combine: str = parameter("weighted", "weighted", "trees", "mixture")
    beta: float | str = parameter("auto", "auto", Number(0, 1))
    conformal: bool = parameter(False, *FLAG)
    kinds: dict[str, str] | None = None
    extra: str = parameter("refuse", "refuse", "ignore")
    n_jobs: int | None = -1
    random_state: Any = None

    # -- learning

    @threaded
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Grow a forest for the target and learn the distribution in its leaves.

        Parameters
        ----------
        X : frame, array or lists of n rows
            Features; cells may be missing. Arrays, and frames whose columns have no text for names, are taken by
            position, with the names x0, x1 and so on.
        y : series or array (n,)
            Target; none may be missing. Its name, or "y", is that of the last column of ``joint_``.
        sample_weight : array (n,), optional
            Weights of the rows, at least 0: how much a row counts in the trees and in the leaves. A row of weight 0 is
            left out; kinds of columns, ``min_samples_leaf`` and the background take the other rows as they are.

        Raises
        ------
        ValueError, TypeError
            If a parameter is out of its range, or the table cannot be used (each message names the column).
        """
        self._check()
        X = targets.as_table(X)
        weight = check_weights(sample_weight, read(X).n)
        rows = np.flatnonzero(weight)
        training = self._read(X, y, rows if len(rows) < len(weight) else None)
        weight = self._weigh(training, weight[rows])
        seed = self._draw_seed()
        training, assigned = self._grow(training, weight, seed)
        return self._learn(training, assigned, seed)

    @threaded
    def fit_batches(self, source: Any, target: str, sample_weight: str | None = None) -> Any:
        """Learn from a table larger than memory, whose column ``target`` is the target; see
        ``docs/how-to/large-tables.md``.

        A sample of 400,000 rows at most makes the trees and chooses what is "auto"; all rows fill the leaves, the
        target's among them. What is learned does not depend on how the table is cut, or on the order of its rows.

        Parameters
        ----------
        source : path or list of paths, pyarrow.dataset.Dataset, polars.LazyFrame, DuckDB relation, callable, or a frame
            As `AdversarialForest.fit_batches` takes it; columns have names.
        target : str
            The column to predict; none of its cells may be missing.
        sample_weight : str, optional
            The column that holds the weights of the rows; they count as `fit` has it, over their mean.

        Raises
        ------
        ValueError
            If a parameter is out of its range or needs all rows at once (``leaf`` "spn" and "chow_liu",
            ``target_in_leaf="full"``, ``class_weight``), the table cannot be used (each message names the column), or
            the source gives other rows when it is asked again.
        FileNotFoundError
            If there is no such file.

        Examples
        --------
        >>> clf = jf.GenerativeForestClassifier(n_estimators=10, random_state=0)
        >>> clf = clf.fit_batches(lambda: [penguins[:200], penguins[200:]], "species")
        >>> clf.predict(penguins[["island", "body_mass_g"]].tail(1)).tolist()
        ['Gentoo']
        """
        self._check()
        if self.conformal:
            raise ValueError("conformal=True needs all rows at once: in batches no row is out of bag; use fit")
        if self.leaf in ("spn", "chow_liu") or self.target_in_leaf == "full" or getattr(self, "class_weight", None):
            raise ValueError(
                "leaf='spn' and 'chow_liu', target_in_leaf='full' and class_weight need all rows at once, and "
                "fit_batches has a sample of them; leave these at their defaults"
            )
        fold, seed = fold_of(source), self._draw_seed()
        of_target = target, self._target_kind
        fold, sample, weight, weights = take_weighed(fold, self.kinds, FIXED.batch_rows, seed, sample_weight, of_target)
        training = targets.sampled_training(sample, target, self._target_kind)
        self._name_classes(training)
        self.feature_names_in_ = np.array(training.schema.names[:-1], dtype=object)
        self.n_features_in_ = len(training.schema.names) - 1
        training, assigned = self._grow(training, np.ones(len(training.X)) if weight is None else weight, seed)

        def filled(settings: Settings, of_target: Settings, quantile: np.ndarray | None) -> Forest:
            table = training.schema, training.columns, training.table
            structure = Structure(*table, assigned, settings, quantile, seed, of_target, weights, training.first)
            return fill_leaves(fold, sample.n, structure, self.epsilon)

        return self._learn(training, assigned, seed, None if sample.is_whole else filled)

    def _name_classes(self, training: targets.Training) -> None:
        """Set the classes of a classifier, as scikit-learn does."""
        if self._target_kind == "categorical":
            self.classes_ = np.array(training.schema.columns[-1].levels, dtype=training.label_dtype)

    def _grow(self, training: targets.Training, weight: np.ndarray, seed: int) -> tuple[targets.Training, AssignedRows]:
        """The table that trees are grown on, and the trees."""
        is_coded = self.leaf == "chow_liu"
        # rounded to 44 bits, so that weights of another unit grow the same trees
        part, exponent = np.frexp(weight)
        weight = np.ldexp(np.rint(np.ldexp(part, 44)), exponent - 44)
        training = training.completed(weight, seed)
        n, d = training.X.shape[0], training.X.shape[1] - 1
        least = FIXED.coded_leaf_rows if is_coded else 1
        if self.min_samples_leaf != "auto":
            least = int(self.min_samples_leaf)
            warn_leaf_size(least, n)
        tree = GrowthSettings(
            max_features=count_features(self.max_features, d),
            criterion=self._criteria[self.criterion],
            min_samples_split=self.min_samples_split,
            min_samples_leaf=least,
            max_depth=self.max_depth,
            max_leaf_nodes=CHOW_LIU.leaf_nodes if is_coded and self.max_leaf_nodes is None else self.max_leaf_nodes,
        )
        grow = GrowSettings(self.n_estimators, tree, self.bootstrap, self._count_draws(n))
        if is_coded:
            training = targets.coded_training(training, weight)
        elif self.min_samples_leaf == "auto":
            grow = supervised.choose_leaf_size(training, weight, grow, self._settings(), seed)
        self.min_samples_leaf_ = int(grow.tree.min_samples_leaf)
        return training, grow_forest(training, weight, grow, seed)

    @classmethod
    def from_forest(cls, forest: Any, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Any:
        """The joint distribution of a fitted scikit-learn tree or forest (Correia et al. 2020, Algorithm 1).

        The structure is taken over as it is: every complete row ends in the same leaves. Leaf densities are learned
        from the rows that arrive there, and each leaf's distribution of the target from the rows its tree was grown
        on, so that on complete rows ``combine="trees"`` gives the forest's own probabilities.

        Parameters
        ----------
        forest : fitted DecisionTree*, ExtraTree*, RandomForest* or ExtraTrees* of scikit-learn
        X, y, sample_weight
            The rows that the forest was fitted on, in their order. Columns are matched by name where both have names.
        **params
            Parameters of this class; those of the growth of trees have no effect, except ``criterion``.

        Returns
        -------
        fitted estimator
            Without ``min_samples_leaf_``.

        Raises
        ------
        ValueError, TypeError
            If the estimator is of another type, not fitted, or was fitted on other columns or rows.

        References
        ----------
        A. Correia, R. Peharz, C. de Campos, "Joints in Random Forests", NeurIPS 2020, Algorithm 1 and Theorem 1.

        Examples
        --------
        >>> from sklearn.ensemble import RandomForestClassifier
        >>> penguins = jf.datasets.load_penguins().dropna()
        >>> X, y = penguins[["bill_length_mm", "bill_depth_mm", "body_mass_g"]], penguins["species"]
        >>> forest = RandomForestClassifier(10, random_state=0).fit(X, y)
        >>> joint = jf.GenerativeForestClassifier.from_forest(forest, X, y, combine="trees")
        >>> bool(abs(joint.predict_proba(X) - forest.predict_proba(X)).max() < 1e-12)
        True
        >>> joint.predict(X[["body_mass_g"]].tail(1)).tolist()  # the others are not known
        ['Gentoo']
        """
        from .from_sklearn import adopt

        self = cls(**params)
        self._check()
        if self.leaf == "chow_liu":
            raise ValueError("leaf='chow_liu' needs trees grown on codes: use fit, or another leaf")
        training = self._read(targets.as_table(X), y)
        weight = self._weigh(training, check_weights(sample_weight, len(training.X)))
        seed = self._draw_seed()
        with use_jobs(self.n_jobs):
            return self._learn(training, adopt(forest, training, weight, seed), seed)

    @classmethod
    @threaded
    def from_joint(cls, joint: Any, target: str, *, n_jobs: int | None = -1) -> Any:
        """An estimator that predicts one column of a joint that is there already, of whatever kind, from the others.

        Parameters
        ----------
        joint : Joint
            Hidden trees, forests, or mixtures.
        target : str
            A column with levels for the classifier, of numbers for the regressor. The others are the features.
        n_jobs : int or None

        Returns
        -------
        fitted estimator
            Predictions are the joint's conditionals (``beta_`` is 1). ``robustness`` and ``uncertainty`` need a joint
            that is one forest; the parameters of learning have no effect.

        Raises
        ------
        TypeError
            If it is no joint.
        ValueError
            If there is no such column, it is of another kind, or no column is left.

        Examples
        --------
        >>> joint = jf.HiddenTreeForest(n_states=8, random_state=0).fit(penguins).joint_
        >>> clf = jf.GenerativeForestClassifier.from_joint(joint, "species")
        >>> clf.predict(penguins[["body_mass_g", "bill_depth_mm"]].tail(1)).tolist()
        ['Gentoo']
        """
        need_joint(joint, "joint: expected a Joint")
        self = cls(combine="mixture", n_jobs=n_jobs)
        self._check()
        j = joint.schema.index(target)
        column = joint.schema.columns[j]
        if column.is_categorical != (self._target_kind == "categorical") or column.kind == "datetime":
            wanted = "levels" if self._target_kind == "categorical" else "numbers"
            raise ValueError(f"{cls.__name__} predicts {wanted}; column {target!r} is {column.kind}")
        if len(joint.columns) < 2:
            raise ValueError(f"the joint has no other column than {target!r}")
        self.joint_, self._number, self.beta_ = joint, j, 1.0
        if column.is_categorical:
            self.classes_ = np.array(column.levels)
        self.n_features_in_ = len(joint.columns) - 1
        if joint.schema.frame != "numpy":
            self.feature_names_in_ = np.array([name for name in joint.columns if name != target], dtype=object)
        return self

    def _check(self) -> None:
        super()._check()
        if self.leaf == "chow_liu":
            if self.combine == "trees" or not (isinstance(self.beta, str) or self.beta == 1):
                raise ValueError(
                    f"leaf='chow_liu' predicts by the joint itself, got combine={self.combine!r}, beta={self.beta!r}; "
                    "use combine='mixture'"
                )
            if self.target_in_leaf == "full":
                raise ValueError("leaf='chow_liu' joins the target to the features in its own way: drop target_in_leaf")
        if self.conformal and (self.leaf == "chow_liu" or not self.bootstrap):
            raise ValueError("conformal=True needs trees out of bag: bootstrap=True, and another leaf than 'chow_liu'")
        if self.target_in_leaf == "full" and self.leaf == "quantile":
            raise ValueError("target_in_leaf='full' needs another leaf than 'quantile', such as 'normal' or 'spn'")

    def _weigh(self, training: targets.Training, weight: np.ndarray) -> np.ndarray:
        """What the rows, whose weights are given, count."""
        return weight

    def _read(self, X: Any, y: Any, rows: np.ndarray | None = None) -> targets.Training:
        """Encode the table, or some of its rows, and set what scikit-learn wants set."""
        training = targets.read_training(X, y, self._target_kind, self.kinds, rows)
        validate_data(self, X, skip_check_array=True)
        self._name_classes(training)
        return training

    def _count_draws(self, n: int) -> int:
        """Rows that a bootstrap draws."""
        if self.max_samples is None:
            return n
        if not self.bootstrap:
            raise ValueError(f"max_samples={self.max_samples!r} needs bootstrap=True; without, trees grow on all rows")
        draws = round(self.max_samples * n) if isinstance(self.max_samples, float) else int(self.max_samples)
        if not 1 <= draws <= n:
            raise ValueError(f"max_samples={self.max_samples!r} draws {draws} rows a tree; expected 1 to {n}")
        return draws

    def _settings(self) -> Settings:
        """Settings of the leaf densities, the smallest spread not chosen yet."""
        return Settings(
            leaf="normal" if self.leaf in ("auto", "spn") else self.leaf,
            bounds=self.bounds,
            smoothing=FIXED.smoothings[0] if isinstance(self.smoothing, str) else self.smoothing,
            prior=self.prior,
            spread_rows=self.spread_rows,
            min_spread=0.1 if isinstance(self.min_spread, str) else self.min_spread,
        )

    def _learn(
        self, training: targets.Training, assigned: AssignedRows, seed: int, filled: Filled | None = None
    ) -> Any:
        """Leaf densities, and how the trees are combined; of a sample of rows ``filled`` gives the forest of all."""
        self.feature_importances_ = feature_importances(training, assigned, self._criteria[self.criterion])
        if training.coded is not None:
            self.joint_ = Joint(chow_liu_part(training.coded, assigned, self.epsilon))
            self.beta_ = 1.0
            return self
        settings = self._settings()
        if self.smoothing == "auto":
            settings = supervised.choose_smoothing(training, assigned, settings, seed)
        if isinstance(self.min_spread, str) and has_scale(settings.leaf):
            settings = settings._replace(min_spread=supervised.choose_spreads(training, assigned, settings))
        self.min_spread_, self._smoothing = settings.min_spread, settings.smoothing
        target = TARGET
        if not training.columns.is_categorical[-1]:
            target = target._replace(min_spread=supervised.choose_target_spread(training, assigned))
        components, quantile = self._components(training, seed), None
        rows = training.schema, training.columns, training.table, assigned, settings, self.epsilon
        if components is not None:
            model = learn_mixtures(*rows, target, components)
        else:
            if self.leaf == "auto":
                quantile = supervised.quantile_slots(training, assigned, settings, target, seed)
            model = learn_densities(*rows, target, quantile)
        beta = {"trees": 0.0, "mixture": 1.0}.get(self.combine, self.beta)
        self.beta_ = supervised.choose_beta(model, training, assigned, seed)[0] if isinstance(beta, str) else beta
        if filled is not None:
            del model  # as large as what takes its place
            model = filled(settings, target, quantile)
        self.joint_ = Joint(BoxForest(model))
        if self.conformal:
            self._calibration = calibration_rows(training, assigned, seed)
        return self

    def _features(self, X: Any) -> np.ndarray:
        """Rows of features as numbers and codes (n, d), NaN where missing; where rows are kept to calibrate."""
        check_is_fitted(self, "joint_")
        if not self.conformal or not hasattr(self, "_calibration"):
            raise ValueError("no rows were kept to calibrate: set conformal=True before fit")
        evidence = self._evidence(X)
        refuse_ranges(self.joint_.schema, evidence.cell_regions())
        return np.delete(evidence.value, self._target, axis=1)

    def _components(self, training: targets.Training, seed: int) -> LearnComponents | None:
        """How the components of leaves that are mixtures are learned, if they are."""
        columns, table, target = training.columns, training.table, len(training.columns.slot) - 1
        is_full = self.target_in_leaf == "full"
        if self.leaf == "spn":
            spn = SpnSettings(min_samples=self.min_spn_samples)
            scope = np.arange(target + 1) < target + is_full
            return lambda rows, start, weight, t: spn_components(
                columns, spn_circuits(columns, table, rows, start, weight, spn, scope, seed, t)
            )
        if is_full:
            return lambda rows, start, weight, t: class_components(columns, table, rows, start, weight, target)
        return None

    # -- questions about the features alone

    @threaded
    def score_samples(self, X: Any) -> np.ndarray:
        """Log-density log p(x_o) of each row's known features by the mixture of all trees; low for outliers.

        Parameters
        ----------
        X : frame, array or lists of n rows
            Any cells, and in a frame whole columns, may be missing: they are marginalised.

        Returns
        -------
        float64 array (n,)
            Natural logarithms; 0 for a row of which nothing is known.

        Raises
        ------
        ValueError, TypeError
            If there are columns that were not there at learning, or cells of another kind.

        Warns
        -----
        UnseenLevelWarning
            If a cell holds a level never seen at learning: it counts as missing, and lowers the row's density.

        References
        ----------
        A. Correia, R. Peharz, C. de Campos, "Joints in Random Forests", NeurIPS 2020, section 5.

        Examples
        --------
        >>> X, y = penguins.drop(columns="species"), penguins["species"]
        >>> clf = jf.GenerativeForestClassifier(n_estimators=10, random_state=0).fit(X, y)
        >>> usual, odd = clf.score_samples(X.iloc[[0, 0]].assign(body_mass_g=[3750, 9000]))
        >>> bool(usual > odd)
        True
        """
        evidence = self._evidence(X)
        return self.joint_.distribution.log_density(evidence)

    @threaded
    def robustness(self, X: Any, *, beta: float | None = None, c: float = 1.0, shift: str = "leaf") -> np.ndarray:
        """How far every parameter of the forest may be wrong at once before a row's predicted class changes.

        Parameters
        ----------
        X : frame, array or lists of n rows
            Any cells may be missing.
        beta : float in 0..1, optional
            Robustness of the prediction with this exponent; default: the forest's own, ``beta_``. Below 1 the weights
            of the trees are precise, and epsilon of a complete row is m / (1 + m) for factorised leaves, m being the
            margin of the probabilities; 1 is more informative.
        c : float
            How far the means of normal leaves move, at epsilon 1, in units of ``shift``; 0: not at all.
        shift : {"leaf", "column"}
            The unit: the leaf's own standard deviation, or half of the column's.

        Returns
        -------
        float64 array (n,)
            The largest epsilon at which no contamination by epsilon changes the prediction, 0 where another class is as
            likely; NaN where the forest gives the row probability 0.

        Raises
        ------
        ValueError
            If the target is a number: ask for intervals.

        References
        ----------
        A. Correia, R. Peharz, C. de Campos, "Towards Robust Classification with Deep Generative Forests", 2020.

        Examples
        --------
        >>> X, y = penguins.drop(columns="species"), penguins["species"]
        >>> clf = jf.GenerativeForestClassifier(n_estimators=10, random_state=0).fit(X, y)
        >>> bool(clf.robustness(X, beta=1).mean() > clf.robustness(X[["sex"]], beta=1).mean())
        True
        """
        evidence = self._evidence(X)
        beta = float(self.beta_ if beta is None else beta)
        model, j = self.joint_.distribution.forest_for("robustness"), self._target
        return robustness(model, evidence, j, beta=beta, c=c, shift=shift)[0]

    @property
    def _target(self) -> int:
        """Number of the target's column: the last one, unless the joint came from elsewhere."""
        return int(getattr(self, "_number", len(self.joint_.columns) - 1))

    @property
    def _query_beta(self) -> float:
        """The exponent for queries: ``beta_``, but just below 1 where trees may give a row probability 0."""
        # At 1 such a tree has weight 0, and a row that all trees find impossible has no answer. Just below 1 it has
        # one. A chosen exponent is also kept below 1: out-of-bag rows chose it for the trees without the background.
        model, is_chosen = self.joint_.distribution, self.combine == "weighted" and isinstance(self.beta, str)
        if not model.is_forest or (model.forest_for("this").has_background and not is_chosen):
            return float(self.beta_)
        return min(self.beta_, float(np.nextafter(1.0, 0.0)))

    def _evidence(self, X: Any) -> Evidence:
        """Evidence of rows of features; nothing is known of the target."""
        X = self._same_columns(targets.as_table(X))
        return targets.read_others(self.joint_.schema, self._target, X, self.extra)
