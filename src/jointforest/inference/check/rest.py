"""What a joint expects of each cell of a row, given all other cells, where each of them may be wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...data.discretization.discretizer import codes_of
from ...data.evidence import Evidence, build
from ...data.schema import Column
from ...models.base import Distribution, PosteriorState
from ...models.hidden_tree.hidden_trees import HiddenTrees
from ...models.hidden_tree.messages import down, up
from ...models.hidden_tree.posterior import in_batches
from ...models.hidden_tree.tables import TreeTables
from .columns import Coder

_BINS = 64  # of a number, in a joint without hidden trees

Read = Callable[[slice, int, np.ndarray], np.ndarray]
"""What is kept of a batch of rows and a column, (b, A), of the probabilities of its codes, (b, K)."""


class Tree:
    """A hidden tree: one pass up and one down for all cells of a row."""

    def __init__(self, hidden: HiddenTrees) -> None:
        self._hidden = hidden
        shares = [np.ones((1, scale.n_codes)) for scale in hidden.scales]
        marginals: list[np.ndarray] = []

        def read(rows: slice, j: int, codes: np.ndarray) -> np.ndarray:
            marginals.append(codes[0])
            return np.zeros((len(codes), 1))

        ask_each(hidden, shares, np.full((1, len(shares)), -1), read)
        self.marginals = marginals

    def coder(self, j: int) -> Coder:
        column, scale = self._hidden.schema.columns[j], self._hidden.scales[j]

        def codes(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            code, log_base = codes_of(scale, x)
            return code.astype(np.int64), np.exp(log_base) * (column.step if column.step > 0.0 else 1.0)

        return codes

    def ask(self, item: np.ndarray, likelihood: Sequence[np.ndarray], read: Read) -> np.ndarray:
        return ask_each(self._hidden, likelihood, item, read)


class Other:
    """Any other joint: each cell given the other cells as they are, so that these are taken to be right."""

    def __init__(self, distribution: Distribution, evidence: Evidence) -> None:
        self._distribution, self._evidence = distribution, evidence
        prior = distribution.observe(build(distribution.schema))
        self._cuts = [_cuts(column, prior, j) for j, column in enumerate(distribution.schema.columns)]
        self.marginals = [prior.histogram(j, cuts)[0] for j, cuts in enumerate(self._cuts)]

    def coder(self, j: int) -> Coder:
        column, cuts = self._distribution.schema.columns[j], self._cuts[j]

        def codes(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            if column.is_categorical:
                return x.astype(np.int64), np.ones(len(x))
            ends = np.concatenate([[column.minimum], cuts, [column.maximum]])
            code = np.searchsorted(cuts, x)
            width = np.maximum(ends[code + 1] - ends[code], column.step or 1e-12)
            is_far = (x < column.minimum) | (x > column.maximum)  # fewer than one of the learned rows
            return code, (column.step or 1.0) / width / np.where(is_far, column.n_observed + 1.0, 1.0)

        return codes

    def ask(self, item: np.ndarray, likelihood: Sequence[np.ndarray], read: Read) -> np.ndarray:
        found = []
        for j, cuts in enumerate(self._cuts):
            codes = self._distribution.observe(self._evidence.without(j)).histogram(j, cuts)
            found.append(read(slice(0, len(item)), j, np.nan_to_num(codes)))
        return np.column_stack(found)


def _cuts(column: Column, prior: PosteriorState, j: int) -> np.ndarray:
    """Ends of bins of a number of about equal probability, on a grid between its cells; none of levels."""
    if column.is_categorical:
        return np.empty(0)
    cuts = prior.quantile(j, np.arange(1, _BINS) / _BINS)[0]
    if column.step > 0.0:
        cuts = (np.rint((cuts - column.center) / column.step) + 0.5) * column.step + column.center
    cuts = np.unique(cuts)
    return cuts[(cuts > column.minimum) & (cuts < column.maximum)]


def of_joint(distribution: Distribution, evidence: Evidence) -> Tree | Other:
    """The hidden trees of a joint, of a mixture those of the heaviest component; or the joint itself."""
    heaviest = distribution.components[int(np.argmax(distribution.log_weight))]
    hidden = heaviest.hidden_trees()
    return Other(distribution, evidence) if hidden is None else Tree(hidden)


def ask_each(hidden: HiddenTrees, likelihood: Sequence[np.ndarray], item: np.ndarray, read: Read) -> np.ndarray:
    """``read`` of p(code of cell j | all other cells of the row), for each column, side by side.

    ``likelihood[j]`` (U_j + 1, K_j) is p(what is seen | code), up to a factor, for each value that is seen; the last
    row, of item -1, is that of missing cells. ``item`` is (n, d). One pass up and one down for all columns of a row.
    """
    by_state = [_by_state(tree, likelihood) for tree in hidden.trees]

    def work(a: int, b: int) -> np.ndarray:
        rows, d = slice(a, b), item.shape[1]
        total = np.full((b - a, d), -np.inf)
        found: list[np.ndarray | None] = [None] * d
        for tree, tables, log_weight in zip(hidden.trees, by_state, hidden.log_weight, strict=True):
            own = [None if j < 0 else tables[j][item[rows, j]] for j in tree.column.tolist()]
            upward = up(tree, own, b - a)
            downward = down(tree, upward)
            for j in range(d):
                k = tree.node[j]
                below, mine = upward.below[k], tables[j][item[rows, j]]
                rest = (
                    np.broadcast_to(downward.outside[k], mine.shape) if below is None else downward.outside[k] * below
                )
                codes = _codes(rest, tree, k)
                with np.errstate(divide="ignore", invalid="ignore"):
                    seen = (rest * mine).sum(axis=1, dtype=np.float64) / rest.sum(axis=1, dtype=np.float64)
                    log_rest = log_weight + upward.log_probability - np.log(seen)
                log_rest = np.where(np.isnan(log_rest), -np.inf, log_rest)
                found[j], total[:, j] = _mixed(found[j], total[:, j], codes, log_rest)
        return np.column_stack([read(rows, j, codes) for j, codes in enumerate(found) if codes is not None])

    return in_batches(hidden, work, len(item))


def _codes(rest: np.ndarray, tree: TreeTables, k: int) -> np.ndarray:
    """p(code of node k | what the other cells say of its state), (n, K)."""
    codes, picked = np.zeros((len(rest), tree.emission[k].shape[1])), tree.picked[k]
    codes[:, slice(None) if picked is None else picked] = rest @ tree.emission[k] if picked is None else rest
    return codes / np.maximum(codes.sum(axis=1, keepdims=True), 1e-300)


def _by_state(tree: TreeTables, likelihood: Sequence[np.ndarray]) -> dict[int, np.ndarray]:
    """p(what is seen | state) of each value of each column, (U + 1, H), up to a factor for each value."""
    tables = {}
    for j, k in tree.node.items():
        picked = tree.picked[k]
        top = likelihood[j].max(axis=1, keepdims=True)  # the same in all trees, whose weights depend on it
        scaled = likelihood[j] / np.where(top > 0.0, top, 1.0)
        tables[j] = (scaled @ tree.emission[k].T if picked is None else scaled[:, picked]).astype(tree.dtype)
    return tables


def _mixed(
    before: np.ndarray | None, total: np.ndarray, codes: np.ndarray, log_weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Shares of codes after one tree more, and the log of all weights."""
    if before is None:
        return codes, log_weight
    both = np.logaddexp(total, log_weight)
    with np.errstate(invalid="ignore"):
        share = np.nan_to_num(np.exp(log_weight - both))[:, None]
    return before * (1.0 - share) + codes * share, both
