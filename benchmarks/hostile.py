"""Sends hostile requests to the explorer's server, and reports whether it stays up and what memory it takes.

The server is a process of its own. It receives other paths, methods, hosts and sites, random bytes, half a request,
and questions with hard values. Memory is reported after the first tenth of the requests and at the end.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from _common import arguments, finish, progress, read

from jointforest.learners.adversarial.adversarial_forest import AdversarialForest

ASKS = ("table", "posterior", "rows", "csv", "mode", "why", "pair", "row", "nothing", "__class__")
SERVE = "from jointforest.cli import main; main()"
JUNK = (
    b"\x00" * 100,
    b"GET / HTTP/9.9\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
    b"A" * 70_000,
    b"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
    b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
    b"POST /",
)


def said(k: int, rng: np.random.Generator) -> bytes:
    """The body of a question that no page asks."""
    number = [0.0, -1e308, 1e308, float(rng.normal(0, 1e5)), 10**30][rng.integers(5)]
    known = {"column": int(rng.integers(-5, 20)), "low": number, "levels": [k, -1, "x"]}
    texts = ["age > " * 9, f"age > {k % 60} and sex < {k % 7}", "(" * 400, "age in {" + "1, " * 400 + "1}", "\x00", "π"]
    bodies: list[Any] = [
        b"",
        b"{",
        b"\xff\xfe",
        b"[" * 100_000,
        b"null",
        b"NaN",
        rng.bytes(200),
        b"{" + b'"a":' * 500,
        {"evidence": [known]},
        {"evidence": [known] * 50, "exact": True},
        {"evidence": {"text": texts[rng.integers(len(texts))]}, "page": f"p{k}", "id": k, "columns": [0, k % 9]},
        {"evidence": {"text": f"age > {k % 60}"}, "page": f"p{k % 100}", "id": 10**25, "exact": True},
        {"cells": {"age": "x" * 500, "": 3}, "row": -k, "n": 10**9, "columns": [k, k]},
        {"n": 200, "seed": k, "columns": [k % 15, (k + 1) % 15], "row": k},
        {"evidence": [{"column": k % 15, "levels": [0]}], "columns": [1, 2]},
        {"n": 200, "seed": k, "columns": [k % 15, (k + 1) % 15], "bins": 10**6},
        {"evidence": "x" * 900_000},
    ]
    body = bodies[rng.integers(len(bodies))]
    return body if isinstance(body, bytes) else json.dumps(body).encode()


def send(host: str, port: int, token: str, k: int, rng: np.random.Generator) -> str:
    """Send one of them; the status of the answer, or "none"."""
    link = http.client.HTTPConnection(host, port, timeout=60)
    try:
        if rng.random() < 0.1:
            link.connect()
            link.sock.sendall(JUNK[rng.integers(len(JUNK))])
            return "junk"
        secret = token if rng.random() < 0.9 else token[:-1] + "x"
        paths = [f"/{secret}/ask/{ASKS[rng.integers(len(ASKS))]}"] * 12
        paths += [f"/{secret}/", "/", f"/{secret}/../../etc/passwd", f"/{secret}/%2e%2e/%00", "/" + "a" * 3000]
        headers = {"Content-Type": "application/json" if rng.random() < 0.95 else "text/plain"}
        if rng.random() < 0.05:
            headers["Origin"] = "https://evil.example"
        if rng.random() < 0.05:
            headers["Host"] = "evil.example"
        if rng.random() < 0.05:
            headers["X-Long"] = "y" * 5000
        method = [*["POST"] * 9, "GET", "PUT", "TRACE"][rng.integers(12)]
        link.request(method, paths[rng.integers(len(paths))], said(k, rng), headers)
        answer = link.getresponse()
        answer.read()
        return str(answer.status)
    except (http.client.HTTPException, OSError):
        return "none"
    finally:
        link.close()


def memory(process: int) -> float:
    """Megabytes that a process holds."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def attack(path: Path, n: int, seed: int) -> tuple[dict[str, Any], dict[str, int]]:
    """A row of the table of results, and how often each status was the answer."""
    rng = np.random.default_rng(seed)
    command = [sys.executable, "-c", SERVE, "explore", str(path), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = next(line for line in server.stdout if "http://" in line)
        address, token = url[url.index("http://") + 7 :].strip().split("/")[:2]
        host, port = address.split(":")
        statuses: Counter[str] = Counter()
        marks = []
        for k in range(n):
            statuses[send(host, int(port), token, k, rng)] += 1
            if (k + 1) % (n // 10) == 0:
                marks.append(memory(server.pid))
                progress(f"{k + 1:,} requests: {marks[-1]:.1f} MB")
        link = http.client.HTTPConnection(host, int(port), timeout=60)
        link.request("POST", f"/{token}/ask/posterior", "{}", {"Content-Type": "application/json"})
        is_up = link.getresponse().status == 200 and server.poll() is None
        link.close()
        with socket.create_connection((host, int(port)), timeout=60):
            pass
        server.terminate()
    grown = marks[-1] - marks[0]
    row = {"requests": n, "MB after a tenth": marks[0], "half-way": marks[4], "MB at the end": marks[-1]}
    row |= {"grown MB": grown, "up": "yes" if is_up else "NO", "errors of the server": statuses["500"]}
    ok = is_up and statuses["500"] == 0 and grown < 20
    return row | {"target": "up, grown < 20 MB", "met": "yes" if ok else "NO"}, dict(sorted(statuses.items()))


def main() -> None:
    options = arguments(__doc__, requests=dict(type=int, default=10_000))
    n = 300 if options.quick else options.requests
    frame = read(options.data, "adult_train").iloc[:2_000]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "adult.joint"
        AdversarialForest(n_estimators=5, random_state=options.seed).fit(frame).joint_.save(path)
        row, statuses = attack(path, n, options.seed)
    tables = {"The explorer's server under hostile requests": [row]}
    tables["Answers"] = [{"status": status, "times": times} for status, times in statuses.items()]
    finish("hostile", tables, {"seed": options.seed, "requests": n}, options.quick)


if __name__ == "__main__":
    main()
