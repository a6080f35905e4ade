"""Hidden trees given a sum of two or three columns: exact, without a pass for each combination of their values.

The parts of the sum are independent given the state of a node that lies on the paths between them, the *hinge*. So the
total is distributed, in each of its states, as the convolution of the parts' distributions. Evidence about the total
weighs the states of the hinge and the values of the parts. Two parts of a known total are pairs of values, of which
most have the same two codes as the next: such runs are all that the states need. What evidence says of a node on the
path to a part follows from the codes of that part, and what it says of any other node from the states of its neighbour.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import fft
from scipy.sparse import csr_array

from ...data.discretization.discretizer import codes_of
from ...data.evidence import Evidence
from ...runtime.threads import chunks, map_ordered, of_finite, one_blas_thread
from ..base import LinkedSum
from .evidence import CodeEvidence, own_messages, possible_rows
from .hidden_trees import HiddenTrees
from .linked_kernels import convolved, correlated, placed, summed_codes
from .messages import Downward, Message, Upward, down, up
from .posterior import CodePosterior, KeptRows, column_codes
from .tables import TreeTables

_ROWS = 32
"""Rows whose messages are held at once: each has those of all codes of the parts."""
_STATES = 32
"""States whose transforms are held at once."""
_PAIRS_AT_ONCE = 128
"""Rows whose pairs of values are held at once."""
_PAIRS = 1 << 22
"""Most pairs of places whose table is held."""
_FEW = 4
"""Totals of one likelihood that are taken one by one."""
_MOST_ASKED = 64
"""Most totals beside the same other evidence that are taken one by one."""


class LinkedRows(KeptRows):
    """Rows of evidence with a sum in each, and what they say of codes, of the values of parts, and of totals.

    Attributes
    ----------
    sums : sequence of n LinkedSum
        Of the same columns, in the same order.
    """

    def __init__(self, hidden: HiddenTrees, evidence: Evidence, sums: Sequence[LinkedSum]) -> None:
        super().__init__(hidden, evidence)
        self.sums = sums
        self._laws: dict[int, list[_Law]] = {}
        self._missing: dict[int, np.ndarray] = {}
        self._one: _Batch | None = None

    def log_probability(self, n_jobs: int | None = -1) -> np.ndarray:
        if self._log_joint is None:
            first, place = self._alike()
            if 2 * len(first) <= len(place):
                self._log_joint = self._from_totals(first, place, n_jobs)
            else:
                self._log_joint = np.concatenate(self._of_each(lambda batch: batch.log_joint, n_jobs))
        return np.asarray(np.logaddexp.reduce(self._log_joint, axis=1))

    def _alike(self) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of rows that stand for all that differ in the total alone, and the place of each row's among them."""
        if any(log_like.any() for one in self.sums for log_like in one.log_like):
            every = np.arange(len(self.sums))
            return every, every
        key = [np.array([id(values) for values in one.values], np.float64) for one in self.sums]
        said = [self._evidence.value, self._evidence.cell_regions(), np.array(key)]
        return np.unique(np.nan_to_num(np.hstack(said), nan=np.inf), axis=0, return_index=True, return_inverse=True)[1:]

    def _from_totals(self, first: np.ndarray, place: np.ndarray, n_jobs: int | None) -> np.ndarray:
        """`log_joint`, where rows that differ in the total alone share what they have in common."""
        place = place.reshape(-1)
        order = np.argsort(place, kind="stable")
        ends = np.searchsorted(place[order], np.arange(len(first) + 1))

        def work(a: int, b: int) -> tuple[np.ndarray, np.ndarray]:
            batch = _Batch(self._hidden, [of.take(first[a:b]) for of in self.known], [self.sums[i] for i in first[a:b]])
            rows = order[ends[a] : ends[b]]
            asked = [self.sums[i] for i in rows.tolist()]
            parts = _parts_of(self._hidden, asked)
            out = np.full((len(rows), len(self._hidden.trees)), -np.inf)
            size = len(rows) if len(asked[0].columns) == 3 else _PAIRS_AT_ONCE
            for first_row, stop in chunks(len(rows), size):
                pairs = _pairs_of(self._hidden, asked[first_row:stop], parts[first_row:stop])
                for t, possible, tree in batch.trees:
                    for k, at in enumerate(possible.tolist()):
                        low, high = np.clip(ends[a + at : a + at + 2] - ends[a], first_row, stop).tolist()
                        if low == high:
                            continue
                        p = tree.probabilities(k, asked[low:high], pairs[low - first_row : high - first_row])
                        with np.errstate(divide="ignore"):
                            out[low:high, t] = np.log(p) + tree.upward.log_probability[k]
                        out[low:high, t] += self._hidden.log_weight[t] + batch.log_base[at]
            return rows, out

        with one_blas_thread():
            found = list(map_ordered(work, chunks(len(first), _ROWS), n_jobs))
        out = np.empty((len(place), len(self._hidden.trees)))
        out[np.concatenate([rows for rows, _ in found])] = np.concatenate([each for _, each in found])
        return out

    def posterior(self, wanted: Sequence[int], n_jobs: int | None = -1) -> CodePosterior:
        lacking = [j for j in wanted if j not in self._codes]
        if lacking or self._log_joint is None:
            found = self._of_each(lambda batch: batch.posterior(lacking), n_jobs)
            self._log_joint = np.concatenate([of.log_joint for of in found])
            self._codes |= {j: np.concatenate([of.codes[j] for of in found]) for j in lacking}
            self._missing |= {j: np.concatenate([of.missing[j] for of in found]) for j in lacking}
            self._laws |= {j: [law for of in found for law in of.laws[j]] for j in lacking if j in self.sums[0].columns}
        return CodePosterior(self.known, self._log_joint, self._codes)

    def law(self, j: int, n_jobs: int | None = -1) -> list[np.ndarray]:
        """Posterior of the values of a part, by its column, in each row; NaN where the evidence is impossible."""
        self.posterior([j], n_jobs)
        i = self.sums[0].columns.index(j)
        out = [np.zeros(len(one.values[i])) for one in self.sums]
        for row, law in zip(out, self._laws[j], strict=True):
            row[law.first : law.first + len(law.p)] = law.p
        return out

    def points(self, j: int, n_jobs: int | None = -1) -> list[tuple[np.ndarray, np.ndarray]]:
        """The same as values and their probabilities; values of probability 0 may be left out at both ends."""
        self.posterior([j], n_jobs)
        i = self.sums[0].columns.index(j)
        return [
            (one.values[i][law.first : law.first + len(law.p)], law.p)
            for one, law in zip(self.sums, self._laws[j], strict=True)
        ]

    def missing(self, columns: Sequence[int]) -> np.ndarray:
        """P(cell missing | evidence) of some columns of which nothing is said, (n, len(columns))."""
        self.posterior(columns)
        return np.column_stack([self._missing[j] for j in columns])

    def node_states(self) -> list[tuple[list[np.ndarray], float]]:
        """Of a single row, in each tree: the posterior of each node's state, and log p(codes and the sum)."""
        (batch,) = self._of_each(lambda batch: batch, 1)
        found = {t: ([state[0] for state in of.states()], float(of.log_probability()[0])) for t, _, of in batch.trees}
        none = [[np.full(int(size), 1.0 / size) for size in tree.n_states] for tree in self._hidden.trees]
        return [found.get(t, (states, -np.inf)) for t, states in enumerate(none)]

    def otherwise(self, known: list[CodeEvidence], rows: np.ndarray, wanted: Sequence[int]) -> CodePosterior:
        found = _Batch(self._hidden, known, [self.sums[i] for i in rows.tolist()]).posterior(wanted)
        return CodePosterior(known, found.log_joint, found.codes)

    def totals(self, n_jobs: int | None = -1) -> list[np.ndarray]:
        """Posterior of the total, in each row, for each total on its lattice; NaN where the evidence is impossible."""
        return [law for found in self._of_each(lambda batch: batch.totals(), n_jobs) for law in found]

    def _of_each(self, ask: Callable[[_Batch], Any], n_jobs: int | None) -> list[Any]:
        """The answers of batches of rows; what is made for a single row is kept."""
        hidden, known, sums = self._hidden, self.known, self.sums
        with one_blas_thread():
            if len(sums) == 1:
                self._one = self._one or _Batch(hidden, known, sums)
                return [ask(self._one)]

            def work(a: int, b: int) -> Any:
                return ask(_Batch(hidden, [of.take(slice(a, b)) for of in known], sums[a:b]))

            return list(map_ordered(work, chunks(len(sums), _ROWS), n_jobs))


class _Law(NamedTuple):
    """Posterior of the values of a part, from one of them on; that of all others is 0."""

    first: int
    p: np.ndarray


class _Found(NamedTuple):
    """Posteriors of n rows, over all trees.

    Attributes
    ----------
    log_joint : float64 array (n, T)
        log weight + log p_t(evidence).
    codes : dict of column to float64 array (n, K_j)
    laws : dict of column to list of n _Law
        Of parts.
    missing : dict of column to float64 array (n, 1)
        P(cell missing).
    """

    log_joint: np.ndarray
    codes: dict[int, np.ndarray]
    laws: dict[int, list[_Law]]
    missing: dict[int, np.ndarray]


class _Batch:
    """Some rows of evidence with sums, in all trees."""

    @of_finite
    def __init__(self, hidden: HiddenTrees, known: list[CodeEvidence], sums: Sequence[LinkedSum]) -> None:
        self.hidden, self.sums, n = hidden, sums, len(sums)
        self.trees: list[tuple[int, np.ndarray, _TreeRows]] = []
        self.log_base = np.sum([of.log_base for of in known], axis=0)
        parts = _parts_of(hidden, sums)
        self.pairs = _pairs_of(hidden, sums, parts)
        for t, (tree, possible) in enumerate(zip(hidden.trees, possible_rows(hidden, known), strict=True)):
            rows = np.arange(n)[possible]
            if len(rows):
                some = rows.tolist()
                of = [sums[i] for i in some], [parts[i] for i in some], [self.pairs[i] for i in some]
                self.trees.append((t, rows, _TreeRows(tree, [of.take(rows) for of in known], *of)))

    @cached_property
    def log_joint(self) -> np.ndarray:
        """log weight + log p_t(evidence with the sum), (n, T)."""
        out = np.full((len(self.sums), len(self.hidden.trees)), -np.inf)
        for t, rows, tree in self.trees:
            out[rows, t] = tree.log_probability() + self.hidden.log_weight[t]
        return out + self.log_base[:, None]

    def _mixed(self, out: list[np.ndarray], each: Sequence[Sequence[np.ndarray] | np.ndarray]) -> list[np.ndarray]:
        """Answers of each tree, weighed by their shares, into ``out`` (n zeros); NaN of impossible rows."""
        with np.errstate(invalid="ignore"):
            share = np.exp(self.log_joint - np.logaddexp.reduce(self.log_joint, axis=1, keepdims=True))
        for (t, rows, _), answers in zip(self.trees, each, strict=True):
            for i, answer in zip(rows.tolist(), answers, strict=True):
                if share[i, t] > 0.0:
                    out[i] += share[i, t] * answer
        for i in np.flatnonzero(np.isneginf(self.log_joint).all(axis=1)).tolist():
            out[i] += np.nan
        return out

    @of_finite
    def posterior(self, wanted: Sequence[int]) -> _Found:
        """Posteriors of the wanted columns' codes, and of the values of those that are parts."""
        n, trees = len(self.sums), [tree for _, _, tree in self.trees]
        for tree in trees:
            tree.find(wanted)
        codes, laws, missing = {}, {}, {}
        for j in wanted:
            K = self.hidden.scales[j].n_codes
            codes[j] = np.array(self._mixed([np.zeros(K) for _ in range(n)], [tree.codes[j] for tree in trees]))
            missing[j] = np.array(self._mixed([np.zeros(1) for _ in range(n)], [tree.missing[j] for tree in trees]))
        for i, j in enumerate(self.sums[0].columns):
            if j in wanted:
                spans = [
                    (0, len(one.values[i])) if pair is None else pair.spans[i]
                    for one, pair in zip(self.sums, self.pairs, strict=True)
                ]
                mixed = self._mixed([np.zeros(size) for _, size in spans], [tree.laws[i] for tree in trees])
                laws[j] = [_Law(first, p) for (first, _), p in zip(spans, mixed, strict=True)]
        return _Found(self.log_joint, codes, laws, missing)

    @of_finite
    def totals(self) -> list[np.ndarray]:
        """Posteriors of the totals."""
        none = [np.zeros(one.size) for one in self.sums]
        return self._mixed(none, [tree.totals() for _, _, tree in self.trees])


class _Part(NamedTuple):
    """A part in one row: each value's code (S,), and its share of the code times its likelihood (S,)."""

    code: np.ndarray
    weight: np.ndarray


def _parts_of(hidden: HiddenTrees, sums: Sequence[LinkedSum]) -> list[tuple[_Part, ...]]:
    """Codes and weights of the values of all parts; rows that have the same values share what is looked up."""
    kept: dict[tuple[int, int], tuple[np.ndarray, np.ndarray]] = {}
    plain: dict[tuple[int, int], _Part] = {}
    found = []
    for one in sums:
        parts = []
        for j, values, log_like in zip(one.columns, one.values, one.log_like, strict=True):
            if (j, id(values)) not in kept:
                code, log_base = codes_of(hidden.scales[j], values)
                step = hidden.schema.columns[j].step or 1.0  # of a column of levels the base is a share already
                kept[j, id(values)] = code.astype(np.int64), log_base + np.log(step)
                plain[j, id(values)] = _Part(kept[j, id(values)][0], np.exp(kept[j, id(values)][1]))
            code, log_mass = kept[j, id(values)]
            parts.append(_Part(code, np.exp(log_mass + log_like)) if log_like.any() else plain[j, id(values)])
        found.append(tuple(parts))
    return found


class _Pairs:
    """Pairs of values of two parts that make a known total, in one row.

    Attributes
    ----------
    value : pair of int64 arrays (P,)
        Numbers of the values of each part.
    weight : float64 array (P,)
    run : int64 array (P,)
        The run of each pair: pairs next to each other that have the same two codes.
    code : pair of int64 arrays (R,)
        The codes of each run.
    table : sparse array (K_0, K_1)
        Total weight of the pairs of each two codes.
    spans : pair of (int, int)
        Of each part: number of its first value that is in a pair, and how many from there to the last one.
    """

    def __init__(self, one: LinkedSum, parts: tuple[_Part, ...], at: np.ndarray, shape: tuple[int, int]) -> None:
        values, weights = [], []
        for k in np.flatnonzero(one.likelihood).tolist():
            place = one.first + k - one.places[0]
            first = np.flatnonzero((place >= 0) & (place < len(at)))
            second = at[place[first]]
            first, second = first[second >= 0], second[second >= 0]
            values.append((first, second))
            weights.append(one.likelihood[k] * parts[0].weight[first] * parts[1].weight[second])
        self.value = tuple(np.concatenate([pair[i] for pair in values]) if values else _NONE for i in range(2))
        self.weight = np.concatenate(weights) if values else np.empty(0)
        codes = [part.code[value] for part, value in zip(parts, self.value, strict=True)]
        is_new = (np.diff(codes[0], prepend=-1) != 0) | (np.diff(codes[1], prepend=-1) != 0)
        self.run = np.cumsum(is_new) - 1
        self.code = codes[0][is_new], codes[1][is_new]
        self.of_runs = np.bincount(self.run, self.weight, len(self.code[0]))
        self.table = csr_array((self.of_runs, self.code), shape=shape)
        self.spans = tuple((int(x.min()), int(np.ptp(x)) + 1) if len(x) else (0, 0) for x in self.value)


_NONE = np.empty(0, np.int64)


def _pairs_of(hidden: HiddenTrees, sums: Sequence[LinkedSum], parts: list[tuple[_Part, ...]]) -> list[_Pairs | None]:
    """Pairs of the rows whose sum has two unknown parts and is known; equal rows share them."""
    at: dict[int, np.ndarray] = {}
    kept: dict[tuple[Any, ...], _Pairs] = {}
    found: list[_Pairs | None] = []
    for one, of in zip(sums, parts, strict=True):
        if len(one.columns) != 2 or not one.has_few_totals:
            found.append(None)
            continue
        key = (*map(id, of), *map(id, one.places), one.first, one.likelihood.tobytes())
        if key not in kept:
            places = one.places[1]
            if id(places) not in at:
                at[id(places)] = np.full(int(places.max()) + 1, -1)
                at[id(places)][places] = np.arange(len(places))
            shape = hidden.scales[one.columns[0]].n_codes, hidden.scales[one.columns[1]].n_codes
            kept[key] = _Pairs(one, of, at[id(places)], shape)
        found.append(kept[key])
    return found


class _TreeRows:
    """Rows of evidence with sums, in one tree."""

    def __init__(
        self,
        tree: TreeTables,
        known: list[CodeEvidence],
        sums: Sequence[LinkedSum],
        parts: list[tuple[_Part, ...]],
        pairs: list[_Pairs | None],
    ) -> None:
        self.tree, self.known, self.sums, self.parts, self.pairs = tree, known, sums, parts, pairs
        self.n = len(sums)
        self.own = own_messages(tree, known)
        self.upward = up(tree, self.own, self.n)
        self.downward = down(tree, self.upward)
        nodes = [tree.node[j] for j in sums[0].columns]
        self.hinge = _hinge(tree, nodes)
        self.paths = [_path(tree, self.hinge, k) for k in nodes]  # from the hinge to each part
        inside = self.upward.inside[self.hinge]
        state = self.downward.outside[self.hinge].astype(np.float64) * (1.0 if inside is None else inside)
        self.state = np.broadcast_to(_shares(state), (self.n, state.shape[1]))
        self.by_code = [self._by_code(path) for path in self.paths]
        self.codes: dict[int, np.ndarray] = {}
        self.missing: dict[int, np.ndarray] = {}
        self.laws: dict[int, list[np.ndarray]] = {}
        self._log_probability: np.ndarray | None = None
        self._one: _AtHinge | _PairsAtHinge | None = None
        self._short: dict[tuple[Any, ...], _Short] = {}
        self._known: dict[tuple[Any, ...], _Known] = {}

    def _edge(self, u: int, y: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of neighbours u and y: p(y | u, evidence) is table * weight[:, None] / total[..., None] by rows u."""
        return _edge(self.tree, self.upward, self.downward, u, y)

    def _by_code(self, path: list[int]) -> list[np.ndarray]:
        """p(code of the part | state, evidence) for the nodes of a path, each (n or 1, K, H)."""
        found = [self.tree.emission[path[-1]].T.astype(np.float64)[None]]
        for u, y in zip(path[-2::-1], path[:0:-1], strict=True):
            table, weight, total = self._edge(u, y)
            found.append(_divided((found[-1] * weight[:, None, :]) @ table.T, total[:, None, :]))
        return found[::-1]

    def _codes_at_hinge(self, i: int) -> list[np.ndarray]:
        """p(code | state of the hinge, evidence) of each part in row i, (K, H)."""
        return [codes[0][min(i, len(codes[0]) - 1)] for codes in self.by_code]

    def at_hinge(self, i: int) -> _AtHinge | _PairsAtHinge:
        """Row i at the hinge; a single row is kept, of others what several have in common."""
        if self._one is not None:
            return self._one
        one, parts, pairs, by_code = self.sums[i], self.parts[i], self.pairs[i], self._codes_at_hinge(i)
        found: _AtHinge | _PairsAtHinge
        if pairs is not None:
            found = _PairsAtHinge(self.state[i], by_code, one, pairs)
        elif any(len(codes[0]) > 1 for codes in self.by_code[:-1]):
            short = _Short(one, parts, by_code, one.first + len(one.likelihood))
            found = _AtHinge(self.state[i], by_code, _Known(one, parts, short))
        else:
            short = self._shared_short(one, parts, by_code)
            key = (*map(id, parts), one.first, one.likelihood.tobytes())
            if key not in self._known:
                self._known[key] = _Known(one, parts, short)
            found = _AtHinge(self.state[i], by_code, self._known[key])
        if self.n == 1:
            self._one = found
        return found

    def _rows(self) -> list[_AtHinge | _PairsAtHinge]:
        """All rows at the hinge; sets what `log_probability` answers."""
        rows = [self.at_hinge(r) for r in range(self.n)]
        with np.errstate(divide="ignore"):
            probability = np.log([row.probability for row in rows])
        self._log_probability = np.asarray(self.upward.log_probability + probability)
        return rows

    def _shared_short(self, one: LinkedSum, parts: tuple[_Part, ...], by_code: list[np.ndarray]) -> _Short:
        key = tuple(map(id, parts[:-1]))
        if key not in self._short:
            self._short[key] = _Short(one, parts, by_code, one.size)
        return self._short[key]

    def probabilities(self, i: int, asked: list[LinkedSum], pairs: list[_Pairs | None]) -> list[float]:
        """Probabilities of what several rows say of the total, given all other evidence of row i."""
        state, by_code, parts = self.state[i], self._codes_at_hinge(i), self.parts[i]
        if pairs[0] is not None:
            both = (by_code[0] * state) @ by_code[1].T
            return [float(of.of_runs @ both[of.code]) for of in pairs if of is not None]
        one = asked[0]
        is_shared = all(len(codes[0]) == 1 for codes in self.by_code[:-1])
        short = self._shared_short(one, parts, by_code) if is_shared else _Short(one, parts, by_code, one.size)
        a, b = short.sum * state, _placed(parts[-1], one.places[-1], by_code[-1], one.size)
        if sum(np.count_nonzero(of.likelihood) for of in asked) > _MOST_ASKED:
            law = _law_of_total(a, b, one.size)
            return [float(law[of.first : of.first + len(of.likelihood)] @ of.likelihood) for of in asked]
        backwards = np.ascontiguousarray(b[::-1])
        out = []
        for of in asked:
            p = 0.0
            for k in np.flatnonzero(of.likelihood).tolist():
                total = of.first + k
                low, high = max(total - len(b) + 1, 0), min(total + 1, len(a))
                start = len(b) - 1 - total
                if low < high:
                    p += of.likelihood[k] * float(np.vdot(a[low:high], backwards[start + low : start + high]))
            out.append(p)
        return out

    def log_probability(self) -> np.ndarray:
        """log p(evidence with the sum) of each row, (n,)."""
        if self._log_probability is None:
            self._rows()
        assert self._log_probability is not None
        return self._log_probability

    def totals(self) -> list[np.ndarray]:
        """The law of the total in each row."""
        return [row.totals() for row in self._rows()]

    def find(self, wanted: Sequence[int]) -> None:
        """Find the posteriors of the wanted columns' codes, of missing cells, and the laws of parts among them."""
        tree, columns = self.tree, self.sums[0].columns
        after = [path[1] if len(path) > 1 else -1 for path in self.paths]
        behind = {[*_path(tree, self.hinge, tree.node[j]), -2][1] for j in wanted}
        needed = [i for i, j in enumerate(columns) if j in wanted or after[i] in behind]
        rows = self._rows()
        state = self._states(needed, rows)
        self.laws = {i: [row.law(i) for row in rows] for i in needed if columns[i] in wanted}
        for j in wanted:
            k = tree.node[j]
            own = self.own[k]
            self.missing[j] = _shares(state[k]) @ tree.blank[k] if tree.blank else np.zeros(self.n)
            if j in columns:
                i, K = columns.index(j), tree.emission[k].shape[1]
                self.codes[j] = np.stack([row.codes(i, K) for row in rows])
            else:
                rest = state[k] if own is None else _divided(state[k], own)
                self.codes[j] = column_codes(rest, tree, k, self.known[j])

    def states(self) -> list[np.ndarray]:
        """Posterior of the state of each node, (n, H) each."""
        return [_shares(state) for state in self._states(range(len(self.paths)), self._rows())]

    def _states(self, needed: Sequence[int], rows: list[_AtHinge | _PairsAtHinge]) -> list[np.ndarray]:
        """The same up to factors, but for nodes behind parts that are not needed."""
        state = [np.empty(0)] * len(self.tree)
        state[self.hinge] = np.stack([row.posterior_state for row in rows])
        for i in needed:
            path, by_code = self.paths[i], self.by_code[i]
            weight = self.state[:, None, :] * np.stack([row.weights(i) for row in rows])
            for k in range(1, len(path)):
                table, ahead, total = self._edge(path[k - 1], path[k])
                weight = (_divided(weight, total[:, None, :]) @ table) * ahead[:, None, :]
                state[path[k]] = (by_code[k] * weight).sum(axis=1)
        self._spread(state)
        return state

    def _spread(self, state: list[np.ndarray]) -> None:
        """Posteriors of the states of all nodes, from those of the nodes on the paths."""
        reached = [k for k in range(len(state)) if len(state[k])]
        while reached:
            u = reached.pop()
            for y in (*self.tree.children[u], int(self.tree.parent[u])):
                if y >= 0 and not len(state[y]):
                    table, weight, total = self._edge(u, y)
                    state[y] = (_divided(state[u], total) @ table) * weight
                    reached.append(y)


class _Short:
    """The parts but the last, given each state of the hinge; places count steps of the lattice, below ``most``.

    Attributes
    ----------
    each : list of float64 arrays (L_i, H)
        p(part i is at a place | state).
    sum : float64 array (L, H)
        The same of their sum.
    """

    def __init__(self, one: LinkedSum, parts: tuple[_Part, ...], by_code: list[np.ndarray], most: int) -> None:
        self.each = [_placed(*of, most) for of in zip(parts[:-1], one.places[:-1], by_code[:-1], strict=True)]
        self.sum = self.each[0]
        if len(self.each) == 2:
            self.sum = convolved(*self.each, min(sum(map(len, self.each)) - 1, most))


class _Known:
    """What the short parts and the evidence about the total say of the last part.

    Attributes
    ----------
    most : int
        Places of the last part that the total may reach.
    likelihood : float64 array (M, H)
        Of these places, in each state of the hinge.
    of_codes : float64 array (K, H)
        The same of its codes.
    """

    def __init__(self, one: LinkedSum, parts: tuple[_Part, ...], short: _Short) -> None:
        self.one, self.parts, self.short = one, parts, short
        last, places = parts[-1], one.places[-1]
        self.most = one.first + len(one.likelihood)
        self.likelihood = _weighed(short.sum, one.all_totals(), min(int(places.max()) + 1, self.most))
        self.of_codes = summed_codes(last.weight, last.code, places, self.likelihood, int(last.code.max()) + 1)


class _AtHinge:
    """The parts of one row, given each state of the hinge.

    Attributes
    ----------
    state : float64 array (H,)
        p(state | evidence without the sum).
    """

    def __init__(self, state: np.ndarray, by_code: list[np.ndarray], known: _Known) -> None:
        self.one, self.parts, self.short, self.known = known.one, known.parts, known.short, known
        self.state, self.by_code = state, by_code
        by_state = state * (known.of_codes * by_code[-1][: len(known.of_codes)]).sum(axis=0)
        self.probability = max(float(by_state.sum()), 0.0)
        self._scale = 1.0 / self.probability if self.probability > 0.0 else 0.0
        self.posterior_state = by_state * self._scale

    @cached_property
    def last(self) -> np.ndarray:
        """p(last part is at a place | state), (M, H)."""
        return _placed(self.parts[-1], self.one.places[-1], self.by_code[-1], self.known.most)

    @cached_property
    def _others(self) -> list[np.ndarray]:
        """Likelihood of each short part at each place and in each state, by the other parts and the total, (L_i, H)."""
        ahead, each = _weighed(self.last, self.one.all_totals(), len(self.short.sum)), self.short.each
        if len(each) == 1:
            return [ahead]
        some = np.flatnonzero(ahead.any(axis=1))
        low, high = (int(some[0]), int(some[-1]) + 1) if len(some) else (0, 0)
        return [correlated(ahead, low, high, each[1 - i], len(each[i])) for i in range(2)]

    def weights(self, i: int) -> np.ndarray:
        """Likelihood of each code of part i and state of the hinge, (K, H)."""
        part, places, size = self.parts[i], self.one.places[i], len(self.by_code[i])
        if i == len(self.short.each):
            found = np.zeros((size, len(self.state)))
            found[: len(self.known.of_codes)] = self.known.of_codes * self._scale
            return found
        return np.asarray(summed_codes(part.weight, part.code, places, self._others[i], size) * self._scale)

    def law(self, i: int) -> np.ndarray:
        """The law of the values of part i, (S,)."""
        part, places = self.parts[i], self.one.places[i]
        other = self.known.likelihood if i == len(self.short.each) else self._others[i]
        by_state = (self.by_code[i] * (self.state * self._scale))[part.code]
        law = np.zeros(len(places))
        some = places < len(other)
        law[some] = part.weight[some] * (other[places[some]] * by_state[some]).sum(axis=1)
        return law

    def codes(self, i: int, size: int) -> np.ndarray:
        """Posterior of the codes of part i, (size,)."""
        return np.bincount(self.parts[i].code, self.law(i), size)

    def totals(self) -> np.ndarray:
        """The law of the total, (L,)."""
        law = _law_of_total(self.short.sum * self.state, self.last, self.one.size)
        return law * self.one.all_totals() * self._scale


class _PairsAtHinge:
    """Two parts of a known total in one row, given each state of the hinge."""

    def __init__(self, state: np.ndarray, by_code: list[np.ndarray], one: LinkedSum, pairs: _Pairs) -> None:
        self.state, self.by_code, self.one, self.pairs = state, by_code, one, pairs
        self._ahead = pairs.table @ by_code[1]
        by_state = state * (by_code[0] * self._ahead).sum(axis=0)
        self.probability = max(float(by_state.sum()), 0.0)
        self._scale = 1.0 / self.probability if self.probability > 0.0 else 0.0
        self.posterior_state = by_state * self._scale

    def weights(self, i: int) -> np.ndarray:
        """Likelihood of each code of part i and state of the hinge, (K, H)."""
        return np.asarray((self.pairs.table.T @ self.by_code[0] if i else self._ahead) * self._scale)

    @cached_property
    def _of_runs(self) -> np.ndarray:
        """Posterior of each pair of a run, divided by its weight, (R,)."""
        return np.asarray(((self.by_code[0] * (self.state * self._scale)) @ self.by_code[1].T)[self.pairs.code])

    @property
    def _posterior(self) -> np.ndarray:
        """The law of the pairs, (P,)."""
        return np.asarray(self.pairs.weight * self._of_runs[self.pairs.run])

    def law(self, i: int) -> np.ndarray:
        """The law of the values of part i within their span."""
        first, size = self.pairs.spans[i]
        return np.bincount(self.pairs.value[i] - first, self._posterior, size)

    def codes(self, i: int, size: int) -> np.ndarray:
        """Posterior of the codes of part i, (size,)."""
        return np.bincount(self.pairs.code[i], self._of_runs * self.pairs.of_runs, size)

    def totals(self) -> np.ndarray:
        """The law of the total, (L,)."""
        first, second = (places[value] for places, value in zip(self.one.places, self.pairs.value, strict=True))
        return np.bincount(first + second, self._posterior, self.one.size)


# ---- Sums over places of the lattice, in each of H states.


def _placed(part: _Part, places: np.ndarray, by_code: np.ndarray, most: int) -> np.ndarray:
    """p(part is at a place | state) for at most ``most`` places, (L, H); ``by_code`` is p(code | state), (K, H)."""
    return placed(part.weight, part.code, places, np.ascontiguousarray(by_code), min(int(places.max()) + 1, most))


def _law_of_total(a: np.ndarray, b: np.ndarray, size: int) -> np.ndarray:
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


def _weighed(p: np.ndarray, likelihood: np.ndarray, size: int) -> np.ndarray:
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


# ---- Nodes between the parts.


def _path(tree: TreeTables, a: int, b: int) -> list[int]:
    """The nodes from a to b, both among them."""
    above = [[k] for k in (a, b)]
    for chain in above:
        while tree.parent[chain[-1]] >= 0:
            chain.append(int(tree.parent[chain[-1]]))
    meet = next(k for k in above[0] if k in above[1])
    return [*above[0][: above[0].index(meet) + 1], *above[1][: above[1].index(meet)][::-1]]


def _hinge(tree: TreeTables, nodes: list[int]) -> int:
    """The node of fewest states that lies on the paths between all of two or three nodes."""
    paths = [set(_path(tree, a, b)) for i, a in enumerate(nodes) for b in nodes[:i]]
    return min(set.intersection(*paths), key=lambda k: (int(tree.n_states[k]), k))


def _edge(
    tree: TreeTables, upward: Upward, downward: Downward, u: int, y: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Table (H_u, H_y), weight (n or 1, H_y) and total (n or 1, H_u), so that p(y | u) = table * weight / total."""
    if tree.parent[y] == u:
        table, weight = tree.transition[y].astype(np.float64), _message(upward.inside[y], tree.transition[y].shape[1])
    else:
        table, weight = tree.transition[u].T.astype(np.float64), downward.above[u].astype(np.float64)
    return table, weight, weight @ table.T


def _message(message: Message, size: int) -> np.ndarray:
    return np.ones((1, size)) if message is None else message.astype(np.float64)


def _divided(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a / b, 0 where b is 0: there a is 0 too."""
    return np.divide(a, b, out=np.zeros(np.broadcast_shapes(a.shape, b.shape)), where=b > 0.0)


def _shares(x: np.ndarray) -> np.ndarray:
    total = x.sum(axis=1, keepdims=True)
    return x / np.where(total > 0.0, total, 1.0)
