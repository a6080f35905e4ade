"""The constants of learning histories, each with the reason for its value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Constants:
    """Numbers of the learner."""

    # ---- the table

    batch_rows: int = 1_000_000
    """Most rows of the sample that is learned from where a table comes in batches: of six columns they take 1 GB."""

    # ---- codes

    codes: int = 63
    """Most bins of a number: with the code of missing cells they are the bits of one word."""
    own_levels: int = 47
    """Levels of a column of more than 63 levels that have a code of their own; the others share 16 codes."""
    likeness_rows: int = 50_000
    """Rows by which the levels of a column are put in order, about."""
    constant_share: float = 0.999
    """Share of subjects in which a column has one value before it counts as constant within subjects."""

    # ---- trees

    expectation_rows: int = 50
    """Fewest rows of a leaf of an expectation tree."""
    min_rows: int = 10
    """Fewest rows of a leaf of a value tree."""
    value_gain: float = 8.0
    """Least gain of a split of a value tree, in nats, beside what each distinct code adds."""
    ratio_rows: int = 20
    """Fewest rows of a leaf of a ratio tree."""
    ratio_gain: float = 6.0
    """Least gain of a split of a ratio tree, beside what each distinct class adds."""
    gain_a_type: float = 1.0
    """What the least gain grows by for each distinct code in the node: the parameter ``smoothing``. By chance a split
    of m codes gains about (m - 1) / 2 nats, and the best of many splits more."""
    split_rows: int = 20_000
    """Most rows that a split is chosen by: more hardly change it."""
    leaves: int = 20_000
    """Most leaves of a tree, which bounds the size of a model."""

    # ---- smoothing of leaves; the parameter ``smoothing`` sets these, too

    near: float = 1.0
    """Pseudo-rows of the node's own smoothed counts, for each distinct code."""
    far: float = 1.0
    """Pseudo-rows of the parent's distribution, for each distinct code."""
    ratio_pseudo: float = 20.0
    """Pseudo-rows of ratios."""
    least_pseudo: float = 0.25
    """The first two for a smoothing of 0."""
    many_rows: int = 50_000
    """Rows from which on draws are to be realistic; smaller tables get the smoothing of the highest likelihood."""
    smoothing_of_many: float = 0.1
    """``smoothing`` of tables of many rows."""

    # ---- the columns of a row

    order_rows: int = 20_000
    """Rows of the sample that chooses the order of the columns, and between values and changes."""
    steady_share: float = 0.6
    """Share of rows with the level of the row before from which a column of levels is drawn early."""
    others: int = 16
    """Other columns that the contexts of a column have, the most informative ones."""
    classes: int = 16
    """Classes of codes for the mutual information of columns."""
    codes_a_class: int = 4
    """Codes of each of these classes; columns of few codes have fewer classes."""
    binned_share: float = 0.0
    """Share of the cells of a column in bins of several values from which on changes may be predicted instead."""
    binned_share_of_many: float = 0.25
    """That share if ``smoothing`` is below 1: values with a code of their own are then drawn more truly."""
    still_share: float = 0.005
    """Share of values without a grid that repeat the one before, above which changes are not predicted."""
    judged_share: float = 0.25
    """Share of the sample by which values and changes are compared."""

    # ---- imputed means

    line_rows: int = 15_000
    """Rows of the sample that tells how near imputed means are to the line between their neighbours."""
    judged_line_share: float = 0.34
    """Share of it in which cells are hidden."""
    hidden_share: float = 0.2
    """Share of these cells that is hidden."""
    fewest_hidden: int = 30
    """Fewest hidden cells of a column on a side of its known ones; with fewer its means are those of the joint."""
    line_doubt: float = 1.0
    """Standard errors by which the weights of the line are lower than those of least squares."""
    line_hypotheses: int = 128
    """Hypotheses of these imputations: an eighth of those of `HistoryJoint.impute`, in an eighth of the time."""


FIXED = Constants()
