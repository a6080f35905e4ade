"""Joints learned from Dask frames, and asked about them (``pip install 'jointforest[dask]'``).

Learners are those of the package, of the same names; what they end in, ``joint_``, is an ordinary joint.
See ``docs/how-to/dask.md``.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import wraps
from typing import Any, ClassVar, Self

import dask
import dask.dataframe as dd
import narwhals as nw
import numpy as np
import pandas as pd
from dask.delayed import Delayed, delayed
from sklearn.utils.validation import check_is_fitted

from ..api.history_joint import HistoryJoint
from ..api.joint import Joint
from ..data.frames import decode, read
from ..data.history_rows import check_history_names
from ..estimators import outliers
from ..inference.sampling import DRAWS_AT_ONCE, sample_block
from ..learners.adversarial import adversarial_forest
from ..learners.batches.sample import Pass
from ..learners.generative import classifier, regressor
from ..learners.hidden_tree import hidden_tree_forest
from ..learners.history import history_forest
from ..learners.joint_tree import joint_tree
from ..runtime.parameters import check_number, seed_of
from ..runtime.progress import bar
from ..runtime.threads import chunks, use_jobs

__all__ = [
    "AdversarialForest",
    "ForestOutlierDetector",
    "GenerativeForestClassifier",
    "GenerativeForestRegressor",
    "HiddenTreeForest",
    "HistoryForest",
    "JointTree",
    "impute",
    "log_density",
    "predict",
    "predict_proba",
    "sample",
]


def log_density(joint: Joint | HistoryJoint, frame: dd.DataFrame) -> dd.Series:
    """Log-density of each row, float64, with the frame's index and divisions: see `Joint.log_density`.

    Of a joint of histories, the log-density of the history of each subject, with the subjects as the index: see
    `HistoryJoint.log_density`. The rows of each subject are then brought together by a shuffle.

    Parameters
    ----------
    joint : Joint or HistoryJoint
    frame : dask.dataframe.DataFrame

    Returns
    -------
    dask.dataframe.Series
        Named ``log_density``.

    Raises
    ------
    TypeError
        If it is no Dask frame.
    ValueError
        If the frame has no column of subjects, or the joint of histories has no column of times.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> from jointforest.integrations.dask import log_density
    >>> found = log_density(joint, dd.from_pandas(penguins, npartitions=3))
    >>> found.npartitions, found.dtype, bool((found.compute() == joint.log_density(penguins)).all())
    (3, dtype('float64'), True)
    """
    if isinstance(joint, HistoryJoint):
        meta = _log_densities(_subjects_of(joint, frame)._meta, joint)
        return _by_subject(_log_densities, joint, frame, meta)
    return series(_log_density_of_partition, joint, frame, "log_density")


def predict(joint: Joint, frame: dd.DataFrame, target: str) -> dd.Series:
    """Most probable level, or mean of a number or date, of a column in each row: see `Joint.predict`.

    Parameters
    ----------
    joint : Joint
    frame : dask.dataframe.DataFrame
    target : str

    Returns
    -------
    dask.dataframe.Series
        Named like the target, with the frame's index and divisions.

    Raises
    ------
    TypeError
        If it is no Dask frame.
    ValueError
        If there is no such column.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> from jointforest.integrations.dask import predict
    >>> predict(joint, dd.from_pandas(penguins[["body_mass_g"]], npartitions=2), "island").compute().iloc[-1]
    'Biscoe'
    """
    return series(_predict, joint, frame, target, target)


def predict_proba(joint: Joint, frame: dd.DataFrame, target: str) -> dd.DataFrame:
    """Probabilities of the levels of a column in each row: see `Joint.predict_proba`.

    Parameters, errors: as of `predict`.

    Returns
    -------
    dask.dataframe.DataFrame
        float64, a column a level, with the frame's index and divisions.
    """
    return by_partition(_predict_proba, joint, frame, target)


def impute(
    joint: Joint | HistoryJoint, frame: dd.DataFrame, method: str = "mean", random_state: Any = None
) -> dd.DataFrame:
    """Fill the missing cells; every known one stays what it is: see `Joint.impute` and `HistoryJoint.impute`.

    For a joint of histories, the rows of each subject are brought together by a shuffle. The rows keep their index, but
    neither their order nor the divisions of the frame.

    Parameters
    ----------
    joint : Joint or HistoryJoint
    frame : dask.dataframe.DataFrame
    method : {"mean", "sample"}
        Means of numbers and the most probable levels, or one joint draw a row. Draws depend on how the frame is cut.
    random_state : None, int, Generator or RandomState

    Returns
    -------
    dask.dataframe.DataFrame
        With the types of learning, the frame's index and divisions.

    Raises
    ------
    TypeError
        If it is no Dask frame.
    ValueError
        If there is no such method, or as of `log_density`.
    """
    if method not in ("mean", "sample"):
        raise ValueError(f"method must be 'mean' or 'sample', got {method!r}")
    seed = seed_of(random_state)
    if isinstance(joint, HistoryJoint):
        meta = _no_rows(joint, _subjects_of(joint, frame)._meta)
        return _by_subject(_impute_histories, joint, frame, meta, method, seed, meta)
    return by_partition(_impute, joint, frame, method, seed)


def sample(joint: Joint, n: int, random_state: Any = None, missing: bool = False) -> dd.DataFrame:
    """Draw n rows, the same as `Joint.sample` draws for the same ``random_state``; 262,144 a partition.

    Parameters
    ----------
    joint : Joint
    n : int
    random_state : None, int, Generator or RandomState
    missing : bool
        Also draw which cells are missing, as often as at learning.

    Raises
    ------
    ValueError
        If n is no number of rows.

    Examples
    --------
    >>> from jointforest.integrations.dask import sample
    >>> len(sample(joint, 1000, random_state=0))
    1000
    """
    check_number("n", n, 0, whole=True, text="a non-negative integer")
    seed, whole_joint = seed_of(random_state), delayed(joint, pure=False, traverse=False)
    blocks = chunks(n, DRAWS_AT_ONCE) or [(0, 0)]
    parts = [delayed(_sample, pure=False)(whole_joint, first, stop, seed, missing) for first, stop in blocks]
    ends = (*(first for first, _ in blocks), max(n - 1, 0))
    return dd.from_delayed(parts, meta=_sample(joint, 0, 0, seed, missing), divisions=ends, verify_meta=False)


def by_partition(function: Callable[..., Any], model: Any, frame: Any, *args: Any) -> Any:
    """``function(partition, model, *args, number of the partition)`` of all partitions, lazily. Raises TypeError if it
    is no Dask frame."""
    if not isinstance(frame, dd.DataFrame):
        raise TypeError(f"expected a Dask DataFrame, got {type(frame).__name__}; ask the joint itself about others")
    meta = _find(frame._meta, model, function, args, None)
    whole_model = delayed(model, pure=False, traverse=False)
    return frame.map_partitions(_find, whole_model, function, args, meta=meta, enforce_metadata=False)


def series(function: Callable[..., Any], model: Any, frame: Any, name: str, *args: Any) -> dd.Series:
    """A series of what ``function(partition, model, *args)`` gives, an array with an entry a row, lazily."""
    return by_partition(_answer_series, model, frame, function, name, args)


# ---- Histories: all rows of a subject must be in one partition.


def _subjects_of(joint: HistoryJoint, frame: Any) -> dd.DataFrame:
    """The frame, which has columns of subjects and times; TypeError if it is no Dask frame, ValueError if not."""
    if not isinstance(frame, dd.DataFrame):
        raise TypeError(f"expected a Dask DataFrame, got {type(frame).__name__}; ask the joint itself about others")
    if joint.order is None:
        raise ValueError("the joint was learned without order=, but rows of a Dask frame stand in no order")
    check_history_names(read(frame._meta), joint.group, joint.order)
    return frame


def _by_subject(function: Callable[..., Any], joint: HistoryJoint, frame: dd.DataFrame, meta: Any, *args: Any) -> Any:
    """``function(partition, joint, *args)`` of partitions that hold whole subjects, lazily."""
    whole_joint = delayed(joint, pure=False, traverse=False)
    return frame.shuffle(on=joint.group).map_partitions(function, whole_joint, *args, meta=meta, enforce_metadata=False)


def _log_densities(part: pd.DataFrame, joint: HistoryJoint) -> pd.Series:
    """The log-density of each subject."""
    found = joint.log_density(part, n_jobs=None) if len(part) else np.empty(0)
    subjects = joint.subjects(part) if len(part) else []
    index = pd.Index(subjects, dtype=part[joint.group].dtype, name=joint.group)
    return pd.Series(found, index, name="log_density", dtype=np.float64)


def _impute_histories(
    part: pd.DataFrame, joint: HistoryJoint, method: str, seed: int, meta: pd.DataFrame, partition_info: Any = None
) -> pd.DataFrame:
    """The rows with their missing cells filled in."""
    if not len(part):
        return meta
    number = 0 if partition_info is None else partition_info["number"]
    filled = _as_pandas(joint.impute(part, method, None, np.random.default_rng([seed, number]), n_jobs=None))
    filled.index = part.index
    return filled


def _no_rows(joint: HistoryJoint, like: pd.DataFrame) -> pd.DataFrame:
    """An imputed frame without rows; its columns of subjects and times have the types of ``like``."""
    filled = _as_pandas(joint.impute(joint.sample(1, 0), random_state=0)).iloc[:0]
    keys = [name for name in (joint.group, joint.order) if name is not None]
    return filled.set_axis(like.index).assign(**{name: like[name] for name in keys})[list(like.columns)]


def _find(part: pd.DataFrame, model: Any, function: Callable[..., Any], args: Any, partition_info: Any = None) -> Any:
    """What the function finds of a partition, with its index."""
    answer = function(part, model, *args, 0 if partition_info is None else partition_info["number"])
    answer.index = part.index
    return answer


def _answer_series(
    part: pd.DataFrame, model: Any, function: Callable[..., Any], name: str, args: Any, _: int
) -> pd.Series:
    answer = function(part, model, *args)
    return pd.Series(answer, name=name, dtype=answer.dtype)  # of text, too, which pandas would look for


def _log_density_of_partition(part: pd.DataFrame, joint: Joint) -> np.ndarray:
    return joint.log_density(part, n_jobs=None)


def _predict(part: pd.DataFrame, joint: Joint, target: str) -> np.ndarray:
    return joint.predict(part, target, n_jobs=None)


def _predict_proba(part: pd.DataFrame, joint: Joint, target: str, _: int) -> pd.DataFrame:
    return pd.DataFrame(joint.predict_proba(part, target, n_jobs=None), columns=list(joint.levels(target)))


def _impute(part: pd.DataFrame, joint: Joint, method: str, seed: int, number: int) -> pd.DataFrame:
    return _as_pandas(joint.impute(part, method, None, np.random.default_rng([seed, number]), n_jobs=None))


def _sample(joint: Joint, first: int, stop: int, seed: int, missing: bool) -> pd.DataFrame:
    evidence = joint.given().state.evidence
    with use_jobs(1):
        rows = sample_block(joint.distribution, evidence, stop - first, seed, first // DRAWS_AT_ONCE, missing)
    frame = _as_pandas(decode(joint.schema, rows))
    frame.index = pd.RangeIndex(first, stop)
    return frame


def _as_pandas(frame: Any) -> pd.DataFrame:
    """A frame of the library that the joint was learned from, for Dask."""
    return pd.DataFrame(frame) if isinstance(frame, np.ndarray) else nw.from_native(frame, eager_only=True).to_pandas()


# ---- Passes over the rows of a Dask frame: sums of partitions, merged where they are, then from machine to machine.


class DaskRows:
    """The rows of a Dask frame, as `fit_batches` takes them.

    frame : dask.dataframe.DataFrame. Its partitions are computed anew at each pass.
    client : distributed.Client or None. None: the schedulers within this process.
    """

    def __init__(self, frame: dd.DataFrame, client: Any) -> None:
        self.frame = frame
        self.client = client

    def fold(self, one: Pass, n: int | None = None) -> Any:
        """The sums of all rows by one pass."""
        step = delayed(one, pure=False, traverse=False)  # a task, which goes to a worker once
        # reading a partition and adding it up become one task: partitions do not travel
        added = self.frame.map_partitions(add_partition, step, meta=self.frame._meta, enforce_metadata=False)
        sums = added.to_delayed()
        if self.client is not None:
            return _on_cluster(self.client, sums, one)
        return dask.compute(_summed_in_rounds(sums, lambda a, b: delayed(merge_sums, pure=False)(one.merge, a, b)))[0]


def dask_table(X: Any, y: Any = None) -> dd.DataFrame:
    """The Dask frame X, a series ``y`` as its last column. Raises TypeError if it is no Dask frame, or ``y`` no Dask
    series. Raises ValueError if they have other numbers of partitions."""
    if not isinstance(X, dd.DataFrame):
        what = f"{type(X).__module__.partition('.')[0]}.{type(X).__name__}"
        hint = "dask.dataframe.from_dask_array(X, columns=names)" if what == "dask.Array" else "dask.dataframe.from_map"
        raise TypeError(f"expected a Dask DataFrame, got {what}; {hint} makes one; other tables: fit_batches")
    if y is None:
        return X
    if not isinstance(y, dd.Series):
        raise TypeError(f"y: expected the name of a column, or a Dask Series, got {type(y).__name__}")
    # what is read of few columns may be put together: not here, where both must stay alike
    parts, labels = (of.simplify().to_delayed(optimize_graph=False) for of in (X, y))
    if len(parts) != len(labels):
        raise ValueError(f"X has {len(parts)} partitions and y {len(labels)}; cut both alike")
    both = [delayed(beside, pure=False)(part, label) for part, label in zip(parts, labels, strict=True)]
    return dd.from_delayed(both, meta=beside(X._meta, y._meta), verify_meta=False)


def beside(X: pd.DataFrame, y: pd.Series) -> pd.DataFrame:
    """A partition of features and one of the target, row by row, as one frame."""
    if len(X) != len(y):
        raise ValueError(f"a partition of X has {len(X)} rows, that of y has {len(y)}; cut both alike")
    return X.assign(**{str(y.name): y.array})


def add_partition(part: pd.DataFrame, one: Pass) -> Any:
    """The sums of one partition, in one thread: other partitions have the others."""
    with use_jobs(1):
        return one.over([part])


def merge_sums(merge: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """Sums of two parts of a table as one; they stay as they are: a worker that dies is no reason to count twice."""
    return merge(deepcopy(a), b)


def _summed_in_rounds(sums: list[Any], merge: Callable[..., Any]) -> Any:
    """One sum of many, by rounds in which neighbours are merged."""
    while len(sums) > 1:
        pairs = [sums[k : k + 2] for k in range(0, len(sums), 2)]
        sums = [merge(*pair) if len(pair) > 1 else pair[0] for pair in pairs]
    return sums[0]


def _on_cluster(client: Any, sums: list[Delayed], one: Pass) -> Any:
    """Sums of partitions, merged on their worker, so that what travels does not grow with the rows."""
    # All is made by tasks, the pass itself too: what a worker held that died is made anew by others.
    from distributed import as_completed

    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 GB"}):
        done = as_completed(client.compute(sums))  # which forgets those it gave: sums that are merged are let go

    def merge(a: Any, b: Any, worker: str | None = None) -> Any:
        where = {"workers": [worker], "allow_other_workers": True} if worker else {}
        return client.submit(merge_sums, one.merge, a, b, pure=False, **where)

    waiting: dict[str | None, Any] = {}  # sums by the worker that has them, one each
    with bar(len(sums), one.what) as step:
        for finished in done.batches():
            held = client.who_has(finished)
            while finished:
                future = finished.pop()
                if future.status != "finished":
                    future.result()  # raises what went wrong there
                worker = min(held.get(future.key, ()), default=None)
                if worker in waiting:
                    done.add(merge(waiting.pop(worker), future, worker))
                    step()
                else:
                    waiting[worker] = future
    return _summed_in_rounds(list(waiting.values()), merge).result()


# ---- The learners.


def with_client(init: Callable[..., None]) -> Callable[..., None]:
    """A learner's constructor with one keyword more, ``client``, which is no parameter for scikit-learn to copy."""

    @wraps(init)
    def __init__(self: Any, *args: Any, client: Any = None, **parameters: Any) -> None:
        init(self, *args, **parameters)
        self.client = client

    return __init__


class WithClient:
    """What learners of Dask frames have beside those of the package.

    client : distributed.Client or None. Where the work is done; None: by the current client, else, where there is none,
        by the schedulers within this process. Copies of a learner (`clone`, pickles) have none.
    """

    client: Any = None
    fit_batches: Any
    _local: ClassVar[type]

    def to_local(self) -> Any:
        """The same learner without a client, as the package has it; fitted if this one is."""
        local: Any = object.__new__(self._local)
        local.__dict__.update({name: value for name, value in vars(self).items() if name != "client"})
        return local

    def __getstate__(self) -> Any:
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if name != "client"}


class DaskEstimator(WithClient):
    """What learners of Dask frames have whose rows are asked about one by one."""

    def score_samples(self, X: Any) -> Any:
        """Log-density of each row; of a Dask frame a lazy series."""
        return self._ask("score_samples", X)

    def _ask(self, method: str, X: Any) -> Any:
        """The answer of a method of the local learner; of a Dask frame as a series."""
        if not isinstance(X, dd.DataFrame):
            return getattr(super(), method)(X)
        check_is_fitted(self, "joint_")
        return series(_said, self._alone(), X, method, method)

    def _alone(self) -> Any:
        """The local learner in one thread: other partitions have the others."""
        return self.to_local().set_params(n_jobs=None)


class DaskLearner(DaskEstimator):
    """What learners of whole Dask frames have."""

    def fit(self, X: Any, y: Any = None, sample_weight: str | None = None) -> Self:
        """Learn from a Dask frame, as ``fit_batches`` learns from the same rows: one joint, however they are cut.

        Parameters
        ----------
        X : dask.dataframe.DataFrame
            Its partitions are computed anew for each of one to four passes; ``X.persist()`` keeps them.
        y : ignored
        sample_weight : str, optional
            The column of X that holds the weights of the rows; it is no part of the joint.

        Raises
        ------
        TypeError
            If it is no Dask frame.
        ValueError
            If a parameter is out of its range or needs all rows at once, the table cannot be used (each message names
            the column), or the frame has other rows when it is computed again.
        """
        _check_weight(sample_weight)
        return self.fit_batches(DaskRows(dask_table(X), client_of(self.client)), sample_weight)


class DaskPredictor(DaskEstimator):
    """What learners of Dask frames with a target have."""

    def fit(self, X: Any, y: Any, sample_weight: str | None = None) -> Self:
        """Grow a forest for the target on a Dask frame, as ``fit_batches`` does on the same rows.

        Parameters
        ----------
        X : dask.dataframe.DataFrame
            Its partitions are computed anew for each of one to four passes; ``X.persist()`` keeps them.
        y : str or dask.dataframe.Series
            The column of X that is the target, or the target beside X, with the same partitions and a name.
        sample_weight : str, optional
            The column of X that holds the weights of the rows; it is no part of the joint.

        Raises
        ------
        TypeError
            If it is no Dask frame, or no target.
        ValueError
            As `fit_batches` raises it; if X and y are cut in different ways.
        """
        _check_weight(sample_weight)
        is_name = isinstance(y, str)
        target = y if is_name else getattr(y, "name", None)
        if not is_name and isinstance(y, dd.Series) and not isinstance(target, str):
            raise ValueError(f"y: the series needs a name of text, that of the target's column, got {target!r}")
        if not is_name and target in getattr(X, "columns", ()):
            raise ValueError(f"y: X has a column {target!r}, too; give its name as y, or drop it from X")
        rows = DaskRows(dask_table(X, None if is_name else y), client_of(self.client))
        return self.fit_batches(rows, target, sample_weight)

    def predict(self, X: Any) -> Any:
        """Prediction of each row; of a Dask frame a lazy series."""
        return self._ask("predict", X)


class AdversarialForest(DaskLearner, adversarial_forest.AdversarialForest):
    """`jointforest.AdversarialForest` of Dask frames; with ``client``.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> from jointforest.integrations.dask import AdversarialForest
    >>> table = dd.from_pandas(jf.datasets.load_penguins(), npartitions=3)
    >>> AdversarialForest(3, leaf="normal", random_state=0).fit(table).joint_
    Joint(7 columns: species, island, bill_length_mm, bill_depth_mm, ...; 3 trees, ... leaves)
    """

    _local = adversarial_forest.AdversarialForest
    __init__ = with_client(adversarial_forest.AdversarialForest.__init__)


class JointTree(DaskLearner, joint_tree.JointTree):
    """`jointforest.JointTree` of Dask frames; with ``client``."""

    _local = joint_tree.JointTree
    __init__ = with_client(joint_tree.JointTree.__init__)


class HiddenTreeForest(DaskLearner, hidden_tree_forest.HiddenTreeForest):
    """`jointforest.HiddenTreeForest` of Dask frames; with ``client``."""

    _local = hidden_tree_forest.HiddenTreeForest
    __init__ = with_client(hidden_tree_forest.HiddenTreeForest.__init__)


class HistoryForest(WithClient, history_forest.HistoryForest):
    """`jointforest.HistoryForest` of Dask frames; with ``client``.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> from jointforest.integrations.dask import HistoryForest
    >>> table = dd.from_pandas(jf.datasets.make_visits(200, random_state=0), npartitions=3)
    >>> HistoryForest(random_state=0).fit(table, group="patient", order="date").joint_
    HistoryJoint(200 subjects; constant: sex; varying: status, weight, pressure; ... trees, ... leaves)
    """

    _local = history_forest.HistoryForest
    __init__ = with_client(history_forest.HistoryForest.__init__)

    def fit(self, X: Any, y: None = None, *, group: str, order: str | None = None) -> Self:
        """Learn from a Dask frame, as ``fit_batches`` learns from the same rows: one joint, however they are cut.

        Parameters
        ----------
        X : dask.dataframe.DataFrame
            The rows of a subject may be spread over partitions.
        y : ignored
        group, order : str
            Columns of subjects and times; both are needed, because the rows of a Dask frame have no order.

        Raises
        ------
        TypeError
            If it is no Dask frame.
        ValueError
            As `HistoryForest.fit_batches` raises it.
        """
        return self.fit_batches(DaskRows(dask_table(X), client_of(self.client)), group=group, order=order)


class ForestOutlierDetector(DaskLearner, outliers.ForestOutlierDetector):
    """`jointforest.ForestOutlierDetector` of Dask frames; with ``client``."""

    _local = outliers.ForestOutlierDetector
    __init__ = with_client(outliers.ForestOutlierDetector.__init__)

    def predict(self, X: Any) -> Any:
        """-1 for outliers, 1 for other rows; of a Dask frame a lazy series."""
        return self._ask("predict", X)

    def decision_function(self, X: Any) -> Any:
        """``score_samples(X) - offset_``; of a Dask frame a lazy series."""
        return self._ask("decision_function", X)


class GenerativeForestRegressor(DaskPredictor, regressor.GenerativeForestRegressor):
    """`jointforest.GenerativeForestRegressor` of Dask frames; with ``client``."""

    _local = regressor.GenerativeForestRegressor
    __init__ = with_client(regressor.GenerativeForestRegressor.__init__)


class GenerativeForestClassifier(DaskPredictor, classifier.GenerativeForestClassifier):
    """`jointforest.GenerativeForestClassifier` of Dask frames; with ``client``.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> from jointforest.integrations.dask import GenerativeForestClassifier
    >>> table = dd.from_pandas(jf.datasets.load_penguins(), npartitions=3)
    >>> clf = GenerativeForestClassifier(10, random_state=0).fit(table, "species")
    >>> clf.predict(table[["island", "body_mass_g"]]).compute().iloc[-1]
    'Gentoo'
    """

    _local = classifier.GenerativeForestClassifier
    __init__ = with_client(classifier.GenerativeForestClassifier.__init__)

    def predict_proba(self, X: Any) -> Any:
        """Class probabilities of each row; of a Dask frame a lazy frame, a column a class."""
        if not isinstance(X, dd.DataFrame):
            return super().predict_proba(X)
        check_is_fitted(self, "joint_")
        return by_partition(_shares_of_partition, self._alone(), X)


def client_of(client: Any) -> Any:
    """The client given, or the current one; None if there is none."""
    if client is not None:
        return client
    try:
        from distributed import default_client

        return default_client()
    except (ImportError, ValueError):
        return None


def _check_weight(sample_weight: Any) -> None:
    if sample_weight is not None and not isinstance(sample_weight, str):
        raise ValueError(f"sample_weight: expected the name of a column of X, got {type(sample_weight).__name__}")


def _said(part: pd.DataFrame, learner: Any, method: str) -> np.ndarray:
    return np.asarray(getattr(learner, method)(part))


def _shares_of_partition(part: pd.DataFrame, learner: Any, _: int) -> pd.DataFrame:
    return pd.DataFrame(learner.predict_proba(part), columns=list(learner.classes_))
