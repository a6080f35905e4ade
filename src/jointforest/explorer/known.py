"""The evidence of a question in a normal form, with its posterior, which is computed once for all columns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from ..data.conditions import has_soft, without_missing
from ..data.evidence import build, is_met
from ..inference.support import FEW_SUPPORTING, SUPPORT, rows_like, support_in_words
from ..models.base import Distribution
from .shown import ShownJoint
from .state import ImpossibleEvidence, read_evidence, sentence, tidied

MODELS = 4
"""Most models, conditioned on missing cells, that are cached with their tables."""


class Known:
    """Evidence of one row.

    said : list or dict or None. As `state.read_evidence` reads it.

    model : Distribution. The joint, conditioned on which cells are missing.
    evidence : Evidence. The other conditions.
    is_density : bool. Whether p(evidence) is a density: of values without a grid, or with likelihoods.

    Raises ImpossibleEvidence if it has probability 0. Raises ValueError as `state.read_evidence`.
    """

    def __init__(self, shown: ShownJoint, said: Any) -> None:
        schema = shown.joint.schema
        self.conditions = tidied(schema, read_evidence(schema, said))
        self.sentence = sentence(self.conditions)
        rest, missing = without_missing(self.conditions, schema.tick_boxes)
        self._missing, self._shown = missing, shown
        model, self._log_missing = _model_given(shown, missing, tuple(rest))
        if model is None:
            raise ImpossibleEvidence(
                f"the evidence has probability 0: {self.sentence}; at learning such cells were never, or always, "
                "missing, or a rule makes cells missing with them of which the evidence says something"
            )
        self.model = model
        self.evidence = build(schema, conditions=rest)
        self.state = model.observe(self.evidence) if self.conditions else shown.nothing
        self.is_density = self._is_point() or any(map(has_soft, rest.values()))
        if self.log_probability == -math.inf:
            raise ImpossibleEvidence(
                f"the evidence has probability 0: {self.sentence}; drop or widen one of its conditions"
            )

    @cached_property
    def log_evidence(self) -> float:
        """log p(evidence) in the model."""
        return self.state.log_evidence + float(self.evidence.log_penalty[0])

    @cached_property
    def log_probability(self) -> float:
        """log p(all evidence): a probability, unless it contains values without a grid or likelihoods."""
        if not self.conditions:
            return 0.0
        values = zip(self.model.schema.columns, self.evidence.value[0].tolist(), strict=True)
        cells = sum(math.log(column.step) for column, x in values if column.step > 0.0 and not math.isnan(x))
        return self.log_evidence + self._log_missing + cells

    @cached_property
    def numbers(self) -> np.ndarray | None:
        """Which rows of the table satisfy the evidence, from 0; None without a table, or with likelihoods."""
        # None also of evidence on a column of which the table has ranges.
        X, index = self._shown.encoded, self.model.schema.index
        if X is None or any(map(has_soft, self.conditions.values())):
            return None
        if self._shown.ranged & {index(name) for name in self.conditions}:
            return None
        met = is_met(self.model.schema, self.evidence, X)
        for name, is_missing in self._missing.items():
            met &= np.isnan(X[:, self.model.schema.index(name)]) == is_missing
        return np.flatnonzero(met)

    @cached_property
    def rows(self) -> np.ndarray | None:
        """The rows of the table that satisfy the evidence, (n, d), as `numbers`."""
        return None if self._shown.encoded is None or self.numbers is None else self._shown.encoded[self.numbers]

    @property
    def is_supported(self) -> bool:
        """Whether leaves, and not the background alone, support the evidence."""
        return bool(self.state.background_weight()[0] <= SUPPORT)

    @cached_property
    def n_rows(self) -> float:
        """Number of training rows that the evidence stands for; NaN if the joint does not know its rows."""
        if not self.conditions:
            return self.model.schema.n_rows or math.nan
        log_probability = np.array([self.log_evidence + self._log_missing])
        return float(rows_like(self.model, self.evidence, log_probability)[0])

    @property
    def support(self) -> str:
        """How many rows support the answers, in words; with a table, its number of rows and the expected number."""
        learned = self.model.schema.n_rows
        if not self.conditions:
            return ""
        X = self._shown.encoded
        if X is None or self.rows is None or self.is_density or math.isnan(self.n_rows):
            return support_in_words(self.n_rows, learned)
        expected = self.n_rows * len(X) / learned
        return f"{len(self.rows):,} rows of the table, where the joint expects {expected:,.0f}"

    @property
    def is_extrapolated(self) -> bool:
        """Whether too few rows (`FEW_SUPPORTING`) support the answers: they come from the model's assumptions."""
        return self.n_rows < FEW_SUPPORTING

    def _is_point(self) -> bool:
        values = zip(self.model.schema.columns, self.evidence.value[0].tolist(), strict=True)
        return any(c.step == 0.0 and not c.is_categorical and not math.isnan(x) and x not in c.atoms for c, x in values)


def _model_given(
    shown: ShownJoint, missing: Mapping[str, bool], known: tuple[str, ...]
) -> tuple[Distribution | None, float]:
    """The model given which cells are missing, and the log-probability of that; the last few are kept."""
    # It is None where the ``known`` columns cannot have values then.
    if not missing:
        return shown.joint.distribution, 0.0
    kept, key = shown.said_missing, (tuple(missing.items()), known)
    found = kept.get(key)
    if found is None:
        found = shown.joint.distribution.given_missing_cells(missing, known)
        while len(kept) >= MODELS:
            kept.pop(next(iter(kept)), None)
        kept[key] = found
    return found
