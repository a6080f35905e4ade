"""Passes over the rows of a Dask frame: sums of partitions, merged where they are, then from machine to machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask
import dask.dataframe as dd
import pandas as pd
from dask.delayed import Delayed, delayed

from ..ground.progress import bar
from ..learn.batches.passes import Pass


class DaskRows:
    """The rows of a Dask frame, as `fit_batches` takes them.

    Parameters
    ----------
    parts : list of Delayed
        Partitions, pandas frames; they are computed anew at each pass.
    client : distributed.Client or None
        None: the schedulers within this process.
    """

    def __init__(self, parts: list[Delayed], client: Any) -> None:
        self.parts = parts
        self.client = client

    def fold(self, one: Pass, n: int | None = None) -> Any:
        """The sums of all rows by one pass."""
        if self.client is not None:
            return _on_cluster(self.client, one, self.parts)
        sums = [delayed(add_partition, pure=False)(_whole(one), part) for part in self.parts]
        return dask.compute(_tree(sums, lambda a, b: delayed(merge_sums, pure=False)(_whole(one), a, b)))[0]


def partitions(X: Any, y: Any = None) -> list[Delayed]:
    """The partitions of a Dask frame; those of a series ``y`` are the last column of theirs.

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
        return list(X.to_delayed())
    if not isinstance(y, dd.Series):
        raise TypeError(f"y: expected the name of a column, or a Dask Series, got {type(y).__name__}")
    # what is read of few columns may be put together: not here, where both must stay alike
    parts, labels = (list(of.simplify().to_delayed(optimize_graph=False)) for of in (X, y))
    if len(parts) != len(labels):
        raise ValueError(f"X has {len(parts)} partitions and y {len(labels)}; cut both alike")
    return [delayed(beside, pure=False)(part, label) for part, label in zip(parts, labels, strict=True)]


def beside(X: pd.DataFrame, y: pd.Series) -> pd.DataFrame:
    """A partition of features and one of the target, row by row, as one frame."""
    if len(X) != len(y):
        raise ValueError(f"a partition of X has {len(X)} rows, that of y has {len(y)}; cut both alike")
    return X.assign(**{str(y.name): y.array})


def add_partition(one: Pass, part: pd.DataFrame) -> Any:
    """The sums of one partition, in one thread: other partitions have the others."""
    return one.over([part])


def merge_sums(one: Pass, a: Any, b: Any) -> Any:
    """Sums of two parts of a table as one; they stay as they are, for others to ask again."""
    return one.together([a, b])


def _itself(thing: Any) -> Any:
    return thing


def _whole(thing: Any) -> Delayed:
    """An object that goes to a worker once."""
    return delayed(thing, pure=False, traverse=False)


def _tree(sums: list[Any], merge: Callable[..., Any]) -> Any:
    """One sum of many, by rounds in which neighbours are merged."""
    while len(sums) > 1:
        pairs = [sums[k : k + 2] for k in range(0, len(sums), 2)]
        sums = [merge(*pair) if len(pair) > 1 else pair[0] for pair in pairs]
    return sums[0]


def _on_cluster(client: Any, one: Pass, parts: list[Delayed]) -> Any:
    """Sums of partitions, merged on their worker as they come, so that what travels does not grow with the rows.

    All is made by tasks, the pass itself too: what a worker held that died is made anew by others.
    """
    from distributed import as_completed

    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 GB"}):
        step = client.submit(_itself, one, pure=False)
    sums = client.compute([delayed(add_partition, pure=False)(step, part) for part in parts])

    def merge(a: Any, b: Any, worker: str | None = None) -> Any:
        where = {"workers": [worker], "allow_other_workers": True} if worker else {}
        return client.submit(merge_sums, step, a, b, pure=False, **where)

    waiting: dict[str | None, Any] = {}  # sums by the worker that has them, one each
    done = as_completed(sums)
    try:
        with bar(len(parts), one.what) as told:
            for finished in done.batches():
                held = client.who_has(finished)
                for future in finished:
                    if future.status != "finished":
                        future.result()  # raises what went wrong there
                    worker = min(held.get(future.key, ()), default=None)
                    if worker in waiting:
                        done.add(merge(waiting.pop(worker), future, worker))
                        told()
                    else:
                        waiting[worker] = future
        return _tree(list(waiting.values()), merge).result()
    except BaseException:
        client.cancel(sums)
        raise
