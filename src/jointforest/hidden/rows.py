"""Whole rows given evidence: draws without rejection, and cells filled in."""

from __future__ import annotations

import numpy as np

from ..ground.threads import chunks, map_ordered, one_blas_thread
from ..table.evidence import Evidence
from ..table.scale.distribution import code_moments
from ..table.scale.draws import draw, levels
from ..table.scale.scale import Scale
from .column import at_center, groups
from .evidence import CodeEvidence, code_evidence, own_messages
from .hidden_trees import HiddenTrees
from .messages import Message, up
from .posterior import CodePosterior, batch_rows, by_batches
from .tree import HiddenTree

_DRAWS = 16_384


def sample(
    hidden: HiddenTrees, evidence: Evidence, m: int, seed: int, missing: bool = False, n_jobs: int | None = -1
) -> np.ndarray:
    """m draws for each row of evidence, contiguous, (n * m, d): a tree, states from the root down, codes, numbers.

    Pieces of the work have random streams of their own, so the answer depends on the seed alone. All NaN where the
    evidence has probability 0.
    """
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
        for _ in map_ordered(work, [(rows, draws) for rows in some for draws in chunks(m, _DRAWS)], n_jobs):
            pass
    return out


def _draw(
    hidden: HiddenTrees, known: list[CodeEvidence], n: int, m: int, rng: np.random.Generator, missing: bool
) -> np.ndarray:
    """m draws for each of n rows, (n * m, d)."""
    inside = [up(tree, own_messages(tree, known), n) for tree in hidden.trees]
    joint = np.column_stack([upward.log_probability for upward in inside]) + hidden.log_weight
    joint += np.sum([of.log_base for of in known], axis=0)[:, None]
    with np.errstate(invalid="ignore"):
        share = np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))
    chosen = _outcome(np.repeat(np.nan_to_num(share), m, axis=0), rng.random(n * m))
    out = np.empty((n * m, len(known)))
    for t, tree in enumerate(hidden.trees):
        mine = np.flatnonzero(chosen == t)
        if len(mine):
            out[mine] = _draw_tree(hidden, tree, known, inside[t].inside, mine // m, rng, missing)
    out[np.repeat(np.isneginf(joint.max(axis=1)), m)] = np.nan
    return out


def _draw_tree(
    hidden: HiddenTrees,
    tree: HiddenTree,
    known: list[CodeEvidence],
    inside: list[Message],
    row: np.ndarray,
    rng: np.random.Generator,
    missing: bool,
) -> np.ndarray:
    """One draw from a tree for each entry of ``row``, which says whose evidence it has, (len(row), d)."""
    out = np.empty((len(row), len(known)))
    states: list[np.ndarray] = []
    for k, j in enumerate(tree.column.tolist()):
        above = states[tree.parent[k]] if k else np.zeros(len(row), np.int64)
        here = inside[k]
        if here is None:
            state = tree.state_draws[k].draw(above, rng.random(len(row)))
        else:
            state = _outcome(tree.transition[k][above] * here[row], rng.random(len(row)))
        states.append(state)
        if j >= 0:
            out[:, j] = _draw_cells(hidden, tree, k, known[j].take(row), state, rng)
            if missing and tree.blank:
                free = known[j].code[row] == hidden.scales[j].n_codes
                out[free & (rng.random(len(row)) < tree.blank[k][state]), j] = np.nan
    return out


def _draw_cells(
    hidden: HiddenTrees, tree: HiddenTree, k: int, known: CodeEvidence, state: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """A column's cells given its states (n,): the value where it is known, else a code and a number inside it."""
    x = known.value.copy()
    for rows, scale in groups(hidden.scales[int(tree.column[k])], known):
        if scale is None or not len(rows):
            continue
        u, v = rng.random(len(rows)), rng.random(len(rows))
        region = int(known.code[rows[0]]) - scale.n_codes - 1
        if region < 0:
            code = tree.code_draws[k].draw(state[rows], u)
        elif len(scale.code):
            code = _outcome(tree.emission[k][state[rows]] * known.likelihood[region], u)
        else:
            continue  # an impossible region, whose rows are blanked
        x[rows] = draw(scale, code, v)
    return x


def _outcome(weight: np.ndarray, u: np.ndarray) -> np.ndarray:
    """One outcome for each row of weights (n, C), which need not sum to 1, from uniform numbers (n,)."""
    total = np.cumsum(weight, axis=1, dtype=np.float64)
    return np.asarray((total[:, :-1] <= (u * total[:, -1])[:, None]).sum(axis=1))


def impute(hidden: HiddenTrees, evidence: Evidence, n_jobs: int | None = -1) -> tuple[np.ndarray, np.ndarray]:
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

    both = by_batches(hidden, evidence, wanted, read, n_jobs)
    return np.ascontiguousarray(both[:, :-1]), both[:, -1] > 0.0


def _fill(hidden: HiddenTrees, j: int, scale: Scale, weight: np.ndarray) -> np.ndarray:
    """Mean on the grid, or most probable level, of a column whose codes have these weights (n, K)."""
    column = hidden.schema.columns[j]
    if column.is_categorical:
        return levels(scale, weight, len(column.levels)).argmax(axis=1).astype(np.float64)
    return at_center(column, weight @ code_moments(scale)[1])
