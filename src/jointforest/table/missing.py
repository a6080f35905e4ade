"""That a cell is missing, or is not, as something that can be said of a row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .conditions import AllOf, AnyOf, Not, PerRow


@dataclass(frozen=True)
class Missing:
    """The cell is missing; ``Not(Missing())``: it is not. What learning saw of missing cells answers.

    Examples
    --------
    >>> import jointforest as jf
    >>> joint = jf.AdversarialForest(n_estimators=5, random_state=0).fit(jf.datasets.load_penguins()).joint_
    >>> joint.given(sex=jf.Missing()).probability("species = Chinstrap") < 0.1
    True
    """


def without_missing(conditions: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, bool]]:
    """Conditions by column without what they say of missing cells, and that: True where a column's cell is missing.

    Raises
    ------
    ValueError
        If it is joined to other conditions but by "and", or contradicts itself.
    """
    rest: dict[str, Any] = {}
    missing: dict[str, bool] = {}
    for name, condition in conditions.items():
        parts = condition.conditions if isinstance(condition, AllOf) else (condition,)
        said = {said for part in parts if (said := _says(part)) is not None}
        others = [part for part in parts if _says(part) is None]
        if any(map(_speaks, others)):
            raise ValueError(
                f"column {name!r}: that a cell is missing stands alone, or is joined to other conditions by 'and'; "
                "ask for the parts: P(A or B) = P(A) + P(B) - P(A, B)"
            )
        if len(said) > 1:
            raise ValueError(f"column {name!r}: its cell cannot be both missing and known; drop one of the conditions")
        if not said:
            rest[name] = condition
            continue
        missing[name] = said.pop()
        if others:
            rest[name] = AllOf(*others) if len(others) > 1 else others[0]
    return rest, missing


def _says(condition: Any) -> bool | None:
    """Whether the cell is missing; None if the condition is another one."""
    if isinstance(condition, Not):
        inner = _says(condition.condition)
        return None if inner is None else not inner
    return True if isinstance(condition, Missing) else None


def _speaks(condition: Any) -> bool:
    """Whether a part of a condition is about missing cells."""
    if isinstance(condition, AnyOf | AllOf | PerRow):
        return any(map(_speaks, condition.conditions))
    return _speaks(condition.condition) if isinstance(condition, Not) else isinstance(condition, Missing)
