"""Which cells make a row unlikely: all columns at once, against one column after the other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from jointforest.data.evidence import Evidence, build
from jointforest.data.frames import encode
from jointforest.models.base import Distribution
from jointforest.models.box_forest.box_forest import BoxForest
from jointforest.models.hidden_tree.hidden_tree import HiddenTree

from ..random_cases.hidden_parts import mixed_joint, small_table
from ..random_cases.hidden_trees import random_evidence, random_hidden
from ..random_cases.models import seeds


def one_by_one(model: Distribution, evidence: Evidence) -> np.ndarray:
    """log p(all) - log p(all but the cell), by the definition."""
    known = ~np.isnan(evidence.value) | (evidence.cell_regions() >= 0)
    out = np.full(known.shape, np.nan)
    with np.errstate(invalid="ignore"):
        for j in range(known.shape[1]):
            gap = model.log_density(evidence) - model.log_density(evidence.without(j))
            out[known[:, j], j] = gap[known[:, j]]
    return out


@given(seeds)
@settings(max_examples=60, deadline=None)
def test_hidden_trees_with_zeros_regions_and_soft_evidence(seed: int) -> None:
    hidden = random_hidden(seed)
    model = HiddenTree(hidden)
    evidence = random_evidence(seed, hidden, 8)
    np.testing.assert_allclose(model.attribution(evidence), one_by_one(model, evidence), atol=1e-9)


def test_mixtures_and_rows_with_missing_cells() -> None:
    joint = mixed_joint(small_table(0), 3)
    assert {type(part) for part in joint.distribution.components} == {HiddenTree, BoxForest}
    frame = small_table(5, 60).astype({"size": "Float64", "flag": "boolean"})
    frame = frame.mask(np.random.default_rng(1).random(frame.shape) < 0.3)
    evidence = build(joint.schema, *encode(joint.schema, frame))
    found = joint.attribution(frame)
    np.testing.assert_allclose(found, one_by_one(joint.distribution, evidence), atol=1e-10)
    np.testing.assert_array_equal(found, joint.attribution(frame, n_jobs=1))
    assert np.isnan(found).any()


def test_no_rows() -> None:
    joint = mixed_joint(small_table(0), 3)
    assert joint.attribution(small_table(5, 60).iloc[:0]).shape == (0, 4)
    with pytest.raises(ValueError, match="size"):
        joint.attribution(small_table(5, 3).assign(size=["a", "b", "c"]))
