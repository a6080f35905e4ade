"""Kernels: trees on contexts. Value trees split by entropy, ratio trees by observed over expected counts."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...runtime.compile import entry, kernel
from ...runtime.random_kernels import below, stream
from ...runtime.records import record


@record
class GrownTree(NamedTuple):
    """Nodes of one tree, parents before children, and the rows in them; arrays longer than the tree.

    feature : int32 array (M,). Number of the context that a node splits on; -1 at leaves.
    threshold : int32 array (M,)
    child : int32 array (M,). Left child; the right one follows.
    parent : int32 array (M,)
    start, stop : int64 array (M,). ``rows[start:stop]`` are the rows of the node.
    rows : int64 array (R,)
    spare : int64 array (R,). Scratch.
    """

    feature: np.ndarray
    threshold: np.ndarray
    child: np.ndarray
    parent: np.ndarray
    start: np.ndarray
    stop: np.ndarray
    rows: np.ndarray
    spare: np.ndarray


@record
class SplitLimits(NamedTuple):
    """When a node is split.

    min_rows : int. Fewest rows of a leaf.
    least_gain, gain_a_type : float. Least gain of a split, in nats over all rows of the node: the first, and the second
        for each distinct code.
    max_rows : int. Most rows that a split is chosen by; of more, a random part is taken.
    pseudo : float. Pseudo-rows that pull ratios towards those of the parent.
    """

    min_rows: int
    least_gain: float
    gain_a_type: float
    max_nodes: int
    max_rows: int
    pseudo: float


@record
class Room(NamedTuple):
    """Scratch for the search of splits by entropy.

    log_table : float64 array (max_rows + 2,). n log n.
    order : int32 array (max_rows,)
    place : int64 array (129,)
    left, right : int64 array (C,)
    """

    log_table: np.ndarray
    order: np.ndarray
    place: np.ndarray
    left: np.ndarray
    right: np.ndarray


@kernel
def _take_sample(rows, start, stop, n, state):
    """Move a random part of a node's rows, n of them, to its front."""
    for i in range(n):
        k = start + i + below(state, stop - start - i)
        r = rows[start + i]
        rows[start + i] = rows[k]
        rows[k] = r


@kernel
def _split_node(grown, node, n_nodes, values, feature, threshold):
    """Split a node: rows with a value up to the threshold go left, in their order."""
    left, right = grown.start[node], 0
    for i in range(grown.start[node], grown.stop[node]):
        r = grown.rows[i]
        if values[r] <= threshold:
            grown.rows[left] = r
            left += 1
        else:
            grown.spare[right] = r
            right += 1
    for i in range(right):
        grown.rows[left + i] = grown.spare[i]
    grown.feature[node], grown.threshold[node], grown.child[node] = feature, threshold, n_nodes
    for k in range(2):
        grown.parent[n_nodes + k] = node
        grown.feature[n_nodes + k] = -1
    grown.start[n_nodes], grown.stop[n_nodes] = grown.start[node], left
    grown.start[n_nodes + 1], grown.stop[n_nodes + 1] = left, grown.stop[node]


@kernel
def begin_tree(grown):
    """A tree of one node with all rows."""
    for r in range(grown.rows.shape[0]):
        grown.rows[r] = r
    grown.feature[0], grown.parent[0], grown.start[0], grown.stop[0] = -1, -1, 0, grown.rows.shape[0]


@entry
def grow_value_tree(values, code, grown, limits, room, seed, number):
    """Grow a tree that predicts codes (int32 (R,)) by contexts (uint8 (K, R)); the number of its nodes."""
    begin_tree(grown)
    state = stream(seed, number)
    right, log_table = room.right, room.log_table
    n_nodes, node, n_codes = 1, 0, right.shape[0]
    while node < n_nodes and n_nodes + 2 <= limits.max_nodes:
        start, stop = grown.start[node], grown.stop[node]
        n = stop - start
        if n < 2 * limits.min_rows:
            node += 1
            continue
        m = min(n, limits.max_rows)
        if m < n:
            _take_sample(grown.rows, start, stop, m, state)
        for c in range(n_codes):
            right[c] = 0
        for i in range(start, start + m):
            right[code[grown.rows[i]]] += 1
        purity, types = 0.0, 0
        for c in range(n_codes):
            purity += log_table[right[c]]
            types += 1 if right[c] > 0 else 0
        base = purity - log_table[m]
        best, best_feature, best_threshold = (limits.least_gain + limits.gain_a_type * types) * m / n, -1, -1
        fewest = max(1, limits.min_rows * m // n)
        if base < -1e-9:
            for f in range(values.shape[0]):
                gain, threshold = best_entropy_cut(values[f], code, grown.rows, start, m, fewest, purity, base, room)
                if gain > best:
                    best, best_feature, best_threshold = gain, f, threshold
        if best_feature >= 0:
            _split_node(grown, node, n_nodes, values[best_feature], best_feature, best_threshold)
            n_nodes += 2
        node += 1
    return n_nodes


@kernel
def best_entropy_cut(values, code, rows, start, m, fewest, purity, base, room):
    """Gain and threshold of the best split of m rows on one context; ``room.right`` holds the counts of their codes."""
    # Rows are put in the order of the context (a counting sort) and move from right to left one by one.
    log_table, order, place, left, right = room.log_table, room.order, room.place, room.left, room.right
    for v in range(place.shape[0]):
        place[v] = 0
    for i in range(start, start + m):
        place[values[rows[i]] + 1] += 1
    greatest = 0
    for v in range(1, place.shape[0]):
        if place[v] > 0:
            greatest = v - 1
        place[v] += place[v - 1]
    for i in range(start, start + m):
        v = values[rows[i]]
        order[place[v]] = code[rows[i]]
        place[v] += 1
    for c in range(left.shape[0]):
        left[c] = 0
    best, threshold = -1.0, -1
    purity_left, purity_right, done = 0.0, purity, 0
    for v in range(greatest):
        stop = place[v]
        if stop == done:
            continue
        for i in range(done, stop):
            c = order[i]
            a, b = left[c], right[c]
            purity_left += log_table[a + 1] - log_table[a]
            purity_right += log_table[b - 1] - log_table[b]
            left[c], right[c] = a + 1, b - 1
        done = stop
        if m - done < fewest:
            break
        if done >= fewest:
            gain = purity_left - log_table[done] + purity_right - log_table[m - done] - base
            if gain > best:
                best, threshold = gain, v
    for c in range(left.shape[0]):
        right[c] += left[c]
    return best, threshold


@entry
def grow_ratio_tree(values, observed, expected, grown, limits, ratio, counts, sums, total, seed, number):
    """Grow a tree of ratios of observed to expected classes; the number of its nodes. ``values`` are contexts (K, R),
    ``observed`` the class of each cell (R,), ``expected`` the probabilities of the classes (R, C). ``ratio`` (M, C)
    receives the ratios of every node; ``counts``, ``sums`` (128, C) and ``total`` (4, C) are scratch."""
    # A split gains sum_children sum_c O_c log(O_c / E_c) less the same of the node: the log-likelihood of one step of
    # iterative scaling in every child. Ratios are relative to the parent's, r = r_parent (O + a) / (r_parent E + a).
    begin_tree(grown)
    state = stream(seed, number)
    n_nodes, node, n_classes = 1, 0, expected.shape[1]
    while node < n_nodes:
        start, stop = grown.start[node], grown.stop[node]
        n = stop - start
        count_classes(observed, expected, grown.rows, start, stop, total)
        parent = grown.parent[node]
        for c in range(n_classes):
            above = ratio[parent, c] if parent >= 0 else 1.0
            ratio[node, c] = above * (total[0, c] + limits.pseudo) / (above * total[1, c] + limits.pseudo)
        if n < 2 * limits.min_rows or n_nodes + 2 > limits.max_nodes:
            node += 1
            continue
        m = min(n, limits.max_rows)
        if m < n:
            _take_sample(grown.rows, start, stop, m, state)
            count_classes(observed, expected, grown.rows, start, start + m, total)
        base, types = _ratio_divergence(total[0], total[1]), 0
        for c in range(n_classes):
            types += 1 if total[0, c] > 0.0 else 0
        best, best_feature, best_threshold = (limits.least_gain + limits.gain_a_type * types) * m / n, -1, -1
        fewest = max(1, limits.min_rows * m // n)
        for f in range(values.shape[0]):
            gain, threshold = best_ratio_cut(
                values[f], observed, expected, grown.rows, start, m, fewest, base, counts, sums, total
            )
            if gain > best:
                best, best_feature, best_threshold = gain, f, threshold
        if best_feature >= 0:
            _split_node(grown, node, n_nodes, values[best_feature], best_feature, best_threshold)
            n_nodes += 2
        node += 1
    return n_nodes


@kernel
def count_classes(observed, expected, rows, start, stop, total):
    """Observed and expected rows of each class, into ``total[0]`` and ``total[1]``."""
    n_classes = expected.shape[1]
    for c in range(n_classes):
        total[0, c], total[1, c] = 0.0, 0.0
    for i in range(start, stop):
        r = rows[i]
        total[0, observed[r]] += 1.0
        for c in range(n_classes):
            total[1, c] += expected[r, c]


@kernel
def _ratio_divergence(observed, expected):
    """sum O log(O / E)."""
    found = 0.0
    for c in range(observed.shape[0]):
        if observed[c] > 0.0:
            found += observed[c] * math.log(observed[c] / max(expected[c], 1e-9))
    return found


@kernel
def best_ratio_cut(values, observed, expected, rows, start, m, fewest, base, counts, sums, total):
    """Gain and threshold of the best split of m rows on one context."""
    n_classes = expected.shape[1]
    least, greatest = 127, 0
    for i in range(start, start + m):
        v = values[rows[i]]
        least, greatest = min(least, v), max(greatest, v)
    if least == greatest:
        return -1.0, -1
    for v in range(least, greatest + 1):
        for c in range(n_classes):
            counts[v, c], sums[v, c] = 0.0, 0.0
    for i in range(start, start + m):
        r = rows[i]
        v = values[r]
        counts[v, observed[r]] += 1.0
        for c in range(n_classes):
            sums[v, c] += expected[r, c]
    for c in range(n_classes):
        total[2, c], total[3, c] = 0.0, 0.0
    best, threshold, done = -1.0, -1, 0.0
    for v in range(least, greatest):
        here = 0.0
        for c in range(n_classes):
            here += counts[v, c]
            total[2, c] += counts[v, c]
            total[3, c] += sums[v, c]
        if here == 0.0:
            continue
        done += here
        if m - done < fewest:
            break
        if done >= fewest:
            gain = _ratio_divergence(total[2], total[3]) - base
            for c in range(n_classes):
                left = total[0, c] - total[2, c]
                if left > 0.0:
                    gain += left * math.log(left / max(total[1, c] - total[3, c], 1e-9))
            if gain > best:
                best, threshold = gain, v
    return best, threshold


@entry
def smooth_values(grown, n_nodes, code, is_number, near, far, marginal, count, table, weights):
    """Distribution of the codes in every node, pulled towards that of its parent, into ``table`` (M, C)."""
    # With n rows and t distinct codes in the node,
    #
    #     p = (counts + near t * kernel + (far t + 1/2) p_parent) / (n + near t + far t + 1/2)
    #
    # where ``kernel`` are the node's counts of a number, smoothed over neighbouring codes relative to the marginal (a
    # normal kernel of Silverman's width); codes without an order have none. Witten and Bell (1991) smooth texts by the
    # number of distinct words. Because of the 1/2, no code of the marginal has probability 0, also where ``far`` is 0.
    # ``count`` (3, C) and ``weights`` (C + 1,) are scratch.
    n_codes = marginal.shape[0]
    for node in range(n_nodes):
        n = float(grown.stop[node] - grown.start[node])
        for c in range(n_codes):
            count[0, c], count[1, c] = 0.0, 0.0
        for i in range(grown.start[node], grown.stop[node]):
            count[0, code[grown.rows[i]]] += 1.0
        types, known = 0.0, n - count[0, 0]
        for c in range(n_codes):
            types += 1.0 if count[0, c] > 0.0 else 0.0
        own = 0.0
        if is_number and near > 0.0 and known > 1.0:
            own = near * types
            spread_over_neighbours(count, known, n, marginal, weights)
        back = far * types + 0.5
        parent = grown.parent[node]
        for c in range(n_codes):
            above = table[parent, c] if parent >= 0 else marginal[c]
            table[node, c] = (count[0, c] + own * count[1, c] + back * above) / (n + own + back)


@kernel
def spread_over_neighbours(count, known, n, marginal, weights):
    """Smooth ``count[0]`` of codes 1, 2, ... over neighbours into the shares ``count[1]``, relative to the marginal."""
    n_codes = count.shape[1]
    mean, square = 0.0, 0.0
    for c in range(1, n_codes):
        mean += count[0, c] * c
        square += count[0, c] * c * c
    mean /= known
    spread = math.sqrt(max(square / known - mean * mean, 0.05))
    width = max(0.35, 1.06 * spread * known**-0.2)
    reach = min(int(3.0 * width) + 1, n_codes)
    for k in range(reach + 1):
        weights[k] = math.exp(-0.5 * (k / width) ** 2)
    total = 0.0
    for c in range(1, n_codes):
        share = count[0, c] / max(marginal[c], 1e-7)
        if share == 0.0:
            continue
        for k in range(max(1, c - reach), min(n_codes, c + reach + 1)):
            count[1, k] += weights[abs(k - c)] * share
    for c in range(1, n_codes):
        count[1, c] *= max(marginal[c], 1e-7)
        total += count[1, c]
    for c in range(1, n_codes):
        count[1, c] *= known / (n * total)
    count[1, 0] = count[0, 0] / n
