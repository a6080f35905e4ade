"""The command line: fit, info, explore, report, sample, score, fidelity, impute, query, predict.

Heavy packages are imported inside the commands that need them, so that ``--help`` and ``query`` are quick.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Generator, Iterable
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple

try:
    import click
except ImportError:
    sys.exit("error: the command line needs click and pyarrow: pip install 'jointforest[cli]'")

from . import __version__
from .ground.warnings import UnseenLevelWarning, UnsupportedEvidenceWarning
from .io.answers import about_column, plain, shown
from .io.csv_tables import NA, CsvForm, keep_texts

if TYPE_CHECKING:
    import pyarrow as pa

    from .face.joint import Joint

LEARNERS = ("hidden", "adversarial")
MOST_IN_MEMORY = 5_000_000
"""Rows of one Parquet file that are learned at once; more are learned in batches."""

_output = click.option("-o", "--output", default="-", metavar="OUT", help="Table to write; - is standard output (CSV).")
_format = click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "parquet"]),
    help="Format of tables; default: by the ending.",
)
_seed = click.option("--seed", type=click.IntRange(0), help="Random seed; the same seed gives the same result.")
_jobs = click.option("--jobs", type=int, default=-1, show_default=True, help="Threads; -1 is all cores.")


class _Input(NamedTuple):
    """How tables are read: their format, if it is said, and how CSV is written."""

    form: str | None
    csv: CsvForm


def _reads(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of how its tables are read, as one argument ``source``; ``--format`` besides."""

    @wraps(command)
    def call(form: str | None, na: tuple[str, ...], sep: str, encoding: str, decimal: str, **rest: Any) -> None:
        csv = CsvForm(na or NA, "\t" if sep in ("tab", "\\t") else sep, encoding, decimal)
        command(source=_Input(form, csv), **rest)

    missing = (
        "What means missing in CSV, repeatable; default: an empty cell, ?, and NA, N/A, NaN, null, None and the like."
    )
    for option in (
        click.option("--decimal", type=click.Choice([".", ","]), default=".", help="Decimal sign of numbers in CSV."),
        click.option("--encoding", default="utf-8", help="Encoding of CSV read, such as latin-1 or utf-16."),
        click.option("--sep", default=",", metavar="CHAR", help="What separates the cells of CSV read; tab for tabs."),
        click.option("--na", multiple=True, metavar="TEXT", help=missing),
        _format,
    ):
        call = option(call)
    return call


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="jointforest", message="%(prog)s %(version)s")
def app() -> None:
    """Learn the joint distribution of a table, and ask it anything.

    Tables are CSV or Parquet files; - reads standard input and writes standard output.
    """


@app.command()
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...")
@click.option("-o", "--output", required=True, metavar="MODEL", help="Model file to write.")
@click.option("--budget", metavar="BUDGET", help="fast, default, best, or seconds: the work of choosing a learner.")
@click.option("--learner", type=click.Choice(LEARNERS), help="This one; default: the best of them.")
@click.option("--target", metavar="COLUMN", help="Grow a generative forest that predicts this column.")
@click.option("--kinds", multiple=True, metavar="COLUMN=KIND", help="Such as age=continuous; repeatable.")
@click.option("--trees", type=click.IntRange(1), help="Number of trees, with --learner or --target.")
@click.option("--min-leaf", type=click.IntRange(1), help="Least number of rows in a leaf of a forest.")
@click.option("--out-of-core", is_flag=True, help="Learn by passes over batches of rows, whatever the size.")
@_seed
@_jobs
@_reads
def fit(
    tables: tuple[str, ...],
    output: str,
    budget: str | None,
    learner: str | None,
    target: str | None,
    kinds: tuple[str, ...],
    source: _Input,
    **more: Any,
) -> None:
    """Learn the joint distribution of TABLE, by the learner that held-out rows like best within the budget.

    --learner names one: hidden trees or an adversarial forest. --target grows a generative forest for a column.

    Several tables, or a folder of Parquet files, are one table; it may be larger than memory, and so may one Parquet
    file of more than 5 million rows: these are learned batch by batch, by an adversarial forest if no other is named.
    """
    from .io.tables import check_writable

    _check_together(budget, learner, target, more)
    settings: dict[str, Any] = {"random_state": more["seed"], "n_jobs": more["jobs"]}
    settings["kinds"] = dict(_kind(text) for text in kinds) or None
    levels = [name for name, kind in (settings["kinds"] or {}).items() if kind == "categorical"]
    settings |= {"n_estimators": more["trees"]} if more["trees"] else {}
    settings |= {"min_samples_leaf": more["min_leaf"]} if more["min_leaf"] else {}
    work = _seconds(budget or "default")
    check_writable(output)
    if more["out_of_core"] or _is_past_memory(tables, source, budget):
        if budget:
            raise click.UsageError("tables in batches are learned by --learner or --target: leave out --budget")
        joint, n = _joint_of_batches(tables, target, learner or "adversarial", settings, source, levels)
    else:
        frame = _read(tables[0], source, text=levels)
        joint = _generative(frame, target, settings) if target else _joint(frame, learner, work, settings)
        n = frame.num_rows
    joint.save(output)
    how = joint.fitted_by.in_words if joint.fitted_by else _size(joint.info())
    _say(f"{n} rows, {len(joint.columns)} columns: {how}")


def _check_together(budget: str | None, learner: str | None, target: str | None, more: dict[str, Any]) -> None:
    """Refuse options of ``fit`` that do not go together."""
    if learner and target:
        raise click.UsageError("--learner and --target: give one; a target has its own learner")
    if budget and (learner or target):
        raise click.UsageError("--budget is for choosing a learner: leave out --learner and --target")
    if more["trees"] and not (learner or target):
        raise click.UsageError("--trees goes with --learner or --target")
    if more["min_leaf"] and not (learner == "adversarial" or target):
        raise click.UsageError("--min-leaf goes with --learner adversarial or --target")


def _seconds(budget: str) -> str | float:
    """A budget as `jf.fit` takes it."""
    try:
        return float(budget)
    except ValueError:
        return budget


def _is_past_memory(tables: tuple[str, ...], source: _Input, budget: str | None) -> bool:
    """Whether tables are learned in batches though nobody asked for it."""
    from .io import large

    if len(tables) > 1 or os.path.isdir(tables[0]):
        return True
    if budget or not large.is_parquet_file(tables[0], source.form):
        return False
    return large.count_rows(tables) > MOST_IN_MEMORY


def _joint_of_batches(
    tables: tuple[str, ...],
    target: str | None,
    learner: str,
    settings: dict[str, Any],
    source: _Input,
    text: list[str],
) -> tuple[Joint, int]:
    """Joint of tables that are read in batches, by the learner named if there is no target; their number of rows."""
    from .io import batches, large

    if "-" in tables:
        raise click.UsageError("standard input is read once: learning in batches needs files")
    files = [file for table in tables for file in batches.files_of(table)]
    large.count_rows(file for file in files if large.is_parquet_file(file, source.form))  # are they whole?
    n = 0

    def parts() -> Generator[pa.Table]:
        nonlocal n
        n = 0
        for _, part in large.read_batches(files, source.form, source.csv, text):
            n += part.num_rows
            yield part

    if target:
        return _for_target(next(parts()), target, settings).fit_batches(parts, target).joint_, n
    return _learner(learner, settings).fit_batches(parts).joint_, n


def _learner(name: str, settings: dict[str, Any]) -> Any:
    """A learner by its name."""
    shown = sys.stderr.isatty()
    if name == "adversarial":
        from .learn.adversarial.adversarial import AdversarialForest

        return AdversarialForest(verbose=int(shown), **settings)
    from .learn.hidden_tree_forest import HiddenTreeForest

    return HiddenTreeForest(verbose=shown, **settings)


def _joint(frame: Any, learner: str | None, budget: str | float, settings: dict[str, Any]) -> Joint:
    """Joint of a frame by a learner named, or chosen."""
    if learner:
        return _learner(learner, settings).fit(frame).joint_
    from .learn.fit import fit as choose

    return choose(frame, budget=budget, verbose=sys.stderr.isatty(), **settings)


def _generative(frame: Any, target: str, settings: dict[str, Any]) -> Any:
    """Joint of a generative forest."""
    import narwhals as nw

    kinds = {name: kind for name, kind in (settings["kinds"] or {}).items() if name != target}
    learner = _for_target(frame, target, settings).set_params(kinds=kinds or None)
    return learner.fit(frame.drop_columns([target]), nw.from_native(frame, eager_only=True)[target]).joint_


def _for_target(frame: Any, target: str, settings: dict[str, Any]) -> Any:
    """A generative forest, unfitted: a classifier, or a regressor if the target is a number in these rows."""
    from .learn.generative.classifier import GenerativeForestClassifier
    from .learn.generative.regressor import GenerativeForestRegressor
    from .table.infer.infer_schema import infer_schema

    if target not in frame.column_names:
        raise ValueError(f"--target: there is no column {target!r}; there are {', '.join(frame.column_names)}")
    kinds = settings["kinds"] or {}
    own = {target: kinds[target]} if target in kinds else None
    is_class = infer_schema(frame.select([target]), own).columns[0].is_categorical
    return (GenerativeForestClassifier if is_class else GenerativeForestRegressor)(**settings)


@app.command()
@click.argument("model")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable.")
def info(model: str, as_json: bool) -> None:
    """Show the size and the columns of MODEL."""
    about = _load(model).info()
    if as_json:
        click.echo(json.dumps(plain(about), indent=2))
        return
    click.echo(f"{_size(about)}, background {about['epsilon']:g}")
    width = max(len(column["name"]) for column in about["columns"])
    for column in about["columns"]:
        click.echo(f"{column['name']:<{width}}  {column['kind']:<11}  {about_column(column)}")


def _size(about: dict[str, Any]) -> str:
    """The parts of a model and how large they are, from `Joint.info`."""
    from .face.size import size_text

    mixture = len(about["parts"]) > 1
    return " + ".join((f"{part['weight']:.1%} " if mixture else "") + size_text(part) for part in about["parts"])


@app.command()
@click.argument("model")
@click.option("-n", "--rows", type=click.IntRange(0), required=True, help="Number of rows.")
@click.option("--given", metavar="TEXT", help="Evidence that the rows meet, such as \"age >= 40, sex = 'Female'\".")
@click.option(
    "--where", metavar="TEXT", help='What else holds in all rows, comparisons of columns too, such as "a > b".'
)
@click.option("--missing", is_flag=True, help="Also draw missing cells, as often as in the table that was learned.")
@_seed
@_jobs
@_output
@_format
def sample(
    model: str,
    rows: int,
    given: str | None,
    where: str | None,
    missing: bool,
    seed: int | None,
    jobs: int,
    output: str,
    form: str | None,
) -> None:
    """Draw synthetic rows from MODEL."""
    import secrets

    from .ground.progress import bar
    from .io import batches, large
    from .io.tables import to_arrow

    joint = _load(model)
    known = joint.given(given)
    if rows <= batches.BATCH or output == "-" or where is not None:
        _write(joint, known.sample(rows, seed, missing, jobs, where=where), output, form)
        return
    seed = secrets.randbits(62) if seed is None else seed

    def drawn() -> Generator[pa.Table]:
        with bar(rows, "draws") as step:
            for part in known.sample_batches(rows, seed, missing, jobs):
                yield to_arrow(part, joint.schema.names)
                step(len(part))

    large.write_batches(drawn, output, form)


@app.command()
@click.argument("model")
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
def explore(model: str, table: str | None, trained: str | None, port: int, no_browser: bool, source: _Input) -> None:
    """Show MODEL in the browser: evidence by a click, and everything else follows.

    The page is served to this machine alone, until Ctrl+C. When another file takes MODEL's place, the page follows.
    """
    from pathlib import Path

    from .ensembles.files import read_model_file

    follow = _Follower(model)
    joint = _load(model)
    rows = None if table is None else _read(table, source, joint)
    ensemble = None if trained is None else read_model_file(trained)
    warnings.simplefilter("ignore", UnsupportedEvidenceWarning)  # the page says it
    page = joint.explore(rows, model=ensemble, title=Path(model).name, port=port, browser=not no_browser)
    click.echo(page.url)
    _say("Serving this page to this machine alone; Ctrl+C ends it.")
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
            page.show(_load(self.path))
        except (ValueError, OSError) as error:
            _say(f"warning: {_in_words(error)}; the page shows the joint before it")

    def _stamp(self) -> tuple[int, ...] | None:
        try:
            found = os.stat(self.path)
        except OSError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns


@app.command()
@click.argument("model")
@click.option("-o", "--output", required=True, metavar="OUT.html", help="File to write.")
@click.option("--table", metavar="TABLE", help="Rows that were learned from: how true MODEL is to them.")
@click.option("--holdout", metavar="TABLE", help="Rows of the same source that were not learned from.")
@click.option("--target", metavar="COLUMN", help="Also say which columns predict this one.")
@click.option("--examples", type=click.IntRange(0), default=0, help="Unusual rows of --table to show; default: none.")
@_reads
def report(
    model: str,
    output: str,
    table: str | None,
    holdout: str | None,
    target: str | None,
    examples: int,
    source: _Input,
) -> None:
    """Write what MODEL says as one file of HTML, which opens from disk and answers clicks without a network."""
    from pathlib import Path

    joint = _load(model)
    rows, new = (None if name is None else _read(name, source, joint) for name in (table, holdout))
    warnings.simplefilter("ignore", UnsupportedEvidenceWarning)
    joint.report(output, rows, holdout=new, target=target, examples=examples, title=Path(model).name)


@app.command()
@click.argument("model")
@click.argument("table")
@_jobs
@_output
@_reads
def score(model: str, table: str, jobs: int, output: str, source: _Input) -> None:
    """Write the log-density of each row of TABLE; their mean goes to standard error."""
    import pyarrow as pa

    joint = _load(model)
    total, n = 0.0, 0

    def answer(frame: pa.Table, _: int) -> pa.Table:
        nonlocal total, n
        found = joint.log_density(frame, jobs)
        total, n = total + float(found.sum()), n + len(found)
        return pa.table({"log_density": found})

    _write_answers(joint, table, output, source, answer)
    if n:
        _say(f"mean log-density {total / n:.6g} over {n} rows")


@app.command()
@click.argument("model")
@click.argument("table")
@click.option("--holdout", metavar="TABLE", help="Rows of the same source that were not learned from.")
@_seed
@_jobs
@_output
@_reads
def fidelity(
    model: str,
    table: str,
    holdout: str | None,
    seed: int | None,
    jobs: int,
    output: str,
    source: _Input,
) -> None:
    """Say how true MODEL is to the TABLE that it was learned from; with -o write all figures as a table.

    The headline is how well a classifier tells draws from the table's rows; then come the columns and pairs that differ
    most, and copies; with --holdout also held-out log-density and intervals.
    """
    from .evaluation.fidelity import fidelity as measure

    joint = _load(model)
    frame = _read(table, source, joint)
    new = None if holdout is None else _read(holdout, source, joint)
    found = measure(joint, frame, new, random_state=seed, n_jobs=jobs)
    if output != "-":
        _write(joint, found.to_frame(), output, source.form)
    click.echo(found)


@app.command()
@click.argument("model")
@click.argument("table")
@click.option(
    "--method", type=click.Choice(["mean", "sample"]), default="mean", show_default=True, help="What fills a cell."
)
@click.option("--draws", type=click.IntRange(1), help="With --method sample: tables to draw, one below the other.")
@_seed
@_jobs
@_output
@_reads
def impute(
    model: str,
    table: str,
    method: str,
    draws: int | None,
    seed: int | None,
    jobs: int,
    output: str,
    source: _Input,
) -> None:
    """Fill the missing cells of TABLE.

    Known cells of CSV are written as they were read, with the same separators. With --draws, a first column "draw"
    numbers the tables 1, 2, ...
    """
    if draws and method != "sample":
        raise click.UsageError("--draws goes with --method sample")
    import pyarrow as pa

    from .io.tables import format_of, read_with_texts, to_arrow, write_texts

    joint = _load(model)
    if not draws and _is_large(table, output, source.form):
        from .ground.random_state import seed_of
        from .queries.rows.sampling import BLOCK, seed_of_block

        first, names = seed_of(seed), joint.schema.names

        def filled(part: pa.Table, block: int) -> pa.Table:
            return to_arrow(joint.impute(part, method, None, seed_of_block(first, block), jobs), names)

        _write_answers(joint, table, output, source, filled, BLOCK if method == "sample" else None)
        return
    as_text = format_of(output, source.form) == "csv"
    frame, texts = read_with_texts(table, source.form, source.csv, _text_columns(joint), as_text)
    if method == "mean":
        tables = [to_arrow(joint.impute(frame, n_jobs=jobs), joint.schema.names)]
    else:
        drawn = joint.impute(frame, "sample", draws or 1, seed, jobs)
        tables = [to_arrow(filled, joint.schema.names) for filled in drawn]
    if texts is not None:
        tables = [keep_texts(filled, texts, source.csv) for filled in tables]
    if draws:
        name = "draw" if "draw" not in joint.schema.names else "draw_number"
        number = [pa.array([k + 1] * len(frame), pa.int64()) for k in range(draws)]
        tables = [filled.add_column(0, name, number[k]) for k, filled in enumerate(tables)]
    whole = pa.concat_tables(tables, promote_options="permissive")
    if texts is not None:
        write_texts(whole, output, source.csv.separator)
    else:
        _write(joint, whole, output, source.form)


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
    answer = _load(model).query(question)
    answer = answer._asdict() if hasattr(answer, "_asdict") else answer
    if as_json:
        click.echo(json.dumps({"query": question, "answer": plain(answer)}))
    elif isinstance(answer, dict):
        width = max(len(str(key)) for key in answer)
        for key, value in answer.items():
            click.echo(f"{key!s:<{width}}  {shown(value)}")
    else:
        click.echo(shown(answer))


@app.command()
@click.argument("model")
@click.argument("table")
@click.option("--target", required=True, metavar="COLUMN", help="Column to predict.")
@click.option("--proba", is_flag=True, help="Probabilities of the levels, a column each.")
@_jobs
@_output
@_reads
def predict(model: str, table: str, target: str, proba: bool, jobs: int, output: str, source: _Input) -> None:
    """Predict a column of TABLE from the others: the most probable level, or the mean."""
    import pyarrow as pa

    joint = _load(model)

    def answer(frame: pa.Table, _: int) -> pa.Table:
        if proba:
            share = joint.predict_proba(frame, target, jobs)
            return pa.table({f"{target}={level}": share[:, k] for k, level in enumerate(joint.levels(target))})
        return pa.table({target: pa.array(joint.predict(frame, target, jobs), from_pandas=True)})

    _write_answers(joint, table, output, source, answer)


def main() -> None:
    """Run the command line: exit code 0, 1 after an error of the user's, 2 after a wrong call.

    When the reader of a pipe has gone, click itself ends with code 1 and no word.
    """
    warnings.simplefilter("ignore")
    warnings.simplefilter("always", UserWarning)
    warnings.showwarning = lambda message, *_, **__: _say(f"warning: {_with_hint(message)}")
    try:
        code = app.main(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        code = 130
    except (ValueError, TypeError, OSError, ImportError, MemoryError, NotImplementedError) as error:
        _say(f"error: {_in_words(error)}")
        code = 1
    sys.exit(code or 0)


def _with_hint(warning: Warning | str) -> str:
    """A warning in words, those of evidence with what to do on the command line."""
    if isinstance(warning, UnsupportedEvidenceWarning):
        return f"{warning.problem} (loosen the evidence; 'jointforest score' writes how likely each row of a table is)"
    if isinstance(warning, UnseenLevelWarning):
        return f"{warning.problem} (if one of them means missing, say so with --na)"
    return str(warning)


def _in_words(error: Exception) -> str:
    """The message on one line; errors in a query point at the place below it."""
    from .language.errors import QuerySyntaxError

    if isinstance(error, QuerySyntaxError):
        return str(error)
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, ImportError) and "pip install" not in str(error):
        return f"{error}; the command line needs: pip install 'jointforest[cli]'"
    return " ".join(str(error).split()) or type(error).__name__


def _say(text: str) -> None:
    click.echo(text, err=True)


def _load(path: str) -> Joint:
    from .face.load import load

    return load(path)


def _read(path: str, source: _Input, joint: Joint | None = None, text: Iterable[str] = ()) -> pa.Table:
    """A table; columns that the model knows as text are read as text."""
    from .io.tables import read_table

    return read_table(path, source.form, source.csv, _text_columns(joint) if joint else text)


def _text_columns(joint: Joint) -> list[str]:
    """Columns whose levels are text."""
    return [c.name for c in joint.schema.columns if c.levels and all(isinstance(level, str) for level in c.levels)]


def _write(joint: Joint, frame: Any, path: str, form: str | None) -> None:
    from .io.tables import to_arrow, write_table

    write_table(to_arrow(frame, joint.schema.names), path, form)


def _is_large(table: str, output: str, form: str | None) -> bool:
    """Whether a table is answered batch by batch: a folder, or a Parquet file of many rows answered into a file."""
    from .io import batches, large

    if os.path.isdir(table):
        return True
    return output != "-" and large.is_parquet_file(table, form) and large.count_rows([table]) > batches.BATCH


def _write_answers(
    joint: Joint,
    table: str,
    output: str,
    source: _Input,
    answer: Callable[[pa.Table, int], pa.Table],
    at_once: int | None = None,
) -> None:
    """Write the answer for a table, or those for the batches of a large one, numbered from 0, one below the other.

    With ``at_once`` all batches but the last have so many rows, whatever files these lie in.
    """
    if not _is_large(table, output, source.form):
        _write(joint, answer(_read(table, source, joint), 0), output, source.form)
        return
    from .ground.progress import bar
    from .io import batches, large

    files, told = batches.files_of(table), _Told()

    def answers() -> Generator[pa.Table]:
        told.start()
        with bar(large.count_rows(files), "rows") as step:
            parts = large.read_batches(files)
            for number, (file, part) in enumerate(parts if at_once is None else large.in_blocks(parts, at_once)):
                try:
                    with told:
                        found = answer(part, number)
                except ValueError as error:
                    raise ValueError(f"{file}: {error}") from None
                yield found
                step(part.num_rows)
        told.sum_up()

    large.write_batches(answers, output, source.form)


class _Told:
    """Shows the first warning of each kind, and says at the end how many batches had more of them."""

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
                _say(f"warning: the same of {n - 1} later batch{'es' if n > 2 else ''} of rows")


def _kind(text: str) -> tuple[str, str]:
    column, found, kind = text.rpartition("=")
    if not found:
        raise click.UsageError(f"--kinds {text}: expected COLUMN=KIND, such as age=continuous")
    return column, kind


if __name__ == "__main__":
    main()
