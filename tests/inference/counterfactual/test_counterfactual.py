"""Counterfactuals against enumeration of every row of small joints, and what is refused."""

from __future__ import annotations

import itertools
import math
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.api.joint import Joint
from jointforest.data.schema import Column, Schema
from jointforest.inference import counterfactual

from ...oracle import counterfactual as oracle
from ...random_cases.table_part import TableDistribution

SCHEMA = Schema(
    (
        Column("a", "categorical", "str", levels=("x", "y", "z"), n_observed=9),
        Column("size", "integer", "int64", step=1.0, minimum=2.0, maximum=6.0, n_observed=9),
        Column("grade", "ordered", "str", levels=("low", "mid", "high"), n_observed=9),
        Column("flag", "boolean", "bool", levels=(False, True), n_observed=9),
        Column("y", "categorical", "str", levels=("no", "maybe", "yes"), n_observed=9),
    ),
    "pandas",
)
VALUES = [(0.0, 1.0, 2.0), (2.0, 3.0, 4.0, 5.0, 6.0), (0.0, 1.0, 2.0), (0.0, 1.0), (0.0, 1.0, 2.0)]
RANGES = [0, 4, 2, 0, 0]
SEEDS = range(12)


@cache
def toy(seed: int) -> tuple[Joint, dict[tuple[float, ...], float], tuple[float, ...]]:
    """A joint of few possible rows, their weights, and one of them."""
    rng = np.random.default_rng(seed)
    rows = np.unique(np.column_stack([rng.choice(v, 60) for v in VALUES]), axis=0)
    weight = rng.dirichlet(np.full(len(rows), 0.5))
    weights = dict(zip(map(tuple, rows.tolist()), weight.tolist(), strict=True))
    return Joint(TableDistribution(SCHEMA, rows, weight)), weights, tuple(rows[rng.integers(len(rows))].tolist())


def as_cells(row: tuple[float | None, ...]) -> dict[str, Any]:
    return {c.name: None if x is None else c.from_number(x) for c, x in zip(SCHEMA.columns, row, strict=True)}


def as_numbers(rows: pd.DataFrame, missing: frozenset[int] = frozenset()) -> list[tuple[float | None, ...]]:
    return [
        tuple(None if j in missing else SCHEMA.columns[j].to_number(x) for j, x in enumerate(row))
        for row in rows.itertuples(index=False)
    ]


def with_missing(row: tuple[float, ...], missing: set[int]) -> tuple[float | None, ...]:
    return tuple(None if j in missing else x for j, x in enumerate(row))


@pytest.mark.parametrize("unlikely", [0.0, 30.0])
@pytest.mark.parametrize("missing", [set(), {2}])
@pytest.mark.parametrize("seed", SEEDS)
def test_rows_are_valid_possible_and_the_first_has_fewest_changes(
    seed: int, missing: set[int], unlikely: float
) -> None:
    joint, weights, whole = toy(seed)
    row = with_missing(whole, {*missing, 4})
    predicted = int(joint.predict_proba(pd.DataFrame([as_cells(row)]).drop(columns="y"), "y").argmax())
    wanted = float((predicted + 1) % 3)
    found = joint.counterfactual(
        as_cells(row), "y", SCHEMA.columns[4].levels[int(wanted)], fixed=["flag"], unlikely=unlikely, random_state=0
    )

    def log_density(x: tuple[float | None, ...]) -> float:
        p = oracle.mass(weights, oracle.replaced(x, 4, None))
        return math.log(p) if p > 0.0 else -math.inf

    def will_do(x: tuple[float | None, ...]) -> bool:
        dense = log_density(x) > -math.inf and log_density(x) >= found.log_floor - 1e-9
        return dense and oracle.is_predicted(weights, x, 4, [wanted], VALUES[4])

    fewest = oracle.fewest_changes(row, {0, 1, 2}, VALUES, will_do)
    assert (fewest is None) == (len(found) == 0)
    assert unlikely > 0.0 or found.log_floor == -math.inf
    rows = as_numbers(found.rows, frozenset(missing))
    assert len(set(rows)) == len(rows)
    for k, x in enumerate(rows):
        assert will_do(x) and x[4] == wanted and x[3] == row[3]
        others = oracle.replaced(x, 4, None)
        assert found.log_density[k] == pytest.approx(log_density(x), abs=1e-9)
        assert found.validity[k] == pytest.approx(oracle.share(weights, x, 4, [wanted]), abs=1e-9)
        assert found.distance[k] == pytest.approx(oracle.gower(row, others, RANGES), abs=1e-9)
        changes = {SCHEMA.names[j] for j in range(4) if row[j] is not None and row[j] != x[j]}
        assert set(found.changed[k]) == changes
    if fewest is not None:
        assert len(found.changed[0]) == fewest and found.is_fewest
        assert [len(c) for c in found.changed] == sorted(len(c) for c in found.changed)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_interval_of_a_number_is_more_probable_than_not(seed: int) -> None:
    joint, weights, whole = toy(seed)
    row = with_missing(whole, {1})
    wanted = [v for v in VALUES[1] if v >= 5.0]
    if oracle.is_predicted(weights, row, 1, wanted, VALUES[1]):
        with pytest.raises(ValueError, match="as wanted already"):
            joint.counterfactual(as_cells(row), "size", jf.between(5, None))
        return
    found = joint.counterfactual(as_cells(row), "size", jf.between(5, None), unlikely=0, random_state=0)
    fewest = oracle.fewest_changes(
        row, {0, 2, 3, 4}, VALUES, lambda x: oracle.is_predicted(weights, x, 1, wanted, VALUES[1])
    )
    assert (fewest or 0) == (len(found.changed[0]) if len(found) else 0)
    for x, share in zip(as_numbers(found.rows), found.validity, strict=True):
        assert x[1] is not None and x[1] >= 5.0 and oracle.mass(weights, x) > 0.0
        assert share == pytest.approx(oracle.share(weights, x, 1, wanted), abs=1e-9) and share > 0.5


@pytest.mark.parametrize("seed", SEEDS)
def test_a_function_decides(seed: int) -> None:
    joint, weights, row = toy(seed)

    def predict(frame: pd.DataFrame) -> np.ndarray:
        return (
            10.0 * frame["size"] + 7.0 * (frame["a"] == "y") + 5.0 * (frame["grade"] == "high") - 4.0 * frame["flag"]
        ).to_numpy(np.float64)

    def number(x: tuple[float | None, ...]) -> float:
        return 10.0 * x[1] + 7.0 * (x[0] == 1) + 5.0 * (x[2] == 2) - 4.0 * x[3]  # type: ignore[operator]

    low = number(row) + 9.0
    found = joint.counterfactual(
        as_cells(row), predict, jf.between(low, low + 20, closed="left"), fixed=["y"], unlikely=0, random_state=0
    )
    fewest = oracle.fewest_changes(
        row, {0, 1, 2, 3}, VALUES, lambda x: low <= number(x) < low + 20 and oracle.mass(weights, x) > 0.0
    )
    assert (fewest or 0) == (len(found.changed[0]) if len(found) else 0)
    for x, shown in zip(as_numbers(found.rows), found.outcome, strict=True):
        assert x[4] == row[4] and oracle.mass(weights, x) > 0.0
        assert shown == number(x) and low <= shown < low + 20
    assert (found.validity == 1.0).all()


def test_rows_that_change_other_columns_come_before_more_rows_of_one_set() -> None:
    """A larger size will do, all of which are nearer than the other level that will."""
    rows = np.array(list(itertools.product(*VALUES)))
    joint = Joint(TableDistribution(SCHEMA, rows, np.full(len(rows), 1 / len(rows))))

    def predict(frame: pd.DataFrame) -> np.ndarray:
        return ((frame["size"] >= 3) | (frame["a"] == "y")).to_numpy(np.float64)

    row = as_cells((0.0, 2.0, 0.0, 0.0, 0.0))
    how = {"unlikely": 0, "random_state": 0, "fixed": ["grade", "flag", "y"]}
    assert [set(c) for c in joint.counterfactual(row, predict, 1.0, n=2, **how).changed] == [{"size"}, {"a"}]


# ------------------------------------------------------------------------------------------------ tables of many values

PENGUINS = jf.datasets.load_penguins()
WHOLE = PENGUINS.dropna().reset_index(drop=True)


@cache
def learned(name: str) -> Joint:
    if name == "forest":
        return jf.AdversarialForest(n_estimators=5, random_state=0).fit(PENGUINS).joint_
    return jf.HiddenTreeForest(n_states=8, random_state=0).fit(PENGUINS).joint_


@pytest.mark.parametrize("name", ["forest", "hidden"])
def test_rows_of_a_learned_joint_keep_their_promises(name: str) -> None:
    joint = learned(name)
    for k, fixed in ((0, ["sex"]), (3, ["sex"]), (200, [])):
        row = PENGUINS.iloc[[k]]
        wanted = "Gentoo" if row["species"].iloc[0] != "Gentoo" else "Chinstrap"
        found = joint.counterfactual(row, "species", wanted, fixed=fixed, n=4, random_state=k)
        assert 1 <= len(found) <= 4 and (found.rows["species"] == wanted).all()
        others = found.rows.drop(columns="species")
        assert (joint.predict(others, "species") == wanted).all()
        assert (
            np.allclose(joint.log_density(others), found.log_density) and (found.log_density >= found.log_floor).all()
        )
        assert found.rows.dtypes.equals(PENGUINS.dtypes)
        for i, changes in enumerate(found.changed):
            for column in others.columns:
                before, after = row[column].iloc[0], found.rows[column].iloc[i]
                if column in changes:
                    assert changes[column] == (before, after) and column not in fixed and before != after
                else:
                    assert before == after or (pd.isna(before) and pd.isna(after))
                if PENGUINS[column].dtype.kind == "f":
                    assert pd.isna(after) or PENGUINS[column].min() <= after <= PENGUINS[column].max()
            assert changes


def test_draws_do_where_rows_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counterfactual, "_MOST_ROWS", 0)
    monkeypatch.setattr(counterfactual, "_MOST_SETS", 5)
    monkeypatch.setattr(counterfactual, "LARGEST_PRODUCT", 0)
    joint = learned("hidden")
    found = joint.counterfactual(PENGUINS.iloc[[0]], "species", "Gentoo", fixed=["sex"], random_state=0)
    assert len(found) >= 1 and not found.is_fewest
    assert (joint.predict(found.rows.drop(columns="species"), "species") == "Gentoo").all()


def test_constant_columns_dates_atoms_and_numbers_beyond_the_range() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta((x * 20 + 60).astype(int), "D")
    frame = pd.DataFrame({"x": x, "day": day, "one": 1, "m": np.where(x < 0, 0.0, x), "flag": x > 0})
    joint = jf.HiddenTreeForest(n_states=8, random_state=0).fit(frame).joint_
    row = frame.iloc[[0]].assign(x=-50.0, flag=False, m=0.0, day=pd.Timestamp("2024-02-01"))
    found = joint.counterfactual(row, "flag", True, n=3, random_state=0)
    assert len(found) >= 1 and joint.predict(found.rows.drop(columns="flag"), "flag").all()
    for k, changes in enumerate(found.changed):
        assert "one" not in changes and ("x" in changes or found.rows["x"].iloc[k] == -50.0)
        assert found.rows["day"].between(day.min(), day.max()).all()
    with pytest.raises(ValueError, match=r"column 'one'.*probability 0"):
        jf.AdversarialForest(n_estimators=2, epsilon=0, random_state=0).fit(frame).joint_.counterfactual(row, "one", 2)


def test_the_same_seed_gives_the_same_rows_whatever_n_jobs() -> None:
    one, two = (
        learned("forest").counterfactual(PENGUINS.iloc[[0]], "species", "Gentoo", random_state=3, n_jobs=n)
        for n in (1, 2)
    )
    pd.testing.assert_frame_equal(one.rows, two.rows)
    assert one.log_density.tolist() == two.log_density.tolist()


def test_no_change_of_a_row_is_needless() -> None:
    joint = learned("hidden")
    row = WHOLE.iloc[[0]]
    found = joint.counterfactual(row, "species", "Gentoo", n=6, random_state=0)
    for i, changes in enumerate(found.changed):
        for column in changes:
            back = found.rows.iloc[[i]].drop(columns="species").assign(**{column: row[column].to_numpy()})
            unlike = joint.log_density(back)[0] < found.log_floor
            assert unlike or joint.predict(back, "species")[0] != "Gentoo"


@pytest.mark.parametrize("kind", ["classifier", "expected", "regressor"])
def test_trained_models(kind: str) -> None:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    names = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm"]
    joint, row = learned("hidden"), WHOLE.iloc[[0]].drop(columns=["species"])
    if kind == "regressor":
        model: Any = RandomForestRegressor(10, random_state=0).fit(WHOLE[names], WHOLE["body_mass_g"])
        row, wanted = row.drop(columns="body_mass_g"), jf.between(4500, None)
    else:
        model, wanted = RandomForestClassifier(10, random_state=0).fit(WHOLE[names], WHOLE["species"]), "Gentoo"
    if kind == "expected":
        model, row = jf.ExpectedPredictor(model, joint), row.assign(bill_depth_mm=np.nan)
    found = joint.counterfactual(row, model, wanted, fixed=["bill_length_mm"], unlikely=2, random_state=0)
    assert len(found) >= 1
    shown = model.predict(found.rows if kind == "expected" else found.rows[names])
    assert (shown == found.outcome).all()
    if kind == "regressor":
        assert (shown >= 4500).all() and (found.validity == 1.0).all()
    else:
        assert (shown == "Gentoo").all() and (found.validity > 1 / 3).all()
    for changes in found.changed:
        assert set(changes) & {"bill_depth_mm", "flipper_length_mm"} and "bill_length_mm" not in changes
    assert kind != "expected" or found.rows["bill_depth_mm"].isna().all()


@pytest.mark.parametrize("frame", ["polars", "pyarrow", "numpy"])
def test_other_frames(frame: str) -> None:
    if frame == "polars":
        polars = pytest.importorskip("polars")
        table: Any = polars.from_pandas(WHOLE)
        row = table[:1]
    elif frame == "pyarrow":
        table = __import__("pyarrow").Table.from_pandas(WHOLE, preserve_index=False)
        row = table.slice(0, 1)
    else:
        table = WHOLE.to_numpy(dtype=object)
        row = table[:1]
    joint = jf.JointTree(random_state=0).fit(table).joint_
    target = "species" if frame != "numpy" else joint.columns[0]
    found = joint.counterfactual(row, target, "Gentoo", n=2, random_state=0)
    assert type(found.rows) is type(table) and len(found.rows) == len(found) >= 1


def test_what_is_shown() -> None:
    found = learned("hidden").counterfactual(WHOLE.iloc[0], "species", "Gentoo", fixed=["sex"], n=2, random_state=0)
    assert "species = 'Gentoo'" in str(found) and "->" in repr(found) and len(str(found).splitlines()) == 2 + len(found)
    assert "<table" in found._repr_html_() and "&rarr;" in found._repr_html_()


def test_none_found_is_said() -> None:
    joint = learned("forest")
    row = {"species": "Adelie", "sex": "MALE", "body_mass_g": 3700.0, "island": "Torgersen"}
    found = joint.counterfactual(row, lambda X: np.zeros(len(X)), 1, random_state=0)
    assert len(found) == 0 and len(found.rows) == 0 and "No plausible row" in str(found) and not found.is_fewest
    assert "<td" not in found._repr_html_()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_or_target": "spices"}, "no column 'spices'.*species"),
        ({"wanted": "Emperor"}, "'Emperor' is not one of its 3 levels"),
        ({"wanted": None}, "wanted is None"),
        ({"wanted": "Adelie"}, "as wanted already"),
        ({"fixed": ["wings"]}, "no column 'wings'"),
        ({"fixed": ["species"]}, "is the target"),
        ({"fixed": [c for c in WHOLE if c != "species"]}, "no cell may change"),
        ({"row": WHOLE.iloc[:2]}, "expected one row, got 2"),
        ({"row": WHOLE.iloc[[0]].assign(island="Mars")}, "'island' has a level never seen"),
        ({"row": {"island": "Mars"}}, "'Mars' is not one of"),
        ({"row": {"wings": 2}}, "no column 'wings'"),
        ({"row": {}}, "no cell may change"),
        ({"model_or_target": "body_mass_g", "wanted": (4000, 5000)}, r"pair \(4000, 5000\).*did you mean between"),
        ({"model_or_target": lambda X: np.zeros(len(X)), "wanted": (0.5, 1)}, r"pair \(0.5, 1\) may be an interval"),
        ({"model_or_target": lambda X: np.full(len(X), np.nan), "wanted": 1.0}, "predicts NaN of 1 of 1 rows"),
        ({"n": 0}, "n must be|n:"),
        ({"unlikely": 100}, "unlikely"),
        ({"wanted": jf.likely({"Gentoo": 1.0})}, "event"),
        ({"model_or_target": "body_mass_g", "wanted": jf.between(4000.5, 4000.6)}, "probability 0|no cell|empty|whole"),
    ],
)
def test_what_is_refused(changes: dict[str, Any], message: str) -> None:
    asked = {"row": WHOLE.iloc[[0]], "model_or_target": "species", "wanted": "Gentoo"} | changes
    with pytest.raises(ValueError, match=message):
        learned("hidden").counterfactual(**asked)


def test_an_outcome_impossible_given_the_fixed_cells() -> None:
    for joint, weights, row in map(toy, range(40)):
        alone = [k for k in range(3) if not any((*x[:3], x[4]) == (*row[:3], float(k)) for x in weights)]
        if alone:
            wanted = SCHEMA.columns[4].levels[alone[0]]
            with pytest.raises(ValueError, match="given the fixed cells"):
                joint.counterfactual(as_cells(row), "y", wanted, fixed=["a", "size", "grade"])
            return
    raise AssertionError("no such table")


def test_models_that_do_not_fit_are_refused() -> None:
    from sklearn.linear_model import LogisticRegression

    joint, row = learned("hidden"), WHOLE.iloc[[0]]
    model = LogisticRegression(max_iter=1000).fit(WHOLE[["bill_length_mm"]], WHOLE["species"])
    with pytest.raises(ValueError, match=r"'gentoo' is none of the model's classes.*Gentoo"):
        joint.counterfactual(row, model, "gentoo")
    with pytest.raises(ValueError, match="predicts classes"):
        joint.counterfactual(row, model, jf.between(0, 1))
    with pytest.raises(ValueError, match="no column 'beak'"):
        beak = WHOLE[["bill_length_mm"]].set_axis(["beak"], axis=1)
        joint.counterfactual(row, LogisticRegression().fit(beak, WHOLE["sex"]), "MALE")
    with pytest.raises(ValueError, match="one prediction a row"):
        joint.counterfactual(row, lambda X: np.zeros((len(X), 2)), 1)
    with pytest.raises(ValueError, match="is an interval"):
        joint.counterfactual(row, lambda X: np.full(len(X), "a"), jf.between(0, 1))
    with pytest.raises(TypeError, match="name of a column"):
        joint.counterfactual(row, 3.5, 1)
    with pytest.raises(TypeError, match="the class LogisticRegression itself; give a fitted model"):
        joint.counterfactual(row, LogisticRegression, 1)
    with pytest.raises(TypeError, match="class, a list of classes"):
        joint.counterfactual(row, model, jf.Not("Gentoo"))
    with pytest.raises(TypeError, match="a list of columns"):
        joint.counterfactual(row, model, "Gentoo", fixed="sex")
