"""Checks of tables: posteriors beside an enumeration of all truths, errors that are found, clean tables, bad input."""

from __future__ import annotations

import warnings
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import jointforest as jf
from jointforest.inference.check import result
from jointforest.inference.check.check import vote
from jointforest.inference.check.columns import FACTORS
from jointforest.inference.check.partners import Counts
from jointforest.inference.check.relations import _of_random_values
from jointforest.inference.check.result import RestTree, of_joint
from jointforest.inference.check.swaps import _UNLIKELY, _p_swapped, _rows_of_same
from jointforest.inference.check.texts import Slips

from ...oracle.errors import broken, edits, expected_beyond, p_random, swapped, truths, wrong_by_rule

LEARNER = {"rules": "off", "random_state": 0}


def small(n: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    kind = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    color = np.where(rng.random(n) < 0.8, np.where(kind == "a", "red", "blue"), "green")
    size = np.where(kind == "a", 1, 3) + rng.integers(0, 3, n)
    return pd.DataFrame({"kind": kind, "color": color, "size": size})


def cities(n: int = 600) -> pd.DataFrame:
    """Each zip has one city and one state, and sales are independent of all."""
    rng = np.random.default_rng(1)
    names = ["Springfield", "Riverside", "Franklin", "Greenville", "Bristol", "Clinton", "Fairview", "Salem"]
    k = rng.integers(0, 24, n)
    return pd.DataFrame(
        {
            "zip": [f"{10_000 + 137 * i}" for i in k],
            "city": [names[i % 8] for i in k],
            "state": [["north", "south", "west"][i % 3] for i in k],
            "sales": rng.integers(200, 900, n).astype(float),
        }
    )


@pytest.fixture(scope="module")
def clean() -> pd.DataFrame:
    return cities()


@pytest.fixture(scope="module")
def dirty(clean: pd.DataFrame) -> pd.DataFrame:
    out = clean.copy()
    out.loc[3, "city"] = out.loc[3, "city"][:-2] + "xx"
    out.loc[50, "city"] = next(c for c in clean["city"].unique() if c != clean.loc[50, "city"])
    out.loc[99, "sales"] = out.loc[99, "sales"] * 1000
    out.loc[120, "state"] = ""
    return out


@pytest.fixture(scope="module")
def joint(dirty: pd.DataFrame) -> jf.Joint:
    return jf.HiddenTreeForest(n_states=16, **LEARNER).fit(dirty).joint_


def cell(cells: Any, row: int, column: str) -> Any:
    return cells[(cells["row"] == row) & (cells["column"] == column)].iloc[0]


@pytest.mark.parametrize("n_estimators", [1, 2])
def test_posteriors_of_all_cells_are_those_of_an_enumeration(n_estimators: int) -> None:
    joint = jf.HiddenTreeForest(n_states=4, n_estimators=n_estimators, **LEARNER).fit(small()).joint_
    values: list[list[Any]] = [["a", "b", "c"], ["blue", "green", "red"], list(range(-2, 10))]
    every = pd.DataFrame(list(product(*values)), columns=["kind", "color", "size"])
    p = np.exp(joint.log_density(every)).reshape(3, 3, 12)
    tree = of_joint(joint.distribution)
    assert isinstance(tree, RestTree)
    coded = [tree.coder(j)(np.array(of if j == 2 else range(3), float)) for j, of in enumerate(values)]
    rng = np.random.default_rng(3)
    errors = [rng.random((5, len(of))) ** 4 for of in values]  # p(seen | truth) of five things seen
    for of in errors:
        of[0] = np.eye(len(of[0]))[1]  # the first one says for certain what the truth is
    tables, item = [], rng.integers(0, 5, (40, 3))
    item[::7, 1] = -1  # missing
    for j, (code, measure) in enumerate(coded):
        table = np.ones((6, len(tree.marginals[j])))
        table[:5] = 0.0
        for v, (c, m) in enumerate(zip(code, measure, strict=True)):
            table[:5, c] += errors[j][:, v] * m
        tables.append(table)

    def read(rows: slice, j: int, codes: np.ndarray) -> np.ndarray:
        code, measure = coded[j]
        return codes[:, code] * measure

    rest = np.split(tree.ask(item, tables, read), [3, 6], axis=1)
    for i, seen in enumerate(item):
        likelihood = [
            np.ones(len(of)) if s < 0 else errors[j][s] for j, (of, s) in enumerate(zip(values, seen, strict=True))
        ]
        for j, found in enumerate(truths(p, likelihood)):
            posterior = rest[j][i] * likelihood[j]
            np.testing.assert_allclose(posterior / posterior.sum(), found, atol=2e-3)


def test_planted_errors_are_found_with_their_truth(clean: pd.DataFrame, dirty: pd.DataFrame, joint: jf.Joint) -> None:
    cells = joint.check(dirty).cells
    for row, column, reason in ((3, "city", "typing error"), (50, "city", "have"), (99, "sales", "digits shifted")):
        found = cell(cells, row, column)
        assert found["p_wrong"] > 0.7
        assert found["best"] == str(clean.loc[row, column])
        assert reason in found["reason"]
    blank = cell(cells, 120, "state")
    assert (blank["value"], blank["best"]) == ("", clean.loc[120, "state"])
    assert blank["p_wrong"] > 0.9
    assert (cells["p_wrong"] > 0.5).sum() <= 6
    assert (np.diff(cells["p_wrong"]) <= 0.0).all()
    assert len(cells) == dirty.size


def test_decisions_about_a_row_change_its_other_cells(
    clean: pd.DataFrame, dirty: pd.DataFrame, joint: jf.Joint
) -> None:
    check = joint.check(dirty)

    def both(row: int, right: dict[str, str | None], frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
        """A row's cells given true values, and those of a table that has these values."""
        wanted = joint.check(frame).cells
        return tuple(cells.set_index("column") for cells in (check.cells_of(row, right), wanted[wanted["row"] == row]))

    for row in (3, 50, 99, 120, 7):  # nothing is known: the cells of the table
        found, wanted = both(row, {}, dirty)
        pd.testing.assert_frame_equal(found.loc[wanted.index], wanted, atol=1e-3)
    for row, column in ((50, "city"), (120, "state")):
        frame, right = dirty.copy(), str(clean.loc[row, column])
        frame.loc[row, column] = clean.loc[row, column]
        found, wanted = both(row, {column: right}, frame)
        assert (found.loc[column, "p_wrong"], found.loc[column, "best"]) == (0.0, right)
        np.testing.assert_allclose(found["p_wrong"], wanted.loc[found.index, "p_wrong"], atol=2e-3)
        assert (found["best"] == wanted.loc[found.index, "best"]).all()
    assert (
        cell(check.cells, 50, "zip")["p_wrong"]
        > 0.25
        > 0.01
        > both(50, {"city": "Franklin"}, dirty)[0].loc["zip", "p_wrong"]
    )
    assert clean.loc[50, "city"] == "Franklin"
    kept = check.cells_of(120, {"state": ""}).set_index("column")  # the blank is right
    assert kept.loc["state", "p_wrong"] == 0.0


def test_decisions_use_what_the_joint_knows(dirty: pd.DataFrame) -> None:
    """Without near-functions, what is decided is evidence, in hidden trees and in any other joint."""
    frame = small().assign(color=lambda f: f["color"].where(f.index != 5, "green"))
    frame.loc[5, ["kind", "size"]] = ["a", 3]
    for joint in (
        jf.HiddenTreeForest(n_states=4, **LEARNER).fit(frame).joint_,
        jf.AdversarialForest(n_estimators=3, random_state=0).fit(frame).joint_,
    ):
        check = joint.check(frame)
        new = frame.copy()
        new.loc[5, "kind"] = "c"
        wanted = joint.check(new).cells
        found = check.cells_of(5, {"kind": "c"}).set_index("column")
        np.testing.assert_allclose(
            found["p_wrong"], wanted[wanted["row"] == 5].set_index("column").loc[found.index, "p_wrong"], atol=0.01
        )


@pytest.mark.parametrize(
    ("row", "right", "part"),
    [
        (600, {}, "row: expected a number from 0 to 599, got 600"),
        (-1, {}, "row: expected"),
        (True, {}, "row: expected"),
        (3, {"town": "x"}, "'town' is no column that is checked; there are zip, city, state, sales"),
        (3, {"city": "Atlantis"}, "'Atlantis' is no value of column 'city'"),
    ],
)
def test_wrong_decisions(dirty: pd.DataFrame, joint: jf.Joint, row: Any, right: dict, part: str) -> None:
    with pytest.raises(ValueError, match=part):
        joint.check(dirty).cells_of(row, right)


def test_clean_tables_stay_clean(clean: pd.DataFrame) -> None:
    for frame in (clean, jf.datasets.load_penguins(), small()):
        joint = jf.HiddenTreeForest(n_states=16, **LEARNER).fit(frame).joint_
        assert (joint.check(frame).cells["p_wrong"] > 0.5).mean() <= 0.002


def test_repair_changes_what_is_asked_for_and_nothing_else(
    clean: pd.DataFrame, dirty: pd.DataFrame, joint: jf.Joint
) -> None:
    frame, changes = joint.repair(dirty, at_least=0.7)
    assert list(frame.dtypes) == list(dirty.dtypes)
    different = (frame != dirty).to_numpy()
    assert different.sum() == len(changes)
    assert frame.loc[[3, 50, 99, 120]].equals(clean.loc[[3, 50, 99, 120]])
    kept = joint.repair(dirty, at_least=0.7, keep=["sales", (3, "city")])
    assert kept.frame.loc[99, "sales"] == dirty.loc[99, "sales"]
    assert kept.frame.loc[3, "city"] == dirty.loc[3, "city"]
    assert len(kept.changes) == len(changes) - 2


def test_other_libraries_get_the_same_answers(dirty: pd.DataFrame, joint: jf.Joint) -> None:
    expected = joint.check(dirty).cells
    other = joint.check(pl.from_pandas(dirty))
    assert isinstance(other.cells, pl.DataFrame)
    np.testing.assert_allclose(other.cells["p_wrong"].to_numpy(), expected["p_wrong"], atol=1e-12)
    repaired = joint.repair(pl.from_pandas(dirty))
    assert repaired.frame.schema == pl.from_pandas(dirty).schema
    assert repaired.frame["city"][3] == joint.repair(dirty).frame.loc[3, "city"]
    arrow = joint.repair(pl.from_pandas(dirty).to_arrow())
    assert arrow.frame.column("city")[3].as_py() == repaired.frame["city"][3]


def test_threads_do_not_change_the_answer(dirty: pd.DataFrame, joint: jf.Joint) -> None:
    one, two = (joint.check(dirty, n_jobs=n_jobs).cells["p_wrong"] for n_jobs in (1, 2))
    assert (one == two).all()


def test_one_row_against_a_joint_of_others(clean: pd.DataFrame) -> None:
    learner = jf.HiddenTreeForest(n_states=32, **LEARNER)
    joint = learner.fit(clean).joint_
    row = clean.iloc[[7]].assign(sales=clean["sales"][7] * 100)
    found = joint.check(row).cells.iloc[0]
    assert (found["column"], found["reason"][:6]) == ("sales", "digits")
    assert (joint.check(clean.iloc[[7]]).cells["p_wrong"] < 0.5).all()


def test_joints_without_hidden_trees_are_asked_cell_by_cell() -> None:
    penguins = jf.datasets.load_penguins()
    for joint in (
        jf.AdversarialForest(n_estimators=5, random_state=0).fit(penguins).joint_,
        jf.HiddenTreeForest(n_states=8, random_state=0).fit(cities().assign(town=lambda f: f["city"] + "!")).joint_,
    ):
        frame = joint.sample(40, 0)
        number = "body_mass_g" if "body_mass_g" in frame else "sales"
        frame[number] = frame[number].astype(float)
        frame.loc[5, number] *= 1000
        assert cell(joint.check(frame).cells, 5, number)["p_wrong"] > 0.5


def test_tables_with_little_to_check(clean: pd.DataFrame, joint: jf.Joint) -> None:
    names = ["row", "column", "value", "p_wrong", "best", "p_best", "reason"]
    assert list(joint.check(clean.iloc[:0]).cells.columns) == names
    assert joint.repair(clean.iloc[:0]).frame.shape == (0, 4)
    assert set(joint.check(clean[["city"]]).cells["column"]) == {"city"}
    nothing = joint.check(clean.assign(state=None))
    assert "state" in nothing.left_out
    assert "state" in repr(nothing)
    assert joint.check(clean.assign(city=None, state=None, zip=None, sales=None)).cells.empty
    one = jf.HiddenTreeForest(**LEARNER).fit(clean[["city"]]).joint_
    assert (one.check(clean[["city"]]).cells["p_wrong"] < 0.5).all()


def test_identifiers_and_free_text_are_left_out(clean: pd.DataFrame) -> None:
    frame = clean.assign(id=[f"row-{k:05d}" for k in range(len(clean))])
    check = jf.HiddenTreeForest(n_states=8, **LEARNER).fit(frame).joint_.check(frame)
    assert "names the rows" in check.left_out["id"]
    assert "id" not in set(check.cells["column"])


def test_levels_that_the_joint_has_not_learned(clean: pd.DataFrame) -> None:
    joint = jf.HiddenTreeForest(n_states=16, **LEARNER).fit(clean).joint_
    frame = clean.iloc[:60].copy()
    frame.loc[0, "city"] = frame.loc[0, "city"].replace("i", "j", 1)
    frame.loc[1, "city"] = "Ulaanbaatar"
    cells = joint.check(frame).cells
    assert cell(cells, 0, "city")["best"] == clean.loc[0, "city"]
    assert cell(cells, 1, "city")["p_wrong"] > 0.5


def test_letters_typed_at_one_place_are_likelier_than_at_two() -> None:
    slips = Slips(["southwest", "souxxhwest", "sxuthxest"], 3)
    log_p = slips.log_probability({}, np.full(4, 0.25), 0.2)
    one, two = (log_p[(slips.seen == k) & (slips.truth == 0)][0] for k in (1, 2))
    # One letter replaced by two needs one place of ten; two replaced letters need two places of nine.
    assert one == pytest.approx(np.log(0.8 * 0.1 * 0.25 / 10.0) - 8.0)
    assert two == pytest.approx(np.log(0.8 * 0.1 * (0.25 / 9.0) ** 2) - 8.0)


def test_spellings_of_one_level(clean: pd.DataFrame) -> None:
    frame = clean.copy()
    frame.loc[5, "city"] = frame.loc[5, "city"].upper() + " "
    joint = jf.HiddenTreeForest(n_states=16, **LEARNER).fit(frame).joint_
    check = joint.check(frame)
    assert check.variants.to_dict("records") == [
        {"column": "city", "value": frame.loc[5, "city"], "rows": 1, "proposed": clean.loc[5, "city"]}
    ]
    assert cell(check.cells, 5, "city")["best"] == clean.loc[5, "city"]


@pytest.mark.parametrize("key", [None, "flight"])
def test_rows_of_several_sources_vote_on_their_entity(key: str | None) -> None:
    rng = np.random.default_rng(5)
    times = [f"{h}:{m:02d}" for h in range(6, 22) for m in range(0, 60, 5)]
    truth = rng.choice(times, (40, 3))
    accuracy = np.repeat([0.95, 0.5, 0.3], [4, 4, 4])
    rows = []
    for f in range(40):
        for s, share in enumerate(accuracy):
            seen = [t if rng.random() < share else rng.choice(times) for t in truth[f]]
            rows.append([f"source {s}", f"flight {f}", *seen])
    frame = pd.DataFrame(rows, columns=["source", "flight", "planned", "left", "arrived"])
    true = pd.DataFrame(np.repeat(truth, 12, axis=0), columns=["planned", "left", "arrived"])
    check = jf.HiddenTreeForest(n_states=8, **LEARNER).fit(frame).joint_.check(frame, key=key)
    assert (check.key, check.source) == ("flight", "source")
    first, again = check.cells[check.cells["row"] == 0].set_index("column"), check.cells_of(0, {}).set_index("column")
    pd.testing.assert_frame_equal(again.loc[first.index], first, atol=1e-3)
    assert check.cells_of(0, {"left": truth[0, 1]}).set_index("column").loc["left", "best"] == truth[0, 1]
    repaired = check.repair(0.5).frame[true.columns]
    assert (repaired.to_numpy() == true.to_numpy()).mean() > 0.97


def test_sources_that_copy_do_not_outvote_good_ones() -> None:
    """Three of five sources share their wrong values in one column; the other columns tell how good they are."""
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 50, (60, 3))
    wrong = rng.integers(0, 50, (60, 3))
    items = [np.empty(300, np.int64) for _ in range(3)]
    for s in range(5):
        for j in range(3):
            bad = wrong[:, j] if j == 0 else np.where(rng.random(60) < 0.6, rng.integers(0, 50, 60), truth[:, j])
            items[j][s::5] = bad if s >= 2 else truth[:, j]
    found = vote(np.repeat(np.arange(60), 5), np.tile(np.arange(5), 60), items, [50] * 3)
    assert (found[0].best[::5] == truth[:, 0]).mean() > 0.9


def test_a_row_does_not_vouch_for_itself() -> None:
    group, item = np.array([0, 0, 0, 1]), np.array([2, 2, 1, 1])
    counts = Counts(group, item, 3, np.ones(4))
    # the other rows of row 2's group have value 2 twice; half a row of the shares of the other three rows is added
    np.testing.assert_allclose(counts.at(np.array([[1], [1], [1], [1]]))[2], (0.5 * 0.5 * (1 / 3)) / 2.5)
    np.testing.assert_allclose(counts.at(np.array([[2], [2], [2], [2]]))[2], (2.0 + 0.5 * 0.5 * (2 / 3)) / 2.5)


@pytest.mark.parametrize(
    ("seen", "truth", "edits"),
    [
        ("Knig County", "King County", 1),
        ("birminghxm", "birmingham", 1),
        ("axxistox", "annistoo", None),
        ("hexrt xttxck", "heart attack", 1),
        ("SAO  PAULO", "São Paulo", 1),
        ("al", "ax", 1),
        ("alpha", "gamma", None),
    ],
)
def test_edits(seen: str, truth: str, edits: int | None) -> None:
    slips = Slips([seen, truth], 1)
    assert slips.edits.tolist() == ([] if edits is None else [edits])


def test_wrong_arguments(clean: pd.DataFrame, joint: jf.Joint) -> None:
    with pytest.raises(ValueError, match="no column 'town'"):
        joint.check(clean, key="town")
    with pytest.raises(ValueError, match="at_least must be a probability"):
        joint.repair(clean, at_least=95)
    with pytest.raises(TypeError, match="list of columns"):
        joint.repair(clean, keep="city")


@pytest.mark.parametrize("keep", [["nothing"], [(99_999, "city")], [[3, "nothing"]]])
def test_what_is_to_be_kept_must_exist(dirty: pd.DataFrame, joint: jf.Joint, keep: list) -> None:
    with pytest.raises(ValueError, match=r"keep: .* is neither a column nor a pair"):
        joint.repair(dirty, keep=keep)


@pytest.mark.filterwarnings("ignore:this joint expects the wrong cells")
@pytest.mark.parametrize("learner", [jf.HiddenTreeForest(random_state=0), jf.AdversarialForest(4, random_state=0)])
def test_clean_numbers_without_a_grid_stay_clean(learner: Any) -> None:
    rng = np.random.default_rng(0)
    some = np.where(rng.random(300) < 0.3, 0.0, rng.exponential(2.0, 300))
    frame = pd.DataFrame({"x": some, "y": rng.normal(size=300)})
    joint = learner.fit(frame).joint_
    assert (joint.check(frame).cells["p_wrong"] > 0.5).mean() <= 0.01
    assert len(joint.repair(frame).changes) == 0


def test_a_forest_that_learned_the_table_warns(dirty: pd.DataFrame) -> None:
    joint = jf.AdversarialForest(2, random_state=0).fit(dirty).joint_
    with pytest.warns(UserWarning, match="this joint expects the wrong cells that it has learned"):
        joint.check(dirty)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        joint.check(dirty.head(20))  # counts as another table


def test_hidden_trees_of_a_mixture_check_whatever_their_weight() -> None:
    frame = small()
    forest, hidden = (of.fit(frame).joint_ for of in (jf.AdversarialForest(2), jf.HiddenTreeForest(n_states=4)))
    mixed = jf.mix([forest, hidden], [0.9, 0.1])
    np.testing.assert_array_equal(mixed.check(frame).cells["p_wrong"], hidden.check(frame).cells["p_wrong"])


def one_odd(n: int, kind: str) -> pd.DataFrame:
    """A clean table of two columns; the first one has no odd value."""
    rng = np.random.default_rng([n, 4])
    x = {
        "heights": rng.normal(170, 9, n).round(),
        "rounded": rng.normal(170, 9, n).round(1),
        "continuous": rng.normal(170, 9, n),
        "amounts": rng.lognormal(8, 1, n).round(2),
        "mixed": np.where(rng.random(n) < 0.3, 100.0, rng.normal(170, 9, n)),
        "dates": pd.to_datetime("2021-01-01") + pd.to_timedelta(rng.integers(0, 1_400, n), "D"),
    }[kind]
    return pd.DataFrame({"x": x, "y": rng.normal(size=n)})


@pytest.mark.parametrize("n", [200, 1_000])
@pytest.mark.parametrize(
    ("kind", "odd"),
    [
        ("heights", [937]),
        ("heights", [-5]),
        ("heights", [937, 812, 655]),
        ("heights", [999, 999, 999]),
        ("rounded", [937.1]),
        ("continuous", [937.13]),
        ("mixed", [937.13]),
        ("amounts", [-4_000.0]),
        ("dates", [pd.Timestamp("1900-01-01")]),
        ("dates", [pd.Timestamp("2204-05-03")]),
    ],
)
def test_values_far_from_all_others_are_found_by_a_joint_that_learned_them(kind: str, odd: list[Any], n: int) -> None:
    frame = one_odd(n, kind)
    rows = list(range(5, 5 + len(odd)))
    frame.loc[rows, "x"] = odd
    frame.loc[[1, 2], "y"] = np.nan
    cells = jf.HiddenTreeForest(**LEARNER).fit(frame).joint_.check(frame).cells
    found = cells[cells["p_wrong"] > 0.5]
    assert {(row, "x") for row in rows} <= set(zip(found["row"], found["column"], strict=True))
    assert len(found) <= len(rows) + 1


@pytest.mark.parametrize("kind", ["heights", "rounded", "continuous", "amounts"])
def test_expected_cells_of_tails_are_those_of_a_plain_calculation(kind: str) -> None:
    frame = one_odd(300, kind)
    odd = [-90.0, -90.0, -7.0, 900.0] if kind == "amounts" else [937.0, -5.0, 60.0, 60.0]
    frame.loc[3:6, "x"] = odd
    check = jf.HiddenTreeForest(**LEARNER).fit(frame).joint_.check(frame)
    (column,) = [of for of in check._model.columns if of.column.name == "x"]
    cells, step = frame["x"].tolist(), column.column.step
    for i in range(column.n_seen):
        expected = expected_beyond(cells, column.values[i], step)
        assert column.genuine[i] == pytest.approx(expected, rel=1e-6), column.values[i]


def test_skewed_clean_columns_stay_clean() -> None:
    rng = np.random.default_rng([1_000, 1])
    n = 1_000
    frame = pd.DataFrame(
        {
            "amount": rng.lognormal(4, 1.5, n).round(2),
            "units": rng.lognormal(2, 1, n).round(),
            "x": rng.lognormal(0, 2, n),
            "t": rng.standard_t(3, n),
            "share": np.where(rng.random(n) < 0.3, 1.0, rng.choice(np.arange(1, 100), n) / 365.0),
            "date": pd.to_datetime("2024-06-01") - pd.to_timedelta(rng.lognormal(4, 1.2, n).round(), "D"),
        }
    )
    cells = jf.HiddenTreeForest(**LEARNER).fit(frame).joint_.check(frame).cells
    assert (cells["p_wrong"] > 0.5).mean() <= 0.002


def test_the_only_row_of_a_group_is_not_wrong_for_that() -> None:
    """The distance of two places is a function of these; some pairs of places have one row."""
    rng = np.random.default_rng(0)
    place = rng.permutation(np.append(rng.integers(0, 20, 480), np.arange(20, 40)))
    frame = pd.DataFrame({"place": [f"{'abcdefgh'[k % 8] * 3}{k:02d}" for k in place], "km": 131 + 37 * place})
    cells = jf.HiddenTreeForest(**LEARNER).fit(frame).joint_.check(frame).cells
    assert (cells[cells["column"] == "km"]["p_wrong"] > 0.5).sum() <= 1


def test_reasons_agree_with_the_best_values() -> None:
    """A factor that is named leads from the best value to the value of the cell, and its kind is that of the factor."""
    rng = np.random.default_rng(0)
    x = rng.gamma(2, 20, 1_000).round(2)
    x[5], x[7], x[8] = 99999.0, 1000.0 * x[7], -x[8]
    frame = pd.DataFrame({"x": x, "g": rng.choice(["u", "v"], 1_000)})
    cells = jf.HiddenTreeForest(random_state=0).fit(frame).joint_.check(frame).cells
    wrong = cells[cells["p_wrong"] > 0.5]
    assert {5, 7, 8} <= set(wrong["row"])
    named = wrong[wrong["reason"].str.contains(" times ")]
    assert len(named)
    for value, best, reason in zip(named["value"], named["best"], named["reason"], strict=True):
        what, said = reason.split(": ")
        factor, of = said.split(" times ")
        assert of == best and float(factor) * float(best) == pytest.approx(float(value), rel=1e-3)
        assert what == {"-1": "other sign", "1000": "digits shifted", "100": "digits shifted"}[factor]


def two_kinds(n: int = 600) -> tuple[pd.DataFrame, pd.DataFrame, np.ndarray]:
    """A clean table, the same with swapped neighbours, and the rows of swapped numbers, dates and levels."""
    rng = np.random.default_rng(4)
    kind = rng.integers(0, 3, n)
    first = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), "D")
    frame = pd.DataFrame(
        {
            "length": (40 + 8 * kind + rng.normal(0, 2, n)).round(1),
            "depth": (18 - 3 * kind + rng.normal(0, 1, n)).round(1),
            "start": first,
            "end": first + pd.to_timedelta(rng.integers(500, 700, n), "D"),
            "kind": np.array(["ash", "oak", "elm"])[kind],
            "use": np.where(rng.random(n) < 0.9, np.array(["fire", "ship", "bow"])[kind], "none"),
        }
    )
    dirty, rows = frame.copy(), rng.choice(n, (3, 20), replace=False)
    for of, (a, b) in zip(rows, (("length", "depth"), ("start", "end"), ("kind", "use")), strict=True):
        dirty.loc[of, a], dirty.loc[of, b] = frame.loc[of, b].to_numpy(), frame.loc[of, a].to_numpy()
    return frame, dirty, rows


def test_swapped_cells_are_found_by_a_joint_that_learned_them() -> None:
    frame, dirty, rows = two_kinds()
    check = jf.HiddenTreeForest(**LEARNER).fit(dirty).joint_.check(dirty)
    found = check.cells[check.cells["p_wrong"] > 0.5]
    wrong = {(r, c) for r, c in zip(found["row"], found["column"], strict=True)}
    for of, (a, b) in zip(rows.tolist(), (("length", "depth"), ("start", "end"), ("kind", "use")), strict=True):
        hit = [r for r in of if {(r, a), (r, b)} <= wrong]
        assert len(hit) >= 14, (a, b)
        one = cell(found, hit[0], a)
        assert one["reason"] == f"swapped with {b}" and one["best"] == str(dirty.loc[hit[0], b])
    changed = (frame != dirty).to_numpy()
    right = [changed[r, frame.columns.get_loc(c)] for r, c in wrong]
    assert np.mean(right) > 0.9
    repaired = check.repair(0.5)
    assert ((repaired.frame == frame).to_numpy() & changed).sum() > 0.7 * changed.sum()
    assert list(repaired.frame.dtypes) == list(dirty.dtypes)
    # A decision about one of the two cells is one about both.
    row = next(r for r in rows[0].tolist() if {(r, "length"), (r, "depth")} <= wrong)
    accepted = check.cells_of(row, {"length": str(frame.loc[row, "length"])}).set_index("column")
    assert accepted.loc["depth", "p_wrong"] > 0.99 and accepted.loc["depth", "best"] == str(frame.loc[row, "depth"])
    refused = check.cells_of(row, {"length": str(dirty.loc[row, "length"])}).set_index("column")
    assert refused.loc["depth", "p_wrong"] < 0.5


@pytest.mark.parametrize("is_learned", [True, False])
def test_probabilities_of_swaps_are_those_of_a_plain_calculation(is_learned: bool) -> None:
    frame, dirty, _ = two_kinds()
    joint = jf.HiddenTreeForest(**LEARNER).fit(dirty if is_learned else frame).joint_
    asked = dirty if is_learned else dirty.head(599)
    model = joint.check(asked)._model
    names = [column.column.name for column in model.columns]
    a, b = names.index("length"), names.index("depth")
    other = asked.copy()
    other["length"], other["depth"] = asked["depth"], asked["length"]
    differ = (asked["length"] != asked["depth"]).to_numpy()
    # rows whose swapped cells are far less usual in their columns are not asked
    of_a, of_b = (model.columns[j].log_marginal for j in (a, b))
    length, depth = asked["length"].to_numpy(), asked["depth"].to_numpy()
    usual = of_a(depth) + of_b(length) - of_a(length) - of_b(depth) > -_UNLIKELY
    gains = (joint.log_density(other) - joint.log_density(asked))[differ & usual]
    on_grid = [joint.schema[c].step for c in ("length", "depth")]
    assert on_grid == [pytest.approx(0.1)] * 2
    expected = np.zeros(len(asked))
    expected[differ & usual] = swapped(gains.tolist(), int(differ.sum()), is_learned)
    far = expected > 1e-6  # others are not asked
    np.testing.assert_allclose(model.swaps.p[far, a], expected[far], rtol=1e-3, atol=1e-6)
    assert (model.swaps.p[~far, a] < 1e-5).all()
    assert (model.swaps.neighbour[far, a] == b).all()


def test_columns_that_are_alike_have_no_swaps() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.integers(0, 40, 500), "b": rng.integers(0, 40, 500), "c": rng.normal(size=500)})
    frame["d"] = frame["a"] + rng.integers(0, 3, 500)
    cells = jf.HiddenTreeForest(**LEARNER).fit(frame).joint_.check(frame).cells
    assert (cells["p_wrong"] > 0.5).mean() <= 0.002


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_clean_whole_numbers_have_no_swaps(seed: int) -> None:
    rng = np.random.default_rng([seed, 1_000])
    n, skill = 1_000, rng.gamma(3, 2, 1_000)
    frame = pd.DataFrame({"goals": rng.poisson(skill), "fouls": rng.poisson(8, n), "cards": rng.poisson(2, n)})
    cells = jf.HiddenTreeForest(**LEARNER).fit(frame).joint_.check(frame).cells
    assert (cells["p_wrong"] > 0.5).mean() < 0.002


@pytest.mark.parametrize("same", [0, 9])
@pytest.mark.parametrize("spread", [0.8, 3.0])
def test_gains_of_swaps_are_weighed_as_in_a_plain_calculation(same: int, spread: float) -> None:
    rng = np.random.default_rng(same)
    gains = np.append(-rng.gamma(4.0, spread, 400), rng.gamma(3.0, 1.0, 40))
    expected = swapped(gains.tolist(), 500, True, same)
    assert max(expected) > 0.1
    np.testing.assert_allclose(_p_swapped(gains, 500, same, True), expected, atol=1e-9)


def test_rows_with_the_same_cells_are_counted_but_not_those_of_a_frequent_value() -> None:
    a, b = np.array([0, 0, 0, 0, 3, 3, 5, 6]), np.array([0, 0, 0, 7, 3, 1, 5, 3])
    assert _rows_of_same(a, b) == 1 + 1 + 0  # 0 and 3 occur alone too; 5 does not


def test_codes_are_no_typing_errors_of_each_other() -> None:
    rng = np.random.default_rng(0)
    codes = [f"N{k}UA" for k in range(100, 400)] + [f"N{k}WN" for k in range(600, 800)]
    frame = pd.DataFrame({"tail": rng.choice(codes, 800), "carrier": rng.choice(["UA", "WN"], 800)})
    frame["minutes"] = np.where(frame["carrier"] == "UA", 90, 50) + rng.integers(0, 30, 800)
    joint = jf.HiddenTreeForest(kinds={"tail": "categorical"}, **LEARNER).fit(frame).joint_
    check = joint.check(frame)
    cells = check.cells
    assert (cells["p_wrong"] > 0.5).mean() <= 0.002
    names = {column.column.name: column.has_close_levels for column in check._model.columns}
    assert names == {"tail": True, "carrier": False, "minutes": False}


def test_errors_that_the_joint_has_learned_are_found() -> None:
    """One cell in twenty is ten times too large: the joint expects such cells in few distinct values."""
    rng = np.random.default_rng(1)
    age = rng.integers(20, 60, 2_000)
    frame = pd.DataFrame({"age": age, "group": np.where(age + rng.normal(0, 5, 2_000) < 40, "young", "old")})
    rows = rng.random(2_000) < 0.05
    frame.loc[rows, "age"] *= 10
    cells = jf.HiddenTreeForest(**LEARNER).fit(frame).joint_.check(frame).cells
    age_cells = cells[cells["column"] == "age"].sort_values("row")
    assert (age_cells["p_wrong"] > 0.5).to_numpy()[rows].mean() > 0.95
    assert (cells["p_wrong"] > 0.5).sum() < 1.03 * rows.sum()


def pay(n: int = 600) -> pd.DataFrame:
    """Each grade has two bands, which also depend on the salary."""
    rng = np.random.default_rng(3)
    grade = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])
    salary = (np.array([30_000, 42_000, 60_000, 90_000])[grade] * rng.uniform(1.0, 1.3, n)).round(-2)
    band = np.searchsorted([33_000, 45_000, 66_000, 95_000], salary)
    return pd.DataFrame(
        {
            "grade": np.array(["G1", "G2", "G3", "G4"])[grade],
            "band": np.array(["A", "B", "C", "D", "E"])[band],
            "salary": salary,
            "office": rng.choice(["north", "south"], n),
        }
    )


@pytest.mark.parametrize("number", [1, 3, 6])
def test_few_rows_that_break_a_relation_are_found(number: int) -> None:
    frame = pay()
    rows = np.flatnonzero(frame["grade"] == "G1")[:number].tolist()
    frame.loc[rows, "band"] = "D"
    check = jf.HiddenTreeForest(**LEARNER).fit(frame).joint_.check(frame)
    cells = check.cells
    likely = cells[cells["p_wrong"] > 0.5]
    assert {(r, c) for r, c in zip(likely["row"], likely["column"], strict=True)} == {(r, "band") for r in rows}
    for r in rows:
        one = cell(cells, r, "band")
        assert one["best"] in ("A", "B") and one["p_best"] > 0.3
        assert one["reason"].startswith("only ") and one["reason"].endswith(" have band = 'D'")
    # If the band is right, other cells of the row must be wrong.
    again = check.cells_of(rows[0], {"band": "D"})
    assert cell(again, rows[0], "band")["p_wrong"] == 0.0
    assert max(cell(again, rows[0], name)["p_wrong"] for name in ("grade", "salary")) > 0.4
    corrected = check.cells_of(rows[0], {"band": cell(cells, rows[0], "band")["best"]})
    assert (corrected["p_wrong"] < 0.1).all()


def test_either_column_of_a_broken_function_may_be_wrong() -> None:
    rng = np.random.default_rng(2)
    country = {"Paris": "France", "Lyon": "France", "Berlin": "Germany", "Hamburg": "Germany", "Rome": "Italy"}
    city = rng.choice(list(country), 800)
    frame = pd.DataFrame({"city": city, "country": [country[x] for x in city], "amount": rng.integers(0, 90, 800)})
    rows = np.flatnonzero(city == "Berlin")[:8].tolist()
    frame.loc[rows, "city"] = ["Rome", "Paris"] * 4
    cells = jf.HiddenTreeForest(**LEARNER).fit(frame).joint_.check(frame).cells
    for r in rows:
        of = cells[cells["row"] == r].set_index("column")["p_wrong"]
        assert 0.4 < of.sum() < 1.1 and of.max() < 0.8


def test_a_cell_that_is_wrong_for_other_reasons_explains_a_broken_order() -> None:
    rng = np.random.default_rng(3)
    floors = rng.integers(1, 9, 800)
    frame = pd.DataFrame({"floor": rng.integers(0, floors + 1), "floors": floors, "area": rng.normal(80, 20, 800)})
    rows = np.flatnonzero(frame["floor"] == 3)[:4].tolist()
    frame.loc[rows, "floor"] = [100, 200, 300, 400]
    check = jf.HiddenTreeForest(**LEARNER).fit(frame).joint_.check(frame)
    assert [str(rule) for rule in check._model.rules.rules] == ["floor <= floors"]
    for r in rows:
        assert cell(check.cells, r, "floor")["p_wrong"] > 0.99 and cell(check.cells, r, "floors")["p_wrong"] < 0.1


def test_many_rows_that_break_a_relation_are_an_alternative() -> None:
    frame = pay().drop(columns="salary")
    rows = np.flatnonzero(frame["grade"] == "G1")[:40].tolist()
    frame.loc[rows, "band"] = "D"
    cells = jf.HiddenTreeForest(**LEARNER).fit(frame).joint_.check(frame).cells
    assert (cells["p_wrong"] > 0.5).sum() <= 1
    assert (jf.HiddenTreeForest(**LEARNER).fit(pay()).joint_.check(pay()).cells["p_wrong"] < 0.5).all()


@pytest.mark.parametrize("columns", [["grade", "band"], ["band", "salary"], ["salary", "grade"]])
@pytest.mark.parametrize("number", [0, 4])
def test_cells_that_break_a_relation_are_those_of_a_plain_count(columns: list[str], number: int) -> None:
    frame = pay(400)
    rows = np.flatnonzero(frame["grade"] == "G1")
    frame.loc[rows[:number], "band"] = "C"
    frame.loc[rows[number : 2 * number], "salary"] = 62_000.0
    model = jf.HiddenTreeForest(**LEARNER).fit(frame[columns]).joint_.check(frame[columns])._model
    codes, beside = [], []
    for name in columns:
        beside.append(2 if name == "salary" else 0)
        cuts = np.unique(np.quantile(frame["salary"], np.arange(1, 16) / 16)).tolist()
        code = [sum(x >= cut for cut in cuts) for x in frame["salary"]]
        codes.append(code if name == "salary" else pd.factorize(frame[name])[0].tolist())
    expected = np.array(broken(*codes, *beside, model.p_wrong_alone.tolist()))
    assert (expected.max() > 0.1) == (number > 0)
    np.testing.assert_allclose(model.broken.p, expected, rtol=1e-9)


def random_values(rate: float, n: int = 2_000) -> tuple[pd.DataFrame, np.ndarray]:
    """Three columns that name one of six places, one that names its half, and values at random in each; which rows."""
    rng = np.random.default_rng(3)
    place = rng.integers(0, 6, n)
    frame = pd.DataFrame({name: [f"{name}{k}" for k in place] for name in ("city", "zip", "area")})
    frame["half"] = np.where(place < 3, "north", "south")
    frame["age"] = rng.integers(18, 80, n)
    clean = frame.copy()
    for name in ("city", "zip", "area", "half"):
        rows = rng.random(n) < rate
        frame.loc[rows, name] = rng.permutation(clean.loc[:, name].to_numpy())[rows]
    return frame, (frame != clean).to_numpy()


def test_values_at_random_are_told_from_exceptions_by_equal_shares_in_all_relations() -> None:
    frame, changed = random_values(0.05)
    joint = jf.HiddenTreeForest(n_states=12, **LEARNER).fit(frame).joint_
    check = joint.check(frame)
    cells = check.cells
    wrong = changed[cells["row"], frame.columns.get_indexer(cells["column"])]
    likely = (cells["p_wrong"] > 0.5).to_numpy()
    assert wrong[likely].mean() > 0.9
    assert likely[wrong].mean() > 0.8

    relations = check._model.relations  # type: ignore[union-attr]
    found = [one for a, b in combinations(range(4), 2) if (one := relations._exceptions(a, b)) is not None]
    tables = []
    for a, b in combinations(frame.columns[:4], 2):
        counts = pd.crosstab(frame[a], frame[b])
        expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.to_numpy().sum()
        few = counts.to_numpy() < 0.35 * expected
        here = zip(np.argwhere(few).tolist(), counts.to_numpy()[few].tolist(), expected[few].tolist(), strict=True)
        tables.append(({str(at): (k, e) for at, k, e in here}, a, b))
    assert _of_random_values(found) == pytest.approx(p_random(tables))


def test_exceptions_of_one_relation_among_others_without_any_are_no_values_at_random() -> None:
    frame, _ = random_values(0.0)
    rng = np.random.default_rng(4)
    frame["grade"] = np.where(rng.random(len(frame)) < 0.9, frame["half"], rng.permutation(frame["half"]))
    check = jf.HiddenTreeForest(n_states=12, **LEARNER).fit(frame).joint_.check(frame)
    assert (check.cells["p_wrong"] > 0.5).mean() < 0.002


def test_relations_count_each_row_of_near_bins_once() -> None:
    frame = pay()[["grade", "salary"]]
    rows = np.flatnonzero(frame["grade"] == "G1")[:4]
    frame.loc[rows, "salary"] = 62_000.0
    model = jf.HiddenTreeForest(**LEARNER).fit(frame).joint_.check(frame)._model
    (relation,) = model.relations.found
    bins = model.relations.code[:, 1]
    for k in range(bins.max() + 1):
        near = np.abs(bins - k) <= 2
        assert relation.of_b[k] == near.sum()
        for code in range(4):
            assert relation.rows[code, k] == (near & (model.relations.code[:, 0] == code)).sum()
    assert relation.of_a[:4].tolist() == np.bincount(model.relations.code[:, 0]).tolist()


def test_missing_cells_that_others_determine_are_not_called_wrong() -> None:
    frame = cities()
    frame.loc[[4, 9, 30], "state"] = None
    check = jf.HiddenTreeForest(**LEARNER).fit(frame).joint_.check(frame)
    assert repr(check).startswith("Check(0 cells are probably wrong; other cells determine 3 missing cells")
    first = check.cells.head(3)
    assert set(first["row"]) == {4, 9, 30} and first["reason"].str.startswith("missing; ").all()
    assert (first["best"].to_numpy() == cities().loc[first["row"], "state"].to_numpy()).all()


@pytest.mark.parametrize("decimals", [None, 2])
def test_decimals_tell_other_units(decimals: int | None) -> None:
    """Lengths of one decimal, some of them in other units, so that the column has no grid."""
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"length": rng.normal(44, 6, 400).round(1), "sex": rng.choice(["f", "m"], 400)})
    true = frame["length"].copy()
    rows = rng.choice(400, 12, replace=False)
    wrong = true[rows] / 2.54
    frame.loc[rows, "length"] = wrong if decimals is None else wrong.round(decimals)
    check = jf.HiddenTreeForest(**LEARNER).fit(frame).joint_.check(frame)
    found = check.cells[check.cells["p_wrong"] > 0.5]
    assert set(found["row"]) <= set(rows.tolist())
    if decimals is None:
        assert len(found) == 12 and found["reason"].str.startswith("other unit").all()
        repaired = check.repair(0.5).frame["length"]
        np.testing.assert_allclose(repaired, true, atol=1e-9)


def test_what_is_kept_between_rounds_does_not_change_the_answer(
    dirty: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    joint = jf.JointTree(random_state=0).fit(dirty).joint_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kept = joint.check(dirty).cells
        monkeypatch.setattr(result, "_KEPT", 0)
        pd.testing.assert_frame_equal(joint.check(dirty).cells, kept)


def bills(kind: str, n: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(4)
    shop, count = rng.choice(["a", "b", "c"], n), rng.integers(1, 40, n)
    if kind == "whole":
        other = rng.poisson(6, n)
        return pd.DataFrame({"shop": shop, "count": count, "other": other, "all": count + other})
    if kind == "decimals":
        net = rng.lognormal(4, 0.8, n).round(2)
        tax = (net * rng.choice([0.05, 0.2], n)).round(2)
        return pd.DataFrame({"shop": shop, "net": net, "tax": tax, "gross": (net + tax).round(2)})
    start = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), "D")
    return pd.DataFrame({"start": start, "shop": shop, "days": count, "end": start + pd.to_timedelta(count, "D")})


def with_wrong(frame: pd.DataFrame) -> tuple[pd.DataFrame, dict[tuple[int, str], Any]]:
    """Three wrong cells in each column of numbers or dates, and what they were."""
    rng, out, true = np.random.default_rng(5), frame.copy(), {}
    names = [name for name in frame if not isinstance(frame.loc[0, name], str)]
    rows = rng.choice(len(frame), (len(names), 3), replace=False).tolist()
    for name, of in zip(names, rows, strict=True):
        for r in of:
            true[r, name] = frame.loc[r, name]
            others = frame[name][frame[name] != frame.loc[r, name]]
            out.loc[r, name] = others.iloc[int(rng.integers(len(others)))]
    return out, true


@pytest.mark.parametrize("kind", ["whole", "decimals", "dates"])
def test_cells_that_break_a_sum_are_found_with_its_value(kind: str) -> None:
    frame, true = with_wrong(bills(kind))
    check = jf.HiddenTreeForest(**LEARNER).fit(frame).joint_.check(frame)
    cells, rows = check.cells, {r for r, _ in true}
    of_rules = cells[cells["reason"].str.startswith("breaks ")]
    assert set(of_rules["row"]) <= rows
    wrong = cells[cells["p_wrong"] > 0.5]
    right = [(r, name) in true for r, name in zip(wrong["row"], wrong["column"], strict=True)]
    total = [of["p_wrong"].sum() for _, of in cells[cells["row"].isin(rows)].groupby("row")]
    assert len(total) == 9 and min(total) > 0.95
    if kind != "whole":  # which of three whole numbers is wrong is often open
        assert sum(right) >= 6 and sum(right) > 0.6 * len(right)
    found = [(r, c, b) for r, c, b in zip(of_rules["row"], of_rules["column"], of_rules["best"], strict=True)]
    assert all(b == str(true[r, c]) for r, c, b in found if (r, c) in true)
    # With the true value, the row obeys the rule. If the cell is right, another one is wrong.
    r, name, best = next(one for one in found if one[:2] in true)
    assert (check.cells_of(r, {name: best})["p_wrong"] < 0.2).all()
    again = check.cells_of(r, {name: str(cell(cells, r, name)["value"])})
    assert cell(again, r, name)["p_wrong"] == 0.0 and again["p_wrong"].sum() > 0.9
    again = jf.HiddenTreeForest(**LEARNER | {"random_state": 1}).fit(bills(kind)).joint_.check(bills(kind))
    assert not (again.cells["p_wrong"] > 0.5).any()


@pytest.mark.parametrize("kind", ["whole", "decimals"])
@pytest.mark.parametrize("rules", ["off", "auto"])
def test_probabilities_of_broken_sums_are_those_of_a_plain_calculation(kind: str, rules: str) -> None:
    frame, true = with_wrong(bills(kind))
    rows = sorted({r for r, _ in true})
    learned = frame.drop(index=rows) if rules == "auto" else frame  # the joint enforces the rule, or has learned errors
    joint = jf.HiddenTreeForest(rules=rules, random_state=0).fit(learned.reset_index(drop=True)).joint_
    model = joint.check(frame)._model
    columns = {column.column.name: column for column in model.columns}
    *parts, total = [name for name in frame if name != "shop"]
    decimals = 2 if kind == "decimals" else 0
    share = len(rows) / (2 * len(frame) - len(rows) if rules == "auto" else len(frame))
    cases = []
    for r in rows:
        seen, scores = frame.loc[r], {}
        for name in (*parts, total):
            rest = [seen[other] for other in parts if other != name]
            value = round(sum(rest) if name == total else seen[total] - sum(rest), decimals)
            corrected = frame.iloc[[r]].assign(**{name: value})
            i = int(columns[name].item[r])
            p = 0.25 * np.exp(columns[name].log_random[i]) + 0.25 * np.exp(columns[name].log_any[i])
            texts = f"{seen[name]:.{decimals}f}", f"{value:.{decimals}f}"
            p += 0.25 * (edits(*texts) == 1) / (10.0 * len(texts[1]))
            near = 0.5 * columns[name].column.step * 1.001 + 1e-9 * abs(seen[name])
            p += 0.25 * any(abs(value * f - seen[name]) <= near for _, f in FACTORS) / len(FACTORS)
            scores[name] = float(joint.log_density(corrected)[0]), float(np.log(max(p, 1e-300)))
        top = max(density for density, _ in scores.values())
        top = top if top > -np.inf else 0.0
        # Powers of densities, because they count the numbers of a sum twice.
        cases.append({name: max(0.5 * density, 0.5 * top - 50.0) + error for name, (density, error) in scores.items()})
    p_rule, alone = 1.0 / (1.0 + (share / 0.1) ** 4), pd.DataFrame(model.p_wrong_alone, columns=list(columns))
    expected = [wrong_by_rule(p_rule, case, dict(alone.loc[r])) for r, case in zip(rows, cases, strict=True)]
    assert [str(rule) for rule in model.rules.rules] == [f"{total} = {' + '.join(parts)}"]
    for r, of in zip(rows, expected, strict=True):
        for j, name in enumerate(columns):
            assert model.breaks.p[r, j] == pytest.approx(of.get(name, 0.0), abs=1e-6), (r, name)
    assert (np.delete(model.breaks.p, rows, axis=0) == 0.0).all()


@pytest.mark.parametrize("rules", ["off", "auto"])
def test_one_new_row_that_breaks_a_rule(rules: str) -> None:
    frame = bills("decimals")
    joint = jf.HiddenTreeForest(rules=rules, random_state=0).fit(frame).joint_
    row = frame.iloc[[7]].assign(gross=frame["gross"][7] + 7.31)
    first = joint.check(row).cells.iloc[0]
    assert (first["column"], first["best"]) == ("gross", str(frame["gross"][7]))
    assert first["p_wrong"] > 0.7 and first["reason"] == "breaks gross = net + tax"
    assert joint.check(frame.iloc[[7]]).cells["p_wrong"].max() < 0.5


def test_cells_that_break_an_order_are_found() -> None:
    frame = bills("dates").drop(columns="days")
    rng = np.random.default_rng(6)
    rows = rng.choice(len(frame), 6, replace=False).tolist()
    frame.loc[rows, "end"] = frame.loc[rows, "start"] - pd.to_timedelta(rng.integers(5, 200, 6), "D")
    check = jf.HiddenTreeForest(**LEARNER).fit(frame).joint_.check(frame)
    assert [str(rule) for rule in check._model.rules.rules] == ["start < end"]
    for r in rows:
        of = check.cells[(check.cells["row"] == r) & (check.cells["column"] != "shop")]
        assert of["p_wrong"].sum() == pytest.approx(1.0, abs=0.15)
        if of["p_wrong"].max() > 0.5:
            assert of["reason"].iloc[0] in ("breaks start < end", "unlike the values of the column")
    # Dates that are often before others have no order.
    late = frame.assign(end=frame["start"] + pd.to_timedelta(rng.normal(20, 12, len(frame)).round(), "D"))
    model = jf.HiddenTreeForest(**LEARNER).fit(late).joint_.check(late)._model
    assert not model.rules.rules


def test_many_rows_that_break_a_sum_are_an_alternative() -> None:
    frame = bills("decimals")
    frame.loc[:79, "gross"] = frame.loc[:79, "net"]  # as exports are
    model = jf.HiddenTreeForest(**LEARNER).fit(frame).joint_.check(frame)._model
    assert not model.rules.rules
    frame = bills("decimals").assign(kind="sale")
    frame.loc[:15, "gross"], frame.loc[:15, "kind"] = frame.loc[:15, "net"], "export"
    model = jf.HiddenTreeForest(**LEARNER).fit(frame).joint_.check(frame)._model
    assert not model.rules.rules  # the kind explains the exceptions


def test_a_fitted_line_is_no_rule() -> None:
    rng = np.random.default_rng(3)
    points = rng.integers(20, 100, 300)
    grade = np.rint(7.5 - 0.0675 * points + rng.normal(0, 0.15, 300)).astype(int)
    frame = pd.DataFrame({"points": points, "grade": grade, "who": rng.choice(["a", "b"], 300)})
    assert not jf.HiddenTreeForest(**LEARNER).fit(frame).joint_.check(frame)._model.rules.rules


@pytest.mark.parametrize("seed", [20, 21])
def test_a_number_that_nearly_determines_a_level_is_no_function(seed: int) -> None:
    rng = np.random.default_rng(seed)
    room = rng.choice(["single", "double", "suite"], 700, p=[0.4, 0.5, 0.1])
    base = pd.Series(room).map({"single": 70, "double": 110, "suite": 260}).to_numpy()
    price = base * rng.choice([1, 2, 3, 4, 7, 14], 700, p=[0.3, 0.25, 0.2, 0.1, 0.1, 0.05]) + rng.integers(-10, 20, 700)
    frame = pd.DataFrame({"room": room, "price": price})
    check = jf.HiddenTreeForest(**LEARNER).fit(frame).joint_.check(frame)
    assert not check._model.partners[0].is_function(0.05)
    assert not (check.cells[check.cells["column"] == "room"]["p_wrong"] > 0.5).any()


@pytest.mark.parametrize("is_genuine", [False, True])
def test_wrong_numbers_that_occur_several_times_are_no_values_of_the_column(is_genuine: bool) -> None:
    rng = np.random.default_rng(5)
    years, paid = rng.choice([9, 10, 13, 14], 1_000, p=[0.5, 0.2, 0.2, 0.1]), rng.lognormal(6, 0.2, 1_000).round(2)
    wrong = rng.random((2, len(years))) < 0.05
    # Errors of other columns show that digits are shifted. Or 900 is a usual value of its own.
    years[wrong[0]] = 900 if is_genuine else years[wrong[0]] * 100
    paid[wrong[1]] *= 1.0 if is_genuine else 100.0
    frame = pd.DataFrame({"years": years, "paid": paid.round(2)})
    cells = jf.HiddenTreeForest(**LEARNER).fit(frame).joint_.check(frame).cells
    likely = cells[(cells["p_wrong"] > 0.5) & (cells["column"] == "years")]
    assert set(likely["row"]) == (set() if is_genuine else set(np.flatnonzero(wrong[0]).tolist()))


def test_small_numbers_are_not_shifted_digits() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"near": rng.normal(0, 0.05, 500), "skewed": rng.gamma(0.5, 2, 500)})
    assert not (jf.HiddenTreeForest(**LEARNER).fit(frame).joint_.check(frame).cells["p_wrong"] > 0.5).any()


@pytest.mark.parametrize("n", [200, 1_000])
def test_odd_values_among_few_distinct_ones_are_found(n: int) -> None:
    rng = np.random.default_rng(1)
    stars = rng.choice([1, 2, 3, 4, 5], n, p=[0.05, 0.1, 0.2, 0.4, 0.25])
    stars[[3, 50, 90]] = 999
    frame = pd.DataFrame({"stars": stars, "age": rng.integers(18, 80, n)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the learner says that 999 is far
        cells = jf.HiddenTreeForest(**LEARNER).fit(frame).joint_.check(frame).cells
    wrong = cells[cells["p_wrong"] > 0.5]
    assert set(zip(wrong["row"], wrong["column"], strict=True)) == {(3, "stars"), (50, "stars"), (90, "stars")}
