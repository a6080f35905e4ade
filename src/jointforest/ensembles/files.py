"""Trained models read from the files that their libraries write; never from pickles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

KINDS = "XGBoost's .json and .ubj, LightGBM's .txt, CatBoost's .cbm and .json"


def read_model_file(path: str | Path) -> Any:
    """A model as the library that wrote the file reads it.

    Parameters
    ----------
    path : path
        XGBoost: ``.json``, ``.ubj``; LightGBM: ``.txt``; CatBoost: ``.cbm``, ``.json``. A file names no labels of
        classes where its library does not write them: then classes are 0, 1, ....

    Returns
    -------
    model
        As `read_ensemble` takes it.

    Raises
    ------
    ValueError
        If it is of another kind (a pickle can run any program when it is read), or its library cannot read it.
    ImportError
        Without that library.
    OSError
        If there is no such file.

    Examples
    --------
    >>> try:
    ...     read_model_file("model.pkl")
    ... except ValueError as error:
    ...     print(str(error)[:61])
    model.pkl: a pickle can run any program when it is read; give
    """
    path = Path(path)
    ending = path.suffix.lower()
    if ending in (".pkl", ".pickle", ".joblib", ".dill", ".skops", ".cloudpickle"):
        why = "is not read" if ending == ".skops" else "can run any program when it is read"
        raise ValueError(f"{path}: a {'skops file' if ending == '.skops' else 'pickle'} {why}; give {KINDS}")
    with path.open("rb") as file:
        head = file.read(16)
    library = _library(ending, head, path)
    if library is None:
        raise ValueError(f"{path}: no model file that is known here; expected {KINDS}")
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


def _xgboost(path: str) -> Any:
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


_READERS = {"xgboost": _xgboost, "lightgbm": _lightgbm, "catboost": _catboost}
