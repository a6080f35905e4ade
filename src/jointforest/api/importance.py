"""Importance of columns over a whole table, given the joint: SAGE, and conditional permutation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .. import cards
from ..cards import Html
from ..data.evidence import Evidence
from ..data.frames import encode, read, warn_unseen
from ..inference.sampling import sample
from ..inference.shapley import (
    Asked,
    Players,
    ValueFunction,
    by_function,
    conditional,
    known_cells,
    loss_of,
    loss_with_error,
    shapley_values,
)
from ..runtime.parameters import check, check_number, seed_of
from ..runtime.threads import threaded
from .expected import ExpectedPredictor
from .joint import need_joint
from .shapley import BASE_DRAWS, find_players, frame_columns, nothing, on_frames

_COALITIONS = 128
"""Coalitions of a row by default: rows have different ones, so that few of each will do."""


@dataclass(frozen=True)
class Importance:
    """How much columns matter over a table; made by `sage` and `conditional_importance`.

    Attributes
    ----------
    feature_names : tuple of p str
    values : float64 array (p,)
        In units of the loss; more is more important.
    standard_error : float64 array (p,)
        Over the rows of the table, draws included.
    loss : float
        Mean loss of the predictions from all that the rows know.
    n_rows : int
    """

    feature_names: tuple[str, ...]
    values: np.ndarray
    standard_error: np.ndarray
    loss: float
    n_rows: int

    def __repr__(self) -> str:
        order = np.argsort(-self.values, kind="stable")
        lines = [f"{self.feature_names[k]}: {self.values[k]:.4g} +- {self.standard_error[k]:.2g}" for k in order]
        return f"Importance({self.n_rows} rows, loss {self.loss:.4g})\n" + "\n".join(lines)

    def _repr_html_(self) -> str:
        order = np.argsort(-self.values, kind="stable").tolist()
        low, high = min(float(self.values.min()), 0.0), max(float(self.values.max()), 0.0)
        rows = [
            (self.feature_names[k], Html(cards.step(0.0, float(self.values[k]), low, high)), f"{self.values[k]:.4g}",
             cards.soft(f"± {self.standard_error[k]:.2g}"))
            for k in order
        ]  # fmt: skip
        title = f"Importance of columns over {self.n_rows:,} rows; mean loss {self.loss:.4g}"
        return cards.view_html(title, [], [cards.table_html(rows, ("column", "", "loss taken away", "standard error"))])


@threaded
def sage(
    model: Any,
    joint: Any,
    X: Any,
    y: Any,
    *,
    loss: str = "auto",
    groups: Any = None,
    n_coalitions: int | None = None,
    n_draws: int = 128,
    random_state: Any = 0,
    n_jobs: int | None = -1,
) -> Importance:
    """How much of the model's loss each column takes away: Shapley values of the loss, with conditional removal.

    The value of a coalition S is the mean, over the rows, of loss(E[f(X)], y) - loss(E[f(X) | X_S = x_S], y). Values
    sum to what all columns take away.

    Parameters
    ----------
    model : ExpectedPredictor, or callable
        A function as of `shapley`.
    joint : Joint
        Of the columns of X.
    X : frame of n rows
    y : array_like (n,)
        Numbers; or classes: labels for a predictor, numbers 0, 1, ... of the columns of a function's answer.
    loss : {"auto", "squared", "log"}
        "log": minus the log-probability of the class. "auto": "log" for classifiers and answers of several columns.
    groups, n_draws, random_state, n_jobs
        As of `shapley`; a predictor has its own last three.
    n_coalitions : int, optional
        Coalitions of each row, drawn anew for each. Default 128.

    Raises
    ------
    TypeError, ValueError
        As `shapley`; if y is not n known numbers or classes.

    Notes
    -----
    I. Covert, S. Lundberg, S.-I. Lee, "Understanding Global Feature Contributions With Additive Importance Measures"
    (2020). What the draws' errors add to the loss is subtracted (second order).

    Examples
    --------
    >>> penguins = jf.datasets.load_penguins().dropna()
    >>> joint = jf.AdversarialForest(n_estimators=5, random_state=0).fit(penguins).joint_
    >>> some = penguins.sample(40, random_state=0)
    >>> X, y = some[["bill_length_mm", "flipper_length_mm"]], some["body_mass_g"]
    >>> found = jf.sage(lambda X: 50.0 * X["flipper_length_mm"] - 5800.0, joint, X, y, n_draws=32)
    >>> found.feature_names, bool(found.values[1] > found.values[0] > 0)
    (('bill_length_mm', 'flipper_length_mm'), True)
    """
    ask = _ask(model, joint, X, groups, n_coalitions, n_draws, random_state)
    base = nothing(ask.many, ask.known.shape[1])
    loss, truth = _truth(model, loss, y, len(ask.known), base.mean.shape[1])
    at_base = loss_of(loss, np.repeat(base.mean, len(truth), axis=0), truth)

    def value(row: np.ndarray, known: np.ndarray) -> Asked:
        answers = ask.value(row, known)
        gain = at_base[row] - loss_with_error(loss, answers.mean, answers.variance, truth[row])
        return Asked(gain[:, None], np.zeros((len(row), 1)))

    zero = Asked(np.zeros((1, 1)), np.zeros((1, 1)))
    players = ask.players.of_columns(ask.known.shape[1])
    m = min(2 ** len(players), max(_COALITIONS, 4 * len(players))) if n_coalitions is None else n_coalitions
    phi = shapley_values(value, zero, players, ask.known, m, ask.seed, own_coalitions=True).phi[:, :, 0]
    return _importance(ask.players, phi, float(np.nanmean(at_base - phi.sum(axis=1))))


@threaded
def conditional_importance(
    model: Any,
    joint: Any,
    X: Any,
    y: Any,
    *,
    loss: str = "auto",
    groups: Any = None,
    n_repeats: int = 20,
    random_state: Any = 0,
    n_jobs: int | None = -1,
) -> Importance:
    """How much the loss grows if a column is drawn anew given all others of X: conditional permutation importance.

    0 for columns that the model does not use, and for those that the others determine.

    Parameters
    ----------
    model, joint, X, y, loss, groups
        As of `sage`.
    n_repeats : int
        Draws for each row.
    random_state, n_jobs
        As of `sage`.

    Raises
    ------
    TypeError, ValueError
        As `sage`.

    Notes
    -----
    C. Strobl and others, "Conditional variable importance for random forests" (2008), with draws from the joint in
    place of permutations within cells. Missing cells are drawn given the row's known ones, on both sides.

    Examples
    --------
    >>> penguins = jf.datasets.load_penguins().dropna()
    >>> joint = jf.AdversarialForest(n_estimators=5, random_state=0).fit(penguins).joint_
    >>> some = penguins.sample(40, random_state=0)
    >>> X, y = some[["bill_length_mm", "flipper_length_mm"]], some["body_mass_g"]
    >>> found = jf.conditional_importance(lambda X: 50.0 * X["flipper_length_mm"] - 5800.0, joint, X, y)
    >>> float(found.values[0]), bool(found.values[1] > 0)
    (0.0, True)
    """
    check_number("n_repeats", n_repeats, 1, whole=True)
    ask = _ask(model, joint, X, groups, None, 2, random_state)
    n, d = ask.cells.shape
    seeds = np.random.SeedSequence(ask.seed).generate_state(len(ask.players.names) + 1, np.uint64) >> np.uint64(2)

    def answers(evidence: np.ndarray, seed: int) -> np.ndarray:
        drawn = sample(joint.distribution, Evidence.of_values(evidence), n_repeats, seed, False)
        return ask.function(drawn)

    with_all = answers(ask.cells, int(seeds[0]))
    loss, truth = _truth(model, loss, y, n, with_all.shape[1])
    each = np.repeat(truth, n_repeats)
    before = loss_of(loss, with_all, each).reshape(n, -1).mean(axis=1)
    grows = np.empty((n, len(ask.players.names)))
    for k, columns in enumerate(ask.players.of_columns(d)):
        after = loss_of(loss, answers(np.where(columns, np.nan, ask.cells), int(seeds[k + 1])), each)
        grows[:, k] = after.reshape(n, -1).mean(axis=1) - before
    return _importance(ask.players, grows, float(before.mean()))


class _Ask(NamedTuple):
    """What both importances ask: cells (n, d), which are known, players, functions."""

    cells: np.ndarray
    known: np.ndarray
    players: Players
    value: ValueFunction
    many: ValueFunction
    function: Callable[[np.ndarray], np.ndarray]
    seed: int


def _ask(model: Any, joint: Any, X: Any, groups: Any, n_coalitions: Any, n_draws: Any, random_state: Any) -> _Ask:
    """Check the arguments of an importance and make what it asks of the model."""
    need_joint(joint, "joint: expected a Joint")
    if (n := read(X).n) < 2:
        raise ValueError(f"X: expected at least 2 rows, or there is no standard error, got {n}")
    if isinstance(model, ExpectedPredictor):
        if model.joint is not joint:
            raise ValueError("joint: the predictor has another joint; give predictor.joint")
        return _of_predictor(model, X, groups, n_coalitions)
    if not callable(model):
        raise TypeError(
            f"model: expected an ExpectedPredictor or a function such as model.predict, got {type(model).__name__}"
        )
    check_number("n_draws", n_draws, 2, whole=True, text="a whole number of at least 2")
    schema, seed = joint.schema, seed_of(random_state)
    cells, unseen = encode(schema, X)
    warn_unseen(schema, X, unseen)
    columns = frame_columns(schema, X)
    players = find_players(joint.distribution, columns, groups, n_coalitions, seed)
    needed = np.isin(np.arange(len(schema.names)), columns)
    function = on_frames(model, schema, columns)
    value, many = (by_function(function, joint.distribution, cells, needed, m, seed)
                   for m in (n_draws, BASE_DRAWS * n_draws))  # fmt: skip
    return _Ask(cells, ~np.isnan(cells), players, value, many, function, seed)


def _of_predictor(predictor: ExpectedPredictor, X: Any, groups: Any, n_coalitions: Any) -> _Ask:
    """What an importance asks of a predictor."""
    seed, column = seed_of(predictor.random_state), predictor._features.column
    model = predictor.joint.distribution
    players = find_players(model, column.tolist(), groups, n_coalitions, seed)
    rows = predictor._rows(X)
    value, many = (conditional(rows, column, predictor._expect_at("prediction", "sample", times), seed)
                   for times in (1, BASE_DRAWS))  # fmt: skip
    is_used = players.of_columns(len(model.schema.names)).any(axis=0)
    cells = np.where(is_used, rows.evidence.value, np.nan)
    return _Ask(cells, known_cells(rows, column) & is_used, players, value, many, predictor._complete, seed)


def _truth(model: Any, loss: str, y: Any, n: int, K: int) -> tuple[str, np.ndarray]:
    """The loss, and y as it takes it."""
    check("loss", loss, ("auto", "squared", "log"))
    y = np.asarray(y)
    if y.shape != (n,):
        raise ValueError(f"y: expected {n} entries, one a row of X, got an array of shape {y.shape}")
    classes = getattr(model, "classes_", None) if isinstance(model, ExpectedPredictor) else None
    if loss == "auto":
        loss = "log" if classes is not None or K > 1 else "squared"
    if loss == "squared":
        if classes is not None or K > 1:
            raise ValueError("loss='squared' is for answers that are one number; use 'log'")
        try:
            numbers = y.astype(np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"y: expected numbers, as the model's answers are, got {y.tolist()[0]!r}") from None
        if not np.isfinite(numbers).all():
            raise ValueError("y: expected finite numbers, got NaN or infinity")
        return loss, numbers
    known = list(range(max(K, 2))) if classes is None else np.asarray(classes).tolist()
    place = {label: k for k, label in enumerate(known)}
    unknown = [label for label in y.tolist() if label not in place]
    if unknown:
        raise ValueError(f"y: {unknown[0]!r} is no class of the model; expected one of {known[:8]}")
    return loss, np.array([place[label] for label in y.tolist()], dtype=np.int64)


def _importance(players: Players, each: np.ndarray, loss: float) -> Importance:
    """Means and their standard errors over rows (n, p); rows of probability 0 are left out."""
    has_answers = ~np.isnan(each).any(axis=1)
    n = int(has_answers.sum())
    if n < 2:
        raise ValueError(f"expected at least 2 rows that the joint thinks possible, got {n}")
    error = each[has_answers].std(axis=0, ddof=1) / np.sqrt(n)
    return Importance(players.names, each[has_answers].mean(axis=0), error, loss, n)
