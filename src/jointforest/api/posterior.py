"""The posterior given evidence: of one row, or of each row of a frame."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from ..data.conditions import AnyOf, Interval, Missing, Not, PerRow, check_hard, n_rows, normal, without_missing
from ..data.evidence import Evidence, build, intersect
from ..data.frames import decode
from ..data.meaning import meaning_of, refuse_pair
from ..data.schema import Schema, as_levels, seconds_apart, snapped
from ..inference.explanation import Explanation, explain
from ..inference.histogram import bin_edges, histogram
from ..inference.information.integral import Estimate
from ..inference.modes import model_modes, peak
from ..inference.sampling import sample, sample_and_weigh, sample_blocks, seed_of_block
from ..inference.support import SUPPORT, column_errors, event_errors, rows_like, support_in_words
from ..models.base import Distribution, PosteriorState
from ..models.box_forest.modes import BUDGET
from ..models.box_forest.posterior import LeafPosterior, posterior
from ..query_language.parser import Comparison, Conditions, parse_conditions, parse_event, with_shown_numbers
from ..query_language.render import conditions_text
from ..runtime.parameters import check_number, check_shares, seed_of
from ..runtime.threads import threaded, use_jobs
from ..runtime.warnings import NotLearnedWarning, UnsupportedEvidenceWarning, warn, warn_of_draws
from .pairs import Pair, correlation_of, covariance_of, drawn_where, pair_given, probability_of
from .views import column_in_words, marginal_html, posterior_html

# ---- An event beside evidence: both together, and how probable the event is given the evidence.


def with_event(state: PosteriorState, event: Mapping[str, Any]) -> tuple[Distribution | None, Evidence, float]:
    """The model given the missing cells of the event, the evidence with the rest of it, and log p of those cells."""
    # The model is None where the cells cannot be missing. A value is a set of one: its mass counts.
    conditions, missing = without_missing(event, state.distribution.schema.tick_boxes)
    known = [*conditions, *state.evidence.known_names(state.distribution.schema)]
    model, log_missing = state.distribution.given_missing_cells(missing, known)
    return model, with_event_values(state, event, True), log_missing


def with_event_values(state: PosteriorState, event: Mapping[str, Any], as_regions: bool) -> Evidence:
    """The evidence and the event's conditions on values; with ``as_regions`` as in `with_event`."""
    conditions, _ = without_missing(event, state.distribution.schema.tick_boxes)
    if as_regions:
        conditions = {name: AnyOf(condition) for name, condition in conditions.items()}
    return intersect(state.distribution.schema, state.evidence, conditions)


def check_support(background: np.ndarray, text: str | None = None) -> None:
    """Warn of rows without support (``background`` (n,)); one impossible row with a ``text`` is a ValueError."""
    n_impossible, n_weak = int(np.isnan(background).sum()), int(np.sum(background > SUPPORT))
    if n_impossible and text is not None:
        raise ValueError(f"the evidence has probability 0: {text}; drop or widen one of its conditions")
    n, problems = len(background), []
    if n_weak:
        which = (
            "the evidence is unlike anything learned: the answers"
            if n == 1
            else f"{n_weak} of {n} rows of evidence are unlike anything learned: their answers"
        )
        problems.append(f"{which} are mostly those of a background or of far tails")
    if n_impossible:
        problems.append(f"{n_impossible} of {n} rows of evidence have probability 0: their answers are missing")
    if problems:
        hint = f"see .supported; loosen the evidence{'' if n == 1 else ', or leave those rows out'}"
        warn(UnsupportedEvidenceWarning("; ".join(problems), hint))


def warn_of_estimates(state: PosteriorState) -> None:
    """Warn where answers are no exact ones, but estimated from weighted draws."""
    warn_of_draws(float(state.effective_draws.min(initial=np.inf)))


MOST_CELLS = 2_000_000_000
"""Most cells of a draw."""
N_SAMPLES = 2048
"""Draws of the first column where a comparison of two is not exact."""


class Modes(NamedTuple):
    """Most probable rows, made by `Posterior.mode`.

    Attributes
    ----------
    rows : frame of m rows
        Best first, as at learning; no two of them are of the same leaf in every tree of a forest, or have the same
        codes under hidden trees.
    log_density : float64 array (m,)
        ``Joint.log_density`` of each row.
    log_bound : float
        No row that agrees with the evidence has a greater one: the best is the mode up to ``log_bound -
        log_density[0]``.
    """

    rows: Any
    log_density: np.ndarray
    log_bound: float

    def __repr__(self) -> str:
        table = nw.from_native(self.rows, eager_only=True, pass_through=True)
        is_array = not isinstance(table, nw.DataFrame)
        rows: list[Any] = [dict(enumerate(row)) for row in table] if is_array else table.rows(named=True)
        lines = [f"Modes: no row that agrees with the evidence has a log-density above {self.log_bound:.6g}"]
        for x, row in zip(self.log_density.tolist(), rows, strict=True):
            cells = {str(name): Missing() if normal(cell) is None else cell for name, cell in row.items()}
            lines.append(f"log-density {x:.6g}: {with_shown_numbers(conditions_text(cells))}")
        return "\n".join(lines)


class Posterior:
    """The joint distribution given evidence; made by `Joint.given`.

    ``n_jobs`` of its methods is a number of threads; no answer depends on it.

    Of one row of evidence every answer is a scalar (`proba`: a dict); of a frame of n rows an array with n entries
    along its first axis. Answers warn (`UnsupportedEvidenceWarning`) where no leaf supports the evidence, so that the
    wide background answers. Evidence of probability 0 is a ValueError for one row, NaN in a frame.

    Attributes
    ----------
    log_probability : float or float64 array (n,)
        log p(evidence) (natural logarithm; a density where values are given). Soft evidence counts with its likelihood
        over the greatest that it gives to any value.
    background_weight : float or float64 array (n,)
        Share of the background in the posterior, 0..1; NaN where the evidence has probability 0. Hidden trees have no
        background; there it is 1 where a column lies far beyond all that was observed, where only tails answer.
    n_rows : float or float64 array (n,)
        Number of training rows that the evidence stands for: their number times the probability of the evidence. A
        value of a column with a density counts as an event of probability 0.05 in its column. NaN if the joint does
        not know its rows.
    supported : bool or bool array (n,)
        Whether that share is at most one half.
    state : PosteriorState
        The distribution and the evidence, propagated once: what explanations, pictures and other readers take.
    one : bool
        Whether it is one row of evidence given as text or conditions, not a frame: then probability 0 is an error.

    Examples
    --------
    >>> joint = jf.AdversarialForest(n_estimators=5, random_state=0).fit(jf.datasets.load_penguins()).joint_
    >>> big = joint.given("body_mass_g > 5000")
    >>> max(big.proba("species"), key=big.proba("species").get)
    'Gentoo'
    """

    def __init__(
        self,
        state: PosteriorState,
        one: bool,
        said: Sequence[Mapping[str, Any]] = (),
        log_missing: float = 0.0,
        before: Distribution | None = None,
    ) -> None:
        self.state, self.one, self.said = state, one, tuple(said)
        self.before = state.distribution if before is None else before  # without evidence, of missing cells as well
        self._log_missing = log_missing  # of the missing cells in the evidence, which the model has taken up
        self._background: np.ndarray | None = None
        self._is_warned = False  # of rows without support

    def __repr__(self) -> str:
        return f"Posterior({self.evidence_text})"

    def _repr_html_(self) -> str:
        state, text = self.state, self.evidence_text
        title = f"Given {text}" if text else "Given nothing"
        if len(self) != 1:
            return posterior_html(title, state, 0.0, "", self.before)
        # of the state, which the cards need anyway: the evidence is propagated once
        log_probability = float(state.log_evidence) + float(state.evidence.log_penalty[0]) + self._log_missing
        n_rows = rows_like(state.distribution, state.evidence, np.array([log_probability]))
        support = support_in_words(float(n_rows[0]), self._schema.n_rows) if log_probability > -math.inf else ""
        return posterior_html(title, state, log_probability, support, self.before)

    def __len__(self) -> int:
        return len(self.state.evidence.value)

    # -- the evidence itself

    @property
    def _schema(self) -> Schema:
        return self.state.distribution.schema

    @cached_property
    def evidence_text(self) -> str:
        """The conditions of one row in words, for titles and errors; of a frame how many rows there are."""
        if not self.one:
            return f"{len(self)} rows of evidence"
        said = [{name: normal(condition) for name, condition in conditions.items()} for conditions in self.said]
        said = [{name: condition for name, condition in each.items() if condition is not None} for each in said]
        return with_shown_numbers(", ".join(conditions_text(each) for each in said if each))

    def give(self, answers: np.ndarray) -> Any:
        """Answers (n,) as users get them: a scalar for one row of conditions, an array for a frame."""
        return answers[0].item() if self.one else answers

    def check(self) -> None:
        """As `check_support`, and warn of answers that are estimates."""
        self.check_support()
        warn_of_estimates(self.state)

    def check_support(self) -> None:
        """Warn of rows without support, and of rows of probability 0 in a frame, once for all questions.

        Raises
        ------
        ValueError
            If the evidence is of one row and has probability 0.
        """
        background = self._background_share()
        is_error = self.one and np.isnan(background[0])
        if is_error or (not self._is_warned and (np.isnan(background).any() or np.any(background > SUPPORT))):
            self._is_warned = True
            text = self.evidence_text if self.one else None
            if is_error:
                why = self.state.distribution.why_impossible(self.state.evidence)
                text = f"{text}; {why}" if why else text
            check_support(background, text)

    def _background_share(self) -> np.ndarray:
        """Share of the backgrounds in the posterior, (n,), worked out once."""
        if self._background is None:
            self._background = self.state.background_weight()
        return self._background

    @cached_property
    def _log_density(self) -> np.ndarray:
        """log p(evidence) in the model, (n,)."""
        return self.state.distribution.log_density(self.state.evidence)

    @property
    def log_probability(self) -> Any:
        return self.give(self._log_density + self._log_missing)

    @property
    def n_rows(self) -> Any:
        return self.give(self._rows_like())

    def _rows_like(self) -> np.ndarray:
        return rows_like(self.state.distribution, self.state.evidence, self._log_density + self._log_missing)

    @threaded
    def standard_error(self, of: str | Mapping[str, Any], *, n_jobs: int | None = -1) -> Any:
        """Standard error of an answer, from the numbers of training rows that it rests on.

        It counts the rows that the evidence stands for (`n_rows`), and the rows of the leaves or hidden states that
        answer. It does not contain the error of a model that is wrong.
        ``docs/concepts/standard-errors.md`` has the formulas and their assumptions.

        Parameters
        ----------
        of : str or dict
            A column: the error of its mean, or of the probability of each of its levels. Anything else is an event as
            of `probability`, and the error is that of its probability.

        Returns
        -------
        float, or float64 array (n,) for evidence of a frame; of a column of levels as `proba` gives probabilities

        Raises
        ------
        ValueError
            As of `probability` and `mean`; and if the joint does not know how many rows it was learned from.

        Examples
        --------
        >>> gentoo = joint.given(species="Gentoo")
        >>> round(gentoo.n_rows), round(gentoo.standard_error("sex = MALE"), 3)
        (124, 0.045)
        """
        schema = self._schema
        n_rows = self._rows_like()
        if np.isnan(n_rows).all():
            raise ValueError("the joint does not know how many rows it was learned from; learn it again from its table")
        if not (isinstance(of, str) and of in schema.names):
            return self.give(self._event_errors(of, n_rows))
        self.check()
        if schema[of].kind == "datetime":
            raise ValueError(f"column {of!r}: the standard error of a date is not defined; ask for that of an event")
        found = column_errors(self.state.distribution, self.state.evidence, n_rows, schema.index(of))
        if not schema[of].is_categorical:
            return self.give(found[:, 0])
        return dict(zip(schema[of].levels, found[0].tolist(), strict=True)) if self.one else found

    def _event_errors(self, event: str | Mapping[str, Any], n_rows: np.ndarray) -> np.ndarray:
        """Standard errors of the probability of an event, (n,)."""
        schema = self.state.distribution.schema
        share = np.atleast_1d(self.probability(event))
        conditions = conditions_of(schema, event)
        given, evidence, _ = with_event(self.state, conditions)
        both = evidence if given is self.state.distribution else None  # of cells that are missing the parts are others
        j = schema.index(next(iter(conditions)))
        return event_errors(self.state.distribution, self.state.evidence, both, n_rows, j, share)

    @property
    def background_weight(self) -> Any:
        return self.give(self._background_share())

    @property
    def supported(self) -> Any:
        supported = self._background_share() <= SUPPORT
        return bool(supported[0]) if self.one else supported

    @property
    def leaves(self) -> LeafPosterior:
        """The leaves that the evidence reaches, with log p(leaf, evidence): see `models.box_forest.posterior`."""
        return posterior(self.state.distribution.forest_for("a table of leaves"), self.state.evidence)

    @threaded
    def explain(self, k: int = 10, *, n_jobs: int | None = -1) -> Explanation:
        """The leaves, or hidden states, that carry the answers, as rules, the heaviest first.

        Parameters
        ----------
        k : int
            Most of them to list.

        Returns
        -------
        Explanation
            Prints as a table. Each dict of its ``rules`` has ``rule`` (in the query language; '' if it is unbounded),
            ``weight`` (posterior), ``log_weight``, ``tree``, ``leaf``, ``kind`` ("leaf", "Chow-Liu leaf" or
            "background") and ``says``: by column ``{"mean", "low", "high"}`` (the interval of equal tails that holds
            90 %), or ``{"levels": {level: probability}}`` of the three most probable. Hidden states have the kind
            ``"state"``, ``column`` and ``state``, and a rule of at most three columns, each with what holds 90 % of it.
            In mixtures ``part`` is the number of the part.

        Raises
        ------
        ValueError
            If there are several rows of evidence, it has probability 0, or k is no positive integer.

        Notes
        -----
        Nyga, Picklum, Schierenbeck, Beetz, "Joint Probability Trees" (2023), section 3: a leaf is the path to it.

        Examples
        --------
        >>> found = joint.given(species="Gentoo").explain(1).rules[0]
        >>> found["kind"], joint.probability("species = Gentoo", given=found["rule"]) > 0.9
        ('leaf', True)
        """
        if len(self) != 1:
            raise ValueError(
                f"explain speaks of one row of evidence, got {len(self)}; pick one: given(frame[i : i + 1])"
            )
        self.check()
        return explain(self.state.distribution, self.state.evidence, k)

    # -- numbers

    @threaded
    def mean(self, column: str, *, n_jobs: int | None = -1) -> Any:
        """Mean of a numeric or date-time column; P(True) of a boolean one.

        Raises
        ------
        ValueError
            If the column is unknown, or categorical, or one row's evidence has probability 0.
        """
        return self.marginal(column).mean()

    @threaded
    def var(self, column: str, *, n_jobs: int | None = -1) -> Any:
        """Variance, like `mean`; of a date-time column in seconds squared."""
        return self.marginal(column).var()

    @threaded
    def std(self, column: str, *, n_jobs: int | None = -1) -> Any:
        """Standard deviation, like `mean`; of a date-time column a timedelta, of a frame timedelta64."""
        return self.marginal(column).std()

    @threaded
    def quantile(self, column: str, q: float | Sequence[float], *, n_jobs: int | None = -1) -> Any:
        """Quantiles inf{x: P(column <= x) >= q} of a numeric, date-time, ordered or boolean column.

        Parameters
        ----------
        column : str
        q : float or sequence of k floats
            Levels, more than 0 and less than 1.

        Returns
        -------
        scalar, or array (k,) for a sequence; of a frame (n,) or (n, k)
            Infinite beyond the largest value that is known exactly, as of times to an event that are not over in some
            rows (`NotLearnedWarning`).
        """
        return self.marginal(column).ppf(q)

    @threaded
    def interval(self, column: str, level: float = 0.9, *, n_jobs: int | None = -1) -> tuple[Any, Any]:
        """Bounds (lo, hi) of the interval with equal tails that holds this share of the distribution."""
        return self.marginal(column).interval(level)

    # -- time to an event

    @threaded
    def survival(self, column: str, at: Any, *, n_jobs: int | None = -1) -> Any:
        """P(column > t): that an event has not happened by time t, for each t.

        Parameters
        ----------
        column : str
            A column of numbers or dates.
        at : number or date, or sequence of q of them

        Returns
        -------
        float, or float64 array (q,) for a sequence; of a frame (n,) or (n, q)
            NaN beyond the largest time that is known exactly, if times are not over in some rows (`NotLearnedWarning`).

        Examples
        --------
        >>> joint.given(species="Gentoo").survival("body_mass_g", [4000, 5000, 6000]).round(1)
        array([1. , 0.5, 0. ])
        """
        return self.marginal(column).sf(at)

    @threaded
    def hazard(self, column: str, at: Any, *, n_jobs: int | None = -1) -> Any:
        """Rate of events at time t among those without an event before t: density at t over P(column >= t).

        On a grid it is P(column = t | column >= t) over the step. It is as rough as the density. The probability of an
        event in a period is ``given("time > 12").probability("time <= 24")``.

        Parameters
        ----------
        column, at, n_jobs
            As of `survival`.

        Returns
        -------
        As of `survival`; NaN where P(column >= t) is 0
        """
        return self.marginal(column).hazard(at)

    @threaded
    def restricted_mean(self, column: str, until: Any, *, n_jobs: int | None = -1) -> Any:
        """Mean of the smaller of the column and ``until``: of non-negative times the area under `survival` up to it.

        Parameters
        ----------
        column : str
            A column of numbers or dates.
        until : number or date, or sequence of k of them

        Returns
        -------
        scalar, or array (k,) for a sequence; for evidence of a frame (n,) or (n, k)
        """
        return self.marginal(column).restricted_mean(until)

    @threaded
    def cov(self, a: str, b: str, *, n_jobs: int | None = -1) -> Any:
        """Covariance of two columns of numbers, exact; True of a boolean column counts 1, dates count in seconds.

        Returns
        -------
        float, or of a frame float64 array (n,)

        Raises
        ------
        ValueError
            If a column is unknown, or has other levels, or one row's evidence has probability 0.

        Examples
        --------
        >>> joint.given().cov("flipper_length_mm", "body_mass_g") > 0
        True
        """
        self.check()
        return self.give(covariance_of(self.state, a, b))

    @threaded
    def corr(self, a: str, b: str, *, n_jobs: int | None = -1) -> Any:
        """Correlation (Pearson's), like `cov`: -1 to 1; NaN in rows of a frame where a column has one value.

        Returns
        -------
        float, or of a frame float64 array (n,)

        Raises
        ------
        ValueError
            As `cov`; if a column has one value given one row's evidence.

        Examples
        --------
        >>> 0.7 < joint.given().corr("flipper_length_mm", "body_mass_g") < 1.0
        True
        """
        self.check()
        correlation = correlation_of(self.state, a, b)
        if self.one and np.isnan(correlation[0]):
            name = a if self.var(a) <= 0.0 else b
            raise ValueError(f"column {name!r} has one value given this evidence: no correlation; drop its condition")
        return self.give(correlation)

    # -- probabilities

    @threaded
    def proba(self, column: str, *, n_jobs: int | None = -1) -> Any:
        """Distribution over the levels of a categorical, ordered or boolean column.

        Returns
        -------
        dict of level to probability, or of a frame float64 array (n, K) in the order of ``Joint.levels(column)``
        """
        return self.marginal(column).proba()

    @threaded
    def probability(self, event: str | Mapping[str, Any], *, n_jobs: int | None = -1) -> Any:
        """Probability of an event given the evidence.

        Parameters
        ----------
        event : str or dict
            ``"age >= 40 and sex = 'Female'"``, or conditions by column. Its columns may be in the evidence too.

        Raises
        ------
        ValueError
            If there is soft evidence in the event: it neither happens nor not.

        Warns
        -----
        NotLearnedWarning
            If the event ends at a number beyond the largest that is known exactly, as of times that are not over.
        """
        schema = self._schema
        conditions = conditions_of(schema, event)
        check_hard(conditions)
        for name, condition in conditions.items():
            refuse_pair(schema[name], condition)
            self.marginal(name)._warn_beyond(condition)
        self.check()
        share = np.exp(np.minimum(self.log_event(conditions, True), 0.0))
        return self.give(share) if len(share) == 1 else share

    @threaded
    def log_event(self, event: Mapping[str, Any], as_regions: bool, *, n_jobs: int | None = -1) -> np.ndarray:
        """log p(event | evidence), (n,); NaN where the evidence has probability 0.

        Where the event states missing cells, the cells with evidence are known. A cell that a rule
        makes missing is an event of the values that the rule names.
        """
        both, model = with_event_values(self.state, event, as_regions), self.state.distribution
        _, missing = without_missing(event, model.schema.tick_boxes)
        if missing.keys() <= model.missing_by_rule:
            given, log_p = model.given_missing_cells(missing)
            log_both = np.full(len(both.value), -np.inf) if given is None else given.log_density(both) + log_p
            with np.errstate(invalid="ignore"):
                return log_both - self._log_density
        log_both = self._log_known(both, missing)
        with np.errstate(invalid="ignore"):
            return log_both - self._log_known(self.state.evidence, {})

    def _log_known(self, evidence: Evidence, missing: Mapping[str, bool]) -> np.ndarray:
        """log p(evidence, the cells with evidence are known, which cells are missing), (n,)."""
        found = np.full(len(evidence.value), -np.inf)
        for rows, given, log_p in self.state.distribution.given_evidence_present(evidence, missing):
            if given is not None:
                found[rows] = given.log_density(evidence.take(rows)) + log_p
        return found

    @threaded
    def compare(
        self, comparison: str, n_samples: int = N_SAMPLES, random_state: Any = None, *, n_jobs: int | None = -1
    ) -> Estimate:
        """Probability of a comparison of columns, such as ``"arrival - departure > 10"``.

        Parameters
        ----------
        comparison : str
            Two sums of columns and numbers, joined by ``< <= > >= = !=``; or two columns of levels.
        n_samples : int
            Draws to take where the answer is not exact.
        random_state : None, int, Generator or RandomState

        Returns
        -------
        Estimate
            ``value``, ``standard_error``, ``method``. Exact of columns of levels, of two columns one of which is
            known, or has a grid of at most 4,096 cells that matter, of whether two columns are equal one of which has
            no grid, and of two columns whose difference an enforced order models.

        Raises
        ------
        ValueError
            If the text is no such comparison, or there are several rows of evidence, or it has probability 0.

        Examples
        --------
        >>> found = joint.given(species="Gentoo").compare("bill_length_mm > 3 * bill_depth_mm")
        >>> found.method, found.value > 0.5
        ('exact', True)
        """
        compared = self._compared(comparison)
        if len(compared) != 1:
            raise ValueError(f"expected a comparison of columns as text, such as 'a > b', got {comparison!r}")
        return self.probability_of(compared, n_samples, random_state)

    def probability_of(self, compared: tuple[Comparison, ...], n_samples: int, random_state: Any) -> Estimate:
        """Probability of comparisons of columns that are read already, given one row of evidence."""
        if len(self) != 1:
            raise ValueError(f"compare: expected evidence of one row, got {len(self)} rows")
        self.check()
        return probability_of(self.state, compared, n_samples, random_state)

    def _compared(self, text: str) -> tuple[Comparison, ...]:
        """The comparisons of columns that a text consists of."""
        event, compared = self._event(text) if isinstance(text, str) else ((), ())
        if event or not compared:
            raise ValueError(f"expected a comparison of columns as text, such as 'a > b', got {text!r}")
        return compared

    def _event(self, text: str) -> tuple[Conditions, tuple[Comparison, ...]]:
        """The conditions by column, and the comparisons of columns, of a text."""
        return parse_event(text, self._schema.kinds_asked, self._schema.reasons_aside)

    def _where(self, text: str | None, missing: bool) -> tuple[Posterior, tuple[Comparison, ...]]:
        """The posterior with the conditions of a text added to the evidence, and its comparisons of columns."""
        if text is None:
            return self, ()
        if not isinstance(text, str):
            raise TypeError(f"where: expected text, such as 'a > b, c in {{1, 2}}', got {type(text).__name__}")
        event, compared = self._event(text)
        if compared and missing:
            raise ValueError("missing=True: cells of rows that are compared are known; leave missing or where out")
        if not event:
            return self, compared
        check_hard(dict(event))
        model, _, known = observe_missing(self.state.distribution, dict(event))
        evidence = intersect(model.schema, self.state.evidence, known)
        return Posterior(model.observe(evidence), self.one, (*self.said, dict(event))), compared

    def marginal(self, column: str) -> Marginal:
        """Distribution of one column, with ``pdf``, ``cdf``, ``ppf``, ``mean``, ``var``, ``std``, ``sample``."""
        return Marginal(self, column)

    def marginals(self) -> dict[str | int, Marginal]:
        """`marginal` of every column, in the table's order.

        Examples
        --------
        >>> found = joint.given(species="Gentoo").marginals()
        >>> bool(found["body_mass_g"].mean() > 4500), found["island"].pmf("Biscoe") > 0.9
        (True, True)
        """
        return {column.label: Marginal(self, column.name) for column in self._schema.columns}

    @threaded
    def pair(self, a: str, b: str, bins: int = 20, *, n_jobs: int | None = -1) -> Pair:
        """Joint distribution of two columns, in bins, exact: what a picture of two columns shows.

        Parameters
        ----------
        a, b : str
        bins : int
            Bins of a column of numbers or dates, evenly cut between its 1 % and 99 % quantiles; each level is a bin.

        Returns
        -------
        Pair
            ``a`` and ``b`` (levels, or cuts between bins) and ``probability``, which sums to 1.

        Raises
        ------
        ValueError
            If a column is unknown or named twice, bins are fewer than 2, or the evidence has several rows, or
            probability 0.

        Examples
        --------
        >>> found = joint.given("body_mass_g > 4000").pair("species", "bill_length_mm", bins=5)
        >>> found.a, found.probability.shape, round(float(found.probability.sum()), 9)
        (('Adelie', 'Chinstrap', 'Gentoo'), (3, 5), 1.0)
        """
        if len(self) != 1:
            raise ValueError(f"pair: expected evidence of one row, got {len(self)} rows")
        self.check()
        return pair_given(self.state, a, b, bins)

    def mode(self, k: int = 1, budget: int = BUDGET) -> Modes:
        """Most probable complete rows that agree with one row of evidence (MPE), with a certified bound.

        What counts as a mode, and what is exact: ``docs/how-to/find-modes.md``.

        Parameters
        ----------
        k : int
            How many rows, one a cell (a leaf of each tree); fewer if fewer are found. Of a forest more if others are
            as good as the last.
        budget : int
            Boxes that branch and bound may cut to certify the first; 0 leaves the search out. A cut under hidden trees
            counts ten for each tree.

        Returns
        -------
        Modes
            The first is the mode if ``log_bound`` equals its density: always with a single tree of plain leaves, in
            forests where the search ends within the budget. The others are the best found in other cells.

        Raises
        ------
        ValueError
            If k is not a positive integer or budget no natural number, or the evidence has several rows, or
            probability 0.

        Examples
        --------
        >>> joint = jf.AdversarialForest(n_estimators=5, random_state=0).fit(jf.datasets.load_penguins()).joint_
        >>> best = joint.given(species="Gentoo").mode()
        >>> best.rows["island"].iloc[0], bool(best.log_density[0] <= best.log_bound)
        ('Biscoe', True)
        """
        check_number("k", k, 1, whole=True, text="a positive integer")
        check_number("budget", budget, 0, whole=True, text="an integer of 0 or more")
        if len(self) != 1:
            raise ValueError(f"mode: expected evidence of one row, got {len(self)} rows")
        self.check()
        best = model_modes(self.state.distribution, self.state.evidence, int(k), int(budget))
        return Modes(decode(self._schema, best.X), best.log_density, best.log_bound)

    # -- draws

    @threaded
    def sample(
        self,
        n: int = 1,
        random_state: Any = None,
        missing: bool = False,
        *,
        n_jobs: int | None = -1,
        where: str | None = None,
    ) -> Any:
        """Draw n rows for each row of evidence, which they keep; a frame as at learning.

        Parameters
        ----------
        n : int
        random_state : None, int, Generator or RandomState
        missing : bool
            Also draw which cells are missing, as often as at learning.
        where : str, optional
            What holds in all rows: ranges, sets and missing cells, as in `Joint.given`, and comparisons of columns, of
            one row of evidence, such as ``"age >= 40, sex in {Female}, arrival > departure, 2 * a < b + 1"``. All draws
            are exact; which need rejection: ``docs/reference/query-language.md``.

        Returns
        -------
        frame of n rows, or n rows for each row of evidence, one after the other

        Raises
        ------
        ValueError
            If ``where`` is no such text (`QuerySyntaxError`), has probability 0, or keeps fewer than one draw in a
            thousand.
        TypeError
            If it is no text.

        Examples
        --------
        >>> rows = joint.given(species="Adelie").sample(50, random_state=0, where="bill_length_mm < 2 * bill_depth_mm")
        >>> bool((rows["bill_length_mm"] < 2 * rows["bill_depth_mm"]).all())
        True
        """
        given, compared = self._where(where, missing)
        if compared:
            check_draws(given.state, n)
            none = np.empty((0, len(given._schema.names)))
            rows = np.concatenate([none, *given._draw_compared(compared, n, random_state)])
        else:
            rows = given.draw(n, random_state, missing)
        return decode(given._schema, rows, 0)

    def draw(self, n: int, random_state: Any, missing: bool = False) -> np.ndarray:
        """n rows for each row of evidence, contiguous, as numbers and codes: float64 (len(self) * n, d)."""
        state = self.state
        check_draws(state, n)
        if len(self) == 1:
            self.check_support()
            return sample(self._drawn_from(missing), state.evidence, int(n), seed_of(random_state), missing)
        seed = seed_of(random_state)
        if missing:
            self.check_support()
            every = np.full((len(self), int(n), len(self._schema.columns)), np.nan)
            for k, (rows, given, _) in enumerate(state.distribution.given_evidence_present(state.evidence)):
                if given is not None:
                    block = sample(given, state.evidence.take(rows), int(n), seed_of_block(seed, k), True)
                    every[rows] = block.reshape(len(rows), int(n), every.shape[2])
            return every.reshape(len(self) * int(n), every.shape[2])
        drawn, background = sample_and_weigh(state.distribution, state.evidence, int(n), seed)
        if background is not None:
            self._background = background
        self.check_support()
        return drawn

    def _drawn_from(self, missing: bool) -> Distribution:
        """The distribution that draws of one row of evidence come from: given also which cells are known."""
        if not missing:
            return self.state.distribution
        ((_, given, _),) = self.state.distribution.given_evidence_present(self.state.evidence)
        return self.state.distribution if given is None else given

    def _draw_compared(self, compared: tuple[Comparison, ...], n: int, random_state: Any) -> Iterator[np.ndarray]:
        """n rows in which comparisons of columns hold, some at a time; all but the draws is checked at once."""
        check_number("n", n, 0, whole=True, text="a non-negative integer")
        if len(self) != 1:
            raise ValueError(f"where: expected evidence of one row, got {len(self)} rows")
        self.check_support()
        return drawn_where(self.state, compared, n, random_state)

    def sample_batches(
        self,
        n: int,
        random_state: Any = None,
        missing: bool = False,
        *,
        n_jobs: int | None = -1,
        where: str | None = None,
    ) -> Iterator[Any]:
        """The rows that `sample` draws for the same ``random_state``, some at a time: for more than memory holds.

        Parameters
        ----------
        n, random_state, missing, n_jobs, where
            As of `sample`.

        Returns
        -------
        iterator of frames
            Of 262,144 rows, the last one of fewer; none if n is 0.

        Raises
        ------
        ValueError
            If there are several rows of evidence; and as `sample`.

        Examples
        --------
        >>> [len(rows) for rows in joint.given(species="Gentoo").sample_batches(300_000, random_state=0)]
        [262144, 37856]
        """
        with use_jobs(n_jobs):  # a wrong one is an error at once
            given, compared = self._where(where, missing)
        if compared:
            return _decoded(given._schema, given._draw_compared(compared, n, random_state), n_jobs=n_jobs)
        check_number("n", n, 0, whole=True, text="a non-negative integer")
        if len(self) != 1:
            raise ValueError(f"batches of draws are for one row of evidence, got {len(self)}; ask row by row")
        given.check_support()
        state, seed = given.state, seed_of(random_state)
        drawn = sample_blocks(given._drawn_from(missing), state.evidence, int(n), seed, missing)
        return _decoded(given._schema, drawn, n_jobs=n_jobs)


def _decoded(schema: Schema, drawn: Iterable[np.ndarray], *, n_jobs: int | None = -1) -> Iterator[Any]:
    """Frames of drawn rows, batch by batch."""
    first, batches = 0, iter(drawn)
    while True:
        with use_jobs(n_jobs):  # not while the caller works on a batch
            rows = next(batches, None)
        if rows is None:
            return
        yield decode(schema, rows, first)
        first += len(rows)


def check_draws(state: PosteriorState, n: Any) -> None:
    """Raise ValueError if n rows for each row of evidence cannot be drawn at once."""
    check_number("n", n, 0, whole=True, text="a non-negative integer")
    d, rows = len(state.distribution.schema.names), max(len(state.evidence.value), 1)
    if n * rows * d > MOST_CELLS:
        each = f" and {rows:,} rows of evidence" if rows > 1 else ""
        raise ValueError(
            f"n={n:,}: at most {MOST_CELLS:,} cells (16 GB) are drawn at once, of {d} columns{each} "
            f"n={MOST_CELLS // (rows * d):,}; draw in batches: given(...).sample_batches(n)"
        )


# ---- Evidence as users write it.


def posterior_of(model: Distribution, conditions: dict[str, Any]) -> Posterior:
    """The posterior of one row of conditions by column, or of one row a value where a condition has one a row."""
    one = all(n_rows(condition) is None for condition in conditions.values())
    given, log_missing, known = observe_missing(model, conditions)
    state = given.observe(build(model.schema, conditions=known))
    return Posterior(state, one, [conditions], log_missing, model)


def observe_missing(model: Distribution, conditions: Mapping[str, Any]) -> tuple[Distribution, float, dict[str, Any]]:
    """The model given which cells are missing, the log-probability of that, and the other conditions."""
    others, missing = without_missing(conditions, model.schema.tick_boxes)
    if not missing:
        return model, 0.0, others
    given, log_missing = model.given_missing_cells(missing, list(others))
    if given is None:
        text = conditions_text({name: Missing() if is_it else Not(Missing()) for name, is_it in missing.items()})
        raise ValueError(
            f"the evidence has probability 0: {text}; at learning such cells were never missing, or always, or a rule "
            "makes others missing with them of which the evidence says something"
        )
    return given, log_missing, others


def conditions_of(schema: Schema, said: Any) -> dict[str, Any]:
    """Conditions by column from a text, a dict, or a pandas Series whose index holds names of columns."""
    if nw.dependencies.is_pandas_series(said):
        said = said.to_dict()
    if isinstance(said, str):
        return dict(parse_conditions(said, schema.kinds_asked, schema.reasons_aside))
    if isinstance(said, Mapping):
        return {schema[name].name: condition for name, condition in said.items()}
    expected = "a text such as 'age >= 40', or a dict (or pandas Series) of conditions by column"
    raise TypeError(f"expected {expected}, got {type(said).__name__}")


# ---- The distribution of one column, in the manner of scipy.stats.

_ROUNDING = 1e-12  # of sums of probabilities
_BEYOND = 0.01  # share of values of which nothing is learned that makes no difference


class Histogram(NamedTuple):
    """Probability of each bin of a column, made by `Marginal.histogram`.

    Attributes
    ----------
    edges : array (bins + 1,), or tuple of levels
        Of numbers and dates the ends of the bins, ascending: a bin is above its first and up to its second. Of a
        column of levels its levels, each a bin.
    mass : float64 array (bins,), of a frame (n, bins)
        Sums to 1: what lies beyond the edges is in the first and in the last bin.
    """

    edges: Any
    mass: np.ndarray


class Marginal:
    """One column's distribution; made by `Joint.marginal` and `Posterior.marginal`.

    ``n_jobs`` of its methods is a number of threads; no answer depends on it.

    Of one row of evidence, results have the shape of the argument x; of a frame of n rows, x has q points and the
    results shape (n, q). Numeric and date-time columns have ``pdf``, ``cdf``, ``sf``, ``ppf``; columns with levels have
    ``pmf``. Warnings and errors are those of `Posterior`.

    Examples
    --------
    >>> joint = jf.AdversarialForest(n_estimators=5, random_state=0).fit(jf.datasets.load_penguins()).joint_
    >>> mass = joint.marginal("body_mass_g")
    >>> bool(abs(mass.cdf(mass.ppf(0.5)) - 0.5) < 0.05)
    True
    """

    def __init__(self, posterior: Posterior, column: str) -> None:
        schema = posterior.state.distribution.schema
        self._posterior, self._state, self._j = posterior, posterior.state, schema.index(column)
        self._column = schema.columns[self._j]

    def __repr__(self) -> str:
        return f"{self._title()}: {column_in_words(self._state, self._j)}"

    def _repr_html_(self) -> str:
        return marginal_html(self._title(), self._state, self._j, bool(self._text()))

    def _title(self) -> str:
        """The column, and one row's evidence."""
        return f"{self._column.name} given {self._text()}" if self._text() else self._column.name

    def _text(self) -> str:
        return self._posterior.evidence_text if self._posterior.one else ""

    # -- the distribution

    @threaded
    def pdf(self, x: Any, *, n_jobs: int | None = -1) -> Any:
        """Density at x; on a grid the mass of x's cell over its width, at a point mass its probability."""
        return self._at(self._state.pdf, "density", x)

    @threaded
    def cdf(self, x: Any, *, n_jobs: int | None = -1) -> Any:
        """P(column <= x)."""
        return self._at(self._state.cdf, "CDF", x)

    @threaded
    def sf(self, x: Any, *, n_jobs: int | None = -1) -> Any:
        """P(column > x), the survival function; NaN beyond what is learned of times that are not over in some rows."""
        return self._at(
            lambda j, points: self._learned(points, 1.0 - self._state.cdf(j, points)), "survival function", x
        )

    @threaded
    def hazard(self, x: Any, *, n_jobs: int | None = -1) -> Any:
        """``pdf(x) / P(column >= x)``; NaN where that probability is 0."""

        def ratio(j: int, points: np.ndarray) -> np.ndarray:
            step = self._column.step
            at_risk = 1.0 - self._state.cdf(j, points - step if step else np.nextafter(points, -np.inf))
            with np.errstate(invalid="ignore", divide="ignore"):
                rate = np.where(at_risk > _ROUNDING, self._state.pdf(j, points) / at_risk, np.nan)
            return self._learned(points, rate)

        return self._at(ratio, "hazard", x)

    @threaded
    def restricted_mean(self, until: Any, *, n_jobs: int | None = -1) -> Any:
        """Mean of the smaller of the column and ``until``, or of each of k values.

        Returns
        -------
        scalar, or array (k,) for a sequence; of a frame (n,) or (n, k)
        """
        self._need_numbers("restricted mean", boolean=False)
        limits = self._column.numbers(until)
        if limits.ndim > 1:
            raise ValueError(f"until: expected a value or a sequence of values, got an array of shape {limits.shape}")
        parts = []
        for limit in limits.reshape(-1):
            below = np.maximum(self._state.cdf(self._j, np.array([limit]))[:, 0], 0.0)
            one = self._column.scalar(float(limit))
            evidence = with_event_values(self._state, {self._column.name: Interval(hi=one)}, True)
            mean = self._state.distribution.observe(evidence).moments(self._j)[0]
            parts.append(np.where(below > 0.0, below * mean, 0.0 * below) + (1.0 - below) * limit)
        found = np.stack(parts, axis=1) if parts else np.empty((len(self._state.evidence.value), 0))
        found = self._learned(np.broadcast_to(limits.reshape(-1), found.shape), found)
        if limits.ndim == 0:
            return self._values(found[:, 0])
        return self._column.values(found[0] if self._posterior.one else found)

    @threaded
    def ppf(self, q: float | Sequence[float], *, n_jobs: int | None = -1) -> Any:
        """Quantiles inf{x: P(column <= x) >= q}, for a level q or a sequence of k levels between 0 and 1.

        Of ordered and boolean columns they are levels (False before True).

        Returns
        -------
        scalar, or array (k,) for a sequence; of a frame (n,) or (n, k)
        """
        levels = check_shares("q", q)
        numbers = self._quantiles(np.atleast_1d(levels))
        if levels.ndim == 0:
            return self._values(numbers[:, 0])
        return self._column.values(numbers[0] if self._posterior.one else numbers)

    @threaded
    def interval(self, level: float = 0.9, *, n_jobs: int | None = -1) -> tuple[Any, Any]:
        """Bounds (lo, hi) of the interval with equal tails that holds this share of the distribution."""
        highest = 1 - 2.0**-52  # beyond, half of what is left is 0
        check_number("level", level, 0, highest, without="low", text="a number between 0 and 1")
        numbers = self._quantiles(np.array([(1 - level) / 2, (1 + level) / 2]))
        return self._values(numbers[:, 0]), self._values(numbers[:, 1])

    @threaded
    def pmf(self, level: Any, *, n_jobs: int | None = -1) -> Any:
        """Probability of a level, or of each of several levels."""
        share = self._level_shares()
        code = self._column.numbers(level).astype(np.int64)
        return self._shaped(share[:, code.ravel()], code.shape)

    @threaded
    def proba(self, *, n_jobs: int | None = -1) -> Any:
        """Probability of every level: a dict, or of a frame float64 array (n, K) in the order of ``Joint.levels``."""
        share = self._level_shares()
        return dict(zip(self._column.levels, share[0].tolist(), strict=True)) if self._posterior.one else share

    @threaded
    def histogram(self, bins: int | Sequence[Any] = 20, *, n_jobs: int | None = -1) -> Histogram:
        """Probability of bins, to look at; of a column of levels of each level.

        Parameters
        ----------
        bins : int or sequence
            Of numbers and dates how many bins at most, equally wide between the least and the greatest value seen at
            learning, on a grid of whole cells: the same for any evidence. Or their edges, ascending.

        Returns
        -------
        Histogram
            ``edges`` and ``mass``; differences of `cdf`, to some 1e-7 of each.

        Raises
        ------
        ValueError
            If bins are no positive integer and no ascending edges, or are edges of a column of levels; if one row's
            evidence has probability 0.

        Examples
        --------
        >>> found = joint.given(species="Gentoo").marginal("flipper_length_mm").histogram([170, 190, 210, 240])
        >>> found.mass.round(1)
        array([0. , 0.2, 0.8])
        >>> joint.given("body_mass_g > 5000").marginal("sex").histogram().edges
        ('FEMALE', 'MALE')
        """
        edges = bin_edges(self._column, bins)
        self._posterior.check()
        self._unknown()
        mass = histogram(self._state, self._j, edges)
        shown = self._column.levels if self._column.is_categorical else self._column.values(edges)
        return Histogram(shown, mass[0] if self._posterior.one else mass)

    @threaded
    def likeliest(self, *, n_jobs: int | None = -1) -> Any:
        """Most probable level, the first of equals; of numbers and dates the value of greatest `pdf`.

        On a grid of at most 16,384 cells it is the most probable cell. Of other numbers it is the best of 1,024
        quantiles and the point masses, refined (but on a grid) between its neighbours: narrower peaks may be missed.
        The probability of a point mass is compared with densities.
        """
        if not self._column.is_categorical:
            self._posterior.check()
            self._unknown()
            return self._values(peak(self._state.distribution, self._state.evidence, self._j))
        share = self._level_shares()
        code = np.where(np.isnan(share[:, 0]), np.nan, share.argmax(axis=1))
        level = self._column.values(code)
        return level[0] if self._posterior.one else level

    # -- numbers

    @threaded
    def mean(self, *, n_jobs: int | None = -1) -> Any:
        """Mean of a numeric or date-time column; P(True) of a boolean one."""
        self._need_numbers("mean")
        if self._column.kind == "boolean":
            return self._posterior.give(self._true())
        return self._values(self._in_range(self._moments()[0]))

    @threaded
    def var(self, *, n_jobs: int | None = -1) -> Any:
        """Variance; of a date-time column in seconds squared."""
        self._need_numbers("variance")
        return self._posterior.give(self._variance())

    @threaded
    def std(self, *, n_jobs: int | None = -1) -> Any:
        """Standard deviation; of a date-time column a timedelta, of a frame timedelta64."""
        self._need_numbers("standard deviation")
        deviation = np.sqrt(self._variance())
        return self._posterior.give(seconds_apart(deviation) if self._column.kind == "datetime" else deviation)

    @threaded
    def sample(self, n: int = 1, random_state: Any = None, *, n_jobs: int | None = -1) -> np.ndarray:
        """Draw n values, shape (n,); of a frame of m rows shape (m, n)."""
        drawn = self._column.values(self._posterior.draw(n, random_state)[:, self._j])
        return np.asarray(self._shaped(drawn.reshape(len(self._posterior), n), (n,)))

    # -- helpers

    def _need_numbers(self, what: str, boolean: bool = True) -> None:
        """See that the question makes sense of the column, and check the evidence."""
        column = self._column
        if column.is_categorical and not (boolean and column.kind == "boolean"):
            raise ValueError(f"column {column.name!r} is {column.kind}: it has no {what}; use proba({column.name!r})")
        self._state.prepare([self._j])
        self._posterior.check()
        self._unknown()

    def _unknown(self) -> np.ndarray:
        """Rows of evidence that are impossible, or under which a rule makes the column missing, bool (n,)."""
        known = self._state.knowing([self._j])
        if known is self._state:
            return np.isnan(self._posterior._background_share())
        unknown = np.isnan(known.background_weight())
        if self._posterior.one and unknown[0]:
            raise ValueError(
                f"column {self._column.name!r} is missing in all rows given this evidence, by a rule: it has no value "
                "to ask about; leave out a condition"
            )
        return unknown

    def _learned(self, at: np.ndarray, answer: np.ndarray, otherwise: float = math.nan) -> np.ndarray:
        """The answer about numbers ``at``, something else beyond what was observed of the column, with a warning."""
        until = self._column.learned_until
        if not (at > until).any():
            return answer
        warn(NotLearnedWarning(self._unlearned, f"such answers are {otherwise}; ask up to {self._end}"))
        return np.where(at > until, otherwise, answer)

    def _warn_beyond(self, condition: Any) -> None:
        """Warn of a condition of an event that ends beyond what was observed of the column."""
        until = self._column.learned_until
        if until == math.inf or isinstance(condition, PerRow):
            return
        meaning = meaning_of(self._column, without_missing({self._column.name: condition})[0].get(self._column.name))
        ends = [meaning] if isinstance(meaning, float) else [x for run in meaning.runs for x in run] if meaning else []
        if any(until + 0.75 * self._column.step < x < math.inf for x in ends):
            hint = "its probability rests on what is assumed of the values beyond"
            warn(NotLearnedWarning(self._unlearned, f"{hint}; ask up to {self._end}"))

    @property
    def _unlearned(self) -> str:
        """Beyond what the column is not learned."""
        is_known = self._column.n_ranges < self._column.n_observed
        what = "value that is known exactly" if is_known else "lower end of its ranges, of which no cell has a value"
        return f"column {self._column.name!r}: not learned beyond {self._end}, the largest {what}"

    @property
    def _end(self) -> str:
        """The number beyond which the column is not learned, as text."""
        until = self._column.learned_until
        return self._column.text(until) or (
            str(self._column.scalar(until)) if self._column.kind == "datetime" else f"{until:.6g}"
        )

    def _moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance, (n,) each; NaN also where the variance is more than float64 holds."""
        until = self._column.learned_until
        beyond = 1.0 - self._state.cdf(self._j, np.array([until])) if until < math.inf else np.zeros(1)
        if (beyond > _BEYOND).any():
            hint = f"{np.nanmax(beyond):.0%} lie beyond, and means and variances rest on what is assumed of them"
            warn(NotLearnedWarning(self._unlearned, f"{hint}; ask quantiles, or restricted_mean up to {self._end}"))
        mean, variance = self._state.moments(self._j)
        return np.where(np.isfinite(variance), mean, np.nan), variance

    def _variance(self) -> np.ndarray:
        if self._column.kind == "boolean":
            true = self._true()
            return true * (1.0 - true)
        return self._in_range(self._moments()[1])

    def _quantiles(self, levels: np.ndarray) -> np.ndarray:
        if self._column.kind in ("boolean", "ordered"):
            below = np.cumsum(self._level_shares(), axis=1)
            code = (below[:, None, :-1] < levels[:, None] - _ROUNDING).sum(axis=2).astype(np.float64)
            return np.where(np.isnan(below[:, :1]), np.nan, code)
        self._need_numbers("quantiles", boolean=False)
        numbers = self._state.quantile(self._j, levels)
        numbers = self._in_range(numbers if self._column.kind == "datetime" else snapped(self._column, numbers))
        return self._learned(numbers, numbers, math.nan if self._column.kind == "datetime" else math.inf)

    def _level_shares(self) -> np.ndarray:
        """Probabilities of the levels, shape (n, K)."""
        if not self._column.is_categorical:
            hint = "use quantile or interval, or probability of an event" + as_levels(self._column)
            raise ValueError(f"column {self._column.name!r} is {self._column.kind}: it has no levels; {hint}")
        self._state.prepare([self._j])
        self._posterior.check()
        self._unknown()
        return self._shares()

    def _shares(self) -> np.ndarray:
        return self._state.level_probabilities(self._j)

    def _true(self) -> np.ndarray:
        """Probability of True in a boolean column, shape (n,)."""
        share, codes = self._shares(), self._column.codes
        return share[:, codes[True]] if True in codes else share[:, 0] * 0.0

    def _at(self, question: Callable[..., np.ndarray], what: str, x: Any) -> Any:
        self._need_numbers(what, boolean=False)
        points = self._column.numbers(x)
        return self._shaped(question(self._j, points.ravel()), points.shape)

    def _in_range(self, numbers: np.ndarray) -> np.ndarray:
        """The numbers (n,) or (n, k), NaN of impossible evidence alone; a ValueError where float64 does not do."""
        if not np.isfinite(numbers[~self._unknown()]).all():
            raise ValueError(
                f"column {self._column.name!r}: given this evidence it lies too far out to be computed, beyond 1e150 "
                "or so; loosen the evidence"
            )
        return numbers

    def _values(self, number: np.ndarray) -> Any:
        """A scalar of one row of evidence, an array of a frame."""
        if self._posterior.one:
            return self._column.scalar(float(number[0]))
        return self._column.values(number)

    def _shaped(self, answer: np.ndarray, shape: tuple[int, ...]) -> Any:
        """One row: the argument's shape. A frame: (n, q), or (n,) for a single point."""
        if len(shape) == 0:
            return self._posterior.give(answer[:, 0])
        return answer[0].reshape(shape) if self._posterior.one else answer
