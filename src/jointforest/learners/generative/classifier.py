"""A random forest that is a joint distribution of features and classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight

from ...inference.support import Uncertainty, uncertainty
from ...runtime.parameters import check_number
from ...runtime.threads import threaded
from ..leaf_fitting.densities import AssignedRows
from .base import Filled, GenerativeForest
from .constants import FIXED
from .supervised import label_set, pairs_by_pattern
from .targets import Training, know_features


@dataclass(eq=False, repr=False)
class GenerativeForestClassifier(ClassifierMixin, GenerativeForest):
    """A random forest that is a joint distribution: classes with any inputs missing, densities, samples.

    Every leaf of a decision tree gets a small distribution over all columns, so that the forest becomes a mixture
    p(x, y); missing inputs are summed out exactly. On complete rows ``combine="trees"`` gives the probabilities of the
    random forest itself. One tree (``n_estimators=1``) is the paper's GeDT.

    Columns of frames are found by name, in any order; absent ones count as missing, others are refused. A level never
    seen at learning counts as missing, with a warning.

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
        best when 30 % of their cells are hidden (1 with ``bootstrap=False``).
    bootstrap : bool
        Whether each tree is grown on rows drawn with replacement, or on all.
    max_samples : int, float or None
        Number (or share) of the rows that a bootstrap draws; None: as many as there are.
    leaf : {"normal", "auto", "normal_moments", "normal_mle", "uniform", "quantile", "spn", "chow_liu"}
        Density of numbers in a leaf, truncated to the leaf's box, so that it integrates to 1. "normal": a
        truncated normal with the mean of the leaf's values, whose untruncated parent has their standard deviation.
        "auto": "quantile" for the features whose marginals normals fit poorly (rows drawn from the joint
        are more than 0.01 away), unless out-of-bag rows are less probable then, or predicted worse; truer densities,
        but learning takes two to five times as long and rows with missing cells five to fifteen times.
        "normal_moments": the parent has their mean as well. "normal_mle": a truncated normal of maximum likelihood.
        "quantile": a piecewise-linear CDF. "spn": leaves of at least ``min_spn_samples`` rows are mixtures of
        products, learned with LearnSPN, the others as "normal".
        "chow_liu": Chow-Liu trees on the codes of each column; ``joint_`` is then hidden trees, whose conditionals
        predict (``beta_`` is 1). Take 10 to 20 trees. ``robustness`` is refused; ``bounds``, ``smoothing``, ``prior``,
        ``spread_rows`` and ``min_spread`` have no effect. See ``docs/concepts/adversarial-forest.md``.
    target_in_leaf : {"factorised", "full"}
        Whether a leaf takes the target as independent of the features, p(x) p(y), or models them together: in the
        mixture with ``leaf="spn"``, else as one product for each class.
    min_spn_samples : int
        Fewest rows of a leaf that becomes a mixture.
    bounds : {"no", "auto", "local", "global"}
        Support of a leaf's density: its box ("no"); the box with its open sides cut at the column's span ("global"),
        or only where the leaves would put the mass of more than five rows beyond all data ("auto"); the span of the
        leaf's own values ("local").
    smoothing : float or "auto"
        Pseudo-rows added to a leaf's levels, in all with the prior "marginal", for each level with "uniform"; "auto"
        takes 0.3 or, where these predict out-of-bag rows better when 30 % of their cells are hidden, 2. The target's
        levels are not smoothed.
    prior : {"marginal", "uniform"}
        Where pseudo-rows come from: the column's own frequencies, or all levels alike.
    spread_rows : float
        Pseudo-rows with which the variance in a leaf is drawn to the column's pooled within-leaf variance.
    min_spread : float or "auto"
        Smallest standard deviation in a leaf, in units of the column's; "auto" chooses it for each column, so that
        out-of-bag cells are most probable (0.1 with ``bootstrap=False``).
    epsilon : float
        Weight of the background, a wide distribution of all rows; 0 leaves it out, and rows far from all others
        may then have density 0.
    combine : {"weighted", "trees", "mixture"}
        How predictions combine the trees. "trees" (GeF): the average of each tree's p_t(y | x_o). "mixture" (GeF+): the
        conditional of the joint, in which trees weigh as their p_t(x_o). "weighted": weights p_t(x_o)^beta.
    beta : float in 0..1 or "auto"
        The exponent of "weighted"; "auto" takes the one that predicts out-of-bag rows best when 30 % of their cells are
        hidden (0 with ``bootstrap=False``).
    class_weight : None, "balanced" or dict
        Weights of classes, which multiply those of rows, in the trees and in the joint: "balanced" makes all classes
        count alike. ``joint_`` has the classes' shares that they then have.
    conformal : bool
        Whether training rows are kept (5,000 at most) so that the sets of `predict_set` have a
        guarantee: see ``docs/how-to/conformal-intervals.md``. Needs ``bootstrap=True``; trees are then asked without
        the background.
    kinds : dict or None
        Kinds of columns by name, where the inferred ones are not wanted (of an array: x0, x1 and so on).
    extra : {"refuse", "ignore"}
        What becomes of columns that `fit` did not see, in frames to be predicted: an error that names them, or nothing.
        The target's own column is never examined.
    n_jobs : int or None
        Threads (-1: all cores). The result does not depend on it.
    random_state : int, RandomState or None

    Attributes
    ----------
    joint_ : Joint
        The distribution of features and target (the last column).
    classes_ : array (K,)
        Sorted, of the type of the labels.
    beta_ : float
        The exponent in use.
    min_samples_leaf_ : int
        Fewest rows of a leaf.
    min_spread_ : float or float64 array (p,)
        Smallest spread of each numeric column, in units of the column's.
    feature_importances_ : float64 array (p,)
        Share of each feature in what the splits take off the target's impurity (the mean over trees).
    reference_ : float64 array (m, p)
        At most 500 rows of learning, drawn at random and encoded (level codes, NaN where missing): what `uncertainty`
        compares with.
    n_features_in_ : int
    feature_names_in_ : array of str, only if fitted on a frame

    References
    ----------
    A. Correia, R. Peharz, C. de Campos, "Joints in Random Forests", NeurIPS 2020.

    Examples
    --------
    >>> X, y = penguins.drop(columns="species"), penguins["species"]
    >>> clf = jf.GenerativeForestClassifier(n_estimators=20, random_state=0).fit(X, y)
    >>> clf.predict(X[["bill_length_mm", "island"]].head(2)).tolist()
    ['Adelie', 'Adelie']
    """

    class_weight: Any = None

    def _check(self) -> None:
        super()._check()
        given = self.class_weight
        if given is not None and given != "balanced" and not isinstance(given, Mapping):
            raise ValueError(f"class_weight must be None, 'balanced' or a dict of weights by class, got {given!r}")

    def _weigh(self, training: Training, weight: np.ndarray) -> np.ndarray:
        """The rows' weights times those of their classes; ValueError if a class is unknown or a weight not above 0."""
        if self.class_weight is None:
            return weight
        label = self.classes_[training.X[:, -1].astype(np.int64)]
        if isinstance(self.class_weight, Mapping):
            known = set(self.classes_.tolist())
            for name, share in self.class_weight.items():
                if name not in known:
                    raise ValueError(
                        f"class_weight: {name!r} is no class; the classes are {sorted(known, key=str)[:10]}"
                    )
                if not (share > 0.0 and np.isfinite(share)):
                    raise ValueError(f"class_weight: expected weights above 0, got {share!r} for {name!r}")
        return np.asarray(weight * compute_sample_weight(self.class_weight, label))

    def _learn(self, training: Training, assigned: AssignedRows, seed: int, filled: Filled | None = None) -> Any:
        rows = np.sort(np.random.default_rng(seed).permutation(len(training.X))[: FIXED.reference_rows])
        self.reference_ = training.X[rows, :-1]
        return super()._learn(training, assigned, seed, filled)

    @threaded
    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities p(y | x_o) of each row, missing cells summed out.

        Parameters
        ----------
        X : frame, array or lists of n rows, any cells or columns of which may be missing Where nothing is known the
            answer is the prior.

        Returns
        -------
        float64 array (n, K)
            In the order of ``classes_``; rows sum to 1.

        Raises
        ------
        ValueError, TypeError
            If there are columns that were not there at learning, or cells of another kind.
        """
        evidence = self._evidence(X)
        return self.joint_.distribution.observe_by_trees(evidence, self._query_beta).level_probabilities(self._target)

    @threaded
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    @threaded
    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row, the first of equals; array (n,)."""
        likeliest = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[likeliest])

    @threaded
    def predict_set(self, X: Any, level: float = 0.9) -> np.ndarray:
        """Classes that cannot be left out if the set is to hold the true one with this probability.

        The set of jackknife+ after bootstrap (Kim, Xu, Barber 2020; Romano, Sesia, Candes 2020), calibrated on training
        rows with the same cells missing: see ``docs/how-to/conformal-intervals.md`` for what is guaranteed. Needs
        ``conformal=True``.

        Parameters
        ----------
        X : frame, array or lists of n rows, any cells or columns of which may be missing
        level : float, more than 0 and less than 1

        Returns
        -------
        bool array (n, K)
            In the order of ``classes_``; the most probable class is always in it.

        Raises
        ------
        ValueError
            If the level is not between 0 and 1, or the forest was not fitted with ``conformal=True``.

        Examples
        --------
        >>> X, y = penguins.drop(columns="species"), penguins["species"]
        >>> clf = jf.GenerativeForestClassifier(n_estimators=10, conformal=True, random_state=0).fit(X, y)
        >>> clf.classes_[clf.predict_set(X[["island"]].head(1), 0.9)[0]].tolist()  # Torgersen
        ['Adelie']
        """
        check_number("level", level, 0, 1, without="both", text="between 0 and 1")
        cells, kept = self._features(X), self._calibration
        in_set = np.zeros((len(cells), len(self.classes_)), dtype=bool)
        for rows, pairs in pairs_by_pattern(
            self.joint_.distribution.forest_for("conformal prediction"), kept, cells, self.beta_, None
        ):
            in_set[rows] = label_set(pairs, level)
        in_set[np.arange(len(cells)), self.predict_proba(X).argmax(axis=1)] = True
        return in_set

    @threaded
    def uncertainty(
        self, X: Any, reference: Any = None, *, beta: float = 1.0, fragile: float = 0.1, unlikely: float = 5.0
    ) -> Uncertainty:
        """Predictions with both of their uncertainties: fragile ones, and those of rows unlike the ones learned from.

        Parameters
        ----------
        X : frame, array or lists of n rows
        reference : frame, array or lists of m rows, optional
            Rows to compare densities with, such as some that were not learned from; default: ``reference_``, which
            there is not after `from_joint`.
        beta : float in 0..1
            How trees are combined; by default as the mixture, whose robustness is more informative.
        fragile, unlikely : float
            A prediction with an epsilon below ``fragile`` is fragile; a row with a density below that of all but
            ``unlikely`` percent of the reference is unlikely.

        Returns
        -------
        Uncertainty
            Arrays ``predicted`` (None where the forest gives the row probability 0), ``probability``, ``epsilon``,
            ``log_density``, ``percentile`` and ``reading``.

        Examples
        --------
        >>> X, y = penguins.drop(columns="species"), penguins["species"]
        >>> clf = jf.GenerativeForestClassifier(n_estimators=10, random_state=0).fit(X, y)
        >>> usual, odd = clf.uncertainty(X.iloc[[0, 0]].assign(body_mass_g=[3750, 9000])).percentile
        >>> bool(odd < 5 < usual)
        True
        """
        evidence = self._evidence(X)
        if reference is None and not hasattr(self, "reference_"):
            raise ValueError("uncertainty: the estimator has seen no rows; give some as reference")
        others = know_features(self.joint_.schema, self.reference_) if reference is None else self._evidence(reference)
        result = uncertainty(
            self.joint_.distribution, evidence, others, self._target, beta=beta, fragile=fragile, unlikely=unlikely
        )
        predicted = np.asarray(self.classes_[result.predicted])
        if (impossible := result.predicted < 0).any():
            predicted = predicted.astype(object)
            predicted[impossible] = None
        return result._replace(predicted=predicted)
