"""Rules as tables show them: long lists of values cut short."""

from __future__ import annotations

from ..language.tokens import tokenize

_MOST = 8


def shown_rule(text: str, most: int = _MOST) -> str:
    """A text of conditions, in which of longer lists the first ``most`` values stand, and how many others there are.

    Examples
    --------
    >>> shown_rule("age > 3 and s in {'a', 'b', 'c', 'd'}", 2)
    "age > 3 and s in {'a', 'b', ... 2 others}"
    """
    pieces, start, kept, count = [], 0, -1, 0
    for token in tokenize(text):
        if token.sort == "symbol" and token.value == "{":
            count, kept = 1, -1
        elif token.sort == "symbol" and token.value == "," and count:
            kept = token.start if count == most else kept
            count += 1
        elif token.sort == "symbol" and token.value == "}" and count:
            if count > most + 1:
                pieces.append(f"{text[start:kept]}, ... {count - most:,} others")
                start = token.start
            count = 0
    return "".join([*pieces, text[start:]])
