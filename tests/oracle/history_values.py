"""Histories of values, the slow way: every way in which what is known can have come about, one by one.

A cell has a code and, where changes are predicted or values repeat, a value. Contexts and trees are as in `histories`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tests.oracle import histories as codes
from tests.oracle.scale import base_density, cloud

UNKNOWN, PRESENT, MISSING = "unknown", "present", "missing"
"""What may be known of a cell without a value; `PRESENT` is an unknown cell that is not missing."""
BEYOND = 1e-6
"""Factor of the density of values beyond the range of a column of changes."""
LEAST = 1e-9
"""Ways that are less probable are left out."""


class Cell(NamedTuple):
    """Code, code of the change (0 if there is none), and value (None if any of its code will do)."""

    code: int
    change: int
    value: float | None


class Way(NamedTuple):
    """One way: head codes, number of rows, rows of cells, weight; ``order`` densities are factors of it."""

    head: tuple
    length: int
    rows: tuple
    p: float
    order: int


class Law:
    """The law of a model, for the questions below."""

    def __init__(self, model):
        self.model = model
        self.shares, self.clouds, self.weights, self.bases = {}, {}, {}, {}

    def ways(self, head, rows, ended, steps=0):
        """Every way for a subject: what is known of head cells and rows (values or words), and if it has ended.

        With steps, as many rows are added as the history has, at most these.
        """
        columns = self.model.columns
        found = [Way((), 0, (), 1.0, 0)]
        for v, variable in enumerate(columns.head):
            if variable.source == -3:
                continue
            found = [
                way._replace(head=(*way.head, code), p=way.p * p, order=way.order + order)
                for way in found
                for code, p, order in self.of_head(variable.coding, v, way.head, head[v])
            ]
        if columns.has_length:
            found = [new for way in found for new in self.lengths(way, len(rows), ended)]
        else:
            found = [way._replace(length=len(rows) + steps) for way in found]
        for row in rows:
            found = self.row(found, row)
        for _ in range(steps):
            here = [way for way in found if len(way.rows) < way.length]
            found = [way for way in found if len(way.rows) == way.length] + self.row(
                here, [UNKNOWN] * len(columns.rows)
            )
        least = min((way.order for way in found), default=0)
        return [way for way in found if way.order == least]

    def row(self, ways, known):
        """The ways with one more row, of which this is known."""
        now = [(way, ()) for way in ways]
        for j, spec in enumerate(known):
            now = [
                (way._replace(p=way.p * p, order=way.order + order), (*cells, cell))
                for way, cells in now
                for cell, p, order in self.cell(way, cells, j, spec)
                if way.p * p > LEAST * ways[0].p * 1e-6
            ]
        return [way._replace(rows=(*way.rows, cells)) for way, cells in now]

    # ---- Head variables.

    def of_head(self, coding, v, head, spec):
        """Codes that a head variable can have, with probabilities (densities of known values)."""
        share = self.distribution(v, head, 0, (), ())
        if spec == MISSING:
            return [(0, share[0], 0)]
        if spec in (UNKNOWN, PRESENT):
            first = 1 if spec == PRESENT or not coding.has_missing else 0
            return [(c, p, 0) for c, p in enumerate(share) if c >= first]
        code, density, order = self.base(coding.scale, spec)
        return [(code + 1, share[code + 1] * density, order)]

    def lengths(self, way, n, ended):
        """The ways with a number of rows: this one, or more if the history has not ended."""
        coding = self.model.columns.head[-1].coding
        numbers = range(int(coding.column.minimum), int(coding.column.maximum) + 1)
        share = self.distribution(len(way.head), way.head, 0, (), ())
        found = []
        for number in [n] if ended else [one for one in numbers if one >= n]:
            code, density, _ = self.base(coding.scale, float(number))
            found.append(way._replace(head=(*way.head, code + 1), length=number, p=way.p * share[code + 1] * density))
        return found

    # ---- Cells of rows.

    def cell(self, way, now, j, spec):
        """Cells that column j of the next row can have, with probabilities (densities of known values) and orders."""
        coding = self.model.columns.rows[j].coding
        past = [row[j] for row in way.rows]
        h, d = len(self.model.columns.head), len(self.model.columns.rows)
        if coding.change is not None:
            return self.changed(way, now, j, spec, coding, past)
        target = h + j + (d if past else 0)
        share = self.distribution(target, way.head, way.length, way.rows, now)
        if spec == MISSING:
            return [(Cell(0, 0, None), share[0], 0)]
        before = past[-1] if past else Cell(-1, 0, None)
        if spec in (UNKNOWN, PRESENT):
            found = [] if spec == PRESENT or not coding.has_missing else [(Cell(0, 0, None), share[0], 0)]
            for c in range(1, len(share)):
                r = float(coding.repeat[c - 1]) if c == before.code and before.value is not None else 0.0
                for value, part in self.parts(coding.scale, c - 1):
                    found.append((Cell(c, 0, value), share[c] * (1.0 - r) * part, 0))
                if r > 0.0:
                    found.append((Cell(c, 0, before.value), share[c] * r, 0))
            return found
        code, density, order = self.base(coding.scale, spec)
        cell, p = Cell(code + 1, 0, spec), share[code + 1]
        r = float(coding.repeat[code]) if code + 1 == before.code and before.value is not None else 0.0
        found = [(cell, p * (1.0 - r) * density, order)]
        if r > 0.0 and spec == before.value:
            step = coding.column.step
            found.append((cell, p * r / step, 1) if step > 0.0 else (cell, p * r, 0))
        return found

    def parts(self, scale, code):
        """Point masses of a code of numbers, and the rest of it (None), with their shares."""
        at = [s for s in range(len(scale.lo)) if scale.code[s] == code]
        points = [(float(scale.lo[s]), math.exp(scale.log_mass[s])) for s in at if scale.lo[s] == scale.hi[s]]
        return [*points, (None, 1.0 - math.fsum(p for _, p in points))] if len(points) < len(at) else [(None, 1.0)]

    def changed(self, way, now, j, spec, coding, past):
        """The same of a column whose changes are predicted, from its last value if it has one."""
        h, d = len(self.model.columns.head), len(self.model.columns.rows)
        known = [cell.value for cell in past if cell.value is not None]
        before = known[-1] if known else None
        target = h + j + (d if before is not None else 0)
        share = self.distribution(target, way.head, way.length, way.rows, now)
        scale = coding.scale if before is None else coding.change
        start = before or 0.0
        inside = [self.in_range(coding, scale, c, start) for c in range(scale.n_codes)]
        norm = 1.0 if before is None else share[0] + math.fsum(p * a for p, a in zip(share[1:], inside, strict=True))
        if spec == MISSING:
            return [(Cell(0, 0, None), share[0] / norm, 0)]
        if spec not in (UNKNOWN, PRESENT):
            code, density, order = self.base(scale, spec - start)
            return [(self.at(coding, code, spec, before), self.weight(coding, share, inside, norm, code, spec, before)
                     * density, order)]  # fmt: skip
        found = [(Cell(0, 0, None), share[0] / norm, 0)] if spec == UNKNOWN and coding.has_missing else []
        code, x, mass, _ = self.cloud(scale)
        assert scale.step > 0.0, "values without a grid cannot be enumerated"
        for c, at, m in zip(code.tolist(), (x + start).tolist(), mass.tolist(), strict=True):
            p = self.weight(coding, share, inside, norm, c, at, before) * m
            if p > LEAST:
                found.append((self.at(coding, c, at, before), p, 0))
        return found

    def at(self, coding, code, x, before):
        """The cell of a value, which this code (of values or changes) leads to."""
        if before is None:
            return Cell(code + 1, 0, x)
        return Cell(self.base(coding.scale, x)[0] + 1, code + 1, x)

    def weight(self, coding, share, inside, norm, code, x, before):
        """Probability of a code, with what the range of the column multiplies the density of a value inside it by."""
        margin = 0.4 * coding.column.step
        is_inside = coding.column.minimum - margin <= x <= coding.column.maximum + margin
        p = share[code + 1] * (1.0 if is_inside else BEYOND)
        return p / inside[code] if before is None else p / norm

    def in_range(self, coding, scale, code, start):
        """Share of a code that leads to values within the range of the column, and a little of the rest."""
        key = (id(scale), code, start)
        if key not in self.weights:
            margin = 0.4 * coding.column.step
            of, x, mass, _ = self.cloud(scale, coding.column.minimum - start, coding.column.maximum - start)
            kept = (of == code) & (x + start >= coding.column.minimum - margin)
            kept &= x + start <= coding.column.maximum + margin
            self.weights[key] = BEYOND + (1.0 - BEYOND) * math.fsum(mass[kept])
        return self.weights[key]

    def cloud(self, scale, *cuts):
        """Points of a scale with masses; on a grid once for all cuts."""
        if scale.step == 0.0:
            return cloud(scale, list(cuts))
        if id(scale) not in self.clouds:
            self.clouds[id(scale)] = cloud(scale)
        return self.clouds[id(scale)]

    def base(self, scale, x):
        """Code of a value, its base density, and 1 if that is a density, 0 if it is a mass."""
        key = (id(scale), x)
        if key not in self.bases:
            code, density = base_density(scale, x)
            is_mass = scale.step == 0.0 and bool(((scale.lo == x) & (scale.hi == x)).any())
            self.bases[key] = code, density, 0 if is_mass else 1
        return self.bases[key]

    # ---- The distribution of the codes of a cell.

    def distribution(self, target, head, length, rows, now):
        """Distribution of the codes of one cell given all before it; without the range of the column."""
        key = (target, head, length, rows, now)
        if key not in self.shares:
            self.shares[key] = self._distribution(*key)
        return self.shares[key]

    def _distribution(self, target, head, length, rows, now):
        trees, columns = self.model.conditionals, self.model.columns
        h, d = len(columns.head), len(columns.rows)
        j = (target - h) % d
        plain, first = [tuple(cell.code for cell in row) for row in rows], tuple(cell.code for cell in now)
        past = [row[j] for row in plain]
        usual = codes.usual_code(self.model, j, head, length, plain, first) if target >= h + d else 0
        share = np.ones(int(trees.target_codes[target]))
        for tree in range(trees.tree_start[target], trees.tree_start[target + 1]):
            node = int(trees.root[tree])
            while trees.child[node] >= 0:
                kind, column = int(trees.kind[node]), int(trees.column[node])
                value = self.context(kind, column, head, length, rows, now, plain, first)
                node = int(trees.child[node]) + (value > trees.threshold[node])
            sort, at = int(trees.tree_class[tree]), -1 - int(trees.child[node])
            for code in range(len(share)):
                entry = code if sort == 0 else self.class_of(sort, code, j, past, usual, rows)
                share[code] *= trees.table[at + entry]
        return share / share.sum()

    def class_of(self, sort, code, j, past, usual, rows):
        """Class of a code in trees of ratios; of a change, that of the value which its median leads to."""
        coding = self.model.columns.rows[j].coding
        if coding.change is not None and code > 0:
            before = [row[j].value for row in rows if row[j].value is not None][-1]
            code = self.base(coding.scale, before + self.median(coding.change, code - 1))[0] + 1
        return code if sort == 4 else codes.class_of(sort, code, past, usual)

    def median(self, scale, code):
        """Median of a code: the first point with half of its mass at or below it."""
        key = (id(scale), code, "median")
        if key not in self.weights:
            of, x, mass, _ = self.cloud(scale)
            x, mass = x[of == code], mass[of == code]
            order = np.argsort(x)
            x, mass = x[order], mass[order]
            self.weights[key] = float(x[np.searchsorted(np.cumsum(mass), 0.5 - 1e-9)])
        return self.weights[key]

    def context(self, kind, column, head, length, rows, now, plain, first):
        """What a split looks at: of columns of changes the change itself, where changes are asked for."""
        if self.model.columns.rows and kind in (5, 20) and self.model.columns.rows[column].coding.change is not None:
            return now[column].change if kind == 5 else rows[-1][column].change
        return codes.context(self.model, kind, column, head, length, plain, first)


def total(ways):
    """Probability (density) of what is known."""
    return math.fsum(way.p for way in ways)


def shares(ways, row, column, of=lambda cell: cell.code):
    """Distribution of what ``of`` says of a cell, among ways that have the row: a dict."""
    found = {}
    for way in ways:
        if len(way.rows) > row:
            key = of(way.rows[row][column])
            found[key] = found.get(key, 0.0) + way.p
    whole = math.fsum(found.values())
    return {key: p / whole for key, p in found.items()}
