"""Scales learned from columns of every kind: what they promise, and what they keep of the values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jointforest.data.discretization.base_density import cdf
from jointforest.data.discretization.check import check_scale
from jointforest.data.discretization.counts import count_places
from jointforest.data.discretization.discretizer import Scale, codes_of
from jointforest.data.discretization.learn import _far_above, _gaps, learn_scale
from jointforest.data.schema import Column

NUMBER = Column("x", "continuous", "float64")
WHOLE = Column("x", "integer", "int64", step=1.0)
EVERYWHERE = np.array([-1.7e308, -1e300, -1e9, -1.0, -5e-324, 0.0, 5e-324, 1e-300, 0.5, 1.0, 1e9, 1e300, 1.7e308])


@st.composite
def columns(draw: st.DrawFn) -> tuple[Column, np.ndarray]:
    """A numeric column and its values."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.sampled_from([1, 2, 3, 20, 300]))
    kind = draw(st.sampled_from(["continuous", "tied", "mixed", "integer", "tenths", "heavy", "hours"]))
    x = random.standard_t(2, n) * draw(st.sampled_from([1.0, 1e-300, 1e300]))
    if kind == "tied":
        x = random.choice(x, n)
    elif kind == "mixed":
        x = np.where(random.random(n) < 0.5, x[0], x)
        return replace(NUMBER, kind="mixed", atoms=tuple(sorted({x[0], 0.0, 7.0}))), x
    elif kind == "integer":
        return WHOLE, random.geometric(draw(st.sampled_from([0.5, 0.05, 1e-5])), n).astype(float)
    elif kind == "tenths":
        return replace(NUMBER, kind="rounded", step=0.1, origin=0.05), random.integers(-20, 20, n) * 0.1 + 0.05
    elif kind == "hours":
        return Column("t", "datetime", "", step=3600.0, origin=1.7e9), random.integers(0, 10**6, n) * 3600.0
    elif kind == "heavy":
        x = np.full(n, x[0])
    return NUMBER, x


@given(columns(), st.sampled_from([1, 2, 5, 64]))
def test_every_column_gets_a_sound_scale(case: tuple[Column, np.ndarray], n_codes: int) -> None:
    column, x = case
    scale = learn_scale(column, x, None, n_codes)
    check_scale(scale, column)
    assert 1 <= scale.n_codes <= n_codes
    assert np.array_equal(scale.hi[:-1], scale.lo[1:])  # the line without gaps
    assert (scale.lo[0], scale.hi[-1]) == (-np.inf, np.inf)
    code, log_base = codes_of(scale, np.concatenate([x, EVERYWHERE]))
    assert np.isfinite(log_base).all()
    assert set(code[: len(x)].tolist()) == set(range(scale.n_codes)) or column.atoms
    order = np.argsort(x)
    assert np.all(np.diff(code[order]) >= 0)
    below = cdf(scale, np.sort(EVERYWHERE)).sum(axis=1)
    assert np.all(np.diff(below) >= -1e-12)


@given(columns(), st.integers(0, 2**32))
def test_weights_and_missing_cells(case: tuple[Column, np.ndarray], seed: int) -> None:
    column, x = case
    random = np.random.default_rng(seed)
    plain = learn_scale(column, x, None, 8)
    shuffled = random.permutation(np.append(x, np.full(3, np.nan)))
    weight = np.where(np.isnan(shuffled), 1.0, 2.5)
    same = learn_scale(column, np.append(shuffled, 1e5), np.append(weight, 0.0), 8)
    np.testing.assert_array_equal(same.lo, plain.lo)
    np.testing.assert_array_equal(same.code, plain.code)
    np.testing.assert_allclose(same.log_mass, plain.log_mass, rtol=1e-9, atol=1e-12)


def shares(scale: Scale, x: np.ndarray) -> np.ndarray:
    """Share of the rows in each code."""
    return np.bincount(codes_of(scale, x)[0], minlength=scale.n_codes) / len(x)


def test_bins_of_equal_mass_and_heavy_values_alone() -> None:
    random = np.random.default_rng(0)
    x = random.lognormal(size=6400)
    np.testing.assert_allclose(shares(learn_scale(NUMBER, x, None, 64), x), 1 / 64, atol=1 / 6400)
    mixed = replace(NUMBER, kind="mixed", atoms=(0.0,))
    x = np.where(random.random(6400) < 0.4, 0.0, x)
    scale = learn_scale(mixed, x, None, 32)
    code, log_base = codes_of(scale, np.zeros(1))
    alone = scale.code == code[0]
    assert scale.is_point[alone].any() and log_base[0] == pytest.approx(0.0, abs=1e-4)
    np.testing.assert_allclose(np.delete(shares(scale, x), code[0]), np.mean(x > 0) / 31, atol=2 / 6400)
    hours = np.where(random.random(5000) < 0.5, 40.0, random.integers(1, 99, 5000))
    scale = learn_scale(WHOLE, hours, None, 32)
    code = codes_of(scale, np.array([39.0, 40.0, 41.0]))[0]
    assert code[0] < code[1] < code[2]
    assert shares(scale, hours)[code[1]] == np.mean(hours == 40)


@pytest.mark.parametrize("column", [NUMBER, WHOLE])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_tails_do_not_cross_a_hard_end(column: Column, sign: float) -> None:
    x = np.arange(1.0, 60.0, 3.0) if column is WHOLE else np.linspace(0.2, 3.0, 20)
    column = replace(column, **({"lower": 0.0} if sign > 0 else {"upper": 0.0}))
    scale = learn_scale(column, sign * x, None, 4)
    check_scale(scale, column)
    end = scale.hi <= 0 if sign > 0 else scale.lo >= 0
    assert end.sum() == 1 and scale.share[end][0] < 1e-5
    reach = (scale.lo < sign * x[0] - 1e-9) & (scale.hi <= sign * x[0]) if sign > 0 else scale.lo >= sign * x[0]
    assert scale.share[reach].sum() > 0.05
    # an offset that the tail would never reach takes nothing away
    assert np.isfinite(learn_scale(column, sign * (x + 1e6), None, 4).lo).sum() < np.isfinite(scale.lo).sum()


def test_few_values_have_a_bin_each() -> None:
    years = np.repeat([1.0, 2.0, 3.0, 9.0, 16.0], [12, 5000, 11, 4000, 30])
    scale = learn_scale(WHOLE, years, None, 64)
    assert codes_of(scale, np.array([1.0, 2.0, 3.0, 9.0, 16.0]))[0].tolist() == [0, 1, 2, 3, 4]
    # what lies between belongs to the lower one, and is possible
    code, log_base = codes_of(scale, np.array([5.0]))
    assert code[0] == 2 and -20 < log_base[0] < -5


def test_base_density_is_that_of_the_values() -> None:
    random = np.random.default_rng(1)
    x, new = random.gamma(2.0, 1.0, (2, 20_000))
    scale = learn_scale(NUMBER, x, None, 64)
    code, log_base = codes_of(scale, new)
    log_density = log_base + np.log(shares(scale, x))[code]
    truth = np.log(new) - new
    assert np.mean(truth - log_density) < 0.02
    _, mean, var = scale.moments
    share = shares(scale, x)
    total = float(share @ mean)
    assert total == pytest.approx(x.mean(), rel=2e-3)
    assert float(share @ (var + (mean - total) ** 2)) == pytest.approx(x.var(), rel=1e-2)


@pytest.mark.parametrize("n", [60, 400, 3_000])
@pytest.mark.parametrize("draw", ["normal", "lognormal", "exponential", "uniform", "grid", "two groups", "a far value"])
def test_columns_have_the_mean_and_the_variance_of_their_rows(draw: str, n: int) -> None:
    random = np.random.default_rng(n)
    x = {
        "normal": random.normal(5.0, 2.0, n),
        "lognormal": random.lognormal(0.0, 1.0, n),
        "exponential": random.exponential(1e-6, n),
        "uniform": 1e9 + random.random(n),
        "grid": np.rint(random.gamma(2.0, 15.0, n)),
        "two groups": np.where(random.random(n) < 0.1, 300.0, 100.0) + random.normal(0.0, 5.0, n),
        "a far value": np.append(random.normal(0.0, 1.0, n - 1), 8.0),
    }[draw]
    scale = learn_scale(WHOLE if draw == "grid" else NUMBER, x, None, max(16, round(n**0.5)), 0.5)
    share, (_, mean, variance) = shares(scale, x), scale.moments
    found = float(share @ mean)
    assert found == pytest.approx(x.mean(), abs=0.1 * x.std() / np.sqrt(n))
    assert np.sqrt(share @ (variance + (mean - found) ** 2)) == pytest.approx(x.std(), rel=0.03)


@pytest.mark.parametrize("n", [200, 900, 3_000])
@pytest.mark.parametrize("step", [0.0, 1.0])
def test_no_code_lies_on_both_sides_of_a_gap(n: int, step: float) -> None:
    """A tenth of the rows lies far above the others: these have codes of their own, and nothing lies between."""
    random = np.random.default_rng(n)
    x = np.concatenate([random.uniform(60.0, 159.0, n - n // 10), random.uniform(300.0, 319.0, n // 10)])
    x = np.rint(x) if step else x
    scale = learn_scale(WHOLE if step else NUMBER, x, None, 16, 0.5)
    code = codes_of(scale, x)[0]
    assert not set(code[x < 200]) & set(code[x > 200])
    below = cdf(scale, np.array([x[x < 200].max() + 10.0, 299.0 - 10.0])) @ shares(scale, x)
    assert below == pytest.approx(np.mean(x < 200), abs=1e-3)


@pytest.mark.parametrize("draw", ["normal", "lognormal", "exponential", "uniform", "pareto"])
def test_columns_without_a_gap_have_none(draw: str) -> None:
    for seed in range(40):
        random = np.random.default_rng(seed)
        n = int(random.integers(30, 2_000))
        x = random.pareto(1.5, n) if draw == "pareto" else getattr(random, draw)(size=n)
        assert not _gaps(count_places(NUMBER, x, None), 4).any()


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_heap_at_the_end_of_a_piece_does_not_rule_out_what_is_beside_it(sign: float) -> None:
    """Nine rows at 0 are no atom, and the next value is far: what is between them was not seen, but may come."""
    x = sign * np.concatenate([np.zeros(9), np.linspace(0.5, 1.0, 255)])
    scale = learn_scale(NUMBER, x, None, 64)
    _, log_base = codes_of(scale, sign * np.linspace(0.001, 0.499, 50))
    assert log_base.min() > -35.0


def test_tails() -> None:
    random = np.random.default_rng(2)
    x = random.normal(size=999)
    scale = learn_scale(NUMBER, x, None, 10)
    share = shares(scale, x)
    beyond = 1 - float(cdf(scale, np.array([x.max()]))[0] @ share)
    assert beyond == pytest.approx(0.5 / 1000, rel=0.02)
    assert float(cdf(scale, np.array([np.nextafter(x.min(), -9)]))[0] @ share) == pytest.approx(0.5 / 1000, rel=0.02)
    # chance ties at the greatest of few cells are no hard end
    scale = learn_scale(WHOLE, np.repeat([40.0, 41.0, 42.0, 43.0, 44.0], [12, 30, 28, 14, 4]), None, 10)
    assert 1 - cdf(scale, np.array([44.0]))[0, -1] > 0.1
    # a hard end: a heap of the greatest value
    scale = learn_scale(WHOLE, np.append(np.arange(900), np.full(100, 900.0)), None, 10)
    assert 0 < 1 - cdf(scale, np.array([900.0]))[0, -1] < 1e-7
    tail = scale.hi == np.inf
    assert scale.rate[tail][0] > 0


@pytest.mark.parametrize("value", [0.0, 5.0, -1e300, 1e-300, 1.7e308])
@pytest.mark.parametrize("column", [NUMBER, replace(NUMBER, kind="mixed", atoms=(0.0,)), WHOLE])
@pytest.mark.parametrize("n", [1, 20])
def test_constant_columns(value: float, column: Column, n: int) -> None:
    if column is WHOLE and abs(value) > 1e15:
        value = 7.0
    scale = learn_scale(column, np.full(n, value), None, 64)
    check_scale(scale, column)
    code, log_base = codes_of(scale, np.array([value]))
    assert np.isfinite(log_base[0]) and 0 <= code[0] < scale.n_codes <= 2


def test_nothing_known() -> None:
    column = replace(NUMBER, minimum=2.0, maximum=3.0)
    scale = learn_scale(column, np.full(4, np.nan), None, 8)
    check_scale(scale, column)
    assert np.isfinite(codes_of(scale, np.array([2.5]))[1]).all()


def test_neighbouring_floats() -> None:
    x = np.array([1.0, np.nextafter(1.0, 2.0), 5e-324, 1e-323, -5e-324, 0.0])
    scale = learn_scale(NUMBER, np.repeat(x, 4), None, 6)
    check_scale(scale, NUMBER)
    assert codes_of(scale, np.sort(x))[0].tolist() == [0, 1, 2, 3, 4, 5]


def test_levels() -> None:
    column = Column("s", "categorical", "str", levels=tuple("abc"))
    scale = learn_scale(column, np.array([0.0, 0.0, 1.0, np.nan]), None, 2)
    check_scale(scale, column)
    code, log_base = codes_of(scale, np.array([0.0, 1.0, 2.0, np.nan]))
    assert code.tolist() == [0, 1, 2, 3] and log_base.tolist() == [0.0] * 4


def test_many_levels_share_codes() -> None:
    random = np.random.default_rng(3)
    n_levels = 3000
    column = Column("s", "categorical", "str", levels=tuple(f"l{k}" for k in range(n_levels)))
    x = np.minimum(random.geometric(0.004, 20_000), n_levels - 1).astype(float)
    scale = learn_scale(column, x, None, 64)
    check_scale(scale, column)
    assert scale.n_codes == 1024
    code, log_base = codes_of(scale, np.arange(float(n_levels)))
    common = np.argsort(-np.bincount(x.astype(int), minlength=n_levels), kind="stable")[:512]
    assert np.all(np.bincount(code)[code[common]] == 1) and np.all(log_base[common] == 0)
    assert np.isfinite(log_base).all()
    np.testing.assert_allclose(np.bincount(code, np.exp(log_base)), 1.0, rtol=1e-12)
    seen = np.bincount(x.astype(int), minlength=n_levels)
    shared = code == code[np.argmin(seen)]
    assert np.argmax(log_base[shared]) == np.argmax(seen[shared])


def test_fine_ends_make_outermost_bins_narrow_and_keep_their_number():
    x = np.random.default_rng(0).standard_normal(4_000)
    even, fine = (learn_scale(NUMBER, x, None, 40, fine) for fine in (0.0, 0.5))
    assert even.n_codes == fine.n_codes == 40
    rows = [np.bincount(codes_of(scale, x)[0]) for scale in (even, fine)]
    assert np.ptp(rows[0]) <= 2
    assert rows[1][[0, -1]].max() < 0.5 * 100
    assert rows[1].max() < 1.5 * 100


FAR = {"one above": [1e5], "one below": [-1e5], "two above": [1e5, 3e5], "on both sides": [1e5, -2e5, -2.1e5]}


@pytest.mark.parametrize("step", [0.0, 0.01, 1.0])
@pytest.mark.parametrize("places", FAR.values(), ids=FAR)
def test_far_values_leave_the_others_as_they_are(places: list[float], step: float) -> None:
    column = replace(WHOLE if step == 1.0 else NUMBER, step=step)
    rest = np.random.default_rng(0).gamma(9.0, 10.0, 600)
    rest = np.rint(rest / step) * step if step else rest
    x = np.concatenate([rest, places])
    scale, alone = learn_scale(column, x, None, 32), learn_scale(column, rest, None, 32)
    check_scale(scale, column)
    code, mass = np.unique(codes_of(scale, x)[0], return_counts=True)
    of_far = codes_of(scale, np.array(places))[0]
    assert all(np.sum(codes_of(scale, x)[0] == one) == 1 for one in of_far)
    weights = np.bincount(code, mass / len(x), scale.n_codes)
    inside = np.linspace(rest.min(), rest.max(), 50)
    below, of_alone = (
        np.mean(np.array(places) < 0),
        np.bincount(codes_of(alone, rest)[0], minlength=alone.n_codes) / 600,
    )
    want = (600 * cdf(alone, inside) @ of_alone + len(places) * below) / len(x)
    np.testing.assert_allclose(cdf(scale, inside) @ weights, want, atol=2e-4)
    between = np.array([1.2 * rest.max(), 9e4])
    assert np.diff(cdf(scale, between) @ weights)[0] < 2e-3  # half a row lies in the tail of the others
    assert np.diff(cdf(scale, np.array([-9e4, -200.0])) @ weights)[0] < 2e-3


@pytest.mark.parametrize("draw", ["lognormal", "standard_cauchy", "exponential", "standard_normal"])
def test_tails_have_no_far_values(draw: str) -> None:
    found = 0
    for seed in range(50):
        x = getattr(np.random.default_rng(seed), draw)(size=300)
        found += _far_above(count_places(NUMBER, x, None)) > 0
    assert found <= 2
