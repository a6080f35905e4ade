"""Row order, batches and the number of threads change no bit of any answer; the order of columns only rounding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from jointforest.data.evidence import Evidence
from jointforest.data.schema import kernel_columns
from jointforest.models.box_forest.leaves.derived import make_leaves
from jointforest.models.box_forest.leaves.levels import dense_levels
from jointforest.models.box_forest.leaves.table import ParameterTables
from jointforest.models.box_forest.posterior import log_density, posterior, sample
from jointforest.models.box_forest.structure import Forest
from jointforest.runtime.threads import use_jobs

from .box_answers import background_weight, cdf, impute, level_probability, mean_variance, pdf, quantile
from .random_cases.evidence import random_evidence
from .random_cases.levels import split_levels
from .random_cases.models import random_model

KINDS = ("continuous", "mixed", "integer", "rounded", "boolean", "categorical")
Query = Callable[[Forest, Evidence, int], np.ndarray]
QUERIES: dict[str, Query] = {
    "log_density": lambda m, e, n: use_jobs(n)(log_density)(m, e),
    "background_weight": lambda m, e, n: use_jobs(n)(background_weight)(m, e),
    "log_evidence": lambda m, e, n: use_jobs(n)(posterior)(m, e).log_evidence,
    "mean continuous": lambda m, e, n: np.column_stack(use_jobs(n)(mean_variance)(m, e, 0)),
    "mean mixed": lambda m, e, n: np.column_stack(use_jobs(n)(mean_variance)(m, e, 1)),
    "mean integer": lambda m, e, n: np.column_stack(use_jobs(n)(mean_variance)(m, e, 2)),
    "levels": lambda m, e, n: use_jobs(n)(level_probability)(m, e, 5),
    "cdf": lambda m, e, n: use_jobs(n)(cdf)(m, e, 1, np.array([-1.0, 0.0, 2.0])),
    "pdf": lambda m, e, n: use_jobs(n)(pdf)(m, e, 3, np.array([-1.0, 0.0, 2.0])),
    "quantile": lambda m, e, n: use_jobs(n)(quantile)(m, e, 0, np.array([0.1, 0.5])),
    "quantile of a grid": lambda m, e, n: use_jobs(n)(quantile)(m, e, 2, np.array([0.1, 0.5])),
    "impute": lambda m, e, n: use_jobs(n)(impute)(m, e),
}


def take(evidence: Evidence, rows: np.ndarray) -> Evidence:
    """Some rows of the evidence."""
    region = evidence.region[rows] if evidence.region.size else evidence.region
    return evidence._replace(value=evidence.value[rows], region=region, log_penalty=evidence.log_penalty[rows])


def setting(n: int) -> tuple[Forest, Evidence]:
    """A model and n rows of evidence, many of them alike, more than one chunk of work."""
    model = random_model(12, n_trees=4, kinds=KINDS)
    return model, take(random_evidence(model, 1, 150), np.random.default_rng(0).integers(0, 150, size=n))


@pytest.mark.parametrize("name", QUERIES)
def test_row_order_batches_and_threads(name: str) -> None:
    query, n = QUERIES[name], 2500
    model, evidence = setting(n)
    want = query(model, evidence, 1)
    assert len(want) == n
    for n_jobs in (2, 3, -1):
        np.testing.assert_array_equal(query(model, evidence, n_jobs), want)
    order = np.random.default_rng(1).permutation(n)
    np.testing.assert_array_equal(query(model, take(evidence, order), 2), want[order])
    for rows in (np.arange(5), np.arange(40, 49), np.arange(7, 1800), np.array([1234])):
        np.testing.assert_array_equal(query(model, take(evidence, rows), 2), want[rows])
    for i in range(30):
        np.testing.assert_array_equal(query(model, take(evidence, np.array([i])), 1)[0], want[i])


def test_posterior_entries() -> None:
    model, evidence = setting(2500)
    one, many = use_jobs(1)(posterior)(model, evidence), use_jobs(3)(posterior)(model, evidence)
    for a, b in zip(one, many, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("n", "m"), [(1, 70_000), (2500, 3), (40, 1000)])
@pytest.mark.parametrize("missing", [False, True])
def test_draws_depend_on_the_seed_alone(n: int, m: int, missing: bool) -> None:
    model, evidence = setting(n)
    want = use_jobs(1)(sample)(model, evidence, m, 5, missing=missing)
    for n_jobs in (2, 3):
        np.testing.assert_array_equal(use_jobs(n_jobs)(sample)(model, evidence, m, 5, missing=missing), want)
    first = sample(model, take(evidence, np.arange(min(n, 3))), m, 5, missing=missing)
    np.testing.assert_array_equal(first, want[: len(first)])


def test_regions_without_effect_change_nothing() -> None:
    """A region that holds everything is as good as nothing known."""
    model, evidence = setting(60)
    d = len(KINDS)
    everything = Evidence(
        value=evidence.value,
        region=np.where(np.isnan(evidence.value), np.arange(d, dtype=np.int32), np.int32(-1)),
        run_start=np.arange(d + 1, dtype=np.int32),
        run_lo=np.where(model.columns.is_categorical == 1, -0.5, -np.inf),
        run_hi=np.array([len(c.levels) - 0.5 if c.is_categorical else np.inf for c in model.schema.columns]),
        atoms=np.array([(1 << len(c.atoms)) - 1 for c in model.schema.columns], dtype=np.uint64),
        run_log_weight=np.zeros(d),
        atom_log_weight=np.empty((0, 0)),
        log_penalty=evidence.log_penalty,
    )
    nothing = evidence._replace(region=np.empty((0, 0), dtype=np.int32))
    for name, query in QUERIES.items():
        np.testing.assert_allclose(
            query(model, everything, 1), query(model, nothing, 1), rtol=1e-9, atol=1e-12, err_msg=name
        )


def with_columns_in_order(model: Forest, order: list[int]) -> Forest:
    """The same model of a table whose columns come in another order."""
    old, v = model.columns, model.leaves
    schema = replace(model.schema, columns=tuple(model.schema.columns[j] for j in order))
    columns = kernel_columns(schema)
    slots = [int(old.slot[j]) for j in order if not old.is_categorical[j]]
    atoms = [k for s in slots for k in range(old.atom_start[s], old.atom_start[s + 1])]
    groups = [int(old.slot[j]) for j in order if old.is_categorical[j]]
    place = np.append(np.argsort(order), -1).astype(np.int32)  # the last entry is for leaves, which have feature -1
    parameters = (array[:, slots] for array in (v.family, v.a, v.b, v.lo, v.hi))
    dense = np.concatenate([np.zeros((len(v.tree), 0)), *(dense_levels(old, v, int(g)) for g in groups)], axis=1)
    narrow, wide = split_levels(np.random.default_rng(0), columns, dense)
    tables = (v.atom_mass[:, atoms], narrow, v.missing_rate[:, order])
    leaves = make_leaves(columns, ParameterTables(v.tree, v.log_weight, *parameters, *tables, wide))
    return Forest(schema, columns, model.trees._replace(feature=place[model.trees.feature]), leaves, True)


def test_order_of_columns() -> None:
    model, evidence = setting(150)
    order = [5, 2, 0, 4, 3, 1]
    other = with_columns_in_order(model, order)
    moved = evidence._replace(
        value=np.ascontiguousarray(evidence.value[:, order]), region=np.ascontiguousarray(evidence.region[:, order])
    )
    np.testing.assert_allclose(log_density(other, moved), log_density(model, evidence), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(impute(other, moved), impute(model, evidence)[:, order], rtol=1e-9)
    for a, b in zip(mean_variance(other, moved, 1), mean_variance(model, evidence, 2), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
