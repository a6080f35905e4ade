"""What is known after evidence: the face of one posterior, or one a row of a frame."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from ..data.conditions import AnyOf, Missing, Not, check_hard, n_rows, normal, without_missing
from ..data.evidence import Evidence, build, intersect
from ..data.frames import decode
from ..data.meaning import refuse_pair
from ..data.schema import Schema
from ..inference.explanation.explain import Explanation, explain
from ..inference.information.projection import Estimate
from ..inference.modes import model_modes
from ..inference.posterior import SUPPORT, WeighedEvidence
from ..inference.support import in_words, mean_error, rows_like, share_error
from ..models.base import Distribution
from ..models.box_forest.modes import BUDGET
from ..models.box_forest.posterior import LeafPosterior, posterior
from ..query_language.parser import Comparison, Conditions, parse_conditions, parse_event
from ..query_language.render import conditions_text
from ..runtime.parameters import check_number
from .marginal import Marginal, check_draws, draw, draw_batches
from .pairs import Pair, covariance_of, drawn_where, pair, probability_of
from .views import posterior_html

# ---- An event beside evidence: both together, and how probable the event is given the evidence.


def with_event(
    known: WeighedEvidence, event: Mapping[str, Any], as_regions: bool
) -> tuple[Distribution | None, Evidence, float]:
    """The model given the cells that the event says are missing, the evidence and the rest of it, log p of those cells.

    The model is None where the cells cannot be missing. With ``as_regions`` a value is a set of one: its mass counts.
    """
    conditions, missing = without_missing(event)
    model, log_missing = known.model.given_missing_cells(missing)
    if as_regions:
        conditions = {name: AnyOf(condition) for name, condition in conditions.items()}
    return model, intersect(known.model.schema, known.evidence, conditions), log_missing


def log_event(
    known: WeighedEvidence, event: Mapping[str, Any], as_regions: bool, n_jobs: int | None = -1
) -> np.ndarray:
    """log p(event | evidence), (n,); NaN where the evidence has probability 0."""
    model, both, log_missing = with_event(known, event, as_regions)
    log_both = np.full(len(both.value), -np.inf) if model is None else model.log_density(both, n_jobs) + log_missing
    with np.errstate(invalid="ignore"):
        return log_both - known.log_probability


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


class Posterior:
    """The joint distribution given evidence; made by `Joint.given`.

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
    weighed : WeighedEvidence
        The evidence and how well it fits: what explanations, pictures and other readers of a posterior take.

    Examples
    --------
    >>> import jointforest as jf
    >>> joint = jf.AdversarialForest(n_estimators=5, random_state=0).fit(jf.datasets.load_penguins()).joint_
    >>> big = joint.given("body_mass_g > 5000")
    >>> max(big.proba("species"), key=big.proba("species").get)
    'Gentoo'
    """

    def __init__(
        self,
        model: Distribution,
        evidence: Evidence,
        one: bool,
        text: str = "",
        log_missing: float = 0.0,
        before: Distribution | None = None,
    ) -> None:
        self.weighed = WeighedEvidence(model, evidence, one, text)
        self.before = model if before is None else before  # without evidence, of missing cells as well
        self._log_missing = log_missing  # of the cells that are said to be missing, which the model has taken up

    def __repr__(self) -> str:
        return f"Posterior({self.weighed})"

    def _repr_html_(self) -> str:
        weighed = self.weighed
        title = f"Given {weighed}" if str(weighed) else "Given nothing"
        if len(self) != 1:
            return posterior_html(title, weighed, 0.0, "", self.before)
        # of the state, which the cards need anyway: the evidence is propagated once
        log_probability = float(weighed.state.log_evidence) + float(weighed.evidence.log_penalty[0]) + self._log_missing
        n_rows = rows_like(weighed.model, weighed.evidence, np.array([log_probability]))
        support = in_words(float(n_rows[0]), weighed.model.schema.n_rows) if log_probability > -math.inf else ""
        return posterior_html(title, weighed, log_probability, support, self.before)

    def __len__(self) -> int:
        return len(self.weighed.evidence.value)

    # -- the evidence itself

    @property
    def log_probability(self) -> Any:
        return self.weighed.give(self.weighed.log_probability + self._log_missing)

    @property
    def n_rows(self) -> Any:
        return self.weighed.give(self._rows_like())

    def _rows_like(self) -> np.ndarray:
        weighed = self.weighed
        return rows_like(weighed.model, weighed.evidence, weighed.log_probability + self._log_missing)

    def standard_error(self, of: str | Mapping[str, Any], n_jobs: int | None = -1) -> Any:
        """Standard error of an answer, from the number of training rows that the evidence stands for.

        It is the error of a share or a mean of `n_rows` independent rows. It does not contain the error of a model
        that is wrong. Where answers share rows, models vary less than it says.

        Parameters
        ----------
        of : str or dict
            A column: the error of its mean, or of the probability of each of its levels. Anything else is an event as
            of `probability`, and the error is that of its probability.
        n_jobs : int or None
            Threads; the answer does not depend on it.

        Returns
        -------
        float, or float64 array (n,) for evidence of a frame; of a column of levels as `proba` gives probabilities

        Raises
        ------
        ValueError
            As of `probability` and `mean`; and if the joint does not know how many rows it was learned from.

        Notes
        -----
        ``docs/concepts/standard-errors.md`` has the formulas and their assumptions.

        Examples
        --------
        >>> import jointforest as jf
        >>> joint = jf.JointTree(random_state=0).fit(jf.datasets.load_penguins()).joint_
        >>> gentoo = joint.given(species="Gentoo")
        >>> round(gentoo.n_rows), round(gentoo.standard_error("sex = MALE"), 3)
        (124, 0.045)
        """
        schema = self.weighed.model.schema
        n_rows = self._rows_like()
        if np.isnan(n_rows).all():
            raise ValueError("the joint does not know how many rows it was learned from; learn it again from its table")
        if not (isinstance(of, str) and of in schema.names):
            return self.weighed.give(share_error(np.atleast_1d(self.probability(of, n_jobs)), n_rows))
        if schema[of].is_categorical:
            share = self.proba(of, n_jobs)
            if isinstance(share, dict):
                return {level: float(share_error(np.array([p]), n_rows)[0]) for level, p in share.items()}
            return share_error(share, n_rows[:, None])
        if schema[of].kind == "datetime":
            raise ValueError(f"column {of!r}: the standard error of a date is not defined; ask for that of an event")
        return self.weighed.give(mean_error(np.atleast_1d(self.var(of, n_jobs)), n_rows))

    @property
    def background_weight(self) -> Any:
        return self.weighed.give(self.weighed.background_share)

    @property
    def supported(self) -> Any:
        supported = self.weighed.background_share <= SUPPORT
        return bool(supported[0]) if self.weighed.one else supported

    @property
    def leaves(self) -> LeafPosterior:
        """The leaves that the evidence meets, with log p(leaf, evidence): see `models.box_forest.posterior`."""
        return posterior(self.weighed.model.forest_for("a table of leaves"), self.weighed.evidence)

    def explain(self, k: int = 10, n_jobs: int | None = -1) -> Explanation:
        """The leaves, or hidden states, that carry the answers, as rules, the heaviest first.

        Parameters
        ----------
        k : int
            Most of them to list.
        n_jobs : int or None
            Threads; the answer does not depend on it.

        Returns
        -------
        Explanation
            Prints as a table. Each dict of its ``rules`` has ``rule`` (the leaf's box in the query language; '' if it
            is unbounded), ``weight`` (posterior, all leaves' sum to 1), ``log_weight`` (log p(leaf, evidence)),
            ``tree``, ``leaf``, ``kind`` ("leaf", "circuit", "Chow-Liu leaf" or "background") and ``says``: given the
            leaf and the evidence, by column, ``{"mean", "low", "high"}`` (the interval of equal tails that holds 90 %),
            or ``{"levels": {level: probability}}`` of the three most probable. Columns of known value are left out.
            Hidden states have the kind ``"state"``, ``column`` and ``state`` in place of ``leaf``; they are those of
            the node, in each tree, of which the evidence tells most. A state's rule names what sets it apart: at most
            three columns, those farthest from the whole table, each with what holds 90 % of it in the state. In
            mixtures ``part`` is the number of the part.

        Raises
        ------
        ValueError
            If there are several rows of evidence, it has probability 0, or k is no positive integer.

        Notes
        -----
        Nyga, Picklum, Schierenbeck, Beetz, "Joint Probability Trees" (2023), section 3: a leaf is the path to it.

        Examples
        --------
        >>> import jointforest as jf
        >>> joint = jf.JointTree(random_state=0).fit(jf.datasets.load_penguins()).joint_
        >>> found = joint.given(species="Gentoo").explain(1).rules[0]
        >>> found["kind"], joint.probability("species = Gentoo", given=found["rule"]) > 0.9
        ('circuit', True)
        """
        if len(self) != 1:
            raise ValueError(
                f"explain speaks of one row of evidence, got {len(self)}; pick one: given(frame[i : i + 1])"
            )
        self.weighed.check(n_jobs)
        return explain(self.weighed.model, self.weighed.evidence, k, n_jobs)

    # -- numbers

    def mean(self, column: str, n_jobs: int | None = -1) -> Any:
        """Mean of a numeric or date-time column; P(True) of a boolean one.

        Raises
        ------
        ValueError
            If the column is unknown, or categorical, or one row's evidence has probability 0.
        """
        return self.marginal(column).mean(n_jobs)

    def var(self, column: str, n_jobs: int | None = -1) -> Any:
        """Variance, like `mean`; of a date-time column in seconds squared."""
        return self.marginal(column).var(n_jobs)

    def std(self, column: str, n_jobs: int | None = -1) -> Any:
        """Standard deviation, like `mean`; of a date-time column a timedelta64."""
        return self.marginal(column).std(n_jobs)

    def quantile(self, column: str, q: float | Sequence[float], n_jobs: int | None = -1) -> Any:
        """Quantiles inf{x: P(column <= x) >= q} of a numeric, date-time, ordered or boolean column.

        Parameters
        ----------
        column : str
        q : float or sequence of k floats
            Levels, more than 0 and less than 1.
        n_jobs : int or None
            Threads.

        Returns
        -------
        scalar, or array (k,) for a sequence; of a frame (n,) or (n, k)
        """
        return self.marginal(column).ppf(q, n_jobs)

    def interval(self, column: str, level: float = 0.9, n_jobs: int | None = -1) -> tuple[Any, Any]:
        """Bounds (lo, hi) of the interval with equal tails that holds this share of the distribution."""
        return self.marginal(column).interval(level, n_jobs)

    def cov(self, a: str, b: str, n_jobs: int | None = -1) -> Any:
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
        >>> import jointforest as jf
        >>> joint = jf.JointTree(random_state=0).fit(jf.datasets.load_penguins()).joint_
        >>> joint.given().cov("flipper_length_mm", "body_mass_g") > 0
        True
        """
        return covariance_of(self.weighed, a, b, False, n_jobs)

    def corr(self, a: str, b: str, n_jobs: int | None = -1) -> Any:
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
        >>> import jointforest as jf
        >>> joint = jf.JointTree(random_state=0).fit(jf.datasets.load_penguins()).joint_
        >>> 0.7 < joint.given().corr("flipper_length_mm", "body_mass_g") < 1.0
        True
        """
        return covariance_of(self.weighed, a, b, True, n_jobs)

    # -- probabilities

    def proba(self, column: str, n_jobs: int | None = -1) -> Any:
        """Distribution over the levels of a categorical, ordered or boolean column.

        Returns
        -------
        dict of level to probability, or of a frame float64 array (n, K) in the order of ``Joint.levels(column)``
        """
        return self.marginal(column).proba(n_jobs)

    def probability(self, event: str | Mapping[str, Any], n_jobs: int | None = -1) -> Any:
        """Probability of an event given the evidence.

        Parameters
        ----------
        event : str or dict
            ``"age >= 40 and sex = 'Female'"``, or conditions by column. Its columns may be in the evidence too.
        n_jobs : int or None
            Threads.

        Raises
        ------
        ValueError
            If there is soft evidence in the event: it neither happens nor not.
        """
        schema = self.weighed.model.schema
        conditions = conditions_of(schema, event)
        check_hard(conditions)
        for name, condition in conditions.items():
            refuse_pair(schema[name], condition)
        self.weighed.check(n_jobs)
        share = np.exp(np.minimum(log_event(self.weighed, conditions, True, n_jobs), 0.0))
        return self.weighed.give(share) if len(share) == 1 else share

    def compare(
        self, comparison: str, n_samples: int = N_SAMPLES, random_state: Any = None, n_jobs: int | None = -1
    ) -> Estimate:
        """Probability of a comparison of columns, such as ``"arrival - departure > 10"``.

        Parameters
        ----------
        comparison : str
            Two sums of columns and numbers, joined by ``< <= > >= = !=``; or two columns of levels.
        n_samples : int
            Draws to take where the answer is not exact.
        random_state : None, int, Generator or RandomState
        n_jobs : int or None
            Threads; the answer does not depend on it.

        Returns
        -------
        Estimate
            ``value``, ``standard_error``, ``method``. Exact of columns of levels, of two columns one of which is
            known, or has a grid of at most 4,096 cells that matter, and of whether two columns are equal one of which
            has no grid.

        Raises
        ------
        ValueError
            If the text is no such comparison, or there are several rows of evidence, or it has probability 0.

        Examples
        --------
        >>> import jointforest as jf
        >>> joint = jf.JointTree(random_state=0).fit(jf.datasets.load_penguins()).joint_
        >>> found = joint.given(species="Gentoo").compare("bill_length_mm > 3 * bill_depth_mm")
        >>> found.method, found.value > 0.5
        ('exact', True)
        """
        compared = self._compared(comparison)
        if len(compared) != 1:
            raise ValueError(f"expected a comparison of columns as text, such as 'a > b', got {comparison!r}")
        return probability_of(self.weighed, compared, n_samples, random_state, n_jobs)

    def _compared(self, text: str) -> tuple[Comparison, ...]:
        """The comparisons of columns that a text consists of."""
        event, compared = self._event(text) if isinstance(text, str) else ((), ())
        if event or not compared:
            raise ValueError(f"expected a comparison of columns as text, such as 'a > b', got {text!r}")
        return compared

    def _event(self, text: str) -> tuple[Conditions, tuple[Comparison, ...]]:
        """The conditions by column, and the comparisons of columns, of a text."""
        return parse_event(text, self.weighed.model.schema.kinds, self.weighed.model.schema.reasons_aside)

    def _where(self, text: str | None, missing: bool) -> tuple[WeighedEvidence, tuple[Comparison, ...]]:
        """The evidence with the conditions of a text added, and its comparisons of columns."""
        if text is None:
            return self.weighed, ()
        if not isinstance(text, str):
            raise TypeError(f"where: expected text, such as 'a > b, c in {{1, 2}}', got {type(text).__name__}")
        event, compared = self._event(text)
        if compared and missing:
            raise ValueError("missing=True: cells of rows that are compared are known; leave missing or where out")
        if not event:
            return self.weighed, compared
        check_hard(dict(event))
        model, _, known = taken_up(self.weighed.model, dict(event))
        evidence = intersect(model.schema, self.weighed.evidence, known)
        text = ", ".join(part for part in (self.weighed.text, conditions_text(dict(event))) if part)
        return WeighedEvidence(model, evidence, self.weighed.one, text), compared

    def marginal(self, column: str) -> Marginal:
        """Distribution of one column, with ``pdf``, ``cdf``, ``ppf``, ``mean``, ``var``, ``std``, ``sample``."""
        return Marginal(self.weighed, column)

    def marginals(self) -> dict[str | int, Marginal]:
        """`marginal` of every column, in the table's order.

        Examples
        --------
        >>> import jointforest as jf
        >>> joint = jf.JointTree(random_state=0).fit(jf.datasets.load_penguins()).joint_
        >>> found = joint.given(species="Gentoo").marginals()
        >>> bool(found["body_mass_g"].mean() > 4500), found["island"].pmf("Biscoe") > 0.9
        (True, True)
        """
        return {column.label: Marginal(self.weighed, column.name) for column in self.weighed.model.schema.columns}

    def pair(self, a: str, b: str, bins: int = 20, n_jobs: int | None = -1) -> Pair:
        """Joint distribution of two columns, in bins, exact: what a picture of two columns shows.

        Parameters
        ----------
        a, b : str
        bins : int
            Bins of a column of numbers or dates, evenly cut between its 1 % and 99 % quantiles; each level is a bin.
        n_jobs : int or None
            Threads.

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
        >>> import jointforest as jf
        >>> joint = jf.JointTree(random_state=0).fit(jf.datasets.load_penguins()).joint_
        >>> found = joint.given("body_mass_g > 4000").pair("species", "bill_length_mm", bins=5)
        >>> found.a, found.probability.shape, round(float(found.probability.sum()), 9)
        (('Adelie', 'Chinstrap', 'Gentoo'), (3, 5), 1.0)
        """
        return pair(self.weighed, a, b, bins, n_jobs)

    def mode(self, k: int = 1, budget: int = BUDGET) -> Modes:
        """Most probable complete rows that agree with one row of evidence (MPE), with a certified bound.

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

        Notes
        -----
        What counts as a mode, and what is exact: ``docs/how-to/find-modes.md``.

        Examples
        --------
        >>> import jointforest as jf
        >>> joint = jf.AdversarialForest(n_estimators=5, random_state=0).fit(jf.datasets.load_penguins()).joint_
        >>> best = joint.given(species="Gentoo").mode()
        >>> best.rows["island"].iloc[0], bool(best.log_density[0] <= best.log_bound)
        ('Biscoe', True)
        """
        check_number("k", k, 1, whole=True, text="a positive integer")
        check_number("budget", budget, 0, whole=True, text="an integer of 0 or more")
        if len(self) != 1:
            raise ValueError(f"mode: expected evidence of one row, got {len(self)} rows")
        self.weighed.check()
        found = model_modes(self.weighed.model, self.weighed.evidence, int(k), int(budget))
        return Modes(decode(self.weighed.model.schema, found.X), found.log_density, found.log_bound)

    # -- draws

    def sample(
        self,
        n: int = 1,
        random_state: Any = None,
        missing: bool = False,
        n_jobs: int | None = -1,
        *,
        where: str | None = None,
    ) -> Any:
        """Draw n rows for each row of evidence, which they keep; a frame as at learning.

        Parameters
        ----------
        n : int
        random_state : None, int, Generator or RandomState
        missing : bool
            Also draw which cells are missing, as often as at learning.
        n_jobs : int or None
            Threads; the draws do not depend on it.
        where : str, optional
            What holds in all rows: ranges, sets and missing cells, as in `Joint.given`, and comparisons of columns,
            such as ``"age >= 40, sex in {Female}, arrival > departure, 2 * a < b + 1"``; comparisons are of one row of
            evidence. All draws are exact; those without comparisons, of one comparison of two columns of levels, or of
            two of which one is known or has a grid of at most 4,096 cells, need no rejection ("Draws" in
            ``docs/reference/query-language.md``).

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
        >>> import jointforest as jf
        >>> joint = jf.JointTree(random_state=0).fit(jf.datasets.load_penguins()).joint_
        >>> rows = joint.given(species="Adelie").sample(50, random_state=0, where="bill_length_mm < 2 * bill_depth_mm")
        >>> bool((rows["bill_length_mm"] < 2 * rows["bill_depth_mm"]).all())
        True
        """
        weighed, compared = self._where(where, missing)
        if compared:
            check_draws(weighed, n)
            none = np.empty((0, len(weighed.model.schema.names)))
            rows = np.concatenate([none, *drawn_where(weighed, compared, n, random_state, n_jobs)])
        else:
            rows = draw(weighed, n, random_state, missing, n_jobs)
        return decode(weighed.model.schema, rows, 0)

    def sample_batches(
        self,
        n: int,
        random_state: Any = None,
        missing: bool = False,
        n_jobs: int | None = -1,
        *,
        where: str | None = None,
    ) -> Iterator[Any]:
        """The rows that `sample` draws for the same ``random_state``, some at a time: for more than memory holds.

        Parameters
        ----------
        n : int
        random_state : None, int, Generator or RandomState
        missing : bool
            Also draw which cells are missing, as often as at learning.
        n_jobs : int or None
            Threads; the draws do not depend on it.
        where : str, optional
            What holds in all rows, as of `sample`.

        Returns
        -------
        iterator of frames
            Of 262,144 rows, the last one of fewer; none if n is 0.

        Raises
        ------
        ValueError
            If there are several rows of evidence, or n is no number of rows; of ``where`` as `sample` raises it, while
            rows are drawn if too few are kept.
        TypeError
            If ``where`` is no text.

        Examples
        --------
        >>> import jointforest as jf
        >>> joint = jf.JointTree(random_state=0).fit(jf.datasets.load_penguins()).joint_
        >>> [len(rows) for rows in joint.given(species="Gentoo").sample_batches(300_000, random_state=0)]
        [262144, 37856]
        """
        weighed, compared = self._where(where, missing)
        if compared:
            drawn = drawn_where(weighed, compared, n, random_state, n_jobs)
        else:
            drawn = draw_batches(weighed, n, random_state, missing, n_jobs)
        return _decoded(weighed.model.schema, drawn)


def _decoded(schema: Schema, drawn: Iterable[np.ndarray]) -> Iterator[Any]:
    """Frames of drawn rows, batch by batch."""
    first = 0
    for rows in drawn:
        yield decode(schema, rows, first)
        first += len(rows)


def posterior_of(model: Distribution, known: dict[str, Any]) -> Posterior:
    """The posterior of one row of conditions by column, or of one row a value where a condition has one a row."""
    one = all(n_rows(condition) is None for condition in known.values())
    said = {name: normal(condition) for name, condition in known.items()} if one else {}
    text = conditions_text({name: condition for name, condition in said.items() if condition is not None})
    before = model
    model, log_missing, known = taken_up(model, known)
    return Posterior(model, build(model.schema, conditions=known), one, text, log_missing, before)


def taken_up(model: Distribution, known: Mapping[str, Any]) -> tuple[Distribution, float, dict[str, Any]]:
    """The model given which cells are said to be missing, the log-probability of that, and the other conditions.

    Raises
    ------
    ValueError
        If that has probability 0.
    """
    rest, missing = without_missing(known)
    given, log_missing = model.given_missing_cells(missing)
    if given is None:
        text = conditions_text({name: Missing() if is_it else Not(Missing()) for name, is_it in missing.items()})
        raise ValueError(
            f"the evidence has probability 0: {text}; at learning such cells were never, or always, missing"
        )
    return given, log_missing, rest


def conditions_of(schema: Schema, said: Any) -> dict[str, Any]:
    """Conditions by column of a text, a dict, or a pandas Series whose index holds names of columns.

    Raises
    ------
    TypeError
        If it is neither.
    """
    if nw.dependencies.is_pandas_series(said):
        said = said.to_dict()
    if isinstance(said, str):
        return dict(parse_conditions(said, schema.kinds, schema.reasons_aside))
    if isinstance(said, Mapping):
        return {schema[name].name: condition for name, condition in said.items()}
    expected = "a text such as 'age >= 40', or a dict (or pandas Series) of conditions by column"
    raise TypeError(f"expected {expected}, got {type(said).__name__}")
