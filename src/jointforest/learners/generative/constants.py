"""The constants of generative forests, each with the reason for its value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Constants:
    """Numbers that no parameter sets. Those without another reason are set by hand and bound the time."""

    betas: tuple[float, ...] = (0.0, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
    """Candidates for the exponent between the average of trees (0) and the mixture (1). They are closer together near
    the average, where a step changes the weights of trees most."""
    beta_rows: int = 1_000
    """Training rows that choose the exponent: an accuracy then has a standard error of at most .016."""
    beta_missing: float = 0.3
    """Share of their cells hidden, as the exponent is for rows with missing cells. Benchmarks hide 0 to 60 %."""
    leaf_sizes: tuple[int, ...] = (1, 4, 12)
    """Candidates for the fewest rows in a leaf: pure leaves, as random forests have, and two larger sizes."""
    coded_leaf_rows: int = 12
    """Fewest rows of a leaf with ``leaf="chow_liu"`` and ``min_samples_leaf="auto"``: the largest candidate, as pairs
    of columns are estimated in each leaf."""
    smoothings: tuple[float, ...] = (0.3, 2.0)
    """Candidates for the pseudo-rows of levels, the one that smooths less first."""
    smoothing_sigmas: float = 1.0
    """Standard errors by which more smoothing must be better. The cheaper answer keeps its place within chance."""
    pilot_trees: int = 20
    """Trees that choose leaf sizes, pseudo-rows and quantile leaves, which bounds the time."""
    pilot_epsilon: float = 1e-3
    """Weight of the background of the forests on trial, so that every row has a finite log-likelihood."""
    spreads: tuple[float, ...] = (0.01, 0.03, 0.1, 0.2, 0.4, 0.8)
    """Candidates for the smallest spread in a leaf, in units of the column's. Known spreads of .017 to .2 are met
    within a factor of two (``docs/experiments/generative-forest-settings.md``)."""
    spread_trees: int = 8
    """Trees whose out-of-bag rows choose the spreads, which bounds the time."""
    target_spreads: tuple[float, ...] = (0.01, 0.02, 0.04, 0.06, 0.1, 0.15, 0.2, 0.3, 0.45)
    """Candidates for the smallest spread of a target: finer, as the predictive spread follows from them."""
    target_rows: int = 2_000
    """Training rows that choose it, which bounds the time."""
    usual_spread: float = 0.1
    """The smallest spread where no row is out of bag to choose it: the middle of the candidates."""
    answers_at_once: int = 2**22
    """Answers of trees, rows x trees x classes, held at once: 32 MiB."""

    kept_rows: int = 5_000
    """Most training rows that are kept to calibrate, which bounds the size of a fitted estimator."""
    pattern_rows: int = 500
    """Most of them that calibrate one pattern of missing cells. The coverage then varies by about .01."""
    pattern_fewest_rows: int = 100
    """Fewest rows, without missing cells out of a pattern, that calibrate it alone: a level of 99 % needs 99 rows."""
    union_rows: int = 200
    """Rows that calibrate a pattern for which there are fewer, each with the cells missing that either row lacks."""
    calibration_chunk: int = 64
    """Rows asked at once with these, which bounds the memory."""

    reference_rows: int = 500
    """Training rows with which densities are compared by default. A percentile is then known to about two points."""
    batch_rows: int = 400_000
    """Rows of the sample that trees are grown on in batches: ten trees of ten columns are learned in less than 3 GB."""


FIXED = Constants()
