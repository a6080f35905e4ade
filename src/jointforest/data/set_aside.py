"""Columns that carry no distribution: identifiers, free text and columns of too many levels.

Such a column takes no part in the model. Draws have new identifiers of the same pattern in it, and imputation keeps
its cells.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from .cells import of_numbers
from .identifiers import CLASSES, SetAside
from .observe_table import Labels, Numbers, Seen
from .schema import MAX_LEVELS, Column

_LEAST = 100
"""In columns of more known cells the number of distinct values says whether they name the rows."""
_DISTINCT = 0.95
"""Least share of distinct values among the cells of a column of identifiers."""
_WORDS = 5.0
"""Least mean number of words in a cell of free text."""
_ID_NAME = re.compile(r"(.*[^a-z])?(id|ids|key|uuid|guid|index|rownum|row_?number|unnamed: ?\d+)|.*[a-z](Id|ID)")


def set_aside(name: str, seen: Seen, kind: str | None) -> Column | None:
    """A column without a distribution, None for any other; ``kind`` is the user's word on it.

    Examples
    --------
    >>> labels = Labels(("a-07", "a-08"), np.array([1, 1]), False, False)
    >>> column = set_aside("id", Seen("levels", "str:python", 2, labels), "identifier")
    >>> column.aside.new(0)
    'a-09'
    """
    if kind not in (None, "identifier"):
        return None
    must = kind == "identifier"
    if isinstance(seen.what, Labels) and all(isinstance(label, str) for label in seen.what.labels):
        return _of_texts(name, seen, seen.what, must)
    if isinstance(seen.what, Numbers) and seen.sort in ("integer", "number"):
        numbers = seen.what
        tally = numbers.values.tally
        # of many values a sample is counted: if none of these occurs twice, next to none of the others does
        is_distinct = bool((tally.counts == 1).all())
        n_distinct = seen.n_known if is_distinct else tally.n_distinct
        is_key = seen.sort == "integer" and seen.n_known > _LEAST and is_distinct
        if must or (is_key and (_ID_NAME.fullmatch(name) or _ID_NAME.fullmatch(name.lower()))):
            aside = SetAside("identifier", n_distinct, first=int(numbers.high) + 1 if abs(numbers.high) < 2**52 else 1)
            return Column(name, "integer", of_numbers(seen.dtype), step=1.0, n_observed=seen.n_known, aside=aside)
        return None
    if must:
        raise ValueError(f"kinds: column {name!r}: an identifier is text or a whole number, got {seen.sort}")
    return None


def _of_texts(name: str, seen: Seen, labels: Labels, must: bool) -> Column | None:
    """A column of texts that is set aside, or None."""
    used = [str(label) for label, n in zip(labels.labels, labels.counts.tolist(), strict=True) if n]
    share = len(used) / max(seen.n_known, 1)
    words = float(np.mean([len(text.split()) for text in used[:1000]])) if used else 0.0
    if must:
        reason = "identifier"
    elif labels.declared or seen.n_known <= _LEAST:
        return None
    elif words >= _WORDS and share > 0.5:
        reason = "free text"
    elif share >= _DISTINCT:
        reason = "identifier"
    elif len(used) > MAX_LEVELS:
        reason = "too many levels"
    else:
        return None
    aside = SetAside(reason, len(used), **_pattern(used)) if reason == "identifier" else SetAside(reason, len(used))
    return Column(name, "categorical", seen.dtype, levels=("",), n_observed=seen.n_known, aside=aside)


def _pattern(texts: list[str]) -> dict[str, Any]:
    """How identifiers are written: a text with a number in it, or characters of the same classes."""
    matches = [re.fullmatch(r"(.*?)(\d{1,15})(\D*)", text) for text in texts]
    found = [match for match in matches if match is not None]
    if len(found) == len(texts) and len({(match[1], match[3]) for match in found}) == 1:
        widths = {len(match[2]) for match in found}
        has_zeros = any(match[2].startswith("0") for match in found)
        width = max(widths) if has_zeros and len(widths) == 1 else 0
        last = max(int(match[2]) for match in found)
        return {"prefix": found[0][1], "suffix": found[0][3], "width": width, "first": last + 1}
    if len({len(text) for text in texts}) > 1 or len(texts[0]) > 100:
        return {"prefix": "new-"}
    mask, freedom = [], 1.0
    for characters in map(set, zip(*texts, strict=True)):
        of = next((name for name, members in CLASSES if characters <= set(members)), None)
        if len(characters) == 1 or of is None:
            if len(characters) > 1:
                return {"prefix": "new-"}
            mask.append("\\" + next(iter(characters)))
        else:
            mask.append(of)
            freedom *= len(dict(CLASSES)[of])
    return {"mask": "".join(mask)} if freedom >= 1e15 else {"prefix": "new-"}  # enough that none is drawn twice
