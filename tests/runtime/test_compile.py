"""How kernels are compiled: what Python may call, records by reference, code kept on disk, the word on a terminal."""

from __future__ import annotations

import os
import pickle
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

import jointforest as jf
from jointforest.ensembles.evaluate import encode_features, raw
from jointforest.ensembles.read import read_ensemble
from jointforest.runtime import compile as compilation
from jointforest.runtime.compile import entry, kernel
from jointforest.runtime.records import record

SIMPLE = """
from pathlib import Path
from jointforest.runtime import machine_code
machine_code.SHIPPED = Path("no folder")  # a wheel brings this kernel
from jointforest.runtime.random_kernels import stream_state
stream_state(1, 2)
"""


@record
class Inner(NamedTuple):
    x: np.ndarray
    scale: float


@record
class Outer(NamedTuple):
    inner: Inner
    table: np.ndarray
    n: int
    is_high: bool


@kernel
def scaled(inner, i):
    return inner.scale * inner.x[i]


@kernel
def doubled(x):
    return 2.0 * x


@entry
def read(outer, out):
    for i in range(outer.n):
        out[i] = scaled(outer.inner, i) + outer.table[i, 1] + (100.0 if outer.is_high else 0.0)
    return doubled(out).sum()


def test_records_are_read_by_reference_nested_and_with_numbers() -> None:
    outer = Outer(Inner(np.arange(4.0), 3.0), np.arange(8.0).reshape(4, 2), 4, True)
    out = np.zeros(4)
    expected = 3.0 * outer.inner.x + outer.table[:, 1] + 100.0
    assert read(outer, out) == 2.0 * expected.sum()
    assert out.tolist() == expected.tolist()
    read(outer._replace(n=2, is_high=False, table=-outer.table), out)
    assert out.tolist() == [-1.0, 0.0, *expected[2:]]
    assert len(read.compiled.signatures) <= 1  # none if its code was kept


def test_a_record_holds_arrays_numbers_and_records_alone() -> None:
    with pytest.raises(TypeError, match=r"Inner\.x: a record holds arrays, numbers and records"):
        read(Outer(Inner("text", 3.0), np.zeros((1, 2)), 1, True), np.zeros(1))  # type: ignore[arg-type]


def test_python_cannot_call_an_inner_kernel() -> None:
    with pytest.raises(TypeError, match="scaled is not callable"):
        scaled(Inner(np.ones(1), 2.0), 0)


def test_a_kernel_returns_an_array_that_it_was_given() -> None:
    @kernel
    def both(x):
        return x, 1.0

    @entry
    def use(x):
        return both(x)[0].sum()

    assert use(np.ones(3)) == 3.0


def said(command: list[str], cache: Path, terminal: bool) -> str:
    """What a process writes to its stderr, a terminal or a pipe."""
    env: dict[str, Any] = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    if not terminal:
        return subprocess.run(command, env=env, stderr=subprocess.PIPE, text=True, check=True).stderr
    ours, its = pty.openpty()
    with os.fdopen(ours, "rb", buffering=0) as reader:
        with os.fdopen(its, "wb", buffering=0) as writer:
            subprocess.run(command, env=env, stderr=writer, check=True)
            os.write(its, b"end")
        text = b""
        while not text.endswith(b"end"):
            text += reader.read(1000)
    return text.decode().removesuffix("end")


def test_a_terminal_is_told_once_that_kernels_are_compiled(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SIMPLE]
    assert said(command, tmp_path / "a", terminal=False) == ""
    assert said(command, tmp_path / "b", terminal=True).split("\r\n") == [
        "jointforest: compiling kernels, once; they are kept for later calls",
        "",
    ]
    assert said(command, tmp_path / "b", terminal=True) == ""  # kept: nothing is compiled
    own = "import numba; numba.njit(lambda x: x)(1)"  # somebody else's kernel is none of our business
    assert (
        said([sys.executable, "-c", f"import jointforest.runtime.compile; {own}"], tmp_path / "c", terminal=True) == ""
    )


ANSWER = """
import pickle, sys
from pathlib import Path
import numba
numba.__version__ = "9999.0"
from jointforest.ensembles.evaluate import raw
found = raw(*pickle.loads(Path(sys.argv[1]).read_bytes()))
print(found.tobytes().hex(), "jointforest.runtime.numba_internals" in sys.modules)
"""


def test_this_release_of_numba_is_one_that_was_tested() -> None:
    import numba

    assert ".".join(numba.__version__.split(".")[:2]) in compilation.TESTED_RELEASES
    assert compilation.compiler().__name__ == "jointforest.runtime.numba_internals"


def test_an_unknown_release_of_numba_gives_the_same_answers(tmp_path: Path) -> None:
    """Sums of boosted trees: an entry that calls inner kernels, and takes a record by reference."""
    rows = jf.datasets.load_penguins().dropna(subset="body_mass_g").astype({"species": "category", "sex": "category"})
    X = rows[["species", "sex", "bill_length_mm", "flipper_length_mm"]].copy()
    X.iloc[::7, [0, 2]] = np.nan
    model = HistGradientBoostingRegressor(max_iter=5, categorical_features="from_dtype").fit(X, rows["body_mass_g"])
    ensemble = read_ensemble(model)
    asked = ensemble, *encode_features(ensemble, X)
    (tmp_path / "asked").write_bytes(pickle.dumps(asked))
    command = [sys.executable, "-c", ANSWER, str(tmp_path / "asked")]
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    unknown = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout.split()
    assert unknown == [raw(*asked).tobytes().hex(), "False"]
    np.testing.assert_allclose(raw(*asked)[:, 0], model.predict(X), rtol=1e-12)
    assert "jointforest.runtime.numba_internals" in sys.modules  # this process answered with it
