"""What `jf.fit` compared, and what it chose."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from .. import cards
from ..cards import Html
from ..evaluation.statements import Statements


@dataclass(frozen=True)
class CandidateReport:
    """One candidate.

    Attributes
    ----------
    name : str
    log_density : float
        Mean over the validation rows, in nats: of levels, point masses and numbers on a grid their probability.
    seconds : float
        To learn it from the rows compared on.
    told_apart : float
        Two-sample score of its draws and the learned rows, by scikit-learn's boosting: 1 if they cannot be separated.
        NaN where few rows are compared on, and of a mixture.
    answers : float
        Mean score of answers about a column given another one, on the validation rows, higher is better: of numbers the
        score of Dawid and Sebastiani, which rests on mean and variance, and of levels the log-probability. NaN with
        ``objective="likelihood"``, and of a mixture.
    """

    name: str
    log_density: float
    seconds: float
    told_apart: float = math.nan
    answers: float = math.nan


@dataclass(frozen=True)
class FitReport:
    """What `jf.fit` compared, and what it chose; prints as a table. `Joint.fitted_by` has it; files do not keep it.

    Attributes
    ----------
    budget : str or float
    candidates : tuple of CandidateReport
        In the order in which they were learned; a mixture last.
    chosen : dict of str to float
        Members of the joint, by name, and their weights.
    held_out : str
        The validation rows, in words.
    why : str
    left_out : tuple of str
        What the budget had no time for.
    seconds : float
        From start to end.
    statements : Statements or None
        Exact answers of the joint beside counts of rows.
    wrong : dict of str to int
        With ``errors=True``: how many cells of each column are probably wrong, and count as missing.
    """

    budget: str | float
    candidates: tuple[CandidateReport, ...]
    chosen: dict[str, float]
    held_out: str
    why: str
    left_out: tuple[str, ...]
    seconds: float
    statements: Statements | None = None
    wrong: dict[str, int] = field(default_factory=dict)

    @property
    def in_words(self) -> str:
        """What was chosen, and why."""
        chosen = " + ".join(f"{weight:.2f} {name}" for name, weight in self.chosen.items())
        text = f"{next(iter(self.chosen)) if len(self.chosen) == 1 else chosen}: {self.why}"
        if not self.wrong:
            return text
        each = ", ".join(f"{name} {n:,}" for name, n in self.wrong.items())
        n = sum(self.wrong.values())
        what = "1 cell is probably wrong and counts" if n == 1 else f"{n:,} cells are probably wrong and count"
        return f"{text}; {what} as missing ({each})"

    @property
    def _scores(self) -> dict[str, dict[str, float]]:
        """Of each score that is known, those of all candidates."""
        each = {
            "answers": {one.name: one.answers for one in self.candidates},
            "told apart": {one.name: one.told_apart for one in self.candidates},
        }
        return {name: of for name, of in each.items() if not all(map(math.isnan, of.values()))}

    @property
    def _ends(self) -> list[str]:
        """The last lines: what was left out, and how the joint compares with counts."""
        left_out = [f"left out: {', '.join(self.left_out)}"] if self.left_out else []
        return left_out + ([f"checked: {self.statements.in_words}"] if self.statements else [])

    def __str__(self) -> str:
        width = max((len(one.name) for one in self.candidates), default=0)
        lines = [f"jf.fit, budget {self.budget!r}: {self.seconds:.1f} s; compared on {self.held_out}"]
        if self.candidates:
            names = "".join(f"  {name:>10}" for name in self._scores)
            lines.append(f"  {'candidate':<{width}}  {'log-density':>12}  {'seconds':>8}{names}")
        for one in self.candidates:
            scores = "".join(f"  {_score_text(values[one.name]):>10}" for values in self._scores.values())
            lines.append(f"  {one.name:<{width}}  {one.log_density:>12.4f}  {one.seconds:>8.2f}{scores}".rstrip())
        lines.append(f"chosen: {self.in_words}")
        return "\n".join(lines + self._ends)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        best = max((one.log_density for one in self.candidates), default=0.0)
        behind = max((best - one.log_density for one in self.candidates), default=0.0) or 1.0
        header = ["candidate", "weight", "", "log-density (nats)", "behind the best", "", "seconds"]
        rows = []
        for one in self.candidates:
            weight, gap = self.chosen.get(one.name, 0.0), best - one.log_density
            name = Html(f"<b>{cards.words(one.name)}</b>") if weight else one.name
            row = [name, f"{weight:.2f}" if weight else "", Html(cards.bar_svg(weight)), f"{one.log_density:.4f}"]
            row += [f"{gap:.4f}", Html(cards.step(0.0, -gap, -behind, 0.0)), f"{one.seconds:.1f}"]
            rows.append([*row, *(_score_text(values[one.name]) for values in self._scores.values())])
        lines = [f"chosen: {self.in_words}"]
        lines += self._ends
        lines += [f"{name}: {_SCORES[name]}" for name in self._scores]
        title = f"jf.fit, budget {self.budget!r}: {self.seconds:.1f} s; compared on {self.held_out}"
        pieces = [cards.table_html(rows, [*header, *self._scores])] if rows else []
        return cards.view_html(title, lines, pieces)


_SCORES = {
    "answers": "score of mean and standard deviation, or level, of a column given another; higher is better",
    "told apart": "score of a two-sample test on draws, 1 if they cannot be told from the table",
}


def _score_text(score: float) -> str:
    return "" if math.isnan(score) else f"{score:.2f}"
