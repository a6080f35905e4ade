"""Predictions of a joint for each cell of a row, given all other cells, each of which may be wrong.

Here *code* is a code of the joint: a level, or a bin of a number. See `check._Joint` for the functions that are passed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...data.discretization.discretizer import codes_of
from ...data.evidence import build
from ...data.schema import Column
from ...models.base import Distribution, PosteriorState
from ...models.hidden_tree.hidden_trees import HiddenTrees, TreeTables
from ...models.hidden_tree.messages import down, up
from ...models.hidden_tree.posterior import in_batches
from .columns import Coder

_BINS = 64  # bins of a column of numbers, in a joint without hidden trees

Read = Callable[[slice, int, np.ndarray], np.ndarray]
"""Called with a batch of rows, a column and the probabilities of its codes, (b, K); returns what to keep, (b, A)."""


class RestTree:
    """Hidden trees: one pass up and one down each tree gives the predictions of all cells of a row."""

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
        """The codes of column j, which are those of the trees."""
        column, scale = self._hidden.schema.columns[j], self._hidden.scales[j]

        def codes(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            code, log_base = codes_of(scale, x)
            return code.astype(np.int64), np.exp(log_base) * (column.step if column.step > 0.0 else 1.0)

        return codes

    def ask(self, item: np.ndarray, likelihood: Sequence[np.ndarray], read: Read) -> np.ndarray:
        """See `ask_each`."""
        return ask_each(self._hidden, likelihood, item, read)


class Other:
    """Any other joint: predicts each cell given the other cells of its row, and assumes that these are right."""

    def __init__(self, distribution: Distribution) -> None:
        self._distribution = distribution
        prior = distribution.observe(build(distribution.schema))
        self._cuts = [_cuts(column, prior, j) for j, column in enumerate(distribution.schema.columns)]
        self.marginals = [prior.histogram(j, cuts)[0] for j, cuts in enumerate(self._cuts)]

    def coder(self, j: int) -> Coder:
        """The codes of column j: its levels, or the bins between its cuts."""
        column, cuts = self._distribution.schema.columns[j], self._cuts[j]

        def codes(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            if column.is_categorical:
                return x.astype(np.int64), np.ones(len(x))
            ends = np.concatenate([[column.minimum], cuts, [column.maximum]])
            code = np.searchsorted(cuts, x)
            width = np.maximum(ends[code + 1] - ends[code], column.step or 1e-12)
            is_far = (x < column.minimum) | (x > column.maximum)  # learning saw no row there
            return code, (column.step or 1.0) / width / np.where(is_far, column.n_observed + 1.0, 1.0)

        return codes

    def ask(self, X: np.ndarray, read: Read) -> np.ndarray:
        """Like `ask_each` of rows X, (n, d), all of whose other cells count as right."""
        found, evidence = [], build(self._distribution.schema, X)
        for j, cuts in enumerate(self._cuts):
            codes = self._distribution.observe(evidence.without(j)).histogram(j, cuts)
            found.append(read(slice(0, len(X)), j, np.nan_to_num(codes)))
        return np.column_stack(found)


def _cuts(column: Column, prior: PosteriorState, j: int) -> np.ndarray:
    """Ends of bins of about equal probability, on a grid between cells; none for a column of levels."""
    if column.is_categorical:
        return np.empty(0)
    cuts = prior.quantile(j, np.arange(1, _BINS) / _BINS)[0]
    if column.step > 0.0:
        cuts = (np.rint((cuts - column.center) / column.step) + 0.5) * column.step + column.center
    cuts = np.unique(cuts)
    return cuts[(cuts > column.minimum) & (cuts < column.maximum)]


def of_joint(distribution: Distribution) -> RestTree | Other:
    """The hidden trees of a joint, in a mixture those of greatest weight, or the joint itself if it has none."""
    for k in np.argsort(-np.asarray(distribution.log_weight), kind="stable").tolist():
        hidden = distribution.components[k].hidden_trees()
        if hidden is not None:
            return RestTree(hidden)
    return Other(distribution)


def ask_each(hidden: HiddenTrees, likelihood: Sequence[np.ndarray], item: np.ndarray, read: Read) -> np.ndarray:
    """Call ``read`` with p(code of cell j | all other cells of the row) for each column; its results, side by side.

    ``likelihood[j]`` (U_j + 1, K_j) is p(value in the cell | code), up to a factor for each value. Its last row, which
    item -1 selects, is for missing cells. ``item`` (n, d) contains the value of each cell.
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
    """p(code of node k | the other cells), (n, K), from ``rest``, the weights of its states given these cells."""
    codes, picked = np.zeros((len(rest), tree.emission[k].shape[1])), tree.picked[k]
    codes[:, slice(None) if picked is None else picked] = rest @ tree.emission[k] if picked is None else rest
    return codes / np.maximum(codes.sum(axis=1, keepdims=True), 1e-300)


def _by_state(tree: TreeTables, likelihood: Sequence[np.ndarray]) -> dict[int, np.ndarray]:
    """For each column, p(value in the cell | state), (U + 1, H), up to a factor for each value."""
    tables = {}
    for j, k in tree.node.items():
        picked = tree.picked[k]
        # The factor must be the same in all trees, because it enters their weights.
        top = likelihood[j].max(axis=1, keepdims=True)
        scaled = likelihood[j] / np.where(top > 0.0, top, 1.0)
        tables[j] = (scaled @ tree.emission[k].T if picked is None else scaled[:, picked]).astype(tree.dtype)
    return tables


def _mixed(
    before: np.ndarray | None, total: np.ndarray, codes: np.ndarray, log_weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of codes after adding one more tree to the mixture, and the log of the sum of weights."""
    if before is None:
        return codes, log_weight
    both = np.logaddexp(total, log_weight)
    with np.errstate(invalid="ignore"):
        share = np.nan_to_num(np.exp(log_weight - both))[:, None]
    return before * (1.0 - share) + codes * share, both
