"""Joints, posteriors and marginals as small static pieces of HTML, for notebooks: no script, every text escaped."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

import numpy as np

from ..io.answers import about_column
from ..queries.column.levels import level_probability
from ..queries.posterior.weighed import SUPPORT, WeighedEvidence
from .summary import in_words, picture, shortened, shown_share

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
    share = level_probability(weighed.model, weighed.evidence, j, known=weighed.known)[0]
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
