"""A real browser, a server for each joint, and a watch on what the page asks for: nothing beyond 127.0.0.1."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

import jointforest as jf
from jointforest.explorer.open import Explorer

from . import tables
from .face import Face

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PATIENCE = 120_000  # milliseconds: a first question compiles kernels


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        path = os.environ.get("CHROMIUM") or CHROMIUM
        running = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture(scope="session")
def penguins() -> Any:
    """Joint of the penguins."""
    return jf.JointTree(min_samples_leaf=0.05).fit(jf.datasets.load_penguins()).joint_


@pytest.fixture(scope="session")
def mixed() -> Any:
    """Joint of a made-up table with every kind of column."""
    return jf.JointTree(min_samples_leaf=0.05).fit(tables.mixed()).joint_


@pytest.fixture(scope="session")
def penguin_server(penguins: Any) -> Iterator[Explorer]:
    with Explorer(penguins, "penguins.joint") as server:
        yield server


@pytest.fixture(scope="session")
def mixed_server(mixed: Any) -> Iterator[Explorer]:
    with Explorer(mixed, "mixed.joint") as server:
        yield server


@pytest.fixture
def new_context(browser: Browser) -> Iterator[Callable[..., BrowserContext]]:
    """Makes contexts in which nothing moves; afterwards says what left 127.0.0.1, and what went wrong in a page."""
    opened: list[BrowserContext] = []
    outside: list[str] = []
    wrong: list[str] = []

    def make(**options: Any) -> BrowserContext:
        defaults = {"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce"}
        context = browser.new_context(**(defaults | options))
        context.set_default_timeout(PATIENCE)
        context.add_init_script("try { localStorage.setItem('jointforest-tour', 'seen') } catch {}")
        context.on("request", lambda request: _note(outside, request.url))
        context.on("weberror", lambda error: wrong.append(str(error.error)))
        context.on("console", lambda said: wrong.append(said.text) if "Content Security" in said.text else None)
        opened.append(context)
        return context

    yield make
    for context in opened:
        context.close()
    assert outside == []
    assert wrong == []


def _note(outside: list[str], url: str) -> None:
    if not url.startswith(("http://127.0.0.1:", "blob:http://127.0.0.1:", "blob:null/", "data:", "file://")):
        outside.append(url)


@pytest.fixture
def visit(new_context: Callable[..., BrowserContext]) -> Callable[..., Face]:
    """Opens the page of a server, and waits until it shows exact numbers."""

    def open_page(server: Explorer, hash: str = "", context: BrowserContext | None = None, **options: Any) -> Face:
        page: Page = (context or new_context(**options)).new_page()
        page.goto(server.url + hash)
        face = Face(page)
        face.settle()
        return face

    return open_page


@pytest.fixture
def face(visit: Callable[..., Face], penguin_server: Explorer) -> Face:
    """The page of the penguins."""
    return visit(penguin_server)


@pytest.fixture
def mixed_face(visit: Callable[..., Face], mixed_server: Explorer) -> Face:
    """The page of the made-up table."""
    return visit(mixed_server)
