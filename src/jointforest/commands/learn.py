"""The joint that the command ``fit`` learns: of a table in memory, or of tables in batches."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import click

from .tables import Input

if TYPE_CHECKING:
    import pyarrow as pa

    from ..face.joint import Joint

MOST_IN_MEMORY = 5_000_000
"""Rows of one Parquet file that are learned at once; more are learned in batches."""


def is_past_memory(tables: tuple[str, ...], source: Input, budget: str | None) -> bool:
    """Whether tables are learned in batches though nobody asked for it."""
    from ..io import large

    if len(tables) > 1 or os.path.isdir(tables[0]):
        return True
    if budget or not large.is_parquet_file(tables[0], source.form):
        return False
    return large.count_rows(tables) > MOST_IN_MEMORY


def joint_of_batches(
    tables: tuple[str, ...],
    target: str | None,
    learner: str,
    settings: dict[str, Any],
    source: Input,
    text: list[str],
) -> tuple[Joint, int]:
    """Joint of tables that are read in batches, by the learner named if there is no target; their number of rows."""
    from ..io import batches, large

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
        from ..learn.adversarial.adversarial import AdversarialForest

        return AdversarialForest(verbose=int(shown), **settings)
    from ..learn.hidden_tree_forest import HiddenTreeForest

    return HiddenTreeForest(verbose=shown, **settings)


def joint_of_frame(frame: Any, learner: str | None, budget: str | float, settings: dict[str, Any]) -> Joint:
    """Joint of a frame by a learner named, or chosen."""
    if learner:
        return _learner(learner, settings).fit(frame).joint_
    from ..learn.fit import fit as choose

    return choose(frame, budget=budget, verbose=sys.stderr.isatty(), **settings)


def joint_for_target(frame: Any, target: str, settings: dict[str, Any]) -> Any:
    """Joint of a generative forest."""
    import narwhals as nw

    kinds = {name: kind for name, kind in (settings["kinds"] or {}).items() if name != target}
    learner = _for_target(frame, target, settings).set_params(kinds=kinds or None)
    return learner.fit(frame.drop_columns([target]), nw.from_native(frame, eager_only=True)[target]).joint_


def _for_target(frame: Any, target: str, settings: dict[str, Any]) -> Any:
    """A generative forest, unfitted: a classifier, or a regressor if the target is a number in these rows."""
    from ..learn.generative.classifier import GenerativeForestClassifier
    from ..learn.generative.regressor import GenerativeForestRegressor
    from ..table.infer.infer_schema import infer_schema

    if target not in frame.column_names:
        raise ValueError(f"--target: there is no column {target!r}; there are {', '.join(frame.column_names)}")
    kinds = settings["kinds"] or {}
    own = {target: kinds[target]} if target in kinds else None
    is_class = infer_schema(frame.select([target]), own).columns[0].is_categorical
    return (GenerativeForestClassifier if is_class else GenerativeForestRegressor)(**settings)
