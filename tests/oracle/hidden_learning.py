"""Learning of hidden trees by enumeration: all states, all spanning trees, mutual information from its definition."""

import itertools
import math
from statistics import NormalDist

import numpy as np


def expected_counts(column, parent, transition, emission, rows, weight, covers=None):
    """Expected counts of (parent's state, state) and (state, code), and log-probability, by going through all states.

    A code of K = ``emission[k].shape[1]`` is a missing cell. A code K + 1 + r is a range: the row has one of the
    column's codes, and ``covers[j][r]`` says with which probability each code lies in it.
    """
    m = len(parent)
    pairs = [np.zeros(table.shape) for table in transition]
    cells = [np.zeros(table.shape) for table in emission]
    total = 0.0
    for row, w in zip(rows, weight, strict=True):
        found = []
        for z in itertools.product(*(range(table.shape[1]) for table in transition)):
            p = 1.0
            for k in range(m):
                above = 0 if parent[k] < 0 else z[parent[k]]
                code, K = row[column[k]], emission[k].shape[1]
                p *= transition[k][above, z[k]]
                if code > K:
                    inside = covers[column[k]][code - K - 1]
                    p *= math.fsum(emission[k][z[k], c] * inside[c] for c in range(K))
                else:
                    p *= emission[k][z[k], code] if code < K else 1.0
            found.append((z, p))
        whole = math.fsum(p for _, p in found)
        total += w * math.log(whole)
        for z, p in found:
            for k in range(m):
                code, K = row[column[k]], emission[k].shape[1]
                pairs[k][0 if parent[k] < 0 else z[parent[k]], z[k]] += w * p / whole
                if code < K:
                    cells[k][z[k], code] += w * p / whole
                elif code > K:
                    share = [emission[k][z[k], c] * covers[column[k]][code - K - 1][c] for c in range(K)]
                    for c in range(K):
                        cells[k][z[k], c] += w * p / whole * share[c] / math.fsum(share)
    return pairs, cells, total


def effective_number(counts):
    """The number of equally frequent outcomes that would be as diverse."""
    total = math.fsum(counts)
    return total**2 / math.fsum(c * c for c in counts) if total > 0 else 1.0


def like_states(count, cells):
    """Shares of the child's states for each parent's state, (Hp, H): probabilities of the states given its rows' codes.

    ``count`` (Hp, H) are rows of pairs of states, ``cells`` (K + 1, H) those of codes, the last of missing cells.
    """
    K, H = len(cells) - 1, len(cells[0])
    mass = [math.fsum(cells[c][t] for c in range(K)) for t in range(H)]
    found = []
    for row in count:
        of_code = [math.fsum(row[t] * cells[c][t] / mass[t] for t in range(H)) for c in range(K)]
        at = [math.fsum(of_code[c] * cells[c][t] / math.fsum(cells[c]) for c in range(K)) for t in range(H)]
        found.append([x / math.fsum(at) for x in at])
    return found


def near_states(count, cells, score, near_variance):
    """Shares of the child's states for each parent's state, (Hp, H), by a normal over the states' places on scores."""
    codes, states = range(len(score)), range(len(cells[0]))
    place = [
        math.fsum(cells[c][t] * score[c] for c in codes) / (1e-3 + math.fsum(cells[c][t] for c in codes))
        for t in states
    ]
    share = [1e-3 + math.fsum(row[t] for row in count) for t in states]
    share = [x / math.fsum(share) for x in share]
    middle = math.fsum(p * x for p, x in zip(share, place, strict=True))
    spread = 1e-6 + math.fsum(p * (x - middle) ** 2 for p, x in zip(share, place, strict=True))
    rows = [1e-3 + math.fsum(row) for row in count]
    mean = [math.fsum(n * x for n, x in zip(row, place, strict=True)) / m for row, m in zip(count, rows, strict=True)]
    variance = [
        math.fsum(n * x**2 for n, x in zip(row, place, strict=True)) / m - at**2
        for row, m, at in zip(count, rows, mean, strict=True)
    ]
    wide = min(spread, math.fsum(n * v for n, v in zip(rows, variance, strict=True)) / math.fsum(rows))
    found = []
    for n, at, v in zip(rows, mean, variance, strict=True):
        own = NormalDist(at, math.sqrt((n * v + wide) / (n + 1) + near_variance * spread))
        of_all = NormalDist(middle, math.sqrt(spread))
        mass = [p * own.pdf(x) / of_all.pdf(x) for p, x in zip(share, place, strict=True)]
        found.append([x / math.fsum(mass) for x in mass])
    return found


def transition_table(count, cells, each, extra):
    """Counts, rows for each further way by `like_states`, and ``extra`` and 1e-4 rows by the child's states."""
    share = [math.fsum(row[t] for row in count) + 1e-3 for t in range(len(count[0]))]
    share = [s / math.fsum(share) for s in share]
    table = []
    for row, like in zip(count, like_states(count, cells), strict=True):
        ways, odd = each * (effective_number(row) - 1), extra + 1e-4
        rows = math.fsum(row) + ways + odd
        table.append([(c + ways * near + odd * s) / rows for c, near, s in zip(row, like, share, strict=True)])
    return table


def emission_table(cells, marginal, each):
    """Emissions (H, K) of counts (K + 1, H), the last of missing cells, which do not count."""
    emission = []
    for s in range(len(cells[0])):
        count = [row[s] for row in cells[:-1]]
        added = each * (effective_number(count) - 1) + 1e-4
        known = math.fsum(count)
        emission.append([(c + added * p) / (known + added) for c, p in zip(count, marginal, strict=True)])
    return emission


def state_normals(count, marginal, light):
    """Pseudo-rows of states, (H, K): normals over codes that are no point masses, and the state's own point masses.

    A state has as much of a row as its share of rows that are no point masses; this share is the same in the row. The
    moments are those of the states' rows on the scale of normal scores, in which the column is standard normal.
    """
    normal = NormalDist()
    edge = [-math.inf, *(normal.inv_cdf(math.fsum(marginal[: c + 1])) for c in range(len(marginal) - 1)), math.inf]
    moments = []
    for row in count:
        rows = 1e-3 + math.fsum(c for c, of in zip(row, light, strict=True) if of)
        first = second = 0.0
        for c, (n, of) in enumerate(zip(row, light, strict=True)):
            if of:
                mean, variance = _truncated_normal(edge[c], edge[c + 1])
                first, second = first + n * mean / rows, second + n * (mean**2 + variance) / rows
        moments.append((rows, first, second - first**2))
    pooled = math.fsum(n * v for n, _, v in moments) / math.fsum(n for n, _, _ in moments)
    table = []
    for row, (rows, mean, variance) in zip(count, moments, strict=True):
        own = NormalDist(mean, math.sqrt((rows * variance + pooled) / (rows + 1) + 1e-4))
        below = [0.0, *(own.cdf(x) for x in edge[1:-1]), 1.0]
        mass = [(b - a) * of for a, b, of in zip(below[:-1], below[1:], light, strict=True)]
        total = math.fsum(row) + 1e-3
        share = rows / total
        of_normal = [share * m / math.fsum(mass) for m in mass]
        table.append([share * (n if of else c / total) for n, c, of in zip(of_normal, row, light, strict=True)])
    return table


def _truncated_normal(low, high):
    """Mean and variance of a standard normal within an interval."""
    normal = NormalDist()
    a, b = (normal.pdf(x) if math.isfinite(x) else 0.0 for x in (low, high))
    xa, xb = (x if math.isfinite(x) else 0.0 for x in (low, high))
    mass = (normal.cdf(high) if math.isfinite(high) else 1.0) - (normal.cdf(low) if math.isfinite(low) else 0.0)
    mean = (a - b) / mass
    return mean, 1.0 + (xa * a - xb * b) / mass - mean**2


def mutual_information(x, y, weight):
    """sum p(a, b) log p(a, b) / p(a) p(b) over rows where both are known (>= 0), less (r - 1)(c - 1) / 2n."""
    known = [(a, b, w) for a, b, w in zip(x, y, weight, strict=True) if a >= 0 and b >= 0]
    n = math.fsum(w for _, _, w in known)
    left, right = {a for a, _, _ in known}, {b for _, b, _ in known}
    total = 0.0
    for a in left:
        for b in right:
            p = math.fsum(w for i, j, w in known if (i, j) == (a, b)) / n
            p_a = math.fsum(w for i, _, w in known if i == a) / n
            p_b = math.fsum(w for _, j, w in known if j == b) / n
            total += p * math.log(p / (p_a * p_b)) if p > 0 else 0.0
    return max(total - (len(left) - 1) * (len(right) - 1) / (2 * n), 0.0)


def greatest_spanning_tree(weight):
    """The greatest sum of weights of any set of d - 1 edges that joins all."""
    d = len(weight)
    edges = list(itertools.combinations(range(d), 2))
    best = -math.inf
    for chosen in itertools.combinations(edges, d - 1):
        group = list(range(d))
        for a, b in chosen:
            group = [group[a] if g == group[b] else g for g in group]
        if len(set(group)) == 1:
            best = max(best, math.fsum(weight[a][b] for a, b in chosen))
    return best
