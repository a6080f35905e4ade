"""The arrays of a model of histories, as kernels take them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...runtime.records import record
from .contexts import MAX_CODES, N_KINDS

MOST_TREES = 8
"""Trees of a target, at most."""


@record
class HistoryLayout(NamedTuple):
    """The columns of a history: h head variables, then d columns in the order in which a row is drawn.

    n_head : int. Head variables; the last one is the number of rows if that is modelled.
    has_length : int. 1 if the number of rows is modelled, else 0.
    n_codes : int64 array (d,). Codes of the values of each column, the one of missing cells included.
    is_number : uint8 array (d,). Whether the codes are ordered bins of numbers.
    change : int64 array (d,). Place of the column among the m columns of changes, -1 if its values are predicted.
    repeat_at : int64 array (d,). Place of the column among the q columns that repeat values, -1 if it repeats none.
    repeat : float64 array (q, 64). Probability, by code, that a cell with the code of the cell before has its value.
    edge_start : int64 array (m + 1,). Bins of column of changes k end at ``edge[edge_start[k]:edge_start[k + 1]]``.
    edge : float64 array. Ascending in each column.
    change_start : int64 array (m + 1,). Of the arrays of G codes below, the first E are the bins of values, as ``edge``
        has them; places ``change_start[k]:change_start[k + 1]`` are the change codes from 1 on of column of changes k.
    middle : float64 array (G,). Median of each code.
    seg_start : int64 array (G + 1,). Code g has the segments ``seg_start[g]:seg_start[g + 1]``: see `Scale`.
    seg_lo, seg_hi, seg_rate, seg_share : float64 array (S,)
    seg_code : int64 array (S,). Code of each segment in its column, from 0.
    step, origin : float64 array (m,). Step of the grid of values, 0 if there is none, and centre of a cell.
    low, high : float64 array (m,). Range of the values of columns of changes.
    spread : float64 array (m,). Typical size of their changes from one row to the next.
    expect_root : int64 array (d,). First node of the expectation tree of each column, -1 if it has none.
    expect_kind, expect_column, expect_threshold : int16 array (E,). Splits of these trees, as of `Conditionals`.
    expect_child : int64 array (E,). Left child (the right one follows it), or -1 - the expected code.
    """

    n_head: int
    has_length: int
    n_codes: np.ndarray
    is_number: np.ndarray
    change: np.ndarray
    repeat_at: np.ndarray
    repeat: np.ndarray
    edge_start: np.ndarray
    edge: np.ndarray
    change_start: np.ndarray
    middle: np.ndarray
    seg_start: np.ndarray
    seg_lo: np.ndarray
    seg_hi: np.ndarray
    seg_rate: np.ndarray
    seg_share: np.ndarray
    seg_code: np.ndarray
    step: np.ndarray
    origin: np.ndarray
    low: np.ndarray
    high: np.ndarray
    spread: np.ndarray
    expect_root: np.ndarray
    expect_kind: np.ndarray
    expect_column: np.ndarray
    expect_threshold: np.ndarray
    expect_child: np.ndarray


@record
class Conditionals(NamedTuple):
    """The conditional distribution of every cell: targets, each with one or more trees.

    Targets are the h head variables, then the d columns in a first row, then the d columns in a later row. A target's
    first tree gives a distribution over its codes, the others multiply it class by class; the product is normalised.

    target_codes : int64 array (h + 2 d,). Codes of each target.
    tree_start : int64 array (h + 2 d + 1,). ``tree_start[k]:tree_start[k + 1]`` are the trees of target k.
    tree_class : int64 array (T,). Which classes of codes the tree has entries for: see `contexts`.
    root : int64 array (T,). First node of each tree.
    kind, column, threshold : int16 array (N,). Left if the context of this kind and column is at most the threshold.
    child : int64 array (N,). Left child (the right one follows it), or -1 - first entry of the leaf in ``table``.
    table : float32 array. Entries of the leaves.
    """

    target_codes: np.ndarray
    tree_start: np.ndarray
    tree_class: np.ndarray
    root: np.ndarray
    kind: np.ndarray
    column: np.ndarray
    threshold: np.ndarray
    child: np.ndarray
    table: np.ndarray


@record
class Histories(NamedTuple):
    """n subjects with N rows in all, coded.

    start : int64 array (n + 1,). Rows ``start[i]:start[i + 1]`` are those of subject i.
    head : int16 array (n, h). Codes of head variables; 0 missing, -1 unknown, -2 unknown but not missing.
    length : int64 array (n,). Rows of the complete history; -1 where further rows may follow.
    code : int16 array (N, d). Codes of values, with the signs of ``head``.
    change : int16 array (N, m). Codes of changes; 0 if unknown.
    value, base : float64 array (N, m). Values of columns of changes, NaN if unknown; logs of their density in codes.
    fresh, again : float64 array (N, q). Of known cells of the q columns that repeat values: density of the value inside
        its code if it is no repetition, and if it is the last known one again (0 if it is another one). Both are
        relative to the density that is added to their log-probability.
    """

    start: np.ndarray
    head: np.ndarray
    length: np.ndarray
    code: np.ndarray
    change: np.ndarray
    value: np.ndarray
    base: np.ndarray
    fresh: np.ndarray
    again: np.ndarray


ROW_FIELDS = ("code", "change", "value", "base", "fresh", "again")
"""Fields of histories that have an entry for each row."""


def of_subjects(histories: Histories, subjects: np.ndarray) -> Histories:
    """Some subjects of histories, by their numbers."""
    length = np.diff(histories.start)[subjects]
    start = np.concatenate([[0], np.cumsum(length)]).astype(np.int64)
    rows = np.repeat(histories.start[subjects] - start[:-1], length) + np.arange(start[-1])
    of_rows = {name: getattr(histories, name)[rows] for name in ROW_FIELDS}
    return Histories(start, histories.head[subjects], histories.length[subjects], **of_rows)


@record
class State(NamedTuple):
    """What is known at one point of a history under each of H hypotheses about the cells that are unknown.

    weight : float64 array (H,)
    head : int32 array (H, h). Codes of head variables.
    length : int64 array (H,). Number of rows; 0 if it is not modelled.
    now, change : int32 array (H, d). Codes of the row so far, and of the changes since the row before (0 if unknown).
    next_value : float64 array (H, d). Last known value of columns of changes after the row.
    expected : int32 array (H, d). Codes expected by the earlier columns; 0 without an expectation tree.
    leaf : int64 array (H, 8). Of the trees of the current cell: the first entry of the leaf.
    ahead : float64 array (H, d). Factor of the weight: how well an unknown cell agrees with the next known
        value in its column; it is taken out at that value. 1 elsewhere.
    stay : float64 array (H, d). Probability that the last row repeats the last known value.
    past : int64 array (H,). Which of the P pasts below is that of the hypothesis.
    value : float64 array (P, d). Last known value of columns of changes before the row.
    memory : int32 array (P, d, 14). What is remembered of the rows before: `memory_kernels`.
    seen : uint64 array (P, d). Codes seen so far, as bits.
    place : uint8 array (8, 64). Of the trees of the current cell: the class of each code.
    ratio : float64 array (8, 64). Of the trees of the current cell that tie codes to the past: the ratio of each code.
    held : int64 array (8,). First entry of the leaf that these ratios are of; -1 if of none.
    """

    weight: np.ndarray
    head: np.ndarray
    length: np.ndarray
    now: np.ndarray
    change: np.ndarray
    next_value: np.ndarray
    expected: np.ndarray
    leaf: np.ndarray
    ahead: np.ndarray
    stay: np.ndarray
    past: np.ndarray
    value: np.ndarray
    memory: np.ndarray
    seen: np.ndarray
    place: np.ndarray
    ratio: np.ndarray
    held: np.ndarray


@record
class HistoryTask(NamedTuple):
    """What is asked of n subjects.

    steps : int64 array (n,). Rows to add after the known ones of each subject.
    number : int64 array (n,). Number of the random stream of each subject.
    length_number, length_code : int64 array (c,). Numbers of rows that represent all, ascending, and their codes.
    length_share : float64 array (c,). Share of its code that each stands for.
    own_code : int64 array (n,). Code of the number of known rows of each subject.
    own_share : float64 array (n,). Share of that code that the number has.
    cap : int. Most hypotheses.
    n_draws : int. Draws of the unknown cells of each subject.
    marginals : int. 1 if the distributions of unknown cells are wanted, else 0.
    looks_ahead : int. 1 if draws of unknown cells take account of the next known value in the column, else 0.
        Log-probabilities of single known cells are then not those given all before them.
    """

    steps: np.ndarray
    number: np.ndarray
    length_number: np.ndarray
    length_code: np.ndarray
    length_share: np.ndarray
    own_code: np.ndarray
    own_share: np.ndarray
    cap: int
    seed: int
    n_draws: int
    marginals: int
    looks_ahead: int


@record
class _Scratch(NamedTuple):
    """Room for hypotheses that one cell splits into at most C each, and for E unknown cells of a subject.

    share : float64 array (cap, C + 1). Distributions of the cell, one for each group of hypotheses; in the end the code
        of missing cells may be 0.
    mass : float64 array (cap,). Sum of each of them.
    of_code : float64 array (65,). Distribution of the code of the number of rows.
    next_known : float64 array (2,). Next known value in the column of the current cell, and one over the typical
        distance from it; 0 if the draws of the cell do not look ahead.
    factor : float64 array (cap, C + 1). For each hypothesis and code: how well the code agrees with this value.
    common : int64 array (1,). What all hypotheses have in common: see `group_kernels`.
    context : int16 array (26, d or more). Contexts that all hypotheses have in this row; -1 if not known yet.
    group : int64 array (2, cap). Group of each hypothesis, -1 without such a row; and first hypothesis of each group.
    order, spare : int64 array (cap,). Hypotheses, those of one leaf beside each other.
    stack : int64 array (cap + 1, 3). Nodes to visit, and the range in ``order`` of the hypotheses there.
    parent, code : int64 array (cap + 1,). Hypotheses that are kept: where they come from, and their code.
    kept : float64 array (cap + 1,). Their weights.
    kept_value : float64 array (cap + 1,). Their values of a column of changes.
    event_parent : int32 array (E, cap). Where the hypotheses after each unknown cell come from.
    event_code : int16 array (E, cap). Their codes.
    event_value : float64 array (E, cap). Their values of columns of changes.
    event_weight : float64 array (E + 1, cap). Weights of the hypotheses before each unknown cell, and at the end.
    event_size : int64 array (E + 1,). Number of these hypotheses.
    differs : uint8 array (d,). Whether hypotheses differ in the last known value of a column of changes.
    random : uint64 array (1,)
    """

    share: np.ndarray
    mass: np.ndarray
    of_code: np.ndarray
    next_known: np.ndarray
    factor: np.ndarray
    common: np.ndarray
    context: np.ndarray
    group: np.ndarray
    order: np.ndarray
    spare: np.ndarray
    stack: np.ndarray
    parent: np.ndarray
    code: np.ndarray
    kept: np.ndarray
    kept_value: np.ndarray
    event_parent: np.ndarray
    event_code: np.ndarray
    event_value: np.ndarray
    event_weight: np.ndarray
    event_size: np.ndarray
    differs: np.ndarray
    random: np.ndarray


@record
class SubjectAnswers(NamedTuple):
    """Answers about n subjects with N known rows and U unknown cells.

    log_likelihood : float64 array (n,). Of the codes of all known cells.
    exact : uint8 array (n,). Whether no hypothesis was drawn.
    ends : float64 array (n, S + 2). Probability that the history ends after its known rows, after one more, ...; the
        last entry is what remains.
    of_cell : float64 array (N, d). Log-probability of each known cell given all before it.
    of_head : float64 array (n, h)
    cell_start : int64 array (n + 1,). Subject i has the unknown cells ``cell_start[i]:cell_start[i + 1]`` of the arrays
        below.
    cell : int64 array (U,). Number of a head variable, or h + row * d + column; -1 where a history had no such row.
    marginal : float32 array (U, 64). Their distributions.
    mean : float64 array (U,). Their mean values, of columns of changes; else NaN.
    draw_code : int16 array (U, n_draws). Codes drawn; -1 where a history had no such row.
    draw_value : float64 array (U, n_draws). Values drawn of columns of changes, else NaN; (U, 0) without such columns.
    draw_length : int64 array (n, n_draws). Numbers of rows drawn.
    """

    log_likelihood: np.ndarray
    exact: np.ndarray
    ends: np.ndarray
    of_cell: np.ndarray
    of_head: np.ndarray
    cell_start: np.ndarray
    cell: np.ndarray
    marginal: np.ndarray
    mean: np.ndarray
    draw_code: np.ndarray
    draw_value: np.ndarray
    draw_length: np.ndarray


def empty_scratch(cap: int, n_candidates: int, n_events: int, n_head: int, d: int) -> _Scratch:
    """Room for hypotheses."""
    e = max(n_events, 1)
    return _Scratch(
        share=np.zeros((cap, n_candidates + 1)),
        mass=np.zeros(cap),
        of_code=np.zeros(MAX_CODES + 2),
        next_known=np.zeros(2),
        factor=np.ones((cap, n_candidates + 1)),
        common=np.zeros(1, dtype=np.int64),
        context=np.full((N_KINDS, max(d, n_head, 1)), -1, dtype=np.int16),
        group=np.zeros((2, cap), dtype=np.int64),
        order=np.zeros(cap, dtype=np.int64),
        spare=np.zeros(cap, dtype=np.int64),
        stack=np.zeros((cap + 1, 3), dtype=np.int64),
        parent=np.zeros(cap + 1, dtype=np.int64),
        code=np.zeros(cap + 1, dtype=np.int64),
        kept=np.zeros(cap + 1),
        kept_value=np.zeros(cap + 1),
        event_parent=np.zeros((e, cap), dtype=np.int32),
        event_code=np.zeros((e, cap), dtype=np.int16),
        event_value=np.full((e, cap), np.nan),
        event_weight=np.zeros((e + 1, cap)),
        event_size=np.zeros(e + 1, dtype=np.int64),
        differs=np.zeros(d, dtype=np.uint8),
        random=np.zeros(1, dtype=np.uint64),
    )


def empty_state(n_hypotheses: int, n_head: int, d: int, n_pasts: int | None = None) -> State:
    """A state of zeros; without ``n_pasts``, a past for each hypothesis."""
    n = n_hypotheses
    p = n if n_pasts is None else n_pasts
    return State(
        weight=np.zeros(n),
        head=np.zeros((n, n_head), dtype=np.int32),
        length=np.zeros(n, dtype=np.int64),
        now=np.zeros((n, d), dtype=np.int32),
        change=np.zeros((n, d), dtype=np.int32),
        next_value=np.full((n, d), np.nan),
        expected=np.zeros((n, d), dtype=np.int32),
        leaf=np.zeros((n, MOST_TREES), dtype=np.int64),
        ahead=np.ones((n, d)),
        stay=np.zeros((n, d)),
        past=np.arange(n),
        value=np.full((p, d), np.nan),
        memory=np.zeros((p, d, 14), dtype=np.int32),
        seen=np.zeros((p, d), dtype=np.uint64),
        place=np.zeros((MOST_TREES, MAX_CODES + 1), dtype=np.uint8),
        ratio=np.zeros((MOST_TREES, MAX_CODES + 1)),
        held=np.zeros(MOST_TREES, dtype=np.int64),
    )


def with_pasts_of(state: State) -> State:
    """Room for as many other hypotheses with the same pasts."""
    n, d = state.now.shape
    other = empty_state(n, state.head.shape[1], d, 0)
    return other._replace(
        value=state.value, memory=state.memory, seen=state.seen, place=state.place, ratio=state.ratio, held=state.held
    )
