"""Warnings that answers come with."""

from __future__ import annotations

import sys
import warnings
from types import FrameType


class EvidenceWarning(UserWarning):
    """A warning of evidence: what is wrong, and what to do in Python; the command line has hints of its own.

    problem : str. What is wrong, without the hint.
    """

    def __init__(self, problem: str, hint: str = "") -> None:
        self.problem = problem
        super().__init__(f"{problem} ({hint})" if hint else problem)


class UnsupportedEvidenceWarning(EvidenceWarning):
    """The evidence is nothing like the table that was learned: the background answers, or nothing can."""


class UnseenLevelWarning(EvidenceWarning):
    """Cells hold levels never seen at learning; they were taken as missing."""


class EstimatedAnswerWarning(EvidenceWarning):
    """Answers under rules are estimated from weighted draws, or count rows beyond the range of a column."""


class NotLearnedWarning(EvidenceWarning):
    """An answer lies beyond what was observed exactly of a column, as of times to an event that are not over."""


class LearnedErrorsWarning(EvidenceWarning):
    """A joint checks the table that it has learned, with its errors, and may not find them."""


class LostDependenceWarning(UserWarning):
    """A joint does not keep the dependence of some columns that the table shows."""


def warn(warning: str | Warning, category: type[Warning] | None = None) -> None:
    """Warn, with the place of the caller of the package; of a text, with its category."""
    # The last frame of the package counts: between its frames are some of the standard library, such as functools.
    frame: FrameType | None = sys._getframe()
    level = depth = 1
    while frame is not None:
        depth += 1
        if frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "jointforest":
            level = depth
        frame = frame.f_back
    warnings.warn(warning, category, stacklevel=level)


def warn_of_draws(draws: float, what: str = "answers") -> None:
    """Warn that something is estimated from draws, worth so many of equal weight; nothing where it is exact."""
    # ``what`` is "answers" about a posterior, "log-densities", "imputed cells" or "rows" that are drawn.
    if draws == float("inf"):
        return
    error = 1.0 / max(draws, 1.0) ** 0.5
    hints = {
        "answers": f"the standard error of a probability is at most {0.5 * error:.2g}, that of a mean about "
        f"{error:.2g} standard deviations of its posterior",
        "log-densities": f"the standard error of a log-density is about {error:.2g}",
        "imputed cells": f"the standard error of an imputed mean is about {error:.2g} standard deviations of its "
        "posterior",
        "rows": f"about {draws:,.0f} drawn rows differ in the unknown parts of the sum; further rows repeat their "
        "values",
    }
    done = "drawn" if what == "rows" else "estimated"
    said = f"{what} are {done} from weighted draws, worth {draws:,.0f} draws of equal weight"
    warn(EstimatedAnswerWarning(said, hints[what]))
