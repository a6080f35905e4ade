"""Random small tables under overlapping rules, joints learned from them, and all public answers beside their rows."""

from __future__ import annotations

import datetime as dt
import itertools
import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import jointforest as jf
from jointforest.data.conditions import AnyOf, Interval, Missing, Not, likely
from jointforest.data.evidence import Evidence, build
from jointforest.data.rules.rule import MissingWhere
from jointforest.data.schema import Column
from jointforest.learners.rows import TableRows, read_training_rows
from jointforest.learners.rules import Reduced, reduce_table, wanted_rules
from jointforest.learners.selection.budget import learn
from jointforest.models.base import Distribution
from jointforest.models.mixture import mixture_of
from jointforest.models.ruled.ruled import RuledDistribution

from ..oracle import ruled as oracle
from ..oracle import scale as one_scale

N_ROWS = 400
LEARNERS: tuple[Callable[[], Any], ...] = (
    lambda: jf.HiddenTreeForest(n_states=4, max_iter=3, max_leaf_nodes=2),
    lambda: jf.HiddenTreeForest(n_states=3, max_iter=2, max_leaf_nodes=2),
    lambda: jf.AdversarialForest(n_estimators=2, max_iters=1, max_leaf_nodes=6),
)
"""Of small joints."""


# ---- Tables.


def random_table(rng: np.random.Generator) -> tuple[pd.DataFrame, list[str]]:
    """A table in which some rules hold that share columns, and their texts."""
    n, z = N_ROWS, rng.integers(0, 2, N_ROWS)
    a, b = np.minimum(rng.poisson(0.8 + z), 3), rng.integers(0, 3, n)
    s = np.array(list("pqr"))[np.minimum(rng.integers(0, 2, n) + z, 2)]
    o = rng.random(n) < 0.3 + 0.4 * z
    columns: dict[str, Any] = {"a": a}
    rules: list[str] = []
    c, k = (int(x) for x in rng.integers(1, 3, 2))
    with_b, with_s, with_o = rng.random(3) < (0.7, 0.6, 0.4)
    if with_b:
        columns["b"] = b
    if with_s:
        columns["s"] = pd.Categorical(s, ordered=True) if rng.random() < 0.3 else s
    if with_o:
        columns["o"] = o
    one_in = {
        "sum": with_b, "difference": with_b, "rounded": True, "convert": True, "function": with_s, "pair": with_b,
        "mutual": True, "combinations": with_b, "order": True, "missing": with_s or with_o, "missing number": True,
        "together": True, "date": True, "gap sum": with_b, "real": True, "third": with_b, "missing sum": True,
        "skipped": with_s or with_o,
    }  # fmt: skip
    kinds = rng.permutation([kind for kind, possible in one_in.items() if possible])[: rng.integers(2, 5)].tolist()
    m = (rng.integers(0, 3, n) + z).astype(float)
    missing_by = ("s = 'p'", s == "p") if with_s and (not with_o or rng.random() < 0.6) else ("o = true", o)
    if "missing sum" in kinds and not (with_s or with_o):
        kinds.remove("missing sum")
    for kind in kinds:
        if kind == "sum":
            columns["t"] = c * a + k * b - 1
            rules.append(f"t = {c} * a + {k} * b - 1")
            if rng.random() < 0.4:
                columns["t2"] = columns["t"] + a
                rules.append("t2 = t + a")
        elif kind == "difference":
            columns["d"] = 2 * a - b
            rules.append(rng.choice(["d = 2 * a - b", "a = 0.5 * b + 0.5 * d"]))
            if rng.random() < 0.5:
                rules.append("combinations(b, d)")
        elif kind == "rounded":
            by = int(rng.integers(2, 4))
            columns["w"] = np.rint((a + (b if with_b else 0)) / by).astype(int)
            rules.append(f"w = a / {by} + b / {by}" if with_b else f"w = a / {by}")
        elif kind == "convert":
            step = float(rng.choice([0.5, 2.0, -7.0]))
            columns["v"] = step * a + 1
            rules.append(rng.choice([f"v = {step} * a + 1", f"a = {1 / step} * v - {1 / step}"]))
        elif kind == "function":
            columns["g"] = np.array([3, 5, 3])[np.searchsorted(["p", "q", "r"], s)]
            rules.append("s -> g")
            if rng.random() < 0.5:
                columns["g2"] = columns["g"] + a
                rules.append("g2 = g + a")
        elif kind == "pair":
            columns["f"] = np.char.add("f", np.array((a * 3 + b) % 4).astype(str))
            rules.append("a, b -> f")
        elif kind == "mutual":
            columns["n"] = np.array(["w", "x", "y", "z"])[(a + 1) % 4]
            rules.append("a <-> n")
        elif kind == "combinations":
            columns["e"] = np.where(a > 1, np.minimum(b, 1), b + 1)
            rules.append("combinations(a, e)")
        elif kind == "order":
            columns["h"] = a + np.minimum(rng.poisson(0.7, n), 2)
            rules.append("a <= h")
            if rng.random() < 0.4:
                columns["h2"] = columns["h"] + 1 + np.minimum(rng.poisson(0.5, n), 1)
                rules.append("h < h2")
        elif kind == "missing":
            columns["m"] = np.where(missing_by[1], np.nan, m)
            rules.append(f"m missing iff {missing_by[0]}")
        elif kind == "skipped":
            columns["skip"] = np.where(missing_by[1] | (rng.random(n) < rng.choice([0.05, 0.3])), np.nan, m)
            rules.append(f"skip missing if {missing_by[0]}")
        elif kind == "missing number":
            columns["u"] = np.where(a == 0, np.nan, rng.integers(0, 3, n))
            rules.append("u missing iff a = 0")
        elif kind == "together":
            gone = rng.random(n) < 0.2
            columns["k"] = np.where(gone, np.nan, np.minimum(a + rng.integers(0, 2, n), 3))
            columns["l"] = pd.Series(np.where(z == 1, "left", "right")).mask(gone)
            rules.append("k, l missing together")
        elif kind == "date":
            columns["day"] = pd.Timestamp("2024-03-01") + pd.to_timedelta(rng.integers(0, 4, n), "D")
            columns["due"] = columns["day"] + pd.to_timedelta(a, "D")
            rules.append("due = day + 86400 * a")
        elif kind == "gap sum":
            columns["lo"], gap = b, np.minimum(rng.poisson(0.6, n), 2)
            columns["hi"] = b + gap
            rules += ["b <= hi", "lo = b"]
        elif kind == "real":
            x = np.where(rng.random(n) < 0.2, 0.0, rng.normal(size=n) + z)
            columns["x"] = x
            columns["y"] = 2.5 * x + 1
            rules.append("y = 2.5 * x + 1")
        elif kind == "third":
            columns["r"] = np.round((2 * a + b) / 3, 2)
            rules.append(rng.choice(["r = 0.666666666667 * a + 0.333333333333 * b", "a, b -> r"]))
        else:
            columns["q"] = np.where(missing_by[1], np.nan, m)
            columns["qa"] = columns["q"] + a
            rules += [f"q missing iff {missing_by[0]}", "qa = q + a"]
    frame = pd.DataFrame(columns)
    for name in rng.permutation(frame.columns)[: rng.integers(0, 2)]:
        frame[name] = frame[name].mask(rng.random(n) < rng.choice([0.03, 0.2]))
    return frame[rng.permutation(frame.columns).tolist()], rules


def learned(seed: int) -> jf.Joint | None:
    """The joint of a random table, with those of its rules declared that hold together; None if none is enforced."""
    rng = np.random.default_rng(seed)
    frame, rules = random_table(rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = read_training_rows(frame, None)
        reduced = _reduced(rows, [rule for rule in rules if rng.random() < 0.8], rng)
        if reduced is None:
            return None
        X, schema = reduced.of_rows(rows.X), reduced.schema
        count = 1 + (rng.random() < 0.25)
        parts = [learn(LEARNERS[rng.integers(len(LEARNERS))](), schema, X, seed) for _ in range(count)]
        model = reduced.ruled(mixture_of(parts, rng.dirichlet(np.full(count, 5.0))))
        if rng.random() < 0.15:
            name = str(rng.choice([name for name in model.schema.names if frame[name].nunique() < 8]))
            cells = frame[name].dropna()
            try:
                model = model.condition(build(model.schema, conditions={name: AnyOf(cells.iloc[0], cells.iloc[1])}))
            except ValueError as error:
                if "is no joint of its own" not in str(error):
                    raise
    if not all(isinstance(part, RuledDistribution) for part in model.components):
        return None
    return jf.Joint(model)


def _reduced(rows: TableRows, declared: list[str], rng: np.random.Generator) -> Reduced | None:
    """The coordinates; a declared rule that cannot be enforced beside the others is left out."""
    found = str(rng.choice(["", "auto", "all"], p=[0.5, 0.3, 0.2]))
    while declared or found:
        try:
            return reduce_table(wanted_rules([*declared, found] if found else declared, rows.schema, rows.X), rows.X)
        except ValueError as error:
            wrong = [rule for rule in declared if f"rules: {jf.rule(rule)}:" in str(error)]
            if not wrong:
                raise
            declared = [rule for rule in declared if rule not in wrong]
    return None


# ---- All rows of a joint, with their probabilities.

_TAIL = 1e-7
"""Probability of a coordinate's values that are left out."""
_MOST = 150_000
"""Most rows of coordinates; of joints with more nothing is asked."""


def all_rows(joint: jf.Joint) -> oracle.Rows | None:
    """The rows of the joint; None if they are too many."""
    parts = []
    for part, log_weight in zip(joint.distribution.components, joint.distribution.log_weight, strict=True):
        assert isinstance(part, RuledDistribution)
        found = _rows_of(part)
        if found is None:
            return None
        parts.append(found._replace(p=found.p * math.exp(log_weight)))
    X, p, width, missing = (np.concatenate(of) for of in zip(*(part[:4] for part in parts), strict=True))
    absences = joint.distribution.components[0].coordinates.absences
    together = [absences.index(of) if of.like >= 0 or of.where >= 0 else -1 - j for j, of in enumerate(absences)]
    return oracle.Rows(X, p, width, missing, np.array(together)) if abs(p.sum() - 1.0) < 1e-4 else None


class _Part(NamedTuple):
    X: np.ndarray
    p: np.ndarray
    width: np.ndarray
    missing: np.ndarray
    Z: np.ndarray
    log_density: np.ndarray
    """Of Z."""


_LAST: list[tuple[RuledDistribution, _Part | None]] = []
"""The rows of the last distributions, which are asked for again and again."""


def _rows_of(part: RuledDistribution) -> _Part | None:
    """The rows of one component; None if they are too many."""
    for before, found in _LAST:
        if before is part:
            return found
    _LAST[:] = [*_LAST[-5:], (part, _enumerated(part))]
    return _LAST[-1][1]


def _enumerated(part: RuledDistribution) -> _Part | None:
    inner, coordinates = part.inner, part.coordinates
    axes = [_values(inner, at) for at in range(len(inner.schema.columns))]
    if any(axis is None for axis in axes) or math.prod(len(axis[0]) for axis in axes if axis) > _MOST:
        return None
    Z = np.array(list(itertools.product(*(axis[0] for axis in axes if axis))), float)
    width = np.array(list(itertools.product(*(axis[1] for axis in axes if axis))), float)
    log_density = inner.log_density(Evidence.of_values(Z))
    p = np.exp(log_density) * width.prod(axis=1)
    some = p > 1e-14
    Z, width, p, log_density = Z[some], width[some], p[some], log_density[some]
    X = oracle.written_out(coordinates.sources, coordinates.absences, coordinates.schema.columns, Z)
    widths, missing = np.ones(X.shape), np.zeros(X.shape)
    for j, column in enumerate(coordinates.schema.columns):
        terms, absence = coordinates.sources[j].terms, coordinates.absences[j]
        if column.step > 0.0:
            widths[:, j] = max(column.step, 2.0 * coordinates.sources[j].tolerance)
        elif not column.is_categorical and all(term.table is None for term in terms):
            widths[:, j] = width[:, terms[0].at] * np.where(width[:, terms[0].at] == 1.0, 1.0, terms[0].coefficient)
        if absence.where >= 0 and not absence.by_rule:
            missing[:, j] = np.isin(Z[:, absence.where], absence.values)
        if absence.besides >= 0:
            missing[:, j] = (Z[:, absence.besides] == 1.0) & ~np.isnan(X[:, j])
        if absence.like >= 0:
            missing[:, j] = _share_of_cells(inner, {absence.like: True}, Z, log_density)
    return _Part(X, p, widths, missing, Z, log_density)


def _share_of_cells(inner: Distribution, cells: dict[int, bool], Z: np.ndarray, log_density: np.ndarray) -> np.ndarray:
    """P(which cells of the coordinates are missing | the values of a row) of rows Z, (N,), by Bayes' rule."""
    if not cells:
        return np.ones(len(Z))
    given, log_p = inner.given_missing_cells({inner.schema.names[at]: is_it for at, is_it in cells.items()})
    if given is None:
        return np.zeros(len(Z))
    return np.exp(log_p + given.log_density(Evidence.of_values(Z)) - log_density)


def _missing_share(joint: jf.Joint, j: int, said: dict[int, Any]) -> float:
    """P(cell j is missing | evidence), where cells that values are said of are known; not where only a rule decides."""
    both = every = 0.0
    for part, log_weight in zip(joint.distribution.components, joint.distribution.log_weight, strict=True):
        assert isinstance(part, RuledDistribution)
        found, absences, inner = _rows_of(part), part.coordinates.absences, part.inner
        assert found is not None
        is_rules = absences[j].by_rule and absences[j].besides < 0
        soft = {i: one for i, one in said.items() if absences[i].like >= 0}
        values = {i: one for i, one in said.items() if i not in soft or not isinstance(one, bool)}
        rows = oracle.Rows(*found[:4], np.arange(found.X.shape[1]))
        weight = rows.fits(values) * math.exp(log_weight)
        for i, one in values.items():  # evidence on a column says that its cell is known
            if max(absences[i].where, absences[i].besides) >= 0 and not isinstance(one, bool) and not is_rules:
                weight = weight * (1.0 - found.missing[:, i])
        cells = {absences[i].like: one is True for i, one in soft.items() if isinstance(one, bool) or not is_rules}
        known = weight * _share_of_cells(inner, cells, found.Z, found.log_density)
        every += known.sum()
        is_absent, like = np.isnan(found.X[:, j]), absences[j].like
        share = found.missing[:, j] * known
        if like >= 0:
            is_it = cells.get(like, True)
            both_cells = cells | {like: True}
            share = weight * _share_of_cells(inner, both_cells, found.Z, found.log_density) if is_it else 0.0 * known
        both += np.where(is_absent, known, share).sum()
    return both / every


def _values(inner: Distribution, at: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Values of a coordinate, and the widths of their cells: points of a column without grid; None if too many."""
    column = inner.schema.columns[at]
    if column.is_categorical:
        return np.arange(float(len(column.levels))), np.ones(len(column.levels))
    if column.step > 0.0:
        first, last = (round((x - column.center) / column.step) for x in (column.minimum, column.maximum))
        x = column.center + column.step * np.arange(first - 30, last + 31)
        mass = inner.observe(build(inner.schema)).pdf(at, x)[0] * column.step
        order = np.argsort(-mass)
        some = np.sort(order[: np.searchsorted(np.cumsum(mass[order]), 1.0 - _TAIL) + 1])
        return x[some], np.full(len(some), column.step)
    hidden = inner.hidden_trees()
    if hidden is None:
        return None
    scale = hidden.scales[at]
    _, x, mass, is_mass = one_scale.cloud(scale)
    density = np.array([1.0 if m else one_scale.base_density(scale, v)[1] for v, m in zip(x, is_mass, strict=True)])
    return x, np.where(is_mass, 1.0, mass / density)


# ---- Questions, and answers that differ.


class Tally:
    """How many numbers were compared, and which questions have a wrong one; refused and estimated ones are counted."""

    def __init__(self) -> None:
        self.questions, self.made, self.refused, self.estimated = 0, 0, 0, 0
        self.wrong: list[str] = []

    def compare(self, what: str, ask: Callable[[], Any], expected: Any, tolerance: float = 2e-3) -> None:
        """Ask, and compare with what is expected; None: the question is to be refused."""
        self.questions += 1
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                found = ask()
            except ValueError as error:
                self.made += 1
                said = str(error)
                if expected is None:
                    return
                if any(text in said for text in ("no certified mode", "is no joint of its own")):
                    self.refused += 1
                    return
                self.wrong.append(f"{what}: expected {expected}, refused: {said[:200]}")
                return
            except Exception as error:  # which users must never see
                self.made += 1
                self.wrong.append(f"{what}: expected {expected}, {type(error).__name__}: {error}")
                return
        if any("weighted draws" in str(one.message) for one in told):
            self.estimated += 1
            return
        self.made += np.size(expected)
        if expected is None:
            self.wrong.append(f"{what}: expected a refusal, got {found}")
        elif not np.allclose(found, expected, rtol=tolerance, atol=tolerance, equal_nan=True):
            off = ~np.isclose(found, expected, rtol=tolerance, atol=tolerance, equal_nan=True)
            expected, found = (np.asarray(x)[off][:5] if off.ndim else x for x in (expected, found))
            self.wrong.append(
                f"{what}: expected {expected}, got {found}{f' at {np.argwhere(off)[:5].tolist()}' if off.ndim else ''}"
            )


def compare_answers(seed: int, tally: Tally) -> bool:
    """Compare all answers of the joint of a seed with sums over its rows; whether it is small enough.

    Information is not asked of forests with sums, whose entropies would take most of the time.
    """
    joint = learned(seed)
    rows = None if joint is None else all_rows(joint)
    if joint is None or rows is None:
        return False
    rng = np.random.default_rng([seed, 1])
    _ask_of_joint(joint, rows, rng, tally, f"seed {seed}")
    parts = [part for part in joint.distribution.components if isinstance(part, RuledDistribution)]
    if not any(part.inner.is_forest and part.coordinates.adds_numbers for part in parts):
        _ask_of_information(joint, rows, np.random.default_rng([seed, 2]), tally, f"seed {seed}")
    for _ in range(8):
        _ask_of_each(joint, rows, rng, tally, f"seed {seed}")
    for _ in range(3):
        said = random_evidence(joint, rows, rng, int(rng.integers(0, 4)))
        total = rows.fits(said).sum()
        if total == 0.0 or total > 2e-3:
            compare_given(joint, rows, said, rng, tally, f"seed {seed}, given {_shown(joint, said)}")
    return True


def random_evidence(joint: jf.Joint, rows: oracle.Rows, rng: np.random.Generator, n: int) -> dict[int, Any]:
    """What is said of n columns, mostly what some row has: values, sets, intervals, likelihoods, missing cells."""
    said: dict[int, Any] = {}
    for j in rng.permutation(rows.X.shape[1])[:n].tolist():
        if rng.random() < 0.8 or not said:
            row = rows.X[rng.choice(len(rows.X), p=rows.fits(said) / rows.fits(said).sum())]
        else:
            row = rows.X[rng.choice(len(rows.X), p=rows.p / rows.p.sum())]
        column, x = joint.schema.columns[j], row[j]
        if np.isnan(x):
            said[j] = True
        else:
            said[j] = _condition(column, float(x), rows.X[:, j], rng)
        if not rows.fits(said).sum() > 0.0:
            return said
    return said


def _condition(column: Column, x: float, values: np.ndarray, rng: np.random.Generator) -> Any:
    others = np.unique(values[~np.isnan(values)])
    sort = rng.integers(4)
    if column.step == 0.0 and not column.is_categorical:  # between two quadrature points, in the middle of a panel
        low, high = sorted(rng.choice(len(others) - 1, 2, replace=False).tolist())
        gap = np.diff(others)
        return ("interval", *(others[i] + gap[i] / 2 for i in (low, high)))
    if sort == 0:
        return x
    if sort == 1 or (sort == 2 and column.is_categorical):
        return ("set", [x, *rng.choice(others, min(2, len(others)), replace=False).tolist()])
    if sort == 2:
        return ("interval", x - column.step * rng.integers(0, 2), x + column.step * rng.integers(0, 3))
    return ("likely", {x: 0.7, **{float(v): 0.3 for v in rng.choice(others, 1) if v != x}}, 0.1)


def _said(joint: jf.Joint, said: dict[int, Any]) -> dict[str, Any]:
    """Evidence as users give it."""
    out: dict[str, Any] = {}
    for j, one in said.items():
        column = joint.schema.columns[j]
        value = column.from_number
        if isinstance(one, bool):
            out[column.name] = Missing() if one else Not(Missing())
        elif not isinstance(one, tuple):
            out[column.name] = value(one)
        elif one[0] == "set":
            out[column.name] = AnyOf(*map(value, one[1]))
        elif one[0] == "interval":
            out[column.name] = Interval(value(one[1]), value(one[2]))
        else:
            out[column.name] = likely({value(x): like for x, like in one[1].items()}, one[2])
    return out


def _shown(joint: jf.Joint, said: dict[int, Any]) -> str:
    return str({joint.schema.names[j]: one for j, one in said.items()})


def _is_real(column: Column) -> bool:
    return column.step == 0.0 and not column.is_categorical


def compare_given(
    joint: jf.Joint, rows: oracle.Rows, said: dict[int, Any], rng: np.random.Generator, tally: Tally, where: str
) -> None:
    """Questions given evidence."""
    evidence, columns = _said(joint, said), joint.schema.columns
    if not rows.fits(said).sum() > 0.0:
        # Values that no row has together count as a level never seen, unless they contradict a rule: `_ask_of_joint`.
        values = {j: one for j, one in said.items() if not isinstance(one, (tuple, bool))}
        if rows.fits(values).sum() > 0.0:
            tally.compare(f"{where}: impossible", lambda: _probability(joint, evidence), 0.0, 1e-6)
        return
    has_likely = any(isinstance(one, tuple) and one[0] == "likely" for one in said.values())
    state: Any = None

    def given() -> Any:
        nonlocal state
        state = state or joint.given(evidence)
        return state

    if any(isinstance(one, tuple) for one in said.values()):  # those of values alone are asked by `_ask_of_joint`
        log_p = math.log(rows.fits(said).sum() / np.prod([columns[j].step or 1.0 for j, v in said.items()
                                                         if not isinstance(v, (tuple, bool))]))  # fmt: skip
        tally.compare(f"{where}: log_probability", lambda: given().log_probability, log_p)
    for j, column in enumerate(columns):
        name = column.name
        if isinstance(said.get(j), bool):
            continue
        if j not in said and not _tells(joint, j, said):
            share = _missing_share(joint, j, said)
            tally.compare(f"{where}: P({name} missing)", lambda n=name: given().probability({n: Missing()}), share)
        if not rows.fits({**said, j: False}).sum() > 1e-3 * rows.fits(said).sum():
            continue
        if column.is_categorical:
            expected = rows.levels(j, len(column.levels), said)
            tally.compare(f"{where}: proba({name})", lambda n=name: list(given().proba(n).values()), expected)
            continue
        mean, sd = rows.mean(j, said), math.sqrt(max(rows.variance(j, said), 0.0))
        step = column.step if column.kind == "datetime" else 1.0  # seconds of days
        ask = lambda n=name, s=step: _number(joint, n, given().mean(n)) / s  # noqa: E731
        tally.compare(f"{where}: mean({name})", ask, mean / step)
        unit = _spread(rows, j, column)
        tally.compare(f"{where}: sd({name})", lambda n=name, u=unit: _seconds(given().std(n)) / u, sd / unit)
        if _is_real(column):
            continue
        points = np.quantile(rows.X[~np.isnan(rows.X[:, j]), j], [0.2, 0.5, 0.8], method="nearest")
        at = [column.from_number(float(x)) for x in points]
        expected = rows.below(j, points, said)
        tally.compare(f"{where}: cdf({name})", lambda n=name, at=at: given().marginal(n).cdf(at), expected)
        for q in rng.uniform(0.03, 0.97, 2).tolist():
            value, off = rows.quantile(j, q, said)
            if off > 1e-3:
                tally.compare(
                    f"{where}: quantile({name}, {q:.3f})",
                    lambda n=name, q=q: _number(joint, n, given().quantile(n, q)), value,
                )  # fmt: skip
    numbers = [j for j, c in enumerate(columns) if not c.is_categorical or c.kind == "boolean"]
    for _ in range(3):
        a, b = (int(j) for j in rng.choice(numbers, 2))
        if isinstance(said.get(a), bool) or isinstance(said.get(b), bool):
            continue
        if rows.fits({a: False, b: False, **said}).sum() > 1e-3:  # what evidence tells of is known
            scale = _spread(rows, a, columns[a]) * _spread(rows, b, columns[b]) / 20.0
            tally.compare(
                f"{where}: cov({columns[a].name}, {columns[b].name})",
                lambda a=a, b=b, s=scale: given().cov(columns[a].name, columns[b].name) / s,
                rows.covariance(a, b, said) / scale,
            )
            if not _is_real(columns[a]) and not _is_real(columns[b]) and a != b and not has_likely:
                pair = [columns[j] for j in (a, b)]
                if all(c.kind not in ("datetime", "boolean") for c in pair):
                    share = rows.compare(a, b, said)
                    tally.compare(
                        f"{where}: P({pair[0].name} > {pair[1].name})",
                        lambda p=pair, x=share: _value(given().compare(f"{p[0].name} > {p[1].name}"), x), share,
                    )  # fmt: skip
    # cells that may also be missing by chance are asked about alone: with values, these cells are known in the event
    part = joint.distribution.components[0]
    assert isinstance(part, RuledDistribution)
    partly = {c.name for c, of in zip(columns, part.coordinates.absences, strict=True) if of.besides >= 0}
    for _ in range(3):
        event = {j: one for j, one in random_evidence(joint, rows, rng, int(rng.integers(1, 3))).items()
                 if one is not True or columns[j].name not in partly}  # fmt: skip
        event = {j: ("set", list(one[1])) if isinstance(one, tuple) and one[0] == "likely" else one
                 for j, one in event.items() if not (isinstance(one, bool) and j in said)}  # fmt: skip
        if event and not any(isinstance(said.get(j), bool) for j in event):
            both = rows.probability(event, said)
            text = _shown(joint, event)
            tally.compare(f"{where}: P({text})", lambda e=event: given().probability(_said(joint, e)), both)
    if not has_likely and not any(isinstance(one, bool) for one in said.values()):
        complete = rows.fits(said)[~np.isnan(rows.X).any(axis=1)].sum()
        # complete rows that are rare may have values of the tails, which are left out
        is_sure = complete > 1e-3 if complete else not any(isinstance(one, tuple) for one in said.values())
        if is_sure and not any(map(_is_real, columns)):
            best = rows.mode(said) if complete else None
            right = None if best is None else 0.0
            tally.compare(f"{where}: mode", lambda: _of_mode(joint, rows, given().mode(), best), right)
    tally.compare(f"{where}: draws", lambda: _strange(joint, rows, given().sample(20, random_state=0)), 0)
    tally.compare(
        f"{where}: draws, missing", lambda: _strange(joint, rows, given().sample(20, random_state=0, missing=True)), 0
    )


def _ask_of_joint(joint: jf.Joint, rows: oracle.Rows, rng: np.random.Generator, tally: Tally, where: str) -> None:
    """Questions about the joint itself."""
    columns = joint.schema.columns
    names = [column.name for column in columns]
    frame = joint.sample(12, random_state=int(rng.integers(1000)), missing=True)
    drawn = numbers_of(joint, frame)
    hide = rng.random(drawn.shape) < rng.uniform(0.0, 0.8, (len(drawn), 1))
    hide |= np.array([_is_real(column) for column in columns])
    drawn = np.where(hide, np.nan, drawn)
    shown = frame.mask(hide)
    expected = [rows.log_density({j: float(x) for j, x in enumerate(row) if not np.isnan(x)}) for row in drawn]
    tally.compare(f"{where}: log_density", lambda: joint.log_density(shown), expected)
    for j in rng.permutation(len(columns))[:2].tolist():
        if not _is_real(columns[j]):
            values = np.unique(rows.X[~np.isnan(rows.X[:, j]), j])
            one = pd.DataFrame({names[j]: [columns[j].from_number(float(x)) for x in values]})
            expected = rows.fits({j: False}).sum() + rows.fits({j: True}).sum() * ~np.isnan(rows.X[:, j]).any()
            sum_of = lambda one=one, j=j: np.exp(joint.log_density(one)).sum() * (columns[j].step or 1.0)  # noqa: E731
            tally.compare(f"{where}: densities of {names[j]} sum", sum_of, rows.p[~np.isnan(rows.X[:, j])].sum())
    # a marginal forest keeps mean rates of missing cells in leaves that become one
    is_forest = any(part.inner.is_forest for part in joint.distribution.components)
    some = [j for j in range(len(columns)) if not (is_forest and rows.missing[:, j].any())]
    kept = sorted(rng.choice(some, min(3, len(some)), replace=False).tolist())
    part = rows.of(kept)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        selected = joint.select(*(names[j] for j in kept))
    said = random_evidence(selected, part, rng, 1)
    if part.fits(said).sum() > 2e-3:
        compare_given(selected, part, said, rng, tally, f"{where}, selected, given {_shown(selected, said)}")


def _ask_of_information(joint: jf.Joint, rows: oracle.Rows, rng: np.random.Generator, tally: Tally, where: str) -> None:
    """Entropies and mutual information of one to three columns."""
    columns, names = joint.schema.columns, joint.schema.names
    some = [j for j in rng.permutation(len(columns)).tolist() if not _is_real(columns[j])]
    for of in (some[:1], some[:2], some[:3]):
        if rows.fits({j: False for j in of}).sum() > 1e-3 or not np.isnan(rows.X[:, of]).any():
            value = rows.entropy(of)
            tally.compare(
                f"{where}: entropy({[names[j] for j in of]})",
                lambda of=of, v=value: _value(joint.entropy(*(names[j] for j in of)), v), value,
            )  # fmt: skip
    if len(some) > 2 and len(rows.known(some[:3])[1]):
        value = rows.mutual_information(some[:1], some[1:2])
        tally.compare(
            f"{where}: mi({names[some[0]]}, {names[some[1]]})",
            lambda: _value(joint.mutual_information(names[some[0]], names[some[1]]), value), value,
        )  # fmt: skip
        value2 = rows.mutual_information(some[:1], some[1:2], some[2:3])
        tally.compare(
            f"{where}: mi({names[some[0]]}, {names[some[1]]} | {names[some[2]]})",
            lambda: _value(joint.mutual_information(names[some[0]], names[some[1]], given=names[some[2]]), value2),
            value2,
        )


_MOST_GROUPS = 40
"""Most values of columns of which each is evidence of its own."""


def _ask_of_each(joint: jf.Joint, rows: oracle.Rows, rng: np.random.Generator, tally: Tally, where: str) -> None:
    """Log-density of all values of some columns; and answers about the other columns given each of these values."""
    columns = joint.schema.columns
    grid = [j for j in rng.permutation(len(columns)).tolist() if not _is_real(columns[j])]
    some = grid[: rng.integers(1, len(grid) + 1)]
    values, group = rows.groups(some)
    log_density, n = rows.group_log_density(some, group, len(values)), len(values)
    mass = np.bincount(group[group >= 0], rows.p[group >= 0], n)
    where = f"{where}, given each {[columns[j].name for j in some]}"

    def frame_of(of: np.ndarray) -> pd.DataFrame:
        return pd.DataFrame({columns[j].name: columns[j].values(values[of, k]) for k, j in enumerate(some)})

    likely = np.flatnonzero(mass > 1e-4)
    if len(likely):
        tally.compare(f"{where}: log_density", lambda: joint.log_density(frame_of(likely)), log_density[likely])
    kept = np.sort(rng.permutation(np.flatnonzero(mass > 2e-3))[:_MOST_GROUPS])
    if not len(kept):
        return
    place = np.full(n + 1, -1)
    place[kept] = np.arange(len(kept))
    group, given = place[group], joint.given(frame_of(kept))

    def mean(share: np.ndarray, rows: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Means of x in each group; NaN where no row has values."""
        total = np.bincount(group[rows], share * x, len(kept))
        return np.where(np.bincount(group[rows], minlength=len(kept)) > 0, total, np.nan)

    for j in (j for j in range(len(columns)) if j not in some):
        column, name = columns[j], columns[j].name
        known, share, how_much = rows.group_shares([j], group, len(kept))
        sure = np.isnan(how_much) | (how_much == 0.0) | (how_much > 1e-3)  # others are of tails, which are left out
        x = rows.X[known, j]
        if column.is_categorical:
            expected = np.column_stack([mean(share, known, x == k) for k in range(len(column.levels))])
            tally.compare(f"{where}: proba({name})", lambda n=name, s=sure: given.proba(n)[s], expected[sure])
            continue
        unit, zero = _spread(rows, j, column), float(np.nanmin(rows.X[:, j]))
        first = mean(share, known, x - zero)
        second = mean(share, known, (x - zero - first[group[known]]) ** 2)
        numbers = lambda x, z=zero, u=unit, c=column: (c.numbers(x) - z) / u  # noqa: E731
        tally.compare(
            f"{where}: mean({name})", lambda n=name, s=sure, f=numbers: f(given.mean(n)[s]), first[sure] / unit
        )
        tally.compare(
            f"{where}: var({name})", lambda n=name, s=sure, u=unit: given.var(n)[s] / u**2, second[sure] / unit**2
        )
        if _is_real(column):
            continue
        at = np.unique(np.round(x, 6))
        at = at[np.unique(np.linspace(0, len(at) - 1, 12).astype(int))]
        below = np.column_stack([mean(share, known, x <= v + oracle.NEAR) for v in at])
        tally.compare(
            f"{where}: cdf({name})",
            lambda n=name, s=sure, v=at, c=column: given.marginal(n).cdf(c.values(v))[s], below[sure],
        )  # fmt: skip
        others = [k for k in range(j) if k not in some and not columns[k].is_categorical]
        for k in others if rng.random() < 0.1 else []:  # of rounded sums they take long
            both, share2, how_much = rows.group_shares([j, k], group, len(kept))
            fine = np.isnan(how_much) | (how_much == 0.0) | (how_much > 1e-3)
            scale = unit * _spread(rows, k, columns[k])
            of = [rows.X[both, i] for i in (j, k)]
            of = [v - mean(share2, both, v)[group[both]] for v in of]
            tally.compare(
                f"{where}: cov({name}, {columns[k].name})",
                lambda n=name, m=columns[k].name, s=fine, u=scale: given.cov(n, m)[s] / u,
                mean(share2, both, of[0] * of[1])[fine] / scale,
            )  # fmt: skip


def numbers_of(joint: jf.Joint, frame: pd.DataFrame) -> np.ndarray:
    """The numbers of a frame's cells, NaN where missing."""
    out = np.full(frame.shape, np.nan)
    for j, column in enumerate(joint.schema.columns):
        cells = frame.iloc[:, j]
        for i, x in enumerate(cells):
            if not pd.isna(x):
                out[i, j] = column.to_number(x)
    return out


def _strange(joint: jf.Joint, rows: oracle.Rows, frame: pd.DataFrame) -> int:
    """How many drawn rows are none of the rows; a value without grid may be any."""
    grid = [j for j, column in enumerate(joint.schema.columns) if not _is_real(column)]
    X = numbers_of(joint, frame)[:, grid]
    return sum(not rows.of(grid).has_row(x) for x in X)


def _of_mode(joint: jf.Joint, rows: oracle.Rows, best: Any, expected: float) -> float:
    """How far the density of the first mode is from what it is and from the bound; 0 if all is right."""
    x = numbers_of(joint, best.rows)[0]
    density = rows.log_density({j: float(v) for j, v in enumerate(x) if not np.isnan(v)})
    off = abs(density - best.log_density[0]) + max(density - expected, 0.0) + max(expected - best.log_bound, 0.0)
    return off + float(np.isnan(x).any())


def _value(estimate: Any, expected: float) -> float:
    """The value of an estimate; what is expected if the value is within five standard errors."""
    near = estimate.method == "sampling" and abs(estimate.value - expected) <= 5.0 * estimate.standard_error + 1e-3
    return expected if near else estimate.value


def _spread(rows: oracle.Rows, j: int, column: Column) -> float:
    """Five steps of a column, or its range: rows are followed up to a small probability."""
    return max(np.nanmax(rows.X[:, j]) - np.nanmin(rows.X[:, j]), 5.0 * column.step, 1e-3)


def _probability(joint: jf.Joint, evidence: dict[str, Any]) -> float:
    try:
        return math.exp(joint.given(evidence).log_probability)
    except ValueError as error:
        if "probability 0" not in str(error):
            raise
        return 0.0


def _number(joint: jf.Joint, name: str, value: Any) -> float:
    return joint.schema[name].to_number(value)


def _tells(joint: jf.Joint, j: int, said: dict[int, Any]) -> bool:
    """Whether a column said to be missing by rule tells the value of column j, which is then known."""
    names = [joint.schema.names[i] for i, one in said.items() if isinstance(one, bool)]
    rules = [rule for rule in joint.rules if isinstance(rule, MissingWhere)]
    return any(joint.schema.names[j] in rule.of for rule in rules) and bool(names)


def _seconds(value: Any) -> float:
    return value.total_seconds() if isinstance(value, dt.timedelta) else value


def cases(first: int, n: int) -> Iterator[tuple[int, Tally]]:
    """n joints that are small enough, by their seeds, with what was compared of each."""
    seed = first
    while n > 0:
        tally = Tally()
        if compare_answers(seed, tally):
            yield seed, tally
            n -= 1
        seed += 1
