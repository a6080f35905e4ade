"""How much memory a question may take at a time: what would take more is cut into pieces."""

from __future__ import annotations

LIMIT = 2 << 30
"""Bytes that a question may take, beside its answer."""


def at_once(bytes_each: float, share: float = 1.0) -> int:
    """How many equal pieces of work are done at once, at least one, in a share of `LIMIT`."""
    return max(int(share * LIMIT / max(bytes_each, 1.0)), 1)
