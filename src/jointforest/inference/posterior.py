"""Evidence weighed by a distribution: what readers, pictures and explanations of one posterior start from."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ..data.evidence import Evidence
from ..models.base import Distribution, PosteriorState
from ..runtime.warnings import UnsupportedEvidenceWarning, warn

SUPPORT = 0.5
"""Evidence is unsupported if backgrounds carry more than this share of the posterior."""


class WeighedEvidence:
    """Rows of evidence and how well they fit a model; each figure is worked out when it is first asked for.

    Parameters
    ----------
    model : Distribution
    evidence : Evidence
        n rows.
    one : bool
        Whether it is one row that somebody wrote down, not a frame: then probability 0 is an error.
    text : str
        The evidence in words, for errors; empty of a frame.
    background : float64 array (n,), optional
        `background_share`, where another question has found it on its way.
    """

    def __init__(
        self,
        model: Distribution,
        evidence: Evidence,
        one: bool = False,
        text: str = "",
        background: np.ndarray | None = None,
    ) -> None:
        self.model, self.evidence, self.one, self.text = model, evidence, one, text
        self._background = background

    def __len__(self) -> int:
        return len(self.evidence.value)

    def __str__(self) -> str:
        return self.text if self.one else f"{len(self)} rows of evidence"

    def give(self, answers: np.ndarray) -> Any:
        """Answers (n,) as users get them: a scalar of one row that somebody wrote down, an array of a frame."""
        return answers[0].item() if self.one else answers

    @cached_property
    def log_probability(self) -> np.ndarray:
        """log p(evidence), (n,)."""
        return self.model.log_density(self.evidence)

    @cached_property
    def state(self) -> PosteriorState:
        """The evidence propagated once, whatever is asked."""
        return self.model.observe(self.evidence)

    @property
    def background_share(self) -> np.ndarray:
        """Share of the backgrounds in the posterior, (n,): 0..1, NaN where the evidence has probability 0."""
        return self._weigh_background(-1)

    def keep_background(self, background: np.ndarray | None) -> None:
        """Keep the `background_share` (n,) that another question has found on its way, if it has."""
        self._background = self._background if background is None else background

    def check(self, n_jobs: int | None = -1) -> None:
        """Warn of rows without support, and of rows of probability 0 in a frame.

        Raises
        ------
        ValueError
            If ``one``, and the evidence has probability 0.
        """
        share = self._weigh_background(n_jobs)
        impossible = np.isnan(share)
        if self.one and impossible[0]:
            raise ValueError(f"the evidence has probability 0: {self.text}; drop or widen one of its conditions")
        weak = int(np.sum(share > SUPPORT))
        if weak or impossible.any():
            hint = "see .supported; loosen the evidence, or leave those rows out"
            warn(UnsupportedEvidenceWarning(_unsupported_text(weak, int(impossible.sum()), len(self)), hint))

    def _weigh_background(self, n_jobs: int | None) -> np.ndarray:
        if self._background is None:
            self._background = self.state.background_weight(n_jobs)
        return self._background


def _unsupported_text(weak: int, impossible: int, n: int) -> str:
    said = []
    if weak:
        said.append(
            f"{weak} of {n} rows of evidence are unlike anything learned: their answers are mostly those of a "
            "background or of far tails"
        )
    if impossible:
        said.append(f"{impossible} of {n} rows of evidence have probability 0: their answers are missing")
    return "; ".join(said)
