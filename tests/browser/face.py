"""The page as a test handles it."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Locator, Page, expect


class Face:
    """The page of one explorer."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def settle(self, state: str = "exact") -> None:
        """Wait until what is shown is in a state."""
        self.page.wait_for_selector(f"body[data-state={state}]")

    def rest(self) -> None:
        """Wait until the panel shows its answer."""
        expect(self.page.locator(".panel [aria-busy]")).to_have_count(0, timeout=120_000)

    def card(self, name: str) -> Locator:
        """The card of a column."""
        return self.page.get_by_role("group", name=name, exact=True)

    def bar(self, column: str, level: str) -> Locator:
        """The bar of a level."""
        found = self.page.locator(".bar-label").get_by_text(level, exact=True)
        return self.card(column).locator(".bar").filter(has=found)

    def shares(self, column: str) -> dict[str, str]:
        """Levels with their shares as shown."""
        bars = self.card(column).locator(".bar")
        return {
            bar.locator(".bar-label").text_content() or "": bar.locator(".bar-value").text_content() or ""
            for bar in bars.all()
        }

    def summary(self, column: str) -> str:
        """Mean and interval as shown."""
        return self.card(column).locator(".summary").text_content() or ""

    @property
    def sentence(self) -> str:
        """What is known, in words."""
        return self.page.locator("textarea.sentence").input_value()

    @property
    def chance(self) -> str:
        return self.page.locator(".chance").text_content() or ""

    @property
    def trouble(self) -> str:
        notice = self.page.locator("jf-notice")
        return notice.text_content() or "" if notice.is_visible() else ""

    @property
    def order(self) -> list[str]:
        """Names of the cards that are shown, in their order."""
        found: list[str] = self.page.evaluate(
            "[...document.querySelectorAll('jf-card')].filter(c => !c.hidden).map(c => c.dataset.name)"
        )
        return found

    def write(self, sentence: str, state: str = "exact") -> None:
        """Write a sentence and press Enter."""
        field = self.page.locator("textarea.sentence")
        field.click()
        field.press("ControlOrMeta+a")
        field.press_sequentially(sentence) if sentence else field.press("Delete")
        field.press("Enter")
        self.settle(state)

    def drag(self, column: str, start: float, end: float, drop: bool = True) -> None:
        """Drag over a histogram, by shares of its width."""
        area = self.card(column).locator(".area")
        area.scroll_into_view_if_needed()
        box: Any = area.bounding_box()
        y = box["y"] + 0.5 * box["height"]
        mouse = self.page.mouse
        mouse.move(box["x"] + start * box["width"], y)
        mouse.down()
        for share in (0.3, 0.7, 1.0):
            mouse.move(box["x"] + (start + share * (end - start)) * box["width"], y)
        if drop:
            mouse.up()
            self.settle()

    def slider(self, column: str, end: str) -> Locator:
        """A handle of a histogram; end is lowest or highest."""
        return self.page.get_by_role("slider", name=f"{end} {column}", exact=True)
