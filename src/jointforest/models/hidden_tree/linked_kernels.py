"""Kernels of sums of independent parts in each of H states: places of a lattice are rows, states are columns."""

from __future__ import annotations

import numpy as np

from ...runtime.compile import entry


@entry
def placed(weight, code, place, by_code, size):
    """p(place | state), (size, H), of S values with a weight, a code and a place each; ``by_code`` is (K, H)."""
    out = np.zeros((size, by_code.shape[1]))
    for s in range(weight.shape[0]):
        for h in range(by_code.shape[1]):
            out[place[s], h] += weight[s] * by_code[code[s], h]
    return out


@entry
def summed_codes(weight, code, place, other, size):
    """sum of weight * other[place] over the values of each code, (size, H)."""
    out = np.zeros((size, other.shape[1]))
    for s in range(weight.shape[0]):
        for h in range(other.shape[1]):
            out[code[s], h] += weight[s] * other[place[s], h]
    return out


@entry
def convolved(a, b):
    """Distribution of the sum of two independent numbers, of a (L, H) and b (M, H): (L + M - 1, H)."""
    out = np.zeros((a.shape[0] + b.shape[0] - 1, a.shape[1]))
    for x in range(a.shape[0]):
        for y in range(b.shape[0]):
            for h in range(a.shape[1]):
                out[x + y, h] += a[x, h] * b[y, h]
    return out


@entry
def correlated(ahead, other, size):
    """sum_y ahead[x + y] other[y] for the first ``size`` places x, (size, H)."""
    out = np.zeros((size, ahead.shape[1]))
    for x in range(size):
        for y in range(other.shape[0]):
            for h in range(ahead.shape[1]):
                out[x, h] += ahead[x + y, h] * other[y, h]
    return out
