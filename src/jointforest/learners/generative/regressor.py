"""A regression forest that is a joint distribution of features and a number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin

from ...runtime.parameters import check_number, check_shares, parameter
from ...runtime.threads import threaded
from ..base import MAX_FEATURES
from ..growing.grow_kernels import VARIANCE
from .base import GenerativeForest
from .supervised import interval, pairs_by_pattern


@dataclass(eq=False, repr=False)
class GenerativeForestRegressor(RegressorMixin, GenerativeForest):
    """A regression forest that is a joint distribution: means, quantiles and intervals with any inputs missing.

    Like `GenerativeForestClassifier`, but for a number as target. On complete rows ``combine="trees"`` predicts the
    means of the regression forest itself.

    Parameters
    ----------
    criterion : {"squared_error"}
    target_in_leaf : {"factorised", "full"}
        Whether a leaf takes the target as independent of the features, or models them together, in its mixture: "full"
        needs ``leaf="spn"``, because there are no classes by which to divide a leaf.
    conformal : bool
        Whether training rows are kept (5,000 at most) so that `predict_interval`'s intervals have a
        guarantee: see ``docs/how-to/conformal-intervals.md``. Needs ``bootstrap=True``; trees are then asked without
        the background.
    n_estimators, max_features, max_depth, max_leaf_nodes, min_samples_split, min_samples_leaf, bootstrap, max_samples
        As of `GenerativeForestClassifier`.
    leaf, min_spn_samples, bounds, smoothing, prior, spread_rows, min_spread, epsilon, combine, beta, kinds, extra
        As of `GenerativeForestClassifier`.
    n_jobs, random_state
        As of `GenerativeForestClassifier`.

    Attributes
    ----------
    joint_, beta_, min_samples_leaf_, min_spread_, feature_importances_, n_features_in_, feature_names_in_
        As of `GenerativeForestClassifier`.

    References
    ----------
    A. Correia, R. Peharz, C. de Campos, "Joints in Random Forests", NeurIPS 2020.

    Examples
    --------
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
        X : frame, array or lists of n rows, any cells or columns of which may be missing
        q : float, or sequence of k floats, more than 0 and less than 1

        Returns
        -------
        float64 array (n,), or (n, k) for a sequence

        Raises
        ------
        ValueError
            If a q is not between 0 and 1.

        Examples
        --------
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
        X : frame, array or lists of n rows, any cells or columns of which may be missing
        level : float, more than 0 and less than 1

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
