"""Rows of codes from the cells of a table, each column on its own scale."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...data.discretization.discretizer import Scale, code_table
from ...data.discretization.learn import gaps_and_far_codes, learn_scale
from ...data.discretization.restrict import restrict
from ...data.infer_schema import infer_schema
from ...data.meaning import Region
from ...data.ranges import Ranges, complete_table
from ...data.rules.find import with_rules
from ...data.schema import Column, Schema, kernel_columns, snap
from ...runtime.threads import one_blas_thread
from .complete import order_in_ranges
from .constants import FIXED
from .structure import CodeTable, View, code_columns


def scales_of(
    schema: Schema,
    cells: np.ndarray,
    weight: np.ndarray | None,
    n_bins: int,
    fine: float,
    singles: bool,
    ranges: Ranges | None = None,
    at_spaces: bool = False,
) -> tuple[Scale, ...]:
    """The scale of each column, from its known cells (n, d); parameters as of `learn_scale`."""
    with one_blas_thread():
        return tuple(
            learn_scale(c, cells[:, j], weight, n_bins, fine, singles, _limits(c, j, ranges, n_bins // 4), at_spaces)
            for j, c in enumerate(schema.columns)
        )


def _limits(column: Column, j: int, ranges: Ranges | None, most: int) -> np.ndarray:
    """The finite ends that most ranges of column j have, at most so many, behind the ends of its exact values."""
    if ranges is None or not (ranges.number[:, j] >= 0).any():
        return np.empty(0)
    _, place, regions = ranges.of_column(j, column)
    ends = np.array([(region.runs[0][0], region.runs[-1][1]) for region in regions if region.runs]).reshape(-1, 2)
    size = np.bincount(place, minlength=len(regions))[[bool(region.runs) for region in regions]]
    limits, of_end = np.unique(ends, return_inverse=True)
    count = np.bincount(of_end.reshape(-1), np.repeat(size, 2), len(limits)) * np.isfinite(limits)
    common = np.argsort(-count, kind="stable")[:most]
    outermost = np.array([column.minimum, column.maximum]) + 0.5 * column.step * np.array([-1.0, 1.0])
    if column.step == 0.0:
        outermost[0] = np.nextafter(outermost[0], -np.inf)
    return np.append(outermost, np.sort(limits[common[count[common] > 0]]))


def table_of(
    schema: Schema,
    scales: tuple[Scale, ...],
    cells: np.ndarray,
    weight: np.ndarray | None,
    ranges: Ranges | None = None,
) -> CodeTable:
    """Rows of cells (n, d) as codes; cells that are ranges have draws from these."""
    codes = code_table(scales, cells)
    n_codes = np.array([scale.n_codes for scale in scales])
    is_ordered = np.array([not column.is_categorical for column in schema.columns])
    views = tuple(map(_views, schema.columns, scales)) if any(c.parts for c in schema.columns) else ()
    marks = [
        (np.zeros(scale.n_codes), np.zeros(scale.n_codes, bool))
        if column.is_categorical
        else gaps_and_far_codes(column, scale, cells[:, j], weight)
        for j, (column, scale) in enumerate(zip(schema.columns, scales, strict=True))
    ]
    gaps, far = tuple(gap for gap, _ in marks), tuple(is_far for _, is_far in marks)
    center = tuple(scale.moments[1] for scale in scales)
    table = CodeTable(np.ascontiguousarray(codes), n_codes, is_ordered, weight, views, gaps, far, center)
    return table if ranges is None else _with_ranges(table, schema, scales, ranges)


def _with_ranges(table: CodeTable, schema: Schema, scales: tuple[Scale, ...], ranges: Ranges) -> CodeTable:
    """The table with what is known of cells that are ranges."""
    known, covers = table.codes.copy(), []
    for j, (column, scale) in enumerate(zip(schema.columns, scales, strict=True)):
        rows, place, regions = ranges.of_column(j, column)
        if len(regions) > FIXED.most_ranges:
            place, regions = _fewer(place, regions)
        cuts = [np.array(region.runs).reshape(-1, 2).T for region in regions]
        inside = [
            np.minimum(np.exp(restrict(scale, runs[0], runs[1], region.atoms, column.atoms).log_code), 1.0)
            for runs, region in zip(cuts, regions, strict=True)
        ]
        cover, of_region = np.unique(np.array(inside).reshape(-1, scale.n_codes), axis=0, return_inverse=True)
        known[rows, j] = scale.n_codes + 1 + of_region.reshape(-1)[place]
        covers.append(cover)
    return table._replace(known=known, covers=tuple(covers))


def share_of_informed(table: CodeTable) -> float:
    """Share of the cells that are ranges in whose range values lie, or ends of other ranges."""
    if table.known is None:
        return 0.0
    n_informed = n_all = 0
    for known, cover, K in zip(table.known.T, table.covers, table.n_codes.tolist(), strict=True):
        if not len(cover):
            continue
        count, inside = np.bincount(known, minlength=K + 1 + len(cover)), (cover > 0.0).astype(np.float64)
        size, both = inside.sum(axis=1), inside @ inside.T
        overlaps = (both > 0.0) & ((both < size[:, None]) | (both < size))
        is_informed = (inside @ count[:K] > 0.0) | overlaps.any(axis=1)
        n_informed += int(count[K + 1 :][is_informed].sum())
        n_all += int(count[K + 1 :].sum())
    return n_informed / max(n_all, 1)


def training_cells(schema: Schema, X: np.ndarray, ranges: Ranges | None) -> tuple[Schema, np.ndarray, Ranges | None]:
    """Cells (n, d) as learners take them, with the rules that they show: ranges have values, matched to other cells."""
    # A rule about values that are not known exactly may be broken by any of them, so none is sought there.
    if ranges is not None:
        had = (ranges.number >= 0).any(axis=0)
        X, ranges = ranges.without_values(schema, X)
        known = had & (True if ranges is None else (ranges.number < 0).all(axis=0))
        schema = _seen_again(schema, X, np.flatnonzero(known).tolist())
    columns = kernel_columns(schema)
    if ranges is None:
        X = snap(columns, X)
        return with_rules(schema, X), X, None
    X = match_ranges(schema, snap(columns, complete_table(schema, X, ranges)), ranges)
    schema = with_rules(schema, X)
    of_ranges = {schema.names[j] for j in np.flatnonzero((ranges.number >= 0).any(axis=0)).tolist()}
    rules = tuple(rule for rule in schema.rules if not of_ranges.intersection(rule.columns))
    return replace(schema, rules=rules), X, ranges


def _seen_again(schema: Schema, X: np.ndarray, known: list[int]) -> Schema:
    """The schema with point masses and ends of columns whose ranges turned out to be values, as if these were given."""
    columns = list(schema.columns)
    for j in (j for j in known if columns[j].kind != "datetime"):
        (seen,) = infer_schema(X[:, [j]], {"x0": columns[j].kind}).columns
        column = replace(columns[j], step=seen.step, origin=seen.origin, atoms=seen.atoms)
        columns[j] = replace(column, minimum=seen.minimum, maximum=seen.maximum, lower=seen.lower, upper=seen.upper)
    return replace(schema, columns=tuple(columns))


def match_ranges(schema: Schema, cells: np.ndarray, ranges: Ranges) -> np.ndarray:
    """Cells (n, d) whose imputed values of ranges are exchanged among the rows of a range, as other cells suggest."""
    scales = scales_of(schema, cells, None, FIXED.most_codes, 0.0, False, ranges)
    table = table_of(schema, scales, cells, None, ranges)
    cells = cells.copy()
    for j, (rows, source) in order_in_ranges(table, code_columns(table), np.random.default_rng(0)).items():
        cells[rows, j] = cells[source, j]
    return cells


def _fewer(place: np.ndarray, regions: list[Region]) -> tuple[np.ndarray, list[Region]]:
    """Which region each row has, and the regions: of those whose ends are neighbours one stands for all."""
    ends = np.array([(region.runs[0][0], region.runs[-1][1]) if region.runs else (0.0, 0.0) for region in regions])
    rank = np.column_stack([np.unique(end, return_inverse=True)[1].reshape(-1) for end in ends.T])
    size = np.maximum(-(-(rank.max(axis=0) + 1) // FIXED.most_ranges), 1)
    _, first, group = np.unique(rank // size, axis=0, return_index=True, return_inverse=True)
    return group.reshape(-1)[place], [regions[k] for k in first.tolist()]


def _views(column: Column, scale: Scale) -> tuple[View, ...]:
    """The columns that one stands for, by its codes; of levels that share a code those of the commonest."""
    found = []
    for is_number, values in column.parts:
        distinct, of_level = np.unique(values, return_inverse=True)
        code = np.zeros(scale.n_codes + 1, np.int64)
        order = np.argsort(scale.log_mass, kind="stable")  # the last one written is the commonest
        code[scale.code[order]] = of_level.reshape(-1)[order]
        code[-1] = len(distinct)
        found.append(View(code, len(distinct), is_number))
    return tuple(found)
