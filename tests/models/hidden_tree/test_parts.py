"""What answers are mixed from: the states of a column's node, against the enumeration of all states."""

from __future__ import annotations

import numpy as np
import pytest

from jointforest.data.evidence import build
from jointforest.models.hidden_tree.hidden_tree import HiddenTree

from ...oracle import hidden as oracle
from ...random_cases.hidden_trees import random_evidence, random_hidden, random_plain


@pytest.mark.parametrize("seed", range(20))
def test_parts_are_the_states(seed: int) -> None:
    hidden = random_hidden(seed)
    model, evidence, nothing = HiddenTree(hidden), random_evidence(seed, hidden, 4), build(hidden.schema)
    before = oracle.Given(hidden, oracle.row_of(hidden, nothing, 0))
    for i in range(4):
        row = evidence.take(np.array([i]))
        given, state = oracle.Given(hidden, oracle.row_of(hidden, evidence, i)), model.observe(row)
        if given.probability == 0.0:
            continue
        for j, column in enumerate(hidden.schema.columns):
            parts = state.parts(j)
            np.testing.assert_allclose(parts.weight, oracle.states(given, j), rtol=1e-5, atol=1e-7)
            np.testing.assert_allclose(parts.prior, oracle.states(before, j), rtol=1e-5, atol=1e-7)
            mean = parts.weight @ np.nan_to_num(parts.mean)
            if column.is_categorical:
                np.testing.assert_allclose(mean, oracle.level_probability(given, j), rtol=1e-5, atol=1e-7)
            else:
                total = parts.weight @ np.nan_to_num(parts.variance + (parts.mean - mean) ** 2)
                expected = oracle.mean_variance(given, j)
                np.testing.assert_allclose([mean[0], total[0]], expected, rtol=1e-4, atol=1e-6)


def test_trees_whose_states_are_codes_are_one_part() -> None:
    model = HiddenTree(random_plain(100))
    state = model.observe(build(model.schema))
    assert state.parts(0).prior.tolist() == [0.0] and state.parts(0).weight.tolist() == [1.0]
