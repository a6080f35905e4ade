"""Every answer of a ruled distribution, beside counting the rows of the table that it makes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from jointforest.data.evidence import Evidence, build
from jointforest.inference import comparison
from jointforest.inference.comparison import RELATIONS, LinearRelation, probability_of_relation
from jointforest.models.ruled import translate

from .cases import OUTER, Case, random_case, random_evidence

D = len(OUTER.columns)
NUMBERS = [j for j, column in enumerate(OUTER.columns) if not column.is_categorical]
DELAY = OUTER.index("delay")


def _cases(n: int, seed: int, possible: bool = True) -> list[tuple[Case, Evidence]]:
    rng = np.random.default_rng(seed)
    found = []
    while len(found) < n:
        case = random_case(int(rng.integers(5)))
        evidence = random_evidence(rng, case.table.rows, int(rng.integers(0, 7)))
        if not possible or case.table.log_density(evidence)[0] > -np.inf:
            found.append((case, evidence))
    return found


def test_log_density() -> None:
    for case, evidence in _cases(150, 0, possible=False):
        expected = case.table.log_density(evidence)
        assert np.allclose(case.ruled.log_density(evidence), expected, rtol=1e-9)
        assert np.isclose(case.ruled.observe(evidence).log_evidence, expected[0], rtol=1e-9)


def test_log_density_of_many_rows_at_once() -> None:
    rng = np.random.default_rng(1)
    case = random_case(3)
    X = case.table.rows.copy()
    X[rng.random(X.shape) < 0.5] = np.nan
    evidence = Evidence.of_values(X)
    assert np.allclose(case.ruled.log_density(evidence), case.table.log_density(evidence), rtol=1e-9)
    known = ~np.isnan(X)
    each = case.ruled.log_density_without_each(evidence, known)
    for j in range(D):
        assert np.allclose(each[known[:, j], j], case.table.log_density(evidence.without(j))[known[:, j]], rtol=1e-9)


@pytest.mark.parametrize("size", [1, 4])
def test_many_rows_are_translated_in_pieces(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    case, rng = random_case(3), np.random.default_rng(2)
    X = case.table.rows.copy()
    X[rng.random(X.shape) < 0.5] = np.nan
    evidence = Evidence.of_values(X)
    filled = case.ruled.impute(evidence)[0]
    monkeypatch.setattr(translate, "_PIECE_ROWS", size * translate.DRAWS)
    assert len(list(case.ruled.rows(evidence))) > 2
    assert np.allclose(case.ruled.log_density(evidence), case.table.log_density(evidence), rtol=1e-9)
    assert np.allclose(case.ruled.impute(evidence)[0], filled, equal_nan=True)
    rows = {row.tobytes() for row in case.table.rows}
    drawn = case.ruled.sample(evidence, 2, 0, False)
    asked = np.repeat(X, 2, axis=0)
    assert np.array_equal(drawn[~np.isnan(asked)], asked[~np.isnan(asked)])
    assert all(row.tobytes() in rows for row in drawn)


def _counted(case: Case, evidence: Evidence, j: int) -> tuple[np.ndarray, np.ndarray]:
    """Values of column j and their probabilities, among the rows in which it has one."""
    share, x = case.table.shares(evidence)[0], case.table.rows[:, j]
    some = ~np.isnan(x) & (share > 0)
    return x[some], share[some] / share[some].sum() if some.any() else share[some]


def test_answers_about_columns() -> None:
    points = np.arange(-1.0, 34.0)
    for case, evidence in _cases(40, 2):
        state = case.ruled.observe(evidence)
        for j, column in enumerate(OUTER.columns):
            x, p = _counted(case, evidence, j)
            if not len(x):
                continue
            if column.is_categorical:
                expected = p @ (x[:, None] == np.arange(len(column.levels)))
                assert np.allclose(state.level_probabilities(j)[0], expected)
                continue
            mean, variance = state.moments(j)
            assert np.isclose(mean[0], p @ x) and np.isclose(variance[0], p @ (x - p @ x) ** 2, atol=1e-9)
            assert np.allclose(state.cdf(j, points)[0], p @ (x[:, None] <= points))
            assert np.allclose(state.pdf(j, points)[0], p @ (x[:, None] == points))
            cuts = np.array([1.5, 3.5, 8.5])
            bins = np.searchsorted(cuts, x)[:, None] == np.arange(4)
            assert np.allclose(state.histogram(j, cuts)[0], p @ bins, atol=1e-9)
            order = np.argsort(x)
            below = np.cumsum(p[order])
            q = np.array([0.1003, 0.5004, 0.9001])
            expected = x[order][np.searchsorted(below, q - 1e-12)]
            assert np.allclose(state.quantile(j, q)[0], expected)


def test_covariances() -> None:
    rng = np.random.default_rng(0)
    for case, evidence in _cases(25, 3):
        state = case.ruled.observe(evidence)
        share, rows = case.table.shares(evidence)[0], case.table.rows
        for _ in range(6):
            a, b = rng.choice([j for j in NUMBERS if j != DELAY], 2, replace=False).tolist()
            x, y = rows[:, a], rows[:, b]
            expected = share @ (x * y) - (share @ x) * (share @ y)
            assert np.isclose(state.covariance(a, b)[0], expected, atol=1e-8)


def test_draws_have_the_law_of_the_rows() -> None:
    for case, evidence in _cases(12, 4):
        share, rows = case.table.shares(evidence)[0], case.table.rows
        m = 2_000
        drawn = case.ruled.sample(evidence, m, 7, False)
        distinct, place = np.unique(rows, axis=0, return_inverse=True)
        p = np.bincount(place.reshape(-1), share)
        key = {row.tobytes(): k for k, row in enumerate(distinct)}
        count = np.bincount([key[row.tobytes()] for row in drawn], minlength=len(p))
        assert (count[p == 0] == 0).all()
        some = p * m > 1
        if some.sum() > 1:
            rest = np.append(p[some] * m, max(p[~some].sum() * m, 1e-9))
            seen = np.append(count[some], count[~some].sum())
            assert stats.chisquare(seen, rest * seen.sum() / rest.sum()).pvalue > 1e-4


def test_draws_of_many_rows_keep_their_cells() -> None:
    case = random_case(1)
    rng = np.random.default_rng(0)
    X = case.table.rows.copy()
    X[rng.random(X.shape) < 0.6] = np.nan
    evidence = Evidence.of_values(X)
    drawn = case.ruled.sample(evidence, 3, 0, False)
    asked = np.repeat(X, 3, axis=0)
    assert np.array_equal(drawn[~np.isnan(asked)], asked[~np.isnan(asked)])
    rows = {row.tobytes() for row in case.table.rows}
    assert all(row.tobytes() in rows for row in drawn)


def test_conditioned_and_marginal_distributions() -> None:
    rng = np.random.default_rng(5)
    done = 0
    for case, evidence in _cases(40, 5):
        again = random_evidence(rng, case.table.rows, 3)
        expected = case.table.condition(evidence)
        found = case.ruled.condition(evidence)
        before = expected.log_density(again)
        assert np.allclose(found.log_density(again), before, rtol=1e-9)
        done += before[0] > -np.inf
        columns = sorted(rng.choice(D, 4, replace=False).tolist())
        X = case.table.rows[:, columns]
        some = Evidence.of_values(X)
        expected = case.table.marginalize(columns).log_density(some)
        assert np.allclose(case.ruled.marginalize(columns).log_density(some), expected, rtol=1e-9)
    assert done > 5


def test_missing_cells_are_where_the_rule_says() -> None:
    for case, evidence in _cases(30, 6):
        share = case.table.shares(evidence)[0]
        expected = share @ np.isnan(case.table.rows[:, DELAY])
        said = not np.isnan(evidence.value[0, DELAY]) or evidence.cell_regions()[0, DELAY] >= 0
        if not said:
            assert np.isclose(case.ruled.observe(evidence).missing_probabilities([DELAY, 0])[0], expected)
        for is_missing in (True, False):
            given, log_p = case.ruled.given_missing(DELAY, is_missing)
            fits = np.isnan(case.table.rows[:, DELAY]) == is_missing
            assert np.isclose(np.exp(log_p), case.table.weight[fits].sum())
            assert given is not None
            with np.errstate(divide="ignore"):
                both = np.log(case.table.posterior(evidence)[0][fits].sum())
            assert np.isclose(given.log_density(evidence)[0] + log_p, both)


def test_filled_rows_obey_the_rules() -> None:
    case = random_case(2)
    rng = np.random.default_rng(0)
    X = case.table.rows.copy()
    X[rng.random(X.shape) < 0.5] = np.nan
    filled, background = case.ruled.impute(Evidence.of_values(X))
    assert not np.isnan(background).any()
    named = dict(zip(OUTER.names, filled.T, strict=True))
    assert (named["end"] >= named["start"]).all() and (named["later"] >= named["end"]).all()
    assert np.array_equal(named["total"], named["a"] + 2 * named["b"] + named["distance"] + 1)
    assert np.array_equal(named["double"], 10 - 2 * named["a"])
    assert np.array_equal(np.isnan(named["delay"]), named["state"] == 1)
    seen = {tuple(row) for row in case.table.rows[:, :3]}
    assert all(tuple(row) in seen for row in filled[:, :3])
    assert np.array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        ({"city": "Bonn", "country": "FR"}, "city -> country"),
        ({"city": "Bonn", "distance": 5}, "combinations(city, distance)"),
        ({"start": 5, "end": 4}, "start <= end"),
        ({"start": 3, "later": 2}, "start <= end"),
        ({"a": 1, "b": 1, "distance": 2, "total": 5}, "total = a + 2 * b + distance + 1"),
        ({"a": 1, "double": 7}, "double = -2 * a + 10"),
        ({"state": "gone", "delay": 3}, "delay missing iff state = 'gone'"),
    ],
)
def test_contradictions_have_probability_0_and_name_the_rule(row: dict[str, object], rule: str) -> None:
    case = random_case(0)
    evidence = build(OUTER, conditions=row)
    assert case.ruled.log_density(evidence)[0] == -np.inf
    assert np.isnan(case.ruled.observe(evidence).background_weight()[0])
    assert np.isnan(case.ruled.sample(evidence, 2, 0, False)).all()
    said = case.ruled.why_impossible(evidence)
    assert "contradicts the rule" in said
    assert rule in said
    with pytest.raises(ValueError, match="contradicts"):
        case.ruled.condition(evidence)


def test_a_combination_that_was_never_seen_counts_as_the_nearest_at_a_penalty() -> None:
    """No combination has the distance 9, so those of the country have most of the values."""
    case = random_case(0)
    seen = case.ruled.log_density(build(OUTER, conditions={"country": "FR", "start": 3}))[0]
    new = case.ruled.log_density(build(OUTER, conditions={"country": "FR", "distance": 9, "start": 3}))[0]
    assert np.isclose(new, seen - np.log(101))


def test_sums_without_few_cells_are_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    from jointforest.models.ruled import sums, translate

    exact = [(case, evidence, case.ruled.log_density(evidence)) for case, evidence in _cases(10, 8)]
    monkeypatch.setattr(translate, "_MOST_ROWS", 2)
    monkeypatch.setattr(sums, "_MOST_ROWS", 2)
    for case, evidence, log_p in exact:
        if all(rows.is_exact.all() for _, rows in case.ruled.rows(evidence)):
            continue
        assert np.isclose(case.ruled.log_density(evidence)[0], log_p[0], atol=0.3)
        mean = case.ruled.observe(evidence).moments(3)[0][0]
        x, p = _counted(case, evidence, 3)
        assert abs(mean - p @ x) < 0.5


def test_comparisons_of_columns() -> None:
    """Relations between two and three columns, with and without rounding to bounds that are totals."""
    rng, n_exact = np.random.default_rng(7), 0
    for case, evidence in _cases(150, 8):
        share, rows = case.table.shares(evidence)[0], case.table.rows
        columns = rng.choice([j for j in NUMBERS if j != DELAY], int(rng.choice([2, 2, 3])), replace=False).tolist()
        coefficients = rng.choice([1.0, -1.0, 2.0, -0.5], len(columns))
        op, total = str(rng.choice(list(RELATIONS))), rows[:, columns] @ coefficients
        relation = LinearRelation(tuple(columns), tuple(coefficients.tolist()), op, float(rng.choice([*total, 0.3])))
        found = probability_of_relation(case.ruled, evidence, relation, 400, 0)
        expected = share @ RELATIONS[op](total, relation.bound)
        n_exact += found.method == "exact"
        error = 1e-9 if found.method == "exact" else 5.0 * found.standard_error + 0.02
        assert abs(found.value - expected) < error
    assert n_exact > 100


def test_an_order_of_long_columns_is_compared_by_its_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any cell of its columns being summed: the same where these are too many."""
    monkeypatch.setattr(comparison, "_MOST_CELLS", 0)
    start, end, later = (OUTER.index(name) for name in ("start", "end", "later"))
    relations = [
        LinearRelation((end, start), (1.0, -1.0), ">", 2.0), LinearRelation((start, end), (-2.0, 2.0), "<=", 7.0),
        LinearRelation((later, end), (0.5, -0.5), "=", 1.0), LinearRelation((later, end), (1.0, -1.0), "!=", 3.0),
    ]  # fmt: skip
    for case, evidence in _cases(40, 9):
        share, rows = case.table.shares(evidence)[0], case.table.rows
        for relation in relations:
            holds = RELATIONS[relation.op](rows[:, relation.column] @ np.array(relation.coefficient), relation.bound)
            found = probability_of_relation(case.ruled, evidence, relation, 4, 0)
            assert found.method == "exact" and abs(found.value - share @ holds) < 1e-9
