"""The joint distribution of a table, learned with tree ensembles; every query exact.

Nothing is imported before it is used (PEP 562), so ``import jointforest`` takes no time.

Examples
--------
>>> joint = jf.AdversarialForest(n_estimators=5, random_state=0).fit(jf.datasets.load_penguins()).joint_
>>> round(joint.given(species="Gentoo").mean("bill_depth_mm"))
15
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    name: module
    for module, names in {
        "api.exchange": "from_arrow from_forde load mix",
        "api.expected": "ExpectedPredictor",
        "api.fit_report": "FitReport",
        "api.forecast": "Forecast",
        "api.history_joint": "HistoryJoint",
        "api.importance": "Importance conditional_importance sage",
        "api.pairs": "ColumnDistance Estimate",
        "api.joint": "Joint",
        "api.posterior": "Marginal Posterior",
        "api.shapley": "ShapleyValues shapley",
        "data.conditions": "AllOf AnyOf Interval Missing Not PerRow about between censored likely",
        "drift.compare": "TableComparison compare_tables",
        "drift.monitor": "Monitor",
        "estimators.augmenter": "JointAugmenter",
        "estimators.imputer": "JointImputer",
        "estimators.outliers": "ForestOutlierDetector",
        "estimators.predictor.classifier": "JointClassifier",
        "estimators.predictor.load": "load_predictor",
        "estimators.predictor.regressor": "JointRegressor",
        "estimators.predictor.report": "PredictorReport",
        "evaluation.fidelity": "fidelity",
        "evaluation.pool": "Pooled pool",
        "evaluation.result": "Fidelity",
        "inference.counterfactual": "Counterfactuals",
        "learners.adversarial.adversarial_forest": "AdversarialForest",
        "learners.generative.classifier": "GenerativeForestClassifier",
        "learners.generative.regressor": "GenerativeForestRegressor",
        "learners.hidden_tree.hidden_tree_forest": "HiddenTreeForest",
        "learners.history.history_forest": "HistoryForest",
        "learners.joint_tree.joint_tree": "JointTree",
        "learners.selection.fit": "fit",
        "query_language.parser": "QuerySyntaxError",
        "query_language.rules": "rule",
        "runtime.warnings": "EstimatedAnswerWarning LostDependenceWarning NotLearnedWarning "
        "UnseenLevelWarning UnsupportedEvidenceWarning",
    }.items()
    for name in names.split()
}

if TYPE_CHECKING:
    from .api.exchange import from_arrow, from_forde, load, mix
    from .api.expected import ExpectedPredictor
    from .api.fit_report import FitReport
    from .api.forecast import Forecast
    from .api.history_joint import HistoryJoint
    from .api.importance import Importance, conditional_importance, sage
    from .api.joint import Joint
    from .api.pairs import ColumnDistance, Estimate
    from .api.posterior import Marginal, Posterior
    from .api.shapley import ShapleyValues, shapley
    from .data.conditions import AllOf, AnyOf, Interval, Missing, Not, PerRow, about, between, censored, likely
    from .drift.compare import TableComparison, compare_tables
    from .drift.monitor import Monitor
    from .estimators.augmenter import JointAugmenter
    from .estimators.imputer import JointImputer
    from .estimators.outliers import ForestOutlierDetector
    from .estimators.predictor.classifier import JointClassifier
    from .estimators.predictor.load import load_predictor
    from .estimators.predictor.regressor import JointRegressor
    from .estimators.predictor.report import PredictorReport
    from .evaluation.fidelity import fidelity
    from .evaluation.pool import Pooled, pool
    from .evaluation.result import Fidelity
    from .inference.counterfactual import Counterfactuals
    from .learners.adversarial.adversarial_forest import AdversarialForest
    from .learners.generative.classifier import GenerativeForestClassifier
    from .learners.generative.regressor import GenerativeForestRegressor
    from .learners.hidden_tree.hidden_tree_forest import HiddenTreeForest
    from .learners.history.history_forest import HistoryForest
    from .learners.joint_tree.joint_tree import JointTree
    from .learners.selection.fit import fit
    from .query_language.parser import QuerySyntaxError
    from .query_language.rules import rule
    from .runtime.warnings import (
        EstimatedAnswerWarning,
        LostDependenceWarning,
        NotLearnedWarning,
        UnseenLevelWarning,
        UnsupportedEvidenceWarning,
    )

__all__ = [
    "AdversarialForest",
    "AllOf",
    "AnyOf",
    "ColumnDistance",
    "Counterfactuals",
    "Estimate",
    "EstimatedAnswerWarning",
    "ExpectedPredictor",
    "Fidelity",
    "FitReport",
    "Forecast",
    "ForestOutlierDetector",
    "GenerativeForestClassifier",
    "GenerativeForestRegressor",
    "HiddenTreeForest",
    "HistoryForest",
    "HistoryJoint",
    "Importance",
    "Interval",
    "Joint",
    "JointAugmenter",
    "JointClassifier",
    "JointImputer",
    "JointRegressor",
    "JointTree",
    "LostDependenceWarning",
    "Marginal",
    "Missing",
    "Monitor",
    "Not",
    "NotLearnedWarning",
    "PerRow",
    "Pooled",
    "Posterior",
    "PredictorReport",
    "QuerySyntaxError",
    "ShapleyValues",
    "TableComparison",
    "UnseenLevelWarning",
    "UnsupportedEvidenceWarning",
    "about",
    "between",
    "censored",
    "compare_tables",
    "conditional_importance",
    "datasets",
    "fidelity",
    "fit",
    "from_arrow",
    "from_forde",
    "likely",
    "load",
    "load_predictor",
    "mix",
    "pool",
    "rule",
    "sage",
    "shapley",
]


def __getattr__(name: str) -> Any:
    if name == "datasets":
        return import_module(".data.datasets", __name__)
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module("." + _HOME[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
