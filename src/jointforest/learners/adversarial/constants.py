"""The constants of `AdversarialForest`, each with the reason for its value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Constants:
    """Numbers that no parameter sets. The experiments are in ``docs/experiments/adversarial-forest-defaults.md``."""

    rounds: int = 10
    """Most rounds after the first by default, as in the R package arf."""
    max_samples: int = 200_000
    """Most rows that grow trees by default: time and memory grow in proportion, and all rows fill the leaves."""
    sample_share: float = 0.632
    """Share of the rows that each tree draws without replacement: the expected share of distinct rows, 1 - 1/e, of a
    bootstrap sample, so that out-of-bag rows are as many as in a random forest."""
    early_trees: tuple[int, ...] = (2, 4)
    """Numbers of trees that may end the rounds."""
    early_errors: float = 3.0
    """Standard errors by which their accuracy must be below what would continue."""

    trial_share: float = 0.25
    """Part of the rows that validate the choice of quantile leaves; the others fill the leaves of the trial."""
    trial_rows: int = 2_000
    """Most validation rows. They bound the time of the trial; their mean log-likelihood is known well enough."""
    trial_fewest_rows: int = 20
    """Validation rows below which a standard error means nothing; all columns that normal leaves misfit are taken."""
    trial_trees: int = 10
    """Trees of the trial in tables of fewer than `trial_many_rows` rows."""
    trial_many_rows: int = 10_000
    """From so many rows on `trial_few_trees` decide. In smaller tables they lost up to 1.41 nats."""
    trial_few_trees: int = 3
    """Trees of the trial in larger tables. They chose otherwise than ten trees in 5 of 74 trials."""
    trial_epsilon: float = 1e-3
    """Weight of the background in the trial, so that every log-likelihood is finite. It was set by hand."""
    trial_groups: int = 16
    """Most trials of single columns. In wide tables a trial is of several columns, which bounds the time."""


FIXED = Constants()
