"""Show a joint in the browser."""

from __future__ import annotations

import contextlib
import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable
from typing import Any

from ..ensembles.read import read_ensemble
from ..ensembles.table import Ensemble
from ..runtime.parameters import check_number
from .notebook import NotebookExplorer, in_notebook
from .questions import replaced, shown_of

_HINT = "the explorer needs starlette and uvicorn: pip install 'jointforest[explore]'"


class Explorer:
    """A page that shows a joint, served until it is closed; made by `Joint.explore`.

    Attributes
    ----------
    url : str
        Address of the page. It holds a secret: whoever has it, on this machine, can ask.
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
