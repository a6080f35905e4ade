"""Progress bars of long work, in terminals and notebooks: after a moment, one at a time, with tqdm if installed."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

AFTER = 2.0
"""Seconds of work before there is a bar."""

_FORM = "{desc}{percentage:3.0f}%|{bar}| {elapsed}<{remaining}"
_outermost = threading.Lock()
_shown: list[Any] = []  # the bar that is up, if any


@contextmanager
def bar(total: int, what: str = "") -> Iterator[Callable[..., None]]:
    """Give a function to be called with the number of steps done, 1 by default, of ``total`` steps in all.

    Work within work that already has a bar has none; nor has work that neither a terminal nor a notebook shows.
    """
    if total < 2 or not (_is_terminal() or _is_notebook()) or not _outermost.acquire(blocking=False):
        yield _nothing
        return
    shown = _Bar(total, what)
    try:
        yield shown.step
    finally:
        shown.close()
        _outermost.release()


def write_line(text: str) -> None:
    """Write a line to standard error, above the bar if one is up."""
    for shown in _shown:
        shown.clear()
    print(text, file=sys.stderr)
    for shown in _shown:
        shown.refresh()


class _Bar:
    """A bar that is made at the first step after ``AFTER`` seconds."""

    def __init__(self, total: int, what: str) -> None:
        self.total, self.what, self.done, self.start = total, what, 0, time.monotonic()
        self.bar: Any = None
        self.can_show = True

    def step(self, n: int = 1) -> None:
        self.done += n
        if self.bar is not None:
            self.bar.update(n)
        elif self.can_show and time.monotonic() - self.start >= AFTER and self.done < self.total:
            self.show()

    def show(self) -> None:
        try:
            tqdm = importlib.import_module("tqdm.notebook" if _is_notebook() else "tqdm").tqdm
        except ImportError:
            self.can_show = False
            return
        what = f"{self.what}: " if self.what else ""
        # a delay, so that nothing is drawn before it knows what is done, and since when
        form = {"leave": False, "file": sys.stderr, "dynamic_ncols": True, "bar_format": _FORM, "delay": 1e-6}
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
    """Whether a Jupyter notebook that can show a bar runs this; its standard error is no terminal."""
    shell = sys.modules.get("IPython")
    if shell is None or importlib.util.find_spec("ipywidgets") is None:
        return False
    return getattr(shell.get_ipython(), "kernel", None) is not None


def _nothing(n: int = 1) -> None:
    pass
