"""Show a joint live in a notebook: the explorer's page as a widget, whose questions come as messages."""

from __future__ import annotations

import html
import json
import math
import sys
from typing import TYPE_CHECKING, Any

from ..ensembles.table import Ensemble
from .questions import answer, questions_of, replaced, shown_of
from .scripts import script
from .shown import ShownJoint

if TYPE_CHECKING:
    from .histories import ShownHistories

HINT = "live where anywidget is installed: pip install 'jointforest[notebook]'"
MOST_LETTERS = 1_000_000
"""Longest question."""


def in_notebook() -> bool:
    """Whether this Python answers a notebook; IPython is not imported for that."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


def is_run_unattended() -> bool:
    """Whether a program runs the notebook (nbconvert, papermill): without a user."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    parent = getattr(getattr(shell, "kernel", None), "get_parent", None)
    return parent is not None and not parent().get("content", {}).get("allow_stdin", True)


class NotebookExplorer:
    """A joint shown live in a notebook; made by `Joint.explore`. Without anywidget it is the joint's static picture."""

    def __init__(self, joint: Any, title: str = "joint", rows: Any = None, trained: Ensemble | None = None) -> None:
        self._shown = shown_of(joint, title, rows, trained)
        try:
            import anywidget
            import traitlets
        except ImportError:
            self.widget = None
        else:
            self.widget = anywidget.AnyWidget(_esm=script(self._shown.widget))
            # kept in a notebook that is saved with its widgets, and shown where no kernel answers
            self.widget.add_traits(picture=traitlets.Unicode(picture_of(joint)).tag(sync=True))
            self.widget.on_msg(self._heard)

    def __repr__(self) -> str:
        return f"NotebookExplorer({self._shown.joint!r})"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """The widget with the joint's static picture for where no kernel runs; the picture if there is no front end."""
        # Exporters that run notebooks would otherwise prefer the widget, whose page needs a kernel and scripts.
        static = {"text/plain": repr(self), "text/html": picture_of(self._shown.joint)}
        if self.widget is None:
            static["text/html"] += f'<p style="opacity:.7">{HINT}</p>'
            return static
        if is_run_unattended():
            return static
        found = self.widget._repr_mimebundle_(**kwargs)
        if isinstance(found, tuple):
            return static | found[0], found[1]
        return static | (found or {})

    def show(self, joint: Any, title: str | None = None) -> None:
        """Show another joint instead; it must be of the same kind and have the columns of the trained model."""
        self._shown = replaced(self._shown, joint, title)
        if self.widget is not None:
            self.widget.set_trait("picture", picture_of(joint))
            self.widget.send({"kind": "changed"})

    def close(self) -> None:
        """Take the page away."""
        if self.widget is not None:
            self.widget.close()

    def _heard(self, widget: Any, said: Any, buffers: Any) -> None:
        """Answer a message; what is no question is not answered."""
        found = heard(self._shown, said)
        if found is not None:
            widget.send(found)


def heard(shown: ShownJoint | ShownHistories, said: Any) -> dict[str, Any] | None:
    """The answer to a message of a page, itself a message; None if it is no question."""
    if not isinstance(said, dict) or said.get("kind") != "ask":
        return None
    page, number, what, body = (said.get(name) for name in ("page", "number", "what", "body"))
    is_number = isinstance(number, int | float) and not isinstance(number, bool) and math.isfinite(number)
    if not isinstance(page, str) or len(page) > 64 or not is_number:
        return None
    to = {"kind": "answer", "page": page, "number": number}
    asks = questions_of(shown).asks
    if not isinstance(what, str) or what not in asks:
        return to | {"status": 404, "said": {"error": f"there is no such question; there are {', '.join(asks)}"}}
    if not isinstance(body, dict) or _is_long(body):
        text = f"a question is an object of at most {MOST_LETTERS:,} letters of JSON"
        return to | {"status": 400, "said": {"error": text}}
    status, found = answer(shown, what, body)
    if what == "table" and status == 200:
        found = found | {"can": ["text", *asks]}
    return to | {"status": status, "said": found}


def _is_long(body: dict[str, Any]) -> bool:
    try:
        return len(json.dumps(body)) > MOST_LETTERS
    except (ValueError, TypeError, RecursionError):
        return True


def picture_of(joint: Any) -> str:
    """The static picture of a joint; of one of histories, its text."""
    if hasattr(joint, "_repr_html_"):
        return str(joint._repr_html_())
    return f"<pre>{html.escape(repr(joint))}</pre>"
