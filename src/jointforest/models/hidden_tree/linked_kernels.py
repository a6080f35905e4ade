"""Kernels of sums of independent parts in each of H states: places of a lattice are rows, states are columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...runtime.compile import entry, kernel
from ...runtime.records import record


@entry
def placed(weight, code, place, by_code, size):
    """p(place | state) of the first ``size`` places, (size, H), of S values with weights, codes and places."""
    # ``by_code`` is (K, H).
    out = np.zeros((size, by_code.shape[1]))
    for s in range(weight.shape[0]):
        if place[s] >= size:
            continue
        for h in range(by_code.shape[1]):
            out[place[s], h] += weight[s] * by_code[code[s], h]
    return out


@entry
def summed_codes(weight, code, place, other, size):
    """sum of weight * other[place] over the values of each code, (size, H); 0 of places beyond the others."""
    out = np.zeros((size, other.shape[1]))
    for s in range(weight.shape[0]):
        if place[s] >= other.shape[0]:
            continue
        for h in range(other.shape[1]):
            out[code[s], h] += weight[s] * other[place[s], h]
    return out


@entry
def convolved(a, b, size):
    """First ``size`` places of the sum of two independent numbers, of a (L, H) and b (M, H): (size, H)."""
    out = np.zeros((size, a.shape[1]))
    for x in range(min(a.shape[0], size)):
        for y in range(min(b.shape[0], size - x)):
            for h in range(a.shape[1]):
                out[x + y, h] += a[x, h] * b[y, h]
    return out


@entry
def correlated(ahead, low, high, other, size):
    """sum_y ahead[x + y] other[y] for the first ``size`` places x, (size, H); outside low to high ``ahead`` is 0."""
    out = np.zeros((size, ahead.shape[1]))
    for x in range(min(size, high)):
        for y in range(max(low - x, 0), min(other.shape[0], high - x)):
            for h in range(ahead.shape[1]):
                out[x, h] += ahead[x + y, h] * other[y, h]
    return out


@entry
def laws_of_values(weight, code, place, likelihood, by_state):
    """weight * sum_h likelihood[place, h] by_state[code, h] of S values, (S,); 0 of places beyond the likelihood."""
    out = np.zeros(weight.shape[0])
    for s in range(weight.shape[0]):
        if place[s] >= likelihood.shape[0]:
            continue
        out[s] = weight[s] * _dot(likelihood[place[s]], by_state[code[s]])
    return out


@kernel
def _dot(a, b):
    """Sum of the products of two vectors."""
    p0, p1, p2, p3 = 0.0, 0.0, 0.0, 0.0  # four sums, which the processor adds up at once
    H = a.shape[0]
    for i in range(H // 4):
        h = 4 * i
        p0 += a[h] * b[h]
        p1 += a[h + 1] * b[h + 1]
        p2 += a[h + 2] * b[h + 2]
        p3 += a[h + 3] * b[h + 3]
    for h in range(H // 4 * 4, H):
        p0 += a[h] * b[h]
    return (p0 + p1) + (p2 + p3)


# ---- Values of three parts that add up to a possible total. Of two parts, the first of three has one value.


@record
class Listed(NamedTuple):
    """Values of a part, listed by a key: their numbers (S,), and where each key starts and the last one ends."""

    value: np.ndarray
    start: np.ndarray


@record
class Last(NamedTuple):
    """The S values of the last part, by their places.

    value : int64 array (S,). Their numbers.
    start : int64 array (L + 1,). Where the values of each place start.
    code, weight : arrays (S,)
    end : int64 array (S,). Where the values that follow without another code between them end.
    below : float64 array (S,). Weights of the values of the same code before, as far back as there is no other code
        between them.
    """

    value: np.ndarray
    start: np.ndarray
    code: np.ndarray
    weight: np.ndarray
    end: np.ndarray
    below: np.ndarray


@record
class TotalPieces(NamedTuple):
    """Totals of one likelihood: the first one (P,), the one after the last one (P,), and the likelihood (P,)."""

    first: np.ndarray
    stop: np.ndarray
    likelihood: np.ndarray


@kernel
def _clipped(x, size):
    return min(max(x, 0), size)


@kernel
def _weight_between(last, m, end):
    """Weight of values m to end - 1 of the last part, which have one code."""
    inside = last.weight[end - 1]
    return inside if end - m == 1 else inside + (last.below[end - 1] - last.below[m])


@kernel
def _common_values(pieces, t, at, place, listed, c, last):
    """Range of the values of the last part that make totals of a piece with all values of code c of another part."""
    # They are taken together, so that each value of the code has to look only at those near the ends of the piece.
    places, low, high = len(last.start) - 1, 0, len(last.value)
    begin, end = listed.start[c], listed.start[c + 1]
    spread = abs(place[listed.value[end - 1]] - place[listed.value[begin]])
    if pieces.stop[t] - pieces.first[t] <= spread:
        return high, high
    for k in range(begin, end):
        b = at + place[listed.value[k]]
        low = max(low, last.start[_clipped(pieces.first[t] - b, places)])
        high = min(high, last.start[_clipped(pieces.stop[t] - b, places)])
    return low, max(low, high)


@kernel
def _add_weights(last, m, stop, w, sums, touched, is_touched, n_touched):
    """Add weights of values m to stop - 1 of the last part, times w, to those of their codes; the number of codes."""
    while m < stop:
        code, end = last.code[m], min(last.end[m], stop)
        if not is_touched[code]:
            is_touched[code] = True
            touched[n_touched] = code
            n_touched += 1
        sums[code] += w * _weight_between(last, m, end)
        m = end
    return n_touched


@kernel
def _add_factors(last, m, stop, w, of_code, single, from_here, begun):
    """Add w times the factor of its code to values m to stop - 1 of the last part; the sum over their weights."""
    total = 0.0
    while m < stop:
        end = min(last.end[m], stop)
        p = w * of_code[last.code[m]]
        total += p * _weight_between(last, m, end)
        if end - m > 1:
            from_here[m] += p
            from_here[end] -= p
            begun[m] += 1
            begun[end] -= 1
        else:
            single[m] += p
        m = end
    return total


@kernel
def _weight_of(weight, listed, c):
    """Sum of the weights of the values of code c."""
    total = 0.0
    for k in range(listed.start[c], listed.start[c + 1]):
        total += weight[listed.value[k]]
    return total


@entry
def runs(pieces, place, weight, first, second, last, n_codes):
    """The codes (3, R) of values that add up to totals of some pieces, and the weight of all such values (R,)."""
    size, n, places = 1024, 0, len(last.start) - 1
    code, total_weight = np.empty((3, size), np.int64), np.empty(size)
    sums, touched = np.zeros(n_codes), np.empty(n_codes, np.int64)
    is_touched = np.zeros(n_codes, np.bool_)
    for c1 in range(len(first.start) - 1):
        for c2 in range(len(second.start) - 1):
            n_touched, of_c2 = 0, _weight_of(weight[1], second, c2)
            if second.start[c2] == second.start[c2 + 1]:
                continue
            for i in range(first.start[c1], first.start[c1 + 1]):
                a = first.value[i]
                for t in range(len(pieces.first)):
                    w = pieces.likelihood[t] * weight[0][a]
                    low, high = _common_values(pieces, t, place[0][a], place[1], second, c2, last)
                    n_touched = _add_weights(last, low, high, w * of_c2, sums, touched, is_touched, n_touched)
                    for k in range(second.start[c2], second.start[c2 + 1]):
                        b = second.value[k]
                        at, w_b = place[0][a] + place[1][b], w * weight[1][b]
                        m = last.start[_clipped(pieces.first[t] - at, places)]
                        stop = last.start[_clipped(pieces.stop[t] - at, places)]
                        n_touched = _add_weights(last, m, min(low, stop), w_b, sums, touched, is_touched, n_touched)
                        n_touched = _add_weights(last, max(high, m), stop, w_b, sums, touched, is_touched, n_touched)
            if n + n_touched > size:
                size = max(2 * size, n + n_touched)
                wider, heavier = np.empty((3, size), np.int64), np.empty(size)
                wider[:, :n] = code[:, :n]
                heavier[:n] = total_weight[:n]
                code, total_weight = wider, heavier
            for m in range(n_touched):
                c3 = touched[m]
                code[0, n], code[1, n], code[2, n] = c1, c2, c3
                total_weight[n] = sums[c3]
                sums[c3], is_touched[c3] = 0.0, False
                n += 1
    return code[:, :n].copy(), total_weight[:n].copy()


@entry
def laws_of_runs(pieces, place, weight, first, second, last, code, factor):
    """The distributions of the values of three parts, and of the pieces, from the factor of each run (R,)."""
    S, places = len(last.value), len(last.start) - 1
    laws = np.zeros(len(place[0])), np.zeros(len(place[1])), np.zeros(S), np.zeros(len(pieces.first))
    single, from_here = np.zeros(S), np.zeros(S + 1)  # what single values, and all from one on, are multiplied with
    begun = np.zeros(S + 1, np.int64)  # how many ranges of values begin here, less those that end
    of_code = np.zeros(last.code.max() + 1)
    run = 0
    while run < len(factor):
        c1, c2, begin = code[0, run], code[1, run], run
        while run < len(factor) and code[0, run] == c1 and code[1, run] == c2:
            of_code[code[2, run]] = factor[run]
            run += 1
        of_c2 = _weight_of(weight[1], second, c2)
        for i in range(first.start[c1], first.start[c1 + 1]):
            a = first.value[i]
            for t in range(len(pieces.first)):
                w = pieces.likelihood[t] * weight[0][a]
                low, high = _common_values(pieces, t, place[0][a], place[1], second, c2, last)
                of_all = _add_factors(last, low, high, w * of_c2, of_code, single, from_here, begun)
                laws[0][a] += of_all
                laws[3][t] += of_all
                for k in range(second.start[c2], second.start[c2 + 1]):
                    b = second.value[k]
                    at, w_b = place[0][a] + place[1][b], w * weight[1][b]
                    m = last.start[_clipped(pieces.first[t] - at, places)]
                    stop = last.start[_clipped(pieces.stop[t] - at, places)]
                    of_b = _add_factors(last, m, min(low, stop), w_b, of_code, single, from_here, begun)
                    of_b += _add_factors(last, max(high, m), stop, w_b, of_code, single, from_here, begun)
                    laws[0][a] += of_b
                    laws[3][t] += of_b
                    laws[1][b] += of_b + (of_all * (weight[1][b] / of_c2) if of_c2 > 0.0 else 0.0)
        for m in range(begin, run):
            of_code[code[2, m]] = 0.0
    here, n_ranges = 0.0, 0
    for m in range(S):
        here, n_ranges = here + from_here[m], n_ranges + begun[m]
        if n_ranges == 0:  # rounding must not make an impossible value possible
            here = 0.0
        laws[2][last.value[m]] = (single[m] + max(here, 0.0)) * last.weight[m]
    return laws


@entry
def factors_of_runs(code, by_code, state):
    """sum_h p(h) p(codes | h) of each run, (R,); ``by_code`` are three tables (K, H), ``state`` is p(h)."""
    H = len(state)
    out, both = np.empty(code.shape[1]), np.empty(H)
    for r in range(code.shape[1]):
        if r == 0 or code[0, r] != code[0, r - 1] or code[1, r] != code[1, r - 1]:
            a, b = by_code[0][code[0, r]], by_code[1][code[1, r]]
            for h in range(H):
                both[h] = state[h] * a[h] * b[h]
        out[r] = _dot(both, by_code[2][code[2, r]])
    return out


@entry
def likelihoods_of_codes(code, weight, by_code):
    """sum of weight * p(codes of the other parts | h) over the runs of each code of each part: three tables (K, H)."""
    H = by_code[0].shape[1]
    out = np.zeros_like(by_code[0]), np.zeros_like(by_code[1]), np.zeros_like(by_code[2])
    both, ahead = np.empty(H), np.empty(H)
    r = 0
    while r < code.shape[1]:
        c1, c2 = code[0, r], code[1, r]
        a, b = by_code[0][c1], by_code[1][c2]
        for h in range(H):
            both[h] = a[h] * b[h]
            ahead[h] = 0.0
        while r < code.shape[1] and code[0, r] == c1 and code[1, r] == c2:
            c, to, w = by_code[2][code[2, r]], out[2][code[2, r]], weight[r]
            for h in range(H):
                to[h] += w * both[h]
                ahead[h] += w * c[h]
            r += 1
        to1, to2 = out[0][c1], out[1][c2]
        for h in range(H):
            to1[h] += ahead[h] * b[h]
            to2[h] += ahead[h] * a[h]
    return out
