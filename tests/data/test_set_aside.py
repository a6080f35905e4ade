"""Identifiers, free text and ignored columns: they take no part in the model, and nothing of them is lost."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import jointforest as jf
from jointforest.data.frames import encode
from jointforest.data.infer_schema import infer_schema
from jointforest.data.schema import SetAside
from jointforest.data.schema_check import schema_from_dict

N = 200
RNG = np.random.default_rng(0)


def table() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "customer": [f"C-{k:05d}" for k in range(N)],
            "row_id": np.arange(5, N + 5),
            "key": ["".join(RNG.choice(list("0123456789abcdef"), 32)) for _ in range(N)],
            "email": [f"{'ab' * (k % 3)}{k}@x.org" for k in range(N)],
            "remark": [f"the box number {k} came too late" for k in range(N)],
            "x": RNG.normal(size=N),
            "y": RNG.choice(["a", "b"], N),
        }
    )


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return table()


@pytest.fixture(scope="module")
def joint(frame: pd.DataFrame) -> jf.Joint:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return jf.JointTree(random_state=0).fit(frame).joint_


def test_they_take_no_part(joint: jf.Joint, frame: pd.DataFrame) -> None:
    assert joint.columns == ("x", "y")
    reasons = {column.name: column.aside.reason for _, column in joint.schema.unknown if column.aside}
    assert reasons == dict.fromkeys(["customer", "row_id", "key", "email"], "identifier") | {"remark": "free text"}
    alone = jf.JointTree(random_state=0).fit(frame[["x", "y"]]).joint_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(joint.log_density(frame), alone.log_density(frame[["x", "y"]]))


def test_drawn_rows_have_new_identifiers(joint: jf.Joint, frame: pd.DataFrame) -> None:
    drawn = joint.sample(300, random_state=0)
    assert list(drawn.columns) == list(frame.columns)
    assert drawn["customer"].tolist()[:2] == ["C-00200", "C-00201"] and drawn["row_id"].tolist()[:2] == [205, 206]
    assert drawn["key"].str.fullmatch("[0-9a-f]{32}").all() and drawn["remark"].isna().all()
    for name in ("customer", "row_id", "key", "email"):
        assert drawn[name].is_unique and not set(drawn[name]) & set(frame[name])
    assert drawn.equals(joint.sample(300, random_state=0))


def test_batches_of_draws_have_identifiers_of_their_own(joint: jf.Joint) -> None:
    drawn = pd.concat(joint.given().sample_batches(300_000, random_state=0))
    assert drawn["row_id"].is_unique and drawn["key"].is_unique


def test_imputation_keeps_them(joint: jf.Joint, frame: pd.DataFrame) -> None:
    holes = frame.copy()
    holes.loc[3, "x"] = np.nan
    holes.loc[4, "customer"] = None
    filled = joint.impute(holes)
    kept = ["customer", "row_id", "key", "email", "remark"]
    assert (
        filled[kept]
        .astype(object)
        .where(filled[kept].notna(), None)
        .equals(holes[kept].astype(object).where(holes[kept].notna(), None))
    )
    assert filled["x"].notna().all()


@pytest.mark.parametrize("ask", [lambda j: j.given(customer="C-00001"), lambda j: j.query("P(customer = 'C-00001')")])
def test_evidence_on_them_says_why_not(joint: jf.Joint, ask: Any) -> None:
    with pytest.raises(ValueError, match=r"'customer' names the rows \(200 distinct values\) and takes no part"):
        ask(joint)


def test_files_keep_them_and_refuse_damage(joint: jf.Joint, tmp_path: Any) -> None:
    joint.save(tmp_path / "a.joint")
    assert jf.load(tmp_path / "a.joint").schema == joint.schema
    for field, value in [("reason", "x"), ("width", -1), ("first", 0.5), ("mask", "q"), ("prefix", 3)]:
        data = joint.schema.to_dict()
        data["unknown"][0]["aside"][field] = value
        with pytest.raises(ValueError, match="aside"):
            schema_from_dict(data)


def test_kinds_decide(frame: pd.DataFrame) -> None:
    with pytest.warns(UserWarning, match="different texts"):
        learned = jf.JointTree(random_state=0, kinds={"customer": "categorical", "y": "identifier", "x": "ignored",
                                                      "email": "ignored"}).fit(frame).joint_  # fmt: skip
    assert learned.columns == ("customer",)
    assert learned.reading.columns[5].notes == ("set aside, because it was left out on request",)
    with pytest.raises(ValueError, match="an identifier is text or a whole number"):
        jf.JointTree(kinds={"d": "identifier"}).fit(pd.DataFrame({"d": pd.to_datetime(["2022-01-01"]), "x": [1.0]}))


def test_only_identifiers_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"'customer' names the rows .* there is no other column"):
        jf.JointTree().fit(table()[["customer"]])


def test_too_many_levels_are_set_aside() -> None:
    n = 25_000
    names = [f"{'xyz' * (k % 2)}{k % 11_000}" for k in range(n)]
    frame = pd.DataFrame({"name": names, "x": RNG.normal(size=n)})
    joint = jf.JointTree(random_state=0).fit(frame).joint_
    assert joint.columns == ("x",) and "levels, too many to learn" in joint.reading.notice


def test_keys_are_known_in_tables_of_many_rows() -> None:
    n = 150_000
    frame = pd.DataFrame({"id": np.arange(n), "part_id": np.arange(n) // 2, "x": np.arange(n) % 5})
    schema = infer_schema(frame)
    assert [column.name for _, column in schema.unknown] == ["id"] and schema.names == ("part_id", "x")
    assert schema.unknown[0][1].aside == SetAside("identifier", n, first=n)


def test_a_counter_without_a_name_is_a_key() -> None:
    frame = pd.DataFrame({"": range(200), "x": RNG.normal(size=200)})
    assert [column.name for _, column in infer_schema(frame).unknown] == [""]
    assert infer_schema(frame.rename(columns={"": "n"})).unknown == ()


def test_the_reading_names_what_looks_wrong() -> None:
    frame = pd.DataFrame({"region": ["South", "south", "North"] * 10, "one": [1] * 30})
    reading = jf.JointTree(random_state=0).fit(frame).joint_.reading
    assert "'region': levels that differ by case or spaces only: 'South', 'south'" in reading.notice
    assert "'one': every known cell has the same value" in reading.notice
    assert "levels that differ" in reading._repr_html_() and "note: every known cell" in str(reading)


def test_a_model_that_takes_such_a_column_is_refused_with_the_reason(joint: jf.Joint, frame: pd.DataFrame) -> None:
    from sklearn.tree import DecisionTreeRegressor

    features = frame[["row_id", "x"]]
    model = DecisionTreeRegressor(max_depth=2, random_state=0).fit(features, frame["row_id"])
    with pytest.raises(ValueError, match=r"takes column 'row_id', which names the rows .* takes no part in the joint"):
        jf.ExpectedPredictor(model, joint).predict(features)
    without = DecisionTreeRegressor(max_depth=2, random_state=0).fit(features.assign(row_id=0), frame["x"])
    known = jf.ExpectedPredictor(without, joint).predict(features)  # it never splits the column
    np.testing.assert_allclose(known, without.predict(features.assign(row_id=0)))


def _with_an_empty_column(seed: int) -> tuple[pd.DataFrame, Any]:
    """A table with a column that is all missing, and a model that has this column among its features."""
    from sklearn.tree import DecisionTreeRegressor

    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": rng.normal(size=300), "empty": np.nan, "b": rng.normal(size=300)})
    frame["y"] = frame["a"] + 2 * frame["b"]
    features = frame[["a", "empty", "b"]].fillna({"empty": 0.0})
    return frame, DecisionTreeRegressor(max_depth=4, random_state=0).fit(features, frame["y"])


@pytest.mark.filterwarnings("ignore:column")
def test_models_with_a_column_of_which_nothing_is_known_are_answered() -> None:
    frame, model = _with_an_empty_column(0)
    joint = jf.JointTree(random_state=0).fit(frame).joint_
    without = jf.JointTree(random_state=0).fit(frame.drop(columns="empty")).joint_
    rows = frame[["a", "empty", "b"]].head(20).copy()
    rows.loc[::2, "b"] = np.nan
    expected = jf.ExpectedPredictor(model, joint).predict(rows)
    np.testing.assert_allclose(expected[1::2], model.predict(rows.iloc[1::2].fillna(0.0)))
    # the same model and joint without the column, for which nothing changes
    b_alone = [without.given(a=float(rows["a"][i])).sample(4000, i) for i in (0, 2)]
    for i, drawn in zip((0, 2), b_alone, strict=True):
        X = drawn[["a", "b"]].assign(empty=0.0)[["a", "empty", "b"]]
        assert abs(model.predict(X).mean() - expected[i]) < 0.15
    values = jf.ExpectedPredictor(model, joint).shap(rows)
    assert values.feature_names == ("a", "b")
    np.testing.assert_allclose(values.values.sum(axis=1) + values.base_values, expected, atol=1e-9)
    wanted = jf.between(float(model.predict(rows.head(1).fillna(frame["b"][0]))[0]) + 0.5, None)
    found = joint.counterfactual(frame.head(1), lambda X: model.predict(X.fillna(0.0)[["a", "empty", "b"]]), wanted)
    named = joint.counterfactual(frame.head(1), _Filling(model), wanted)
    assert len(found.rows) and len(named.rows)


class _Filling:
    """A model with names of features, which has an answer for missing cells."""

    def __init__(self, model: Any) -> None:
        self._model, self.feature_names_in_ = model, model.feature_names_in_

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        return np.asarray(self._model.predict(X.fillna(0.0)))


@pytest.mark.filterwarnings("ignore:column.*all cells are missing")
def test_features_by_position_go_by_the_places_of_the_table() -> None:
    from sklearn.tree import DecisionTreeRegressor

    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    wide = np.insert(np.delete(X, 1, axis=1), 1, 0.0, axis=1)
    model = DecisionTreeRegressor(max_depth=3, random_state=0).fit(wide[:, :3], X[:, 2] + X[:, 3])
    table = wide.copy()
    table[:, 1] = np.nan
    joint = jf.JointTree(random_state=0).fit(table).joint_
    predictor = jf.ExpectedPredictor(model, joint)
    np.testing.assert_allclose(predictor.predict(table), model.predict(wide[:, :3]))
    np.testing.assert_allclose(predictor.predict(table[:, :3]), model.predict(wide[:, :3]))


@pytest.mark.filterwarnings("ignore:column.*all cells are missing, so")
def test_known_cells_of_an_empty_column_are_said_to_be_unused() -> None:
    frame, _ = _with_an_empty_column(1)
    joint = jf.JointTree(random_state=0).fit(frame).joint_
    plain = joint.log_density(frame)
    with pytest.warns(UserWarning, match="all cells were missing at learning, so that these say nothing: 'empty'"):
        np.testing.assert_array_equal(joint.log_density(frame.assign(empty="x")), plain)


@pytest.mark.parametrize("library", ["pandas", "pyarrow", "numbers"])
def test_columns_of_frames_with_the_same_name_are_numbered(library: str) -> None:
    n = 120
    columns = [RNG.normal(size=n), np.array(["u", "v"] * (n // 2)), np.arange(n) % 7, np.arange(n) % 5]
    names: list[Any] = [0, 1, 0, 0] if library == "numbers" else ["x", "c", "x", "x"]
    if library == "pyarrow":
        frame: Any = pa.Table.from_arrays([pa.array(column) for column in columns], names)
    else:
        frame = pd.concat([pd.Series(column) for column in columns], axis=1).set_axis(names, axis=1)
    expected = [0, 1, "0_2", "0_3"] if library == "numbers" else ["x", "c", "x_2", "x_3"]
    with pytest.warns(UserWarning, match="same name are numbered: .* is now .*_2', .* is now .*_3'"):
        joint = jf.JointTree(random_state=0).fit(frame).joint_
    assert list(joint.columns) == expected
    with pytest.warns(UserWarning, match="numbered"):
        X = encode(joint.schema, frame)[0]
    np.testing.assert_array_equal(X[:, 2], columns[2])
    np.testing.assert_array_equal(X[:, 3], columns[3])
    if library == "pyarrow":
        holes: Any = frame.set_column(3, "x", pa.array([None, *columns[3][1:].tolist()]))
    else:
        holes = frame.copy()
        holes.isetitem(3, np.where(np.arange(n) > 0, columns[3], np.nan))
    filled = joint.impute(holes)
    filled = filled.to_pandas() if library == "pyarrow" else filled
    assert list(filled.columns) == expected
    np.testing.assert_array_equal(filled[expected[3]].iloc[1:], columns[3][1:])


def test_estimators_number_columns_with_the_same_name() -> None:
    n = 80
    frame = pd.DataFrame(RNG.normal(size=(n, 3))).set_axis(["x", "y", "x"], axis=1)
    holes = frame.copy()
    holes.isetitem(2, np.where(np.arange(n) > 3, frame.iloc[:, 2], np.nan))
    label = np.where(frame.iloc[:, 2] > 0, "high", "low")
    with pytest.warns(UserWarning, match="numbered"):
        imputer = jf.JointImputer(jf.JointTree(random_state=0)).fit(frame)
        filled = imputer.transform(holes)
        scores = jf.ForestOutlierDetector(random_state=0).fit(frame).score_samples(frame)
        classifier = jf.GenerativeForestClassifier(5, random_state=0).fit(frame, label)
        right = (classifier.predict(frame) == label).mean()
    assert list(filled.columns) == ["x", "y", "x_2"] and not filled.isna().any(axis=None)
    assert len(scores) == n and right > 0.9


@pytest.mark.parametrize(
    ("name", "is_counter"),
    [
        ("Kunden-Nr", True),
        ("Order No.", True),
        ("invoice_number", True),
        (" id", True),
        ("amino", False),
        ("year", False),
    ],
)
def test_names_of_counters(name: str, is_counter: bool) -> None:
    frame = pd.DataFrame({name: range(1000, 1200), "x": [k % 7 for k in range(200)]})
    assert bool(infer_schema(frame).unknown) == is_counter
