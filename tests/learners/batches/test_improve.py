"""The last pass of hidden trees over a table in batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import jointforest as jf
from jointforest.learners.batches.improve import improve
from jointforest.learners.batches.sample import Pass, Weights

from .test_fit_batches import table


def test_equal_weights_say_nothing() -> None:
    """Whatever they are, and however many members there are: counts are those of the rows."""
    frame = table(300)
    learner = jf.HiddenTreeForest(n_estimators=2, max_leaf_nodes=1, n_states=4, max_iter=1, random_state=0).fit(frame)
    first = learner.joint_.distribution.components[0].hidden
    smoothing = learner.settings_.smoothing

    def over(rows: pd.DataFrame) -> Any:
        def fold(one: Pass, n: int | None = None) -> Any:
            return one.over([rows])

        return fold

    n = len(frame)
    plain = improve(over(frame), n, first, 2, smoothing)
    weighed = improve(over(frame.assign(w=3.0)), n, first, 2, smoothing, Weights("w", 6.0, 40))
    assert len(plain.trees) >= 2
    for a, b in zip(plain.trees, weighed.trees, strict=True):
        for one, other in zip([*a.transition, *a.emission], [*b.transition, *b.emission], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)
