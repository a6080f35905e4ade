"""What the classifier and the regressor share: parameters, learning, explanations."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from ...api.fit_report import FitReport
from ...api.joint import Joint
from ...api.shapley import ShapleyValues, find_players, to_result
from ...data.evidence import Evidence
from ...data.frames import refuse_ranges
from ...data.schema import Frame
from ...inference.shapley import Asked, distinct_words, shapley_values
from ...learners.base import Learner
from ...learners.generative.targets import Training, as_table, read_others, read_training
from ...learners.selection.budget import budget_of
from ...runtime.parameters import VERBOSE, Number, parameter, seed_of
from ...runtime.progress import be_quiet, write_line
from ...runtime.threads import chunks, threaded
from .boosting import Boosting, GivenBoosting, HistBoosting, adopted, boosting_table, check_estimator
from .constants import FIXED
from .files import Saved, save_predictor
from .learn import LearnedMembers, PredictorProblem, learn_predictor, missing_share
from .members import ADDITIVE, EXPECTED, Member, ask_members
from .pooling import Pool, Stack, stack
from .report import MemberReport, PredictorReport


@dataclass(eq=False, repr=False)
class JointPredictor(Learner):
    """What `JointClassifier` and `JointRegressor` share."""

    _target_kind: ClassVar[str]
    _pool: Pool = field(init=False)
    _report: PredictorReport | None = field(init=False)
    boosting: Any = None
    _: KW_ONLY
    budget: str | float = parameter(
        "fast", "fast", "default", "best", Number(0, without="low", text="a number of seconds above 0")
    )
    kinds: dict[str, str] | None = None
    extra: str = parameter("refuse", "refuse", "ignore")
    n_jobs: int | None = -1
    random_state: Any = None
    verbose: bool = parameter(False, *VERBOSE)

    # -- learning

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from a table; cells of the features may be missing.

        Parameters
        ----------
        X : frame, array or lists of n rows
            Features. Arrays, and frames whose columns have no text for names, are taken by position, with the names
            x0, x1 and so on. A column without a known cell is allowed, and has no effect.
        y : series or array (n,)
            Target; none may be missing. Its name, or "y", is that of the last column of ``joint_``.

        Raises
        ------
        ValueError, TypeError
            If a parameter is out of its range, or the table cannot be used (each message names the column).
        """
        self._check()
        if self.boosting is not None:
            check_estimator(self.boosting, self._target_kind == "categorical", type(self).__name__)
        self._learn(self._read(as_table(X), y))
        return self

    @classmethod
    def from_model(cls, model: Any, X: Any, y: Any, **params: Any) -> Self:
        """A predictor that answers as a fitted model where nothing is missing, and takes any missing cells.

        The model itself predicts rows without missing cells. Other rows are predicted by its expected predictions, a
        generative forest, the joint, an additive model, and a copy of the model that is trained on rows with cells
        hidden, together. Their weights come from validation rows, which clones of the model do not see.

        Parameters
        ----------
        model : fitted model of scikit-learn, XGBoost, LightGBM or CatBoost, or a pipeline that ends in one
            As `ExpectedPredictor` takes it. A model that scikit-learn cannot clone, such as a ``Booster``, is asked
            about validation rows itself: then X and y must be rows that it was not trained on. There is no trained
            copy of it, and its own rule for missing cells takes part instead.
        X, y
            As of `fit`. Usually the rows that the model was trained on, with its labels of classes.
        **params
            Parameters of this class; ``boosting`` is the model.

        Returns
        -------
        fitted estimator

        Raises
        ------
        TypeError, ValueError
            As of `fit`; if the model cannot be read, its features are not columns of X, or its classes are not those
            of y.
        """
        self = cls(model if hasattr(model, "get_params") else None, **params)
        self._check()
        self._learn(self._read(as_table(X), y), model)
        return self

    def _read(self, X: Any, y: Any) -> Training:
        """Encode the table, and set what scikit-learn wants set."""
        training = read_training(X, y, self._target_kind, self._kinds(X, y))
        if len(training.X) < 2:
            raise ValueError(f"the table has 1 sample (n_samples = 1); {type(self).__name__} needs at least 2")
        validate_data(self, X, skip_check_array=True)
        return training

    def _kinds(self, X: Any, y: Any) -> dict[str, str] | None:
        """Kinds of columns that are not to be inferred."""
        return self.kinds

    @threaded
    def _learn(self, training: Training, model: Any = None) -> None:
        """Learn, and set attributes; with a fitted model, about it."""
        seed, schema, start = self._draw_seed(), training.schema, time.monotonic()
        n_classes = len(schema.columns[-1].levels) if self._target_kind == "categorical" else 0
        fitted = None if model is None else adopted(model, schema)
        boosting: Boosting = HistBoosting(boosting_table(schema), n_classes, seed)
        if self.boosting is not None or fitted is not None:
            boosting = GivenBoosting(self.boosting, schema, fitted)
        tell = write_line if self.verbose else be_quiet
        problem = PredictorProblem(training, n_classes, boosting, fitted, budget_of(self.budget), seed, tell)
        learned = learn_predictor(problem)
        chosen, pool = learned.chosen, learned.comparison.pool
        how = chosen.report(self.budget, time.monotonic() - start)
        alone = list(learned.members).index(EXPECTED) if fitted is not None else None
        report = _report_of(learned, how, n_classes > 0)
        self._set(Joint(chosen.model, how), learned.members, pool, problem.known(), seed, alone, report)

    def _set(
        self,
        joint: Joint,
        members: dict[str, Member],
        pool: Pool,
        known: np.ndarray,
        seed: int,
        alone: int | None,
        report: PredictorReport | None,
    ) -> None:
        """Set what was learned, or read from a file; ``alone`` is the place of the member for complete rows."""
        self.joint_, self.members_ = joint, tuple(members)
        self._members, self._pool, self._known = members, pool, known
        self._seed, self._alone, self._report = seed, alone, report

    @property
    def fitted_by(self) -> PredictorReport | None:
        """What was compared and chosen; None of a predictor from a file."""
        check_is_fitted(self, "joint_")
        return self._report

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save to a `.joint` file, which `load_predictor` reads; `load` reads ``joint_`` from it.

        Parameters
        ----------
        path : str or path
            An existing file is replaced.

        Raises
        ------
        OSError
            If the path is a directory or cannot be written.
        """
        check_is_fitted(self, "joint_")
        kind = "classifier" if self._target_kind == "categorical" else "regressor"
        labels = self.classes_.dtype.str if hasattr(self, "classes_") else ""
        joint = self.joint_.distribution
        save_predictor(
            Saved(joint, kind, self._members, self._pool, self._known, self._seed, self._alone, labels), path
        )

    def _set_frame(self, frame: Frame) -> None:
        """Let ``joint_`` answer in frames of another library."""
        schema = replace(self.joint_.schema, frame=frame)
        self.joint_ = Joint(self.joint_.distribution.with_schema(schema), self.joint_.fitted_by)
        self._members = {name: member.with_schema(schema) for name, member in self._members.items()}

    # -- predictions

    def _evidence(self, X: Any) -> Evidence:
        """Evidence of rows of features; nothing is known of the target."""
        X = self._same_columns(as_table(X))
        schema = self.joint_.schema
        return read_others(schema, len(schema.columns) - 1, X, self.extra)

    def _stacked(self, evidence: Evidence, with_spread: bool = False) -> tuple[Stack, np.ndarray]:
        """The members' answers, and the share of each row that is missing (n,)."""
        joint = self.joint_.distribution
        answers = ask_members(self._members, joint, evidence, self._seed, with_spread)
        cells = np.where(evidence.cell_regions() >= 0, 0.0, evidence.value)  # of ranges something is known
        return stack(list(answers.values())), missing_share(cells[:, :-1], self._known)

    def _predict(self, evidence: Evidence) -> np.ndarray:
        """Probabilities (n, K), or means (n, 1)."""
        return answer_in_blocks(self._predict_block, evidence)

    def _predict_block(self, evidence: Evidence) -> np.ndarray:
        """The same, for not too many rows."""
        raise NotImplementedError

    def _output_names(self) -> tuple[str, ...]:
        """Names of the outputs."""
        return ()

    @threaded
    def explain(
        self, X: Any, *, groups: Any = None, n_coalitions: int | None = None, random_state: Any = 0
    ) -> ShapleyValues:
        """Conditional Shapley values of each row's prediction: what each column, or group of columns, moves it by.

        The value of a coalition S of columns is this predictor's answer for a row of which S alone is known. A column
        of which nothing is known moves nothing.

        Parameters
        ----------
        X : frame, array or lists of n rows
            Cells may be missing.
        groups, n_coalitions
            As of `ExpectedPredictor.shap`.
        random_state : None, int, Generator or RandomState
            Of the coalitions that are drawn.

        Returns
        -------
        ShapleyValues
            ``values`` (n, p), or (n, p, K) of K classes. With ``base_values``, the answers for a row of which nothing
            is known, they sum to the prediction. ``standard_error`` is 0 where all coalitions are asked.

        Raises
        ------
        ValueError, TypeError
            As of `predict`; groups that overlap or name unknown columns; too few coalitions.

        References
        ----------
        S. Lundberg, S.-I. Lee, "A Unified Approach to Interpreting Model Predictions" (2017).
        """
        evidence = self._evidence(X)
        seed, schema = seed_of(random_state), self.joint_.schema
        refuse_ranges(schema, evidence.cell_regions())
        d = len(schema.columns)
        joint = self.joint_.distribution
        players = find_players(joint, list(range(d - 1)), groups, n_coalitions, seed)
        cells = evidence.value

        def value(row: np.ndarray, known: np.ndarray) -> Asked:
            asked = np.where(known, cells[row], np.nan)
            first, place = distinct_words(asked)
            mean = self._predict(Evidence.of_values(asked[first]))
            return Asked(mean[place], np.zeros_like(mean[place]))

        nothing = self._predict(Evidence.nothing(d))
        base = Asked(nothing, np.zeros_like(nothing))
        member_columns = players.of_columns(d)
        solved = shapley_values(value, base, member_columns, ~np.isnan(cells), n_coalitions, seed)
        outputs = self._output_names()
        return to_result(solved, players, schema, cells, outputs, len(outputs) > 0)


def answer_in_blocks(ask_block: Callable[[Evidence], np.ndarray], evidence: Evidence) -> np.ndarray:
    """The answers of all rows, block by block, so that memory is bounded."""
    blocks = chunks(len(evidence.value), FIXED.rows_at_once)
    if len(blocks) < 2:
        return ask_block(evidence)
    return np.concatenate([ask_block(evidence.take(np.arange(*ends))) for ends in blocks])


def _report_of(learned: LearnedMembers, joint: FitReport, is_class: bool) -> PredictorReport:
    """What was compared and chosen."""
    settings = {
        name: f"{chosen[1]} iterations, {chosen[0].leaf_nodes} leaves{', levels in order' * chosen[0].in_order}"
        for name, chosen in learned.settings.items()
        if chosen is not None
    }
    if learned.penalty is not None:
        settings[ADDITIVE] = f"penalty {learned.penalty:g}"
    members = tuple(
        MemberReport(one.name, tuple(one.loss.tolist()), tuple(one.weight.tolist()), settings.get(one.name, ""))
        for one in learned.comparison.members
    )
    return PredictorReport(
        members=members,
        together=tuple(learned.comparison.pool_loss.tolist()),
        measure="log-loss" if is_class else "root mean squared error",
        rates=FIXED.rates,
        shares=FIXED.knots,
        n_held=learned.n_held,
        n_folds=learned.n_folds,
        joint=joint,
        seconds=learned.seconds,
    )
