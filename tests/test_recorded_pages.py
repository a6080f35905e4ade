"""The commands that pages of the documentation show print what these pages say."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [path for path in sorted(ROOT.glob("docs/**/*.md")) if "```console\n$ jointforest" in path.read_text()]


def _tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("record_commands", ROOT / "tools" / "record_commands.py")
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    return tool


def test_there_are_such_pages() -> None:
    assert PAGES


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_commands_print_what_the_page_shows(page: Path) -> None:
    tool, text = _tool(), page.read_text()
    now = dict(tool.CONSOLE.findall(tool.recorded(text)))
    for command, output in tool.CONSOLE.findall(text):
        assert _what_every_processor_prints(command, now[command]) == _what_every_processor_prints(command, output)


def _what_every_processor_prints(command: str, output: str) -> list[str]:
    """The lines of an output, without what the last bits of a sum may change: probabilities, and cells drawn."""
    lines = output.splitlines()
    if command.startswith("sample"):
        return [lines[0], *("row" for _ in lines[1:])]
    if command.startswith("query") and "error" not in output:
        return [re.sub(r"[\d.,]+", "number", line) for line in lines]
    return lines
