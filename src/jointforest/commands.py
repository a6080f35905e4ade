"""What the commands do: tables that are read and written, joints that are learned, and those of histories."""

from __future__ import annotations

import os
import shlex
import sys
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from .data.csv_files import CsvForm, numbered

if TYPE_CHECKING:
    import pyarrow as pa

    from .api.forecast import Forecast
    from .api.history_joint import HistoryJoint
    from .api.joint import Joint
    from .data.reading import Reading
    from .data.rules.rule import Rule
    from .data.schema import Column, Frame


def refuse_histories(path: str) -> ValueError:
    """The error of a command that has no answer about histories."""
    return ValueError(
        f"{path} holds a joint of histories, which this command cannot ask; info, explore, sample, score, "
        f"impute, forecast and fidelity can, and Python: jf.load({path!r})"
    )


def check_history_options(order: str | None, group: str | None, more: dict[str, Any]) -> None:
    """Refuse options of ``fit`` that do not go with histories; ``more`` holds those given, by their names."""
    if group is None:
        if order is not None:
            raise click.UsageError("--order goes with --group, the column that names the subject of each row")
        return
    others = [f"--{name.replace('_', '-')}" for name, value in more.items() if value]
    if others:
        raise click.UsageError(f"--group: there is one learner of histories; leave out {' and '.join(others)}")


def fit_histories(
    table: pa.Table | Callable[[], Iterator[pa.Table]], group: str, order: str | None, settings: dict[str, Any]
) -> HistoryJoint:
    """The joint of the histories of a table, or of one that comes in batches."""
    from .learners.history.history_forest import HistoryForest

    kinds = {name: kind for name, kind in (settings["kinds"] or {}).items() if name not in (group, order)}
    forest = HistoryForest(verbose=sys.stderr.isatty(), **{**settings, "kinds": kinds or None})
    fitted = forest.fit_batches if callable(table) else forest.fit
    return fitted(table, group=group, order=order).joint_


def tell_of_histories(joint: HistoryJoint) -> None:
    """Say what was read and learned."""
    from .data.reading import reading_of

    notice = reading_of(joint.schema).notice
    lines = [notice] if notice else []
    click.echo("\n".join([*lines, ": ".join(about_histories(joint)[:2])]), err=True)


def check_history_sample(rows: int, given: str | None, where: str | None, missing: bool) -> None:
    """Refuse options of ``sample`` that do not go with histories."""
    if rows == 0:
        raise click.UsageError("-n 0: give the number of subjects, at least 1")
    if given or where:
        raise click.UsageError(
            "--given and --where are for joints of single rows; to go on from rows: forecast --draws"
        )
    if missing:
        raise click.UsageError("--missing: cells of drawn histories are missing as often as at learning; leave it out")


def about_histories(joint: HistoryJoint) -> list[str]:
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


def history_scores(joint: HistoryJoint, frame: pa.Table) -> pa.Table:
    """The log-density of the history of each subject."""
    import pyarrow as pa

    names = numbered([joint.group, "log_density"], doubt=False)
    columns = [pa.array(joint.subjects(frame)), pa.array(joint.log_density(frame))]
    return pa.Table.from_arrays(columns, names)


def forecast_table(joint: HistoryJoint, found: Forecast, share: float) -> pa.Table:
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


# ---- Tables of the command line: how they are read, and answers written, large ones batch by batch.


class Input(NamedTuple):
    """How tables are read, by the options of a command.

    form : str or None. Format, if given.
    csv : CsvForm. How CSV is written, without the options of a model.
    na : tuple of str. Further texts that mean a missing cell.
    only_na : bool. Whether nothing else means a missing cell.
    decimal : str or None. Decimal sign, if given.
    header : {"first", "none"}, optional. Whether the first line holds names, if given.
    """

    form: str | None
    csv: CsvForm
    na: tuple[str, ...] = ()
    only_na: bool = False
    decimal: str | None = None
    header: str | None = None

    def like(self, spelling: CsvForm) -> Input:
        """The same; what the options do not determine is as in the table that was learned from."""
        na = self.csv.na if self.only_na else tuple(dict.fromkeys((*spelling.na, *self.na)))
        decimal = self.decimal or spelling.decimal
        has_names = self.header != "none" if self.header else spelling.has_names
        comment = self.csv.comment or spelling.comment
        return self._replace(csv=self.csv._replace(na=na, decimal=decimal, has_names=has_names, comment=comment))


def say(text: str) -> None:
    click.echo(text, err=True)


def load_table_joint(path: str) -> Joint:
    """The joint of a table in a file, which answers in pyarrow tables: the command line needs no other frames."""
    joint = load_any(path)
    if joint.is_of_histories:
        raise refuse_histories(path)
    return joint


def load_any(path: str) -> Any:
    """The joint of a file, of a table or of histories, which answers in pyarrow tables."""
    from .api.exchange import load

    joint = load(path)
    return in_frames_of("pyarrow", joint) if joint.schema.frame == "file" else joint


def in_frames_of(library: Frame, joint: Any) -> Any:
    """The same joint, with answers in frames of this library."""
    return _with_schema(joint, frame=library)


def learned_from(csv: CsvForm, joint: Any) -> Any:
    """The same joint, which remembers how its CSV file was written."""
    return _with_schema(joint, spelling=None if csv == CsvForm() else csv)


def _with_schema(joint: Any, **changes: Any) -> Any:
    """The same joint, whose schema has these changes."""
    if joint.is_of_histories:
        columns = joint.model.columns
        schema = replace(columns.schema, **changes)
        return type(joint)(replace(joint.model, columns=replace(columns, schema=schema)))
    model = joint.distribution
    return type(joint)(model.with_schema(replace(model.schema, **changes)), joint.fitted_by)


def csv_form(path: str, source: Input, joint: Any = None) -> CsvForm:
    """The form of a CSV file from its first bytes and the options, and the form of answers about it."""
    # What neither states is as in the table that the joint was learned from.
    from .data.table_files import find_form, format_of

    known = CsvForm() if joint is None else spelling_of(joint)
    source = source if joint is None else source.like(known)
    form, csv = "parquet" if os.path.isdir(path) else format_of(path, source.form), source.csv
    if form == "csv" or (form == "xlsx" and known.skip):
        csv = find_form(path, csv, known, () if joint is None else frame_schema(joint).all_columns.names, form)
    if form == "csv":
        return csv
    of_answers = {name: getattr(known, name) for name in ("encoding", "line_end", "patterns")}
    return source.csv._replace(separator=source.csv.separator or known.separator, skip=csv.skip, **of_answers)


def spelling_of(joint: Any) -> CsvForm:
    """How the CSV file was written that a joint was learned from."""
    return ((joint.model.columns if joint.is_of_histories else joint).schema.spelling) or CsvForm()


def frame_schema(joint: Any) -> Any:
    """The schema of the rows of tables that a joint, of histories too, is asked about."""
    return joint.model.columns.frame_schema if joint.is_of_histories else joint.schema


def kinds_of(
    names: list[str], kinds: dict[str, Any], drop: tuple[str, ...], columns: str | None
) -> dict[str, Any] | None:
    """Kinds of the columns of a table, ``ignored`` of those that are not wanted."""
    from .data.schema import near

    kept = names if columns is None else [name.strip() for name in columns.split(",")]
    for option, wanted in (("--columns", kept), ("--drop", drop)):
        for name in wanted:
            if name not in names:
                raise ValueError(f"{option}: there is no column {name!r}; {near(name, names)}")
    left_out = [name for name in names if name in drop or name not in kept]
    return (kinds | dict.fromkeys(left_out, "ignored")) or None


def read(path: str, source: Input, joint: Any = None, text: Iterable[str] = ()) -> pa.Table:
    """A table; columns that the model knows as text are read as text."""
    from .data.table_files import read_table

    check_one_file(path)
    csv = csv_form(path, source, joint)
    return read_table(path, source.form, csv, text if joint is None else text_columns(joint), joint is None)


def read_without_title(path: str, source: Input, text: Iterable[str]) -> pa.Table:
    """A table, without the title or comments that its error names."""
    from .data.csv_files import UnlikeTable

    try:
        return read(path, source, text=text)
    except UnlikeTable as error:
        if not error.otherwise or path == "-":
            raise
        options = " ".join(f"--{name} {shlex.quote(str(value))}" for name, value in error.otherwise.items())
        say(f"{path} is shown with {options}, which fit needs as well: its first lines are unlike the others")
        return read_without_title(path, source._replace(csv=source.csv._replace(**error.otherwise)), text)


def n_rows_of_table(joint: Any, frame: pa.Table) -> int:
    """The number of rows of a table without empty ones and totals at its end."""
    from .data import frames
    from .data.infer_schema import last_rows
    from .data.text_columns import Found, with_forms

    reader = frames.read(frame)
    written = {c.name: c.written for c in frame_schema(joint).columns if c.written and c.written.sort != "tick"}
    forms = {name: form for name, form in written.items() if name in reader.names}
    n_blank, totals = last_rows(with_forms(reader, Found(forms, {}, {name: reader.cells(name) for name in forms}, {})))
    n_aside = n_blank + bool(totals)
    if n_aside:
        which = f"the last {n_aside} rows stay as they are" if n_aside > 1 else "the last row stays as it is"
        say(f"{which}: {' and '.join(['totals'] * bool(totals) + ['blank'] * bool(n_blank))}")
    return frame.num_rows - n_aside


def answer_text(column: Column | None, value: Any) -> str:
    """One answer; a duration, a time of day or a period as its column shows it."""
    from .data.table_files import shown

    if column is None or column.is_categorical or value is None or value != value:
        return shown(value)
    return column.text(column.to_number(value)) or shown(value)


def check_one_file(path: str) -> None:
    """Refuse a folder where a command reads one table into memory."""
    if os.path.isdir(path):
        raise ValueError(f"{path} is a folder: this command takes one file here; call it for each file of the folder")


def text_columns(joint: Any) -> dict[str, tuple[Any, ...]]:
    """Levels of the columns of texts; of texts that stand for numbers, dates or times, the text before each."""
    columns = frame_schema(joint).columns
    return {
        c.name: (c.written.prefix,) if c.written else c.levels
        for c in columns
        if (c.written and (c.written.sort != "tick" or c.written.prefix))
        or (c.levels and all(isinstance(level, str) for level in c.levels))
    }


def write(joint: Any, frame: Any, path: str, form: str | None, csv: CsvForm | None = None) -> None:
    """Write an answer, as CSV in the form of the table that it is about, or else that was learned."""
    # Numbers have decimal commas where all columns with decimals have.
    from .data.table_files import to_arrow, write_table

    csv = csv or spelling_of(joint)
    signs = {c.written.decimal if c.written else "." for c in frame_schema(joint).columns if _has_decimals(c)}
    csv = csv._replace(decimal=",") if signs == {","} else csv
    write_table(to_arrow(frame, joint.schema.names), path, form, csv)


def _has_decimals(column: Column) -> bool:
    """Whether cells of a column are numbers with decimals."""
    return column.kind in ("continuous", "mixed", "rounded") and (column.step == 0.0 or column.decimals > 0)


def is_large(table: str, output: str, form: str | None) -> bool:
    """Whether a table is answered batch by batch: a folder, or a Parquet file of many rows answered into a file."""
    from .data import batches, reading

    if os.path.isdir(table):
        return True
    return output != "-" and reading.is_parquet_file(table, form) and reading.count_rows([table]) > batches.BATCH


def write_answers(
    joint: Joint,
    table: str,
    output: str,
    source: Input,
    answer: Callable[[pa.Table, int], pa.Table],
    at_once: int | None = None,
) -> None:
    """Write the answer for a table, or those for the batches of a large one, numbered from 0, one below the other."""
    # With ``at_once`` all batches but the last have so many rows, whatever files these lie in.
    if not is_large(table, output, source.form):
        csv = csv_form(table, source, joint)
        write(joint, answer(read(table, source, joint), 0), output, source.form, csv)
        return
    from .data import batches, reading
    from .runtime.progress import bar

    files, batch_warnings = batches.files_of(table), _BatchWarnings()

    def answers() -> Generator[pa.Table]:
        batch_warnings.start()
        with bar(reading.count_rows(files), "answering rows") as step:
            parts = reading.read_batches(files)
            for number, (file, part) in enumerate(parts if at_once is None else reading.in_blocks(parts, at_once)):
                try:
                    with batch_warnings:
                        found = answer(part, number)
                except ValueError as error:
                    raise ValueError(f"{file}: {error}") from None
                yield found
                step(part.num_rows)
        batch_warnings.sum_up()

    reading.write_batches(answers, output, source.form, spelling_of(joint))


class _BatchWarnings:
    """Shows the first warning of each kind, and prints at the end how many batches had more of them."""

    def __init__(self) -> None:
        self.shown: set[type[Warning]] = set()

    def start(self) -> None:
        """Begin at the first batch, perhaps again."""
        self.batches: dict[type[Warning], int] = {}

    def __enter__(self) -> None:
        self._caught = warnings.catch_warnings(record=True)
        self._found = self._caught.__enter__()
        warnings.simplefilter("always", UserWarning)

    def __exit__(self, *error: Any) -> None:
        self._caught.__exit__(*error)
        for kind in dict.fromkeys(one.category for one in self._found or ()):
            if kind not in self.shown:
                self.shown.add(kind)
                warnings.warn(next(one.message for one in self._found or () if one.category is kind), stacklevel=2)
            self.batches[kind] = self.batches.get(kind, 0) + 1

    def sum_up(self) -> None:
        for n in self.batches.values():
            if n > 1:
                say(f"warning: the same of {n - 1} later batch{'es' if n > 2 else ''} of rows")


MOST_IN_MEMORY = 5_000_000
"""Rows of one Parquet file that are learned at once; more are learned in batches."""


def is_past_memory(tables: tuple[str, ...], source: Input, budget: str | None) -> bool:
    """Whether tables are learned in batches although this was not requested."""
    from .data import reading

    if len(tables) > 1 or os.path.isdir(tables[0]):
        return True
    if budget or not reading.is_parquet_file(tables[0], source.form):
        return False
    return reading.count_rows(tables) > MOST_IN_MEMORY


def _files_of(tables: tuple[str, ...]) -> list[str]:
    """The files of tables that are learned in batches."""
    from .data import batches

    if "-" in tables:
        raise click.UsageError("standard input is read once: learning in batches needs files")
    return [file for table in tables for file in batches.files_of(table)]


def reading_apart(frame: pa.Table, kinds: dict[str, Any]) -> Reading:
    """How each column would be read without the others, or why it cannot be read."""
    import pyarrow as pa

    from .data.frames import encode
    from .data.infer_schema import infer_schema
    from .data.reading import ColumnReading, Reading, reading_of
    from .learners.rows import check_cells

    found = []
    numbers = pa.array(range(frame.num_rows), pa.float64())  # a column alone may not be set aside
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in frame.column_names:
            alone = pa.table({name: frame[name], f"{name} ": numbers})
            try:
                schema = infer_schema(alone, {name: kinds[name]} if name in kinds else None)
                check_cells(schema.names, encode(schema, alone)[0])
                found.append(reading_of(schema).columns[0])
            except (TypeError, ValueError) as error:
                found.append(ColumnReading(name, "not read", "", (str(error),)))
    return Reading(tuple(found))


def names_in_batches(tables: tuple[str, ...], source: Input, text: list[str]) -> list[str]:
    """Names of the columns of tables that are learned in batches."""
    from .data import reading

    files = _files_of(tables)
    _, first = next(reading.read_batches(files, source.form, csv_form(files[0], source), text))
    return list(first.column_names)


def batches_of_tables(tables: tuple[str, ...], source: Input, text: list[str]) -> Callable[[], Generator[pa.Table]]:
    """Gives the batches of tables that are learned in batches, afresh at each call."""
    from .data import reading

    files = _files_of(tables)
    reading.count_rows(file for file in files if reading.is_parquet_file(file, source.form))  # are they whole?

    def parts() -> Generator[pa.Table]:
        for _, part in reading.read_batches(files, source.form, csv_form(files[0], source), text):
            yield part

    return parts


def joint_of_batches(
    tables: tuple[str, ...], target: str | None, learner: str, settings: dict[str, Any], source: Input, text: list[str]
) -> tuple[Joint, int]:
    """Joint of tables that are read in batches, by the learner named if there is no target; their number of rows."""
    n, read_all = 0, batches_of_tables(tables, source, text)

    def parts() -> Generator[pa.Table]:
        nonlocal n
        n = 0
        for part in read_all():
            n += part.num_rows
            yield part

    if target:
        return _for_target(next(parts()), target, settings).fit_batches(parts, target).joint_, n
    return _learner(learner, settings).fit_batches(parts).joint_, n


def _learner(name: str, settings: dict[str, Any]) -> Any:
    """A learner by its name."""
    shown = sys.stderr.isatty()
    if name == "adversarial":
        from .learners.adversarial.adversarial_forest import AdversarialForest

        return AdversarialForest(verbose=int(shown), **settings)
    from .learners.hidden_tree.hidden_tree_forest import HiddenTreeForest

    return HiddenTreeForest(verbose=shown, **settings)


def declared_rules(texts: Sequence[str]) -> list[Rule]:
    """The rules that ``--rule`` gives."""
    from .query_language.parser import QuerySyntaxError
    from .query_language.rules import rule

    found = []
    for text in texts:
        try:
            found.append(rule(text))
        except QuerySyntaxError as error:
            problem = f"--rule: {error.problem}"
            raise QuerySyntaxError(problem, error.text, error.position, error.hint) from None
    return found


@contextmanager
def errors_of_rules() -> Iterator[None]:
    """Name the option in errors of rules, which name the parameter of learners."""
    try:
        yield
    except ValueError as error:
        start, found, rest = str(error).partition("rules: ")
        if start or not found:
            raise
        raise ValueError(f"--rule: {rest}") from None


def joint_of_frame(frame: Any, learner: str | None, budget: str | float, settings: dict[str, Any]) -> Joint:
    """Joint of a frame by a learner named, or chosen."""
    if learner:
        return _learner(learner, settings).fit(frame).joint_
    from .learners.selection.fit import fit as choose

    return choose(frame, budget=budget, verbose=sys.stderr.isatty(), **settings)


def predictor_for_target(frame: Any, target: str, budget: str | float, settings: dict[str, Any], csv: CsvForm) -> Any:
    """A predictor of a column, fitted, whose joint answers in frames of the library that is installed."""
    import narwhals as nw

    from .estimators.predictor.classifier import JointClassifier
    from .estimators.predictor.regressor import JointRegressor

    is_class = _is_class(frame, target, settings)
    frame = where_known(frame, target)
    predictor = (JointClassifier if is_class else JointRegressor)(
        budget=budget, verbose=sys.stderr.isatty(), **settings
    )
    predictor.fit(frame.drop_columns([target]), nw.from_native(frame, eager_only=True)[target])
    predictor.joint_ = learned_from(csv, predictor.joint_)
    predictor._set_frame("file")
    return predictor


def where_known(frame: Any, column: str) -> Any:
    """The rows in which a column is known; prints how many are left out."""
    import pyarrow.compute as pc

    known = frame.filter(pc.invert(pc.is_null(frame[column], nan_is_null=True)))
    if known.num_rows < frame.num_rows:
        say(f"{frame.num_rows - known.num_rows} of {frame.num_rows} rows are left out: {column} is missing there")
    return known


def predictor_of(model: str, target: str) -> Any:
    """The predictor of this column in a model file; None if the file has none."""
    from .estimators.predictor.files import has_predictor
    from .estimators.predictor.load import load_predictor

    if not has_predictor(model):
        return None
    predictor = load_predictor(model)
    return predictor if predictor.joint_.columns[-1] == target else None


def _is_class(frame: Any, target: str, settings: dict[str, Any]) -> bool:
    """Whether the target has levels, in these rows, or its kind; an error if there is no such column."""
    from .data.conditions import Censored
    from .data.infer_schema import infer_schema

    if target not in frame.column_names:
        raise ValueError(f"--target: there is no column {target!r}; there are {', '.join(frame.column_names)}")
    kinds = settings["kinds"] or {}
    own = {target: kinds[target]} if target in kinds else None
    if own and isinstance(own[target], Censored):
        raise click.UsageError(
            f"--target {target}: a predictor of censored numbers is not kept in files; leave out --target, and ask the "
            f'joint, such as "P({target} > 12)", or use JointRegressor in Python'
        )
    column = infer_schema(frame.select([target]), own).columns[0]
    if own is None and column.kind == "integer" and column.maximum - column.minimum == 1.0:
        ends = f"{column.minimum:.0f} and {column.maximum:.0f}"
        option = shlex.quote(f"{target}=categorical")
        say(f"{target} has the values {ends} and is learned as a number; --kinds {option} learns their probabilities")
    return column.is_categorical


def _for_target(frame: Any, target: str, settings: dict[str, Any]) -> Any:
    """A generative forest, unfitted: a classifier, or a regressor if the target is a number in these rows."""
    from .learners.generative.classifier import GenerativeForestClassifier
    from .learners.generative.regressor import GenerativeForestRegressor

    is_class = _is_class(frame, target, settings)
    return (GenerativeForestClassifier if is_class else GenerativeForestRegressor)(**settings)
