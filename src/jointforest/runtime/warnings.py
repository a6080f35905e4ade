"""Warnings that answers come with."""

from __future__ import annotations

import sys
import warnings


class EvidenceWarning(UserWarning):
    """A warning of evidence: what is wrong, and what to do in Python; the command line has hints of its own.

    Attributes
    ----------
    problem : str
        What is wrong, without the hint.
    """

    def __init__(self, problem: str, hint: str = "") -> None:
        self.problem = problem
        super().__init__(f"{problem} ({hint})" if hint else problem)


class UnsupportedEvidenceWarning(EvidenceWarning):
    """The evidence is nothing like the table that was learned: the background answers, or nothing can."""


class UnseenLevelWarning(EvidenceWarning):
    """Cells hold levels never seen at learning; they were taken as missing."""


class EstimatedAnswerWarning(EvidenceWarning):
    """Answers under rules that are not exact: they are estimated from weighted draws."""


class LostDependenceWarning(UserWarning):
    """A joint does not keep the dependence of some columns that the table shows."""


def warn(warning: str | Warning, category: type[Warning] | None = None) -> None:
    """Warn, with the place of the first caller outside the package; of a text, with its category."""
    level = 2
    frame = sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "jointforest":
        frame = frame.f_back
        level += 1
    warnings.warn(warning, category, stacklevel=level)


def warn_of_draws(draws: float, of_density: bool = False) -> None:
    """Warn that answers are estimated from draws, worth so many of equal weight; nothing where they are exact."""
    if draws == float("inf"):
        return
    said = f"answers are estimated from weighted draws, worth {draws:,.0f} draws of equal weight"
    error = (1.0 if of_density else 0.5) / max(draws, 1.0) ** 0.5
    of = "a log-density is about" if of_density else "a probability is at most"
    warn(EstimatedAnswerWarning(said, f"the standard error of {of} {error:.2g}"))
