"""The distribution of one column given evidence, in the manner of scipy.stats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..queries.column import distribution
from ..table import values as answers
from ..table.schema import Column

if TYPE_CHECKING:
    from .posterior import Posterior


class Marginal:
    """One column's distribution; made by `Joint.marginal` and `Posterior.marginal`.

    Of one row of evidence, results have the shape of the argument x; of a frame of n rows, x has q points and the
    results shape (n, q). Numeric and date-time columns have ``pdf``, ``cdf`` and ``ppf``; columns with levels have
    ``pmf``. Warnings and errors are those of `Posterior`.

    Examples
    --------
    >>> import jointforest as jf
    >>> joint = jf.AdversarialForest(n_estimators=5, random_state=0).fit(jf.datasets.load_penguins()).joint_
    >>> mass = joint.marginal("body_mass_g")
    >>> bool(abs(mass.cdf(mass.ppf(0.5)) - 0.5) < 0.05)
    True
    """

    def __init__(self, posterior: Posterior, column: Column) -> None:
        self._posterior, self._column = posterior, column

    def __repr__(self) -> str:
        return f"Marginal({self._column.name!r}, {self._column.kind}, {self._posterior!r})"

    def pdf(self, x: Any, n_jobs: int | None = -1) -> Any:
        """Density at x; on a grid the mass of x's cell over its width, at an atom of a mixed column the atom's mass."""
        return self._at(distribution.pdf, "density", x, n_jobs)

    def cdf(self, x: Any, n_jobs: int | None = -1) -> Any:
        """P(column <= x)."""
        return self._at(distribution.cdf, "CDF", x, n_jobs)

    def ppf(self, q: float | Sequence[float], n_jobs: int | None = -1) -> Any:
        """Quantiles, see `Posterior.quantile`."""
        return self._posterior.quantile(self._column.name, q, n_jobs)

    def pmf(self, level: Any, n_jobs: int | None = -1) -> Any:
        """Probability of a level, or of each of several levels."""
        share = self._posterior._proba(self._column.name, n_jobs)
        code = answers.numbers(self._column, level).astype(np.int64)
        return self._shaped(share[:, code.ravel()], code.shape)

    def mean(self, n_jobs: int | None = -1) -> Any:
        """Mean, see `Posterior.mean`."""
        return self._posterior.mean(self._column.name, n_jobs)

    def var(self, n_jobs: int | None = -1) -> Any:
        """Variance, see `Posterior.var`."""
        return self._posterior.var(self._column.name, n_jobs)

    def std(self, n_jobs: int | None = -1) -> Any:
        """Standard deviation, see `Posterior.std`."""
        return self._posterior.std(self._column.name, n_jobs)

    def sample(self, n: int = 1, random_state: Any = None, n_jobs: int | None = -1) -> np.ndarray:
        """Draw n values, shape (n,); of a frame of m rows shape (m, n)."""
        drawn = self._posterior._draw(n, random_state, n_jobs=n_jobs)
        drawn = answers.values(self._column, drawn[:, self._posterior._number(self._column.name)])
        return np.asarray(self._shaped(drawn.reshape(len(self._posterior), n), (n,)))

    def _at(self, question: Any, what: str, x: Any, n_jobs: int | None) -> Any:
        found = self._posterior._begin(self._column.name, what, n_jobs, boolean=False)
        points = answers.numbers(found, x)
        model, evidence = self._posterior.weighed.model, self._posterior.weighed.evidence
        j, known = self._posterior._number(found.name), self._posterior.weighed.known
        answer = question(model, evidence, j, points.ravel(), n_jobs, known)
        return self._shaped(answer, points.shape)

    def _shaped(self, answer: np.ndarray, shape: tuple[int, ...]) -> Any:
        """One row: the argument's shape. A frame: (n, q), or (n,) for a single point."""
        if len(shape) == 0:
            answer = answer[:, 0]
            return answer[0].item() if self._posterior.weighed.one else answer
        return answer[0].reshape(shape) if self._posterior.weighed.one else answer
