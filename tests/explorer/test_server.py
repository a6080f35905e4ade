"""Who may ask the server, and what it survives."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import http.client
import json
import os
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import httpx
import numpy as np
import pytest

from jointforest.explorer import server
from jointforest.explorer.questions import ASKS, OF_ROWS
from jointforest.explorer.scripts import PAGE
from jointforest.explorer.server import MOST_BODY_BYTES, App
from jointforest.explorer.shown import ShownJoint

from .tables import forest, frame, hidden

PORT, TOKEN = 4321, "the-secret"
BASE = f"http://127.0.0.1:{PORT}"
JSON = {"content-type": "application/json"}


class Client:
    """Requests to an application, without a socket."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def send(self, method: str, path: str, content: Any = None, headers: Any = None) -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url=BASE) as client:
            return await client.request(method, path, content=content, headers=headers)

    def request(self, method: str, path: str, content: Any = None, headers: Any = None) -> httpx.Response:
        return asyncio.run(self.send(method, path, content, headers))

    def get(self, path: str, headers: Any = None) -> httpx.Response:
        return self.request("GET", path, None, headers)

    def post(self, path: str, content: Any, headers: Any) -> httpx.Response:
        return self.request("POST", path, content, headers)


@pytest.fixture(scope="module")
def app() -> Iterator[App]:
    app = App(ShownJoint(forest(), "a.joint", frame()), PORT, TOKEN)
    app.prepare()
    yield app
    app.close()


@pytest.fixture
def client(app: App) -> Client:
    return Client(app)


def ask(client: Client, what: str, body: Any = None, **headers: str) -> Any:
    data = body if isinstance(body, bytes | str) else json.dumps({} if body is None else body)
    return client.post(
        f"/{TOKEN}/ask/{what}", content=data, headers=JSON | {k.replace("_", "-"): v for k, v in headers.items()}
    )


# ------------------------------------------------------------------------------------------ what it does


def test_the_page_and_its_files(client: Client) -> None:
    page = client.get(f"/{TOKEN}/")
    assert page.status_code == 200 and page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.text == (PAGE / "index.html").read_text(encoding="utf-8")
    for path in PAGE.iterdir():
        found = client.get(f"/{TOKEN}/{path.name}")
        assert found.status_code == 200 and found.content == path.read_bytes()
        assert found.headers["content-type"].partition("/")[0] in ("text", "image", "application")


@pytest.mark.parametrize("what", sorted(ASKS))
def test_every_question_is_answered(client: Client, what: str) -> None:
    body = {"evidence": {"text": "age > 30"}, "columns": [0, 2], "column": 0, "row": 3, "n": 5}
    found = ask(client, what, body)
    assert found.status_code == 200, found.text
    if what == "csv":
        assert found.headers["content-type"].startswith("text/csv") and found.text.count("\n") == 6
        assert "attachment" in found.headers["content-disposition"]
    else:
        assert found.headers["content-type"] == "application/json" and found.json()


def test_errors_carry_the_library_s_words(client: Client) -> None:
    found = ask(client, "posterior", {"evidence": {"text": "agee > 30"}})
    assert found.status_code == 400 and "did you mean 'age'" in found.json()["error"]
    found = ask(client, "posterior", {"evidence": [{"column": 0, "missing": True}]})
    assert found.status_code == 409 and found.json()["impossible"] is True and "probability 0" in found.json()["error"]


@pytest.mark.parametrize(
    "text", ["NaN", "Infinity", "[1,", "[" * 100_000, "nothing", '"\\ud800', "1" * 5000, "", "[]", "3"]
)
def test_no_json_no_answer(client: Client, text: str) -> None:
    found = ask(client, "posterior", text)
    assert found.status_code == 400 and found.json()["error"]


def test_hard_values_are_refused_in_words(client: Client) -> None:
    for low in (1e308, -1e308, 1e-320):
        assert ask(client, "posterior", {"evidence": [{"column": 2, "low": low}]}).status_code in (200, 400, 409)
    assert ask(client, "posterior", '{"evidence": [{"column": 2, "low": 1e400}]}').status_code == 400
    assert ask(client, "posterior", '{"id": 1e400}').json() == {"error": "the question is no JSON: 1e400 is too large"}
    assert ask(client, "posterior", {"evidence": [{"column": 2, "low": 10**300}]}).status_code in (200, 400, 409)
    deep = {"text": "(" * 5000 + "age > 3" + ")" * 5000}
    assert ask(client, "posterior", {"evidence": deep}).status_code == 400
    text = {"text": "age > 3 \ud800 <script>"}
    assert ask(client, "posterior", {"evidence": text}).status_code == 400


# ------------------------------------------------------------------------------------------ who may ask


def test_strict_headers_on_everything(client: Client) -> None:
    for found in (
        client.get(f"/{TOKEN}/"),
        client.get("/"),
        ask(client, "table"),
        ask(client, "none"),
        client.request("PUT", "/"),
    ):
        policy = found.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';")
        assert "unsafe" not in policy and "http" not in policy and "frame-ancestors 'none'" in policy
        assert found.headers["x-content-type-options"] == "nosniff"
        assert found.headers["referrer-policy"] == "no-referrer"
        assert found.headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in found.headers and "set-cookie" not in found.headers


@pytest.mark.parametrize("token", ["", "the-secre", "the-secret2", "THE-SECRET", "%00", "é", "..", "the-secret%2f"])
def test_without_the_secret_there_is_nothing(client: Client, token: str) -> None:
    assert client.get(f"/{token}/").status_code == 404
    found = client.post(f"/{token}/ask/table", content="{}", headers=JSON)
    assert found.status_code == 404 and "columns" not in found.text


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        f"evil.example:{PORT}",
        "127.0.0.1",
        "127.0.0.1:80",
        f"127.0.0.1:{PORT}.evil",
        "",
        f"[::1]:{PORT}",
    ],
)
def test_another_name_of_this_machine_is_refused(client: Client, host: str) -> None:
    """DNS rebinding: a site whose name leads here."""
    assert client.get(f"/{TOKEN}/", headers={"host": host}).status_code == 403
    assert ask(client, "table", host=host).status_code == 403


def test_both_names_of_this_machine_are_fine(client: Client) -> None:
    for host in (f"127.0.0.1:{PORT}", f"localhost:{PORT}"):
        assert ask(client, "table", host=host, origin=f"http://{host}").status_code == 200


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", f"https://127.0.0.1:{PORT}", "http://127.0.0.1:1", f"http://localhost:{PORT}"],
)
def test_another_origin_is_refused(client: Client, origin: str) -> None:
    assert ask(client, "table", origin=origin).status_code == 403
    assert client.get(f"/{TOKEN}/", headers={"origin": origin}).status_code == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site", "anything"])
def test_another_site_may_link_here_and_nothing_else(client: Client, site: str) -> None:
    headers = {"sec-fetch-site": site, "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert client.get(f"/{TOKEN}/", headers=headers).status_code == 200
    assert client.get(f"/{TOKEN}/", headers=headers | {"sec-fetch-dest": "iframe"}).status_code == 403
    assert client.get(f"/{TOKEN}/index.html", headers={"sec-fetch-site": site}).status_code == 403
    assert ask(client, "table", sec_fetch_site=site, sec_fetch_dest="document").status_code == 403


def test_only_json_is_read(client: Client) -> None:
    """What forms of other sites can send without asking first."""
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        assert client.post(f"/{TOKEN}/ask/table", content="{}", headers={"content-type": kind}).status_code == 415
    assert ask(client, "table", content_type="application/json; charset=utf-8").status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "../server.py",
        "..%2fserver.py",
        "%2e%2e/server.py",
        "..\\server.py",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "page/../../cli.py",
        "index.html%00.js",
        "index.html/",
        "./index.html",
        "INDEX.HTML",
        "ask",
        "ask/",
        "ask/table",
        "",
        "//",
        "__init__.py",
    ],
)
def test_paths_do_not_escape(app: App, path: str) -> None:
    sent = raw(app, f"/{TOKEN}/{path}".encode())
    if path == "":
        assert b"200" in sent
    else:
        assert b"404" in sent and b"import" not in sent and b"root:" not in sent


def raw(app: App, target: bytes) -> bytes:
    """What the application sends for a path as it stands, decoded as servers decode it."""

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    out: list[bytes] = []

    async def send(message: Any) -> None:
        out.append(str(message.get("status", "")).encode() + message.get("body", b""))

    scope = {
        "type": "http", "method": "GET", "raw_path": target,
        "path": unquote_to_bytes(target).decode("utf-8", "replace"),
        "query_string": b"", "headers": [(b"host", f"127.0.0.1:{PORT}".encode())], "client": None, "scheme": "http",
        "server": ("127.0.0.1", PORT), "http_version": "1.1", "root_path": "",
    }  # fmt: skip
    asyncio.run(app(scope, receive, send))
    return b"".join(out)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE"])
def test_other_methods_are_refused(client: Client, method: str) -> None:
    assert client.request(method, f"/{TOKEN}/").status_code == 405


def test_long_questions_are_refused(client: Client) -> None:
    long = json.dumps({"evidence": {"text": "age > 3" + " " * MOST_BODY_BYTES}})
    assert ask(client, "posterior", long).status_code == 413

    async def parts() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b" " * 100_000

    found = client.post(f"/{TOKEN}/ask/table", parts(), JSON)  # without a length
    assert found.status_code == 413
    assert ask(client, "table", content_length="9" * 30).status_code == 413


def test_nothing_of_a_joint_is_markup(client: Client) -> None:
    found = ask(client, "table")
    assert "<script>alert(1)" in found.json()["columns"][7]["name"]
    assert found.headers["content-type"] == "application/json"  # with nosniff a browser shows no page


# ------------------------------------------------------------------------------------------ many at once


def test_overtaken_questions_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    app = App(ShownJoint(forest()), PORT, TOKEN)
    app.prepare()
    asked, go = [], threading.Event()

    def slow(shown: ShownJoint, body: Any, is_wanted: Any) -> dict[str, Any]:
        asked.append(body["id"])
        assert go.wait(20)
        return {"id": body["id"]}

    monkeypatch.setitem(ASKS, "posterior", slow)

    async def send_all() -> list[Any]:
        client = Client(app)
        tasks = []
        for k in range(8):
            page = "other" if k == 3 else "one"
            body = json.dumps({"id": k, "page": page})
            tasks.append(asyncio.create_task(client.send("POST", f"/{TOKEN}/ask/posterior", body, JSON)))
            while app.newest.get((page, "posterior"), -1) < k or (k < 2 and len(asked) <= k):
                await asyncio.sleep(0)
        go.set()
        return [found.json() for found in await asyncio.gather(*tasks)]

    found = asyncio.run(send_all())
    app.close()
    answered = {k for k in range(8) if "overtaken" not in found[k]}
    assert answered == set(asked) == {0, 1, 3, 7}  # two were at work; the newest of each page
    assert all(found[k] == {"id": k, "overtaken": True} for k in set(range(8)) - answered)


def test_once_a_page_is_at_rest_what_its_buttons_ask_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[ShownJoint] = []
    monkeypatch.setattr(server, "questions_of", lambda shown: OF_ROWS._replace(compile_ahead=asked.append))
    with forest().explore(browser=False) as page:
        link = http.client.HTTPConnection(page.url.split("/")[2], timeout=60)
        for exact, wanted in ((False, []), (True, [page._app.shown])):
            link.request("POST", f"/{page.url.split('/')[3]}/ask/posterior", json.dumps({"exact": exact}), JSON)
            assert link.getresponse().read()
            if exact:
                threads = [thread for thread in threading.enumerate() if thread.name == "jointforest prepare"]
                for thread in threads:
                    thread.join(60)
            assert asked == wanted
        link.close()
    app = App(ShownJoint(forest()), PORT, TOKEN)
    app.close()
    app.compile_ahead()  # ends: there is no page to wait for
    assert len(asked) == 1


def test_pages_are_forgotten(client: Client, app: App) -> None:
    for k in range(server.NEWEST + 40):
        assert ask(client, "posterior", {"id": k, "page": f"p{k}", "columns": []}).status_code == 200
    assert len(app.newest) <= server.NEWEST
    for page, number in ((5, 1), ("x" * 100, 1), ("x", "1"), ("x", None), ("x", True), ([], {})):
        assert ask(client, "posterior", {"id": number, "page": page, "columns": []}).status_code == 200


def test_another_joint_takes_its_place(client: Client) -> None:
    app = App(ShownJoint(forest()), PORT, TOKEN)
    client = Client(app)
    before = ask(client, "posterior").json()["version"]
    app.shown = ShownJoint(hidden())
    assert ask(client, "posterior").json()["version"] != before
    app.close()


def hostile(k: int, rng: np.random.Generator) -> tuple[str, str, dict[str, str], bytes]:
    """Method, path, headers and body of something that nobody should send."""
    paths = [f"/{TOKEN}/ask/{what}" for what in ASKS] + [f"/{TOKEN}/", "/", f"/{TOKEN}/../x", "/" + "a" * 3000]
    bodies: list[Any] = [
        b"", b"{", b"\xff\xfe", b"[" * 5000, b"null", rng.bytes(200), b"{" + b'"a":' * 500,
        {"evidence": [{"column": int(rng.integers(-5, 20)), "low": float(rng.normal(0, 1e5)), "levels": [k]}]},
        {"evidence": {"text": "age > " * 50}},
        {"evidence": {"text": f"age > {k % 60} and x < {k % 7}"}, "page": str(k), "id": k, "columns": [0, k % 9]},
        {"cells": {"age": "x" * 500}, "row": -k, "n": 10**9, "columns": [k, k]},
    ]  # fmt: skip
    headers = dict(JSON)
    if rng.random() < 0.2:
        headers["origin"] = "https://evil.example"
    if rng.random() < 0.1:
        headers["content-type"] = "text/plain"
    if rng.random() < 0.05:
        headers["x-long"] = "y" * 5000
    method = ["POST", "POST", "POST", "GET", "PUT"][rng.integers(5)]
    body = bodies[rng.integers(len(bodies))]
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return method, paths[rng.integers(len(paths))], headers, data


def memory() -> int:
    """Bytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_a_thousand_hostile_requests_leave_it_up_and_its_memory_flat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with forest().explore(frame(), browser=False) as page:
        address, token = page.url.removeprefix("http://").split("/")[:2]
        rng = np.random.default_rng(0)

        def send(n: int) -> set[int]:
            seen = set()
            for k in range(n):
                method, path, headers, body = hostile(k, rng)
                link = http.client.HTTPConnection(address, timeout=20)
                try:
                    link.request(method, path.replace(TOKEN, token), body, headers)
                    seen.add(link.getresponse().status)
                except (http.client.HTTPException, OSError):
                    seen.add(0)
                link.close()
            return seen

        send(300)
        gc.collect()
        before = memory()
        seen = send(1000)
        gc.collect()
        assert memory() - before < 20_000_000
        assert seen >= {200, 400, 403, 404, 405, 415} and 500 not in seen
        for junk in (b"\x00" * 100, b"GET / HTTP/9.9\r\n\r\n", b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", b"A" * 70_000):
            with socket.create_connection((address.split(":")[0], int(address.split(":")[1])), timeout=5) as link:
                link.sendall(junk)
        link_ = http.client.HTTPConnection(address, timeout=20)
        link_.request("POST", f"/{token}/ask/posterior", "{}", JSON)
        assert link_.getresponse().status == 200
    assert list(tmp_path.iterdir()) == []


def test_it_is_served_to_this_machine_alone() -> None:
    with forest().explore(browser=False) as page, forest().explore(browser=False) as other:
        assert page.url != other.url and page.url.split("/")[3] != other.url.split("/")[3]
        assert len(page.url.split("/")[3]) >= 32
        port = int(page.url.split(":")[2].split("/")[0])
        with pytest.raises(OSError, match=f"port {port} of 127.0.0.1 cannot be used"):
            forest().explore(port=port, browser=False)
        with pytest.raises(ValueError, match="port must be a whole number from 0 to 65535, got -1"):
            forest().explore(port=-1, browser=False)
        with pytest.raises(TypeError, match=r"expected a pandas, polars or pyarrow table.*got list"):
            forest().explore([1, 2], browser=False)
        mine = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
        for address in mine - {"127.0.0.1"}:
            with pytest.raises(OSError):
                socket.create_connection((address, port), timeout=2)
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", port), timeout=2)


@pytest.mark.parametrize(
    "begin",
    [
        b"",
        b"P",
        b"POST /ask/table HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ",
        b"\r\n\r\n",
    ],
)
def test_who_sends_half_a_head_is_sent_away(monkeypatch: pytest.MonkeyPatch, begin: bytes) -> None:
    monkeypatch.setattr(server, "_HEAD_SECONDS", 0.5)
    with forest().explore(browser=False) as page:
        address, _ = page.url.removeprefix("http://").split("/")[:2]
        host, port = address.split(":")
        with socket.create_connection((host, int(port)), timeout=60) as link:
            link.sendall(begin)
            assert closed(link)


def test_who_sends_half_a_head_after_a_whole_request_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_HEAD_SECONDS", 1.0)
    with forest().explore(browser=False) as page:
        address, token = page.url.removeprefix("http://").split("/")[:2]
        host, port = address.split(":")
        with socket.create_connection((host, int(port)), timeout=25) as link:  # an idle one may stay 30
            link.sendall(f"GET /{token}/ HTTP/1.1\r\nHost: {address}\r\n\r\nGET /".encode())
            assert b"HTTP/1.1 200" in link.recv(100_000)
            assert closed(link)


def test_who_sends_half_a_body_is_told_so_and_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_SECONDS", 0.3)
    with forest().explore(browser=False) as page:
        page._server.config.timeout_keep_alive = 1  # of a connection after its answer
        address, token = page.url.removeprefix("http://").split("/")[:2]
        host, port = address.split(":")
        head = f"POST /{token}/ask/table HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n"
        with socket.create_connection((host, int(port)), timeout=60) as link:
            link.sendall(f"{head}Content-Length: 100\r\n\r\n{{".encode())
            assert b"408" in link.recv(100_000)
            assert closed(link)


def test_many_half_requests_hold_no_one_up_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_HEAD_SECONDS", 1.0)
    with forest().explore(browser=False) as page, contextlib.ExitStack() as stack:
        address, token = page.url.removeprefix("http://").split("/")[:2]
        host, port = address.split(":")
        for _ in range(300):  # more than the connections that are served at a time
            link = stack.enter_context(socket.create_connection((host, int(port)), timeout=60))
            link.sendall(b"GET / HTTP/1.1\r\nX-Slow: ")
        deadline, status = time.monotonic() + 60, 0
        while status != 200 and time.monotonic() < deadline:
            one = http.client.HTTPConnection(address, timeout=60)
            one.request("POST", f"/{token}/ask/table", "{}", JSON)
            status = one.getresponse().status
            one.close()
        assert status == 200


def closed(link: socket.socket) -> bool:
    """Whether the other side ends a connection: what waits is read first."""
    try:
        while link.recv(100_000):
            pass
    except ConnectionResetError:
        return True
    return True


def test_two_pages_at_once_and_another_joint() -> None:
    with forest().explore(title="one", browser=False) as page:
        address, token = page.url.removeprefix("http://").split("/")[:2]
        links = [http.client.HTTPConnection(address, timeout=20) for _ in range(2)]
        found = []
        for link, text in zip(links, ("age > 30", "size = S"), strict=True):
            body = json.dumps({"evidence": {"text": text}, "page": text, "id": 1})
            link.request("POST", f"/{token}/ask/posterior", body, JSON)
            found.append(json.loads(link.getresponse().read()))
        assert [f["sentence"] for f in found] == ["age >= 31", "size = 'S'"]
        page.show(hidden(), "two")
        links[0].request("POST", f"/{token}/ask/table", "{}", JSON)
        table = json.loads(links[0].getresponse().read())
        assert table["title"] == "two" and table["version"] != found[0]["version"]
        assert page.url in repr(page) and f'href="{page.url}"' in page._repr_html_()


def test_the_browser_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    page = forest().explore()
    page.close()
    page.close()
    assert opened == [page.url]


def test_without_the_extra_there_is_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(ImportError, match=r"pip install 'jointforest\[explore\]'"):
        forest().explore(browser=False)
