"""Which cells are missing: in the same rows as others, or where other columns have certain values."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from scipy.special import bdtrc, comb

from .contradictions import CHANCE, CodedTable, combined
from .rule import MissingTogether, MissingWhere

_FEWEST = 20
"""Fewest rows in which a column is missing, and in which it is known."""
_MOST_LEVELS = 50
"""Most values of a column that determines where another is missing."""
_FEWEST_OF_RANGE = 4
"""Fewest values of a range of numbers in which a column is missing; of fewer they are listed."""
_MOST_CODES = 10
"""Most values of a column of numbers each of which may have a meaning of its own; of more, ranges count."""
_AS_OFTEN = 0.05
"""Probability of so many missing cells next to a range, below which they are more frequent there than farther on."""
_FIRST_ROWS = 500
"""Sampled rows by which most candidates are refuted."""


def find_missing(table: CodedTable) -> list[MissingTogether | MissingWhere]:
    """Columns that are missing in the same rows, and columns that are missing where another has some values."""
    # The first of the columns that are missing together stands for all in the second kind of rule.
    masks = {j: np.isnan(table.X[:, j]) for j in range(table.d)}
    masks = {j: mask for j, mask in masks.items() if _FEWEST <= mask.sum() <= table.n - _FEWEST}
    groups: dict[bytes, list[int]] = {}
    for j, mask in masks.items():
        groups.setdefault(np.packbits(mask).tobytes(), []).append(j)
    names = table.schema.names
    found: list[MissingTogether | MissingWhere] = []
    for group in groups.values():
        mask = masks[group[0]]
        if len(group) > 1:
            found.append(MissingTogether(of=tuple(names[j] for j in group), rows=int(mask.sum())))
        ranges = _where_by_range(table, group, mask)
        exact = [rule for _, rule in sorted(ranges, key=lambda one: -one[0]) if rule.is_mutual][:1]
        placed = list(_where_by_levels(table, group, mask))
        if exact and (not placed or placed[0].of == exact[0].of):
            placed = exact
        found += placed or [
            rule
            for _, rule in sorted([*_where_in_any_column(table, group, mask), *ranges], key=lambda one: -one[0])[:1]
        ]
    return found


def _where_by_range(table: CodedTable, group: list[int], mask: np.ndarray) -> list[tuple[int, MissingWhere]]:
    """Ranges of another column of numbers, up to or from some value on, in which the first of a group is missing, and
    in how many rows it is."""
    found = []
    for j, column in enumerate(table.schema.columns):
        if j in group or not _is_amount(table, j):
            continue
        x = table.X[:, j]
        known = ~np.isnan(x)
        for sign in (1.0, -1.0):
            bound = np.min(sign * x[known & ~mask], initial=np.inf)
            inside = known & (sign * x < bound)
            n = int(inside.sum())
            if n < _FEWEST or np.isinf(bound):
                continue
            outside = np.flatnonzero(known & ~inside)
            outside = outside[np.argsort(sign * x[outside], kind="stable")]
            is_mutual, least = not mask[outside].any(), np.log(2.0 * table.d**3 / CHANCE)
            of_values = [len(np.unique(x[rows])) for rows in (known, inside)]
            is_range = of_values[1] >= _FEWEST_OF_RANGE
            if is_mutual:
                nats = n * -np.log(mask[known].mean())
                if is_range:  # rows of equal values are dependent, so the number of values limits the evidence
                    nats = min(nats, np.log(comb(*of_values)))
            else:
                nats = _against_chance(mask[outside], x[outside], n, least)
            if nats < least:
                continue
            if mask[~known].all():  # a question is not asked either where the one that it depends on is not asked
                n += int((~known).sum())
            values = [column.from_number(value) for value in np.unique(x[inside]).tolist()]
            ends = (None, values[-1]) if sign > 0.0 else (values[0], None)
            rule = MissingWhere(
                column=table.schema.names[group[0]], of=(column.name,), rows=n + (not is_mutual) * int((~mask).sum()),
                values=(ends,) if is_range else tuple((value,) for value in values), is_mutual=is_mutual,
            )  # fmt: skip
            found.append((n, rule))
    return found


def _against_chance(mask: np.ndarray, x: np.ndarray, n: int, least: float) -> float:
    """Evidence, in nats, that n missing rows in a range are not chance. 0 if the rows just outside are missing more
    often than the rest. ``mask`` and ``x`` (m,) are of the rows outside, the nearest first; ``least`` is needed."""
    share = float(mask.mean())
    # Rows of equal values may be dependent. The evidence is divided by this overdispersion.
    _, value_index = np.unique(x, return_inverse=True)
    count = np.bincount(value_index)
    deviation = (np.bincount(value_index, mask) - share * count) ** 2 / (share * (1.0 - share) * count)
    overdispersion = max(deviation.sum() / max(len(count) - 1, 1), 1.0)
    # If missing cells only become more frequent, no rule explains them. The rows next to the range are compared with
    # the rest: as many as the range must have.
    near = min(max(int(least / -np.log(share)) + 1, _FEWEST), len(mask) // 2)
    is_edge = bdtrc(int(mask[:near].sum()) - 1, near, mask[near:].mean()) >= _AS_OFTEN
    return is_edge * n / overdispersion * -np.log(share)


def _where_by_levels(table: CodedTable, group: list[int], mask: np.ndarray) -> Iterator[MissingWhere]:
    """Where the first column of a group is missing, by one other column or by two; the first that is found."""
    few = [j for j in range(table.d) if j not in group and 1 < table.sizes[j] <= _MOST_LEVELS]
    sampled = mask[table.rows]
    of_one = [(j,) for j in few if _may_determine(table.sample[:, [j]], sampled)]
    of_two = [
        pair for pair in itertools.combinations(few, 2)
        if table.sizes[list(pair)].prod() <= _MOST_LEVELS and not {(j,) for j in pair} & set(of_one)
        and _may_determine(table.sample[:, pair], sampled)
    ]  # fmt: skip
    for of in (*of_one, *of_two):
        rule = _supported_rule(table, group[0], of, mask)
        if rule is not None:
            yield rule
            return


def _where_in_any_column(table: CodedTable, group: list[int], mask: np.ndarray) -> Iterator[tuple[int, MissingWhere]]:
    """Values of one other column at which the first column of a group is always missing, and in how many rows; it may
    be elsewhere, too."""
    best, rows = None, 0
    every = len(table.rows) // _FIRST_ROWS + 1
    for j in range(table.d):
        if j in group or not 1 < table.sizes[j] <= _MOST_LEVELS or _is_amount(table, j):
            continue
        few, of_few = table.sample[::every, j], mask[table.rows[::every]]
        if not len(_always(few, of_few, 1)):
            continue
        codes = table.codes(j)
        values = _always(codes, mask, _FEWEST)
        is_there = np.isin(codes, values)
        others = mask[(codes >= 0) & ~is_there]
        n = int(is_there.sum())
        if n <= rows or not 0 < others.sum() < len(others):
            continue
        if (n - len(values)) * -np.log(others.mean()) >= np.log(table.d**3 / CHANCE):
            column, first = table.schema.columns[j], [int(np.argmax(codes == value)) for value in values]
            of_values = tuple((column.from_number(float(table.X[i, j])),) for i in first)
            best, rows = MissingWhere(
                column=table.schema.names[group[0]], of=(column.name,), values=of_values, is_mutual=False,
                rows=n + int((~others).sum()),
            ), n  # fmt: skip
    if best is not None:
        yield rows, best


def _is_amount(table: CodedTable, j: int) -> bool:
    """Whether a column has numbers on a grid, and more than those that may be codes."""
    column = table.schema.columns[j]
    return column.step > 0.0 and column.kind != "datetime" and bool(table.sizes[j] > _MOST_CODES)


def _always(codes: np.ndarray, mask: np.ndarray, fewest: int) -> np.ndarray:
    """The codes of at least so many rows, all of which are in a mask."""
    known = codes >= 0
    count = np.bincount(codes[known])
    return np.flatnonzero((count >= fewest) & (np.bincount(codes[known], mask[known]) == count))


def _may_determine(codes: np.ndarray, mask: np.ndarray) -> bool:
    """Whether the sampled rows of equal codes agree, and some are known; a few of these rows refute most columns."""
    every = len(codes) // _FIRST_ROWS + 1
    few, of_few = codes[::every], mask[::every]
    return ((few < 0).any(axis=1).all() or _is_function(few, of_few)) and _is_function(codes, mask)


def _is_function(codes: np.ndarray, mask: np.ndarray) -> bool:
    """Whether the rows of equal codes agree in whether the cell is missing."""
    known = (codes >= 0).all(axis=1)
    if not known.any():
        return False
    key = combined(list(codes[known].T))
    share = np.bincount(key, mask[known]) / np.bincount(key)
    return bool(np.all((share == 0.0) | (share == 1.0)))


def _supported_rule(table: CodedTable, j: int, of: tuple[int, ...], mask: np.ndarray) -> MissingWhere | None:
    """The rule that column j is missing exactly where the columns ``of`` have certain values."""
    codes = np.column_stack([table.codes(k) for k in of])
    known = (codes >= 0).all(axis=1)
    if not _is_function(codes, mask) or not 0 < mask[known].sum() < known.sum():
        return None
    key = combined(list(codes[known].T))
    count = np.bincount(key)
    share = mask[known].mean()
    first = np.zeros(len(count), np.int64)
    first[key] = np.flatnonzero(known)
    is_missing = mask[first]
    nats = float(np.maximum(count - 1.0, 0.0) @ -np.log(np.where(is_missing, share, 1.0 - share)))
    rows = int(mask[known].sum())
    if mask[~known].all():  # a question is not asked either where the one that it depends on is not asked
        rows += int((~known).sum())
    if nats < np.log(table.d**3 / CHANCE) or rows < _FEWEST:
        return None
    columns = [table.schema.columns[k] for k in of]
    values = tuple(
        tuple(column.from_number(float(x)) for column, x in zip(columns, table.X[i, list(of)], strict=True))
        for i in first[is_missing].tolist()
    )
    names = tuple(column.name for column in columns)
    return MissingWhere(column=table.schema.names[j], of=names, values=values, rows=rows)
