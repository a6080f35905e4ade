"""A joint as a report: one file of HTML."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..cards import signed
from ..data.reading import in_words
from ..evaluation.fidelity import fidelity
from ..evaluation.result import Fidelity, sections
from ..explorer.answers import size
from ..explorer.panels import row
from ..explorer.scripts import IMPORT, PAGE, reached, script_text
from ..explorer.shown import ShownJoint, check_with_notes, suspicious
from ..inference.explanation import tree_text
from ..runtime.parameters import check_number
from .embed import Embedded, embedded, wire
from .summary import arcs, columns, encoded, find_dependence, judged, matrix, predictors, summary

# ---- What was learned, in words: kinds of columns, what was compared, a small tree.

_MOST_LEAVES = 24
"""Leaves of a tree that can be read as text."""


def facts(joint: Any) -> list[tuple[str, str]]:
    """Names and texts: columns, rows, parts, how it was chosen."""
    about = joint.info()
    kinds = Counter(column["kind"] for column in about["columns"])
    most = max((column["n_observed"] for column in about["columns"]), default=0)
    found = [
        ("columns", ", ".join(f"{n:,} {kind}" for kind, n in sorted(kinds.items(), key=lambda one: (-one[1], one[0])))),
        ("learned from", f"{most:,.0f} rows, counted by the known cells of the fullest column"),
        ("the joint", repr(joint)),
    ]
    if joint.epsilon:
        found.append(("background", f"{joint.epsilon:.2g} of the weight, for rows like none that was seen"))
    if joint.fitted_by is not None:
        found.append(("chosen by", joint.fitted_by.in_words))
    return found


def outline(joint: Any) -> str | None:
    """The tree of a joint of one tree with few leaves, as text; None of any other."""
    if joint.n_trees != 1 or not 1 < joint.n_leaves <= _MOST_LEAVES or joint.n_states:
        return None
    return tree_text(joint.distribution.box_trees_for("tree_text"), 0, _MOST_LEAVES)


# ---- The rows of a table that the joint finds least probable, and which of their cells make them so.

USUAL, UNLIKELY, IMPOSSIBLE = 1.6, 3.0, 16.0
"""Nats from which on the page shows how unlikely a cell is (1 in 5), marks it (1 in 20), and shows no larger figure."""
CELLS = 5
"""Cells that are shown of a row."""


def unusual_rows(shown: ShownJoint, frame: Any, k: int) -> list[dict[str, Any]]:
    """The k rows of least log-density, the least first, each with its least likely cells."""
    density = np.asarray(shown.joint.log_density(frame))
    beside = replace(shown, rows=frame)
    found = []
    for i in np.argsort(density, kind="stable")[:k].tolist():
        cells = [cell for cell in row(beside, {"row": i})["cells"] if cell["unlikely"] is not None]
        cells.sort(key=lambda cell: -cell["unlikely"])
        listed = [
            {
                "name": cell["name"],
                "text": cell["shown"],
                "expected": cell["expected"],
                "is_odd": cell["unlikely"] >= UNLIKELY,
                "unlikely": one_in(cell["unlikely"]),
            }
            for cell in cells[:CELLS]
        ]
        found.append({"number": i, "log_density": signed(f"{density[i]:.2f}"), "cells": listed})
    return found


def one_in(nats: float) -> str:
    """How few cells are as unlikely as this, in words; nothing of usual ones."""
    if nats < USUAL:
        return ""
    return f"1 in {math.exp(nats):,.0f} is as unlikely" if nats < IMPOSSIBLE else "next to impossible"


class WantedSections(NamedTuple):
    """What a report holds besides the joint: see `Joint.report`."""

    data: Any = None
    holdout: Any = None
    target: str | None = None
    examples: int = 0
    title: str | None = None


def write_report(joint: Any, path: str | os.PathLike[str], wanted: WantedSections) -> None:
    """Write the report of a joint: see `Joint.report`."""
    path = Path(path)
    if path.is_dir():  # before the seconds that a report takes
        raise IsADirectoryError(f"{path} is a directory; expected the path of a file, such as {path / 'report.html'}")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"no directory {path.parent}; make it first, or write the report elsewhere")
    path.write_text(report_text(joint, wanted), encoding="utf-8", newline="\n")


def report_text(joint: Any, wanted: WantedSections) -> str:
    """The report as HTML."""
    data, holdout, target, examples, title = wanted
    _check_wanted(joint, wanted)
    title = "joint" if title is None else title
    shown = ShownJoint(joint, title)
    table = None if data is None else encoded(shown, data)
    found, depends = embedded(shown), find_dependence(shown, table)
    faithful = None if data is None else fidelity(joint, data, holdout, random_state=0)
    unusual = unusual_rows(shown, data, examples) if examples else None
    checked = check_with_notes(joint, data) if examples else None
    reading = [one for one in joint.reading.columns if one.notes]
    return render(
        wire(found, title, size(joint) if found.is_itself else f"a smaller joint of {size(found.shown.joint)}"),
        title=title,
        size=size(joint),
        source=_source_in_words(found),
        summary=summary(joint.schema, joint.schema.n_rows, depends, target, faithful, unusual, reading),
        facts=facts(joint),
        reading=reading,
        rules=[in_words(rule) for rule in joint.rules],
        fidelity=None if faithful is None else _figures(faithful),
        columns=columns(shown, table),
        n_rows=None if table is None else len(table.X),
        matrix=None if depends is None else matrix(depends),
        arcs=None if depends is None else arcs(depends),
        target=target,
        predictors=[] if depends is None or target is None else predictors(depends, target),
        unusual=unusual,
        suspicious=None if checked is None else suspicious(checked.found.cells, examples),
        suspicious_notes=[] if checked is None else checked.notes,
        outline=outline(joint),
    )


def _figures(found: Fidelity) -> dict[str, Any]:
    """The template's data on fidelity."""
    return {"judged": judged(found), "sections": sections(found), "notes": found.notes}


def _check_wanted(joint: Any, wanted: WantedSections) -> None:
    """See that what is wanted can be had."""
    check_number("examples", wanted.examples, 0, whole=True, text="a whole number of rows, 0 or more")
    if wanted.target is not None:
        joint.schema.index(wanted.target)
    for name, is_wanted in (("holdout", wanted.holdout is not None), ("examples", wanted.examples > 0)):
        if is_wanted and wanted.data is None:
            raise ValueError(f"{name}= needs the rows that were learned from, too: give data=")
    if wanted.title is not None and not isinstance(wanted.title, str):
        raise TypeError(f"title: expected a text or None, got {type(wanted.title).__name__}")


def _source_in_words(found: Embedded) -> str:
    """Where the answers of the page come from, and how far they are from the joint's."""
    measured = ""
    if found.errors is not None:
        measured = (
            f"Over {found.errors.n:,} random pieces of evidence on one to three columns, the largest difference of a "
            f"probability was {_points(found.errors.largest)}. The largest difference of a piece was at most "
            f"{_points(found.errors.usual)} for half of the pieces."
        )
    if found.is_itself:
        return f"The joint itself is in this file, and the cards answer from it. {measured}".strip()
    return (
        "The joint is too large for this file. The cards answer from a smaller joint, which was learned from "
        f"{found.n_rows:,} rows drawn from it. {measured} Ask the joint in Python for its own answers. The sections "
        "below the cards are those of the joint itself."
    )


def _points(share: float) -> str:
    return f"{100 * share:.2g} percentage points"


# ---- Scripts, styles and data inside one file of HTML, which a browser runs from disk and which reaches no network.


FILES = Path(__file__).parent / "page"
"""Where the report's own scripts, styles and template are."""
_HINT = "a report needs Jinja2: pip install 'jointforest[report]'"
_MAIN = "report_main.js"


def render(data: Mapping[str, Any], **told: Any) -> str:
    """The report: the template filled with ``told`` and, for its scripts, with ``data``."""
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
        from markupsafe import Markup
    except ImportError as error:
        raise ImportError(_HINT) from error
    page = Environment(
        autoescape=True, loader=FileSystemLoader(FILES), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    page.filters["breakable"] = _breakable
    style = script_text(PAGE / "style.css") + script_text(FILES / "report.css")
    modules = json.dumps({"imports": {f"jf/{name}": _address(text) for name, text in _modules().items()}})
    start = f'import "jf/{_MAIN}";'
    policy = (
        f"default-src 'none'; script-src {_hash(modules)} {_hash(start)} data:; style-src {_hash(style)}; "
        "img-src data:; connect-src 'none'; base-uri 'none'; form-action 'none'"
    )
    return page.get_template("report.html.jinja").render(
        policy=policy,
        style=Markup(style),
        modules=Markup(modules),
        start=Markup(start),
        data=Markup(_in_script(data)),
        **told,
    )


def _breakable(text: Any) -> Any:
    """A name that may go on in the next line after a "_", ".", "/" or "-", and nowhere inside a word."""
    from markupsafe import Markup, escape

    return Markup("<wbr>").join(escape(part) for part in re.split(r"(?<=[_./-])(?=[^_./-])", str(text)))


def _modules() -> dict[str, str]:
    """The scripts that the first one reaches, by name; they import each other by bare names."""
    found = reached(_MAIN, [FILES, PAGE])
    return {name: IMPORT.sub(r'\1"jf/\2";', found[name]) for name in sorted(found)}


def _address(script: str) -> str:
    return "data:text/javascript;base64," + base64.b64encode(script.encode()).decode()


def _hash(text: str) -> str:
    """What a Content-Security-Policy calls an element with this text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _in_script(data: Mapping[str, Any]) -> str:
    """JSON in which nothing ends a script element, or begins a comment."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
