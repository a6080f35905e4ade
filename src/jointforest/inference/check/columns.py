"""The columns of a checked table: their distinct values, and the true values that errors may have changed into them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...data.cells import absent
from ...data.schema import Column
from .texts import WAYS, Slips, log_new

TYPING, SHIFT, UNIT, SIGN, RANDOM, ANY, SWAP, RULE = range(8)
"""Kinds of errors: a typing error, shifted digits, another unit or sign, a random value of the column, any value.

The last two are a swap with the neighbouring column, and a value that breaks a rule: see `swaps` and `rules`.
"""
_UNITS = (2.54, 12.0, 60.0, 0.45359237, 1.609344, 0.3048)
FACTORS = (
    (SIGN, -1.0),
    *((SHIFT, 10.0**k) for k in (-3, -2, -1, 1, 2, 3)),
    *((UNIT, factor) for x in _UNITS for factor in (x, 1.0 / x)),
)
_KINDS_OF_LEVELS = np.array([TYPING, RANDOM, ANY])
_KINDS_OF_NUMBERS = np.array([kind for kind, _ in FACTORS] + [RANDOM, ANY])
_FREQUENT = 10.0  # a text among close ones is a typing error only of texts that are as many times as frequent
_CLOSE = 3  # least number of such texts that are near each other, beyond a pair such as male and female
_LEAST = 50.0  # log-probabilities below minus this are equal
_TAIL = 8  # least number of cells from which a tail is estimated
_SHIFT = 1.0  # added to distances, in units of that of the innermost cell of a tail: between a power and exponential
_STEEP = 30.0  # greatest exponent of a tail
_DECIMALS = 6  # numbers with as many decimals, or more, count as having any number of them
_OTHER_LETTERS = 10  # letters that are not in the column, but that an error may contain

Coder = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Gives the codes of numbers or levels in the joint, and p(number or level | code) of each."""


class CheckedColumn:
    """One column: its cells as indices of distinct values, and the errors that lead to these values.

    values : list. First the U = ``n_seen`` distinct known cells, then values that no cell has but that may be true. V
        in total.
    written : dict of int to object. In columns of numbers, a cell of the frame for each of the first U values.
    item : int array (n,). The index in ``values`` of each row's cell; -1 where it is missing or blank.
    is_blank : bool array (n,). Whether the cell is an empty text, or consists of spaces.
    is_range : bool array (n,), ranges : object array (n,). Whether the cell is a range, which is not checked; and the
        text of such a cell.
    is_learned : bool. Whether the joint has learned the cells of this table.
    n_seen : int. Number of values that some cell has.
    count, learned : float arrays (n_seen,), (V,). Number of cells of each value in this table, and in the table that
        the joint has learned.
    kinds : int array (E,). Kind of each error of the column, such as one for each factor. The last two do not depend on
        the truth.
    truth : int array (n_seen, C). True values that an error may have changed into each value; -1 where there are fewer
        than C.
    place : int array (C,). The error, an index into ``kinds``, of each column of ``truth``.
    errors : int array. The errors that occur: those of ``place`` and the last two.
    log_error : float array (n_seen, C). log p(value in the cell | truth, error).
    log_random, log_any : float arrays (n_seen,). The same for the last two errors, a random value and any value.
    log_beside : float array (n_seen,). In columns of numbers, log p(value), by the cells with other values alone.
    log_new : float array (n_seen,). log p(value | no other row has it); -inf for numbers, because the joint itself
        allows new numbers.
    number : float array (V,). Each value as the schema encodes it; NaN if it cannot.
    code : int array (V,), measure : float array (V,). Code of each value in the joint, or -1 if it has none; and
        p(value | code).
    has_mass : bool. Whether the column has a grid, levels or atoms, so that single values are frequent.
    genuine : float array (V,). Expected over observed number of cells as far from the others as a value; 1 in no tail:
        see `_tail`.
    measure_without_row : float array (V,). ``measure`` without the contribution of the row's own cell: see `weigh`.
    """

    def __init__(
        self,
        column: Column,
        coder: Coder,
        marginal: np.ndarray,
        cells: Sequence[Any],
        numbers: np.ndarray,
        is_learned: bool,
        is_range: np.ndarray,
    ) -> None:
        self.column, self.n_codes, self.is_learned = column, len(marginal), is_learned
        self._coder, self._marginal = coder, np.append(marginal, 0.0)
        self.is_levels = column.is_categorical
        self.kinds = _KINDS_OF_LEVELS if self.is_levels else _KINDS_OF_NUMBERS
        self.is_blank = np.array([isinstance(cell, str) and not cell.strip() for cell in cells], bool)
        self.is_range = is_range
        self.ranges = np.array([str(x) if is_one else None for x, is_one in zip(cells, is_range, strict=True)], object)
        number = self._of_levels(cells) if self.is_levels else self._of_numbers(cells, numbers)
        self.number, U = number, self.n_seen
        self.count = np.bincount(self.item[self.item >= 0], minlength=U).astype(float)[:U]
        self._of_decimals = _masses_of_decimals(number[self.item[self.item >= 0]] if column.step == 0.0 else number[:0])
        self.code, self.measure = self._coded(number)
        self.has_mass = self.is_levels or column.step > 0.0 or len(column.atoms) > 0
        self._share = self._marginal[self.code]
        self.learned = np.rint(self._share * self.measure * column.n_observed)  # whole numbers of levels
        self.genuine = np.ones(len(number))
        self.slips: Slips | None = None
        self.log_new = np.full(U, -np.inf)
        if self.is_levels:
            self._typing_errors()
            others = np.maximum(self.count - 1.0, 0.0) + np.maximum(self.learned[:U] - is_learned, 0.0)
            random = others / max(self.count.sum() + column.n_observed, 1.0)
            alphabet = len({c for text in self.texts for c in text}) + _OTHER_LETTERS
            self.log_any = -np.log(alphabet) * np.array([len(text) + 1.0 for text in self.texts[:U]])
        else:
            self._spread(number[:U])
            self.weigh(np.ones(len(self.item)))
            if is_learned:
                self.genuine = self._tail(number)
            random = self.marginal_without_row[:U] * self.genuine[:U]
        E = len(self.kinds)
        self.errors = np.arange(E) if self.is_levels else np.append(self.place, [E - 2, E - 1])
        with np.errstate(divide="ignore"):
            self.log_random = np.log(random)

    def value(self, i: int) -> Any:
        """Value i in the form of a cell of the frame; None for -1."""
        if i < 0:
            return None
        if self.is_levels:
            return self.values[i]
        if i < self.n_seen:
            return self.written[i]
        of, number = self.column, self.values[i]
        cell = of.written.cell(number + of.zero) if of.written is not None else of.from_number(number)
        return float(cell) if isinstance(cell, int) and isinstance(self.written.get(0), float) else cell

    def log_marginal(self, numbers: np.ndarray) -> np.ndarray:
        """log p(number or code of a level) in the joint, (r,); 0 of one that it does not know."""
        distinct, place = np.unique(numbers, return_inverse=True)
        code, measure = self._coded(distinct)
        with np.errstate(divide="ignore"):
            out = np.where(code >= 0, np.log(self._marginal[code] * measure), 0.0)
        return np.asarray(np.maximum(out, -_LEAST)[place])

    def _coded(self, number: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Codes in the joint of numbers or codes of levels, (V,), -1 for NaN; and p(number or level | code)."""
        code, measure, has = np.full(len(number), -1), np.zeros(len(number)), ~np.isnan(number)
        if has.any():
            code[has], measure[has] = self._coder(number[has])
        if not self.is_levels and self.column.step == 0.0:
            is_density = ~np.isin(number, self.column.atoms)
            measure[is_density] *= self._of_decimals[_decimals(number[is_density])]
        return code, measure

    def items_of(self, numbers: np.ndarray, may_add: bool = True) -> np.ndarray:
        """Indices of numbers or codes of levels in `values`, (r,). Numbers that are not there are added, or get -1."""
        new = np.setdiff1d(numbers, self.number)
        if len(new) and may_add:
            code, measure = self._coded(new)
            self.number = np.append(self.number, new)
            self.values.extend(new.tolist())
            self.code, self.measure = np.append(self.code, code), np.append(self.measure, measure)
            self._share = self._marginal[self.code]
            self.learned, self.genuine = (np.append(x, np.ones(len(new))) for x in (self.learned, self.genuine))
            self.weigh(np.ones(len(self.item)))
        order = np.argsort(self.number)  # levels that the joint does not know are NaN, and come last
        place = np.minimum(np.searchsorted(self.number[order], numbers), len(order) - 1)
        return np.where(self.number[order][place] == numbers, order[place], -1)

    @property
    def has_close_levels(self) -> bool:
        """Whether most cells have a text that is near several of similar frequency, as codes do: N516UA, N517UA."""
        if self.slips is None:
            return False
        seen, count = self.slips.seen, np.append(self.count, 0.0)
        is_similar = _FREQUENT * count[np.minimum(self.slips.truth, self.n_seen)] > count[seen]
        many = np.bincount(seen[is_similar], minlength=self.n_seen) >= _CLOSE
        return bool(2.0 * self.count[many].sum() > self.count.sum())

    def leave_out_close_levels(self) -> None:
        """Take no text as a typing error of one that is not much more frequent."""
        count = np.append(self.count, np.zeros(len(self.values) - self.n_seen))
        self.truth[(self.truth >= 0) & (count[self.truth] < _FREQUENT * self.count[:, None])] = -1

    def learn_letters(self, letter: Mapping[str, float], way: np.ndarray, further: float) -> None:
        """Set the probability of each typing error; for the arguments see `Slips.log_probability`."""
        if self.slips is not None:
            order, slot = self._slots
            log_p = self.slips.log_probability(letter, way, further)
            self.log_error[self.slips.seen[order], slot] = log_p[order]

    def learn_texts(self, weight: np.ndarray) -> None:
        """Set the probabilities of new texts, learned from right cells; ``weight`` (n,) is p(cell is right)."""
        if self.is_levels:
            right = np.append(self._right(weight), self.learned[self.n_seen :])
            self.log_new = log_new(self.texts, np.sqrt(right))[: self.n_seen]

    def weigh(self, weight: np.ndarray) -> None:
        """Set ``measure_without_row``; ``weight`` (n,) is p(cell is right)."""
        # If the joint has learned this table, it has also learned its errors. Therefore a level that only one row has
        # gets 0, and a number that only one row has gets the density of its neighbours.
        right, U = self._right(weight) / np.maximum(self.count, 1.0), self.n_seen
        self.measure_without_row = out = self.measure.copy()
        if not self.is_learned:
            return
        if self.is_levels:
            out[:U] *= np.maximum(self.learned[:U] * right - 1.0, 0.0) / np.maximum(self.learned[:U], 1.0)
            return
        c = np.maximum(self.count, 1.0)
        out[:U] = (out[:U] * (c - 1.0) + self._beside) / c
        cells = np.bincount(self.code[:U], self.count, self.n_codes)
        kept = np.bincount(self.code[:U], self.count * right, self.n_codes)
        share = (kept.sum() + 1.0) / (cells.sum() + 1.0)
        self.measure_without_row = np.asarray(out * ((kept + 1.0) / (cells + 1.0) / share)[self.code])

    @property
    def marginal_without_row(self) -> np.ndarray:
        """Marginal probabilities of values, (V,), without the contribution of the row's own cell."""
        return self._share * self.measure_without_row

    def _right(self, weight: np.ndarray) -> np.ndarray:
        """Expected number of right cells of each value, (U,)."""
        known = self.item >= 0
        return np.bincount(self.item[known], weight[known], self.n_seen)[: self.n_seen]

    def _of_levels(self, cells: Sequence[Any]) -> np.ndarray:
        """Set the values of a column of levels; returns their codes in the schema, (V,), or NaN."""
        known = [not (absent(cell) or blank) for cell, blank in zip(cells, self.is_blank.tolist(), strict=True)]
        seen = dict.fromkeys(cell for cell, is_known in zip(cells, known, strict=True) if is_known)
        place = {value: i for i, value in enumerate(seen)}
        self.item = np.array([place[c] if is_known else -1 for c, is_known in zip(cells, known, strict=True)], np.int64)
        self.n_seen = len(seen)
        others = [level for level in self.column.levels if level not in place and str(level).strip()]
        self.values: list[Any] = [*seen, *others]
        self.texts = [str(value) for value in self.values]
        codes = [self.column.code(value) for value in self.values]
        return np.array([np.nan if code is None else float(code) for code in codes])

    def _of_numbers(self, cells: Sequence[Any], numbers: np.ndarray) -> np.ndarray:
        """Set the values of a column of numbers, and their candidates; returns the values, (V,). The candidates of a
        number are its quotients by `FACTORS` that are on the grid and in the range of the column. Dates have none."""
        column, known = self.column, ~np.isnan(numbers)
        number, item = np.unique(numbers[known], return_inverse=True)
        self.item = np.full(len(numbers), -1)
        self.item[known] = item
        self.n_seen = U = len(number)
        self.written = dict(zip(self.item.tolist(), cells, strict=True))
        factors = np.array([f for _, f in FACTORS])
        truths = number[:, None] / factors
        fits = np.full(truths.shape, column.kind != "datetime")
        if column.step > 0.0:
            nearest = column.center + np.rint((truths - column.center) / column.step) * column.step
            again = nearest * factors
            fits &= np.abs(again - number[:, None]) <= 0.5 * column.step * (1.0 + 1e-6)
            truths = nearest
        else:
            truths = _rounded(truths, factors, number)
        fits &= (truths >= column.minimum) & (truths <= column.maximum) & (truths != number[:, None])
        others = np.setdiff1d(truths[fits], number)
        every = np.concatenate([number, others])
        order = np.argsort(every)
        truth = np.full(truths.shape, -1)
        truth[fits] = order[np.searchsorted(every[order], truths[fits])]
        # The density of numbers with any decimals is that of their truth over the factor.
        is_density = (column.step == 0.0) & ~np.isin(truths, column.atoms)
        is_density &= (_decimals(truths) == _DECIMALS) & (_decimals(number) == _DECIMALS)[:, None]
        log_density = np.where(is_density, -np.log(np.abs(factors)), 0.0)
        self.place = np.flatnonzero(fits.any(axis=0))
        self.truth, self.log_error = truth[:, self.place], np.where(fits, log_density, -np.inf)[:, self.place]
        self.values = every.tolist()
        self.texts = [str(value) for value in self.values[:U]]
        return every

    def _typing_errors(self) -> None:
        """Set the candidates of texts, which a typing error may have changed into them."""
        self.slips = slips = Slips(self.texts, self.n_seen)
        order = np.argsort(slips.seen, kind="stable")
        slot = np.arange(len(order)) - np.searchsorted(slips.seen[order], slips.seen[order])
        width = int(slot.max(initial=-1)) + 1
        self.truth, self.place = np.full((self.n_seen, width), -1), np.zeros(width, np.int64)
        self.log_error = np.full((self.n_seen, width), -np.inf)
        self.truth[slips.seen[order], slot] = slips.truth[order]
        self._slots = order, slot
        self.learn_letters({}, np.full(len(WAYS), 1.0 / len(WAYS)), 0.2)
        self.learn_texts(np.ones(len(self.item)))

    def _spread(self, number: np.ndarray) -> None:
        """Set the densities of numbers without their own cells, and a wide Cauchy distribution of any value."""
        # On a grid, the density comes from the distances to the neighbouring values. The Cauchy distribution has the
        # width of the inner 90 % of the cells, which a few odd values do not change.
        column, U, unit = self.column, len(number), self.column.step
        self._beside = self.measure[:U]
        if column.step > 0.0:
            near = unit / np.diff(number, prepend=-np.inf, append=np.inf)
            cells = np.bincount(self.code[:U], self.count, self.n_codes)[self.code[:U]]
            self._beside = np.minimum(0.5 * (near[1:] + near[:-1]) / (cells + 1.0), 1.0)
        low, high = np.quantile(self._numbers(number), [0.05, 0.95]) if self.is_learned and U else (0.0, 0.0)
        if low == high:
            low, high = column.minimum, column.maximum
        width = max(high - low, column.step, 1e-12)
        if column.step == 0.0:  # a wrong number may have other decimals than those of the column
            widths = 0.1 ** np.arange(_DECIMALS + 1)
            unit = (0.5 * self._of_decimals + 0.5 * widths / (_DECIMALS + 1))[_decimals(number)]
        self.log_any = np.log(unit / (np.pi * width * (1.0 + ((number - 0.5 * (low + high)) / width) ** 2)))
        self.log_beside = self.log_any
        if column.step > 0.0:
            self.log_beside = np.log(np.maximum(self._share[:U] * self._beside, np.exp(self.log_any)))

    def _numbers(self, number: np.ndarray) -> np.ndarray:
        """The known cells; ``number`` starts with the distinct values."""
        return number[self.item[self.item >= 0]]

    def _tail(self, number: np.ndarray) -> np.ndarray:
        """Expected number of cells as far out as a value, over its own number, (V,); at most 1, in no tail 1."""
        # The share of cells further out falls as a power of the distance. Its exponent is that of the median of the
        # outermost cells (Hill 1975 takes their mean), so a few of these may be wrong. If no other cell is below 0,
        # there are two surprises, each of probability 1 / n: that the column has such cells, and that this is one.
        x, half, is_date = self._numbers(number), 0.5 * self.column.step, self.column.kind == "datetime"
        n, k, center = len(x), max(_TAIL, len(x) // 50), float(np.median(x)) if len(x) else 0.0
        out, count = np.full(len(number), np.inf), np.append(self.count, np.zeros(len(number) - self.n_seen))
        for sign in (1.0, -1.0):
            d, top = sign * (number - center), np.sort(sign * (x - center))[-k:]
            if n < 2 * k or top[0] <= half:
                continue
            edge = top[0] * (1.0 + _SHIFT)
            tail = np.log((top + half + _SHIFT * top[0]) / (edge - half))
            # Of few distinct values, many more cells than these are as far as the innermost one.
            m = int(np.count_nonzero(sign * (x - center) >= top[0]))
            power = np.log(2.0 * m / k) / max(float(np.median(tail)), np.log(2.0) / _STEEP)
            further = np.append(d, -sign * center) - half + _SHIFT * top[0]
            beyond = m * np.maximum(further / (edge - half), 1.0) ** -power
            far = d > top[0]
            out[far] = beyond[:-1][far]
            across = far & (d > -sign * center) & (-sign * center > top[0]) & (not is_date)  # other signs than the rest
            others = count[across].sum() - count[across]
            out[across] *= np.minimum(np.where(others > 0.0, others, 1.0 / n) / beyond[-1], 1.0)
        return np.minimum(out / np.maximum(count, 1.0), 1.0)


def _decimals(numbers: np.ndarray) -> np.ndarray:
    """The number of decimals of each number, at most `_DECIMALS`."""
    out = np.full(numbers.shape, _DECIMALS)
    for k in reversed(range(_DECIMALS)):
        scaled, whole = numbers * 10.0**k, np.rint(numbers * 10.0**k)
        is_whole = np.abs(scaled - whole) <= 1e-6 + 1e-12 * np.abs(scaled)
        out[is_whole & ((whole != 0.0) | (numbers == 0.0))] = k  # a small number is not 0
    return out


def _rounded(truths: np.ndarray, factors: np.ndarray, number: np.ndarray) -> np.ndarray:
    """The numbers of fewest decimals near ``truths`` (U, F) whose products with the factors (F,) round to ``number``
    (U,)."""
    # They have at least two decimals fewer. One fewer is common by chance, and there are many factors.
    decimals = _decimals(number)
    near = np.where(decimals < _DECIMALS, 0.5 * 0.1**decimals, 0.0) + 1e-12 * np.abs(number)
    out = truths.copy()
    for k in reversed(range(_DECIMALS - 1)):
        fewer = np.rint(truths * 10.0**k) / 10.0**k
        is_near = (np.abs(fewer * factors - number[:, None]) <= near[:, None]) & (decimals >= k + 2)[:, None]
        out[is_near] = fewer[is_near]
    return out


def _masses_of_decimals(cells: np.ndarray) -> np.ndarray:
    """The width of the density that belongs to a number with 0, 1, ... decimals, times the share of such cells."""
    # A column without a grid may still have few decimals in most cells. Then other numbers are improbable, and a number
    # that has few decimals after a division by a factor is probably an error.
    count = np.bincount(_decimals(cells), minlength=_DECIMALS + 1) + 1.0
    return np.asarray(count / count.sum() * 0.1 ** np.arange(_DECIMALS + 1))
