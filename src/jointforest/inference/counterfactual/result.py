"""What counterfactuals are: rows, and what changed in each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...cards import html, svg
from ...cards.html import Html


@dataclass(frozen=True, repr=False)
class Counterfactuals:
    """Rows near one row of which another outcome is predicted; made by `Joint.counterfactual`.

    Attributes
    ----------
    rows : frame of m rows
        Of all columns, as at learning; m is less than asked for if no more were found. Cells that were missing still
        are. A column that is the target has the wanted outcome.
    changed : tuple of m dicts
        By column the cell before and after.
    distance : float64 array (m,)
        Gower's distance to the row: the mean over its known cells, the target's left out, of the change as a share of
        the range that learning saw, of levels 0 or 1.
    log_density : float64 array (m,)
        ``Joint.log_density`` of the row without the target's cell.
    outcome : array (m,)
        What is predicted of each row: a level, class or number (of a column of numbers its mean).
    validity : float64 array (m,)
        Probability of the wanted outcome, as the joint or the model gives it; 1 of models that give none.
    log_floor : float
        Least log-density that rows might have; -inf: any but impossible ones.
    is_fewest : bool
        Whether it is certain that no row that will do has fewer changes than the first.
    text : str
        As ``print`` shows it.
    """

    rows: Any
    changed: tuple[dict[Any, tuple[Any, Any]], ...]
    distance: np.ndarray
    log_density: np.ndarray
    outcome: np.ndarray
    validity: np.ndarray
    log_floor: float
    is_fewest: bool
    text: str

    def __len__(self) -> int:
        return len(self.changed)

    def __str__(self) -> str:
        lines = [self.text]
        table = self._table()
        widths = [max(len(line[k]) for line in table) for k in range(4)]
        for line in table if len(self) else []:
            cells = [cell.rjust(width) for cell, width in zip(line[:4], widths, strict=True)]
            lines.append("  ".join(["", *cells, line[4]]))
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = []
        for k, changes in enumerate(self.changed):
            said = (
                f"{html.words(str(name))}: {html.words(_short(old))} &rarr; <b>{html.words(_short(new))}</b>"
                for name, (old, new) in changes.items()
            )
            share = float(self.validity[k])
            row = [_short(self.outcome[k]), svg.percent(share), Html(svg.bar_svg(share)), f"{self.distance[k]:.3f}"]
            rows.append([*row, f"{self.log_density[k]:.1f}", Html("<br>".join(said))])
        header = ("outcome", "validity", "", "distance", "log-density", "changes")
        return html.view_html(self.text, [], [html.table_html(rows, header)] if rows else [])

    def _table(self) -> list[tuple[str, ...]]:
        """Titles, and a line a row."""
        lines: list[tuple[str, ...]] = [("outcome", "validity", "distance", "log-density", "changes")]
        for k, changes in enumerate(self.changed):
            shown = self.outcome[k]
            said = "; ".join(f"{name}: {_short(old)} -> {_short(new)}" for name, (old, new) in changes.items())
            numbers = f"{self.validity[k]:.2f}", f"{self.distance[k]:.3f}", f"{self.log_density[k]:.1f}"
            lines.append((_short(shown), *numbers, said))
        return lines


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float | np.floating) and value != round(value) else str(value)
