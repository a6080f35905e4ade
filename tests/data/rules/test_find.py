"""Rules that are found in tables: those that were planted, none by chance, and none that has exceptions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.data.rules.contradictions import contradicted
from jointforest.data.rules.find import find_rules
from jointforest.data.rules.rule import Equation, rules_from_list
from jointforest.learners.rows import read_training_rows
from jointforest.learners.rules import reduce_table, wanted_rules

from .tables import RULES, obedient


def _found(frame: pd.DataFrame) -> set[str]:
    return {str(rule) for rule in read_training_rows(frame, None).schema.rules if not rule.exceptions}


@pytest.mark.parametrize(("n", "seed"), [(800, 0), (3_000, 1), (30_000, 2)])
def test_planted_rules_are_found_and_no_others(n: int, seed: int) -> None:
    assert _found(obedient(n, seed)) == RULES


@pytest.mark.parametrize(("n", "seed"), [(800, 0), (30_000, 1)])
def test_rules_with_exceptions_are_not_found(n: int, seed: int) -> None:
    assert _found(obedient(n, seed, n_wrong=n // 200)) == set()


def test_few_exceptions_are_counted() -> None:
    frame = obedient(30_000, 0)
    frame.loc[[5, 77], "town"] = ["t0" if town != "t0" else "t1" for town in frame["town"][[5, 77]]]
    frame.loc[[3], "closed"] = frame["opened"][[3]] - pd.Timedelta("9D")
    rules = {str(rule): rule for rule in read_training_rows(frame, None).schema.rules}
    assert rules["shop -> town"].exceptions == 2 and rules["opened <= closed"].exceptions == 1
    assert all(not rule.is_enforced for rule in rules.values())


def test_supporting_rows_are_counted() -> None:
    frame = obedient(3_000, 0)
    rules = {str(rule): rule for rule in read_training_rows(frame, None).schema.rules}
    assert rules["total = net + fee"].rows == 3_000
    assert rules["shop -> town"].rows == 3_000 - frame["shop"].nunique()
    assert rules["delay, weight missing together"].rows == frame["delay"].isna().sum()


def test_contradictions_are_the_rows_that_were_spoilt() -> None:
    frame = obedient(2_000, 4)
    rows = read_training_rows(frame, None)
    X = rows.X.copy()
    for rule in rows.schema.rules:
        assert not contradicted(rule, rows.schema, X).any()
    index = rows.schema.index
    X[7, index("total")] += 1.0
    X[8, index("middle")] = X[8, index("low")] - 1.0
    X[9, index("high")] = X[9, index("middle")]
    X[10, index("delay")] = np.nan if rows.X[10, index("delay")] == rows.X[10, index("delay")] else 4.0
    X[11, index("town")] = (X[11, index("town")] + 1) % 4
    against = {str(rule): np.flatnonzero(contradicted(rule, rows.schema, X)).tolist() for rule in rows.schema.rules}
    assert against["total = net + fee"] == [7] and against["low <= middle"] == [8]
    assert 9 in against["middle < high"] and against["shop -> town"] == [11]
    assert against["delay missing iff state = 'gone'"] == [10] == against["delay, weight missing together"]


def test_orders_of_columns_that_do_not_move_together_are_left_out() -> None:
    """Reviews in a month are at most all reviews, which says next to nothing about either."""
    rng = np.random.default_rng(0)
    n = 3_000
    reviews = 1 + rng.poisson(rng.gamma(0.8, 20.0, n))
    monthly = np.where(reviews == 1, 1.0, np.round(np.minimum(reviews, reviews / rng.uniform(1.0, 60.0, n)), 2))
    low = rng.poisson(30, n)
    frame = pd.DataFrame({"reviews": reviews, "monthly": monthly, "low": low, "high": low + rng.geometric(0.2, n) - 1})
    assert (monthly <= reviews).all() and (monthly == reviews).mean() > 0.02
    assert _found(frame) == {"low <= high"}


def test_questions_that_were_not_asked_are_found_beside_cells_missing_by_chance() -> None:
    rng = np.random.default_rng(0)
    n = 1_000
    seen, film = rng.choice(["yes", "no"], n, p=[0.8, 0.2]), rng.choice(["a", "b"], n)
    other = rng.random(n) < 0.1
    frame = pd.DataFrame(
        {"seen": seen, "rank": rng.integers(1, 7, n).astype(float), "fan": rng.choice(["y", "n"], n), "film": film}
    )
    frame.loc[(seen == "no") | other, "rank"] = np.nan
    frame.loc[rng.random(n) < np.where(film == "a", 0.9, 0.1), "fan"] = None  # often, but not always
    rules = {str(rule): rule for rule in read_training_rows(frame, None).schema.rules}
    assert set(rules) == {"rank missing if seen = 'no'"}
    rule, known = rules["rank missing if seen = 'no'"], frame["rank"].notna()
    assert rule.rows == (seen == "no").sum() + known.sum()  # in which it could have failed
    frame.loc[np.flatnonzero(seen == "no")[0], "rank"] = 3.0
    rows = read_training_rows(frame, None)
    assert not rows.schema.rules
    assert contradicted(rule, rows.schema, rows.X).tolist() == ((seen == "no") & frame["rank"].notna()).tolist()


def test_agreement_by_chance_is_no_rule() -> None:
    for n in (3, 10, 40, 400):
        rng = np.random.default_rng(n)
        frame = pd.DataFrame(rng.integers(0, 2, (n, 30)), columns=[f"x{j}" for j in range(30)])
        frame["key"] = rng.permutation(n)
        frame["steps"] = np.arange(n) // 7
        rows = read_training_rows(frame, None)
        rules = find_rules(rows.schema, rows.X)
        assert not [rule for rule in rules if "key" in rule.columns]
        assert not rules or n < 40  # of a few rows, equal columns are a fact


@pytest.mark.parametrize("kind", ["more often", "of groups"])
@pytest.mark.parametrize(("n", "d"), [(200, 60), (400, 40), (1_000, 30)])
def test_cells_that_are_missing_more_often_follow_no_range(kind: str, n: int, d: int) -> None:
    found = 0
    for seed in range(3):
        rng = np.random.default_rng([seed, n])
        X = np.round(10.0 * rng.normal(size=(n, d)) + 50.0)
        for j in range(d // 2):
            k, share = d // 2 + int(rng.integers(d - d // 2)), rng.choice([0.2, 0.5, 0.8])
            if kind == "of groups":  # columns that have one value in each of twelve groups
                group = rng.integers(0, 12, n)
                X[:, k] = np.round(10.0 * rng.normal(size=12)[group] + 50.0)
                X[(rng.random(12)[group] < share) & (rng.random(n) < 0.97), j] = np.nan
            else:
                z = (X[:, k] - np.quantile(X[:, k], 1.0 - share)) / 10.0
                X[rng.random(n) < 1.0 / (1.0 + np.exp(-rng.choice([1.0, 2.0, 4.0, 8.0]) * z)), j] = np.nan
        frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(d)])
        found += sum("=" in rule.replace(" = ", "") for rule in _found(frame))
    assert found == 0


@pytest.mark.parametrize("extra", [0.0, 0.2, 0.5])
def test_a_range_is_found_beside_cells_missing_by_chance(extra: float) -> None:
    rng = np.random.default_rng(0)
    X = np.round(12.0 * rng.normal(size=(1_000, 30)) + 50.0)
    X[(X[:, 3] < 45.0) | (rng.random(1_000) < extra), 0] = np.nan
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(30)])
    assert _found(frame) == {f"x0 missing {'if' if extra else 'iff'} x3 <= 44"}


@pytest.mark.parametrize("hidden", [0.05, 0.2])
def test_missing_cells_hide_no_rule(hidden: float) -> None:
    frame = obedient(20_000, 3)
    gone = np.random.default_rng(0).random(frame.shape) < hidden
    gone[:, [frame.columns.get_loc(name) for name in ("delay", "weight", "state")]] = False
    assert _found(frame.mask(gone)) == RULES


def test_numbers_are_converted_and_copied() -> None:
    rng = np.random.default_rng(0)
    miles = np.round(rng.gamma(2.0, 40.0, 2_000), 1)
    celsius = np.round(rng.normal(15.0, 8.0, 2_000), 1)
    x = rng.normal(size=2_000)
    frame = pd.DataFrame({"miles": miles, "km": np.round(1.609 * miles, 2), "celsius": celsius,
                          "fahrenheit": np.round(1.8 * celsius + 32.0, 2), "x": x, "copy": x})  # fmt: skip
    assert _found(frame) >= {"km = 1.609 * miles", "fahrenheit = 1.8 * celsius + 32", "copy = x"}


def test_the_reading_says_rules_and_files_keep_them(tmp_path) -> None:
    frame = obedient(1_000, 0)[["shop", "town", "a"]]
    joint = jf.JointTree(random_state=0).fit(frame).joint_
    joint.save(tmp_path / "m.joint")
    again = jf.load(tmp_path / "m.joint")
    assert again.rules == joint.rules and again.reading == joint.reading
    assert again.reading.notice == "rule: shop -> town (985 rows; not enforced)"
    assert again.info()["rules"] == [{"rule": "shop -> town", "rows": 985, "exceptions": 0, "enforced": False}]


def test_rules_from_files_are_checked() -> None:
    rules = [rule.to_dict() for rule in read_training_rows(obedient(1_000, 0), None).schema.rules]
    names = obedient(1, 0).columns.tolist()
    assert [rule.to_dict() for rule in rules_from_list(rules, names)] == rules
    broken = [rules[0] | {"kind": "law"}, rules[0] | {"more": 1}, rules[0] | {"rows": -1},
              next(rule for rule in rules if rule["kind"] == "equation") | {"terms": [[0.0, "net"]]},
              next(rule for rule in rules if rule["kind"] == "order") | {"low": "nowhere"}]  # fmt: skip
    missing = next(rule for rule in rules if rule["kind"] == "missing where")
    in_range = missing | {"values": ((None, 3),)}
    assert str(rules_from_list([in_range], names)[0]).endswith(f"iff {missing['of'][0]} <= 3")
    broken += [missing | {"values": values} for values in (((None, None),), ((1, 3),), ((None, 1), (2, None)))]
    for rule in broken:
        with pytest.raises(ValueError, match=r"rules\[0\]"):
            rules_from_list([rule], names)


def test_rare_combinations_are_no_rule_if_independent_columns_would_often_have_them() -> None:
    count = np.array([[9, 3, 3, 3], [1_500, 400, 400, 400], *[[1_000, 0, 0, 0]] * 8])

    def found(count: np.ndarray) -> set[str]:
        month, day = np.repeat(np.indices(count.shape).reshape(2, -1), count.ravel(), axis=1)
        order = np.random.default_rng(0).permutation(len(month))
        names = {"month": np.char.add("m", month.astype(str)), "day": np.char.add("d", day.astype(str))}
        return _found(pd.DataFrame({name: x[order] for name, x in names.items()}))

    assert "combinations(month, day)" in found(count)
    count[9] = [997, 3, 0, 0]  # as rare, where independent columns would have 38 rows
    assert not found(count)
    count[9] = [988, 12, 0, 0]
    assert not found(count)  # as the first month has few rows still
    count[0] *= 4
    assert "combinations(month, day)" in found(count)


def _written(x: np.ndarray, digits: int) -> np.ndarray:
    """Numbers as a file has them that writes so many significant digits."""
    return np.array([float(f"{v:.{digits - 1}e}") for v in x.tolist()])


def _pixels(n: int, digits: int, seed: int = 0) -> pd.DataFrame:
    """Means of nine whole numbers in three columns, their mean and differences, all written with few digits."""
    rng = np.random.default_rng(seed)
    red, green, blue = (rng.integers(0, 1_300, n) * rng.choice([1, 10], n) / 9 for _ in range(3))
    columns = {"red": red, "green": green, "blue": blue, "mean": (red + green + blue) / 3, "excess": 2 * red - green}
    columns["other"] = columns["mean"] + rng.normal(0.0, 5.0, n)  # a near miss
    return pd.DataFrame({name: _written(x, digits) for name, x in columns.items()})


@pytest.mark.parametrize("digits", [5, 6, 7])
def test_equations_of_cells_with_few_digits_are_found(digits: int) -> None:
    frame = _pixels(3_000, digits)
    rows = read_training_rows(frame, None)
    assert [column.digits for column in rows.schema.columns] == [digits] * 6
    equations = [rule for rule in rows.schema.rules if isinstance(rule, Equation)]
    assert len(equations) == 2 and {"red", "green", "excess"} in [set(rule.columns) for rule in equations]
    assert sum("mean" in rule.columns for rule in equations) == 1
    assert not any("other" in rule.columns for rule in equations)
    for rule in equations:
        assert rule.rows == 3_000
        off = frame[rule.column] - sum(c * frame[name] for c, name in rule.terms) - rule.constant
        most = 10.0 ** (5 - digits) * sum(abs(c) for c in (1.0, *(c for c, _ in rule.terms)))  # of numbers up to 99,999
        assert off.abs().max() <= rule.tolerance <= most
        assert str(jf.rule(str(rule))) == str(rule)


def test_a_change_beyond_the_rounding_is_an_exception() -> None:
    frame = _pixels(3_000, 6)
    frame.loc[17, "excess"] += 0.1
    assert not any("excess" in rule.columns for rule in read_training_rows(frame, None).schema.rules)


@pytest.mark.parametrize("n", [200, 2_500])
@pytest.mark.parametrize("share", [0.3, 0.7])
def test_cells_that_are_missing_at_one_value_of_an_amount(n: int, share: float) -> None:
    rng = np.random.default_rng(n)
    open_ = np.where(rng.random(n) < share, 0.0, np.rint(np.exp(rng.normal(4.0, 1.0, n))) + 1.0)
    reason = np.where(open_ > 0.0, rng.choice(["late", "dispute"], n), None)
    frame = pd.DataFrame({"open": open_, "reason": reason, "net": rng.normal(50.0, 9.0, n).round(1)})
    assert "reason missing iff open = 0" in _found(frame)


def test_sums_that_share_parts_are_both_kept() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(1, 90, (400, 5)), columns=list("abcde"))
    part = frame[list("abc")].sum(axis=1)
    frame = frame.assign(y=part + frame["d"], z=part + frame["e"], half=frame["e"] / 2)
    assert _found(frame) == {"y = a + b + c + d", "z = a + b + c + e", "half = 0.5 * e"}


def test_two_sums_of_one_column_are_both_named_by_it() -> None:
    rng = np.random.default_rng(0)
    net, rate = np.rint(np.exp(rng.normal(4.0, 1.0, 600))), rng.choice([0.07, 0.19], 600)
    gross = net + np.rint(rate * net)
    paid = np.where(rng.random(600) < 0.7, gross, np.rint(gross * rng.random(600)))
    columns = {"net": net, "tax": gross - net, "gross": gross, "paid": paid, "open": gross - paid}
    frame = pd.DataFrame(columns)
    assert _found(frame) == {"gross = net + tax", "gross = paid + open"}
    joint = jf.HiddenTreeForest(n_estimators=2, n_states=8, rules="all", random_state=0).fit(frame).joint_
    drawn = joint.sample(500, random_state=0)
    assert all(rule.is_enforced for rule in joint.rules)
    assert (drawn.gross == drawn.net + drawn.tax).all()
    assert (drawn.gross == drawn.paid + drawn.open).all()


def test_two_sums_of_one_column_make_no_impossible_values() -> None:
    rng = np.random.default_rng(1)
    total = 20.0 + np.rint(np.exp(rng.normal(4.0, 1.0, 600)))
    tax = np.rint(total * rng.choice([0.05, 0.15], 600))
    voucher = np.where(rng.random(600) < 0.2, rng.choice([5.0, 10.0, 20.0], 600), 0.0)
    paid = np.where(rng.random(600) < 0.7, total, np.rint(total * rng.random(600)))
    invoices = {"net": total - tax, "tax": tax, "total": total}

    def sums(columns: dict[str, np.ndarray], rules: str) -> dict[str, int]:
        """The columns that are sums, and how many coordinates each is a sum of."""
        rows = read_training_rows(pd.DataFrame(columns), None)
        reduced = reduce_table(wanted_rules(rules, rows.schema, rows.X), rows.X)
        assert reduced is not None
        of = reduced.coordinates
        assert of.rows(reduced.of_rows(rows.X)[:, : len(of.inner.columns)]) == pytest.approx(rows.X)
        return {of.schema.names[j]: len(of.sources[j].terms) for j in of.sums}

    # what is deducted is small: sums of two parts each, by default too
    small = {**invoices, "card": total - voucher, "voucher": voucher}
    assert sums(small, "auto") == sums(small, "all") == {"net": 2, "card": 2}
    # some of total - open would be negative, so that this sum is enforced only where asked, as paid + open
    large = {**invoices, "paid": paid, "open": total - paid}
    assert sums(large, "auto") == {"total": 2} and sums(large, "all") == {"total": 2, "net": 3}


@pytest.mark.parametrize("apart", [0.123, 0.007, 1.001])
def test_moments_that_are_parts_of_a_second_apart(apart: float) -> None:
    """Moments since 1970 have seven decimals of a second, of which the last ones are rounding."""
    start = pd.Series(pd.to_datetime("2024-01-01") + pd.to_timedelta(np.arange(300) ** 2 % 86_399, unit="s"))
    table = pd.DataFrame({"start": start, "end": start + pd.to_timedelta(apart, unit="s"), "x": np.arange(300) % 7})
    assert f"end = start + {apart}" in [
        str(rule) for rule in jf.HiddenTreeForest(n_states=2, max_iter=1, random_state=0).fit(table).joint_.rules
    ]
