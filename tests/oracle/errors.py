"""Truths of a row whose cells may be wrong, by enumeration of all truths."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np


def truths(p: np.ndarray, likelihood: Sequence[np.ndarray]) -> list[np.ndarray]:
    """p(true value of cell j | everything seen), for each column.

    ``p`` (K_1, ..., K_d) has the probability of each row of true values, ``likelihood[j]`` (K_j,) is p(seen | truth).
    """
    out = [np.zeros(len(of)) for of in likelihood]
    for row in product(*(range(len(of)) for of in likelihood)):
        weight = p[row] * np.prod([of[k] for of, k in zip(likelihood, row, strict=True)])
        for j, k in enumerate(row):
            out[j][k] += weight
    return [of / of.sum() for of in out]


def expected_beyond(cells: list[float], value: float, step: float) -> float:
    """Expected over observed number of cells as far on its side as a value, by the median of the outermost cells."""
    ordered = sorted(cells)
    n = len(ordered)
    center = 0.5 * (ordered[(n - 1) // 2] + ordered[n // 2])
    side = 1.0 if value > center else -1.0
    k = max(8, n // 50)
    top = sorted((side * (cell - center) for cell in cells), reverse=True)[:k]
    inner, half = top[-1], 0.5 * step
    if side * (value - center) <= inner:
        return 1.0
    logs = sorted(math.log((d + half + inner) / (2.0 * inner - half)) for d in top)
    middle = 0.5 * (logs[(k - 1) // 2] + logs[k // 2])
    m = sum(side * (cell - center) >= inner for cell in cells)
    power = math.log(2.0 * m / k) / max(middle, math.log(2.0) / 30.0)

    def beyond(d: float) -> float:
        return m * max((d - half + inner) / (2.0 * inner - half), 1.0) ** -power

    expected = beyond(side * (value - center))
    if value * center < 0.0 and abs(center) > inner:
        others = sum(cell * center < 0.0 and cell != value for cell in cells)
        expected *= min((others or 1.0 / n) / beyond(abs(center)), 1.0)
    return min(expected / max(cells.count(value), 1), 1.0)


def swapped(gains: list[float], n_rows: int, is_learned: bool, same: int = 0) -> list[float]:
    """p(swapped) of each row from the gains of its log density, one row at a time."""
    gains = [min(max(gain, -50.0), 50.0) for gain in gains]
    if not is_learned:
        share, p = 0.01, [0.0] * len(gains)
        for _ in range(30):
            p = [share * math.exp(g) / (share * math.exp(g) + 1.0 - share) for g in gains]
            share = (sum(p) + 1.0) / (n_rows + 100.0)
        return p
    best, factor = -math.inf, 1.0
    for tried in (0.3 + 0.05 * k for k in range(15)):
        for share in (0.0, 0.003, 0.01, 0.02, 0.04, 0.07, 0.1, 0.15):
            fit = -0.5 * ((1.0 - tried) / 0.1) ** 2
            for g in (g for g in gains if abs(g) < 8.0):
                rise = 1.0 / (1.0 + math.exp(tried * abs(g)))  # of a genuine row
                of_gain = (1.0 - share) * rise + share * (1.0 - rise)
                fit += math.log(of_gain if g > 0.0 else 1.0 - of_gain)
            if fit > best:
                best, factor = fit, tried
    near = 0.5 * (sum(abs(g) < 1.0 for g in gains) + same)
    genuine = factor + near
    denser = [g for g in gains if g > 0.0]
    n, mean = len(denser) - genuine / factor, 2.0
    if n <= 0.0 or n < 3.0 * math.sqrt(near) or len(denser) > 0.15 * n_rows:
        return [0.0] * len(gains)
    small = 1.0 + 0.5 * same + sum(-1.0 <= g < 0.0 for g in gains)
    fall = math.log(1.0 + sum(-2.0 <= g < -1.0 for g in gains)) - math.log(small)
    start, steepness = min(genuine, small * math.exp(-0.5 * fall)), max(factor, fall)
    p_of: dict[float, float] = {}
    for _ in range(30):
        for g in denser:
            other = n / mean * math.exp(-g / mean)
            p_of[g] = other / (other + start * math.exp(-steepness * g))
        n = sum(p_of[g] for g in denser)
        mean = max(sum(p_of[g] * g for g in denser) / n, 1.5)
    return [p_of.get(g, 0.0) for g in gains]


def p_random(relations: list[tuple[dict[str, tuple[int, float]], str, str]]) -> tuple[float, float]:
    """p(values at random made the exceptions of all relations), and the share of the expected rows that they have.

    A relation has, for each forbidden combination, its rows and those that independent columns would have; and the
    names of its two columns.
    """
    shares = [
        (sum(k for k, _ in cells.values()) + 0.5) / sum(e for _, e in cells.values()) for cells, _, _ in relations
    ]
    near = [relation for relation, share in zip(relations, shares, strict=True) if share <= 2.0 * min(shares)]
    near.sort(key=lambda relation: -sum(e for _, e in relation[0].values()))
    rows = [sum(k for k, _ in cells.values()) for cells, _, _ in near]
    expected = [sum(e for _, e in cells.values()) for cells, _, _ in near]
    share = (sum(rows) + 0.5) / sum(expected)
    log_odds, seen = -3.0, set[str]()
    for (cells, a, b), k, e in zip(near, rows, expected, strict=True):
        if k == 0 or {a, b} <= seen:
            continue
        ratio = 0.0
        for number, one in cells.values():
            mean = one * (k + 0.5) / e
            poisson = number * math.log(mean) - mean - math.log(math.factorial(number))
            ratio += poisson - (number * math.log(mean) - (number + 1) * math.log(1.0 + mean))
        log_odds += min(ratio, 3.0)
        if seen:  # the integral of a Poisson probability over the log of its mean is 1 / k
            same = k * math.log(share * e) - share * e - math.log(math.factorial(k))
            log_odds += same + math.log(k) + math.log(math.log(2.0 * e))
        seen |= {a, b}
    return 1.0 / (1.0 + math.exp(-log_odds)), share


def broken(
    a: list[int], b: list[int], a_beside: int, b_beside: int, alone: list[tuple[float, float]]
) -> list[tuple[float, float]]:
    """p(wrong) of the two cells of each row, of a table of two columns, because they break the relation of these.

    Cells are levels or bins; ``a_beside`` and ``b_beside`` say how many bins on each side count as equal. ``alone`` has
    the probabilities that the cells are wrong for other reasons.
    """
    n = len(a)

    def rows(x: int | None, y: int | None) -> int:
        return sum(
            (x is None or abs(u - x) <= a_beside) and (y is None or abs(v - y) <= b_beside)
            for u, v in zip(a, b, strict=True)
        )

    number: dict[tuple[int, int], int] = {}
    exceptions, forbidden = [], 0.0
    for x, y in product(sorted(set(a)), sorted(set(b))):
        number[x, y] = rows(x, y)
        shares = sorted((number[x, y] / rows(x, None), number[x, y] / rows(None, y)))
        expected = rows(x, None) * rows(None, y) / n
        if expected >= 5 and shares[0] <= 0.05 and shares[1] <= 0.1 and number[x, y] <= 0.35 * expected:
            forbidden += a.count(x) * b.count(y) / n
            exceptions.append((x, y))
    if forbidden < 0.1 * n:
        return [(0.0, 0.0)] * n
    found = [(x, y) in exceptions for x, y in zip(a, b, strict=True)]
    share = (sum(found) + 0.5) / forbidden
    cells = {
        f"{x} {y}": (sum(u == x and v == y for u, v in zip(a, b, strict=True)), a.count(x) * b.count(y) / n)
        for x, y in exceptions
    }
    by_random, of_random = p_random([(cells, "a", "b")])
    p_exception = max(1.0 / (1.0 + (share / 0.02) ** 2), by_random * min(of_random / share, 1.0))
    out = []
    for x, y, is_one, (p_a, p_b) in zip(a, b, found, alone, strict=True):
        of_y = [number[u, y] for u in sorted(set(a))]
        of_x = [number[x, v] for v in sorted(set(b))]
        score = max(of_y) / rows(None, y) / max(1.0 - p_a, 1e-6), max(of_x) / rows(x, None) / max(1.0 - p_b, 1e-6)
        p = is_one * p_exception
        out.append((p * score[0] / sum(score), p * score[1] / sum(score)))
    return out


def edits(a: str, b: str) -> int:
    """Least number of letters to insert, delete, replace, or exchange with the next one, by recursion."""
    if not a or not b:
        return len(a) + len(b)
    if a[-1] == b[-1]:
        return edits(a[:-1], b[:-1])
    ways = [edits(a[:-1], b), edits(a, b[:-1]), edits(a[:-1], b[:-1])]
    if a[-2:] == b[-2:][::-1] and len(a) > 1:
        ways.append(edits(a[:-2], b[:-2]))
    return 1 + min(ways)


def wrong_by_rule(p_rule: float, row: dict[str, float], alone: dict[str, float]) -> dict[str, float]:
    """p(cell is wrong) of the cells of a row that breaks a rule, by column; ``row`` has the log-probability of each.

    ``p_rule`` is the probability that the exceptions of the rule are errors. ``alone`` has the probabilities that the
    cells are wrong for other reasons.
    """
    top = max(row.values())
    weight = {
        name: math.exp(x - top) * math.prod(1.0 - min(alone[other], 1.0 - 1e-6) for other in row if other != name)
        for name, x in row.items()
    }
    return {name: p_rule * w / sum(weight.values()) for name, w in weight.items()}
