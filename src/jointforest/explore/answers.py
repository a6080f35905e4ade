"""What a page asks of a joint first of all, as plain dicts of JSON: the table, and all columns given evidence."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from typing import Any

from ..ground.threads import map_ordered
from ..table import times
from ..table.schema import Column
from .known import Known
from .missing_cells import missing_shares
from .numbers import all_shown
from .one_column import column_answer
from .state import place_of, python_call, shell_command, write_evidence
from .subject import Bins, Subject

_PREPARING = threading.Lock()


class Overtaken(Exception):
    """Nobody waits for the answer any more."""


def _always() -> bool:
    return True


def table(subject: Subject, body: Mapping[str, Any]) -> dict[str, Any]:
    """The columns, and how their histograms are cut; ``body`` says nothing."""
    can_miss = subject.can_miss
    return {
        "title": subject.title,
        "version": subject.version,
        "said": size(subject.joint),
        "rows": None if subject.rows is None else len(subject.rows),
        "columns": [
            _about(column, bins) | {"can_miss": column.name in can_miss}
            for column, bins in zip(subject.columns, subject.bins, strict=True)
        ],
    }


def posterior(subject: Subject, body: Mapping[str, Any], is_wanted: Callable[[], bool] = _always) -> dict[str, Any]:
    """Every column given ``evidence``, or those whose places ``columns`` lists; their own numbers if ``exact``.

    Raises
    ------
    Overtaken
        If ``is_wanted`` says no, which is asked before each column.
    ImpossibleEvidence
        If the evidence has probability 0.
    ValueError
        Of evidence or columns that there are not.
    """
    known = Known(subject, body.get("evidence"))
    wanted, is_exact = _places(body.get("columns"), len(subject.columns)), body.get("exact") is True
    columns = columns_given(subject, known, wanted, is_exact, is_wanted)
    return {
        "id": body.get("id"),
        "version": subject.version,
        "evidence": write_evidence(subject.joint.schema, known.conditions),
        "sentence": known.sentence,
        "python": python_call(known.conditions),
        "shell": shell_command(subject.title, known.conditions, subject.columns[wanted[0] if wanted else 0]),
        "probability": None if known.is_density else min(math.exp(known.log_probability), 1.0),
        "log_probability": known.log_probability,
        "supported": known.is_supported,
        "columns": columns,
    }


def columns_given(
    subject: Subject, known: Known, wanted: list[int], is_exact: bool, is_wanted: Callable[[], bool] = _always
) -> list[dict[str, Any]]:
    """The answers of the wanted columns, worked out side by side; the evidence is weighed once."""
    if not known.conditions and not is_exact and subject.kept:
        return [subject.kept[j] for j in wanted]

    def work(j: int) -> dict[str, Any]:
        if not is_wanted():
            raise Overtaken
        return column_answer(subject, known, j, is_exact)

    missing = missing_shares(subject, known)
    found = map_ordered(work, [(j,) for j in wanted])
    return [answer | {"missing": missing[j]} for j, answer in zip(wanted, found, strict=True)]


def prepare(subject: Subject) -> None:
    """Work out what every question needs, so that the first of a page finds it; once, whoever asks meanwhile."""
    with _PREPARING:
        if not subject.kept:
            table(subject, {})
            found = columns_given(subject, Known(subject, None), list(range(len(subject.columns))), False)
            subject.kept.update(enumerate(found))


def _about(column: Column, bins: Bins) -> dict[str, Any]:
    about: dict[str, Any] = {
        "name": column.name,
        "kind": column.kind,
        "levels": None,
        "labels": None,
        "edges": None,
        "step": None,
        "atoms": [],
        "zone": None,
    }
    if column.is_categorical:
        return about | {"levels": list(column.levels), "labels": [str(level) for level in column.levels]}
    step = column.step * 1e3 if column.kind == "datetime" else column.step
    zone = times.zone_of(column.dtype) if column.kind == "datetime" else None
    shown = {"edges": all_shown(column, bins.edges), "atoms": all_shown(column, bins.atoms)}
    return about | shown | {"step": step or None, "zone": zone}


def size(joint: Any) -> str:
    """How large a joint is, in words."""
    sizes = [(len(joint.columns), "column"), (joint.n_trees, "tree"), (joint.n_leaves, "leaf")]
    plural = {"column": "columns", "tree": "trees", "leaf": "leaves"}
    said = [f"{n:,} {what if n == 1 else plural[what]}" for n, what in sizes if n]
    return ", ".join(said + ([f"up to {joint.n_states:,} hidden states a column"] if joint.n_states else []))


def _places(said: Any, d: int) -> list[int]:
    if said is None:
        return list(range(d))
    if not isinstance(said, list):
        raise ValueError(f"columns: expected a list of places, got {type(said).__name__}")
    return [place_of(j, d, "columns") for j in said]
