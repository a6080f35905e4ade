"""Predictors in files: the same answers again, the joint for other readers, and no trust in what a file says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from xgboost import XGBRegressor

import jointforest as jf
from jointforest.ensembles.table import check_ensemble
from jointforest.estimators.predictor.members import COMPLETED, FOREST, MASKED, NATIVE
from jointforest.models import file as store
from jointforest.models.file import ModelFileError

from .test_predictor import answers, fitted, new, numeric, table

pytestmark = pytest.mark.usefixtures("quick")
KINDS = pytest.mark.parametrize("kind", ["classifier", "regressor"])


@pytest.fixture(scope="module")
def saved(quick: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Any, Path]]:
    folder = tmp_path_factory.mktemp("predictors")
    found = {}
    for kind in ("classifier", "regressor"):
        frame, label, score = table(seed=34)
        one = fitted(kind, frame.assign(none=np.nan), label, score)
        one.save(folder / f"{kind}.joint")
        found[kind] = one, folder / f"{kind}.joint"
    return found


@KINDS
def test_saved_and_loaded_answer_alike(kind: str, saved: dict[str, tuple[Any, Path]]) -> None:
    one, path = saved[kind]
    again = jf.load_predictor(path)
    rows = table(seed=31)[0]
    np.testing.assert_array_equal(answers(again, rows), answers(one, rows))
    assert again.members_ == one.members_ and again.n_features_in_ == 5
    assert again.feature_names_in_.tolist() == one.feature_names_in_.tolist()
    if kind == "classifier":
        assert (
            again.classes_.dtype == one.classes_.dtype
            and again.predict(rows[:9]).tolist() == one.predict(rows[:9]).tolist()
        )
    np.testing.assert_array_equal(again.explain(rows[:1]).values, one.explain(rows[:1]).values)


@KINDS
def test_all_members_are_saved(kind: str, tmp_path: Path) -> None:
    """So few rows that none is held out, and every member is kept."""
    frame, _, score = table(4, seed=32, missing=0.4)
    one = fitted(kind, frame, ["low", "high", "low", "high"], score)
    one.save(tmp_path / "one.joint")
    again = jf.load_predictor(tmp_path / "one.joint")
    assert {COMPLETED, NATIVE} < set(one.members_) and again.members_ == one.members_
    np.testing.assert_array_equal(answers(again, frame), answers(one, frame))


@KINDS
def test_the_joint_is_read_by_load(kind: str, saved: dict[str, tuple[Any, Path]]) -> None:
    one, path = saved[kind]
    joint = jf.load(path)
    rows = table(seed=32)[0]
    np.testing.assert_array_equal(joint.log_density(rows), one.joint_.log_density(rows))


@KINDS
def test_the_same_predictor_gives_the_same_bytes(kind: str, saved: dict[str, tuple[Any, Path]], tmp_path: Path) -> None:
    _, path = saved[kind]
    jf.load_predictor(path).save(tmp_path / "again.joint")
    assert (tmp_path / "again.joint").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("labels", [np.array([3, 1, 2]), np.array([True, False, True]), np.array(["a", "bb", "c"])])
def test_labels_keep_their_type(labels: np.ndarray, tmp_path: Path) -> None:
    y = np.resize(labels, 240)
    one = new("classifier").fit(table(seed=33)[0], y)
    one.save(tmp_path / "one.joint")
    again = jf.load_predictor(tmp_path / "one.joint")
    assert again.classes_.dtype == one.classes_.dtype and again.classes_.tolist() == one.classes_.tolist()


def test_arrays_have_no_names(tmp_path: Path) -> None:
    X = numeric(table(seed=34)[0]).to_numpy()
    one = new("regressor").fit(X, table(seed=34)[2])
    one.save(tmp_path / "one.joint")
    again = jf.load_predictor(tmp_path / "one.joint")
    assert not hasattr(again, "feature_names_in_")
    np.testing.assert_array_equal(again.predict(X), one.predict(X))


def test_a_model_of_another_library_is_kept(tmp_path: Path) -> None:
    frame, _, score = table(seed=35, missing=0.0)
    X = numeric(frame)
    trees = XGBRegressor(n_estimators=6, max_depth=2).fit(X, score)
    one = jf.JointRegressor.from_model(trees, X, score, random_state=0, n_jobs=1)
    one.save(tmp_path / "one.joint")
    again = jf.load_predictor(tmp_path / "one.joint")
    np.testing.assert_allclose(again.predict(X), trees.predict(X), rtol=1e-5)
    holed = X.mask(np.random.default_rng(0).random(X.shape) < 0.5)
    np.testing.assert_array_equal(again.predict(holed), one.predict(holed))


def test_a_split_of_missing_cells_from_all_others_is_kept(tmp_path: Path) -> None:
    rng = np.random.default_rng(36)
    frame = pd.DataFrame({"x": rng.normal(size=300), "w": rng.normal(size=300)})
    is_missing = rng.random(300) < 0.5
    one = new("classifier").fit(frame.assign(x=frame["x"].mask(is_missing)), np.where(is_missing, "lost", "there"))
    boosted = [member.trees for member in one._members.values() if hasattr(member, "trees")]
    assert any(np.isinf(trees.features.ensemble.threshold).any() for trees in boosted)
    one.save(tmp_path / "one.joint")
    np.testing.assert_array_equal(
        jf.load_predictor(tmp_path / "one.joint").predict_proba(frame), one.predict_proba(frame)
    )


def test_a_file_of_a_joint_alone_says_so(tmp_path: Path, saved: dict[str, tuple[Any, Path]]) -> None:
    saved["classifier"][0].joint_.save(tmp_path / "joint.joint")
    with pytest.raises(ModelFileError, match="holds a joint and no predictor"):
        jf.load_predictor(tmp_path / "joint.joint")
    (tmp_path / "text.joint").write_text("no model")
    with pytest.raises(ModelFileError, match="not a model file"):
        jf.load_predictor(tmp_path / "text.joint")


def changed(path: Path, about: dict[str, Any] | None = None, **arrays: Any) -> bytes:
    """The file with other metadata of the predictor, and other arrays by name (None: without it)."""
    old, tensors = store.opened(store.read_start(path))
    old["predictor"] |= about or {}
    del old["checksum"]
    for name, array in arrays.items():
        if array is None:
            del tensors[f"predictor.{name}"]
        else:
            tensors[f"predictor.{name}"] = array
    return store.pack(old, tensors)


def arrays_of(path: Path) -> dict[str, np.ndarray]:
    return {
        k.removeprefix("predictor."): v
        for k, v in store.opened(store.read_start(path))[1].items()
        if k.startswith("predictor.")
    }


@pytest.mark.parametrize(
    "about",
    [
        {"kind": "regressor"},
        {"kind": "clusterer"},
        {"members": []},
        {"members": ["joint", "joint"]},
        {"members": ["oracle"]},
        {"links": {}},
        {"links": {"expected boosting": "tanh", MASKED: "softmax"}},
        {"beta": 2},
        {"beta": "much"},
        {"labels": "no type"},
        {"labels": "<M8[s]"},
        {"labels": 5},
        {"seed": -1},
        {"seed": 1.5},
        {"alone": 9},
        {"has_background": "yes"},
        {"more": 1},
    ],
)
def test_wrong_metadata_are_refused(about: dict[str, Any], saved: dict[str, tuple[Any, Path]], tmp_path: Path) -> None:
    (tmp_path / "wrong.joint").write_bytes(changed(saved["classifier"][1], about))
    with pytest.raises(ModelFileError):
        jf.load_predictor(tmp_path / "wrong.joint")


@KINDS
def test_every_array_is_checked(kind: str, saved: dict[str, tuple[Any, Path]], tmp_path: Path) -> None:
    """Missing, of another type, shorter, or with numbers out of range: an error, never an answer."""
    path = saved[kind][1]
    target = tmp_path / "wrong.joint"
    for name, array in arrays_of(path).items():
        if name.startswith(FOREST) and not name.endswith("grid"):
            continue  # as those of joints, which have their own tests
        wrong: list[Any] = [None, array.astype(np.float32)]
        if not name.endswith(("grid", "column")):  # a shorter grid is one, too; trees need not split all columns
            wrong.append(array.ravel()[:-1] if array.size else np.zeros(3))
        if array.dtype == np.float64 and array.size and not name.endswith("level_value"):
            wrong.append(np.full_like(array, np.nan))
        if array.dtype == np.int32 and array.size:
            wrong += [np.full_like(array, 2**30), np.full_like(array, -5)]
        for one in wrong:
            target.write_bytes(changed(path, **{name: one}))
            with pytest.raises(ModelFileError):
                jf.load_predictor(target)
                pytest.fail(f"{name} as {one}")


def test_nodes_out_of_order_are_refused(saved: dict[str, tuple[Any, Path]]) -> None:
    ensemble = saved["classifier"][0]._members[MASKED].trees.features.ensemble
    n_levels = np.array([0, 0, 2, 0])
    check_ensemble(ensemble, n_levels)
    inner = int(np.flatnonzero(ensemble.feature >= 0)[0])

    def with_one(name: str, at: int, value: float) -> Any:
        array = getattr(ensemble, name).copy()
        array[at] = value
        return ensemble._replace(**{name: array})

    check_ensemble(with_one("threshold", inner, np.inf), n_levels)  # parts missing cells from all others
    for broken in (
        with_one("threshold", inner, np.nan),
        with_one("left", inner, inner),
        with_one("right", inner, len(ensemble.feature)),
        with_one("feature", inner, 4),
        with_one("feature", inner, -1),
        with_one("leaf", inner, 0),
        with_one("root", -1, ensemble.root[0]),
        with_one("value", 0, np.inf),
        with_one("levels_at", inner, 10**6),
        ensemble._replace(link="tanh"),
        ensemble._replace(threshold=ensemble.threshold[1:]),
    ):
        with pytest.raises(ValueError, match="an ensemble of trees is broken"):
            check_ensemble(broken, n_levels)


def test_metadata_hold_no_rows(saved: dict[str, tuple[Any, Path]]) -> None:
    about, _ = store.opened(store.read_start(saved["regressor"][1]))
    assert set(about["predictor"]) == {"kind", "members", "links", "has_background", "beta", "labels", "seed", "alone"}
    assert len(json.dumps(about["predictor"])) < 1_000
