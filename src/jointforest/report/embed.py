"""The joint that a report carries along: the joint itself, with few digits, or a smaller one where it is too large."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..data.conditions import PerRow, column_text
from ..data.discretization.discretizer import code_table
from ..data.discretization.learn import learn_scale
from ..data.evidence import Evidence, build
from ..data.schema import Column, Schema
from ..explorer.answers import table
from ..explorer.shown import ShownBins, ShownJoint, all_shown, to_shown
from ..explorer.state import read_evidence
from ..inference.histogram import histogram
from ..inference.sampling import sample
from ..learners.hidden_tree.learn import LearnSettings, learn_tree
from ..learners.hidden_tree.structure import CodeTable
from ..models.base import Distribution
from ..models.box_forest.leaves.family_kernels import FAMILIES
from ..models.box_forest.leaves.levels import dense_levels
from ..models.box_forest.leaves.table import pieces_of_slot
from ..models.box_forest.structure import Forest
from ..models.hidden_tree.hidden_tree import HiddenTree
from ..models.hidden_tree.hidden_trees import HiddenTrees, TreeTables
from ..models.mixture import Mixture, weighted
from ..runtime.threads import map_ordered
from .cuts import ColumnCuts, code_shares, page_cuts

MOST_BYTES = 3 << 20
"""Most bytes of the joint in a file, as text."""
BITS = 12, 8
"""Bits of an entry of a table: the first number with which the joint fits."""
_SURE = 12
"""With so many bits rounding moves no answer by .02 points (``docs/experiments/report-errors.md``)."""
MOST_BITS = 16
"""Bits of an entry of a forest's tables of levels, where small masses are those of pseudo-counts."""
MOST_NUMBERS = 16_000_000
"""Joints of more numbers than this do not fit, whatever they are."""
_DRAWS = 40_000
"""Most rows that a smaller joint is learned from."""
FEWEST_DRAWS, DRAWS_A_ROW = 5_000, 2
"""Fewest of them, and how many for each row that the joint was learned from: with twice as many rows the smaller joint
has less error of sampling than the joint itself."""
_MOST_CELLS = 3_000_000
"""Most cells of these rows."""
STATES = 128, 96, 64, 48, 32, 24, 16, 8, 4, 2
"""States a column of a smaller joint: the first number whose tables fit."""
_BINS = 64
"""Codes of a number in a smaller joint."""
PASSES = 3


class Embedded(NamedTuple):
    """A joint as it is in the file.

    shown : ShownJoint. The joint of the report, or the smaller one.
    is_itself : bool. Whether it is the joint of the report.
    n_rows : int. Draws that a smaller joint was learned from; 0 of the joint itself.
    bits : int. Of each entry of a table.
    errors : Errors or None. Differences from answers of the joint of the report; None where these are negligible.
    written : dict. All that ``in_page_source.js`` reads, but for the page's words.
    """

    shown: ShownJoint
    is_itself: bool
    n_rows: int
    bits: int
    errors: Errors | None
    written: dict[str, Any]


def embedded(shown: ShownJoint) -> Embedded:
    """The joint itself if it fits in `MOST_BYTES`, else one learned from rows drawn from it."""
    found = _fitting(shown)
    if found is not None:
        bits, written = found
        errors = None if bits >= _SURE else _errors(shown, rounded(shown.joint.distribution, bits), FEW_PIECES)
        return Embedded(shown, True, 0, bits, errors, written)
    enough = max(FEWEST_DRAWS, DRAWS_A_ROW * int(shown.joint.schema.n_rows or _DRAWS))
    n = max(min(_DRAWS, enough, _MOST_CELLS // len(shown.columns)), 1)
    X = sample(shown.joint.distribution, shown.nothing.evidence, n, 0)  # missing cells would carry no information
    small, bits, written = _smaller(shown, X)
    has_forest = any(component.is_forest for component in shown.joint.distribution.components)
    pieces = RULED_PIECES if not _is_plain(shown) else FEW_PIECES if has_forest else N_PIECES
    errors = _errors(shown, rounded(small.joint.distribution, bits), pieces)
    return Embedded(small, False, n, bits, errors, written)


def _errors(shown: ShownJoint, near: Distribution, n: int) -> Errors:
    return measured_errors(shown, near, random_pieces(shown, n))


def _smaller(shown: ShownJoint, X: np.ndarray) -> tuple[ShownJoint, int, dict[str, Any]]:
    """A hidden tree learned from draws (n, d) that fits, with as many states as do, its bits, and what is written."""
    codes = [len(column.levels) or _BINS for column in shown.columns]
    for states in STATES:
        if states != STATES[-1] and sum(states * (states + size) for size in codes) > MOST_BYTES:
            continue
        small = ShownJoint(type(shown.joint)(HiddenTree(_learned(shown, X, states))), shown.title)
        found = _fitting(small)
        if found is not None:
            return small, *found
    return small, BITS[-1], _written(small, BITS[-1], page_cuts(small))


def _is_plain(shown: ShownJoint) -> bool:
    """Whether the joint is of forests and hidden trees, without rules."""
    return all(c.is_forest or c.hidden_trees() is not None for c in shown.joint.distribution.components)


def _fitting(shown: ShownJoint) -> tuple[int, dict[str, Any]] | None:
    """Bits and what is written of a joint with as many bits as fit; None if it does not fit, or is of another kind."""
    if not _is_plain(shown):
        return None
    if _n_numbers(shown.joint.distribution) > MOST_NUMBERS:
        return None
    cuts = page_cuts(shown)
    for bits in BITS:
        written = _written(shown, bits, cuts)
        if len(written["packed"]) <= MOST_BYTES:
            return bits, written
    return None


def _n_numbers(distribution: Distribution) -> int:
    """About how many numbers the tables of a distribution hold."""
    total = 0
    for component in distribution.components:
        hidden = component.hidden_trees()
        if hidden is not None:
            total += sum(table.size for tree in hidden.trees for table in (*tree.transition, *tree.emission))
        elif component.is_forest:
            forest = component.forest_for("a report")
            total += len(forest.leaves.tree) * (int(forest.columns.level_start[-1]) + 5 * len(forest.columns.step))
            total += 6 * len(forest.leaves.pieces.log_weight)
    return total


def _learned(shown: ShownJoint, X: np.ndarray, n_states: int) -> HiddenTrees:
    """A hidden tree with the schema of the joint, from draws (n, d)."""
    columns = shown.columns
    scales = tuple(learn_scale(column, X[:, j], None, _BINS) for j, column in enumerate(columns))
    codes = code_table(scales, X)
    is_ordered = np.array([not column.is_categorical for column in columns])
    table = CodeTable(np.ascontiguousarray(codes), np.array([scale.n_codes for scale in scales]), is_ordered)
    settings = LearnSettings(n_states=n_states, passes=PASSES, full=1, refit=True)
    return HiddenTrees(shown.joint.schema, scales, (learn_tree(table, settings, 0),), np.zeros(1))


def rounded(distribution: Distribution, bits: int) -> Distribution:
    """The distribution as the file has it: tables of hidden trees with few bits; forests as they are."""
    parts = tuple(_rounded_part(component, bits) for component in distribution.components)
    return parts[0] if len(parts) == 1 else Mixture(parts, distribution.log_weight)


def _rounded_part(component: Distribution, bits: int) -> Distribution:
    hidden = component.hidden_trees()
    if hidden is None:
        return component
    trees = tuple(
        replace(tree, transition=_each(tree.transition, bits), emission=_each(tree.emission, bits))
        for tree in hidden.trees
    )
    return HiddenTree(replace(hidden, trees=trees, grown=None))


def _each(tables: tuple[np.ndarray, ...], bits: int) -> tuple[np.ndarray, ...]:
    return tuple(distributions(restored(*quantized(one, bits), bits)) for one in tables)


# ---- What the page needs to answer by itself: columns and their cuts, and the components of the joint.


def wire(found: Embedded, title: str, said: str) -> dict[str, Any]:
    """All that ``in_page_source.js`` reads."""
    about = table(found.shown, {}) | {"title": title, "said": said, "rows": None, "can": []}
    return {"table": about, "n_rows": found.shown.joint.schema.n_rows} | found.written


def _written(shown: ShownJoint, bits: int, cuts: list[ColumnCuts]) -> dict[str, Any]:
    packer = Packer()
    columns = [_column(shown, j, one, packer) for j, one in enumerate(cuts)]
    distribution = shown.joint.distribution
    parts = []
    for component, log_weight in zip(distribution.components, distribution.log_weight.tolist(), strict=True):
        hidden = component.hidden_trees()
        if hidden is not None:
            parts.append(_hidden_part(shown, hidden, cuts, packer, bits) | {"log_weight": log_weight})
        else:
            parts.append(_forest_part(component.forest_for("a report"), packer) | {"log_weight": log_weight})
    return {"columns": columns, "parts": parts, "packed": packer.text()}


def _column(shown: ShownJoint, j: int, cuts: ColumnCuts, packer: Packer) -> dict[str, Any]:
    """How a column is cut: ends of cuts in the page's numbers, the mean of each, the centre of a cell of its grid."""
    column, bins = shown.columns[j], cuts.bins
    about: dict[str, Any] = {"quoted": column_text(column.name)}
    if column.is_categorical:
        return about | {"ordered": column.is_ordered}
    unit, origin = (1e3, column.origin) if column.kind == "datetime" else (1.0, 0.0)
    return about | {
        "cuts": packer.array(np.array(all_shown(column, bins.cuts)), "f8"),
        "first": bins.first.tolist(),
        "points": cuts.points.tolist(),
        "centers": packer.array(np.array(all_shown(column, cuts.centers)), "f8"),
        "center": to_shown(column, column.center) if column.step > 0.0 else None,
        "unit": unit,  # what is shown is (number + origin) * unit
        "origin": origin,
        "atoms": list(column.atoms),
    }


def _hidden_part(
    shown: ShownJoint, hidden: HiddenTrees, cuts: list[ColumnCuts], packer: Packer, bits: int
) -> dict[str, Any]:
    """Hidden trees: where each column's codes lie, and the tables of the trees."""
    codes = []
    for scale, column, one in zip(hidden.scales, shown.columns, cuts, strict=True):
        cut, code, share = code_shares(scale, column, one.bins.cuts)
        places = {"cut": packer.array(cut, "u2"), "code": packer.array(code, "u2"), "share": packer.array(share, "f4")}
        codes.append({"n": scale.n_codes, "cuts": one.n} | places)
    trees = [_packed_tree(tree, packer, bits) for tree in hidden.trees]
    for tree, log_weight in zip(trees, hidden.log_weight.tolist(), strict=True):
        tree["log_weight"] = log_weight
    return {"kind": "hidden", "codes": codes, "trees": trees}


def _packed_tree(tree: TreeTables, packer: Packer, bits: int) -> dict[str, Any]:
    """A tree, and where its tables are: of each node transition, emission, and shares of missing cells."""
    blank = tree.blank or tuple(np.zeros(n) for n in tree.n_states.tolist())
    return {
        "column": tree.column.tolist(),
        "parent": tree.parent.tolist(),
        "states": tree.n_states.tolist(),
        "transition": [packer.table(one, bits) for one in tree.transition],
        "emission": [packer.table(one, bits) for one in tree.emission],
        "missing_at": [tree.missing_node[j] if j >= 0 else k for k, j in enumerate(tree.column.tolist())],
        "blank": [packer.table(one[:, None], max(bits, _SURE)) if one.any() else None for one in blank],
    }


PAGE_FAMILIES = ("normal", "uniform", "student")
"""Families that `page/densities.js` has, by code."""


def _forest_part(forest: Forest, packer: Packer) -> dict[str, Any]:
    """A forest of boxes: parameters of its leaves, of numbers piece by piece."""
    leaves, columns = forest.leaves, forest.columns
    slots: list[dict[str, Any]] = []
    for j, is_categorical in enumerate(columns.is_categorical.tolist()):
        s = int(columns.slot[j])
        if is_categorical:
            slots.append({"levels": packer.table(dense_levels(columns, leaves, s), MOST_BITS)})
            continue
        first, stop = columns.atom_start[s : s + 2].tolist()
        of_date = forest.schema.columns[j].kind == "datetime"  # seconds have more digits than a float32
        leaf, number = pieces_of_slot(leaves, s, np.arange(len(leaves.tree)))
        whole = number < 0
        of_pieces = {}
        for name in ("family", "a", "b", "lo", "hi"):
            of_pieces[name] = getattr(leaves, name)[leaf, s]
            of_pieces[name][~whole] = getattr(leaves.pieces, name)[number[~whole], 0]
        if (code := int(of_pieces["family"].max())) >= len(PAGE_FAMILIES):
            raise ValueError(f"a page has leaves of the families {', '.join(PAGE_FAMILIES)}, not {[*FAMILIES][code]}")
        slot = {
            "a": packer.array(of_pieces["a"], "f8" if of_date else "f4"),
            "b": packer.array(of_pieces["b"], "f4"),
            "lo": packer.repeated(of_pieces["lo"]),
            "hi": packer.repeated(of_pieces["hi"]),
            "family": packer.array(of_pieces["family"], "u1"),
            "atoms": [packer.array(leaves.atom_mass[:, k], "f4") for k in range(first, stop)],
        }
        if not whole.all():
            share = np.ones(len(leaf))
            share[~whole] = np.exp(leaves.pieces.log_weight[number[~whole]])
            start = np.searchsorted(leaf, np.arange(len(leaves.tree) + 1))
            slot |= {"start": packer.array(start, "i4"), "share": packer.array(share, "f4")}
        slots.append(slot)
    missing = leaves.missing_rate.T
    return {
        "kind": "forest",
        "n_background": forest.n_background,
        "log_weights": packer.array(leaves.log_weight, "f8"),
        "slots": slots,
        "missing": [packer.array(rate, "f4") if rate.any() else None for rate in missing],
    }


# ---- Arrays as one compressed text, which `unpack.js` reads; tables of probabilities with few bits each.


SMALLEST = 1e-30
"""Stands for a column's greatest entry where all its entries are 0."""


def quantized(table: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """A table (R, C) in whole numbers of so many bits, uint16, and the greatest entry of each column (C,)."""
    # An entry is greatest * (number / (2^bits - 1))^2. The scale is that of the column, so rare codes keep their
    # digits; the square gives small entries more digits.
    top = np.maximum(table.max(axis=0, initial=0.0), SMALLEST).astype(np.float32)
    if bits <= 8:  # its own last digits do not count then, and bytes of zeros take no room
        top = (top.view(np.uint32) & np.uint32(0xFFFFF000)).view(np.float32)
    share = np.clip(table / top.astype(np.float64), 0.0, 1.0)
    return np.rint(np.sqrt(share) * (2**bits - 1)).astype(np.uint16), top


def restored(numbers: np.ndarray, top: np.ndarray, bits: int) -> np.ndarray:
    """The table that `quantized` wrote, float64 (R, C)."""
    return np.asarray(top.astype(np.float64) * (numbers / (2.0**bits - 1.0)) ** 2)


def distributions(table: np.ndarray) -> np.ndarray:
    """A table with rows that sum to 1, as they did before they were rounded."""
    return np.asarray(table / np.maximum(table.sum(axis=1, keepdims=True), SMALLEST))


class Packer:
    """Arrays one after the other, each described by a dict of JSON with its position and type."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._at = 0

    def array(self, numbers: np.ndarray, kind: str) -> dict[str, Any]:
        """Add an array of the kind "f8", "f4", "i4", "u2" or "u1", and describe it."""
        piece = np.ascontiguousarray(numbers, dtype=f"<{kind}").tobytes()
        return {"as": kind, "n": int(np.size(numbers))} | self._add(piece)

    def repeated(self, numbers: np.ndarray) -> dict[str, Any]:
        """Add numbers of which many are equal, exactly, and describe them: the different ones, and which each is."""
        different, place = np.unique(numbers, return_inverse=True)
        kind = "u2" if len(different) < 1 << 16 else "i4"
        return {"different": self.array(different, "f8"), "place": self.array(place.ravel(), kind)}

    def table(self, table: np.ndarray, bits: int) -> dict[str, Any]:
        """Add a table of probabilities (R, C), quantized, and describe it; the high bytes come before the low ones."""
        numbers, top = quantized(table, bits)
        planes = [numbers >> 8] if bits > 8 else []
        at = self._add(b"".join(plane.astype(np.uint8).tobytes() for plane in [*planes, numbers & 255]))
        return {"rows": table.shape[0], "columns": table.shape[1], "bits": bits, "top": self.array(top, "f4")} | at

    def text(self) -> str:
        """All arrays, compressed (zlib), in base 64."""
        # noise with few repeated runs, which this strategy is made for
        squeeze = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS, 9, zlib.Z_FILTERED)
        return base64.b64encode(squeeze.compress(b"".join(self._pieces)) + squeeze.flush()).decode()

    def _add(self, piece: bytes) -> dict[str, Any]:
        at, self._at = self._at, self._at + len(piece)
        self._pieces.append(piece)
        return {"at": at}


# ---- How far two joints of one schema are apart: the largest difference of their answers to random evidence.


N_PIECES = 1_000
"""Pieces of random evidence."""
FEW_PIECES = 200
"""Pieces where only the rounding of a joint is measured, and where forests answer one piece after the other."""
RULED_PIECES = 50
"""Pieces where the joint has enforced rules: an answer about a sum of columns takes up to 0.1 seconds."""
_MOST_COLUMNS = 3
"""Most columns in a piece."""
SEVERAL = 0.3
"""Share of conditions on levels that name two."""
_STEPS = 200
"""Steps of a histogram's axis to which the ends of an interval are rounded, as a drag does."""


class Errors(NamedTuple):
    """Differences of answers, each the largest of a piece of evidence over all bins and levels of all columns.

    largest, usual : float. The largest and the median of the pieces, as shares of 1.
    n : int. Number of pieces.
    """

    largest: float
    usual: float
    n: int


def random_pieces(shown: ShownJoint, n: int = N_PIECES, seed: int = 0) -> list[list[dict[str, Any]]]:
    """Evidence on one to three columns, as a page asks for it, which holds for a row drawn from the joint."""
    rng = np.random.default_rng(seed)
    model, nothing = shown.joint.distribution, shown.nothing.evidence
    X, other = (sample(model, nothing, n, seed + k) for k in (1, 2))
    return [_piece(shown, X[i], other[i], rng) for i in range(n)]


def _piece(shown: ShownJoint, x: np.ndarray, other: np.ndarray, rng: np.random.Generator) -> list[dict[str, Any]]:
    d = len(shown.columns)
    places = sorted(rng.choice(d, min(int(rng.integers(1, _MOST_COLUMNS + 1)), d), replace=False).tolist())
    said = [_drawn_on(shown.columns[j], shown.bins[j], x[j], other[j], rng) | {"column": j} for j in places]
    return [condition for condition in said if len(condition) > 1]


def _drawn_on(column: Column, bins: ShownBins, x: float, other: float, rng: np.random.Generator) -> dict[str, Any]:
    """A condition that the value x satisfies, none of a cell that a rule makes missing; ``other`` is another value."""
    if np.isnan(x) or np.isnan(other):
        return {}
    if column.is_categorical:
        both = {int(x), int(other)} if rng.random() < SEVERAL else {int(x)}
        return {"levels": sorted(both)} if len(both) < len(column.levels) else {}
    edges, half = bins.edges, 0.5 * column.step
    kind = int(rng.integers(4))
    if kind == 0:
        k = int(np.clip(np.searchsorted(edges, x) - 1, 0, len(edges) - 2))
        low, high = edges[k] + half, edges[k + 1] - half
    else:
        low, high = (_dragged(column, edges, end) for end in sorted((x, other)))
    ends = [None if kind == 2 else low, None if kind == 3 else high]
    if ends[0] is not None and ends[0] - half <= edges[0]:
        ends[0] = None
    if ends[1] is not None and ends[1] + half >= edges[-1]:
        ends[1] = None
    numbers = [None if end is None else to_shown(column, float(end)) for end in ends]
    if numbers == [None, None] or (numbers[0] == numbers[1] and column.step == 0.0):
        return {}
    return {"low": numbers[0], "high": numbers[1]}


def _dragged(column: Column, edges: np.ndarray, x: float) -> float:
    """An end of an interval as a drag gives it: on the grid of the column, or on one of `_STEPS` steps."""
    if column.step > 0.0:
        return column.center + round((x - column.center) / column.step) * column.step
    step = (edges[-1] - edges[0]) / _STEPS
    return float(edges[0] + round((x - edges[0]) / step) * step)


def measured_errors(shown: ShownJoint, other: Distribution, pieces: Sequence[list[dict[str, Any]]]) -> Errors:
    """How far the answers of a distribution are from those of the joint that is shown, on pieces of evidence."""
    evidence = row_evidence(shown.joint.schema, pieces)
    true, near = (answers_of(model, evidence, shown.bins) for model in (shown.joint.distribution, other))
    worst = np.zeros(len(pieces))
    for mine, theirs in zip(true, near, strict=True):
        worst = np.maximum(worst, np.nan_to_num(np.abs(mine - theirs).max(axis=1)))
    return Errors(float(worst.max()), float(np.median(worst)), len(pieces))


def row_evidence(schema: Schema, pieces: Sequence[list[dict[str, Any]]]) -> Evidence:
    """Pieces of evidence as the rows of one."""
    conditions: dict[str, list[Any]] = {name: [None] * len(pieces) for name in schema.names}
    for i, piece in enumerate(pieces):
        for name, condition in read_evidence(schema, piece).items():
            conditions[name][i] = condition
    said = {name: PerRow(each) for name, each in conditions.items() if any(one is not None for one in each)}
    return build(schema, conditions=said, n=len(pieces))


def answers_of(model: Distribution, evidence: Evidence, bins: Sequence[ShownBins]) -> list[np.ndarray]:
    """Shares of the bins, or levels, of each column given each row of evidence, (n, B) each."""
    if not any(component.is_forest for component in model.components):
        state = model.observe(evidence)
        state.prepare(range(len(bins)))  # messages pass once for all columns
        return [histogram(state, j, one.edges).astype(np.float32) for j, one in enumerate(bins)]
    if len(model.components) > 1:
        each = [answers_of(component, evidence, bins) for component in model.components]
        log_joint = np.column_stack([one.observe(evidence).log_probability() for one in model.components])
        log_joint += model.log_weight
        weight = np.exp(log_joint - np.logaddexp.reduce(log_joint, axis=1, keepdims=True))
        return [weighted(weight, shares) for shares in zip(*each, strict=True)]
    n = len(evidence.value)  # row by row: forests keep tables of bins for that, and meet all leaves again and again

    def of_row(i: int) -> list[np.ndarray]:
        row = model.observe(evidence.take(np.array([i])))
        return [histogram(row, j, one.edges).astype(np.float32) for j, one in enumerate(bins)]

    found = list(map_ordered(of_row, [(i,) for i in range(n)]))
    return [np.concatenate([row[j] for row in found]) for j in range(len(bins))]
