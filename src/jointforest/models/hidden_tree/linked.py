"""Hidden trees given a sum of two or three columns: exact, without a pass for each combination of their values.

The parts of the sum are independent given the state of a node that lies on the paths between them, the *hinge*. So the
total is distributed, in each of its states, as the convolution of the parts' distributions. Evidence about the total
weighs the states of the hinge and the values of the parts. What it says of a node on the path to a part follows from
the codes of that part, and what it says of any other node from the states of its neighbour.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

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
_PAIRS = 1 << 22
"""Most pairs of places whose table is held."""
_FEW = 4
"""Totals of one likelihood that are taken one by one."""


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
        self._laws: dict[int, list[np.ndarray]] = {}
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
        """`log_joint` from the laws of the totals of the rows that stand for all."""
        place = place.reshape(-1)

        def work(a: int, b: int) -> np.ndarray:
            some = first[a:b]
            sums = [self.sums[i]._replace(likelihood=np.ones(len(self.sums[i].likelihood))) for i in some.tolist()]
            batch = _Batch(self._hidden, [of.take(some) for of in self.known], sums)
            rows = np.flatnonzero((place >= a) & (place < b))
            out = np.full((len(rows), batch.log_joint.shape[1]), -np.inf)
            for t, possible, tree in batch.trees:
                laws = dict(zip(possible.tolist(), tree.totals(), strict=True))
                for k, (i, at) in enumerate(zip(rows.tolist(), (place[rows] - a).tolist(), strict=True)):
                    p = float(laws[at] @ self.sums[i].likelihood) if at in laws else 0.0
                    out[k, t] = batch.log_joint[at, t] + np.log(p) if p > 0.0 else -np.inf
            return np.column_stack([rows, out])

        with one_blas_thread():
            found = np.concatenate(list(map_ordered(work, chunks(len(first), _ROWS), n_jobs)))
        return np.asarray(found[np.argsort(found[:, 0], kind="stable"), 1:])

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
        return self._laws[j]

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


class _Found(NamedTuple):
    """Posteriors of n rows, over all trees.

    Attributes
    ----------
    log_joint : float64 array (n, T)
        log weight + log p_t(evidence).
    codes : dict of column to float64 array (n, K_j)
    laws : dict of column to list of n float64 arrays
        Of the values of parts.
    missing : dict of column to float64 array (n, 1)
        P(cell missing).
    """

    log_joint: np.ndarray
    codes: dict[int, np.ndarray]
    laws: dict[int, list[np.ndarray]]
    missing: dict[int, np.ndarray]


class _Batch:
    """Some rows of evidence with sums, in all trees."""

    @of_finite
    def __init__(self, hidden: HiddenTrees, known: list[CodeEvidence], sums: Sequence[LinkedSum]) -> None:
        self.hidden, self.sums, n = hidden, sums, len(sums)
        self.log_joint = np.full((n, len(hidden.trees)), -np.inf)
        self.trees: list[tuple[int, np.ndarray, _TreeRows]] = []
        parts = _parts_of(hidden, sums)
        for t, (tree, possible) in enumerate(zip(hidden.trees, possible_rows(hidden, known), strict=True)):
            rows = np.arange(n)[possible]
            if len(rows):
                some = rows.tolist()
                said, of = [of.take(rows) for of in known], ([sums[i] for i in some], [parts[i] for i in some])
                self.trees.append((t, rows, _TreeRows(tree, said, *of)))
                self.log_joint[rows, t] = self.trees[-1][2].log_probability() + hidden.log_weight[t]
        self.log_joint += np.sum([of.log_base for of in known], axis=0)[:, None]

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
                none = [np.zeros(len(one.values[i])) for one in self.sums]
                laws[j] = self._mixed(none, [tree.laws[i] for tree in trees])
        return _Found(self.log_joint, codes, laws, missing)

    @of_finite
    def totals(self) -> list[np.ndarray]:
        """Posteriors of the totals."""
        none = [np.zeros(len(one.likelihood)) for one in self.sums]
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


class _TreeRows:
    """Rows of evidence with sums, in one tree."""

    def __init__(
        self, tree: TreeTables, known: list[CodeEvidence], sums: Sequence[LinkedSum], parts: list[tuple[_Part, ...]]
    ) -> None:
        self.tree, self.known, self.sums, self.parts = tree, known, sums, parts
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
        self._at_hinge: dict[int, _AtHinge] = {}
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

    def at_hinge(self, i: int) -> _AtHinge:
        """Row i at the hinge; a single row is kept, of others what several have in common."""
        if i in self._at_hinge:
            return self._at_hinge[i]
        one, parts = self.sums[i], self.parts[i]
        by_code = [codes[0][min(i, len(codes[0]) - 1)] for codes in self.by_code]
        if any(len(codes[0]) > 1 for codes in self.by_code[:-1]):
            known = _Known(one, parts, _Short(one, parts, by_code))
        else:
            key = (*map(id, parts[:-1]), b"")
            if key not in self._short:
                self._short[key] = _Short(one, parts, by_code)
            short, key = self._short[key], (*map(id, parts), one.likelihood.tobytes())
            if key not in self._known:
                self._known[key] = _Known(one, parts, short)
            known = self._known[key]
        found = _AtHinge(self.state[i], by_code, known)
        if self.n == 1:
            self._at_hinge[i] = found
        return found

    def log_probability(self) -> np.ndarray:
        """log p(evidence with the sum) of each row, (n,)."""
        with np.errstate(divide="ignore"):
            probability = np.log([self.at_hinge(i).probability for i in range(self.n)])
        return np.asarray(self.upward.log_probability + probability)

    def totals(self) -> list[np.ndarray]:
        """The law of the total in each row."""
        return [self.at_hinge(i).totals() for i in range(self.n)]

    def find(self, wanted: Sequence[int]) -> None:
        """Find the posteriors of the wanted columns' codes, of missing cells, and the laws of parts among them."""
        tree, columns = self.tree, self.sums[0].columns
        after = [path[1] if len(path) > 1 else -1 for path in self.paths]
        behind = {[*_path(tree, self.hinge, tree.node[j]), -2][1] for j in wanted}
        needed = [i for i, j in enumerate(columns) if j in wanted or after[i] in behind]
        state = self._states(needed)
        rows = [self.at_hinge(r) for r in range(self.n)]
        self.laws = {i: [row.law(i) for row in rows] for i in needed if columns[i] in wanted}
        for j in wanted:
            k = tree.node[j]
            own = self.own[k]
            self.missing[j] = _shares(state[k]) @ tree.blank[k] if tree.blank else np.zeros(self.n)
            if j in columns:
                i, K = columns.index(j), tree.emission[k].shape[1]
                self.codes[j] = np.stack(
                    [np.bincount(p[i].code, law, K) for p, law in zip(self.parts, self.laws[i], strict=True)]
                )
            else:
                rest = state[k] if own is None else _divided(state[k], own)
                self.codes[j] = column_codes(rest, tree, k, self.known[j])

    def states(self) -> list[np.ndarray]:
        """Posterior of the state of each node, (n, H) each."""
        return [_shares(state) for state in self._states(range(len(self.paths)))]

    def _states(self, needed: Sequence[int]) -> list[np.ndarray]:
        """The same up to factors, but for nodes behind parts that are not needed."""
        state = [np.empty(0)] * len(self.tree)
        rows = [self.at_hinge(r) for r in range(self.n)]
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
    """The parts but the last, given each state of the hinge; places count steps of the lattice.

    Attributes
    ----------
    each : list of float64 arrays (L_i, H)
        p(part i is at a place | state).
    sum : float64 array (L, H)
        The same of their sum.
    """

    def __init__(self, one: LinkedSum, parts: tuple[_Part, ...], by_code: list[np.ndarray]) -> None:
        self.each = [_placed(*of) for of in zip(parts[:-1], one.places[:-1], by_code[:-1], strict=True)]
        self.sum = self.each[0] if len(self.each) == 1 else convolved(self.each[0], self.each[1])


class _Known:
    """What the short parts and the evidence about the total say of the last part.

    Attributes
    ----------
    likelihood : float64 array (M, H)
        Of each place of the last part, in each state of the hinge.
    of_codes : float64 array (K, H)
        The same of its codes.
    """

    def __init__(self, one: LinkedSum, parts: tuple[_Part, ...], short: _Short) -> None:
        self.one, self.parts, self.short = one, parts, short
        last, places = parts[-1], one.places[-1]
        self.likelihood = _weighed(short.sum, one.likelihood, int(places.max()) + 1)
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
        return _placed(self.parts[-1], self.one.places[-1], self.by_code[-1])

    @cached_property
    def _others(self) -> list[np.ndarray]:
        """Likelihood of each short part at each place and in each state, by the other parts and the total, (L_i, H)."""
        ahead, each = _weighed(self.last, self.one.likelihood, len(self.short.sum)), self.short.each
        if len(each) == 1:
            return [ahead]
        return [correlated(ahead, each[1 - i], len(each[i])) for i in range(2)]

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
        return np.asarray(part.weight * (other[places] * by_state).sum(axis=1))

    def totals(self) -> np.ndarray:
        """The law of the total, (L,)."""
        a, b, size = self.short.sum * self.state, self.last, len(self.one.likelihood)
        if len(a) * len(b) <= _PAIRS:
            place = np.add.outer(np.arange(len(a)), np.arange(len(b)))
            law: np.ndarray = np.bincount(place.ravel(), (a @ b.T).ravel(), size)
        else:
            law = np.fft.irfft((np.fft.rfft(a, size, axis=0) * np.fft.rfft(b, size, axis=0)).sum(axis=1), size)
        return np.maximum(law, 0.0) * self.one.likelihood * self._scale


# ---- Sums over places of the lattice, in each of H states.


def _placed(part: _Part, places: np.ndarray, by_code: np.ndarray) -> np.ndarray:
    """p(part is at a place | state), (L, H); ``by_code`` is p(code | state), (K, H)."""
    return placed(part.weight, part.code, places, np.ascontiguousarray(by_code), int(places.max()) + 1)


def _weighed(p: np.ndarray, likelihood: np.ndarray, size: int) -> np.ndarray:
    """sum_y likelihood[x + y] p[y] for the first ``size`` places x, (size, H)."""
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
