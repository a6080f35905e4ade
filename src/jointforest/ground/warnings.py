"""Warnings that answers come with."""

from __future__ import annotations

import sys
import warnings


class UnsupportedEvidenceWarning(UserWarning):
    """The evidence is nothing like the table that was learned: the background answers, or nothing can."""


class UnseenLevelWarning(UserWarning):
    """Cells hold levels never seen at learning; they were taken as missing."""


def warn(text: str, category: type[Warning]) -> None:
    """Warn, with the place of the first caller outside the package."""
    level = 2
    frame = sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "jointforest":
        frame = frame.f_back
        level += 1
    warnings.warn(text, category, stacklevel=level)
