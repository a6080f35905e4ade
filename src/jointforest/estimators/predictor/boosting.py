"""Boosted trees as members: scikit-learn's, on the numbers and codes of the joint's columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from ...data.evidence import Evidence
from ...data.frames import decode
from ...data.schema import Columns, Schema, kernel_columns
from ...ensembles.evaluate import apply_link, raw
from ...ensembles.read import read_ensemble
from ...ensembles.scikit_learn import read_histogram_boosting
from ...inference.expectation.expectation import MatchedRows, expected_by_completions, needs_draws
from ...inference.expectation.match import Features, filled, match_features
from ...models.base import Distribution
from .constants import FIXED, Shape


class BoostingTable(NamedTuple):
    """Features to boost on: each column of the joint but the target, which is the last.

    columns : Columns. Of the joint, the target among them.
    n_levels : int64 array (d,). Levels of each column without the target; 0 of numbers.
    is_ordered : bool array (d,). Whether its levels have an order.
    """

    columns: Columns
    n_levels: np.ndarray
    is_ordered: np.ndarray

    @property
    def is_level(self) -> np.ndarray:
        """Columns of levels, (d,)."""
        return np.asarray(self.n_levels > 0)

    @property
    def is_set(self) -> np.ndarray:
        """Columns whose levels have no order, and are few enough for scikit-learn to form sets of them, (d,)."""
        return (self.n_levels > 0) & ~self.is_ordered & (self.n_levels <= FIXED.most_levels)


def boosting_table(schema: Schema) -> BoostingTable:
    """What boosted trees need to know of a schema whose last column is the target."""
    features = schema.columns[:-1]
    n_levels = np.array([len(column.levels) for column in features])
    return BoostingTable(kernel_columns(schema), n_levels, np.array([column.is_ordered for column in features]))


class Boosted(NamedTuple):
    """A trained ensemble, its features matched with the joint's columns.

    order : int64 array (K,). Where the ensemble has the probability of each class of the target; empty of numbers.
    """

    features: Features
    order: np.ndarray

    def native(self, evidence: Evidence) -> np.ndarray:
        """The ensemble's own answers (n, A): missing cells go where the splits send them."""
        rows = self._rows(evidence)
        ensemble = self.features.ensemble
        return self._in_order(apply_link(ensemble.link, raw(ensemble, rows.X, rows.other)))

    def needs_draws(self, evidence: Evidence) -> np.ndarray:
        """Rows whose expected answers are means over completions, bool (n,): they lack several features."""
        return needs_draws(self.features, self._rows(evidence))

    def expected(self, evidence: Evidence, joint: Distribution, completed: np.ndarray) -> np.ndarray:
        """Expected answers (n, A) over draws ``completed`` (n, m, d); the ensemble's own if there is no completion."""
        found = expected_by_completions(self.features, joint, self._rows(evidence), completed)
        answer = self._in_order(found.answer)
        lost = np.flatnonzero(np.isnan(answer[:, 0]))
        if len(lost):
            answer[lost] = self.native(evidence.take(lost))
        return answer

    def _rows(self, evidence: Evidence) -> MatchedRows:
        """The rows as the ensemble sees them."""
        n, f = len(evidence.value), len(self.features.column)
        return MatchedRows(
            evidence, *filled(self.features, np.full((n, f), np.nan), np.zeros((n, f), bool), evidence.value)
        )

    def _in_order(self, answer: np.ndarray) -> np.ndarray:
        """Probabilities of the target's classes from those of the ensemble, or from that of the second class."""
        if not len(self.order):
            return answer
        both = np.hstack([1.0 - answer, answer]) if self.features.ensemble.link == "logistic" else answer
        return both[:, self.order]


class Labelled(NamedTuple):
    """Features (n, d) as numbers and codes, NaN where missing, and targets (n,): codes of classes, or numbers."""

    X: np.ndarray
    y: np.ndarray

    def take(self, rows: np.ndarray) -> Labelled:
        """The rows of these numbers."""
        return Labelled(self.X[rows], self.y[rows])


LabelledPair = tuple[Labelled, Labelled]
"""Rows to learn from, and validation rows."""


class Trial(NamedTuple):
    """Boosted trees, and the loss of validation rows after each iteration.

    model : HistGradientBoosting*
    ranks : dict of int to float64 array. Numbers of levels, of columns with more than scikit-learn takes.
    loss : float64 array (iterations,). Sum over the validation rows, as they are weighted.
    plain : float64 array (iterations,). The sum without weights.
    """

    model: Any
    ranks: dict[int, np.ndarray]
    loss: np.ndarray
    plain: np.ndarray


def weights_towards_complete(X: np.ndarray) -> np.ndarray:
    """Weights (n,) of rows (n, d), possibly negative, by which a mean loss is that of rows with fewer missing cells."""
    # The loss is a straight line in the share of missing cells, read at a share below the mean one, and no farther away
    # than rows can show (`Constants.toward_complete`).
    off = np.isnan(X).mean(axis=1)
    mean, spread = float(off.mean()), float(off.std())
    if spread == 0.0:
        return np.ones(len(X))
    back = min(FIXED.toward_complete * mean, FIXED.most_deviations * spread)
    return np.asarray(1.0 - back * (off - mean) / spread**2)


def try_shape(
    table: BoostingTable, shape: Shape, pairs: list[LabelledPair], n_classes: int, seed: int, for_complete: bool = False
) -> list[Trial]:
    """Trees of each fold, all with as many iterations as the first fold has tried."""
    trials: list[Trial] = []
    for rows, held in pairs:
        weight = weights_towards_complete(held.X) if for_complete else np.ones(len(held.y))
        n_iter = len(trials[0].loss) if trials else FIXED.iterations_at_once
        model, ranks = grow_boosting(table, shape, rows, n_classes, n_iter, seed)
        X, X_held = _tree_cells(rows.X, ranks), _tree_cells(held.X, ranks)
        loss, plain = _sums_of_losses(model, X_held, held.y, weight, n_classes)
        while not trials and _needs_more_iterations(
            loss, float(np.abs(weight).sum()) if n_classes else float(loss.min())
        ):
            model.set_params(warm_start=True, max_iter=len(loss) + FIXED.iterations_at_once).fit(X, rows.y)
            loss, plain = _sums_of_losses(model, X_held, held.y, weight, n_classes)
        trials.append(Trial(model, ranks, loss, plain))
    return trials


def _needs_more_iterations(loss: np.ndarray, scale: float) -> bool:
    """Whether more iterations are tried: the best one is among the last, and these gained ``least_gain`` of ``scale``.
    Of classes the scale is the sum of the weights, so that gains are nats per row; of numbers it is the least loss."""
    before = loss[: len(loss) - FIXED.iterations_at_once]
    gains = not len(before) or before.min() - loss.min() >= FIXED.least_gain * scale
    return bool(gains and loss.argmin() + FIXED.patience > len(loss) and len(loss) < FIXED.most_iterations)


def grow_boosting(
    table: BoostingTable, shape: Shape, rows: Labelled, n_classes: int, n_iter: int, seed: int
) -> tuple[Any, dict[int, np.ndarray]]:
    """Boosted trees and their ranks of levels, see `Trial`; ``n_classes`` is 0 of numbers."""
    levels = enumerate(table.n_levels.tolist())
    ranks = {j: _order_of_levels(rows.X[:, j], rows.y, n, n_classes) for j, n in levels if n > FIXED.most_levels}
    kind = HistGradientBoostingClassifier if n_classes else HistGradientBoostingRegressor
    model = kind(
        learning_rate=FIXED.learning_rate,
        max_iter=n_iter,
        max_leaf_nodes=shape.leaf_nodes,
        min_samples_leaf=shape.leaf_rows,
        l2_regularization=shape.l2,
        max_features=shape.features,
        categorical_features=table.is_set & (not shape.in_order),
        early_stopping=False,
        random_state=seed,
    )
    return model.fit(_tree_cells(rows.X, ranks), rows.y), ranks


def boosted(table: BoostingTable, model: Any, ranks: dict[int, np.ndarray], n_iter: int | None = None) -> Boosted:
    """The first iterations of fitted boosted trees, as a member asks them."""
    ensemble = read_histogram_boosting(model, n_iter)
    columns, d = table.columns, len(table.n_levels)
    level_value = np.full(int(columns.level_start[-1]), np.nan)
    for j in np.flatnonzero(table.n_levels).tolist():
        first = columns.level_start[columns.slot[j]]
        codes = np.arange(table.n_levels[j], dtype=np.float64)
        known = ensemble.categories[j]
        if known is not None:  # codes of the levels that were there at learning, in their order
            place = {code: k for k, code in enumerate(known)}
            codes = np.array([place.get(code, np.nan) for code in codes.tolist()])
        level_value[first : first + len(codes)] = ranks.get(j, codes)
    every, classes = np.arange(d), np.arange(len(ensemble.classes or ()))
    return Boosted(Features(ensemble, every.astype(np.int32), every, d, level_value, columns), classes)


BoostingSettings = tuple[Shape, int] | None
"""Shape and number of iterations, where they are chosen."""


class _Tried(NamedTuple):
    """Trees of each fold, the settings with the least validation loss, and that loss."""

    trials: list[Trial]
    settings: tuple[Shape, int]
    loss: float


Fitted = tuple[list[Boosted], BoostingSettings]
"""Trees of each fold, and their settings."""


class Boosting(Protocol):
    """What learns boosted trees."""

    @property
    def learns(self) -> bool:
        """Whether trees are learned, and are not those of a fitted model alone."""

    def cross_fit(self, pairs: list[LabelledPair], like: BoostingSettings = None) -> Fitted:
        """Trees of each fold, and the settings of least validation loss, or those of ``like``."""
        # No trees if the estimator refuses rows with missing cells.

    def cross_fit_twice(self, pairs: list[LabelledPair]) -> tuple[Fitted, Fitted]:
        """As `cross_fit`: trees that are best for completed rows, and trees that are best for rows as they are."""

    def learn(self, rows: Labelled, settings: BoostingSettings) -> Boosted:
        """Trees of all rows."""


class HistBoosting(NamedTuple):
    """scikit-learn's HistGradientBoosting, whose shape and number of iterations are chosen."""

    table: BoostingTable
    n_classes: int
    seed: int

    @property
    def learns(self) -> bool:
        return True

    def cross_fit(self, pairs: list[LabelledPair], like: BoostingSettings = None) -> Fitted:
        """As declared; the first folds alone choose the settings. Of many rows some choose the shape."""
        return self._cross_fit(pairs, like, False)[0]

    def cross_fit_twice(self, pairs: list[LabelledPair]) -> tuple[Fitted, Fitted]:
        """As declared; both have one shape, and the iterations of one are the first ones of the other."""
        return self._cross_fit(pairs, None, True)

    def _cross_fit(
        self, pairs: list[LabelledPair], like: BoostingSettings, for_complete: bool
    ) -> tuple[Fitted, Fitted]:
        """Trees that are chosen by the loss of more complete rows, if that is wanted, and by the plain loss."""
        if not pairs:
            return ([], None), ([], None)
        first, rest = pairs[: FIXED.shape_folds], pairs[FIXED.shape_folds :]
        n = len(pairs[0][0].y)
        if like is None and n > FIXED.shape_rows:
            some = np.random.default_rng(self.seed).permutation(n)[: FIXED.shape_rows]
            like = self._choose([(rows.take(some), held) for rows, held in first], for_complete).settings
        chosen = self._choose(first, for_complete) if like is None else self._best([like[0]], first, for_complete)
        shape, n_iter = chosen.settings
        n_plain = 1 + int(np.sum([one.plain for one in chosen.trials], axis=0).argmin())
        grown = [(one.model, one.ranks) for one in chosen.trials]
        most = max(n_iter, n_plain)
        grown += [grow_boosting(self.table, shape, rows, self.n_classes, most, self.seed) for rows, _ in rest]
        found = [
            ([boosted(self.table, *one, k) for one in grown], (shape, k)) for k in dict.fromkeys((n_iter, n_plain))
        ]
        return found[0], found[-1]

    def _choose(self, pairs: list[LabelledPair], for_complete: bool) -> _Tried:
        """The best shape, and the same with levels in order if that is better; of few rows there is one shape alone."""
        n = len(pairs[0][0].y)
        shapes = [shape for shape in FIXED.shapes if shape.fewest <= n <= shape.most]
        best = self._best(shapes, pairs, for_complete)
        if len(shapes) > 1 and (self.table.n_levels[self.table.is_set] > 2).any():
            ordered = self._best([replace(best.settings[0], in_order=True)], pairs, for_complete)
            best = min(best, ordered, key=lambda one: one.loss)
        return best

    def _best(self, shapes: list[Shape], pairs: list[LabelledPair], for_complete: bool) -> _Tried:
        """The shape, and its number of iterations, with the least loss."""
        found = []
        for shape in shapes:
            trials = try_shape(self.table, shape, pairs, self.n_classes, self.seed, for_complete)
            loss = np.sum([trial.loss for trial in trials], axis=0)
            found.append(_Tried(trials, (shape, 1 + int(loss.argmin())), float(loss.min())))
        return min(found, key=lambda one: one.loss)

    def learn(self, rows: Labelled, settings: BoostingSettings) -> Boosted:
        shape, n_iter = settings or (FIXED.shapes[0], FIXED.iterations_at_once)
        return boosted(self.table, *grow_boosting(self.table, shape, rows, self.n_classes, n_iter, self.seed))


class GivenBoosting(NamedTuple):
    """An estimator of scikit-learn, XGBoost, LightGBM or CatBoost, or a pipeline that ends in one, as it was given.

    estimator : estimator or None. To be cloned; None: only what is fitted can be asked.
    schema : Schema. Of the features and the target.
    fitted : Boosted or None. Trees that are there already.
    """

    estimator: Any
    schema: Schema
    fitted: Boosted | None

    @property
    def learns(self) -> bool:
        return self.estimator is not None

    def cross_fit(self, pairs: list[LabelledPair], like: BoostingSettings = None) -> Fitted:
        try:
            return [self._grow(rows) for rows, _ in pairs], None
        except ValueError:  # of missing cells, it seems; if not, it is raised again by rows without
            if not any(np.isnan(rows.X).any() for rows, _ in pairs):
                raise
            return [], None

    def cross_fit_twice(self, pairs: list[LabelledPair]) -> tuple[Fitted, Fitted]:
        """As declared; an estimator has settings of its own, so the trees are the same."""
        both = self.cross_fit(pairs)
        return both, both

    def learn(self, rows: Labelled, settings: BoostingSettings) -> Boosted:
        return self._grow(rows)

    def _grow(self, rows: Labelled) -> Boosted:
        """A clone, fitted to frames of the user's library, with codes for classes, as XGBoost takes no text."""
        if self.estimator is None:
            assert self.fitted is not None
            return self.fitted
        features = self.schema.without(len(self.schema.columns) - 1)
        is_class = self.schema.columns[-1].is_categorical
        frame, y = decode(features, rows.X), rows.y.astype(np.int64) if is_class else rows.y
        try:
            model = _copied(self.estimator).fit(frame, y)
        except Exception as error:  # each library has errors of its own
            raise ValueError(
                f"boosting: {type(self.estimator).__name__} does not learn from this table: {error}{_advice(features)}"
            ) from error
        matched = match_features(read_ensemble(model), self.schema)
        return Boosted(matched, np.arange(len(matched.ensemble.classes or ())))


def check_estimator(estimator: Any, is_class: bool, predictor: str) -> None:
    """Refuse what is no estimator, or one for targets of another kind, as `boosting` of a predictor."""
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        what = f"the class {estimator.__name__}" if isinstance(estimator, type) else repr(estimator)
        raise TypeError(
            f"boosting: expected an estimator that is not fitted, such as XGBClassifier(), got {what}; "
            f"a fitted model goes into {predictor}.from_model"
        )
    if is_regressor(estimator) if is_class else is_classifier(estimator):
        kinds = ("classifier", "regressor") if is_class else ("regressor", "classifier")
        raise TypeError(f"boosting: {predictor} needs a {kinds[0]}, got {type(estimator).__name__}, a {kinds[1]}")


def _copied(estimator: Any) -> Any:
    """An estimator with the same parameters that is not fitted."""
    try:
        return clone(estimator)
    except RuntimeError:  # CatBoost's, with cat_features, whose constructor copies them
        return type(estimator)(**estimator.get_params())


def _advice(features: Schema) -> str:
    """What to do with columns that are no numbers."""
    text = [column.name for column in features.columns if column.levels and column.kind != "boolean"]
    if not text:
        return ""
    return (
        f" (columns of levels, such as {text[0]!r}, are given as they came: make them pandas categories, name them in "
        "the estimator's parameters, or give a pipeline that encodes them)"
    )


def adopted(model: Any, schema: Schema) -> Boosted:
    """A fitted model of another library, its features matched with the columns of a joint by name."""
    matched = match_features(read_ensemble(model), schema)
    target, classes = schema.columns[-1], matched.ensemble.classes
    if target.is_categorical != (classes is not None):
        kind = "numbers" if classes is None else "classes"
        raise ValueError(f"the {matched.ensemble.library} predicts {kind}, column {target.name!r} is {target.kind}")
    if classes is None:
        return Boosted(matched, np.empty(0, dtype=np.int64))
    place = {label: k for k, label in enumerate(classes)}
    absent = [level for level in target.levels if level not in place]
    if absent or len(place) != len(target.levels):
        raise ValueError(
            f"the {matched.ensemble.library} has the classes {_heads(classes)}, y has {_heads(target.levels)}; "
            "give y with the labels that the model was trained on, every class among them"
        )
    return Boosted(matched, np.array([place[level] for level in target.levels]))


def _heads(labels: tuple[Any, ...]) -> str:
    return ", ".join(map(repr, labels[:5])) + (", ..." if len(labels) > 5 else "")


def _sums_of_losses(
    model: Any, X: np.ndarray, y: np.ndarray, weight: np.ndarray, n_classes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Weighted and plain sums of log-losses, or of squared errors, after each iteration."""
    if n_classes:
        own = np.arange(len(y)), y.astype(np.int64)
        each = (-np.log(np.maximum(p[own], FIXED.floor)) for p in model.staged_predict_proba(X))
    else:
        each = ((answer - y) ** 2 for answer in model.staged_predict(X))
    both = np.array([(weight @ loss, loss.sum()) for loss in each])
    return both[:, 0], both[:, 1]


def _order_of_levels(codes: np.ndarray, y: np.ndarray, n_levels: int, n_classes: int) -> np.ndarray:
    """The mean target of each level (of classes: how often it is the most frequent one), drawn to the overall mean."""
    known = ~np.isnan(codes)
    target = (y == np.bincount(y.astype(np.int64)).argmax()).astype(np.float64) if n_classes else y
    level = codes[known].astype(np.int64)
    total, count = np.bincount(level, target[known], n_levels), np.bincount(level, minlength=n_levels)
    return np.asarray((total + target.mean()) / (count + 1.0))


def _tree_cells(X: np.ndarray, ranks: dict[int, np.ndarray]) -> np.ndarray:
    """Cells as the trees take them."""
    if not ranks:
        return X
    X = X.copy()
    for j, rank in ranks.items():
        known = ~np.isnan(X[:, j])
        X[known, j] = rank[X[known, j].astype(np.int64)]
    return X
