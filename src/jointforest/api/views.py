"""Joints, posteriors and marginals as small static pieces of HTML, for notebooks: no script, every text escaped."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from ..data import values as answers
from ..data.schema import Column
from ..data.table_files import about_column
from ..inference.histogram import bin_edges, histogram
from ..inference.posterior import SUPPORT, WeighedEvidence
from ..models.base import Distribution

# ---- What is known of one column in a few words, and as a picture of letters.

LISTED = 3
"""Levels that are named."""
LONGEST = 60
"""Characters of a name or a level."""
BINS = 20
"""Letters of a picture."""
_TAILS = np.array([0.05, 0.95])
_BLOCKS = " ▁▂▃▄▅▆▇█"


def in_words(weighed: WeighedEvidence, j: int) -> str:
    """Mean and 90 % interval of a column of numbers or dates, the most probable levels of another.

    Of several rows of evidence how many there are; of impossible evidence that it is. Nothing is warned of.
    """
    column, w = weighed.model.schema.columns[j], weighed
    if len(w) != 1:
        return f"given {w}"
    if math.isnan(w.background_share[0]):
        return "the evidence has probability 0"
    if column.is_categorical:
        return _levels(column, w.state.level_probabilities(j)[0])
    mean = float(w.state.moments(j)[0][0])
    low, high = w.state.quantile(j, _TAILS)[0].tolist()
    if not all(map(math.isfinite, (mean, low, high))):
        return "too far out to be computed"
    if low == high:
        return shown_number(column, low)
    return (
        f"mean {shown_number(column, mean, True)}, 90 % in {shown_number(column, low)} to {shown_number(column, high)}"
    )


def picture(weighed: WeighedEvidence, j: int) -> str:
    """A histogram of a column of numbers or dates, a letter a bin; nothing of others, or where there is none."""
    column = weighed.model.schema.columns[j]
    if column.is_categorical or len(weighed) != 1 or math.isnan(weighed.background_share[0]):
        return ""
    try:
        mass = histogram(weighed, j, bin_edges(column, BINS))[0]
    except ValueError:  # no range was seen at learning
        return ""
    height = np.ceil((len(_BLOCKS) - 1) * np.clip(mass / max(mass.max(), 1e-300), 0.0, 1.0) - 1e-3)
    return "".join(_BLOCKS[max(int(h), 0)] for h in height.tolist())


def shown_number(column: Column, number: float, between_cells: bool = False) -> str:
    """A number or date of a column as people write it, a few digits."""
    if column.kind == "datetime":
        moment: Any = answers.scalar(column, number)
        return str(moment.isoformat(" ", "minutes")) if hasattr(moment, "hour") else str(moment)
    value = float(number) if between_cells or column.step == 0.0 else float(column.from_number(number))
    if abs(value) >= 1e15:
        return f"{value:.3g}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if between_cells or column.step == 0.0 else f"{value:g}"


def shown_share(share: float) -> str:
    """A probability in per cent."""
    if share == 0.0:
        return "0 %"
    if share < 0.001:
        return "< 0.1 %"
    return f"{100 * share:.1f} %" if share < 0.1 else f"{100 * share:.0f} %"


def shortened(text: str) -> str:
    """A text of at most `LONGEST` characters."""
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _levels(column: Column, share: np.ndarray) -> str:
    best = np.argsort(-share, kind="stable")[:LISTED].tolist()
    said = ", ".join(f"{shortened(str(column.levels[k]))} {shown_share(float(share[k]))}" for k in best)
    others = len(share) - len(best)
    return said + (f", {others:,} {'other' if others == 1 else 'others'}" if others else "")


COLUMNS = 30
"""Columns that are shown."""
LEVELS = 20
"""Levels that are shown of a marginal."""
_CELL = '<td style="text-align:left;padding:0 1.2em 0 0;background:none">'


def joint_html(title: str, columns: Sequence[dict]) -> str:
    """A joint: its size, and what each column is, of `Joint.info`."""
    rows = [(shortened(c["name"]), c["kind"], about_column(c)) for c in columns[:COLUMNS]]
    return _page(title, rows, _left_out(len(columns) - len(rows), "column"))


def posterior_html(title: str, weighed: WeighedEvidence, log_probability: float) -> str:
    """A posterior: how probable the evidence is, and each column given it."""
    if len(weighed) != 1:
        return _page(title, [], "")
    if log_probability == -math.inf:
        return _page(title, [], "The evidence has probability 0.")
    said = [f"log-density of the evidence {log_probability:.4g}"]
    if log_probability <= 0.0:
        said = [f"log-probability of the evidence {log_probability:.4g}"]
    if weighed.background_share[0] > SUPPORT:
        said.append("the evidence is unlike anything learned: its answers are those of a background")
    names = weighed.model.schema.names
    shown = range(min(len(names), COLUMNS))
    rows = [(shortened(names[j]), picture(weighed, j), in_words(weighed, j)) for j in shown]
    return _page(title, rows, _left_out(len(names) - len(rows), "column"), said)


def marginal_html(title: str, weighed: WeighedEvidence, j: int) -> str:
    """A marginal: its levels, or its picture, mean and interval."""
    column = weighed.model.schema.columns[j]
    if not column.is_categorical or len(weighed) != 1 or math.isnan(weighed.background_share[0]):
        return _page(title, [("", picture(weighed, j), in_words(weighed, j))], "")
    share = weighed.state.level_probabilities(j)[0]
    best = np.argsort(-share, kind="stable")[:LEVELS].tolist()
    rows = [(shortened(str(column.levels[k])), "█" * round(20 * share[k]), shown_share(float(share[k]))) for k in best]
    return _page(title, rows, _left_out(len(share) - len(rows), "level"))


def _page(title: str, rows: Iterable[tuple[str, str, str]], end: str, said: Sequence[str] = ()) -> str:
    """A title, lines, a table and a last line; all texts are escaped here."""
    out = ['<div style="font-family:sans-serif;line-height:1.4">', f"<p><b>{escape(title)}</b>"]
    out += [f"<br>{escape(line)}" for line in said] + ["</p>", '<table style="border-collapse:collapse">']
    for name, drawn, words in rows:
        letters = f'<span style="font-family:monospace;white-space:pre">{escape(drawn)}</span>'
        out.append(f"<tr>{_CELL}<bdi>{escape(name)}</bdi></td>{_CELL}{letters}</td>{_CELL}{escape(words)}</td></tr>")
    out.append("</table>")
    if end:
        out.append(f'<p style="margin:.4em 0;opacity:.7">{escape(end)}</p>')
    return "".join([*out, "</div>"])


def _left_out(n: int, what: str) -> str:
    return f"and {n:,} {what}{'' if n == 1 else 's'} more" if n > 0 else ""


# ---- How large a model is: trees, leaves and hidden states of its parts.


def part_sizes(model: Distribution) -> list[dict[str, Any]]:
    """Kind, weight and size of each component: see `Distribution.size`."""
    weights = np.exp(model.log_weight).tolist()
    return [{"kind": part.kind, "weight": w} | part.size() for part, w in zip(model.components, weights, strict=True)]


def size_text(size: dict[str, Any]) -> str:
    """One of `part_sizes` in words."""
    if "leaves" in size:
        trees = "1 tree" if size["trees"] == 1 else f"{size['trees']} trees"
        what = "" if size["kind"] == "forest" else "Chow-Liu "
        return f"{trees}, 1 {what}leaf" if size["leaves"] == 1 else f"{trees}, {size['leaves']} {what}leaves"
    if "states" in size:
        trees = "1 hidden tree" if size["trees"] == 1 else f"{size['trees']} hidden trees"
        return f"{trees} of {size['states']} states"
    return str(size["kind"])
