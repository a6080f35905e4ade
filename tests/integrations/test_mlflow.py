"""Joints as MLflow models: there and back, through a local store, asked by pyfunc; no pickle."""

from __future__ import annotations

from pathlib import Path

import mlflow
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import jointforest as jf
from jointforest.integrations import mlflow as flavor

pytestmark = pytest.mark.filterwarnings("ignore:the joint has lost")


@pytest.fixture(scope="module")
def joint() -> jf.Joint:
    return jf.JointTree(random_state=0).fit(jf.datasets.load_penguins()).joint_


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A store of files, which needs no server."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    yield
    mlflow.set_tracking_uri(before)


def test_there_and_back(joint, tmp_path):
    flavor.save_model(joint, tmp_path / "model")
    rows = jf.datasets.load_penguins()
    np.testing.assert_array_equal(flavor.load_model(tmp_path / "model").log_density(rows), joint.log_density(rows))
    kinds = {path.suffix for path in (tmp_path / "model").rglob("*") if path.is_file()}
    assert ".joint" in kinds and not kinds & {".pkl", ".pickle"}


def test_predictions(joint, tmp_path):
    rows = jf.datasets.load_penguins().drop(columns="species")
    flavor.save_model(joint, tmp_path / "model", target="species", input_example=rows.head(3))
    loaded = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    rows = rows.astype({"island": "str", "sex": "str"})  # MLflow has no categories
    assert rows.isna().any().any()
    assert loaded.predict(rows).tolist() == joint.predict(rows, "species").tolist()
    few = rows[["island", "body_mass_g"]]  # whole columns may be missing
    assert loaded.predict(few).tolist() == joint.predict(few, "species").tolist()
    assert [column.name for column in loaded.metadata.signature.inputs] == list(rows)
    assert len(loaded.input_example) == 3


@pytest.mark.parametrize("form", [pl.from_pandas, pa.Table.from_pandas])
def test_examples_are_frames_of_any_library(joint, tmp_path, form):
    rows = jf.datasets.load_penguins()
    flavor.save_model(joint, tmp_path / "model", input_example=form(rows.head(3)))
    loaded = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    assert [column.name for column in loaded.metadata.signature.inputs] == list(rows)
    with pytest.raises(TypeError, match="input_example: expected a frame with the joint's columns, got list"):
        flavor.save_model(joint, tmp_path / "other", input_example=[1, 2])


def test_log_densities(joint, tmp_path):
    rows = jf.datasets.load_penguins()
    flavor.save_model(joint, tmp_path / "model")
    found = mlflow.pyfunc.load_model(str(tmp_path / "model")).predict(rows)
    np.testing.assert_array_equal(found, joint.log_density(rows))


def test_a_local_store(joint, store):
    rows = jf.datasets.load_penguins().astype({"species": "str", "island": "str", "sex": "str"})
    with mlflow.start_run():
        info = flavor.log_model(joint, "penguins", target="island", input_example=rows.head(2))
    np.testing.assert_array_equal(flavor.load_model(info.model_uri).log_density(rows), joint.log_density(rows))
    assert mlflow.pyfunc.load_model(info.model_uri).predict(rows)[0] == joint.predict(rows, "island")[0]
    assert "jointforest" in info.flavors


def test_what_is_refused(joint, tmp_path):
    with pytest.raises(TypeError, match="give its joint_"):
        flavor.save_model(jf.JointTree(random_state=0).fit(jf.datasets.load_penguins()), tmp_path / "a")
    with pytest.raises(ValueError, match="specie"):
        flavor.save_model(joint, tmp_path / "a", target="specie")
    assert not (tmp_path / "a").exists()
    flavor.save_model(joint, tmp_path / "a")
    with pytest.raises(mlflow.exceptions.MlflowException, match="already exists"):
        flavor.save_model(joint, tmp_path / "a")
    file = next((tmp_path / "a").rglob("*.joint"))
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(ValueError, match="damaged"):
        flavor.load_model(tmp_path / "a")
