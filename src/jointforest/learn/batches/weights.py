"""Weights of the rows of a table in batches: a column that says how much each row counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...table.cells import FrameReader
from ...table.infer.infer_schema import NoRows
from ...table.libraries import read
from ...table.rows import row_weights, take_rows
from ...table.schema import near
from .passes import Fold, Pass
from .sample import Sample, take_sample

_BITS = 52


class Weights(NamedTuple):
    """The column of weights.

    Attributes
    ----------
    name : str
    largest : float
        Largest weight in the table.
    bits : int
        The largest weight counts as 2^bits rows, so that what is counted stays whole numbers whose sum fits 62 bits:
        merged in any order, they are the same.
    """

    name: str
    largest: float
    bits: int

    def shares(self, reader: FrameReader) -> np.ndarray:
        """Weights of rows over the largest one, float64 (n,)."""
        return np.asarray(reader.cells(self.name).values / self.largest)

    def counts(self, reader: FrameReader) -> np.ndarray:
        """How many rows each row counts as, int64 (n,), at least 1."""
        return np.maximum(np.rint(np.ldexp(self.shares(reader), self.bits)), 1.0).astype(np.int64)


class Sampled(NamedTuple):
    """Rows that stand for a table, and how later passes over it are made.

    Attributes
    ----------
    fold : Fold
        Over the rows that have a weight.
    sample : Sample
        Without the column of weights.
    weight : float64 array (m,) or None
        Weights of the sample's rows, of mean 1; None: all alike.
    weights : Weights or None
        Of all rows; None: all alike.
    """

    fold: Fold
    sample: Sample
    weight: np.ndarray | None
    weights: Weights | None


def take_weighed(
    fold: Fold,
    kinds: Mapping[str, str] | None,
    n_rows: int,
    seed: int,
    name: Any,
    target: tuple[str, str] | None = None,
) -> Sampled:
    """`take_sample` of a table whose column ``name`` holds the weights of its rows; None: they are alike.

    Raises
    ------
    ValueError
        As `take_sample`; if there is no such column, or it holds what is no weight (the message names it).
    TypeError
        If this is no name.
    """
    if name is None:
        return Sampled(fold, take_sample(fold, kinds, n_rows, seed, target), None, None)
    if not isinstance(name, str):
        what = type(name).__name__
        raise TypeError(f"sample_weight: in batches weights stand in a column, expected its name, got {what}")
    if target is not None and target[0] == name:
        raise ValueError(f"sample_weight: {name!r} is the target; name another column")
    fold = _with_weight(fold, name)
    try:
        sample = take_sample(fold, {**(kinds or {}), name: "continuous"}, n_rows, seed, target)
    except NoRows:
        raise ValueError(f"sample_weight: column {name!r}: every weight is zero; give some rows more") from None
    schema = sample.schema
    j = schema.index(name)
    if len(schema.columns) < 2:
        raise ValueError(f"sample_weight: there is no other column than {name!r}")
    weight = row_weights(sample.X[:, j], len(sample.X))
    weights = Weights(name, schema.columns[j].maximum, min(_BITS, 62 - sample.n.bit_length()))
    sample = Sample(schema.without(j), sample.n, np.delete(sample.X, j, axis=1))
    return Sampled(fold, sample, weight if np.ptp(weight) > 0.0 else None, weights)


def _with_weight(fold: Fold, name: str) -> Fold:
    """Passes over the rows whose weight is not 0."""

    def some(one: Pass, n: int | None = None) -> Any:
        return fold(one._replace(add=partial(_add_some, one.add, name)), n)

    return some


def _add_some(add: Callable[[Any, Any, int | None], Any], name: str, sums: Any, batch: Any, n_jobs: int | None) -> Any:
    """Add the rows of a batch that have a weight."""
    weight = _weights_in(read(batch), name)
    return add(sums, batch if weight.all() else take_rows(batch, np.flatnonzero(weight)), n_jobs)


def _weights_in(reader: FrameReader, name: str) -> np.ndarray:
    """The weights of a batch's rows, float64 (n,).

    Raises
    ------
    ValueError
        If there is no such column, or it holds anything but finite numbers >= 0.
    """
    if name not in reader.names:
        raise ValueError(f"sample_weight: there is no column {name!r}; {near(name, reader.names)}")
    cells = reader.cells(name)
    if cells.missing.any():
        lost = int(np.count_nonzero(cells.missing))
        raise ValueError(f"sample_weight: column {name!r}: {lost} missing cells; give every row a weight, 0 for none")
    if reader.n and cells.sort not in ("number", "integer"):
        raise ValueError(f"sample_weight: column {name!r}: expected numbers, got cells of type {cells.dtype}")
    weight = np.asarray(cells.values, np.float64) if reader.n else np.empty(0)
    wrong = weight[~(np.isfinite(weight) & (weight >= 0.0))]
    if len(wrong):
        raise ValueError(f"sample_weight: column {name!r}: expected finite numbers >= 0, got {wrong[0]:g}")
    return weight
