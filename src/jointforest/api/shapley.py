"""Shapley values of predictions: what `ExpectedPredictor.shap` and `shapley` have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .. import cards
from ..cards import Html, percent, signed
from ..data.evidence import Evidence
from ..data.frames import decode, encode, library_of, read, warn_unseen
from ..data.schema import Schema
from ..inference import shapley as game
from ..inference.sampling import sample
from ..inference.shapley import by_function, by_posterior, dependent_groups
from ..inference.shapley import interventional as interventional_value
from ..models.base import Distribution
from ..runtime.parameters import check_number, seed_of
from ..runtime.threads import threaded
from ..runtime.warnings import UnsupportedEvidenceWarning, warn
from .joint import need_joint

# ---- Shapley values of rows, as numbers, as a frame, as what shap's plots take.


ROWS_SHOWN = 3
"""So many rows are shown in notebooks one by one; of more the means."""


class Waterfall(NamedTuple):
    """The steps from the answer if nothing is known to a prediction; made by `ShapleyValues.waterfall`.

    Attributes
    ----------
    output : str
        Name of the output; empty of one that has no name.
    base : float
        Where the first step starts.
    names : tuple of str
        Columns with their cells, such as ``"age = 40"``.
    values, starts, ends : tuple of float
        Of each step. The last end is the prediction; without a step ``ends`` has the base alone.
    """

    output: str
    base: float
    names: tuple[str, ...]
    values: tuple[float, ...]
    starts: tuple[float, ...]
    ends: tuple[float, ...]

    @property
    def is_share(self) -> bool:
        """Whether the output is a probability, to be written in per cent: it has a name, and its ends are of 0 to 1."""
        return bool(self.output) and all(-1e-9 <= x <= 1.0 + 1e-9 for x in (self.base, self.ends[-1]))


@dataclass(frozen=True, repr=False)
class ShapleyValues:
    """Shapley values of n rows with p players (columns, or groups of columns); made by `ExpectedPredictor.shap`.

    Attributes
    ----------
    values : float64 array (n, p), or (n, p, K) of K outputs
        NaN in rows of probability 0. Those of a row sum to its answer less ``base_values``.
    base_values : float, or float64 array (K,)
        The answer if nothing is known.
    standard_error : float64 array like ``values``
        Of each value, from coalitions and rows that were drawn; 0 where nothing was.
    base_standard_error : float, or float64 array (K,)
    feature_names : tuple of p str
    output_names : tuple of K str
        Empty of one output that has no name.
    data : object array (n, p)
        The cells as the joint knows them, None where missing; of groups text such as ``"age = 40, sex = Male"``.
    numbers : float64 array (n, p)
        The same as numbers and codes of levels; NaN where missing, and of groups.
    library : {"pandas", "polars", "pyarrow", "numpy"}
        What `to_frame` answers in.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> penguins = jf.datasets.load_penguins().dropna()
    >>> X, y = penguins[["bill_length_mm", "flipper_length_mm"]], penguins["body_mass_g"]
    >>> model = RandomForestRegressor(10, random_state=0).fit(X, y)
    >>> joint = jf.AdversarialForest(n_estimators=5, random_state=0).fit(penguins).joint_
    >>> found = jf.ExpectedPredictor(model, joint).shap(X.head(3))
    >>> found
    ShapleyValues(3 rows, 2 players: bill_length_mm, flipper_length_mm)
    >>> found.to_frame().columns.tolist()
    ['row', 'feature', 'data', 'value', 'standard_error']
    """

    values: np.ndarray
    base_values: Any
    standard_error: np.ndarray
    base_standard_error: Any
    feature_names: tuple[str, ...]
    output_names: tuple[str, ...]
    data: np.ndarray
    numbers: np.ndarray
    library: str

    def __repr__(self) -> str:
        n, p = self.values.shape[:2]
        shown = ", ".join(self.feature_names[:6]) + (", ..." if p > 6 else "")
        outputs = f", {self.values.shape[2]} outputs" if self.values.ndim == 3 else ""
        return f"ShapleyValues({n} rows, {p} players{outputs}: {shown})"

    def _repr_html_(self) -> str:
        title = repr(self).removeprefix("ShapleyValues(").removesuffix(")")
        if self.values.size == 0 or np.isnan(self.values).all():
            return cards.view_html(f"Shapley values: {title}", [], [])
        if len(self) <= ROWS_SHOWN:
            pieces = [cards.grid([self._card(row) for row in range(len(self))], 460)]
            said = "Teal raises the prediction, orange lowers it; each step starts where the last one ends."
        else:
            pieces, said = [self._summary()], "Mean absolute value over the rows: how much a column moves predictions."
        return cards.view_html(f"Shapley values: {title}", [said], pieces)

    def _card(self, row: int) -> str:
        """A row's waterfall."""
        steps = self.waterfall(row)
        marks = [steps.base, *steps.ends, 0.0 if steps.base >= 0.0 else steps.base]
        low, high = min(marks), max(marks)
        is_share = steps.is_share
        write = percent if is_share else lambda x: signed(f"{x:.4g}")
        rows: list[tuple[str, str, str]] = [(cards.soft("without evidence"), "", write(steps.base))]
        for name, value, start, end in zip(steps.names, steps.values, steps.starts, steps.ends, strict=True):
            drawn = Html(cards.step(start, end, low, high))
            step = f"{100.0 * value:+.1f} points" if is_share else f"{value:+.3g}"
            rows.append((cards.shortened_text(name, 34), drawn, signed(step)))
        rows.append((Html("<b>prediction</b>"), "", Html(f"<b>{write(steps.ends[-1])}</b>")))
        return cards.card(f"row {row}", steps.output, cards.table_html(rows))

    def _summary(self) -> str:
        """Mean absolute values as bars."""
        several = self.values.ndim == 3
        size = np.nanmean(np.abs(self.values), axis=(0, 2) if several else 0)
        rows = [
            (self.feature_names[k], Html(cards.step(0.0, float(size[k]), 0.0, float(size.max()))), f"{size[k]:.4g}")
            for k in np.argsort(-size, kind="stable").tolist()
        ]
        return cards.table_html(rows, ("column", "", "mean |value|"))

    def waterfall(self, row: int = 0, output: Any = None, most: int = 10) -> Waterfall:
        """The steps from the answer if nothing is known to a row's prediction, the largest first.

        Parameters
        ----------
        row : int
        output : str or int, optional
            Which of several outputs, by its name or number. Default: the row's largest.
        most : int
            Most steps; columns that matter less are one step together.

        Raises
        ------
        ValueError
            If there is no such row or output, or the row has no values.

        Examples
        --------
        >>> found = jf.shapley("body_mass_g", joint, penguins.head(1)).waterfall()
        >>> bool(abs(found.base + sum(found.values) - found.ends[-1]) < 1e-6)
        True
        """
        check_number("row", row, 0, len(self) - 1, whole=True, text=f"the number of a row, 0 to {len(self) - 1}")
        check_number("most", most, 1, whole=True, text="a positive integer")
        values, base, label = self.values[row], self.base_values, ""
        if self.values.ndim == 3:
            k = self.output_number(output, row)
            values, base, label = values[:, k], base[k], self.output_names[k] if self.output_names else str(k)
        elif self.output_names:
            label = self.output_names[0]
        if np.isnan(values).any():
            raise ValueError(f"row {row} has no Shapley values: it has probability 0 under the joint")
        order = np.argsort(-np.abs(values), kind="stable").tolist()
        # a player without a cell is in no coalition: its value is 0
        order = [k for k in order if self.data[row, k] is not None or values[k] != 0.0]
        kept, joined = (order, []) if len(order) <= most else (order[: most - 1], order[most - 1 :])
        names = [self._player(row, k) for k in kept]
        steps = [float(values[k]) for k in kept]
        if joined:
            names, steps = [*names, f"{len(joined)} others"], [*steps, float(values[joined].sum())]
        ends = (float(base) + np.cumsum(steps)).tolist() if steps else [float(base)]
        starts = [float(base), *ends[:-1]] if steps else []
        return Waterfall(label, float(base), tuple(names), tuple(steps), tuple(starts), tuple(ends))

    def output_number(self, output: Any = None, row: int | None = None) -> int:
        """Number of an output by its name or number; by default the largest of a row, or the last of two."""
        K = self.values.shape[2]
        if output is None:
            if row is not None:
                return int(np.argmax(np.asarray(self.base_values) + self.values[row].sum(axis=0)))
            return K - 1
        if str(output) in self.output_names:
            return self.output_names.index(str(output))
        if isinstance(output, int) and not isinstance(output, bool) and 0 <= output < K:
            return output
        raise ValueError(f"output: expected one of {', '.join(self.output_names) or f'0 to {K - 1}'}, got {output!r}")

    def _player(self, row: int, k: int) -> str:
        """A player and its cell, as people read them; of a group its cells."""
        cell, name = self.data[row, k], self.feature_names[k]
        if cell is None:
            return name
        if isinstance(cell, float):
            cell = f"{cell:.5g}"
        return f"{name} = {cell}" if np.isfinite(self.numbers[row, k]) else f"{name}: {cell}"

    def __len__(self) -> int:
        return len(self.values)

    def to_frame(self) -> Any:
        """One line a row and player, and output if there are several.

        Returns
        -------
        frame with the columns row (number), feature, output (if there are several), data (text, None where missing),
            value and standard_error; of tables that came as numpy a numpy array of objects
        """
        n, p = self.values.shape[:2]
        outputs = self.output_names if self.values.ndim == 3 else ("",)
        K = len(outputs)
        text = [None if cell is None else str(cell) for cell in np.repeat(self.data.ravel(), K).tolist()]
        columns: dict[str, Any] = {
            "row": np.repeat(np.arange(n), p * K),
            "feature": np.tile(np.repeat(np.array(self.feature_names, dtype=object), K), n).tolist(),
            "output": list(outputs) * (n * p),
            "data": text,
            "value": self.values.ravel(),
            "standard_error": self.standard_error.ravel(),
        }
        if self.values.ndim == 2:
            del columns["output"]
        if self.library == "numpy":
            return np.array(list(zip(*columns.values(), strict=True)), dtype=object).reshape(-1, len(columns))
        import narwhals as nw

        kinds = {name: nw.Int64 if name == "row" else nw.Float64 if name in ("value", "standard_error") else nw.String
                 for name in columns}  # fmt: skip
        backend: Any = self.library
        return nw.from_dict(columns, schema=nw.Schema(kinds), backend=backend).to_native()

    def to_shap(self) -> Any:
        """The values as ``shap.Explanation``, for the plots of the library shap (extra ``shap``).

        Returns
        -------
        shap.Explanation
            ``data`` are ``numbers``, which colour the plots, ``display_data`` is ``data``, ``error_std`` the standard
            errors. Of several outputs pick one before plotting: ``found.to_shap()[:, :, 0]``.

        Raises
        ------
        ImportError
            If shap is not installed.
        """
        try:
            import shap
        except ImportError:
            raise ImportError("to_shap needs the library shap: pip install 'jointforest[shap]'") from None
        return shap.Explanation(
            values=self.values,
            base_values=np.broadcast_to(self.base_values, (len(self), *self.values.shape[2:])).copy(),
            data=self.numbers,
            display_data=self.data,
            feature_names=list(self.feature_names),
            output_names=list(self.output_names) if self.values.ndim == 3 else None,
            error_std=self.standard_error,
        )


BASE_DRAWS = 16
"""How many times as many draws the answer to nothing known takes: all rows share it."""


def find_players(model: Distribution, columns: list[int], groups: Any, n_coalitions: Any, seed: int) -> game.Players:
    """The players, checked against the number of coalitions."""
    if isinstance(groups, str) and groups == "auto":
        schema = model.schema
        groups = [[schema.names[j] for j in g] for g in dependent_groups(model, columns, game.EXACT_PLAYERS, seed)]
    players = game.make_players(model.schema, columns, groups)
    if n_coalitions is not None:
        least = min(2 ** len(players.names), game.least_coalitions(len(players.names)))
        text = f"None, or a whole number from {least} to {game.MOST_COALITIONS:,}, for {len(players.names)} players"
        check_number("n_coalitions", n_coalitions, least, game.MOST_COALITIONS, whole=True, text=text)
    return players


def background_cells(model: Distribution, background: Any, seed: int) -> np.ndarray:
    """Background rows of the joint's columns (R, d): so many draws, or a frame whose missing cells are drawn."""
    schema = model.schema
    if isinstance(background, int | np.integer) and not isinstance(background, bool):
        check_number("background", background, 2, whole=True, text="a frame, or a whole number of at least 2")
        return sample(model, Evidence.nothing(len(schema.columns)), int(background), seed, False)
    values, unseen = encode(schema, background)
    warn_unseen(schema, background, unseen)
    if len(values) < 2:
        raise ValueError(f"background: expected at least 2 rows, got {len(values)}")
    return sample(model, Evidence.of_values(values), 1, seed, False)


def to_result(
    solved: game.Solved,
    players: game.Players,
    schema: Schema,
    values: np.ndarray,
    outputs: tuple[str, ...],
    several: bool,
) -> ShapleyValues:
    """What users get; ``values`` (n, d) are the rows, ``several`` whether there is an axis of outputs."""
    lost = int(np.isnan(solved.phi).any(axis=(1, 2)).sum())
    if lost:
        warn(f"{lost} of {len(values)} rows have coalitions of probability 0: no values", UnsupportedEvidenceWarning)
    pick: Any = slice(None) if several else 0
    numbers = np.full((len(values), len(players.names)), np.nan)
    data = np.empty(numbers.shape, dtype=object)
    for k, columns in enumerate(players.columns):
        shown = [[schema.columns[j].from_number(float(x)) for x in values[:, j]] for j in columns]
        if len(columns) == 1:
            numbers[:, k], data[:, k] = values[:, columns[0]], shown[0]
        else:
            names = [schema.names[j] for j in columns]
            for i, cells in enumerate(zip(*shown, strict=True)):
                known = [f"{name} = {cell}" for name, cell in zip(names, cells, strict=True) if cell is not None]
                data[i, k] = ", ".join(known) or None
    return ShapleyValues(
        values=solved.phi[:, :, pick],
        base_values=solved.base[pick] if several else float(solved.base[0]),
        standard_error=np.sqrt(solved.variance[:, :, pick]),
        base_standard_error=np.sqrt(solved.base_variance[pick]) if several else float(np.sqrt(solved.base_variance[0])),
        feature_names=players.names,
        output_names=outputs,
        data=data,
        numbers=numbers,
        library=library_of(schema),
    )


@threaded
def shapley(
    predict: Callable[[Any], Any] | str,
    joint: Any,
    X: Any,
    *,
    groups: Any = None,
    interventional: bool = False,
    background: Any = 100,
    n_coalitions: int | None = None,
    n_draws: int = 128,
    random_state: Any = 0,
    n_jobs: int | None = -1,
) -> ShapleyValues:
    """Shapley values of any function of a row, or of what the joint itself predicts, given its joint distribution.

    The value of a coalition S of columns is the mean prediction given what they are, E[f(X) | X_S = x_S], as the mean
    over rows drawn from the joint given x_S; ``interventional=True``: with x_S put into rows of a background.

    Parameters
    ----------
    predict : str, or callable
        A column of the joint, whose posterior is explained: the probabilities of its levels, or its mean. These values
        are exact up to 12 players, and need no draws. Or a function from a frame of complete rows, with the columns of
        X in their order and the joint's types, to an array (n,) or (n, K): ``model.predict``,
        ``model.predict_proba``, a pipeline, a network.
    joint : Joint
        Of the columns of X, and any others.
    X : frame of n rows
        Cells may be missing: then they are in no coalition. An array has all of the joint's columns.
    groups : None, "auto", list of lists of column names, or dict of name to column names
        Players that are several columns; other columns are players of their own. "auto": clusters of dependent columns,
        at most 12 players, so that all coalitions are asked.
    interventional : bool
        Marginal values: columns outside S are drawn independently of x_S.
    background : int or frame
        Of interventional values: how many rows to draw from the joint, or these rows.
    n_coalitions : int, optional
        Most coalitions of a row. Default: all up to 12 players, else 512, drawn.
    n_draws : int
        Rows drawn for each coalition.
    random_state : None, int, Generator or RandomState
    n_jobs : int or None
        Threads for draws; answers do not depend on it.

    Returns
    -------
    ShapleyValues
        With standard errors: of the rows drawn, and of the coalitions where these are.

    Raises
    ------
    TypeError
        If joint is no Joint, or predict cannot be called.
    ValueError
        Unknown columns, a target of dates, interventional values of a column; groups that overlap, too few coalitions,
        predictions that are not n finite numbers.

    Examples
    --------
    >>> penguins = jf.datasets.load_penguins().dropna()
    >>> joint = jf.AdversarialForest(n_estimators=5, random_state=0).fit(penguins).joint_
    >>> found = jf.shapley(lambda X: 2.0 * X["bill_length_mm"], joint, penguins[["bill_length_mm", "island"]].head(2))
    >>> found.feature_names
    ('bill_length_mm', 'island')
    >>> own = jf.shapley("species", joint, penguins[["bill_length_mm", "island"]].head(2))
    >>> own.output_names
    ('Adelie', 'Chinstrap', 'Gentoo')
    """
    need_joint(joint, "joint: expected a Joint")
    if not callable(predict) and not isinstance(predict, str):
        raise TypeError(
            f"predict: expected a function such as model.predict, or a column's name, got {type(predict).__name__}"
        )
    check_number("n_draws", n_draws, 2, whole=True, text="a whole number of at least 2")
    schema, seed = joint.schema, seed_of(random_state)
    values, unseen = encode(schema, X)
    warn_unseen(schema, X, unseen)
    columns = frame_columns(schema, X)
    if isinstance(predict, str):
        target = schema.index(predict)
        if interventional:
            raise ValueError(f"interventional: of the column {predict!r} only conditional values are defined")
        columns = [j for j in columns if j != target]
        players = find_players(joint.distribution, columns, groups, n_coalitions, seed)
        return _posterior_shapley(joint.distribution, target, values, players, n_coalitions, seed)
    players = find_players(joint.distribution, columns, groups, n_coalitions, seed)
    function = on_frames(predict, schema, columns)
    needed = np.zeros(len(schema.names), bool)
    needed[columns] = True
    if interventional:
        cells = background_cells(joint.distribution, background, seed)
        everything = np.arange(len(schema.names))
        no, there = np.zeros(values.shape, bool), (cells, np.zeros(cells.shape, bool))
        value = interventional_value(values, no, everything, there, lambda X, other: function(X))
        base = nothing(value, len(schema.names))
    else:
        value = by_function(function, joint.distribution, values, needed, n_draws, seed)
        many = by_function(function, joint.distribution, values, needed, BASE_DRAWS * n_draws, seed)
        base = nothing(many, len(schema.names))
    solved = game.shapley_values(
        value, base, players.of_columns(len(schema.names)), ~np.isnan(values), n_coalitions, seed
    )
    K = len(solved.base)
    return to_result(solved, players, schema, values, tuple(map(str, range(K))) if K > 1 else (), K > 1)


def _posterior_shapley(
    model: Distribution, j: int, values: np.ndarray, players: game.Players, n_coalitions: int | None, seed: int
) -> ShapleyValues:
    """Values of the posterior of column j: of the probabilities of its levels, or of its mean."""
    column, d = model.schema.columns[j], len(model.schema.columns)
    if column.kind == "datetime":
        raise ValueError(f"column {column.name!r}: the mean of dates has no Shapley values; choose another column")
    cells = values.copy()
    cells[:, j] = np.nan
    value = by_posterior(model, cells, j)
    solved = game.shapley_values(
        value, nothing(value, d), players.of_columns(d), ~np.isnan(cells), n_coalitions, seed
    )  # fmt: skip
    outputs = tuple(map(str, column.levels)) if column.is_categorical else ()
    return to_result(solved, players, model.schema, values, outputs, column.is_categorical)


def nothing(value: game.ValueFunction, d: int) -> game.Asked:
    """The value of the empty coalition, q = 1."""
    return value(np.zeros(1, dtype=np.int64), np.zeros((1, d), bool))


def frame_columns(schema: Schema, X: Any) -> list[int]:
    """Numbers of the joint's columns that a frame has, in its order."""
    reader = read(X)
    if reader.frame == "numpy":
        return list(range(len(schema.names)))
    return [schema.index(name) for name in reader.names if name in schema.names]


def on_frames(predict: Callable[[Any], Any], schema: Schema, columns: list[int]) -> Callable[[np.ndarray], np.ndarray]:
    """A function of frames as one of the joint's rows (n, d) to (n, K); rows of all NaN have the answer NaN."""
    labels = [schema.columns[j].label for j in columns]
    places = [int(schema.places[j]) for j in columns]
    width = 1

    def function(rows: np.ndarray) -> np.ndarray:
        nonlocal width
        possible = ~np.isnan(rows).all(axis=1)
        if not possible.any():
            return np.full((len(rows), width), np.nan)
        frame = decode(schema, rows[possible])
        if schema.frame == "numpy":
            given = frame[:, places]
        else:
            given = frame[labels] if schema.frame == "pandas" else frame.select(labels)
        answer = _checked_answer(predict(given), int(possible.sum()))
        width = answer.shape[1]
        out = np.full((len(rows), width), np.nan)
        out[possible] = answer
        return out

    return function


def _checked_answer(answer: Any, n: int) -> np.ndarray:
    """What the function gave for n rows, as (n, K)."""
    answer = np.asarray(answer)
    if answer.ndim not in (1, 2) or len(answer) != n or answer.dtype.kind not in "fiub":
        got = f"{answer.dtype} of shape {answer.shape}"
        raise ValueError(f"predict: expected {n} numbers, or {n} rows of numbers, got {got}")
    answer = answer.astype(np.float64).reshape(n, -1)
    if not np.isfinite(answer).all():
        raise ValueError("predict: answers must be finite numbers, got NaN or infinity")
    return answer
