"""Joints as MLflow models (``pip install 'jointforest[mlflow]'``): a `.joint` file, no pickle.

See ``docs/how-to/formats.md``.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import mlflow
import narwhals as nw
import numpy as np
from mlflow.models import Model, ModelSignature, infer_signature
from mlflow.types import ColSpec, Schema

from .. import __version__
from ..api.exchange import load
from ..api.joint import Joint, need_joint
from ..models.file import FORMAT

__all__ = ["load_model", "log_model", "save_model"]

FLAVOR = "jointforest"
_DATA, _JOINT, _ASKED = "joint", "model.joint", "asked.json"


class _Asked:
    """What `mlflow.pyfunc` calls: predictions of a target, or log-densities of rows."""

    def __init__(self, joint: Joint, target: str | None) -> None:
        self.joint = joint
        self.target = target

    def predict(self, rows: Any, params: dict[str, Any] | None = None) -> np.ndarray:
        """Of each row of a frame the prediction of the target, or its log-density, (n,); cells may be missing."""
        return self.joint.log_density(rows) if self.target is None else self.joint.predict(rows, self.target)


def save_model(
    joint: Any,
    path: str | Path,
    *,
    target: str | None = None,
    mlflow_model: Any = None,
    signature: Any = None,
    input_example: Any = None,
    pip_requirements: list[str] | None = None,
    metadata: dict[str, Any] | None = None,
) -> None:
    """Save a joint as an MLflow model in a new folder.

    Parameters
    ----------
    joint : Joint
    path : path
        Must not exist, or be empty.
    target : str, optional
        Column that ``mlflow.pyfunc`` predicts from the others. Default: it gives the rows' log-densities.
    mlflow_model : mlflow.models.Model, optional
    signature : mlflow.models.ModelSignature, optional
        Default: that of ``input_example`` and its description; all cells may be missing.
    input_example : frame, optional
        Kept as a pandas frame. Categories are stored as what they are of, as MLflow has no type for them.
    pip_requirements : list of str, optional
        Default: this version of jointforest.
    metadata : dict, optional

    Raises
    ------
    TypeError
        If it is no joint, or the example no frame.
    ValueError
        If the joint has no such target.
    mlflow.exceptions.MlflowException
        If the folder is there.

    Examples
    --------
    >>> import tempfile, jointforest as jf
    >>> import jointforest.integrations.mlflow
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     jf.integrations.mlflow.save_model(joint, folder + "/penguins")
    ...     again = jf.integrations.mlflow.load_model(folder + "/penguins")
    >>> again.n_leaves == joint.n_leaves
    True
    """
    need_joint(joint, "expected a Joint")
    if target is not None:
        joint.schema.index(target)
    if input_example is not None:
        input_example = _without_categories(input_example)
        if signature is None:
            signature = _optional(infer_signature(input_example, _Asked(joint, target).predict(input_example)))
    model = Model() if mlflow_model is None else mlflow_model
    model.add_flavor(FLAVOR, version=__version__, format=FORMAT)
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / _DATA
        data.mkdir()
        joint.save(data / _JOINT)
        (data / _ASKED).write_text(json.dumps({"target": target}), encoding="utf-8")
        mlflow.pyfunc.save_model(
            str(path),
            loader_module=__name__,
            data_path=str(data),
            mlflow_model=model,
            signature=signature,
            input_example=input_example,
            pip_requirements=pip_requirements or [f"jointforest=={__version__}"],
            metadata=metadata,
        )


def _without_categories(rows: Any) -> Any:
    """Rows as a pandas frame whose columns of categories have the categories' type."""
    if not nw.dependencies.is_into_dataframe(rows):
        what = type(rows).__name__
        raise TypeError(f"input_example: expected a frame with the joint's columns, got {what}; try data.head(3)")
    rows = nw.from_native(rows, eager_only=True).to_pandas()
    kinds = {name: kind.categories.dtype for name, kind in rows.dtypes.items() if kind == "category"}
    return rows.astype(kinds)


def _optional(signature: ModelSignature) -> ModelSignature:
    """The signature with inputs that may be missing."""
    inputs: list[Any] = [ColSpec(one.type, one.name, required=False) for one in signature.inputs.inputs]
    return ModelSignature(Schema(inputs), signature.outputs)


def log_model(joint: Joint, name: str, **settings: Any) -> Any:
    """Log a joint as a model of the current run.

    Parameters
    ----------
    joint : Joint
    name : str
    **settings
        As of `save_model`, and ``registered_model_name`` and others of ``mlflow.models.Model.log``.

    Returns
    -------
    mlflow.models.model.ModelInfo
    """
    from . import mlflow as flavor

    return Model.log(artifact_path=None, name=name, flavor=flavor, joint=joint, **settings)


def load_model(model_uri: str | Path) -> Joint:
    """Load the joint of an MLflow model; every field of it is checked.

    Parameters
    ----------
    model_uri : str or path
        A folder, ``runs:/...``, ``models:/...``.

    Raises
    ------
    ValueError
        If it is a model of another flavor, or damaged.
    """
    folder = Path(model_uri)
    if not folder.is_dir():
        folder = Path(mlflow.artifacts.download_artifacts(artifact_uri=str(model_uri)))
    flavors = Model.load(str(folder)).flavors
    if FLAVOR not in flavors:
        raise ValueError(f"{model_uri} is no model of jointforest; its flavors are {', '.join(flavors)}")
    return load(folder / flavors["python_function"]["data"] / _JOINT)


def _load_pyfunc(path: str) -> _Asked:
    """What ``mlflow.pyfunc.load_model`` calls; ``path`` is the folder that `save_model` wrote."""
    asked = json.loads((Path(path) / _ASKED).read_text(encoding="utf-8"))
    return _Asked(load(Path(path) / _JOINT), asked["target"])
