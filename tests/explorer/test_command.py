"""``jointforest explore``, as a user starts and ends it."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

from jointforest import cli

from .tables import forest, frame


def command(*words: object) -> subprocess.Popen:
    call = [sys.executable, "-m", "jointforest.cli", "explore", *map(str, words)]
    return subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    forest().save(tmp_path / "a.joint")
    frame().to_parquet(tmp_path / "rows.parquet")
    return tmp_path / "a.joint", tmp_path / "rows.parquet"


def test_it_prints_its_address_answers_and_ends(files: tuple[Path, Path]) -> None:
    model, rows = files
    trained = pytest.importorskip("xgboost").XGBRegressor(n_estimators=3).fit(frame()[["x"]], frame()["age"])
    trained.save_model(model.with_name("m.json"))
    own = float(trained.predict(frame()[["x"]].iloc[3:4])[0])
    with command(model, "--table", rows, "--model", model.with_name("m.json"), "--no-browser") as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        address, token = url.removeprefix("http://").split("/")[:2]
        link = http.client.HTTPConnection(address, timeout=60)
        found = []
        for what, body in (("table", {}), ("row", {"row": 3}), ("posterior", {"evidence": {"text": "age > 400"}})):
            link.request("POST", f"/{token}/ask/{what}", json.dumps(body), {"Content-Type": "application/json"})
            found.append(json.loads(link.getresponse().read()))
        link.close()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert found[0]["title"] == "a.joint" and found[0]["rows"] == 300
    assert found[1]["cells"][2]["text"] == str(frame()["age"].iloc[3]) and found[2]["supported"] is False
    assert found[1]["prediction"]["own"] == found[1]["prediction"]["expected"] == pytest.approx([own], rel=1e-6)
    assert process.returncode == 0 and out == "" and err.count("\n") == 1 and "Ctrl+C" in err


def test_another_file_in_its_place_is_shown(files: tuple[Path, Path]) -> None:
    model, _ = files
    with command(model, "--no-browser") as process:
        assert process.stdout is not None
        address, token = process.stdout.readline().strip().removeprefix("http://").split("/")[:2]
        link = http.client.HTTPConnection(address, timeout=60)

        def version() -> str:
            body = json.dumps({"columns": []})
            link.request("POST", f"/{token}/ask/posterior", body, {"Content-Type": "application/json"})
            return json.loads(link.getresponse().read())["version"]

        before = version()
        model.write_bytes(b"no joint")
        assert process.stderr is not None
        said = [process.stderr.readline(), process.stderr.readline()]
        assert "warning" in said[1] and "the page shows the joint before it" in said[1]
        assert version() == before
        forest().select("x", "age").save(model)
        deadline = time.monotonic() + 60
        while version() == before:
            assert time.monotonic() < deadline
        link.close()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def test_errors_are_one_line(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, _ = files
    with forest().explore(browser=False) as page:
        port = page.url.split(":")[2].split("/")[0]
        for words, part in (
            ([model, "--port", port, "--no-browser"], f"port {port} of 127.0.0.1 cannot be used"),
            ([model, "--table", "none.csv", "--no-browser"], "none.csv: No such file"),
            ([model, "--model", "none.ubj", "--no-browser"], "none.ubj: No such file"),
            ([model, "--model", "m.pkl", "--no-browser"], "m.pkl: a pickle can run any program"),
            (["none.joint", "--no-browser"], "none.joint: No such file"),
        ):
            monkeypatch.setattr(sys, "argv", ["jointforest", "explore", *map(str, words)])
            with warnings.catch_warnings(), pytest.raises(SystemExit) as stop:
                cli.main()
            assert stop.value.code == 1
            err = capsys.readouterr().err
            assert part in err and err.count("\n") == 1


def test_the_missing_extra_is_named(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.setattr(sys, "argv", ["jointforest", "explore", str(files[0]), "--no-browser"])
    with warnings.catch_warnings(), pytest.raises(SystemExit):
        cli.main()
    err = capsys.readouterr().err
    assert err.count("pip install") == 1 and "jointforest[explore]" in err
