"""Answers and columns as lines of text, and as plain data for JSON."""

from __future__ import annotations

import json
import math
from typing import Any


def about_column(column: dict[str, Any]) -> str:
    """One line on a column's values, from what `Joint.info` says of it."""
    if "levels" in column:
        levels = [str(level) for level in column["levels"]]
        return f"{len(levels)} levels: {', '.join(levels[:6])}{', ...' if len(levels) > 6 else ''}"
    step = f", step {column['step']:g}" if column["step"] else ""
    atoms = ", ".join(f"{atom:g}" for atom in column["atoms"][:6]) + (", ..." if len(column["atoms"]) > 6 else "")
    return f"{shown(column['minimum'])} to {shown(column['maximum'])}{step}{f', atoms {atoms}' if atoms else ''}"


def shown(value: Any) -> str:
    """A number with six digits, anything else as it writes itself."""
    if _is_duration(value):
        value = value.item()
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _is_duration(value: Any) -> bool:
    """Whether it is a numpy.timedelta64, which writes itself as so many microseconds."""
    return type(value).__name__ == "timedelta64"


def plain(value: Any) -> Any:
    """Ready for JSON: text keys, dates as text, durations in seconds, None for what is not a finite number."""
    if _is_duration(value):
        value = value.astype("timedelta64[us]").astype(float).item() / 1e6
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {key if isinstance(key, str) else json.dumps(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else str(value)
