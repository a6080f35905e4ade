"""The result of a check: the probability that each cell is wrong, reasons in words, and repaired tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from ...data.discretization.discretizer import codes_of
from ...data.evidence import build
from ...data.frames import cells_of, encode_ranges, from_cells, ranges_in_words, with_names
from ...data.schema import Column, Schema
from ...models.base import Distribution
from ...models.hidden_tree.hidden_trees import HiddenTrees, TreeTables
from ...models.hidden_tree.messages import down, up
from ...models.hidden_tree.posterior import in_batches
from ...runtime.parameters import check_number
from ...runtime.warnings import LearnedErrorsWarning, warn
from .check import ErrorModel
from .columns import ANY, FACTORS, RULE, SHIFT, SIGN, SWAP, TYPING, UNIT, CheckedColumn, Coder
from .partners import Counts, group_like, joined_partners
from .rules import BrokenRules
from .swaps import find_swaps
from .texts import plain_form

_LIKELY = 0.5  # cells that are wrong with at least this probability have a reason, and are repaired
_NAMES = ("row", "column", "value", "p_wrong", "best", "p_best", "reason")
_TYPES = {"row": int, "rows": int, "p_wrong": float, "p_best": float}


class Repair(NamedTuple):
    """A repaired table.

    Attributes
    ----------
    frame : frame
        The table after the changes, of the same type as before.
    changes : frame
        The changes, with the columns of `Check.cells`.
    """

    frame: Any
    changes: Any


@dataclass(frozen=True, eq=False)
class Check:
    """Which cells of a table are wrong; made by `Joint.check`.

    Attributes
    ----------
    left_out : dict of str to str
        The columns that were not checked, and those some of whose cells were not, and why.
    wrong : dict of str to float
        Estimated share of wrong cells of each column, among those that are neither blank nor missing.
    key : str or None
        The column that names the entity of each row, given or found.
    source : str or None
        The column that names the source of each row, if there is a key.
    """

    left_out: dict[str, str]
    wrong: dict[str, float]
    key: str | None
    source: str | None
    _frame: Any
    _schema: Schema
    _library: str
    _places: list[int]
    _model: ErrorModel | None

    def __repr__(self) -> str:
        n = n_missing = 0
        columns = [] if self._model is None else self._model.columns
        for column, p in zip(columns, self._p_wrong if columns else [], strict=True):
            is_missing = (column.item < 0) & ~column.is_blank & ~column.is_range
            n += int((p[~is_missing] >= _LIKELY).sum())
            n_missing += int((p[is_missing] >= _LIKELY).sum())
        about = "1 cell is probably wrong" if n == 1 else f"{n:,} cells are probably wrong"
        if n_missing:
            cells = "1 missing cell" if n_missing == 1 else f"{n_missing:,} missing cells"
            about += f"; other cells determine {cells}"
        about += f"; key {self.key!r}" if self.key else ""
        aside = "; ".join(f"{name!r} {why}" for name, why in self.left_out.items())
        return f"Check({about}{'; not checked: ' + aside if aside else ''})"

    @property
    def cells(self) -> Any:
        """Every cell; those that are most probably wrong come first.

        Returns
        -------
        frame with the columns row (position, from 0), column, value (as text), p_wrong, best, p_best and reason
        """
        return from_cells(self._rows, self._library, _TYPES)

    @property
    def variants(self) -> Any:
        """Spellings of one level that differ only by capitals, accents and spaces.

        Returns
        -------
        frame with the columns column, value, rows (number of its cells) and proposed, the most frequent spelling
        """
        found: dict[str, list[Any]] = {"column": [], "value": [], "rows": [], "proposed": []}
        for column in self._model.columns if self._model else ():
            groups = defaultdict(list)
            for i in range(column.n_seen if column.is_levels else 0):
                groups[plain_form(column.texts[i])].append(i)
            for group in groups.values():
                most = max(group, key=column.count.__getitem__)
                for i in group:
                    if i != most:
                        row = (column.column.name, column.texts[i], int(column.count[i]), column.texts[most])
                        for name, x in zip(found, row, strict=True):
                            found[name].append(x)
        return from_cells(found, self._library, _TYPES)

    def _kept(self, one: Any) -> str | tuple[int, str]:
        """A column, or a row and a column, that stays what it is."""
        row, name = one if isinstance(one, tuple | list) and len(one) == 2 else (None, one)
        if str(name) not in self._schema.names or (row is not None and row not in range(len(self._frame))):
            raise ValueError(f"keep: {one!r} is neither a column nor a pair of a row (from 0) and a column")
        return str(name) if row is None else (int(row), str(name))

    def repair(self, at_least: float = 0.95, keep: Collection[Any] = ()) -> Repair:
        """The repaired table: see `Joint.repair`."""
        check_number("at_least", at_least, 0, 1, text="a probability between 0 and 1")
        if isinstance(keep, str):
            raise TypeError(f"keep: expected a list of columns, or of pairs (row, column), got the text {keep!r}")
        rows, model = self._rows, self._model
        place = {} if model is None else {column.column.name: j for j, column in enumerate(model.columns)}
        is_blank = [] if model is None else [c.is_blank & ~model.is_structural(j) for j, c in enumerate(model.columns)]
        kept = {self._kept(one) for one in keep}
        chosen = [
            i
            for i, (row, name) in enumerate(zip(rows["row"], rows["column"], strict=True))
            if rows["best"][i] is not None
            and rows["best"][i] != rows["value"][i]
            and rows["p_best"][i] >= at_least
            and (rows["p_wrong"][i] >= _LIKELY or is_blank[place[name]][row])
            and not {name, (row, name)} & kept
        ]
        changes = {name: [cells[i] for i in chosen] for name, cells in rows.items()}
        new: dict[int, tuple[list[int], list[Any]]] = defaultdict(lambda: ([], []))
        for row, name in zip(changes["row"], changes["column"], strict=True):
            assert model is not None
            j = place[name]
            new[j][0].append(row)
            new[j][1].append(model.columns[j].value(int(model.posterior[j].best[row])))
        return Repair(self._with(new), from_cells(changes, self._library, _TYPES))

    def cells_of(self, row: int, right: Mapping[str, str | None]) -> Any:
        """The cells of one row, if the true values of some of its columns are known.

        Parameters
        ----------
        row : int
            Position, from 0.
        right : dict of str to str or None
            The true values by column, in the form of ``value`` or ``best`` in `cells`. These cells are not wrong.

        Returns
        -------
        frame with the columns of `cells`

        Raises
        ------
        ValueError
            If there is no such row, or ``right`` names a column that is not checked, or a value that the cell of no
            row has and that is no best value.
        """
        model = self._model
        if model is None or isinstance(row, bool) or row not in range(model.n):
            raise ValueError(f"row: expected a number from 0 to {0 if model is None else model.n - 1}, got {row!r}")
        known = {}
        for name, text in right.items():
            names = [column.column.name for column in model.columns]
            if name not in names:
                raise ValueError(f"right: {name!r} is no column that is checked; there are {', '.join(names)}")
            j = names.index(name)
            column = model.columns[j]
            best = int(model.posterior[j].best[row])
            known[j] = self._value_of(column, int(column.item[row]), best, text)
        return from_cells(self._table(model.of_row(int(row), known)), self._library, _TYPES)

    def _value_of(self, column: CheckedColumn, item: int, best: int, text: str | None) -> int:
        """The value of a text, as `CheckedColumn.item` has it; that of the cell and the best one are tried first."""
        if not text or text == _shown(column, item):
            return item if text else -1
        near = [best, *range(len(column.values))]
        found = next((i for i in near if _shown(column, i) == text), None)
        if found is None:
            raise ValueError(f"right: {text!r} is no value of column {column.column.name!r} that a cell has")
        return found

    @cached_property
    def _tallies(self) -> dict[tuple[int, tuple[int, ...]], Counts]:
        """Cache of `_others`: the rows of each group with each best value, by column and partners."""
        return {}

    @cached_property
    def _p_wrong(self) -> list[np.ndarray]:
        """`_p_wrong_of` of the table."""
        return [] if self._model is None else self._p_wrong_of(self._model)

    def _p_wrong_of(self, model: ErrorModel) -> list[np.ndarray]:
        """Probabilities of all cells of each column, blank ones too.

        If an entity or a near-function predicts an empty cell, it is wrong with the probability of the predicted value.
        Otherwise a missing cell is no error. A blank text is wrong with a probability of the share of cells that are
        not blank. Columns whose blank cells other columns predict are excluded (`ErrorModel.is_structural`).
        """
        out, table = [], self._model
        assert table is not None
        for j, column in enumerate(model.columns):
            found, p = model.posterior[j], model.posterior[j].p_wrong.copy()
            empty = (column.item < 0) & ~model.is_right[j] & ~column.is_range
            if empty.any() and not table.is_structural(j):
                is_known = j in model.votes or model.partners[j].is_function(float(model.rate.mean()))
                blank = 1.0 - float(table.columns[j].is_blank.mean())
                p[empty] = found.p_best[empty] if is_known else np.where(column.is_blank, blank, 0.0)[empty]
            out.append(p)
        return out

    @cached_property
    def _rows(self) -> dict[str, list[Any]]:
        """The columns of `cells`, in its order."""
        return {name: [] for name in _NAMES} if self._model is None else self._table(self._model)

    def _table(self, model: ErrorModel) -> dict[str, list[Any]]:
        """The cells of a model of the table, or of one of its rows."""
        n = model.n
        if not n:
            return {name: [] for name in _NAMES}
        p_wrong = self._p_wrong if model is self._model else self._p_wrong_of(model)
        order = np.argsort(-np.concatenate(p_wrong), kind="stable")
        columns = []
        for j, column in enumerate(model.columns):
            found = model.posterior[j]
            texts = np.full(len(column.values) + 1, None, object)
            for i in np.unique([column.item, found.best]).tolist():
                texts[i] = _shown(column, i)
            value = texts[np.where(column.item >= 0, column.item, -1)]
            value[column.is_blank] = ""
            value[column.is_range] = column.ranges[column.is_range]
            reason = np.full(n, "", object)
            for r in np.flatnonzero(p_wrong[j] >= _LIKELY).tolist():
                reason[r] = self._reason(model, j, r, texts)
            label = np.full(n, column.column.name, object)
            columns.append((model.rows, label, value, p_wrong[j], texts[found.best], found.p_best, reason))
        parts = [np.concatenate(parts)[order].tolist() for parts in zip(*columns, strict=True)]
        return dict(zip(_NAMES, parts, strict=True))

    def _reason(self, model: ErrorModel, j: int, r: int, texts: np.ndarray) -> str:
        """Why a cell is probably wrong, in words."""
        column, found = model.columns[j], model.posterior[j]
        best, kind, item = texts[found.best[r]], int(found.kind[r]), int(column.item[r])
        empty = "" if item >= 0 else "blank; " if column.is_blank[r] else "missing; "
        if j in model.votes:
            assert model.key is not None
            return empty + self._others(model, j, r, (model.key,), best)
        if item >= 0 and kind == SWAP:
            return f"swapped with {model.columns[model.swaps.neighbour[r, j]].column.name}"
        if item >= 0 and kind == RULE:
            return model.rules.text(int(model.breaks.rule[r, j]))
        if item >= 0 and kind == TYPING:
            return f"typing error of {best!r}"
        if item >= 0 and kind in (SHIFT, UNIT, SIGN):
            for place in column.place[column.truth[item] == found.best[r]].tolist():
                of, factor = FACTORS[place]
                what = {SHIFT: "digits shifted", UNIT: "other unit", SIGN: "other sign"}[of]
                return f"{what}: {factor:g} times {best}"
        if item >= 0 and kind in (SHIFT, UNIT, SIGN, ANY):
            return "unlike the values of the column"
        if model.broken.p[r, j] > 0.0:
            is_relation = model.broken.relation[r, j] >= 0
            return self._broken(model, j, r) if is_relation else model.rules.text(int(model.breaks.rule[r, j]))
        if model.partners[j].columns:
            return empty + self._others(model, j, r, model.partners[j].columns[0], best)
        return empty + "unlikely with the other cells of the row"

    def _broken(self, model: ErrorModel, j: int, r: int) -> str:
        """A reason from a relation that a row breaks: how many rows with the same value in the other column have it."""
        relation = model.relations.found[int(model.broken.relation[r, j])]
        i, is_first = (relation.b, True) if j == relation.a else (relation.a, False)
        place = [[int(model.relations.codes(k, model.item[[r], k])[0])] for k in (relation.a, relation.b)]
        has = int(relation.rows[place[0], place[1]][0]) - 1
        of = int((relation.of_b[place[1]] if is_first else relation.of_a[place[0]])[0]) - 1
        cells = [self._near(model, k, r) for k in (i, j)]
        return f"only {has} of {of} other rows with {cells[0]} have {cells[1]}"

    def _near(self, model: ErrorModel, j: int, r: int) -> str:
        """The cell of a row, or the values that count as like it in a relation."""
        column, ends = model.columns[j], model.relations.ends(j, int(model.item[r, j]))
        if ends is None:
            return f"{column.column.name} = {_shown(column, int(model.item[r, j]))!r}"
        return f"{column.column.name} between {_shown(column, ends[0])} and {_shown(column, ends[1])}"

    def _others(self, model: ErrorModel, j: int, r: int, partners: tuple[int, ...], best: Any) -> str:
        """A reason from the other rows that have the same values in the columns ``partners``."""
        table = self._model
        assert table is not None
        if (j, partners) not in self._tallies:
            group = joined_partners([table.item[:, i] for i in partners])
            self._tallies[j, partners] = Counts(group, table.item[:, j], len(table.columns[j].values), np.ones(table.n))
        counts = self._tallies[j, partners].take(model.rows[[r]])
        if (model.item[r, partners] != table.item[model.rows[r], partners]).any():
            codes = [table.item[:, i] for i in partners]
            counts.group = group_like(self._tallies[j, partners].group, codes, model.item[r, partners].tolist())
            counts.item, counts.weight = np.array([-1]), np.zeros(1)
        has, all_rows = (int(x[0, 0]) for x in counts.tally(model.posterior[j].best[[[r]]]))
        given = ", ".join(
            f"{model.columns[i].column.name} = {_shown(model.columns[i], int(model.item[r, i]))!r}" for i in partners
        )
        return f"{has} of {all_rows} other rows with {given} have {best!r}" if has else f"unlikely with {given}"

    def _with(self, new: dict[int, tuple[list[int], list[Any]]]) -> Any:
        """The frame with new cells; ``new`` has their rows and values, by column."""
        frame = self._frame
        if isinstance(frame, np.ndarray):
            out = frame.copy()
            for j, (rows, values) in new.items():
                out[rows, self._schema.places[self._places[j]]] = values
            return out
        is_pandas = nw.dependencies.is_pandas_dataframe(frame)
        wide = nw.from_native(frame.rename(columns=str) if is_pandas else frame, eager_only=True)
        for j, (rows, values) in new.items():
            name = self._schema.columns[self._places[j]].name
            wide = wide.with_columns(wide[name].scatter(rows, values).alias(name))
        out = wide.to_native()
        if is_pandas:
            out.columns = frame.columns
        return out


def check(distribution: Distribution, frame: Any, key: str | None) -> Check:
    """Check each cell of a frame: see `Joint.check`."""
    schema, frame = distribution.schema, with_names(frame)
    X, _, ranges = encode_ranges(schema, frame)
    library = "numpy" if isinstance(frame, np.ndarray) else str(nw.get_native_namespace(frame).__name__)
    left_out, n = dict(schema.reasons_aside), len(X)
    left_out |= {
        name: f"{why} which are not checked; its other cells are"
        for name, why in ranges_in_words(schema, ranges).items()
    }
    key_place = None if key is None else schema.index(key)
    joint = of_joint(distribution)
    # The joint does not contain its rows, so a table with as many rows counts as the learned one.
    columns, places, is_learned = [], [], n == round(schema.n_rows)
    if is_learned and isinstance(joint, Other):
        problem = "this joint expects the wrong cells that it has learned from the table, and may not find them"
        hint = "check with the joint_ of jf.HiddenTreeForest(rules='off') fitted to the frame"
        warn(LearnedErrorsWarning(problem, hint))
    given = set(range(len(schema.columns)))
    if not isinstance(frame, np.ndarray):
        names = set(map(str, nw.from_native(frame, eager_only=True).columns))
        given = {j for j, name in enumerate(schema.names) if name in names}
    for j, column in enumerate(schema.columns):
        cells = cells_of(frame, schema, j) if j in given else [None] * n
        is_range = np.zeros(n, bool) if ranges is None else ranges.number[:, j] >= 0
        columns.append(CheckedColumn(column, joint.coder(j), joint.marginals[j], cells, X[:, j], is_learned, is_range))
        if (columns[j].item >= 0).any():
            places.append(j)
        elif n:
            left_out[column.name] = "has no known cell"
    if not places:
        return Check(left_out, {}, None, None, frame, schema, library, [], None)
    if key_place is not None and key_place not in places:
        raise ValueError(f"key: column {key!r} has no known cell")

    def ask(of: ErrorModel, seen: np.ndarray, likelihood: Any, read: Any) -> np.ndarray:
        item, Y = np.full((of.n, len(schema.columns)), -1), X[of.rows]
        table = [np.ones((1, len(marginal))) for marginal in joint.marginals]
        for i, j in enumerate(places):
            item[:, j], table[j] = seen[:, i], likelihood[i]
            new = of.item[:, i] != columns[j].item[of.rows]  # true values that are known
            Y[new, j] = columns[j].number[of.item[new, i]]
        back = {j: i for i, j in enumerate(places)}

        def keep(rows: slice, j: int, codes: np.ndarray) -> np.ndarray:
            return np.asarray(read(rows, back[j], codes)) if j in back else codes[:, :0]

        return joint.ask(Y, keep) if isinstance(joint, Other) else joint.ask(item, table, keep)

    at = None if key_place is None else places.index(key_place)
    swaps = find_swaps(distribution, X, places, [columns[j] for j in places], is_learned)
    rules = BrokenRules(distribution, X, places, [columns[j] for j in places])
    model = ErrorModel(ask, [columns[j] for j in places], swaps, rules, at)
    name = [schema.names[j] for j in places]
    wrong = {
        name[i]: float(np.mean(p[columns[j].item >= 0]))
        for i, (j, p) in enumerate(zip(places, (of.p_wrong for of in model.posterior), strict=True))
    }
    key, source = (None if i is None else name[i] for i in (model.key, model.source))
    return Check(left_out, wrong, key, source, frame, schema, library, places, model)


def _shown(column: CheckedColumn, i: int) -> str | None:
    """Value i as text; None if there is none."""
    value = column.value(i)
    return None if value is None else str(value)


# ---- Predictions of a joint for each cell of a row, given all other cells, each of which may be wrong.
# ---- Here *code* is a code of the joint: a level, or a bin of a number. See `check._Joint` for the functions that are
# ---- passed.


_BINS = 64  # bins of a column of numbers, in a joint without hidden trees
_DRAWS = 10_000  # draws that choose these bins, and give their shares
_KEPT = 20_000_000  # most probabilities of codes that are kept from one round to the next

Read = Callable[[slice, int, np.ndarray], np.ndarray]
"""Called with a batch of rows, a column and the probabilities of its codes, (b, K); returns what to keep, (b, A)."""


class RestTree:
    """Hidden trees: one pass up and one down each tree gives the predictions of all cells of a row."""

    def __init__(self, hidden: HiddenTrees) -> None:
        self._hidden = hidden
        shares = [np.ones((1, scale.n_codes)) for scale in hidden.scales]
        marginals: list[np.ndarray] = []

        def read(rows: slice, j: int, codes: np.ndarray) -> np.ndarray:
            marginals.append(codes[0])
            return np.zeros((len(codes), 1))

        ask_each(hidden, shares, np.full((1, len(shares)), -1), read)
        self.marginals = marginals

    def coder(self, j: int) -> Coder:
        """The codes of column j, which are those of the trees."""
        column, scale = self._hidden.schema.columns[j], self._hidden.scales[j]

        def codes(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            code, log_base = codes_of(scale, x)
            return code.astype(np.int64), np.exp(log_base) * (column.step if column.step > 0.0 else 1.0)

        return codes

    def ask(self, item: np.ndarray, likelihood: Sequence[np.ndarray], read: Read) -> np.ndarray:
        """See `ask_each`."""
        return ask_each(self._hidden, likelihood, item, read)


class Other:
    """Any other joint: predicts each cell given the other cells of its row, and assumes that these are right."""

    def __init__(self, distribution: Distribution) -> None:
        self._distribution = distribution
        schema = distribution.schema
        prior = distribution.observe(build(schema))
        drawn = distribution.sample(build(schema), _DRAWS, 0, False)  # much faster than quantiles and sums
        self._cuts = [_cuts(column, drawn[:, j]) for j, column in enumerate(schema.columns)]
        self.marginals = [
            prior.histogram(j, cuts)[0] if column.is_categorical else _shares(cuts, drawn[:, j])
            for j, (column, cuts) in enumerate(zip(schema.columns, self._cuts, strict=True))
        ]
        self._last: tuple[np.ndarray, list[np.ndarray]] | None = None  # the rounds of a check ask about the same rows

    def coder(self, j: int) -> Coder:
        """The codes of column j: its levels, or the bins between its cuts."""
        column, cuts = self._distribution.schema.columns[j], self._cuts[j]

        def codes(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            if column.is_categorical:
                return x.astype(np.int64), np.ones(len(x))
            ends = np.concatenate([[column.minimum], cuts, [column.maximum]])
            code = np.searchsorted(cuts, x)
            width = np.maximum(ends[code + 1] - ends[code], column.step or 1e-12)
            is_far = (x < column.minimum) | (x > column.maximum)  # learning saw no row there
            return code, (column.step or 1.0) / width / np.where(is_far, column.n_observed + 1.0, 1.0)

        return codes

    def ask(self, X: np.ndarray, read: Read) -> np.ndarray:
        """Like `ask_each` of rows X, (n, d), all of whose other cells count as right."""
        found: Iterable[np.ndarray] = self._codes(X)
        if len(X) * sum(map(len, self.marginals)) <= _KEPT:
            if self._last is None or not np.array_equal(self._last[0], X, equal_nan=True):
                self._last = X, list(found)
            found = self._last[1]
        return np.column_stack([read(slice(0, len(X)), j, codes) for j, codes in enumerate(found)])

    def _codes(self, X: np.ndarray) -> Iterator[np.ndarray]:
        """p(code of cell j | all other cells of the row) of each column, (n, K)."""
        evidence = build(self._distribution.schema, X)
        for j, cuts in enumerate(self._cuts):
            codes = self._distribution.observe(evidence.without(j)).histogram(j, cuts)
            yield np.where(np.isnan(codes), self.marginals[j], codes)  # impossible cells tell nothing


def _cuts(column: Column, drawn: np.ndarray) -> np.ndarray:
    """Ends of bins with about as many draws each, on a grid between cells; none for a column of levels."""
    drawn = drawn[~np.isnan(drawn)]
    if column.is_categorical or not len(drawn):
        return np.empty(0)
    cuts = np.quantile(drawn, np.arange(1, _BINS) / _BINS)
    if column.step > 0.0:
        cuts = (np.rint((cuts - column.center) / column.step) + 0.5) * column.step + column.center
    cuts = np.unique(cuts)
    return cuts[(cuts > column.minimum) & (cuts < column.maximum)]


def _shares(cuts: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """Shares of the bins between cuts, with half a pseudo-draw in each."""
    count = np.bincount(np.searchsorted(cuts, drawn[~np.isnan(drawn)]), minlength=len(cuts) + 1) + 0.5
    return np.asarray(count / count.sum())


def of_joint(distribution: Distribution) -> RestTree | Other:
    """The hidden trees of a joint, in a mixture those of greatest weight, or the joint itself if it has none."""
    for k in np.argsort(-np.asarray(distribution.log_weight), kind="stable").tolist():
        hidden = distribution.components[k].hidden_trees()
        if hidden is not None:
            return RestTree(hidden)
    return Other(distribution)


def ask_each(hidden: HiddenTrees, likelihood: Sequence[np.ndarray], item: np.ndarray, read: Read) -> np.ndarray:
    """Call ``read`` with p(code of cell j | all other cells of the row) for each column; its results, side by side.

    ``likelihood[j]`` (U_j + 1, K_j) is p(value in the cell | code), up to a factor for each value. Its last row, which
    item -1 selects, is for missing cells. ``item`` (n, d) contains the value of each cell.
    """
    by_state = [_by_state(tree, likelihood) for tree in hidden.trees]

    def work(a: int, b: int) -> np.ndarray:
        rows, d = slice(a, b), item.shape[1]
        total = np.full((b - a, d), -np.inf)
        found: list[np.ndarray | None] = [None] * d
        for tree, tables, log_weight in zip(hidden.trees, by_state, hidden.log_weight, strict=True):
            own = [None if j < 0 else tables[j][item[rows, j]] for j in tree.column.tolist()]
            upward = up(tree, own, b - a)
            downward = down(tree, upward)
            for j in range(d):
                k = tree.node[j]
                below, mine = upward.below[k], tables[j][item[rows, j]]
                rest = (
                    np.broadcast_to(downward.outside[k], mine.shape) if below is None else downward.outside[k] * below
                )
                codes = _codes(rest, tree, k)
                with np.errstate(divide="ignore", invalid="ignore"):
                    seen = (rest * mine).sum(axis=1, dtype=np.float64) / rest.sum(axis=1, dtype=np.float64)
                    log_rest = log_weight + upward.log_probability - np.log(seen)
                log_rest = np.where(np.isnan(log_rest), -np.inf, log_rest)
                found[j], total[:, j] = _mixed(found[j], total[:, j], codes, log_rest)
        return np.column_stack([read(rows, j, codes) for j, codes in enumerate(found) if codes is not None])

    return in_batches(hidden, work, len(item))


def _codes(rest: np.ndarray, tree: TreeTables, k: int) -> np.ndarray:
    """p(code of node k | the other cells), (n, K), from ``rest``, the weights of its states given these cells."""
    codes, picked = np.zeros((len(rest), tree.emission[k].shape[1])), tree.picked[k]
    codes[:, slice(None) if picked is None else picked] = rest @ tree.emission[k] if picked is None else rest
    return codes / np.maximum(codes.sum(axis=1, keepdims=True), 1e-300)


def _by_state(tree: TreeTables, likelihood: Sequence[np.ndarray]) -> dict[int, np.ndarray]:
    """For each column, p(value in the cell | state), (U + 1, H), up to a factor for each value."""
    tables = {}
    for j, k in tree.node.items():
        picked = tree.picked[k]
        # The factor must be the same in all trees, because it enters their weights.
        top = likelihood[j].max(axis=1, keepdims=True)
        scaled = likelihood[j] / np.where(top > 0.0, top, 1.0)
        tables[j] = (scaled @ tree.emission[k].T if picked is None else scaled[:, picked]).astype(tree.dtype)
    return tables


def _mixed(
    before: np.ndarray | None, total: np.ndarray, codes: np.ndarray, log_weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of codes after adding one more tree to the mixture, and the log of the sum of weights."""
    if before is None:
        return codes, log_weight
    both = np.logaddexp(total, log_weight)
    with np.errstate(invalid="ignore"):
        share = np.nan_to_num(np.exp(log_weight - both))[:, None]
    return before * (1.0 - share) + codes * share, both
