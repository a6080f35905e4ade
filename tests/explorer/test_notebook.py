"""The explorer in a notebook: messages are answered, hostile ones do no harm, and what is shown without anywidget."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jointforest.explorer import open, scripts
from jointforest.explorer.open import Explorer, NotebookExplorer, explore, heard
from jointforest.explorer.questions import ASKS
from jointforest.explorer.shown import ShownJoint

from .tables import NAMES, forest, frame


@pytest.fixture
def shown() -> ShownJoint:
    return ShownJoint(forest(), "a.joint", frame())


def ask(shown: ShownJoint, what: Any, body: Any = None) -> Any:
    """The answer to one question, through JSON."""
    said = heard(shown, {"kind": "ask", "page": "p", "number": 3, "what": what, "body": {} if body is None else body})
    found = json.loads(json.dumps(said, allow_nan=False))
    assert (found["kind"], found["page"], found["number"]) == ("answer", "p", 3)
    return found


def test_questions_are_answered_as_the_server_answers_them(shown: ShownJoint) -> None:
    bodies: dict[str, Any] = {"pair": {"columns": [0, 2]}, "row": {"row": 3}, "csv": {"n": 3}}
    bodies |= {"reasons": {"evidence": {"text": "age > 30"}, "column": 0}, "depends": {"columns": [0, 2, 3]}}
    bodies["moves"] = {"column": 0}
    for what, function in ASKS.items():
        found = ask(shown, what, bodies.get(what))
        assert found["status"] == 200
        wanted = function(shown, bodies.get(what, {}))
        wanted = wanted if isinstance(wanted, str) else json.loads(json.dumps(wanted))
        if what == "table":
            assert {"text", "mode", "row"} <= set(found["said"].pop("can")) and "shell" not in found["said"]
        assert found["said"] == wanted


def test_what_cannot_be_answered_is_said(shown: ShownJoint) -> None:
    assert ask(shown, "posterior", {"evidence": {"text": "agee > 3"}})["status"] == 400
    found = ask(shown, "posterior", {"evidence": {"text": "age > 40 and age < 30"}})
    assert found["status"] == 409 and found["said"]["impossible"] is True
    assert "there is no such question" in ask(shown, "__class__")["said"]["error"]


def deep(n: int) -> list:
    found: list = []
    for _ in range(n):
        found = [found]
    return found


@pytest.mark.parametrize("what", ["", None, 3, [], {}, "ask", "../table", "__init__", "TABLE", "x" * 10**6])
def test_questions_that_there_are_not(shown: ShownJoint, what: Any) -> None:
    assert ask(shown, what)["status"] == 404


@pytest.mark.parametrize(
    "body",
    [
        [],
        3,
        "text",
        {"evidence": deep(100_000)},
        {"evidence": {"text": "x" * 10**6}},
        {"evidence": {1, 2}},
        {"evidence": [{"column": math.nan, "low": math.inf}]},
        {"evidence": [{"column": 0, "low": math.nan}]},
        {"evidence": [{"column": 10**30}]},
        {"evidence": {"text": "(" * 50_000}},
        {"columns": [-1]},
        {"evidence": {"text": NAMES["script"]}},
    ],
)
def test_hostile_bodies_are_refused(shown: ShownJoint, body: Any) -> None:
    found = ask(shown, "posterior", body)
    assert found["status"] == 400 and found["said"]["error"]


@pytest.mark.parametrize(
    "said",
    [
        None,
        3,
        "ask",
        [],
        {},
        {"kind": "answer"},
        {"kind": "ask"},
        {"kind": "ask", "page": 3, "number": 1, "what": "table", "body": {}},
        {"kind": "ask", "page": "p" * 65, "number": 1, "what": "table", "body": {}},
        {"kind": "ask", "page": "p", "number": math.nan, "what": "table", "body": {}},
        {"kind": "ask", "page": "p", "number": True, "what": "table", "body": {}},
        {"kind": "ask", "page": "p", "number": "1", "what": "table", "body": {}},
    ],
)
def test_messages_that_are_no_questions_are_not_answered(shown: ShownJoint, said: Any) -> None:
    assert heard(shown, said) is None


# ------------------------------------------------------------ the widget


def test_the_widget_answers_messages_and_follows_another_joint(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("anywidget")
    shown = NotebookExplorer(forest(), "a.joint")
    sent: list[Any] = []
    monkeypatch.setattr(type(shown.widget), "send", lambda self, said, buffers=None: sent.append(said))
    question = {"kind": "ask", "page": "p", "number": 1, "what": "table", "body": {}}
    shown.widget._handle_custom_msg(question, [])
    shown.widget._handle_custom_msg({"kind": "nonsense"}, [])
    assert len(sent) == 1 and [c["name"] for c in sent[0]["said"]["columns"]] == list(forest().columns)
    assert shown.widget.get_state()["picture"] == forest()._repr_html_()
    other = forest().select("x", "age")
    shown.show(other)
    assert sent[1] == {"kind": "changed"}
    assert shown.widget.get_state()["picture"] == other._repr_html_()
    shown.widget._handle_custom_msg(question, [])
    assert [c["name"] for c in sent[2]["said"]["columns"]] == ["x", "age"]
    found = shown._repr_mimebundle_()
    found = found[0] if isinstance(found, tuple) else found
    assert "application/vnd.jupyter.widget-view+json" in found and "<svg" in found["text/html"]
    assert "<script" not in found["text/html"]
    shown.close()


def test_without_anywidget_it_is_the_static_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anywidget", None)
    shown = NotebookExplorer(forest())
    found = shown._repr_mimebundle_(include=None, exclude=None)
    assert found["text/html"].startswith(forest()._repr_html_()) and "jointforest[notebook]" in found["text/html"]
    shown.show(forest().select("x", "age"))
    assert "price" not in shown._repr_mimebundle_()["text/html"]
    shown.close()


@pytest.mark.parametrize(
    ("content", "is_live"), [({"allow_stdin": False}, False), ({"allow_stdin": True}, True), ({}, True)]
)
def test_where_a_program_runs_the_notebook_it_is_the_static_picture(
    monkeypatch: pytest.MonkeyPatch, content: dict[str, bool], is_live: bool
) -> None:
    pytest.importorskip("anywidget")
    shown = NotebookExplorer(forest())
    shell = SimpleNamespace(kernel=SimpleNamespace(get_parent=lambda: {"content": content}))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setattr(type(shown.widget), "_repr_mimebundle_", lambda self, **of: {"widget": 1}, raising=False)
    found = shown._repr_mimebundle_()
    assert ("widget" in found) is is_live and found["text/html"] == forest()._repr_html_()
    monkeypatch.undo()
    shown.close()


def test_only_a_notebook_is_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    for shell, is_one in ((None, False), (SimpleNamespace(), False), (SimpleNamespace(kernel=object()), True)):
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda shell=shell: shell))
        assert open.in_notebook() is is_one
    assert isinstance(explore(forest()), NotebookExplorer)
    with explore(forest(), browser=False) as page:  # asked for by name it is served from a notebook, too
        assert isinstance(page, Explorer)
    monkeypatch.delitem(sys.modules, "IPython")
    assert not open.in_notebook()


def test_no_widget_is_imported_before_one_is_shown() -> None:
    code = (
        "import sys, jointforest; from jointforest.explorer import open;"
        "assert not {'anywidget', 'ipywidgets', 'IPython'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# ------------------------------------------------------------ one script of many


@pytest.mark.parametrize("main", ["widget_main.js", "widget_histories.js"])
def test_the_script_is_one_module_that_asks_nobody(main: str) -> None:
    text = open.script(main)
    assert not re.search(r"^\s*import\b", text, re.MULTILINE) and text.count("\nexport ") == 1
    assert "export default" in text and len(text) < 220_000
    assert set(re.findall(r"https?://[^\s\"'`)]+", text)) == {"http://www.w3.org/2000/svg"}


def test_scripts_follow_those_that_they_import() -> None:
    found = list(scripts.reached("main.js", [scripts.PAGE]))
    assert found[-1] == "main.js" and found.index("dom.js") < found.index("card.js") < found.index("explorer.js")


def test_circles_and_other_imports_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text('import "./b.js";\n')
    (tmp_path / "b.js").write_text('import { a } from "./a.js";\n')
    with pytest.raises(ValueError, match=r"a\.js imports b\.js imports a\.js"):
        scripts.one_script("a.js", [tmp_path])
    (tmp_path / "b.js").write_text("export const b = 1;\n")
    (tmp_path / "a.js").write_text('import b from "./b.js";\n')
    with pytest.raises(ValueError, match="another form"):
        scripts.one_script("a.js", [tmp_path])
