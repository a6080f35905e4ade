"""Show a joint live in a notebook: the explorer's page as a widget, whose questions come as messages."""

from __future__ import annotations

import html
import json
import math
import re
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..integrations.ensembles.table import Ensemble
from .questions import answer, questions_of, replaced, subject_for
from .subject import Subject

if TYPE_CHECKING:
    from .histories import HistorySubject

# ---- The page's scripts for those who cannot serve files: what a script reaches, and all of it as one script.

PAGE = Path(__file__).parent / "page"
"""Where the scripts and the style of the explorer are."""
IMPORT = re.compile(r'^(import (?:[^"]*? from )?)"\./([\w.]+)";', re.MULTILINE)
"""An import of another file: what comes before its name, and the name."""
_NAMED = re.compile(r"^import (\{[^}]*\}) from $")
_WHOLE = re.compile(r"^import \* as (\w+) from $")
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const) (\w+))", re.MULTILINE)


def text_of(path: Path) -> str:
    """A file of the page, whatever ends its lines."""
    return path.read_text(encoding="utf-8").replace("\r\n", "\n")


def reached(main: str, folders: Sequence[Path]) -> dict[str, str]:
    """The scripts that one reaches, by name, each after those that it imports; the first folder that has it counts.

    Raises
    ------
    ValueError
        If scripts import each other in a circle.
    """
    found: dict[str, str] = {}
    open_: list[str] = []

    def visit(name: str) -> None:
        if name in open_:
            raise ValueError(f"scripts in a circle: {' imports '.join([*open_, name])}")
        if name in found:
            return
        open_.append(name)
        text = text_of(next(folder / name for folder in folders if (folder / name).exists()))
        for match in IMPORT.finditer(text) if name.endswith(".js") else ():
            visit(match[2])
        open_.pop()
        found[name] = text

    visit(main)
    return found


def one_script(main: str, folders: Sequence[Path] = (PAGE,)) -> str:
    """A script and all that it reaches as one module; a style that it imports is the text of its name ``text``.

    Each script becomes a function that is called once, so that names in one mean nothing in another.
    """
    *others, (_, last) = reached(main, folders).items()
    parts = [f"const {_name(name)} = {_called(name, text)};" for name, text in others]
    return "\n".join([*parts, _imports(last)])


def _called(name: str, text: str) -> str:
    """What a file exports."""
    if name.endswith(".css"):
        return f"{{ text: {json.dumps(text)} }}"
    names = ", ".join(_EXPORT.findall(text))
    return f"(() => {{\n{_EXPORT.sub('', _imports(text))}return {{ {names} }};\n}})()"


def _imports(text: str) -> str:
    """A script whose imports are constants."""
    return IMPORT.sub(lambda match: _constant(match[1], _name(match[2])), text)


def _constant(words: str, name: str) -> str:
    if found := _NAMED.match(words):
        return f"const {found[1].replace(' as ', ': ')} = {name};"
    if found := _WHOLE.match(words):
        return f"const {found[1]} = {name};"
    if words == "import ":
        return ""
    raise ValueError(f"an import of another form: {words}")


def _name(file: str) -> str:
    return "$" + re.sub(r"\W", "_", file)


HINT = "live where anywidget is installed: pip install 'jointforest[notebook]'"
MOST_LETTERS = 1_000_000
"""Longest question."""
_NOT_HERE = {"shell", "link"}


def in_notebook() -> bool:
    """Whether this Python answers a notebook; IPython is not imported for that."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


def is_run_unattended() -> bool:
    """Whether a program runs the notebook (nbconvert, papermill): nobody is there to click, nor to type an input."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    parent = getattr(getattr(shell, "kernel", None), "get_parent", None)
    return parent is not None and not parent().get("content", {}).get("allow_stdin", True)


class NotebookExplorer:
    """A joint shown live in a notebook; made by `Joint.explore`. Without anywidget it is the joint's static picture.

    Attributes
    ----------
    widget : anywidget.AnyWidget or None
    """

    def __init__(self, joint: Any, title: str = "joint", rows: Any = None, trained: Ensemble | None = None) -> None:
        self._subject = subject_for(joint, title, rows, trained)
        try:
            import anywidget
            import traitlets
        except ImportError:
            self.widget = None
        else:
            self.widget = anywidget.AnyWidget(_esm=script(self._subject.widget))
            # kept in a notebook that is saved with its widgets, and shown where no kernel answers
            self.widget.add_traits(picture=traitlets.Unicode(picture_of(joint)).tag(sync=True))
            self.widget.on_msg(self._heard)

    def __repr__(self) -> str:
        return f"NotebookExplorer({self._subject.joint!r})"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """The widget, and beside it the joint's static picture for where no kernel runs; that alone if nobody is there.

        Exporters that run notebooks would else prefer the widget, whose page needs a kernel and scripts from elsewhere.
        """
        static = {"text/plain": repr(self), "text/html": picture_of(self._subject.joint)}
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
        """Show another joint in its place.

        Raises
        ------
        ValueError
            If it lacks columns of the trained model that is shown beside it, or is of another kind: of single rows
            instead of histories, or the other way round.
        """
        self._subject = replaced(self._subject, joint, title)
        if self.widget is not None:
            self.widget.set_trait("picture", picture_of(joint))
            self.widget.send({"kind": "changed"})

    def close(self) -> None:
        """Take the page away."""
        if self.widget is not None:
            self.widget.close()

    def _heard(self, widget: Any, said: Any, buffers: Any) -> None:
        """Answer a message; what is no question is not answered."""
        found = heard(self._subject, said)
        if found is not None:
            widget.send(found)


def heard(subject: Subject | HistorySubject, said: Any) -> dict[str, Any] | None:
    """The answer to a message of a page, itself a message; None if it is no question."""
    if not isinstance(said, dict) or said.get("kind") != "ask":
        return None
    page, number, what, body = (said.get(name) for name in ("page", "number", "what", "body"))
    is_number = isinstance(number, int | float) and not isinstance(number, bool) and math.isfinite(number)
    if not isinstance(page, str) or len(page) > 64 or not is_number:
        return None
    to = {"kind": "answer", "page": page, "number": number}
    asks = questions_of(subject).asks
    if not isinstance(what, str) or what not in asks:
        return to | {"status": 404, "said": {"error": f"there is no such question; there are {', '.join(asks)}"}}
    if not isinstance(body, dict) or _is_long(body):
        text = f"a question is an object of at most {MOST_LETTERS:,} letters of JSON"
        return to | {"status": 400, "said": {"error": text}}
    status, found = answer(subject, what, body)
    if what == "table" and status == 200:
        found = found | {"can": [name for name in ("text", "link", "shell", *asks) if name not in _NOT_HERE]}
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


@cache
def script(main: str) -> str:
    """The page with all its scripts and its style, as one module of JavaScript."""
    return one_script(main)
