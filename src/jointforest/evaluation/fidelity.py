"""How true is a joint, or how true are synthetic rows, to a table?"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from ..data.frames import encode_ranges, ranges_in_words, read
from ..data.infer_schema import infer_schema
from ..data.rules.find import with_rules
from ..data.schema import Schema
from ..models.base import Distribution
from ..runtime.parameters import check, seed_of
from ..runtime.threads import threaded
from .columns_and_pairs import (
    MOST_PAIRS,
    TableCells,
    column_distances,
    pairs,
    read_rows,
    read_table_cells,
    some,
    table_cells,
)
from .held_out import (
    MEMBERSHIP_ROWS,
    Membership,
    count_copies,
    coverage,
    held_out,
    log_densities,
    membership,
    numeric_columns,
)
from .result import FIGURES, Fidelity
from .statements import statements
from .two_sample_test import FEWEST_ROWS, MOST_TEST_ROWS, ToldApart, told_apart


@threaded
def fidelity(
    joint_or_rows: Any,
    frame: Any,
    holdout: Any = None,
    *,
    only: Sequence[str] | None = None,
    random_state: Any = None,
    n_jobs: int | None = -1,
) -> Fidelity:
    """How true is a joint, or how true are synthetic rows, to a table?

    What each figure means, and what is good: ``docs/how-to/check-fidelity.md``.

    Parameters
    ----------
    joint_or_rows : Joint or frame of m rows
        Of a joint as many rows are drawn as ``frame`` has, missing cells too. Rows must have the columns of ``frame``.
    frame : frame of n rows
        The table that was learned from: pandas, polars, pyarrow, or a 2-D numpy array.
    holdout : frame of k rows, optional
        Rows of the same source that were not learned from. With it the score is also taken against rows that nobody
        has seen, copies have something to stand beside, and a joint is asked for log-density and intervals.
    only : sequence of str, optional
        The figures wanted, of "marginals", "pairs", "told_apart", "held_out", "coverage", "copies",
        "membership", "statements". Default: all.
    random_state : None, int, Generator or RandomState
        Draws rows, folds and samples; the same seed gives the same figures.
    n_jobs : int or None
        Threads; the figures do not depend on it.

    Returns
    -------
    Fidelity
        Prints as a page, the headline first. What could not be computed is None, with a reason in ``notes``.

    Raises
    ------
    ValueError
        Other columns than the table's, an empty table, an unknown figure.
    TypeError
        If neither a joint nor a frame was given.

    Examples
    --------
    >>> joint = jf.AdversarialForest(n_estimators=5, random_state=0).fit(penguins).joint_
    >>> found = jf.fidelity(joint, penguins, only=["marginals", "pairs"], random_state=0)
    >>> found.marginals.shape > 0.9, found.pairs.trend > 0.8
    (True, True)
    >>> wrong = penguins.assign(body_mass_g=penguins["body_mass_g"] + 500)
    >>> next(iter(jf.fidelity(wrong, penguins, only=["marginals"]).marginals.distance))
    'body_mass_g'
    """
    for one in FIGURES if only is None else only:
        check("only", one, FIGURES)
    wanted = set(FIGURES if only is None else only)
    seed = seed_of(random_state)
    if hasattr(type(joint_or_rows), "fit"):
        raise TypeError(f"expected a Joint or rows, got {type(joint_or_rows).__name__}; give its joint_")
    if getattr(joint_or_rows, "is_of_histories", False):
        raise TypeError("a joint of histories has figures of its own: joint.fidelity(frame, holdout)")
    joint = joint_or_rows if _is_joint(joint_or_rows) else None
    schema = infer_schema(frame) if joint is None else joint.schema
    left_out: dict[str, str] = {}
    for rows in (frame, holdout, None if joint else joint_or_rows):
        left_out |= {} if rows is None else ranges_in_words(schema, encode_ranges(schema, rows, None)[2])
    if left_out:  # the known cells of such a column are not a sample of its values
        kept = [name for name in schema.names if name not in left_out]
        if not kept:
            said = "; ".join(f"{name!r} {why}" for name, why in left_out.items())
            raise ValueError(
                f"no column can be compared: {said}; fill them first by joint.impute(frame, ranges='fill')"
            )
        names = schema.all_columns.names
        gone = [name for name in names if name not in kept]
        frame, holdout = (None if rows is None else _without_columns(rows, names, gone) for rows in (frame, holdout))
        if joint is None:
            joint_or_rows = _without_columns(joint_or_rows, names, gone)
            schema = infer_schema(frame)
        else:
            joint = joint_or_rows = joint.select(*kept)
            schema = joint.schema
    tables = _read_all(schema, joint_or_rows, frame, holdout, seed)
    measures = _compared(tables, wanted, seed) | _held_out_figures(joint, tables, wanted, seed)
    if "membership" in wanted and tables.new is not None:
        measures["membership"] = _membership(joint, tables, tables.new, seed)
    return Fidelity(
        of="rows" if joint is None else "joint",
        n_table=len(tables.real.X),
        n_rows=len(tables.rows.X),
        n_held_out=0 if tables.new is None else len(tables.new.X),
        library=read(frame).frame,
        notes=(
            *(f"{name!r} is not compared: it {why}" for name, why in left_out.items()),
            *_notes_of_figures(joint, tables, wanted),
        ),
        **measures,
    )


def _without_columns(frame: Any, names: Sequence[str], columns: Collection[str]) -> Any:
    """A frame, or an array whose columns have these names, without some of the columns."""
    if isinstance(frame, np.ndarray):
        return np.delete(frame, [k for k, name in enumerate(names) if name in columns], axis=1)
    return nw.from_native(frame, eager_only=True).drop(*columns, strict=False).to_native()


def _is_joint(given: Any) -> bool:
    """Whether this is a `Joint`; `api/` is a later layer, so its class cannot be imported here."""
    return isinstance(getattr(given, "distribution", None), Distribution)


class _Tables(NamedTuple):
    """The table, the rows to be compared with it, and held-out rows; these and the table encoded too (X and unseen)."""

    real: TableCells
    rows: TableCells
    new: TableCells | None
    encoded: tuple[np.ndarray, np.ndarray] | None
    encoded_real: tuple[np.ndarray, np.ndarray]


def _read_all(schema: Schema, joint_or_rows: Any, frame: Any, holdout: Any, seed: int) -> _Tables:
    """All that was given, by the schema of the table; rows drawn if it was a joint."""
    encoded_real = read_rows(schema, frame, "frame")
    real = table_cells(schema, *encoded_real)
    rows = joint_or_rows
    if _is_joint(rows):
        rows = rows.sample(len(real.X), seed, missing=True)
    encoded = None if holdout is None else read_rows(schema, holdout, "holdout")
    new = None if encoded is None else table_cells(schema, *encoded)
    found = read_table_cells(schema, rows, "rows")
    is_empty = np.where(found.n_levels > 0, found.n_levels - 1 == found.X, np.isnan(found.X)).all(axis=0)
    for j in np.flatnonzero(is_empty).tolist():
        if len(np.unique(real.X[:, j])) == 2:
            raise ValueError(
                f"rows: column {schema.names[j]!r} has no known cell, as in rows drawn where jf.censored names it; "
                "leave it, and the column that it is about, out of both tables"
            )
    return _Tables(real, found, new, encoded, encoded_real)


def _compared(tables: _Tables, wanted: set[str], seed: int) -> dict[str, Any]:
    """Figures of rows beside rows; each has random numbers of its own, so that it does not depend on the others."""
    real, rows, new, *_ = tables
    measures: dict[str, Any] = {}
    if "marginals" in wanted:
        measures["marginals"] = column_distances(real, rows)
        measures["marginals_held_out"] = None if new is None else column_distances(real, new)
    if "pairs" in wanted and len(real.names) > 1:
        measures["pairs"] = pairs(real, rows, np.random.default_rng([seed, 1]))
        measures["pairs_held_out"] = None if new is None else pairs(real, new, np.random.default_rng([seed, 1]))
    if "told_apart" in wanted:
        measures |= _told_apart(real, rows, new, seed)
    if "copies" in wanted:
        measures["copies"] = count_copies(real, rows, new, np.random.default_rng([seed, 2]))
    return measures


def _told_apart(real: TableCells, rows: TableCells, new: TableCells | None, seed: int) -> dict[str, ToldApart | None]:
    """Scores against the table, held-out rows, and as many of the table's as are held out; none of too few rows."""

    def score(one: TableCells) -> ToldApart | None:
        return None if min(len(one.X), len(rows.X)) < FEWEST_ROWS else told_apart(one, rows, seed)

    of_all = score(real)
    if new is None:
        return {"told_apart": of_all}
    same = min(len(new.X), len(rows.X)) >= min(len(real.X), len(rows.X))
    few = real.take(some(len(real.X), len(new.X), np.random.default_rng([seed, 5])))
    as_many = of_all if same else score(few)
    return {"told_apart": of_all, "told_apart_held_out": score(new), "told_apart_as_many": as_many}


def _held_out_figures(joint: Any, tables: _Tables, wanted: set[str], seed: int) -> dict[str, Any]:
    """Figures of a joint asked about held-out rows."""
    measures: dict[str, Any] = {}
    if joint is not None and "statements" in wanted:
        (X, unseen), of = tables.encoded_real, "the table"
        if tables.encoded is not None:
            (X, unseen), of = tables.encoded, "held-out rows"
        model = joint.distribution
        if not model.schema.rules:  # most learners look for none
            real = np.where(tables.encoded_real[1], np.nan, tables.encoded_real[0])
            model = model.with_schema(with_rules(model.schema, real))
        measures["statements"] = statements(model, np.where(unseen, np.nan, X), of)
    if joint is None or tables.encoded is None:
        return measures
    if "held_out" in wanted:
        measures["held_out"] = held_out(joint.distribution, *tables.encoded, np.random.default_rng([seed, 3]))
    if "coverage" in wanted and numeric_columns(joint.schema):
        measures["coverage"] = coverage(joint.distribution, *tables.encoded, np.random.default_rng([seed, 4]))
    return measures


def _membership(joint: Any, tables: _Tables, new: TableCells, seed: int) -> Membership:
    """Attacks on rows of the table and held-out rows, by density too where there is a joint."""
    random, density = np.random.default_rng([seed, 6]), None
    if joint is not None and tables.encoded is not None:
        density = (
            log_densities(joint.distribution, *tables.encoded_real, MEMBERSHIP_ROWS, random),
            log_densities(joint.distribution, *tables.encoded, MEMBERSHIP_ROWS, random),
        )
    return membership(tables.real, tables.rows, new, density, np.random.default_rng([seed, 7]))


def _notes_of_figures(joint: Any, tables: _Tables, wanted: set[str]) -> list[str]:
    """What was left out or cut, and why."""
    real, rows, new, *_ = tables
    notes = []
    d = len(real.names)
    n_pairs = d * (d - 1) // 2
    if "pairs" in wanted and d == 1:
        notes.append("pairs: the table has one column")
    if "pairs" in wanted and n_pairs > MOST_PAIRS:
        notes.append(f"pairs: {MOST_PAIRS:,} of {n_pairs:,} pairs, drawn by chance")
    if "told_apart" in wanted:
        fewest = min(len(real.X), len(rows.X))
        if fewest < FEWEST_ROWS:
            notes.append(f"told apart: needs {FEWEST_ROWS} rows of each, there are {fewest}")
        elif new is not None and len(new.X) < FEWEST_ROWS:
            notes.append(f"told apart from held-out rows: needs {FEWEST_ROWS} of them, there are {len(new.X)}")
        if fewest > MOST_TEST_ROWS:
            notes.append(f"told apart: {MOST_TEST_ROWS:,} rows of each, drawn by chance")
    if new is None and wanted & {"held_out", "coverage", "copies", "told_apart", "membership"}:
        notes.append("no held-out rows: nothing tells learning from remembering; give holdout=")
    elif joint is None and wanted & {"held_out", "coverage"}:
        notes.append("log-density and intervals: rows have none, give the joint")
    return notes
