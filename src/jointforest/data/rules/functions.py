"""Columns that are functions of other columns, and combinations of values that do not occur."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from .contradictions import CHANCE, MOST_EXCEPTION_SHARE, CodedTable, combined, minority, numbers_of_distinct
from .rule import Combinations, Function

_PAIRS = 4_000
"""Pairs of sampled rows that are compared for each column."""
_FEW_PAIRS = 2
"""Differing pairs among these that refute nothing: one odd row differs from the rows before and after it."""
_REPEATS = {1: 50, 2: 100}
"""Fewest rows that repeat a value of so many determining columns, where the function could have failed."""
_FEW = 0.05
"""Most exceptions, as a share of the rows that do not have the most common value."""
_SAMPLED_CELLS = 4e6
"""Cells that are sorted in the search for functions of two columns."""
_FIRST_ROWS, _FIRST_PAIRS = 1_000, 50
"""Rows, and pairs of them, by which most functions of two columns are refuted."""
_MOST_PAIRS = 20_000
"""Pairs of columns of 200 columns. Larger tables are not searched for functions of two columns, or combinations."""
_MOST_LEVELS = 200
"""Most values of a column in a rule about combinations."""
_FEWEST_ROWS = 500
"""Fewest rows of a rule about combinations."""
_FEWEST = 10
"""Fewest rows of each combination that occurs, unless the next limits hold."""
_FEWEST_COMMON = 3
"""Fewest rows of each combination of two columns where all are as common as if the columns were independent."""
_LEAST_RATIO = 0.5
"""Least ratio of their rows to those that independent columns would have. Rules with fewer than ten rows that had
exceptions in another quarter of the table had at most 0.33, and those without exceptions at least 0.59 (see the
experiment on rules)."""
_ABSENT = 0.05
"""Least share of the rows that would be in combinations that do not occur, if the columns were independent."""


def find_functions(table: CodedTable) -> list[Function]:
    """Columns that are functions of one other column, or of two."""
    # Rows that share the determining values and do not differ are the evidence, each with the probability of its value
    # under independence. Along a number only values next to a change count: a column that seldom changes agrees with
    # its neighbours by chance.
    found = [rule for x in range(table.d) for rule in _functions_of_column(table, x)]
    one = {(table.schema.index(rule.of[0]), table.schema.index(rule.column)) for rule in found if not rule.exceptions}
    return _without_implied(found, one, table) + list(_of_two(table, one))


def _functions_of_column(table: CodedTable, x: int) -> Iterator[Function]:
    """Functions of column x."""
    first, second = _repeats(table.sample[:, x], _PAIRS)
    if not len(first) or table.sizes[x] < 2:
        return
    for y in _agreeing(table.sample, first, second):
        if y != x and table.sizes[y] > 1:
            rule = _supported_function(table, (x,), y, np.log(table.d**2 / CHANCE))
            if rule is not None:
                yield rule


def _repeats(code: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of rows that have the same code, at most so many, evenly over the codes."""
    few = code.max(initial=0) < np.iinfo(np.uint16).max  # sorted by radix, several times as fast
    order = np.argsort((code + 1).astype(np.uint16) if few else code, kind="stable")
    order = order[code[order] >= 0]
    same = np.flatnonzero(code[order[1:]] == code[order[:-1]])
    if len(same) > most:
        same = same[np.linspace(0, len(same) - 1, most).astype(np.int64)]
    return order[same], order[same + 1]


def _agreeing(sample: np.ndarray, first: np.ndarray, second: np.ndarray) -> list[int]:
    """Columns in which hardly any of these pairs of rows differ."""
    differ, known = _differences(sample, first, second)
    most = np.maximum(10 * MOST_EXCEPTION_SHARE * known, _FEW_PAIRS)
    return np.flatnonzero((differ <= most) & (known > 0)).tolist()


def _differences(sample: np.ndarray, first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """In how many of these pairs of rows each column differs, and in how many both of its cells are known, (d,)."""
    a, b = sample[first], sample[second]
    known = (a >= 0) & (b >= 0)
    return (known & (a != b)).sum(axis=0), known.sum(axis=0)


def _supported_function(table: CodedTable, of: Sequence[int], y: int, needed: float) -> Function | None:
    """The rule that column y is a function of others, if all rows support it with more nats of evidence than needed."""
    codes = [table.codes(x) for x in of]
    known = np.logical_and.reduce([code >= 0 for code in (*codes, table.codes(y))])
    parts = [code[known] for code in codes]
    y_code = numbers_of_distinct(table.codes(y)[known])
    n = len(y_code)
    if not n or y_code.max() == 0:
        return None
    group = combined(parts)
    size = np.bincount(group)
    value = np.zeros(len(size), np.int64)
    value[group] = y_code
    wrong = value[group] != y_code
    n_wrong = 0
    if wrong.any():
        n_wrong = int(minority(group, y_code).sum())
        if n_wrong > min(max(MOST_EXCEPTION_SHARE * n, 1.0), _FEW * (n - np.bincount(y_code).max())):
            return None
    repeats = size - 1.0
    if 2 * repeats.sum() < n:
        return None
    informative, nats = _evidence(table, of, parts, group, size, value, y_code)
    if informative < _REPEATS[len(of)] or nats < needed:
        return None
    names = table.schema.names
    return Function(of=tuple(names[x] for x in of), column=names[y], rows=int(informative), exceptions=n_wrong)


def _evidence(
    table: CodedTable, of: Sequence[int], parts: list[np.ndarray], group: np.ndarray, size: np.ndarray,
    value: np.ndarray, y: np.ndarray,
) -> tuple[float, float]:  # fmt: skip
    """How many rows repeat a group where y could have differed, and the nats by which they speak for a function."""
    repeats = size - 1.0
    if len(of) == 1 and table.schema.columns[of[0]].is_ordered:
        step = np.diff(value) != 0
        counts = np.append(step, False) | np.insert(step, 0, False)
        informative = float(repeats[counts].sum())
        return informative, informative * np.log(2.0)
    surprise = -np.log(np.bincount(y) / len(y))[value]
    if len(of) > 1:  # of the two columns alone, the one that foretells y better
        each = [_surprise(part, y) for part in parts]
        surprise = np.zeros(len(size))
        surprise[group] = np.minimum(*each)
    counts = surprise > np.log(1.05)
    return float(repeats[counts].sum()), float(repeats @ surprise)


def _surprise(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """-log of the share of each row's y among the rows of the same x, (n,)."""
    pair = combined([x, y])
    count = np.bincount(pair)
    return np.asarray(np.log(np.bincount(x)[x]) - np.log(count[pair]))


def _without_implied(found: list[Function], one: set[tuple[int, int]], table: CodedTable) -> list[Function]:
    """The rules that follow from no chain of others; of columns that determine each other the first stands for all."""
    # ``one`` are the pairs (x, y) of which y is a function of x in all rows.
    first = {y: min([y, *(x for x, z in one if z == y and (y, x) in one)]) for y in range(table.d)}
    both = {(table.schema.index(rule.of[0]), table.schema.index(rule.column)): rule for rule in found}
    kept = []
    for (x, y), rule in both.items():
        if (x, y) in one and (y, x) in one:
            if first[y] == x:
                kept.append(replace(rule, is_mutual=True))
        elif first[x] == x and first[y] == y:
            middle = [z for z in range(table.d) if first[z] == z and z not in (x, y) and (x, z) in one]
            if not any((z, y) in both and (z, x) not in one for z in middle):
                kept.append(rule)
    return kept


def _of_two(table: CodedTable, one: set[tuple[int, int]]) -> Iterator[Function]:
    """Functions of two columns, of targets that no other column determines."""
    # Columns that determine each other count as one, for which the first of them stands.
    above = {y: [x for x, z in one if z == y] for y in range(table.d)}
    # a target may have equals: columns that it also determines, and that come later
    targets = [y for y in range(table.d) if table.sizes[y] > 1 and all((y, x) in one and y < x for x in above[y])]
    m = len(table.rows)
    sources = [x for x in range(table.d) if 1 < table.sizes[x] <= m / 10]
    sources = [x for x in sources if not any((x, z) in one and z < x for z in above[x])]
    pairs = [(a, b) for a, b in itertools.combinations(sources, 2) if (a, b) not in one and (b, a) not in one]
    if not pairs or not targets or len(pairs) > _MOST_PAIRS:
        return
    is_target = np.isin(np.arange(table.d), targets)
    rows = np.random.default_rng(1).permutation(m)[: int(np.clip(_SAMPLED_CELLS / len(pairs), 1_000, m))]
    sample, needed = np.ascontiguousarray(table.sample[rows]), np.log(table.d**3 / CHANCE)
    few = np.asfortranarray(sample[:_FIRST_ROWS])
    for a, b in pairs:
        if _refutes(few, *_repeats(_paired(few, a, b, table), _FIRST_PAIRS), a, b, is_target):
            continue
        first, second = _repeats(_paired(sample, a, b, table), _PAIRS // 4)
        every = len(first) // _FIRST_PAIRS + 1
        if len(first) < _REPEATS[2] // 4 or _refutes(sample, first[::every], second[::every], a, b, is_target):
            continue
        for target in _agreeing(sample, first, second):
            if is_target[target] and target not in (a, b) and _is_likely_function(table.sample, a, b, target):
                rule = _supported_function(table, (a, b), target, needed)
                if rule is not None:
                    yield rule


def _paired(sample: np.ndarray, a: int, b: int, table: CodedTable) -> np.ndarray:
    """One code for each pair of values of two columns; -1 where either is missing."""
    x, y = sample[:, a].astype(np.int64), sample[:, b]
    return np.where((x >= 0) & (y >= 0), x * table.sizes[b] + y, -1)


def _refutes(sample: np.ndarray, first: np.ndarray, second: np.ndarray, a: int, b: int, is_target: np.ndarray) -> bool:
    """Whether several of these pairs of rows, of equal a and b, differ in every other target."""
    differ, _ = _differences(sample, first, second)
    is_open = is_target & (differ <= _FEW_PAIRS)
    return bool(np.count_nonzero(is_open) <= np.count_nonzero(is_target[[a, b]]))  # a and b themselves always agree


def _is_likely_function(sample: np.ndarray, a: int, b: int, y: int) -> bool:
    """Whether column y is a function of columns a and b in the sample, but for few rows."""
    known = (sample[:, a] >= 0) & (sample[:, b] >= 0) & (sample[:, y] >= 0)
    group, code = combined([sample[known, a], sample[known, b]]), sample[known, y]
    return bool(np.count_nonzero(minority(group, code)) <= max(10 * MOST_EXCEPTION_SHARE * len(code), 1.0))


# ---- Combinations of two to four columns of few values.


def find_combinations(table: CodedTable, functions: Sequence[Function]) -> list[Combinations]:
    """Groups of columns of which only some combinations of values occur, so that hardly any combination is unseen."""
    # Combinations that follow from functions are left out.
    index = table.schema.index
    exact = [rule for rule in functions if not rule.exceptions]
    above = _determining(table.d, [(index(rule.of[0]), index(rule.column)) for rule in exact if len(rule.of) == 1])
    first = {index(rule.column) for rule in exact if rule.is_mutual}
    tied = {frozenset(pair) for rule in exact for pair in itertools.combinations(map(index, rule.columns), 2)}
    few = [j for j in range(table.d) if 1 < table.sizes[j] <= _MOST_LEVELS and j not in first]
    if len(few) * (len(few) - 1) / 2 > _MOST_PAIRS:
        return []
    pairs = [
        (a, b)
        for a, b in itertools.combinations(few, 2)
        if frozenset((a, b)) not in tied and not above[a] & above[b]
        and _is_restricted(table.sample[:, a], table.sample[:, b], False)
        and _is_restricted(table.codes(a), table.codes(b), True)
    ]  # fmt: skip
    linked = {frozenset(pair) for pair in pairs}
    pairs = [
        (a, b)
        for a, b in pairs
        if not any(frozenset((c, b)) in linked for c in above[a] - {a})
        and not any(frozenset((a, c)) in linked for c in above[b] - {b})
    ]
    return [_combinations(table, group) for group in _joined_groups(table, pairs)]


def _determining(d: int, one: list[tuple[int, int]]) -> list[set[int]]:
    """The columns of which each column is a function, by chains too, itself among them."""
    above = [{j} for j in range(d)]
    for _ in range(d):
        before = [len(found) for found in above]
        for x, y in one:
            above[y] |= above[x]
        if [len(found) for found in above] == before:
            break
    return above


def _is_restricted(a: np.ndarray, b: np.ndarray, in_all_rows: bool) -> bool:
    """Whether combinations of two columns are absent that would be common if the columns were independent."""
    # Where columns merely depend on each other, some combinations are far rarer, so unseen ones may be rarer still.
    known = (a >= 0) & (b >= 0)
    a, b = a[known], b[known]
    n = len(a)
    if n < _FEWEST_ROWS:
        return False
    A, B = int(a.max()) + 1, int(b.max()) + 1
    count = np.bincount(a.astype(np.int64) * B + b, minlength=A * B).reshape(A, B)
    share = np.outer(count.sum(axis=1), count.sum(axis=0)) / n**2
    occurs = count > 0
    if not share[~occurs].sum() > _ABSENT:
        return False
    are_common = bool((count >= _LEAST_RATIO * n * share)[occurs].all())
    return not in_all_rows or bool(count[occurs].min() >= (_FEWEST_COMMON if are_common else _FEWEST))


def _joined_groups(table: CodedTable, pairs: list[tuple[int, int]]) -> list[tuple[int, ...]]:
    """Pairs, and in their place groups of up to four columns whose combinations are fewer than the pairs allow."""
    groups: list[tuple[int, ...]] = []
    for size in (4, 3):
        for group in _cliques(pairs, size):
            if not any(set(group) <= set(other) for other in groups) and _is_closed(table, group):
                groups.append(group)
    rest = [pair for pair in pairs if not any(set(pair) <= set(group) for group in groups)]
    return sorted([*groups, *rest])


def _cliques(pairs: list[tuple[int, int]], size: int) -> Iterator[tuple[int, ...]]:
    """Groups of so many columns, ascending, of which each two are one of the pairs (a, b), a < b."""
    above: dict[int, set[int]] = {}
    for a, b in pairs:
        above.setdefault(a, set()).add(b)

    def grow(group: tuple[int, ...], candidates: set[int]) -> Iterator[tuple[int, ...]]:
        if len(group) == size:
            yield group
            return
        for j in sorted(candidates):
            yield from grow((*group, j), candidates & above.get(j, set()))

    return grow((), {j for pair in pairs for j in pair})


def _is_closed(table: CodedTable, group: tuple[int, ...]) -> bool:
    """Whether each combination of three columns or more occurs in enough rows."""
    codes = [table.codes(j) for j in group]
    known = np.logical_and.reduce([code >= 0 for code in codes])
    return bool(np.bincount(combined([code[known] for code in codes])).min() >= _FEWEST)


def _combinations(table: CodedTable, group: tuple[int, ...]) -> Combinations:
    codes = [table.codes(j) for j in group]
    known = np.logical_and.reduce([code >= 0 for code in codes])
    return Combinations(of=tuple(table.schema.names[j] for j in group), rows=int(known.sum()))
