"""Predictions of a trained ensemble of trees, in expectation over what is missing."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..data.evidence import Evidence, build
from ..data.frames import check_weights, encode, warn_unseen
from ..ensembles.evaluate import apply_link, raw
from ..ensembles.evaluate import encode_features as encode_for
from ..ensembles.read import read_ensemble
from ..inference.expectation.expectation import (
    DrawnAnswers,
    MatchedRows,
    expected,
    expected_answer,
    expected_by_draws,
    knows_splits,
    spread,
    with_table,
)
from ..inference.expectation.match import MatchedEnsemble, filled, match_ensemble, match_features
from ..inference.refit import refit_values, targets
from ..inference.shapley import (
    Background,
    Players,
    budget,
    by_completions,
    conditional,
    known_cells,
    shapley_values,
    values_by_leaves,
)
from ..inference.shapley import interventional as interventional_value
from ..runtime.parameters import check, check_number, seed_of
from ..runtime.threads import threaded
from ..runtime.warnings import UnsupportedEvidenceWarning, warn
from .joint import Joint, need_joint
from .shapley import BASE_DRAWS, ShapleyValues, background_cells, find_players, nothing, to_result

_ENTRIES_A_ROW = 100_000
"""Masses that a row takes if they are not in a table, roughly."""


class ExpectedPredictor:
    """A trained model of another library, asked for its expected prediction where cells are missing.

    Nothing is imputed: the answer is the mean of the model's predictions over all completions of the row, each as
    probable as under the joint distribution given the known cells. Complete rows get the model's own predictions.

    Parameters
    ----------
    model : fitted model of scikit-learn, XGBoost, LightGBM or CatBoost, or `ensembles.table.Ensemble`
        Trees, forests, or boosted trees; or a Pipeline of scikit-learn whose steps change columns one by one (scalers,
        encoders, imputers, ColumnTransformer) and whose last step is one of these: then columns are those that the
        pipeline was fitted on (``docs/how-to/other-libraries.md``).
    joint : Joint
        Of any parts. Of the model's columns, matched by name, and of any others, such as the target: what is known of
        these counts as well. The features of a model without names are the first columns.
    tolerance : float
        How large an error of the sum over trees may be (see `error_bound`), as a share of half the range that the sum
        has: 0 is exact; 1e-4 may leave out what is improbable.
    n_draws : int
        Completions a row, where answers are by completions (see `predict_proba`).
    random_state : None, int, Generator or RandomState
        Of these; with the default, answers are the same each time.
    n_jobs : int or None
        Threads; answers do not depend on it.

    Attributes
    ----------
    classes_ : array
        Classes of a classifier, in the order of `predict_proba`.
    feature_names_in_ : array of str
        Names, in the joint, of the model's features.

    Raises
    ------
    TypeError
        If the model is of no supported type.
    ValueError
        If the model cannot be read (see `ensembles.read.read_ensemble`), or its columns are not
        those of the joint: a column is absent, numbers stand against levels, or no level is known.

    Notes
    -----
    P. Khosravi, A. Vergari, Y. Choi, Y. Liang, G. Van den Broeck, "Handling Missing Data in Decision Trees: A
    Probabilistic Approach" (2020), Proposition 1. How, and what is exact: ``docs/how-to/expected-predictions.md``.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> penguins = jf.datasets.load_penguins().dropna()
    >>> X, y = penguins[["bill_length_mm", "bill_depth_mm", "flipper_length_mm"]], penguins["body_mass_g"]
    >>> model = RandomForestRegressor(10, random_state=0).fit(X, y)
    >>> joint = jf.AdversarialForest(n_estimators=5, random_state=0).fit(penguins).joint_
    >>> predictor = jf.ExpectedPredictor(model, joint)
    >>> bool(abs(predictor.predict(X) - model.predict(X)).max() < 1e-9)
    True
    >>> predictor.predict(X[["bill_length_mm"]].head(3)).shape
    (3,)
    """

    def __init__(
        self,
        model: Any,
        joint: Any,
        tolerance: float = 1e-4,
        *,
        n_draws: int = 128,
        random_state: Any = 0,
        n_jobs: int | None = -1,
    ) -> None:
        need_joint(joint, "joint: expected a Joint")
        check_number("tolerance", tolerance, 0, 1, without="high", text="a number from 0 (exact) to below 1")
        check_number("n_draws", n_draws, 2, whole=True, text="a whole number of at least 2")
        self.joint: Joint = joint
        self.tolerance, self.n_draws, self.n_jobs = float(tolerance), int(n_draws), n_jobs
        self.random_state = random_state
        self._features = match_features(read_ensemble(model), joint.schema)
        ensemble, model = self._features.ensemble, joint.distribution
        self._matched = match_ensemble(ensemble, model.forest_for("expectation")) if model.is_forest else None
        names = tuple(joint.schema.names[j] for j in self._features.column)
        self._ensemble = ensemble._replace(names=names)
        self.feature_names_in_ = np.array(names, dtype=object)
        if self._ensemble.classes is not None:
            self.classes_ = np.asarray(self._ensemble.classes)

    def __repr__(self) -> str:
        return f"ExpectedPredictor({self._ensemble.library}, {self.joint!r})"

    @threaded
    def predict(self, X: Any, method: str = "auto") -> np.ndarray:
        """Expected predictions: the mean of a number, the class that is most probable in expectation.

        Parameters
        ----------
        X : frame of n rows
            Missing cells and absent columns are not known. Columns of the joint that are not the model's count as
            evidence. An array has the joint's columns or the model's features, by position.
        method : {"auto", "exact", "probit", "sample"}
            As of `predict_proba`; for models of numbers it matters if the model predicts the exponential of a sum (such
            as Poisson regression).

        Returns
        -------
        array (n,)
            NaN (None for classes) where the joint gives the known cells probability 0; this is warned of.

        Raises
        ------
        ValueError
            Columns that the joint does not have, or cells that its columns cannot hold.
        """
        answer = self._answer(X, method)
        if self._ensemble.classes is None:
            return answer[:, 0]
        if self._ensemble.link == "logistic":
            answer = np.hstack([1.0 - answer, answer])
        lost = np.isnan(answer[:, 0])
        label = self.classes_[np.where(lost, 0, answer.argmax(axis=1))]
        if not lost.any():
            return np.asarray(label)
        label = label.astype(object)
        label[lost] = None
        return np.asarray(label)

    @threaded
    def predict_proba(self, X: Any, method: str = "auto") -> np.ndarray:
        """Expected probabilities of the classes.

        Of a model that averages probabilities (forests) they are exact by linearity. One that adds up log-odds has to
        be averaged after the link, for the mean of sigmoids is not the sigmoid of the mean:

        - ``"exact"``: the splits cut the missing columns into cells, in which the prediction is constant; all
          combinations are summed. For rows that lack few columns.
        - ``"probit"``: two classes, log-odds taken for normal with their exact mean and variance:
          sigmoid(mean / sqrt(1 + pi / 8 variance)). For many trees that miss many columns; some 0.01 off otherwise.
        - ``"sample"``: the mean over ``n_draws`` completions, stratified, corrected by the exact mean of the log-odds.
        - ``"auto"``: exact for rows with at most 4096 combinations of cells, completions for the others.

        Of a joint that is no single forest, "auto" is exact for rows that lack at most one of the columns that the
        model splits, and takes draws for the others; there is no "probit", and "exact" refuses such rows.

        Parameters
        ----------
        X : frame of n rows
            As of `predict`.
        method : {"auto", "exact", "probit", "sample"}

        Returns
        -------
        float64 array (n, K)
            In the order of ``classes_``; NaN where the joint gives the known cells probability 0.

        Raises
        ------
        ValueError
            As of `predict`; if the model is no classifier; if the method does not fit the model, or "exact" has more
            than a million combinations of a row to sum.

        Examples
        --------
        >>> from sklearn.ensemble import GradientBoostingClassifier
        >>> penguins = jf.datasets.load_penguins().dropna()
        >>> X = penguins[["bill_length_mm", "bill_depth_mm"]]
        >>> model = GradientBoostingClassifier(n_estimators=5, random_state=0).fit(X, penguins["species"] == "Adelie")
        >>> joint = jf.AdversarialForest(n_estimators=5, random_state=0).fit(penguins).joint_
        >>> proba = jf.ExpectedPredictor(model, joint).predict_proba(penguins[["island"]])
        >>> proba.shape
        (333, 2)
        """
        if self._ensemble.classes is None:
            raise ValueError(f"the {self._ensemble.library} predicts numbers, not classes: use predict")
        answer = self._answer(X, method)
        return np.hstack([1.0 - answer, answer]) if self._ensemble.link == "logistic" else answer

    @threaded
    def predict_std(self, X: Any) -> np.ndarray:
        """Standard deviation of the model's sum over the completions of each row: how much the missing cells matter.

        Of models that predict a number, or average probabilities, the sum is the prediction; of others it is the
        prediction before the link (log-odds, logarithms). 0 for complete rows. It is not the model's own error.

        Parameters
        ----------
        X : frame of n rows
            As of `predict`.

        Returns
        -------
        float64 array (n,), or (n, K) if the model has K sums
            Exact for rows with few combinations of cells or few pairs of leaves, else from ``8 * n_draws`` completions.
        """
        rows = self._rows(X)
        if self._matched is None:
            return _flat_answers(np.sqrt(self._drawn(rows).variance))
        variance = spread(self._ready(rows), rows, self.n_draws, seed_of(self.random_state))[1]
        return _flat_answers(np.sqrt(variance))

    @threaded
    def standard_error(self, X: Any, method: str = "auto") -> np.ndarray:
        """Standard errors of `predict` (of numbers) or `predict_proba`, where they are means over draws; 0 elsewhere.

        A joint that is one forest needs draws only of classes by log-odds and of exponentials. Of any other joint all
        rows that lack two or more of the model's split columns are means over ``n_draws`` completions.

        Parameters
        ----------
        X, method
            As of `predict_proba`.

        Returns
        -------
        float64 array (n,), or of a classifier (n, K)
            NaN where the joint gives the known cells probability 0.

        Examples
        --------
        >>> from sklearn.ensemble import RandomForestRegressor
        >>> penguins = jf.datasets.load_penguins().dropna()
        >>> X, y = penguins[["bill_length_mm", "bill_depth_mm", "flipper_length_mm"]], penguins["body_mass_g"]
        >>> model = RandomForestRegressor(10, random_state=0).fit(X, y)
        >>> joint = jf.HiddenTreeForest(n_states=8, random_state=0).fit(penguins).joint_
        >>> predictor = jf.ExpectedPredictor(model, joint, n_draws=256)
        >>> bool((predictor.standard_error(X[["bill_length_mm"]].head(3)) < 100).all())
        True
        >>> predictor.standard_error(X.head(2))
        array([0., 0.])
        """
        error = self._expect(X, method)[1]
        if self._ensemble.classes is None:
            return error[:, 0]
        return np.hstack([error, error]) if self._ensemble.link == "logistic" else error

    @threaded
    def decision_function(self, X: Any) -> np.ndarray:
        """Expected sums over trees before the link: log-odds, logarithms; predictions where there is no link.

        Parameters
        ----------
        X : frame of n rows
            As of `predict`.

        Returns
        -------
        float64 array (n,), or (n, K) if the model has K sums
        """
        rows = self._rows(X)
        if self._matched is None:
            return _flat_answers(self._drawn(rows).mean)
        return _flat_answers(expected(self._ready(rows), rows, self.tolerance)[0])

    @threaded
    def error_bound(self, X: Any) -> np.ndarray:
        """How far `decision_function` can be off, for the tolerance: certified, usually far from reached.

        Parameters
        ----------
        X : frame of n rows
            As of `predict`.

        Returns
        -------
        float64 array (n,), or (n, K) if the model has K sums
            Rounding is left aside. 0 for complete rows, and everywhere if the tolerance is 0.

        Raises
        ------
        ValueError
            If the joint is not one forest: its answers are means over draws, see `standard_error`.
        """
        self.joint.distribution.forest_for("a certified bound of the error (see standard_error)")
        rows = self._rows(X)
        return _flat_answers(expected(self._ready(rows), rows, self.tolerance)[1])

    @threaded
    def refit(
        self, X: Any, y: Any, weight_decay: float | None = None, method: str = "auto", sample_weight: Any = None
    ) -> ExpectedPredictor:
        """The same trees with new values in their leaves: those of least expected loss on rows with missing cells.

        The loss of a row is the mean over its completions. If the joint has the target's column, give it in X: then
        completions are those that are probable given the target, too, which makes for much better values.

        Parameters
        ----------
        X : frame of n rows
            As of `predict`; cells may be missing.
        y : array_like (n,)
            Numbers, or labels of classes; none missing.
        weight_decay : float, optional
            Penalty on the squares of the leaf values, next to the mean loss over rows: a leaf's value is drawn to 0 (to
            the model's constant) as by n * weight_decay rows. Default 0, or 1 / n of models that add up log-odds.
        method : {"auto", "bagging", "forest", "boosting"}
            "bagging": each tree alone on y, then the mean. "forest": all trees at once. "boosting": one tree after the
            other, on what those before it leave. "auto": "bagging" for trees, forests and extra trees of scikit-learn
            and XGBRF*, else "boosting".
        sample_weight : array_like (n,), optional
            Weights of rows, not negative.

        Raises
        ------
        ValueError
            As of `predict`; missing or unknown entries of y; a method that does not fit the model; a model that
            predicts the exponential of a sum; rows of probability 0; a joint that is not one forest.

        Notes
        -----
        Propositions 2 (bagging), 3 (forest) and 4 (boosting) of Khosravi and others (2020): squared loss, exactly.
        Log-odds have Newton steps on log-loss, see ``docs/how-to/refit-leaf-values.md``.

        Examples
        --------
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> penguins = jf.datasets.load_penguins().dropna()
        >>> columns = ["bill_length_mm", "bill_depth_mm"]
        >>> model = DecisionTreeRegressor(max_leaf_nodes=4).fit(penguins[columns], penguins["body_mass_g"])
        >>> joint = jf.AdversarialForest(n_estimators=5, random_state=0).fit(penguins).joint_
        >>> predictor = jf.ExpectedPredictor(model, joint)
        >>> again = predictor.refit(penguins[columns], penguins["body_mass_g"])
        >>> bool(abs(again.predict(penguins[columns]) - model.predict(penguins[columns])).max() < 1e-6)
        True
        """
        self.joint.distribution.forest_for("refit")
        rows = self._rows(X)
        ensemble, n = self._ensemble, len(rows.X)
        value = refit_values(
            self._ready(rows),
            rows,
            targets(ensemble, y, n),
            method,
            weight_decay,
            check_weights(sample_weight, n),
            self.n_draws,
            seed_of(self.random_state),
        )
        return ExpectedPredictor(
            self._features.ensemble._replace(value=value),
            self.joint,
            self.tolerance,
            n_draws=self.n_draws,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
        )

    @threaded
    def shap(
        self,
        X: Any,
        *,
        groups: Any = None,
        output: str = "raw",
        n_coalitions: int | None = None,
        method: str = "auto",
        interventional: bool = False,
        background: Any = 100,
    ) -> ShapleyValues:
        """Shapley values of each row's prediction: what each column, or group of columns, moves it by.

        The value of a coalition S of columns is the expected prediction given what they are, E[f(X) | X_S = x_S], under
        the joint. A column that the model does not use has weight if it is informative about one that it does; with
        ``interventional=True``, where x_S is put into rows of a background, it has none.

        Parameters
        ----------
        X : frame of n rows
            As of `predict`. Players are the model's features and what ``groups`` names; other columns are not read.
            Missing cells are in no coalition, and a player without known cells has the value 0.
        groups : None, "auto", list of lists of column names, or dict of name to column names
            Players that are several columns, which may be any of the joint's. "auto": clusters of dependent columns, at
            most 12 players, so that all coalitions are asked.
        output : {"raw", "prediction"}
            "raw": the model's sum before the link, as `decision_function`: log-odds of boosted classifiers.
            "prediction": numbers, probabilities of classes, as `predict_proba` (of two classes by log-odds that of the
            second).
        n_coalitions : int, optional
            Most coalitions of a row. Default: all up to 12 players, else 512. All are exact; fewer are drawn, in pairs,
            by the weights of KernelSHAP. At most 65,536.
        method : {"auto", "exact", "sample"}
            How v(S) is found. "exact": by expectations. "sample": the mean over ``n_draws`` completions, much faster
            for large joints and small S. "auto": "sample" where coalitions are drawn, too. Joints that are not one
            forest have draws in any case.
        interventional : bool
            Marginal values: v(S) is the mean of f(x_S, rest) over rows of the background.
        background : int or frame
            Of interventional values: how many rows to draw from the joint, or these rows (missing cells are drawn).

        Returns
        -------
        ShapleyValues
            ``values`` (n, p), or (n, p, K) of K outputs; with ``base_values`` they sum to the prediction given the
            row's known cells, exactly. ``standard_error`` is 0 where coalitions are all asked and expectations exact.

        Raises
        ------
        ValueError
            As of `predict`; groups that overlap or name unknown columns; too few coalitions or background rows.

        Notes
        -----
        S. Lundberg, S.-I. Lee, "A Unified Approach to Interpreting Model Predictions" (2017). How, and which definition
        says what: ``docs/how-to/shapley-values.md``.

        Examples
        --------
        >>> from sklearn.ensemble import RandomForestRegressor
        >>> penguins = jf.datasets.load_penguins().dropna()
        >>> X, y = penguins[["bill_length_mm", "bill_depth_mm", "flipper_length_mm"]], penguins["body_mass_g"]
        >>> model = RandomForestRegressor(10, random_state=0).fit(X, y)
        >>> joint = jf.AdversarialForest(n_estimators=5, random_state=0).fit(penguins).joint_
        >>> found = jf.ExpectedPredictor(model, joint).shap(X.head(4))
        >>> bool(abs(found.values.sum(axis=1) + found.base_values - model.predict(X.head(4))).max() < 1e-6)
        True
        """
        check("output", output, ("raw", "prediction"))
        check("method", method, ("auto", "exact", "sample"))
        features, schema, seed = self._features, self.joint.schema, seed_of(self.random_state)
        players = find_players(self.joint.distribution, features.column.tolist(), groups, n_coalitions, seed)
        if method == "auto":
            method = "exact" if 2 ** len(players.names) <= budget(len(players.names), n_coalitions) else "sample"
        rows = self._rows(X)
        known = known_cells(rows, features.column)
        if interventional and (output == "raw" or self._ensemble.link == "identity"):
            return self._marginal(rows, known, players, background, seed)
        if interventional:
            there = self._background(background, seed)
            value = interventional_value(rows.X, rows.other, features.column, there, self._after_link)
            base = nothing(value, len(schema.names))
        else:
            value = conditional(rows, features.column, self._expect_at(output, method, 1), seed)
            many = conditional(_unknown_row(rows), features.column, self._expect_at(output, method, BASE_DRAWS), seed)
            base = nothing(many, len(schema.names))
        solved = shapley_values(value, base, players.of_columns(len(schema.names)), known, n_coalitions, seed)
        outputs = self._output_names(len(solved.base))
        return to_result(solved, players, schema, rows.evidence.value, outputs, len(solved.base) > 1)

    # -- helpers

    def _expect_at(self, output: str, method: str, times: int) -> Any:
        """Expected answers of rows, and their standard errors, with so many times the usual draws."""
        m = times * self.n_draws

        def expect(rows: MatchedRows, seed: int) -> tuple[np.ndarray, np.ndarray]:
            if self._matched is None:
                drawn = expected_by_draws(self._features, self.joint.distribution, rows, "auto", m, seed)
                return (drawn.mean, drawn.mean_error) if output == "raw" else (drawn.answer, drawn.answer_error)
            if method == "sample":
                link = "identity" if output == "raw" else self._ensemble.link
                return by_completions(self._matched, rows, m, seed, link)
            ready = self._ready(rows)
            if output == "prediction":
                return expected_answer(ready, rows, "auto", m, seed, self.tolerance)
            mean = expected(ready, rows, self.tolerance)[0]
            return mean, np.zeros_like(mean)

        return expect

    def _complete(self, cells: np.ndarray) -> np.ndarray:
        """The model's answers (n, K) to complete rows of the joint (n, d)."""
        shape = len(cells), len(self._features.column)
        X, other = filled(self._features, np.full(shape, np.nan), np.zeros(shape, bool), cells)
        return self._after_link(X, other)

    def _marginal(
        self, rows: MatchedRows, known: np.ndarray, players: Players, background: Any, seed: int
    ) -> ShapleyValues:
        """Interventional values of the sums."""
        column, owned = self._features.column, players.of_columns(known.shape[1])
        player = np.where(owned.any(axis=0), owned.argmax(axis=0), -1)[column]
        there = self._background(background, seed)
        p = len(players.names)
        solved = values_by_leaves(self._ensemble, rows.X, rows.other, known[:, column], player, p, there)
        outputs, K = self._output_names(len(solved.base)), len(solved.base)
        return to_result(solved, players, self.joint.schema, rows.evidence.value, outputs, K > 1)

    def _background(self, background: Any, seed: int) -> Background:
        """Rows of a background as the model sees them, complete."""
        cells = background_cells(self.joint.distribution, background, seed)
        shape = len(cells), len(self._features.column)
        X, other = np.full(shape, np.nan), np.zeros(shape, bool)
        if not isinstance(background, int | np.integer):
            X, other = self._rows(background)[1:]
        return filled(self._features, X, other, cells)

    def _after_link(self, X: np.ndarray, other: np.ndarray) -> np.ndarray:
        """The model's answers (n, K) to complete rows as it sees them."""
        return apply_link(self._ensemble.link, raw(self._ensemble, X, other))

    def _output_names(self, K: int) -> tuple[str, ...]:
        if self._ensemble.classes is None:
            return tuple(map(str, range(K))) if K > 1 else ()
        names = tuple(map(str, self.classes_))
        return names if len(names) == K else names[1:]

    def _answer(self, X: Any, method: str) -> np.ndarray:
        answer = self._expect(X, method)[0]
        lost = int(np.isnan(answer[:, 0]).sum())
        if lost:
            warn(f"{lost} of {len(answer)} rows have probability 0: no prediction", UnsupportedEvidenceWarning)
        return answer

    def _expect(self, X: Any, method: str) -> tuple[np.ndarray, np.ndarray]:
        """Expected answers and their standard errors, each (n, K)."""
        rows = self._rows(X)
        if self._matched is None:
            drawn = self._drawn(rows, method)
            return drawn.answer, drawn.answer_error
        seed = seed_of(self.random_state)
        return expected_answer(self._ready(rows), rows, method, self.n_draws, seed, self.tolerance)

    def _drawn(self, rows: MatchedRows, method: str = "auto") -> DrawnAnswers:
        """Drawn under a joint that is not one forest."""
        seed = seed_of(self.random_state)
        return expected_by_draws(self._features, self.joint.distribution, rows, method, self.n_draws, seed)

    def _rows(self, X: Any) -> MatchedRows:
        """A frame as the joint and the model see it."""
        schema = self.joint.schema
        if isinstance(X, np.ndarray) and X.ndim == 2:
            X = self._of_all_columns(X)
            features = X[:, schema.places[self._features.column]]
        else:
            features = X
        values, unseen = encode(schema, X)
        warn_unseen(schema, X, unseen)
        return MatchedRows(build(schema, values, unseen), *encode_for(self._ensemble, features))

    def _of_all_columns(self, X: np.ndarray) -> np.ndarray:
        """An array of the model's features, or of all columns, as one of all columns."""
        schema, features = self.joint.schema, self._features
        d = len(schema.all_columns.names)
        if X.shape[1] == d:
            return X
        if X.shape[1] != features.n_given:
            raise ValueError(
                f"the array has {X.shape[1]} columns; expected the joint's {d}, or the model's {features.n_given} "
                "features, with NaN for what is not known"
            )
        cells = np.full((len(X), d), np.nan, dtype=object if X.dtype.kind not in "fiub" else np.float64)
        cells[:, schema.places[features.column]] = X[:, features.given]
        return cells

    def _ready(self, rows: MatchedRows) -> MatchedEnsemble:
        """The ensemble, with a table of masses once enough rows ask for it."""
        matched = self._matched
        assert matched is not None
        if not matched.masses.table.size:
            n = int((~knows_splits(self._features, rows)).sum())
            if n * _ENTRIES_A_ROW > len(matched.model.leaves.tree) * len(matched.regions.column):
                self._matched = matched = with_table(matched)
        return matched


def _flat_answers(x: np.ndarray) -> np.ndarray:
    return x[:, 0] if x.shape[1] == 1 else x


def _unknown_row(rows: MatchedRows) -> MatchedRows:
    """One row of which nothing is known."""
    d, f = rows.evidence.value.shape[1], rows.X.shape[1]
    return MatchedRows(Evidence.nothing(d), np.full((1, f), np.nan), np.zeros((1, f), bool))
