"""The constants of the choice of a learner, each with the reason for its value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Constants:
    """Numbers that no parameter sets. Where no experiment is named, a value was set by hand."""

    told_apart_rows: int = 2_000
    """Rows below which no classifier compares draws with them: it would learn too little."""
    told_apart_cells: int = 500_000
    """Cells that are compared; of wide tables fewer rows are, but `told_apart_rows` at least."""
    mixture_gain: float = 0.01
    """Gain of `choose.validation_score` that a mixture must bring: it takes longer to ask, and its draws are told apart
    more easily."""
    fewest_to_mix: int = 4
    """Validation rows below which no mixture is tried."""
    told_apart_tolerance: float = 0.05
    """Told-apart score by which a candidate may be worse than the best: three standard errors of 2,400 rows' score."""
    held_share: float = 0.2
    """Share of the rows that validate where each row is not held out once: one fold of five."""
    rows_a_value: int = 100
    """Fewest mean rows of a value, in each column, from which on equal rows are no copies. Set by hand: levels have so
    many in tables of thousands of rows, and amounts have not."""
    folds: int = 5
    """Folds of small tables."""
    first_share: float = 0.1
    """Share of the clock's seconds for the first candidate, so that a wrong estimate of its speed does little harm."""
    share_to_mix: float = 0.5
    """Share of the rows that candidates must have learned from for a mixture. Weights that fit what fewer rows teach
    would give forests of boxes too much."""
    worth: float = 0.25
    """Share of the rows that a candidate must have time to learn from; with fewer it would be learned in vain."""
    careful: float = 0.8
    """Share of the time left that is planned for, as estimates of time are rough."""
    fewest_rows: int = 50
    """Rows on which candidates are compared however little time there is."""

    few_rows: int = 3_000
    """Rows of a small table, whose candidates are compared in folds."""
    many_cells: int = 40_000
    """Cells from which the fast budget compares nothing, however few its rows are. See
    ``docs/experiments/speed.md``."""
    fewest_states: int = 16
    """States below which hidden trees are not cut; fewer would save next to no time."""
    rows_a_state: int = 8
    """Rows for each state of a hidden tree; with fewer the states would be memory of single rows."""
    final_share: float = 0.65
    """Share of the budget for learning from all rows after the comparison."""
    final_share_of_folds: float = 0.2
    """The same share where candidates are compared in folds, as all folds learn before."""
    little_share: float = 0.02
    """Share of the budget that counts as no time: forests that take less have `most_trees`."""
    answered_rows: int = 200
    """Validation rows of all splits about which each candidate is asked."""
    answers_tolerance: float = 0.02
    """Score of answers about partners drawn at random by which a candidate may be worse than the best."""
    asked_columns: int = 12
    """Columns about which each candidate is asked; of wide tables so many drawn at random."""
    asked_at_random: int = 2
    """Columns, drawn at random, that are given in such questions, beside the one on which a column depends most."""
    noise: float = 0.02
    """Standard deviation of an error that is added to each number, over the spread of its column: the scores of columns
    that are almost functions of others would outweigh all others."""
    most_errors: float = 5.0
    """Most standard deviations by which an answer is off: a row counts no more, so that one row decides nothing."""
    most_trees: int = 100
    """Trees of an adversarial forest where there is time, as in the best budget."""
    smoothing: float = 30.0
    """Smoothing of hidden trees of few rows, where trials of it would take too long. With 100, eight of twelve tables
    of fewer than 3,000 rows have a lower held-out log-density."""
    forest_seconds: float = 2.5e-7
    """Seconds for a cell of a tree of an adversarial forest, measured on two cores of 2020."""
    joint_tree_seconds: float = 1e-4
    """Seconds for a cell of a joint tree, measured on two cores of 2020."""
    columns_of_joint_tree: int = 20
    """Most columns of a joint tree where time is short: its leaves learn the dependence of all pairs."""
    cell_seconds: float = 1.7e-6
    """Seconds for a cell in a pass of a hidden tree, without its matrix products; measured on the same."""
    product_seconds: float = 9e-11
    """Seconds for a cell and a pair of states in a pass of a hidden tree; measured on the same."""
    state_seconds: float = 2e-8
    """Seconds for a cell and a state of a hidden tree of factors; measured on the same."""
    numbers_of_factors: float = 0.5
    """Share of columns that are numbers from which on a hidden tree of factors is a candidate."""
    shares: tuple[float, ...] = (0.9, 0.75, 0.6, 0.45, 0.3, 0.15)
    """Weights of a candidate that are tried, beside those of the candidates that are already in the mixture."""
    matched_rows: int = 400
    """Draws of each candidate that are matched with held-out rows; the time is that of the cube."""
    nearer_errors: float = 1.0
    """Standard errors by which draws must be nearer to held-out rows."""
    most_members: int = 4
    """Hidden trees of a mixture where there is time, as in the best budget."""


FIXED = Constants()
