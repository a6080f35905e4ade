"""Kernels: the point of greatest density of each leaf that a row of evidence can reach."""

from __future__ import annotations

import math

import numpy as np

from ...forest.posterior.circuit_kernels import has_circuit
from ...forest.posterior.reach_kernels import reachable
from ...forest.posterior.region_kernels import cell_region
from ...ground.compile import entry, kernel
from ...leaves.levels.level_kernels import log_level
from ...leaves.one_slot.grid_kernels import cell_centre
from ...leaves.one_slot.slot_kernels import cut_to_support, find_atom, has_atom, value_log_density
from ...leaves.table import FACTORS, SUM, UNIFORM


@kernel
def run_mode(columns, leaves, l, s, u, v):  # noqa: E741
    """Where the continuous part is greatest within the run (u, v], which has a part of the support; next to its end."""
    step, a = columns.step[s], leaves.a[l, s]
    if leaves.family[l, s] == UNIFORM:
        a = u + 0.5 * (v - u)  # anywhere
    if step > 0.0:
        origin = columns.origin[s]
        first = origin + np.floor((u - origin) / step + 1.0) * step if u > -math.inf else u
        last = origin + np.ceil((v - origin) / step - 1.0) * step if v < math.inf else v
        return min(max(cell_centre(step, origin, a), first), last)
    x = min(max(a, np.nextafter(u, math.inf)), v)
    if find_atom(columns, s, x) >= 0:  # there the density of the rest does not count
        x = np.nextafter(x, math.inf) if x < v else np.nextafter(x, -math.inf)
    return x


@kernel
def slot_mode(columns, leaves, evidence, l, s, region, lo, hi):  # noqa: E741
    """The value of slot s of greatest log density in parameter row l within the region and (lo, hi]; that density."""
    best, mode = -math.inf, math.nan
    first, end = (0, 1) if region < 0 else (evidence.run_start[region], evidence.run_start[region + 1])
    for run in range(first, end):
        u = lo if region < 0 else max(lo, evidence.run_lo[run])
        v = hi if region < 0 else min(hi, evidence.run_hi[run])
        u, v = cut_to_support(columns, leaves, l, s, u, v)
        if u < v:
            x = run_mode(columns, leaves, l, s, u, v)
            if columns.step[s] == 0.0 and not u < x <= v:  # nothing but an atom is there
                continue
            density = value_log_density(columns, leaves, l, s, x, find_atom(columns, s, x))
            if density > best:
                best, mode = density, x
    start = columns.atom_start[s]
    for k in range(columns.atom_start[s + 1] - start):
        x = columns.atom_value[start + k]
        if lo < x <= hi and has_atom(evidence, region, k):
            density = value_log_density(columns, leaves, l, s, x, np.int64(k))
            if density > best:
                best, mode = density, x
    return mode, best


@kernel
def cell_density(columns, leaves, j, l, x):  # noqa: E741
    """Log density of the value x of column j in parameter row l."""
    slot = columns.slot[j]
    if columns.is_categorical[j]:
        return log_level(leaves, l, slot, int(x))
    return value_log_density(columns, leaves, l, slot, x, find_atom(columns, slot, x))


@kernel
def cell_mode(columns, leaves, evidence, box, j, l):  # noqa: E741
    """The value of column j of greatest log density in parameter row l within evidence and box, and that density."""
    x, slot = evidence.value[0, j], columns.slot[j]
    if x == x:
        return x, cell_density(columns, leaves, j, l, x)
    if not columns.is_categorical[j]:
        region = cell_region(evidence, np.int64(0), j)
        return slot_mode(columns, leaves, evidence, l, slot, region, box.lo[slot], box.hi[slot])
    best, mode = -math.inf, math.nan
    first = columns.level_start[slot]
    for k in range(columns.level_start[slot + 1] - first):
        if box.allowed[first + k]:
            density = log_level(leaves, l, slot, k)
            if density > best:
                best, mode = density, float(k)
    return mode, best


@kernel
def factors_mode(problem, box, q, x):
    """Write the likeliest values of the columns of the FACTORS node q into x; return its log density there."""
    columns, leaves, evidence = problem.columns, problem.leaves, problem.evidence
    total, of, k = 0.0, leaves.node_row[q], leaves.node_scope[q]
    for i in range(leaves.scope_start[k], leaves.scope_start[k + 1]):
        j = np.int64(leaves.scope_column[i])
        x[j], density = cell_mode(columns, leaves, evidence, box, j, of)
        total += density
    return total


@kernel
def bound_circuit(problem, box, leaf, x):
    """Write what each node of a circuit leaf reaches in the box to ``greatest``, and what it never passes to ``bound``.

    ``greatest`` follows, in sums, the child that is greatest when weighed; x is scratch.
    """
    leaves, greatest, bound = problem.leaves, problem.greatest, problem.bound
    first, end, kind = leaves.node_start[leaf], leaves.node_end, leaves.node_kind
    for q in range(np.int64(leaves.node_start[leaf + 1]) - 1, first - 1, -1):
        best, total = (-math.inf, -math.inf) if kind[q] == SUM else (0.0, 0.0)
        if kind[q] == FACTORS:
            best = factors_mode(problem, box, q, x)
            total = best
        child = q + 1
        while child < end[q]:
            if kind[q] == SUM:
                best = max(best, leaves.node_log_weight[child] + greatest[child])
                total = np.logaddexp(total, leaves.node_log_weight[child] + bound[child])
            else:
                best += greatest[child]
                total += bound[child]
            child = end[child]
        greatest[q], bound[q], problem.active[q] = best, total, q == first


@kernel
def circuit_mode(problem, box, leaf, x):
    """Write a likely point of a circuit leaf, by its likeliest parts; an upper bound of the leaf's log density."""
    bound_circuit(problem, box, leaf, x)
    leaves, greatest, active = problem.leaves, problem.greatest, problem.active
    first, end, kind = leaves.node_start[leaf], leaves.node_end, leaves.node_kind
    for q in range(np.int64(first), leaves.node_start[leaf + 1]):
        if not active[q]:
            continue
        if kind[q] == FACTORS:
            factors_mode(problem, box, q, x)
        child = q + 1
        while child < end[q]:
            if kind[q] != SUM:
                active[child] = 1
            elif leaves.node_log_weight[child] + greatest[child] == greatest[q]:
                active[child] = 1
                break
            child = end[child]
    return problem.bound[first]


@kernel
def leaf_mode(problem, box, leaf, x):
    """Write the point of greatest density of a leaf in the box into x; return its log density, weight included.

    Of circuit leaves the point is a likely one, and the density an upper bound.
    """
    columns, leaves, evidence = problem.columns, problem.leaves, problem.evidence
    total = leaves.log_weight[leaf]
    if has_circuit(leaves, leaf):
        return total + circuit_mode(problem, box, leaf, x)
    for j in range(x.shape[0]):
        x[j], log_density = cell_mode(columns, leaves, evidence, box, j, leaf)
        total += log_density
    return total


@entry
def leaf_modes(problem, box):
    """Leaves with density, int32 (n,); a point of greatest density of each, (n, d); the log density there, (n,).

    Of circuit leaves the point is a likely one, and the density an upper bound.
    """
    leaf = problem.reached
    n = reachable(problem.columns, problem.trees, problem.evidence, np.int64(0), problem.stack, leaf)
    point, log_bound = np.empty((n, problem.point.shape[0]), np.float64), np.empty(n, np.float64)
    kept = 0
    for i in range(n):
        log_bound[kept] = leaf_mode(problem, box, leaf[i], point[kept])
        if log_bound[kept] > -math.inf:
            leaf[kept] = leaf[i]
            kept += 1
    return leaf[:kept].copy(), point[:kept].copy(), log_bound[:kept].copy()


@entry
def leaves_of_rows(columns, trees, evidence, stack):
    """The leaf of each tree that each complete row is in, int32 (n, T); ``stack`` is scratch of `reachable`."""
    result = np.empty((evidence.value.shape[0], trees.root.shape[0]), np.int32)
    for i in range(result.shape[0]):
        reachable(columns, trees, evidence, i, stack, result[i])
    return result
