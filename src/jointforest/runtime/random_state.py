"""One seed for whatever users give as ``random_state``."""

from __future__ import annotations

from typing import Any

import numpy as np

from .parameters import check_number


def seed_of(random_state: Any) -> int:
    """One non-negative integer for scikit-learn's ``random_state``: None, int, Generator or RandomState.

    Raises
    ------
    ValueError
        For anything else, and negative integers.
    """
    if random_state is None:
        return int(np.random.default_rng().integers(2**63))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    check_number(
        "random_state", random_state, 0, 2**63 - 1, whole=True,
        text="None, a non-negative integer, a Generator or a RandomState",
    )  # fmt: skip
    return int(random_state)
