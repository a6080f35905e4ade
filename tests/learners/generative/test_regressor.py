"""The regressor beside the other learners."""

from __future__ import annotations

import inspect

import jointforest as jf


def test_learners_have_the_same_defaults_but_for_those_of_their_trees() -> None:
    """A parameter of one name is one thing, in both estimators and in what leaves are fitted by."""
    one, two, three = (
        {name: parameter.default for name, parameter in inspect.signature(learner).parameters.items()}
        for learner in (jf.GenerativeForestClassifier, jf.GenerativeForestRegressor, jf.AdversarialForest)
    )
    assert {name for name in one if name in two and one[name] != two[name]} == {"criterion", "max_features"}
    for name in ("bounds", "prior", "spread_rows", "epsilon"):
        assert two[name] == three[name]
