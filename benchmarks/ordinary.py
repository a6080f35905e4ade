"""Measures how many drawn and imputed cells are values that a column of an ordinary table could not have.

Each made table holds one column whose values obey a simple law (prices in cents, ages from 18 to 90, dates of working
days), and two others that depend on it. The share of cells that break the law is counted among drawn rows, and among
cells that were hidden and imputed. A column of amounts may go beyond its greatest row, so only its hard ends count.

Another table has three groups of amounts with one 99999 among them. It compares the answers about the other rows with
those of the table. Last tables compare the standard deviation of a number within groups with that of the table: amounts
by shop, rates by grade, and flight times by distance.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from _common import arguments, finish, progress, verdict

import jointforest as jf

MOST = 0.01
N_DRAWN = 2000


class Case(NamedTuple):
    """A made column: its name, rows, how to make it, and which cells it may have."""

    name: str
    n: int
    make: Callable[[np.random.Generator, int], Any]
    may: Callable[[pd.Series], np.ndarray]


def on(step: float, low: float = -np.inf, high: float = np.inf) -> Callable[[pd.Series], np.ndarray]:
    """Whether cells are multiples of a step, between two ends."""

    def may(cells: pd.Series) -> np.ndarray:
        x = cells.to_numpy(np.float64)
        off = np.abs(x / step - np.rint(x / step)) > 1e-6 if step else np.zeros(len(x), bool)
        return np.asarray(~off & (x >= low) & (x <= high))

    return may


def days(rng: np.random.Generator, n: int, first: str, last: str) -> pd.Series:
    """Random days."""
    low, high = (np.datetime64(day, "D").astype(int) for day in (first, last))
    return pd.Series(rng.integers(low, high + 1, n).astype("datetime64[D]").astype("datetime64[s]"))


def working_days(rng: np.random.Generator, n: int) -> pd.Series:
    """Random days from Monday to Friday."""
    first = np.datetime64("2020-01-06", "D")
    k = rng.integers(0, 5 * 150, n)
    return pd.Series((first + k // 5 * 7 + k % 5).astype("datetime64[s]"))


def with_far_end(rng: np.random.Generator, n: int) -> pd.Series:
    """Days of five years, and 9999-12-31 in one of twenty rows."""
    cells = days(rng, n, "2019-01-01", "2023-12-31")
    return cells.mask(rng.random(n) < 0.05, np.datetime64("9999-12-31", "s"))


def as_digits(cells: pd.Series, form: str) -> np.ndarray:
    """Dates or times of day as whole numbers."""
    return cells.dt.strftime(form).astype(np.int64).to_numpy()


def is_moment(form: str, width: int) -> Callable[[pd.Series], np.ndarray]:
    """Whether whole numbers are dates or times of this form, or cells are dates."""

    def may(cells: pd.Series) -> np.ndarray:
        if cells.dtype.kind == "M":
            return np.asarray(cells.notna())
        texts = cells.astype(np.int64).astype(str).str.zfill(width)
        return np.asarray(pd.to_datetime(texts, format=form, errors="coerce").notna())

    return may


def lognormal(step: float, median: float, sd: float = 1.0) -> Callable[[np.random.Generator, int], np.ndarray]:
    """Lognormal amounts on a grid."""
    return lambda rng, n: np.rint(median * np.exp(sd * rng.standard_normal(n)) / step) * step


CASES = (
    Case("cents", 3000, lambda rng, n: np.round(500 * np.exp(rng.standard_normal(n)), 2), on(0.01, 0)),
    Case("hundreds", 300, lambda rng, n: lognormal(100, 30_000)(rng, n).astype(int), on(100, 0)),
    Case("fives", 300, lambda rng, n: lognormal(5, 800)(rng, n).astype(int), on(5, 0)),
    Case("quarters", 300, lognormal(0.25, 60), on(0.25, 0)),
    Case(
        "15 minutes",
        10_000,
        lambda rng, n: pd.Series(np.datetime64("2023-01-01", "s") + 900 * rng.integers(0, 35_040, n)),
        lambda cells: np.asarray(cells.dt.floor("15min") == cells),
    ),
    Case(
        "firsts",
        400,
        lambda rng, n: days(rng, n, "2015-01-01", "2023-12-31").dt.to_period("M").dt.to_timestamp(),
        lambda cells: np.asarray(cells.dt.day == 1),
    ),
    Case("working days", 600, working_days, lambda cells: np.asarray(cells.dt.dayofweek < 5)),
    Case("ages 18-90", 200, lambda rng, n: rng.integers(18, 91, n), on(1, 18, 90)),
    Case("prices > 0", 200, lambda rng, n: np.round(40 * np.exp(0.8 * rng.standard_normal(n)), 2), on(0.01, 0)),
    Case("days 1-31", 200, lambda rng, n: rng.integers(1, 32, n), on(1, 1, 31)),
    Case("percent", 200, lambda rng, n: np.clip(np.rint(60 + 35 * rng.standard_normal(n)), 0, 100), on(1, 0, 100)),
    Case("0 and 1", 200, lambda rng, n: (rng.random(n) < 0.1).astype(int), on(1, 0, 1)),
    Case("codes 1-9", 200, lambda rng, n: rng.integers(1, 10, n), on(1, 1, 9)),
    Case(
        "births",
        200,
        lambda rng, n: days(rng, n, "1940-01-01", "2005-12-31"),
        lambda cells: np.asarray(cells < np.datetime64("2010-01-01")),
    ),
    Case(
        "yyyymmdd",
        500,
        lambda rng, n: as_digits(days(rng, n, "2015-01-01", "2023-12-31"), "%Y%m%d"),
        is_moment("%Y%m%d", 8),
    ),
    Case(
        "hhmm",
        500,
        lambda rng, n: as_digits(pd.Series(pd.to_datetime(60 * rng.integers(0, 1440, n), unit="s")), "%H%M"),
        is_moment("%H%M", 4),
    ),
    Case(
        "9999-12-31",
        200,
        with_far_end,
        lambda cells: np.asarray((cells < np.datetime64("2030-01-01")) | (cells == np.datetime64("9999-12-31"))),
    ),
)


def table_of(case: Case, seed: int) -> pd.DataFrame:
    """The column, a number and a label that depend on its ranks."""
    rng = np.random.default_rng(seed)
    cells = pd.Series(case.make(rng, case.n))
    rank = cells.rank(pct=True).to_numpy()
    other = rank + 0.3 * rng.standard_normal(case.n)
    label = np.array(["a", "b", "c"])[np.searchsorted([0.3, 0.8], rank + 0.2 * rng.standard_normal(case.n))]
    return pd.DataFrame({"x": cells, "other": other, "label": label})


LEARNERS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "fast": lambda frame: jf.fit(frame, budget="fast", random_state=0),
    "hidden": lambda frame: jf.HiddenTreeForest(random_state=0).fit(frame).joint_,
    "adversarial": lambda frame: jf.AdversarialForest(random_state=0).fit(frame).joint_,
    "tree": lambda frame: jf.JointTree(random_state=0).fit(frame).joint_,
}


def shares(case: Case, joint: Any, frame: pd.DataFrame) -> tuple[float, float]:
    """Shares of drawn and of imputed cells that the column could not have."""
    drawn = joint.sample(N_DRAWN, random_state=1)
    hidden = frame.sample(min(len(frame), 500), random_state=0).assign(x=None)
    of_drawn, of_imputed = ((~case.may(cells["x"].dropna())).mean() for cells in (drawn, joint.impute(hidden)))
    return float(of_drawn), float(of_imputed)


FAR = 99999.0


def with_far_value(n: int, seed: int) -> pd.DataFrame:
    """Amounts of three groups, one of them far from all others."""
    rng = np.random.default_rng([seed, n])
    z = rng.integers(0, 3, n)
    frame = pd.DataFrame({"amount": (rng.gamma(2, 50, n) * (1 + z)).round(2), "group": np.array(list("abc"))[z]})
    frame["other"] = (rng.normal(size=n) + z).round(2)
    frame.loc[7, "amount"] = FAR
    return frame


def beside_far_value(joint: Any, frame: pd.DataFrame) -> dict[str, float]:
    """Answers over those of the table: moments, and the greatest mean of a group of usual rows; rows in the gap."""
    usual = frame[frame["amount"] < FAR]
    last, nothing = float(usual["amount"].max()), joint.given()
    others = joint.given(amount=jf.between(None, 10 * last))
    groups = usual.groupby("group")["amount"].mean().drop(frame["group"][7])
    return {
        "mean": nothing.mean("amount") / frame["amount"].mean(),
        "standard deviation": nothing.std("amount") / frame["amount"].std(ddof=0),
        "mean of the others": others.mean("amount") / usual["amount"].mean(),
        "rows in the gap, expected": len(frame) * joint.probability({"amount": jf.between(10 * last, 0.9 * FAR)}),
        "mean of a group without it, at most": max(joint.given(group=g).mean("amount") / x for g, x in groups.items()),
    }


def by_group(rng: np.random.Generator, n: int, mean: dict[str, float], sd: float, share: list[float]) -> pd.DataFrame:
    """Numbers y with a mean in each group x, and a day."""
    group = rng.choice(list(mean), n, p=share)
    y = pd.Series(group).map(mean) + rng.normal(0, sd, n)
    return pd.DataFrame({"x": group, "y": y.round(2), "day": rng.integers(1, 8, n)})


def flights(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Flight times y that follow distances x up to five minutes, and two columns that do not."""
    x = rng.lognormal(6.5, 0.6, n).round()
    y = (x / 8 + 20 + rng.normal(0, 5, n)).round()
    return pd.DataFrame({"x": x, "y": y, "carrier": rng.choice(list("xyz"), n), "delay": rng.normal(0, 20, n).round()})


GROUPS: dict[str, Callable[[np.random.Generator, int], pd.DataFrame]] = {
    "amounts by shop": lambda rng, n: by_group(rng, n, {"a": 60, "b": 100, "c": 200}, 15, [0.5, 0.3, 0.2]),
    "rates by grade": lambda rng, n: by_group(
        rng, n, dict(zip("ABCDE", (6, 9, 12, 15, 18), strict=True)), 0.6, [0.25, 0.3, 0.25, 0.15, 0.05]
    ),
    "two ovens": lambda rng, n: by_group(rng, n, {"cold": 4, "hot": 900}, 2, [0.6, 0.4]),
    "flight times by distance": flights,
}


def within_groups(joint: Any, frame: pd.DataFrame) -> dict[str, float]:
    """Standard deviations given each group over those of the table; of flights given three distances over 5 minutes."""
    if frame["x"].dtype == np.float64:
        ratios = [joint.given(x=float(x)).std("y") / 5.0 for x in frame["x"].quantile([0.2, 0.5, 0.8]).round()]
    else:
        ratios = [joint.given(x=x).std("y") / sd for x, sd in frame.groupby("x")["y"].std(ddof=0).items()]
    return {"mean": float(np.mean(ratios)), "largest": float(np.max(ratios))}


def main() -> None:
    options = arguments(
        __doc__,
        learners={"nargs": "*", "choices": tuple(LEARNERS), "default": tuple(LEARNERS)},
        cases={"nargs": "*", "choices": tuple(case.name for case in CASES), "default": None},
    )
    results = []
    for case in CASES:
        if options.cases and case.name not in options.cases:
            continue
        frame = table_of(case, options.seed)
        for name in options.learners[:1] if options.quick else options.learners:
            progress(f"{case.name}: {name}")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                drawn, imputed = shares(case, LEARNERS[name](frame), frame)
            results.append(
                {"case": case.name, "rows": case.n, "learner": name, "drawn": drawn, "imputed": imputed}
                | verdict(max(drawn, imputed), MOST)
            )
    far = []
    for n in () if options.cases else (200,) if options.quick else (200, 1_000):
        frame = with_far_value(n, options.seed)
        for name in options.learners[:1] if options.quick else options.learners:
            progress(f"one far value, {n} rows: {name}")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                far.append({"rows": n, "learner": name} | beside_far_value(LEARNERS[name](frame), frame))
    within = []
    for name, make in () if options.cases else GROUPS.items():
        for n in (400,) if options.quick else (200, 400, 1_200):
            frame = make(np.random.default_rng([options.seed, n]), n)
            for learner in options.learners[:1] if options.quick else options.learners:
                progress(f"{name}, {n} rows: {learner}")
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    of = within_groups(LEARNERS[learner](frame), frame)
                within.append({"case": name, "rows": n, "learner": learner} | of)
    tables = {"shares of cells that the column could not have": results}
    if far:
        tables["one far value, answers over those of the table"] = far
        tables["standard deviations within groups over those of the table"] = within
    finish("ordinary", tables, {"seed": options.seed, "rows drawn": N_DRAWN}, options.quick)


if __name__ == "__main__":
    main()
