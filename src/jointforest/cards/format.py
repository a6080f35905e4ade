"""Numbers and shares as people read them, the same in Python as in the pages' ``format.js``."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal

GROUPED = 1e4
"""The numbers of a column whose greatest is below this, such as years, are written without commas."""
_FAR = 1e9
"""From here on numbers are written with a power of ten."""
MINUS = "−"


def percent(share: float | None) -> str:
    """A proportion as per cent with one decimal; a value other than 0 or 1 never looks like 0 % or 100 %."""
    if share is None or math.isnan(share):
        return "–"
    if share in (0.0, 1.0):
        return "100%" if share else "0%"
    if 0.0 < share < 0.0005:
        return "<0.1%"
    if 0.9995 < share < 1.0:
        return ">99.9%"
    return f"{_rounded_decimal(100 * Decimal(repr(float(share))), 1)}%"


def number_writer(low: float, high: float, step: float = 0.0, of_means: bool = False) -> Callable[[float], str]:
    """The function that writes values, or means (``of_means``), of a column from low to high with this grid step."""
    span, largest = max(high - low, math.ulp(0.0)), max(abs(low), abs(high))
    is_whole = step > 0.0 and step == round(step)
    fine = max(0, 3 - math.ceil(math.log10(span)))
    digits = 0 if is_whole else min(12, fine)
    if is_whole and of_means:
        digits = min(2, fine) or int(span < 200.0)
    is_far = largest >= _FAR or (not is_whole and span < 1e-6)
    comma = "," if largest >= GROUPED else ""

    def write(x: float) -> str:
        number = Decimal(repr(float(x)))
        if is_far:
            return _scientific(number)
        text = f"{_rounded_decimal(number, digits):z{comma}f}"
        return signed(text.rstrip("0").rstrip(".") if "." in text else text)

    return write


def signed(text: str) -> str:
    """A number that begins with a hyphen as one that begins with a minus sign."""
    return text.replace("-", MINUS, 1) if text.startswith("-") else text


def _rounded_decimal(number: Decimal, digits: int) -> Decimal:
    return number.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)


def _scientific(number: Decimal) -> str:
    """A number with at most four digits and a power of ten, such as 1.235E9."""
    if not number:
        return "0E0"
    power = number.adjusted()
    mantissa = _rounded_decimal(number.scaleb(-power), 3)
    if abs(mantissa) >= 10:
        mantissa, power = mantissa / 10, power + 1
    text = f"{mantissa:f}".rstrip("0").rstrip(".")
    return f"{text}E{power}".replace("-", MINUS, int(number < 0))
