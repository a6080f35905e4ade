"""`Monitor`: whether the batches of a stream still come from the source of a table, valid at every look."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..data.frames import encode_cells, read
from ..data.schema import Column
from ..evaluation.columns_and_pairs import quantile_edges
from ..runtime.parameters import check_number, seed_of
from ..runtime.threads import chunks
from ..runtime.warnings import warn
from .compare import encode_exact, left_out_in_words, schema_of_table, unreadable

_BINNED = 1 / 3
"""Share of the old rows that set the bins of columns; the others are what rows of the stream are ranked among."""
_LEVELS = 10
"""Levels of a column that have a bin of their own."""
_FEWEST = 30
_PAIR = np.linspace(0.0, 1.0, 9)
"""Ends of the bins of ranks, in each group of a pair."""
_ALONE = np.array([0.0, 1 / 64, *_PAIR[1:-1], 63 / 64, 1.0])
"""Ends of the bins of a column alone. The narrow bins hold new levels, new numbers, and new missing cells."""
_PRIOR = 80.0
"""Rows that each term has had before the first batch, spread evenly over the ranks."""
_WINDOW = 2.0
"""Rows that bets remember, as a multiple of the old rows."""
_AT_ONCE = 50
"""Rows between updates of bets."""
_LIFT = 0.1
"""Of the greatest capital M of a term, the evidence is _LIFT M^(1 - _LIFT), whose mean is at most 1."""


class Monitor:
    """Tells when a stream of rows no longer comes from the source of a table.

    `update` takes a batch and returns the evidence so far, an e-value: if rows of the table and of the stream are
    exchangeable, the probability that it ever exceeds 1/a is at most a, however often it is examined.
    Method and limits: ``docs/how-to/compare-tables.md``.

    Parameters
    ----------
    old : frame of n rows
        At least 30, in any order.
    level : float
        Probability of a false alarm, over all batches together.
    random_state : None, int, Generator or RandomState
        Draws the order of the old rows, and ranks among equal values.

    Attributes
    ----------
    e_value : float
        The evidence so far; it never falls.
    alarm : int or None
        The number of the first batch, from 1, with an e-value of at least 1 / level.
    since : int or None
        The batch since which the column or pair with most evidence has changed, by maximum likelihood; None before the
        first batch.
    evidence : dict of tuple of str to float
        Share of each column, and of pairs of columns, in the e-value; the largest first.
    left_out : dict of str to str
        The columns that are not monitored, and why.

    Raises
    ------
    ValueError
        If the table has too few rows, or no column that can be compared.

    Examples
    --------
    >>> penguins = jf.datasets.load_penguins().sample(frac=1.0, random_state=0)
    >>> monitor = jf.Monitor(penguins[:150], random_state=0)
    >>> monitor.update(penguins[150:200]) < 20
    True
    >>> monitor.update(penguins[200:].assign(island="Dream")) > 20, monitor.alarm, monitor.since
    (True, 2, 2)
    """

    def __init__(self, old: Any, *, level: float = 0.05, random_state: Any = None) -> None:
        check_number("level", level, 0, 1, without="both", text="more than 0 and less than 1")
        reader = read(old)
        n = reader.n
        if n < _FEWEST:
            raise ValueError(f"old: expected at least {_FEWEST} rows, got {n}")
        odd = unreadable(reader)
        schema = schema_of_table(replace(reader, names=[name for name in reader.names if name not in odd]))
        self._schema, X, with_ranges = encode_exact(schema, reader)
        self.left_out = schema.reasons_aside | with_ranges | odd
        if not self._schema.columns:
            raise ValueError(f"no column can be monitored: {left_out_in_words(self.left_out)}")
        self._random, self._level = np.random.default_rng(seed_of(random_state)), level
        X = X[self._random.permutation(n)]
        first, ranked = np.split(X, [round(n * _BINNED)])
        # Were the bins those of all old rows, new rows would not be exchangeable with them.
        self._bounds = [_bin_bounds(column, first[:, j]) for j, column in enumerate(self._schema.columns)]
        d = len(self._bounds)
        self._terms = [(j, j) for j in range(d)] + [(i, j) for i in range(d) for j in range(i + 1, d)]
        shapes = [(1 if i == j else len(self._bounds[i]) + 2, len(self._bounds[j]) + 2) for i, j in self._terms]
        codes = self._codes(ranked, np.zeros(ranked.shape, bool))
        self._rows = [_counts(codes, term, shape) for term, shape in zip(self._terms, shapes, strict=True)]
        self._ends = [_ALONE if i == j else _PAIR for i, j in self._terms]
        self._ranks = [np.zeros((groups, len(e) - 1)) for (groups, _), e in zip(shapes, self._ends, strict=True)]
        self._memory = 0.5 ** (1.0 / (_WINDOW * n))
        n_terms = len(self._terms)
        self._weight = np.repeat([1.0 / d, 2.0 / max(d * (d - 1), 1)], [d, n_terms - d]) / (2 if n_terms > d else 1)
        self._n_steps = self._n_batches = 0
        self._log_started, self._log_most = np.full(n_terms, -np.inf), np.zeros(n_terms)
        self._log_run, self._start = np.zeros(n_terms), np.ones(n_terms, np.int64)
        self.alarm: int | None = None
        self._absent: set[str] = set()

    @property
    def e_value(self) -> float:
        return float(self._shares.sum())

    @property
    def since(self) -> int | None:
        return int(self._start[int(np.argmax(self._shares))]) if self._n_batches else None

    @property
    def evidence(self) -> dict[tuple[str, ...], float]:
        names, share = self._schema.names, self._shares / self._shares.sum()
        terms = [tuple(names[j] for j in dict.fromkeys(term)) for term in self._terms]
        return {terms[k]: float(share[k]) for k in np.argsort(-share, kind="stable").tolist()}

    @property
    def _shares(self) -> np.ndarray:
        """The contribution of each term to the e-value."""
        return self._weight * _LIFT * np.exp(np.minimum((1.0 - _LIFT) * self._log_most, 700.0))

    def __repr__(self) -> str:
        about = f"Monitor({self._n_batches:,} batches, e-value {self.e_value:.3g}"
        if self.alarm is None:
            return f"{about}, no alarm)"
        return f"{about}, alarm in batch {self.alarm}: {' and '.join(next(iter(self.evidence)))} since {self.since})"

    def update(self, batch: Any) -> float:
        """Take the next rows of the stream, and return the e-value so far.

        Parameters
        ----------
        batch : frame of m rows
            Columns are matched by name. Absent ones count as missing, with a warning at the first time; further ones
            are ignored.

        Raises
        ------
        ValueError
            If a column has cells of another type than in the table, or cells that are ranges.
        """
        reader = read(batch)
        absent = [] if reader.frame == "numpy" else sorted(set(self._schema.names) - set(reader.names) - self._absent)
        if absent:
            self._absent.update(absent)
            warn(
                f"batch {self._n_batches + 1:,} has no column {', '.join(map(repr, absent))}: all their cells count as "
                "missing, which is a change; rename such columns, or leave them out of the old table",
                UserWarning,
            )
        codes = self._codes(*encode_cells(self._schema, reader, None))
        self._n_batches += 1
        log_e = np.zeros(len(self._terms))
        for first, last in chunks(len(codes), _AT_ONCE):
            log_e += self._step(codes[first:last])
        self._start = np.where(self._log_run <= 0.0, self._n_batches, self._start)
        self._log_run = np.maximum(self._log_run, 0.0) + log_e
        if self.alarm is None and self.e_value >= 1.0 / self._level:
            self.alarm = self._n_batches
        return self.e_value

    def _step(self, codes: np.ndarray) -> np.ndarray:
        """The log of what the bet of each term gains by some rows; the bets are then updated."""
        log_e = np.empty(len(self._terms))
        for k, (i, j) in enumerate(self._terms):
            group = np.zeros(len(codes), np.int64) if i == j else codes[:, i]
            rank = self._random_ranks(self._rows[k], group, codes[:, j])
            bins, width = np.searchsorted(self._ends[k][1:-1], rank, "right"), np.diff(self._ends[k])
            past = self._ranks[k] + _PRIOR * width
            bet = past / (past.sum(1, keepdims=True) * width)
            log_e[k] = np.log(bet[group, bins]).sum()
            self._ranks[k] *= self._memory ** len(codes)
            np.add.at(self._ranks[k], (group, bins), 1.0)
        self._n_steps += 1
        t = self._n_steps
        # The capital is spread over the steps at which a change may start, 1/(t (t + 1)) on step t.
        self._log_started = np.logaddexp(self._log_started, -np.log(t * (t + 1.0))) + log_e
        self._log_most = np.maximum(self._log_most, np.logaddexp(self._log_started, -np.log(t + 1.0)))
        return log_e

    def _random_ranks(self, rows: np.ndarray, group: np.ndarray, code: np.ndarray) -> np.ndarray:
        """The rank, 0 to 1, of each row's code among earlier rows of its group, by chance among equals; counts them."""
        # If the rows are exchangeable, the ranks are independent and uniform.
        new = np.zeros((len(code), *rows.shape))
        new[np.arange(len(code)), group, code] = 1.0
        before = (np.cumsum(new, 0) - new)[np.arange(len(code)), group] + rows[group]
        up_to = np.cumsum(before, 1)[np.arange(len(code)), code]
        equal = before[np.arange(len(code)), code]
        rows += new.sum(0)
        return np.asarray((up_to - equal + self._random.random(len(code)) * (equal + 1.0)) / (before.sum(1) + 1.0))

    def _codes(self, X: np.ndarray, unseen: np.ndarray) -> np.ndarray:
        """The bin of each cell, (n, d): of other levels the first one, of missing cells the last one."""
        out = np.empty(X.shape, np.int64)
        for j, (column, bounds) in enumerate(zip(self._schema.columns, self._bounds, strict=True)):
            x = X[:, j]
            code = np.searchsorted(bounds, x, "left")
            if column.is_categorical:
                code = np.where(np.append(bounds, np.nan)[code] == x, code + 1, 0)
            out[:, j] = np.where(np.isnan(x) & ~unseen[:, j], len(bounds) + 1, code)
        return out


def _bin_bounds(column: Column, x: np.ndarray) -> np.ndarray:
    """What makes the bins of a column: the most frequent levels, or bounds of numbers."""
    known = x[~np.isnan(x)]
    if not column.is_categorical:
        return quantile_edges(known) if len(known) else known
    level, count = np.unique(known, return_counts=True)
    return np.sort(level[np.argsort(-count, kind="stable")[:_LEVELS]])


def _counts(codes: np.ndarray, term: tuple[int, int], shape: tuple[int, int]) -> np.ndarray:
    """Rows by the bin of the first column of a term, one if it is a column alone, and that of the second."""
    i, j = term
    group = 0 if i == j else codes[:, i]
    return np.bincount(group * shape[1] + codes[:, j], minlength=shape[0] * shape[1]).astype(float).reshape(shape)
