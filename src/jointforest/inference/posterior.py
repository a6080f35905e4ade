"""Evidence weighed by a model: what readers, pictures and explanations of one posterior start from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..data.evidence import Evidence
from ..models.base import PosteriorState
from ..models.mixture import Mixture
from ..runtime.warnings import UnsupportedEvidenceWarning, warn

# ---- How the answers of a model's parts are mixed: by how well the evidence fits each part.


def log_joint(model: Mixture, evidence: Evidence, n_jobs: int | None = -1) -> np.ndarray:
    """log pi_k + log p_k(evidence) of each part, (n, K)."""
    each = [part.log_density(evidence, n_jobs) for part in model.parts]
    return np.column_stack(each) + model.log_weight


def shares(model: Mixture, evidence: Evidence, n_jobs: int | None = -1) -> np.ndarray:
    """p(part k | evidence), (n, K): rows sum to 1, NaN where the evidence has probability 0."""
    joint = log_joint(model, evidence, n_jobs)
    with np.errstate(invalid="ignore"):
        return np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))


States = tuple[PosteriorState, ...]
"""The posterior state of each component of a mixture, for the same evidence."""


def observe(model: Mixture, evidence: Evidence) -> States:
    """The evidence propagated in each component."""
    return tuple(component.observe(evidence) for component in model.parts)


def mixed(
    model: Mixture,
    evidence: Evidence,
    ask: Callable[[PosteriorState], np.ndarray],
    n_jobs: int | None = -1,
    states: States | None = None,
) -> np.ndarray:
    """sum_k p(component k | evidence) ask(state k), for answers with n entries along their first axis.

    A mixture of one component answers as that component.
    """
    states = states or observe(model, evidence)
    if len(states) == 1:
        return ask(states[0])
    return weighted(shares(model, evidence, n_jobs), [ask(state) for state in states])


def weighted(share: np.ndarray, answers: Sequence[np.ndarray]) -> np.ndarray:
    """sum_k share[:, k] answers[k]; components of weight 0 do not count, whatever they answer."""
    total = np.zeros_like(answers[0])
    for k, answer in enumerate(answers):
        s = share[:, k].reshape(-1, *[1] * (answer.ndim - 1))
        total += np.where(s == 0.0, 0.0, s * answer)
    return total


# ---- log p(evidence).


def log_density(model: Mixture, evidence: Evidence, n_jobs: int | None = -1) -> np.ndarray:
    """Log-density of each row of evidence; cells of which nothing is known are marginalised.

    Parameters
    ----------
    model : Mixture
    evidence : Evidence
        n rows. Values count with their density (grids: mass of the cell over the step), atoms, levels and regions with
        their mass.
    n_jobs : int or None
        Threads; the answer does not depend on it.

    Returns
    -------
    float64 array (n,)
        Natural logarithm, ``evidence.log_penalty`` added; -inf where the model gives probability 0.
    """
    if len(model.parts) == 1:
        return model.parts[0].log_density(evidence, n_jobs)
    return np.logaddexp.reduce(log_joint(model, evidence, n_jobs), axis=1)


SUPPORT = 0.5
"""Evidence is unsupported if backgrounds carry more than this share of the posterior."""


class WeighedEvidence:
    """Rows of evidence and how well they fit a model; each figure is worked out when it is first asked for.

    Parameters
    ----------
    model : Mixture
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
        model: Mixture,
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
        return log_density(self.model, self.evidence)

    @cached_property
    def states(self) -> States:
        """The posterior state of each component."""
        return observe(self.model, self.evidence)

    @cached_property
    def shares(self) -> np.ndarray:
        """p(part k | evidence), (n, K)."""
        return shares(self.model, self.evidence)

    def mixed(self, ask: Callable[[PosteriorState], np.ndarray]) -> np.ndarray:
        """`mixed` of this evidence; it is propagated once, whatever is asked."""
        answers = [ask(state) for state in self.states]
        return answers[0] if len(answers) == 1 else weighted(self.shares, answers)

    @property
    def background_share(self) -> np.ndarray:
        """Share of the backgrounds in the posterior, (n,): 0..1, NaN where the evidence has probability 0."""
        return self._weigh_background(-1)

    def knows(self, background: np.ndarray | None) -> None:
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
            self._background = background_share(self.model, self.evidence, n_jobs, self.states)
        return self._background


def background_share(
    model: Mixture, evidence: Evidence, n_jobs: int | None = -1, states: States | None = None
) -> np.ndarray:
    """Weight of the backgrounds in the posterior, (n,): 0..1, NaN where the evidence has probability 0."""
    return mixed(model, evidence, lambda state: state.background_weight(n_jobs), n_jobs, states)


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
