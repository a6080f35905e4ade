"""What `fidelity` found, as numbers, a page, a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .copies import Copies
from .figures import Figures
from .membership import Membership
from .page import html, text


@dataclass(frozen=True, repr=False)
class Fidelity(Figures):
    """How true a joint, or rows, are to a table; made by `fidelity`, and printed as a page.

    Attributes
    ----------
    of : {"joint", "rows"}
    n_table, n_rows, n_held_out : int
        Rows of the table, of what was compared with it, and held out.
    library : {"pandas", "polars", "pyarrow", "numpy"}
        Of the table; `to_frame` answers in it.
    notes : tuple of str
        What was left out or cut, and why.
    marginals : Marginals or None
        ``distance`` by column, the worst first, and ``shape``.
    pairs : Pairs or None
        ``similarity`` by pair, the worst first, and ``trend``.
    marginals_held_out, pairs_held_out : Marginals and Pairs, or None
        The same of the held-out rows beside the table: what chance gives so many rows.
    told_apart : ToldApart or None
        ``score`` of a classifier against the table's rows, and the ``columns`` that it used.
    told_apart_held_out : ToldApart or None
        The same against held-out rows.
    told_apart_as_many : ToldApart or None
        Against as many of the table's rows as were held out, because fewer rows are harder to tell apart.
    held_out : HeldOut or None
        ``log_density`` of held-out rows beside ``independent`` columns.
    coverage : Coverage or None
        ``share`` of held-out cells in their 90 % intervals, by column.
    copies : Copies or None
        ``share`` of rows that are in the table, and the ``distance`` to the closest.
    membership : Membership or None
        ``advantage`` of an attack that guesses which rows were learned from; only with held-out rows.

    Examples
    --------
    >>> import jointforest as jf
    >>> penguins = jf.datasets.load_penguins()
    >>> joint = jf.AdversarialForest(n_estimators=5, random_state=0).fit(penguins.iloc[:200]).joint_
    >>> found = jf.fidelity(joint, penguins.iloc[:200], penguins.iloc[200:], random_state=0)
    >>> str(found).split()[1:4], found.to_frame().columns.tolist()
    (['tells', 'the', "joint's"], ['figure', 'column', 'second_column', 'value'])
    """

    @property
    def headline(self) -> str:
        """The score in one line; where there is none, shape and trend."""
        return text(self).split("\n", 1)[0]

    def __str__(self) -> str:
        return text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html(self)

    def to_frame(self) -> Any:
        """All figures as a tidy table of the library that the table came in; a numpy array (n, 4) of objects for numpy.

        Returns
        -------
        frame with the columns figure, column, second_column (None where there is none) and value
        """
        rows = self._rows()
        names = ("figure", "column", "second_column", "value")
        if self.library == "numpy":
            import numpy as np

            return np.array(rows, dtype=object)
        import narwhals as nw

        kinds = {name: nw.Float64 if name == "value" else nw.String for name in names}
        data = {name: [row[k] for row in rows] for k, name in enumerate(names)}
        backend: Any = self.library
        return nw.from_dict(data, schema=nw.Schema(kinds), backend=backend).to_native()

    def _rows(self) -> list[tuple[str, str | None, str | None, float]]:
        """Every number with its figure's name and its columns."""
        found: list[tuple[str, str | None, str | None, float | None]] = []
        for name in ("told_apart", "told_apart_held_out", "told_apart_as_many"):
            one = getattr(self, name)
            if one is not None:
                found.append((name, None, None, one.score))
                found += [(f"{name}_used", column, None, share) for column, share in one.columns.items()]
        for end, marginals, pairs in (
            ("", self.marginals, self.pairs),
            ("_held_out", self.marginals_held_out, self.pairs_held_out),
        ):
            if marginals is not None:
                found.append((f"shape{end}", None, None, marginals.shape))
                found += [(f"distance{end}", column, None, value) for column, value in marginals.distance.items()]
                found += [(f"missing{end}", column, None, value) for column, value in marginals.missing.items()]
            if pairs is not None:
                found.append((f"trend{end}", None, None, pairs.trend))
                found += [(f"similarity{end}", a, b, value) for (a, b), value in pairs.similarity.items()]
        if self.pairs is not None:
            for k, name in enumerate(("correlation_table", "correlation_rows")):
                found += [(name, a, b, both[k]) for (a, b), both in self.pairs.correlation.items()]
        if self.held_out is not None:
            found.append(("log_density", None, None, self.held_out.log_density))
            found.append(("log_density_independent", None, None, self.held_out.independent))
        if self.coverage is not None:
            found += [("coverage", column, None, share) for column, share in self.coverage.share.items()]
        if self.copies is not None:
            found += _of_copies(self.copies)
        if self.membership is not None:
            found += _of_membership(self.membership)
        return [(figure, a, b, value) for figure, a, b, value in found if value is not None]


def _of_copies(c: Copies) -> list[tuple[str, None, None, float | None]]:
    """Rows of `Fidelity.to_frame` on copies."""
    new = (None, None) if c.distance_held_out is None else c.distance_held_out
    values = [c.share, c.share_held_out, c.distance[0], c.distance[1], new[0], new[1]]
    names = ["copies", "copies_held_out", "closest_median", "closest_5_percent"]
    names += ["closest_held_out_median", "closest_held_out_5_percent"]
    return [(name, None, None, value) for name, value in zip(names, values, strict=True)]


def _of_membership(m: Membership) -> list[tuple[str, None, None, float | None]]:
    """Rows of `Fidelity.to_frame` on membership."""
    names = ("advantage", "standard_error", "density_advantage", "density_error", "nearer", "nearer_error")
    return [(f"membership_{name}", None, None, getattr(m, name)) for name in names]
