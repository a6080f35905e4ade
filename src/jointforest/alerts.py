"""Warnings that answers come with."""


class UnsupportedEvidenceWarning(UserWarning):
    """The evidence is nothing like the table that was learned: the background answers, or nothing can."""


class UnseenLevelWarning(UserWarning):
    """Cells hold levels never seen at learning; they were taken as missing."""
