"""Information measures of hidden trees and of mixtures, against sums over all rows of a small table and quadrature."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy import integrate

from jointforest.api.joint import Joint
from jointforest.data.discretization.base_density import code_entropy, pdf
from jointforest.data.discretization.discretizer import codes_of
from jointforest.data.discretization.learn import learn_scale
from jointforest.data.evidence import build
from jointforest.data.frames import encode
from jointforest.data.schema import Column
from jointforest.models.hidden_tree.condition import joint_codes

from ...random_cases.hidden_parts import ALL, INSIDE, hidden_joint, mixed_joint, small_table

KINDS = ["hidden trees", "mixture"]


@cache
def joint(kind: str, seed: int = 3) -> Joint:
    make = hidden_joint if kind == "hidden trees" else mixed_joint
    return make(small_table(0), seed).condition(INSIDE)


@cache
def mass(kind: str, seed: int = 3) -> pd.Series:
    """p(x) of every row of `ALL`."""
    p = pd.Series(np.exp(joint(kind, seed).log_density(ALL)), pd.MultiIndex.from_frame(ALL))
    assert p.sum() == pytest.approx(1.0, abs=1e-9)
    return p


def enumerated(kind: str, columns: list[str]) -> float:
    p = mass(kind).groupby(level=columns).sum()
    return float(-(p[p > 0] * np.log(p[p > 0])).sum())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("columns", [["place"], ["size"], ["flag", "size"], ["grade", "place"], list(ALL.columns)])
def test_entropy(kind: str, columns: list[str]) -> None:
    found = joint(kind).entropy(*columns, random_state=0)
    assert found.method == "exact"
    assert found.value == pytest.approx(enumerated(kind, columns), abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_mutual_information_and_conditional_entropy(kind: str) -> None:
    of = joint(kind)
    h = {name: enumerated(kind, list(name)) for name in [("size",), ("grade",), ("size", "grade"), ("place",)]}
    found = of.mutual_information("size", "grade")
    assert found.method == "exact"
    assert found.value == pytest.approx(h["size",] + h["grade",] - h["size", "grade"], abs=1e-6)
    three = enumerated(kind, ["size", "grade", "place"])
    given = enumerated(kind, ["size", "place"]) + enumerated(kind, ["grade", "place"]) - three - h["place",]
    assert of.mutual_information("size", "grade", given="place").value == pytest.approx(given, abs=1e-6)
    assert of.entropy("size", given=["grade", "place"]).value == pytest.approx(
        three - enumerated(kind, ["grade", "place"]), abs=1e-6
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("measure", ["kl", "jensen-shannon", "total-variation", "hellinger"])
def test_divergences(kind: str, measure: str) -> None:
    other, columns = joint("hidden trees", 8), ["size", "flag"]
    p = mass(kind).groupby(level=columns).sum()
    q = mass("hidden trees", 8).groupby(level=columns).sum()[p.index]
    m = 0.5 * (p + q)
    truth = {
        "kl": (p * np.log(p / q)).sum(),
        "jensen-shannon": 0.5 * (p * np.log(p / m)).sum() + 0.5 * (q * np.log(q / m)).sum(),
        "total-variation": 0.5 * abs(p - q).sum(),
        "hellinger": np.sqrt(1 - np.sqrt(p * q).sum()),
    }
    found = joint(kind).divergence(other, measure, columns)
    assert found.method == "exact" and found.value == pytest.approx(truth[measure], abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_columns_compared(kind: str) -> None:
    found = joint(kind).compare(joint("hidden trees", 8))
    for name in ALL.columns:
        p, q = (m.groupby(level=name).sum() for m in (mass(kind), mass("hidden trees", 8)))
        far = 0.5 * abs(p - q).sum() if name in ("place", "flag") else abs((p - q).cumsum()).max()
        assert found[name].distance == pytest.approx(far, abs=1.1e-3)


def numbers(n: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x = rng.gamma(2.0, 2.0, n)
    z, kind = np.where(x > 3, 0.0, rng.normal(size=n)), np.where(x > 4, "large", "small")
    return pd.DataFrame({"x": x, "y": x + rng.normal(size=n), "z": z, "of": kind})


def test_two_columns_of_numbers_are_exact_and_more_have_standard_errors() -> None:
    of = hidden_joint(numbers(), 1, n_bins=6)
    pair = of.mutual_information("x", "y")
    drawn = of.sample(20_000, random_state=0)
    each = of.log_density(drawn[["x", "y"]]) - of.log_density(drawn[["x"]]) - of.log_density(drawn[["y"]])
    assert pair.method == "exact" and abs(pair.value - each.mean()) < 4.5 * each.std() / np.sqrt(len(each))
    for columns in (["x"], ["z"], ["x", "z"], ["y", "of"]):
        own = of.entropy(*columns)
        minus = -of.log_density(drawn[columns])
        assert own.method == "exact" and abs(own.value - minus.mean()) < 4.5 * minus.std() / np.sqrt(len(minus))


def test_many_columns_are_estimated_with_less_noise_than_plain_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    of = hidden_joint(numbers(), 1, n_bins=6)
    exact = of.entropy()
    assert exact.method == "exact"
    monkeypatch.setattr("jointforest.models.hidden_tree.condition._MOST", 100)
    found = of.entropy(n_samples=2000, random_state=1)
    minus = -of.log_density(of.sample(2000, random_state=1))
    assert found.method == "sampling" and abs(found.value - exact.value) < 4.5 * found.standard_error
    assert found.standard_error < minus.std() / np.sqrt(2000)


def test_mixtures_with_one_column_of_numbers_by_quadrature() -> None:
    frame = numbers()[["x", "of"]]
    of = mixed_joint(frame, 2)
    found = of.entropy("x", "of")
    assert found.method == "exact"
    drawn = of.sample(40_000, random_state=0)
    minus = -of.log_density(drawn)
    assert abs(found.value - minus.mean()) < 4.5 * minus.std() / np.sqrt(len(minus))


def test_joint_distribution_of_codes() -> None:
    table = small_table(0)
    for seed in range(6):
        of = hidden_joint(table, seed)
        hidden = of.distribution.components[0].hidden
        rows = pd.DataFrame(encode(of.schema, ALL)[0], columns=ALL.columns)
        for columns in ([1], [0, 1], [3, 1], [2, 0, 3]):
            p = joint_codes(hidden, columns)
            names = [of.schema.names[j] for j in columns]
            value = np.full(rows.shape, np.nan)
            value[:, columns] = rows[names]
            log_p = of.distribution.components[0].log_density(build(of.schema, value))
            codes, log_base = zip(*(codes_of(hidden.scales[j], value[:, j]) for j in columns), strict=True)
            np.testing.assert_allclose(p[codes], np.exp(log_p - sum(log_base)), atol=1e-12)
            assert p.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("kind", ["continuous", "mixed", "integer", "rounded"])
def test_entropy_inside_codes(kind: str) -> None:
    rng = np.random.default_rng(1)
    step = {"integer": 1.0, "rounded": 0.25}.get(kind, 0.0)
    x = rng.normal(3, 2, 120)
    x = np.round(x / step) * step if step else x
    x[::3] = x[0] if kind == "mixed" else x[::3]
    column = Column("x", kind, "float64", step=step, atoms=(float(x[0]),) if kind == "mixed" else ())
    scale = learn_scale(column, x, None, 5)
    found = code_entropy(scale)
    for code in range(scale.n_codes):
        if step:
            at = np.arange(-4000, 4000) * step
            p = pdf(scale, at)[:, code]
            truth = -(p[p > 0] * np.log(p[p > 0])).sum() * step
        else:
            truth = 0.0
            for s in np.flatnonzero(scale.code == code):
                share = scale.share[s]
                if scale.is_point[s]:
                    truth -= share * np.log(share)
                else:
                    lo, hi = max(scale.lo[s], -500.0), min(scale.hi[s], 500.0)
                    truth += integrate.quad(
                        lambda t, c=code: -(q := pdf(scale, np.array([t]))[0, c]) * np.log(max(q, 1e-300)),
                        lo + 1e-12, hi - 1e-12, points=np.clip([x.min(), x.max()], lo, hi), limit=200,
                    )[0]  # fmt: skip
        assert found[code] == pytest.approx(truth, abs=2e-6)
