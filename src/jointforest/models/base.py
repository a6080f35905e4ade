"""The base classes: a joint distribution over the columns of a schema, and its posterior given evidence.

A new kind of distribution is one folder beside `box_forest/` and `hidden_tree/`: a subclass of `Distribution` and one
of `PosteriorState`. Everything else is written once, on top of these two classes.

Conventions, which hold for every method:

- ``evidence`` has n rows. ``j`` is the number of a column. Columns of numbers have moments, CDF and quantiles; columns
  of levels have level probabilities.
- An answer about column j counts what the evidence knows of column j itself: a known value has a variance of 0.
- Where the evidence of a row has probability 0, the answers of that row are NaN.
- A column that a rule makes missing in some rows is asked about in the others: see `PosteriorState.knowing`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from ..data.evidence import Evidence
from ..data.schema import Schema

if TYPE_CHECKING:
    from .box_forest.box_trees import BoxTrees
    from .box_forest.structure import Forest
    from .hidden_tree.column import HiddenState
    from .hidden_tree.hidden_trees import HiddenTrees


class Distribution(ABC):
    """A joint distribution over all columns of a schema. Immutable.

    kind : str. The name of the kind in errors and files, such as ``"forest"``. Each subclass sets it.
    """

    kind: str

    @property
    @abstractmethod
    def schema(self) -> Schema: ...

    # ---- required

    @abstractmethod
    def with_schema(self, schema: Schema) -> Distribution:
        """The same distribution of columns that are described otherwise: another frame, or another number of rows."""

    @abstractmethod
    def log_density(self, evidence: Evidence) -> np.ndarray:
        """log p(evidence) with the evidence's penalty, (n,); -inf where it is impossible."""

    @abstractmethod
    def observe(self, evidence: Evidence) -> PosteriorState:
        """The evidence propagated once, whatever is asked afterwards."""

    @abstractmethod
    def sample(self, evidence: Evidence, m: int, seed: int, missing: bool) -> np.ndarray:
        """m draws for each row, contiguous, (n * m, d). Known values stay as they are. With ``missing``, cells of which
        nothing is known are missing as often as at learning."""

    @abstractmethod
    def condition(self, evidence: Evidence) -> Distribution:
        """The distribution of all columns given one row of evidence."""

    @abstractmethod
    def marginalize(self, columns: list[int]) -> Distribution:
        """The marginal distribution of some columns, in the order of the table."""

    @abstractmethod
    def given_missing(self, j: int, is_missing: bool) -> tuple[Distribution | None, float]:
        """The distribution given that cell j is missing, or is not, and the log-probability of that; None if 0."""

    # ---- default implementations, which a subclass may replace by something exact or faster

    @property
    def components(self) -> tuple[Distribution, ...]:
        """The distributions that a mixture sums, weighted by `log_weight`; any other kind is its only component."""
        return (self,)

    @property
    def log_weight(self) -> np.ndarray:
        """Log of each component's weight, (K,); ``exp`` of it sums to 1."""
        return np.zeros(1)

    @cached_property
    def kept_views(self) -> dict[int, Any]:
        """What the views in notebooks keep of each column, by its number; views of all posteriors share it."""
        return {}

    def observe_by_trees(self, evidence: Evidence, beta: float) -> PosteriorState:
        """The posterior with tree t weighted by p_t(evidence)^beta; 1 is the joint itself, others need a forest."""
        if beta != 1.0:
            self.forest_for("weighing trees by beta")
        return self.observe(evidence)

    missing_by_rule: frozenset[str] = frozenset()
    """Columns whose cells are missing only where a rule excludes a value."""

    def has_exact_density(self, columns: list[int]) -> bool:
        """Whether densities of values of some columns are exact, and not estimated from draws."""
        return True

    def impute(self, evidence: Evidence) -> tuple[np.ndarray, np.ndarray]:
        """Rows with means and most probable levels in their free cells (n, d), and background weights (n,). On a grid a
        mean moves to the nearest cell centre. Rows whose evidence has probability 0 keep their NaNs."""
        X = evidence.value.copy()
        for j, column in enumerate(self.schema.columns):
            free = np.flatnonzero(np.isnan(X[:, j]))
            if not len(free):
                continue
            state = self.observe(evidence.take(free))
            if column.is_categorical:
                p = state.level_probabilities(j)
                X[free, j] = np.where(np.isnan(p[:, 0]), np.nan, p.argmax(axis=1))
                continue
            mean = state.moments(j)[0]
            if column.step > 0.0:
                mean = column.center + np.rint((mean - column.center) / column.step) * column.step
            X[free, j] = mean
        return X, self.observe(evidence).background_weight()

    def attribution(self, evidence: Evidence) -> np.ndarray:
        """log p(cell | the other known cells of its row), (n, d), by the chain rule: log p(x) - log p(x without j). NaN
        where nothing is known of the cell, and where the rest of the row has probability 0."""
        known = ~np.isnan(evidence.value) | (evidence.cell_regions() >= 0)
        complete = self.log_density(evidence)
        without = self.log_density_without_each(evidence, known)
        with np.errstate(invalid="ignore"):  # -inf - -inf
            return np.where(known, complete[:, None] - without, np.nan)

    def given_known(self, columns: Sequence[int]) -> Distribution:
        """The distribution of the rows in which some columns have a value, which no rule makes missing. Raises
        ValueError if there are no such rows."""
        return self

    def is_seen(self, evidence: Evidence) -> np.ndarray:
        """Whether a row may have the values of each row of evidence, by the rules, bool (n,). `log_density`
        takes a combination of values that was never seen for missing cells, at a penalty, as it comes in rows of new
        tables. Sums over all combinations leave it out."""
        return np.ones(len(evidence.value), bool)

    def given_missing_cells(
        self, missing: Mapping[str, bool], known: Sequence[str] = ()
    ) -> tuple[Distribution | None, float]:
        """The distribution given which cells are missing, by column name, and the log-probability of that. None and
        -inf where that is impossible, as in columns without a missing cell at learning, or together with values of the
        ``known`` columns."""
        given: Distribution = self
        log_probability = 0.0
        for name, is_missing in missing.items():
            conditioned, log_p = given.given_missing(self.schema.index(name), is_missing)
            if conditioned is None:
                return None, -np.inf
            given = conditioned
            log_probability += log_p
        for name in known if any(missing.values()) else ():
            if given.given_missing(self.schema.index(name), False)[0] is None:
                return None, -np.inf
        return given, log_probability

    def given_evidence_present(
        self, evidence: Evidence, missing: Mapping[str, bool] | None = None
    ) -> list[tuple[np.ndarray, Distribution | None, float]]:
        """Groups of rows of evidence about the same columns, with the distribution given that these cells are present.
        ``missing`` states whether further cells are missing. The third entry is the log-probability of both; the
        distribution is None where it is -inf."""
        said, which = np.unique(~np.isnan(evidence.value) | (evidence.cell_regions() >= 0), axis=0, return_inverse=True)
        found = []
        for k, columns in enumerate(said):
            known = {self.schema.names[j]: False for j in np.flatnonzero(columns).tolist()}
            given: Distribution | None = self
            log_p = 0.0
            if any((missing or {}).get(name, False) for name in known):
                given, log_p = None, -np.inf  # no cell is known and missing
            elif cells := dict(missing or {}) | known:  # by a rule, a known cell implies that another one has a value
                given, log_p = self.given_missing_cells(cells)
            found.append((np.flatnonzero(which.reshape(-1) == k), given, log_p))
        return found

    def sample_and_weigh(self, evidence: Evidence, m: int, seed: int, missing: bool) -> tuple[np.ndarray, np.ndarray]:
        """`sample`, and the background weights (n,); m is at least 1."""
        return self.sample(evidence, m, seed, missing), self.observe(evidence).background_weight()

    def completions(self, evidence: Evidence, count: np.ndarray, seed: int) -> np.ndarray:
        """count (n,) draws for each row, contiguous, (sum of count, d), as `sample` has them without missing cells. All
        rows share the random numbers: the draws of a row depend on the row, its count and the seed, and not on other
        rows. So draws of different rows are not independent. Subclasses spread the draws of a row evenly over what is
        possible, so a mean over them has less variance than one over independent draws."""
        rows = np.arange(len(evidence.value))
        of_rows = [self.sample(evidence.take(rows[i : i + 1]), int(count[i]), seed, False) for i in rows]
        return np.concatenate([np.empty((0, evidence.value.shape[1])), *of_rows])

    def log_density_without_each(self, evidence: Evidence, known: np.ndarray) -> np.ndarray:
        """log p(evidence without cell j) of each row and column, (n, d); any number where ``known`` (n, d) is False."""
        out = np.zeros(known.shape)
        for j in range(known.shape[1]):
            rows = np.flatnonzero(known[:, j])
            out[rows, j] = self.log_density(evidence.take(rows).without(j))
        return out

    def means_without_each(self, evidence: Evidence, asked: Mapping[int, np.ndarray]) -> dict[int, np.ndarray]:
        """Means (r, 1), or probabilities of levels (r, K), of columns in r rows each whose own cells are not known."""
        found = {}
        for j, rows in asked.items():
            state = self.observe(evidence.take(rows).without(j))
            is_level = self.schema.columns[j].is_categorical
            found[j] = state.level_probabilities(j) if is_level else state.moments(j)[0][:, None]
        return found

    def modes(self, evidence: Evidence, k: int, budget: int) -> tuple[np.ndarray, float]:
        """Rows of high density that agree with one row of evidence (m, d), and a bound on any row's log-density."""
        raise ValueError(
            f"a certified mode needs a joint of forests and hidden trees; this one has the component: {self.kind}"
        )

    def why_impossible(self, evidence: Evidence) -> str:
        """What one row of evidence of probability 0 contradicts, for an error message; empty if unknown."""
        return ""

    # ---- what only some kinds have: the default is that this kind does not

    @property
    def is_forest(self) -> bool:
        """Whether the distribution is one forest of boxes."""
        return False

    def forest_for(self, question: str) -> Forest:
        """The forest of boxes, for a question that only forests answer; a ValueError that names the question."""
        kinds = ", ".join(component.kind for component in self.components)
        others = [component for component in self.components if not component.is_forest]
        # the last hint is that of hidden trees, if there are any: no option of their learner makes them a forest
        hint = next((component.forest_hint for component in reversed(others) if component.forest_hint), "")
        raise ValueError(
            f"{question} needs a joint that is one forest of boxes; this one has the components: {kinds}{hint}"
        )

    @property
    def forest_hint(self) -> str:
        """What `forest_for` advises: how to learn a forest of boxes instead of this kind."""
        return ""

    def box_trees(self) -> BoxTrees | None:
        """Trees of boxes, which rules and pictures of trees are read from; None of a kind without them."""
        return None

    def box_trees_for(self, question: str) -> BoxTrees:
        """The trees of boxes; a ValueError that names the question of a kind without them."""
        trees = self.box_trees()
        if trees is None:
            self.forest_for(question)  # whose error says what is needed
            raise AssertionError(f"{self.kind} is a forest without trees")
        return trees

    def hidden_trees(self) -> HiddenTrees | None:
        """Tables of hidden trees, whose codes have closed forms; None of a kind without them."""
        return None

    def heaviest_states(self, evidence: Evidence, k: int) -> tuple[list[HiddenState], int] | None:
        """The k hidden states of greatest weight given one row of evidence, and how many have any; None of a kind
        without states."""
        return None

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What a `.joint` file holds: plain data with the ``kind``, and named arrays."""
        raise ValueError(
            f"a model file holds forests and hidden trees; this joint has a component of the kind {self.kind!r}"
        )

    def size(self) -> dict[str, int]:
        """Numbers of ``trees`` and of ``leaves`` or ``states``, the background not counted, as far as there are any."""
        return {}

    def density_breaks(self, j: int) -> list[np.ndarray]:
        """Points of column j between which the density is smooth, for quadrature."""
        return []

    def density_cost(self) -> float:
        """The cost of one density, in visited leaves of a forest."""
        return 0.0

    def mode_cost(self) -> int:
        """The cost of one step in the search for modes, in entries of transition tables; 0 where kernels search."""
        return 0


@dataclass(eq=False)
class PosteriorState(ABC):
    """The posterior of a distribution given n rows of evidence; it keeps what several questions have in common."""

    distribution: Distribution
    evidence: Evidence

    # ---- required

    @abstractmethod
    def background_weight(self) -> np.ndarray:
        """Posterior weight of the background, 0 to 1, (n,); NaN where the evidence has probability 0. Callers recognise
        impossible evidence by the NaN, and warn of evidence whose weight exceeds one half. A kind without a background
        returns 0, or 1 where only the tails of its columns answer."""

    @abstractmethod
    def level_probabilities(self, j: int) -> np.ndarray:
        """Probability of each of the K levels of column j, (n, K)."""

    @abstractmethod
    def moments(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of column j, each (n,)."""

    @abstractmethod
    def cdf(self, j: int, x: np.ndarray) -> np.ndarray:
        """P(column j <= x) at q points, (n, q)."""

    @abstractmethod
    def pdf(self, j: int, x: np.ndarray) -> np.ndarray:
        """Density of column j at q points, (n, q); on a grid the mass of the cell over the step."""

    @abstractmethod
    def quantile(self, j: int, q: np.ndarray) -> np.ndarray:
        """inf{x: P(column j <= x) >= q} at k levels, (n, k)."""

    @abstractmethod
    def covariance(self, a: int, b: int) -> np.ndarray:
        """Covariance of two columns of numbers, or booleans (True counts 1), (n,)."""

    # ---- default implementations

    def knowing(self, columns: Sequence[int]) -> PosteriorState:
        """The posterior given also that some columns have a value, which no rule makes missing; itself if that is sure.
        Every answer about columns is of this posterior."""
        return self

    def prepare(self, columns: Sequence[int]) -> None:
        """Find at once what questions about each of these columns need, if it is kept."""
        return None

    def histogram(self, j: int, cuts: np.ndarray) -> np.ndarray:
        """Mass below, between and above q ascending cuts of column j, (n, q + 1); of a column of levels, each level."""
        if self.distribution.schema.columns[j].is_categorical:
            return self.level_probabilities(j)
        below = self.cdf(j, np.append(cuts, np.inf))
        return np.maximum(np.diff(below, axis=1, prepend=0.0), 0.0)

    def mean_and_histogram(self, j: int, cuts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means (n,) and the histogram (n, q + 1) of a numeric column, which may cost less together."""
        return self.moments(j)[0], self.histogram(j, cuts)

    def center(self, j: int) -> np.ndarray:
        """Mean of a column of numbers, P(True) of a boolean one, (n,)."""
        column = self.distribution.schema.columns[j]
        if column.is_categorical:
            return self.level_probabilities(j) @ np.array([float(level) for level in column.levels])
        return self.moments(j)[0]

    def completions(self, count: np.ndarray, seed: int) -> np.ndarray:
        """`Distribution.completions` of the evidence."""
        return self.distribution.completions(self.evidence, count, seed)

    def levels_and_log_probability(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        """`level_probabilities` (n, K) of column j and `log_probability` (n,), which may cost less together."""
        return self.level_probabilities(j), self.log_probability()

    def parts(self, j: int) -> Parts:
        """What the answers about column j are mixed from, given the first row; of one part if nothing better is known.
        The one part is all rows that satisfy the evidence, so that only the rows that the evidence stands for count."""
        column = self.distribution.schema.columns[j]
        if column.is_categorical:
            mean = self.level_probabilities(j)[:1]
            return Parts(np.zeros(1), np.ones(1), mean, mean * (1.0 - mean))
        mean, variance = self.moments(j)
        return Parts(np.zeros(1), np.ones(1), mean[:1, None], variance[:1, None])

    @property
    def component_weights(self) -> np.ndarray:
        """p(component k | evidence), (n, K), by the components of the distribution; ones of a single component."""
        return np.ones((len(self.evidence.value), 1))

    def log_probability(self) -> np.ndarray:
        """log p(evidence) of each row with the evidence's penalty, (n,): `Distribution.log_density`."""
        return self.distribution.log_density(self.evidence)

    @property
    def effective_draws(self) -> np.ndarray:
        """How many draws of equal weight the answers for each row are estimated from, (n,); inf where exact."""
        return np.full(len(self.evidence.value), np.inf)

    @cached_property
    def log_evidence(self) -> float:
        """log p(evidence) of the first row, without the evidence's penalty."""
        return float(self.distribution.log_density(self.evidence)[0] - self.evidence.log_penalty[0])

    def quantile_points(self, j: int, q: np.ndarray) -> np.ndarray:
        """Where the quantiles of column j lie for the first row, ascending; in a mixture those of each component."""
        points = np.unique(self.quantile(j, q)[0])
        return points[~np.isnan(points)]

    def missing_probabilities(self, columns: Sequence[int]) -> np.ndarray:
        """P(cell j is missing | the first row) of some columns without evidence, (len(columns),). Evidence about a
        column implies that its cell is known."""
        first = self.evidence.take(np.zeros(1, np.int64))
        ((_, given, _),) = self.distribution.given_evidence_present(first)
        if given is None:
            return np.full(len(columns), np.nan)
        return (self if given is self.distribution else given.observe(first)).missing_shares(columns)

    def missing_shares(self, columns: Sequence[int]) -> np.ndarray:
        """`missing_probabilities` where evidence does not imply which cells are known."""
        return np.array([self._missing_probability(j) for j in columns])

    def _missing_probability(self, j: int) -> float:
        """By Bayes' rule: how probable the evidence is where the cell is missing."""
        given, log_missing = self.distribution.given_missing(j, True)
        if given is None:
            return 0.0
        log_evidence = self.log_evidence + float(self.evidence.log_penalty[0])
        return math.exp(float(given.log_density(self.evidence)[0]) + log_missing - log_evidence)


class Parts(NamedTuple):
    """The K leaves or hidden states whose answers about one column are mixed, given one row of evidence.

    prior : float64 array (K,). p(part), or 0 where only rows that satisfy the evidence are in a part.
    weight : float64 array (K,). p(part | evidence); sums to 1.
    mean, variance : float64 array (K, L). The column in each part, given the evidence: probabilities p of its
        L levels and p (1 - p), or the mean and the variance of its numbers (L = 1). Anything in parts of weight 0.
    """

    prior: np.ndarray
    weight: np.ndarray
    mean: np.ndarray
    variance: np.ndarray


_Asked = TypeVar("_Asked", bound=Callable[..., Any])


def of_known(ask: _Asked) -> _Asked:
    """The method, which answers about one column or two, asked given that these have values: see `knowing`."""
    n_columns = 2 if ask.__name__ == "covariance" else 1

    @wraps(ask)
    def asked(self: PosteriorState, *arguments: Any, **named: Any) -> Any:
        return ask(self.knowing(arguments[:n_columns]), *arguments, **named)

    return asked  # type: ignore[return-value] # of the same signature
