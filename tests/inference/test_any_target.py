"""Every joint is a classifier and a regressor: hidden trees and mixtures, against sums over all rows of a table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ..random_cases.hidden_parts import ALL, INSIDE, hidden_joint, mixed_joint, small_table


@pytest.mark.parametrize("make", [hidden_joint, mixed_joint])
@pytest.mark.parametrize("target", ["place", "size", "flag"])
def test_predictions_of_any_column(make, target: str) -> None:
    joint = make(small_table(0), 3).condition(INSIDE)
    frame = small_table(6, 25).astype({"size": "Float64", "grade": "Float64", "flag": "boolean"})
    frame = frame.mask(np.random.default_rng(0).random(frame.shape) < 0.4)
    p = np.exp(joint.log_density(ALL))
    found = joint.predict(frame, target)
    for i, (_, row) in enumerate(frame.iterrows()):
        agrees = np.ones(len(ALL), bool)
        for name, value in row.items():
            if name != target and not pd.isna(value):
                agrees &= (ALL[name] == value).to_numpy()
        share = p * agrees / (p * agrees).sum()
        if target == "size":
            assert found[i] == pytest.approx(share @ ALL["size"], abs=1e-9)
        else:
            levels = joint.levels(target)
            truth = [share[ALL[target] == level].sum() for level in levels]
            np.testing.assert_allclose(joint.predict_proba(frame.iloc[[i]], target)[0], truth, atol=1e-9)
            assert found[i] == levels[int(np.argmax(truth))]
