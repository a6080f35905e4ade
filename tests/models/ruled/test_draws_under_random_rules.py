"""Forty random rules of all kinds, ten in each of four tables: conditional draws beside the rows that meet evidence."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import jointforest as jf
from jointforest.data.conditions import AnyOf, Interval
from jointforest.data.evidence import Evidence, build
from jointforest.data.rules.contradictions import contradicted
from jointforest.data.schema import Schema
from jointforest.learners.rows import read_training_rows
from jointforest.learners.rules import reduce_table, wanted_rules
from jointforest.models.ruled.ruled import RuledDistribution

from ...random_cases.table_part import TableDistribution

N_ROWS, N_EVIDENCE, N_DRAWS = 400, 40, 1_000


def _ruled_table(seed: int) -> tuple[pd.DataFrame, list[str]]:
    """Rows that obey ten rules with random constants, and the rules."""
    rng = np.random.default_rng(seed)
    n = N_ROWS
    a, b, c = (int(x) for x in rng.integers(1, 4, 3))
    shop, plan = rng.integers(0, 6, n), rng.integers(0, 3, n)
    frame = pd.DataFrame({"shop": np.char.add("s", shop.astype(str)), "plan": np.char.add("p", plan.astype(str))})
    frame["town"] = np.char.add("t", rng.integers(0, 3, 6)[shop].astype(str))
    frame["number"] = rng.integers(0, 5, n)
    frame["name"] = np.char.add("n", rng.permutation(5)[frame["number"]].astype(str))
    frame["product"], frame["size"] = rng.integers(0, 3, n), rng.integers(0, 3, n)
    frame["price"] = rng.integers(0, 9, (3, 3))[frame["product"], frame["size"]]
    frame["discount"] = 10 * np.minimum(rng.integers(0, 4, n), plan)  # steps that depend on a level
    frame["net"], frame["fee"] = rng.poisson(5, n), rng.geometric(0.4, n)
    frame["total"] = a * frame["net"] + b * frame["fee"] + c
    frame["twice"] = 2 * frame["net"] - c
    frame["low"] = rng.integers(0, 6, n)
    frame["high"] = frame["low"] + rng.geometric(0.5, n) - 1
    frame["top"] = frame["high"] + rng.geometric(0.5, n)
    frame["state"] = rng.choice(["new", "old", "gone", "lost"], n)
    frame["delay"] = np.where(frame["state"] == "gone", np.nan, rng.integers(0, 5, n))
    frame["reason"] = np.where(frame["state"].isin(["new", "lost"]), np.nan, rng.integers(0, 3, n))
    return frame, [
        "shop -> town", "number <-> name", "product, size -> price", "combinations(plan, discount)",
        f"total = {a} * net + {b} * fee + {c}", f"twice = 2 * net - {c}", "low <= high", "high < top",
        "delay missing iff state = gone", "reason missing iff state in {new, lost}",
    ]  # fmt: skip


def _evidence(schema: Schema, x: np.ndarray, X: np.ndarray, rng: np.random.Generator) -> Evidence:
    """Values, sets and intervals of one to four columns that a row x has."""
    conditions = {}
    for j in rng.permutation(len(x))[: rng.integers(1, 5)].tolist():
        column = schema.columns[j]
        if np.isnan(x[j]):
            continue
        value, others = column.from_number(x[j]), X[~np.isnan(X[:, j]), j]
        sort = rng.integers(3)
        if sort == 0:
            conditions[column.name] = value
        elif sort == 1 or column.is_categorical:
            conditions[column.name] = AnyOf(value, *(column.from_number(v) for v in rng.choice(others, 2)))
        else:
            conditions[column.name] = Interval(x[j] - rng.integers(0, 3), x[j] + rng.integers(0, 3))
    return build(schema, conditions=conditions)


@pytest.mark.parametrize("seed", range(4))
def test_conditional_draws_obey_and_have_the_law_of_rejection(seed: int) -> None:
    frame, rules = _ruled_table(seed)
    rows = read_training_rows(frame, None)
    reduced = reduce_table(wanted_rules([jf.rule(rule) for rule in rules], rows.schema, rows.X), rows.X)
    assert reduced is not None
    coordinates = reduced.coordinates
    assert len(coordinates.enforced) == len(rules)
    rng = np.random.default_rng(seed)
    Z = reduced.X[:, : len(coordinates.inner.columns)]
    Z = np.where(np.isnan(Z), 0.0, Z)  # values that a rule hides
    weight = rng.dirichlet(np.full(len(Z), 0.7))
    model = RuledDistribution(coordinates, TableDistribution(coordinates.inner, Z, weight))
    X = rows.X
    p_values = []
    for k in range(N_EVIDENCE):
        evidence = _evidence(coordinates.schema, X[rng.integers(len(X))], X, rng)
        share = TableDistribution(coordinates.schema, X, weight).shares(evidence)[0]
        drawn = model.sample(evidence, N_DRAWS, k, False)
        for rule in coordinates.enforced:
            assert not contradicted(rule, coordinates.schema, drawn).any(), str(rule)
        distinct, place = np.unique(np.nan_to_num(X, nan=-1.0), axis=0, return_inverse=True)
        expected = np.bincount(place.reshape(-1), share) * N_DRAWS
        number = {row.tobytes(): i for i, row in enumerate(distinct)}
        count = np.bincount([number[row.tobytes()] for row in np.nan_to_num(drawn, nan=-1.0)], minlength=len(distinct))
        assert not count[expected == 0.0].any()  # functions and combinations, too
        is_common = expected > 5.0
        seen = np.append(count[is_common], count[~is_common].sum())
        wanted = np.append(expected[is_common], expected[~is_common].sum())
        if wanted[-1] < 5.0:
            seen, wanted = np.append(seen[:-2], seen[-2:].sum()), np.append(wanted[:-2], wanted[-2:].sum())
        if len(seen) > 1:
            p_values.append(stats.chisquare(seen, wanted * seen.sum() / wanted.sum()).pvalue)
    assert len(p_values) > N_EVIDENCE / 2
    assert min(p_values) > 1e-5
    assert stats.kstest(p_values, "uniform").pvalue > 1e-4
