"""Thousands of damaged and forged model files: each is refused with `ModelFileError`, or is a model that answers.

A crash of the process, another exception, or a hang fails the test run.
"""

from __future__ import annotations

import copy
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jointforest.data.evidence import build
from jointforest.models import file as store
from jointforest.models.box_forest.box_forest import BoxForest
from jointforest.models.box_forest.files import check_forest
from jointforest.models.box_forest.posterior import log_density, sample
from jointforest.models.box_forest.structure import Forest
from jointforest.models.file import ModelFileError

from ..box_answers import impute, level_probability, quantile
from ..random_cases.evidence import random_evidence
from ..wrapped import load_forest
from .test_file import random_model

MODEL = random_model(5, n_trees=2, max_depth=3, mixed=0.5)
assert len(MODEL.leaves.pieces.log_weight) > 10
ABOUT, ARRAYS = store.contents(BoxForest(MODEL))
DATA = store.pack(ABOUT, ARRAYS)
EVIDENCE = random_evidence(MODEL, 5, 6)
ANSWERS = log_density(MODEL, EVIDENCE)
QUANTILES = np.array([1e-6, 0.5, 1 - 1e-6])

FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1e308, -1e308, 5e-324, 1e-300, np.nan, np.inf, -np.inf, 1e16, 1.0 + 1e-7)
INTEGERS = (0, 1, 2, 3, 7, 63, 64, 127, 255, 2**15, 2**31 - 1)


def loads(data: bytes, path: Path) -> Forest | None:
    """The model in these bytes, or None if they are refused in the promised way."""
    path.unlink(missing_ok=True)  # to write over a file may wait for the disk
    path.write_bytes(data)
    try:
        return load_forest(path)
    except ModelFileError as error:
        assert str(path) in str(error)
        return None


def exercise(model: Forest) -> None:
    """A forged model that passed: its promises hold, and queries on it end without a crash."""
    check_forest(model.schema, model.columns, model.trees, model.leaves, model.has_background)
    if model.schema.names != MODEL.schema.names or not np.array_equal(
        model.columns.level_start, MODEL.columns.level_start
    ):
        evidence = build(model.schema, n=2)
    else:
        evidence = EVIDENCE
    with np.errstate(all="ignore"):
        assert log_density(model, evidence).shape == evidence.log_penalty.shape
        assert len(sample(model, evidence, 2, 0)) == 2 * len(evidence.log_penalty)
        assert len(impute(model, evidence)) == len(evidence.log_penalty)
        for j in np.flatnonzero(model.columns.is_categorical == 0):
            assert quantile(model, evidence, int(j), QUANTILES).shape == (len(evidence.log_penalty), len(QUANTILES))


def damaged(rng: np.random.Generator, whole: bytes = DATA) -> bytes:
    """A file with a few bytes changed, cut out, put in, or cut off; never the file itself."""
    data = bytearray(whole)
    at = (
        int(rng.integers(len(data)))
        if rng.random() < 0.5
        else int(rng.integers(8 + int.from_bytes(whole[:8], "little")))
    )
    size = int(rng.integers(1, 65))
    case = rng.integers(6)
    if case == 0:
        data[at] ^= 1 << int(rng.integers(8))
    elif case == 1:
        data[at] = (data[at] + int(rng.integers(1, 256))) % 256
    elif case == 2:
        del data[at : at + size]
    elif case == 3:
        data[at:at] = rng.bytes(size)
    elif case == 4:
        del data[at:]
    else:
        data += rng.bytes(size)
    assert data != whole
    return bytes(data)


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for _ in range(4000):
        assert loads(damaged(rng), tmp_path / "m.joint") is None


def test_every_byte_of_the_header_counts(tmp_path: Path) -> None:
    for at in range(8 + int.from_bytes(DATA[:8], "little")):
        data = bytearray(DATA)
        data[at] ^= 1 + (at % 255)
        assert loads(bytes(data), tmp_path / "m.joint") is None, at


def sealed(data: bytes) -> bytes:
    """The damaged file with its checksum made right again, as a forger would."""
    try:
        checksum = store.read_about(data)["checksum"].encode()
    except ValueError:
        return data
    at = data.find(checksum)
    if len(checksum) != 64 or at < 0:
        return data
    return data[:at] + store._checksum(data, at).encode() + data[at + 64 :]


def test_damaged_files_with_a_right_checksum(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    accepted = 0
    for _ in range(4000):
        model = loads(sealed(damaged(rng)), tmp_path / "m.joint")
        if model is not None:
            accepted += 1
            exercise(model)
    assert 0 < accepted < 4000  # else the checksum was not right, or nothing was checked


def forged_array(rng: np.random.Generator, array: np.ndarray) -> np.ndarray:
    """One array changed: an entry, a swap, a shape, a type."""
    array = array.copy()
    case = rng.integers(10)
    if case == 0:
        return array[tuple(slice(0, max(0, n - int(rng.integers(2)))) for n in array.shape)].copy()
    if case == 1:
        return np.concatenate([array, array[: int(rng.integers(1, 3))]])
    if case == 2:
        dtype = rng.choice([np.float32, np.int64, np.int32, np.uint8, np.float64, np.uint64, np.int8])
        with np.errstate(all="ignore"):
            return array.astype(dtype)
    if case == 3:
        return [array.reshape(-1), array.reshape(*array.shape, 1), array[:0].copy(), array.T.copy()][
            int(rng.integers(4))
        ]
    flat = array.reshape(-1)
    for _ in range(int(rng.integers(1, 4)) if flat.size else 0):
        i, k = rng.integers(flat.size, size=2)
        if case <= 5:
            flat[i], flat[k] = flat[k], flat[i]
        elif array.dtype.kind == "f" and rng.random() < 0.5:
            with np.errstate(over="ignore"):
                flat[i] *= rng.choice([1 + 1e-9, 0.5, -1.0, 3.0])
        elif array.dtype.kind == "f":
            with np.errstate(over="ignore"):
                flat[i] = rng.choice(FLOATS)
        elif array.dtype.kind == "u":
            flat[i] = rng.integers(2**8) if array.dtype == np.uint8 else rng.integers(2**64, dtype=np.uint64)
        else:
            flat[i] = rng.choice(INTEGERS) * rng.choice([1, -1])
    return array


def test_forged_arrays(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    names = sorted(ARRAYS)
    accepted = 0
    for _ in range(6000):
        changed = {name: forged_array(rng, ARRAYS[name]) for name in rng.choice(names, size=rng.integers(1, 3))}
        arrays = ARRAYS | changed
        if rng.random() < 0.02:
            del arrays[str(rng.choice(names))]
        model = loads(store.pack(ABOUT, arrays), tmp_path / "m.joint")
        if model is not None:
            accepted += 1
            exercise(model)
    assert 0 < accepted < 4000


def test_forged_arrays_of_columns_of_many_levels(tmp_path: Path) -> None:
    seeds = (random_model(seed, n_trees=2, mixed=0.3) for seed in range(100))
    about, arrays = store.contents(BoxForest(next(m for m in seeds if m.leaves.wide.scale.shape[1] == 2)))
    rng, accepted = np.random.default_rng(4), 0
    names = sorted(name for name in arrays if ".wide." in name)
    for _ in range(2000):
        changed = {name: forged_array(rng, arrays[name]) for name in rng.choice(names, size=rng.integers(1, 3))}
        model = loads(store.pack(about, arrays | changed), tmp_path / "m.joint")
        if model is not None:
            accepted += 1
            exercise(model)
            evidence = random_evidence(model, accepted, 4)
            for j in np.flatnonzero(model.columns.is_categorical):
                with np.errstate(all="ignore"):
                    assert len(level_probability(model, evidence, int(j))) == 4
    assert 0 < accepted < 1200


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of all values within nested lists and dicts."""
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found += places(item, (*path, key))
    return found


def forged_json(rng: np.random.Generator, about: dict[str, Any]) -> dict[str, Any]:
    """The metadata with one value changed, removed, doubled or moved."""
    about = copy.deepcopy(about)
    paths = places(about)
    path = paths[int(rng.integers(len(paths)))]
    holder: Any = about
    for key in path[:-1]:
        holder = holder[key]
    other: Any = about
    for key in paths[int(rng.integers(len(paths)))]:
        other = other[key]
    replacements: list[Callable[[], Any]] = [
        lambda: None,
        lambda: [],
        lambda: {},
        lambda: "",
        lambda: "\ud800",
        lambda: "categorical",
        lambda: "datetime",
        lambda: bool(rng.integers(2)),
        lambda: int(rng.choice(INTEGERS)) * (-1) ** int(rng.integers(2)),
        lambda: 10**400,
        lambda: float(rng.choice([v for v in FLOATS if np.isfinite(v)])),
        lambda: [holder[path[-1]]] * int(rng.integers(3)),
        lambda: copy.deepcopy(other),
    ]
    if rng.random() < 0.1:
        del holder[path[-1]]
    elif isinstance(holder, list) and rng.random() < 0.2:
        holder.insert(path[-1], copy.deepcopy(other))
    else:
        holder[path[-1]] = replacements[int(rng.integers(len(replacements)))]()
    return about


def test_forged_metadata(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    accepted = 0
    for _ in range(4000):
        model = loads(store.pack(forged_json(rng, ABOUT), ARRAYS), tmp_path / "m.joint")
        if model is not None:
            accepted += 1
            exercise(model)
    assert 0 < accepted < 3000


@pytest.mark.parametrize(
    "shape", [[2**40], [2**62, 4], [2**63], [-1], [1.5], [1, 2**64], [0, 2**62], "12", [[3]], None]
)
def test_huge_and_odd_shapes_are_refused_without_memory(shape: Any, tmp_path: Path) -> None:
    size = int.from_bytes(DATA[:8], "little")
    header = json.loads(DATA[8 : 8 + size])
    header["0.leaves.a"]["shape"] = shape
    text = json.dumps(header).encode()
    data = len(text).to_bytes(8, "little") + text + DATA[8 + size :]
    tracemalloc.start()
    assert loads(sealed(data), tmp_path / "m.joint") is None
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * len(data) + 2**20


def test_overlapping_arrays_are_refused(tmp_path: Path) -> None:
    size = int.from_bytes(DATA[:8], "little")
    header = json.loads(DATA[8 : 8 + size])
    header["0.leaves.a"]["data_offsets"] = header["0.leaves.b"]["data_offsets"]
    text = json.dumps(header).encode()
    assert loads(sealed(len(text).to_bytes(8, "little") + text + DATA[8 + size :]), tmp_path / "m.joint") is None


def test_the_undamaged_file_gives_the_same_answers(tmp_path: Path) -> None:
    model = loads(DATA, tmp_path / "m.joint")
    assert model is not None
    np.testing.assert_array_equal(log_density(model, EVIDENCE), ANSWERS)
    assert sealed(DATA) == DATA
