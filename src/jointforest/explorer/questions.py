"""One question of a page and its answer, whoever carries them; a joint of histories has questions of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from . import answers, panels, reasons
from .asking import Overtaken, Questions, always
from .shown import ShownJoint, shown_joint
from .state import ImpossibleEvidence

if TYPE_CHECKING:
    from ..ensembles.table import Ensemble
    from .histories import ShownHistories


ASKS: dict[str, Callable[..., Any]] = {
    "table": answers.table,
    "posterior": answers.posterior,
    "rows": panels.rows,
    "csv": panels.csv_text,
    "mode": panels.mode,
    "why": panels.why,
    "reasons": reasons.reasons,
    "pair": panels.pair,
    "depends": panels.depends,
    "moves": panels.moves,
    "row": panels.row,
    "check": panels.check,
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


class _Answer(NamedTuple):
    """The answer, a dict of JSON or, of "csv", a text; and what kind of answer it is, as a status of HTTP."""

    status: int
    said: Any


def answer(
    shown: ShownJoint | ShownHistories,
    what: str,
    body: Mapping[str, Any],
    is_wanted: Callable[[], bool] = always,
) -> _Answer:
    """The answer to one of `questions_of`; of what cannot be answered, why."""
    try:
        if not is_wanted():
            raise Overtaken
        questions = questions_of(shown)
        if questions.waits:
            questions.prepare(shown)
        ask = questions.asks[what]
        return _Answer(200, ask(shown, body, is_wanted) if what == "posterior" else ask(shown, body))
    except Overtaken:
        raise
    except ImpossibleEvidence as error:
        return _Answer(409, {"error": str(error), "impossible": True})
    except (ValueError, TypeError, OverflowError, NotImplementedError) as error:
        return _Answer(400, {"error": str(error) or type(error).__name__})
    except (MemoryError, RecursionError) as error:
        return _Answer(400, {"error": f"this question takes too much: {type(error).__name__}"})
    except Exception as error:  # so that the page shows the error, and the server continues
        print(f"explore: {what}: {type(error).__name__}: {error}", file=sys.stderr)
        return _Answer(500, {"error": f"an error of the library: {type(error).__name__}: {error}"})
