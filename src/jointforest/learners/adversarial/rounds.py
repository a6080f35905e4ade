"""The rounds of the adversarial forest (Watson et al. 2023, Algorithm 1): generate, tell apart, repeat."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from ...data.schema import Schema
from ...runtime.threads import map_ordered
from ..base import draw_rows
from ..growing.grow import GrowthSettings, grow
from ..growing.rank_tree import RankTree, find_again, find_leaves, incomplete, prune, with_shares
from ..growing.ranks import Ranks
from ..leaf_fitting.assign_rows import settle
from ..leaf_fitting.statistics_kernels import rows_by_leaf
from .constants import FIXED
from .rounds_kernels import from_leaves, from_marginals


class RoundSettings(NamedTuple):
    """Parameters of the rounds; `AdversarialForest` says what they mean. Each tree draws ``n_draws`` rows."""

    n_estimators: int
    min_samples_leaf: int
    max_features: int
    max_depth: int | None
    max_leaf_nodes: int | None
    bootstrap: bool
    n_draws: int
    delta: float
    max_iters: int
    early_stop: bool
    n_jobs: int | None


class Discriminator(NamedTuple):
    """A discriminator: its trees on ranks, and where the real rows end.

    Attributes
    ----------
    trees : list of RankTree
    leaf_node : int32 array (T, n)
        Node in which each real row ends, in each tree.
    drawn : bool array (T, n)
        Whether the real row was among those that tree was grown on.
    seed, number : int
        Random stream of the first tree; tree t has ``number + t``.
    """

    trees: list[RankTree]
    leaf_node: np.ndarray
    drawn: np.ndarray
    seed: int
    number: int


def run(
    schema: Schema, ranks: Ranks, settings: RoundSettings, seed: int, report: Callable[[int, float], None]
) -> tuple[Discriminator, list[float]]:
    """Run the rounds; return the generator and the accuracies.

    A forest that fails to tell real rows from synthetic ones is dropped: the generator is then the forest that drew
    these synthetic rows. If the first forest fails, or ``max_iters`` ends the rounds, it is the latest forest.

    The first round sets real rows against rows whose cells are drawn from each column alone; each later one against
    rows drawn inside the leaves of the forest before. It ends when a forest tells them apart with an out-of-bag
    accuracy of at most ``0.5 + delta``, after ``max_iters`` further rounds, or (``early_stop``) when the accuracy
    no longer falls.
    """
    synthetic = np.empty_like(ranks.codes)
    from_marginals(ranks.codes, seed + 2, synthetic)
    forest, accuracy = _discriminate(schema, ranks, synthetic, settings, seed, 0)
    accuracies = [accuracy]
    report(0, accuracy)
    for turn in range(1, settings.max_iters + 1):
        if accuracies[-1] <= 0.5 + settings.delta:
            break
        _generate(forest, ranks, seed + 3 * turn + 2, synthetic)
        challenger, accuracy = _discriminate(schema, ranks, synthetic, settings, seed, turn)
        accuracies.append(accuracy)
        report(turn, accuracy)
        if accuracy <= 0.5 + settings.delta or (settings.early_stop and accuracy >= accuracies[-2]):
            break
        forest = challenger
    return forest, accuracies


def _discriminate(
    schema: Schema, ranks: Ranks, synthetic: np.ndarray, settings: RoundSettings, seed: int, turn: int
) -> tuple[Discriminator, float]:
    """Grow a forest that tells real rows (class 1) from synthetic ones; its out-of-bag accuracy.

    Rows that every tree drew do not count; without any other row the accuracy is 0.5. Real rows with missing cells are
    judged like synthetic ones, but end, in the forest returned, where other real rows do.

    In tables of many rows, the other trees are not grown if the first trees already show that the rounds end. The
    accuracy of votes exceeds chance by at most the square root of their number times that of one vote.
    """
    n = ranks.codes.shape[1]
    both = ranks._replace(codes=np.concatenate([ranks.codes, synthetic], axis=1))
    y = np.repeat(np.array([1, 0], dtype=np.int32), n)
    is_categorical = np.array([c.is_categorical for c in schema.columns], dtype=np.uint8)
    is_ordered = np.array([c.kind == "ordered" for c in schema.columns], dtype=np.uint8)
    first = turn * settings.n_estimators
    missing = incomplete(ranks.codes)
    growth = GrowthSettings(
        max_features=settings.max_features,
        keep_looking=False,  # as in the forests that the paper used
        # a node of twice as many rows, half of them synthetic, would have leaves of too few real rows
        min_samples_split=2 * settings.min_samples_leaf + 1,
        max_depth=settings.max_depth,
        max_leaf_nodes=settings.max_leaf_nodes,
    )

    def one(t: int) -> tuple[RankTree, np.ndarray, np.ndarray, np.ndarray]:
        weight = draw_rows(2 * n, settings.n_draws, settings.bootstrap, seed, first + t)
        how = {"seed": seed, "number": first + t}
        tree, node = grow(both, is_categorical, is_ordered, y, 2, weight, growth, **how)
        of_class = [np.bincount(node[y == c], weight[y == c], len(tree.feature)) for c in (0, 1)]
        total = of_class[0] + of_class[1]
        margin = np.where(total > 0, of_class[1] / np.maximum(total, 1.0) - 0.5, 0.0)
        vote = np.where(weight == 0, margin[node], 0.0)
        if len(missing):
            tree = with_shares(tree, ranks.codes, node[:n], missing, seed + 3, first + t)
        return tree, find_again(tree, ranks.codes, node[:n], missing, seed, first + t), weight > 0, vote

    votes = np.zeros(2 * n)
    judged = np.zeros(2 * n, dtype=bool)
    trees, nodes, drawn = [], [], []
    numbers, accuracy = [(t,) for t in range(settings.n_estimators)], np.inf
    few = FIXED.early_trees if turn > 0 and n >= FIXED.early_rows else len(numbers)
    for some in (numbers[:few], numbers[few:]):
        if not some or accuracy <= 0.5 + settings.delta * np.sqrt(few / len(numbers)):
            break
        for tree, node, in_bag, vote in map_ordered(one, some, settings.n_jobs, "trees"):
            trees.append(tree)
            nodes.append(node)
            drawn.append(in_bag[:n])
            votes += vote
            judged |= ~in_bag
        right = np.where(votes == 0, 0.5, (votes > 0) == (y == 1))[judged]
        accuracy = float(right.mean()) if len(right) else 0.5
    return Discriminator(trees, np.array(nodes), np.array(drawn), seed, first), accuracy


def _generate(forest: Discriminator, ranks: Ranks, seed: int, out: np.ndarray) -> None:
    """Fill ``out`` (d, n) with rows drawn inside the leaves of the forest."""
    sizes = [len(t.feature) for t in forest.trees]
    rows = np.empty_like(forest.leaf_node)
    start = np.zeros((len(sizes), max(sizes) + 1), dtype=np.int64)
    for t, size in enumerate(sizes):
        rows[t], start[t, : size + 1] = rows_by_leaf(forest.leaf_node[t], size)
    from_leaves(ranks.codes, forest.leaf_node, rows, start, seed, out)


def prune_forest(
    forest: Discriminator,
    codes: np.ndarray,
    keep: np.ndarray,
    min_rows: int,
    n_jobs: int | None,
    has_these: bool = False,
) -> Discriminator:
    """Prune every tree until at least ``min_rows`` of the real rows in ``keep`` (bool (T, n)) end in each leaf.

    Returns the forest with all rows of ``codes`` (d, n) sent down the pruned trees. ``has_these``: whether they are the
    rows whose nodes it has.
    """

    def one(t: int) -> tuple[RankTree, np.ndarray]:
        node = forest.leaf_node[t] if has_these else None
        return settle(forest.trees[t], codes, keep[t], min_rows, forest.seed, forest.number + t, node)

    return _changed(forest, one, codes.shape[1], n_jobs)


def prune_by(
    forest: Discriminator, codes: np.ndarray, rows_at: np.ndarray, min_rows: int, n_jobs: int | None
) -> Discriminator:
    """Prune leaves with fewer than ``min_rows`` rows once; those of all trees have ``rows_at`` (int64 (L,)).

    Returns the forest with all rows of ``codes`` (d, n) sent down the pruned trees.
    """
    end = np.cumsum([(tree.left < 0).sum() for tree in forest.trees])

    def one(t: int) -> tuple[RankTree, np.ndarray]:
        tree = forest.trees[t]
        rows = np.zeros(len(tree.left), np.int64)
        own = tree.left < 0
        rows[own] = rows_at[end[t] - own.sum() : end[t]]
        pruned, _ = prune(tree, rows, min_rows)
        return pruned, find_leaves(pruned, codes, forest.seed, forest.number + t)

    return _changed(forest, one, codes.shape[1], n_jobs)


def _changed(
    forest: Discriminator, one: Callable[[int], tuple[RankTree, np.ndarray]], n: int, n_jobs: int | None
) -> Discriminator:
    """The forest with other trees, and the nodes in which n rows end in them."""
    trees, leaf_node = [], np.empty((len(forest.trees), n), dtype=np.int32)
    for t, (tree, node) in enumerate(map_ordered(one, [(t,) for t in range(len(forest.trees))], n_jobs, "pruning")):
        trees.append(tree)
        leaf_node[t] = node
    return forest._replace(trees=trees, leaf_node=leaf_node)


# ---- Which rows an adversarial forest is grown on, and which fill its leaves.


class Samples(NamedTuple):
    """Rows of a table of n, by what they are for.

    Attributes
    ----------
    growing : int64 array (m,)
        Numbers of the rows that trees are grown on, ascending; twice or more where weights ask for it.
    filling : bool array (n,)
        Rows that fill the leaves.
    is_part : bool
        Whether fewer rows grow trees than could.
    """

    growing: np.ndarray
    filling: np.ndarray
    is_part: bool


def take_samples(
    n: int, weight: np.ndarray | None, honest: bool, max_samples: int | float | None, seed: int
) -> Samples:
    """Which of n rows grow trees, ``max_samples`` at most, and which fill leaves: all, unless ``honest``.

    Rows with weights (n,) grow trees as often as these say, evenly. ``honest``: rows that grow trees, half of all at
    most, fill no leaves.
    """
    candidates = np.arange(n)
    if honest:  # tree t draws its rows by [seed, t]
        candidates = np.sort(np.random.default_rng([seed, 0, 1]).permutation(n)[: n // 2])
    m = _at_most(max_samples, len(candidates))
    is_part = m < len(candidates)
    growing = candidates
    if is_part and weight is None:
        growing = np.sort(np.random.default_rng([seed, 0, 3]).choice(candidates, m, replace=False, shuffle=False))
    elif weight is not None:
        if is_part:  # rows at even distances of a table in order are no sample
            candidates = np.random.default_rng([seed, 0, 3]).permutation(candidates)
        growing = np.sort(candidates[_evenly(weight[candidates], m, seed)])
    filling = np.ones(n, dtype=bool)
    if honest:
        filling[growing if is_part else candidates] = False
    return Samples(growing, filling, is_part)


def _at_most(max_samples: int | float | None, n: int) -> int:
    """How many of n rows grow trees."""
    if max_samples is None:
        return n
    number: Any = max_samples
    return min(int(number), n) if isinstance(number, Integral) else max(1, round(number * n))


def _evenly(weight: np.ndarray, m: int, seed: int) -> np.ndarray:
    """Numbers of m rows, drawn at even distances along their weights (n,): each as often as its own, but for one."""
    at = (np.arange(m) + np.random.default_rng([seed, 0, 2]).random()) * (weight.sum() / m)
    return np.minimum(np.searchsorted(np.cumsum(weight), at, side="right"), len(weight) - 1)
