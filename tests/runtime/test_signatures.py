"""Signatures as text and back, and the list of what wheels bring machine code for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from numba import typeof

from jointforest.runtime import numba_internals as internals
from jointforest.runtime import signatures
from jointforest.runtime.compile import Entry, entry
from jointforest.runtime.records import record


@record
class Inner(NamedTuple):
    x: np.ndarray
    scale: float


@record
class Outer(NamedTuple):
    inner: Inner
    n: int


@entry
def one(outer, x):
    return outer.n + x.shape[0]


@entry
def two(outer, x):
    return outer.n - x.shape[0]


def test_types_as_text() -> None:
    x = np.zeros((2, 3))
    fixed = x.copy()
    fixed.flags.writeable = False
    assert signatures.text_of(map(typeof, (x, x.T, x[:, ::2], x[0], fixed))) == (
        "float64[:, ::1], float64[::1, :], float64[:, :], float64[::1], readonly(float64[:, ::1])"
    )
    assert signatures.text_of(map(typeof, (1, 2.0, True, np.int32(3), None))) == "int64, float64, bool, int32, none"
    path = f"{__name__}.Outer({__name__}.Inner(float32[::1], float64), int64)"
    assert signatures.text_of([typeof(Outer(Inner(np.zeros(2, np.float32), 1.0), 3))]) == path


def test_a_list_is_read_as_it_was_written() -> None:
    outer, other = (typeof(Outer(Inner(np.zeros(2, kind), 1.0), 3)) for kind in (np.float32, np.float64))
    listed = [
        (two, (outer, typeof(np.zeros((2, 2), np.int32)))),
        (one, (other, typeof(np.zeros(2)))),
        (one, (outer, typeof(np.zeros(2)))),
    ]
    text = signatures.write_list(listed)
    assert (
        signatures.write_list(signatures.read_list(text, internals.record_type))
        == text
        == signatures.write_list(listed[::-1])
    )
    assert {(entry, signature) for entry, signature in signatures.read_list(text, internals.record_type)} == set(listed)
    assert text.splitlines()[-1] == f"{__name__}.two(Outer, int32[:, ::1])"
    written = (f"{entry.py_func.__module__}.{entry.__name__}({signatures.text_of(types)})" for entry, types in listed)
    assert signatures.entries("\n".join(written)) == signatures.entries(text)
    assert len(signatures.entries(text)) == 3


@pytest.mark.parametrize("line", ["x", "1 + 1", "f(x[0](1))", "a.b = int64"])
def test_other_text_is_no_list(line: str) -> None:
    with pytest.raises((ValueError, AttributeError, KeyError)):
        signatures.read_list(line, internals.record_type)


def test_the_list_of_the_package_is_as_the_tool_writes_it() -> None:
    """If this fails, run tools/list_signatures.py."""
    text = signatures.LIST.read_text()
    listed = signatures.read_list(text, internals.record_type)
    assert signatures.write_list(listed) == text
    assert all(isinstance(entry, Entry) for entry, _ in listed)
    assert all(type(entry.compiled) is internals._Entry for entry, _ in listed)
