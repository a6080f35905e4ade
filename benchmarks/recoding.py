"""Measures what discretization loses: a classifier separates rows from the same rows drawn within codes.

Every row keeps its codes, and each cell is drawn again inside its code. The score is 1 if the classifier cannot
separate them. "halves" compares half of the rows with the other half redrawn. "log base" is the mean log-density of
the values of a row within their codes.
"""

from __future__ import annotations

import numpy as np
from _common import arguments, finish, mean_and_error, progress, read, timed, verdict

from jointforest.data.discretization.base_density import draw
from jointforest.data.discretization.discretizer import Scale, codes_of
from jointforest.data.discretization.learn import learn_scale
from jointforest.data.frames import decode, encode
from jointforest.data.infer_schema import infer_schema
from jointforest.data.schema import Schema
from jointforest.evaluation.columns_and_pairs import read_table_cells
from jointforest.evaluation.two_sample_test import told_apart

TABLES = ("adult_train", "synth/beijing", "synth/shoppers")
TARGET = 0.99


def learned(schema: Schema, X: np.ndarray, n_codes: int) -> list[Scale]:
    """The scale of every column."""
    return [learn_scale(column, X[:, j], None, n_codes) for j, column in enumerate(schema.columns)]


def recoded(scales: list[Scale], X: np.ndarray, seed: int) -> tuple[np.ndarray, float]:
    """The rows with all cells drawn anew within their codes, and the mean log base density of a row."""
    random = np.random.default_rng(seed)
    out, log_base = np.full(X.shape, np.nan), 0.0
    for j, scale in enumerate(scales):
        known = ~np.isnan(X[:, j])
        code, log_density = codes_of(scale, X[known, j])
        out[known, j] = draw(scale, code, random.random(len(code)))
        log_base += float(log_density.sum()) / len(X)
    return out, log_base


def main() -> None:
    options = arguments(
        __doc__,
        tables=dict(nargs="*", choices=list(TABLES), default=list(TABLES)),
        codes=dict(type=int, nargs="*", default=[64, 128], help="most bins of a column of numbers"),
        repeats=dict(type=int, default=3, help="draws with other seeds, averaged"),
    )
    table, worst = [], []
    for name in options.tables:
        frame = read(options.data, name)
        frame = frame.iloc[:2000] if options.quick else frame
        schema = infer_schema(frame)
        X = encode(schema, frame)[0]
        real = read_table_cells(schema, frame, "rows")
        for n_codes in options.codes:
            progress(f"{name}, {n_codes} codes")
            columns = list(enumerate(schema.columns))
            seconds, scales = timed(
                lambda X=X, k=n_codes, of=columns: [learn_scale(c, X[:, j], None, k) for j, c in of]
            )
            scores, fresh, gains = [], [], np.zeros(len(schema.columns))
            for repeat in range(options.repeats):
                drawn, log_base = recoded(scales, X, options.seed + repeat)
                drawn = read_table_cells(schema, decode(schema, drawn), "recoded")
                found = told_apart(real, drawn, options.seed + repeat)
                scores.append(found.score)
                order = np.random.default_rng(options.seed + repeat).permutation(len(X))
                one, other = order[: len(X) // 2], order[len(X) // 2 :]
                fresh.append(told_apart(real.take(one), drawn.take(other), options.seed + repeat).score)
                gains += [found.columns[column] for column in schema.names]
            score, error = mean_and_error(scores)
            table.append(
                {"table": name, "rows": len(X), "codes": n_codes, "score": score, "error": error}
                | verdict(score, TARGET, at_most=False)
                | {
                    "halves": mean_and_error(fresh)[0],
                    "log base": log_base,
                    "segments": sum(len(scale.lo) for scale in scales),
                    "learn s": seconds,
                }
            )
            for j in np.argsort(-gains)[:3].tolist():
                share = float(gains[j]) / options.repeats
                worst.append({"table": name, "codes": n_codes, "column": schema.names[j], "share of gain": share})
    settings = {"seed": options.seed, "repeats": options.repeats}
    finish(
        "recoding",
        {"Two-sample test of rows drawn again within their codes": table, "Columns that separate them": worst},
        settings,
        options.quick,
    )


if __name__ == "__main__":
    main()
