"""A page that is served in a thread, until it is closed."""

from __future__ import annotations

import threading

from .tables import forest


def test_once_closed_no_thread_serves_any_more() -> None:
    before = set(threading.enumerate())
    with forest().explore(browser=False) as page:
        assert any(thread.name == "jointforest explore" for thread in set(threading.enumerate()) - before)
    assert not any(thread.name == "jointforest explore" for thread in set(threading.enumerate()) - before)
    page.wait()
