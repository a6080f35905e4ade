"""Rows drawn from a joint and added to a training table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from ..data.frames import read
from ..learners.base import Learner, check_learner, joint_of
from ..learners.generative.targets import as_table, column_like, target_cells, target_name
from ..learners.hidden_tree.hidden_tree_forest import HiddenTreeForest
from ..runtime.parameters import Number, check_number, seed_of
from ..runtime.threads import threaded


@dataclass(eq=False, repr=False)
class JointAugmenter(Learner):
    """Add rows drawn from the joint of features and target: classes balanced, or a table made larger.

    A sampler in the sense of imbalanced-learn (``fit_resample``), whose pipelines take it; those of scikit-learn
    have no place for steps that change the number of rows.

    Parameters
    ----------
    estimator : estimator, optional
        An unfitted learner whose ``fit(X)`` ends in ``joint_``. Default: a `HiddenTreeForest`.
    sampling_strategy : "auto", dict or int
        "auto": every class gets as many rows as the largest has. A dict: rows that classes are to have, by class. A
        number: rows to add, with targets as they come, classes or numbers.
    n_jobs : int or None
        Threads of the default estimator and of drawing (-1: all cores). The result does not depend on it.
    random_state : int, RandomState or None
        Of draws and of the default estimator; a given estimator has its own.

    Attributes
    ----------
    joint_ : Joint
        Of the features and, as its last column, the target.
    estimator_ : estimator
        The fitted learner.
    classes_ : array (K,)
        Sorted; only with "auto" or a dict.
    n_features_in_ : int
    feature_names_in_ : array of str, only if fitted on a frame

    Notes
    -----
    Rows drawn for a class come from p(x | y = class) of the joint, exactly. Cells are missing in them as often as in
    the table. What they are good for: ``docs/how-to/impute-and-augment.md``. Never let rows to test by be among those
    that it is fitted on.

    Examples
    --------
    >>> X, y = penguins.drop(columns="species"), penguins["species"]
    >>> augmenter = jf.JointAugmenter(jf.HiddenTreeForest(n_states=8, random_state=0), random_state=0)
    >>> more, labels = augmenter.fit_resample(X, y)
    >>> labels.value_counts().to_dict()
    {'Adelie': 152, 'Chinstrap': 152, 'Gentoo': 152}
    """

    estimator: Any = None
    _: KW_ONLY
    sampling_strategy: Any = "auto"
    n_jobs: int | None = -1
    random_state: Any = None

    @threaded
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> JointAugmenter:
        """Learn the joint of features and target.

        Parameters
        ----------
        X : frame, array or lists of n rows
            Cells may be missing.
        y : series or array (n,)
            None may be missing.
        sample_weight : array-like (n,), optional
            Weights of the rows in learning, not negative.

        Raises
        ------
        ValueError
            If a parameter is out of its range, or the table cannot be used.
        TypeError
            If the estimator is no learner of whole tables.
        """
        self._check()
        strategy = self.sampling_strategy
        by_number = isinstance(strategy, Integral) and not isinstance(strategy, bool)
        if by_number:
            check_number("sampling_strategy", strategy, 0, whole=True)
        elif not (isinstance(strategy, Mapping) or (isinstance(strategy, str) and strategy == "auto")):
            raise ValueError(f"sampling_strategy must be 'auto', a dict or a number of rows, got {strategy!r}")
        X = as_table(X)
        validate_data(self, X, skip_check_array=True)
        self._target = target = _read_target(X, y)
        learner = HiddenTreeForest(random_state=self._draw_seed())
        if self.estimator is not None:
            check_learner(self.estimator)
            learner = clone(self.estimator)
        if is_classifier(learner) or is_regressor(learner):
            raise ValueError(
                f"estimator: {type(learner).__name__} has a target of its own; give a learner of whole tables"
            )
        if not by_number:
            self.classes_, counts = _class_counts(target.cells)
            self._wanted = _rows_wanted(strategy, self.classes_, counts)
            kinds = learner.get_params().get("kinds") or {}
            learner.set_params(kinds={**kinds, target.name: "categorical"})
        elif hasattr(self, "classes_"):
            del self.classes_
        weight = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.estimator_ = learner.fit(_features_and_target(X, target), **weight)
        self.joint_ = joint_of(self.estimator_)
        return self

    @threaded
    def fit_resample(self, X: Any, y: Any, sample_weight: Any = None) -> tuple[Any, Any]:
        """Learn the joint, and give the table with rows drawn from it below its own.

        Parameters
        ----------
        X, y, sample_weight
            As of `fit`.

        Returns
        -------
        X : frame or array of n + k rows
            The n rows as they came, then those drawn; of the library and types of X. Indices of pandas begin anew.
        y : series or array (n + k,)

        Raises
        ------
        ValueError
            As of `fit`.
        """
        self.fit(X, y, sample_weight)
        X, rng = as_table(X), np.random.default_rng(self._draw_seed())
        draws: list[tuple[int, Any]] = [(self.sampling_strategy, None)]
        if hasattr(self, "classes_"):
            draws = [(k, c) for c, k in zip(self.classes_.tolist(), self._wanted, strict=True) if k]
        table = _stacked_tables(
            [_features_and_target(X, self._target), *(self._draw(k, label, rng) for k, label in draws)]
        )
        return _parted(table, X, self._target)

    @threaded
    def sample(  # type: ignore[override]  # rows come with their targets, of one class where it is named
        self, n: int = 1, label: Any = None, random_state: Any = None
    ) -> tuple[Any, Any]:
        """Rows drawn from the joint.

        Parameters
        ----------
        n : int
        label : optional
            A class: rows of p(x | y = label). Default: classes as they come.
        random_state : None, int, Generator or RandomState

        Returns
        -------
        X : frame or array of n rows, as at learning
        y : series or array (n,)

        Raises
        ------
        ValueError
            If n is negative, or there is no such class.

        Examples
        --------
        >>> X, y = penguins.drop(columns="species"), penguins["species"]
        >>> augmenter = jf.JointAugmenter(jf.HiddenTreeForest(n_states=8, random_state=0)).fit(X, y)
        >>> rows, labels = augmenter.sample(3, "Gentoo", random_state=0)
        >>> labels.tolist(), rows.shape
        (['Gentoo', 'Gentoo', 'Gentoo'], (3, 6))
        """
        check_is_fitted(self, "joint_")
        if label is not None and label not in (known := getattr(self, "classes_", np.empty(0)).tolist()):
            raise ValueError(f"label: {label!r} is no class; the classes are {known}")
        table = self._draw(n, label, np.random.default_rng(seed_of(random_state)))
        return _parted(table, table, self._target)

    def _draw(self, n: int, label: Any, rng: np.random.Generator) -> Any:
        """n rows of features and target, of one class or as they come."""
        if label is None:
            return self.joint_.sample(n, rng, True)
        return self.joint_.given({self.joint_.columns[-1]: label}).sample(n, rng, missing=True)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


class _Target(NamedTuple):
    """A target of n rows.

    name : str. Of its column in the table that is learned.
    cells : array (n,)
    like : series or array without entries. Of the library and type that it came in.
    """

    name: str
    cells: np.ndarray
    like: Any


def _read_target(X: Any, y: Any) -> _Target:
    """The target of a table, checked."""
    cells, reader = target_cells(y), read(X)
    if len(cells) != reader.n:
        raise ValueError(f"X has {reader.n} rows and y has {len(cells)} entries; expected as many of both")
    name = f"x{len(reader.names)}" if reader.frame == "numpy" else target_name(y)
    while name in reader.names:
        name += "_"
    return _Target(name, cells, y[:0] if nw.dependencies.is_into_series(y) else cells[:0])


def _features_and_target(X: Any, target: _Target) -> Any:
    """Features and target as one table of the library of X."""
    if isinstance(X, np.ndarray):
        both = X.dtype.kind in "biuf" and target.cells.dtype.kind in "biuf"
        return np.column_stack([X if both else X.astype(object), target.cells if both else target.cells.astype(object)])
    frames = X, column_like(X, target.name, target.cells)
    return nw.concat([nw.from_native(frame, eager_only=True) for frame in frames], how="horizontal").to_native()


def _stacked_tables(tables: list[Any]) -> Any:
    """Tables one below the other."""
    if isinstance(tables[0], np.ndarray):
        return np.concatenate(tables)
    return nw.concat([nw.from_native(table, eager_only=True) for table in tables]).to_native()


def _parted(table: Any, X: Any, target: _Target) -> tuple[Any, Any]:
    """Features, of the type of X, and target, of the type that it came in."""
    if isinstance(table, np.ndarray):
        features, cells = table[:, :-1].astype(X.dtype), table[:, -1].tolist()
    else:
        wide = nw.maybe_reset_index(nw.from_native(table, eager_only=True))
        features, cells = wide.drop(target.name).to_native(), wide[target.name].to_list()
    if isinstance(target.like, np.ndarray):
        return features, np.array(cells).astype(target.like.dtype)
    like = nw.from_native(target.like, series_only=True)
    series = nw.new_series(like.name or "", cells, like.dtype, backend=like.implementation).to_native()
    if nw.dependencies.is_pandas_series(series):
        return features, series.astype(target.like.dtype).rename(target.like.name)
    return features, series


def _class_counts(cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Classes, sorted, and how many rows each has."""
    kind = type_of_target(cells)
    if kind not in ("binary", "multiclass"):
        raise ValueError(
            f"Unknown label type: {kind}. Classes are balanced, and y holds numbers; give sampling_strategy the number "
            "of rows to add"
        )
    classes, counts = np.unique(cells, return_counts=True)
    return classes, counts


def _rows_wanted(strategy: Any, classes: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Rows to be drawn of each class (K,)."""
    if not isinstance(strategy, Mapping):
        return np.asarray(counts.max() - counts)
    known = classes.tolist()
    wrong = [label for label in strategy if label not in known]
    if wrong:
        raise ValueError(f"sampling_strategy: {wrong[0]!r} is no class; the classes are {known}")
    wanted = dict(zip(known, counts.tolist(), strict=True))
    for label, number in strategy.items():
        if number not in Number(wanted[label], whole=True):
            raise ValueError(
                f"sampling_strategy: class {label!r} has {wanted[label]} rows and is to have {number!r}; expected a "
                "whole number, not less: rows are added, not taken away"
            )
        wanted[label] = int(number)
    return np.array(list(wanted.values()), dtype=np.int64) - counts
