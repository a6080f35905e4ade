"""Any supported model as an ensemble; a library is imported by whoever made the model, never here."""

# Each library has a module with a function for each kind of model, from a fitted model to an `Ensemble`. It raises
# NotFittedError, or a ValueError with a hint if a node table cannot represent the model.

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

from .table import Ensemble

_ADAPTERS = {
    "sklearn.tree": ("scikit_learn", "read_trees", ("DecisionTreeClassifier", "DecisionTreeRegressor")),
    "sklearn.ensemble._forest": (
        "scikit_learn",
        "read_trees",
        ("RandomForestClassifier", "RandomForestRegressor", "ExtraTreesClassifier", "ExtraTreesRegressor"),
    ),
    "sklearn.ensemble._gb": (
        "scikit_learn",
        "read_boosting",
        ("GradientBoostingClassifier", "GradientBoostingRegressor"),
    ),
    "sklearn.ensemble._hist_gradient_boosting": (
        "scikit_learn",
        "read_histogram_boosting",
        ("HistGradientBoostingClassifier", "HistGradientBoostingRegressor"),
    ),
    "sklearn.compose._target": ("scikit_learn", "read_transformed_target", ("TransformedTargetRegressor",)),
    "sklearn.pipeline": ("pipeline", "read", ("Pipeline",)),
    "xgboost": ("xgboost", "read", ("Booster", "XGBModel")),
    "lightgbm": ("lightgbm", "read", ("Booster", "LGBMModel")),
    "catboost": ("catboost", "read", ("CatBoost",)),
}
"""By the module that defines a class: the module here that reads it, the function, and the names of the classes."""
_SUPPORTED = (
    "DecisionTree*, ExtraTree*, RandomForest*, ExtraTrees*, GradientBoosting* or HistGradientBoosting* of "
    "scikit-learn, a Booster or XGB* of xgboost, a Booster or LGBM* of lightgbm, a CatBoost* of catboost, "
    "or a Pipeline that ends in one"
)


def read_ensemble(model: Any) -> Ensemble:
    """The node table of a trained model of another library: rows reach the same leaves; an Ensemble stays as it is."""
    # Raises TypeError for other types, ValueError for models that are not fitted or that a node table cannot represent.
    if isinstance(model, Ensemble):
        return model
    if isinstance(model, type):
        raise TypeError(f"got the class {model.__name__} itself; give a fitted model")
    for base in type(model).__mro__:
        for module, (adapter, function, names) in _ADAPTERS.items():
            if base.__name__ in names and f"{base.__module__}.".startswith(module + "."):
                read = getattr(import_module("." + adapter, __package__), function)
                return read(model)
    raise TypeError(f"{type(model).__name__} is not supported: expected a fitted {_SUPPORTED}{_hint_of_type(model)}")


def _hint_of_type(model: Any) -> str:
    if hasattr(model, "best_estimator_"):
        return "; give its best_estimator_"
    return ""


# ---- Trained models read from the files that their libraries write; never from pickles.

_FILE_KINDS = "XGBoost's .json and .ubj, LightGBM's .txt, CatBoost's .cbm and .json"


def read_model_file(path: str | Path) -> Any:
    """The model of an XGBoost, LightGBM or CatBoost file, for `read_ensemble`; raises ValueError for other kinds."""
    # Pickle files are refused, because reading one can run any program.
    path = Path(path)
    ending = path.suffix.lower()
    if ending in (".pkl", ".pickle", ".joblib", ".dill", ".skops", ".cloudpickle"):
        why = "is not read" if ending == ".skops" else "can run any program when it is read"
        raise ValueError(f"{path}: a {'skops file' if ending == '.skops' else 'pickle'} {why}; give {_FILE_KINDS}")
    with path.open("rb") as file:
        head = file.read(16)
    library = _library(ending, head, path)
    if library is None:
        raise ValueError(f"{path}: no model file that is known here; expected {_FILE_KINDS}")
    try:
        return _READERS[library](str(path))
    except ModuleNotFoundError as error:
        raise ImportError(f"{path} is a model of {library}, which is not installed: pip install {library}") from error
    except (ImportError, MemoryError):
        raise
    except Exception as error:  # each library has errors of its own
        said = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise ValueError(f"{path}: {library} cannot read it: {said[:200]}") from None


def _library(ending: str, head: bytes, path: Path) -> str | None:
    """The library that writes such files."""
    if ending == ".ubj":
        return "xgboost"
    if ending == ".txt":
        return "lightgbm" if head.startswith(b"tree") else None
    if ending == ".cbm":
        return "catboost"
    if ending != ".json":
        return None
    try:
        said = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: no JSON: {str(error)[:100]}") from None
    if isinstance(said, dict) and "learner" in said:
        return "xgboost"
    return "catboost" if isinstance(said, dict) and "model_info" in said else None


def _read_xgboost(path: str) -> Any:
    import xgboost

    booster = xgboost.Booster(model_file=path)
    said = json.loads(booster.attr("scikit_learn") or "{}").get("_estimator_type")
    kinds = {"classifier": xgboost.XGBClassifier, "regressor": xgboost.XGBRegressor, "ranker": xgboost.XGBRanker}
    if said not in kinds:
        return booster
    model = kinds[said]()  # which knows where early stopping has left off
    model.load_model(path)
    return model


def _lightgbm(path: str) -> Any:
    import lightgbm

    return lightgbm.Booster(model_file=path)


def _catboost(path: str) -> Any:
    import catboost

    model = catboost.CatBoost()
    model.load_model(path, format=Path(path).suffix.lower().removeprefix("."))
    return model


_READERS = {"xgboost": _read_xgboost, "lightgbm": _lightgbm, "catboost": _catboost}
