"""What the commands do with joints of histories: tables with several rows for each subject."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from .data.csv_files import numbered

if TYPE_CHECKING:
    import pyarrow as pa

    from .api.forecast import Forecast
    from .api.history_joint import HistoryJoint


def refuse_histories(path: str) -> ValueError:
    """The error of a command that has no answer about histories."""
    return ValueError(
        f"{path} holds a joint of histories, which this command cannot ask; info, explore, sample, score, "
        f"impute, forecast and fidelity can, and Python: jf.load({path!r})"
    )


def check_options(order: str | None, group: str | None, more: dict[str, Any]) -> None:
    """Refuse options of ``fit`` that do not go with histories; ``more`` holds those given, by their names."""
    if group is None:
        if order is not None:
            raise click.UsageError("--order goes with --group, the column that names the subject of each row")
        return
    others = [f"--{name.replace('_', '-')}" for name, value in more.items() if value]
    if others:
        raise click.UsageError(f"--group: there is one learner of histories; leave out {' and '.join(others)}")


def learn(
    table: pa.Table | Callable[[], Iterator[pa.Table]], group: str, order: str | None, settings: dict[str, Any]
) -> HistoryJoint:
    """The joint of the histories of a table, or of one that comes in batches."""
    from .learners.history.history_forest import HistoryForest

    kinds = {name: kind for name, kind in (settings["kinds"] or {}).items() if name not in (group, order)}
    forest = HistoryForest(verbose=sys.stderr.isatty(), **{**settings, "kinds": kinds or None})
    fitted = forest.fit_batches if callable(table) else forest.fit
    return fitted(table, group=group, order=order).joint_


def tell(joint: HistoryJoint) -> None:
    """Say what was read and learned."""
    from .data.reading import reading_of

    notice = reading_of(joint.schema).notice
    lines = [notice] if notice else []
    click.echo("\n".join([*lines, ": ".join(about(joint)[:2])]), err=True)


def check_sample(rows: int, given: str | None, where: str | None, missing: bool) -> None:
    """Refuse options of ``sample`` that do not go with histories."""
    if rows == 0:
        raise click.UsageError("-n 0: give the number of subjects, at least 1")
    if given or where:
        raise click.UsageError(
            "--given and --where are for joints of single rows; to go on from rows: forecast --draws"
        )
    if missing:
        raise click.UsageError("--missing: cells of drawn histories are missing as often as at learning; leave it out")


def about(joint: HistoryJoint) -> list[str]:
    """Lines on the size and the columns of a joint."""
    info = joint.info()
    width = max(len(column["name"]) for column in info["columns"])
    in_order = f"in the order of {info['order']}" if info["order"] else "in the order of the table"
    lines = [
        f"{info['subjects']} subjects ({info['group']}), {info['rows']} rows {in_order}",
        f"{info['trees']} trees, {info['leaves']} leaves",
    ]
    for column in info["columns"]:
        how = "constant within subjects" if column["name"] in info["constant"] else "varies"
        how += "; changes are predicted" if column["name"] in info["changes"] else ""
        lines.append(f"{column['name']:<{width}}  {column['kind']:<11}  {how}")
    return lines


def scores(joint: HistoryJoint, frame: pa.Table) -> pa.Table:
    """The log-density of the history of each subject."""
    import pyarrow as pa

    names = numbered([joint.group, "log_density"], doubt=False)
    columns = [pa.array(joint.subjects(frame)), pa.array(joint.log_density(frame))]
    return pa.Table.from_arrays(columns, names)


def forecasts(joint: HistoryJoint, found: Forecast, share: float) -> pa.Table:
    """One row for each subject and step; ``share`` is the probability of intervals."""
    import numpy as np
    import pyarrow as pa

    from .data.table_files import means_as_cells

    n, steps = len(found.subjects), found.steps
    names: list[str] = [joint.group, "step"]
    values: list[Any] = [[name for name in found.subjects for _ in range(steps)], np.tile(np.arange(1, steps + 1), n)]
    if joint.info()["ends"]:
        names.append("end_probability")
        values.append(found.end_probability.ravel())
    known = {column.name: column for column in joint.model.columns.frame_schema.columns}
    for name in found.columns:
        column = known[name]
        names.append(name)
        values.append(means_as_cells(column, found.mean(name).ravel()))
        if column.is_categorical:
            proba = found.proba(name)
            names += [f"{name}={level}" for level in column.levels]
            values += [proba[:, :, k].ravel() for k in range(len(column.levels))]
        else:
            ends = found.interval(name, share)
            names += [f"{name}_low", f"{name}_high"]
            values += [means_as_cells(column, ends[..., k].ravel()) for k in range(2)]
    columns = [one if isinstance(one, pa.Array) else pa.array(one, from_pandas=True) for one in values]
    return pa.Table.from_arrays(columns, numbered(names, doubt=False))
