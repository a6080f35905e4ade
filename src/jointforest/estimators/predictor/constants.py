"""The constants of predictors, each with the reason for its value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """Settings of boosted trees, as scikit-learn means them, and the rows of tables that they are tried on. With
    ``in_order`` splits cut the levels of a column in the order of their codes; else they form sets of levels."""

    leaf_nodes: int
    leaf_rows: int
    l2: float
    features: float
    fewest: int = 0
    most: int = 10**9
    in_order: bool = False


@dataclass(frozen=True)
class Constants:
    """Numbers that no parameter sets. The experiments are in ``docs/experiments/prediction-missing-cells.md``."""

    # ---- validation rows

    few_rows: int = 3_000
    """Rows below which each row is held out once: weights then come from all rows, and members learn fast."""
    folds: int = 3
    """Folds of small tables."""
    held_share: float = 0.2
    """Share of the rows that is held out of larger tables."""
    most_held: int = 1_500
    """Most rows that are held out of larger tables."""
    most_hidden: int = 600
    """Most validation rows with hidden cells, at each rate: the generative forest takes up to 5 ms for one."""
    hidden_share: float = 0.5
    """Share of a table's rows that are asked so, at most: these questions take a third of the time of small tables."""
    few_held: float = 0.1
    """Share of the rows that is so small that members need not learn again from all rows, after validation."""
    rates: tuple[float, ...] = (0.0, 0.1, 0.3, 0.6, 0.9)
    """Shares of the cells that are hidden from validation rows."""

    # ---- the pool

    knots: tuple[float, ...] = (0.0, 0.1, 0.35, 0.65, 1.0)
    """Shares of missing cells at which weights are free; between, they are interpolated."""
    equal: float = 3.0
    """Precision, over 2, with which weights lie around equal ones: a standard deviation of 0.4. From a quarter to three
    times as much changes the log-loss of nine tables by less than 0.001."""
    smooth: float = 20.0
    """Precision, over 2, of the difference between the weights of neighbouring knots: a standard deviation of 0.16."""
    unbiased: float = 50.0
    """Precision, over 2, with which biases lie around 0: a standard deviation of 0.1."""
    even_rows: float = 50.0
    """Rows that lie evenly among the quantiles of a number before validation rows do, when quantiles are calibrated."""
    steps: int = 300
    """Most steps of the search for weights; it ends earlier nearly always."""
    least_gain: float = 5e-4
    """Validation loss that a member must be worth, in nats, or as a share of the error of a number: it costs time."""
    least_gain_with_missing: float = 2e-4
    """The same from this share of missing cells at learning on: new rows may be more complete than all validation rows,
    and some members help more with such rows."""
    least_missing: float = 0.05
    """Share of missing cells at learning from which boosted trees on completed rows are a member: with fewer, completed
    rows are nearly the rows as they are."""
    floor: float = 1e-3
    """Share of the classes' own frequencies in each member's answer, so that no logarithm is large."""

    # ---- boosted trees

    shapes: tuple[Shape, ...] = (
        Shape(leaf_nodes=8, leaf_rows=5, l2=1.0, features=0.5, most=10_000),
        Shape(leaf_nodes=15, leaf_rows=5, l2=1.0, features=0.5, fewest=350),
        Shape(leaf_nodes=31, leaf_rows=20, l2=1.0, features=0.5, fewest=1_000),
    )
    """Settings of boosted trees of which validation rows choose: nearly additive ones for few rows, deep ones for
    many. Two or three are tried, and then the best one with levels in order; of few rows one alone, as their losses
    say too little. A larger penalty (10) and fewer features (0.3) need twice the iterations, and are no better."""
    shape_folds: int = 2
    """Folds whose rows choose the shape and the number of iterations, which bounds the time."""
    shape_rows: int = 10_000
    """Rows by which the shape is chosen, at most; the number of iterations is chosen by all rows."""
    learning_rate: float = 0.1
    iterations_at_once: int = 25
    """Iterations after which the validation loss is examined."""
    most_iterations: int = 500
    """Iterations of which the best number is chosen."""
    patience: int = 10
    """Iterations without a better validation loss after which no more are tried."""
    toward_complete: float = 0.5
    """How far towards complete rows the loss is extrapolated by which trees that answer in expectation are chosen, as a
    part of the mean share of missing cells. Rows with missing cells are best with fewer iterations."""
    most_deviations: float = 2.0
    """The farthest that this may be, in standard deviations of the share: the variance of the loss is five times as
    large there. Rows of wide tables have nearly as many missing cells each."""
    copies: int = 6
    """Most copies of each row with cells hidden at random rates, beside the row itself."""
    copied_rows: int = 100_000
    """Rows with their copies, about, at most: larger tables have fewer copies, one at least."""
    thread_cells: int = 500_000
    """Cells of a table from which boosted trees grow on several threads. Threads of OpenMP wait for each other without
    sleeping: on a machine that is busy with other work, two take four to six times as long as one (tables of 3,000 to
    300,000 cells)."""
    most_levels: int = 255
    """Levels up to which a column is categorical to boosted trees; then their order by mean target is used."""

    # ---- the additive model

    penalties: tuple[float, ...] = (100.0, 10.0, 1.0, 0.1)
    """Penalties on squared coefficients of which validation rows choose: beside it, the loss is a sum over rows."""
    usual_penalty: float = 1.0
    """The penalty without validation rows."""
    knots_of_number: int = 9
    """Knots of the function of a number, most of the time: eight parts with as many rows each."""
    design_columns: int = 1_000
    """Knots of all numbers together, about, at most: wide tables have straight lines."""
    level_rows: int = 5
    """Rows that a level must have to have a coefficient of its own."""
    levels_alone: int = 100
    """Most levels of a column that have coefficients of their own: the most frequent ones."""
    additive_cells: int = 10_000_000
    """Rows times coefficients of an output, at most, which bounds the memory: 80 MB."""
    additive_rows: int = 20_000
    """Most rows that an additive model learns from: it has few coefficients."""
    additive_steps: int = 200
    """Most steps of the search for coefficients of classes."""
    drawn_at_once: int = 100_000
    """Completions of rows that are answered at once, which bounds the memory."""

    # ---- the generative forest

    trees: int = 100
    """Most trees of the generative forest of a table below `few_rows`, where 30 have a clearly larger loss."""
    large_trees: int = 50
    """Most trees of larger tables, where 50 are as good (Adult) or nearly (wine quality), and take half the time."""
    fewest_trees: int = 30
    """Fewest trees."""
    large_leaf: int = 12
    """Rows of a leaf up to which forests choose the size themselves; of large tables leaves have more rows."""
    leaf_cells: float = 1e6
    """Leaves of all trees times columns, at most: a row with missing cells reaches many of them, about 2 ms a row."""

    # ---- answers

    levels: int = 50
    """Evenly spaced quantiles that stand for the distribution of a number; its tails have more."""
    point_share: float = 0.1
    """Share of the rows from which on a number's value is a point mass, which keeps its place in pooled quantiles."""
    grid: int = 126
    """Values at which the CDF of a number is read, beside the ends."""

    draws: int = 24
    """Completions of a row in expected predictions: their noise is small beside that of the members."""
    rows_at_once: int = 50_000
    """Rows that are answered at once, which bounds the memory of quantiles."""


FIXED = Constants()
