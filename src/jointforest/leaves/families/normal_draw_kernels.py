"""Draws from the standard normal on an interval by rejection: exact, and without its quantile function."""

from __future__ import annotations

import math

import numpy as np

from ...ground.compile import kernel
from ...ground.random_kernels import SCALE, next_bits, uniform

_LAYERS = 256
_TAIL_START = 3.6541528853610088
"""Where the tail begins that the lowest layer holds, so that all layers have the same area."""


def _layers() -> tuple[np.ndarray, np.ndarray]:
    """Right ends of the layers under exp(-x^2/2), the widest first, and the curve's heights there."""
    f = math.exp(-0.5 * _TAIL_START**2)
    area = _TAIL_START * f + math.sqrt(math.pi / 2) * math.erfc(_TAIL_START / math.sqrt(2))
    x = [area / f, _TAIL_START]  # the lowest layer as a rectangle
    for _ in range(_LAYERS - 2):
        x.append(math.sqrt(-2 * math.log(math.exp(-0.5 * x[-1] ** 2) + area / x[-1])))
    ends = np.array([*x, 0.0])
    return ends, np.exp(-0.5 * ends**2)


_END, _HEIGHT = _layers()


@kernel
def normal(state):
    """A standard normal number by the ziggurat of Marsaglia and Tsang (2000)."""
    while True:
        bits = next_bits(state)
        layer = np.int64(bits & np.uint64(_LAYERS - 1))
        x = (np.float64(bits >> np.uint64(12)) + 0.5) * (2.0 * SCALE) - 1.0
        x *= _END[layer]
        if abs(x) < _END[layer + 1]:
            return x
        if layer == 0:
            excess = _tail(_TAIL_START, math.inf, state)
            return _TAIL_START + excess if x > 0.0 else -_TAIL_START - excess
        low, high = _HEIGHT[layer], _HEIGHT[layer + 1]
        if low + uniform(state) * (high - low) < math.exp(-0.5 * x * x):
            return x


@kernel
def _accepts(w, state):
    """True with probability exp(-w)."""
    u = uniform(state)
    return u <= 1.0 - w or u <= math.exp(-w)


@kernel
def _tail(za, h, state):
    """Excess over za >= 1 of a draw in (za, za + h], za h >= 1, by exponential numbers (after Robert 1995)."""
    while True:
        t = -math.log(uniform(state)) / za
        if t <= h and _accepts(0.5 * t * t, state):
            return t


@kernel
def _flat(za, h, state):
    """Excess over za of a draw in (za, za + h], where the density hardly changes, by uniform numbers."""
    while True:
        t = uniform(state) * h
        if _accepts(t * (za + 0.5 * t) if za >= 0.0 else 0.5 * (za + t) * (za + t), state):
            return t


@kernel
def draw(za, zb, h, state):
    """A draw from the part in (za, zb], h wide: (anchor, t), the point being za + t, zb - t or t for anchor 1, 2, 0.

    Of the numbers tried more than one in four is taken, wherever the interval is.
    """
    flip = za + zb < 0.0
    if flip:
        za, zb = -zb, -za
    if h * max(za, 1.0) < 1.0:
        t = _flat(za, h, state)
    elif za >= 1.0:
        t = _tail(za, h, state)
    else:
        t = normal(state)
        while not za < t <= zb:
            t = normal(state) if za < 0.0 else abs(normal(state))
        return 0, (-t if flip else t)
    return (2 if flip else 1), t
