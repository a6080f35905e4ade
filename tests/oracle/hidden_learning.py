"""Learning of hidden trees by enumeration: all states, all spanning trees, mutual information from its definition."""

import itertools
import math

import numpy as np


def expected_counts(column, parent, transition, emission, rows, weight):
    """Expected counts of (parent's state, state) and (state, code), and log-probability, by going through all states.

    A code of ``emission[k].shape[1]`` is a missing cell.
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
                code = row[column[k]]
                p *= transition[k][above, z[k]]
                p *= emission[k][z[k], code] if code < emission[k].shape[1] else 1.0
            found.append((z, p))
        whole = math.fsum(p for _, p in found)
        total += w * math.log(whole)
        for z, p in found:
            for k in range(m):
                code = row[column[k]]
                pairs[k][0 if parent[k] < 0 else z[parent[k]], z[k]] += w * p / whole
                if code < emission[k].shape[1]:
                    cells[k][z[k], code] += w * p / whole
    return pairs, cells, total


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
