"""One question of a page and its answer, whoever carries them; a joint of histories has questions of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..inference.shapley import make_plan
from . import answers, panels
from .answers import Known, Overtaken, Questions, always
from .shown import ShownJoint, shown_joint, to_shown
from .state import ImpossibleEvidence, place_of, sentence, write_evidence

if TYPE_CHECKING:
    from ..ensembles.table import Ensemble
    from .histories import ShownHistories


# ---- Why a column is predicted as it is: by how much each piece of the evidence moves the prediction.


EXACT = 7
"""Up to so many conditions all their subsets are asked; of more about as many subsets, drawn."""


def reasons(shown: ShownJoint, body: Mapping[str, Any]) -> dict[str, Any]:
    """By how much each condition of ``evidence`` moves the prediction of a column: conditional Shapley values."""
    known = Known(shown, body.get("evidence"))
    j = place_of(body.get("column"), len(shown.columns), "column")
    column = shown.columns[j]
    conditions = [name for name in known.conditions if name != column.name]
    if not conditions:
        raise ValueError(f"nothing is known but of column {column.name!r} itself: give evidence on another column")
    said = {one["column"]: one for one in write_evidence(shown.joint.schema, known.conditions)}
    pieces = [said[shown.joint.schema.index(name)] for name in conditions]
    level = None
    if column.is_categorical:
        whole = Known(shown, pieces).state.level_probabilities(j)[0]
        level = int(whole.argmax()) if body.get("level") is None else place_of(body["level"], len(whole), "level")

    def predicted(some: np.ndarray) -> float:
        state = Known(shown, [piece for piece, is_known in zip(pieces, some.tolist(), strict=True) if is_known]).state
        return float(state.level_probabilities(j)[0, level] if level is not None else state.moments(j)[0][0])

    plan = make_plan(len(pieces), max(2**EXACT, 4 * len(pieces)), 0)
    predictions = np.array([predicted(some) for some in plan.member])
    base, value = predictions[:2].tolist()
    on_page = (lambda x: x) if column.is_categorical else (lambda x: to_shown(column, x))
    unit = 1e3 if column.kind == "datetime" else 1.0  # a difference of dates is one of milliseconds
    steps = [
        {"name": name, "said": sentence({name: known.conditions[name]}), "by": amount * unit}
        for name, amount in zip(conditions, (plan.weight @ predictions).tolist(), strict=True)
    ]
    steps.sort(key=lambda step: -abs(step["by"]))
    return {
        "column": column.name,
        "level": None if level is None else str(column.levels[level]),
        "base": on_page(base),
        "value": on_page(value),
        "steps": steps,
        "is_exact": plan.is_exact,
    }


# ---- What a page may ask, and the answer.

ASKS: dict[str, Callable[..., Any]] = {
    "table": answers.table,
    "posterior": answers.posterior,
    "rows": panels.rows,
    "csv": panels.csv_text,
    "mode": panels.most_probable_row,
    "why": panels.carriers,
    "reasons": reasons,
    "pair": panels.two_columns,
    "depends": panels.depends,
    "moves": panels.moves,
    "row": panels.row,
    "check": panels.suspicious_cells,
}


OF_ROWS = Questions(ASKS, prepare=answers.prepare, waits=True, compile_ahead=panels.compile_ahead)


def questions_of(shown: ShownJoint | ShownHistories) -> Questions:
    """What a page of this joint may ask."""
    if isinstance(shown, ShownJoint):
        return OF_ROWS
    from .histories import QUESTIONS  # pages of tables do not wait for this import

    return QUESTIONS


def shown_of(joint: Any, title: str, rows: Any = None, trained: Ensemble | None = None) -> ShownJoint | ShownHistories:
    """The data that a page shows of a joint of rows or histories; raises ValueError if a model does not fit it."""
    if not joint.is_of_histories:
        return shown_joint(joint, title, rows, trained)
    if trained is not None:
        raise ValueError("model: a trained model predicts from single rows, and this is a joint of histories")
    from .histories import shown_histories

    return shown_histories(joint, title, rows)


def replaced(old: ShownJoint | ShownHistories, joint: Any, title: str | None) -> ShownJoint | ShownHistories:
    """The same with another joint, whose kind must be the same."""
    new = shown_of(joint, old.title if title is None else title, old.rows, getattr(old, "trained", None))
    if type(new) is not type(old):
        raise ValueError(f"this page shows a joint of {old.about}, and the new one is of {new.about}")
    return new


class _Reply(NamedTuple):
    """The answer, a dict of JSON or, of "csv", a text; and what kind of answer it is, as a status of HTTP."""

    status: int
    said: Any


def answer(
    shown: ShownJoint | ShownHistories, what: str, body: Mapping[str, Any], is_wanted: Callable[[], bool] = always
) -> _Reply:
    """The answer to one of `questions_of`; of what cannot be answered, why."""
    try:
        if not is_wanted():
            raise Overtaken
        questions = questions_of(shown)
        if questions.waits:
            questions.prepare(shown)
        ask = questions.asks[what]
        return _Reply(200, ask(shown, body, is_wanted) if what == "posterior" else ask(shown, body))
    except Overtaken:
        raise
    except ImpossibleEvidence as error:
        return _Reply(409, {"error": str(error), "impossible": True})
    except (ValueError, TypeError, OverflowError, NotImplementedError) as error:
        return _Reply(400, {"error": str(error) or type(error).__name__})
    except (MemoryError, RecursionError) as error:
        return _Reply(400, {"error": f"this question takes too much: {type(error).__name__}"})
    except Exception as error:  # so that the page shows the error, and the server continues
        print(f"explore: {what}: {type(error).__name__}: {error}", file=sys.stderr)
        return _Reply(500, {"error": f"an error of the library: {type(error).__name__}: {error}"})
