"""One question of a page and its answer, whoever carries them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from . import answers, panels, reasons
from .state import ImpossibleEvidence
from .subject import Subject

ASKS: dict[str, Callable[..., Any]] = {
    "table": answers.table,
    "posterior": answers.posterior,
    "rows": panels.rows,
    "csv": panels.csv_text,
    "mode": panels.mode,
    "why": panels.why,
    "reasons": reasons.reasons,
    "pair": panels.pair,
    "row": panels.row,
}


class Answer(NamedTuple):
    """What is said, a dict of JSON or, of "csv", a text; and what kind of answer it is, as a status of HTTP."""

    status: int
    said: Any


def always() -> bool:
    """Whether a question is still wanted, of those that nothing overtakes."""
    return True


def answer(subject: Subject, what: str, body: Mapping[str, Any], is_wanted: Callable[[], bool] = always) -> Answer:
    """The answer to one of `ASKS`; of what cannot be answered, why.

    Raises
    ------
    Overtaken
        If ``is_wanted`` says no.
    """
    try:
        if not is_wanted():
            raise answers.Overtaken
        answers.prepare(subject)
        if what == "posterior":
            return Answer(200, ASKS[what](subject, body, is_wanted))
        return Answer(200, ASKS[what](subject, body))
    except answers.Overtaken:
        raise
    except ImpossibleEvidence as error:
        return Answer(409, {"error": str(error), "impossible": True})
    except (ValueError, TypeError, OverflowError, NotImplementedError) as error:
        return Answer(400, {"error": str(error) or type(error).__name__})
    except (MemoryError, RecursionError) as error:
        return Answer(400, {"error": f"this question takes too much: {type(error).__name__}"})
    except Exception as error:  # so that the page says what happened, and whoever answers stays
        print(f"explore: {what}: {type(error).__name__}: {error}", file=sys.stderr)
        return Answer(500, {"error": f"an error of the library: {type(error).__name__}: {error}"})
