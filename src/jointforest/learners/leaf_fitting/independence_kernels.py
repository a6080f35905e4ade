"""Kernels: tests of independence of two columns of any kinds, from their complete rows.

See docs/concepts/learnspn-leaves.md. All statistics are (n - 1) times a sum of squared correlations between scores of
the two columns. Were either column shuffled, each correlation would have mean 0 and variance 1 / (n - 1) exactly,
whatever the ties, and the sum tends to a chi-square. With ranks as scores this is Spearman's test, with ranks and
levels Kruskal and Wallis's with its correction for ties, with levels the "N - 1" form of Pearson's.
"""

import math

import numpy as np

from ...runtime.compile import kernel

MIN_COMMON = 10
"""With fewer complete rows nothing is found."""
MIN_COUNT = 5.0
"""Smallest group of a test by ranks, and smallest expected count of a chi-square test."""
_FLAT = 1e-9
"""Share of a score's squares left after projection below which nothing but rounding is left."""
_FAR = 2.5
"""Largest quadratic score, in standard deviations, with which a chi-square is near enough; without ties it is
sqrt(5)."""


@kernel
def chi2_sf(x, df):
    """P(X > x) of a chi-square with a whole number of degrees of freedom, by its finite sum (all terms positive).
    Abramowitz and Stegun (1964), 26.4.4 and 26.4.5."""
    if x <= 0.0:
        return 1.0
    h = 0.5 * x
    if df % 2 == 0:
        p, log_term, k = 0.0, -h, 1.0  # terms h^(k - 1) e^-h / (k - 1)!
    else:
        p, log_term, k = math.erfc(math.sqrt(h)), 0.5 * math.log(h) - h - math.lgamma(1.5), 1.5
    for _ in range(df // 2):
        p += math.exp(log_term)
        log_term += math.log(h / k)
        k += 1.0
    return min(p, 1.0)


@kernel
def fisher(a, b, c, d):
    """Two-sided p-value of Fisher's exact test of the table [[a, b], [c, d]]: of all tables at most as probable."""
    row, column, n = a + b, a + c, a + b + c + d
    first, last = max(0, row + column - n), min(row, column)
    fixed = math.lgamma(row + 1.0) + math.lgamma(n - row + 1.0) + math.lgamma(column + 1.0)
    fixed += math.lgamma(n - column + 1.0) - math.lgamma(n + 1.0)
    seen = math.inf
    p = 0.0
    for turn in range(2):
        for k in range(first, last + 1):
            log_p = fixed - math.lgamma(k + 1.0) - math.lgamma(row - k + 1.0)
            log_p -= math.lgamma(column - k + 1.0) + math.lgamma(n - row - column + k + 1.0)
            if turn == 0 and k == a:
                seen = log_p + 1e-7  # tables as probable as this one, up to rounding
            elif turn == 1 and log_p <= seen:
                p += math.exp(log_p)
    return min(p, 1.0)


@kernel
def _merge(sums, n):
    """Merge the two smallest of the n sums: (kept, gone), the last moves to the place of the one gone."""
    i, j = 0, 1
    if sums[j] < sums[i]:
        i, j = j, i
    for k in range(2, n):
        if sums[k] < sums[i]:
            i, j = k, i
        elif sums[k] < sums[j]:
            j = k
    kept, gone = min(i, j), max(i, j)
    sums[kept] += sums[gone]
    sums[gone] = sums[n - 1]
    return kept, gone


@kernel
def table_p_value(counts):
    """Independence of two columns of levels from their contingency table (whose contents are lost). The rarest levels
    are merged until all expected counts are at least `MIN_COUNT`; then the "N - 1" chi-square test (Campbell 2007)."""
    # Two levels against two with a smaller expected count: Fisher's exact test.
    a, b = counts.shape
    rows, columns = np.zeros(a), np.zeros(b)
    total = 0.0
    for i in range(a):
        for j in range(b):
            rows[i] += counts[i, j]
            columns[j] += counts[i, j]
            total += counts[i, j]
    if total < MIN_COMMON or a < 2 or b < 2:
        return 1.0
    while True:
        least_row, least_column = rows[:a].min(), columns[:b].min()
        if least_row * least_column >= MIN_COUNT * total:
            break
        if a == 2 and b == 2:
            return fisher(int(counts[0, 0]), int(counts[0, 1]), int(counts[1, 0]), int(counts[1, 1]))
        if b == 2 or (a > 2 and least_row <= least_column):
            kept, gone = _merge(rows, a)
            a -= 1
            for j in range(b):
                counts[kept, j] += counts[gone, j]
                counts[gone, j] = counts[a, j]
        else:
            kept, gone = _merge(columns, b)
            b -= 1
            for i in range(a):
                counts[i, kept] += counts[i, gone]
                counts[i, gone] = counts[i, b]
    share = 0.0
    for i in range(a):
        for j in range(b):
            share += counts[i, j] * (counts[i, j] / (rows[i] * columns[j]))
    return chi2_sf((total - 1.0) * (share - 1.0), (a - 1) * (b - 1))


@kernel
def rank_scores(x, order, known, linear, quadratic):
    """Scores of a numeric column ``x`` (n,), by ``order`` of its known rows: mid-ranks, and what of their squares is
    not linear in them. Returns the number of rows scored, and how many of the scores there are (0, 1 or 2).

    linear, quadratic : float64 arrays (n,). Receive the scores, of mean 0 and sum of squares 1, uncorrelated; 0
        without.
    """
    # There is no linear score of a constant column, and no quadratic one of two distinct values, or if a few rows would
    # dominate it.
    linear[:] = 0.0
    quadratic[:] = 0.0
    n = 0
    for i in order:
        n += known[i]
    middle = 0.5 * (n - 1)
    squares, cubes, fourths = 0.0, 0.0, 0.0
    first = 0
    below = 0
    m = order.shape[0]
    while first < m:
        last = first
        ties = 0
        while last < m and x[order[last]] == x[order[first]]:
            ties += known[order[last]]
            last += 1
        rank = (below + 0.5 * (ties - 1) - middle) / max(n, 1)
        for k in range(first, last):
            if known[order[k]]:
                linear[order[k]] = rank
        squares += ties * rank**2
        cubes += ties * rank**3
        fourths += ties * rank**4
        below += ties
        first = last
    if squares <= 0.0:
        return n, 0
    mean, slope = squares / n, cubes / squares
    left = fourths - n * mean * mean - slope * cubes
    scale = 1.0 / math.sqrt(squares)
    quadratic_scale = 1.0 / math.sqrt(left) if left > _FLAT * fourths else 0.0
    furthest = 0.0
    for i in order:
        if known[i]:
            r = linear[i]
            quadratic[i] = (r * r - mean - slope * r) * quadratic_scale
            linear[i] = r * scale
            furthest = max(furthest, abs(quadratic[i]))
    if 0.0 < furthest <= _FAR / math.sqrt(n):
        return n, 2
    quadratic[:] = 0.0
    return n, 1


@kernel
def _either(p, q):
    """P-value of two independent tests: that the smaller of two uniform numbers is so small (Sidak)."""
    m = min(p, q)
    return m * (2.0 - m)


@kernel
def numeric_p_value(n, linear_x, quadratic_x, n_x, linear_y, quadratic_y, n_y):
    """Independence of two numeric columns from `rank_scores` on their n common rows (0 elsewhere)."""
    # Spearman's test, and one of the three other correlations, which finds dependence that is not monotone.
    if n < MIN_COMMON or n_x == 0 or n_y == 0:
        return 1.0
    ll, lq, ql, qq = 0.0, 0.0, 0.0, 0.0
    for i in range(linear_x.shape[0]):
        ll += linear_x[i] * linear_y[i]
        lq += linear_x[i] * quadratic_y[i]
        ql += quadratic_x[i] * linear_y[i]
        qq += quadratic_x[i] * quadratic_y[i]
    p = chi2_sf((n - 1) * ll * ll, 1)
    if n_x == 1 and n_y == 1:
        return p
    return _either(p, chi2_sf((n - 1) * (lq * lq + ql * ql + qq * qq), n_x * n_y - 1))


@kernel
def mixed_p_value(n, linear, quadratic, n_scores, level, n_levels):
    """Independence of a numeric column, by `rank_scores` on the n common rows, and one of levels (n_all,), -1 if
    missing."""
    # The test of Kruskal and Wallis, and the same one of the quadratic scores, which finds levels that differ in
    # spread. Levels of fewer than `MIN_COUNT` rows are merged (if the merged level has too few, with the next rarest).
    if n < MIN_COMMON or n_scores == 0:
        return 1.0
    sums = np.zeros((n_levels, 3))
    for i in range(level.shape[0]):
        if level[i] >= 0:
            sums[level[i], 0] += 1.0
            sums[level[i], 1] += linear[i]
            sums[level[i], 2] += quadratic[i]
    merged = np.zeros(3)
    least = n_levels
    for k in range(n_levels):
        if sums[k, 0] < MIN_COUNT:
            merged += sums[k]
            sums[k, 0] = 0.0
        elif least == n_levels or sums[k, 0] < sums[least, 0]:
            least = k
    groups, h, g = 0, 0.0, 0.0
    for k in range(n_levels):
        if k == least and 0.0 < merged[0] < MIN_COUNT:
            sums[k] += merged
            merged[0] = 0.0
        if sums[k, 0] > 0.0:
            groups += 1
            h += sums[k, 1] ** 2 / sums[k, 0]
            g += sums[k, 2] ** 2 / sums[k, 0]
    if merged[0] >= MIN_COUNT:
        groups += 1
        h += merged[1] ** 2 / merged[0]
        g += merged[2] ** 2 / merged[0]
    if groups < 2:
        return 1.0
    p = chi2_sf((n - 1) * h, groups - 1)
    return p if n_scores == 1 else _either(p, chi2_sf((n - 1) * g, groups - 1))
