"""A joint as a report: one file of HTML."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..explore.subject import Subject
from .columns import columns, encoded
from .embed import Embedded, embedded
from .one_file import render
from .wire import wire


def write_report(joint: Any, path: str | os.PathLike[str], data: Any = None, *, title: str | None = None) -> None:
    """Write the report of a joint: see `Joint.report`."""
    Path(path).write_text(report_text(joint, data, title=title), encoding="utf-8", newline="\n")


def report_text(joint: Any, data: Any = None, *, title: str | None = None) -> str:
    """The report as HTML."""
    title = "joint" if title is None else title
    subject = Subject(joint, title)
    found = embedded(subject)
    X = None if data is None else encoded(subject, data)
    return render(
        wire(found, title, _size(joint)),
        title=title,
        size=_size(joint),
        source=_source(found),
        columns=columns(subject, X),
        n_rows=None if X is None else len(X),
    )


def _size(joint: Any) -> str:
    """What was learned, in words."""
    sizes = [(len(joint.columns), "column"), (joint.n_trees, "tree"), (joint.n_leaves, "leaf")]
    plural = {"column": "columns", "tree": "trees", "leaf": "leaves"}
    said = [f"{n:,} {what if n == 1 else plural[what]}" for n, what in sizes if n]
    return ", ".join(said + ([f"up to {joint.n_states:,} hidden states a column"] if joint.n_states else []))


def _source(found: Embedded) -> str:
    """Where the answers of the page come from."""
    bins = "Between the ends of a histogram's bins what is known is spread evenly."
    if found.is_itself:
        return f"The joint is in this file: answers on this page are its own. {bins}"
    states = found.hidden.trees[0].n_states.max()
    return (
        f"Answers on this page come from a smaller joint, of up to {states} hidden states a column, learned from "
        f"{found.n_rows:,} rows drawn from the joint: without evidence no share of a bin or level differs from the "
        f"joint's by more than {100 * found.difference:.2g} percentage points. {bins} For the joint's own answers, "
        "ask it in Python."
    )
