"""Joints asked about Dask frames, partition by partition; a joint goes to each worker once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask.dataframe as dd
import narwhals as nw
import numpy as np
import pandas as pd
from dask.delayed import delayed

from ...api.history_joint import HistoryJoint
from ...api.joint import Joint
from ...data.frames import decode, read
from ...data.history_rows import check_history_names
from ...inference.sampling import DRAWS_AT_ONCE, sample_block
from ...runtime.parameters import check_number, seed_of
from ...runtime.threads import chunks, use_jobs


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
    >>> import jointforest as jf
    >>> from jointforest.integrations.dask import log_density
    >>> penguins = jf.datasets.load_penguins()
    >>> joint = jf.JointTree(random_state=0).fit(penguins).joint_
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
    >>> import jointforest as jf
    >>> from jointforest.integrations.dask import predict
    >>> penguins = jf.datasets.load_penguins()
    >>> joint = jf.JointTree(random_state=0).fit(penguins).joint_
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
    >>> import jointforest as jf
    >>> from jointforest.integrations.dask import sample
    >>> penguins = jf.datasets.load_penguins()
    >>> joint = jf.JointTree(random_state=0).fit(penguins).joint_
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
    return by_partition(_label, model, frame, function, name, args)


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


def _label(part: pd.DataFrame, model: Any, function: Callable[..., Any], name: str, args: Any, _: int) -> pd.Series:
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
