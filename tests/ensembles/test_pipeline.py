"""Pipelines read as ensembles of the table's own columns, against what the pipelines themselves answer."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lightgbm import LGBMClassifier
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from sklearn.tree import DecisionTreeRegressor
from xgboost import XGBClassifier, XGBRegressor

from jointforest.ensembles.evaluate import encode_features, raw
from jointforest.ensembles.pipeline import last_at_most
from jointforest.ensembles.read import read_ensemble

from .test_sklearn import classes_of
from .test_table import answers, assert_same_leaves, check, make_table, make_target

N = 240
NUMBERS = ["plain", "ties", "crowded", "huge", "tiny", "large"]
CODES = {"handle_unknown": "use_encoded_value", "unknown_value": -1}


def table(seed: int, missing: float = 0.0) -> pd.DataFrame:
    """Numbers, text and whole numbers as a user has them, before any encoding."""
    frame = make_table(N, seed, missing).drop(columns="zeros")
    return frame.assign(
        letter=frame["letter"].astype(object), number=frame["number"].astype(float), flag=frame["ties"] > 0
    )


def target(seed: int, missing: float = 0.0) -> np.ndarray:
    """A number for each row of the table."""
    return make_target(make_table(N, seed, missing), seed)


def around(frame: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Rows whose numbers are those of the table, or its next float64 or float32 neighbours."""
    rng = np.random.default_rng(seed)
    out = frame.sample(4 * len(frame), replace=True, random_state=seed, ignore_index=True)
    for name in NUMBERS:
        x, how = out[name].to_numpy(), rng.integers(0, 4, len(out))
        single = x.astype(np.float32)
        steps = [x, np.nextafter(x, np.inf), np.nextafter(x, -np.inf), np.nextafter(single, np.float32(np.inf))]
        out[name] = np.choose(how, steps)
    return out


def scaled(**settings) -> ColumnTransformer:
    return make_column_transformer(
        (StandardScaler(), ["plain", "crowded"]),
        (make_pipeline(MinMaxScaler(feature_range=(-1, 1)), MaxAbsScaler()), ["ties", "large"]),
        (RobustScaler(), ["huge"]),
        (OneHotEncoder(max_categories=5, drop="first"), ["letter"]),
        (OrdinalEncoder(), ["number"]),
        ("drop", ["tiny"]),
        remainder="passthrough",
        **settings,
    )


def coded() -> ColumnTransformer:
    return make_column_transformer(
        (OrdinalEncoder(), ["letter"]),
        (make_pipeline(OrdinalEncoder(**CODES), StandardScaler()), ["number"]),
        (KBinsDiscretizer(6, encode="ordinal", strategy="uniform"), ["plain"]),
        (make_pipeline(FunctionTransformer(np.arcsinh), StandardScaler(with_mean=False)), ["huge", "tiny"]),
        (make_pipeline(StandardScaler(with_std=False), MinMaxScaler(clip=True)), ["crowded"]),
        (Binarizer(threshold=0.3), ["ties"]),
    )


PIPELINES = [
    make_pipeline(scaled(), RandomForestRegressor(5, random_state=0)),
    make_pipeline(coded(), ExtraTreesRegressor(5, random_state=0)),
    make_pipeline(coded(), "passthrough", RandomForestRegressor(5, random_state=0)),
    make_pipeline(scaled(sparse_threshold=1.0), ExtraTreesRegressor(5, random_state=0)),
    make_pipeline(scaled(sparse_threshold=0), XGBRegressor(n_estimators=8, n_jobs=1, max_depth=5)),
    make_pipeline(coded(), StandardScaler(), XGBRegressor(n_estimators=8, n_jobs=1, max_depth=5)),
]


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("model", PIPELINES)
def test_every_row_reaches_the_leaf_that_the_pipeline_sends_it_to(model, seed: int) -> None:
    frame = table(seed)
    model.fit(frame, target(seed))
    ensemble = read_ensemble(model)
    check(ensemble)
    rows = around(frame, seed)
    assert_same_leaves(ensemble, rows, model[-1].apply(model[:-1].transform(rows)))
    np.testing.assert_allclose(answers(ensemble, rows)[:, 0], model.predict(rows), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "model",
    [
        GradientBoostingClassifier(n_estimators=5, random_state=0),
        HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=5, categorical_features=[0, 1]),
        LGBMClassifier(n_estimators=5, min_child_samples=5, n_jobs=1, verbose=-1),
        RandomForestClassifier(5, random_state=0),
    ],
)
def test_probabilities_are_the_pipelines(model) -> None:
    frame = table(3)
    y = classes_of(target(3), 3)
    whole = make_pipeline(coded(), model).fit(frame, y)
    rows = around(frame, 3)
    expected = whole.predict_proba(rows)
    ensemble = read_ensemble(whole)
    assert ensemble.classes == tuple(whole.classes_)
    np.testing.assert_allclose(answers(ensemble, rows), expected, atol=1e-12)


def imputed(**settings) -> ColumnTransformer:
    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    text = make_pipeline(
        SimpleImputer(strategy="constant", fill_value="none"), OneHotEncoder(handle_unknown="ignore", min_frequency=8)
    )
    return make_column_transformer(
        (numbers, NUMBERS),
        (text, ["letter"]),
        (make_pipeline(OrdinalEncoder(**CODES), SimpleImputer(strategy="most_frequent")), ["number"]),
        (make_pipeline(SimpleImputer(), MinMaxScaler()), ["ties"]),
        sparse_threshold=0,
        **settings,
    )


@pytest.mark.parametrize("seed", [0, 1])
def test_missing_cells_and_unknown_levels_go_where_imputers_and_encoders_send_them(seed: int) -> None:
    frame = table(seed, missing=0.2)
    y = target(seed, 0.2)
    model = make_pipeline(imputed(), XGBRegressor(n_estimators=8, n_jobs=1, max_depth=6)).fit(frame, y)
    rows = around(frame, seed)
    rows.loc[::7, "letter"] = "never seen"
    rows.loc[::5, "number"] = 1234.0
    assert_same_leaves(read_ensemble(model), rows, model[-1].apply(model[:-1].transform(rows)))


def test_a_missing_category_of_the_encoder() -> None:
    frame = table(2, missing=0.3)[["letter", "number"]]
    encoder = make_column_transformer((OneHotEncoder(), ["letter"]), (OrdinalEncoder(), ["number"]), sparse_threshold=0)
    model = make_pipeline(encoder, RandomForestRegressor(5, random_state=0))
    model.fit(frame, target(2, 0.3))
    ensemble = read_ensemble(model)
    assert ensemble.categories[1] == (2.0, 3.0, 5.0, 7.0, 11.0)
    assert_same_leaves(ensemble, frame, model[-1].apply(model[:-1].transform(frame)))


def test_columns_that_the_model_itself_splits_as_levels() -> None:
    frame = table(4).assign(letter=lambda f: f["letter"].astype("category"))
    steps = make_column_transformer((StandardScaler(), ["plain"]), ("passthrough", ["letter"])).set_output(
        transform="pandas"
    )
    y = target(4)
    model = make_pipeline(steps, HistGradientBoostingRegressor(max_iter=5, categorical_features="from_dtype"))
    model.fit(frame, y)
    ensemble = read_ensemble(model)
    assert ensemble.names == ("plain", "letter") and ensemble.categories[1] == tuple("abcdefgh")
    np.testing.assert_array_equal(answers(ensemble, frame)[:, 0], model.predict(frame))


def test_arrays_and_selectors_go_by_position() -> None:
    frame = table(5)[NUMBERS]
    y = target(5)
    for select in ([0, 2], slice(0, 3), np.arange(6) < 2):
        model = make_pipeline(
            make_column_transformer((RobustScaler(), select), remainder="drop"), DecisionTreeRegressor(max_depth=5)
        ).fit(frame.to_numpy(), y)
        ensemble = read_ensemble(model)
        assert ensemble.names == tuple("012345")
        np.testing.assert_array_equal(answers(ensemble, frame.to_numpy())[:, 0], model.predict(frame.to_numpy()))
    chosen = make_column_selector(pattern="^p|^t")
    named = make_pipeline(make_column_transformer((MaxAbsScaler(), chosen)), DecisionTreeRegressor(max_depth=5))
    named.fit(frame, y)
    assert read_ensemble(named).names == ("plain", "ties", "tiny")
    np.testing.assert_array_equal(answers(read_ensemble(named), frame)[:, 0], named.predict(frame))


@pytest.mark.parametrize(
    ("settings", "link"),
    [
        ({"func": np.log, "inverse_func": np.exp}, "exp"),
        ({"transformer": StandardScaler()}, "identity"),
        ({}, "identity"),
    ],
)
def test_a_transformed_target(settings: dict, link: str) -> None:
    frame = table(6)
    y = np.exp(target(6))
    model = make_pipeline(scaled(), TransformedTargetRegressor(RandomForestRegressor(5, random_state=0), **settings))
    model.fit(frame, y)
    ensemble = read_ensemble(model)
    assert ensemble.link == link and ensemble.library.split()[-1] == "RandomForestRegressor"
    np.testing.assert_allclose(answers(ensemble, frame)[:, 0], model.predict(frame), rtol=1e-12)


# -- the threshold behind a function


finite = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.floats(-1e100, 1e100), min_size=2, max_size=20), finite)
def test_the_last_number_at_most_a_threshold(numbers: list[float], threshold: float) -> None:
    X = np.array(numbers)[:, None] / 4
    scaler = StandardScaler().fit(X)

    def function(x: np.ndarray) -> np.ndarray:
        return scaler.transform(x[:, None])[:, 0]

    last = last_at_most(function, np.array([threshold]))
    if np.isfinite(last[0]):
        assert function(last)[0] <= threshold
        assert function(np.nextafter(last, np.inf))[0] > threshold
    else:
        end = np.copysign(np.finfo(float).max, last)
        assert (function(end)[0] <= threshold) == (last[0] > 0)


@pytest.mark.parametrize("function", [np.cbrt, np.arctan, np.sqrt, np.log1p, lambda x: np.zeros_like(x)])
def test_steps_ends_and_flat_functions(function) -> None:
    threshold = np.array([-np.inf, -1.0, 0.0, 0.25, 3.0, np.inf])
    last = last_at_most(lambda x: np.where(np.isnan(y := function(x)), -np.inf, y), threshold)
    with np.errstate(all="ignore"):
        for x, t in zip(last, threshold, strict=True):
            if np.isfinite(x):
                assert not function(np.array([x])) > t and function(np.array([np.nextafter(x, np.inf)])) > t
    assert (last[1:] >= last[:-1]).all() and last[-1] == np.inf


# -- what is refused


def fitted(*steps, frame: pd.DataFrame | None = None) -> Pipeline:
    frame = table(7)[["plain", "ties", "large"]] if frame is None else frame
    return make_pipeline(*steps).fit(frame, target(7))


TREE = DecisionTreeRegressor(max_depth=3)


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ((PCA(2), TREE), r"step PCA is not known to change columns one by one.*StandardScaler.*jf\.shapley"),
        ((PolynomialFeatures(2), TREE), "step PolynomialFeatures"),
        ((FeatureUnion([("a", StandardScaler())]), TREE), "step FeatureUnion"),
        ((FunctionTransformer(np.sin), TREE), "FunctionTransformer of sin .*log1p"),
        ((KBinsDiscretizer(3, encode="onehot-dense", strategy="uniform"), TREE), "'ordinal'"),
        ((SimpleImputer(missing_values=0.0), TREE), "missing_values=0.0"),
        ((StandardScaler(), KBinsDiscretizer(3, encode="ordinal", strategy="uniform"),
          OneHotEncoder(), TREE), "OneHotEncoder of a column that another step has changed"),
        ((make_column_transformer((OneHotEncoder(), ["large"]), sparse_threshold=1), MaxAbsScaler(), TREE), "sparse"),
        ((make_column_transformer((OneHotEncoder(), ["large"]), sparse_threshold=1), XGBRegressor(n_estimators=2)),
         "zeros of a sparse table"),
        ((make_column_transformer((OrdinalEncoder(), ["large"]), ("passthrough", ["large"])), TREE),
         "'large' both as numbers and as levels"),
        ((ColumnTransformer([("a", "passthrough", ["large"])], transformer_weights={"a": 2.0}), TREE),
         "transformer_weights"),
        ((TransformedTargetRegressor(TREE, func=np.cbrt, inverse_func=lambda y: y**3),), "this transformation"),
    ],
)  # fmt: skip
def test_what_is_refused(steps, message: str) -> None:
    model = fitted(*steps)
    with pytest.raises(ValueError, match=message):
        read_ensemble(model)


def test_encoders_that_know_different_levels() -> None:
    frame = table(7)[["letter"]]
    both = make_column_transformer(
        (OneHotEncoder(), ["letter"]),
        (OrdinalEncoder(categories=[list("hgfedcba")]), ["letter"]),
        sparse_threshold=0,
    )
    with pytest.raises(ValueError, match="two steps know different levels of column 'letter'"):
        read_ensemble(fitted(both, TREE, frame=frame))


def test_levels_that_an_encoder_refuses_are_refused() -> None:
    model = fitted(OneHotEncoder(), TREE, frame=table(7)[["letter"]])
    ensemble = read_ensemble(model)
    with pytest.raises(ValueError, match="column 'letter': the model's encoder refuses the level 'new'"):
        encode_features(ensemble, pd.DataFrame({"letter": ["a", "new"]}))


def test_not_fitted() -> None:
    with pytest.raises(NotFittedError):
        read_ensemble(make_pipeline(StandardScaler(), DecisionTreeRegressor()))


def test_classifiers_behind_sparse_tables_that_count_zeros() -> None:
    frame = table(8)
    y = classes_of(target(8), 2)
    sparse = make_column_transformer((OneHotEncoder(), ["letter", "number"]), sparse_threshold=1)
    model = make_pipeline(sparse, LGBMClassifier(n_estimators=5, min_child_samples=5, n_jobs=1, verbose=-1))
    model.fit(frame, y)
    np.testing.assert_allclose(answers(read_ensemble(model), frame), model.predict_proba(frame), atol=1e-12)
    steps = make_column_transformer((OneHotEncoder(sparse_output=False), ["letter", "number"]))
    dense = make_pipeline(steps, XGBClassifier(n_estimators=5, n_jobs=1)).fit(frame, (y == "yes").astype(int))
    ensemble = read_ensemble(dense)
    np.testing.assert_allclose(answers(ensemble, frame), dense.predict_proba(frame), atol=1e-6)
    assert raw(ensemble, *encode_features(ensemble, frame)).shape == (N, 1)
