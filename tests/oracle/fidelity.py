"""How far apart two tables are, the slow way: the definitions on lists of Python values, None where missing."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any


def kolmogorov(a: Sequence[float | None], b: Sequence[float | None]) -> float:
    """Largest difference of the two shares at or below a value, over all values; missing cells left out."""
    a, b = [x for x in a if x is not None], [x for x in b if x is not None]
    values = set(a) | set(b)
    return max(abs(sum(x <= v for x in a) / len(a) - sum(x <= v for x in b) / len(b)) for v in values)


def total_variation(a: Sequence[Any], b: Sequence[Any]) -> float:
    """Half the sum of differences of shares; missing counts as a value."""
    counts = Counter(a), Counter(b)
    return sum(abs(counts[0][v] / len(a) - counts[1][v] / len(b)) for v in set(a) | set(b)) / 2


def correlation(x: Sequence[float | None], y: Sequence[float | None]) -> float:
    """Pearson's, from sums over the rows that have both."""
    rows = [(u, v) for u, v in zip(x, y, strict=True) if u is not None and v is not None]
    mean = [math.fsum(row[k] for row in rows) / len(rows) for k in (0, 1)]

    def moment(p: int, q: int) -> float:
        return math.fsum((u - mean[0]) ** p * (v - mean[1]) ** q for u, v in rows)

    return moment(1, 1) / math.sqrt(moment(2, 0) * moment(0, 2))


def tenth(x: float | None, column: Sequence[float | None]) -> Any:
    """Bin of a number between the deciles of a column: how many different deciles are below it."""
    known = sorted(v for v in column if v is not None)
    deciles = {known[math.ceil(k * len(known) / 10) - 1] for k in range(1, 10)}
    return None if x is None else sum(decile < x for decile in deciles)


def detection_score(auc: Sequence[float]) -> float:
    """As sdmetrics has it: 1 - the mean of max(0.5, AUC) * 2 - 1."""
    return 1 - sum(max(0.5, one) * 2 - 1 for one in auc) / len(auc)


def auc_of_pairs(real: Sequence[float], other: Sequence[float]) -> float:
    """Share of pairs in which the other row scores higher, ties by half."""
    won = sum((b > a) + 0.5 * (b == a) for a in real for b in other)
    return won / (len(real) * len(other))


def gower(a: Sequence[Any], b: Sequence[Any], columns: Sequence[Sequence[Any]], numeric: Sequence[bool]) -> float:
    """Mean over columns: of numbers the difference of their mid-ranks in the column, as shares; of levels 0 or 1."""
    total = 0.0
    for x, y, column, is_number in zip(a, b, columns, numeric, strict=True):
        if x is None or y is None or not is_number:
            total += float(x != y)
        else:
            known = [v for v in column if v is not None]
            rank = [(sum(v < z for v in known) + 0.5 * sum(v == z for v in known)) / len(known) for z in (x, y)]
            total += abs(rank[0] - rank[1])
    return total / len(columns)


def win(a: float, b: float) -> float:
    """1 if a is greater, one half if they are equal."""
    return 1.0 if a > b else 0.5 if a == b else 0.0


def advantage(inside: Sequence[float], outside: Sequence[float]) -> tuple[float, float]:
    """P(right) - P(wrong) over all pairs of scores, and DeLong's standard error, by loops."""
    rows = [math.fsum(win(a, b) for b in outside) / len(outside) for a in inside]
    columns = [math.fsum(win(a, b) for a in inside) / len(inside) for b in outside]
    area = math.fsum(rows) / len(rows)

    def spread(parts: list[float]) -> float:
        return math.fsum((x - area) ** 2 for x in parts) / (len(parts) - 1) / len(parts)

    return 2.0 * area - 1.0, 2.0 * math.sqrt(spread(rows) + spread(columns))
