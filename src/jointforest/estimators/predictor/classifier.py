"""A classifier that takes any pattern of missing cells."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

from ...data.evidence import Evidence
from ...learners.generative.targets import Training
from ...runtime.threads import threaded
from .base import JointPredictor
from .pooling import ClassPool


class JointClassifier(ClassifierMixin, JointPredictor):
    """Predict classes from rows with any cells missing, by the best mix of boosted trees, a forest and a joint.

    These members answer: a generative forest; the joint distribution of the table; boosted trees and an additive model,
    both in expectation over what is missing; boosted trees trained on rows with cells hidden. If cells are missing at
    learning, boosted trees by their own rule are a member. If at least 5 % are, so are boosted trees on completed rows.
    The members are combined by weights of least log-loss on validation rows, from which cells are hidden at several
    rates. The weights depend on how much of a row is missing. Members without weight are not kept.

    Columns of frames are matched by name, in any order; absent ones count as missing, others are refused. A level never
    seen at learning counts as missing, with a warning.

    Parameters
    ----------
    boosting : estimator, optional
        Boosted trees or a forest of scikit-learn, XGBoost, LightGBM or CatBoost, or a pipeline that ends in one. It is
        cloned. Default: scikit-learn's `HistGradientBoostingClassifier`, whose depth and number of iterations are
        chosen on validation rows. A model that is fitted already goes into `from_model`.
    budget : "fast", "default", "best" or float
        Work on the joint, as of `jf.fit`; a number is of seconds, for the joint alone.
    kinds : dict or None
        Kinds of columns by name, where the inferred ones are not wanted (of an array: x0, x1 and so on).
    extra : {"refuse", "ignore"}
        What becomes of columns that `fit` did not see, in frames to be predicted: an error that names them, or nothing.
    n_jobs : int or None
        Threads (-1: all cores). The result does not depend on it.
    random_state : int, RandomState or None
        The same seed gives the same model.
    verbose : bool
        Whether to print what is done to standard error.

    Attributes
    ----------
    classes_ : array (K,)
    joint_ : Joint
        The distribution of features and target (the last column), to be asked anything else.
    members_ : tuple of str
        Names of the members that are kept.
    fitted_by : PredictorReport or None
        What was compared and chosen; ``fitted_by.in_words`` is a sentence. Files do not keep it.
    n_features_in_ : int
    feature_names_in_ : array of str, only if fitted on a frame

    See Also
    --------
    JointRegressor : the same for numbers.
    ExpectedPredictor : a trained model alone, in expectation.

    Notes
    -----
    What is computed: ``docs/concepts/predictors.md``. A row with missing cells is completed by draws for expected
    predictions. The draws depend on the model and the row alone, so a row has the same answer in any table.

    Examples
    --------
    >>> import jointforest as jf
    >>> penguins = jf.datasets.load_penguins()
    >>> X, y = penguins.drop(columns="species"), penguins["species"]
    >>> clf = jf.JointClassifier(random_state=0).fit(X, y)
    >>> clf.predict(X[["bill_length_mm", "island"]].head(2)).tolist()
    ['Adelie', 'Adelie']
    """

    _target_kind = "categorical"
    _pool: ClassPool

    def _read(self, X: Any, y: Any) -> Training:
        training = super()._read(X, y)
        self.classes_ = np.array(training.schema.columns[-1].levels, dtype=training.label_dtype)
        return training

    def _predict_block(self, evidence: Evidence) -> np.ndarray:
        answers, share = self._stacked(evidence)
        p = self._pool.combine(answers, share)
        if self._alone is not None:
            p[share == 0.0] = answers.value[share == 0.0, self._alone]
        return p

    def _output_names(self) -> tuple[str, ...]:
        return tuple(map(str, self.classes_.tolist()))

    @threaded
    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities of each row, given its known cells.

        Parameters
        ----------
        X : frame, array or lists of n rows, any cells or columns of which may be missing

        Returns
        -------
        float64 array (n, K)
            In the order of ``classes_``; rows sum to 1.

        Raises
        ------
        ValueError, TypeError
            If there are columns that were not there at learning, or cells of another kind.
        """
        return self._predict(self._evidence(X))

    @threaded
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of `predict_proba`."""
        return np.asarray(np.log(self.predict_proba(X)))

    @threaded
    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row, the first of equals; array (n,)."""
        likeliest = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[likeliest])
