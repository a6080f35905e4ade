"""What the learners share: declared parameters, the table they read, and the joint they end in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from numbers import Integral
from typing import Any, Self

import narwhals as nw
import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from ..api.joint import Joint
from ..data.frames import read, row_weights, take_rows, with_names
from ..data.rules.rule import Equation, Order
from ..data.schema import kernel_columns
from ..evaluation.columns_and_pairs import LostPair, lost_pairs, warn_lost_pairs
from ..evaluation.statements import statements, warn_lost
from ..models.base import Distribution
from ..models.box_forest.box_forest import BoxForest
from ..runtime.parameters import Allowed, Number, check, check_number, check_parameters
from ..runtime.threads import threaded
from ..runtime.warnings import warn
from .batches.fill import Sizes, Structure, fill_leaves, leaf_sizes
from .batches.sample import Sampled, fold_of, take_weighed
from .rows import TableRows, check_cells, read_training_rows

MAX_FEATURES: Allowed = (
    "sqrt",
    "log2",
    None,
    Number(1, whole=True, text="a whole number >= 1"),
    Number(0, 1, without="low", text="a share in (0, 1]"),
)
BOUNDS: Allowed = ("auto", "no", "local", "global")
PRIORS: Allowed = ("marginal", "uniform")


class Estimator(BaseEstimator):
    """What learns from a table whose cells may be missing, and whose columns may hold numbers or levels.

    Its parameters are the fields of a dataclass: scikit-learn finds them in the signature of ``__init__``.
    """

    n_jobs: int | None
    random_state: Any

    def _check(self) -> None:
        """Refuse parameters out of range, and those that do not go together."""
        check_parameters(self)

    def _name_columns(self, names: Sequence[str], frame: str) -> None:
        """Say which columns fit saw, as scikit-learn does: an array has no names."""
        self.n_features_in_ = len(names)
        if frame != "numpy":
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):  # of a fit before
            del self.feature_names_in_

    def _same_columns(self, X: Any) -> Any:
        """A table that a fitted estimator is asked about, unless it is an array with another number of columns."""
        check_is_fitted(self, "joint_")
        if isinstance(X, np.ndarray):
            validate_data(self, X, reset=False, skip_check_array=True)
        return X

    def _draw_seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


class Learner(Estimator):
    """A learner whose ``fit`` ends in ``joint_``."""

    joint_: Joint

    @threaded
    def sample(self, n: int = 1, random_state: Any = None, missing: bool = False) -> Any:
        """Draw n rows of ``joint_``: see `Joint.sample`."""
        check_is_fitted(self, "joint_")
        return self.joint_.sample(n, random_state, missing)


def check_learner(estimator: Any) -> None:
    """Refuse what is no unfitted learner of whole tables, by the name of the parameter ``estimator``."""
    what = f"the class {estimator.__name__}" if isinstance(estimator, type) else type(estimator).__name__
    if isinstance(estimator, type) or not (hasattr(estimator, "fit") and hasattr(estimator, "get_params")):
        raise TypeError(f"estimator: expected a learner of whole tables such as HiddenTreeForest(), got {what}")


def joint_of(fitted: Any) -> Joint:
    """The joint of a fitted learner, by the name of the parameter ``estimator``."""
    joint = getattr(fitted, "joint_", None)
    if not isinstance(joint, Joint):
        raise TypeError(
            f"estimator: {type(fitted).__name__} has no joint_ after fit; give a learner of whole tables such as "
            "HiddenTreeForest()"
        )
    return joint


class TableScores(Learner):
    """How probable rows are: what learners of whole tables have for scikit-learn's ``score``."""

    _warns = True  # of lost dependence, which takes time: joints of bootstraps are not examined

    @threaded
    def score_samples(self, X: Any) -> np.ndarray:
        """Log-density of each row, float64 (n,); missing cells are marginalised."""
        return self.joint_.log_density(self._same_columns(as_frame(X)))

    @threaded
    def score(self, X: Any, y: None = None, sample_weight: Any = None) -> float:
        """Mean log-density of rows, best of some that were not learned from: what ``cross_val_score`` compares.

        Parameters
        ----------
        X : frame of n rows
        y : ignored
        sample_weight : array-like (n,), optional
            Weights of the rows, not negative.
        """
        log_density = self.score_samples(X)
        return float(
            np.average(
                log_density, weights=None if sample_weight is None else row_weights(sample_weight, len(log_density))
            )
        )


def as_frame(X: Any) -> Any:
    """A frame as it is; arrays and lists as a 2-D array, checked by scikit-learn."""
    if nw.dependencies.is_into_dataframe(X):
        return with_names(X)
    is_rows, is_array = isinstance(X, list | tuple), hasattr(X, "__array__") or issparse(X)
    if not (is_rows or is_array) or isinstance(X, np.ma.MaskedArray) or nw.dependencies.is_into_series(X):
        return X  # `data.frames.read` refuses it, with a hint
    options: dict[str, Any] = {"ensure_all_finite": False, "ensure_min_samples": 0}
    # of rows that are lists, numbers beside text would become text
    is_text = is_rows and check_array(X, dtype=None, **options).dtype.kind == "U"
    return check_array(X, dtype=object if is_text else None, **options)


class TableLearner(TableScores):
    """A learner to which all columns are alike: there is no target."""

    kinds: dict[str, Any] | None
    leaf: str
    epsilon: float

    @threaded
    def fit(self, X: Any, y: None = None, sample_weight: Any = None) -> Self:
        """Learn from a frame (pandas, polars, pyarrow) or a 2-d array; cells may be missing.

        Parameters
        ----------
        X : frame of n rows
        y : ignored
        sample_weight : array-like (n,), optional
            Weights of the rows, not negative: how much a row counts in the trees and in the leaves; their size does not
            matter. A row of weight 0 is left out. Kinds of columns and the background take the others as they are.

        Raises
        ------
        ValueError
            If a parameter is out of its range, or the table cannot be used (each message names the column).

        Warns
        -----
        LostDependenceWarning
            If columns that depend on each other in the table do so less in ``joint_``; it names them.
        """
        self._check()
        X, weight = rows_with_weight(as_frame(X), sample_weight)
        rows = read_training_rows(X, self.kinds)
        self._name_columns(rows.schema.all_columns.names, rows.schema.frame)
        seed = self._draw_seed()
        model, lost = self._learn_and_compare(rows.completed(weight, seed), weight, seed)
        self.joint_ = Joint(model)
        if self._warns:
            warn_lost_dependence(model, rows.X, weight, lost)
        return self

    @threaded
    def fit_batches(self, source: Any, sample_weight: str | None = None) -> Self:
        """Learn from a table larger than memory, in one to four passes over batches of its rows.

        A sample of the rows, ``max_samples`` at most, makes schema and trees; all rows fill the leaves. Of a table that
        is no larger it learns what ``fit`` learns of the same rows in the order of their keys. What is learned does not
        depend on how the table is cut into batches, or on the order of its rows. See ``docs/how-to/large-tables.md``.

        Parameters
        ----------
        source : path or list of paths, pyarrow.dataset.Dataset, polars.LazyFrame, DuckDB relation, callable, or a frame
            Parquet or CSV files, or folders of Parquet files. A callable gives an iterable of frames (pandas, polars,
            pyarrow tables or record batches), the same rows at each call. Or an engine that makes the passes: an object
            with a method ``fold``, see ``docs/how-to/clusters.md``.
        sample_weight : str, optional
            The column that holds the weights of the rows, as `fit` takes them; it is no part of the joint.

        Raises
        ------
        ValueError
            If a parameter is out of its range or needs all rows at once, the table cannot be used (each message names
            the column), or the source gives other rows when it is asked again.
        FileNotFoundError
            If there is no such file.

        Warns
        -----
        LostDependenceWarning
            If columns that depend on each other in the sample do so less in ``joint_``; it names them.

        Examples
        --------
        >>> from jointforest import AdversarialForest, datasets
        >>> penguins = datasets.load_penguins()
        >>> forest = AdversarialForest(5, leaf="normal", random_state=0)
        >>> forest.fit_batches(lambda: (penguins[k : k + 100] for k in range(0, 344, 100))).joint_
        Joint(7 columns: species, island, bill_length_mm, bill_depth_mm, ...; 5 trees, ... leaves)
        """
        self._check()
        fold, n_rows = fold_of(source), self._sampled_rows()
        seed = self._draw_seed()
        sampled = take_weighed(fold, self.kinds, n_rows, seed, sample_weight)
        sample, weight = sampled.sample, sampled.weight
        check_cells(sample.schema.names, sample.X)
        self._name_columns(sample.schema.all_columns.names, sample.schema.frame)
        rows = TableRows(sample.schema, kernel_columns(sample.schema), sample.X, sample.X, ranges=sample.ranges)
        rows = rows.completed(weight, seed)
        if sample.is_whole:
            model, lost = self._learn_and_compare(rows, weight, seed)
        else:
            model = self._learn_batches(sampled, rows, seed)
            lost = lost_pairs(model, rows.X, weight)
        self.joint_ = Joint(model)
        warn_lost_dependence(model, rows.X, weight, lost)
        return self

    def _sampled_rows(self) -> int:
        """Most rows of a table in batches that make the trees; an error if the learner needs all rows at once."""
        raise NotImplementedError

    def _learn_batches(self, sampled: Sampled, rows: TableRows, seed: int) -> Distribution:
        """The model of a table in batches that has more rows than these, its sample, by passes over it."""
        fold, sample, weight, weights = sampled
        sizes = partial(leaf_sizes, fold, sample.n, rows.schema, rows.columns, seed, weights, rows.first)
        structure = self._structure(rows, sample.n, weight, seed, sizes)._replace(weights=weights)
        return BoxForest(fill_leaves(fold, sample.n, structure, self.epsilon))

    def _structure(self, rows: TableRows, n: int, weight: np.ndarray | None, seed: int, sizes: Sizes) -> Structure:
        """The trees of some rows of a table of n, not all, and how their leaves are to be filled; weights as below."""
        raise NotImplementedError

    def _learn(self, rows: TableRows, weight: np.ndarray | None, seed: int) -> Distribution:
        """The model of the rows; weights (n,) have a mean of 1, None: all alike."""
        raise NotImplementedError

    def _learn_and_compare(
        self, rows: TableRows, weight: np.ndarray | None, seed: int
    ) -> tuple[Distribution, list[LostPair]]:
        """The model of the rows, and the strong pairs of columns that it does not keep."""
        model = self._learn(rows, weight, seed)
        return model, lost_pairs(model, rows.X, weight)


def warn_lost_dependence(model: Distribution, X: np.ndarray, weight: np.ndarray | None, lost: list[LostPair]) -> None:
    """Name strong pairs of columns that a joint does not keep, or else statements of it that rows X contradict."""
    has_sums = any(isinstance(rule, Order | Equation) and rule.is_enforced for rule in model.schema.rules)
    hint = "jf.HiddenTreeForest or jf.fit" if model.is_forest else "jf.fit, which compares learners"
    if lost or weight is not None or has_sums:  # counts need equal weights, and sums may take minutes
        warn_lost_pairs(lost, f"leaf='chow_liu', {hint}" if model.is_forest else hint)
    else:
        warn_lost(statements(model, X, "the rows learned").lost, hint)


def rows_with_weight(X: Any, sample_weight: Any) -> tuple[Any, np.ndarray | None]:
    """The rows that have a weight, and their weights with a mean of 1; None if all are alike."""
    if sample_weight is None:
        return X, None
    weight = row_weights(sample_weight, read(X).n)
    X, weight = take_rows(X, np.flatnonzero(weight)), weight[weight > 0.0]
    return X, None if np.ptp(weight) == 0.0 else weight


# ---- Some rows of a table: those of a bootstrap, and those of a trial.


def draw_bootstrap(n: int, n_draws: int, bootstrap: bool, seed: int, number: int) -> np.ndarray:
    """Weight (float64, n) of each row in tree ``number``: how often it was drawn; 0 is out of bag."""
    rng = np.random.default_rng([seed, number])
    if bootstrap:
        return np.bincount(rng.integers(0, n, n_draws), minlength=n).astype(np.float64)
    weight = np.zeros(n)
    weight[rng.permutation(n)[:n_draws]] = 1.0
    return weight


def trial_rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of n to learn from and rows to score by on trial, at most 20,000 and 2,000: int arrays, drawn at random.

    Examples
    --------
    >>> kept, held = trial_rows(100, 0)
    >>> len(kept), len(held), len(set(kept) & set(held))
    (75, 25, 0)
    """
    order = np.random.default_rng([seed, 6]).permutation(n)[:22_000]
    n_held = min(len(order) // 4, 2_000)
    return np.sort(order[n_held:]), np.sort(order[:n_held])


# ---- Numbers that can be learned, and numbers of columns or rows that parameters stand for.


def count_features(max_features: Any, d: int) -> int:
    """Number of columns tried at each node, from scikit-learn's ``max_features``, for d columns."""
    if max_features is None:
        return d
    if max_features == "sqrt":
        return max(1, math.isqrt(d))
    if max_features == "log2":
        return max(1, int(math.log2(d)))
    return min(int(max_features), d) if isinstance(max_features, Integral) else max(1, int(max_features * d))


def warn_leaf_size(min_samples_leaf: float, n: int) -> None:
    """Warn that no split of n rows can leave so many on both sides."""
    if min_samples_leaf > n:
        warn(
            f"min_samples_leaf={min_samples_leaf:g} is more than the table's {n} rows: no tree has a split; "
            "one leaf holds all rows; give less"
        )


def fewest_rows(min_samples_leaf: Any, n: int) -> float:
    """Fewest rows of a leaf, from a number or a share of n rows. Raises ValueError if it is neither."""
    if isinstance(min_samples_leaf, Integral):
        check_number("min_samples_leaf", min_samples_leaf, 1, whole=True)
        return float(min_samples_leaf)
    share = Number(0, 1, without="both", text="a whole number >= 1 or a share in (0, 1)")
    check("min_samples_leaf", min_samples_leaf, (share,))
    return float(max(1, math.ceil(min_samples_leaf * n - 1e-9)))  # 0.07 * 100 is above 7
