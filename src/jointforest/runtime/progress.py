"""Progress bars of long work, in terminals and notebooks: after a moment, one at a time, with tqdm if installed."""

from __future__ import annotations

import importlib
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

AFTER = 2.0
"""Seconds of work before there is a bar."""

_FORM = "{desc}{percentage:3.0f}%|{bar}| {elapsed}, about {remaining} left"
_outermost = threading.Lock()
_shown: list[Any] = []  # the bar that is up, if any
_working: list[_Bar] = []  # the bar of the work that is done, up or not yet


class Steps(Protocol):
    """To be called with the number of steps done, 1 by default."""

    def __call__(self, n: float = 1) -> None: ...


@contextmanager
def bar(total: float, what: str = "") -> Iterator[Steps]:
    """A function that takes the number of steps done, 1 by default, of ``total`` steps."""
    # Work within work that has a bar moves that bar if it is a `part` of it, and has none of its own.
    if total < 2 or not (_is_terminal() or _is_notebook()):
        yield _no_step
        return
    if not _outermost.acquire(blocking=False):
        outer = _working[-1] if _working else None
        room = outer.take_room() if outer is not None else 0.0
        yield (lambda n=1: outer.step(room * n / total)) if outer is not None and room > 0.0 else _no_step
        return
    shown = _Bar(total, what)
    _working.append(shown)
    try:
        yield shown.step
    finally:
        _working.remove(shown)
        shown.close()
        _outermost.release()


@contextmanager
def part(steps: float) -> Iterator[None]:
    """Do work that is worth so many steps of the bar around it; bars within this work move that bar."""
    outer = _working[-1] if _working else None
    if outer is None or outer.room > 0.0:
        yield
        return
    end, outer.room = outer.done + steps, steps
    try:
        yield
    finally:
        outer.room = 0.0
        outer.step(max(end - outer.done, 0.0))


def be_quiet(text: str) -> None:
    """Write nothing, where `write_line` would write a line."""


def write_line(text: str) -> None:
    """Write a line to standard error, above the bar if one is up."""
    for shown in _shown:
        shown.clear()
    print(text, file=sys.stderr)
    for shown in _shown:
        shown.refresh()


class _Bar:
    """A bar that is made at the first step after ``AFTER`` seconds."""

    def __init__(self, total: float, what: str) -> None:
        self.total, self.what, self.done, self.start = total, what, 0.0, time.monotonic()
        self.room = 0.0  # steps that work within this work may do
        self.bar: Any = None
        self.can_show = True

    def take_room(self) -> float:
        """Half of the steps that work within this work may do; later work of the same part takes half of the rest."""
        self.room /= 2
        return self.room

    def step(self, n: float = 1) -> None:
        self.done += n
        if self.bar is not None:
            self.bar.update(n)
        elif self.can_show and time.monotonic() - self.start >= AFTER and self.done < self.total:
            self.show()

    def show(self) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # without ipywidgets the bar is of text
                tqdm = importlib.import_module("tqdm.auto" if _is_notebook() else "tqdm").tqdm
        except ImportError:
            self.can_show = False
            return
        what = f"{self.what}: " if self.what else ""
        # a delay, so that nothing is drawn before it knows what is done, and since when
        form = {"leave": False, "file": sys.stderr, "dynamic_ncols": True, "bar_format": _FORM, "delay": 1e-6}
        form["smoothing"] = 0.0  # steps differ: what is left is estimated from all that is done
        self.bar = tqdm(total=self.total, desc=what, **form)
        self.bar.start_t -= time.monotonic() - self.start
        self.bar.update(self.done)
        self.bar.refresh()
        _shown.append(self.bar)

    def close(self) -> None:
        if self.bar is not None:
            _shown.remove(self.bar)
            self.bar.close()


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _is_notebook() -> bool:
    """Whether a Jupyter notebook runs this; its standard error is no terminal."""
    shell = sys.modules.get("IPython")
    return shell is not None and getattr(shell.get_ipython(), "kernel", None) is not None


def _no_step(n: float = 1) -> None:
    pass
