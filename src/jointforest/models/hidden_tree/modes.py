"""The most probable rows of hidden trees, with a bound closed by branch and bound over boxes of codes."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from itertools import count
from typing import NamedTuple

import numpy as np

from ...data.discretization.base_density import peaks
from ...data.discretization.discretizer import codes_of
from ...data.evidence import Evidence
from ...runtime.progress import bar
from ...runtime.threads import one_blas_thread
from ..box_forest.modes import TOLERANCE
from .hidden_trees import HiddenTrees, TreeTables
from .messages import Downward, code_evidence, down, log_probability, own_messages, up
from .sampling import sample

# ---- The mode of hidden trees as a choice of codes, and its bound over boxes of codes.

_STEPS = 200
"""Most steps of all columns at once."""
_TINY = 1e-300
_FEW_COLUMNS = 40
"""Of more columns cuts and starts take longer in proportion: there are fewer, and they change several columns."""
_Box = tuple[np.ndarray, ...]
"""Which codes of each column are allowed: d bool arrays (n, K_j), for n boxes at once."""


@dataclass(frozen=True)
class CodeProblem:
    """max over codes c of log sum_t w_t p_t(c) + sum_j log_peak_j[c_j]: a row's density at its codes' best points.

    trees : tuple of T TreeTables. In float64.
    table : list of T lists of m arrays (H_k, K_j) or None. Emission times the code's best density, each column's
        divided by a common factor.
    log_weight : float64 array (T,)
    log_factor : float64. Log of the product of all columns' factors.
    value : list of d float64 arrays (K_j,). The best point of each code.
    """

    trees: tuple[TreeTables, ...]
    table: list[list[np.ndarray | None]]
    log_weight: np.ndarray
    log_factor: float
    value: list[np.ndarray]


class Bounds(NamedTuple):
    """Bounds of n boxes.

    log_bound : float64 array (n,). No choice of codes in the box has a greater log density.
    star : int64 array (n, d). The codes that lose least.
    loss : float64 array (n, d). About the share of the bound that is lost by fixing the column to its star.
    """

    log_bound: np.ndarray
    star: np.ndarray
    loss: np.ndarray


def code_problem(hidden: HiddenTrees, evidence: Evidence) -> CodeProblem:
    """The problem under one row of hard evidence; trees that it rules out are left out."""
    value, log_peak = [], []
    known = code_evidence(hidden, evidence)
    for scale, said in zip(hidden.scales, known, strict=True):
        code, K = int(said.code[0]), scale.n_codes
        if code < K:
            best = np.full(K, -np.inf)
            best[code] = said.log_base[0]
            value.append(np.full(K, said.value[0]))
            log_peak.append(best)
        else:
            points, best = peaks(scale if code == K else said.regions[code - K - 1])
            value.append(points)
            log_peak.append(best)
    factor = [float(best.max()) for best in log_peak]
    share = [np.exp(best - top) for best, top in zip(log_peak, factor, strict=True)]
    possible = [log_probability(tree, own_messages(tree, known), 1)[0] > -np.inf for tree in hidden.trees]
    trees = tuple(_in_float64(tree) for tree, some in zip(hidden.trees, possible, strict=True) if some)
    table = [
        [tree.emission[k] * share[j] if j >= 0 else None for k, j in enumerate(tree.column.tolist())] for tree in trees
    ]
    return CodeProblem(trees, table, hidden.log_weight[possible], float(sum(factor)), value)


def everything(problem: CodeProblem) -> _Box:
    """The box of all codes."""
    return tuple(~np.isnan(value)[None] for value in problem.value)


def bounds(problem: CodeProblem, box: _Box) -> Bounds:
    """Bounds of n boxes: within a sum over states each state takes its own best code of each column."""
    # sum_z max_c <= what is maximised, for max_c sum_z is. By one pass up, and one down for where it is lost.
    n, d = len(box[0]), len(box)
    log_joint = np.empty((n, len(problem.trees)))
    ratio: list[list[np.ndarray]] = []
    for t, tree in enumerate(problem.trees):
        best = [_best(table, box, int(j)) for table, j in zip(problem.table[t], tree.column, strict=True)]
        upward = up(tree, best, n)
        log_joint[:, t] = upward.log_probability + problem.log_weight[t]
        downward = down(tree, upward)
        ratio.append([])
        for j in range(d):
            k = tree.node[j]
            own, table = best[k], problem.table[t][k]
            assert own is not None and table is not None
            rest = np.broadcast_to(downward.rest(k), own.shape)
            total = (rest * own).sum(axis=1, keepdims=True)
            ratio[-1].append(rest @ table / np.where(total > 0.0, total, 1.0))
    log_bound = np.logaddexp.reduce(log_joint, axis=1)
    share = np.exp(log_joint - np.where(np.isfinite(log_bound), log_bound, 0.0)[:, None])
    star, loss = np.empty((n, d), np.int64), np.empty((n, d))
    for j in range(d):
        kept = sum(share[:, [t]] * each[j] for t, each in enumerate(ratio))
        kept = np.where(box[j], kept, -1.0)
        star[:, j] = kept.argmax(axis=1)
        loss[:, j] = np.where(box[j].sum(axis=1) > 1, 1.0 - kept.max(axis=1), 0.0)
    return Bounds(log_bound + problem.log_factor, star, loss)


def log_density_of(problem: CodeProblem, codes: np.ndarray) -> np.ndarray:
    """Log density of rows at their codes' best points; codes (n, d), result (n,)."""
    each = [
        log_probability(tree, _at(problem, t, codes), len(codes)) + problem.log_weight[t]
        for t, tree in enumerate(problem.trees)
    ]
    return np.logaddexp.reduce(each, axis=0) + problem.log_factor


def ascend(problem: CodeProblem, codes: np.ndarray) -> np.ndarray:
    """Distinct rows of codes, at least as probable as (n, d), that no change of a single column improves."""
    # First all columns change at once (expectation maximisation), which ends soon, then one at a time. In tables of
    # many columns several change at a time where that is at least as good as the best of them alone.
    codes = np.unique(_all_at_once(problem, codes), axis=0)
    d = codes.shape[1]
    open_, together = np.arange(len(codes)), d // 5 if d > _FEW_COLUMNS else 1
    for _ in range(100 * d):
        gain = _gains(problem, codes[open_])
        most = np.column_stack([each.max(axis=1) for each in gain])
        better = np.flatnonzero(most.max(axis=1) > 1.0 + 1e-12)
        if not len(better):
            break
        best = np.column_stack([each[better].argmax(axis=1) for each in gain])
        open_, most = open_[better], most[better]
        changed = _with_best_code(codes[open_], best, most, 1)
        if together > 1:
            several = _with_best_code(codes[open_], best, most, together)
            rises = log_density_of(problem, several) >= log_density_of(problem, changed)
            changed[rises] = several[rises]
        codes[open_] = changed
    return np.unique(codes, axis=0)


def _with_best_code(codes: np.ndarray, best: np.ndarray, gain: np.ndarray, m: int) -> np.ndarray:
    """Rows of codes (n, d) with the best code in the m columns of greatest gain (n, d), as far as these gain."""
    columns = np.argsort(-gain, axis=1, kind="stable")[:, :m]
    new = np.where(np.take_along_axis(gain, columns, axis=1) > 1.0 + 1e-12, np.take_along_axis(best, columns, axis=1),
                   np.take_along_axis(codes, columns, axis=1))  # fmt: skip
    out = codes.copy()
    np.put_along_axis(out, columns, new, axis=1)
    return out


def _all_at_once(problem: CodeProblem, codes: np.ndarray) -> np.ndarray:
    """Rows (n, d) after steps that change all columns, none of which makes a row less probable."""
    logs = [[None if table is None else np.log(np.maximum(table, _TINY)) for table in each] for each in problem.table]
    codes, open_ = codes.copy(), np.arange(len(codes))
    for _ in range(_STEPS):
        score = [np.zeros((len(open_), len(value))) for value in problem.value]
        own = [_at(problem, t, codes[open_]) for t in range(len(problem.trees))]
        for t, (tree, share, downward) in enumerate(_states(problem, own, len(open_))):
            for j, k in tree.node.items():
                states = downward.state(k)
                total = states.sum(axis=1, keepdims=True)
                table = logs[t][k]
                assert table is not None
                score[j] += share * ((states / np.where(total > 0.0, total, 1.0)) @ table)
        new = np.column_stack([each.argmax(axis=1) for each in score])
        moved = np.flatnonzero((new != codes[open_]).any(axis=1))
        if not len(moved):
            break
        codes[open_] = new
        open_ = open_[moved]
    return codes


def _gains(problem: CodeProblem, codes: np.ndarray) -> list[np.ndarray]:
    """By what factor each code of each column, put into rows (n, d), changes their density: d arrays (n, K_j)."""
    gain = [np.zeros((len(codes), len(value))) for value in problem.value]
    own = [_at(problem, t, codes) for t in range(len(problem.trees))]
    for t, (tree, share, downward) in enumerate(_states(problem, own, len(codes))):
        for j, k in tree.node.items():
            table = problem.table[t][k]
            assert table is not None
            rest = np.broadcast_to(downward.rest(k) @ table, gain[j].shape)
            now = np.take_along_axis(rest, codes[:, [j]], axis=1)
            gain[j] += np.where(now > 0.0, share * rest / np.where(now > 0.0, now, 1.0), 0.0)
    return gain


def _states(
    problem: CodeProblem, own: list[list[np.ndarray | None]], n: int
) -> list[tuple[TreeTables, np.ndarray, Downward]]:
    """Each tree, its share of n rows (n, 1), and its messages."""
    log_joint, passes = np.empty((n, len(problem.trees))), []
    for t, tree in enumerate(problem.trees):
        upward = up(tree, own[t], n)
        log_joint[:, t] = upward.log_probability + problem.log_weight[t]
        passes.append(down(tree, upward))
    share = np.exp(log_joint - np.logaddexp.reduce(log_joint, axis=1)[:, None])
    return [(tree, share[:, [t]], passes[t]) for t, tree in enumerate(problem.trees)]


def _at(problem: CodeProblem, t: int, codes: np.ndarray) -> list[np.ndarray | None]:
    """p(code | state) times its best density, of rows of codes: m arrays (n, H_k)."""
    column = problem.trees[t].column.tolist()
    return [
        None if table is None else np.ascontiguousarray(table.T[codes[:, j]])
        for table, j in zip(problem.table[t], column, strict=True)
    ]


def _best(table: np.ndarray | None, box: _Box, j: int) -> np.ndarray | None:
    """The best allowed code's share in each state, (n, H)."""
    if table is None:
        return None
    out = np.empty((len(box[j]), len(table)))
    for i, allowed in enumerate(box[j]):
        out[i] = table[:, allowed].max(axis=1)
    return out


def _in_float64(tree: TreeTables) -> TreeTables:
    return replace(
        tree,
        transition=tuple(table.astype(np.float64) for table in tree.transition),
        emission=tuple(table.astype(np.float64) for table in tree.emission),
    )


_STARTS = 8, 32
"""Draws from which better rows are sought: of a small budget, and of a large one."""
_BOXES_A_START = 60
_CUTS = 10
"""A box cut here counts as so many boxes of a forest for each tree: it takes as long."""
_AT_ONCE = 16


def hidden_modes(hidden: HiddenTrees, evidence: Evidence, budget: int) -> tuple[np.ndarray, float]:
    """Rows of high density (m, d) under one row of hard evidence, best first, and a bound of any row's log-density."""
    # No two of the rows have the same codes.
    with one_blas_thread():
        problem = code_problem(hidden, evidence)
        found = _Found(problem)
        width = max(len(hidden.scales) / _FEW_COLUMNS, 1.0)
        n_starts = min(max(int(budget / (_BOXES_A_START * width)), _STARTS[0]), _STARTS[1])
        drawn = sample(hidden, evidence, n_starts, 0)
        codes = [codes_of(scale, drawn[:, j])[0] for j, scale in enumerate(hidden.scales)]
        root = everything(problem)
        starts = np.vstack([np.column_stack(codes).astype(np.int64), bounds(problem, root).star])
        found.add(ascend(problem, starts))
        log_bound = _search(problem, root, found, int(budget / (_CUTS * len(problem.trees) * width)))
    codes_found, log_density = found.all()
    order = np.argsort(-log_density, kind="stable")
    X = np.column_stack([value[codes_found[order, j]] for j, value in enumerate(problem.value)])
    return X, max(log_bound, float(log_density.max()))


class _Found:
    """Rows of codes found so far."""

    def __init__(self, problem: CodeProblem) -> None:
        self._problem = problem
        self._codes: list[np.ndarray] = []
        self._log_density: list[np.ndarray] = []
        self.best = -np.inf

    def add(self, codes: np.ndarray) -> None:
        """Keep rows (n, d), and better ones near the best of them, if that is the best so far."""
        log_density = log_density_of(self._problem, codes)
        self._codes.append(codes)
        self._log_density.append(log_density)
        if log_density.max() > self.best + TOLERANCE:
            self.best = float(log_density.max())
            self.add(ascend(self._problem, codes[[log_density.argmax()]]))

    def all(self) -> tuple[np.ndarray, np.ndarray]:
        """Each row once, (m, d), and its log density."""
        codes, first = np.unique(np.vstack(self._codes), axis=0, return_index=True)
        return codes, np.concatenate(self._log_density)[first]


def _search(problem: CodeProblem, root: _Box, found: _Found, budget: int) -> float:
    """A bound of everything in the box, closed by at most ``budget`` cuts: the box of greatest bound is cut first."""
    # A box is cut in the column in which fixing a single code loses most: that code, and all others.
    number, at_root = count(), bounds(problem, root)
    heap = [
        (-float(at_root.log_bound[0]), next(number), tuple(part[0] for part in root), at_root.star[0], at_root.loss[0])
    ]
    reached = -np.inf  # bounds of boxes that cannot be cut any more
    with bar(budget, "searching boxes") as step:
        while heap and budget > 0 and -heap[0][0] > found.best + TOLERANCE:
            halves: list[_Box] = []
            parents: list[float] = []
            while heap and budget > 0 and len(parents) < _AT_ONCE and -heap[0][0] > found.best + TOLERANCE:
                minus, _, box, star, loss = heapq.heappop(heap)
                j = int(loss.argmax())
                if box[j].sum() < 2 or loss[j] <= 0.0:  # only rounding is left between the bound and its star
                    reached = max(reached, -minus)
                    continue
                only = np.zeros_like(box[j])
                only[star[j]] = True
                for half in (only, box[j] & ~only):
                    halves.append((*box[:j], half, *box[j + 1 :]))
                    parents.append(-minus)
                budget -= 1
                step()
            if not halves:
                break
            boxes = tuple(np.stack([half[j] for half in halves]) for j in range(len(root)))
            new = bounds(problem, boxes)
            found.add(new.star)
            log_bound = np.minimum(new.log_bound, parents)
            for i in np.flatnonzero(log_bound > found.best + TOLERANCE).tolist():
                heapq.heappush(heap, (-float(log_bound[i]), next(number), halves[i], new.star[i], new.loss[i]))
    return max(found.best + TOLERANCE if not heap else -heap[0][0], reached, found.best)
