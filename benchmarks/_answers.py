"""A few dozen answers of the installed package, cheap ones of every kind, written to a file: see same_answers.py.

Only what is public is called, so that old revisions answer, too. ``python _answers.py OUT [DATA]``.
"""

from __future__ import annotations

import dataclasses
import pickle
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor

import jointforest as jf

Answer = tuple[np.ndarray, list[str]]  # its numbers, and its texts
Asked = Iterator[tuple[str, Any]]  # name of an answer, and a function that gives it


def flat(value: Any) -> Answer:
    """Numbers and texts of an answer, in order, whatever it is made of."""
    numbers: list[np.ndarray] = []
    texts: list[str] = []

    def add(part: Any) -> None:
        if isinstance(part, pd.DataFrame):
            for name in part.columns:
                texts.append(str(name))
                add(part[name].to_numpy())
        elif isinstance(part, np.ndarray) and part.dtype.kind in "biuf":
            numbers.append(part.astype(float).ravel())
        elif isinstance(part, bool | int | float | np.generic) and np.asarray(part).dtype.kind in "biuf":
            numbers.append(np.array([float(part)]))
        elif isinstance(part, dict):
            for key, below in part.items():
                add(key)
                add(below)
        elif isinstance(part, np.ndarray | list | tuple):
            for below in part:
                add(below)
        elif dataclasses.is_dataclass(part):
            add([getattr(part, field.name) for field in dataclasses.fields(part)])
        else:
            texts.append(str(part))

    add(value)
    return np.concatenate([np.empty(0), *numbers]), texts


def hide(frame: pd.DataFrame, seed: int, rate: float = 0.3) -> pd.DataFrame:
    """The frame with a share of its cells missing."""
    return frame.mask(np.random.default_rng(seed).random(frame.shape) < rate)


def of_joint(joint: Any, frame: pd.DataFrame, number: str, level: str, evidence: dict[str, Any], event: str) -> Asked:
    """The questions to one joint: a number column, a column of levels, evidence of one row, and an event."""
    some, few = hide(frame.head(60), 1), hide(frame.head(12), 2)
    one = joint.given(**evidence)
    yield "leaves", lambda: [joint.n_trees, joint.n_leaves]
    yield "log_density", lambda: joint.log_density(frame.head(200))
    yield "log_density, missing cells", lambda: joint.log_density(some)
    yield "tree_log_density", lambda: joint.tree_log_density(few)
    yield "probability", lambda: joint.probability(event, given=evidence)
    yield "query", lambda: joint.query(f"P({event} | {number} > {frame[number].median()})")
    yield "mean, var, std", lambda: [one.mean(number), one.var(number), one.std(number)]
    yield "mean, many rows", lambda: joint.given(some.drop(columns=number)).mean(number)
    yield "quantile", lambda: one.quantile(number, [0.05, 0.5, 0.95])
    yield "interval, many rows", lambda: joint.given(few.drop(columns=number)).interval(number)
    yield "proba", lambda: joint.given(some.drop(columns=level)).proba(level)
    yield (
        "marginal",
        lambda: [
            joint.marginal(number).cdf(frame[number].head(20).to_numpy()),
            joint.marginal(number).pdf(frame[number].head(20).to_numpy()),
            joint.marginal(level).pmf(joint.levels(level)[0]),
        ],
    )
    yield "predict_proba of any column", lambda: joint.predict_proba(some, level)
    yield "predict_proba by the mean of trees", lambda: joint.predict_proba(few, level, beta=0.0)
    yield "sample", lambda: joint.sample(50, random_state=0)
    yield "sample, given", lambda: one.sample(50, random_state=0)
    yield "impute by means", lambda: joint.impute(some)
    yield "impute by draws", lambda: joint.impute(few, method="sample", m=2, random_state=0)
    yield "attribution", lambda: joint.attribution(some)
    yield "mode", lambda: mode(one)
    yield "condition", lambda: joint.condition(**evidence).log_density(few)
    yield "keep", lambda: joint.select(number, level).log_density(some[[number, level]])
    yield "explain", lambda: str(one.explain(k=3))
    yield "tree_text", lambda: joint.tree_text()
    yield "reverse", lambda: joint.reverse(event, k=3).rules
    yield "entropy", lambda: joint.entropy(level)
    yield "entropy, sampled", lambda: joint.entropy(number, level, n_samples=200, random_state=0)
    yield "mutual information", lambda: joint.mutual_information(number, level, n_samples=200, random_state=0)
    other = joint.condition(**evidence)
    yield "divergence", lambda: joint.divergence(other, n_samples=200, random_state=0)
    yield "total variation", lambda: joint.divergence(other, "total-variation", n_samples=200, random_state=0)
    yield "compare", lambda: joint.compare(other)
    yield "robustness", lambda: joint.robustness(few, level)


def mode(posterior: Any) -> list[Any]:
    """Rows, log-densities and the bound of a short search."""
    found = posterior.mode(k=2, budget=50)
    return [found.rows, found.log_density, found.log_bound]


def of_classifier(model: Any, X: pd.DataFrame) -> Asked:
    """The questions to a generative classifier."""
    some = hide(X.head(60), 3)
    yield "predict_proba", lambda: model.predict_proba(some)
    yield "predict", lambda: model.predict(some)
    yield "score_samples", lambda: model.score_samples(some)
    yield "robustness", lambda: model.robustness(some.head(12))
    yield "log_density of its joint", lambda: model.joint_.log_density(some)


def of_regressor(model: Any, X: pd.DataFrame) -> Asked:
    """The questions to a generative regressor."""
    some = hide(X.head(60), 4)
    yield "predict", lambda: model.predict(some)
    yield "predict_interval", lambda: model.predict_interval(some.head(12))


def of_expected(model: Any, joint: Any, X: pd.DataFrame, y: pd.Series) -> Asked:
    """The questions to the expected predictions of a trained ensemble."""
    some = hide(X.head(40), 5)
    predictor = jf.ExpectedPredictor(model, joint)
    yield "predict", lambda: predictor.predict(some)
    if hasattr(predictor, "classes_"):
        yield "predict_proba", lambda: predictor.predict_proba(some)
        yield "refit", lambda: predictor.refit(some, y.head(40)).predict_proba(some)
        return
    yield "predict_std", lambda: predictor.predict_std(some)
    yield "refit", lambda: predictor.refit(some, y.head(40)).predict(some)
    yield "refit of the forest", lambda: predictor.refit(some, y.head(40), method="forest").predict(some)


def of_table(frame: pd.DataFrame, number: str, level: str, evidence: dict[str, Any], event: str) -> Asked:
    """All questions to one table; learners are part of what is compared."""

    def named(name: str, asked: Asked) -> Asked:
        print(f"{name}: {time.process_time():,.0f} s of the processor so far", file=sys.stderr, flush=True)
        for what, answer in asked:
            yield f"{name}: {what}", answer

    forest = jf.AdversarialForest(n_estimators=5, random_state=0, oob_score=True).fit(frame)
    joint = forest.joint_
    yield from named("adversarial forest", of_joint(joint, frame, number, level, evidence, event))
    joints = {
        "quantile leaves": jf.AdversarialForest(n_estimators=3, leaf="quantile", random_state=1),
        "joint tree": jf.JointTree(random_state=0),
        "joint trees": jf.JointTree(3, max_features=0.5, random_state=0),
    }
    for name, learner in joints.items():
        learned = learner.fit(frame).joint_
        yield from named(name, of_joint(learned, frame, number, level, evidence, event))
    X, y = frame.drop(columns=level), frame[level]
    numbers = frame.select_dtypes("number").columns.drop(number, errors="ignore")
    whole = frame.dropna(subset=[*numbers, number, level])
    grown = {
        "generative classifier": {},
        "mean of trees, full targets": dict(combine="trees", target_in_leaf="full"),
        "LearnSPN leaves": dict(leaf="spn"),
    }
    for name, options in grown.items():
        made = jf.GenerativeForestClassifier(8, min_samples_leaf=5, random_state=0, **options).fit(X, y)
        yield from named(name, of_classifier(made, X))
    adopted = RandomForestClassifier(8, min_samples_leaf=5, random_state=0).fit(whole[numbers], whole[level])
    taken = jf.GenerativeForestClassifier.from_forest(adopted, whole[numbers], whole[level], random_state=0)
    yield from named("from_forest", of_classifier(taken, whole[numbers]))
    known = frame[number].notna()
    regressor = jf.GenerativeForestRegressor(8, min_samples_leaf=5, random_state=0)
    regressor.fit(frame[known].drop(columns=number), frame[known][number])
    yield from named("generative regressor", of_regressor(regressor, frame[known].drop(columns=number)))
    detector = jf.ForestOutlierDetector(random_state=0).fit(frame)
    yield "outlier detector: score_samples", lambda: detector.score_samples(hide(frame.head(60), 6))
    yield "outlier detector: predict", lambda: detector.predict(frame.head(60))
    small = (joint.select if hasattr(joint, "select") else joint.keep)(*numbers)  # `keep` before 0.1.0
    trained = RandomForestRegressor(4, max_depth=4, random_state=0).fit(whole[numbers], whole[number])
    yield from named("expected, random forest", of_expected(trained, small, whole[numbers], whole[number]))
    boosted = GradientBoostingClassifier(n_estimators=4, max_depth=2, random_state=0).fit(whole[numbers], whole[level])
    yield from named("expected, boosting", of_expected(boosted, small, whole[numbers], whole[level]))


def main() -> None:
    warnings.simplefilter("ignore")
    penguins = jf.datasets.load_penguins()
    given = {"sex": "MALE", "body_mass_g": jf.between(3500, 4500)}
    tables = {"penguins": (penguins, "bill_depth_mm", "species", given, "species = 'Gentoo'")}
    if len(sys.argv) > 2:
        adult = pd.read_parquet(Path(sys.argv[2]) / "adult_train.parquet").head(2000)
        given = {"sex": "Female", "age": jf.between(30, 50)}
        tables["adult"] = (adult, "hours_per_week", "income", given, "income = '>50K'")
    answers: dict[str, Answer] = {}
    for table, about in tables.items():
        for name, ask in of_table(*about):
            try:
                answers[f"{table}: {name}"] = flat(ask())
            except Exception as error:  # one question that fails is a finding, and the others are asked all the same
                answers[f"{table}: {name}"] = np.empty(0), [f"raised {type(error).__name__}: {error}"]
        print(f"{table}: {len(answers)} answers, {time.process_time():,.0f} s of the processor", flush=True)
    Path(sys.argv[1]).write_bytes(pickle.dumps(answers))


if __name__ == "__main__":
    main()
