"""A sum of parts that are independent given a hidden state: all answers from the list of all values and states."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np


class Answers(NamedTuple):
    """What a sum says in one row: of the state (H,), of each part's values (S_i,), of its codes and states (K_i, H)."""

    probability: float
    state: np.ndarray
    laws: list[np.ndarray]
    weights: list[np.ndarray]
    totals: np.ndarray


def answers(
    state: np.ndarray,
    by_code: list[np.ndarray],
    code: list[np.ndarray],
    weight: list[np.ndarray],
    place: list[np.ndarray],
    likelihood: np.ndarray,
) -> Answers:
    """Answers by p(h) prod_i weight_i[s_i] by_code_i[code_i[s_i], h] likelihood[sum of places], added up.

    ``weights[i][c, h]`` is p(sum | code c of part i, state h), divided by p(sum): that of values of the code, by their
    weights, and all values of the other parts.
    """
    H, m = len(state), len(code)
    joint_state, laws = np.zeros(H), [np.zeros(len(c)) for c in code]
    weights = [np.zeros((len(table), H)) for table in by_code]
    totals = np.zeros(len(likelihood))
    for values in itertools.product(*(range(len(c)) for c in code)):
        total = sum(int(place[i][s]) for i, s in enumerate(values))
        for h in range(H):
            each = [weight[i][s] * by_code[i][code[i][s], h] for i, s in enumerate(values)]
            p = state[h] * np.prod(each) * likelihood[total]
            joint_state[h] += p
            totals[total] += p
            for i, s in enumerate(values):
                laws[i][s] += p
                others = np.prod([each[k] for k in range(m) if k != i])
                weights[i][code[i][s], h] += weight[i][s] * others * likelihood[total]
    probability = float(joint_state.sum())
    scale = 1.0 / probability if probability > 0.0 else 0.0
    return Answers(
        probability, joint_state * scale, [law * scale for law in laws], [w * scale for w in weights], totals * scale
    )
