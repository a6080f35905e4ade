"""Survival curves of a column by groups of evidence, beside those of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from ..api.joint import Joint
from ..data.conditions import Interval
from ..data.evidence import Evidence
from .distributions import check_joint, format_dates, one_posterior, places
from .style import LEVEL_COLORS, clean, in_percent, new_axes, short

_POINTS, _FEW = 200, 25


def survival(
    joint: Joint,
    column: str,
    groups: Sequence[str] = ("",),
    frame: Any = None,
    until: Any = None,
    standard_errors: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """The probability that an event has not happened yet, over time, in groups of rows.

    Parameters
    ----------
    joint : Joint
    column : str
        A column of times, as numbers or dates.
    groups : sequence of str
        Texts of conditions, such as ``["plan = basic", "plan = pro"]``: a curve each. Default: all rows.
    frame : frame, optional
        Rows to compare with: the Kaplan-Meier estimate of those in each group is drawn as a thin line. A row counts as
        much as it is probable that it is in the group, given its known cells.
    until : number or date, optional
        The end of the curves; default, and at most where rows are censored: the largest time that is known exactly.
    standard_errors : bool
        Whether to shade two standard errors on both sides.
    ax : Axes, optional

    Returns
    -------
    Axes
        A line for each group, labelled by its conditions; with a frame one more after each of which it has rows.

    Raises
    ------
    ValueError
        If the column has levels, or a group has probability 0.

    Examples
    --------
    >>> import jointforest as jf
    >>> from jointforest import plot
    >>> penguins = jf.datasets.load_penguins()
    >>> joint = jf.JointTree(random_state=0).fit(penguins).joint_
    >>> ax = plot.survival(joint, "body_mass_g", ["species = Adelie", "species = Gentoo"], penguins)
    >>> [line.get_label() for line in ax.lines][::2]
    ["species = 'Adelie'", "species = 'Gentoo'"]
    """
    check_joint(joint)
    if isinstance(groups, str) or not len(groups):
        raise ValueError(f"groups must be a list of texts such as ['age >= 40'], at least one, got {groups!r}")
    found, j = joint.schema[column], joint.schema.index(column)
    if found.is_categorical:
        raise ValueError(f"column {column!r} is {found.kind}: it has no times; give a column of numbers or dates")
    last = min(found.maximum if until is None else float(found.numbers(until)), found.learned_until)
    t = np.linspace(min(found.minimum, last, 0.0 if found.kind != "datetime" else last), last, _POINTS)
    rows = None if frame is None else joint.given(frame)
    ax = new_axes(5.8, 3.6) if ax is None else ax
    for text, colour in zip(groups, [LEVEL_COLORS[k % len(LEVEL_COLORS)] for k in range(len(groups))], strict=True):
        given = one_posterior(joint.given(text) if text else joint.given())
        curve = 1.0 - given.state.cdf(j, t)[0]
        ax.plot(places(found, t), curve, color=colour, label=given.evidence_text or "all rows")
        if standard_errors:
            few = np.linspace(t[0], t[-1], _FEW)
            times = [found.scalar(float(x)) for x in few]
            error = [given.standard_error({column: Interval(lo=x, closed="neither")}) for x in times]
            middle, width = np.interp(few, t, curve), 2.0 * np.array(error)
            low, high = np.clip([middle - width, middle + width], 0.0, 1.0)
            ax.fill_between(places(found, few), low, high, color=colour, alpha=0.15, linewidth=0)
        if rows is not None:
            weight = np.atleast_1d(rows.probability(text)) if text else np.ones(len(rows))
            estimate = kaplan_meier(rows.state.evidence, j, weight)
            if estimate is None:
                continue
            at, share = estimate
            share = np.append(1.0, share[at <= last])
            at, share = np.concatenate([t[:1], at[at <= last], [last]]), np.append(share, share[-1])
            ax.plot(places(found, at), share, drawstyle="steps-post", color=colour, linewidth=0.8, label="Kaplan-Meier")
    ax.set(xlabel=short(column), ylabel="share without an event", ylim=(-0.02, 1.02))
    in_percent(ax.yaxis)
    if found.kind == "datetime":
        format_dates(ax)
    clean(ax)
    ax.legend(frameon=False, fontsize=8)
    return ax


def kaplan_meier(evidence: Evidence, j: int, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Kaplan-Meier of rows of evidence with weights (n,): times of events (k,), and the share without one from each;
    None if no row remains. Cells known to be above a number are censored there; those with other regions are left
    out."""
    time, region = evidence.value[:, j].copy(), evidence.cell_regions()[:, j]
    is_event = ~np.isnan(time)
    some = np.flatnonzero((region >= 0) & ~is_event)
    first, end = evidence.run_start[region[some]], evidence.run_start[region[some] + 1]
    is_later = (end == first + 1) & np.isposinf(evidence.run_hi[np.minimum(first, len(evidence.run_hi) - 1)])
    time[some[is_later]] = evidence.run_lo[first[is_later]]
    known = np.flatnonzero(~np.isnan(time) & (weight > 0.0))
    if not len(known):
        return None
    order = known[np.lexsort((~is_event[known], time[known]))]
    at_risk = weight[order][::-1].cumsum()[::-1]
    times, first_of = np.unique(time[order], return_index=True)
    died = np.add.reduceat(weight[order] * is_event[order], first_of)
    share = np.cumprod(1.0 - died / at_risk[first_of])
    return times[died > 0.0], share[died > 0.0]
