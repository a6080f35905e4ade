"""Hidden trees in the leaves of a decision tree: each leaf's rows have one of their own, inside the leaf's box."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...models.hidden_tree.hidden_trees import TreeTables
from ...runtime.progress import bar
from ...runtime.threads import map_ordered, of_finite, one_blas_thread
from .complete import completed
from .constants import FIXED
from .features import features
from .learn import LearnSettings, Progress, held_out_rows, learn_and_test
from .structure import CodeColumn, CodeTable, code_columns

# ---- Rows of codes cut into the leaves of a decision tree, so that each leaf can have a hidden tree of its own.


class Leaf(NamedTuple):
    """A box of codes, and the rows in it.

    allowed : list of d bool arrays (K_j,). Codes of each column inside the box.
    rows : int64 array
    """

    allowed: list[np.ndarray]
    rows: np.ndarray


class _Split(NamedTuple):
    gain: float
    column: int
    left: np.ndarray


@of_finite
def cut(
    codes: np.ndarray,
    columns: tuple[CodeColumn, ...],
    n_leaves: int,
    rng: np.random.Generator,
    weight: np.ndarray | None = None,
    perturb: float = 0.0,
) -> list[Leaf]:
    """At most ``n_leaves`` boxes of codes that hold all rows, each in one of them; no cell is missing."""
    # The split that comes next takes most off the variance inside the leaves, of what `features` sees of all columns
    # (each times exp(perturb x N(0, 1))).
    seen = np.hstack([
        table * np.float32(np.exp(perturb * noise))
        for table, noise in zip(features(codes, columns), rng.standard_normal(len(columns)), strict=True)
    ])  # fmt: skip
    if seen.shape[1] > FIXED.leaf_numbers:
        seen = seen @ (rng.standard_normal((seen.shape[1], FIXED.leaf_numbers)) / np.sqrt(FIXED.leaf_numbers)).astype(
            np.float32
        )
    weight = np.ones(len(codes)) if weight is None else weight
    is_seen = np.zeros(len(codes), bool)
    is_seen[rng.permutation(len(codes))[: FIXED.leaf_rows]] = True
    fewest = FIXED.leaf_fewest * weight[is_seen].sum() / n_leaves

    def best(leaf: Leaf) -> _Split:
        rows = leaf.rows[is_seen[leaf.rows]]
        numbers = seen[rows].astype(np.float64)
        found = [_best_split(j, codes[rows, j], column, numbers, weight[rows], fewest) for j, column in
                 enumerate(columns)]  # fmt: skip
        return max(found, key=lambda split: split.gain)

    leaves = [Leaf([np.ones(column.n_codes, bool) for column in columns], np.arange(len(codes)))]
    splits = [best(leaves[0])]
    while len(leaves) < n_leaves:
        i = max(range(len(leaves)), key=lambda i: splits[i].gain)
        if splits[i].gain <= 0.0:
            break
        leaf, split = leaves[i], splits[i]
        is_left = split.left[codes[leaf.rows, split.column]]
        halves = [
            Leaf([of & side if j == split.column else of for j, of in enumerate(leaf.allowed)], leaf.rows[to])
            for side, to in ((split.left, is_left), (~split.left, ~is_left))
        ]
        leaves[i : i + 1], splits[i : i + 1] = halves, [best(half) for half in halves]
    return leaves


def _best_split(
    j: int, code: np.ndarray, column: CodeColumn, seen: np.ndarray, weight: np.ndarray, fewest: float
) -> _Split:
    """The split of column j between codes in order; levels in the order of their means' first principal direction."""
    from scipy.sparse import csc_array

    K = column.n_codes
    nothing = _Split(0.0, j, np.zeros(K, bool))
    if len(code) == 0:
        return nothing
    hot = csc_array((weight, code, np.arange(len(code) + 1)), shape=(K, len(code)))
    sums, mass = hot @ seen, hot.sum(axis=1)
    order = np.arange(K) if column.is_ordered else _by_direction(sums, mass)
    below, left = np.cumsum(sums[order], axis=0), np.cumsum(mass[order])
    right = left[-1] - left
    fits = (left >= fewest) & (right >= fewest)
    if not fits.any():
        return nothing
    at = np.flatnonzero(fits)
    gain = (below[at] ** 2).sum(axis=1) / left[at] + ((below[-1] - below[at]) ** 2).sum(axis=1) / right[at]
    gain -= (below[-1] ** 2).sum() / left[-1]
    top = int(np.argmax(gain))
    inside = np.zeros(K, bool)
    inside[order[: at[top] + 1]] = True
    return _Split(float(gain[top]) if gain[top] > 1e-9 * left[-1] else 0.0, j, inside)


def _by_direction(sums: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Levels in the order of their means along the direction in which these differ most; unseen ones last, (K,)."""
    some = mass > 0
    root = np.sqrt(mass[some])
    centred = sums[some] / root[:, None] - root[:, None] * (sums[some].sum(axis=0) / mass[some].sum())
    place = np.full(len(mass), np.inf)
    place[some] = np.linalg.svd(centred, full_matrices=False)[0][:, 0] / root
    return np.argsort(place, kind="stable")


class Learned(NamedTuple):
    """Hidden trees, and the log-probability of held-out rows.

    trees : tuple of L TreeTables
    share : float64 array (L,). Of each leaf's rows.
    held_out : float64 array (n,). Log-probability of each row that was held out; NaN of the others. The seed alone says
        which rows these are, so that settings are compared on the same rows.
    """

    trees: tuple[TreeTables, ...]
    share: np.ndarray
    held_out: np.ndarray = np.empty(0)


def mean_of(values: np.ndarray, weight: np.ndarray | None) -> float:
    """Mean of the values (..., n) of held-out rows; the others are NaN."""
    mass = np.where(np.isnan(values), 0.0, 1.0 if weight is None else weight)
    return float((mass * np.nan_to_num(values)).sum() / mass.sum())


def exceeds(values: np.ndarray, others: np.ndarray, weight: np.ndarray | None) -> bool:
    """Whether held-out rows have a higher mean by more than its standard error."""
    # A smaller gain may be chance, and the setting with fewer parameters is then the safer choice. The values (..., n)
    # are of the same rows, and NaN of those that were learned, so that the error is that of paired differences.
    gain = values - others
    mean = mean_of(gain, weight)
    mass = np.where(np.isnan(gain), 0.0, 1.0 if weight is None else weight)
    error = np.sqrt((mass**2 * np.nan_to_num(gain - mean) ** 2).sum()) / mass.sum()
    return bool(mean > error)


def learn_trees(
    table: CodeTable,
    settings: LearnSettings,
    seed: int,
    progress: Progress | None = None,
    information: np.ndarray | None = None,
    complete: np.ndarray | None = None,
) -> Learned:
    """A hidden tree for each of at most ``settings.n_leaves`` leaves of a decision tree; else as `learn_tree`."""
    # ``complete`` (n, d) are the codes with missing cells drawn, where the caller has them (`complete_codes`). Rows
    # take the sides of drawn cells, and first states are found from them.
    #
    # No row of a leaf has a code outside its box, and its hidden tree gives such codes no probability: a complete row
    # is looked up in one leaf. Leaves are learned side by side.
    if settings.n_leaves < 2:
        tree, held_out = learn_and_test(table, settings, seed, progress, information, complete=complete)
        return Learned((tree,), np.ones(1), held_out)
    if complete is None:
        complete = complete_codes(table, seed)
    leaves = _leaves(table, complete, settings, seed)
    is_held_out = np.zeros(len(table.codes), bool)
    is_held_out[held_out_rows(table, np.random.default_rng(seed))] = True

    def one(leaf: Leaf, own_seed: int) -> tuple[TreeTables, np.ndarray]:
        few = settings._replace(n_states=max(min(settings.n_states, len(leaf.rows) // FIXED.rows_a_state), 1))
        held = np.flatnonzero(is_held_out[leaf.rows] & (len(leaf.rows) >= FIXED.fewest_held_out_from))
        return learn_and_test(
            table.take(leaf.rows), few, own_seed, told.tell, None, leaf.allowed, held, complete[leaf.rows]
        )

    seeds = np.random.default_rng([seed, 1]).integers(2**31, size=len(leaves)).tolist()
    passes = settings.passes * len(leaves)
    with one_blas_thread(in_kernels=True), bar(passes, "learning states") as step:
        told = _Told(progress, passes, step)
        found = list(map_ordered(one, list(zip(leaves, seeds, strict=True))))
    weight = np.ones(len(table.codes)) if table.weight is None else table.weight
    mass = np.array([weight[leaf.rows].sum() for leaf in leaves])
    share = mass / mass.sum()
    held_out = np.full(len(table.codes), np.nan)
    for leaf, log_share, (_, of_rows) in zip(leaves, np.log(share), found, strict=True):
        held_out[leaf.rows] = log_share + of_rows
    return Learned(tuple(tree for tree, _ in found), share, held_out)


def complete_codes(table: CodeTable, seed: int) -> np.ndarray:
    """The codes (n, d) of a table with every missing cell drawn, in rows of some weight."""
    rows = table.weighed_rows()
    own = table.take(rows)
    drawn = completed(own.codes, code_columns(own), np.random.default_rng(seed), own.weight)
    if drawn is own.codes:
        return table.codes
    complete = table.codes.copy()
    complete[rows] = drawn
    return complete


def _leaves(table: CodeTable, complete: np.ndarray, settings: LearnSettings, seed: int) -> list[Leaf]:
    """Boxes with rows of some weight; rows of none are in no leaf."""
    rows = table.weighed_rows()
    own = table.take(rows)
    rng = np.random.default_rng(seed)
    found = cut(complete[rows], code_columns(own), settings.n_leaves, rng, own.weight, settings.perturb)
    return [Leaf(leaf.allowed, rows[leaf.rows]) for leaf in found]


class _Told:
    """Passes of all leaves, counted as they end."""

    def __init__(self, progress: Progress | None, most: int, step: Callable[[], None]) -> None:
        self._progress, self._most, self._step, self._now = progress, most, step, 0

    def tell(self, now: int, most: int, held_out: float) -> None:
        self._now += 1
        self._step()
        if self._progress is not None:
            self._progress(self._now, self._most, held_out)
