"""One row of evidence with a sum, given the states of the hinge, beside the list of all values and states."""

from __future__ import annotations

import numpy as np
import pytest

from jointforest.models.hidden_tree.hinge import (
    AtHinge,
    CodeRuns,
    LastPart,
    LinkedSum,
    Part,
    RunsAtHinge,
    ShortParts,
    last_of,
    listed_by,
)

from ...oracle.linked_sum import answers

H = 5


def _case(rng: np.random.Generator, sizes: tuple[int, ...], first: int, likelihood: np.ndarray):
    """A sum of parts with these numbers of values; places have holes, and the first part has two values at one.

    In half of the cases all values of a code have the same weight, and there are no holes.
    """
    parts, places, by_code = [], [], []
    is_even = rng.random() < 0.5
    for i, size in enumerate(sizes):
        K = max(size // 2, 2)
        code = np.sort(rng.integers(0, K, size))
        weight = rng.random(size) * (rng.random(size) < 0.8)
        place = np.sort(rng.choice(2 * size, size, replace=False))
        place -= place[0]
        if is_even:
            weight, place = 0.3 + 0.1 * code, np.arange(size)
        if i == 0:
            place[-1] = place[-2]
        parts.append(Part(code, weight))
        places.append(place)
        by_code.append(rng.dirichlet(np.ones(K), H).T.copy())
    none = tuple(np.zeros(size) for size in sizes)
    one = LinkedSum(tuple(range(len(sizes))), none, none, tuple(places), first, likelihood)
    return rng.dirichlet(np.ones(H)), by_code, tuple(parts), one


def _compare(found: AtHinge | RunsAtHinge, state, by_code, parts, one) -> None:
    expected = answers(
        state, by_code, [part.code for part in parts], [part.weight for part in parts], list(one.places),
        one.all_totals(),
    )  # fmt: skip
    assert np.isclose(found.probability, expected.probability, rtol=1e-9)
    if expected.probability == 0.0:
        return
    assert np.allclose(found.posterior_state, expected.state, rtol=1e-9)
    for i, part in enumerate(parts):
        assert np.allclose(found.weights(i), expected.weights[i], rtol=1e-9, atol=1e-15)
        codes = np.bincount(part.code, expected.laws[i], len(by_code[i]))
        assert np.allclose(found.codes(i, len(by_code[i])), codes, rtol=1e-9, atol=1e-15)
    if isinstance(found, AtHinge):
        totals, laws = found.totals(), [found.law(i) for i in range(len(parts))]
    else:
        totals, laws = found.runs.totals(found.factor), [np.zeros(len(part.code)) for part in parts]
        for law, (first, p) in zip(laws, found.runs.laws(found.factor), strict=True):
            law[first : first + len(p)] = p
    assert np.allclose(totals, expected.totals, rtol=1e-9)
    for law, wanted in zip(laws, expected.laws, strict=True):
        assert np.allclose(law, wanted, rtol=1e-9, atol=1e-15)


LIKELIHOODS = [
    (9, np.ones(1)), (7, np.array([0.5, 1.0, 0.0, 0.3])), (0, np.ones(30)),
    (4, np.repeat([1.0, 0.2], [9, 6])), (3, np.linspace(0.1, 1.0, 12)), (0, np.ones(1)),
]  # fmt: skip


@pytest.mark.parametrize("sizes", [(5, 9), (4, 6, 9)])
@pytest.mark.parametrize(("first", "likelihood"), LIKELIHOODS)
def test_sums_by_places(sizes: tuple[int, ...], first: int, likelihood: np.ndarray) -> None:
    for seed in range(5):
        state, by_code, parts, one = _case(np.random.default_rng(seed), sizes, first, likelihood)
        one = one._replace(likelihood=likelihood[: one.size - first])
        for most in (one.first + len(one.likelihood), one.size):
            known = LastPart(one, parts, ShortParts(one, parts, by_code, most))
            _compare(AtHinge(state, by_code, known), state, by_code, parts, one)


@pytest.mark.parametrize(
    ("sizes", "first", "likelihood"),
    [((5, 9), *one) for one in LIKELIHOODS] + [((4, 6, 9), *one) for one in LIKELIHOODS[:2]],
)
@pytest.mark.parametrize("is_turned", [False, True])
def test_known_sums_by_runs(sizes: tuple[int, ...], first: int, likelihood: np.ndarray, is_turned: bool) -> None:
    for seed in range(5):
        state, by_code, parts, one = _case(np.random.default_rng(seed), sizes, first, likelihood)
        one = one._replace(likelihood=likelihood[: one.size - first])
        if is_turned:  # the part with two values at one place comes last
            parts, by_code, one = parts[::-1], by_code[::-1], one._replace(places=one.places[::-1])
        short = [listed_by(part.code, len(table)) for part, table in zip(parts[:-1], by_code[:-1], strict=True)]
        runs = CodeRuns(one, parts, short, last_of(parts[-1], one.places[-1]), tuple(map(len, by_code)))
        _compare(RunsAtHinge(state, by_code, runs), state, by_code, parts, one)
