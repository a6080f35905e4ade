"""The code that a page of the documentation shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```py\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def names_of(page: str) -> dict[str, Any]:
    """What the blocks of a page define, top to bottom."""
    text = (DOCS / page).read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": "__main__"}
    for match in BLOCK.finditer(text):
        exec(compile(match.group(1), page, "exec"), names)
    return names
