"""Tables in which several rows, from different sources, describe one entity: votes for its true values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .partners import Counts, joined_partners

_AGREE = 0.4  # least agreement within entities, beyond chance, of a column that supports a possible key
_COLUMNS = 2  # least number of such columns


def agreement(group: np.ndarray, item: np.ndarray, n_values: int) -> float:
    """Agreement of the cells within groups beyond chance: 0 if they agree as all rows do, 1 if they always agree."""
    known = (item >= 0) & (group >= 0)
    if not known.any():
        return 0.0
    counts = Counts(group, item, n_values, np.ones(len(item)))
    same = float((counts.proposed()[known, 0] == item[known]).mean())
    base = float(counts.of_item.max() / counts.of_item.sum())
    return (same - base) / (1.0 - base) if base < 1.0 else 0.0


def source_of(key: np.ndarray, code: Sequence[np.ndarray], k: int) -> int | None:
    """The column that names the source of each row, or None: nearly no two rows of one entity have the same source."""
    found = []
    for i, other in enumerate(code):
        if i == k or not (other >= 0).all() or len(np.unique(other)) > len(other) / 3:
            continue
        distinct = len(np.unique(joined_partners([key, other])))
        if distinct >= 0.99 * len(other):
            found.append((len(np.unique(other)), i))
    return min(found)[1] if found else None


def find_key(
    item: Sequence[np.ndarray], n_values: Sequence[int], code: Sequence[np.ndarray], free: Sequence[int]
) -> int | None:
    """The column that names entities which several sources describe; None if there is none.

    ``free`` are the columns that no other column determines. Only these count as evidence for a key, because
    agreement in the others may follow from a near-function.
    """
    n, best = len(item[0]) if item else 0, (0.0, -1)
    for k in range(len(item)):
        groups = len(np.unique(code[k][code[k] >= 0]))
        if groups < 10 or not 3.0 <= n / groups <= 100.0 or source_of(code[k], code, k) is None:
            continue
        agreed = [agreement(code[k], item[j], n_values[j]) for j in free if j not in (k, source_of(code[k], code, k))]
        high = [a for a in agreed if a >= _AGREE]
        if len(high) >= max(_COLUMNS, 0.5 * len(agreed)):
            best = max(best, (sum(high), k))
    return best[1] if best[1] >= 0 else None


class Votes(NamedTuple):
    """The result of the votes on one column.

    Attributes
    ----------
    seen : float array (n,)
        Probability that the row's own value is true; 0 where it is missing.
    best : int array (n,)
        The most probable value of the entity, -1 if there is none.
    probability : float array (n,)
        Probability of ``best``.
    """

    seen: np.ndarray
    best: np.ndarray
    probability: np.ndarray


def vote(
    key: np.ndarray, source: np.ndarray | None, items: Sequence[np.ndarray], n_values: Sequence[int], rounds: int = 16
) -> list[Votes]:
    """The true values of all columns that the entity determines, by expectation maximisation (Dawid and Skene 1979).

    The accuracy of a source in a column is estimated from the other columns, so that sources that copy one another do
    not confirm themselves. The model needs the number of wrong values that an entity may have. It is estimated as one
    over the share of pairs of wrong cells of an entity that agree.
    """
    source = np.zeros(len(key), np.int64) if source is None else source
    n_sources, d = int(source.max()) + 1, len(items)
    accuracy, alternatives, found = np.full((n_sources, d), 0.6), np.full(d, 3.0), []
    for _ in range(rounds):
        found = [
            _vote(key, items[j], n_values[j], accuracy[source, j] * alternatives[j] / (1.0 - accuracy[source, j]))
            for j in range(d)
        ]
        right, cells = np.zeros((n_sources, d)), np.zeros((n_sources, d))
        for j, (item, votes) in enumerate(zip(items, found, strict=True)):
            known = item >= 0
            right[:, j] = np.bincount(source[known], votes.seen[known], n_sources)
            cells[:, j] = np.bincount(source[known], minlength=n_sources)
            alternatives[j] = _alternatives(key, item, n_values[j], votes.seen)
        if d > 1:
            right, cells = right.sum(axis=1, keepdims=True) - right, cells.sum(axis=1, keepdims=True) - cells
        # Half steps, because whole ones oscillate.
        accuracy = 0.5 * accuracy + 0.5 * np.clip((right + 1.0) / (cells + 2.0), 0.02, 0.98)
    return found


def _vote(key: np.ndarray, item: np.ndarray, n_values: int, odds: np.ndarray) -> Votes:
    """The votes on one column: the log odds of the cells are added for each value of an entity."""
    counts = Counts(key, item, n_values, np.maximum(np.log(odds), 0.0))
    group = counts.key // n_values
    top, total = np.zeros(len(counts.total)), np.zeros(len(counts.total))
    np.maximum.at(top, group, counts.count)
    np.add.at(total, group, np.exp(counts.count - top[group]))
    share = np.exp(counts.count - top[group]) / (total + np.exp(-top))[group]
    out = []
    for value in (item, counts.top[key, 0]):
        wanted = key * n_values + value
        place = np.minimum(np.searchsorted(counts.key, wanted), max(len(counts.key) - 1, 0))
        out.append(np.where((key >= 0) & (value >= 0), share[place], 0.0) if len(share) else np.zeros(len(key)))
    return Votes(out[0], np.where(key >= 0, counts.top[key, 0], -1), out[1])


def _alternatives(key: np.ndarray, item: np.ndarray, n_values: int, right: np.ndarray) -> float:
    """Estimated number of wrong values: one over the share of pairs of wrong cells of an entity that agree; 1 to 50."""
    wrong = Counts(key, item, n_values, 1.0 - right)
    same = float(np.maximum(wrong.count * (wrong.count - 1.0), 0.0).sum())
    pairs = float(np.maximum(wrong.total * (wrong.total - 1.0), 0.0).sum())
    return float(np.clip((pairs + 1.0) / (same + 1.0), 1.0, 50.0))
