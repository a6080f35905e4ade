"""Generated tables with planted rules of all kinds, and with near misses of the same forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd


class Planted(NamedTuple):
    """Columns of one rule or near miss.

    Attributes
    ----------
    columns : dict of str to array (n,)
    rules : tuple of str
        Texts of the rules that hold; none of a near miss.
    """

    columns: dict[str, np.ndarray]
    rules: tuple[str, ...]


Maker = Callable[[np.random.Generator, int, str, int], Planted]
"""From a random generator, the number of rows, a prefix of names, and the number of exceptions."""


def _levels(prefix: str, codes: np.ndarray) -> np.ndarray:
    return np.array([f"{prefix}{k:02d}" for k in range(int(codes.max()) + 1)], dtype=object)[codes]


def _spoilt(rng: np.random.Generator, values: np.ndarray, n_wrong: int) -> np.ndarray:
    """Values with some cells replaced by other values of the column."""
    out = values.copy()
    rows = rng.permutation(len(out))[:n_wrong]
    for i in rows.tolist():
        others = values[values != out[i]]
        out[i] = others[rng.integers(len(others))]
    return out


def function(rng: np.random.Generator, n: int, p: str, n_wrong: int) -> Planted:
    """A shop has one town."""
    shop = rng.choice(20, n, p=rng.dirichlet(np.full(20, 5.0)))
    town = rng.permutation(np.arange(20) % 6)[shop]
    columns = {f"{p}shop": _levels("shop ", shop), f"{p}town": _spoilt(rng, _levels("town ", town), n_wrong)}
    return Planted(columns, () if n_wrong else (f"{p}shop -> {p}town",))


def names(rng: np.random.Generator, n: int, p: str, n_wrong: int) -> Planted:
    """A number and a name of the same thing."""
    code = rng.choice(12, n, p=rng.dirichlet(np.full(12, 5.0)))
    columns = {f"{p}number": rng.permutation(12)[code] * 7, f"{p}name": _spoilt(rng, _levels("name ", code), n_wrong)}
    return Planted(columns, () if n_wrong else (f"{p}number <-> {p}name",))


def of_two(rng: np.random.Generator, n: int, p: str, n_wrong: int) -> Planted:
    """A product and a size have one price."""
    product, size = rng.integers(0, 6, n), rng.integers(0, 4, n)
    price = (product + size) % 3  # any two of the three columns have all combinations
    columns = {f"{p}product": _levels("product ", product), f"{p}size": _levels("size ", size),
               f"{p}price": _spoilt(rng, price * 5, n_wrong)}  # fmt: skip
    return Planted(columns, () if n_wrong else (f"{p}product, {p}size -> {p}price",))


def combinations(rng: np.random.Generator, n: int, p: str, n_wrong: int) -> Planted:
    """Only some departments have some jobs."""
    allowed = np.array([(a, b) for a in range(8) for b in range(9) if (a * 5 + b * 3) % 7 < 2])
    a, b = allowed[rng.integers(0, len(allowed), n)].T
    columns = {f"{p}department": _levels("department ", a), f"{p}job": _spoilt(rng, _levels("job ", b), n_wrong)}
    return Planted(columns, () if n_wrong else (f"combinations({p}department, {p}job)",))


def total(rng: np.random.Generator, n: int, p: str, n_wrong: int) -> Planted:
    """A total of two amounts."""
    a, b = rng.poisson(40, n), rng.geometric(0.1, n)
    c = a + b
    wrong = rng.permutation(n)[:n_wrong]
    c[wrong] = np.where(np.arange(n_wrong) % 2, np.minimum(a, b)[wrong] - 1, c[wrong] - 1)
    columns = {f"{p}net": a, f"{p}fee": b, f"{p}total": c}
    return Planted(columns, () if n_wrong else (f"{p}total = {p}net + {p}fee",))


def units(rng: np.random.Generator, n: int, p: str, n_wrong: int) -> Planted:
    """Kilometres of miles, rounded."""
    miles = np.round(rng.gamma(2.0, 40.0, n), 1)
    km = np.round(1.609 * miles, 1)
    wrong = rng.permutation(n)[:n_wrong]
    km[wrong] = 0.9 * miles[wrong]
    columns = {f"{p}miles": miles, f"{p}km": np.round(km, 1)}
    return Planted(columns, () if n_wrong else (f"{p}km = 1.609 * {p}miles",))


def duration(rng: np.random.Generator, n: int, p: str, n_wrong: int) -> Planted:
    """Start, end, and the minutes between."""
    start = pd.Timestamp("2024-01-01").value // 10**9 + 60 * rng.integers(0, 500_000, n)
    minutes = rng.geometric(0.03, n)
    end = start + 60 * minutes
    end[rng.permutation(n)[:n_wrong]] -= 3 * 86_400
    columns = {
        f"{p}start": start.astype("datetime64[s]"),
        f"{p}minutes": minutes,
        f"{p}end": end.astype("datetime64[s]"),
    }
    return Planted(columns, () if n_wrong else (f"{p}end = {p}start + 60 * {p}minutes",))


def dates(rng: np.random.Generator, n: int, p: str, n_wrong: int) -> Planted:
    """Opened, and closed on that day or later."""
    first = np.datetime64("2023-01-01", "D") + rng.integers(0, 700, n)
    days = rng.geometric(0.05, n) - 1
    days[rng.permutation(n)[:n_wrong]] = -3
    columns = {f"{p}opened": first, f"{p}closed": first + days}
    columns = {name: days.astype("datetime64[s]") for name, days in columns.items()}
    return Planted(columns, () if n_wrong else (f"{p}opened <= {p}closed",))


def chain(rng: np.random.Generator, n: int, p: str, n_wrong: int) -> Planted:
    """Least, middle and greatest of some numbers."""
    low = rng.poisson(30, n)
    middle = low + rng.geometric(0.2, n) - 1
    high = middle + rng.geometric(0.15, n) - 1
    wrong = rng.permutation(n)[:n_wrong]
    middle[wrong] = np.where(np.arange(n_wrong) % 2, low[wrong] - 1, high[wrong] + 1)
    high[wrong] = np.where(np.arange(n_wrong) % 2, high[wrong], low[wrong] - 1)
    middle[wrong] = np.where(np.arange(n_wrong) % 2, middle[wrong], low[wrong])
    columns = {f"{p}low": low, f"{p}middle": middle, f"{p}high": high}
    return Planted(columns, () if n_wrong else (f"{p}low <= {p}middle", f"{p}middle <= {p}high"))


def absent(rng: np.random.Generator, n: int, p: str, n_wrong: int) -> Planted:
    """A delay and a reason of orders that were not cancelled."""
    state = rng.choice(3, n, p=[0.6, 0.25, 0.15])
    delay = np.round(rng.normal(10.0, 4.0, n), 1)
    delay[state == 2] = np.nan
    wrong = rng.permutation(np.flatnonzero(state != 2))[:n_wrong]
    delay[wrong] = np.nan
    weight = np.round(rng.normal(50.0, 9.0, n), 2)
    weight[np.isnan(delay)] = np.nan
    weight[rng.permutation(np.flatnonzero(np.isnan(weight)))[:n_wrong]] = 50.0
    columns = {f"{p}state": _levels("state ", state), f"{p}delay": delay, f"{p}weight": weight}
    both = (f"{p}delay, {p}weight missing together", f"{p}delay missing iff {p}state = 'state 02'")
    return Planted(columns, () if n_wrong else both)


MAKERS: tuple[Maker, ...] = (
    function, names, of_two, combinations, total, units, duration, dates, chain, absent,
)  # fmt: skip


def chance(rng: np.random.Generator, n: int, p: str, n_wrong: int) -> Planted:
    """Columns that obey no rule, but look as if: dependence without one."""
    x = rng.normal(50.0, 10.0, n)
    columns = {
        f"{p}key": rng.permutation(n) * 3,
        f"{p}rare": (rng.random(n) < 0.01).astype(int),
        f"{p}far": np.round(x + 200.0 + rng.normal(0, 10.0, n)),
        f"{p}near": np.round(x),
        f"{p}nearer": np.round(x + rng.normal(0, 1.5, n)),
        f"{p}grade": _levels("grade ", np.clip(((x + rng.normal(0, 3.0, n)) // 12).astype(int), 0, 8)),
        f"{p}gaps": np.where(rng.random(n) < 0.1, np.nan, np.round(x * 2.0 + rng.normal(0, 1.0, n))),
    }
    return Planted(columns, ())


def table(n: int, seed: int) -> tuple[pd.DataFrame, list[tuple[str, ...]]]:
    """A table of n rows with ten groups of columns that obey rules, and ten near misses; the texts of each group.

    A near miss has exceptions in 1 of 300 rows, and two at least.
    """
    rng = np.random.default_rng([seed, n])
    columns: dict[str, np.ndarray] = {}
    rules = []
    for k, make in enumerate(MAKERS):
        for prefix, n_wrong in ((f"r{k}_", 0), (f"m{k}_", max(2, n // 300))):
            planted = make(rng, n, prefix, n_wrong)
            columns |= planted.columns
            if planted.rules:
                rules.append(planted.rules)
    columns |= chance(rng, n, "c_", 0).columns
    order = rng.permutation(len(columns))
    labels = list(columns)
    return pd.DataFrame({labels[k]: columns[labels[k]] for k in order.tolist()}), rules
