"""Kernels: the mass of a level in a parameter row, whether its column has few levels or many."""

import math

import numpy as np

from ....runtime.compile import entry, kernel
from ....runtime.numeric_kernels import first_at_least

# ---- Kernel: is a level in a set of levels that is kept as bits?


@kernel
def has_level(words, first, level):
    """Whether a level is in the set that begins at word ``first`` of ``words`` (uint64): bit k % 64 of word k // 64."""
    return (words[first + (level >> 6)] >> np.uint64(level & 63)) & np.uint64(1) == np.uint64(1)


_NONE, _ONE, _ALL = np.uint64(0), np.uint64(1), np.uint64(2**64 - 1)


@kernel
def shared_mass(wide, row, t, level):
    """What a row has of a level of wide column t by what rows share."""
    if not has_level(wide.words, wide.set_at[row, t], level):
        return 0.0
    return wide.scale[row, t] * wide.share[wide.share_row[row, t], wide.start[t] + level]


@kernel
def first_listed(wide, row, t, level):
    """Place of the first level of a row's list of wide column t that is not below ``level``; its end if none is."""
    at = row * wide.scale.shape[1] + t
    return first_at_least(wide.own_level, wide.own_start[at], wide.own_start[at + 1], level)


@kernel
def wide_mass(wide, row, t, level):
    """Mass of a level of wide column t."""
    mass = shared_mass(wide, row, t, level)
    at = first_listed(wide, row, t, level)
    if at < wide.own_start[row * wide.scale.shape[1] + t + 1] and wide.own_level[at] == level:
        mass += wide.own_mass[at]
    return mass


@kernel
def level_mass(leaves, row, slot, level):
    """Mass of a level of a categorical slot in a parameter row."""
    place = leaves.wide.place[slot]
    if place >= 0:
        return leaves.level_mass[row, place + level]
    return wide_mass(leaves.wide, row, -1 - place, level)


@kernel
def log_level(leaves, row, slot, level):
    """Log of `level_mass`."""
    place = leaves.wide.place[slot]
    if place >= 0:
        return leaves.log_level[row, place + level]
    mass = wide_mass(leaves.wide, row, -1 - place, level)
    return math.log(mass) if mass > 0.0 else -math.inf


@kernel
def levels_mass(leaves, row, slot, first, end):
    """Mass of the levels first..end-1 of a categorical slot in a parameter row."""
    total, place = 0.0, leaves.wide.place[slot]
    if place >= 0:
        for level in range(first, end):
            total += leaves.level_mass[row, place + level]
        return total
    wide, t = leaves.wide, -1 - place
    if wide.scale[row, t] > 0.0:
        for level in range(first, end):
            total += shared_mass(wide, row, t, level)
    if first < end:
        for at in range(first_listed(wide, row, t, first), first_listed(wide, row, t, end)):
            total += wide.own_mass[at]
    return total


@kernel
def add_shared_levels(wide, row, t, weight, out, start):
    """Add the weight times what a row has of all levels of wide column t by what rows share to ``out``."""
    scale, share, first = weight * wide.scale[row, t], wide.share[wide.share_row[row, t]], wide.start[t]
    size = wide.start[t + 1] - first
    for level in range(0, size, 64):
        word, end = wide.words[wide.set_at[row, t] + level // 64], min(level + 64, size)
        if word == _ALL:  # these loops become vector instructions
            for k in range(level, end):
                out[start + k] += scale * share[first + k]
        elif word != _NONE:
            for k in range(level, end):
                if (word >> np.uint64(k - level)) & _ONE:
                    out[start + k] += scale * share[first + k]


@kernel
def shared_sum(wide, row, t):
    """Sum of the shares of the levels in a row's set of wide column t."""
    share, first, total = wide.share[wide.share_row[row, t]], wide.start[t], 0.0
    size = wide.start[t + 1] - first
    for level in range(0, size, 64):
        word, end = wide.words[wide.set_at[row, t] + level // 64], min(level + 64, size)
        if word == _ALL:
            for k in range(level, end):
                total += share[first + k]
        elif word != _NONE:
            for k in range(level, end):
                if (word >> np.uint64(k - level)) & _ONE:
                    total += share[first + k]
    return total


@kernel
def add_wide(wide, row, t, weight, out, start):
    """Add the weight times the masses of all levels of wide column t to ``out`` from ``start`` on."""
    if wide.scale[row, t] > 0.0:
        add_shared_levels(wide, row, t, weight, out, start)
    at = row * wide.scale.shape[1] + t
    for k in range(wide.own_start[at], wide.own_start[at + 1]):
        out[start + wide.own_level[k]] += weight * wide.own_mass[k]


@kernel
def add_levels(leaves, row, slot, size, weight, out):
    """Add the weight times the masses of all ``size`` levels of a categorical slot to ``out``."""
    place = leaves.wide.place[slot]
    if place < 0:
        add_wide(leaves.wide, row, -1 - place, weight, out, 0)
        return
    for level in range(size):
        out[level] += weight * leaves.level_mass[row, place + level]


@entry
def fill_wide(wide, t, rows, out):
    """Add the level masses of wide column t in parameter rows (m,) to ``out`` (m, K)."""
    for i in range(rows.shape[0]):
        add_wide(wide, rows[i], t, 1.0, out[i], 0)


@entry
def mix_wide(wide, t, rows, weight, out):
    """Add the level masses of wide column t in the mixture of parameter rows (m,) by weight (m,) to ``out`` (K,)."""
    for i in range(rows.shape[0]):
        if weight[i] > 0.0:
            add_wide(wide, rows[i], t, weight[i], out, 0)


@entry
def sum_shares(wide, t, total):
    """Sums of the shares of the levels in rows' sets of wide column t, into ``total`` (R,)."""
    for row in range(total.shape[0]):
        total[row] = shared_sum(wide, row, t)
