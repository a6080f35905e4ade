"""Hidden trees conditioned, and of fewer columns, against the answers of the whole ones."""

from __future__ import annotations

import numpy as np
import pytest

from jointforest.models.hidden_tree.files import check_hidden
from jointforest.models.hidden_tree.hidden_tree import HiddenTree
from jointforest.models.hidden_tree.hidden_trees import HiddenTrees

from ...oracle import hidden as oracle
from ...oracle.evidence import Set
from ...random_cases.cells import Cell, Region, make_evidence
from ...random_cases.hidden_trees import random_cells, random_hidden, random_plain

SEEDS = [*range(40), *range(100, 115)]  # from 100 on: trees whose states are codes
NEAR = {"rtol": 1e-9, "atol": 1e-10}


def split(seed: int, hidden: HiddenTrees) -> tuple[list[list[Cell]], list[list[Cell]], list[list[Cell]]]:
    """Possible rows of evidence, and their cells in two halves, by column."""
    rng = np.random.default_rng([seed, 7])
    cells = [
        row
        for row in random_cells(seed, hidden, 12)
        if np.isfinite(HiddenTree(hidden).log_density(make_evidence([row]))[0])
    ][:5]
    side = rng.random(len(hidden.schema.columns)) < 0.5
    first = [[cell if mine else None for cell, mine in zip(row, side, strict=True)] for row in cells]
    second = [[None if mine else cell for cell, mine in zip(row, side, strict=True)] for row in cells]
    return cells, first, second


def same_answers(part: HiddenTree, evidence, given: oracle.Given) -> None:
    """The part's columns given one row are those of the oracle."""
    for j, column in enumerate(part.schema.columns):
        if column.is_categorical:
            np.testing.assert_allclose(
                part.observe(evidence).level_probabilities(j)[0], oracle.level_probability(given, j), **NEAR
            )
        else:
            found = np.concatenate(part.observe(evidence).moments(j))
            np.testing.assert_allclose(found, oracle.mean_variance(given, j), rtol=1e-9, atol=1e-9)
            if given.knowns[j] is None or isinstance(given.knowns[j], Set):
                x = np.linspace(column.minimum, column.maximum, 4)
                np.testing.assert_allclose(
                    part.observe(evidence).cdf(j, x)[0], oracle.cdf(given, j, x.tolist()), **NEAR
                )


@pytest.mark.parametrize("seed", SEEDS)
def test_conditioned_trees_answer_as_evidence_does(seed: int) -> None:
    hidden = random_hidden(seed) if seed < 100 else random_plain(seed)
    whole = HiddenTree(hidden)
    for row, first, second in zip(*split(seed, hidden), strict=True):
        part = whole.condition(make_evidence([first]))
        check_hidden(part.hidden)
        both, more = make_evidence([row]), make_evidence([second])
        expected = whole.log_density(both) - whole.log_density(make_evidence([first]))
        np.testing.assert_allclose(part.log_density(more), expected, **NEAR)
        same_answers(part, more, oracle.Given(hidden, oracle.row_of(hidden, both, 0)))
        again = part.condition(more)
        check_hidden(again.hidden)
        nothing = make_evidence([[None] * len(row)])
        np.testing.assert_allclose(again.log_density(nothing), 0.0, atol=1e-12)
        same_answers(again, nothing, oracle.Given(hidden, oracle.row_of(hidden, both, 0)))
        drawn = again.sample(nothing, 20, 0, False)
        assert np.isfinite(drawn).all() and np.isfinite(again.log_density(nothing._replace(value=drawn[:1]))).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_columns_left_out_are_summed_out(seed: int) -> None:
    hidden = random_hidden(seed, 4)
    rng = np.random.default_rng(seed)
    kept = sorted(rng.choice(4, int(rng.integers(1, 4)), replace=False).tolist())
    part = HiddenTree(hidden).marginalize(kept)
    check_hidden(part.hidden)
    assert part.schema.names == tuple(f"c{j}" for j in kept)
    for tree in part.hidden.trees:
        below = np.bincount(tree.parent[tree.parent >= 0], minlength=len(tree))
        joins = np.isin(np.arange(len(tree)), list(tree.missing_node.values()), invert=True) & (tree.column < 0)
        assert (below[joins] >= 2).all()  # a node without a column joins some, or says which cells are missing
    for row in random_cells(seed, hidden, 8):
        alone = [cell if j in kept else None for j, cell in enumerate(row)]
        found = part.log_density(make_evidence([[row[j] for j in kept]]))
        np.testing.assert_allclose(found, HiddenTree(hidden).log_density(make_evidence([alone])), **NEAR)


@pytest.mark.parametrize("seed", range(10))
def test_kept_and_conditioned_in_either_order(seed: int) -> None:
    hidden = random_hidden(seed, 4)
    part = HiddenTree(hidden)
    for row in random_cells(seed, hidden, 6):
        first = [row[0], row[1], None, None]
        if np.isneginf(part.log_density(make_evidence([first]))[0]):
            continue
        after = part.condition(make_evidence([first])).marginalize([0, 2, 3])
        rest = make_evidence([[None, row[2], row[3]]])
        both = make_evidence([[row[0], row[1], row[2], row[3]]])
        expected = part.log_density(both) - part.log_density(make_evidence([first]))
        np.testing.assert_allclose(after.log_density(rest), expected, **NEAR)


def test_kept_first_and_then_conditioned() -> None:
    """Where nodes without a column join others, evidence on the last column is not theirs."""
    joins = 0
    for seed in range(30):
        hidden = random_hidden(seed, 4)
        part = HiddenTree(hidden)
        kept = part.marginalize([0, 2, 3])
        joins += sum(int((tree.column < 0).sum()) for tree in kept.hidden.trees)
        for row in random_cells(seed, hidden, 4):
            last = make_evidence([[None, None, None, row[3]]])
            if np.isneginf(part.log_density(last)[0]):
                continue
            after = kept.condition(make_evidence([[None, None, row[3]]]))
            check_hidden(after.hidden)
            both = make_evidence([[row[0], None, row[2], row[3]]])
            expected = part.log_density(both) - part.log_density(last)
            np.testing.assert_allclose(after.log_density(make_evidence([[row[0], row[2], None]])), expected, **NEAR)
    assert joins > 5


def test_levels_that_share_a_code_part_when_one_is_known() -> None:
    for seed in range(200):
        hidden = random_hidden(seed, 2, kinds=("levels",), zeros=0.0)
        if hidden.scales[0].n_codes < len(hidden.scales[0].code):
            break
    code = hidden.scales[0].code
    shared = int(np.flatnonzero(np.bincount(code) > 1)[0])
    level = int(np.flatnonzero(code == shared)[0])
    part = HiddenTree(hidden).condition(make_evidence([[float(level), None]]))
    nothing = make_evidence([[None, None]])
    np.testing.assert_allclose(
        part.observe(nothing).level_probabilities(0)[0], np.arange(len(code)) == level, atol=1e-12
    )
    other = int(np.flatnonzero(code == shared)[1])
    assert np.isneginf(part.log_density(make_evidence([[float(other), None]]))[0])
    assert part.log_density(make_evidence([[float(level), None]]))[0] == pytest.approx(0.0, abs=1e-12)


def test_a_region_then_a_narrower_one() -> None:
    hidden = random_hidden(5, 3, kinds=("continuous", "grid"), zeros=0.0)
    edge = [np.quantile(s.lo[np.isfinite(s.lo)], 0.5) for s in hidden.scales]
    wide, narrow = Region(((edge[0] - 50.0 * max(hidden.scales[0].step, 1.0), edge[0]),)), Region(((-np.inf, edge[0]),))
    part = HiddenTree(hidden)
    once = part.condition(make_evidence([[wide, None, None]]))
    np.testing.assert_allclose(once.log_density(make_evidence([[narrow, None, None]])), 0.0, atol=1e-10)


def test_an_atom_that_a_region_leaves_out_is_impossible_afterwards() -> None:
    """Also where the numbers around it stay: in a column without grid an atom is no part of the rest."""
    seed = next(s for s in range(99) if _atom_inside(random_hidden(s, 2, kinds=("mixed",), zeros=0.0)) is not None)
    hidden = random_hidden(seed, 2, kinds=("mixed",), zeros=0.0)
    atom = _atom_inside(hidden)
    kept = tuple(k for k, x in enumerate(hidden.schema.columns[0].atoms) if x != atom)
    without = make_evidence([[Region(((-np.inf, np.inf),), kept), None]])
    part, value = HiddenTree(hidden), make_evidence([[atom, None]])
    assert np.isfinite(part.log_density(value)[0])
    assert np.isneginf(part.condition(without).log_density(value)[0])
    assert part.observe(without).pdf(0, np.array([atom]))[0, 0] == 0.0


def _atom_inside(hidden: HiddenTrees) -> float | None:
    """An atom of the first column that an interval of its scale holds, too."""
    scale = hidden.scales[0]
    inside = [x for x in hidden.schema.columns[0].atoms if ((scale.lo < x) & (x <= scale.hi)).any()]
    return inside[0] if inside else None


def test_impossible_evidence_is_refused_and_so_is_keeping_nothing() -> None:
    part = HiddenTree(random_hidden(0))
    empty = [Region(), *[None] * (len(part.schema.columns) - 1)]
    with pytest.raises(ValueError, match="probability 0"):
        part.condition(make_evidence([empty]))
    with pytest.raises(ValueError, match="at least one column"):
        part.marginalize([])
