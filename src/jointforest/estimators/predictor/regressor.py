"""A regressor that takes any pattern of missing cells."""

from __future__ import annotations

import os
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ...api.joint import Joint
from ...data.evidence import Evidence
from ...data.frames import read
from ...data.infer_schema import infer_schema
from ...data.schema import snapped
from ...learners.generative.targets import as_table, column_like, target_cells, target_name
from ...runtime.parameters import check_number, check_shares
from ...runtime.threads import threaded
from .base import JointPredictor, answer_in_blocks
from .pooling import LEVELS, NumberPool
from .survival import StepFunction, SurvivalModel, concordance, fit_survival, target_of

_KINDS = ("integer", "rounded", "mixed")
"""Kinds of numbers that a target may be inferred to be, beside continuous."""
_LARGEST_WHOLE = 2.0**51
"""Larger numbers have no grid of whole numbers."""


class JointRegressor(RegressorMixin, JointPredictor):
    """Predict a number from rows with any cells missing: means, quantiles and intervals.

    The members are those of `JointClassifier`. Their means are combined by least squares on validation rows, from which
    cells are hidden at several rates. The forest and the joint give distances of quantiles from the mean, which are
    combined by the CRPS. The weights depend on how much of a row is missing.
    What is computed: ``docs/concepts/predictors.md``.

    Parameters
    ----------
    boosting, budget, kinds, extra, n_jobs, random_state, verbose
        As of `JointClassifier`; boosted trees are by default scikit-learn's `HistGradientBoostingRegressor`.

    Attributes
    ----------
    joint_, members_, fitted_by, n_features_in_, feature_names_in_
        As of `JointClassifier`.

    Examples
    --------
    >>> import jointforest as jf
    >>> penguins = jf.datasets.load_penguins().dropna(subset="body_mass_g")
    >>> X, y = penguins.drop(columns="body_mass_g"), penguins["body_mass_g"]
    >>> reg = jf.JointRegressor(random_state=0).fit(X, y)
    >>> low, high = reg.predict_interval(X[["species", "sex"]].head(1), 0.9)
    >>> bool(low[0] < reg.predict(X[["species", "sex"]].head(1))[0] < high[0])
    True
    """

    _target_kind = "continuous"
    _pool: NumberPool
    _survival: SurvivalModel | None = None

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from a table; cells of the features may be missing.

        Parameters
        ----------
        X : frame, array or lists of n rows
            As of `JointClassifier.fit`.
        y : series or array (n,), or times to an event that are not over in some rows
            Numbers; none may be missing. Times are a structured array, as scikit-survival has it, or a frame of two
            columns: one of booleans or of 0 and 1, whether the event has happened, and one of numbers, when it has, or
            until when the row was observed. Then members are regressions of the hazard and the joint, ``boosting`` and
            ``budget`` are not used, `predict` is the mean time up to the last event, `predict_survival_function` the
            curves, and `score` is the C-index.

        Raises
        ------
        ValueError, TypeError
            If a parameter is out of its range, or the table cannot be used (each message names the column).

        Notes
        -----
        It is assumed that censoring is independent of the time to the event, given the features.
        """
        target = target_of(y)
        self._survival = None
        if target is None:
            return super().fit(X, y)
        self._check()
        X = as_table(X)
        validate_data(self, X, skip_check_array=True)
        self._learn_times(X, target)
        return self

    @threaded
    def _learn_times(self, X: Any, target: Any) -> None:
        self._survival = fit_survival(X, target, self.kinds, self._draw_seed())
        self.joint_, self.members_ = Joint(self._survival.joint), tuple(self._survival.weight)
        self._report = None

    @threaded
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R squared of the predicted means; of times to an event their C-index.

        Parameters
        ----------
        X : frame, array or lists of n rows
        y : as of `fit`
        sample_weight : array (n,), optional

        Returns
        -------
        float
            The C-index is the share of pairs of rows that have their events in the predicted order, by inverse
            probability of censoring, up to the 95 % quantile of the times. 0.5 is chance.

        Raises
        ------
        ValueError
            If y is not what `fit` was given, or no two rows can be compared; as of `predict`.
        """
        target = target_of(y)
        check_is_fitted(self, "joint_")
        if (target is None) != (self._survival is None):
            held = ("plain numbers", "times and whether the event has happened")
            raise ValueError(f"y: expected {held[self._survival is not None]}, as at learning")
        if target is None and target_cells(y).dtype.kind not in "biuf":
            raise ValueError("y: R squared needs numbers; leave out the rows of which only a range is known")
        if target is None:
            return float(super().score(X, y, sample_weight))
        weight = np.ones(len(target.time)) if sample_weight is None else np.asarray(sample_weight, np.float64)
        return concordance(target, self.predict(X), weight)

    @property
    def unique_times_(self) -> np.ndarray:
        """Times of events at learning, ascending, where survival functions fall."""
        return self._survival_model().times

    @threaded
    def predict_survival_function(self, X: Any, return_array: bool = False) -> np.ndarray:
        """Probability that the event has not happened by each time, given the known cells of each row.

        Parameters
        ----------
        X : frame, array or lists of n rows, any cells or columns of which may be missing
        return_array : bool
            Whether to return probabilities (n, k) at ``unique_times_``.

        Returns
        -------
        array (n,) of `StepFunction`, or float64 array (n, k)

        Raises
        ------
        ValueError
            If the target was no time to an event; as of `predict`.

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> import jointforest as jf
        >>> rng = np.random.default_rng(0)
        >>> plan = rng.choice(["basic", "pro"], 200)
        >>> months, until = rng.exponential(np.where(plan == "pro", 30, 10)), rng.uniform(0, 40, 200)
        >>> y = pd.DataFrame({"ended": months <= until, "months": np.minimum(months, until)})
        >>> reg = jf.JointRegressor(random_state=0).fit(pd.DataFrame({"plan": plan}), y)
        >>> basic, pro = reg.predict_survival_function(pd.DataFrame({"plan": ["basic", "pro"]}))
        >>> bool(basic(12) < 0.5 < pro(12))
        True
        """
        model = self._survival_model()
        curves = answer_in_blocks(lambda block: model.curves(block, model.times), self._evidence(X))
        if return_array:
            return curves
        found = np.empty(len(curves), dtype=object)
        found[:] = [StepFunction(model.times, curve, model.last) for curve in curves]
        return found

    def save(self, path: str | os.PathLike[str]) -> None:
        if self._survival is not None:
            raise ValueError(
                "a regressor of times to an event cannot be saved to a .joint file; save its joint: "
                "reg.joint_.save(path)"
            )
        super().save(path)

    save.__doc__ = JointPredictor.save.__doc__

    def _survival_model(self) -> SurvivalModel:
        check_is_fitted(self, "joint_")
        if self._survival is None:
            raise ValueError("the target was plain numbers; give fit times and whether the event has happened")
        return self._survival

    def _kinds(self, X: Any, y: Any) -> dict[str, str] | None:
        """Those given, and that of the target: whole numbers and decimals have a grid, as other columns do."""
        name, kinds = target_name(y, read(X).names), dict(self.kinds or {})
        cells = target_cells(y)
        is_number = cells.dtype.kind in "biuf"
        if name in kinds or len(cells) < 2 or (is_number and not np.isfinite(cells).all()):
            return self.kinds
        frame = column_like(X, name, cells)
        is_whole = is_number and bool((cells == np.rint(cells)).all() and np.abs(cells).max() < _LARGEST_WHOLE)
        kind = "integer" if is_whole else infer_schema(frame, doubt=False).columns[0].kind
        return kinds | {name: kind} if kind in _KINDS else self.kinds

    def _predict_block(self, evidence: Evidence) -> np.ndarray:
        if self._survival is not None:
            return self._survival.restricted_means(evidence)[:, None]
        return self._pool.mean(*self._stacked(evidence))[:, None]

    @threaded
    def predict(self, X: Any) -> np.ndarray:
        """Mean of the target given the known cells of each row.

        Parameters
        ----------
        X : frame, array or lists of n rows, any cells or columns of which may be missing

        Returns
        -------
        float64 array (n,)

        Raises
        ------
        ValueError, TypeError
            If there are columns that were not there at learning, or cells of another kind.
        """
        return self._predict(self._evidence(X))[:, 0]

    @threaded
    def predict_quantile(self, X: Any, q: Any) -> np.ndarray:
        """Quantiles of the target given the known cells of each row.

        Parameters
        ----------
        X : frame, array or lists of n rows, any cells or columns of which may be missing
        q : float, or sequence of k floats
            More than 0 and less than 1. Beyond 0.0005 and 0.9995 quantiles stay as they are there.

        Returns
        -------
        float64 array (n,), or (n, k) for a sequence
            Between the smallest and the largest target of the learning rows; one of them if they have a grid, as whole
            numbers and decimals do. Of times to an event they are times of events, or infinite beyond the last one,
            where nothing is learned.

        Raises
        ------
        ValueError
            If a q is not between 0 and 1; as of `predict`.

        Examples
        --------
        >>> import jointforest as jf
        >>> penguins = jf.datasets.load_penguins().dropna(subset="body_mass_g")
        >>> X, y = penguins.drop(columns="body_mass_g"), penguins["body_mass_g"]
        >>> reg = jf.JointRegressor(random_state=0).fit(X, y)
        >>> quartiles = reg.predict_quantile(X[["species"]].head(2), [0.25, 0.5, 0.75])
        >>> quartiles.shape, bool((quartiles[:, 0] < quartiles[:, 2]).all())
        ((2, 3), True)
        """
        levels = check_shares("q", q)
        found = self._quantiles(self._evidence(X), np.atleast_1d(levels))
        return found[:, 0] if levels.ndim == 0 else found

    @threaded
    def predict_interval(self, X: Any, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of the interval with equal tails that holds this share of the target, given the known cells.

        Parameters
        ----------
        X : frame, array or lists of n rows, any cells or columns of which may be missing
        level : float, more than 0 and less than 1

        Returns
        -------
        lo, hi : float64 arrays (n,)

        Raises
        ------
        ValueError
            If the level is not between 0 and 1; as of `predict`.
        """
        check_number("level", level, 0, 1, without="both", text="between 0 and 1")
        both = self._quantiles(self._evidence(X), np.array([(1 - level) / 2, (1 + level) / 2]))
        return both[:, 0], both[:, 1]

    def _quantiles(self, evidence: Evidence, q: np.ndarray) -> np.ndarray:
        """Quantiles (n, k), within the range of the learning rows; targets of theirs if these have a grid."""
        if self._survival is not None:
            model = self._survival
            return answer_in_blocks(lambda block: model.quantiles(block, q), evidence)

        def of_block(block: Evidence) -> np.ndarray:
            every = pool.quantiles(*self._stacked(block, with_spread=True))
            return np.stack([np.interp(q, LEVELS, row) for row in every]) if len(every) else np.empty((0, len(q)))

        pool, column = self._pool, self.joint_.schema.columns[-1]
        found = np.clip(answer_in_blocks(of_block, evidence), pool.values[0], pool.values[-1])
        if column.step > 0.0:
            above = np.searchsorted(pool.values, found)
            near = np.stack([pool.values[np.maximum(above - 1, 0)], pool.values[above]])
            found = np.where(found - near[0] <= near[1] - found, *near)
        return snapped(column, found)
