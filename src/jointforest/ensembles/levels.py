"""Levels of a model that takes no others."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np


class ClosedLevels(tuple[Any, ...]):
    """The levels of a feature of a model that refuses others, such as one behind an encoder that raises an error."""


# ---- Levels of which a model keeps no labels but their hashes, as CatBoost's models do.


class HashedLevels(tuple[int, ...]):
    """CatBoost's hashes of the levels of a feature that some split names; all other levels are alike to the model."""

    def codes(self, labels: Sequence[Any]) -> np.ndarray:
        """Place of each label (text, whole numbers, booleans), -1 for those that no split names; int64 array."""
        place = {level: code for code, level in enumerate(self)}
        text = [as_text(label) for label in labels]
        number = hashes(text) if place else {}
        return np.array([place.get(number.get(t, -1), -1) for t in text], dtype=np.int64)


def as_text(label: Any) -> str:
    """What CatBoost makes of a label before it hashes it: True is 1."""
    return label if isinstance(label, str) else str(int(label))


def hashes(labels: Sequence[str]) -> dict[str, int]:
    """CatBoost's hash of each label."""
    if not labels:
        return {}
    pool = import_module("catboost").Pool([[label] for label in labels], cat_features=[0])
    # models written as JSON list the hashes of a pool's labels, and it need not be the pool they were trained on
    saved = as_json(_any_model(), pool=pool)
    return {entry["value"]: entry["hash"] for entry in saved["features_info"]["cat_features_hash"]}


def as_json(model: Any, **parameters: Any) -> dict:
    """What CatBoost writes of a model as JSON."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json", **parameters)
        return json.loads(path.read_text(encoding="utf-8"))


@cache
def _any_model() -> Any:
    """A model of one categorical feature."""
    catboost = import_module("catboost")
    model = catboost.CatBoost(
        {"iterations": 1, "depth": 1, "thread_count": 1, "verbose": 0, "allow_writing_files": False}
    )
    return model.fit(catboost.Pool([["a"], ["b"]], [0.0, 1.0], cat_features=[0]))
