"""A better tree of columns: the pair that a short fit has lost is joined if the validation log-likelihood rises."""

# The tree of greatest mutual information looks at neighbours alone. What columns far apart say of each other goes
# through the states of all columns between them, and is lost where these hold something else.

from __future__ import annotations

import numpy as np

from ...data.discretization.dependence import coarse, mutual_information, spanning_tree
from ...models.hidden_tree.hidden_trees import TreeTables
from .constants import FIXED
from .learn import LearnSettings
from .leaves import Learned, learn_trees, mean_of
from .structure import CodeTable


def pair_to_join(table: CodeTable, trial: LearnSettings, first: Learned, seed: int) -> tuple[int, int] | None:
    """The columns of `LearnSettings.joined`, often none."""
    # The pair whose dependence a short fit has lost most replaces the weakest link between its columns, if another
    # short fit with it has the higher validation log-likelihood. A dependence that is lost completely counts more than
    # an equal loss of a stronger one.
    #
    # trial : LearnSettings. Of short fits. first : Learned. What the trial learns by the same seed: one tree.
    rows, d = table.take(table.weighed_rows()), len(table.n_codes)
    if d < 3 or len(rows.codes) < FIXED.fewest_held_out_from:  # none would be held out
        return None
    classes, size = coarse(*rows[:3])
    information = mutual_information(classes, size, rows.weight)
    drawn = draw_codes(first.trees[0], min(len(rows.codes), FIXED.lost_draws), np.random.default_rng([seed, 2]))
    for j, K in enumerate(table.n_codes.tolist()):
        to_class = np.full(K + 1, -1, np.int16)
        to_class[rows.codes[:, j]] = classes[:, j]
        drawn[:, j] = to_class[drawn[:, j]]
    wanted = _as_correlation(information)
    fall = wanted - _as_correlation(mutual_information(drawn, size))
    order, parent = spanning_tree(information)
    fall[order[1:], order[parent[1:]]] = fall[order[parent[1:]], order[1:]] = 0.0
    lost = np.tril(np.where(fall < FIXED.lost, 0.0, fall**2 / np.maximum(wanted, FIXED.lost)), -1)
    a, b = (int(j) for j in np.unravel_index(np.argmax(lost), lost.shape))
    if lost[a, b] == 0.0:
        return None
    found = learn_trees(table, trial._replace(joined=(b, a)), seed)
    return (b, a) if mean_of(found.held_out - first.held_out, table.weight) > 0.0 else None


def draw_codes(tree: TreeTables, n: int, rng: np.random.Generator) -> np.ndarray:
    """Codes of n rows drawn from a tree with a column at each node, (n, d)."""
    codes = np.empty((n, len(tree)), np.int64)
    states: list[np.ndarray] = []
    for k, j in enumerate(tree.column.tolist()):
        above = states[tree.parent[k]] if k else np.zeros(n, np.int64)
        states.append(tree.state_draws[k].draw(above, rng.random(n)))
        codes[:, j] = tree.code_draws[k].draw(states[k], rng.random(n))
    return codes


def _as_correlation(information: np.ndarray) -> np.ndarray:
    """Correlation of two normal columns of this mutual information."""
    return np.asarray(np.sqrt(-np.expm1(-2.0 * information)))
