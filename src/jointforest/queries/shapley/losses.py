"""Losses of answers, and of answers that are known with an error."""

from __future__ import annotations

import numpy as np

_LEAST = 1e-12
"""Least probability that a logarithm is taken of."""


def loss_of(loss: str, answer: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Loss (q,) of answers (q, K), where the truth y (q,) is numbers for "squared", numbers of classes for "log"."""
    if loss == "squared":
        return ((answer[:, 0] - y) ** 2).astype(np.float64)
    return -np.log(np.maximum(_of_class(answer, y), _LEAST))


def loss_with_error(loss: str, answer: np.ndarray, variance: np.ndarray, y: np.ndarray) -> np.ndarray:
    """`loss_of` answers with errors of this variance (q, K), less what these add to it on average (second order)."""
    plain = loss_of(loss, answer, y)
    if loss == "squared":
        return plain - variance[:, 0]
    p, v = _of_class(answer, y), _of_class(variance, y, complement=False)
    return plain - 0.5 * v / np.maximum(p, _LEAST) ** 2


def _of_class(answer: np.ndarray, y: np.ndarray, complement: bool = True) -> np.ndarray:
    """The entry of each row's class; one column is that of the second of two classes."""
    if answer.shape[1] == 1:
        return np.where(y == 1, answer[:, 0], 1.0 - answer[:, 0]) if complement else answer[:, 0]
    return answer[np.arange(len(y)), y]
