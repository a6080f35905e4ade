"""Progress bars: on a terminal or in a notebook, after a moment, one at a time; in a pipe or without tqdm none."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import jointforest as jf
from jointforest.runtime import progress
from jointforest.runtime.threads import map_ordered, use_jobs


class Terminal(io.StringIO):
    """Standard error that is a terminal."""

    def isatty(self) -> bool:
        return True


class Bar:
    """What is used of tqdm."""

    made: list[Bar]

    def __init__(self, total: int, desc: str, **form: Any) -> None:
        assert form["file"] is sys.stderr and not form["leave"]
        self.total, self.desc, self.n, self.start_t, self.closed = total, desc, 0, 0.0, False
        self.hidden = 0
        Bar.made.append(self)

    def update(self, n: int) -> None:
        self.n += n

    def clear(self) -> None:
        self.hidden = 1

    def refresh(self) -> None:
        self.hidden = 0

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> list[Bar]:
    """Bars that were made, of whatever takes time."""
    Bar.made = []
    module = ModuleType("tqdm")
    module.tqdm = Bar  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tqdm", module)
    monkeypatch.setattr(progress, "AFTER", 0.0)
    return Bar.made


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Terminal]:
    """To be called in the test, as standard error is another one in fixtures."""

    def start() -> Terminal:
        monkeypatch.setattr(sys, "stderr", Terminal())
        return sys.stderr  # type: ignore[return-value]

    return start


def run(n_jobs: int, work: Callable, items: list, what: str = "") -> list:
    """What `map_ordered` gives on so many threads."""
    with use_jobs(n_jobs):
        return list(map_ordered(work, items, what))


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_long_work_has_one_bar(bars: list[Bar], terminal: Callable[[], Terminal], n_jobs: int) -> None:
    terminal()

    def work(i: int) -> int:
        return sum(run(1, lambda j: i * j, [(j,) for j in range(5)]))  # has none of its own

    assert run(n_jobs, work, [(i,) for i in range(7)], "trees") == [10 * i for i in range(7)]
    assert [(bar.total, bar.n, bar.desc, bar.closed) for bar in bars] == [(7, 7, "trees: ", True)]
    run(n_jobs, work, [(i,) for i in range(7)])
    assert len(bars) == 2 and bars[1].desc == "" and bars[1].start_t <= 0.0


def test_work_within_a_part_moves_the_bar_around_it(bars: list[Bar], terminal: Callable[[], Terminal]) -> None:
    terminal()
    with progress.bar(100.0, "learning") as step:
        step(10)
        with progress.part(40):
            run(1, lambda i: i, [(i,) for i in range(4)])
            assert bars[0].n == pytest.approx(10 + 20)
            run(1, lambda i: i, [(i,) for i in range(4)])
            assert bars[0].n == pytest.approx(10 + 30)
        assert bars[0].n == pytest.approx(50)
        run(1, lambda i: i, [(i,) for i in range(4)])  # part of nothing
    assert len(bars) == 1 and bars[0].n == pytest.approx(50)


def test_work_that_is_left_or_fails_leaves_no_bar(bars: list[Bar], terminal: Callable[[], Terminal]) -> None:
    terminal()
    with use_jobs(1):
        for value in map_ordered(lambda i: i, [(i,) for i in range(9)]):
            if value == 4:
                break
    with pytest.raises(ZeroDivisionError):
        run(2, lambda i: 1 / (5 - i), [(i,) for i in range(9)])
    assert [bar.closed for bar in bars] == [True, True]
    run(1, lambda i: i, [(i,) for i in range(9)])
    assert len(bars) == 3


def test_steps_of_many_and_lines_above_the_bar(bars: list[Bar], terminal: Callable[[], Terminal]) -> None:
    err = terminal()
    with progress.bar(10, "rows") as step:
        step(3)
        step(0)
        progress.write_line("a line")
        assert bars[0].n == 3 and bars[0].hidden == 0
    progress.write_line("another")
    assert err.getvalue() == "a line\nanother\n"


@pytest.mark.parametrize("why", ["pipe", "none", "soon", "one", "no tqdm"])
def test_no_bar(bars: list[Bar], terminal: Callable[[], Terminal], monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    err: io.StringIO = terminal()
    if why == "pipe":
        monkeypatch.setattr(sys, "stderr", err := io.StringIO())
    if why == "none":
        monkeypatch.setattr(sys, "stderr", None)
    if why == "soon":
        monkeypatch.setattr(progress, "AFTER", 60.0)
    if why == "no tqdm":
        monkeypatch.setitem(sys.modules, "tqdm", None)
    n = 1 if why == "one" else 5
    assert run(1, lambda i: i, [(i,) for i in range(n)]) == list(range(n))
    assert bars == [] and err.getvalue() == ""


@pytest.mark.parametrize("learner", [jf.AdversarialForest(5, random_state=0), jf.HiddenTreeForest(n_states=8)])
def test_the_search_for_a_mode_has_a_bar(bars: list[Bar], terminal: Callable[[], Terminal], learner: Any) -> None:
    joint = learner.fit(jf.datasets.load_penguins()).joint_
    terminal()
    joint.given(species="Gentoo").mode()
    assert bars[-1].desc == "searching boxes: " and bars[-1].n >= 1 and bars[-1].closed


def test_a_notebook_is_told_by_its_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = SimpleNamespace()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert not progress._is_notebook()
    shell.kernel = object()
    assert progress._is_notebook()


def test_a_bar_says_how_much_time_is_left(monkeypatch: pytest.MonkeyPatch, terminal: Callable[[], Terminal]) -> None:
    monkeypatch.setattr(progress, "AFTER", 0.0)
    shown = terminal()
    with progress.bar(10, "learning") as step:
        step()
        step(4)
    assert re.search(r"learning:  10%\|.*\| 00:00, about \d\d:\d\d left", shown.getvalue())
