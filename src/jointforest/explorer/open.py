"""Show a joint in the browser, or live in a notebook."""

from __future__ import annotations

import contextlib
import html
import json
import math
import secrets
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..ensembles.read import read_ensemble
from ..ensembles.table import Ensemble
from ..runtime.parameters import check_number
from .questions import answer, questions_of, replaced, shown_of
from .scripts import script
from .shown import ShownJoint

_HINT = "the explorer needs starlette and uvicorn: pip install 'jointforest[explore]'"


class Explorer:
    """A page that shows a joint, served until it is closed; made by `Joint.explore`.

    Attributes
    ----------
    url : str
        Address of the page, with a secret: whoever has it, on this machine, can ask.
    """

    def __init__(
        self, joint: Any, title: str = "joint", rows: Any = None, port: int = 0, trained: Ensemble | None = None
    ) -> None:
        try:
            import uvicorn

            from .server import HOST, App, PatientProtocol
        except ImportError as error:
            raise ImportError(_HINT) from error
        check_number("port", port, 0, 65_535, whole=True, text="a whole number from 0 to 65535")
        shown = shown_of(joint, title, rows, trained)  # before the port is taken: it may raise
        # with its protocol named, asyncio sends at once (TCP_NODELAY): else an answer takes 40 ms longer
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind((HOST, port))
            self._socket.listen(128)  # so that who comes before the server runs waits for it
        except OSError as error:
            self._socket.close()
            raise OSError(f"port {port} of {HOST} cannot be used: {error.strerror}; give another one") from None
        number, token = self._socket.getsockname()[1], secrets.token_urlsafe(24)
        self.url = f"http://{HOST}:{number}/{token}/"
        self._app = App(shown, number, token)
        self._server = uvicorn.Server(
            uvicorn.Config(
                self._app,
                http=PatientProtocol,
                ws="none",
                lifespan="off",
                access_log=False,
                log_level="critical",  # errors are answers; questions cut off when it closes are none
                server_header=False,
                limit_concurrency=200,
                timeout_keep_alive=30,
                timeout_graceful_shutdown=1,
            )
        )
        self._thread = threading.Thread(target=self._serve, name="jointforest explore", daemon=True)
        self._thread.start()
        threading.Thread(target=self._prepare, name="jointforest prepare", daemon=True).start()

    def __repr__(self) -> str:
        return f"Explorer({self.url!r})"

    def _repr_html_(self) -> str:
        return f'<a href="{self.url}" target="_blank" rel="noreferrer">{self.url}</a>'

    def __enter__(self) -> Explorer:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def show(self, joint: Any, title: str | None = None) -> None:
        """Show another joint in its place; pages that are open follow at their next question.

        Raises
        ------
        ValueError
            If it lacks columns of the trained model that is shown beside it, or is of another kind: of single rows
            instead of histories, or the other way round.
        """
        self._app.shown = replaced(self._app.shown, joint, title)

    def wait(self, look: Callable[[], None] | None = None) -> None:
        """Serve until it is closed, or interrupted from the keyboard; ``look`` is called now and then meanwhile."""
        try:
            while self._thread.is_alive():
                self._thread.join(0.2)
                if look is not None:
                    look()
        except KeyboardInterrupt:
            self.close()

    def close(self) -> None:
        """Stop serving."""
        self._server.should_exit = True
        self._thread.join(5.0)
        self._app.close()
        self._socket.close()

    def _prepare(self) -> None:
        with contextlib.suppress(RuntimeError):  # Python ends meanwhile: no new threads
            self._app.prepare()
            self._app.compile_ahead()

    def _serve(self) -> None:
        self._server.run(sockets=[self._socket])


def explore(
    joint: Any, title: str = "joint", rows: Any = None, model: Any = None, port: int = 0, browser: bool | None = None
) -> Any:
    """A page that shows a joint: live in a notebook, or served, in a thread, and opened: see `Joint.explore`."""
    trained = None if model is None else read_ensemble(model)
    if browser is None and in_notebook():
        return NotebookExplorer(joint, title, rows, trained)
    explorer = Explorer(joint, title, rows, port, trained)
    if browser is not False:
        webbrowser.open(explorer.url)
    return explorer


# ---- Show a joint live in a notebook: the explorer's page as a widget, whose questions come as messages.


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
    """A joint shown live in a notebook; made by `Joint.explore`. Without anywidget it is the joint's static picture.

    widget : anywidget.AnyWidget or None
    """

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
