"""The command line: inspect, fit, info, check, compare, explore, report, sample, score, impute, query, predict, ...

Heavy packages are imported inside the commands that need them, so that ``--help`` and ``query`` are quick.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Generator
from functools import wraps
from typing import TYPE_CHECKING, Any

from . import __version__, commands
from .commands import Input, is_large, load_any, load_table_joint, read, say, text_columns, write, write_answers
from .data.csv_files import NA, WORDS, CsvForm, keep_texts
from .data.table_files import means_as_cells, plain
from .runtime.warnings import LearnedErrorsWarning, UnseenLevelWarning, UnsupportedEvidenceWarning

if TYPE_CHECKING:
    import pyarrow as pa

    from .api.joint import Joint


try:
    import click
except ImportError:
    sys.exit("error: the command line needs click and pyarrow: pip install 'jointforest[cli]'")


LEARNERS = ("hidden", "adversarial")
_output = click.option("-o", "--output", default="-", metavar="OUT", help="Table to write; - is standard output (CSV).")
_format = click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "parquet", "xlsx", "jsonl"]),
    help="Format of tables; default: by the ending. Answers are csv or parquet.",
)
_seed = click.option("--seed", type=click.IntRange(0), help="Random seed; the same seed gives the same result.")


def _use_jobs(context: click.Context, option: click.Parameter, jobs: int) -> None:
    """Set the threads of a command until it ends."""
    from .runtime.threads import use_jobs

    try:
        context.with_resource(use_jobs(jobs))
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


_jobs = click.option(
    "--jobs", type=int, default=-1, show_default=True, expose_value=False, callback=_use_jobs,
    help="Threads; -1 is all cores.",
)  # fmt: skip


_READING = "na", "only_na", "keep", "sep", "encoding", "decimal", "header", "skip", "comment"


def _reads(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of how its tables are read, as one argument ``source``; ``--format`` besides."""

    @wraps(command)
    def call(form: str | None, **given: Any) -> None:
        na, only_na, keep, sep, encoding, decimal, header, skip, comment = (given.pop(name) for name in _READING)
        csv = CsvForm(
            tuple(dict.fromkeys((*(() if only_na else NA), *na))),
            {"tab": "\t", "\\t": "\t", "space": " ", "auto": ""}.get(sep, sep),
            "" if encoding == "auto" else encoding,
            decimal or ".",
            header != "none",
            comment,
            skip,
            sure=tuple(text for text in na if text not in keep),
            kept=keep,
        )
        command(source=Input(form, csv, na, only_na, decimal, header), **given)

    missing = (
        "What also means missing in CSV, repeatable; besides an empty cell, ?, NA, N/A, NaN, null, None and the like."
    )
    for option in (
        click.option("--comment", default="", metavar="TEXT", help="Lines of CSV that start with it are no rows."),
        click.option("--skip", type=click.IntRange(0), default=0, help="Lines above the names of the columns of CSV."),
        click.option(
            "--header", type=click.Choice(["first", "none"]), help="Whether the first line of CSV holds names."
        ),
        click.option("--decimal", type=click.Choice([".", ","]), help="Decimal sign; default: as learned, or a point."),
        click.option(
            "--encoding", default="auto", help="Encoding of CSV, such as latin-1; default: as its bytes show."
        ),
        click.option("--sep", default="auto", metavar="CHAR", help="What separates the cells of CSV; tab, space."),
        click.option("--only-na", is_flag=True, help="Nothing means missing in CSV but what --na says."),
        click.option(
            "--keep", multiple=True, type=click.Choice(WORDS), help="A level of columns of text in CSV; repeatable."
        ),
        click.option("--na", multiple=True, metavar="TEXT", help=missing),
        _format,
    ):
        call = option(call)
    return call


def _choosing(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that choose columns."""
    command = click.option("--columns", metavar="NAME,NAME,...", help="Learn these columns only.")(command)
    return click.option("--drop", multiple=True, metavar="COLUMN", help="Leave this column out; repeatable.")(command)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="jointforest", message="%(prog)s %(version)s")
def app() -> None:
    """Learn the joint distribution of a table, and ask it anything.

    Tables are CSV or Parquet files, and to read also Excel workbooks (.xlsx) and JSON lines (.jsonl). - reads standard
    input and writes standard output.
    """


@app.command("fit")
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...")
@click.option("-o", "--output", required=True, metavar="MODEL", help="Model file to write.")
@click.option(
    "--budget", metavar="BUDGET", help="fast, default, best, or seconds; default: default (fast with --target)."
)
@click.option(
    "--learner", type=click.Choice(LEARNERS), help="Default: that with the highest validation log-likelihood."
)
@click.option("--target", metavar="COLUMN", help="Learn a predictor of this column, for any missing cells.")
@click.option("--group", metavar="COLUMN", help="Learn histories: the column that names the subject of each row.")
@click.option("--order", metavar="COLUMN", help="The column of times of histories; default: rows as they stand.")
@click.option(
    "--kinds", multiple=True, metavar="COLUMN=KIND", help="Such as age=continuous, months=event:died; repeatable."
)
@_choosing
@click.option("--rule", multiple=True, metavar="TEXT", help='Enforce this rule, such as "start <= end"; repeatable.')
@click.option("--rules", type=click.Choice(["auto", "all", "off"]), help="Which of the rules found are enforced.")
@click.option("--objective", type=click.Choice(["draws", "likelihood"]), help="What the joint is for; default: draws.")
@click.option("--errors", is_flag=True, help="Leave out cells that the command check finds wrong.")
@click.option("--trees", type=click.IntRange(1), help="Number of trees, with --learner.")
@click.option("--min-leaf", type=click.IntRange(1), help="Least number of rows in a leaf of a forest.")
@click.option("--out-of-core", is_flag=True, help="Learn by passes over batches of rows, whatever the size.")
@_seed
@_jobs
@_reads
def fit_command(
    tables: tuple[str, ...],
    output: str,
    budget: str | None,
    learner: str | None,
    target: str | None,
    group: str | None,
    order: str | None,
    kinds: tuple[str, ...],
    drop: tuple[str, ...],
    columns: str | None,
    source: Input,
    **more: Any,
) -> None:
    """Learn the joint distribution of TABLE, by the learner with the highest validation log-likelihood.

    --learner names one: hidden trees or an adversarial forest. With --target, the file also holds a predictor of that
    column, which the command predict uses; of a table learned in batches it holds the joint alone.

    With --group, TABLE has several rows for each subject, such as visits of patients; the joint is that of histories.

    Several tables, or a folder of Parquet files, are one table; it may be larger than memory, and so may one Parquet
    file of more than 5 million rows: these are learned batch by batch, by an adversarial forest if no other is named,
    and for a --target by a generative forest.
    """
    from .data.table_files import check_writable

    others = {name: more[name] for name in ("trees", "min_leaf", "rule", "rules", "objective", "errors")}
    others |= {"budget": budget, "learner": learner, "target": target}
    commands.check_history_options(order, group, others)
    _check_together(budget, learner, target, more)
    settings: dict[str, Any] = {"random_state": more["seed"]}
    settings |= {"objective": more["objective"]} if more["objective"] else {}
    settings |= {"errors": True} if more["errors"] else {}
    if more["rule"] or more["rules"]:
        found = more["rules"] or "auto"
        settings["rules"] = [*commands.declared_rules(more["rule"]), *([found] if found != "off" else [])]
    given = dict(_kind(text) for text in kinds)
    levels = [name for name, kind in given.items() if kind == "categorical"]
    settings |= {"n_estimators": more["trees"]} if more["trees"] else {}
    settings |= {"min_samples_leaf": more["min_leaf"]} if more["min_leaf"] else {}
    work = _seconds(budget or "default")
    check_writable(output)
    csv = commands.csv_form(tables[0], source)
    frame: Any = None
    if more["out_of_core"] or commands.is_past_memory(tables, source, budget):
        names = commands.names_in_batches(tables, source, levels) if drop or columns else []
    else:
        frame = read(tables[0], source, text=levels)
        names = frame.column_names
    settings["kinds"] = commands.kinds_of(names, given, drop, columns)
    if group is not None:
        for name in (group, order) if frame is not None else ():
            if name is not None and name in names:
                frame = commands.where_known(frame, name)
        table = commands.batches_of_tables(tables, source, levels) if frame is None else frame
        histories = commands.fit_histories(table, group, order, settings)
        commands.learned_from(csv, commands.in_frames_of("file", histories)).save(output)
        commands.tell_of_histories(histories)
        return
    if frame is None:
        if budget:
            raise click.UsageError("tables in batches are learned by --learner or --target: leave out --budget")
        if more["rule"] or more["rules"]:
            raise click.UsageError(_ABOUT_RULES)
        if more["errors"]:
            raise click.UsageError(_ABOUT_ERRORS)
        if more["objective"] and learner != "hidden":
            raise click.UsageError(_ABOUT_OBJECTIVE)
        joint, n = commands.joint_of_batches(tables, target, learner or "adversarial", settings, source, levels)
    else:
        n = frame.num_rows
        if target:
            if more["trees"] or more["min_leaf"]:
                raise click.UsageError("--trees and --min-leaf go with --target in batches alone: leave them out")
            predictor = commands.predictor_for_target(frame, target, _seconds(budget or "fast"), settings, csv)
            predictor.save(output)
            _tell(predictor.joint_, round(predictor.joint_.schema.n_rows), predictor.fitted_by.in_words)
            return
        with commands.errors_of_rules():
            joint = commands.joint_of_frame(frame, learner, work, settings)
    commands.learned_from(csv, commands.in_frames_of("file", joint)).save(output)
    _tell(joint, n, joint.fitted_by.in_words if joint.fitted_by else _model_size(joint.info()))


def _tell(joint: Joint, n: int, how: str) -> None:
    """Say what was read and learned."""
    if joint.reading.notice and not (joint.fitted_by and sys.stderr.isatty()):  # `jf.fit` has printed it there
        say(joint.reading.notice)
    say(f"{_count_of(n, 'row')}, {_count_of(len(joint.columns), 'column')}: {how}")


def _count_of(n: int, thing: str) -> str:
    """So many of a thing, in words."""
    return f"{n} {thing}{'' if n == 1 else 's'}"


_WHERE_RULES = "Rules are declared when a joint is learned: jointforest fit TABLE --rule TEXT -o MODEL"
_ABOUT_RULES = (
    "--rule and --rules go with hidden trees, or with no --learner: leave out --target, --out-of-core and --learner "
    "adversarial; tables learned in batches have no rules enforced"
)
_ABOUT_ERRORS = (
    "--errors is for a joint of a table in memory: leave out --target, --learner and --out-of-core, or repair the "
    "table first (jointforest check)"
)
_ABOUT_OBJECTIVE = (
    "--objective goes with hidden trees, or with no --learner: leave out --target and --learner adversarial; tables "
    "learned in batches need --learner hidden"
)


def _check_together(budget: str | None, learner: str | None, target: str | None, more: dict[str, Any]) -> None:
    """Refuse options of ``fit`` that do not go together."""
    if learner and target:
        raise click.UsageError("--learner and --target: give one; a target has its own learner")
    if budget and learner:
        raise click.UsageError("--budget is for choosing a learner: leave out --learner")
    if more["trees"] and not (learner or target):
        raise click.UsageError("--trees goes with --learner")
    if (more["rule"] or more["rules"]) and (target or learner == "adversarial" or more["out_of_core"]):
        raise click.UsageError(_ABOUT_RULES)
    if more["objective"] and (target or learner == "adversarial"):
        raise click.UsageError(_ABOUT_OBJECTIVE)
    if more["errors"] and (target or learner or more["out_of_core"]):
        raise click.UsageError(_ABOUT_ERRORS)
    if more["min_leaf"] and not (learner == "adversarial" or target):
        raise click.UsageError("--min-leaf goes with --learner adversarial")


def _seconds(budget: str) -> str | float:
    """A budget as `jf.fit` takes it."""
    try:
        return float(budget)
    except ValueError:
        return budget


@app.command()
@click.argument("table")
@click.option(
    "--kinds", multiple=True, metavar="COLUMN=KIND", help="Such as age=continuous, months=event:died; repeatable."
)
@_choosing
@_reads
def inspect(table: str, kinds: tuple[str, ...], drop: tuple[str, ...], columns: str | None, source: Input) -> None:
    """Show how TABLE would be read: kinds of columns, what is converted or set aside, what looks wrong.

    Nothing is learned.
    """
    from .data.reading import reading_of
    from .learners.rows import read_training_rows
    from .learners.rules import reduce_table, wanted_rules

    wanted = dict(_kind(text) for text in kinds)
    levels = [name for name, kind in wanted.items() if kind == "categorical"]
    frame = commands.read_without_title(table, source, levels)
    kinds_asked = commands.kinds_of(frame.column_names, wanted, drop, columns) or {}
    rows = _count_of(frame.num_rows, "row")
    try:
        rows_read = read_training_rows(frame, kinds_asked)
    except (TypeError, ValueError):
        click.echo(f"{rows}, as far as they can be read")
        click.echo(str(commands.reading_apart(frame, kinds_asked)))
        raise
    reduced = reduce_table(wanted_rules("auto", rows_read.schema, rows_read.X), rows_read.X)
    schema = rows_read.schema if reduced is None else reduced.coordinates.schema
    click.echo(f"{rows}, {_count_of(len(schema.columns), 'column')} in the model")
    click.echo(str(reading_of(schema)))


@app.command()
@click.argument("model")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable.")
def info(model: str, as_json: bool) -> None:
    """Show the size and the columns of MODEL."""
    joint = load_any(model)
    about = joint.info()
    if as_json:
        click.echo(json.dumps(plain(about), indent=2))
        return
    if joint.is_of_histories:
        click.echo("\n".join(commands.about_histories(joint)))
        return
    click.echo(f"{_model_size(about)}, background {about['epsilon']:g}")
    click.echo(str(joint.reading))
    if about["checked"]:
        click.echo(f"checked: {about['checked']}")


def _model_size(about: dict[str, Any]) -> str:
    """The parts of a model and how large they are, from `Joint.info`."""
    from .api.views import size_text

    mixture = len(about["components"]) > 1
    return " + ".join((f"{part['weight']:.1%} " if mixture else "") + size_text(part) for part in about["components"])


@app.command("sample")
@click.argument("model")
@click.option("-n", "--rows", type=click.IntRange(0), required=True, help="Number of rows; of histories, subjects.")
@click.option("--given", metavar="TEXT", help="Evidence that the rows meet, such as \"age >= 40, sex = 'Female'\".")
@click.option(
    "--where", metavar="TEXT", help='What else holds in all rows, comparisons of columns too, such as "a > b".'
)
@click.option("--missing", is_flag=True, help="Also draw missing cells, as often as in the table that was learned.")
@_seed
@_jobs
@_output
@_format
def sample_command(
    model: str,
    rows: int,
    given: str | None,
    where: str | None,
    missing: bool,
    seed: int | None,
    output: str,
    form: str | None,
) -> None:
    """Draw synthetic rows from MODEL; of a joint of histories, those of new subjects."""
    import secrets

    from .data import batches, reading
    from .data.table_files import to_arrow
    from .runtime.progress import bar

    joint = load_any(model)
    if joint.is_of_histories:
        commands.check_history_sample(rows, given, where, missing)
        write(joint, joint.sample(rows, seed), output, form)
        return
    known = joint.given(given)
    if rows <= batches.BATCH or output == "-":
        write(joint, known.sample(rows, seed, missing, where=where), output, form)
        return
    seed = secrets.randbits(62) if seed is None else seed

    def drawn() -> Generator[pa.Table]:
        with bar(rows, "drawing rows") as step:
            for part in known.sample_batches(rows, seed, missing, where=where):
                yield to_arrow(part, joint.schema.names)
                step(len(part))

    reading.write_batches(drawn, output, form, commands.spelling_of(joint))


def _one_table(rows: str | None, table: str | None) -> str | None:
    """The table that stands after MODEL or --table, if there is one."""
    if rows is not None and table is not None:
        raise click.UsageError(f"one table is enough, got {rows} and --table {table}")
    return table if rows is None else rows


@app.command("explore")
@click.argument("model")
@click.argument("rows", metavar="[TABLE]", required=False)
@click.option("--table", metavar="TABLE", help="CSV or Parquet file of rows to look at beside MODEL.")
@click.option(
    "--model",
    "trained",
    metavar="FILE",
    help="Model of XGBoost, LightGBM or CatBoost: what it predicts of a row is shown.",
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port of 127.0.0.1; default: any that is free.")
@click.option("--no-browser", is_flag=True, help="Print the address, and open nothing.")
@_reads
def explore_command(
    model: str, rows: str | None, table: str | None, trained: str | None, port: int, no_browser: bool, source: Input
) -> None:
    """Show MODEL in the browser: evidence by a click, and everything else follows.

    For a joint of histories, it shows one subject's rows with a forecast, or all columns over row numbers.
    The page is served to this machine alone, until Ctrl+C. When another file takes MODEL's place, the page follows.
    """
    from pathlib import Path

    from .ensembles.read import read_model_file

    follow = _Follower(model)
    joint = load_any(model)
    table = _one_table(rows, table)
    frame = None if table is None else read(table, source, joint)
    warnings.simplefilter("ignore", UnsupportedEvidenceWarning)  # the page shows it
    if joint.is_of_histories:
        if trained is not None:
            raise click.UsageError(
                f"--model: not for joints of histories, and {model} holds one; trained models predict single rows"
            )
        page = joint.explore(frame, title=Path(model).name, port=port, browser=not no_browser)
    else:
        ensemble = None if trained is None else read_model_file(trained)
        page = joint.explore(frame, model=ensemble, title=Path(model).name, port=port, browser=not no_browser)
    click.echo(page.url)
    say("Serving this page to this machine alone; Ctrl+C ends it.")
    page.wait(lambda: follow.look(page))


class _Follower:
    """Shows the joint of a file anew when the file is another one."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.seen = self._stamp()

    def look(self, page: Any) -> None:
        """See whether the file has changed; one that cannot be read leaves the page as it is."""
        now = self._stamp()
        if now is None or now == self.seen:
            return
        self.seen = now
        try:
            page.show(load_any(self.path))
        except (ValueError, OSError) as error:
            say(f"warning: {_error_in_words(error)}; the page shows the joint before it")

    def _stamp(self) -> tuple[int, ...] | None:
        try:
            found = os.stat(self.path)
        except OSError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns


@app.command()
@click.argument("model")
@click.argument("rows", metavar="[TABLE]", required=False)
@click.option("-o", "--output", required=True, metavar="OUT.html", help="File to write.")
@click.option("--table", metavar="TABLE", help="Rows that were learned from: how true MODEL is to them.")
@click.option("--holdout", metavar="TABLE", help="Rows of the same source that were not learned from.")
@click.option("--target", metavar="COLUMN", help="Also say which columns predict this one.")
@click.option(
    "--examples",
    type=click.IntRange(0),
    default=0,
    help="Unusual rows and suspicious cells of --table to show; default: none.",
)
@_reads
def report(
    model: str,
    rows: str | None,
    output: str,
    table: str | None,
    holdout: str | None,
    target: str | None,
    examples: int,
    source: Input,
) -> None:
    """Write MODEL as one file of HTML, which opens from disk and answers clicks without a network."""
    from pathlib import Path

    joint = load_table_joint(model)
    tables = _one_table(rows, table), holdout
    frame, new = (None if name is None else read(name, source, joint) for name in tables)
    warnings.simplefilter("ignore", UnsupportedEvidenceWarning)
    joint.report(output, frame, holdout=new, target=target, examples=examples, title=Path(model).name)


@app.command("score")
@click.argument("model")
@click.argument("table")
@_jobs
@_output
@_reads
def score_command(model: str, table: str, output: str, source: Input) -> None:
    """Write the log-density of each row of TABLE, or of each history; their mean goes to standard error."""
    import pyarrow as pa

    joint = load_any(model)
    if joint.is_of_histories:
        csv = commands.csv_form(table, source, joint)
        scores = commands.history_scores(joint, read(table, source, joint))
        write(joint, scores, output, source.form, csv)
        mean = pa.compute.mean(scores.column(1)).as_py()
        say(f"mean log-density {mean:.6g} over {len(scores)} subjects")
        return
    total, n = 0.0, 0

    def answer(frame: pa.Table, _: int) -> pa.Table:
        nonlocal total, n
        found = joint.log_density(frame)
        total, n = total + float(found.sum()), n + len(found)
        return pa.table({"log_density": found})

    write_answers(joint, table, output, source, answer)
    if n:
        say(f"mean log-density {total / n:.6g} over {n} rows")


@app.command("fidelity")
@click.argument("model")
@click.argument("table")
@click.option("--holdout", metavar="TABLE", help="Rows of the same source that were not learned from.")
@_seed
@_jobs
@_output
@_reads
def fidelity_command(model: str, table: str, holdout: str | None, seed: int | None, output: str, source: Input) -> None:
    """Say how true MODEL is to the TABLE that it was learned from; with -o write all figures as a table.

    Of a joint of histories: the accuracy of drawn subjects, and two-sample tests.

    The headline is how well a classifier separates draws from rows; then come the columns and pairs that differ
    most, and copies; with --holdout also held-out log-density and intervals.
    """
    from .evaluation.fidelity import fidelity as measure

    joint = load_any(model)
    frame = read(table, source, joint)
    new = None if holdout is None else read(holdout, source, joint)
    if joint.is_of_histories:
        if output != "-":
            raise click.UsageError("-o: the figures of histories are only shown; leave it out")
        click.echo(joint.fidelity(frame, new, random_state=seed))
        return
    found = measure(joint, frame, new, random_state=seed)
    if output != "-":
        write(joint, found.to_frame(), output, source.form)
    click.echo(found)


@app.command("check")
@click.argument("table")
@click.option("--model", metavar="MODEL", help="What to check against; default: hidden trees of TABLE itself.")
@click.option("--key", metavar="COLUMN", help="Names an entity that several rows speak of; default: looked for.")
@click.option(
    "--at-least", type=click.FloatRange(0, 1), default=0.5, show_default=True, help="Probability from which to list."
)
@_seed
@_jobs
@_output
@_reads
def check_command(
    table: str, model: str | None, key: str | None, at_least: float, seed: int | None, output: str, source: Input
) -> None:
    """List the cells of TABLE that are probably wrong, each with its best value and a reason.

    Columns: row (from 0), column, value, p_wrong, best, p_best, reason. --at-least 0 lists every cell.
    """
    from .data.table_files import to_arrow
    from .learners.hidden_tree.hidden_tree_forest import HiddenTreeForest

    given = None if model is None else load_table_joint(model)
    frame = read(table, source, given)
    joint = given or HiddenTreeForest(rules="off", random_state=seed or 0).fit(frame).joint_
    found = joint.check(frame, key)
    for name, why in found.left_out.items():
        say(f"not checked: column {name!r} {why}")
    cells = to_arrow(found.cells, joint.schema.names)
    import pyarrow.compute as pc

    suspects = cells.filter(pc.greater_equal(cells["p_wrong"], at_least))
    write(joint, suspects, output, source.form, commands.csv_form(table, source))
    say(f"{_count_of(suspects.num_rows, 'cell')} of {cells.num_rows:,} listed; {found}")


@app.command("compare")
@click.argument("old")
@click.argument("new")
@click.option(
    "--level", type=click.FloatRange(0, 1), default=0.05, show_default=True, help="Probability of a false change."
)
@click.option("--rows", metavar="OUT", help="Also write how probable OLD makes each row of NEW.")
@click.option("-o", "--output", metavar="OUT", help="Table of the changes to write.")
@_seed
@_jobs
@_reads
def compare_command(
    old: str, new: str, level: float, rows: str | None, output: str | None, seed: int | None, source: Input
) -> None:
    """Say what changed from the table OLD to the table NEW: columns, pairs of columns, and their regions."""
    import pyarrow as pa

    from .data.table_files import write_table
    from .drift.compare import compare_tables

    before = read(old, source)
    after = read(new, source, text=[field.name for field in before.schema if pa.types.is_string(field.type)])
    found = compare_tables(before, after, level=level, random_state=seed)
    click.echo(found)
    csv = commands.csv_form(new, source)
    if output:
        write_table(found.findings, output, source.form, csv)
    if rows:
        write_table(found.row_scores(random_state=seed), rows, source.form, csv)


@app.command("impute")
@click.argument("model")
@click.argument("table")
@click.option(
    "--method", type=click.Choice(["mean", "sample"]), default="mean", show_default=True, help="What fills a cell."
)
@click.option("--draws", type=click.IntRange(1), help="With --method sample: tables to draw, one below the other.")
@click.option(
    "--ranges", type=click.Choice(["keep", "fill"]), default="keep", show_default=True, help="Cells such as <5, 10-20."
)
@_seed
@_jobs
@_output
@_reads
def impute_command(
    model: str, table: str, method: str, draws: int | None, ranges: str, seed: int | None, output: str, source: Input
) -> None:
    """Fill the missing cells of TABLE; with a joint of histories, given all rows of the subject.

    Known cells of CSV are written as they were read, with the same separators. With --draws, a first column "draw"
    numbers the tables 1, 2, ...
    """
    if draws and method != "sample":
        raise click.UsageError("--draws goes with --method sample")
    import pyarrow as pa

    from .data.frames import encode_ranges
    from .data.table_files import format_to_write, read_with_texts, to_arrow, write_texts

    joint = load_any(model)
    by_rows = not joint.is_of_histories
    more: dict[str, Any] = {"ranges": ranges} if by_rows else {}
    if by_rows and not draws and is_large(table, output, source.form):
        from .inference.sampling import DRAWS_AT_ONCE, seed_of_block
        from .runtime.parameters import seed_of

        first, names = seed_of(seed), joint.schema.names

        def filled(part: pa.Table, block: int) -> pa.Table:
            return to_arrow(joint.impute(part, method, None, seed_of_block(first, block), **more), names)

        write_answers(joint, table, output, source, filled, DRAWS_AT_ONCE if method == "sample" else None)
        return
    as_text = format_to_write(output, source.form) == "csv"
    commands.check_one_file(table)
    csv = commands.csv_form(table, source, joint)
    whole, texts = read_with_texts(table, source.form, csv, text_columns(joint), as_text, doubt=False)
    n = commands.n_rows_of_table(joint, whole)
    frame, last = whole.slice(0, n), whole.slice(n)
    if method == "mean":
        tables = [to_arrow(joint.impute(frame, random_state=seed, **more), joint.schema.names)]
    else:
        drawn = joint.impute(frame, "sample", draws or 1, seed, **more)
        tables = [to_arrow(filled, joint.schema.names) for filled in drawn]
    if texts is not None:
        found = encode_ranges(joint.schema, frame)[2] if ranges == "fill" and by_rows else None
        known = texts.slice(0, n)  # cells that are kept, but for columns in which ranges are filled
        if found is not None:
            used = [c for c, own in zip(joint.schema.columns, found.number.T, strict=True) if (own >= 0).any()]
            names = {c.name for c in used} | {c.censored.flag for c in used if c.censored}
            known = known.drop_columns([name for name in known.column_names if name in names])
        tables = [keep_texts(filled, known, csv) for filled in tables]
        last = texts.slice(n)
    if len(last):
        last = last.select([name for name in tables[0].column_names if name in last.column_names])
        tables = [pa.concat_tables([filled, last], promote_options="permissive") for filled in tables]
    if draws:
        name = "draw" if "draw" not in frame.column_names else "draw_number"
        number = [pa.array([k + 1] * len(whole), pa.int64()) for k in range(draws)]
        tables = [filled.add_column(0, name, number[k]) for k, filled in enumerate(tables)]
    written = pa.concat_tables(tables, promote_options="permissive")
    if texts is not None:
        written = written.rename_columns([csv.names.get(name, name) for name in written.column_names])
        write_texts(written, output, csv)
    else:
        write(joint, written, output, source.form, csv)


@app.command("forecast")
@click.argument("model")
@click.argument("table")
@click.option("--steps", type=click.IntRange(1), default=1, show_default=True, help="Rows to come of each subject.")
@click.option("--level", type=click.FloatRange(0, 1), default=0.9, show_default=True, help="Probability of intervals.")
@click.option("--draws", type=click.IntRange(1), help="Write so many draws of the next rows instead.")
@_seed
@_jobs
@_output
@_reads
def forecast_command(
    model: str, table: str, steps: int, level: float, draws: int | None, seed: int | None, output: str, source: Input
) -> None:
    """Write what is known of the next rows of each subject of TABLE, with a MODEL of histories.

    There is a row for each subject and step: the probability that the history ends before it; means and intervals of
    numbers and dates; the most probable level, and the probability of each level.
    """
    joint = load_any(model)
    if not joint.is_of_histories:
        raise ValueError(f"{model} holds a joint of single rows; forecast needs one of histories: fit --group")
    csv = commands.csv_form(table, source, joint)
    frame = read(table, source, joint)
    found = joint.forecast(frame, steps, n_draws=max(draws or 0, 100), random_state=seed)
    answer = found.sample(draws) if draws else commands.forecast_table(joint, found, level)
    write(joint, answer, output, source.form, csv)


@app.command()
@click.argument("model")
@click.argument("question", metavar="QUERY")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable.")
def query(model: str, question: str, as_json: bool) -> None:
    """Answer a QUERY, such as "P(income = '>50K' | age >= 40, sex = 'Female')".

    \b
    P(event | evidence)     P(column | evidence)     E(column | evidence)     Var(...)     Sd(...)
    Q(column, 0.05, 0.95 | evidence)     Median(...)     Mode(...)     logp(event | evidence)
    Corr(column, column | evidence)     E(column - column | evidence)     P(column > column | evidence)
    """
    from .api.ask import ask_with_support
    from .inference.support import support_in_words

    joint = load_table_joint(model)
    answer, n_rows, column = ask_with_support(joint.distribution, question)
    answer = answer._asdict() if hasattr(answer, "_asdict") else answer
    support = "" if n_rows == joint.schema.n_rows else support_in_words(n_rows, joint.schema.n_rows)
    if as_json:
        click.echo(json.dumps({"query": question, "answer": plain(answer), "n_rows": plain(n_rows)}))
    elif isinstance(answer, dict):
        width = max(len(str(key)) for key in answer)
        for key, value in answer.items():
            click.echo(f"{key!s:<{width}}  {commands.answer_text(column, value)}")
        if support:
            click.echo(f"({support})")
    else:
        click.echo(commands.answer_text(column, answer) + (f" ({support})" if support else ""))


@app.command("predict")
@click.argument("model")
@click.argument("table")
@click.option("--target", required=True, metavar="COLUMN", help="Column to predict.")
@click.option("--proba", is_flag=True, help="Probabilities of the levels, a column each.")
@_jobs
@_output
@_reads
def predict_command(model: str, table: str, target: str, proba: bool, output: str, source: Input) -> None:
    """Predict a column of TABLE from the others: the most probable level, or the mean."""
    import pyarrow as pa

    joint, predictor = load_table_joint(model), commands.predictor_of(model, target)

    def answer(frame: pa.Table, _: int) -> pa.Table:
        if proba:
            has_own = predictor is not None and joint.levels(target)
            share = predictor.predict_proba(frame) if has_own else joint.predict_proba(frame, target)
            return pa.table({f"{target}={level}": share[:, k] for k, level in enumerate(joint.levels(target))})
        found = joint.predict(frame, target) if predictor is None else predictor.predict(frame)
        return pa.table({target: means_as_cells(joint.schema[target], found)})

    write_answers(joint, table, output, source, answer)


def main() -> None:
    """Run the command line: exit code 0, 1 after an error of the user's, 2 after a wrong call.

    When the reader of a pipe has gone, click itself ends silently with code 1.
    """
    warnings.simplefilter("ignore")
    warnings.simplefilter("always", UserWarning)
    shown_texts = set()

    def show_once(message: Warning | str, *_: Any, **__: Any) -> None:
        text = _with_hint(message)
        if text not in shown_texts:
            shown_texts.add(text)
            say(f"warning: {text}")

    warnings.showwarning = show_once
    try:
        code = app.main(standalone_mode=False)
    except click.ClickException as error:
        if isinstance(error, click.NoSuchOption) and error.option_name in ("--rule", "--rules"):
            error = click.UsageError(f"{error.message} {_WHERE_RULES}", error.ctx)
        error.show()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        code = 130
    except (ValueError, TypeError, OSError, ImportError, MemoryError, NotImplementedError) as error:
        say(f"error: {_error_in_words(error)}")
        code = 1
    sys.exit(code or 0)


def _with_hint(warning: Warning | str) -> str:
    """A warning in words, those of evidence with what to do on the command line."""
    if isinstance(warning, UnsupportedEvidenceWarning):
        return f"{warning.problem} (loosen the evidence; 'jointforest score' writes how likely each row of a table is)"
    if isinstance(warning, UnseenLevelWarning):
        return f"{warning.problem} (if one of them means missing, say so with --na)"
    if isinstance(warning, LearnedErrorsWarning):
        return f"{warning.problem} (leave out --model, or give one of 'jointforest fit --learner hidden')"
    return str(warning)


def _error_in_words(error: Exception) -> str:
    """The message on one line; errors in a query point at the place below it."""
    from .query_language.parser import QuerySyntaxError

    if isinstance(error, QuerySyntaxError):
        return str(error)
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, ImportError) and "pip install" not in str(error):
        return f"{error}; the command line needs: pip install 'jointforest[cli]'"
    return " ".join(str(error).split()) or type(error).__name__


def _kind(text: str) -> tuple[str, Any]:
    """A column and its kind: `jf.censored` is written as months=event:died, or pfos=below:is_below."""
    from .data.conditions import Censored

    column, found, kind = text.rpartition("=")
    if not found:
        raise click.UsageError(f"--kinds {text}: expected COLUMN=KIND, such as age=continuous")
    word, found, flag = kind.partition(":")
    return column, Censored(**{word: flag}) if flag and word in ("event", "below") else kind


if __name__ == "__main__":
    main()
