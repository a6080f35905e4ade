"""Generative forests: a decision tree or random forest that is a joint distribution of features and target."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..joint import Joint
from ..leaves.fit import Settings
from ..leaves.spn import SpnSettings, class_circuits, learn_circuits
from ..queries.density import log_density
from ..queries.distribution import quantile
from ..queries.levels import level_probability
from ..queries.moments import mean_variance
from ..table.evidence import build
from ..table.frames import encode
from ..table.regions import Evidence
from ..table.schema import Schema
from ..threads import n_threads
from ..trees._split import ENTROPY, GINI, VARIANCE
from ..unseen import warn_unseen
from .checks import check_choice, check_number, count_features
from .densities import TARGET, LearnCircuits, learn_densities
from .supervised import Arrival, GrowSettings, grow_forest
from .targets import Training, check_weights, read_training, target_cells
from .tuning import choose_beta, choose_leaf_size, choose_spreads, choose_target_spread

LEAVES = ("normal", "normal_moments", "normal_mle", "uniform", "spn")


class _GenerativeForest(BaseEstimator):
    """What the classifier and the regressor share: parameters, learning, and the joint's own questions."""

    _target_kind = "categorical"
    _criteria: ClassVar[dict[str, int]] = {"gini": GINI, "entropy": ENTROPY}

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "gini",
        max_features: str | int | float | None = "sqrt",
        max_depth: int | None = None,
        max_leaf_nodes: int | None = None,
        min_samples_split: int = 2,
        min_samples_leaf: int | str = "auto",
        bootstrap: bool = True,
        max_samples: int | float | None = None,
        leaf: str = "normal",
        target_in_leaf: str = "factorised",
        min_spn_samples: int = 30,
        bounds: str = "no",
        smoothing: float = 0.3,
        prior: str = "marginal",
        spread_rows: float = 2.0,
        min_spread: float | str = "auto",
        epsilon: float = 1e-3,
        combine: str = "weighted",
        beta: float | str = "auto",
        kinds: dict[str, str] | None = None,
        n_jobs: int | None = -1,
        random_state: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.max_features = max_features
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.bootstrap = bootstrap
        self.max_samples = max_samples
        self.leaf = leaf
        self.target_in_leaf = target_in_leaf
        self.min_spn_samples = min_spn_samples
        self.bounds = bounds
        self.smoothing = smoothing
        self.prior = prior
        self.spread_rows = spread_rows
        self.min_spread = min_spread
        self.epsilon = epsilon
        self.combine = combine
        self.beta = beta
        self.kinds = kinds
        self.n_jobs = n_jobs
        self.random_state = random_state

    # -- learning

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Grow a forest for the target and learn the distribution in its leaves.

        Parameters
        ----------
        X : frame or array of n rows
            Features; cells may be missing.
        y : series or array (n,)
            Target; none may be missing.
        sample_weight : array (n,), optional
            Weights of the rows, not negative.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter is out of its range, or the table cannot be used (each message names the column).
        """
        self._check()
        training = self._read(X, y)
        n, d = training.X.shape[0], training.X.shape[1] - 1
        weight = check_weights(sample_weight, n)
        grow = GrowSettings(
            n_estimators=self.n_estimators,
            criterion=self._criteria[self.criterion],
            max_features=count_features(self.max_features, d),
            min_samples_split=self.min_samples_split,
            min_samples_leaf=1 if self.min_samples_leaf == "auto" else int(self.min_samples_leaf),
            max_depth=self.max_depth,
            max_leaf_nodes=self.max_leaf_nodes,
            bootstrap=self.bootstrap,
            n_draws=self._count_draws(n),
            n_jobs=self.n_jobs,
        )
        if self.min_samples_leaf == "auto":
            grow = choose_leaf_size(training, weight, grow, self._settings(), self._seed)
        self.min_samples_leaf_ = grow.min_samples_leaf
        return self._learn(training, grow_forest(training, weight, grow, self._seed))

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
            The rows that the forest was fitted on.
        **params
            Parameters of this class; those of the trees themselves have no effect.

        Returns
        -------
        fitted estimator

        Raises
        ------
        ValueError, TypeError
            If the estimator is of another type, not fitted, or was fitted on other columns or rows.
        """
        from .sklearn_forests import adopt

        self = cls(**params)
        self._check()
        training = self._read(X, y)
        weight = check_weights(sample_weight, len(training.X))
        return self._learn(training, adopt(forest, training, weight, self._seed))

    def _check(self) -> None:
        """Refuse parameters out of range."""
        check_number("n_estimators", self.n_estimators, low=1, whole=True)
        check_choice("criterion", self.criterion, tuple(self._criteria))
        check_number("max_depth", self.max_depth, low=1, whole=True, none=True)
        check_number("max_leaf_nodes", self.max_leaf_nodes, low=2, whole=True, none=True)
        check_number("min_samples_split", self.min_samples_split, low=2, whole=True)
        if self.min_samples_leaf != "auto":
            check_number("min_samples_leaf", self.min_samples_leaf, low=1, whole=True)
        check_choice("leaf", self.leaf, LEAVES)
        check_choice("target_in_leaf", self.target_in_leaf, ("factorised", "full"))
        check_number("min_spn_samples", self.min_spn_samples, low=2, whole=True)
        check_choice("bounds", self.bounds, ("auto", "no", "local", "global"))
        check_number("smoothing", self.smoothing, low=0)
        check_choice("prior", self.prior, ("marginal", "uniform"))
        check_number("spread_rows", self.spread_rows, low=0)
        if self.min_spread != "auto":
            check_number("min_spread", self.min_spread, low=1e-9)
        check_number("epsilon", self.epsilon, low=0, high=0.5)
        check_choice("combine", self.combine, ("weighted", "trees", "mixture"))
        if self.beta != "auto":
            check_number("beta", self.beta, low=0, high=1)
        n_threads(self.n_jobs)

    def _read(self, X: Any, y: Any) -> Training:
        """Encode the table, and set what scikit-learn wants set."""
        training = read_training(X, y, self._target_kind, self.kinds)
        self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self._features = Schema(training.schema.columns[:-1], training.schema.frame)
        self.n_features_in_ = len(self._features.columns)
        if training.schema.frame != "numpy":
            self.feature_names_in_ = np.array(self._features.names, dtype=object)
        return training

    def _count_draws(self, n: int) -> int:
        """Rows that a bootstrap draws."""
        if self.max_samples is None:
            return n
        check_number("max_samples", self.max_samples, low=0)
        draws = round(self.max_samples * n) if isinstance(self.max_samples, float) else int(self.max_samples)
        if not 1 <= draws <= n:
            raise ValueError(f"max_samples={self.max_samples!r} draws {draws} rows a tree; expected 1 to {n}")
        return draws

    def _settings(self) -> Settings:
        """Settings of the leaf densities, the smallest spread not chosen yet."""
        return Settings(
            leaf="normal" if self.leaf == "spn" else self.leaf,
            bounds=self.bounds,
            smoothing=self.smoothing,
            prior=self.prior,
            spread_rows=self.spread_rows,
            min_spread=0.1 if self.min_spread == "auto" else self.min_spread,
        )

    def _learn(self, training: Training, arrival: Arrival) -> Any:
        """Leaf densities, and how the trees are combined."""
        settings = self._settings()
        if self.min_spread == "auto" and self.leaf != "uniform":
            settings = settings._replace(min_spread=choose_spreads(training, arrival, settings, self.n_jobs))
        self.min_spread_ = settings.min_spread
        target = TARGET
        if not training.columns.is_categorical[-1]:
            target = target._replace(min_spread=choose_target_spread(training, arrival, self.n_jobs))
        model = learn_densities(
            training.schema,
            training.columns,
            training.table,
            arrival.trees,
            arrival.leaf_of,
            arrival.drawn,
            settings,
            self.epsilon,
            self.n_jobs,
            target,
            circuits=self._circuits(training),
        )
        self.joint_ = Joint(model)
        self.beta_ = {"trees": 0.0, "mixture": 1.0}.get(self.combine, self.beta)
        if self.beta_ == "auto":
            self.beta_, _ = choose_beta(model, training, arrival, self._seed, self.n_jobs)
        return self

    def _circuits(self, training: Training) -> LearnCircuits | None:
        """How circuits of leaves are learned, if they are."""
        columns, table, target = training.columns, training.table, len(training.columns.slot) - 1
        is_full = self.target_in_leaf == "full"
        if self.leaf == "spn":
            spn = SpnSettings(min_samples=self.min_spn_samples)
            scope = np.arange(target + 1) < target + is_full
            return lambda rows, start, weight, t: learn_circuits(
                columns, table, rows, start, weight, spn, scope, self._seed, t
            )
        if is_full:
            return lambda rows, start, weight, t: class_circuits(columns, table, rows, start, weight, target)
        return None

    # -- what the joint says of features alone

    def score_samples(self, X: Any) -> np.ndarray:
        """Log-density log p(x) of each row's features by the mixture of all trees; missing cells are marginalised.

        Parameters
        ----------
        X : frame or array of n rows

        Returns
        -------
        float64 array (n,)
        """
        return log_density(self.joint_.model, self._evidence(X), self.n_jobs)

    @property
    def _target(self) -> int:
        """Number of the target's column, the last one."""
        return len(self.joint_.columns) - 1

    def _evidence(self, X: Any) -> Evidence:
        """Evidence of rows of features; nothing is known of the target."""
        check_is_fitted(self, "joint_")
        schema = Schema(self.joint_.schema.columns[:-1], self.joint_.schema.frame)
        cells, unseen = encode(schema, X)
        warn_unseen(schema, X, unseen)
        target = np.full((len(cells), 1), np.nan)
        known = np.zeros((len(cells), 1), dtype=bool)
        return build(self.joint_.schema, np.hstack([cells, target]), np.hstack([unseen, known]))


class GenerativeForestClassifier(ClassifierMixin, _GenerativeForest):
    """A random forest that is a joint distribution: classes with any inputs missing, densities, samples.

    Every leaf of a decision tree gets a small distribution over all columns, so that the forest becomes a mixture
    p(x, y); missing inputs are summed out exactly (Correia, Peharz, de Campos, "Joints in Random Forests", NeurIPS
    2020). On complete rows ``combine="trees"`` gives the probabilities of the random forest itself. One tree
    (``n_estimators=1``) is the paper's GeDT.

    Parameters
    ----------
    n_estimators : int
        Number of trees.
    criterion : {"gini", "entropy"}
    max_features : "sqrt", "log2", None, int or float
        Columns tried at each split (None: all; a float: that share).
    max_depth, max_leaf_nodes : int or None
        Limits of each tree; with ``max_leaf_nodes`` the best splits are made first.
    min_samples_split : int
        Fewest rows of a node that is split.
    min_samples_leaf : int or "auto"
        Fewest rows of a leaf; "auto" tries 1, 4 and 12 with a few trees each, and takes what predicts out-of-bag rows
        best when 30 % of their cells are hidden.
    bootstrap : bool
        Whether each tree is grown on rows drawn with replacement, or on all.
    max_samples : int, float or None
        Number (or share) of the rows that a bootstrap draws.
    leaf : {"normal", "normal_moments", "normal_mle", "uniform", "spn"}
        Density of numbers in a leaf, see `AdversarialForest`; all are truncated to the leaf's box, so that the whole
        integrates to 1. "spn": leaves of at least ``min_spn_samples`` rows are small circuits, learned with LearnSPN,
        the others as "normal".
    target_in_leaf : {"factorised", "full"}
        Whether a leaf takes the target as independent of the features, p(x) p(y), or models them together.
    min_spn_samples : int
        Fewest rows of a leaf that becomes a circuit.
    bounds, smoothing, prior, spread_rows
        How leaf densities are estimated, see `AdversarialForest`. The target's levels are not smoothed.
    min_spread : float or "auto"
        Smallest standard deviation in a leaf, in units of the column's; "auto" chooses it for each column, so that
        out-of-bag cells are most probable.
    epsilon : float
        Weight of the background, see `AdversarialForest`.
    combine : {"weighted", "trees", "mixture"}
        How predictions combine the trees. "trees" (GeF): the average of each tree's p_t(y | x_o). "mixture" (GeF+): the
        conditional of the whole, in which trees weigh as their p_t(x_o). "weighted": weights p_t(x_o)^beta.
    beta : float in 0..1 or "auto"
        The dial of "weighted"; "auto" takes the one that predicts out-of-bag rows best when 30 % of their cells are
        hidden.
    kinds : dict or None
        Kinds of columns by name, where the inferred ones are not wanted.
    n_jobs : int or None
        Threads (-1: all cores). The result does not depend on it.
    random_state : int, RandomState or None

    Attributes
    ----------
    joint_ : Joint
        The distribution of features and target (the last column).
    classes_ : array (K,)
    beta_ : float
        The dial in use.
    min_samples_leaf_ : int
        Fewest rows of a leaf.
    min_spread_ : float or float64 array (p,)
        Smallest spread of each numeric column, in units of the column's.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only if fitted on a frame.

    Examples
    --------
    >>> import jointforest as jf
    >>> penguins = jf.datasets.load_penguins()
    >>> X, y = penguins.drop(columns="species"), penguins["species"]
    >>> clf = jf.GenerativeForestClassifier(n_estimators=20, random_state=0).fit(X, y)
    >>> clf.predict(X[["bill_length_mm", "island"]].head(2)).tolist()
    ['Adelie', 'Adelie']
    """

    def _read(self, X: Any, y: Any) -> Training:
        training = super()._read(X, y)
        self.classes_ = np.unique(target_cells(y))
        return training

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities p(y | x_o) of each row, missing cells summed out.

        Parameters
        ----------
        X : frame or array of n rows
            Any cells, and in a frame whole columns, may be missing.

        Returns
        -------
        float64 array (n, K)
            In the order of ``classes_``.
        """
        evidence = self._evidence(X)
        return level_probability(self.joint_.model, evidence, self._target, self.n_jobs, self.beta_)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row, the first of equals; array (n,)."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])


class GenerativeForestRegressor(RegressorMixin, _GenerativeForest):
    """A regression forest that is a joint distribution: means, quantiles and intervals with any inputs missing.

    Like `GenerativeForestClassifier`, whose parameters it has, but for a number as target: ``criterion`` is
    "squared_error". On complete rows ``combine="trees"`` predicts the means of the regression forest itself.

    Examples
    --------
    >>> import jointforest as jf
    >>> penguins = jf.datasets.load_penguins().dropna(subset="body_mass_g")
    >>> X, y = penguins.drop(columns="body_mass_g"), penguins["body_mass_g"]
    >>> forest = jf.GenerativeForestRegressor(n_estimators=20, random_state=0).fit(X, y)
    >>> low, high = forest.predict_interval(X[["species", "sex"]].head(1), 0.9)
    >>> bool(low[0] < forest.predict(X[["species", "sex"]].head(1))[0] < high[0])
    True
    """

    _target_kind = "continuous"
    _criteria: ClassVar[dict[str, int]] = {"squared_error": VARIANCE}

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "squared_error",
        max_features: str | int | float | None = 1 / 3,
        max_depth: int | None = None,
        max_leaf_nodes: int | None = None,
        min_samples_split: int = 2,
        min_samples_leaf: int | str = "auto",
        bootstrap: bool = True,
        max_samples: int | float | None = None,
        leaf: str = "normal",
        target_in_leaf: str = "factorised",
        min_spn_samples: int = 30,
        bounds: str = "no",
        smoothing: float = 0.3,
        prior: str = "marginal",
        spread_rows: float = 2.0,
        min_spread: float | str = "auto",
        epsilon: float = 1e-3,
        combine: str = "weighted",
        beta: float | str = "auto",
        kinds: dict[str, str] | None = None,
        n_jobs: int | None = -1,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            n_estimators,
            criterion=criterion,
            max_features=max_features,
            max_depth=max_depth,
            max_leaf_nodes=max_leaf_nodes,
            min_samples_split=min_samples_split,
            min_samples_leaf=min_samples_leaf,
            bootstrap=bootstrap,
            max_samples=max_samples,
            leaf=leaf,
            target_in_leaf=target_in_leaf,
            min_spn_samples=min_spn_samples,
            bounds=bounds,
            smoothing=smoothing,
            prior=prior,
            spread_rows=spread_rows,
            min_spread=min_spread,
            epsilon=epsilon,
            combine=combine,
            beta=beta,
            kinds=kinds,
            n_jobs=n_jobs,
            random_state=random_state,
        )

    def predict(self, X: Any) -> np.ndarray:
        """Mean of the target given the known cells of each row; float64 array (n,)."""
        evidence = self._evidence(X)
        return mean_variance(self.joint_.model, evidence, self._target, self.n_jobs, self.beta_)[0]

    def predict_quantiles(self, X: Any, q: Any) -> np.ndarray:
        """Quantiles of the target given the known cells of each row.

        Parameters
        ----------
        X : frame or array of n rows
        q : float, or sequence of k floats, more than 0 and less than 1

        Returns
        -------
        float64 array (n,), or (n, k) for a sequence
        """
        levels = np.asarray(q, dtype=np.float64)
        if levels.ndim > 1 or not np.all((levels > 0) & (levels < 1)):
            raise ValueError(f"q must be a number, or a sequence of numbers, between 0 and 1, got {q!r}")
        evidence = self._evidence(X)
        points = np.atleast_1d(levels)
        found = quantile(self.joint_.model, evidence, self._target, points, self.n_jobs, self.beta_)
        return found[:, 0] if levels.ndim == 0 else found

    def predict_interval(self, X: Any, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Bounds (lo, hi), each (n,), of the interval with equal tails that holds this share of the target."""
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1, got {level!r}")
        both = self.predict_quantiles(X, [(1 - level) / 2, (1 + level) / 2])
        return both[:, 0], both[:, 1]
