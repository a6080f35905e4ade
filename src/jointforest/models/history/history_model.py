"""The joint distribution of histories: likelihoods, posteriors of unknown cells, and draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ...data.discretization.base_density import draw, levels
from ...data.discretization.discretizer import codes_of
from ...runtime.threads import map_ordered
from . import records
from .columns import PRESENT, UNKNOWN, CodedCells, Coding, HistoryColumns, repeated_density
from .contexts import MAX_CODES
from .draw_kernels import Drawing, cell_log_probabilities, draw_heads, draw_subject_rows, fill_repeats
from .records import Histories, SubjectAnswers
from .walk_kernels import ENDLESS, GOLDEN, walk

CHUNK_SUBJECTS = 512
CHUNK_BYTES = 50_000_000
"""Memory of the answers about a chunk of subjects, about; one subject may need more."""
BLOCK_SUBJECTS = 16_384
"""Subjects that are drawn side by side."""
BLOCK_BYTES = 200_000_000
"""Memory of what is remembered of them, about."""
MANY_LENGTHS = 512
"""Numbers of rows, in all, up to which every one is a hypothesis of its own."""
ENDLESS_SHARE = 1e-6


class Drawn(NamedTuple):
    """Drawn histories of n subjects, with R rows together.

    length : int64 array (n,)
    head : int16 array (n, h)
    code : int16 array (R, d)
    value : float64 array (R, d). Values of columns of changes, NaN in other columns.
    """

    length: np.ndarray
    head: np.ndarray
    code: np.ndarray
    value: np.ndarray


@dataclass(frozen=True, eq=False)
class HistoryModel:
    """The joint distribution of histories of a table's subjects.

    A history is a chain of cells: head variables (constant columns, number of rows), then row after row, column after
    column. The distribution of a cell given all before it is a product of trees: see ``docs/concepts/histories.md``.

    lengths : int64 array (k,). Numbers of rows of the subjects learned from, ascending, distinct.
    length_counts : int64 array (k,). How many subjects had them.
    line_share : float64 array (d, 3). Weights, 0 to 1, of the line between known neighbours in imputed means of a
        column; and of the only neighbour's value, if it is earlier, or later.
    """

    columns: HistoryColumns
    conditionals: records.Conditionals
    lengths: np.ndarray
    length_counts: np.ndarray
    line_share: np.ndarray

    @property
    def n_leaves(self) -> int:
        """Number of leaves of all trees."""
        return int((self.conditionals.child < 0).sum())

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.conditionals.root)

    # ---- Histories without unknown cells.

    def log_probabilities(self, histories: records.Histories) -> tuple[np.ndarray, np.ndarray]:
        """Log-probability of the code of every cell given all before it: (n, h) and (N, d); nothing is unknown."""
        of_head, of_cell = np.zeros(histories.head.shape), np.zeros(histories.code.shape)

        def work(a: int, b: int) -> None:
            part = part_of(histories, a, b)
            rows = slice(histories.start[a], histories.start[b])
            state = records.empty_state(1, *self._size)
            head, cell = np.zeros((b - a, self._size[0])), np.zeros((len(part.code), self._size[1]))
            cell_log_probabilities(
                self.columns.layout, self.conditionals, part, state, np.empty(MAX_CODES + 2), head, cell
            )
            of_head[a:b], of_cell[rows] = head, cell

        list(map_ordered(work, _chunks(len(histories.length))))
        return of_head, of_cell

    @property
    def _size(self) -> tuple[int, int]:
        return len(self.columns.head), len(self.columns.rows)

    # ---- Histories with unknown cells, or rows to come.

    def walk(
        self,
        histories: records.Histories,
        steps: np.ndarray,
        *,
        cap: int,
        seed: int,
        n_draws: int = 0,
        marginals: bool = True,
        looks_ahead: bool = False,
        each: Callable[[int, int, records.SubjectAnswers], Any],
    ) -> list[Any]:
        """The results of ``each(a, b, answers)`` about subjects a to b - 1, chunk after chunk."""
        # Sums over unknown cells are exact up to ``cap`` hypotheses. ``looks_ahead``: draws are guided by the next
        # known value in the column (`records.HistoryTask`). ``marginals``: whether distributions of unknown cells are
        # wanted.
        n_unknown = self.unknown_cells(histories, steps)

        def work(a: int, b: int) -> Any:
            part = part_of(histories, a, b)
            n_cells = n_unknown[a:b]
            task = self._task(part, steps[a:b], cap, seed, n_draws, marginals, looks_ahead, a)
            found = self._room(part, n_cells, int(steps[a:b].max(initial=0)), n_draws, marginals)
            widest = max(MAX_CODES + 1, len(task.length_number) + 1)
            scratch = records.empty_scratch(cap, widest, int(n_cells.max(initial=0)), *self._size)
            state = records.empty_state(cap + 1, *self._size, 2 * (cap + 1))
            walk(
                self.conditionals, self.columns.layout, part, task, scratch, state, records.with_pasts_of(state), found
            )
            return each(a, b, found)

        bytes_a_cell = 4 * (MAX_CODES + 1) * int(marginals) + 10 * n_draws + 8
        return list(map_ordered(work, _chunks(len(histories.length), n_unknown, bytes_a_cell)))

    def draw(self, n: int, seed: int) -> Drawn:
        """The histories of n new subjects, each with exactly the distribution of the model: see `draw_kernels`."""
        at_once = max(1, min(BLOCK_SUBJECTS, BLOCK_BYTES // (100 * sum(self._size))))
        bounds = np.linspace(0, n, -(-n // at_once) + 1).astype(np.int64).tolist()
        blocks = [(k, bounds[k + 1] - bounds[k], seed) for k in range(len(bounds) - 1)]
        parts = list(map_ordered(self._draw_block, blocks))
        return Drawn(*(np.concatenate(one) for one in zip(*parts, strict=True)))

    def _draw_block(self, number: int, n: int, seed: int) -> Drawn:
        """The histories of n new subjects, drawn side by side from a random stream of this number."""
        h, d = self._size
        layout, trees = self.columns.layout, self.conditionals
        drawing = Drawing(
            rank=self._leaf_ranks, share=np.zeros((n, int(trees.target_codes.max()) + 1)),
            order=np.zeros(n, dtype=np.int64), spare=np.zeros(n, dtype=np.int64), key=np.zeros(n, dtype=np.int64),
            places=np.zeros(int(self._leaf_ranks.max(initial=0)) + 2, dtype=np.int64),
            stack=np.zeros((64, 4), dtype=np.int64), random=np.zeros(1, dtype=np.uint64),
        )  # fmt: skip
        state, head = records.empty_state(n, h, d), np.zeros((n, h), dtype=np.int16)
        draw_heads(trees, layout, drawing, state, seed, number, head)
        rng = np.random.default_rng([seed, 2, number])
        length = self._draw_lengths(head[:, -1] if h else np.zeros(n, dtype=np.int16), rng)
        if self.columns.has_length:
            state.length[:] = length
        start = np.concatenate([[0], np.cumsum(length)])
        code, value = np.zeros((start[-1], d), dtype=np.int16), np.full((start[-1], d), np.nan)
        draw_subject_rows(trees, layout, drawing, state, start, code, value)
        return Drawn(length, head, code, value)

    def _draw_lengths(self, code: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Numbers of rows, (n,), of subjects with these codes of it."""
        if not self.columns.has_length:
            return self.lengths[spread_draws(self.length_counts, len(code), rng)]
        number, code_of_number, share = self._all_lengths
        length = np.zeros(len(code), dtype=np.int64)
        for c in np.unique(code):
            at, having = np.flatnonzero(code == c), np.flatnonzero(code_of_number == c - 1)
            length[at] = number[having[spread_draws(share[having], len(at), rng)]]
        return length

    @cached_property
    def _leaf_ranks(self) -> np.ndarray:
        """For each leaf its place among the leaves of its tree, from left to right; int32 (number of nodes,)."""
        child = self.conditionals.child
        leaves = (child < 0).astype(np.int32)
        inner = np.flatnonzero(child >= 0)
        for node in inner[::-1].tolist():
            leaves[node] = leaves[child[node]] + leaves[child[node] + 1]
        rank = np.zeros(len(child), dtype=np.int32)
        for node in inner.tolist():
            rank[child[node]] = rank[node]
            rank[child[node] + 1] = rank[node] + leaves[child[node]]
        return rank

    def unknown_cells(self, histories: records.Histories, steps: np.ndarray) -> np.ndarray:
        """Number of unknown cells of each subject, (n,), those of rows to come among them."""
        in_rows = (histories.code < 0).sum(axis=1)
        up_to = np.concatenate([[0], np.cumsum(in_rows)])
        of_rows = up_to[histories.start[1:]] - up_to[histories.start[:-1]]
        return np.asarray((histories.head < 0).sum(axis=1) + of_rows + steps * self._size[1])

    def _room(
        self, part: records.Histories, n_cells: np.ndarray, steps: int, n_draws: int, marginals: bool
    ) -> records.SubjectAnswers:
        n, total = len(part.length), int(n_cells.sum())
        return records.SubjectAnswers(
            log_likelihood=np.zeros(n),
            exact=np.zeros(n, dtype=np.uint8),
            ends=np.zeros((n, steps + 2)),
            of_cell=np.zeros(part.code.shape),
            of_head=np.zeros(part.head.shape),
            cell_start=np.concatenate([[0], np.cumsum(n_cells)]).astype(np.int64),
            cell=np.full(total, -1, dtype=np.int64),
            marginal=np.zeros((total if marginals else 1, MAX_CODES + 1), dtype=np.float32),
            mean=np.full(total if marginals else 1, np.nan),
            draw_code=np.full((total, n_draws), -1, dtype=np.int16),
            draw_value=np.full((total, n_draws if self.columns.changes else 0), np.nan),
            draw_length=np.zeros((n, n_draws), dtype=np.int64),
        )

    def _task(
        self,
        part: records.Histories,
        steps: np.ndarray,
        cap: int,
        seed: int,
        n_draws: int,
        marginals: bool,
        looks_ahead: bool,
        first: int,
    ) -> records.HistoryTask:
        number, code, share = self._lengths
        n_rows = np.diff(part.start).astype(np.float64)
        own_code, own_share = np.zeros(len(n_rows), dtype=np.int64), np.zeros(len(n_rows))
        if self.columns.has_length:
            found, log_base = codes_of(self.columns.head[-1].coding.scale, n_rows)
            own_code, own_share = found.astype(np.int64) + 1, np.where(n_rows > 0, np.exp(log_base), 0.0)
        return records.HistoryTask(
            steps=steps.astype(np.int64), number=first + np.arange(len(n_rows)), length_number=number,
            length_code=code, length_share=share, own_code=own_code, own_share=own_share, cap=cap, seed=seed,
            n_draws=n_draws, marginals=int(marginals), looks_ahead=int(looks_ahead),
        )  # fmt: skip

    @cached_property
    def _all_lengths(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All numbers of rows that a history may have, their codes from 0, and the probability of each in its code."""
        coding = self.columns.head[-1].coding
        number = np.arange(int(coding.column.minimum), int(coding.column.maximum) + 1, dtype=np.int64)
        code, log_base = codes_of(coding.scale, number.astype(np.float64))
        share = np.exp(log_base)
        return number, code, share / np.bincount(code, share, coding.scale.n_codes)[code]

    @cached_property
    def _lengths(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Numbers of rows that stand for all of them, their codes and shares; the last one is endless."""
        if not self.columns.has_length:
            return np.array([ENDLESS]), np.array([1]), np.array([1.0])
        number, code, share = self._all_lengths
        n_codes = self.columns.head[-1].coding.scale.n_codes
        if len(number) > MANY_LENGTHS:
            chosen = [_evenly_spaced(np.flatnonzero(code == c), MANY_LENGTHS // n_codes) for c in range(n_codes)]
            keep = np.concatenate(chosen)
            number, code = number[keep], code[keep]
            share = 1.0 / np.bincount(code, minlength=n_codes)[code]
        return (
            np.append(number, ENDLESS),
            np.append(code + 1, n_codes).astype(np.int64),
            np.append(share * (1.0 - ENDLESS_SHARE), ENDLESS_SHARE),
        )


def _evenly_spaced(numbers: np.ndarray, n: int) -> np.ndarray:
    """At most n of the numbers, at equal distances."""
    if len(numbers) <= n:
        return numbers
    return numbers[((np.arange(n) + 0.5) * len(numbers) / n).astype(np.intp)]


def part_of(histories: records.Histories, a: int, b: int) -> records.Histories:
    """Subjects a to b - 1."""
    rows = slice(int(histories.start[a]), int(histories.start[b]))
    return records.Histories(
        start=histories.start[a : b + 1] - histories.start[a],
        head=np.ascontiguousarray(histories.head[a:b]),
        length=histories.length[a:b],
        **{name: np.ascontiguousarray(getattr(histories, name)[rows]) for name in records.ROW_FIELDS},
    )


def _chunks(n: int, cells: np.ndarray | None = None, bytes_a_cell: int = 0) -> list[tuple[int, int]]:
    """Bounds of chunks of subjects whose unknown cells fit the memory of a chunk."""
    if cells is None:
        return [(a, min(a + CHUNK_SUBJECTS, n)) for a in range(0, n, CHUNK_SUBJECTS)]
    found, a, so_far = [], 0, 0
    for i, size in enumerate((cells * bytes_a_cell).tolist()):
        if i > a and (so_far + size > CHUNK_BYTES or i - a >= CHUNK_SUBJECTS):
            found.append((a, i))
            a, so_far = i, 0
        so_far += size
    return [*found, (a, n)] if n else []


def spread_draws(weights: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Numbers (n,), each drawn with these weights, all of them together close to the weights."""
    up_to = np.cumsum(weights / weights.sum())
    points = (rng.random() + GOLDEN * np.arange(n)) % 1.0
    return np.minimum(np.searchsorted(up_to, points, side="right"), len(up_to) - 1)


# ---- Codes to values.


def draw_values(
    coding: Coding, code: np.ndarray, is_first: np.ndarray, rng: np.random.Generator, before: np.ndarray | None = None
) -> np.ndarray:
    """Values of codes (N,), 0 for missing, row after row; known values are in ``before`` (N,), NaN elsewhere."""
    fresh = np.full(len(code), np.nan)
    known = np.flatnonzero(code > 0)
    fresh[known] = draw(coding.scale, code[known] - 1, rng.random(len(known)))
    given = np.zeros(len(code), dtype=bool)
    if before is not None:
        given = ~np.isnan(before)
        fresh[given] = before[given]
    if not coding.repeat.any():
        return fresh
    _, log_base = codes_of(coding.scale, np.where(given, fresh, np.nan))
    n = len(code)
    fill_repeats(
        code.astype(np.int64), is_first, given, np.append(0.0, coding.repeat), np.exp(log_base),
        repeated_density(coding, fresh), rng.random(n), np.empty(n), np.empty(n), np.empty(n, dtype=bool), fresh,
    )  # fmt: skip
    return fresh


# ---- Unknown cells of histories filled in, given all rows of the history.

IMPUTE_CAP = 1024
"""Hypotheses when cells are imputed: of the first row of a history there must be some that fit the rows after it."""

BETWEEN, AFTER, BEFORE = range(3)
"""Where an unknown cell lies: between known cells of its column, after the last one, before the first one."""


def impute_codes(
    model: HistoryModel,
    X: np.ndarray,
    coded: CodedCells,
    time: np.ndarray | None,
    method: str,
    m: int,
    cap: int,
    seed: int,
) -> list[np.ndarray]:
    """Cells (N, columns) with the unknown ones filled in, one array for each of ``m`` draws."""
    # Means of numbers are moved towards the line between known neighbours: `HistoryModel.line_share`.
    columns, histories = model.columns, present(coded.histories)
    n_draws = m if method == "sample" else 0
    filled = [X.copy() for _ in range(m)]
    h, d = histories.head.shape[1], histories.code.shape[1]
    rng = np.random.default_rng([seed, 1])

    def each(a: int, b: int, found: SubjectAnswers) -> tuple[np.ndarray, ...]:
        subject = np.repeat(np.arange(a, b), np.diff(found.cell_start))
        number = np.where(found.cell < h, found.cell, h + (found.cell - h) % d)
        answer = _mean_answers if method == "mean" else _drawn_answers
        return subject, found.cell, answer(columns, number, found)

    steps = np.zeros(len(histories.length), dtype=np.int64)
    parts = model.walk(
        histories, steps, cap=cap, seed=seed, n_draws=n_draws, marginals=method == "mean", looks_ahead=True, each=each,
    )  # fmt: skip
    subject, cell, answer = (np.concatenate(one) for one in zip(*parts, strict=True))
    for v, variable in enumerate(columns.head):
        if variable.source < 0:
            continue
        at = np.flatnonzero(cell == v)
        rows = [np.arange(histories.start[i], histories.start[i + 1]) for i in subject[at]]
        for k in range(m):
            x = answer[at, k] if method == "mean" else _drawn_values(variable.coding, answer[at, k], rng)
            for where, number in zip(rows, x.tolist(), strict=True):
                empty = np.isnan(X[where, variable.source])
                filled[k][where[empty], variable.source] = number
    _spread_constants(columns, X, coded, filled)
    for j, variable in enumerate(columns.rows):
        at = np.flatnonzero((cell >= h) & ((cell - h) % d == j))
        row = histories.start[subject[at]] + (cell[at] - h) // d
        for k in range(m):
            x = answer[at, k]
            if method == "sample" and variable.coding.change is None:
                x = _draws_in_rows(variable.coding, histories, j, row, x, X[:, variable.source], rng)
            if method == "mean" and variable.source >= 0 and model.line_share[j].any():
                line, sides = (one[row] for one in line_of(histories.start, time, X[:, variable.source]))
                x = np.where(np.isnan(line), x, x + model.line_share[j][sides] * (line - x))
            if variable.source >= 0:
                filled[k][row, variable.source] = x
    return filled


def line_of(start: np.ndarray, time: np.ndarray | None, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The line in time between the known neighbours of each cell (N,), NaN if there are none; which of them exist."""
    # Without times, rows are one apart. With one known neighbour, its value is the line.
    row = np.arange(len(x))
    t = row.astype(np.float64) if time is None else time
    length = np.diff(start)
    first, last = np.repeat(start[:-1], length), np.repeat(start[1:] - 1, length)
    known = ~np.isnan(x)
    before = np.maximum.accumulate(np.where(known, row, -1))
    after = np.minimum.accumulate(np.where(known, row, len(x))[::-1])[::-1]
    has_before, has_after = before >= first, after <= last
    a = np.where(has_before, before, after)
    b = np.where(has_after, after, before)
    found = np.full(len(x), np.nan)
    at = np.flatnonzero(~known & (has_before | has_after))
    a, b = a[at], b[at]
    span = t[b] - t[a]
    # neighbours of one time leave the cell halfway
    share = np.where(a == b, 0.0, np.where(span > 0.0, (t[at] - t[a]) / np.where(span > 0.0, span, 1.0), 0.5))
    found[at] = x[a] + (x[b] - x[a]) * share
    return found, np.where(has_before == has_after, BETWEEN, np.where(has_before, AFTER, BEFORE))


def _mean_answers(columns: HistoryColumns, number: np.ndarray, found: SubjectAnswers) -> np.ndarray:
    """Means or most probable levels of unknown cells, (U, 1); ``number`` is the variable of each cell."""
    answer = np.full((len(number), 1), np.nan)
    for v, variable in enumerate((*columns.head, *columns.rows)):
        at = np.flatnonzero(number == v)
        if variable.coding.change is not None:
            answer[at, 0] = found.mean[at]
        elif variable.source >= 0:
            answer[at, 0] = _expected_cells(variable.coding, found.marginal[at])
    return answer


def _drawn_answers(columns: HistoryColumns, number: np.ndarray, found: SubjectAnswers) -> np.ndarray:
    """Draws of unknown cells, (U, m): values where changes are predicted, codes elsewhere."""
    if not columns.changes:
        return found.draw_code
    by_change = np.array([v.coding.change is not None for v in (*columns.head, *columns.rows)])
    return np.where(by_change[number][:, None], found.draw_value, found.draw_code)


def present(histories: Histories) -> Histories:
    """The same, with unknown cells that are not missing."""
    code = np.where(histories.code == UNKNOWN, PRESENT, histories.code).astype(np.int16)
    head = np.where(histories.head == UNKNOWN, PRESENT, histories.head).astype(np.int16)
    return histories._replace(code=code, head=head)


def _expected_cells(coding: Coding, marginal: np.ndarray) -> np.ndarray:
    """Means of numbers, most probable levels, of distributions over codes."""
    weights = marginal[:, 1 : coding.n_codes].astype(np.float64)
    if coding.column.is_categorical:
        return np.argmax(levels(coding.scale, weights, len(coding.column.levels)), axis=1).astype(np.float64)
    _, center, _ = coding.scale.moments
    return weights @ center / np.maximum(weights.sum(axis=1), 1e-300)


def _drawn_values(coding: Coding, code: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return draw_values(coding, code.astype(np.int64), np.ones(len(code), dtype=bool), rng)


def _draws_in_rows(
    coding: Coding,
    histories: Histories,
    j: int,
    row: np.ndarray,
    code: np.ndarray,
    x: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Values drawn for some rows of a column, which may repeat those of the row before."""
    codes = np.maximum(histories.code[:, j].astype(np.int64), 0)
    codes[row] = code
    is_first = np.zeros(len(codes), dtype=bool)
    is_first[histories.start[:-1][np.diff(histories.start) > 0]] = True
    before = x.copy()
    before[row] = np.nan
    return draw_values(coding, codes, is_first, rng, before)[row]


def _spread_constants(columns: HistoryColumns, X: np.ndarray, coded: CodedCells, filled: list[np.ndarray]) -> None:
    """A constant column that is known in some rows of a subject has the same value in the others."""
    subject = np.repeat(np.arange(len(coded.histories.length)), np.diff(coded.histories.start))
    for v, variable in enumerate(columns.head):
        if variable.source < 0:
            continue
        value = coded.head_value[subject, v]
        empty = np.isnan(X[:, variable.source]) & ~np.isnan(value)
        for one in filled:
            one[empty, variable.source] = value[empty]
