"""What a predictor compared, and what it chose."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ... import cards
from ...api.fit_report import FitReport
from ...cards import Html

_TOGETHER = "all together"


@dataclass(frozen=True)
class MemberReport:
    """One member.

    Attributes
    ----------
    name : str
    loss : tuple of float
        Mean log-loss of validation rows, or root of their mean squared error, at each rate of `PredictorReport.rates`.
    weight : tuple of float
        Weight in the pool of rows of which these shares are missing, `PredictorReport.shares`: zeros if it is not kept.
    settings : str
        What was chosen for it; empty if nothing was.
    """

    name: str
    loss: tuple[float, ...]
    weight: tuple[float, ...]
    settings: str = ""

    @property
    def is_kept(self) -> bool:
        """Whether it takes part in predictions."""
        return any(self.weight)


@dataclass(frozen=True)
class PredictorReport:
    """What `JointClassifier` and `JointRegressor` compared, and what they chose; prints as a table.

    Attributes
    ----------
    members : tuple of MemberReport
        Those that are not kept, too.
    together : tuple of float
        Loss of the kept members together, at each of ``rates``; NaN if the table has too few rows to hold some out.
    measure : {"log-loss", "root mean squared error"}
    rates : tuple of float
        Shares of the cells that were hidden from validation rows.
    shares : tuple of float
        Shares of missing cells at which weights are reported; between, they are interpolated.
    n_held, n_folds : int
        Validation rows, and in how many folds they were held out; 0 if the table has too few rows.
    joint : FitReport
        How the joint was chosen.
    seconds : dict of str to float
        What each stage took.
    """

    members: tuple[MemberReport, ...]
    together: tuple[float, ...]
    measure: str
    rates: tuple[float, ...]
    shares: tuple[float, ...]
    n_held: int
    n_folds: int
    joint: FitReport
    seconds: dict[str, float]

    @property
    def in_words(self) -> str:
        """What was chosen, and why."""
        kept = [one for one in self.members if one.is_kept]
        left = [one.name for one in self.members if not one.is_kept]
        names = ", ".join(f"{one.name} ({one.settings})" if one.settings else one.name for one in kept)
        words = f"{names}: " if len(kept) > 1 else f"{names} alone: "
        if not self.n_held:
            return words + "equal weights, as the table has too few rows to hold some out"
        words += f"weights of least {self.measure} on {self.n_held:,} validation rows"
        words += f", each held out once in {self.n_folds} folds" if self.n_folds > 1 else ""
        return words + (f"; not kept, as they gain too little: {', '.join(left)}" if left else "")

    def __str__(self) -> str:
        losses = [(one.name, one.loss) for one in self.members] + [(_TOGETHER, self.together)]
        width = max(len(name) for name, _ in losses)
        lines = [f"{sum(self.seconds.values()):.1f} s; joint: {self.joint.in_words}"]
        head = "".join(f"{rate:>9.0%}" for rate in self.rates)
        lines.append(f"  {self.measure} with cells hidden")
        lines.append(f"  {'':<{width}}{head}")
        lines += [
            f"  {name:<{width}}" + "".join(f"{_figure(x):>9}" for x in loss)
            for name, loss in losses
            if not np.isnan(loss).any()
        ]
        lines.append("  weight where this share is missing")
        lines.append(f"  {'':<{width}}" + "".join(f"{share:>9.0%}" for share in self.shares))
        lines += [
            f"  {one.name:<{width}}" + "".join(f"{weight:>9.2f}" for weight in one.weight)
            for one in self.members
            if one.is_kept
        ]
        return "\n".join([*lines, f"chosen: {self.in_words}"])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        header = ["member", *(f"{rate:.0%} hidden" for rate in self.rates)]
        losses = [[one.name, *map(_figure, one.loss)] for one in self.members]
        losses.append([Html(f"<b>{_TOGETHER}</b>"), *map(_figure, self.together)])
        weights = [[one.name, *(f"{weight:.2f}" for weight in one.weight)] for one in self.members if one.is_kept]
        tables = [cards.table_html(losses, header)] if self.n_held else []
        tables.append(cards.table_html(weights, ["weight", *(f"{share:.0%} missing" for share in self.shares)]))
        return cards.view_html(f"Predictor: {self.measure}", [f"chosen: {self.in_words}"], tables)


def _figure(loss: float) -> str:
    """A loss with four digits, or as a whole number."""
    return f"{loss:.4g}" if loss < 1000 else f"{loss:,.0f}"
