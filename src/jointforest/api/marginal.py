"""The distribution of one column given evidence, in the manner of scipy.stats."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..data.schema import seconds_apart
from ..inference.histogram import bin_edges, histogram
from ..inference.peak import peak
from ..inference.posterior import WeighedEvidence
from ..inference.sampling import sample, sample_and_weigh, sample_blocks
from ..runtime.parameters import check_number, check_shares
from ..runtime.random_state import seed_of
from .views import in_words, marginal_html

# ---- Draws of rows given evidence, as numbers.

MOST_CELLS = 2_000_000_000
"""Most cells of a draw."""


def draw(
    weighed: WeighedEvidence, n: int, random_state: Any, missing: bool = False, n_jobs: int | None = -1
) -> np.ndarray:
    """n rows for each row of evidence, contiguous, float64 (len(weighed) * n, d); n is checked, and the evidence."""
    check_draws(weighed, n)
    if len(weighed) == 1:
        weighed.check(n_jobs)
        return sample(weighed.model, weighed.evidence, int(n), seed_of(random_state), missing, n_jobs)
    drawn, background = sample_and_weigh(
        weighed.model, weighed.evidence, int(n), seed_of(random_state), missing, n_jobs
    )
    weighed.keep_background(background)
    weighed.check(n_jobs)
    return drawn


def check_draws(weighed: WeighedEvidence, n: Any) -> None:
    """Raise ValueError if n rows for each row of evidence cannot be drawn at once."""
    check_number("n", n, 0, whole=True, text="a non-negative integer")
    d, rows = len(weighed.model.schema.names), max(len(weighed), 1)
    if n * rows * d > MOST_CELLS:
        each = f" and {rows:,} rows of evidence" if rows > 1 else ""
        raise ValueError(
            f"n={n:,}: at most {MOST_CELLS:,} cells (16 GB) are drawn at once, of {d} columns{each} "
            f"n={MOST_CELLS // (rows * d):,}; draw in batches: given(...).sample_batches(n)"
        )


def draw_batches(
    weighed: WeighedEvidence, n: int, random_state: Any, missing: bool = False, n_jobs: int | None = -1
) -> Iterator[np.ndarray]:
    """The rows of `draw` for one row of evidence, some at a time; n is checked, and the evidence."""
    check_number("n", n, 0, whole=True, text="a non-negative integer")
    if len(weighed) != 1:
        raise ValueError(f"batches of draws are for one row of evidence, got {len(weighed)}; ask row by row")
    weighed.check(n_jobs)
    return sample_blocks(weighed.model, weighed.evidence, int(n), seed_of(random_state), missing, n_jobs)


_ROUNDING = 1e-12  # of sums of probabilities


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

    def __init__(self, weighed: WeighedEvidence, column: str) -> None:
        self._weighed, self._j = weighed, weighed.model.schema.index(column)
        self._column = weighed.model.schema.columns[self._j]

    def __repr__(self) -> str:
        return f"{self._title()}: {in_words(self._weighed, self._j)}"

    def _repr_html_(self) -> str:
        return marginal_html(self._title(), self._weighed, self._j)

    def _title(self) -> str:
        """The column, and one row's evidence."""
        return f"{self._column.name} given {self._weighed}" if self._weighed.text else self._column.name

    # -- the distribution

    def pdf(self, x: Any, n_jobs: int | None = -1) -> Any:
        """Density at x; on a grid the mass of x's cell over its width, at an atom of a mixed column the atom's mass."""
        return self._at(self._weighed.state.pdf, "density", x, n_jobs)

    def cdf(self, x: Any, n_jobs: int | None = -1) -> Any:
        """P(column <= x)."""
        return self._at(self._weighed.state.cdf, "CDF", x, n_jobs)

    def ppf(self, q: float | Sequence[float], n_jobs: int | None = -1) -> Any:
        """Quantiles inf{x: P(column <= x) >= q}, for a level q or a sequence of k levels between 0 and 1.

        Of ordered and boolean columns they are levels (False before True).

        Returns
        -------
        scalar, or array (k,) for a sequence; of a frame (n,) or (n, k)
        """
        levels = check_shares("q", q)
        numbers = self._quantiles(np.atleast_1d(levels), n_jobs)
        if levels.ndim == 0:
            return self._values(numbers[:, 0])
        return self._column.values(numbers[0] if self._weighed.one else numbers)

    def interval(self, level: float = 0.9, n_jobs: int | None = -1) -> tuple[Any, Any]:
        """Bounds (lo, hi) of the interval with equal tails that holds this share of the distribution."""
        highest = 1 - 2.0**-52  # beyond, half of what is left is 0
        check_number("level", level, 0, highest, without="low", text="a number between 0 and 1")
        numbers = self._quantiles(np.array([(1 - level) / 2, (1 + level) / 2]), n_jobs)
        return self._values(numbers[:, 0]), self._values(numbers[:, 1])

    def pmf(self, level: Any, n_jobs: int | None = -1) -> Any:
        """Probability of a level, or of each of several levels."""
        share = self._level_shares(n_jobs)
        code = self._column.numbers(level).astype(np.int64)
        return self._shaped(share[:, code.ravel()], code.shape)

    def proba(self, n_jobs: int | None = -1) -> Any:
        """Probability of every level: a dict, or of a frame float64 array (n, K) in the order of ``Joint.levels``."""
        share = self._level_shares(n_jobs)
        return dict(zip(self._column.levels, share[0].tolist(), strict=True)) if self._weighed.one else share

    def histogram(self, bins: int | Sequence[Any] = 20, n_jobs: int | None = -1) -> Histogram:
        """Probability of bins, to look at; of a column of levels of each level.

        Parameters
        ----------
        bins : int or sequence
            Of numbers and dates how many bins at most, equally wide between the least and the greatest value seen at
            learning, on a grid of whole cells: the same for any evidence. Or their edges, ascending.
        n_jobs : int or None
            Threads; the answer does not depend on it.

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
        >>> import jointforest as jf
        >>> joint = jf.JointTree(random_state=0).fit(jf.datasets.load_penguins()).joint_
        >>> found = joint.given(species="Gentoo").marginal("flipper_length_mm").histogram([170, 190, 210, 240])
        >>> found.mass.round(1)
        array([0. , 0.2, 0.8])
        >>> joint.given("body_mass_g > 5000").marginal("sex").histogram().edges
        ('FEMALE', 'MALE')
        """
        edges = bin_edges(self._column, bins)
        self._weighed.check(n_jobs)
        mass = histogram(self._weighed, self._j, edges, n_jobs)
        shown = self._column.levels if self._column.is_categorical else self._column.values(edges)
        return Histogram(shown, mass[0] if self._weighed.one else mass)

    def likeliest(self, n_jobs: int | None = -1) -> Any:
        """Most probable level, the first of equals; of numbers and dates the value of greatest `pdf`.

        On a grid of at most 16,384 cells it is the most probable cell. Of other numbers it is the best of 1,024
        quantiles and the atoms, refined (but on a grid) between its neighbours: narrower peaks may be missed. An atom's
        mass stands beside densities.
        """
        if not self._column.is_categorical:
            self._weighed.check(n_jobs)
            return self._values(peak(self._weighed.model, self._weighed.evidence, self._j, n_jobs))
        share = self._level_shares(n_jobs)
        code = np.where(np.isnan(share[:, 0]), np.nan, share.argmax(axis=1))
        level = self._column.values(code)
        return level[0] if self._weighed.one else level

    # -- numbers

    def mean(self, n_jobs: int | None = -1) -> Any:
        """Mean of a numeric or date-time column; P(True) of a boolean one."""
        self._need_numbers("mean", n_jobs)
        if self._column.kind == "boolean":
            return self._weighed.give(self._true(n_jobs))
        return self._values(self._in_range(self._moments(n_jobs)[0]))

    def var(self, n_jobs: int | None = -1) -> Any:
        """Variance; of a date-time column in seconds squared."""
        self._need_numbers("variance", n_jobs)
        return self._weighed.give(self._variance(n_jobs))

    def std(self, n_jobs: int | None = -1) -> Any:
        """Standard deviation; of a date-time column a timedelta64."""
        self._need_numbers("standard deviation", n_jobs)
        deviation = np.sqrt(self._variance(n_jobs))
        if self._column.kind != "datetime":
            return self._weighed.give(deviation)
        apart = seconds_apart(deviation)
        return apart[0] if self._weighed.one else apart

    def sample(self, n: int = 1, random_state: Any = None, n_jobs: int | None = -1) -> np.ndarray:
        """Draw n values, shape (n,); of a frame of m rows shape (m, n)."""
        drawn = self._column.values(draw(self._weighed, n, random_state, n_jobs=n_jobs)[:, self._j])
        return np.asarray(self._shaped(drawn.reshape(len(self._weighed), n), (n,)))

    # -- helpers

    def _need_numbers(self, what: str, n_jobs: int | None, boolean: bool = True) -> None:
        """See that the question makes sense of the column, and check the evidence."""
        column = self._column
        if column.is_categorical and not (boolean and column.kind == "boolean"):
            raise ValueError(f"column {column.name!r} is {column.kind}: it has no {what}; use proba({column.name!r})")
        self._weighed.check(n_jobs)

    def _moments(self, n_jobs: int | None) -> tuple[np.ndarray, np.ndarray]:
        w = self._weighed
        return w.state.moments(self._j, n_jobs)

    def _variance(self, n_jobs: int | None) -> np.ndarray:
        if self._column.kind == "boolean":
            true = self._true(n_jobs)
            return true * (1.0 - true)
        return self._in_range(self._moments(n_jobs)[1])

    def _quantiles(self, levels: np.ndarray, n_jobs: int | None) -> np.ndarray:
        if self._column.kind in ("boolean", "ordered"):
            below = np.cumsum(self._level_shares(n_jobs), axis=1)
            code = (below[:, None, :-1] < levels[:, None] - _ROUNDING).sum(axis=2).astype(np.float64)
            return np.where(np.isnan(below[:, :1]), np.nan, code)
        self._need_numbers("quantiles", n_jobs, boolean=False)
        w = self._weighed
        return self._in_range(w.state.quantile(self._j, levels, n_jobs))

    def _level_shares(self, n_jobs: int | None) -> np.ndarray:
        """Probabilities of the levels, shape (n, K)."""
        if not self._column.is_categorical:
            hint = "use quantile or interval, or probability of an event"
            raise ValueError(f"column {self._column.name!r} is {self._column.kind}: it has no levels; {hint}")
        self._weighed.check(n_jobs)
        return self._shares(n_jobs)

    def _shares(self, n_jobs: int | None) -> np.ndarray:
        w = self._weighed
        return w.state.level_probabilities(self._j, n_jobs)

    def _true(self, n_jobs: int | None) -> np.ndarray:
        """Probability of True in a boolean column, shape (n,)."""
        share, codes = self._shares(n_jobs), self._column.codes
        return share[:, codes[True]] if True in codes else share[:, 0] * 0.0

    def _at(self, question: Callable[..., np.ndarray], what: str, x: Any, n_jobs: int | None) -> Any:
        self._need_numbers(what, n_jobs, boolean=False)
        points = self._column.numbers(x)
        return self._shaped(question(self._j, points.ravel(), n_jobs), points.shape)

    def _in_range(self, numbers: np.ndarray) -> np.ndarray:
        """The numbers (n,) or (n, k), NaN of impossible evidence alone; a ValueError where float64 does not do."""
        if np.isnan(numbers[~np.isnan(self._weighed.background_share)]).any():
            raise ValueError(
                f"column {self._column.name!r}: given this evidence it lies too far out to be computed, beyond 1e150 "
                "or so; loosen the evidence"
            )
        return numbers

    def _values(self, number: np.ndarray) -> Any:
        """A scalar of one row of evidence, an array of a frame."""
        if self._weighed.one:
            return self._column.scalar(float(number[0]))
        return self._column.values(number)

    def _shaped(self, answer: np.ndarray, shape: tuple[int, ...]) -> Any:
        """One row: the argument's shape. A frame: (n, q), or (n,) for a single point."""
        if len(shape) == 0:
            return self._weighed.give(answer[:, 0])
        return answer[0].reshape(shape) if self._weighed.one else answer
