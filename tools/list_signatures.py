"""Writes src/jointforest/runtime/signatures.txt: the entries that the public API calls, with the types of arguments.

Every public question is asked of every kind of model, and every learner learns with each of its options, on small
tables with columns of all kinds. The kernels that this calls are the list. The script fails if a public method is not
asked here, or has no answer at all. What a kind of model refuses, it may refuse.

``--check`` compares the list of the package with what was found, instead of writing it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

import jointforest as jf
from jointforest.runtime import numba_internals, signatures
from jointforest.runtime.compile import Entry

Questions = Iterator[tuple[str, Callable[[], Any]]]
"""Names of methods, and calls of them."""

SEED = {"random_state": 0}
REFUSALS = (ValueError, TypeError, AttributeError, NotImplementedError, ImportError)
LEARNING = {"fit", "fit_batches", "from_forest", "from_joint"}
NOT_ASKED = {
    "Joint": {
        "rules",
        "columns",
        "epsilon",
        "is_of_histories",
        "kinds",
        "levels",
        "n_leaves",
        "n_states",
        "n_trees",
        "reading",
        "schema",
    },
    "Posterior": {
        "n_rows",
        "marginal",
        "check",
        "check_support",
        "draw",
        "evidence_text",
        "give",
        "log_event",
        "probability_of",
    },
    "Marginal": set(),
    "HistoryJoint": {"columns", "constant", "group", "in_batches", "is_of_histories", "order", "schema", "varying"},
    "Forecast": {"columns"},
    "ExpectedPredictor": set(),
    "GenerativeForestClassifier": LEARNING,
    "GenerativeForestRegressor": LEARNING | {"robustness"},
    "JointClassifier": {"fit", "fitted_by", "from_model"},
    "JointRegressor": {"fit", "fitted_by", "from_model"},
}
"""Public classes; and their methods that read what was learned, or raise always, or need a large package, or are called
by others or elsewhere in this script."""
OF_SCIKIT_LEARN = {*dir(BaseEstimator), "set_fit_request", "set_score_request", "set_fit_batches_request"}


# ---- Tables.


class Table:
    """A table, and what is asked about it.

    Attributes
    ----------
    frame, whole : the rows; those in which no number and no target is missing
    some, few : 30 and 6 rows with many missing cells
    numbers, level, other_level : names of number columns, of the target, and of another column of levels
    evidence, event : of one row, and one that has a probability
    """

    def __init__(self, frame: pd.DataFrame, numbers: list[str], levels: str, evidence: dict[str, Any], event: str):
        self.frame, self.numbers, self.evidence, self.event = frame, numbers, evidence, event
        self.level, self.other_level = levels.split()
        self.some = frame.head(30).mask(np.random.default_rng(1).random((30, frame.shape[1])) < 0.3)
        self.few = self.some.head(6)
        self.whole = frame.dropna(subset=[*numbers, self.level])


def penguins() -> Table:
    numbers = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]
    evidence = {"sex": "MALE", "body_mass_g": jf.between(3500, 4500)}
    return Table(jf.datasets.load_penguins(), numbers, "species island", evidence, "species = 'Gentoo'")


def mixed(n: int = 300) -> Table:
    """A column of each kind, one of many levels, and missing cells."""
    rng = np.random.default_rng(0)
    size = rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "size": size,
            "rain": np.where(rng.random(n) < 0.4, 0.0, rng.exponential(size=n)),
            "count": rng.poisson(np.exp(0.5 * size)),
            "price": np.round(rng.normal(10 + size, 2), 1),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), unit="D"),
            "flag": size + rng.normal(size=n) > 0,
            "place": rng.choice(["here", "there", "nowhere"], n),
            "code": [f"level {k}" for k in rng.integers(0, 100, n)],
            "grade": pd.Categorical(rng.choice(["low", "middle", "high"], n), ["low", "middle", "high"], ordered=True),
            "target": np.where(size + rng.normal(size=n) > 0, "yes", "no"),
        }
    )
    frame = frame.mask(rng.random(frame.shape) < 0.05).astype({"flag": "boolean"})
    evidence = {"size": jf.between(-1, 1), "place": ["here", "there"], "code": jf.likely({"level 1": 0.7}, others=0.1)}
    return Table(frame, ["size", "rain", "count", "price"], "target place", evidence, "target = yes")


def sums(parts: list[str]) -> Table:
    """Numbers of which some add up, with so many steps that hidden trees link them."""
    rng = np.random.default_rng(0)
    net, tax, tip = (rng.integers(0, most, 300) + rng.integers(0, 9, 300) for most in (3_000, 800, 60))
    shop = rng.choice(["here", "there", "nowhere"], 300)
    frame = pd.DataFrame({"total": 0, "net": net, "tax": tax, "tip": tip, "shop": shop, "late": tip > 20})
    frame["total"] = frame[parts].sum(axis=1)
    evidence = {"total": jf.between(500, 2_000), "shop": ["here", "there"]}
    return Table(frame.astype({"late": str}), ["total", "net", "tax", "tip"], "late shop", evidence, "net > 1000")


# ---- Joints.


class TwoHalves:
    """An engine that holds a table in two partitions."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.halves = [frame.head(150), frame.iloc[150:]]

    def fold(self, one: Any, n: int | None = None) -> Any:
        """The sums of a pass over all rows."""
        return one.together([one.over([half]) for half in self.halves])


class TreeOfFewRows(jf.JointTree):
    """A joint tree that learns from more rows than its sample holds."""

    def _sampled_rows(self) -> int:
        return 100


def joints(table: Table) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Names, and functions that learn a joint of each kind, by each learner, from a frame and from batches."""
    frame, level = table.frame, table.level
    X, y = table.whole.drop(columns=level), table.whole[level]
    weights = np.linspace(0.5, 2, len(frame))

    def batches() -> Iterator[pd.DataFrame]:
        yield from (frame.head(150), frame.iloc[150:])

    numbers = dict.fromkeys(table.numbers, "continuous")
    learners = {
        "adversarial forest": jf.AdversarialForest(3, **SEED),
        "adversarial forest of a sample": jf.AdversarialForest(3, max_samples=100, leaf="normal", **SEED),
        "quantile leaves of a sample": jf.AdversarialForest(3, max_samples=100, leaf="quantile", **SEED),
        "Chow-Liu leaves of a sample": jf.AdversarialForest(2, max_samples=100, leaf="chow_liu", **SEED),
        "adversarial forest without background": jf.AdversarialForest(
            2, kinds=numbers, leaf="normal", epsilon=0.0, **SEED
        ),
        "joint tree": jf.JointTree(**SEED),
        "joint tree without background": jf.JointTree(kinds=numbers, leaf="normal", epsilon=0.0, **SEED),
        "joint trees of a sample": TreeOfFewRows(2, leaf="quantile", **SEED),
        "joint trees": jf.JointTree(2, max_features=0.5, **SEED),
        "hidden tree": jf.HiddenTreeForest(n_states=4, max_iter=3, **SEED),
        "hidden trees": jf.HiddenTreeForest(2, n_states=3, max_iter=3, max_leaf_nodes=4, **SEED),
    }
    for name, learner in learners.items():
        yield name, lambda learner=learner: learner.fit(frame).joint_
        yield f"{name}, weighted", lambda learner=learner: learner.fit(frame, sample_weight=weights).joint_
        yield f"{name}, batches", lambda learner=learner: learner.fit_batches(batches).joint_
        yield f"{name}, engine", lambda learner=learner: learner.fit_batches(TwoHalves(frame)).joint_
    for leaf in ("normal", "spn", "chow_liu", "quantile", "uniform"):
        forest = jf.GenerativeForestClassifier(2, leaf=leaf, min_spn_samples=20, **SEED)
        yield f"generative forest of {leaf} leaves", lambda forest=forest: forest.fit(X, y).joint_
    forest, tree = jf.AdversarialForest(2, **SEED), jf.HiddenTreeForest(n_states=3, max_iter=2, **SEED)
    yield "forest and hidden tree", lambda: jf.mix([forest.fit(frame).joint_, tree.fit(frame).joint_])
    yield "two forests", lambda: jf.mix([forest.fit(frame).joint_] * 2, [0.3, 0.7])


def options() -> Iterator[tuple[type, dict[str, Any]]]:
    """Each learner, and each value of each option that is a word or a flag."""
    for learner in (
        jf.AdversarialForest, jf.JointTree, jf.HiddenTreeForest,
        jf.GenerativeForestClassifier, jf.GenerativeForestRegressor,
    ):  # fmt: skip
        for one in fields(learner):
            for value in (value for value in one.metadata.get("allowed", ()) if isinstance(value, str | bool)):
                yield learner, {one.name: value}


# ---- Questions.


def of_joint(joint: Any, table: Table, folder: Path) -> Questions:
    """All questions to a joint."""
    frame, some, few, level = table.frame, table.some, table.few, table.level
    number, given, again = table.numbers[0], table.evidence, joint.condition(**table.evidence)
    draws = {"n_samples": 50, **SEED}
    for rows in (some, frame):
        yield "log_density", lambda rows=rows: joint.log_density(rows)
    yield "tree_log_density", lambda: joint.tree_log_density(few)
    for evidence in (None, given, few):
        yield "probability", lambda evidence=evidence: joint.probability(table.event, given=evidence)
    for text in (f"P({table.event} | {number} > 0)", f"E({number})", f"Median({number} | {table.event})"):
        yield "query", lambda text=text: joint.query(text)
    for how in ({}, {"missing": True}, {"where": table.event}, {"where": f"{number} > {table.numbers[1]}"}):
        yield "sample", lambda how=how: joint.sample(5, 0, **how)
    yield "impute", lambda: joint.impute(some)
    yield "impute", lambda: joint.impute(few, method="sample", m=2, **SEED)
    yield "attribution", lambda: joint.attribution(few)
    yield "check", lambda: joint.check(some)
    yield "repair", lambda: joint.repair(some, 0.5)
    yield "condition", lambda: [again.log_density(few), again.condition(table.event).sample(2, 0)]
    yield "select", lambda: joint.select(number, level).log_density(few[[number, level]])
    for beta in (0.0, 0.5, 1.0):
        yield "predict", lambda beta=beta: joint.predict(few, level, beta=beta)
        yield "predict", lambda beta=beta: joint.predict(few, number, beta=beta)
        yield "predict_proba", lambda beta=beta: joint.predict_proba(few, level, beta=beta)
        yield "uncertainty", lambda beta=beta: joint.uncertainty(few, level, frame.head(30), beta=beta)
        for shift in ("leaf", "column"):
            yield "robustness", lambda beta=beta, shift=shift: joint.robustness(few, level, beta=beta, shift=shift)
    yield "tree_text", lambda: joint.tree_text()
    yield "reverse", lambda: joint.reverse(table.event, k=3)
    for columns in ((level,), (number,), (number, level), table.numbers[:2]):
        yield "entropy", lambda columns=columns: joint.entropy(*columns, **draws)
    yield "mutual_information", lambda: joint.mutual_information(number, level, **draws)
    yield "mutual_information", lambda: joint.mutual_information(number, level, bins=4)
    yield "mutual_information", lambda: joint.mutual_information(number, level, given=table.numbers[1], **draws)
    for measure in ("kl", "jensen-shannon", "total-variation", "hellinger"):
        for columns in (None, table.numbers[:2]):
            yield "divergence", partial(joint.divergence, again, measure, columns, **draws)
    yield "compare", lambda: joint.compare(again)
    yield "rake", lambda: joint.rake(frame.head(100)).log_density(few)
    yield "info", lambda: joint.info()
    wanted = table.whole[level].iloc[-1]
    yield "counterfactual", lambda: joint.counterfactual(table.whole.head(1), level, wanted, n=2, **SEED)
    yield "report", lambda: joint.report(folder / "page.html", frame, target=level, examples=2)
    yield "save", lambda: (joint.save(folder / "it.joint"), jf.load(folder / "it.joint").log_density(few))
    yield "to_arrow", lambda: jf.from_arrow(joint.to_arrow()).log_density(few)
    yield "to_forde", lambda: (joint.to_forde(folder / "forde"), jf.from_forde(folder / "forde").log_density(few))
    yield "explore", lambda: first_page(joint, table)
    yield "marginal", lambda: [joint.marginal(column).histogram() for column in frame]
    yield "given", lambda: joint.given(f"{number} > 0").mean(number)


def of_any(joint: Any, table: Table) -> Questions:
    """A few questions to a joint that an option of a learner may have made otherwise."""
    yield "log_density", lambda: joint.log_density(table.few)
    yield "sample", lambda: joint.sample(2, 0)
    yield "given", lambda: joint.given(**table.evidence).mean(table.numbers[0])


def first_page(joint: Any, table: Table) -> list[Any]:
    """What the explorer's page asks at first."""
    from jointforest.explorer.questions import answer
    from jointforest.explorer.shown import shown_joint

    shown = shown_joint(joint, "joint", table.frame, None)
    return [answer(shown, what, {}) for what in ("table", "posterior")]


def of_posterior(joint: Any, table: Table) -> Questions:
    """All questions to posteriors: of nothing, of one row, of regions, of soft evidence, of many rows."""
    (number, other), level = table.numbers[:2], table.level
    ones = [joint.given(), joint.given(**table.evidence), joint.given({other: jf.about(1.0, 2.0)})]
    repeated = pd.concat([table.frame[[table.other_level]]] * 2, ignore_index=True)
    for one in (*ones, *map(joint.given, (table.some.drop(columns=[number, level]), table.few, repeated))):
        yield "log_probability", lambda one=one: one.log_probability
        yield "background_weight", lambda one=one: one.background_weight
        yield "supported", lambda one=one: one.supported
        yield "mean", lambda one=one: one.mean(number)
        yield "var", lambda one=one: one.var(number)
        yield "std", lambda one=one: one.std(number)
        yield "cov", lambda one=one: one.cov(number, other)
        yield "corr", lambda one=one: one.corr(number, other)
        yield "quantile", lambda one=one: one.quantile(number, [0.1, 0.5])
        for name in ("survival", "hazard", "restricted_mean"):
            yield name, lambda one=one, name=name: getattr(one, name)(number, [0.5, 1.5])
        yield "interval", lambda one=one: one.interval(number)
        yield "proba", lambda one=one: one.proba(level)
        yield "probability", lambda one=one: one.probability(table.event)
        yield "sample", lambda one=one: [one.sample(2, 0), one.sample(2, 0, missing=True)]
        yield "standard_error", lambda one=one: one.standard_error(number)
        yield "standard_error", lambda one=one: one.standard_error(table.event)
    for one in ones:
        yield "mode", lambda one=one: one.mode(k=2, budget=50)
        yield "explain", lambda one=one: one.explain(k=3)
        yield "leaves", lambda one=one: one.leaves
        yield "marginals", lambda one=one: [marginal.histogram() for marginal in one.marginals().values()]
        for a, b in ((number, other), (number, level), (level, number)):
            yield "pair", lambda one=one, a=a, b=b: one.pair(a, b)
        yield "sample_batches", lambda one=one: list(one.sample_batches(5, 0))
        yield "compare", lambda one=one: one.compare(f"{number} > {other}", n_samples=64, **SEED)


def of_marginal(joint: Any, table: Table) -> Questions:
    """All questions to the marginals of columns of all kinds."""
    posteriors = (joint.given(), joint.given(**table.evidence), joint.given(table.few.iloc[:, :2]))
    for column in table.frame:
        value = table.frame[column].dropna().iloc[0]
        for one in (posterior.marginal(column) for posterior in posteriors):
            yield "cdf", lambda one=one, value=value: [one.cdf(value), one.cdf([value, value])]
            yield "histogram", lambda one=one: one.histogram()
            yield "interval", lambda one=one: one.interval()
            yield "likeliest", lambda one=one: one.likeliest()
            yield "mean", lambda one=one: one.mean()
            yield "pdf", lambda one=one, value=value: [one.pdf(value), one.pdf([value, value])]
            yield "pmf", lambda one=one, value=value: one.pmf(value)
            yield "ppf", lambda one=one: one.ppf([0.2, 0.5])
            for name in ("sf", "hazard", "restricted_mean"):
                yield name, lambda one=one, name=name, value=value: getattr(one, name)([value, value])
            yield "proba", lambda one=one: one.proba()
            yield "sample", lambda one=one: one.sample(2, 0)
            yield "std", lambda one=one: one.std()
            yield "var", lambda one=one: one.var()


def of_forest(model: Any, X: pd.DataFrame, y: pd.Series) -> Questions:
    """All questions to a generative classifier or regressor."""
    few = X.head(6)
    yield "predict", lambda: model.predict(few)
    if isinstance(model, jf.GenerativeForestClassifier):
        for name in ("predict_proba", "predict_log_proba", "predict_set"):
            yield name, partial(getattr(model, name), few)
        for beta in (None, 0.0, 0.5):
            for shift in ("leaf", "column"):
                yield "robustness", partial(model.robustness, few, beta=beta, shift=shift)
        yield "uncertainty", lambda: model.uncertainty(few, X.head(30))
    else:
        yield "predict_interval", lambda: model.predict_interval(few)
        yield "predict_quantiles", lambda: model.predict_quantiles(few, [0.1, 0.5])
    yield "score_samples", lambda: model.score_samples(few)
    yield "score", lambda: model.score(few, y.head(6))
    yield "sample", lambda: model.sample(2, 0)
    yield "feature_importances_", lambda: model.feature_importances_


def forests(table: Table) -> Iterator[tuple[str, Callable[[], Any], pd.DataFrame, pd.Series]]:
    """Names of classes, functions that learn a generative forest in each way, features and targets."""
    level, number = table.level, table.numbers[0]
    X, y = table.whole.drop(columns=level), table.whole[level]
    rest, amounts = X.drop(columns=number), X[number]
    others, weights = table.whole[table.numbers[1:]], np.linspace(0.5, 2, len(y))
    joint = jf.AdversarialForest(2, **SEED).fit(table.frame).joint_
    for made, features, target, trees in (
        (jf.GenerativeForestClassifier, X, y, RandomForestClassifier(3, min_samples_leaf=3, **SEED)),
        (jf.GenerativeForestRegressor, rest, amounts, RandomForestRegressor(3, min_samples_leaf=3, **SEED)),
    ):
        name = made.__name__
        rows = pd.concat([features, target], axis=1)
        yield name, lambda made=made, x=features, t=target: made(3, **SEED).fit(x, t), features, target
        yield name, lambda made=made, x=features, t=target: made(3, **SEED).fit(x, t, weights), features, target
        yield name, lambda made=made, x=features, t=target: made(3, conformal=True, **SEED).fit(x, t), features, target
        yield (
            name,
            lambda made=made, r=rows, t=target: made(3, **SEED).fit_batches(lambda: iter([r]), t.name),
            features,
            target,
        )
        yield name, lambda made=made, t=target: made.from_joint(joint, t.name), features, target
        trees.fit(others, target)
        yield name, lambda made=made, f=trees, t=target: made.from_forest(f, others, t), others, target


def of_expected(model: Any, joint: Any, X: pd.DataFrame, y: pd.Series) -> Questions:
    """All questions about the expected predictions of a trained model."""
    few = X.mask(np.random.default_rng(2).random(X.shape) < 0.3).head(8)
    few.iloc[0] = np.nan
    masks = X.iloc[[1] * 16].mask(np.random.default_rng(3).random((16, X.shape[1])) < 0.5)
    predictor = jf.ExpectedPredictor(model, joint, n_draws=8)
    for method in ("auto", "exact", "probit", "sample"):
        for name in ("predict", "predict_proba", "standard_error"):
            yield name, lambda name=name, method=method: getattr(predictor, name)(few, method=method)
    yield "predict", lambda: predictor.predict(masks, method="sample")
    for how in ({}, {"method": "sample"}, {"interventional": True}, {"output": "prediction"}):
        yield "shap", lambda how=how: predictor.shap(few.head(2), **how)
    for name in ("decision_function", "error_bound", "predict_std"):
        yield name, lambda name=name: getattr(predictor, name)(few)
    for method in ("auto", "bagging", "forest", "boosting"):
        yield "refit", lambda method=method: predictor.refit(few, y.head(8), method=method).predict(few)


def of_predictor(model: Any, X: pd.DataFrame, y: pd.Series, folder: Path) -> Questions:
    """All questions to a predictor of one column."""
    few = X.mask(np.random.default_rng(4).random(X.shape) < 0.4).head(20)
    if isinstance(model, jf.JointClassifier):
        for name in ("predict_proba", "predict_log_proba"):
            yield name, partial(getattr(model, name), few)
    else:
        yield "predict_interval", lambda: model.predict_interval(few)
        yield "predict_quantile", lambda: model.predict_quantile(few, 0.3)
        yield "predict_survival_function", lambda: model.predict_survival_function(few)
        yield "unique_times_", lambda: model.unique_times_
    yield "predict", lambda: model.predict(few)
    yield "score", lambda: model.score(few, y.head(20))
    yield "explain", lambda: model.explain(few.head(2))
    yield "sample", lambda: model.sample(5, random_state=0)
    yield "save", lambda: (model.save(folder / "it.joint"), jf.load_predictor(folder / "it.joint").predict(few))


def predictors(table: Table) -> Iterator[tuple[str, Callable[[], Any], pd.DataFrame, pd.Series]]:
    """Names of classes, functions that learn a predictor, features and targets."""
    times = table.whole[table.numbers[:1]].abs().assign(event=np.arange(len(table.whole)) % 3 > 0)
    rest = table.whole.drop(columns=table.numbers[0])
    yield "JointRegressor", lambda: jf.JointRegressor(**SEED).fit(rest, times), rest, times
    for made, target in ((jf.JointClassifier, table.level), (jf.JointRegressor, table.numbers[0])):
        X, y = table.whole.drop(columns=target), table.whole[target]
        for budget in ("fast", 5.0):
            yield made.__name__, lambda made=made, b=budget, x=X, t=y: made(budget=b, **SEED).fit(x, t), X, y
        numbers, trees = table.whole[table.numbers[1:]], RandomForestRegressor(3, **SEED)
        trees = RandomForestClassifier(3, **SEED) if made is jf.JointClassifier else trees
        trees.fit(numbers, y)
        yield made.__name__, lambda made=made, m=trees, x=numbers, t=y: made.from_model(m, x, t, **SEED), numbers, y


def ensembles(table: Table) -> Iterator[tuple[Any, Any, pd.DataFrame, pd.Series]]:
    """Trained models, joints of their features, features and targets."""
    level, number = table.level, table.numbers[0]
    X, amounts, y = table.whole[table.numbers[1:]], table.whole[number], table.whole[level]
    models = [
        RandomForestRegressor(8, max_depth=8, **SEED).fit(X, amounts),
        HistGradientBoostingRegressor(max_iter=3, max_depth=3, **SEED).fit(X, amounts),
        RandomForestClassifier(3, max_depth=3, **SEED).fit(X, y),
        GradientBoostingClassifier(n_estimators=3, max_depth=2, **SEED).fit(X, y),
    ]
    forest, hidden = jf.AdversarialForest(2, **SEED), jf.HiddenTreeForest(n_states=3, max_iter=2, **SEED)
    plain = jf.AdversarialForest(2, kinds=dict.fromkeys(table.numbers, "continuous"), leaf="normal", **SEED)
    learned = [learner.fit(table.frame).joint_ for learner in (forest, plain, hidden)]
    for joint in (*learned, jf.mix([learned[0], learned[2]])):
        for model in models:
            yield model, joint.select(*X.columns), X, y if hasattr(model, "classes_") else amounts


def histories() -> Iterator[tuple[Any, pd.DataFrame, pd.DataFrame]]:
    """Joints of several rows for each subject; what they learned from; and rows with missing cells."""
    visits = jf.datasets.make_visits(200, random_state=0)
    keys = {"group": "patient", "order": "date"}
    yield jf.fit(visits, **keys, **SEED), visits, with_gaps(visits, [*keys.values()])
    yield jf.HistoryForest(ends=False, **SEED).fit(visits, **keys).joint_, visits, with_gaps(visits, [*keys.values()])
    events = mixed(300).frame.assign(who=[f"subject {k // 5}" for k in range(300)])
    yield jf.fit(events, group="who", **SEED), events, with_gaps(events, ["who"])


def with_gaps(frame: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """A frame of histories in which many cells are missing."""
    is_missing = np.random.default_rng(6).random(frame.shape) < 0.15
    is_missing[:, [frame.columns.get_loc(key) for key in keys]] = False
    return frame.mask(is_missing)


def of_histories(joint: Any, frame: pd.DataFrame, gaps: pd.DataFrame, folder: Path) -> Questions:
    """All questions to a joint of histories."""
    for rows in (frame, gaps):
        for name in ("log_density", "standard_error", "attribution", "subjects"):
            yield name, partial(getattr(joint, name), rows)
    yield "log_density", lambda: joint.log_density(gaps, ended=False)
    for how in ({}, {"method": "sample"}, {"method": "sample", "m": 2}):
        yield "impute", lambda how=how: joint.impute(gaps, **how, **SEED)
    yield "sample", lambda: joint.sample(20, 0)
    yield "fidelity", lambda: joint.fidelity(frame, **SEED)
    yield "info", lambda: joint.info()
    yield "save", lambda: (joint.save(folder / "h.joint"), jf.load(folder / "h.joint").log_density(gaps))
    yield "explore", lambda: first_history(joint, gaps)
    for rows in (frame, gaps):
        yield "forecast", lambda rows=rows: joint.forecast(rows, 3, n_draws=20, **SEED)


def first_history(joint: Any, frame: pd.DataFrame) -> list[Any]:
    """What the page of a joint of histories asks at first."""
    from jointforest.explorer.histories import forecast, history, prepare, shown_histories

    shown = shown_histories(joint, "joint", frame)
    prepare(shown)
    return [forecast(shown, history(shown, {"place": 0}) | {"steps": 2})]


def of_forecast(joint: Any, frame: pd.DataFrame) -> Questions:
    """All questions to what is known of the rows to come."""
    forecast = joint.forecast(frame, 2, n_draws=20, **SEED)
    for column in joint.varying:
        for name in ("mean", "proba", "missing_probability", "interval"):
            yield name, partial(getattr(forecast, name), column)
        yield "quantile", lambda column=column: forecast.quantile(column, [0.1, 0.5])
        yield "probability", lambda column=column: forecast.probability({column: jf.between(None, 100.0)})
    yield "sample", lambda: forecast.sample(2)


def of_package(table: Table) -> Questions:
    """Questions to the other estimators and to the functions of the package."""
    frame, some, few, level = table.frame, table.some, table.few, table.level
    X, y, numbers = table.whole.drop(columns=level), table.whole[level], table.whole[table.numbers]
    small = jf.AdversarialForest(2, **SEED)
    joint = small.fit(frame).joint_
    for method in ("mean", "sample"):
        for proper in (False, True):
            for estimator in (small, jf.HiddenTreeForest(n_states=3, max_iter=2, **SEED)):
                imputer = jf.JointImputer(estimator, method=method, m=2, proper=proper, **SEED)
                yield "JointImputer", lambda imputer=imputer: imputer.fit(frame).transform(few)
    yield "JointImputer", lambda: jf.JointImputer(small, m=2, **SEED).fit(frame).impute(few)
    for estimator in (None, small):
        detector = jf.ForestOutlierDetector(estimator, **SEED)
        for name in ("predict", "score_samples", "percentile", "attribution"):
            yield "ForestOutlierDetector", lambda d=detector, name=name: getattr(d.fit(frame), name)(some)
    yield "JointAugmenter", lambda: jf.JointAugmenter(small, **SEED).fit_resample(X, y)
    for budget in ("fast", 5.0):
        yield "fit", lambda budget=budget: jf.fit(frame, budget=budget, **SEED)
    for rows in (joint, joint.sample(100, 0)):
        yield "fidelity", lambda rows=rows: str(jf.fidelity(rows, frame.head(150), frame.iloc[150:], **SEED))
    forest = RandomForestClassifier(3, max_depth=4, **SEED).fit(numbers, y)
    classes = y.head(10).map({label: k for k, label in enumerate(forest.classes_)})
    of_numbers = joint.select(*table.numbers)
    yield "shapley", lambda: jf.shapley(forest.predict_proba, of_numbers, numbers.head(2), n_draws=8)
    yield "shapley", lambda: jf.shapley(level, joint, X.head(2), n_coalitions=64, n_draws=8)
    yield "sage", lambda: jf.sage(forest.predict_proba, of_numbers, numbers.head(10), classes, n_draws=8)
    yield (
        "conditional_importance",
        lambda: jf.conditional_importance(forest.predict_proba, of_numbers, numbers.head(10), classes),
    )
    yield "mix", lambda: jf.mix([joint, joint]).log_density(few)
    yield "counterfactual", lambda: of_numbers.counterfactual(numbers.head(1), forest, y.iloc[-1], n=2, **SEED)


# ---- Asking.


class Asking:
    """Asks; counts the answers by class and method, and remembers what was refused."""

    def __init__(self) -> None:
        self.answers: Counter[tuple[str, str]] = Counter()
        self.refusals: Counter[str] = Counter()
        self.start = time.perf_counter()

    def ask(self, of: str, questions: Questions) -> None:
        for method, question in questions:
            self.answers[of, method] += self.answer(f"{of}.{method}", question) is not None

    def answer(self, what: str, question: Callable[[], Any]) -> Any:
        """The answer in a list, or None if there is none."""
        try:
            return [question()]
        except REFUSALS as error:
            self.refusals[f"{what}: {type(error).__name__}: {str(error)[:150]}"] += 1
            return None

    def say(self, what: str) -> None:
        print(f"{time.perf_counter() - self.start:4.0f} s: {what}", file=sys.stderr, flush=True)

    def all_of(self, table: Table, folder: Path) -> None:
        """All questions about a table."""
        for name, learn in joints(table):
            found = self.answer(name, learn)
            if found is None:
                continue
            if "," in name:  # the same kind of joint, learned in another way
                self.ask("Joint", of_any(found[0], table))
                continue
            place = Path(tempfile.mkdtemp(dir=folder))
            self.ask("Joint", of_joint(found[0], table, place))
            self.ask("Posterior", of_posterior(found[0], table))
            self.ask("Marginal", of_marginal(found[0], table))
            self.say(name)
        for name, learn, X, y in forests(table):
            if (found := self.answer(name, learn)) is not None:
                self.ask(name, of_forest(found[0], X, y))
        self.say("generative forests")
        for name, learn, X, y in predictors(table):
            if (found := self.answer(name, learn)) is not None:
                self.ask(name, of_predictor(found[0], X, y, folder))
        self.say("predictors")
        for model, joint, X, y in ensembles(table):
            self.ask("ExpectedPredictor", of_expected(model, joint, X, y))
        self.say("expected predictions")
        self.ask("package", of_package(table))
        self.say("estimators and functions")

    def of_linked_sums(self) -> None:
        """A few questions about joints under sums of two and of three; all of them would take long."""
        for parts in (["net", "tax"], ["net", "tax", "tip"]):
            table = sums(parts)
            learner = jf.HiddenTreeForest(2, n_states=4, max_iter=1, rules=[f"total = {' + '.join(parts)}"], **SEED)
            joint = learner.fit(table.frame).joint_
            self.ask("Joint", of_any(joint, table))
            self.ask("Marginal", of_marginal(joint, table))
        self.say("sums")

    def of_all_histories(self, folder: Path) -> None:
        """All questions about several rows for each subject."""
        for joint, frame, gaps in histories():
            self.ask("HistoryJoint", of_histories(joint, frame, gaps, folder))
            self.ask("Forecast", of_forecast(joint, gaps))
        self.say("histories")

    def all_options(self, table: Table) -> None:
        """All options of learners."""
        level, number = table.level, table.numbers[0]
        targets = {jf.GenerativeForestClassifier: (level,), jf.GenerativeForestRegressor: (number,)}
        for learner, option in options():
            columns = targets.get(learner, ())
            data = (table.whole.drop(columns=list(columns)), *(table.whole[name] for name in columns))
            model = learner(2, **option, **SEED)
            found = self.answer(f"{learner.__name__}({option})", partial(model.fit, *data))
            if found is not None:
                self.ask("learners", of_any(found[0].joint_, table))
        self.say("options of learners")

    def missing(self) -> list[str]:
        """Public methods that were not asked, or never answered."""
        public = {
            (name, method)
            for name, without in NOT_ASKED.items()
            for method in set(dir(getattr(jf, name))) - parameters_of(getattr(jf, name))
            if not method.startswith("_")
            and method not in OF_SCIKIT_LEARN | without
            and not method.endswith("_request")
        }
        return [
            f"{name}.{method}" for name, method in sorted(public | {*self.answers}) if not self.answers[name, method]
        ]


def parameters_of(of: type) -> set[str]:
    """Names of the parameters of an estimator, which are attributes of its class."""
    return {one.name for one in fields(of)} if is_dataclass(of) else set()


def listed() -> str:
    """The list of what was asked for; kernels that are no entries of the package are left out."""
    found = [
        (entry, signature)
        for (function, _), signature in numba_internals.asked.items()
        if isinstance(entry := vars(sys.modules[function.__module__]).get(function.__qualname__), Entry)
    ]
    return signatures.write_list(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare with the list, do not write it")
    parser.add_argument("--refusals", action="store_true", help="print what was refused")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    asking = Asking()
    with tempfile.TemporaryDirectory() as folder:
        for table in (penguins(), mixed()):
            asking.all_of(table, Path(folder))
        asking.of_linked_sums()
        asking.of_all_histories(Path(folder))
        asking.all_options(mixed(150))
    if options.refusals:
        print(*(f"{n:4} {what}" for what, n in sorted(asking.refusals.items())), sep="\n")
    if missing := asking.missing():
        raise SystemExit(f"public methods without an answer here: {', '.join(missing)}")
    text = listed()
    if not options.check:
        signatures.LIST.write_text(text)
    elif lacking := set(text.splitlines()) - set(signatures.LIST.read_text().splitlines()):
        raise SystemExit("the list lacks:\n" + "\n".join(sorted(lacking)))
    print(f"{len(signatures.read_list(text, numba_internals.record_type))} entries and signatures")


if __name__ == "__main__":
    main()
