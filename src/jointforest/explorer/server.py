"""A small server for one page: this machine alone, a secret in the address, nothing written to disk."""

from __future__ import annotations

import asyncio
import json
import math
import secrets
import threading
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import h11
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from .answers import Overtaken
from .questions import answer, questions_of
from .scripts import PAGE
from .shown import ShownJoint

_HEAD_SECONDS = 10.0
"""Time that the head of a request may take, from the connection or from its first byte; its body has as much again."""


class PatientProtocol(H11Protocol):
    """uvicorn's HTTP, which waits for ever for the rest of a head: here the connection ends after `_HEAD_SECONDS`."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # asyncio's and uvicorn's differ
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop()
        elif self._deadline is None:
            self._wait()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.conn.their_state is h11.IDLE and self.conn.trailing_data[0] and self._deadline is None:
            self._wait()  # the next request has begun already

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._deadline = self.loop.call_later(_HEAD_SECONDS, self._give_up)

    def _stop(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        if self.conn.their_state is h11.IDLE:
            self.transport.abort()


if TYPE_CHECKING:
    from .histories import ShownHistories

HOST = "127.0.0.1"
MOST_BODY_BYTES = 1_000_000
"""Longest body of a question."""
WORKERS = 2
"""Questions answered at a time."""
WAITING = 64
"""Questions that may wait besides; more are refused."""
_SECONDS = 10.0
"""Time that a body may take to arrive."""
NEWEST = 256
"""Pairs of a page and a kind of question of which the newest question is remembered."""

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Refused(Exception):
    """A request that is not answered."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status, self.text = status, text


class App:
    """The page and its questions, an ASGI application.

    shown : ShownJoint or ShownHistories. What the page shows; another one may take its place at any time.
    port : int. Where it is served: what the headers Host and Origin must name.
    token : str. First part of every path.

    newest : dict of (page, question) to int. Number of the newest question of each of the last `NEWEST` pairs.
    """

    def __init__(self, shown: ShownJoint | ShownHistories, port: int, token: str) -> None:
        self.shown: ShownJoint | ShownHistories = shown
        self.token = token
        self._hosts = {f"{HOST}:{port}", f"localhost:{port}"}
        self._pool = ThreadPoolExecutor(WORKERS, "explore")
        self.newest: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._waiting = 0
        self._at_rest, self._is_closed = threading.Event(), False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        try:
            answer = await self._answer(request)
        except Refused as refused:
            answer = _json(refused.status, {"error": refused.text})
        except ClientDisconnect:
            return
        answer.headers.update(_HEADERS)
        await answer(scope, receive, send)

    def prepare(self) -> None:
        """Work out what all questions need, once."""
        questions_of(self.shown).prepare(self.shown)

    def compile_ahead(self) -> None:
        """Wait until a page shows exact numbers, and has nothing to compile itself; compile what its buttons ask."""
        compile_ahead = questions_of(self.shown).compile_ahead  # another joint in its place is of the same kind
        if compile_ahead is None:
            return
        self._at_rest.wait()
        if not self._is_closed:
            compile_ahead(self.shown)

    def close(self) -> None:
        """Take no more questions; those that wait are dropped."""
        self._is_closed = True
        self._at_rest.set()
        self._pool.shutdown(wait=False, cancel_futures=True)

    # -- who asks

    async def _answer(self, request: Request) -> Response:
        host = request.headers.get("host", "")
        if host not in self._hosts:
            raise Refused(403, "the header Host does not name this page's address")
        token, *rest = request.scope["path"].removeprefix("/").split("/")
        if not secrets.compare_digest(token.encode(errors="replace"), self.token.encode()):
            raise Refused(404, "there is nothing here: the address lacks the secret that the start has printed")
        path = "/".join(rest)
        self._check_site(request, host, is_index=request.method == "GET" and path == "")
        if request.method == "GET":
            return _file(path or self.shown.index)
        if request.method != "POST":
            raise Refused(405, "only GET and POST are known here")
        what = path.removeprefix("ask/")
        asks = questions_of(self.shown).asks
        if not path.startswith("ask/") or what not in asks:
            raise Refused(404, f"there is no such question; there are {', '.join(asks)}")
        return await self._ask(what, await _body(request))

    def _check_site(self, request: Request, host: str, is_index: bool) -> None:
        """Refuse what another site sends; a link to the page itself may be followed from anywhere."""
        origin = request.headers.get("origin")
        if origin is not None and origin != f"http://{host}":
            raise Refused(403, "another site asks (the header Origin)")
        is_link = is_index and request.headers.get("sec-fetch-dest") == "document"
        if request.headers.get("sec-fetch-site", "none") not in ("same-origin", "none") and not is_link:
            raise Refused(403, "another site asks (the header Sec-Fetch-Site)")

    # -- questions

    async def _ask(self, what: str, body: dict[str, Any]) -> Response:
        page = self._enter(what, body)
        if self._waiting >= WAITING:
            raise Refused(503, "too many questions at a time; ask again in a moment")
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, self._work, what, body, page)
        finally:
            self._waiting -= 1

    def _enter(self, what: str, body: Mapping[str, Any]) -> tuple[str, str] | None:
        """Note the newest question of a page; what to look it up by, None where the question has no number."""
        name, number = body.get("page"), body.get("id")
        if not isinstance(name, str) or len(name) > 64 or not isinstance(number, int) or isinstance(number, bool):
            return None
        page = name, what
        self.newest[page] = max(number, self.newest.get(page, number))
        self.newest.move_to_end(page)
        while len(self.newest) > NEWEST:
            self.newest.popitem(last=False)
        return page

    def _work(self, what: str, body: Mapping[str, Any], page: tuple[str, str] | None) -> Response:
        """The answer, worked out in a thread; nothing of a question that a newer one has overtaken."""

        def is_wanted() -> bool:
            return page is None or self.newest.get(page, 0) <= body["id"]

        try:
            status, said = answer(self.shown, what, body, is_wanted)
        except Overtaken:
            return _json(200, {"id": body["id"], "overtaken": True})
        if what == "posterior" and body.get("exact"):
            self._at_rest.set()
        return _csv(said) if isinstance(said, str) else _json(status, said)


async def _body(request: Request) -> dict[str, Any]:
    """The JSON object that a question brings."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refused(415, "a question is JSON: Content-Type: application/json")
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or int(length[:12]) > MOST_BODY_BYTES:
        raise Refused(413, f"a question has at most {MOST_BODY_BYTES:,} bytes")
    try:
        body = await asyncio.wait_for(_read(request), _SECONDS)
        said = json.loads(body, parse_constant=_no_number, parse_float=_finite)
    except TimeoutError:
        raise Refused(408, f"the question did not arrive within {_SECONDS:g} seconds") from None
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"the question is no JSON: {str(error)[:200]}") from None
    if not isinstance(said, dict):
        raise Refused(400, f"a question is a JSON object, got {type(said).__name__}")
    return said


async def _read(request: Request) -> bytes:
    data = bytearray()
    async for part in request.stream():
        data += part
        if len(data) > MOST_BODY_BYTES:
            raise Refused(413, f"a question has at most {MOST_BODY_BYTES:,} bytes")
    return bytes(data)


def _finite(text: str) -> float:
    """A number of JSON; what is too large for a float is refused, because no answer could repeat it."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is too large")
    return number


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number")


def _file(name: str) -> Response:
    """A file of the page, by its name among those that are there."""
    known = {path.name: path for path in PAGE.iterdir() if path.is_file() and path.suffix in _TYPES}
    if name not in known:
        raise Refused(404, "there is no such file")
    return Response(known[name].read_bytes(), media_type=_TYPES[known[name].suffix])


def _json(status: int, said: Any) -> Response:
    text = json.dumps(said, allow_nan=False, separators=(",", ":"))
    return Response(text, status, media_type="application/json")


def _csv(text: str) -> Response:
    return Response(text, media_type="text/csv", headers={"Content-Disposition": 'attachment; filename="rows.csv"'})
