"""Kernels of expectation maximisation: expected counts of rows, and tables from counts."""

# Tables of all nodes lie one after the other in flat float32 arrays (`em.Nodes`, `em.Tables`). The transition table of
# node k has the shape (states of the parent, states); its cell table has the shape (codes + 1, states). The last row is
# that of a missing cell: ones in a table of probabilities, as a missing cell says nothing of its state.

from __future__ import annotations

import math

import numpy as np

from ...runtime.compile import entry, kernel
from .constants import FIXED

ONE, ZERO = np.float32(1.0), np.float32(0.0)
LEAST_MESSAGE = np.float32(1e-9)
"""Floor of a message, so that it can be divided out of a product."""
NEGLIGIBLE = np.float32(1e-15)
"""Shares below it become 0: products of smaller ones are denormal numbers, which take a hundred times as long."""
LEAST_TOTAL = np.float32(1e-30)
"""Floor of the sum of a row that no state can have."""
_LEAST_ROWS, _NEAR_VARIANCE = FIXED.least_rows, FIXED.near_variance


@kernel
def table_of(flat, first, last, width):
    """A part of a flat array as a table of this width."""
    return flat[first:last].reshape((last - first) // width, width)


@kernel
def transition_table(nodes, flat, k):
    """The transition table of node k, (H_parent, H_k)."""
    return table_of(flat, nodes.first_transition[k], nodes.first_transition[k + 1], nodes.n_states[k])


@kernel
def cell_table(nodes, flat, k):
    """The cell table of node k, (K + 1, H_k)."""
    return table_of(flat, nodes.first_cell[k], nodes.first_cell[k + 1], nodes.n_states[k])


@kernel
def state_messages(nodes, flat, k, n):
    """The part of node k of an array over the states of all nodes for n rows, (n, H_k)."""
    return table_of(flat, nodes.first_state[k] * n, nodes.first_state[k + 1] * n, nodes.n_states[k])


@kernel
def parent_messages(nodes, flat, k, n):
    """The message of node k to its parent, (n, H_parent)."""
    width = nodes.n_states[nodes.parent[k]]
    return table_of(flat, nodes.first_message[k] * n, nodes.first_message[k + 1] * n, width)


@kernel
def cell_messages(nodes, flat, k):
    """The messages of the cells of node k to its parent, (K + 1, H_parent)."""
    return table_of(flat, nodes.first_sent[k], nodes.first_sent[k + 1], nodes.n_states[nodes.parent[k]])


# Each use of `np.dot` is compiled anew: one of each kind.


@kernel
def multiply(a, b, out):
    """Write the product a b."""
    np.dot(a, b, out)


@kernel
def multiply_transposed(a, b, out):
    """Write the product a b'."""
    np.dot(a, b.T, out)


@kernel
def transposed_multiply(a, b, out):
    """Write the product a' b."""
    np.dot(a.T, b, out)


@kernel
def total(x):
    """Sum of a vector: eight sums side by side, as one alone waits for each addition."""
    a = b = c = d = e = f = g = h = ZERO
    end = len(x) - len(x) % 8
    for i in range(0, end, 8):
        a += x[i]
        b += x[i + 1]
        c += x[i + 2]
        d += x[i + 3]
        e += x[i + 4]
        f += x[i + 5]
        g += x[i + 6]
        h += x[i + 7]
    result = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for i in range(end, len(x)):
        result += x[i]
    return result


@kernel
def total_of_squares(x):
    """Sum of the squares of a vector, as `total`."""
    a = b = c = d = e = f = g = h = ZERO
    end = len(x) - len(x) % 8
    for i in range(0, end, 8):
        a += x[i] * x[i]
        b += x[i + 1] * x[i + 1]
        c += x[i + 2] * x[i + 2]
        d += x[i + 3] * x[i + 3]
        e += x[i + 4] * x[i + 4]
        f += x[i + 5] * x[i + 5]
        g += x[i + 6] * x[i + 6]
        h += x[i + 7] * x[i + 7]
    result = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for i in range(end, len(x)):
        result += x[i] * x[i]
    return result


# ---- Expectation: messages up and down the tree for a batch of rows.


@kernel
def rescale(x, log_probability):
    """Divide each row of x by its sum, and add the logarithm of the sum to the row's log-probability."""
    for r in range(len(x)):
        row = x[r]
        mass = max(total(row), LEAST_TOTAL)
        log_probability[r] += math.log(mass)
        factor = ONE / mass
        for s in range(len(row)):
            share = row[s] * factor
            row[s] = share if share > NEGLIGIBLE else ZERO


@kernel
def multiply_cells(x, table, code, rows):
    """Multiply each row of x by the row of the table that its cell has."""
    for r in range(len(rows)):
        row, of_cell = x[r], table[code[rows[r]]]
        for s in range(len(row)):
            row[s] *= of_cell[s]


@kernel
def raise_to_least(x):
    """Raise the entries of messages to `LEAST_MESSAGE`."""
    for r in range(len(x)):
        row = x[r]
        for s in range(len(row)):
            row[s] = max(row[s], LEAST_MESSAGE)


@kernel
def is_table_shorter(nodes, k, n):
    """Whether node k is a leaf of the tree with fewer cells than n rows: its messages are then those of its cells."""
    return k > 0 and nodes.n_children[k] == 0 and nodes.n_cells[k] <= n


@kernel
def pass_up(nodes, tables, codes, rows, inside, message, of_cell, log_probability):
    """Messages from the leaves to the root."""
    # ``inside`` becomes p(evidence at and below a node | its state), each row divided by its sum. ``message`` is the
    # same given the state of the parent, and ``of_cell`` that of leaves of the tree, by cell.
    n = len(rows)
    inside[:] = ONE
    for k in range(len(nodes.parent) - 1, -1, -1):
        table, code = cell_table(nodes, tables.cell, k), codes[nodes.column[k]]
        transition = transition_table(nodes, tables.transition, k)
        if is_table_shorter(nodes, k, n):
            above = state_messages(nodes, inside, nodes.parent[k], n)
            sent = cell_messages(nodes, of_cell, k)
            multiply_transposed(table, transition, sent)
            raise_to_least(sent)
            multiply_cells(above, sent, code, rows)
            rescale(above, log_probability)
            continue
        here = state_messages(nodes, inside, k, n)
        multiply_cells(here, table, code, rows)
        rescale(here, log_probability)
        if k > 0:
            above, sent = state_messages(nodes, inside, nodes.parent[k], n), parent_messages(nodes, message, k, n)
            multiply_transposed(here, transition, sent)
            raise_to_least(sent)
            for r in range(n):
                row, factor = above[r], sent[r]
                for s in range(len(row)):
                    row[s] *= factor[s]
            rescale(above, log_probability)
    root, start = state_messages(nodes, inside, 0, n), transition_table(nodes, tables.transition, 0)[0]
    for r in range(n):
        row = root[r]
        for s in range(len(row)):
            row[s] *= start[s]
    rescale(root, log_probability)


@kernel
def multiply_into(count, table, product):
    """Write the product of two tables."""
    for i in range(len(table)):
        to, x, y = count[i], table[i], product[i]
        for s in range(len(x)):
            to[s] = x[s] * y[s]


@kernel
def add_to_cells(count, x, code, rows):
    """Add each row of x to the row of its cell."""
    count[:] = ZERO
    for r in range(len(rows)):
        to, row = count[code[rows[r]]], x[r]
        for s in range(len(row)):
            to[s] += row[s]


@kernel
def pass_down(nodes, tables, codes, rows, weight, inside, message, of_cell, counts):
    """Posteriors of the states from the root to the leaves, in place of ``inside``; expected counts of all nodes."""
    # The posterior of a parent divided by the message of a child is what all others say of the parent's state.
    n, most = len(rows), nodes.most_states
    square, long = np.empty(most * most, np.float32), np.empty(most * n, np.float32)
    root, start = state_messages(nodes, inside, 0, n), transition_table(nodes, counts.transition, 0)[0]
    start[:] = ZERO
    for r in range(n):
        row, w = root[r], weight[rows[r]]
        for s in range(len(row)):
            row[s] *= w
            start[s] += row[s]
    for k in range(len(nodes.parent)):
        table, code = cell_table(nodes, tables.cell, k), codes[nodes.column[k]]
        count = cell_table(nodes, counts.cell, k)
        if k == 0:
            add_to_cells(count, root, code, rows)
            continue
        transition = transition_table(nodes, tables.transition, k)
        pairs = transition_table(nodes, counts.transition, k)
        above = state_messages(nodes, inside, nodes.parent[k], n)
        product = table_of(square, 0, pairs.size, pairs.shape[1])
        if is_table_shorter(nodes, k, n):
            others = table_of(long, 0, len(table) * len(transition), len(transition))
            add_to_cells(others, above, code, rows)
            sent = cell_messages(nodes, of_cell, k)
            for c in range(len(others)):
                row, factor = others[c], sent[c]
                for s in range(len(row)):
                    row[s] /= factor[s]
            transposed_multiply(others, table, product)
            multiply_into(pairs, transition, product)
            multiply(others, transition, count)
            multiply_into(count, table, count)
            continue
        here, others = state_messages(nodes, inside, k, n), parent_messages(nodes, message, k, n)
        for r in range(n):
            row, posterior = others[r], above[r]
            for s in range(len(row)):
                row[s] = posterior[s] / row[s]
        transposed_multiply(others, here, product)
        multiply_into(pairs, transition, product)
        outside = table_of(long, 0, here.size, here.shape[1])
        multiply(others, transition, outside)
        for r in range(n):
            row, factor = here[r], outside[r]
            for s in range(len(row)):
                share = row[s] * factor[s]
                row[s] = share if share > NEGLIGIBLE else ZERO
        add_to_cells(count, here, code, rows)


@entry
def expect(nodes, tables, codes, rows, weight, counts, log_probability):
    """Log-probabilities (n,) of some rows, and their expected counts where ``counts`` has room for them."""
    # codes : int32 array (d, N). Codes of all rows.
    # rows : int64 array (n,). The rows that are meant.
    # counts : `em.Tables`. Is written; empty arrays where no counts are wanted.
    # log_probability : float64 array (n,). Is written.
    n = len(rows)
    inside = np.empty(nodes.first_state[-1] * n, np.float32)
    message = np.empty(nodes.first_message[-1] * n, np.float32)
    of_cell = np.empty(nodes.first_sent[-1], np.float32)
    log_probability[:] = 0.0
    pass_up(nodes, tables, codes, rows, inside, message, of_cell, log_probability)
    if len(counts.cell) > 0:
        pass_down(nodes, tables, codes, rows, weight, inside, message, of_cell, counts)


# ---- Maximisation: tables from counts, and what is added to these.


@kernel
def other_ways(mass, square):
    """Effective number of outcomes (the inverse of Simpson's index) less one."""
    return max(mass * (mass / (square + np.float32(1e-18))) - ONE, ZERO)


@kernel
def like_states(count, cells, like):
    """Write where rows of each state would go, were only codes known: shares (H_parent, H_k) of a child's states."""
    # ``count`` (H_parent, H_k) and ``cells`` (K + 1, H_k) are counts of rows. A state's rows have its child's states
    # with the probability of these given the rows' codes.
    H = cells.shape[1]
    given = np.empty((len(cells) - 1, H), np.float32)  # p(code | child's state)
    mass = np.full(H, np.float32(1e-6))
    for c in range(len(given)):
        for t in range(H):
            mass[t] += cells[c, t]
    for c in range(len(given)):
        for t in range(H):
            given[c, t] = cells[c, t] / mass[t]
    of_code = np.empty((len(count), len(given)), np.float32)
    multiply_transposed(count, given, of_code)
    for c in range(len(given)):
        scale = ONE / (total(cells[c]) + np.float32(1e-6))
        for s in range(len(count)):
            of_code[s, c] *= scale
    multiply(of_code, given, like)
    for s in range(len(count)):
        row = like[s]
        for t in range(H):
            row[t] *= mass[t]
        scale = ONE / (total(row) + LEAST_TOTAL)
        for t in range(H):
            row[t] *= scale


@kernel
def fill_transition(count, near, like, smoothing, share, table):
    """Write the transition table of counts (H_parent, H_k); ``share`` (H_k,) is scratch."""
    # What `near_states` wrote of a number, or else `like_states`, says where further rows of each state go.
    share[:] = np.float32(1e-3)
    for i in range(len(count)):
        row = count[i]
        for s in range(len(row)):
            share[s] += row[s]
    rows_added = smoothing.extra + (_LEAST_ROWS if smoothing.transition > 0.0 else 0.0)
    added = np.float32(rows_added) / total(share)
    for i in range(len(count)):
        row, to = count[i], table[i]
        if len(near) > 0:
            at, rows = near[i], np.float32(smoothing.near)
        else:
            at, rows = like[i], np.float32(smoothing.transition)
            rows *= other_ways(total(row) + np.float32(1e-9), total_of_squares(row))
        for s in range(len(row)):
            to[s] = row[s] + added * share[s] + rows * at[s]
        scale = ONE / total(to)
        for s in range(len(row)):
            to[s] *= scale


@kernel
def fill_cells(count, marginal, normal, share_known, smoothing, table):
    """Write the cell table of counts (K + 1, H): p(code | state), and ones for a missing cell."""
    # Missing cells are not counted: the codes of a state are those of its known cells. ``normal`` is what
    # `state_normals` wrote, or empty; with it, further codes are near the others.
    K, H = len(count) - 1, count.shape[1]
    known, square, sums = np.zeros(H, np.float32), np.zeros(H, np.float32), np.zeros(H, np.float32)
    for c in range(K):
        row = count[c]
        for s in range(H):
            known[s] += row[s]
            square[s] += row[s] * row[s]
    each = ZERO if len(normal) > 0 else np.float32(smoothing.marginal)
    least = np.float32(_LEAST_ROWS if smoothing.marginal > 0.0 else 0.0)
    by_normal = np.float32(smoothing.normal) * share_known
    by_marginal = np.empty(H, np.float32)
    for s in range(H):
        by_marginal[s] = each * other_ways(known[s] + np.float32(1e-9), square[s]) + least
    for c in range(K):
        row, to, p = count[c], table[c], marginal[c]
        if len(normal) > 0:
            at = normal[c]
            for s in range(H):
                to[s] = row[s] + by_marginal[s] * p + by_normal * at[s]
                sums[s] += to[s]
        else:
            for s in range(H):
                to[s] = row[s] + by_marginal[s] * p
                sums[s] += to[s]
    for s in range(H):
        sums[s] = ONE / (sums[s] + LEAST_TOTAL)
    for c in range(K):
        to = table[c]
        for s in range(H):
            to[s] *= sums[s]
    table[K] = ONE


@entry
def maximise(nodes, first, last, columns, counts, normals, smoothing, tables):
    """Write the tables of nodes ``first`` .. ``last - 1`` from their counts."""
    # counts, normals, tables : `em.Tables`. Counts of rows; what `fit_normals` wrote (empty arrays where nothing is
    #     wanted of it); the tables to write.
    share = np.empty(nodes.most_states, np.float32)
    nothing = np.empty((0, 0), np.float32)
    for k in range(first, last):
        j = nodes.column[k]
        smooth = columns.is_smooth[j]
        near = transition_table(nodes, normals.transition, k) if smooth and len(normals.transition) and k else nothing
        normal = cell_table(nodes, normals.cell, k) if smooth and len(normals.cell) > 0 else nothing
        count = transition_table(nodes, counts.transition, k)
        table = transition_table(nodes, tables.transition, k)
        cells = cell_table(nodes, counts.cell, k)
        like = nothing
        if len(near) == 0:
            like = np.empty(count.shape, np.float32)
            like_states(count, cells, like)
        fill_transition(count, near, like, smoothing, share[: nodes.n_states[k]], table)
        marginal = columns.marginal[columns.first[j] : columns.first[j + 1]]
        fill_cells(cells, marginal, normal, columns.known[j], smoothing, cell_table(nodes, tables.cell, k))


@kernel
def state_normals(count, light, score, spread, edge, normal):
    """Write each state's pseudo-row over the codes of a number: q in all, the share of its rows off point masses."""
    # A part q of it is a normal, fitted to the normal scores of counts (K + 1, H), as little is known of states of few
    # rows. The other part are the state's own point masses, whose share thus stays 1 - q.
    # Each state has a row more, of the variance within states. With four times this variance, normals are so wide that
    # 128 states of 1,000 rows and two columns lose a tenth of the dependence.
    K, H = len(light), count.shape[1]
    everything, rows, mean, square, inside = np.zeros(H), np.zeros(H), np.zeros(H), np.zeros(H), np.zeros(H)
    for c in range(K):
        row = count[c]
        for s in range(H):
            everything[s] += row[s]
        if light[c]:
            for s in range(H):
                rows[s] += row[s]
                mean[s] += row[s] * score[c]
                square[s] += row[s] * score[c] ** 2
                inside[s] += row[s] * spread[c]
    variance, all_rows, within = np.zeros(H), 0.0, 0.0
    for s in range(H):
        everything[s] += 1e-3
        rows[s] += 1e-3
        mean[s] /= rows[s]
        variance[s] = max(square[s] / rows[s] - mean[s] ** 2, 0.0) + inside[s] / rows[s]
        all_rows += rows[s]
        within += rows[s] * variance[s]
    wide = within / all_rows
    scale, below, mass = np.zeros(H), np.zeros(H), np.zeros(H)
    for s in range(H):
        scale[s] = math.sqrt(0.5 / ((rows[s] * variance[s] + wide) / (rows[s] + 1.0) + 1e-4))
    for c in range(K):
        row = normal[c]
        for s in range(H):
            now = 0.5 * math.erfc((mean[s] - edge[c + 1]) * scale[s]) if c < K - 1 else 1.0
            row[s] = now - below[s] if light[c] else ZERO
            mass[s] += row[s]
            below[s] = now
    for c in range(K):
        row = normal[c]
        for s in range(H):
            share = rows[s] / everything[s]
            row[s] = share * (row[s] * share / (mass[s] + 1e-9) if light[c] else count[c, s] / everything[s])


@kernel
def near_states(count, cells, score, near_variance, near):
    """Write where each state's rows would go, were the child's column normal in it: shares of the child's states."""
    # A child's state lies where the mean of its rows' normal scores is. The states' shares are multiplied by the ratio
    # of the state's normal over these places to that of all rows. Each state has a row more, of the variance within
    # states, but not more than that of all rows.
    Hp, Hk = count.shape
    place, mass, share, log = np.zeros(Hk), np.zeros(Hk), np.zeros(Hk), np.zeros(Hk)
    for c in range(len(score)):
        for t in range(Hk):
            place[t] += cells[c, t] * score[c]
            mass[t] += cells[c, t]
    for s in range(Hp):
        for t in range(Hk):
            share[t] += count[s, t]
    everything, middle, spread = 0.0, 0.0, 1e-6
    for t in range(Hk):
        place[t] /= mass[t] + 1e-3
        share[t] += 1e-3
        everything += share[t]
        middle += share[t] * place[t]
    middle /= everything
    for t in range(Hk):
        share[t] /= everything
        spread += share[t] * (place[t] - middle) ** 2
    rows, mean, variance = np.zeros(Hp), np.zeros(Hp), np.zeros(Hp)
    all_rows, within = 0.0, 0.0
    for s in range(Hp):
        rows[s] = 1e-3
        for t in range(Hk):
            rows[s] += count[s, t]
            mean[s] += count[s, t] * place[t]
            variance[s] += count[s, t] * place[t] ** 2
        mean[s] /= rows[s]
        variance[s] = max(variance[s] / rows[s] - mean[s] ** 2, 0.0)
        all_rows += rows[s]
        within += rows[s] * variance[s]
    wide = min(within / all_rows, spread)
    for s in range(Hp):
        of_state = (rows[s] * variance[s] + wide) / (rows[s] + 1.0) + near_variance * spread
        highest, mass_here = -math.inf, 0.0
        for t in range(Hk):
            log[t] = 0.5 * ((place[t] - middle) ** 2 / spread - (place[t] - mean[s]) ** 2 / of_state)
            highest = max(highest, log[t])
        for t in range(Hk):
            log[t] = share[t] * math.exp(log[t] - highest)
            mass_here += log[t]
        for t in range(Hk):
            near[s, t] = log[t] / mass_here


@entry
def fit_normals(nodes, first, last, columns, counts, smoothing, normals):
    """Write the normals of states over codes and over the child's states, for nodes of smooth numbers."""
    for k in range(first, last):
        j = nodes.column[k]
        if not columns.is_smooth[j]:
            continue
        part = slice(columns.first[j], columns.first[j + 1])
        count, score = cell_table(nodes, counts.cell, k), columns.score[part]
        if len(normals.cell) > 0:
            edge = columns.edge[columns.first[j] + j : columns.first[j + 1] + j + 1]
            light, spread = columns.is_light[part], columns.spread[part]
            state_normals(count, light, score, spread, edge, cell_table(nodes, normals.cell, k))
        if len(normals.transition) > 0 and k > 0:
            pairs = transition_table(nodes, counts.transition, k)
            near = transition_table(nodes, normals.transition, k)
            near_states(pairs, count, score, _NEAR_VARIANCE, near)


@entry
def move(counts, news, keep, gain):
    """Move running counts towards those of a batch: keep * counts + gain * news, in place."""
    for i in range(len(counts)):
        counts[i] = keep * counts[i] + gain * news[i]
