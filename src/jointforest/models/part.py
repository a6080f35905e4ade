"""What a part of a model must answer; a kind of part is a class that fills this protocol."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from ..data.evidence import Evidence
from ..data.schema import Schema


class Part(Protocol):
    """A distribution over all columns of a schema that answers for itself.

    ``evidence`` has n rows, ``j`` is a column's number, ``n_jobs`` the number of threads, on which no answer depends.
    Where a row's evidence has probability 0, answers are NaN. ``known`` is what `weigh` gave for this evidence, or
    None. What mixes the answers of several parts is in `queries`; the mathematics is in docs/design.md, "Parts".

    Attributes
    ----------
    kind : str
        What errors call it, such as ``"forest"``.
    schema : Schema
    """

    @property
    def kind(self) -> str: ...

    @property
    def schema(self) -> Schema: ...

    def log_density(self, evidence: Evidence, n_jobs: int | None = -1) -> np.ndarray:
        """log p(evidence) with the evidence's penalty, (n,); -inf where it is impossible."""
        ...

    def weigh(self, evidence: Evidence) -> Any:
        """What the questions about one row of evidence have in common, so that it is worked out once."""
        ...

    def background_share(self, evidence: Evidence, n_jobs: int | None = -1, known: Any = None) -> np.ndarray:
        """Share of the part's posterior that its background has, 0..1, (n,)."""
        ...

    def level_probability(self, evidence: Evidence, j: int, n_jobs: int | None = -1, known: Any = None) -> np.ndarray:
        """Probability of each of the K levels of a categorical column, (n, K)."""
        ...

    def mean_variance(
        self, evidence: Evidence, j: int, n_jobs: int | None = -1, known: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of a numeric column, each (n,)."""
        ...

    def cdf(self, evidence: Evidence, j: int, x: np.ndarray, n_jobs: int | None = -1, known: Any = None) -> np.ndarray:
        """P(column <= x) of a numeric column at q points, (n, q)."""
        ...

    def pdf(self, evidence: Evidence, j: int, x: np.ndarray, n_jobs: int | None = -1, known: Any = None) -> np.ndarray:
        """Density of a numeric column at q points, (n, q); on a grid mass of the cell over the step."""
        ...

    def histogram(
        self, evidence: Evidence, j: int, cuts: np.ndarray, n_jobs: int | None = -1, known: Any = None
    ) -> np.ndarray:
        """Probability of the bins below, between and above q ascending cuts, (n, q + 1); or of levels, without cuts."""
        ...

    def quantile(
        self, evidence: Evidence, j: int, q: np.ndarray, n_jobs: int | None = -1, known: Any = None
    ) -> np.ndarray:
        """inf{x: P(column <= x) >= q} of a numeric column at k levels, (n, k)."""
        ...

    def covariance(self, evidence: Evidence, a: int, b: int, known: Any = None) -> np.ndarray:
        """Covariance of two columns of numbers, or booleans (True counts 1), (n,)."""
        ...

    def sample(self, evidence: Evidence, m: int, seed: int, missing: bool, n_jobs: int | None = -1) -> np.ndarray:
        """m draws for each row, contiguous, (n * m, d); with ``missing``, cells blank as often as at learning."""
        ...

    def sample_and_weigh(
        self, evidence: Evidence, m: int, seed: int, missing: bool, n_jobs: int | None = -1
    ) -> tuple[np.ndarray, np.ndarray]:
        """`sample` and `background_share` (n,); m is 1 at least."""
        ...

    def impute(self, evidence: Evidence, n_jobs: int | None = -1) -> tuple[np.ndarray, np.ndarray]:
        """Rows with means and most probable levels in their free cells (n, d), and `background_share` (n,)."""
        ...

    def condition(self, evidence: Evidence) -> Part:
        """The part given one row of evidence."""
        ...

    def marginalize(self, columns: list[int]) -> Part:
        """The part's marginal over some columns, in the table's order."""
        ...

    def given_missing(self, j: int, is_missing: bool) -> tuple[Part | None, float]:
        """The part given that cell j is missing, or is not, and the log-probability of that; None where impossible."""
        ...
