"""Questions to hidden trees given a sum of two or three columns in each row: exact, without a pass for each value.

In each tree, one pass up and one down give the posterior without the sum. `hinge` adds the sum: it finds
how probable the sum is, and the posteriors of the state h of the hinge and of the code c of each part. That of
any other node y follows by the Markov property. Off the paths between the parts, with u the neighbour of y towards
the hinge,

    p(state of y | e, sum) = sum_{states of u} p(state of u | e, sum) p(state of y | state of u, e).

On the path from the hinge to a part, the code of the part has to be kept beside the state:

    p(state of y, c | e, sum) = p(c | state of y, e) sum_{states of u} r_u(state of u, c) p(state of y | state of u, e),

where r_u(., c) is the posterior of the state of u and of c, divided by p(c | state of u, e). At the hinge it is
p(h | e) times the likelihood of c that `hinge` found. Answers of the trees are mixed by their posterior weights.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ...data.evidence import Evidence
from ...runtime.arrays import at_once, divided
from ...runtime.threads import chunks, map_ordered, of_finite, one_blas_thread
from . import hinge
from .hidden_trees import HiddenTrees, TreeTables
from .hinge import LinkedSum
from .messages import CodeEvidence, Message, down, own_messages, possible_rows, up
from .posterior import CodePosterior, KeptRows, column_codes

_ROWS = 32
"""Rows whose messages are held at once: each has those of all codes of the parts."""
_LONG_ROWS = 8
"""The same where a sum is not taken by codes: each has a table of places and states for each part and tree, too."""
_TABLES = 4
"""Tables of places and states that are held of each part."""
_MOST_ASKED = 64
"""Most totals beside the same other evidence that are taken one by one."""


class LinkedRows(KeptRows):
    """Rows of evidence with a sum in each, and their likelihoods of codes, values of parts, and totals.

    sums : sequence of n LinkedSum. Of the same columns, in the same order.
    """

    def __init__(self, hidden: HiddenTrees, evidence: Evidence, sums: Sequence[LinkedSum]) -> None:
        super().__init__(hidden, evidence)
        self.sums = sums
        self._laws: dict[int, list[hinge.PartPosterior]] = {}
        self._one: _Batch | None = None

    def log_probability(self) -> np.ndarray:
        if self._log_joint is None:
            first, place = self._alike()
            if 2 * len(first) <= len(place):
                self._log_joint = self._from_totals(first, place)
            else:
                self._log_joint = np.concatenate(self._of_each(lambda batch: batch.log_joint))
        return np.asarray(np.logaddexp.reduce(self._log_joint, axis=1))

    def _alike(self) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of rows that stand for all that differ in the total alone, and the place of each row's among them."""
        if any(log_like.any() for one in self.sums for log_like in one.log_like):
            every = np.arange(len(self.sums))
            return every, every
        number: dict[int, int] = {}  # of arrays of values, which rows share
        key = [[number.setdefault(id(values), len(number)) for values in one.values] for one in self.sums]
        said = [self._evidence.value, self._evidence.cell_regions(), np.array(key)]
        return np.unique(np.nan_to_num(np.hstack(said), nan=np.inf), axis=0, return_index=True, return_inverse=True)[1:]

    def _from_totals(self, first: np.ndarray, place: np.ndarray) -> np.ndarray:
        """`log_joint`, where rows that differ in the total alone share what they have in common."""
        place = place.reshape(-1)
        order = np.argsort(place, kind="stable")
        ends = np.searchsorted(place[order], np.arange(len(first) + 1))

        def work(a: int, b: int) -> tuple[np.ndarray, np.ndarray]:
            rows = order[ends[a] : ends[b]]
            asked, stand = ([self.sums[i] for i in some.tolist()] for some in (rows, first[a:b]))
            batch = _Batch(self._hidden, [of.take(first[a:b]) for of in self.known], stand, _n_totals(asked))
            parts = hinge.parts_of(self._hidden, asked)
            out = np.full((len(rows), len(self._hidden.trees)), -np.inf)
            for at in range(b - a):
                low, high = (ends[a + at : a + at + 2] - ends[a]).tolist()
                is_few = len(asked[low].columns) == 2 and high - low <= _MOST_ASKED
                runs = hinge.coded_runs(self._hidden, asked[low:high], parts[low:high]) if is_few else []
                for t, possible, tree in batch.trees:
                    for k in np.flatnonzero(possible == at).tolist():
                        p = tree.probabilities(k, asked[low:high], runs)
                        with np.errstate(divide="ignore"):
                            out[low:high, t] = np.log(p) + tree.upward.log_probability[k]
                        out[low:high, t] += self._hidden.log_weight[t] + batch.log_base[at]
            return rows, out

        with one_blas_thread():
            found = list(map_ordered(work, chunks(len(first), _ROWS)))
        out = np.empty((len(place), len(self._hidden.trees)))
        out[np.concatenate([rows for rows, _ in found])] = np.concatenate([each for _, each in found])
        return out

    def posterior(self, wanted: Sequence[int]) -> CodePosterior:
        lacking = [j for j in wanted if j not in self._codes]
        if lacking or self._log_joint is None:
            found = self._of_each(lambda batch: batch.posterior(lacking))
            self._log_joint = np.concatenate([of.log_joint for of in found])
            self._codes |= {j: np.concatenate([of.codes[j] for of in found]) for j in lacking}
            self._laws |= {j: [law for of in found for law in of.laws[j]] for j in lacking if j in self.sums[0].columns}
        return CodePosterior(self.known, self._log_joint, self._codes)

    def law(self, j: int) -> list[np.ndarray]:
        """Posterior of the values of a part, by its column, in each row; NaN where the evidence is impossible."""
        self.posterior([j])
        i = self.sums[0].columns.index(j)
        out = [np.zeros(len(one.values[i])) for one in self.sums]
        for row, law in zip(out, self._laws[j], strict=True):
            row[law.first : law.first + len(law.p)] = law.p
        return out

    def points(self, j: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """The same as values and their probabilities; values of probability 0 may be left out at both ends."""
        self.posterior([j])
        i = self.sums[0].columns.index(j)
        return [
            (one.values[i][law.first : law.first + len(law.p)], law.p)
            for one, law in zip(self.sums, self._laws[j], strict=True)
        ]

    def missing(self, columns: Sequence[int]) -> np.ndarray:
        """P(cell missing | evidence) of some columns without evidence, (n, len(columns))."""
        return np.concatenate(self._of_each(lambda batch: batch.missing(columns)))

    def node_states(self) -> list[tuple[list[np.ndarray], float]]:
        """Of a single row, in each tree: the posterior of each node's state, and log p(codes and the sum)."""
        (batch,) = self._of_each(lambda batch: batch)
        found = {t: ([state[0] for state in of.states()], float(of.log_probability()[0])) for t, _, of in batch.trees}
        none = [[np.full(int(size), 1.0 / size) for size in tree.n_states] for tree in self._hidden.trees]
        return [found.get(t, (states, -np.inf)) for t, states in enumerate(none)]

    def otherwise(self, known: list[CodeEvidence], rows: np.ndarray, wanted: Sequence[int]) -> CodePosterior:
        found = _Batch(self._hidden, known, [self.sums[i] for i in rows.tolist()]).posterior(wanted)
        return CodePosterior(known, found.log_joint, found.codes)

    def totals(self) -> list[np.ndarray]:
        """Posterior of the total, in each row, for each total on its lattice; NaN where the evidence is impossible."""
        return [law for found in self._of_each(lambda batch: batch.totals()) for law in found]

    def _of_each(self, ask: Callable[[_Batch], Any]) -> list[Any]:
        """The answers of batches of rows; what is made for a single row is kept."""
        hidden, known, sums = self._hidden, self.known, self.sums
        with one_blas_thread():
            if len(sums) == 1:
                self._one = self._one or _Batch(hidden, known, sums)
                return [ask(self._one)]

            def work(a: int, b: int) -> Any:
                return ask(_Batch(hidden, [of.take(slice(a, b)) for of in known], sums[a:b]))

            size = _ROWS if all(one.is_by_codes for one in sums) else min(_LONG_ROWS, self._long_rows_at_once())
            return list(map_ordered(work, chunks(len(sums), size)))

    def _long_rows_at_once(self) -> int:
        """Rows whose tables of places and states fit in memory side by side, on each of some threads."""
        places = max(sum(int(x.max()) + 1 for x in one.places) for one in self.sums)
        states = sum(int(tree.n_states.max()) for tree in self._hidden.trees)
        return at_once(_TABLES * places * states * np.dtype(float).itemsize, share=0.25)


class _Known(NamedTuple):
    """Posteriors of n rows, over all trees.

    log_joint : float64 array (n, T). log weight + log p_t(evidence).
    codes : dict of column to float64 array (n, K_j)
    laws : dict of column to list of n PartPosterior. Of parts.
    """

    log_joint: np.ndarray
    codes: dict[int, np.ndarray]
    laws: dict[int, list[hinge.PartPosterior]]


def _n_totals(sums: Sequence[LinkedSum]) -> int:
    """Number of totals, from the least one on, among which are all that are possible in any of the rows."""
    return max(one.first + len(one.likelihood) for one in sums)


class _Batch:
    """Some rows of evidence with sums, in all trees; other rows may ask for totals below ``reach`` too."""

    @of_finite
    def __init__(
        self, hidden: HiddenTrees, known: list[CodeEvidence], sums: Sequence[LinkedSum], reach: int | None = None
    ) -> None:
        self.hidden, self.sums, n = hidden, sums, len(sums)
        reach = _n_totals(sums) if reach is None else reach
        self.trees: list[tuple[int, np.ndarray, _TreeRows]] = []
        self.log_base = np.sum([of.log_base for of in known], axis=0)
        parts = hinge.parts_of(hidden, sums)
        self.runs = hinge.coded_runs(hidden, sums, parts)
        for t, (tree, possible) in enumerate(zip(hidden.trees, possible_rows(hidden, known), strict=True)):
            rows = np.arange(n)[possible]
            if len(rows):
                some = rows.tolist()
                of = [sums[i] for i in some], [parts[i] for i in some], [self.runs[i] for i in some]
                self.trees.append((t, rows, _TreeRows(tree, [of.take(rows) for of in known], *of, reach)))

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
    def posterior(self, wanted: Sequence[int]) -> _Known:
        """Posteriors of the wanted columns' codes, and of the values of those that are parts."""
        n, trees = len(self.sums), [tree for _, _, tree in self.trees]
        for tree in trees:
            tree.find(wanted)
        codes = {}
        for j in wanted:
            K = self.hidden.scales[j].n_codes
            codes[j] = np.array(self._mixed([np.zeros(K) for _ in range(n)], [tree.codes[j] for tree in trees]))
        parts = [i for i, j in enumerate(self.sums[0].columns) if j in wanted]
        laws = self._laws(parts) if parts else []
        return _Known(self.log_joint, codes, {self.sums[0].columns[i]: law for i, law in zip(parts, laws, strict=True)})

    def _laws(self, parts: list[int]) -> list[list[hinge.PartPosterior]]:
        """Posteriors of the values of some parts, by their numbers, in each row."""
        of_runs = [None if of is None else of.laws(f) for of, f in zip(self.runs, self._factors(), strict=True)]
        found = []
        for i in parts:
            none = [
                np.zeros(len(one.values[i]) if laws is None else 0)
                for one, laws in zip(self.sums, of_runs, strict=True)
            ]
            mixed = self._mixed(none, [tree.laws(i) for _, _, tree in self.trees])
            found.append(
                [hinge.PartPosterior(0, p) if laws is None else laws[i] for p, laws in zip(mixed, of_runs, strict=True)]
            )
        return found

    def _factors(self) -> list[np.ndarray]:
        """What each run of each row multiplies the weights of its values with, over all trees."""
        none = [np.zeros(0 if of is None else len(of.weight)) for of in self.runs]
        return self._mixed(none, [tree.factors() for _, _, tree in self.trees])

    @of_finite
    def missing(self, columns: Sequence[int]) -> np.ndarray:
        """P(cell missing) of some columns, (n, len(columns))."""
        none = [np.zeros(len(columns)) for _ in self.sums]
        return np.array(self._mixed(none, [tree.missing(columns) for _, _, tree in self.trees]))

    @of_finite
    def totals(self) -> list[np.ndarray]:
        """Posteriors of the totals."""
        none = [np.zeros(one.size if of is None else 0) for one, of in zip(self.sums, self.runs, strict=True)]
        mixed = self._mixed(none, [tree.totals() for _, _, tree in self.trees])
        each = zip(mixed, self.runs, self._factors(), strict=True)
        return [law if of is None else of.totals(factor) for law, of, factor in each]


class _TreeRows:
    """Rows of evidence with sums, in one tree."""

    def __init__(
        self,
        tree: TreeTables,
        known: list[CodeEvidence],
        sums: Sequence[LinkedSum],
        parts: list[tuple[hinge.Part, ...]],
        runs: list[hinge.CodeRuns | None],
        reach: int,
    ) -> None:
        self.tree, self.known, self.sums, self.parts, self.runs = tree, known, sums, parts, runs
        self.n = len(sums)
        self.own = own_messages(tree, known)
        self.upward = up(tree, self.own, self.n)
        self.downward = down(tree, self.upward)
        nodes = [tree.node[j] for j in sums[0].columns]
        self.hinge = _hinge(tree, nodes)
        self.paths = [_path(tree, self.hinge, k) for k in nodes]  # from the hinge to each part
        inside = self.upward.inside[self.hinge]
        state = self.downward.outside[self.hinge].astype(np.float64) * (1.0 if inside is None else inside)
        self.state = np.broadcast_to(_row_shares(state), (self.n, state.shape[1]))
        self.by_code = [self._by_code(path) for path in self.paths]
        self.codes: dict[int, np.ndarray] = {}
        self._reach = reach
        self._short: dict[tuple[Any, ...], hinge.ShortParts] = {}
        self._known: dict[tuple[Any, ...], hinge.LastPart] = {}

    def _edge(self, u: int, y: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Table (H_u, H_y), weight (n or 1, H_y) and total (n or 1, H_u) of neighbours u and y."""
        # p(state of y | state of u, evidence) = table * weight / total.
        if self.tree.parent[y] == u:
            table = self.tree.transition[y].astype(np.float64)
            weight = _message(self.upward.inside[y], table.shape[1])
        else:
            table, weight = self.tree.transition[u].T.astype(np.float64), self.downward.above[u].astype(np.float64)
        return table, weight, weight @ table.T

    def _by_code(self, path: list[int]) -> list[np.ndarray]:
        """p(code of the part | state, evidence) for the nodes of a path, each (n or 1, K, H)."""
        found = [np.ascontiguousarray(self.tree.emission[path[-1]].T, np.float64)[None]]
        for u, y in zip(path[-2::-1], path[:0:-1], strict=True):
            table, weight, total = self._edge(u, y)
            found.append(divided((found[-1] * weight[:, None, :]) @ table.T, total[:, None, :]))
        return found[::-1]

    def _codes_at_hinge(self, i: int) -> list[np.ndarray]:
        """p(code | state of the hinge, evidence) of each part in row i, (K, H)."""
        return [codes[0][min(i, len(codes[0]) - 1)] for codes in self.by_code]

    def at_hinge(self, i: int) -> hinge.AtHinge | hinge.RunsAtHinge:
        """Row i at the hinge; what several rows have in common is kept."""
        one, parts, of, by_code = self.sums[i], self.parts[i], self.runs[i], self._codes_at_hinge(i)
        if of is not None:
            return hinge.RunsAtHinge(self.state[i], by_code, of)
        if any(len(codes[0]) > 1 for codes in self.by_code[:-1]):
            short = hinge.ShortParts(one, parts, by_code, one.first + len(one.likelihood))
            return hinge.AtHinge(self.state[i], by_code, hinge.LastPart(one, parts, short))
        short = self._shared_short(one, parts, by_code)
        key = (*map(id, parts), one.first, one.likelihood.tobytes())
        if key not in self._known:
            self._known[key] = hinge.LastPart(one, parts, short)
        return hinge.AtHinge(self.state[i], by_code, self._known[key])

    @cached_property
    def rows(self) -> list[hinge.AtHinge | hinge.RunsAtHinge]:
        """All rows at the hinge."""
        return [self.at_hinge(r) for r in range(self.n)]

    def _shared_short(
        self, one: LinkedSum, parts: tuple[hinge.Part, ...], by_code: list[np.ndarray]
    ) -> hinge.ShortParts:
        key = tuple(map(id, parts[:-1]))
        if key not in self._short:
            self._short[key] = hinge.ShortParts(one, parts, by_code, self._reach)
        return self._short[key]

    def probabilities(self, i: int, asked: list[LinkedSum], runs: list[hinge.CodeRuns | None]) -> list[float]:
        """Probabilities of the evidence of several rows on the total, given all other evidence of row i."""
        # ``runs`` are those of two parts, or empty.
        state, by_code, parts = self.state[i], self._codes_at_hinge(i), self.parts[i]
        if len(by_code) == 2:
            both = (by_code[0] * state) @ by_code[1].T
            made = [of for of in runs if of is not None]
            if len(made) == len(asked):
                return [float(of.weight @ both[of.code[1], of.code[2]]) for of in made]
            law = hinge.law_by_codes(asked[0], parts, both)
            return [float(law[of.first : of.first + len(of.likelihood)] @ of.likelihood) for of in asked]
        one = asked[0]
        is_shared = all(len(codes[0]) == 1 for codes in self.by_code[:-1])
        short = (
            self._shared_short(one, parts, by_code) if is_shared else hinge.ShortParts(one, parts, by_code, self._reach)
        )
        a, b = short.sum * state, hinge.places_by_state(parts[-1], one.places[-1], by_code[-1], self._reach)
        if sum(np.count_nonzero(of.likelihood) for of in asked) > _MOST_ASKED:
            law = hinge.law_of_total(a, b, one.size)
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
        with np.errstate(divide="ignore"):
            return np.asarray(self.upward.log_probability + np.log([row.probability for row in self.rows]))

    def totals(self) -> list[np.ndarray]:
        """The distribution of the total in each row."""
        return [row.totals() if isinstance(row, hinge.AtHinge) else np.empty(0) for row in self.rows]

    def find(self, wanted: Sequence[int]) -> None:
        """Find the posteriors of the wanted columns' codes."""
        columns = self.sums[0].columns
        others = {j: self.tree.node[j] for j in wanted if j not in columns}
        state = self._states(set(others.values()))
        for j, k in others.items():
            own = self.own[k]
            self.codes[j] = column_codes(
                state[k] if own is None else divided(state[k], own), self.tree, k, self.known[j]
            )
        for i, j in enumerate(columns):
            if j in wanted:
                K = self.tree.emission[self.tree.node[j]].shape[1]
                self.codes[j] = np.stack([row.codes(i, K) for row in self.rows])

    def laws(self, i: int) -> list[np.ndarray]:
        """Posterior of the values of part i in each row; none of a row that `factors` answers."""
        return [row.law(i) if isinstance(row, hinge.AtHinge) else np.empty(0) for row in self.rows]

    def factors(self) -> list[np.ndarray]:
        """Factors of the runs of each row that is taken by codes; none of other rows."""
        return [row.factor if isinstance(row, hinge.RunsAtHinge) else np.empty(0) for row in self.rows]

    def missing(self, columns: Sequence[int]) -> np.ndarray:
        """P(cell missing) of some columns, (n, len(columns))."""
        nodes, blank = [self.tree.missing_node[j] for j in columns], self.tree.blank
        if not blank:
            return np.zeros((self.n, len(columns)))
        state = self._states(set(nodes))
        return np.column_stack([_row_shares(state[k]) @ blank[k] for k in nodes])

    def states(self) -> list[np.ndarray]:
        """Posterior of the state of each node, (n, H) each."""
        state = self._states(set(range(len(self.tree))))
        return [_row_shares(state[k]) for k in range(len(self.tree))]

    def _states(self, wanted: set[int]) -> dict[int, np.ndarray]:
        """The same up to factors, of the wanted nodes and those on the way to them."""
        if not wanted:
            return {}
        state = {self.hinge: np.stack([row.posterior_state for row in self.rows])}
        ways = [_path(self.tree, self.hinge, k) for k in sorted(wanted)]
        for i, path in enumerate(self.paths):
            shared = max(sum(a == b for a, b in zip(path, way, strict=False)) for way in ways)
            if shared == 1:
                continue
            weight = self.state[:, None, :] * np.stack([row.weights(i) for row in self.rows])
            for k in range(1, shared):
                table, ahead, total = self._edge(path[k - 1], path[k])
                weight = (divided(weight, total[:, None, :]) @ table) * ahead[:, None, :]
                state[path[k]] = (self.by_code[i][k] * weight).sum(axis=1)
        for way in ways:
            for u, y in itertools.pairwise(way):
                if y not in state:
                    table, weight, total = self._edge(u, y)
                    state[y] = (divided(state[u], total) @ table) * weight
        return state


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


def _message(message: Message, size: int) -> np.ndarray:
    return np.ones((1, size)) if message is None else message.astype(np.float64)


def _row_shares(x: np.ndarray) -> np.ndarray:
    total = x.sum(axis=1, keepdims=True)
    return x / np.where(total > 0.0, total, 1.0)
