"""A regression forest that is a joint distribution of features and a number."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin

from ...queries.column.distribution import quantile
from ...queries.column.moments import mean_variance
from ...trees.grow.criterion_kernels import VARIANCE
from .base import GenerativeForest


class GenerativeForestRegressor(RegressorMixin, GenerativeForest):
    """A regression forest that is a joint distribution: means, quantiles and intervals with any inputs missing.

    Like `GenerativeForestClassifier`, but for a number as target. On complete rows ``combine="trees"`` predicts the
    means of the regression forest itself.

    Parameters
    ----------
    criterion : {"squared_error"}
    max_features : "sqrt", "log2", None, int or float
        Columns tried at each split (None: all; a float: that share).
    target_in_leaf : {"factorised", "full"}
        "full" needs ``leaf="spn"``: there are no classes to part a leaf by.
    all others
        As of `GenerativeForestClassifier`.

    Attributes
    ----------
    joint_, beta_, min_samples_leaf_, min_spread_, n_features_in_, feature_names_in_
        As of `GenerativeForestClassifier`.

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
        smoothing: float | str = "auto",
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

    def _check(self) -> None:
        super()._check()
        if self.target_in_leaf == "full" and self.leaf != "spn":
            raise ValueError(
                f"target_in_leaf='full' of a regressor needs leaf='spn', got leaf={self.leaf!r}: "
                "a number has no classes to part a leaf by"
            )

    def predict(self, X: Any) -> np.ndarray:
        """Mean of the target given the known cells of each row; float64 array (n,)."""
        evidence = self._evidence(X)
        return mean_variance(self.joint_.model, evidence, self._target, self.n_jobs, self._dial)[0]

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
        levels = np.asarray(q, dtype=np.float64)
        if levels.ndim > 1 or not np.all((levels > 0) & (levels < 1)):
            raise ValueError(f"q must be a number, or a sequence of numbers, between 0 and 1, got {q!r}")
        evidence = self._evidence(X)
        points = np.atleast_1d(levels)
        found = quantile(self.joint_.model, evidence, self._target, points, self.n_jobs, self._dial)
        return found[:, 0] if levels.ndim == 0 else found

    def predict_interval(self, X: Any, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of the interval with equal tails that holds this share of the target, given the known cells.

        Parameters
        ----------
        X : frame, array or lists of n rows
            Any cells, and in a frame whole columns, may be missing.
        level : float
            More than 0 and less than 1.

        Returns
        -------
        lo, hi : float64 arrays (n,)

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
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1, got {level!r}")
        both = self.predict_quantiles(X, [(1 - level) / 2, (1 + level) / 2])
        return both[:, 0], both[:, 1]
