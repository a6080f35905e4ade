"""The examples of the documentation run: docstrings of the package, and python blocks of README.md and docs/.

In Markdown a block opened by ```python runs: with ``>>>`` prompts as a doctest, otherwise as plain code. The blocks of
one file share their names, from top to bottom, in an empty folder. A block opened by ```py is shown but not run.
"""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import jointforest
from jointforest import plot

ROOT = Path(__file__).parents[1]
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@cache
def known() -> dict[str, object]:
    """What docstrings use without defining it; `docs/reference/api.md` says so."""
    penguins = jointforest.datasets.load_penguins()
    joint = jointforest.JointTree(random_state=0).fit(penguins).joint_
    return {"jf": jointforest, "np": np, "pd": pd, "plot": plot, "penguins": penguins, "joint": joint}


MODULES = sorted(
    m.name for m in pkgutil.walk_packages(jointforest.__path__, "jointforest.") if "__main__" not in m.name
)
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("README.md"), *ROOT.glob("docs/**/*.md")])
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def close_figures() -> Iterator[None]:
    """Pictures of one page or module are not kept while the next one runs."""
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")


@pytest.mark.parametrize("name", ["jointforest", *MODULES])
def test_docstrings_of_module(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    result = doctest.testmod(module, extraglobs=known(), optionflags=OPTIONS)
    assert result.failed == 0


@pytest.mark.parametrize("page", PAGES)
def test_python_blocks_of_page(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / page).read_text(encoding="utf-8")
    names: dict[str, object] = {"__name__": "__main__"}
    for match in BLOCK.finditer(text):
        line = text.count("\n", 0, match.start(1))
        failed, output = run_block(match.group(1), names, page, line)
        assert not failed, output


def run_block(code: str, names: dict[str, object], page: str, line: int) -> tuple[bool, str]:
    """Return whether one block fails when it runs with the given names, and the report of the failure."""
    if ">>>" not in code:
        exec(compile("\n" * line + code, page, "exec"), names)
        return False, ""
    report: list[str] = []
    test = doctest.DocTestParser().get_doctest(code, {}, page, page, line)
    test.globs = names  # shared, not copied
    result = doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=report.append, clear_globs=False)
    return result.failed > 0, "".join(report)


def test_a_wrong_example_is_found() -> None:
    assert run_block(">>> 1 + 1\n3\n", {}, "page", 0)[0]
    with pytest.raises(ZeroDivisionError):
        run_block("1 / 0", {}, "page", 0)


def test_blocks_share_names() -> None:
    names: dict[str, object] = {}
    run_block("x = 2\n", names, "page", 0)
    assert not run_block(">>> x\n2\n>>> y = 3\n", names, "page", 0)[0]
    assert names["y"] == 3


def test_there_is_something_to_run() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    shown = [t for name in MODULES for t in finder.find(importlib.import_module(name)) if t.examples]
    assert len(shown) >= 10
