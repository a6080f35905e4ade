"""The joint distribution of a table, learned with tree ensembles; every query exact.

Nothing is imported before it is used (PEP 562), so ``import jointforest`` takes no time.

Examples
--------
>>> import jointforest as jf
>>> joint = jf.AdversarialForest(n_estimators=5, random_state=0).fit(jf.datasets.load_penguins()).joint_
>>> round(joint.given(species="Gentoo").mean("bill_depth_mm"))
15
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "AdversarialForest": "learn.adversarial.adversarial",
    "AllOf": "table.conditions",
    "AnyOf": "table.conditions",
    "ColumnDistance": "face.information",
    "Counterfactuals": "explain.counterfactual.result",
    "Estimate": "face.information",
    "ExpectedPredictor": "face.expected",
    "Fidelity": "evaluation.result",
    "FitReport": "face.fit_report",
    "ForestOutlierDetector": "learn.outliers",
    "GenerativeForestClassifier": "learn.generative.classifier",
    "GenerativeForestRegressor": "learn.generative.regressor",
    "Importance": "face.importance",
    "HiddenTreeForest": "learn.hidden_tree_forest",
    "Interval": "table.conditions",
    "Joint": "face.joint",
    "JointAugmenter": "learn.augmenter",
    "JointImputer": "learn.imputer",
    "JointTree": "learn.joint_tree",
    "LostPairsWarning": "ground.warnings",
    "Marginal": "face.marginal",
    "Missing": "table.missing",
    "Not": "table.conditions",
    "PerRow": "table.conditions",
    "Pooled": "evaluation.pool",
    "Posterior": "face.posterior",
    "QuerySyntaxError": "language.errors",
    "ShapleyValues": "face.shapley_values",
    "UnseenLevelWarning": "ground.warnings",
    "UnsupportedEvidenceWarning": "ground.warnings",
    "about": "table.soft_conditions",
    "between": "table.conditions",
    "conditional_importance": "face.importance",
    "fidelity": "evaluation.fidelity",
    "fit": "learn.fit",
    "from_arrow": "face.exchange",
    "from_forde": "face.exchange",
    "likely": "table.soft_conditions",
    "load": "face.load",
    "mix": "face.mix",
    "sage": "face.importance",
    "shapley": "face.shapley",
    "pool": "evaluation.pool",
}

if TYPE_CHECKING:
    from .evaluation.fidelity import fidelity
    from .evaluation.pool import Pooled, pool
    from .evaluation.result import Fidelity
    from .explain.counterfactual.result import Counterfactuals
    from .face.exchange import from_arrow, from_forde
    from .face.expected import ExpectedPredictor
    from .face.fit_report import FitReport
    from .face.importance import Importance, conditional_importance, sage
    from .face.information import ColumnDistance, Estimate
    from .face.joint import Joint
    from .face.load import load
    from .face.marginal import Marginal
    from .face.mix import mix
    from .face.posterior import Posterior
    from .face.shapley import shapley
    from .face.shapley_values import ShapleyValues
    from .ground.warnings import LostPairsWarning, UnseenLevelWarning, UnsupportedEvidenceWarning
    from .language.errors import QuerySyntaxError
    from .learn.adversarial.adversarial import AdversarialForest
    from .learn.augmenter import JointAugmenter
    from .learn.fit import fit
    from .learn.generative.classifier import GenerativeForestClassifier
    from .learn.generative.regressor import GenerativeForestRegressor
    from .learn.hidden_tree_forest import HiddenTreeForest
    from .learn.imputer import JointImputer
    from .learn.joint_tree import JointTree
    from .learn.outliers import ForestOutlierDetector
    from .table.conditions import AllOf, AnyOf, Interval, Not, PerRow, between
    from .table.missing import Missing
    from .table.soft_conditions import about, likely

__all__ = [
    "AdversarialForest",
    "AllOf",
    "AnyOf",
    "ColumnDistance",
    "Counterfactuals",
    "Estimate",
    "ExpectedPredictor",
    "Fidelity",
    "FitReport",
    "ForestOutlierDetector",
    "GenerativeForestClassifier",
    "GenerativeForestRegressor",
    "HiddenTreeForest",
    "Importance",
    "Interval",
    "Joint",
    "JointAugmenter",
    "JointImputer",
    "JointTree",
    "LostPairsWarning",
    "Marginal",
    "Missing",
    "Not",
    "PerRow",
    "Pooled",
    "Posterior",
    "QuerySyntaxError",
    "ShapleyValues",
    "UnseenLevelWarning",
    "UnsupportedEvidenceWarning",
    "about",
    "between",
    "conditional_importance",
    "datasets",
    "fidelity",
    "fit",
    "from_arrow",
    "from_forde",
    "likely",
    "load",
    "mix",
    "pool",
    "sage",
    "shapley",
]


def __getattr__(name: str) -> Any:
    if name == "datasets":
        return import_module(".io.datasets", __name__)
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module("." + _HOME[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
