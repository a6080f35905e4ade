"""A hidden tree learned from rows of codes: structure, start, EM until held-out rows gain no more."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...data.discretization.dependence import spanning_tree
from ...models.hidden_tree.hidden_trees import TreeTables
from ...runtime.progress import bar
from ...runtime.threads import Run, one_blas_thread, workers
from . import em_kernels
from .complete import completed
from .constants import FIXED
from .em import Covers, Maximisation, Nodes, Smoothing, Tables, expected_counts, log_probabilities, nodes_of, to_tree
from .features import most_rows
from .rake import raked
from .start import start_states
from .structure import CodeColumn, CodeTable, code_columns, information_of, join

Progress = Callable[[int, int, float], None]


class LearnSettings(NamedTuple):
    """How hidden trees are learned.

    n_states : int. Most states of a node.
    n_leaves : int. Leaves of the decision tree that cuts the rows first, each with a hidden tree of its own
        (`learn_trees`).
    start : {"shared", "local", "factors"}. First states: clusters of rows over all columns, or others for each column
        over what depends on it. "factors" is not learned here (`factors.factor_tree`).
    passes : int. Most passes of EM over the rows; 0 leaves the start as it is.
    batch : int. Rows of a batch, twice as many with 128 states or fewer, where much of the time does not depend on the
        rows; fewer where a pass would have less than ``batches``, but 8 or more.
    batches : int. Batches of a pass, at least.
    first, last : float. Share that a batch has in the running counts, falling geometrically from the first batch to the
        last.
    smoothing : Smoothing. Rows added to the counts.
    anneal : float. Rows added to transitions at first (`Smoothing.extra`), which halve with each pass.
    full : int. Passes over all rows at once after the best pass: counts of batches weigh some rows more than others,
        here all count alike. Each makes drawn rows resemble real ones more, and lowers the validation log-likelihood a
        bit.
    refit : bool. Whether these passes also see the validation rows, after those have determined when to stop.
    joined : tuple of two ints, optional. Columns that are joined whatever their mutual information (`structure.join`).
    dropout : float. Share of the cells that passes in batches hide, drawn anew in each batch, so that states are not
        determined by single cells (Srivastava et al. 2014 do so with the units of a network). Passes over all rows hide
        none.
    perturb : float. Mutual information is multiplied by exp(perturb x N(0, 1)), so that members of a mixture differ.
    """

    n_states: int = 128
    n_leaves: int = 1
    start: str = "shared"
    passes: int = 8
    batch: int = 256
    batches: int = 24
    first: float = 0.6
    last: float = 0.02
    smoothing: Smoothing = Smoothing()
    anneal: float = 1.0
    full: int = 2
    refit: bool = False
    joined: tuple[int, int] | None = None
    dropout: float = 0.0
    perturb: float = 0.0


def learn_tree(
    table: CodeTable, settings: LearnSettings | None = None, seed: int = 0, progress: Progress | None = None
) -> TreeTables:
    """Learn a hidden tree from rows of codes.

    Of 100 rows or more a tenth is held out: passes end when it gains no more, and the best pass is kept.

    seed : int. The same seed gives the same tree, whatever the number of threads.
    progress : callable, optional. Called after each pass with its number from 1, the most passes, and the mean
        log-probability of held-out rows (NaN where none are held out).
    The tables are in float32.

    >>> table = CodeTable(np.repeat([[0, 0], [1, 1]], 50, axis=0), np.array([2, 2]), np.array([False, False]))
    >>> tree = learn_tree(table, LearnSettings(n_states=2))
    >>> tree.n_states
    array([2, 2])
    """
    return learn_and_test(table, settings or LearnSettings(), seed, progress)[0]


def learn_and_test(
    table: CodeTable,
    settings: LearnSettings,
    seed: int,
    progress: Progress | None = None,
    information: np.ndarray | None = None,
    allowed: list[np.ndarray] | None = None,
    held_out: np.ndarray | None = None,
    complete: np.ndarray | None = None,
) -> tuple[TreeTables, np.ndarray]:
    """As `learn_tree`, with the log-probability of each row that was held out (n,); NaN of the others."""
    # ``information`` (d, d) is the columns' mutual information, where it is known; else it is measured. ``allowed`` are
    # the codes of each column that may have any probability, d bool arrays (K_j,). ``held_out`` are the rows to hold
    # out, where the caller has chosen them; ``complete`` the codes (n, d) with missing cells drawn, where the caller
    # has them.
    rng = np.random.default_rng(seed)
    if held_out is None:
        held_out = held_out_rows(table, rng)
    with one_blas_thread(in_kernels=True), workers() as run:
        learned = np.setdiff1d(table.weighed_rows(), held_out)
        rows, held = table.take(learned), table.take(held_out)
        if information is None:
            information = information_of(rows)
        columns = code_columns(rows, allowed)
        drawn = None if complete is None else complete[learned]
        tree, log_probability = _learn(rows, held, drawn, columns, information, settings, rng, run, progress)
    of_rows = np.full(len(table.codes), np.nan)
    of_rows[held_out] = log_probability
    return tree, of_rows


def held_out_rows(table: CodeTable, rng: np.random.Generator) -> np.ndarray:
    """Rows to hold out, ascending; none of a table of few rows."""
    rows = table.weighed_rows()
    if len(rows) < FIXED.fewest_held_out_from:
        return rows[:0]
    return np.sort(rng.permutation(rows)[: int(FIXED.held_out * len(rows))])


def _learn(
    rows: CodeTable,
    held: CodeTable,
    complete: np.ndarray | None,
    columns: tuple[CodeColumn, ...],
    information: np.ndarray,
    settings: LearnSettings,
    rng: np.random.Generator,
    run: Run,
    progress: Progress | None,
) -> tuple[TreeTables, np.ndarray]:
    # Structure
    if settings.perturb > 0.0:
        noise = np.exp(settings.perturb * rng.standard_normal(information.shape))
        information = information * np.sqrt(noise * noise.T)
    if settings.joined is not None:
        information = join(information, *settings.joined)
    order, parent = spanning_tree(information)
    # Start
    nodes, counts = _first_counts(rows, complete, columns, information, order, parent, settings, rng, run)
    step = Maximisation(nodes, columns, settings.smoothing, run)
    step.fit_normals(counts, settings.smoothing)
    tables = step.tables(counts, _smoothing(settings, 0))
    seen, unseen = _Rows.of(rows._replace(known=None, covers=())), _Rows.of(held)
    if settings.passes < 1 or len(rows.codes) == 0:
        return to_tree(nodes, tables, columns), unseen.log_probability(nodes, tables, run)
    # Passes of stepwise EM over the rows in batches, until held-out rows gain no more
    n_batches = _n_batches(len(rows.codes), settings, len(columns))
    shares = np.geomspace(settings.first, settings.last, settings.passes * n_batches).reshape(settings.passes, -1)
    best, of_best, top, worse = tables, np.empty(0), -np.inf, 0
    with bar(settings.passes + settings.full, "learning states") as tick:
        for i in range(settings.passes):
            smoothing = _smoothing(settings, i + 1)
            tables = _pass(nodes, tables, counts, seen, step, smoothing, shares[i], rng, run, settings.dropout)
            of_now = unseen.log_probability(nodes, tables, run)
            now = unseen.mean(of_now)
            tick()
            if progress is not None:
                progress(i + 1, settings.passes, now)
            if not now <= top:
                best, of_best, top, worse = tables, of_now, now, 0
            else:
                worse += 1
                if worse >= FIXED.patience:
                    break
        # Passes over all rows at once, as counts of batches weigh some rows more than others
        every = _Rows.of(_together(rows, held))
        for _ in range(settings.full):
            more = every if settings.refit else _Rows.of(rows)
            best = _pass(nodes, best, counts, more, step, settings.smoothing, np.ones(1), rng, run)
            tick()
    of_held = of_best if settings.refit else unseen.log_probability(nodes, best, run)
    tree = to_tree(nodes, best, columns)
    if not settings.full:
        return tree, of_held
    # The marginals are those of all rows, held out or not
    if not settings.refit:
        rows_of_all = np.arange(len(every.weight))
        counts = expected_counts(nodes, best, every.codes, rows_of_all, every.weight, run, every.covers, counts)
    return raked(tree, nodes, counts, _together(rows, held)), of_held


class _Rows(NamedTuple):
    """Codes (d, n) and weights (n,) as kernels take them, and the shares of codes in ranges."""

    codes: np.ndarray
    weight: np.ndarray
    covers: Covers

    @staticmethod
    def of(table: CodeTable) -> _Rows:
        known = table.codes if table.known is None else table.known
        codes = np.ascontiguousarray(known.T, dtype=np.int32)
        weight = np.ones(codes.shape[1], np.float32) if table.weight is None else table.weight.astype(np.float32)
        return _Rows(codes, weight, table.covers)

    def log_probability(self, nodes: Nodes, tables: Tables, run: Run) -> np.ndarray:
        """Log-probability of each row."""
        return log_probabilities(nodes, tables, self.codes, run, self.covers)

    def mean(self, values: np.ndarray) -> float:
        """Mean of values of the rows; NaN of none."""
        return float(np.average(values, weights=self.weight)) if len(values) else np.nan


def _pass(
    nodes: Nodes,
    tables: Tables,
    counts: Tables,
    rows: _Rows,
    step: Maximisation,
    smoothing: Smoothing,
    shares: np.ndarray,
    rng: np.random.Generator,
    run: Run,
    dropout: float = 0.0,
) -> Tables:
    """One pass over the rows in random order; ``shares`` (batches,) are those of each batch in the running counts."""
    # The running counts are changed in place. ``dropout`` is the share of cells that are hidden.
    mass = float(rows.weight.sum(dtype=np.float64))
    for i, (batch, share) in enumerate(
        zip(np.array_split(rng.permutation(len(rows.weight)), len(shares)), shares.tolist(), strict=True)
    ):
        if dropout > 0.0:
            codes, weight = _with_hidden(nodes, rows.codes[:, batch], dropout, rng), rows.weight[batch]
            news = expected_counts(nodes, tables, codes, np.arange(len(batch)), weight, run, rows.covers, counts)
        else:
            news = expected_counts(nodes, tables, rows.codes, batch, rows.weight, run, rows.covers, counts)
        gain = share * mass / max(float(rows.weight[batch].sum(dtype=np.float64)), 1e-12)
        for old, new in zip(counts, news, strict=True):
            em_kernels.move(old, new, np.float32(1.0 - share), np.float32(gain))
        if i % FIXED.batches_of_normals == 0:
            step.fit_normals(counts, smoothing)
        tables = step.tables(counts, smoothing)
    return tables


def _with_hidden(nodes: Nodes, codes: np.ndarray, dropout: float, rng: np.random.Generator) -> np.ndarray:
    """Codes (d, n), some of them replaced at random by the code of a missing cell."""
    hidden = np.empty(len(codes), codes.dtype)
    hidden[nodes.column] = nodes.n_cells - 1
    return np.where(rng.random(codes.shape) < dropout, hidden[:, None], codes)


def _n_batches(n: int, settings: LearnSettings, d: int) -> int:
    """Batches of a pass over n rows of d columns."""
    # None has more rows than ``batch``: one row more is a piece of work of its own, a tenth of the time of all.
    most = settings.batch * (2 if settings.n_states <= FIXED.few_states else 1)
    fewest = min(settings.batches, FIXED.wide_batches) if d >= FIXED.wide else settings.batches
    return max(min(n // FIXED.fewest_in_batch, max(fewest, -(-n // most))), 1)


def _together(rows: CodeTable, held: CodeTable) -> CodeTable:
    weight = None if rows.weight is None or held.weight is None else np.append(rows.weight, held.weight)
    known = None if rows.known is None or held.known is None else np.concatenate([rows.known, held.known])
    return rows._replace(codes=np.concatenate([rows.codes, held.codes]), weight=weight, known=known)


def _smoothing(settings: LearnSettings, done: int) -> Smoothing:
    """What is added once some passes are done; nothing extra in the last."""
    extra = settings.anneal * FIXED.annealed**done if done < settings.passes else 0.0
    return settings.smoothing._replace(extra=extra)


def _first_counts(
    rows: CodeTable,
    complete: np.ndarray | None,
    columns: tuple[CodeColumn, ...],
    information: np.ndarray,
    order: np.ndarray,
    parent: np.ndarray,
    settings: LearnSettings,
    rng: np.random.Generator,
    run: Run,
) -> tuple[Nodes, Tables]:
    """Nodes, and counts of the start, from some of the rows and for the weight of all."""
    n = len(rows.codes)
    chosen = np.sort(rng.permutation(n)[: min(FIXED.start_rows, most_rows(columns))])
    few, share = rows.take(chosen), n / max(len(chosen), 1)
    if rows.weight is not None and few.weight is not None:
        share = rows.weight.sum() / few.weight.sum()
    codes = completed(few.codes, columns, rng, few.weight) if complete is None else complete[chosen]
    states = start_states(codes, columns, information, settings.start, settings.n_states, rng, few.weight, run)
    n_states = states.max(axis=0, initial=0)[order] + 1
    nodes = nodes_of(order, parent, n_states, rows.n_codes)
    transition, cell = [], []
    for k, (j, above) in enumerate(zip(order.tolist(), parent.tolist(), strict=True)):
        from_state = states[:, order[above]] if above >= 0 else 0
        size = nodes.first_transition[k + 1] - nodes.first_transition[k]
        transition.append(np.bincount(from_state * n_states[k] + states[:, j], few.weight, size))
        size = nodes.first_cell[k + 1] - nodes.first_cell[k]
        cell.append(np.bincount(codes[:, j] * n_states[k] + states[:, j], few.weight, size))
    return nodes, Tables(*((share * np.concatenate(tables)).astype(np.float32) for tables in (transition, cell)))
