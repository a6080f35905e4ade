"""The constants of hidden trees, each with the reason for its value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Constants:
    """Numbers that no parameter sets. Those without another reason are set by hand and bound time or memory.

    The experiments are in ``docs/experiments/hidden-tree-settings.md``. `structure` has its own, as questions about
    dependence use it, too.
    """

    # ---- settings by the size of the table

    many_rows: int = 5_000
    """Rows from which on states are given. In smaller tables the validation log-likelihood chooses them."""
    states: int = 256
    """States of a column in tables of many rows."""
    more_states: int = 384
    """States of a column where eight leaves are not tried for want of rows: one tree then has to hold all clusters."""
    bins: int = 128
    """Codes of a number in tables of many rows: a bin then has at least 39 rows."""
    fewest_bins: int = 16
    """Codes of a number in the smallest tables; between, they grow as the root of the number of rows."""
    fine_ends: float = 0.5
    """How much finer the outer bins of small tables are. Their bins are wide, and dependence at the ends would be
    lost."""
    point_mass_bins: float = 2.0
    """Mean bins that a point mass exceeds in small tables, whose bins are wide."""
    near: float = 0.3
    """`Smoothing.near` of small tables. More rows weaken the dependence of columns that are not neighbours in the tree:
    states that lie near in the child's column may lie far apart in others (see the experiment on small tables)."""
    fewest_passes: int = 2
    """Passes over the rows of the largest tables."""
    most_passes: int = 8
    """Passes over the rows of the smallest tables."""
    visits: int = 500_000
    """Rows that all passes meet together, where the bounds allow it."""
    full_passes: int = 2
    """Passes over all rows at once, of one tree. Each makes draws resemble the rows more, and lowers the validation
    log-likelihood a little."""
    full_passes_of_leaves: int = 4
    """The same with eight leaves, each of which has fewer rows."""
    full_passes_of_ranges: int = 10
    """The same where cells are ranges, fewer in tables of many rows. What is known of cells in part spreads slowly: in
    two groups of 400 rows half of which are censored, 2 passes left errors of about .05 in the survival of each, 10
    of .04, 30 of .03. They are for ranges in which other values lie, or ends of ranges. Where none do, as below one
    limit, passes learn nothing of the place in the range, and lose some of the dependence that exchanged values have:
    with 42 % of a normal column below a limit, and a correlation of .80 with another, imputed tables have .767 after 10
    passes and .774 after 2 (.789 by the joint of true values)."""
    small_members: int = 4
    """Least number of trees in the mixture of a small table, with any named budget: with 1, 2, 4 and 8 leaves it has a
    higher held-out likelihood than any of them, and conditional probabilities as good as counted ones (see the
    experiment on answers beside counting)."""
    more_members: int = 8
    """The same from `rows_of_more_members` rows on. With 3,000 rows the loss of means given evidence falls from 1.22 to
    1.17 times that of counting; with 1,000 rows it does not fall."""
    rows_of_more_members: int = 2_000
    """See `more_members`."""
    fewest_rows_of_leaves: int = 50
    """Mean rows of a leaf in the mixtures of small tables."""
    perturb: float = 0.2
    """Spread of the log of mutual information, so that the trees of a mixture differ."""
    batch_rows: int = 500_000
    """Rows of the sample that a table in batches is learned from: as codes they are small."""

    # ---- the first joint, by which forests complete rows

    first_rows: int = 5_000
    """Most rows that it is learned from."""
    first_states: int = 32
    """Most states: twice as many kept no more of the correlations in drawn cells, and took 1.3 times as long."""
    first_normal: float = 5.0
    """`Smoothing.normal` of it. With 60 % of the cells missing, states have few known cells: 30 kept 87 % of a
    correlation between columns of six values, 5 kept 97 %; without any, draws of columns of many values kept less."""

    # ---- trials of settings

    trial_work: float = 3e11
    """Multiply-adds of all trials together, about, which bounds the time."""
    trial_share: float = 0.5
    """Work of the trials, as a share of that of learning itself, at most."""
    trial_rows: int = 4_000
    """Rows that trials see in any case."""
    trial_columns: int = 96
    """Columns that trials see in wide tables, as their time is that of the columns."""
    trial_held_out: int = 400
    """Held-out rows that a small table's trials look at together, over several splits."""
    trial_splits: int = 4
    """Most splits of these."""
    trials: int = 8
    """Number of trials that the work is planned for."""
    trial_passes: int = 3
    """Most passes of a trial."""
    trial_batches: int = 4
    """Fewest batches in a pass of a trial."""
    rows_a_state_without_trials: int = 8
    """Rows for each state in tables too small for trials."""
    start_states: int = 16
    """States of the trials that choose the start, before the number of states is chosen."""
    states_tried: tuple[int, ...] = (4, 8, 16, 32, 64, 128, 256)
    """Numbers of states that are tried, in this order, until two in a row bring nothing."""
    most_rows_a_state: int = 24
    """Most rows for each state in small tables: with n rows, at least n / 24 states are tried. Fewer states often give
    new rows a higher log-density, but weaken the dependence. For 1,000 rows of Adult, the loss of means given one
    column, divided by that of counting, is 1.04 with 16 states and .86 with 64."""
    more_transition: float = 0.3
    """`Smoothing.transition` that is tried where the likelihood of new rows matters."""
    leaves: int = 8
    """Leaves of the decision tree that is tried beside none."""
    leaves_score: float = 0.15
    """Difference of told-apart scores by which a trial of leaves decides, whatever the likelihood. Draws of one leaf
    gain much by the passes that a trial does not make: on shoppers, eight were .09 better in the trial, and .03 worse
    at last (see the experiment on choices for draws)."""
    quick_leaves_score: float = 0.03
    """The same where learning is soon over: twice the standard error of the difference of two quick tests."""
    rows_a_state: int = 4
    """Fewest rows for each state, of a leaf or of a table that has more states than the fewest."""
    short_passes: int = 2
    """Passes over all rows of the trials of leaves and of pairs."""
    quick_passes: int = 3
    """Learning of at most so many passes and `quick_states` is soon over, and so must trials be."""
    quick_states: int = 128
    """See `quick_passes`."""
    lost: float = 0.05
    """Fall of a pair's dependence, as a correlation of normal columns, from which on it may be joined."""
    lost_draws: int = 20_000
    """Most rows that show what a tree has lost."""

    # ---- trials of compounds, by draws and validation rows

    compound_rows: int = 8_000
    """Most rows that a trial learns from and is validated on."""
    compound_states: int = 64
    """States of a trial."""
    compound_normal: float = 30.0
    """`Smoothing.normal` of a trial."""
    compound_score: float = 0.02
    """Fall of the told-apart score that counts as chance: about the standard error of the difference of two scores."""

    # ---- passes of expectation maximisation

    held_out: float = 0.1
    """Share of the rows that tell when to stop."""
    fewest_held_out_from: int = 100
    """Rows below which none is held out, and all passes are made."""
    start_rows: int = 20_000
    """Most rows that the first states are found from."""
    annealed: float = 0.5
    """Share of the rows added to transitions at first that is left after each pass."""
    few_states: int = 128
    """States up to which batches are twice as long: much of the time does not depend on the rows then."""
    fewest_in_batch: int = 8
    """Fewest rows of a batch."""
    wide: int = 200
    """Columns from which the time of a batch is that of its columns, so that there are fewer batches."""
    wide_batches: int = 12
    """Most batches of a pass in wide tables. Twice as many gained .02 nats of validation log-likelihood on a table of
    180 columns (dna), and nothing on one of 220."""
    dropout: float = 0.2
    """Share of the cells that passes in batches hide in tables of many rows, where the likelihood of new rows matters.
    Draws do not gain by it (see the experiment on the population)."""
    patience: int = 2
    """Passes in a row that may bring no gain."""
    piece_entries: int = 1 << 15
    """Entries of a message in one piece of work, rows x states: 128 KiB, which the processor's cache holds. Sums are
    merged in the order of the pieces."""
    piece_fewest_rows: int = 128
    """Fewest rows of a piece, unless its messages are too many: fewer would mostly be overhead."""
    piece_most_rows: int = 256
    """Most rows of a piece."""
    piece_floats: int = 16_000_000
    """Most numbers in the messages of one kind of a piece: 64 MB."""
    fewest_piece_rows: int = 48
    """Fewest rows of the two pieces of a short batch: fewer would not be worth a thread."""
    waiting_pieces: int = 8
    """Pieces whose sums wait to be merged."""
    long_batch: int = 1_024
    """Rows of a batch from which pieces are four times as long, as merging tables takes long, too."""
    batches_of_normals: int = 4
    """Batches after which the states' normals are fitted anew: they take long, and hardly change."""
    threads_from_states: int = 64
    """States from which the rows of a batch are worth threads."""
    part_entries: int = 1 << 18
    """Entries of tables whose maximisation is worth a thread."""
    negligible_share: float = 1e-6
    """Share of a row below which a tree does without it."""
    shared_at_once: int = 8_192
    """Rows that trees share out at once."""

    # ---- smoothing

    point_mass: float = 1 / 32
    """Part of the rows beyond which a code is a point mass, where bins are fine: four bins' worth."""
    point_mass_above: float = 2.0
    """A point mass also has so many times the mean of the codes beside it."""
    least_rows: float = 1e-4
    """Rows added in any case, so that no code has probability 0. With 0.01 the log-density is higher by 0.001 for each
    column, but they go anywhere: standard deviations within narrow groups far apart are twice as large."""
    missing_evidence: float = 10.0
    """Log-likelihood ratio, less that of chance, from which on missing cells count as depending on another column."""
    explained: float = 0.75
    """Share of the entropy of which cells are missing from which on another column explains a large part of it."""
    most_missing_groups: int = 256
    """Most nodes of missing cells, which bounds the time of questions about very wide tables."""
    missing_rows: float = 0.5
    """Rows added to the counts of a node of missing cells, in the proportions of the column."""
    most_codes_of_missing: int = 512
    """Most codes of a column below whose codes missing cells hang, and not below its states."""

    sweeps: int = 30
    """Most sweeps of iterative proportional fitting over the columns."""
    least_share: float = 1e-6
    """Share of a code that no row has and that is possible."""
    raked: float = 2e-5
    """Error of the share of a code at which these end."""

    gap: float = 6.0
    """Normal scores by which codes on both sides of a gap between values are moved apart. It is also the most by which
    codes on both sides of a sparse place are."""

    # ---- first states

    factors: int = 8
    """Factors by which missing cells are drawn before the first states are found: EM follows."""
    factor_cells: int = 2_000_000
    """Most numbers that the factors are fitted to, which is fewer rows of wide tables."""
    factor_passes: int = 20
    """Passes that fit the factors."""
    factor_ridge: float = 1e-3
    """Added to the second moments of the factors, as a share of their prior variance."""
    range_rounds: int = 4
    """Rounds in which values of ranges are exchanged among rows, each by factors fitted anew."""
    range_smoothing: float = 1e-3
    """Rows by which the mass of a range is spread over its codes where no row has one of them."""
    most_ranges: int = 512
    """Most different ends of the ranges of a column; neighbours of more are joined."""
    rakings: int = 3
    """Times that the probabilities of drawn levels are adjusted to their means."""
    least_noise: float = 0.02
    """Least variance of a feature that the factors leave open."""

    # ---- hidden trees of a factor analysis; the experiment is in ``docs/experiments/dependence-between-numbers.md``

    states_of_factors: int = 512
    """States of the root."""
    factors_of_trees: tuple[int, int] = (8, 4)
    """Most factors of trees in turn. Draws of eight factors keep more dependence, and fewer give new rows a higher
    log-density; a mixture has nearly all of both."""
    rows_a_cluster: int = 25
    """Rows of a cluster. Half or twice as many made next to no difference."""
    most_clusters: int = 16
    """Most clusters."""
    complete_passes: int = 30
    """Passes that fit the factors to complete rows; each is of the columns' second moments alone."""
    first_noise: float = 0.05
    """Least variance of noise before the first pass."""
    least_factor_noise: float = 0.01
    """Least variance of noise, so that no column is a function of the factors."""
    least_noise_of_levels: float = 0.05
    """Least variance of noise by which states share rows for the counts of levels."""
    odd_cells: float = 0.003
    """Share of the marginal of a column of levels in each state, so that no level has probability 0. With 0.02 every
    fifth row of ten columns has a cell that does not go with the others, and draws were farther from other rows."""
    wider_share: float = 0.02
    """Share of the wider normal in each state."""
    wider_times: float = 3.0
    """How much wider it is. A share of 0.1, or four times, gives a higher log-density but wrong standard deviations."""
    odd_numbers: float = 1e-4
    """Share of the marginal of a number in each state. With 0.003 instead of the wider normal, the standard deviation
    given other columns was too large by up to half where columns depend on each other closely."""
    most_turns: int = 30
    """Most rounds that adjust tables to their marginals. With ten, some means were off by .8 standard errors; with 200,
    standard deviations given close columns were too large by two fifths."""
    rows_a_code: int = 5
    """Rows of each code of a number before it is cut into parts."""
    most_codes: int = 40
    """Most codes of a number before they are cut into parts."""
    parts_of_codes: int = 3
    """Parts that each code of a number is cut into. Dependence inside codes is lost; masses of parts are smoothed by
    normals, while densities from fewer rows than those of a code would be rough."""

    indicator_levels: int = 24
    """Most indicators of one column."""
    rare_level: float = 0.002
    """A level that a smaller share of the rows has gets no indicator: its unit variance would outweigh the others."""
    indicators: int = 2_048
    """Most indicators of all columns together."""
    cluster_cells: int = 20_000_000
    """Most numbers that clustering sees, which is fewer rows of wide tables: 160 MB."""
    faint_weight: float = 0.02
    """Columns of less weight are left out of a local start."""
    nearest_columns: int = 16
    """Most columns of a local start."""
    cluster_passes: int = 8
    """Passes of k-means; EM follows, so that the clusters need not be exact."""
    centres_at_once: int = 8
    """Centres drawn together, where there are many."""
    many_centres: int = 64
    """Each of fewer centres is drawn by its distance to all before it, or two may share a cluster."""
    near_variance: float = 0.02
    """Share of the variance of the child's states that is added to each normal, so that none is a point."""
    leaf_rows: int = 20_000
    """Most rows that splits into leaves are found on."""
    leaf_numbers: int = 64
    """Most numbers of a row that splits look at: wider rows are projected."""
    leaf_fewest: float = 1 / 3
    """Fewest rows of a leaf, as a share of the rows of an average leaf."""


FIXED = Constants()
