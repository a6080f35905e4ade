"""Any supported model as an ensemble; a library is imported by whoever made the model, never here."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .table import Ensemble

_ADAPTERS = {
    "sklearn.tree": ("sklearn_trees", ("DecisionTreeClassifier", "DecisionTreeRegressor")),
    "sklearn.ensemble._forest": (
        "sklearn_trees",
        ("RandomForestClassifier", "RandomForestRegressor", "ExtraTreesClassifier", "ExtraTreesRegressor"),
    ),
    "sklearn.ensemble._gb": ("sklearn_boosting", ("GradientBoostingClassifier", "GradientBoostingRegressor")),
    "sklearn.ensemble._hist_gradient_boosting": (
        "hist_boosting",
        ("HistGradientBoostingClassifier", "HistGradientBoostingRegressor"),
    ),
    "xgboost": ("xgboost", ("Booster", "XGBModel")),
    "lightgbm": ("lightgbm", ("Booster", "LGBMModel")),
    "catboost": ("catboost", ("CatBoost",)),
    "sklearn.pipeline": ("pipeline", ("Pipeline",)),
    "sklearn.compose._target": ("transformed_target", ("TransformedTargetRegressor",)),
}
_SUPPORTED = (
    "DecisionTree*, ExtraTree*, RandomForest*, ExtraTrees*, GradientBoosting* or HistGradientBoosting* of "
    "scikit-learn, a Booster or XGB* of xgboost, a Booster or LGBM* of lightgbm, a CatBoost* of catboost, "
    "or a Pipeline that ends in one"
)


def read_ensemble(model: Any) -> Ensemble:
    """What a trained model of another library computes, as a node table with values.

    Routing is exact: rows reach the leaves that the library sends them to, rows with missing cells and levels never
    seen included.

    Parameters
    ----------
    model : fitted model of scikit-learn, XGBoost, LightGBM or CatBoost; or an Ensemble, which is returned as it is
        Or a scikit-learn Pipeline of steps that change columns one by one, and such a model (see `pipeline.read`).

    Returns
    -------
    Ensemble

    Raises
    ------
    TypeError
        If it is no model of a supported type.
    ValueError
        If the model is not fitted, or computes something that a node table cannot say: linear leaves, vectors in
        leaves, several targets, target-encoded splits, an objective that is not supported, a step of a pipeline that is
        not known to change columns one by one.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> ensemble = read_ensemble(DecisionTreeClassifier().fit([[0.0], [1.0]], ["no", "yes"]))
    >>> ensemble.classes, ensemble.value.tolist()
    (('no', 'yes'), [[1.0, 0.0], [0.0, 1.0]])
    """
    if isinstance(model, Ensemble):
        return model
    if isinstance(model, type):
        raise TypeError(f"got the class {model.__name__} itself; give a fitted model")
    for base in type(model).__mro__:
        for module, (adapter, names) in _ADAPTERS.items():
            if base.__name__ in names and f"{base.__module__}.".startswith(module + "."):
                return import_module("." + adapter, __package__).read(model)
    raise TypeError(f"{type(model).__name__} is not supported: expected a fitted {_SUPPORTED}{_hint(model)}")


def _hint(model: Any) -> str:
    if hasattr(model, "best_estimator_"):
        return "; give its best_estimator_"
    return ""
