"""Settings of the whole test suite: the same examples on every run, and what the package asked numba for.

``--check-signatures`` fails a run in which the package called an entry with types that `runtime/signatures.txt` lacks,
because wheels would bring no machine code for it. ``--add-signatures`` adds these to the list instead.
``--forbid-compilation`` fails the tests that compile; `make release-check` says it.
"""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from jointforest.runtime.compile import Entry

settings.register_profile(
    "fixed",
    derandomize=True,
    deadline=None,  # the first call of a kernel compiles it
    database=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("fixed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--check-signatures", action="store_true", help="fail if the list of signatures lacks one")
    parser.addoption("--add-signatures", action="store_true", help="add what the list of signatures lacks")
    parser.addoption("--forbid-compilation", action="store_true", help="fail where the package compiles a kernel")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--forbid-compilation"):
        from numba.core import event

        class Forbid(event.Listener):
            def on_start(self, what: event.Event) -> None:
                function = what.data["dispatcher"].py_func
                if function.__module__.startswith("jointforest."):
                    raise AssertionError(
                        f"{function.__module__}.{function.__qualname__} was compiled for {what.data['args']}"
                    )

            def on_end(self, what: event.Event) -> None:
                pass

        event.register("numba:compile", Forbid())


# ---- The list of signatures, compared at the end of a run. One process gathers what those of pytest-xdist report.

_unlisted: set[str] = set()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    _unlisted.update(getattr(node, "workeroutput", {}).get("unlisted", ()))


def pytest_sessionfinish(session: pytest.Session) -> None:
    is_adding = session.config.getoption("--add-signatures")
    if not is_adding and not session.config.getoption("--check-signatures"):
        return
    _unlisted.update(_asked_but_not_listed())
    output = getattr(session.config, "workeroutput", None)
    if output is not None:  # this is one of several processes
        output["unlisted"] = sorted(_unlisted)
    elif is_adding:
        _add(_unlisted)
    elif _unlisted and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _add(entries: set[str]) -> None:
    """Add entries with their types to the list."""
    if not entries:
        return
    from jointforest.runtime import numba_internals, signatures

    text = "\n".join([signatures.LIST.read_text(), *sorted(entries)])
    signatures.LIST.write_text(signatures.write_list(signatures.read_list(text, numba_internals.record_type)))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if _unlisted and terminalreporter.config.getoption("--add-signatures"):
        terminalreporter.line(f"{len(_unlisted)} lines were added to the list of signatures.")
    elif _unlisted:
        terminalreporter.section("Entries and signatures that the list lacks", red=True)
        terminalreporter.line("Add them: pytest --add-signatures. If a new question calls them, add it to")
        terminalreporter.line("tools/list_signatures.py. If only a test does, let it pass the types of the package.")
        for line in sorted(_unlisted):
            terminalreporter.line(line if len(line) < 300 else f"{line[:300]}...")


def _asked_but_not_listed() -> set[str]:
    """The entries of the package that were asked for in this process with types that the list lacks."""
    internals = sys.modules.get("jointforest.runtime.numba_internals")
    if internals is None:
        return set()
    from jointforest.runtime import signatures

    asked = [f"{f.__module__}.{f.__qualname__}({types})" for f, types in internals.asked if _is_of_the_package(f)]
    return signatures.entries("\n".join(asked)) - signatures.entries(signatures.LIST.read_text())


def _is_of_the_package(function: Any) -> bool:
    """Whether a function is an entry of the package, and not a kernel that a test made one of."""
    entry = getattr(sys.modules[function.__module__], function.__qualname__, None)
    return function.__module__.startswith("jointforest.") and isinstance(entry, Entry) and entry.py_func is function
