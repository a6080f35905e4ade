"""Players of a game on a table: columns, or groups of columns, that are known together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ...table.schema import Schema


class Players(NamedTuple):
    """p players, each some columns of a joint.

    Attributes
    ----------
    names : tuple of p str
    columns : tuple of p tuples of int
        Numbers of the joint's columns; no column is of two players.
    """

    names: tuple[str, ...]
    columns: tuple[tuple[int, ...], ...]

    def of_columns(self, d: int) -> np.ndarray:
        """Which of d columns each player has, bool (p, d)."""
        out = np.zeros((len(self.columns), d), bool)
        for k, columns in enumerate(self.columns):
            out[k, list(columns)] = True
        return out


def make_players(schema: Schema, columns: Iterable[int], groups: Any) -> Players:
    """Players of these columns: one each, or the groups, with a player for each column that is in none.

    Parameters
    ----------
    schema : Schema
    columns : iterable of int
        In the order of the players.
    groups : None, list of lists of names, or dict of a group's name to names
        May hold columns of the joint that are not among ``columns``. A name alone stands for itself.

    Raises
    ------
    ValueError
        Unknown columns, a column in two groups, an empty group, two groups of one name.
    """
    names, found = [], []
    for name, group in _pairs(groups):
        words = [group] if isinstance(group, str) else list(group)
        if not words:
            raise ValueError(f"groups: the group {name!r} has no columns" if name else "groups: a group has no columns")
        found.append(tuple(schema.index(word) for word in words))
        names.append(" + ".join(schema.names[j] for j in found[-1]) if name is None else str(name))
    flat = [j for group in found for j in group]
    twice = [j for i, j in enumerate(flat) if j in flat[:i]]
    if twice:
        raise ValueError(f"groups: column {schema.names[twice[0]]!r} is named twice")
    alone = [j for j in columns if j not in flat]
    names, found = names + [schema.names[j] for j in alone], found + [(j,) for j in alone]
    same = [name for i, name in enumerate(names) if name in names[:i]]
    if same:
        raise ValueError(f"groups: two players are called {same[0]!r}; give the group another name")
    return Players(tuple(names), tuple(found))


def _pairs(groups: Any) -> list[tuple[Any, Any]]:
    """Name, or None, and members of each group."""
    if groups is None:
        return []
    if isinstance(groups, Mapping):
        return list(groups.items())
    if isinstance(groups, str) or not isinstance(groups, Iterable):
        raise ValueError(f"groups must be None, 'auto', a list of lists of columns or a dict, got {groups!r}")
    return [(None, group) for group in groups]
