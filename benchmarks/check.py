"""Measures the check of tables: wrong cells and repairs of dirty tables, and errors planted in clean ones.

``--dirty`` is a folder with pairs of ``NAME_dirty.parquet`` and ``NAME_clean.parquet`` of texts (default: ``dirty`` in
the folder of the tables), ``--tables`` takes some tables. ``--only`` runs one part: ``planted``, ``dirty``,
``learned``, ``clean`` (clean tables, and joints of clean rows), ``far`` (numbers far from all others), ``sums``
(cells that break a sum or an order), ``best`` (random values, beside a detector that knows the joint) or ``made`` (made
tables of twelve kinds, clean and with errors of five kinds).
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from _common import arguments, finish, progress, read
from _made_tables import ERRORS, MAKERS, plant_errors
from sklearn.ensemble import IsolationForest
from sklearn.metrics import average_precision_score, roc_auc_score

import jointforest as jf
from jointforest.data.frames import encode_ranges
from jointforest.inference.check.result import RestTree, of_joint

KINDS = ("typing", "shift", "unit", "random", "swap")
RATES = (0.01, 0.05, 0.1)


def scores(flagged: np.ndarray, right: np.ndarray, wrong: int) -> dict[str, float]:
    """Precision, recall and F1 of what was flagged, of which ``right`` is right."""
    hits, n = int((flagged & right).sum()), int(flagged.sum())
    precision, recall = hits / max(n, 1), hits / max(wrong, 1)
    return {"precision": precision, "recall": recall, "F1": 2 * hits / max(n + wrong, 1)}


def dirty(folder: Path, name: str, seed: int, most: int) -> list[dict]:
    """Lines of one table: detection, and repairs by the least probability of the best value."""
    seen = pd.read_parquet(folder / f"{name}_dirty.parquet").iloc[:most]
    true = pd.read_parquet(folder / f"{name}_clean.parquet").iloc[:most].to_numpy()
    start = time.process_time()
    joint = jf.HiddenTreeForest(rules="off", random_state=seed).fit(seen).joint_
    fitted = time.process_time()
    check = joint.check(seen)
    seconds = time.process_time() - fitted
    cells, is_wrong = check.cells, seen.to_numpy() != true
    place = {column: k for k, column in enumerate(seen.columns)}
    at = cells["row"].to_numpy(), cells["column"].map(place).to_numpy()
    flagged = cells["p_wrong"].to_numpy() > 0.5
    about = {"table": name, "rows": len(seen), "wrong cells": int(is_wrong.sum())}
    lines = [about | {"what": "detection", **scores(flagged, is_wrong[at], int(is_wrong.sum()))}]
    for least in (0.95, 0.5, 0.3):
        repaired = check.repair(least).frame.to_numpy()
        changed = repaired != seen.to_numpy()
        right = changed & (repaired == true) & is_wrong
        lines.append(about | {"what": f"repair at {least}", **scores(changed, right, int(is_wrong.sum()))})
    lines[0] |= {"learning, CPU s": fitted - start, "check, CPU s": seconds}
    return lines


def plant(frame: pd.DataFrame, kind: str, rate: float, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """The frame with errors of a kind in known cells, and which cells they changed."""
    out, changed = frame.astype(object), np.zeros(frame.shape, bool)
    numbers = [k for k, name in enumerate(frame) if pd.api.types.is_numeric_dtype(frame[name])]
    texts = [k for k in range(frame.shape[1]) if k not in numbers]
    for k in {"typing": texts, "shift": numbers, "unit": numbers}.get(kind, range(frame.shape[1])):
        for i in np.flatnonzero(rng.random(len(frame)) < rate).tolist():
            old = out.iat[i, k]
            new = old
            if pd.isna(old):
                continue
            if kind == "typing":
                text, at = str(old), int(rng.integers(len(str(old))))
                new = text[:at] + "abcdefghijklmnopqrstuvwxyz"[rng.integers(26)] * int(rng.integers(3)) + text[at + 1 :]
            elif kind == "shift":
                new = old * 10.0 ** rng.choice([-2, -1, 1, 2, 3])
            elif kind == "unit":
                new = old * rng.choice([2.54, 1 / 2.54, 0.3048, 12.0])
            elif kind == "random":
                new = frame.iat[int(rng.integers(len(frame))), k]
            elif k + 1 < frame.shape[1] and ((k in numbers) == (k + 1 in numbers)) and not pd.isna(out.iat[i, k + 1]):
                new = out.iat[i, k + 1]
                out.iat[i, k + 1] = old
                changed[i, k + 1] |= new != old
            if not pd.isna(new):
                out.iat[i, k] = new
                changed[i, k] |= new != old
    for k, name in enumerate(frame):
        out[name] = out[name].astype(float) if k in numbers else out[name].astype("str").where(out[name].notna())
    return out, changed


def codes_of(seen: pd.DataFrame) -> pd.DataFrame:
    """Numbers as they are, and levels by the number of their cells; missing cells are the median."""
    coded = {
        name: of if pd.api.types.is_numeric_dtype(of) else of.map(of.value_counts()).astype(float)
        for name, of in seen.items()
    }
    return pd.DataFrame({name: of.fillna(of.median()) for name, of in coded.items()})


def by_isolation(seen: pd.DataFrame, seed: int) -> np.ndarray:
    """How much less isolated each row is in an isolation forest if the cell is the median of its column, (n, d)."""
    X = codes_of(seen).to_numpy()
    forest = IsolationForest(random_state=seed).fit(X)
    out, before = np.empty(X.shape), forest.score_samples(X)
    for k in range(X.shape[1]):
        Y = X.copy()
        Y[:, k] = np.median(X[:, k])
        out[:, k] = forest.score_samples(Y) - before
    return out


def by_histogram(seen: pd.DataFrame) -> np.ndarray:
    """Minus the log share of each cell's level, or of its bin of ten of equal width, (n, d), as in HBOS."""
    out = np.empty(seen.shape)
    for k, (_, of) in enumerate(seen.items()):
        bins = pd.cut(of, 10, labels=False) if pd.api.types.is_numeric_dtype(of) else of
        out[:, k] = -np.log(bins.map(bins.value_counts(normalize=True)).fillna(1.0).to_numpy(float))
    return out


def planted(
    name: str, frame: pd.DataFrame, kind: str, rate: float, seed: int, of_clean: bool = False
) -> tuple[dict, pd.DataFrame]:
    """One line, and the probability of each cell with whether it is wrong; ``of_clean``: by a joint of clean rows."""
    rng = np.random.default_rng([seed, len(kind), round(1000 * rate)])
    seen, changed = plant(frame, kind, rate, rng)
    rows = frame.astype(seen.dtypes) if of_clean else seen
    joint = jf.HiddenTreeForest(rules="off", random_state=seed).fit(rows).joint_
    if of_clean:  # one row more, so that the table does not count as the learned one
        seen, changed = pd.concat([seen, seen.iloc[:1]], ignore_index=True), np.vstack([changed, changed[:1]])
    cells = joint.check(seen).cells
    place = {column: k for k, column in enumerate(seen.columns)}
    at = cells["row"].to_numpy(), cells["column"].map(place).to_numpy()
    known = cells["value"].notna().to_numpy()
    wrong, p = changed[at][known], cells["p_wrong"].to_numpy()[known]
    surprise = pd.DataFrame(-joint.attribution(seen), columns=joint.columns).reindex(columns=seen.columns)
    others = {
        "attribution": surprise.rank(pct=True).fillna(0.0).to_numpy(),
        "isolation forest": by_isolation(seen, seed),
        "histograms": by_histogram(seen),
    }
    line = {"table": name, "kind": kind, "rate": rate, "wrong cells": int(wrong.sum())}
    line |= scores(p > 0.5, wrong, int(wrong.sum()))
    if wrong.any():
        for name_of, score in {"": p, **{f", {other}": x[at][known] for other, x in others.items()}}.items():
            line |= {f"AUC{name_of}": roc_auc_score(wrong, score)}
            line |= {f"average precision{name_of}": average_precision_score(wrong, score)}
    line |= {"above 0.5": float((p > 0.5).mean())}
    return line, pd.DataFrame({"p": p, "wrong": wrong})


def known_posterior(joint: jf.Joint, seen: pd.DataFrame, rate: float) -> np.ndarray:
    """p(cell is wrong), (n, d), if rows come from a joint of hidden trees, and a share of cells is drawn anew from the
    marginal distribution of their column; NaN in missing cells. All other cells may be wrong, too."""
    schema, trees = joint.distribution.schema, of_joint(joint.distribution)
    assert isinstance(trees, RestTree)
    X = encode_ranges(schema, seen)[0]
    item, tables = np.full(X.shape, -1), []
    code, measure, drawn = np.zeros(X.shape, int), np.ones(X.shape), np.full(X.shape, np.nan)
    for j, marginal in enumerate(trees.marginals):
        known = ~np.isnan(X[:, j])
        values, item[known, j] = np.unique(X[known, j], return_inverse=True)
        of, p = trees.coder(j)(values)
        table = np.ones((len(values) + 1, len(marginal)))
        table[:-1] = rate * (marginal[of] * p)[:, None]
        table[np.arange(len(values)), of] += (1.0 - rate) * p
        tables.append(table)
        places = item[known, j]
        code[known, j], measure[known, j], drawn[known, j] = of[places], p[places], (marginal[of] * p)[places]
    right = measure * trees.ask(item, tables, lambda rows, j, p: np.take_along_axis(p, code[rows, j, None], axis=1))
    has_mass = [of.is_categorical or of.step > 0.0 or len(of.atoms) > 0 for of in schema.columns]
    wrong = rate * drawn * (1.0 - right * has_mass)  # a cell that gets its own value again is right
    p_wrong = pd.DataFrame(wrong / ((1.0 - rate) * right + rate * drawn), columns=list(schema.names))
    return p_wrong[seen.columns].to_numpy()


def best(data: Path, seed: int) -> list[dict]:
    """Random values in rows of Adult: the check beside the posterior of a joint of other rows with the true rate. Rows
    that this joint has drawn itself have no better detector."""
    adult = read(data, "adult_train")
    rows = adult.sample(2_000, random_state=0)
    known = jf.HiddenTreeForest(rules="off", random_state=seed + 1).fit(adult.drop(rows.index)).joint_
    tables = {"adult": rows.reset_index(drop=True), "drawn": known.sample(2_000, random_state=seed)[list(adult)]}
    lines = []
    for name, frame in tables.items():
        for rate in RATES:
            progress(f"best, {name}, {rate}")
            seen, changed = plant(frame, "random", rate, np.random.default_rng([seed, 6, round(1000 * rate)]))
            cells = jf.HiddenTreeForest(rules="off", random_state=seed).fit(seen).joint_.check(seen).cells
            ours = np.full(seen.shape, np.nan)
            ours[cells["row"], seen.columns.get_indexer(cells["column"])] = cells["p_wrong"]
            for detector, p_all in (("joint and rate known", known_posterior(known, seen, rate)), ("check", ours)):
                is_known = seen.notna().to_numpy()
                p, wrong = p_all[is_known], changed[is_known]
                hits = np.cumsum(wrong[np.argsort(-p, kind="stable")])
                sure = np.flatnonzero(hits >= 0.8 * np.arange(1, len(hits) + 1))
                line = {"table": name, "rate": rate, "detector": detector, "wrong cells": int(wrong.sum())}
                line |= scores(p > 0.5, wrong, int(wrong.sum()))
                lines.append(line | {"recall at precision 0.8": hits[sure[-1]] / wrong.sum() if len(sure) else 0.0})
    return lines


def heavy(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """A clean table of columns with heavy tails."""
    a = rng.lognormal(3, 1, n).round(2)
    return pd.DataFrame({"a": a, "b": (a * rng.lognormal(0, 1.5, n)).round(1), "c": rng.standard_t(2, n),
                         "d": rng.pareto(1.5, n).round(3), "e": rng.choice(list("pqrs"), n)})  # fmt: skip


def clean(data: Path, seed: int, quick: bool) -> list[dict]:
    """Shares of cells of clean tables that count as wrong."""
    rows = {"jpt/wine_quality": (100, 1_000, 3_000), "adult_train": (1_000, 3_000), "flights/hflights": (1_000,),
            "large/fremtpl2freq": (1_000, 3_000)}  # fmt: skip
    tables = [("penguins", jf.datasets.load_penguins()), ("insurance", read(data, "insurance"))]
    tables += [(name, read(data, name).sample(n, random_state=seed)) for name, of in rows.items() for n in of]
    rng = np.random.default_rng(seed)
    tables += [("heavy tails", heavy(rng, n)) for n in (50, 100, 200, 1_000, 3_000) for _ in range(8)]
    found: dict[tuple[str, int], list[np.ndarray]] = {}
    for name, frame in tables[:3] if quick else tables:
        progress(f"clean {name}, {len(frame)}")
        frame = frame.reset_index(drop=True).dropna(axis=1, how="all")
        kinds = {"TailNum": "categorical"} if "TailNum" in frame else None
        joint = jf.HiddenTreeForest(rules="off", kinds=kinds, random_state=seed).fit(frame).joint_
        found.setdefault((name, len(frame)), []).append(joint.check(frame).cells["p_wrong"].to_numpy() > 0.5)
    return [
        {"table": name, "rows": n, "tables": len(of), "above 0.5": np.concatenate(of).mean()}
        for (name, n), of in found.items()
    ]


def far(seed: int) -> list[dict]:
    """The least ``p_wrong`` of odd values that are planted in one column."""
    odd: dict[str, tuple[list, ...]]
    odd = {"heights": ([937], [-5], [0], [60]), "heights with a decimal": ([937.1], [240.2]), "amounts": ([-4_000.0],),
           "ages": ([999], [999] * 3, [-1]), "dates": (["1900-01-01"], ["1970-01-01"], ["2204-05-03"])}  # fmt: skip
    lines = []
    for name, each in odd.items():
        for values in each:
            line = {"column": name, "odd": ", ".join(map(str, values))}
            for n in (50, 200, 1_000):
                rng = np.random.default_rng([seed, n])
                x = {
                    "heights": rng.normal(170, 9, n).round(),
                    "heights with a decimal": rng.normal(170, 9, n).round(1),
                    "amounts": rng.lognormal(8, 1, n).round(2),
                    "ages": rng.integers(18, 80, n).astype(float),
                    "dates": np.datetime64("2021-01-01", "us") + rng.integers(0, 1_400, n) * np.timedelta64(1, "D"),
                }[name]
                rows = list(range(5, 5 + len(values)))
                x[rows] = np.array(values, x.dtype)
                frame = pd.DataFrame({"x": x, "y": rng.normal(size=n)})
                cells = jf.HiddenTreeForest(rules="off", random_state=seed).fit(frame).joint_.check(frame).cells
                line[f"{n} rows"] = cells[(cells["column"] == "x") & cells["row"].isin(rows)]["p_wrong"].min()
            lines.append(line)
    return lines


def with_sum(name: str, rng: np.random.Generator, n: int) -> tuple[pd.DataFrame, list[str]]:
    """A clean table with a sum or an order, and the columns of it."""
    kind, count = rng.choice(["a", "b", "c"], n), rng.integers(1, 40, n)
    if name == "gross = net + tax":
        net, rate = rng.lognormal(5, 0.8, n).round(2), rng.choice([0.2, 0.05, 0.0], n, p=[0.7, 0.2, 0.1])
        tax = (net * rate).round(2)
        frame = {"kind": kind, "rate": rate, "net": net, "tax": tax, "gross": (net + tax).round(2)}
        return pd.DataFrame(frame), ["net", "tax", "gross"]
    if name == "all = a + b + c":
        b, c = rng.integers(0, 20, n), rng.poisson(6, n)
        return pd.DataFrame({"a": count, "b": b, "c": c, "all": count + b + c, "kind": kind}), ["a", "b", "c", "all"]
    start = rng.integers(0, 300, n)
    return pd.DataFrame({"kind": kind, "start": start, "end": start + rng.geometric(0.1, n)}), ["start", "end"]


def sums(seed: int) -> list[dict]:
    """Rows and cells that are found if some cells of a sum, or of an order, are random values of their column."""
    lines = []
    for name in ("gross = net + tax", "all = a + b + c", "start < end"):
        for rate in (0.003, 0.01, 0.03):
            progress(f"{name}, {rate}")
            n_wrong = broken = of_rows = flagged = hits = repaired = 0
            for k in range(5):
                rng = np.random.default_rng([seed, k])
                frame, columns = with_sum(name, rng, 600)
                seen, changed = frame.copy(), np.zeros(frame.shape, bool)
                for column in columns:
                    at = np.flatnonzero(rng.random(len(frame)) < rate)
                    seen.loc[at, column] = rng.choice(frame[column], len(at))
                    changed[:, frame.columns.get_loc(column)] = seen[column] != frame[column]
                obeys = seen["start"] < seen["end"] if name == "start < end" else ~changed.any(axis=1)
                cells = jf.HiddenTreeForest(rules="off", random_state=seed).fit(seen).joint_.check(seen).cells
                by_row = cells.groupby("row")["p_wrong"].sum()
                n_wrong, broken = n_wrong + int(changed.sum()), broken + int((~obeys).sum())
                of_rows += int((by_row[~obeys] > 0.5).sum())
                likely = cells[cells["p_wrong"] > 0.5]
                is_hit = changed[likely["row"], frame.columns.get_indexer(likely["column"])]
                flagged, hits = flagged + len(likely), hits + int(is_hit.sum())
                repaired += sum(
                    best == str(frame.at[row, column])
                    for row, column, best in likely[is_hit][["row", "column", "best"]].itertuples(index=False)
                )
            lines.append(
                {"rule": name, "rate": rate, "wrong cells": n_wrong, "broken rows": broken,
                 "rows found": of_rows / max(broken, 1), "precision": hits / max(flagged, 1),
                 "recall": hits / max(n_wrong, 1), "best value right": repaired / max(hits, 1)}
            )  # fmt: skip
    return lines


def made(seed: int, quick: bool) -> dict[str, list[dict]]:
    """Cells above 0.5 in clean made tables; precision, recall and calibration where 1 % of the cells are wrong."""
    clean_lines, lines, checked = [], [], []
    for make in MAKERS:
        progress(f"made {make.__name__}")
        for n in (300,) if quick else (100, 300, 1_000):
            p = []
            for k in range(1 if quick else 3):
                rng = np.random.default_rng([seed, k, n, sum(map(ord, make.__name__))])
                frame = make(rng, n)
                p.append(checked_cells(frame, np.full(frame.shape, ""), seed)["p"].to_numpy())
                if n > 100:
                    cells = checked_cells(*plant_errors(frame, 0.01, rng), seed)
                    checked.append(cells.assign(table=make.__name__))
            high = int((np.concatenate(p) > 0.5).sum())
            clean_lines.append({"table": make.__name__, "rows": n, "cells": sum(map(len, p)), "above 0.5": high})
    all_cells = pd.concat(checked, ignore_index=True)
    for name, part in [*all_cells.groupby("table", sort=False), ("all", all_cells)]:
        n_wrong = int(part["wrong"].sum())
        lines.append({"table": name, "wrong cells": n_wrong} | scores(part["p"] > 0.5, part["wrong"], n_wrong))
    by_error = [
        {"error": error, "wrong cells": len(part), "recall": (part["p"] > 0.5).mean(), "mean p_wrong": part["p"].mean()}
        for error, part in ((error, all_cells[all_cells["error"] == error]) for error in ERRORS)
    ]
    titles = ("Made tables, clean", "Made tables, 1 % wrong", "Made tables by error", "Made tables, calibration")
    return dict(zip(titles, (clean_lines, lines, by_error, calibration(all_cells)), strict=True))


def checked_cells(frame: pd.DataFrame, errors: np.ndarray, seed: int) -> pd.DataFrame:
    """The probability of each cell, the kind of its error (n, d), and whether it is wrong."""
    cells = jf.HiddenTreeForest(rules="off", random_state=seed).fit(frame).joint_.check(frame).cells
    error = errors[cells["row"], frame.columns.get_indexer(cells["column"])]
    return pd.DataFrame({"p": cells["p_wrong"], "error": error, "wrong": error != ""})


def learned(name: str, frame: pd.DataFrame, kind: str, seed: int) -> dict:
    """How far answers of joints of the dirty table are from the clean table, with and without ``errors=True``."""
    seen, changed = plant(frame, kind, 0.05, np.random.default_rng([seed, len(kind)])) if kind != "none" else (frame, 0)
    line = {"table": name, "kind": kind, "wrong cells": int(np.sum(changed))}
    for label, errors in (("as it is", False), ("errors=True", True)):
        start = time.process_time()
        joint = jf.fit(seen, errors=errors, budget="fast", random_state=seed)
        seconds, drawn = time.process_time() - start, joint.sample(20_000, random_state=seed)
        numbers = [one for one in frame if pd.api.types.is_numeric_dtype(frame[one])]
        texts = [one for one in frame if one not in numbers and one in drawn]
        means = [abs(drawn[one].mean() - frame[one].mean()) / frame[one].std() for one in numbers]
        spreads = [abs(np.log(drawn[one].std() / frame[one].std())) for one in numbers]
        shares = [
            pd.concat([table[one].astype("str").value_counts(normalize=True) for table in (drawn, frame)], axis=1)
            for one in texts
        ]
        apart = [0.5 * (each.fillna(0.0).iloc[:, 0] - each.fillna(0.0).iloc[:, 1]).abs().sum() for each in shares]
        line |= {f"{label}: means": np.mean(means), f"{label}: log sd": np.mean(spreads)}
        line |= {f"{label}: shares": np.mean(apart) if apart else np.nan, f"{label}: CPU s": seconds}
    return line


def calibration(all_cells: pd.DataFrame) -> list[dict]:
    """Mean probability and share of wrong cells in ten bins."""
    bins = np.minimum((all_cells["p"].to_numpy() * 10).astype(int), 9)
    return [
        {"p_wrong": f"{k / 10:.1f} to {(k + 1) / 10:.1f}", "cells": len(part), "mean p_wrong": part["p"].mean(),
         "share wrong": part["wrong"].mean()}
        for k, part in all_cells.groupby(bins)
    ]  # fmt: skip


def main() -> None:
    parts = ("dirty", "planted", "learned", "clean", "far", "sums", "best", "made")
    options = arguments(__doc__, dirty={"type": Path}, tables={"nargs": "*"}, only={"choices": parts})
    warnings.simplefilter("ignore")
    folder = options.dirty or options.data / "dirty"
    found: dict[str, list[dict]] = {}
    if options.only in (None, "dirty"):
        names = options.tables or sorted(p.name[: -len("_dirty.parquet")] for p in folder.glob("*_dirty.parquet"))
        lines = found["Dirty tables"] = []
        for name in names:
            progress(name)
            lines += dirty(folder, name, options.seed, 500 if options.quick else 10**9)
    if options.only in (None, "far"):
        found["Numbers far from all others: p_wrong"] = far(options.seed)
    if options.only in (None, "sums"):
        found["Cells that break a sum or an order"] = sums(options.seed)
    if options.only in (None, "best"):
        found["Random values beside a detector that knows the joint"] = best(options.data, options.seed)
    if options.only in (None, "made"):
        found |= made(options.seed, options.quick)
    if options.only in (None, "clean"):
        found["Clean tables"] = clean(options.data, options.seed, options.quick)
    if options.only not in ("dirty", "far", "sums", "best", "made"):
        tables = {"penguins": jf.datasets.load_penguins(), "insurance": read(options.data, "insurance")}
        if not options.quick:
            tables["adult"] = read(options.data, "adult_train").sample(2_000, random_state=0)
        tables = {
            name: one.reset_index(drop=True) for name, one in tables.items() if name in (options.tables or tables)
        }
        if options.only in (None, "learned"):
            found["Learned from wrong cells (5 %)"] = [
                learned(name, frame, kind, options.seed) for name, frame in tables.items() for kind in ("none", *KINDS)
            ]
        if options.only in (None, "clean"):
            found["A joint of clean rows (5 %)"] = [
                planted(name, frame, kind, 0.05, options.seed, of_clean=True)[0]
                for name, frame in tables.items()
                for kind in ("random", "swap")
            ]
    if options.only in (None, "planted"):
        lines, checked = [], []
        for name, frame in tables.items():
            for kind, rate in [("none", 0.0)] + [(kind, rate) for kind in KINDS for rate in RATES]:
                if options.quick and rate not in (0.0, 0.05):
                    continue
                progress(f"{name}, {kind}, {rate}")
                line, cells = planted(name, frame, kind, rate, options.seed)
                lines.append(line)
                checked.append(cells)
        found["Planted errors"], found["Calibration"] = lines, calibration(pd.concat(checked))
    finish("check", found, {"seed": options.seed}, options.quick, options.only or "")


if __name__ == "__main__":
    main()
