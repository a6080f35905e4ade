"""Passes over the rows of a Dask frame: sums of partitions, merged where they are, then from machine to machine."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import dask
import dask.dataframe as dd
import pandas as pd
from dask.delayed import Delayed, delayed

from ...learners.batches.passes import Pass
from ...runtime.progress import bar
from ...runtime.threads import use_jobs


class DaskRows:
    """The rows of a Dask frame, as `fit_batches` takes them.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
        Its partitions are computed anew at each pass.
    client : distributed.Client or None
        None: the schedulers within this process.
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
        return dask.compute(_tree(sums, lambda a, b: delayed(merge_sums, pure=False)(one.merge, a, b)))[0]


def dask_table(X: Any, y: Any = None) -> dd.DataFrame:
    """The Dask frame X, a series ``y`` as its last column.

    Raises
    ------
    TypeError
        If it is no Dask frame, or ``y`` no Dask series.
    ValueError
        If they have other numbers of partitions.
    """
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


def _tree(sums: list[Any], merge: Callable[..., Any]) -> Any:
    """One sum of many, by rounds in which neighbours are merged."""
    while len(sums) > 1:
        pairs = [sums[k : k + 2] for k in range(0, len(sums), 2)]
        sums = [merge(*pair) if len(pair) > 1 else pair[0] for pair in pairs]
    return sums[0]


def _on_cluster(client: Any, sums: list[Delayed], one: Pass) -> Any:
    """Sums of partitions, merged on their worker as they come, so that what travels does not grow with the rows.

    All is made by tasks, the pass itself too: what a worker held that died is made anew by others.
    """
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
    return _tree(list(waiting.values()), merge).result()
