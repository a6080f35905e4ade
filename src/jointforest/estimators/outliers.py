"""Outliers: rows that the joint distribution gives a low density, or a low probability of rows like them."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import OutlierMixin, clone, is_classifier, is_regressor
from sklearn.model_selection import KFold
from sklearn.utils import check_random_state

from ..api.joint import Joint, need_joint
from ..data.evidence import Evidence, neighbourhood
from ..data.frames import decode, encode_ranges, row_weights, take_rows
from ..data.infer_schema import infer_schema
from ..data.schema import Schema
from ..learners.adversarial.adversarial_forest import AdversarialForest
from ..learners.base import Learner, as_frame
from ..learners.batches.sample import MOST_ROWS, fold_of, take_weighed
from ..learners.generative.targets import feature_schema, read_features
from ..models.base import Distribution
from ..runtime.parameters import Number, parameter
from ..runtime.threads import threaded
from ..runtime.warnings import LostDependenceWarning

FENCE = 1.5
"""contamination="auto": so many interquartile ranges below the lower quartile (Tukey 1977)."""
_USUAL_ROWS = 20_000
"""Rows of a table in batches whose scores show which scores are usual."""
FOLDS = 5
"""Folds for learners without out-of-bag densities."""
_ROUNDING = 1e-9
"""Scores that differ less, relative to the larger of 1 and their size, are equal: sums of rounded logarithms."""
RADIUS = 1.0
"""Standard deviations by which rows like a row may differ from it, for joints but the detector's own."""


@dataclass(eq=False, repr=False)
class ForestOutlierDetector(OutlierMixin, Learner):
    """Detect outliers by a joint: how dense it is at a row, or how probable rows like it are; cells may be missing.

    The joint distribution of the table is learned; a row is an outlier if its density is lower than that of most
    training rows, each of these scored by trees that were grown without it (Correia, Peharz, de Campos, "Joints in
    Random Forests", NeurIPS 2020, section 5, use log p(x) of a generative forest).

    Parameters
    ----------
    estimator : estimator, optional
        An unfitted learner whose ``fit`` ends in ``joint_``. Default: `histogram_forest`, an `AdversarialForest` of one
        round with uniform leaves. Any learner will do, a `HiddenTreeForest` too. A classifier or regressor is given
        ``y``, which is then summed out.
    contamination : "auto" or float in (0, 0.5]
        Share of the training rows below the threshold ``offset_``. "auto": the threshold is Tukey's lower fence of
        their scores, 1.5 interquartile ranges below the lower quartile.
    radius : "auto" or float
        0: a row's score is its log-density log p(x). Above 0: the log-probability of rows whose numbers are within so
        many of their column's standard deviations of the row's, and whose levels are the row's own. "auto": 0 for the
        default estimator, whose leaves are wide; 1 for others, which are as narrow as point masses: a point
        mass is not comparable with a density in the units of its column.
    n_jobs : int or None
        Threads of scoring, and of the default forest (-1: all cores). The result does not depend on it.
    random_state : int, RandomState or None
        Of the default forest, and of folds; a given estimator has its own.

    Attributes
    ----------
    estimator_ : estimator
        The fitted learner; none after `from_joint`.
    joint_ : Joint
    training_scores_ : float64 array (n,)
        Score of each training row by a model learned without it: out-of-bag where the learner offers ``oob_score`` and
        ``radius`` is 0 (a row that every tree drew has its plain density), else by 5-fold cross-validation.
    offset_ : float
        Scores below it are outliers.
    feature_names_in_ : ndarray of str, only if fitted on a frame
    n_features_in_ : int

    Examples
    --------
    >>> detector = jf.ForestOutlierDetector(random_state=0).fit(penguins)
    >>> odd = penguins.iloc[[0]].assign(body_mass_g=9000)
    >>> int(detector.predict(odd)[0]), float(detector.percentile(odd)[0])
    (-1, 0.0)
    >>> penguins.columns[detector.attribution(odd)[0].argmin()]
    'body_mass_g'
    """

    estimator: Any = None
    _: KW_ONLY
    contamination: float | str = parameter("auto", "auto", Number(0, 0.5, without="low"))
    radius: float | str = parameter("auto", "auto", Number(0))
    n_jobs: int | None = -1
    random_state: Any = None

    @threaded
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the joint distribution, and where the scores of training rows end.

        Parameters
        ----------
        X : frame or array of n rows
        y : array (n,), optional
            Target of an ``estimator`` that needs one; else ignored.
        sample_weight : array-like (n,), optional
            Weights of the rows in learning, not negative. A row of weight 0 is left out; the threshold takes the others
            alike.

        Raises
        ------
        ValueError
            If a parameter is out of its range, or the table cannot be used (each message names the column).
        """
        self._check()
        return self._learn(X, y, sample_weight)

    def _learn(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """`fit`, parameters checked."""
        X = as_frame(X)
        if sample_weight is not None:
            weight = row_weights(sample_weight, len(X))
            used = np.flatnonzero(weight)
            X, y, sample_weight = take_rows(X, used), None if y is None else np.asarray(y)[used], weight[used]
        learner = histogram_forest(X, self.random_state) if self.estimator is None else clone(self.estimator)
        has_oob = "oob_score" in learner.get_params() and self._reach() == 0.0
        if has_oob:
            learner.set_params(oob_score=True)
        with warnings.catch_warnings():
            if self.estimator is None:  # whose boxes are cut at random
                warnings.simplefilter("ignore", LostDependenceWarning)
            self.estimator_ = _fitted(learner, X, y, sample_weight)
        self._take(self.estimator_.joint_, self.estimator_.n_features_in_)
        if has_oob:
            oob = self.estimator_.oob_log_density_
            self._fence(np.where(np.isnan(oob), self.score_samples(X), oob))
        else:
            self._fence(_held_out_scores(learner, X, y, sample_weight, self._reach(), self.random_state))
        return self

    @threaded
    def fit_batches(self, source: Any, sample_weight: str | None = None) -> Self:
        """Learn from a table larger than memory; see ``docs/how-to/large-tables.md``.

        Of a table that fits into the learner's sample it learns as `fit` does. Else ``training_scores_`` are those of
        20,000 rows of the table, by the joint itself, of which each is a very small part.

        Parameters
        ----------
        source : path or list of paths, pyarrow.dataset.Dataset, polars.LazyFrame, DuckDB relation, callable, or a frame
            As `AdversarialForest.fit_batches` takes it.
        sample_weight : str, optional
            The column that holds the weights of the rows in learning; it is no part of the joint. The threshold takes
            rows alike.

        Raises
        ------
        ValueError
            If a parameter is out of its range, the estimator has no ``fit_batches``, or the table cannot be used (each
            message names the column).

        Examples
        --------
        >>> from jointforest import ForestOutlierDetector, datasets
        >>> penguins = datasets.load_penguins()
        >>> detector = ForestOutlierDetector(random_state=0).fit_batches(lambda: [penguins[:200], penguins[200:]])
        >>> int(detector.predict(penguins.iloc[[0]].assign(body_mass_g=9000))[0])
        -1
        """
        self._check()
        other = self.estimator
        if other is not None and (is_classifier(other) or is_regressor(other) or not hasattr(other, "fit_batches")):
            raise ValueError(f"{type(other).__name__} does not learn whole tables in batches; give another, or use fit")
        seed = self._draw_seed()
        most = getattr(other, "max_samples", None)
        most = most if isinstance(most, int) else MOST_ROWS
        _, sample, weight, _ = take_weighed(fold_of(source), None, most, seed, sample_weight)
        if sample.is_whole:
            return self._learn(decode(sample.schema, sample.X), None, weight)
        default = _histogram_forest(sample.schema, self.random_state)
        learner = default if self.estimator is None else clone(self.estimator)
        with warnings.catch_warnings():
            if self.estimator is None:
                warnings.simplefilter("ignore", LostDependenceWarning)
            self.estimator_ = learner.fit_batches(source, sample_weight)
        self._take(self.estimator_.joint_, self.estimator_.n_features_in_)
        usual = np.random.default_rng(seed).permutation(len(sample.X))[:_USUAL_ROWS]
        self._fence(self.score_samples(decode(sample.schema, sample.X[usual])))
        return self

    @classmethod
    @threaded
    def from_joint(
        cls, joint: Any, X: Any, *, contamination: float | str = "auto", radius: float = RADIUS, n_jobs: int | None = -1
    ) -> ForestOutlierDetector:
        """A detector by a joint that is there already, of whatever kind.

        Parameters
        ----------
        joint : Joint
        X : frame or array of n rows
            What is usual: rows of all columns of the joint, best not those that it was learned from, whose density is
            a little too high.
        contamination : "auto" or float in (0, 0.5]
            Share of X below the threshold.
        radius : float
            In standard deviations, by which rows like a row may differ from it; 0 scores by the log-density.
        n_jobs : int or None

        Returns
        -------
        ForestOutlierDetector
            Fitted; ``training_scores_`` are those of X. It has no ``estimator_``.

        Raises
        ------
        TypeError
            If it is no joint.
        ValueError
            If there is no row, or X has other columns.

        Examples
        --------
        >>> joint = jf.HiddenTreeForest(n_states=8, random_state=0).fit(penguins[::2]).joint_
        >>> detector = jf.ForestOutlierDetector.from_joint(joint, penguins[1::2])
        >>> int(detector.predict(penguins.iloc[[0]].assign(body_mass_g=9000))[0])
        -1
        """
        need_joint(joint, "joint: expected a Joint")
        detector = cls(contamination=contamination, radius=radius, n_jobs=n_jobs)
        detector._check()
        detector._take(joint, len(joint.columns))
        detector._fence(detector.score_samples(X))
        return detector

    @threaded
    def score_samples(self, X: Any) -> np.ndarray:
        """Score of each row, see ``radius``, float64 (n,); missing cells are marginalised. Higher is more normal."""
        evidence = self._evidence(self._same_columns(as_frame(X)))
        return self.joint_.distribution.log_density(evidence)

    @threaded
    def score(self, X: Any, y: Any = None) -> float:
        """Mean of `score_samples`."""
        return float(np.mean(self.score_samples(X)))

    @threaded
    def decision_function(self, X: Any) -> np.ndarray:
        """``score_samples(X) - offset_``, float64 (n,); negative for outliers."""
        return self.score_samples(X) - self.offset_

    @threaded
    def predict(self, X: Any) -> np.ndarray:
        """-1 for outliers, 1 for other rows, int64 (n,). Use `fit_predict` for the training rows themselves."""
        return _outlier_labels(self.decision_function(X))

    @threaded
    def fit_predict(self, X: Any, y: Any = None) -> np.ndarray:
        """Fit, and label the training rows by ``training_scores_``, int64 (n,)."""
        self.fit(X, y)
        return _outlier_labels(self.training_scores_ - self.offset_)

    @threaded
    def percentile(self, X: Any) -> np.ndarray:
        """Percentage (0 to 100) of the training rows whose own score is lower, float64 (n,)."""
        scores = self.score_samples(X)
        below = np.searchsorted(self._ascending, _least_equal(scores))
        return 100.0 * below / len(self._ascending)

    @threaded
    def attribution(self, X: Any) -> np.ndarray:
        """Which cells make a row unlikely: log p(x_j | the other known cells), float64 (n, d), NaN where missing.

        Cells are read as `score_samples` does. With ``radius`` 0 compare a cell with the same column's cells in other
        rows: numbers with a density are measured in their units. A level never seen at learning has its penalty.
        """
        X = self._same_columns(as_frame(X))
        cells = self.joint_.distribution.attribution(self._evidence(X))[:, : self.n_features_in_]
        unseen = encode_ranges(self._features, X)[1]
        return np.where(unseen, [column.log_unseen for column in self._features.columns], cells)

    def _take(self, joint: Joint, n_features: int) -> None:
        """Keep a joint, whose first columns are the features."""
        self.joint_ = joint
        self._widths = _widths_of(joint.distribution, self._reach())
        self._features = feature_schema(joint.schema, n_features)
        self.n_features_in_ = n_features
        if self._features.frame != "numpy":
            self.feature_names_in_ = np.array(self._features.names, dtype=object)

    def _reach(self) -> float:
        """Standard deviations; 0: density."""
        if not isinstance(self.radius, str):
            return float(self.radius)
        return 0.0 if self.estimator is None else RADIUS

    def _evidence(self, X: Any) -> Evidence:
        """What is scored of the rows of X."""
        return _near(self.joint_.schema, read_features(self.joint_.schema, self.n_features_in_, X), self._widths)

    def _fence(self, scores: np.ndarray) -> None:
        """Keep the scores (n,) of rows that are usual, and where they end."""
        if not len(scores):
            raise ValueError("X has no row: expected the rows whose scores say what is usual")
        self.training_scores_, self._ascending = scores, np.sort(scores)
        self.offset_ = float(_least_equal(_offset(scores, self.contamination)))


def histogram_forest(X: Any, random_state: Any = None) -> AdversarialForest:
    """The detector's default learner, unfitted: many random histograms of the table, averaged."""
    # Uniform leaves, so that a few close rows make no spike; splits of random columns, so that trees differ (both as in
    # an isolation forest); one round. All numbers are densities, because a point mass is not comparable with a density.
    return _histogram_forest(infer_schema(X), random_state)


def _histogram_forest(schema: Schema, random_state: Any) -> AdversarialForest:
    """`histogram_forest` of a table with this schema."""
    kinds = {c.name: "continuous" for c in schema.columns if c.kind in ("integer", "rounded", "mixed")}
    return AdversarialForest(
        n_estimators=100,
        max_features=1,
        max_iters=0,
        leaf="uniform",
        bounds="global",
        min_spread=1.0,
        kinds=kinds,
        random_state=random_state,
    )


def _widths_of(model: Distribution, radius: float) -> np.ndarray | None:
    """So many standard deviations of each column, by the model, (d,); None where radius is 0. 0 for levels."""
    if radius == 0.0:
        return None
    nothing = Evidence.nothing(len(model.schema.columns))
    variance = [
        0.0 if column.is_categorical else model.observe(nothing).moments(j)[1][0]
        for j, column in enumerate(model.schema.columns)
    ]
    return radius * np.sqrt(variance)


def _near(schema: Schema, known: Evidence, widths: np.ndarray | None) -> Evidence:
    """Evidence of numbers within widths of the known ones; None: the numbers themselves."""
    return known if widths is None else neighbourhood(schema, known, widths)


def _fitted(learner: Any, X: Any, y: Any, weight: Any) -> Any:
    """The learner, fitted; with the target if it has one, and with weights if there are any."""
    target = (y,) if is_classifier(learner) or is_regressor(learner) else ()
    return learner.fit(X, *target) if weight is None else learner.fit(X, *target, sample_weight=weight)


def _held_out_scores(learner: Any, X: Any, y: Any, weight: Any, radius: float, random_state: Any) -> np.ndarray:
    """Score of each row by a clone learned on the other folds."""
    n = len(X)
    scores = np.empty(n)
    folds = KFold(min(FOLDS, n), shuffle=True, random_state=check_random_state(random_state))
    for learn, held in folds.split(np.empty(n)):
        some_y, some_weight = (None if of is None else np.asarray(of)[learn] for of in (y, weight))
        one = _fitted(clone(learner), take_rows(X, learn), some_y, some_weight)
        model, rows = one.joint_.distribution, take_rows(X, held)
        known = read_features(model.schema, one.n_features_in_, rows)
        scores[held] = model.log_density(_near(model.schema, known, _widths_of(model, radius)))
    return scores


def _least_equal(scores: Any) -> np.ndarray:
    """The smallest numbers that are equal to these scores but for rounding."""
    return np.asarray(scores - _ROUNDING * np.maximum(1.0, np.abs(scores)))


def _offset(scores: np.ndarray, contamination: float | str) -> float:
    """Threshold of the scores."""
    if contamination != "auto":
        return float(np.percentile(scores, 100.0 * float(contamination)))
    low, high = np.percentile(scores, [25, 75])
    return float(low - FENCE * (high - low))


def _outlier_labels(decision: np.ndarray) -> np.ndarray:
    """-1 where the decision is negative, else 1."""
    return np.where(decision < 0, -1, 1)
