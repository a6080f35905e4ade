"""The marginal distribution of some columns, as a model of its own. See docs/modes.md."""

from __future__ import annotations

from collections.abc import Sequence

from ...model.model import Model


def keep(model: Model, columns: Sequence[int]) -> Model:
    """The marginal of a model over some of its columns, exact: that of each part, the weights as they were.

    Parameters
    ----------
    model : Model
    columns : sequence of int
        Numbers of the columns that stay, at least one; their order stays that of the table.

    Returns
    -------
    Model
        Answers as the old one does where the other columns are missing.

    Raises
    ------
    ValueError
        If no column is left.
    """
    parts = tuple(part.keep(list(columns)) for part in model.parts)
    return Model(parts[0].schema, parts, model.log_weight)
