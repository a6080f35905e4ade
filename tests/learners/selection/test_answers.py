"""Scores of answers about pairs of columns, beside sums over the components and cells of small made tables."""

from __future__ import annotations

import numpy as np
import pytest

from jointforest.data.evidence import build
from jointforest.data.infer_schema import infer_schema
from jointforest.data.schema import Column, Schema, kernel_columns, snap
from jointforest.learners.hidden_tree.hidden_tree_forest import HiddenTreeForest
from jointforest.learners.selection.answers import Answers, answers, joined, pairs_of, score
from jointforest.learners.selection.budget import budget_of, candidates, learn
from jointforest.learners.selection.choose import Compared, decide, have_good_answers
from jointforest.models.base import Distribution
from jointforest.models.mixture import mixture_of

NOISE, MOST = 0.02, 5.0


def table(seed: int, n: int = 120, share_missing: float = 0.2) -> tuple[Schema, np.ndarray]:
    """Two numbers, a level and a constant that depend on each other, with missing cells; and their schema."""
    rng = np.random.default_rng(seed)
    level = rng.integers(0, 3, n)
    x = rng.normal(3.0 * level, 1.0).round(2)
    X = np.column_stack([level, x, 2.0 * x + rng.normal(0, 0.5, n).round(2), np.full(n, 7.0)])
    hidden = rng.random(X.shape) < share_missing
    hidden[:, 3] = False
    numbers = infer_schema(X[:, 1:]).columns
    schema = Schema((Column("level", "categorical", "object", levels=("a", "b", "c")), *numbers), "pandas")
    return schema, snap(kernel_columns(schema), np.where(hidden, np.nan, X))


def by_hand(model: Distribution, column: int, given: int, row: np.ndarray, center: float, spread: float) -> float:
    """The score of one row's answer, from the posterior of that row alone."""
    evidence = np.full((1, len(row)), np.nan)
    evidence[0, given] = row[given]
    state = model.observe(build(model.schema, evidence))
    if model.schema.columns[column].is_categorical:
        return float(np.log(max(state.level_probabilities(column)[0, int(row[column])], np.exp(-(MOST**2) / 2))))
    mean, variance = (float(moment[0]) for moment in state.moments(column))
    variance = variance / spread**2 + NOISE**2
    off = ((row[column] - mean) / spread) ** 2 + NOISE**2
    return -0.5 * np.log(variance) - 0.5 * min(off / variance, MOST**2)


def models(schema: Schema, X: np.ndarray) -> list[Distribution]:
    """A hidden tree, a forest and a joint tree of rows."""
    rest = [one.learner for one in candidates(budget_of("fast"), len(X), X.shape[1])[:2]]
    return [learn(learner, schema, X, 0) for learner in (HiddenTreeForest(1, n_states=4), *rest)]


@pytest.mark.parametrize("seed", range(3))
def test_scores_are_those_of_each_row_alone_also_of_mixtures(seed: int) -> None:
    schema, X = table(seed)
    rows = table(seed + 10, 25)[1]
    pairs = pairs_of(schema, X, seed)
    each = models(schema, X)
    found = [answers(model, pairs, rows) for model in each]
    weight = np.array([0.5, 0.2, 0.3])
    mixture = mixture_of(each, weight)
    for model, of, weights in [*((m, [f], np.ones(1)) for m, f in zip(each, found, strict=True)),
                               (mixture, found, weight)]:  # fmt: skip
        asked: dict[bool, list[float]] = {True: [], False: []}
        for k in range(len(pairs.column)):
            j, p = int(pairs.column[k]), int(pairs.given[k])
            asked[bool(pairs.at_random[k])] += [
                by_hand(model, j, p, row, pairs.center[k], pairs.spread[k])
                for row in rows
                if not np.isnan(row[[j, p]]).any()
            ]
        assert score(of, weights, True) == pytest.approx(np.mean(asked[True]), rel=1e-6, abs=1e-6)
        wanted = 0.5 * np.mean(asked[True]) + 0.5 * np.mean(asked[False])
        assert score(of, weights) == pytest.approx(wanted, rel=1e-6, abs=1e-6)
    halves = joined([answers(each[0], pairs, part) for part in (rows[:10], rows[10:])])
    assert score([halves], np.ones(1)) == pytest.approx(score(found[:1], np.ones(1)))


def test_each_column_is_asked_about_given_its_strongest_partner_and_others() -> None:
    schema, X = table(0, 400, 0.0)
    pairs = pairs_of(schema, X, 0)
    strongest = dict(zip(pairs.column[~pairs.at_random].tolist(), pairs.given[~pairs.at_random].tolist(), strict=True))
    assert strongest[1] == 2 and strongest[2] == 1
    for j in range(4):
        given = pairs.given[pairs.column == j].tolist()
        assert len(set(given)) == len(given) == 3 and j not in given
    two = pairs_of(Schema(schema.columns[:2], "pandas"), X[:, :2], 0)
    assert two.given.tolist() == [1, 0] and not two.at_random.any()


def test_rows_without_cells_and_candidates_without_answers_score_nothing() -> None:
    schema, X = table(0)
    pairs = pairs_of(schema, X, 0)
    model = models(schema, X)[0]
    assert score([answers(model, pairs, np.full((3, 4), np.nan))], np.ones(1)) == 0.0
    listed = candidates(budget_of("fast"), 200, 4)
    assert have_good_answers([Compared(one, np.zeros(4), np.nan, 1.0, ()) for one in listed]).all()


def made(schema: Schema, X: np.ndarray, mean: float, sd: float) -> Answers:
    """Answers that are a mean and a standard deviation for every number, and even odds for levels."""
    pairs = pairs_of(schema, X, 0)
    asked = answers(models(schema, X)[0], pairs, X)
    first = np.where(pairs.is_level, 1 / 3, mean) + np.zeros(asked.cell.shape)
    return asked._replace(log_given=np.zeros(first.shape), first=first, second=np.full(first.shape, mean**2 + sd**2))


def test_too_wide_answers_lose_to_as_high_a_likelihood() -> None:
    schema, X = table(1)
    listed = candidates(budget_of("fast"), 200, 4)[:2]
    density = np.random.default_rng(0).normal(size=(200, 1)) + np.array([0.1, 0.0])
    wide, right = made(schema, X, 0.0, 3.0), made(schema, X, 0.0, 1.0)
    compared = [Compared(one, density[:, k], np.nan, 1.0, (), (), (wide, right)[k]) for k, one in enumerate(listed)]
    assert have_good_answers(compared).tolist() == [False, True]
    decision = decide(compared, 4, 0)
    assert decision.weight.tolist() == [0.0, 1.0]
    assert decision.why == "the only candidate whose answers are nearly as good as the best"
    assert decide([one._replace(answers=None) for one in compared], 4, 0).weight[0] > 0.0
