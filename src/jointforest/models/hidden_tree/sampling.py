"""Whole rows given evidence: draws without rejection, and cells filled in."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...data.discretization.base_density import draw, levels
from ...data.discretization.discretizer import Scale
from ...data.evidence import Evidence
from ...data.observe_table import mix_all_bits
from ...runtime.threads import chunks, map_ordered, one_blas_thread
from .column import at_center, groups
from .hidden_trees import HiddenTrees, TreeTables
from .messages import CodeEvidence, Message, code_evidence, own_messages, possible_rows, up
from .posterior import CodePosterior, batch_rows, by_batches

_DRAWS = 16_384
_FEW = 1_024  # draws of a tree that are not worth tables for drawing in constant time


def sample(hidden: HiddenTrees, evidence: Evidence, m: int, seed: int, missing: bool = False) -> np.ndarray:
    """m draws for each row of evidence, contiguous, (n * m, d): a tree, states from the root down, codes, numbers."""
    # Pieces of the work have their own random streams, so the answer depends on the seed alone.
    known = code_evidence(hidden, evidence)
    n, d = evidence.value.shape
    out = np.empty((n * m, d))

    def work(rows: tuple[int, int], draws: tuple[int, int]) -> None:
        part = [of.take(slice(*rows)) for of in known]
        rng = np.random.default_rng([seed, rows[0], draws[0]])
        at = np.repeat(np.arange(*rows), draws[1] - draws[0]) * m + np.tile(np.arange(*draws), rows[1] - rows[0])
        out[at] = _draw(hidden, part, rows[1] - rows[0], draws[1] - draws[0], rng, missing)

    some = chunks(n, max(1, min(batch_rows(hidden), _DRAWS // max(m, 1))))
    with one_blas_thread():
        for _ in map_ordered(work, [(rows, draws) for rows in some for draws in chunks(m, _DRAWS)]):
            pass
    return out


def _weighed(
    hidden: HiddenTrees, known: list[CodeEvidence], n: int
) -> tuple[np.ndarray, list[list[Message]], list[np.ndarray | slice]]:
    """log p(tree, evidence) of n rows, (n, T); of each tree its upward messages, and the rows that it has them of."""
    joint = np.full((n, len(hidden.trees)), -np.inf)
    inside: list[list[Message]] = []
    possible = possible_rows(hidden, known)
    for t, (tree, rows) in enumerate(zip(hidden.trees, possible, strict=True)):
        said = [of.take(rows) for of in known]
        upward = up(tree, own_messages(tree, said), len(said[0].code)) if len(said[0].code) else None
        inside.append([] if upward is None else upward.inside)
        if upward is not None:
            joint[rows, t] = upward.log_probability
    joint += hidden.log_weight + np.sum([of.log_base for of in known], axis=0)[:, None]
    return joint, inside, possible


def _draw(
    hidden: HiddenTrees, known: list[CodeEvidence], n: int, m: int, rng: np.random.Generator, missing: bool
) -> np.ndarray:
    """m draws for each of n rows, (n * m, d)."""
    joint, inside, possible = _weighed(hidden, known, n)
    chosen = _trees(joint, m, rng)
    code = np.zeros((n * m, len(known)), np.int64)
    blank = np.zeros(code.shape, bool)
    order = np.argsort(chosen, kind="stable")
    start = np.searchsorted(chosen[order], np.arange(len(hidden.trees) + 1))
    for t in np.flatnonzero(np.diff(start)).tolist():
        mine = order[start[t] : start[t + 1]]
        mine = mine[joint[mine // m, t] > -np.inf]
        if not len(mine):
            continue
        row = mine // m
        some = possible[t]
        place = row if isinstance(some, slice) else np.searchsorted(some, row)
        code[mine], blank[mine] = _draw_tree_codes(hidden.trees[t], known, inside[t], place, row, rng)
    drawn = np.flatnonzero(np.repeat(joint.max(axis=1) > -np.inf, m))
    out = np.full(code.shape, np.nan)
    out[drawn] = _draw_cells(hidden, known, drawn // m, code[drawn], rng)
    if missing:
        free = np.column_stack([of.code == scale.n_codes for of, scale in zip(known, hidden.scales, strict=True)])
        out[blank & np.repeat(free, m, axis=0)] = np.nan
    return out


def _trees(log_joint: np.ndarray, m: int, rng: np.random.Generator) -> np.ndarray:
    """A tree for each of m draws for each of n rows, (n * m,), in proportion to ``exp(log_joint)``, (n, T)."""
    with np.errstate(invalid="ignore"):
        share = np.nan_to_num(np.exp(log_joint - log_joint.max(axis=1, keepdims=True)))
    total, u = np.cumsum(share, axis=1), rng.random((len(share), m))
    at = np.minimum(u * total[:, -1:], np.nextafter(total[:, -1:], -1.0))  # a tree of share 0 is never drawn
    found = [np.searchsorted(row[:-1], one, side="right") for row, one in zip(total, at, strict=True)]
    return np.concatenate(found) if found else np.zeros(0, np.int64)


def _draw_tree_codes(
    tree: TreeTables,
    known: list[CodeEvidence],
    inside: list[Message],
    place: np.ndarray,
    row: np.ndarray,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """One draw from a tree for each entry of ``row``, whose evidence it has: codes, and which cells are missing."""
    # ``place`` is the position of a row in ``inside``; codes of known cells are arbitrary. Both answers are (r, d).
    r = len(row)
    code, blank = np.zeros((r, len(known)), np.int64), np.zeros((r, len(known)), bool)
    states: list[np.ndarray] = []
    for k, j in enumerate(tree.column.tolist()):
        above = states[tree.parent[k]] if k else np.zeros(r, np.int64)
        here = inside[k]
        if here is not None:
            state = _state(tree.transition[k], here, place, above, rng.random(r))
        elif r < _FEW:
            state = _outcome(tree.transition[k][above], rng.random(r))
        else:
            state = tree.state_draws[k].draw(above, rng.random(r))
        states.append(state)
        if j >= 0:
            code[:, j] = _drawn_codes(tree, k, known[j], row, state, rng)
    if tree.blank:
        # columns that miss their cells together share a node, and so a number
        u = {k: rng.random(r) for k in dict.fromkeys(tree.missing_node.values())}
        for j, k in tree.missing_node.items():
            blank[:, j] = u[k] < tree.blank[k][states[k]]
    return code, blank


def _drawn_codes(
    tree: TreeTables, k: int, known: CodeEvidence, row: np.ndarray, state: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Codes of a node's column given its states (r,), within the regions of the rows (r,)."""
    picked, K, u = tree.picked[k], tree.emission[k].shape[1], rng.random(len(row))
    if picked is not None:
        return picked[state]
    region = known.code[row] - K - 1
    if (region >= 0).any() or len(row) < _FEW:
        weight = tree.emission[k][state]
        has = np.flatnonzero(region >= 0)
        weight[has] = weight[has] * known.likelihood[region[has]]
        return _outcome(weight, u)
    return tree.code_draws[k].draw(state, u)


def _draw_cells(
    hidden: HiddenTrees, known: list[CodeEvidence], row: np.ndarray, code: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Cells of draws, (r, d), given their rows of evidence (r,) and codes (r, d): values known, or drawn in codes."""
    out = np.empty(code.shape)
    for j, of in enumerate(known):
        said = of.take(row)
        out[:, j] = said.value
        for some, scale in groups(hidden.scales[j], said):
            if scale is not None and len(some):
                out[some, j] = draw(scale, code[some, j], rng.random(len(some)))
    return out


# ---- Completions: draws of a row that depend on no other row.


class _Latin(NamedTuple):
    """Uniform numbers for draws: the same for all rows, and a Latin hypercube for the draws of each row.

    number : float64 array (uses, c). For each use, the numbers of the draws, row after row.
    spot : int64 array (r,). Where each of r draws has its numbers.
    """

    number: np.ndarray
    spot: np.ndarray

    def of(self, use: int, draws: np.ndarray | slice) -> np.ndarray:
        """The numbers of some draws for a use."""
        return self.number[use, self.spot[draws]]


def _spread(count: np.ndarray, uses: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of a `_Latin`, and where those of rows with each count (k + 1,) begin; use 0 ascends."""
    # Each use has one number in every interval [i / c, (i + 1) / c) for a row of c draws.
    every, begin, parts, total = np.unique(count), np.zeros(int(count.max(initial=0)) + 1, np.int64), [], 0
    for c in every[every > 0].tolist():
        rng = np.random.default_rng([seed, c])
        place = rng.permuted(np.tile(np.arange(c), (uses, 1)), axis=1)
        place[0] = np.arange(c)
        parts.append((place + rng.random((uses, c))) / c)
        begin[c], total = total, total + c
    return np.concatenate([np.empty((uses, 0)), *parts], axis=1), begin


def completions(hidden: HiddenTrees, evidence: Evidence, count: np.ndarray, seed: int) -> np.ndarray:
    """count (n,) draws for each row of evidence, contiguous, from numbers that all rows share; see `_Latin`."""
    known = code_evidence(hidden, evidence)
    n, d = evidence.value.shape
    nodes = max(len(tree) for tree in hidden.trees)
    number, begin = _spread(count, 1 + 2 * nodes + d, seed)
    start = np.concatenate([[0], np.cumsum(count)])
    out = np.full((int(start[-1]), d), np.nan)

    def work(first: int, stop: int) -> None:
        row = np.repeat(np.arange(stop - first), count[first:stop])
        of_row = np.arange(len(row)) - (start[first:stop] - start[first])[row]
        spread = _Latin(number, begin[count[first:stop]][row] + of_row)
        part = [of.take(slice(first, stop)) for of in known]
        out[start[first] : start[stop]] = _complete(hidden, part, stop - first, row, spread)

    most = max(1, min(batch_rows(hidden), _DRAWS // max(int(count.max(initial=1)), 1)))
    with one_blas_thread():
        for _ in map_ordered(work, chunks(n, most)):
            pass
    return out


def completed_rows(hidden: HiddenTrees, evidence: Evidence, keys: np.ndarray) -> np.ndarray:
    """One draw for each row of evidence, (n, d), from numbers that its key, uint64 (n,), determines."""
    known = code_evidence(hidden, evidence)
    n, d = evidence.value.shape
    out = np.empty((n, d))
    uses = 1 + 2 * max(len(tree) for tree in hidden.trees) + d
    of_use = mix_all_bits(np.arange(1, uses + 1, dtype=np.uint64))[:, None]

    def work(first: int, stop: int) -> None:
        number = (mix_all_bits(keys[first:stop] ^ of_use) >> np.uint64(11)) * 2.0**-53
        rows, part = np.arange(stop - first), [of.take(slice(first, stop)) for of in known]
        out[first:stop] = _complete(hidden, part, len(rows), rows, _Latin(number, rows))

    with one_blas_thread():
        for _ in map_ordered(work, chunks(n, batch_rows(hidden))):
            pass
    return out


def _complete(hidden: HiddenTrees, known: list[CodeEvidence], n: int, row: np.ndarray, spread: _Latin) -> np.ndarray:
    """A draw for each entry of ``row`` (r,), which ascends: (r, d)."""
    joint, inside, possible = _weighed(hidden, known, n)
    is_possible = joint.max(axis=1) > -np.inf
    with np.errstate(invalid="ignore"):
        share = np.nan_to_num(np.exp(joint - joint.max(axis=1, keepdims=True)))
    chosen = _outcome(share[row], spread.of(0, slice(None)))
    out = np.column_stack([of.value[row] for of in known])
    out[~is_possible[row]] = np.nan
    for t, tree in enumerate(hidden.trees):
        mine = np.flatnonzero((chosen == t) & is_possible[row])
        if len(mine):
            some = possible[t]
            place = row if isinstance(some, slice) else np.searchsorted(some, row)
            _complete_in(hidden, tree, known, inside[t], place, row, mine, spread, out)
    return out


def _complete_in(
    hidden: HiddenTrees,
    tree: TreeTables,
    known: list[CodeEvidence],
    inside: list[Message],
    place: np.ndarray,
    row: np.ndarray,
    mine: np.ndarray,
    spread: _Latin,
    out: np.ndarray,
) -> None:
    """Fill the cells without a value of the draws ``mine``, from a tree."""
    # States of nodes without such a cell at or below them are not drawn.
    free = [of.code >= scale.n_codes for of, scale in zip(known, hidden.scales, strict=True)]
    needed = [np.zeros(len(free[0]), bool) if j < 0 else free[j].copy() for j in tree.column.tolist()]
    for k in range(len(tree) - 1, 0, -1):
        needed[tree.parent[k]] |= needed[k]
    state = np.zeros((len(tree), len(row)), np.int64)
    for k, j in enumerate(tree.column.tolist()):
        at = mine[needed[k][row[mine]]]
        if not len(at):
            continue
        above = state[tree.parent[k], at] if k else np.zeros(len(at), np.int64)
        here, u = inside[k], spread.of(2 * k + 1, at)
        if here is None:
            state[k, at] = tree.state_quantiles[k].draw(above, u)
        else:
            state[k, at] = _state(tree.transition[k], here, place[at], above, u)
        if j < 0:
            continue
        at = at[free[j][row[at]]]
        said = known[j].take(row[at])
        code = _quantile_codes(tree, k, said, state[k, at], spread.of(2 * k + 2, at))
        u = spread.of(len(spread.number) - len(known) + j, at)
        for some, scale in groups(hidden.scales[j], said):
            if scale is not None and len(some):
                out[at[some], j] = draw(scale, code[some], u[some])


def _quantile_codes(tree: TreeTables, k: int, said: CodeEvidence, state: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Codes (r,) of a node's column given its states, within the regions of the cells, as quantiles at u."""
    picked = tree.picked[k]
    if picked is not None:
        return picked[state]
    code = tree.code_quantiles[k].draw(state, u)
    region = said.code - tree.emission[k].shape[1] - 1
    has = np.flatnonzero(region >= 0)
    if len(has):
        code[has] = _outcome(tree.emission[k][state[has]] * said.likelihood[region[has]], u[has])
    return code


def _state(table: np.ndarray, inside: np.ndarray, row: np.ndarray, above: np.ndarray, u: np.ndarray) -> np.ndarray:
    """States given those above and ``inside`` (rows, H) at and below; draws that share both have their weights once."""
    case, place = np.unique(row * len(table) + above, return_inverse=True)
    if 2 * len(case) > len(row):
        return _outcome(table[above] * inside[row], u)
    total = np.cumsum(table[case % len(table)] * inside[case // len(table)], axis=1, dtype=np.float64)
    aim = u * total[place, -1]
    first, last = np.zeros(len(u), np.int64), np.full(len(u), total.shape[1] - 1)
    for _ in range(int(total.shape[1] - 1).bit_length()):  # the first sum above the aim, by halving
        middle = (first + last) >> 1
        beyond = (total[place, middle] <= aim) & (first < last)
        first, last = np.where(beyond, middle + 1, first), np.where(beyond, last, middle)
    return first


def _outcome(weight: np.ndarray, u: np.ndarray) -> np.ndarray:
    """One outcome for each row of weights (n, C), which need not sum to 1, from uniform numbers (n,)."""
    total = np.cumsum(weight, axis=1, dtype=np.float64)
    return np.asarray((total[:, :-1] <= (u * total[:, -1])[:, None]).sum(axis=1))


def impute(hidden: HiddenTrees, evidence: Evidence) -> tuple[np.ndarray, np.ndarray]:
    """Rows with means and most probable levels in their free cells (n, d), and which are impossible, (n,)."""
    free = np.isnan(evidence.value)
    wanted = np.flatnonzero(free.any(axis=0)).tolist()

    def read(found: CodePosterior) -> np.ndarray:
        out = np.column_stack([of.value for of in found.known])
        for j in wanted:
            for rows, scale in groups(hidden.scales[j], found.known[j]):
                if scale is not None and len(rows):
                    out[rows, j] = _fill(hidden, j, scale, found.codes[j][rows])
        impossible = np.isneginf(found.log_joint.max(axis=1))
        out[impossible] = np.column_stack([of.value for of in found.known])[impossible]
        return np.column_stack([out, impossible])

    both = by_batches(hidden, evidence, wanted, read)
    return np.ascontiguousarray(both[:, :-1]), both[:, -1] > 0.0


def _fill(hidden: HiddenTrees, j: int, scale: Scale, weight: np.ndarray) -> np.ndarray:
    """Mean on the grid, or most probable level, of a column whose codes have these weights (n, K)."""
    column = hidden.schema.columns[j]
    if column.is_categorical:
        return levels(scale, weight, len(column.levels)).argmax(axis=1).astype(np.float64)
    return at_center(column, weight @ scale.moments[1])
