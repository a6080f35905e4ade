"""A regression forest that is a joint distribution of features and a number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin

from ...runtime.parameters import check_number, check_shares, parameter
from ...runtime.threads import threaded
from ..base import MAX_FEATURES
from ..growing.criterion_kernels import VARIANCE
from .base import GenerativeForest
from .conformal import interval, pairs_by_pattern


@dataclass(eq=False, repr=False)
class GenerativeForestRegressor(RegressorMixin, GenerativeForest):
    """A regression forest that is a joint distribution: means, quantiles and intervals with any inputs missing.

    Like `GenerativeForestClassifier`, but for a number as target. On complete rows ``combine="trees"`` predicts the
    means of the regression forest itself.

    Parameters
    ----------
    n_estimators : int
        Number of trees.
    criterion : {"squared_error"}
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
        Density of numbers in a leaf, truncated to the leaf's box, so that the whole integrates to 1. "normal": a
        truncated normal with the mean of the leaf's values, whose untruncated parent has their standard deviation.
        "auto": "quantile" for the features whose distribution over the table normals bend (rows drawn from the joint
        are more than 0.01 away), unless out-of-bag rows are less probable then, or predicted worse; truer densities,
        but learning takes two to five times as long and rows with missing cells five to fifteen times.
        "normal_moments": the parent has their mean as well. "normal_mle": a truncated normal of maximum likelihood.
        "quantile": a piecewise-linear CDF. "spn": leaves of at least ``min_spn_samples`` rows are mixtures of
        products, learned with LearnSPN, the others as "normal".
        "chow_liu": Chow-Liu trees on the codes of each column's own scale, the target among them; ``joint_`` is then
        hidden trees, whose conditionals predict (``beta_`` is 1). Trees have at most 120 leaves of 12 rows unless said
        otherwise, and each leaf has tables of its own: take 10 to 20 trees. ``robustness`` is refused, and there is no
        ``min_spread_``; ``bounds``, ``smoothing``, ``prior``, ``spread_rows`` and ``min_spread`` have no effect.
    target_in_leaf : {"factorised", "full"}
        Whether a leaf takes the target as independent of the features, or models them together, in its mixture: "full"
        needs ``leaf="spn"``, for there are no classes to part a leaf by.
    min_spn_samples : int
        Fewest rows of a leaf that becomes a mixture.
    bounds : {"no", "auto", "local", "global"}
        Support of a leaf's density: its box ("no"); the box with its open sides cut at the column's span ("global"),
        or only where the leaves would put the mass of more than five rows beyond all data ("auto"); the span of the
        leaf's own values ("local").
    smoothing : float or "auto"
        Pseudo-rows added to a leaf's levels, in all with the prior "marginal", for each level with "uniform"; "auto"
        takes 0.3 or, where these predict out-of-bag rows better when 30 % of their cells are hidden, 2.
    prior : {"marginal", "uniform"}
        Where pseudo-rows come from: the column's own frequencies, or all levels alike.
    spread_rows : float
        Pseudo-rows with which the variance in a leaf is drawn to the column's pooled within-leaf variance.
    min_spread : float or "auto"
        Smallest standard deviation in a leaf, in units of the column's; "auto" chooses it for each column, so that
        out-of-bag cells are most probable (0.1 with ``bootstrap=False``).
    epsilon : float
        Weight of the background, a wide distribution of the whole table; 0 leaves it out, and rows far from all others
        may then have density 0.
    combine : {"weighted", "trees", "mixture"}
        How predictions combine the trees. "trees" (GeF): the average of each tree's p_t(y | x_o). "mixture" (GeF+): the
        conditional of the whole, in which trees weigh as their p_t(x_o). "weighted": weights p_t(x_o)^beta.
    beta : float in 0..1 or "auto"
        The exponent of "weighted"; "auto" takes the one that predicts out-of-bag rows best when 30 % of their cells are
        hidden (0 with ``bootstrap=False``).
    conformal : bool
        Whether training rows are kept (5,000 at most) so that `predict_interval`'s intervals have a
        guarantee: see ``docs/how-to/conformal-intervals.md``. Needs ``bootstrap=True``; trees are then asked without
        the background.
    kinds : dict or None
        Kinds of columns by name, where the inferred ones are not wanted (of an array: x0, x1 and so on).
    extra : {"refuse", "ignore"}
        What becomes of columns that `fit` did not see, in frames to be predicted: an error that names them, or nothing.
        The target's own column is never looked at.
    n_jobs : int or None
        Threads (-1: all cores). The result does not depend on it.
    random_state : int, RandomState or None

    Attributes
    ----------
    joint_ : Joint
        The distribution of features and target (the last column).
    beta_ : float
        The exponent in use.
    min_samples_leaf_ : int
        Fewest rows of a leaf.
    min_spread_ : float or float64 array (p,)
        Smallest spread of each numeric column, in units of the column's.
    feature_importances_ : float64 array (p,)
        Share of each feature in what the splits take off the target's variance (the mean over trees).
    n_features_in_ : int
    feature_names_in_ : array of str
        Only if fitted on a frame.

    References
    ----------
    A. Correia, R. Peharz, C. de Campos, "Joints in Random Forests", NeurIPS 2020.

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
    criterion: str = parameter("squared_error", *_criteria)
    max_features: str | int | float | None = parameter(1 / 3, *MAX_FEATURES)

    def _check(self) -> None:
        super()._check()
        if self.target_in_leaf == "full" and self.leaf != "spn":
            raise ValueError(
                f"target_in_leaf='full' of a regressor needs leaf='spn', got leaf={self.leaf!r}: "
                "a number has no classes to part a leaf by"
            )

    @threaded
    def predict(self, X: Any) -> np.ndarray:
        """Mean of the target given the known cells of each row; float64 array (n,)."""
        evidence = self._evidence(X)
        return self.joint_.distribution.observe_by_trees(evidence, self._query_beta).moments(self._target)[0]

    @threaded
    def predict_quantiles(self, X: Any, q: Any) -> np.ndarray:
        """Quantiles inf{y: P(target <= y | x_o) >= q} of the target given the known cells of each row.

        Parameters
        ----------
        X : frame, array or lists of n rows
            Any cells, and in a frame whole columns, may be missing.
        q : float, or sequence of k floats
            More than 0 and less than 1.

        Returns
        -------
        float64 array (n,), or (n, k) for a sequence

        Raises
        ------
        ValueError
            If a q is not between 0 and 1.

        Examples
        --------
        >>> import jointforest as jf
        >>> penguins = jf.datasets.load_penguins().dropna(subset="body_mass_g")
        >>> X, y = penguins.drop(columns="body_mass_g"), penguins["body_mass_g"]
        >>> forest = jf.GenerativeForestRegressor(n_estimators=10, random_state=0).fit(X, y)
        >>> quartiles = forest.predict_quantiles(X[["species"]].head(2), [0.25, 0.5, 0.75])
        >>> quartiles.shape, bool((quartiles[:, 0] < quartiles[:, 2]).all())
        ((2, 3), True)
        """
        levels = check_shares("q", q)
        evidence = self._evidence(X)
        points = np.atleast_1d(levels)
        quantiles = self.joint_.distribution.observe_by_trees(evidence, self._query_beta).quantile(self._target, points)
        return quantiles[:, 0] if levels.ndim == 0 else quantiles

    @threaded
    def predict_interval(self, X: Any, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of the interval with equal tails that holds this share of the target, given the known cells.

        With ``conformal=True`` the interval is the jackknife+ after bootstrap's (Kim, Xu, Barber 2020), calibrated on
        training rows with the same cells missing: see ``docs/how-to/conformal-intervals.md`` for what is guaranteed.

        Parameters
        ----------
        X : frame, array or lists of n rows
            Any cells, and in a frame whole columns, may be missing.
        level : float
            More than 0 and less than 1.

        Returns
        -------
        lo, hi : float64 arrays (n,)
            Conformal ones are infinite where fewer rows calibrate than the level needs, level / (1 - level).

        Raises
        ------
        ValueError
            If the level is not between 0 and 1.

        Examples
        --------
        >>> import jointforest as jf
        >>> penguins = jf.datasets.load_penguins().dropna(subset="body_mass_g")
        >>> X, y = penguins.drop(columns="body_mass_g"), penguins["body_mass_g"]
        >>> forest = jf.GenerativeForestRegressor(n_estimators=10, random_state=0).fit(X, y)
        >>> low, high = forest.predict_interval(X, 0.9)
        >>> bool(((low < y) & (y < high)).mean() > 0.85)
        True
        """
        check_number("level", level, 0, 1, without="both", text="between 0 and 1")
        if self.conformal:
            return self._conformal_interval(self._features(X), level)
        both = self.predict_quantiles(X, [(1 - level) / 2, (1 + level) / 2])
        return both[:, 0], both[:, 1]

    def _conformal_interval(self, X: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
        """Conformal bounds (n,) of encoded rows (n, d)."""
        kept, forest = self._calibration, self.joint_.distribution.forest_for("conformal prediction")
        centre = float(kept.y.mean())
        least = 1e-6 * float(kept.y.std()) or 1.0
        low, high = np.empty(len(X)), np.empty(len(X))
        for rows, pairs in pairs_by_pattern(forest, kept, X, self.beta_, centre):
            low[rows], high[rows] = interval(pairs, level, centre, least)
        return low, high
