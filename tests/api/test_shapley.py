"""Shapley values of predictions: against sums over all rows of small tables, and closed forms."""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor

import jointforest as jf
from jointforest.api.joint import Joint

from ..oracle.shapley import conditional_value, interventional_value, linear_normal, shapley
from ..random_cases.hidden_parts import ALL, INSIDE, hidden_joint, small_table
from ..random_cases.normal_part import normal_joint

INPUTS = ["size", "grade", "flag"]
ALONE = (("size",), ("grade",), ("flag",))


@cache
def forest() -> Joint:
    return jf.AdversarialForest(n_estimators=3, random_state=0).fit(small_table(0)).joint_.condition(INSIDE)


@cache
def hidden() -> Joint:
    return hidden_joint(small_table(0), 3).condition(INSIDE)


@cache
def regressor() -> RandomForestRegressor:
    table = small_table(1)
    y = table["size"] * (1 + table["grade"]) + 3 * table["flag"]
    return RandomForestRegressor(5, max_depth=4, random_state=0).fit(table[INPUTS], y)


@cache
def classifier(kind: str = "two") -> Any:
    table = small_table(2)
    y = table["place"] if kind != "two" else table["place"] == "here"
    if kind == "averaged":
        return RandomForestClassifier(4, max_depth=3, random_state=0).fit(table[INPUTS], y)
    return GradientBoostingClassifier(n_estimators=6, max_depth=2, random_state=0).fit(table[INPUTS], y)


def rows(n: int = 6, holes: float = 0.3) -> pd.DataFrame:
    frame = small_table(4, n).astype({"size": "Float64", "grade": "Float64", "flag": "boolean"})
    return frame.mask(np.random.default_rng(0).random(frame.shape) < holes)


def known(row: pd.Series) -> dict[str, Any]:
    return {name: value for name, value in row.items() if not pd.isna(value)}


def truth(of: Joint, row: pd.Series, answers: np.ndarray, groups: tuple = ALONE) -> np.ndarray:
    probability = np.exp(of.log_density(ALL))
    return shapley(len(groups), conditional_value(ALL, probability, answers, known(row), groups))


def test_all_coalitions_under_a_forest_are_enumeration() -> None:
    frame, model = rows(), regressor()
    predictor = jf.ExpectedPredictor(model, forest(), tolerance=0)
    found = predictor.shap(frame)
    answers = model.predict(ALL[INPUTS])
    for i, (_, row) in enumerate(frame.iterrows()):
        np.testing.assert_allclose(found.values[i], truth(forest(), row, answers), atol=1e-10)
    assert found.base_values == pytest.approx(np.exp(forest().log_density(ALL)) @ answers, abs=1e-10)
    assert (found.standard_error == 0.0).all() and found.base_standard_error == 0.0
    assert found.feature_names == ("size", "grade", "flag") and found.output_names == ()
    np.testing.assert_allclose(
        found.values.sum(axis=1) + found.base_values, predictor.predict(frame[INPUTS]), atol=1e-10
    )
    lacks = frame[INPUTS].isna().to_numpy()
    assert lacks.any() and (found.values[lacks] == 0.0).all()


@pytest.mark.parametrize("kind", ["two", "three", "averaged"])
def test_outputs_of_classifiers(kind: str) -> None:
    frame, model = rows(4), classifier(kind)
    predictor = jf.ExpectedPredictor(model, forest(), tolerance=0)
    proba = model.predict_proba(ALL[INPUTS])
    if kind == "averaged":
        raw = proba
    elif kind == "three":
        raw = model.decision_function(ALL[INPUTS])
    else:
        raw, proba = model.decision_function(ALL[INPUTS])[:, None], proba[:, 1:]
    for output, answers in (("raw", raw), ("prediction", proba)):
        found = predictor.shap(frame, output=output)
        values = found.values if found.values.ndim == 3 else found.values[:, :, None]
        for i, (_, row) in enumerate(frame.iterrows()):
            np.testing.assert_allclose(values[i], truth(forest(), row, answers), atol=1e-9)
        assert found.output_names == (("True",) if kind == "two" else tuple(model.classes_))
        assert found.values.ndim == (2 if kind == "two" else 3)


def test_groups_are_players_and_may_hold_other_columns() -> None:
    frame, model = rows(), regressor()
    predictor = jf.ExpectedPredictor(model, forest(), tolerance=0)
    answers = model.predict(ALL[INPUTS])
    found = predictor.shap(frame, groups={"where": ["place", "flag"]})
    groups = (("place", "flag"), ("size",), ("grade",))
    assert found.feature_names == ("where", "size", "grade")
    for i, (_, row) in enumerate(frame.iterrows()):
        np.testing.assert_allclose(found.values[i], truth(forest(), row, answers, groups), atol=1e-10)
    named = predictor.shap(frame, groups=[["flag", "place"], "size"])
    assert named.feature_names == ("flag + place", "size", "grade")
    np.testing.assert_array_equal(named.values, found.values)
    assert np.isnan(named.numbers[:, 0]).all() and isinstance(named.data[0, 0], str)


def test_a_column_that_the_model_never_uses_has_weight_if_it_tells_something() -> None:
    """Janzing, Minorics, Blöbaum (2020): conditional values give weight to it, interventional ones do not."""
    frame, model = rows(8, 0.0), regressor()
    predictor = jf.ExpectedPredictor(model, forest(), tolerance=0)
    place = predictor.shap(frame, groups=[["place"]]).values[:, 0]
    assert abs(place).max() > 0.1
    marginal = predictor.shap(frame, groups=[["place"]], interventional=True, background=small_table(9, 40))
    assert abs(marginal.values[:, 0]).max() < 1e-12


def two_trees() -> tuple[pd.DataFrame, Any, Any]:
    """Rows of two dependent bits, and two trees that are both x1: one splits x2 first, the other never."""
    rng = np.random.default_rng(0)
    x1 = rng.integers(0, 2, 2000)
    table = pd.DataFrame({"x1": x1, "x2": np.where(rng.random(2000) < 0.9, x1, 1 - x1)})
    useless = DecisionTreeRegressor(max_depth=2).fit(table, 10 * table["x2"] + table["x1"])
    tree = useless.tree_
    assert tree.feature[0] == 1 and (tree.feature[[1, 4]] == 0).all()
    tree.value[[0, 1, 2, 3, 4, 5, 6], 0, 0] = [x1.mean(), 0, 0, 1, 0, 0, 1]
    return table, useless, DecisionTreeRegressor(max_depth=1).fit(table, table["x1"])


def test_how_a_tree_is_written_matters_to_path_dependent_values_alone() -> None:
    """Filom, Miroshnikov, Kotsiopoulos, Kannan (2023): the same function, other values."""
    import shap

    table, useless, plain = two_trees()
    rows = pd.DataFrame({"x1": [0, 1, 1], "x2": [0, 0, 1]})
    assert useless.predict(rows).tolist() == plain.predict(rows).tolist() == rows["x1"].tolist()
    path = [
        shap.TreeExplainer(m, feature_perturbation="tree_path_dependent").shap_values(rows) for m in (useless, plain)
    ]
    assert abs(path[0][:, 1]).min() > 0.15 and (path[1][:, 1] == 0.0).all()
    levels = {"x1": "ordered", "x2": "ordered"}
    joint = jf.AdversarialForest(n_estimators=20, kinds=levels, random_state=0).fit(table).joint_
    p = np.array([joint.probability(f"x1 = 1 and x2 = {b}") / joint.probability(f"x2 = {b}") for b in (0, 1)])
    mean = joint.probability("x1 = 1")
    second = (p[rows["x2"]] - mean) / 2
    for model in (useless, plain):
        predictor = jf.ExpectedPredictor(model, joint, tolerance=0)
        np.testing.assert_allclose(predictor.shap(rows).values[:, 1], second, atol=1e-10)
        marginal = predictor.shap(rows, interventional=True, background=table.head(50)).values
        np.testing.assert_allclose(
            marginal, np.column_stack([rows["x1"] - table["x1"].head(50).mean(), 0 * second]), atol=1e-12
        )
    assert abs(second).min() > 0.15


def test_interventional_values_are_means_over_the_background() -> None:
    frame, background = rows(), small_table(7, 25)
    for model, function in (
        (regressor(), regressor().predict),
        (classifier(), lambda X: classifier().predict_proba(X)[:, 1]),
    ):
        predictor = jf.ExpectedPredictor(model, forest())
        found = predictor.shap(frame, interventional=True, background=background, output="prediction")
        same = jf.shapley(
            lambda X, f=function: f(X[INPUTS]), forest(), frame, interventional=True, background=background
        )
        assert same.feature_names[0] == "place" and abs(same.values[:, 0]).max() < 1e-12
        for i, (_, row) in enumerate(frame.iterrows()):
            value = interventional_value(lambda X, f=function: f(X[INPUTS]), background, known(row), ALONE)
            np.testing.assert_allclose(found.values[i], shapley(3, value), atol=1e-10)
            np.testing.assert_allclose(same.values[i, 1:], found.values[i], atol=1e-10)
        assert (found.standard_error[found.values != 0.0] > 0.0).all()
        drawn = [predictor.shap(frame, interventional=True, background=k, output="prediction") for k in (400, 6000)]
        off = (drawn[0].values - drawn[1].values) / np.maximum(drawn[0].standard_error, 1e-12)
        seen = drawn[0].standard_error > 0
        assert abs(off[seen]).max() < 4.5 and np.sqrt(np.mean(off[seen] ** 2)) > 0.3


def test_interventional_values_of_groups_and_of_many_columns() -> None:
    import shap

    frame, background, model = rows(), small_table(7, 25), regressor()
    groups = (("size", "place"), ("grade", "flag"))
    found = jf.ExpectedPredictor(model, forest()).shap(frame, interventional=True, background=background, groups=groups)
    for i, (_, row) in enumerate(frame.iterrows()):
        value = interventional_value(lambda X: model.predict(X[INPUTS]), background, known(row), groups)
        np.testing.assert_allclose(found.values[i], shapley(2, value), atol=1e-10)
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(rng.normal(size=(300, 20)), columns=[f"c{j}" for j in range(20)])
    many = GradientBoostingClassifier(n_estimators=20, max_depth=4, random_state=0).fit(wide, wide.sum(axis=1) > 1)
    joint = jf.AdversarialForest(n_estimators=2, random_state=0).fit(wide).joint_
    mine = jf.ExpectedPredictor(many, joint).shap(wide.head(5), interventional=True, background=wide.tail(30))
    theirs = shap.TreeExplainer(many, wide.tail(30), feature_perturbation="interventional").shap_values(wide.head(5))
    np.testing.assert_allclose(mine.values, theirs, atol=1e-6)


def test_missing_cells_of_a_background_are_drawn() -> None:
    holes = small_table(7, 60)[INPUTS].astype({"size": "Float64"})
    holes.loc[::2, "size"] = pd.NA
    found = jf.ExpectedPredictor(regressor(), forest()).shap(rows(3, 0.0), interventional=True, background=holes)
    assert np.isfinite(found.values).all() and (found.values != 0).any(axis=1).all()


def test_values_under_hidden_trees_are_within_their_standard_errors() -> None:
    frame, model = rows(12, 0.2), regressor()
    answers = model.predict(ALL[INPUTS])
    direct = np.array([truth(hidden(), row, answers) for _, row in frame.iterrows()])
    z = []
    for seed in range(6):
        predictor = jf.ExpectedPredictor(model, hidden(), n_draws=100, random_state=seed)
        found = predictor.shap(frame)
        noisy = found.standard_error > 0.0
        z.append((found.values - direct)[noisy] / found.standard_error[noisy])
        np.testing.assert_allclose((found.values - direct)[~noisy], 0.0, atol=1e-9)
        total = found.values.sum(axis=1) + found.base_values
        whole = frame[INPUTS].notna().all(axis=1).to_numpy()
        np.testing.assert_allclose(total[whole], model.predict(frame[INPUTS][whole].astype(float)), atol=1e-9)
    z = np.concatenate(z)
    assert 0.7 < np.sqrt(np.mean(z**2)) < 1.25 and abs(z).max() < 5.0


@pytest.mark.parametrize("output", ["raw", "prediction"])
def test_completions_of_one_forest_are_within_their_standard_errors(output: str) -> None:
    frame = rows(12, 0.2)
    exact = jf.ExpectedPredictor(classifier(), forest(), tolerance=0).shap(frame, output=output)
    z = []
    for seed in range(6):
        predictor = jf.ExpectedPredictor(classifier(), forest(), tolerance=0, n_draws=100, random_state=seed)
        found = predictor.shap(frame, output=output, method="sample")
        z.append((found.values - exact.values) / np.maximum(found.standard_error, 1e-12))
        one = predictor.shap(frame.iloc[:1], output=output, method="sample")
        assert one.values.shape == (1, 3)
    noisy = exact.values != 0.0
    z = np.array(z)[:, noisy]
    assert 0.5 < np.sqrt(np.mean(z**2)) < 1.15 and abs(z).max() < 5.0  # strata: errors are stated rather too large


def normal_case(p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Slopes, mean, covariance and rows (4, p) of correlated normals."""
    rng = np.random.default_rng(p)
    root = rng.normal(size=(p, p)) + 0.5
    covariance = root @ root.T / p + 0.1 * np.eye(p)
    mean = rng.normal(size=p)
    return rng.normal(size=p), mean, covariance, rng.multivariate_normal(mean, covariance, 4)


def test_a_linear_function_of_correlated_normals_has_the_closed_form() -> None:
    beta, mean, covariance, X = normal_case(5)
    direct = np.array([shapley(5, linear_normal(beta, mean, covariance, x)) for x in X])
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(5)])
    joint = normal_joint(mean, covariance)
    z = []
    for seed in range(12):
        found = jf.shapley(lambda F: F.to_numpy() @ beta, joint, frame, random_state=seed)
        z.append((found.values - direct) / found.standard_error)
        np.testing.assert_allclose(found.values.sum(axis=1) + found.base_values, X @ beta, atol=1e-9)
        assert abs(found.base_values - mean @ beta) < 4.5 * found.base_standard_error
    assert 0.75 < np.sqrt(np.mean(np.square(z))) < 1.25 and abs(np.array(z)).max() < 5.0


def test_sampled_coalitions_of_a_linear_function_of_normals() -> None:
    p = 8
    beta, mean, covariance, X = normal_case(p)
    value = [linear_normal(beta, mean, covariance, x) for x in X[:2]]
    frame = pd.DataFrame(X[:2], columns=[f"x{j}" for j in range(p)])
    joint = normal_joint(mean, covariance)
    direct = np.array([by_subsets(p, v) for v in value])
    z = []
    for seed in range(12):
        found = jf.shapley(lambda F: F.to_numpy() @ beta, joint, frame, n_coalitions=60, n_draws=60, random_state=seed)
        z.append((found.values - direct) / found.standard_error)
        np.testing.assert_allclose(found.values.sum(axis=1) + found.base_values, frame @ beta, atol=1e-9)
    assert 0.7 < np.sqrt(np.mean(np.square(z))) < 1.25 and abs(np.array(z)).max() < 5.0


def by_subsets(p: int, value: Any) -> np.ndarray:
    """The definition by subsets, for more players than orders can be listed."""
    from itertools import combinations
    from math import comb

    known = {frozenset(s): value(frozenset(s)) for k in range(p + 1) for s in combinations(range(p), k)}
    return np.array(
        [
            sum((known[S | {j}] - v) / (p * comb(p - 1, len(S))) for S, v in known.items() if j not in S)
            for j in range(p)
        ]
    )


def test_many_columns_are_sampled_and_come_near_what_all_coalitions_say() -> None:
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(400, 14)) + rng.normal(size=(400, 1))
    table = pd.DataFrame(np.round(Z, 1), columns=[f"c{j}" for j in range(14)])
    model = RandomForestRegressor(4, max_depth=5, random_state=0).fit(table, Z[:, 0] * Z[:, 1] + Z[:, 2:8].sum(axis=1))
    joint = jf.AdversarialForest(n_estimators=2, min_samples_leaf=20, random_state=0).fit(table).joint_
    predictor = jf.ExpectedPredictor(model, joint, tolerance=0)
    frame = table.head(3)
    exact = predictor.shap(frame, n_coalitions=2**14)
    assert (exact.standard_error == 0.0).all()
    z = []
    for seed in range(5):
        found = jf.ExpectedPredictor(model, joint, tolerance=0, random_state=seed).shap(frame)
        assert (found.standard_error > 0.0).all()
        np.testing.assert_allclose(found.values.sum(axis=1) + found.base_values, model.predict(frame), atol=1e-9)
        z.append((found.values - exact.values) / found.standard_error)
    assert 0.6 < np.sqrt(np.mean(np.square(z))) < 1.3 and abs(np.array(z)).max() < 5.0


def test_equal_columns_share_alike_and_a_constant_one_has_nothing() -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(0, 4, 300)
    table = pd.DataFrame({"a": a, "b": a, "c": rng.integers(0, 3, 300), "k": 7})
    copies = pd.concat([table, table.rename(columns={"a": "b", "b": "a"})], ignore_index=True)
    joint = jf.AdversarialForest(n_estimators=2, random_state=0).fit(copies).joint_
    model = RandomForestRegressor(3, max_depth=3, random_state=0).fit(copies, copies["a"] + copies["c"] ** 2)
    twin = jf.shapley(lambda X: (X["a"] + X["b"]) * X["c"], joint, table.head(3), n_draws=400)
    gap = twin.values[:, 0] - twin.values[:, 1]
    assert (abs(gap) < 5 * np.hypot(twin.standard_error[:, 0], twin.standard_error[:, 1])).all()
    found = jf.ExpectedPredictor(model, joint, tolerance=0).shap(table.head(3))
    assert abs(found.values[:, 3]).max() < 1e-5  # the joint's background says a little
    alone = jf.ExpectedPredictor(model, joint, tolerance=0).shap(table.head(3), groups=[["a", "b", "c", "k"]])
    np.testing.assert_allclose(alone.values[:, 0], model.predict(table.head(3)) - alone.base_values, atol=1e-9)


def test_unseen_levels_are_the_models_own() -> None:
    table = small_table(2).astype({"place": "category"})
    from xgboost import XGBRegressor

    model = XGBRegressor(n_estimators=5, max_depth=3, enable_categorical=True).fit(table, table["size"] * 1.5)
    joint = jf.AdversarialForest(n_estimators=2, random_state=0).fit(table).joint_
    frame = pd.DataFrame({"place": ["nobody knows", "here"], "size": [2, 2], "grade": [1, 1], "flag": [True, True]})
    predictor = jf.ExpectedPredictor(model, joint, tolerance=0)
    with pytest.warns(jf.UnseenLevelWarning, match="nobody knows"):
        found = predictor.shap(frame)
    with pytest.warns(jf.UnseenLevelWarning):
        total = predictor.predict(frame)
    np.testing.assert_allclose(found.values.sum(axis=1) + found.base_values, total, atol=1e-9)
    assert found.data[0, 0] is None and found.data[1, 0] == "here"


def test_threads_and_company_do_not_change_the_answer() -> None:
    frame = rows(10)
    for of in (forest(), hidden()):
        once, again = (jf.ExpectedPredictor(regressor(), of, n_jobs=k).shap(frame).values for k in (1, 2))
        np.testing.assert_array_equal(once, again)
    one = jf.ExpectedPredictor(regressor(), forest()).shap(frame)
    few = jf.ExpectedPredictor(regressor(), forest()).shap(frame.iloc[3:5])
    np.testing.assert_allclose(few.values, one.values[3:5], atol=1e-12)


def test_no_rows_and_rows_of_nothing() -> None:
    predictor = jf.ExpectedPredictor(regressor(), forest())
    assert predictor.shap(rows().head(0)).values.shape == (0, 3)
    nothing = predictor.shap(pd.DataFrame({"size": [np.nan], "place": ["here"]}))
    assert (nothing.values == 0.0).all() and nothing.data.tolist() == [[None, None, None]]


def test_rows_of_probability_zero_have_no_values() -> None:
    frame = pd.DataFrame({"size": [40, 3], "grade": [2, 2], "flag": [True, False]})
    predictor = jf.ExpectedPredictor(regressor(), hidden(), n_draws=10)
    with pytest.warns(jf.UnsupportedEvidenceWarning, match="1 of 2 rows"):
        found = predictor.shap(frame)
    assert np.isnan(found.values[0]).all() and np.isfinite(found.values[1]).all()
    with pytest.warns(jf.UnsupportedEvidenceWarning, match="1 of 2 rows"):
        found = jf.shapley(lambda X: X["size"], hidden(), frame, n_draws=10)
    assert np.isnan(found.values[0]).all() and np.isfinite(found.values[1]).all()


def test_clusters_of_dependent_columns() -> None:
    rng = np.random.default_rng(1)
    n, blocks = 600, 5
    base = rng.normal(size=(n, blocks))
    table = pd.DataFrame({f"v{j}{k}": base[:, j] + 0.3 * rng.normal(size=n) for j in range(blocks) for k in range(3)})
    joint = jf.HiddenTreeForest(n_states=16, random_state=0).fit(table).joint_
    found = jf.shapley(lambda X: X["v00"] + X["v10"], joint, table.head(2), groups="auto", n_draws=10)
    assert found.feature_names == tuple(f"v{j}0 + v{j}1 + v{j}2" for j in range(blocks))
    alone = pd.DataFrame(rng.normal(size=(n, 14)), columns=[f"u{j}" for j in range(14)])
    joint = jf.HiddenTreeForest(n_states=4, random_state=0).fit(alone).joint_
    assert len(jf.shapley(lambda X: X["u0"], joint, alone.head(1), groups="auto", n_draws=2).feature_names) == 12


def test_what_cannot_be_is_said() -> None:
    frame, predictor = rows(), jf.ExpectedPredictor(regressor(), forest())
    for options, message in (
        (dict(groups=[["size"], ["size", "flag"]]), "'size' is named twice"),
        (dict(groups=[["sizes"]]), "no column 'sizes'.*'size'"),
        (dict(groups={"flag": ["size"]}), "two players are called 'flag'"),
        (dict(groups=[[]]), "a group has no columns"),
        (dict(groups="clusters"), "groups must be None, 'auto'"),
        (dict(output="log"), "output must be one of 'raw', 'prediction'"),
        (dict(method="fast"), "method must be one of 'auto', 'exact', 'sample'"),
        (dict(n_coalitions=4), "n_coalitions must be None, or a whole number from 8 to 65,536, for 3 players, got 4"),
        (dict(n_coalitions=2**17), "from 8 to 65,536"),
        (dict(interventional=True, background=1), "background must be a frame, or a whole number of at least 2"),
        (dict(interventional=True, background=frame.head(1)), "at least 2 rows, got 1"),
    ):
        with pytest.raises(ValueError, match=message):
            predictor.shap(frame, **options)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="expected 2048 numbers, or 2048 rows of numbers, got int64 of shape"):
        jf.shapley(lambda X: 5, forest(), frame)
    with pytest.raises(ValueError, match="finite"):
        jf.shapley(lambda X: np.full(len(X), np.nan), forest(), frame)
    with pytest.raises(TypeError, match="give its joint_"):
        jf.shapley(len, jf.AdversarialForest(n_estimators=2).fit(small_table(0)), frame)
    with pytest.raises(TypeError, match=r"model\.predict"):
        jf.shapley(regressor(), forest(), frame)  # type: ignore[arg-type]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "numpy"])
def test_functions_get_frames_of_the_joint_s_library(library: str) -> None:
    table = small_table(0)[["size", "grade"]]
    given: Any = table
    if library == "polars":
        import polars

        given = polars.from_pandas(table)
    elif library == "pyarrow":
        import pyarrow

        given = pyarrow.Table.from_pandas(table)
    elif library == "numpy":
        given = table.to_numpy()
    joint = jf.AdversarialForest(n_estimators=2, random_state=0).fit(given).joint_

    def function(X: Any) -> np.ndarray:
        assert type(X) is type(given)
        return np.asarray(X)[:, 0] if library == "numpy" else np.asarray(X["size"])

    found = jf.shapley(function, joint, given[:3], n_draws=8)
    np.testing.assert_allclose(found.values.sum(axis=1) + found.base_values, table["size"].head(3))
    frame = found.to_frame()
    assert type(frame) is type(given) and (len(frame) if library != "pyarrow" else frame.num_rows) == 6


def test_without_shap_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    found = jf.ExpectedPredictor(regressor(), forest()).shap(rows(2))
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(ImportError, match=r"jointforest\[shap\]"):
        found.to_shap()


def test_plots_of_shap_take_the_values() -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    import shap

    frame = rows(8)
    found = jf.ExpectedPredictor(regressor(), forest()).shap(frame).to_shap()
    assert isinstance(found, shap.Explanation) and found.shape == (8, 3)
    np.testing.assert_allclose(
        found.values.sum(axis=1) + found.base_values, found[:].values.sum(1) + found.base_values[0]
    )
    shap.plots.beeswarm(found, show=False)
    shap.plots.bar(found, show=False)
    shap.plots.waterfall(found[0], show=False)
    shap.plots.scatter(found[:, "size"], show=False)
    shap.plots.heatmap(found, show=False)
    several = jf.ExpectedPredictor(classifier("three"), forest()).shap(frame, groups=[["size", "place"]]).to_shap()
    shap.plots.beeswarm(several[:, :, 0], show=False)
    shap.plots.waterfall(several[1, :, 2], show=False)
    plt.close("all")


def test_values_of_a_column_are_those_of_all_orders() -> None:
    """Beside the mean over all orders in which cells become known, asked one by one."""
    penguins = jf.datasets.load_penguins().dropna()
    joint = jf.AdversarialForest(n_estimators=3, random_state=0).fit(penguins).joint_
    row = penguins.iloc[[4]]
    names = ["island", "bill_length_mm", "body_mass_g"]
    for target, level in (("species", "Gentoo"), ("flipper_length_mm", None)):
        found = jf.shapley(target, joint, row[[*names, target]])
        k = None if level is None else found.output_names.index(level)

        def value(known: tuple[str, ...], target: str = target, level: str | None = level) -> float:
            given = joint.given({name: row[name].iloc[0] for name in known})
            return given.mean(target) if level is None else given.proba(target)[level]

        want = dict.fromkeys(names, 0.0)
        for order in itertools.permutations(names):
            for place, name in enumerate(order):
                want[name] += (value(order[: place + 1]) - value(order[:place])) / 6
        got = found.values[0] if k is None else found.values[0, :, k]
        np.testing.assert_allclose(got, [want[name] for name in found.feature_names], atol=1e-9)
        assert not found.standard_error.any() and target not in found.feature_names
        steps = found.waterfall(0, level)
        assert steps.ends[-1] == pytest.approx(value(tuple(names)), abs=1e-9) and steps.base == pytest.approx(value(()))
        assert len(found.waterfall(0, level, most=2).names) == 2


def test_errors_of_values_of_a_column() -> None:
    penguins = jf.datasets.load_penguins().dropna()
    joint = jf.JointTree(random_state=0).fit(penguins).joint_
    with pytest.raises(ValueError, match="interventional"):
        jf.shapley("species", joint, penguins.head(2), interventional=True)
    with pytest.raises(ValueError, match="specie"):
        jf.shapley("specie", joint, penguins.head(2))
    with pytest.raises(TypeError, match="column's name"):
        jf.shapley(3, joint, penguins.head(2))
    values = jf.shapley("species", joint, penguins.head(2))
    with pytest.raises(ValueError, match="Adelie, Chinstrap, Gentoo"):
        values.waterfall(0, "Emperor")
    with pytest.raises(ValueError, match="0 to 1"):
        values.waterfall(2)
