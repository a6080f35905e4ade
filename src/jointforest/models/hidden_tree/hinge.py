"""One row of evidence with a sum, in one hidden tree: the mathematics.

A total is t = x_1 + ... + x_m, m = 2 or 3, where the parts x_i are columns on one lattice. On the paths between the
parts' nodes lies a node, the *hinge*, given whose state h the parts are independent. Write e for all evidence but what
concerns the parts and the total. A part has the value s with the code c(s), and

    p(x_i = s | h, e) = w_i(s) p(c(s) | h, e),

where w_i(s) is the share of the code that s has, times the likelihood of s. The columns of the tree have few
codes and many values, so that only p(c | h, e) depends on the row. The evidence on the total is a likelihood
L(t), which is 1 at one place of the lattice if the total is known. Then

    p(L | e) = sum_h p(h | e) sum_{s_1, ..., s_m} L(s_1 + ... + s_m) prod_i p(x_i = s_i | h, e).

The sum over the values is a convolution. The parts but the last, the *short* ones, are convolved in each state h:

    q_h(y) = p(sum of the short parts = y | h, e),        l_h(s) = sum_y L(y + s) q_h(y).

l_h(s) is the likelihood of the value s of the last part (`LastPart`). A known total needs no y beyond it. The posterior
of a state is proportional to p(h | e) sum_s l_h(s) p(x_m = s | h, e), and that of a value to w_m(s) sum_h p(h | e)
l_h(s) p(c(s) | h, e) (`AtHinge`). The likelihood of the values of a short part is found by a correlation in the same
way.

Where the total is known, or there are two parts, no convolution is needed (`AtHinge` is for other cases). Many of the
values that make a possible total have the same codes c_1, ..., c_m. Such a *run* has a weight that no state changes,

    W(c_1, ..., c_m) = sum over its values of L(s_1 + ... + s_m) prod_i w_i(s_i),        so that
    p(L | e) = sum over the runs of W f,   with the factor f(c_1, ..., c_m) = sum_h p(h | e) prod_i p(c_i | h, e).

Runs and weights are found once for all trees (`CodeRuns`), and factors in each (`RunsAtHinge`). The posterior of some
values is the product of their weights and the factor of their run. It is linear in the factors, which are therefore
mixed over the trees first.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from scipy import fft

from ...data.discretization.discretizer import codes_of
from ...runtime.threads import chunks
from .hidden_trees import HiddenTrees
from .linked_kernels import (
    Last,
    Listed,
    TotalPieces,
    convolved,
    correlated,
    factors_of_runs,
    laws_of_runs,
    laws_of_values,
    likelihoods_of_codes,
    placed,
    runs,
    summed_codes,
)

# ---- A sum of two or three columns on one lattice, and the likelihood of its total in one row of evidence.

_MOST_PIECES = 64
"""Two parts are treated by their codes if the totals form at most this many runs of equal likelihood."""


class LinkedSum(NamedTuple):
    """A sum of two or three columns, whose values are on one lattice, and the likelihood of its total.

    The *total* is the value of the sum. Its likelihood comes from one row of evidence.

    columns : tuple of int. The columns of the sum (its parts). The one with the most values is last.
    values : tuple of float64 arrays (S_i,). All possible values of each part, or codes of its levels, ascending.
    log_like : tuple of float64 arrays (S_i,). Log-likelihood of each of these values in the evidence.
    places : tuple of int64 arrays (S_i,). Each value in steps of the lattice above the least value of the part; the
        places of the parts add up.
    first : int. Place of the first total in ``likelihood``.
    likelihood : float64 array (L,). Likelihood of the totals from ``first`` on; that of all other totals is 0.
    """

    columns: tuple[int, ...]
    values: tuple[np.ndarray, ...]
    log_like: tuple[np.ndarray, ...]
    places: tuple[np.ndarray, ...]
    first: int
    likelihood: np.ndarray

    @property
    def size(self) -> int:
        """Number of places of totals on the lattice, between the least and the greatest total."""
        return sum(int(x.max()) for x in self.places) + 1

    @property
    def has_few_totals(self) -> bool:
        """Whether at most four totals are possible, so that they are treated one by one."""
        return int(np.count_nonzero(self.likelihood)) <= 4

    @property
    def is_by_codes(self) -> bool:
        """Whether values are grouped by their codes: few totals are possible, or there are two parts and few pieces."""
        return self.has_few_totals or (len(self.columns) == 2 and self.n_pieces <= _MOST_PIECES)

    @property
    def n_pieces(self) -> int:
        """Number of pieces: runs of neighbouring totals with the same positive likelihood."""
        starts = np.diff(self.likelihood, prepend=0.0) != 0.0
        return int(np.count_nonzero(starts & (self.likelihood > 0.0)))

    def all_totals(self) -> np.ndarray:
        """Likelihood of every total on the lattice, (size,)."""
        out = np.zeros(self.size)
        out[self.first : self.first + len(self.likelihood)] = self.likelihood
        return out


_STATES = 32
"""States whose transforms are held at once."""
_PAIRS = 1 << 22
"""Most pairs of places whose table is held."""
_FEW = 4
"""Totals of one likelihood that are taken one by one."""


class Part(NamedTuple):
    """A part in one row: each value's code (S,), and its share of the code times its likelihood (S,)."""

    code: np.ndarray
    weight: np.ndarray


def parts_of(hidden: HiddenTrees, sums: Sequence[LinkedSum]) -> list[tuple[Part, ...]]:
    """Codes and weights of the values of all parts; rows that have the same values share what is looked up."""

    def plain(j: int, values: np.ndarray) -> Part:
        code, log_base = codes_of(hidden.scales[j], values)
        step = hidden.schema.columns[j].step or 1.0  # of a column of levels the base is a share already
        return Part(code.astype(np.int64), np.exp(log_base + np.log(step)))

    found = []
    for one in sums:
        parts = []
        for j, values, log_like in zip(one.columns, one.values, one.log_like, strict=True):
            part = hidden.kept.of(("part", j), partial(plain, j), values)
            parts.append(Part(part.code, part.weight * np.exp(log_like)) if log_like.any() else part)
        found.append(tuple(parts))
    return found


class PartPosterior(NamedTuple):
    """Posterior of the values of a part, from one of them on; that of all others is 0."""

    first: int
    p: np.ndarray

    @staticmethod
    def of(p: np.ndarray) -> PartPosterior:
        """The posterior of values (S,), without those of probability 0 at both ends, to save memory."""
        some = np.flatnonzero(p)
        if not len(some):
            return PartPosterior(0, np.full(1, np.nan))
        return PartPosterior(int(some[0]), p[some[0] : some[-1] + 1].copy())


class CodeRuns:
    """Values of two or three parts that make a possible total, in one row: runs of those that have the same codes.

    Of a sum of two parts, the first one of three has one value, 0.

    code : int64 array (3, R). The codes of each run.
    weight : float64 array (R,). Sum over the run of weights of values times the likelihood of their total.
    """

    def __init__(
        self, one: LinkedSum, parts: tuple[Part, ...], short: list[Listed], last: Last, n_codes: tuple[int, ...]
    ) -> None:
        self.one, self.parts, self._n_codes = one, parts, n_codes
        self._none = none = 3 - len(parts)
        self._values = (
            _total_pieces(one),
            (_ZERO,) * none + one.places[:-1],
            (_ONE,) * none + tuple(part.weight for part in parts[:-1]),
            *[Listed(_ZERO, np.arange(2))] * none,
            *short,
            last,
        )
        self.code, self.weight = runs(*self._values, n_codes[-1])

    def laws(self, factor: np.ndarray) -> list[PartPosterior]:
        """Posteriors of the values of each part, from what each run (R,) multiplies the weights of its values with."""
        return [PartPosterior.of(p) for p in laws_of_runs(*self._values, self.code, factor)[self._none : 3]]

    def totals(self, factor: np.ndarray) -> np.ndarray:
        """The posterior of the total, (L,)."""
        if not self.one.has_few_totals:  # of two parts
            by_codes = np.zeros(self._n_codes)
            by_codes[self.code[1], self.code[2]] = factor
            return law_by_codes(self.one, self.parts, by_codes) * self.one.all_totals()
        law = np.zeros(self.one.size)
        law[_total_pieces(self.one).first] = laws_of_runs(*self._values, self.code, factor)[3]
        return law


_ZERO, _ONE = np.zeros(1, np.int64), np.ones(1)


def _total_pieces(one: LinkedSum) -> TotalPieces:
    """Totals of one likelihood; of a known total each for itself."""
    if one.has_few_totals:
        some = np.flatnonzero(one.likelihood)
        return TotalPieces(one.first + some, one.first + some + 1, one.likelihood[some])
    edges = np.flatnonzero(np.diff(one.likelihood, prepend=0.0, append=0.0))
    some = np.flatnonzero(one.likelihood[edges[:-1]])
    return TotalPieces(one.first + edges[some], one.first + edges[some + 1], one.likelihood[edges[some]])


def coded_runs(
    hidden: HiddenTrees, sums: Sequence[LinkedSum], parts: Sequence[tuple[Part, ...]]
) -> list[CodeRuns | None]:
    """Runs of the rows whose sum is taken by codes, None of others; equal rows share them."""
    made: dict[tuple[Any, ...], CodeRuns] = {}
    found: list[CodeRuns | None] = []
    for one, of in zip(sums, parts, strict=True):
        if not one.is_by_codes:
            found.append(None)
            continue
        key = (*map(id, of), *map(id, one.places), one.first, one.likelihood.tobytes())
        if key not in made:
            sizes = tuple(hidden.scales[j].n_codes for j in one.columns)
            short = [
                hidden.kept.of(("listed", K), partial(listed_by, size=K), part.code)
                for part, K in zip(of[:-1], sizes[:-1], strict=True)
            ]
            last = hidden.kept.of(("last",), last_of, of[-1], one.places[-1])
            made[key] = CodeRuns(one, of, short, last, sizes)
        found.append(made[key])
    return found


def listed_by(key: np.ndarray, size: int) -> Listed:
    """Values by their keys, which are below ``size``."""
    order = np.argsort(key, kind="stable")
    return Listed(order, np.searchsorted(key[order], np.arange(size + 1)))


def last_of(part: Part, places: np.ndarray) -> Last:
    """The values of the last part, by their places."""
    order, start = listed_by(places, int(places.max()) + 1)
    code, weight = part.code[order], part.weight[order]
    first = np.flatnonzero(np.diff(code, prepend=-1))
    size = np.diff(first, append=len(code))
    below = np.concatenate([np.cumsum(weight[a : a + n]) - weight[a : a + n] for a, n in zip(first, size, strict=True)])
    return Last(order, start, code, weight, np.repeat(first + size, size), below)


class RunsAtHinge:
    """The parts of one row that is taken by codes, given each state of the hinge.

    factor : float64 array (R,). Posterior of the codes of each run, divided by its weight.
    """

    def __init__(self, state: np.ndarray, by_code: list[np.ndarray], of: CodeRuns) -> None:
        self.runs = of
        self._none = 3 - len(by_code)
        self._state, self._by_code = state, (np.ones((1, len(state))),) * self._none + tuple(by_code)
        factor = factors_of_runs(of.code, self._by_code, np.require(state, requirements=["C", "W"]))
        self.probability = float(of.weight @ factor)
        self._scale = 1.0 / self.probability if self.probability > 0.0 else 0.0
        self.factor = factor * self._scale

    @cached_property
    def _likelihoods(self) -> tuple[np.ndarray, ...]:
        return likelihoods_of_codes(self.runs.code, self.runs.weight * self._scale, self._by_code)

    @property
    def posterior_state(self) -> np.ndarray:
        """p(state | all evidence), (H,)."""
        return np.asarray(self._state * (self._likelihoods[2] * self._by_code[2]).sum(axis=0))

    def weights(self, i: int) -> np.ndarray:
        """Likelihood of each code of part i and state of the hinge, (K, H)."""
        return self._likelihoods[self._none + i]

    def codes(self, i: int, size: int) -> np.ndarray:
        """Posterior of the codes of part i, (size,)."""
        return np.bincount(self.runs.code[self._none + i], self.factor * self.runs.weight, size)


class ShortParts:
    """The parts but the last, given each state of the hinge; places count steps of the lattice, below ``most``.

    each : list of float64 arrays (L_i, H). p(part i is at a place | state).
    sum : float64 array (L, H). The same of their sum.
    """

    def __init__(self, one: LinkedSum, parts: tuple[Part, ...], by_code: list[np.ndarray], most: int) -> None:
        self.each = [places_by_state(*of, most) for of in zip(parts[:-1], one.places[:-1], by_code[:-1], strict=True)]
        self.sum = self.each[0]
        if len(self.each) == 2:
            self.sum = convolved(*self.each, min(sum(map(len, self.each)) - 1, most))


class LastPart:
    """The likelihood of the last part by the short parts and the evidence on the total.

    most : int. Places of the last part that the total may reach.
    likelihood : float64 array (M, H). Of these places, in each state of the hinge.
    of_codes : float64 array (K, H). The same of its codes.
    """

    def __init__(self, one: LinkedSum, parts: tuple[Part, ...], short: ShortParts) -> None:
        self.one, self.parts, self.short = one, parts, short
        last, places = parts[-1], one.places[-1]
        self.most = one.first + len(one.likelihood)
        self.likelihood = _weighed_places(short.sum, one.all_totals(), min(int(places.max()) + 1, self.most))
        self.of_codes = summed_codes(last.weight, last.code, places, self.likelihood, int(last.code.max()) + 1)


class AtHinge:
    """The parts of one row, given each state of the hinge.

    state : float64 array (H,). p(state | evidence without the sum).
    """

    def __init__(self, state: np.ndarray, by_code: list[np.ndarray], known: LastPart) -> None:
        self.one, self.parts, self.short, self.known = known.one, known.parts, known.short, known
        self.state, self.by_code = state, by_code
        self._others: dict[int, np.ndarray] = {}
        by_state = state * (known.of_codes * by_code[-1][: len(known.of_codes)]).sum(axis=0)
        self.probability = max(float(by_state.sum()), 0.0)
        self._scale = 1.0 / self.probability if self.probability > 0.0 else 0.0
        self.posterior_state = by_state * self._scale

    @cached_property
    def last(self) -> np.ndarray:
        """p(last part is at a place | state), (M, H)."""
        return places_by_state(self.parts[-1], self.one.places[-1], self.by_code[-1], self.known.most)

    @cached_property
    def _of_short(self) -> np.ndarray:
        """Likelihood of each place of the sum of the short parts, in each state, by the last part and the total."""
        return _weighed_places(self.last, self.one.all_totals(), len(self.short.sum))

    def _likelihood(self, i: int) -> np.ndarray:
        """Likelihood of each place of part i, in each state, by the other parts and the total, (L_i, H)."""
        each = self.short.each
        if i == len(each):
            return self.known.likelihood
        if len(each) == 1:
            return self._of_short
        if i not in self._others:
            some = np.flatnonzero(self._of_short.any(axis=1))
            low, high = (int(some[0]), int(some[-1]) + 1) if len(some) else (0, 0)
            self._others[i] = correlated(self._of_short, low, high, each[1 - i], len(each[i]))
        return self._others[i]

    def weights(self, i: int) -> np.ndarray:
        """Likelihood of each code of part i and state of the hinge, (K, H)."""
        part, places, size = self.parts[i], self.one.places[i], len(self.by_code[i])
        if i == len(self.short.each):
            found = np.zeros((size, len(self.state)))
            found[: len(self.known.of_codes)] = self.known.of_codes * self._scale
            return found
        return np.asarray(summed_codes(part.weight, part.code, places, self._likelihood(i), size) * self._scale)

    def law(self, i: int) -> np.ndarray:
        """The distribution of the values of part i, (S,)."""
        part, by_state = self.parts[i], self.by_code[i] * (self.state * self._scale)
        return laws_of_values(part.weight, part.code, self.one.places[i], self._likelihood(i), by_state)

    def codes(self, i: int, size: int) -> np.ndarray:
        """Posterior of the codes of part i, (size,)."""
        return np.bincount(self.parts[i].code, self.law(i), size)

    def totals(self) -> np.ndarray:
        """The distribution of the total, (L,)."""
        law = law_of_total(self.short.sum * self.state, self.last, self.one.size)
        return law * self.one.all_totals() * self._scale


# ---- Sums over places of the lattice, in each of H states.


def places_by_state(part: Part, places: np.ndarray, by_code: np.ndarray, most: int) -> np.ndarray:
    """p(part is at a place | state) for at most ``most`` places, (L, H); ``by_code`` is p(code | state), (K, H)."""
    return placed(part.weight, part.code, places, np.ascontiguousarray(by_code), min(int(places.max()) + 1, most))


def law_of_total(a: np.ndarray, b: np.ndarray, size: int) -> np.ndarray:
    """sum_h sum_y a[x - y, h] b[y, h] for each place x, (size,)."""
    if len(a) * len(b) <= _PAIRS:
        place = np.add.outer(np.arange(len(a)), np.arange(len(b)))
        return np.bincount(place.ravel(), (a @ b.T).ravel(), size)
    n = fft.next_fast_len(size, real=True)
    found = np.zeros(n // 2 + 1, np.complex128)
    for first, stop in chunks(a.shape[1], _STATES):
        left, right = (fft.rfft(np.ascontiguousarray(x[:, first:stop].T), n) for x in (a, b))
        found += (left * right).sum(axis=0)
    return np.maximum(fft.irfft(found, n)[:size], 0.0)


def law_by_codes(one: LinkedSum, parts: tuple[Part, ...], factor: np.ndarray) -> np.ndarray:
    """sum_{c, d} factor[c, d] p(x_1 + x_2 = t | codes c and d) for each total t of two parts, (L,)."""
    # For each code d of the second part, the values of the first have the weights w_1(s) factor[c(s), d], which are
    # convolved with w_2.
    (first, second), (low, high) = parts, one.places
    law = np.zeros(one.size)
    by_code = listed_by(second.code, factor.shape[1])
    for d in np.flatnonzero(np.diff(by_code.start) * factor.any(axis=0)).tolist():
        values = by_code.value[by_code.start[d] : by_code.start[d + 1]]
        least = int(high[values].min())
        a = np.bincount(low, first.weight * factor[first.code, d])
        b = np.bincount(high[values] - least, second.weight[values])
        law[least : least + len(a) + len(b) - 1] += _convolved(a, b)
    return np.maximum(law, 0.0)


def _convolved(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The convolution of two sequences, (len(a) + len(b) - 1,)."""
    size = len(a) + len(b) - 1
    if np.ptp(b) == 0.0:  # a difference of sums of a
        found = np.full(size, a.sum())
        found[: len(a)] = np.cumsum(a)
        found[len(b) :] -= found[: len(a) - 1].copy()
        return found * b[0]
    n = fft.next_fast_len(size, real=True)
    return np.asarray(fft.irfft(fft.rfft(a, n) * fft.rfft(b, n), n)[:size])


def _weighed_places(p: np.ndarray, likelihood: np.ndarray, size: int) -> np.ndarray:
    """sum_y likelihood[x + y] p[y] for the first ``size`` places x, (size, H)."""
    if (likelihood == likelihood[0]).all():
        return np.tile(likelihood[0] * p.sum(axis=0), (size, 1))
    if size * len(p) <= _PAIRS and np.count_nonzero(likelihood) > _FEW:
        return np.lib.stride_tricks.sliding_window_view(likelihood, len(p))[:size] @ p
    out = np.zeros((size, p.shape[1]))
    edges = np.flatnonzero(np.diff(likelihood, prepend=0.0, append=0.0))
    below = np.empty(0)
    for first, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):  # places of one likelihood
        if likelihood[first] == 0.0:
            continue
        if stop - first <= _FEW:
            for s in range(first, stop):
                low, high = max(s - len(p) + 1, 0), min(s + 1, size)
                if low < high:
                    out[low:high] += likelihood[first] * p[s - high + 1 : s - low + 1][::-1]
            continue
        if not len(below):
            below = np.concatenate([np.zeros((1, p.shape[1])), np.cumsum(p, axis=0)])
        x = np.arange(size)
        ends = [np.clip(s - x, 0, len(p)) for s in (first, stop)]
        out += likelihood[first] * (below[ends[1]] - below[ends[0]])
    return out
