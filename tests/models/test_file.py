"""Saving and loading models: equal answers, equal bytes, the old file kept, clear errors."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from safetensors import safe_open

from jointforest.data.schema import Schema
from jointforest.models import file as store
from jointforest.models.box_forest.box_forest import BoxForest
from jointforest.models.box_forest.files import DERIVED_FIELDS, PIECE_FIELDS, check_forest
from jointforest.models.box_forest.posterior import log_density, sample
from jointforest.models.box_forest.structure import Forest, Trees, leaf_boxes
from jointforest.models.file import ModelFileError

from ..random_cases.evidence import random_evidence
from ..random_cases.models import random_model as any_random_model
from ..random_cases.models import seeds
from ..wrapped import load_forest, save_forest

ROOT = Path(__file__).parents[2]


def random_model(seed: int, **options: Any) -> Forest:
    """A random model whose text columns have a type that pandas frames can hold."""
    model = any_random_model(seed, **options)
    columns = tuple(
        dataclasses.replace(c, dtype="object[str]") if c.kind in ("categorical", "ordered") else c
        for c in model.schema.columns
    )
    return dataclasses.replace(model, schema=Schema(columns, model.schema.frame))


def the_model() -> Forest:
    """A model of every kind of column, with a background."""
    return random_model(7, n_trees=3, max_depth=3)


def assert_same(one: Forest, other: Forest) -> None:
    """Every array of the two models is equal bit for bit, and of the same type."""
    assert one.schema == other.schema or repr(one.schema) == repr(other.schema)  # NaN is unequal to itself
    assert one.has_background == other.has_background
    tables = ((one.columns, other.columns), (one.trees, other.trees), (one.leaves, other.leaves))
    for table, of_other in (*tables, (one.leaves.wide, other.leaves.wide), (one.leaves.pieces, other.leaves.pieces)):
        for name, array in table._asdict().items():
            again = getattr(of_other, name)
            if name in ("wide", "pieces"):
                continue
            assert again.dtype == array.dtype, name
            assert again.shape == array.shape, name
            assert again.tobytes() == array.tobytes(), name
            assert numba.typeof(again) == numba.typeof(array), name  # kernels are not compiled once more


@given(seeds)
def test_a_model_comes_back_as_it_was(seed: int) -> None:
    model = random_model(seed, n_trees=1 + seed % 4, max_depth=seed % 5, background=bool(seed % 2))
    again = store.unpack(pack_model(model)).forest
    assert_same(model, again)
    evidence = random_evidence(model, seed, 5)
    np.testing.assert_array_equal(log_density(model, evidence), log_density(again, evidence))
    np.testing.assert_array_equal(sample(model, evidence, 3, 0), sample(again, evidence, 3, 0))


@pytest.mark.parametrize("kinds", [("continuous",), ("categorical",), ("boolean", "ordered"), ("integer", "mixed")])
def test_a_model_of_one_sort_of_columns(kinds: tuple[str, ...], tmp_path: Path) -> None:
    model = random_model(3, kinds=kinds)
    save_forest(model, tmp_path / "m.joint")
    assert_same(model, load_forest(tmp_path / "m.joint"))


def pack_model(model: Forest) -> bytes:
    """Bytes of the model's file."""
    return store.pack(*store.contents(BoxForest(model)))


def test_equal_models_give_equal_bytes_in_every_process(tmp_path: Path) -> None:
    save_forest(the_model(), tmp_path / "m.joint")
    code = (
        "import hashlib, sys; sys.path.insert(0, sys.argv[1]);"
        "from tests.models.test_file import pack_model, the_model;"
        " print(hashlib.sha256(pack_model(the_model())).hexdigest())"
    )
    command = [sys.executable, "-c", code, str(ROOT)]
    other = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONHASHSEED": "5"}
    )
    assert other.stdout.strip() == hashlib.sha256((tmp_path / "m.joint").read_bytes()).hexdigest()


def test_the_file_is_plain_safetensors_without_derived_fields(tmp_path: Path) -> None:
    model = the_model()
    save_forest(model, tmp_path / "m.joint")
    with safe_open(tmp_path / "m.joint", "numpy") as file:
        names = set(file.keys())
        about = json.loads(file.metadata()["jointforest"])
        np.testing.assert_array_equal(file.get_tensor("0.leaves.a"), model.leaves.a)
        np.testing.assert_array_equal(file.get_tensor("0.trees.left_levels"), model.trees.left_levels)
    assert names == {"log_weight"} | {f"0.trees.{f}" for f in Trees._fields} | {
        f"0.leaves.{f}" for f in model.leaves._fields if f not in DERIVED_FIELDS and f not in ("wide", "pieces")
    } | {f"0.leaves.wide.{f}" for f in model.leaves.wide._fields if f not in ("place", "start")} | {
        f"0.leaves.pieces.{f}" for f in PIECE_FIELDS
    }
    assert about["format"] == store.FORMAT
    assert about["components"] == [{"kind": "forest", "has_background": True}]
    assert about["schema"] == model.schema.to_dict()


def test_the_checksum_is_sha256_with_itself_zeroed(tmp_path: Path) -> None:
    save_forest(the_model(), tmp_path / "m.joint")
    data = (tmp_path / "m.joint").read_bytes()
    checksum = store.read_about(data)["checksum"]
    assert hashlib.sha256(data.replace(checksum.encode(), b"0" * 64)).hexdigest() == checksum


def test_loading_does_not_depend_on_the_folder_or_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    save_forest(the_model(), "ein Modell é")
    assert_same(the_model(), load_forest(tmp_path / "ein Modell é"))
    assert os.listdir(tmp_path) == ["ein Modell é"]


# ------------------------------------------------------------------------------------------------------------ files


def test_a_folder_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="is a directory"):
        save_forest(the_model(), tmp_path)
    with pytest.raises(FileNotFoundError, match=r"none.m\.joint"):
        save_forest(the_model(), tmp_path / "none" / "m.joint")
    assert list(tmp_path.iterdir()) == []


def test_the_old_file_stays_when_writing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.joint"
    save_forest(the_model(), path)
    before = path.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        save_forest(random_model(8), path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m.joint"]


def test_an_existing_file_is_replaced_also_behind_a_link(tmp_path: Path) -> None:
    save_forest(the_model(), tmp_path / "m.joint")
    os.symlink(tmp_path / "m.joint", tmp_path / "link.joint")
    save_forest(random_model(8), tmp_path / "link.joint")
    assert (tmp_path / "link.joint").is_symlink()
    assert_same(random_model(8), load_forest(tmp_path / "m.joint"))


def test_the_file_has_ordinary_permissions(tmp_path: Path) -> None:
    save_forest(the_model(), tmp_path / "m.joint")
    (tmp_path / "plain").touch()
    assert stat.S_IMODE((tmp_path / "m.joint").stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


def test_a_broken_model_is_not_saved(tmp_path: Path) -> None:
    model = the_model()
    a = model.leaves.a.copy()
    a[1, 0] = np.nan
    broken = dataclasses.replace(model, leaves=model.leaves._replace(a=a))
    with pytest.raises(ValueError, match=r"leaves\.a\[1, 0\] is nan, expected a finite number"):
        save_forest(broken, tmp_path / "m.joint")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a model file"),
        (b"a,b\n1,2\n" * 10, "not a model file"),
        (b"\xff" * 8 + b"{" * 100, "not a model file"),
        ((99_999_999).to_bytes(8, "little") + b"{}", "ends within its header"),
        ((2).to_bytes(8, "little") + b"{}", "not one of jointforest"),
        ((2).to_bytes(8, "little") + b"{[", "is not JSON"),
        ((200_000).to_bytes(8, "little") + b'{"a":' + b"[" * 199_995, "is not JSON"),
        ((70).to_bytes(8, "little") + b'{"__metadata__":{"jointforest":"[1]"}}'.ljust(70), "not a JSON object"),
        ((70).to_bytes(8, "little") + b'{"__metadata__":{"jointforest":"{}"}}'.ljust(70), "format version"),
        ((70).to_bytes(8, "little") + b'{"__metadata__":{"format":"pt"}}'.ljust(70), "not one of jointforest"),
    ],
)
def test_other_files_are_refused(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "other.joint"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=message) as caught:
        load_forest(path)
    assert str(path) in str(caught.value)


def test_special_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        load_forest(tmp_path / "absent.joint")
    with pytest.raises(OSError):
        load_forest(tmp_path)
    if os.path.exists("/dev/zero"):
        with pytest.raises(ModelFileError, match="not a regular file"):
            load_forest("/dev/zero")


def test_a_newer_format_asks_for_an_upgrade(tmp_path: Path) -> None:
    about, arrays = store.contents(BoxForest(the_model()))
    (tmp_path / "m.joint").write_bytes(
        store.pack(about | {"format": store.FORMAT + 1, "library": "9.9", "more": 1}, arrays)
    )
    with pytest.raises(ModelFileError, match=r"format \d, written by jointforest 9\.9, is newer.*upgrade"):
        load_forest(tmp_path / "m.joint")


def test_an_older_format_is_refused_with_a_hint(tmp_path: Path) -> None:
    about, arrays = store.contents(BoxForest(the_model()))
    old = {name: value for name, value in about.items() if name != "components"} | {"parts": about["components"]}
    (tmp_path / "m.joint").write_bytes(store.pack(old | {"format": 1}, arrays))
    with pytest.raises(ModelFileError, match=r"format 1, written by jointforest .* is older.*learn the model again"):
        load_forest(tmp_path / "m.joint")


def test_importing_the_store_loads_no_learner_and_no_frames() -> None:
    code = (
        "import sys, jointforest.models.file;"
        "print([m for m in ('sklearn', 'pandas', 'polars', 'pyarrow', 'click') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_version_is_the_same_in_both_places() -> None:
    import tomllib

    import jointforest

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == jointforest.__version__


# ------------------------------------------------------------------------------------------- every promise is checked


def test_each_broken_promise_of_the_trees_is_named() -> None:
    model = the_model()
    trees = model.trees
    inner = np.flatnonzero(trees.feature >= 0)
    leaf = np.flatnonzero(trees.feature == -1)
    by_levels = np.flatnonzero(trees.levels_at >= 0)
    by_number = inner[trees.levels_at[inner] < 0]
    assert len(by_levels) and len(by_number)
    last_word = len(trees.left_levels)

    def broken(field: str, at: int, value: float, message: str) -> None:
        array = getattr(trees, field).copy()
        array[at] = value
        with pytest.raises(ValueError, match=message):
            check_forest(
                model.schema, model.columns, trees._replace(**{field: array}), model.leaves, model.has_background
            )

    check_forest(model.schema, model.columns, trees, model.leaves, model.has_background)
    broken("feature", inner[0], 99, r"trees\.feature")
    broken("feature", inner[0], -3, r"trees\.feature")
    broken("feature", by_number[0], -2, r"trees\.threshold")
    broken("left", inner[1], inner[1], r"trees\.left")
    broken("left", inner[1], inner[0], r"trees\.left")
    broken("right", inner[0], len(trees.feature), r"trees\.right")
    broken("right", inner[0], trees.left[inner[0]], "reached")
    broken("left", leaf[0], len(trees.feature) - 1, r"trees\.left")
    broken("root", 0, 1, "reached")
    broken("root", 0, -1, r"trees\.root")
    broken("root", -1, 0, "reached")
    broken("leaf", leaf[0], trees.leaf[leaf[1]], "there twice")
    broken("leaf", leaf[0], len(leaf), r"trees\.leaf")
    broken("leaf", inner[0], 0, r"trees\.leaf")
    broken("threshold", by_number[0], np.nan, r"trees\.threshold")
    broken("threshold", leaf[0], 1.0, r"trees\.threshold")
    broken("threshold", by_levels[0], 1.0, r"trees\.threshold")
    broken("levels_at", by_levels[0], -1, r"trees\.levels_at")
    broken("levels_at", by_levels[0], last_word, r"trees\.levels_at")
    broken("levels_at", by_levels[0], 2**31 - 1, r"trees\.levels_at")
    broken("levels_at", by_number[0], 0, r"trees\.levels_at")
    broken("left_levels", trees.levels_at[by_levels[0]], 2**64 - 1, r"trees\.left_levels")
    broken("weight", inner[0], 1.5, r"trees\.weight")
    broken("weight", leaf[0], -0.1, r"trees\.weight")
    broken("weight", leaf[0], np.nan, r"trees\.weight")
    broken("weight", inner[1] if inner[1] not in trees.root else inner[2], 0.0, r"trees\.weight")
    short = trees._replace(threshold=trees.threshold[:-1])
    with pytest.raises(ValueError, match=r"trees\.threshold: expected shape"):
        check_forest(model.schema, model.columns, short, model.leaves, model.has_background)
    with pytest.raises(ValueError, match=r"trees\.left: expected int32, got int64"):
        wide = trees._replace(left=trees.left.astype(np.int64))
        check_forest(model.schema, model.columns, wide, model.leaves, model.has_background)
    without = random_model(7, n_trees=1, background=False)
    with pytest.raises(ValueError, match="background"):
        check_forest(without.schema, without.columns, without.trees, without.leaves, True)


def test_each_broken_promise_of_the_leaves_is_named() -> None:
    model = random_model(11, n_trees=4, max_depth=3)
    leaves, columns = model.leaves, model.columns
    uniform = tuple(np.argwhere(leaves.family == 1)[0])
    normal = tuple(np.argwhere(leaves.family == 0)[0])
    box_lo, _, allowed = leaf_boxes(model.trees, columns)
    bounded = tuple(np.argwhere(np.isfinite(box_lo) & (leaves.family != 1) & (columns.step == 0))[0])
    grid = tuple(np.argwhere(np.isfinite(leaves.hi) & (columns.step > 0))[0])
    closed = tuple(np.argwhere(~allowed)[0])

    def broken(field: str, at: tuple[Any, ...], value: Any, message: str) -> None:
        array = getattr(leaves, field).copy()
        array[at] = value
        with pytest.raises(ValueError, match=message):
            check_forest(model.schema, columns, model.trees, leaves._replace(**{field: array}), model.has_background)

    check_forest(model.schema, columns, model.trees, leaves, model.has_background)
    broken("tree", (0,), 1, r"leaves\.tree\[0\]")
    broken("tree", (0,), -1, r"leaves\.tree\[0\]")
    broken("log_weight", (0,), np.nan, r"leaves\.log_weight\[0\]")
    broken("log_weight", (0,), 1.0, r"leaves\.log_weight\[0\]")
    broken("log_weight", (0,), -np.inf, "sum to")
    broken("family", normal, 3, r"leaves\.family")
    broken("a", normal, np.inf, r"leaves\.a")
    broken("b", normal, 0.0, r"leaves\.b")
    broken("b", normal, -1.0, r"leaves\.b")
    broken("b", uniform, np.nan, r"leaves\.b")
    broken("lo", uniform, -np.inf, r"leaves\.(hi|lo)")
    broken("lo", normal, np.nan, r"leaves\.lo")
    broken("hi", normal, leaves.lo[normal], r"leaves\.lo")
    broken("lo", bounded, box_lo[bounded] - 1e-9, "inside the leaf's box")
    broken("hi", grid, leaves.hi[grid] - 0.3 * columns.step[grid[1]], "edge of a grid cell")
    open_grid = tuple(np.argwhere(np.isneginf(leaves.lo) & (columns.step > 0))[0])
    broken("lo", open_grid, -1e130, "the grid can resolve")
    broken("a", tuple(np.argwhere((leaves.family == 2) & (columns.step > 0))[0]), 1e130, "the grid can resolve")
    broken("b", tuple(np.argwhere((leaves.family == 2) & (columns.step > 0))[0]), 1e-300, "does not vanish")
    broken("atom_mass", (0, 0), -0.1, r"leaves\.atom_mass")
    broken("atom_mass", (0, 0), 1.5, r"leaves\.atom_mass")
    broken("atom_mass", (0, 0), np.nan, r"leaves\.atom_mass")
    broken("level_mass", (0, 0), np.nan, r"leaves\.level_mass")
    broken("level_mass", closed, 0.2, r"leaves\.level_mass")
    broken("missing_rate", (0, 0), 1.1, r"leaves\.missing_rate")
    broken("missing_rate", (0, 0), np.nan, r"leaves\.missing_rate")
    broken("log_norm", normal, -np.inf, r"leaves\.log_norm")
    broken("tree", (-1,), 3 - leaves.tree[-1], r"leaves\.tree\[")

    pieces, cut = leaves.pieces, tuple(np.argwhere(leaves.family == 255)[0])
    n = len(pieces.log_weight)
    for value in (-1.0, 0.5, float(n), 1e300, np.nan):
        broken("a", cut, value, r"leaves\.(a|pieces)")
    for value in (1.0, 2.5, leaves.b[cut] + 1, 1e300, np.nan):
        broken("b", cut, value, r"leaves\.(a|b|pieces)")
    broken("lo", cut, leaves.lo[cut] - 1e6, r"leaves\.lo")
    broken("family", cut, 0, r"leaves\.(b|pieces)")

    def broken_piece(field: str, at: Any, value: Any, message: str) -> None:
        array = getattr(pieces, field).copy()
        array[at] = value
        of = leaves._replace(pieces=pieces._replace(**{field: array}))
        with pytest.raises(ValueError, match=message):
            check_forest(model.schema, columns, model.trees, of, model.has_background)

    first = int(leaves.a[cut])
    broken_piece("log_weight", first, np.nan, r"leaves\.pieces\.log_weight")
    broken_piece("log_weight", first, 1.0, r"leaves\.pieces\.log_weight")
    broken_piece("log_weight", first, -np.inf, "sum to 1")
    broken_piece("family", first, 3, r"leaves\.pieces\.family")
    broken_piece("family", first, 255, r"leaves\.pieces\.family")
    broken_piece("lo", first + 1, pieces.lo[first, 0], "end of the piece before")
    broken_piece("hi", first, pieces.lo[first, 0], "below leaves.pieces.hi")
    broken_piece("log_norm", first, np.nan, r"leaves\.pieces\.log_norm")
    scaled = int(np.flatnonzero(pieces.b[:, 0] > 0)[0])
    broken_piece("b", scaled, -1.0, r"leaves\.pieces\.b")
    broken_piece("a", scaled, np.nan, r"leaves\.pieces\.a")
    fewer = pieces._replace(log_weight=pieces.log_weight[:-1])
    with pytest.raises(ValueError, match=r"leaves\.pieces"):
        check_forest(model.schema, columns, model.trees, leaves._replace(pieces=fewer), model.has_background)
    with pytest.raises(ValueError, match=r"leaves\.a: expected shape"):
        cut = leaves._replace(a=np.ascontiguousarray(leaves.a[:, 1:]))
        check_forest(model.schema, columns, model.trees, cut, model.has_background)
    with pytest.raises(ValueError, match=r"columns\.step does not agree"):
        check_forest(model.schema, columns._replace(step=columns.step + 1), model.trees, leaves, model.has_background)


def test_each_broken_promise_of_columns_of_many_levels_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jointforest.models.box_forest.leaves.levels.MANY_LEVELS", 2)
    model = next(m for m in map(random_model, range(100)) if m.leaves.wide.scale.shape[1] == 2)
    wide = model.leaves.wide
    E, size = len(wide.own_level), np.diff(wide.start)

    def broken(message: str, **fields: np.ndarray) -> None:
        leaves = model.leaves._replace(wide=wide._replace(**fields))
        with pytest.raises(ValueError, match=r"leaves\.wide.*" + message):
            check_forest(model.schema, model.columns, model.trees, leaves, model.has_background)

    def changed(field: str, at: Any, value: Any) -> dict[str, np.ndarray]:
        array = getattr(wide, field).copy()
        array[at] = value
        return {field: array}

    check_forest(model.schema, model.columns, model.trees, model.leaves, model.has_background)
    for field in ("share", "scale", "own_mass"):
        for value in (-0.1, np.nan, np.inf):
            broken(rf"\.{field}\[", **changed(field, -1, value))
    for value in (-1, len(wide.share), 2**31 - 1):
        broken(r"\.share_row\[", **changed("share_row", (0, 1), value))
    for value in (-1, len(wide.words), 2**31 - 1, -(2**31)):
        broken(r"\.set_at\[", **changed("set_at", (0, 0), value))
    broken(r"\.words of set", **changed("words", wide.set_at[0, 0], np.uint64(1) << np.uint64(size[0])))
    for at, value in ((0, 1), (-1, E - 1), (-1, E + 1), (3, -1), (3, E + 1), (3, 2**62), (3, -(2**62))):
        broken(r"\.own_start", **changed("own_start", at, value))
    for value in (-1, int(size.max()), 2**31 - 1, -(2**31)):
        broken(r"\.own_level\[", **changed("own_level", 0, value))
    first = int(np.flatnonzero(np.diff(wide.own_start) > 1)[0])
    at = int(wide.own_start[first])
    broken(r"\.own_level\[", **changed("own_level", at + 1, wide.own_level[at]))
    broken(r" of categorical slot .* sum to", **changed("own_mass", 0, 0.9))
    broken(r"\.own_mass: expected shape", own_mass=wide.own_mass[:-1])
    broken(r"\.share: expected shape", share=np.ascontiguousarray(wide.share[:, 1:]))
    broken(r"\.words: expected uint64", words=wide.words.astype(np.int64))
    broken(r"\.own_start: expected shape", own_start=wide.own_start[1:])
    broken(r"\.place", place=wide.place + 1)
    broken(r"\.start", start=wide.start + 1)
    broken("", share=np.zeros((0, int(wide.start[-1]))))

    columns, allowed = model.columns, leaf_boxes(model.trees, model.columns)[2]
    slots = [s for s, place in enumerate(wide.place.tolist()) if place < 0]
    closed = [~allowed[:, columns.level_start[s] : columns.level_start[s + 1]] for s in slots]
    t = next(t for t, of_slot in enumerate(closed) if of_slot.any())
    row, level = np.argwhere(closed[t])[0].tolist()
    words = np.append(wide.words, [np.uint64(1) << np.uint64(level)] * 3).astype(np.uint64)
    at_end = changed("set_at", (row, t), len(wide.words))
    broken("0 outside the leaf's box", words=words, **at_end, **changed("scale", (row, t), 1.0))


def test_trees_whose_nodes_are_not_side_by_side_are_refused() -> None:
    model = random_model(7, n_trees=2, max_depth=0, background=False)
    with pytest.raises(ValueError, match=r"trees\.root\[1\]"):
        trees = model.trees._replace(root=model.trees.root[::-1].copy())
        check_forest(model.schema, model.columns, trees, model.leaves, False)


def test_leaf_outside_its_box_is_refused() -> None:
    """An atom, a level, or a bound beyond a split that the leaf hangs under."""
    model = random_model(11, n_trees=4, max_depth=3)
    leaves, trees, columns = model.leaves, model.trees, model.columns
    node = int(np.flatnonzero((trees.feature >= 0) & (trees.levels_at >= 0))[0])
    slot = columns.slot[trees.feature[node]]
    first, last = columns.level_start[slot : slot + 2]
    words = trees.left_levels[trees.levels_at[node] :]
    goes_left = np.array([(int(words[k // 64]) >> (k % 64)) & 1 for k in range(last - first)], dtype=bool)
    below, stack = [], [int(trees.right[node])]
    while stack:
        at = stack.pop()
        if trees.feature[at] < 0:
            below.append(int(trees.leaf[at]))
        else:
            stack += [int(trees.left[at]), int(trees.right[at])]
    mass = leaves.level_mass.copy()
    mass[below[0], first:last] = 0.0
    mass[below[0], first + int(np.argmax(goes_left))] = 1.0
    with pytest.raises(ValueError, match="0 outside the leaf's box"):
        check_forest(model.schema, columns, trees, leaves._replace(level_mass=mass), model.has_background)


def test_arrays_that_are_missing_or_unknown_are_named() -> None:
    about, arrays = store.contents(BoxForest(the_model()))
    with pytest.raises(ValueError, match=r"arrays missing or unknown: odd"):
        store.model_of(about, arrays | {"odd": np.zeros(2)})
    name = next(name for name in arrays if name.startswith("0."))
    with pytest.raises(ValueError, match=f"arrays missing or unknown: {name}"):
        store.model_of(about, {k: v for k, v in arrays.items() if k != name})
