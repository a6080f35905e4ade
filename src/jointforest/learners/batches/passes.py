"""Passes over the rows of a table: sums of batches, made one after the other, or by an engine on many machines."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import narwhals as nw

from ...data.batches import batches_of, known_rows
from ...runtime.progress import bar


class Pass(NamedTuple):
    """What is done to all rows of a table once: a sum over its batches, in any order. It can be sent to other machines.

    start : callable () -> sums. Sums of no rows.
    add : callable (sums, batch) -> sums. With the rows of a batch, a frame; it may change the sums that it is given.
    merge : callable (sums, other) -> sums. With the sums of other rows; it may change the first.
    what : str. What is done, for progress bars.
    """

    start: Callable[[], Any]
    add: Callable[[Any, Any], Any]
    merge: Callable[[Any, Any], Any]
    what: str

    def over(self, batches: Iterable[Any]) -> Any:
        """The sums of some batches."""
        sums = self.start()
        for batch in batches:
            sums = self.add(sums, batch)
        return sums

    def together(self, parts: Iterable[Any]) -> Any:
        """Sums of parts of a table as one; the parts' own stay as they are."""
        sums = self.start()
        for part in parts:
            sums = self.merge(sums, part)
        return sums


FoldBatches = Callable[[Pass, int | None], Any]
"""Makes a pass over all rows of a table, of which it may have so many: gives their sums."""


def has_own_passes(source: Any) -> bool:
    """Whether a source is an engine that makes passes itself, by a method ``fold``."""
    # of its class: a frame may have a column of that name; frames of polars have a method that folds columns
    return callable(getattr(type(source), "fold", None)) and not nw.dependencies.is_into_dataframe(source)


def fold_of(source: Any) -> FoldBatches:
    """How passes over a source, as of `data.batches.batches_of`, are made: by its own method ``fold``, or here."""
    if has_own_passes(source):
        return source.fold
    batches, total = batches_of(source), known_rows(source)

    def fold(one: Pass, n: int | None = None) -> Any:
        with bar(n or total or 0, one.what) as step:

            def told() -> Iterable[Any]:
                for batch in batches():
                    yield batch
                    step(len(batch))

            return one.over(told())

    return fold
