"""The columns of a table to check: the distinct values of each, and which errors lead to them from which truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...data.cells import absent
from ...data.discretization.discretizer import Scale, codes_of
from ...data.schema import Column
from .texts import WAYS, Slips, log_new

TYPING, SHIFT, UNIT, RANDOM, ANY = range(5)
"""Kinds of errors: a typing error, digits shifted, another unit, a value of the column at random, any value at all."""
_FACTORS = tuple((SHIFT, 10.0**k) for k in (-3, -2, -1, 1, 2, 3)) + tuple(
    (UNIT, f) for x in (2.54, 12.0, 60.0, 0.45359237, 1.609344, 0.3048) for f in (x, 1.0 / x)
)
KINDS_OF_LEVELS = np.array([TYPING, RANDOM, ANY])
KINDS_OF_NUMBERS = np.array([kind for kind, _ in _FACTORS] + [RANDOM, ANY])
"""Kinds of each error in the model of a column; the last two tell nothing of the truth."""


class CheckedColumn:
    """One column: its cells as numbers of values, and what errors make of values.

    Attributes
    ----------
    column : Column
    scale : Scale
        Codes of the joint, and the measure inside each.
    values : list
        Distinct known cells, as in the frame; truths that no cell has come behind, as numbers.
    item : int array (n,)
        The value of each row's cell; -1 where it is missing or blank.
    n_seen : int
        Values that some cell has.
    count : float array (n_seen,)
    truth : int array (n_seen, C)
        Values that an error of a kind of its own may have changed into each; -1 where there are fewer than C.
    kinds : int array (E,)
        Kinds of the column's errors; several may be of one kind, such as factors of 10 and 100.
    place : int array (C,)
        Which of these errors changes the truths of each place of ``truth``.
    log_error : float array (n_seen, C)
        log p(seen | truth, error).
    log_random, log_any : float arrays (n_seen,)
        The same of the last two kinds, which tell nothing of the truth.
    log_new : float array (n_seen,)
        log p(value | it is in no other row); -inf for numbers, of which the joint knows.
    code : int array (V,), measure : float array (V,)
        Code of each value in the joint, -1 if it has none, and the base measure there.
    mean_measure : float array (n_seen,)
        Mean base measure in the code of a number; 0 of levels.
    """

    def __init__(self, column: Column, scale: Scale, cells: Sequence[Any], numbers: np.ndarray) -> None:
        self.column, self.scale = column, scale
        self.is_levels = column.is_categorical
        self.kinds = KINDS_OF_LEVELS if self.is_levels else KINDS_OF_NUMBERS
        if self.is_levels:
            known = [None if absent(cell) else cell for cell in cells]
            blank = [cell is None or (isinstance(cell, str) and not cell.strip()) for cell in known]
            self.values: list[Any] = list(dict.fromkeys(c for c, b in zip(known, blank, strict=True) if not b))
            place = {value: i for i, value in enumerate(self.values)}
            self.item = np.array([-1 if b else place[c] for c, b in zip(known, blank, strict=True)], np.int64)
            codes = [column.code(value) for value in self.values]
            number = np.array([np.nan if code is None else float(code) for code in codes])
        else:
            number, item = np.unique(numbers[~np.isnan(numbers)], return_inverse=True)
            self.item = np.full(len(numbers), -1)
            self.item[~np.isnan(numbers)] = item
            self.values = number.tolist()
        self.n_seen = len(self.values)
        self.count = np.bincount(self.item[self.item >= 0], minlength=self.n_seen).astype(float)
        self.texts = [value if isinstance(value, str) else str(value) for value in self.values[: self.n_seen]]
        self.slips: Slips | None = None
        self.log_new = np.full(self.n_seen, -np.inf)
        if self.is_levels:
            self._levels()
        else:
            number = self._numbers(number)
        self.code = np.full(len(number), -1)
        self.measure = np.zeros(len(number))
        has = ~np.isnan(number)
        code, log_base = codes_of(scale, number[has])
        self.code[has], self.measure[has] = code, np.exp(log_base) * (column.step if column.step > 0.0 else 1.0)
        self.number = number
        self.mean_measure = np.zeros(self.n_seen)
        if not self.is_levels:
            self._wide(number)

    def learn_letters(self, letter: Mapping[str, float], way: np.ndarray, further: float) -> None:
        """Set how probable each typing error is: see `Slips.log_probability`."""
        if self.slips is not None:
            order, slot = self._slots
            self.log_error[self.slips.seen[order], slot] = self.slips.log_probability(letter, way, further)[order]

    def elsewhere(self, weight: np.ndarray) -> np.ndarray:
        """The base measure that other rows vouch for, (V,), if a row's cell is right with probability ``weight`` (n,).

        The joint has learned from all cells. A level of one row has nothing, such a number the mean of its code.
        """
        known, U = self.item >= 0, self.n_seen
        right = np.bincount(self.item[known], weight[known], U)
        out = self.measure.copy()
        if self.is_levels:
            out[:U] *= np.maximum(right - 1.0, 0.0) / np.maximum(self.count, 1.0)
            return out
        c = np.maximum(self.count, 1.0)
        out[:U] = (out[:U] * (c - 1.0) + self.mean_measure) / c
        n_codes = self.scale.n_codes
        all_cells = np.bincount(self.code[:U], self.count, n_codes)
        return np.asarray(out * ((np.bincount(self.code[:U], right, n_codes) + 1.0) / (all_cells + 1.0))[self.code])

    def learn_texts(self, weight: np.ndarray) -> None:
        """Set how probable new texts are, by those of the cells that are right: ``weight`` (n,) of each row."""
        if self.is_levels:
            known = self.item >= 0
            right = np.bincount(self.item[known], weight[known], self.n_seen)
            self.log_new = log_new(self.texts, np.sqrt(right))

    def _levels(self) -> None:
        self.slips = slips = Slips(self.texts)
        order = np.argsort(slips.seen, kind="stable")
        first = np.searchsorted(slips.seen[order], np.arange(self.n_seen))
        slot = np.arange(len(order)) - first[slips.seen[order]] if len(order) else order
        width = int(slot.max(initial=-1)) + 1
        self.truth, self.place = np.full((self.n_seen, width), -1), np.zeros(width, np.int64)
        self.log_error = np.full((self.n_seen, width), -np.inf)
        self.truth[slips.seen[order], slot] = slips.truth[order]
        self._slots = order, slot
        self.learn_letters({}, np.full(len(WAYS), 1.0 / len(WAYS)), 0.2)
        self.learn_texts(np.ones(len(self.item)))
        with np.errstate(divide="ignore"):  # a value of no other row is not one at random
            self.log_random = np.log((self.count - 1.0) / max(self.count.sum() - 1.0, 1.0))
        alphabet = len({c for text in self.texts for c in text}) + 10
        self.log_any = -np.log(alphabet) * np.array([len(text) + 1.0 for text in self.texts])

    def _numbers(self, number: np.ndarray) -> np.ndarray:
        """Candidates of numbers: what a factor leads to them from, on the grid and in the range of the column."""
        column, U, C = self.column, self.n_seen, len(_FACTORS)
        truths = number[:, None] / np.array([f for _, f in _FACTORS])
        if column.step > 0.0:
            nearest = column.center + np.rint((truths - column.center) / column.step) * column.step
            fits = np.abs(nearest - truths) < 0.5 * column.step + 1e-9
            truths = nearest
        else:
            fits = np.ones(truths.shape, bool)
        fits &= (truths >= column.minimum) & (truths <= column.maximum) & (truths != number[:, None])
        everything, place = np.unique(np.concatenate([number, truths[fits]]), return_inverse=True)
        old = place[:U]
        new_place = np.full(len(everything), -1)
        new_place[old] = np.arange(U)
        new_place[new_place < 0] = U + np.arange(len(everything) - U)
        in_order = np.empty(len(everything))
        in_order[new_place] = everything
        self.truth = np.full((U, C), -1)
        self.truth[fits] = new_place[place[U:]]
        self.place = np.arange(C)
        self.log_error = np.where(fits, 0.0, -np.inf)
        self.values = in_order.tolist()
        return in_order

    def _wide(self, number: np.ndarray) -> None:
        """Values at random have the column's own distribution, and others a Cauchy one about it."""
        U, column = self.n_seen, self.column
        share = np.bincount(self.code[:U], self.count, self.scale.n_codes) / max(self.count.sum(), 1.0)
        with np.errstate(divide="ignore"):
            self.log_random = np.log(share[self.code[:U]] * self.measure[:U])
        width = max(column.maximum - column.minimum, column.step, 1e-12)
        center = 0.5 * (column.maximum + column.minimum)
        unit = column.step if column.step > 0.0 else 1.0
        first, last = (np.full(self.scale.n_codes, x) for x in (column.maximum, column.minimum))
        np.minimum.at(first, self.code[:U], number[:U])
        np.maximum.at(last, self.code[:U], number[:U])
        mean = unit / np.maximum(last - first + unit, unit)[self.code[:U]] if column.step > 0.0 else self.measure[:U]
        self.mean_measure = mean
        density = 1.0 / (np.pi * width * (1.0 + ((number[:U] - center) / width) ** 2))
        self.log_any = np.log(density * unit)
