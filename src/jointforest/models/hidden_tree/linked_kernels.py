"""Kernels of sums of independent parts in each of H states: places of a lattice are rows, states are columns."""

from __future__ import annotations

import numpy as np

from ...runtime.compile import entry


@entry
def placed(weight, code, place, by_code, size):
    """p(place | state) of the first ``size`` places, (size, H), of S values with weights, codes and places.

    ``by_code`` is (K, H).
    """
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
