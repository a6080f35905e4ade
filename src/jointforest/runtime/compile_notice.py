"""One line on a terminal when the first kernel is compiled, because compilation takes seconds."""

# Numba documents the interface of events that this module listens to, but does not promise to keep it.

from __future__ import annotations

import sys
import threading

from numba.core import event


class _Notice(event.Listener):
    """Prints the line once."""

    def __init__(self) -> None:
        self._lock, self._printed = threading.Lock(), False

    def on_start(self, what: event.Event) -> None:
        if self._printed or not what.data["dispatcher"].py_func.__module__.startswith("jointforest."):
            return
        with self._lock:
            printed, self._printed = self._printed, True
        if not printed and sys.stderr is not None and sys.stderr.isatty():
            print("jointforest: compiling kernels, once; they are kept for later calls", file=sys.stderr, flush=True)

    def on_end(self, what: event.Event) -> None:
        pass


_notice = _Notice()
event.register("numba:compile", _notice)


def be_silent() -> None:
    """Print no line in this process."""
    _notice._printed = True
