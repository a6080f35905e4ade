"""The told-apart score: its definition, tables that can and cannot be told apart, threads."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from xgboost import XGBClassifier

from jointforest.data.infer_schema import infer_schema
from jointforest.evaluation import two_sample_test as module
from jointforest.evaluation.columns_and_pairs import TableCells, read_table_cells
from jointforest.evaluation.two_sample_test import quick_score, told_apart
from jointforest.runtime.threads import use_jobs

from ..oracle import fidelity as oracle
from .tables import table

REAL, OTHER = table(400, 0), table(400, 1)
SCHEMA = infer_schema(REAL)
A, B = read_table_cells(SCHEMA, REAL, "table"), read_table_cells(SCHEMA, OTHER, "rows")


@pytest.fixture(params=["XGBoost", "HistGradientBoosting"])
def classifier(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Either classifier, the second as where XGBoost is not installed."""
    if request.param != "XGBoost":
        monkeypatch.setattr(module, "find_spec", lambda name: None)
    return request.param


def test_quick_scores_are_near_those_of_all_folds() -> None:
    rng = np.random.default_rng(3)
    real = TableCells(("a", "b"), np.array([0, 0]), rng.normal(size=(4_000, 2)))
    for shift in (0.0, 0.5, 3.0):
        rows = real._replace(X=rng.normal(size=(4_000, 2)) + shift)
        full = told_apart(real, rows, 0, may_xgboost=False).score
        assert abs(quick_score(real, rows, 0) - full) < 0.06
        assert use_jobs(2)(quick_score)(real, rows, 0) == quick_score(real, rows, 0)
    assert quick_score(real, real._replace(X=real.X + 10.0), 0) < 0.01


def test_the_score_is_that_of_the_definition() -> None:
    frame = REAL.copy()
    frame["x"] = frame["x"] * 1.5
    found = told_apart(A, read_table_cells(SCHEMA, frame, "rows"), 3)
    assert found.score == pytest.approx(oracle.detection_score(found.auc))
    X = REAL.drop(columns="when").assign(when=REAL["when"].astype("int64") / 1e9)
    both = X.iloc[[*range(400), *range(400)]].reset_index(drop=True)
    both.loc[400:, "x"] *= 1.5
    both["kind"] = both["kind"].cat.add_categories("missing").fillna("missing")
    both["flag"] = both["flag"].astype(str).astype("category")
    y = np.repeat([0, 1], 400)
    auc = []
    for learn, test in StratifiedKFold(3, shuffle=True, random_state=0).split(both, y):
        model = XGBClassifier(eval_metric="logloss", enable_categorical=True, random_state=0, n_jobs=1)
        share = model.fit(both.iloc[learn], y[learn]).predict_proba(both.iloc[test])[:, 1]
        auc.append(roc_auc_score(y[test], share))
        pairs = oracle.auc_of_pairs(share[y[test] == 0].tolist(), share[y[test] == 1].tolist())
        assert auc[-1] == pytest.approx(pairs)
    assert found.score == pytest.approx(oracle.detection_score(auc), abs=0.12)  # other folds


def test_rows_of_the_same_source_cannot_be_told_apart(classifier: str) -> None:
    found = told_apart(A, B, 0)
    assert found.classifier == classifier and found.n_rows == 400
    assert found.score > 0.85


def test_a_broken_column_is_told_apart_and_named(classifier: str) -> None:
    for name in ("count", "kind"):
        wrong = OTHER.copy()
        wrong[name] = wrong[name] + 10 if name == "count" else "a"
        found = told_apart(A, read_table_cells(SCHEMA, wrong, "rows"), 0)
        assert found.score < (0.01 if name == "count" else 0.7)
        assert next(iter(found.columns)) == name
        assert sum(found.columns.values()) == pytest.approx(1.0)


def test_broken_dependence_is_told_apart(classifier: str) -> None:
    wrong = OTHER.copy()
    wrong["x"] = np.random.default_rng(0).permutation(wrong["x"])
    found = told_apart(A, read_table_cells(SCHEMA, wrong, "rows"), 0)
    assert found.score < 0.5 and set(list(found.columns)[:3]) & {"x", "y", "flag"}


def test_the_answer_depends_on_the_seed_alone(classifier: str) -> None:
    found = [use_jobs(n_jobs)(told_apart)(A, B, seed) for seed, n_jobs in ((1, 1), (1, 3), (2, 1))]
    assert found[0] == found[1] and found[0].auc != found[2].auc


def test_tables_of_other_lengths_are_cut(classifier: str) -> None:
    assert told_apart(A, B.take(np.arange(90)), 0).n_rows == 90
    with pytest.raises(ValueError, match="at least 10 rows of each, got 9"):
        told_apart(A.take(np.arange(9)), B, 0)


def test_more_levels_than_histogram_boosting_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    code = np.random.default_rng(0).integers(0, 900, (2, 600, 1)).astype(float)
    real, rows = (TableCells(("a",), np.array([902]), one) for one in code)
    assert told_apart(real, rows, 0).score > 0.8


def test_numbers_beyond_float32() -> None:
    x = np.random.default_rng(0).normal(size=(300, 2))
    x[150:, 0] += 1.0
    found = []
    for scale in (1.0, 1e200, 1e-200):
        real, rows = (TableCells(("a", "b"), np.zeros(2, dtype=int), one * scale) for one in (x[:150], x[150:]))
        found.append(told_apart(real, rows, 0))
    assert next(iter(found[0].columns)) == "a" and found[1] == found[2]
    assert found[1].score == pytest.approx(found[0].score, abs=0.02)
