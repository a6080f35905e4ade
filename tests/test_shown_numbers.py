"""Numbers in texts have the digits that people read: none has more than twelve, whatever floats make of them."""

from __future__ import annotations

import math
import re
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.data.conditions import shown_number

_NUMBER = re.compile(r"\d+\.\d+|\d{13,}")


def _long_numbers(text: str) -> list[str]:
    text = re.sub(r"<svg.*?</svg>|<style.*?</style>", "", text, flags=re.DOTALL)
    return [x for x in _NUMBER.findall(text) if len(x.replace(".", "").strip("0")) > 12]


def _table(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    n = 250
    x = rng.normal(50, 20, n)
    return pd.DataFrame({
        "x": x,
        "third": x / 3 + rng.normal(0, 1, n),
        "tenths": np.round(rng.gamma(2, 2, n), 1),
        "threes": rng.integers(0, 40, n) * 0.3,
        "cents": np.round(rng.gamma(2, 3_000, n), 2),
        "large": rng.normal(1e9, 1e8, n),
        "single": rng.normal(5, 1, n).astype(np.float32),
        "part": np.where(rng.random(n) < 0.3, 0.1 + 0.2, rng.random(n)),
        "level": rng.choice(["a", "b"], n),
    })  # fmt: skip


def _texts(joint: jf.Joint, frame: pd.DataFrame, rng: np.random.Generator) -> list[Any]:
    """What questions about random columns print."""
    a, b = (str(name) for name in rng.choice(frame.columns[:-1], 2, replace=False))
    low, high = sorted(rng.choice(frame[a], 2).tolist())
    given = joint.given(f"{a} > {low} and {b} < {frame[b].median()}")
    asked = [given, joint.given({b: frame[b].iloc[0]}), given.marginal(a), joint.marginal(b), given.explain(k=3)]
    asked += [joint.query(f"P({a} > {low} | {b} > {frame[b].median()})") is None, joint.reading, joint]
    with pytest.raises(ValueError, match="probability 0") as caught:
        joint.given(f"{a} > {high} and {a} < {low}").mean(b)
    asked.append(caught.value)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        joint.given({a: float(frame[a].max() * 1e4 / 3)}).mean(b)
    return [*asked, *(one.message for one in warned)]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "learner",
    [
        jf.HiddenTreeForest(n_states=8, max_iter=3, random_state=0),
        jf.AdversarialForest(n_estimators=3, random_state=0),
        jf.JointTree(random_state=0),
    ],
)
def test_no_text_has_more_digits(learner: Any, seed: int) -> None:
    frame, rng = _table(seed), np.random.default_rng(seed)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        joint = learner.fit(frame).joint_
    texts = [one.message for one in warned]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(4):
            texts += _texts(joint, frame, rng)
        texts.append(jf.fidelity(joint, frame, only=["statements", "marginals", "pairs"], random_state=0))
        texts.append(joint.check(frame.head(50)))
        if isinstance(learner, jf.JointTree):
            texts += [joint.tree_text(0), joint.tree_text(0, max_leaves=3)]
    for one in texts:
        html = one._repr_html_() if hasattr(one, "_repr_html_") else ""
        assert _long_numbers(str(one) + repr(one) + (html or "")) == []


@pytest.mark.parametrize("name", ["tenths", "threes", "cents"])
def test_modes_are_values_of_the_table(name: str) -> None:
    frame = _table(0)
    joint = jf.HiddenTreeForest(n_states=8, max_iter=3, random_state=0).fit(frame).joint_
    for level in ("a", "b"):
        found = joint.query(f"Mode({name} | level = {level})")
        assert len(repr(found)) <= 8


@pytest.mark.parametrize("seed", range(20))
def test_shown_numbers_are_near_and_short(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(200):
        x = float(rng.normal() * 10.0 ** rng.uniform(-12, 14))
        assert float(shown_number(x)) == pytest.approx(x, rel=1e-5)
        assert _long_numbers(shown_number(x)) == []
        decimal = round(x, int(rng.integers(0, 4)))
        if decimal and len(repr(abs(decimal))) <= 11:
            assert float(shown_number(decimal)) == decimal
            assert float(shown_number(math.nextafter(decimal, math.inf))) == pytest.approx(decimal, rel=1e-12)


def test_numbers_with_the_noise_of_floats() -> None:
    noisy = {0.1 + 0.2: "0.3", 2.9000000000000004: "2.9", 75.90140855140264: "75.9014", -1e-8 / 3: "-3.33333e-09"}
    large = {0.25: "0.25", 1234567.89: "1234567.89", 1234567890.1234567: "1234567890"}
    assert {x: shown_number(x) for x in noisy | large} == noisy | large
