"""Operations and bytes of hot paths against what one core of this machine can do.

A path can be no faster than its operations at the peak of matrix products, nor than its bytes at the bandwidth of
memory. The greater of these times, as a share of the measured time, says what is left to gain.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _common import arguments, finish, median_seconds, progress, read

from jointforest.data.discretization.discretizer import code_table
from jointforest.data.discretization.learn import learn_scale
from jointforest.learners.base import read_table
from jointforest.learners.hidden_tree import em, em_kernels
from jointforest.learners.hidden_tree.learn import LearnSettings, learn_tree
from jointforest.learners.hidden_tree.structure import CodeTable, code_columns
from jointforest.models.hidden_tree.messages import log_probability
from jointforest.models.hidden_tree.tables import TreeTables
from jointforest.runtime.threads import one_blas_thread


class HotPath(NamedTuple):
    """A path, with its floating-point operations and the bytes that it reads and writes at least."""

    name: str
    work: Callable[[], Any]
    operations: float
    bytes: float


def peaks(quick: bool) -> tuple[float, float]:
    """Operations per second of float32 matrix products, and bytes per second of a copy that no cache holds."""
    size, length = (512, 1 << 22) if quick else (2_048, 1 << 26)
    square = np.random.default_rng(0).random((size, size), np.float32)
    source, target = np.ones(length, np.float32), np.empty(length, np.float32)
    product = median_seconds(lambda: square @ square, 5)
    copy = median_seconds(lambda: np.copyto(target, source), 5)
    return 2.0 * size**3 / product, 8.0 * length / copy


def hidden_tree_paths(data: Path, n_states: int) -> list[HotPath]:
    """Learning and densities of a hidden tree of Adult."""
    rows = read_table(read(data, "adult_train"), None)
    scales = [learn_scale(column, rows.X[:, j], None, 128) for j, column in enumerate(rows.schema.columns)]
    codes = code_table(scales, rows.X, 1)
    is_ordered = np.array([not column.is_categorical for column in rows.schema.columns])
    table = CodeTable(codes, np.array([scale.n_codes for scale in scales]), is_ordered)
    few = table.take(np.arange(4_000))
    tree = learn_tree(few, LearnSettings(n_states=n_states, passes=1, full=0), 0, 1)
    columns = code_columns(table)
    return [path for n in (128, 256) for path in _passes(tree, table, n)] + _maximisation(tree, columns)


def _passes(tree: TreeTables, table: CodeTable, n: int) -> list[HotPath]:
    """Messages for n rows: in learning, and of a question."""
    nodes, tables = em.from_tree(tree)
    codes = np.ascontiguousarray(table.codes.T, dtype=np.int32)
    chosen = np.random.default_rng(0).permutation(codes.shape[1])[:n]
    weight, counts, log_p = np.ones(codes.shape[1], np.float32), em.empty_tables(nodes), np.empty(n)
    by_cell = (nodes.n_children == 0) & (nodes.n_cells <= n)
    rows = np.where(by_cell, nodes.n_cells, n)
    products = float((rows * np.diff(nodes.first_transition))[1:].sum())  # of one kind of matrix product
    messages, of_tables = 4.0 * n * nodes.n_states.sum(), 4.0 * (len(tables.transition) + len(tables.cell))
    own = [table.codes[chosen][:, j] for j in tree.column.tolist()]
    return [
        HotPath(
            f"expected counts, {n} rows",
            lambda: em_kernels.expect(nodes, tables, codes, chosen, weight, counts, log_p),
            6.0 * products,
            3.0 * of_tables + 12.0 * messages,
        ),
        HotPath(
            f"held-out likelihood, {n} rows",
            lambda: em_kernels.expect(nodes, tables, codes, chosen, weight, em.NO_TABLES, log_p),
            2.0 * products,
            of_tables + 6.0 * messages,
        ),
        HotPath(
            f"log-density of a joint, {n} rows",
            lambda: log_probability(tree, [t[c] for t, c in zip(tree.by_code, own, strict=True)], n),
            2.0 * n * float(np.diff(nodes.first_transition)[1:].sum()),
            of_tables + 6.0 * messages,
        ),
    ]


def _maximisation(tree: TreeTables, columns: Any) -> list[HotPath]:
    """Tables from counts."""
    nodes, counts = em.from_tree(tree)
    smoothing = em.Smoothing(extra=0.5)
    step = em.Maximisation(nodes, columns, smoothing)
    step.fit_normals(counts, smoothing)
    size = float(len(counts.transition) + len(counts.cell))
    smooth = float(sum(np.diff(nodes.first_cell)[k] for k, j in enumerate(tree.column) if columns[j].is_ordered))
    news = em.Tables(*(table.copy() for table in counts))
    moved = em.Tables(*(table.copy() for table in counts))

    def move() -> None:
        for old, new in zip(moved, news, strict=True):
            em_kernels.move(old, new, np.float32(0.9), np.float32(0.1))

    return [
        HotPath("running counts", move, 3.0 * size, 12.0 * size),
        HotPath("tables from counts", lambda: step.tables(counts, smoothing), 9.0 * size, 8.0 * size),
        HotPath("normals of states", lambda: step.fit_normals(counts, smoothing), 30.0 * smooth, 8.0 * smooth),
    ]


def main() -> None:
    options = arguments(__doc__, states=dict(type=int, default=256), repeats=dict(type=int, default=9))
    states, table = (32 if options.quick else options.states), []
    with one_blas_thread(in_kernels=True):
        operations, bandwidth = peaks(options.quick)
        for path in hidden_tree_paths(options.data, states):
            path.work()
            seconds = median_seconds(path.work, options.repeats)
            bound = max(path.operations / operations, path.bytes / bandwidth)
            table.append({
                "path": path.name,
                "milliseconds": 1e3 * seconds,
                "million operations": path.operations / 1e6,
                "MB": float(path.bytes) / 1e6,
                "operations a byte": float(path.operations / path.bytes),
                "share of the peak": path.operations / seconds / operations,
                "bound": "operations" if path.operations / operations > path.bytes / bandwidth else "memory",
                "share of the bound": bound / seconds,
            })  # fmt: skip
            progress(f"{table[-1]}")
    machine = [{"billion operations/s": operations / 1e9, "GB/s": bandwidth / 1e9}]
    finish("roofline", {"One core": machine, f"A hidden tree of {states} states, Adult, one core": table},
           {"states": states}, options.quick)  # fmt: skip


if __name__ == "__main__":
    main()
