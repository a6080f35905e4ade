"""Expected predictions of a row, as the page asks for them, against `ExpectedPredictor` and the models themselves."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor

import jointforest as jf
from jointforest.ensembles.read import read_ensemble, read_model_file
from jointforest.explorer import panels
from jointforest.explorer.shown import ShownJoint

from .tables import JOINTS, forest, frame

NUMBERS = ["x", "spend", "age"]


@cache
def models() -> dict[str, Any]:
    """A number, shares of three classes, log-odds."""
    table = frame()
    X = table[NUMBERS]
    return {
        "number": RandomForestRegressor(5, max_depth=4, random_state=0).fit(X, table["price"].fillna(10.0)),
        "classes": RandomForestClassifier(5, max_depth=4, random_state=0).fit(X, table["size"].astype(str)),
        "log-odds": GradientBoostingClassifier(n_estimators=5, random_state=0).fit(X, table["member"]),
    }


def asked(model: Any, joint: jf.Joint, **body: Any) -> Any:
    """The answer, through JSON."""
    shown = ShownJoint(joint, rows=frame(), trained=read_ensemble(model))
    return json.loads(json.dumps(panels.row(shown, body), allow_nan=False))


def wanted(model: Any, predictor: jf.ExpectedPredictor, row: pd.DataFrame) -> list[float]:
    found = predictor.predict_proba(row) if hasattr(model, "classes_") else predictor.predict(row)
    return np.ravel(found).tolist()


@pytest.mark.parametrize("which", ["number", "classes", "log-odds"])
@pytest.mark.parametrize("name", JOINTS)
@pytest.mark.parametrize("without", [[], ["x"], ["age", "spend", "size"], NUMBERS])
def test_it_is_that_of_expected_predictor(name: str, which: str, without: list[str]) -> None:
    joint, model, i = JOINTS[name](), models()[which], 7
    found = asked(model, joint, row=i, without=without)["prediction"]
    row = frame().iloc[i : i + 1]
    predictor = jf.ExpectedPredictor(model, joint)
    known = row.drop(columns=without)
    assert found["expected"] == pytest.approx(wanted(model, predictor, known), rel=1e-12)
    assert found["error"] == pytest.approx(np.ravel(predictor.standard_error(known)).tolist(), rel=1e-9, abs=1e-15)
    own = model.predict_proba(row[NUMBERS])[0] if which != "number" else model.predict(row[NUMBERS])
    assert found["own"] == pytest.approx(own.tolist(), rel=1e-9)
    assert found["features"] == NUMBERS
    assert found["classes"] == (None if which == "number" else [str(c) for c in model.classes_])


def test_a_row_that_lacks_a_cell_of_the_model_has_no_prediction_of_its_own() -> None:
    found = asked(models()["number"], forest(), cells={"age": "40", "size": "L"})["prediction"]
    row = pd.DataFrame({"age": [40], "size": ["L"]})
    assert found["own"] is None
    assert found["expected"] == pytest.approx(jf.ExpectedPredictor(models()["number"], forest()).predict(row).tolist())


def test_cells_taken_out_count_nowhere() -> None:
    joint, i = forest(), 7
    found = asked(models()["number"], joint, row=i, without=["age", "size"])
    row = frame().iloc[i : i + 1]
    known = row.drop(columns=["age", "size"])
    assert found["log_density"] == pytest.approx(float(joint.log_density(known)[0]))
    cells = {cell["name"]: cell for cell in found["cells"]}
    assert cells["size"]["text"] == row["size"].iloc[0] and not cells["size"]["known"] and cells["x"]["known"]
    plain = {c["name"]: c for c in panels.row(ShownJoint(joint, rows=frame()), {"row": i, "without": ["age"]})["cells"]}
    share = joint.given(known).proba("size")[0]
    own = share[joint.schema["size"].codes[row["size"].iloc[0]]]
    assert np.exp(-cells["size"]["unlikely"]) == pytest.approx(share[share <= own + 1e-12].sum(), rel=1e-6)
    assert any(plain[name]["unlikely"] != cells[name]["unlikely"] for name in plain if name not in ("age", "size"))


def test_without_a_model_there_is_none_and_what_does_not_fit_is_said() -> None:
    assert panels.row(ShownJoint(forest(), rows=frame()), {"row": 1})["prediction"] is None
    with pytest.raises(ValueError, match="without: expected a list"):
        asked(models()["number"], forest(), row=1, without="age")
    with pytest.raises(ValueError, match="agee"):
        asked(models()["number"], forest(), row=1, without=["agee"])
    other = RandomForestRegressor(2).fit(frame()[["age"]].rename(columns={"age": "years"}), frame()["x"])
    with pytest.raises(ValueError, match="'years'"):
        forest().explore(model=other, browser=False)
    with pytest.raises(TypeError, match="not supported"):
        forest().explore(model=object(), browser=False)


def test_another_joint_that_lacks_the_columns_is_not_shown() -> None:
    with forest().explore(model=models()["number"], browser=False) as page:
        with pytest.raises(ValueError, match="'spend'"):
            page.show(forest().select("x", "age"))
        page.show(forest().select("x", "age", "spend"))


# ------------------------------------------------------------------------------------------------------- model files


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Any]]:
    """Files that libraries wrote, and what the models in them predict of the table: P(True), or numbers."""
    catboost, lightgbm, xgboost = map(pytest.importorskip, ("catboost", "lightgbm", "xgboost"))
    folder = tmp_path_factory.mktemp("models")
    X, y, z = frame()[NUMBERS], frame()["member"].astype(int), frame()["x"] + frame()["age"]
    found: dict[str, tuple[Path, Any]] = {}
    boosted = xgboost.XGBClassifier(n_estimators=20, max_depth=3, early_stopping_rounds=2)
    boosted.fit(X[:200], y[:200], eval_set=[(X[200:], y[200:])], verbose=False)
    assert boosted.best_iteration < 17  # which the file knows, and a Booster does not heed
    for name, save in (("x.json", boosted.save_model), ("x.ubj", boosted.save_model)):
        found[name] = folder / name, boosted.predict_proba(X)[:, 1]
        save(folder / name)
    number = xgboost.XGBRegressor(n_estimators=5).fit(X, z)
    number.get_booster().save_model(folder / "b.json")
    found["b.json"] = folder / "b.json", number.predict(X)
    light = lightgbm.LGBMClassifier(n_estimators=5, verbose=-1).fit(X, y)
    light.booster_.save_model(folder / "l.txt")
    found["l.txt"] = folder / "l.txt", light.predict_proba(X)[:, 1]
    cat = catboost.CatBoostClassifier(iterations=5, verbose=0, allow_writing_files=False).fit(X, y)
    for name, form in (("c.cbm", "cbm"), ("c.json", "json")):
        cat.save_model(folder / name, format=form)
        found[name] = folder / name, cat.predict_proba(X)[:, 1]
    return found


@pytest.mark.parametrize("name", ["x.json", "x.ubj", "b.json", "l.txt", "c.cbm", "c.json"])
def test_a_file_is_read_by_its_library(files: dict[str, tuple[Path, Any]], name: str) -> None:
    path, predicted = files[name]
    predictor = jf.ExpectedPredictor(read_model_file(path), forest())
    X = frame()[NUMBERS]
    found = predictor.predict(X) if name == "b.json" else predictor.predict_proba(X)[:, 1]
    assert found == pytest.approx(predicted, rel=1e-5)


@pytest.mark.parametrize(
    ("name", "content", "part"),
    [
        ("m.pkl", b"\x80\x04N.", "a pickle can run any program"),
        ("m.joblib", b"\x80\x04N.", "a pickle can run any program"),
        ("m.skops", b"", "a skops file is not read"),
        ("m.json", b"{}", "no model file that is known"),
        ("m.json", b"[1", "no JSON"),
        ("m.json", b"[" * 100_000, "no JSON"),
        ("m.json", b'{"learner": {}, "version": [3, 1, 0]}', "xgboost cannot read it"),
        ("m.txt", b"age,x\n1,2", "no model file that is known"),
        ("m.ubj", b"x" * 100, "xgboost cannot read it"),
        ("m.cbm", b"x" * 100, "catboost cannot read it"),
        ("m", b"x", "expected XGBoost's .json and .ubj, LightGBM's .txt, CatBoost's .cbm and .json"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, name: str, content: bytes, part: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=part):
        read_model_file(tmp_path / name)


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(FileNotFoundError):
        read_model_file("nothing.ubj")
