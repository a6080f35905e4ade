"""What would have to be different: the driver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np

from ...ground.checks import check_number
from ...ground.random_state import seed_of
from ...model.model import Model
from ...queries.posterior.density import log_density
from ...table.evidence import Evidence
from ...table.frames import decode, encode
from ...table.schema import Schema
from .choose import choose
from .distance import gower
from .outcome import ColumnOutcome, Outcome
from .predictor import ModelOutcome
from .problem import Problem, drawn_pool, floor_of
from .result import Counterfactuals
from .search import search


def counterfactual(
    model: Model,
    row: Any,
    model_or_target: Any,
    wanted: Any,
    fixed: Sequence[str],
    n: int,
    unlikely: float,
    random_state: Any,
    n_jobs: int | None,
) -> Counterfactuals:
    """See `Joint.counterfactual`."""
    check_number("n", n, 1, whole=True, text="a positive integer")
    check_number("unlikely", unlikely, 0, 100, without="high", text="a percentage, at least 0 and less than 100")
    schema, seed = model.schema, seed_of(random_state)
    x = _row(schema, row)
    outcome: Outcome
    if isinstance(model_or_target, str | int):
        outcome = ColumnOutcome(model, model_or_target, wanted, n_jobs)
        x[outcome.target] = np.nan
    else:
        outcome = ModelOutcome(schema, model_or_target, wanted)
    is_fixed = _fixed(schema, fixed, outcome)
    known = ~np.isnan(x)
    free = known & ~is_fixed
    if not (free & outcome.looks_at).any():
        raise ValueError(
            f"no cell may change: {int(known.sum())} of {len(x)} cells of the row are known, and these are fixed or of "
            "columns that the outcome does not depend on; fix fewer"
        )
    if bool(outcome.judge(x[None]).valid[0]):
        raise ValueError(f"the outcome of the row is as wanted already: {outcome.text}; ask for another one")
    _check_possible(model, outcome, x, is_fixed & known)
    pool = drawn_pool(model, outcome, x, is_fixed & known, seed, n_jobs)
    log_floor = floor_of(model, x, pool, float(unlikely), n_jobs)
    problem = Problem(model, outcome, x, tuple(np.flatnonzero(free).tolist()), pool, log_floor, n_jobs)
    found = search(problem, int(n), seed)
    return _result(problem, choose(problem, found.X, int(n)), found.is_fewest)


def _row(schema: Schema, row: Any) -> np.ndarray:
    """Numbers and codes of one row (d,): a frame of one row, a dict of cells by column, or a pandas Series."""
    if nw.dependencies.is_pandas_series(row):
        row = row.to_dict()
    if isinstance(row, Mapping):
        out = np.full(len(schema.columns), np.nan)
        for name, cell in row.items():
            j = schema.index(name)
            missing = cell is None or cell != cell or type(cell).__name__ in ("NAType", "NaTType")
            out[j] = np.nan if missing else schema.columns[j].to_number(cell)
        return out
    X, unseen = encode(schema, row)
    if len(X) != 1:
        raise ValueError(f"row: expected one row, got {len(X)}; pick one: frame[i : i + 1]")
    if unseen.any():
        names = [schema.names[j] for j in np.flatnonzero(unseen[0])]
        raise ValueError(
            f"row: column {names[0]!r} has a level never seen at learning; leave the cell out, or name another"
        )
    return X[0]


def _fixed(schema: Schema, fixed: Sequence[str], outcome: Outcome) -> np.ndarray:
    """Which columns are fixed, bool (d,)."""
    if isinstance(fixed, str):
        raise TypeError(f"fixed: expected a list of columns, got the text {fixed!r}; write [{fixed!r}]")
    out = np.zeros(len(schema.columns), bool)
    for name in fixed:
        out[schema.index(name)] = True
    if outcome.target is not None and out[outcome.target]:
        raise ValueError(
            f"fixed: column {schema.names[outcome.target]!r} is the target, whose outcome shall be another"
        )
    return out


def _check_possible(model: Model, outcome: Outcome, x: np.ndarray, fixed: np.ndarray) -> None:
    """A ValueError if the row's fixed cells, with the wanted outcome, have probability 0."""
    evidence = Evidence.of_values(np.where(fixed, x, np.nan)[None])
    if np.isneginf(log_density(model, outcome.given(evidence))[0]):
        names = ", ".join(repr(model.schema.names[j]) for j in np.flatnonzero(fixed))
        raise ValueError(
            f"the wanted outcome has probability 0 given the fixed cells ({names}): {outcome.text}; fix fewer"
        )


def _result(p: Problem, X: np.ndarray, is_fewest: bool) -> Counterfactuals:
    """Rows with all that is said of them."""
    m, mask, schema = len(X), p.changed(X), p.model.schema
    cells = schema.columns
    changed = tuple(
        {
            cells[j].label: (cells[j].from_number(p.row[j]), cells[j].from_number(X[i, j]))
            for j in np.flatnonzero(mask[i])
        }
        for i in range(m)
    )
    score = p.outcome.judge(X).score if m else np.empty(0)
    fewest = int(mask[0].sum()) if m else 0
    return Counterfactuals(
        rows=decode(schema, np.ascontiguousarray(p.outcome.filled(X) if m else X)),
        changed=changed,
        distance=gower(cells, X, p.row),
        log_density=p.log_density(X) if m else np.empty(0),
        outcome=p.outcome.shown(X) if m else np.empty(0, dtype=object),
        validity=score if p.outcome.has_probability else np.ones(m),
        log_floor=p.log_floor,
        is_fewest=is_fewest and m > 0,
        text=_text(p.outcome.text, m, fewest, is_fewest),
    )


def _text(wanted: str, m: int, fewest: int, is_fewest: bool) -> str:
    if not m:
        return f"wanted: {wanted}. No plausible row was found; fix fewer columns, or admit unlikely rows: unlikely=0"
    rows = f"{m} row{'' if m == 1 else 's'}, {fewest} change{'' if fewest == 1 else 's'} or more"
    return f"wanted: {wanted}. {rows}" + ("; fewer will not do" if is_fewest and fewest > 1 else "")
