"""Counter-based random numbers for kernels: every row (or tree) has its own stream, whatever thread draws it."""

import numpy as np

from .compile import entry, kernel

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_M1 = np.uint64(0xBF58476D1CE4E5B9)
_M2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S12 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(12)
SCALE = 1.0 / 4503599627370496.0
"""2^-52."""


@kernel
def mix_bits(z):
    """Scramble 64 bits (the finaliser of SplitMix64, Steele et al. 2014)."""
    z = (z ^ (z >> _S30)) * _M1
    z = (z ^ (z >> _S27)) * _M2
    return z ^ (z >> _S31)


@kernel
def start_stream(state, seed, number):
    """Make of ``state`` that of `stream`, where many streams are begun: an array each takes longer than the numbers."""
    state[0] = mix_bits(mix_bits(np.uint64(seed) + _GAMMA) ^ mix_bits(np.uint64(number) * _M1 + _GAMMA))


@kernel
def stream(seed, number):
    """State array (one uint64) of the stream with this number under this seed; both non-negative integers."""
    state = np.empty(1, dtype=np.uint64)
    start_stream(state, seed, number)
    return state


@entry
def stream_state(seed, number):
    """What `stream` returns, for Python."""
    return stream(seed, number)


@kernel
def next_bits(state):
    """Next 64 bits of the stream."""
    state[0] = state[0] + _GAMMA
    return mix_bits(state[0])


@kernel
def uniform(state):
    """Next number of the stream, uniform on the open interval (0, 1)."""
    return (np.float64(next_bits(state) >> _S12) + 0.5) * SCALE


@kernel
def below(state, n):
    """Next integer of the stream in 0..n-1."""
    return min(np.int64(uniform(state) * n), n - 1)
