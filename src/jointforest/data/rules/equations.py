"""Columns of numbers that are sums of others, with small rational coefficients."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np

from .contradictions import CHANCE, ROUNDED, CodedTable, contradicted, equation_total, tolerance, with_tolerance
from .contradictions import number_span as range_of
from .rule import Equation

_ROWS = 2_000
"""Sampled rows on which equations are sought."""
_FEWEST = 100
"""Fewest rows on which they are sought, and that must support one."""
_OFTEN_KNOWN = 0.1
"""Largest share of rows that miss a column, among those that know another, for the two to be examined together."""
_FEW_ROWS, _TRIES = 20, 20
"""Rows, and the number of random samples of so many, by which equations with exceptions are sought. If a tenth of the
rows are exceptions, one in eight samples has none."""
_NEARLY = 4.0
"""Rows that miss an equation by less than so many times what is allowed nearly obey it."""
_MOST_TERMS = 6
"""Most columns that are added up."""
_MOST_TRIPLES = 100_000
"""Most triples of columns that are examined one by one."""
_RANK = 1e-4
"""Spread that a standardized column must have given others not to be called their sum, for numbers of six digits."""
_DENOMINATORS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12)
_DIGITS = (2, 3, 4, 5, 6, 7, 8)


def find_equations(table: CodedTable, exceptions: float = 0.0) -> list[Equation]:
    """Equations between columns of numbers that hold in all rows, up to rounding to a grid or to significant digits; or
    in all rows but a share ``exceptions`` for each sign between the columns."""
    # Candidates hardly vary once the others are known: by a rank-revealing factorization of the correlations, and of
    # each two and three columns. Coefficients are rounded to small fractions, or to few digits.
    numeric = [j for j, c in enumerate(table.schema.columns) if not c.is_categorical and table.sizes[j] > 2]
    found: list[Equation] = []
    solved: set[int] = set()
    parts = _complete_parts(table, numeric)
    for columns, rows in _samples_of(parts) if exceptions else parts:
        n_found = -1
        while len(found) > n_found:  # what is found takes columns from candidates, which become others
            n_found = len(found)
            rest = [j for j in columns if j not in solved]
            for y, of in _possible_sums(table, rows, rest):
                if y in solved or solved & set(of):
                    continue
                equation = _rounded_equation(table, rows, y, of, exceptions)
                if equation is not None:
                    found.append(equation)
                    solved.add(table.schema.index(equation.column))
    return found if exceptions else _shortened(table, found)


def _shortened(table: CodedTable, found: list[Equation]) -> list[Equation]:
    """The equations; those of more than three columns less a multiple of another, if three columns are left."""
    # Beside gross = net + tax, net = paid + open - tax is gross = paid + open. Each step takes from one equation a
    # multiple of another as it is then, so together they always say the same.
    out = list(found)
    for i, k in itertools.permutations(range(len(out)), 2):
        if out[i].tolerance or out[k].tolerance or len(out[i].columns) <= 3:
            continue
        of_i, of_k = _coefficients(out[i]), _coefficients(out[k])
        for name in sorted(of_i.keys() & of_k.keys()):
            ratio = of_i[name] / of_k[name]
            both = {key: of_i.get(key, 0.0) - ratio * of_k.get(key, 0.0) for key in of_i | of_k}
            left = [(c, key) for key, c in both.items() if abs(c) > 1e-9]
            if len(left) == 3:
                (c, y), *rest = left
                constant = (out[i].constant - ratio * out[k].constant) / -c
                terms = tuple((-of / c, key) for of, key in rest)
                short = _solved_for_sum(table, Equation(column=y, terms=terms, constant=constant))
                if not contradicted(short, table.schema, table.X).any():
                    out[i] = replace(short, rows=out[i].rows)
                    break
    return out


def _coefficients(equation: Equation) -> dict[str, float]:
    """The coefficients by column of an equation with 0 on one side, without its constant."""
    return {equation.column: -1.0} | {name: c for c, name in equation.terms}


def _complete_parts(table: CodedTable, columns: list[int]) -> Iterator[tuple[list[int], np.ndarray]]:
    """Groups of columns, with sampled rows in which all of them are known."""
    # First the columns that are mostly known in the same rows, then each column with its most correlated ones.
    missing = np.isnan(table.X[table.rows][:, columns])
    groups = [np.flatnonzero(missing[~missing[:, k]].mean(axis=0) <= _OFTEN_KNOWN) for k in range(len(columns))]
    if missing.any():
        groups += list(_correlated(table.X[table.rows][:, columns], missing))
    seen = set()
    for group in groups:
        if tuple(group) in seen or len(group) < 2:
            continue
        seen.add(tuple(group))
        complete = np.flatnonzero(~missing[:, group].any(axis=1))
        if len(complete) >= _FEWEST:
            yield [columns[k] for k in group.tolist()], table.rows[complete[:_ROWS]]


def _samples_of(parts: Iterator[tuple[list[int], np.ndarray]]) -> Iterator[tuple[list[int], np.ndarray]]:
    """Groups of columns, with random samples of few of their rows, some of which have no exceptions."""
    rng = np.random.default_rng(0)
    for columns, rows in parts:
        for _ in range(_TRIES):
            yield columns, rng.choice(rows, _FEW_ROWS, replace=False)


def _correlated(X: np.ndarray, missing: np.ndarray) -> Iterator[np.ndarray]:
    """Each column with the few that it is most correlated with, ascending numbers; missing cells count as means."""
    known = ~missing
    n = np.maximum(known.sum(axis=0), 1)
    centred = np.where(known, X - np.where(known, X, 0.0).sum(axis=0) / n, 0.0)
    size = np.sqrt((centred**2).sum(axis=0))
    R = np.abs(centred.T @ centred) / np.maximum(np.outer(size, size), 1e-300)
    for row in R:
        yield np.sort(np.argsort(-row, kind="stable")[: _MOST_TERMS + 2])


def _possible_sums(table: CodedTable, rows: np.ndarray, names: list[int]) -> Iterator[tuple[int, list[int]]]:
    """Columns y and the columns of which they may be a sum, those with the fewest terms first."""
    X = table.X[rows][:, names]
    spread = X.std(axis=0)
    some = np.flatnonzero(spread > 1e-12 * np.abs(X).max(axis=0))
    Z = (X[:, some] - X[:, some].mean(axis=0)) / spread[some]
    R = Z.T @ Z / len(Z)
    number = [names[j] for j in some.tolist()]
    # the share of its variance that a column may leave over because the sum is rounded
    step = np.array([table.schema.columns[j].step for j in number])
    rounded = np.array([range_of(table.schema.columns[j]) for j in number]) * ROUNDED
    digit = np.array([table.schema.columns[j].last_digit for j in number])
    left = 1e-9 + (np.maximum(np.where(step > 0.0, 0.5 * step, rounded), digit) / spread[some]) ** 2
    p = len(number)
    for a, y in [*itertools.combinations(range(p), 2), *((b, a) for a, b in itertools.combinations(range(p), 2))]:
        if 1.0 - R[a, y] ** 2 < left[y]:
            yield number[y], [number[a]]
    if p**3 / 2 <= _MOST_TRIPLES:
        for y, of in _triples(R, left):
            yield number[y], [number[a] for a in of]
    for y, of in _by_rank(R):
        yield number[y], [number[a] for a in of]


def _triples(R: np.ndarray, left: np.ndarray) -> Iterator[tuple[int, list[int]]]:
    """Columns that hardly vary given two others."""
    for a, b in itertools.combinations(range(len(R)), 2):
        det = 1.0 - R[a, b] ** 2
        if det < 1e-6:
            continue
        rest = 1.0 - (R[a] ** 2 + R[b] ** 2 - 2.0 * R[a] * R[b] * R[a, b]) / det
        for y in np.flatnonzero(rest < left).tolist():
            if y not in (a, b) and min(1.0 - R[a, y] ** 2, 1.0 - R[b, y] ** 2) >= left[y]:
                yield y, [a, b]


def _by_rank(R: np.ndarray) -> Iterator[tuple[int, list[int]]]:
    """Columns that are linear combinations of others, by a Cholesky factorization of their correlations with pivots."""
    left, pivots = R.copy(), np.empty(0, np.int64)
    while left.diagonal().max() > _RANK**2:
        k = int(left.diagonal().argmax())
        pivots = np.append(pivots, k)
        left -= np.outer(left[:, k], left[k]) / left[k, k]
    rest = np.setdiff1d(np.arange(len(R)), pivots)
    if not len(rest):
        return
    weights = np.linalg.solve(R[np.ix_(pivots, pivots)], R[np.ix_(pivots, rest)])
    for k, y in enumerate(rest.tolist()):
        of = np.flatnonzero(np.abs(weights[:, k]) > 10 * _RANK)
        if 0 < len(of) <= _MOST_TERMS:
            yield y, pivots[of].tolist()


def _rounded_equation(table: CodedTable, rows: np.ndarray, y: int, of: list[int], exceptions: float) -> Equation | None:
    """The equation with rounded coefficients that all rows obey, or all but a share ``exceptions`` for each of its
    terms; None if there is none, or it may be chance."""
    group = [y, *of]
    zero = np.array([table.schema.columns[j].zero for j in group])
    cells = table.X[rows][:, group] + zero
    scale = np.maximum(cells.std(axis=0), 1e-300)
    center = cells.mean(axis=0)
    A = (cells[:, 1:] - center[1:]) / scale[1:]
    weights = np.linalg.lstsq(A, cells[:, 0] - center[0], rcond=None)[0] / scale[1:]
    for equation in _simplest_equations(table, cells, weights, group):
        turned = _solved_for_sum(table, equation)
        x = table.X
        known = ~np.isnan(x[:, [table.schema.index(name) for name in turned.columns]]).any(axis=1)
        n, n_wrong = int(known.sum()), int(contradicted(turned, table.schema, x).sum())
        if n_wrong > exceptions * len(of) * n or (n_wrong and _is_near(turned, table)):
            continue
        if _is_chance(table, turned, np.flatnonzero(known)):
            return None
        return replace(turned, rows=n - n_wrong, exceptions=n_wrong)
    return None


def _is_near(equation: Equation, table: CodedTable) -> bool:
    """Whether most rows that do not obey an equation nearly do, as if it were no rule but a fitted line."""
    off = np.abs(equation_total(equation, table.schema, table.X) - table.X[:, table.schema.index(equation.column)])
    allowed = tolerance(equation, table.schema)
    return bool(2 * np.count_nonzero(off > _NEARLY * allowed) < np.count_nonzero(off > allowed))


def _simplest_equations(
    table: CodedTable, cells: np.ndarray, weights: np.ndarray, group: list[int]
) -> Iterator[Equation]:
    """Equations with rounded coefficients that the sampled rows obey, those of simplest coefficients first."""
    names = [table.schema.names[j] for j in group]
    tried = set()
    simple = _as_fractions(weights), _as_reciprocals(weights)
    for coefficients in (*simple, *(_significant(weights, digits) for digits in _DIGITS)):
        if coefficients is None or coefficients in tried or not all(coefficients):
            continue
        tried.add(coefficients)
        rest = cells[:, 0] - cells[:, 1:] @ np.array(coefficients)
        constant = _constant(rest, float(np.spacing(np.abs(cells).max())) * cells.shape[1])
        terms = tuple(zip(coefficients, names[1:], strict=True))
        exact = Equation(column=names[0], terms=terms, constant=constant)
        off = float(np.abs(rest - constant).max())
        for equation in dict.fromkeys((exact, with_tolerance(exact, table.schema))):
            if off <= tolerance(equation, table.schema):
                yield equation


def _as_fractions(weights: np.ndarray) -> tuple[float, ...] | None:
    """The coefficients as fractions of a small denominator, if they are near such."""
    found = []
    for w in weights.tolist():
        near = min((Fraction(round(w * q), q) for q in _DENOMINATORS), key=lambda f: abs(float(f) - w))
        for q in _DENOMINATORS:  # the smallest denominator that is near enough
            f = Fraction(round(w * q), q)
            if abs(float(f) - w) <= 2e-3 * abs(w):
                near = f
                break
        if abs(float(near) - w) > 1e-2 * abs(w):
            return None
        found.append(float(near))
    return tuple(found)


def _as_reciprocals(weights: np.ndarray) -> tuple[float, ...] | None:
    """The coefficients as reciprocals of whole numbers, if they are near such: days are seconds / 86,400."""
    whole = np.rint(1.0 / weights) if weights.all() else np.zeros(1)
    if not whole.all() or (np.abs(weights * whole - 1.0) > 2e-3).any():
        return None
    return tuple((1.0 / whole).tolist())


def _significant(weights: np.ndarray, digits: int) -> tuple[float, ...]:
    """The coefficients with so many significant digits."""
    return tuple(float(f"{w:.{digits - 1}e}") for w in weights.tolist())


def _constant(rest: np.ndarray, rounding: float) -> float:
    """The midpoint of residuals, rounded to as few digits as they allow; ``rounding`` is that of the cells."""
    low, high = float(rest.min()), float(rest.max())
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    for decimals in range(-3, 10):
        if abs(round(middle, decimals) - middle) <= max(half, rounding, 1e-9 * abs(middle)) or abs(middle) < 1e-9:
            return round(middle, decimals) + 0.0
    return middle


def _solved_for_sum(table: CodedTable, equation: Equation) -> Equation:
    """The equation solved for the column that is a sum with positive coefficients, or the later of two columns."""
    if len(equation.terms) == 1:
        return equation
    terms = ((-1.0, equation.column), *equation.terms)
    best = equation
    for c, name in terms:
        others = tuple((-w / c, other) for w, other in terms if other != name)
        solved = Equation(column=name, terms=others, constant=-equation.constant / c)
        if all(w > 0 for w, _ in others) and all(w in (1.0, 0.5, 2.0) or w == round(w, 6) for w, _ in others):
            best = solved
            break
    order = {name: j for j, name in enumerate(table.schema.names)}
    terms = tuple(sorted(best.terms, key=lambda term: order[term[1]]))
    turned = Equation(column=best.column, terms=terms, constant=best.constant + 0.0)  # -0 is 0
    return with_tolerance(turned, table.schema) if equation.tolerance else turned


def _is_chance(table: CodedTable, equation: Equation, rows: np.ndarray) -> bool:
    """Whether rows may obey the equation by chance: whether many do after one of its columns is permuted."""
    if len(rows) < _FEWEST:
        return True
    rng = np.random.default_rng(0)
    some = rng.permutation(rows)[:20_000]
    for name in equation.columns:
        X = table.X[some].copy()
        j = table.schema.index(name)
        X[:, j] = X[rng.permutation(len(some)), j]
        share = 1.0 - contradicted(equation, table.schema, X).mean()
        nats = -np.log(max(share, 1e-3)) * len(rows)
        if nats < np.log(table.d**3 / CHANCE) * 2:
            return True
    return False
