"""Files with titles, comments, totals, signs and forms of numbers through the commands: answers have their form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import jointforest as jf

from .test_cli import run

__all__ = ["run"]

RNG = np.random.default_rng(0)
N = 120
K = RNG.integers(0, 3, N)
ROWS = [f"{'ABC'[k]},{k + i % 4},{10.0 * k + i % 7:.1f}" for i, k in enumerate(K.tolist())]
TEXT = "\n".join(["shop,n,x", *ROWS]) + "\n"
FIT = ("--learner", "hidden", "--trees", 1, "--seed", 0)


def test_inspect_shows_files_with_titles_and_fit_names_the_option(run: Any, tmp_path: Path) -> None:
    for text, option in (
        (f"Sales\n\nAll shops\n{TEXT}", "--skip 3"),
        (f"Sales,,\n,,\n{TEXT}", "--skip 2"),
        (f"# by a tool\n# in euros\n{TEXT}", "--comment '#'"),
        (f"# by a tool\nSales\n{TEXT}", "--comment '#'"),
    ):
        (tmp_path / "t.csv").write_text(text)
        refused = run("fit", tmp_path / "t.csv", "-o", tmp_path / "m.joint", *FIT)
        assert refused.code == 1 and f"say {option}" in refused.err
        looked = run("inspect", tmp_path / "t.csv")
        assert looked.code == 0 and "120 rows, 3 columns in the model" in looked.out
        assert f"is shown with {option}, which fit needs as well" in looked.err


@pytest.mark.parametrize(
    ("text", "words", "encoding"),
    [
        (f"Sales\n\nAll shops\n{TEXT}", ("--skip", 3), "utf-8"),
        (f"Sales,2024,EUR\n,,\n{TEXT}", ("--skip", 2), "utf-8"),
        (f"# by a tool\n{TEXT}# the end\n", ("--comment", "#"), "utf-8"),
        (TEXT.replace(",", "!"), ("--sep", "!"), "utf-8"),
        ("Sales\n" + TEXT.replace(",", "!"), ("--sep", "!", "--skip", 1), "utf-8"),
        (TEXT.removeprefix("shop,n,x\n"), ("--header", "none"), "utf-8"),
        ("Sales\n" + TEXT.removeprefix("shop,n,x\n"), ("--header", "none", "--skip", 1), "utf-8"),
        (TEXT.replace("A,", "Bär,"), ("--encoding", "cp437"), "cp437"),
        (TEXT.replace(",0,", ",-,").replace("B,", "-,"), ("--only-na", "--na", "-"), "utf-8"),
    ],
)
def test_what_was_said_at_fit_holds_for_later_commands(
    run: Any, tmp_path: Path, text: str, words: tuple[Any, ...], encoding: str
) -> None:
    table, model, out = (tmp_path / name for name in ("t.csv", "m.joint", "out.csv"))
    table.write_bytes(text.encode(encoding))
    done = run("fit", table, "-o", model, *FIT, *words)
    assert done.code == 0 and "120 rows, 3 columns" in done.err
    expected = run("score", model, table, *words).out
    again = run("score", model, table)
    assert again.code == 0 and again.out == expected
    assert run("impute", model, table, "-o", out).code == 0
    after = run("score", model, out)  # which has no title, and is UTF-8
    assert after.code == 0 and len(after.out.splitlines()) == 121 - ("--header" in words)
    if "--na" not in words:
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        assert after.out == expected and out.read_text().splitlines() == lines[-len(after.out.splitlines()) :]


def test_names_blank_rows_and_totals_come_back(run: Any, tmp_path: Path) -> None:
    body = [row.replace(",0,", ",,") for row in ROWS]
    last = ["Total,150,1200.5", ",,", ",,"]
    table, model = tmp_path / "t.csv", tmp_path / "m.joint"
    table.write_text("\n".join([",n,", *body, *last]) + "\n")
    assert run("fit", table, "-o", model, *FIT).code == 0
    done = run("impute", model, table)
    lines = done.out.splitlines()
    assert lines[0] == ",n," and lines[-3:] == last and len(lines) == 124
    assert "the last 3 rows stay as they are: totals and blank" in done.err
    assert all(line == row if ",," not in row else ",," not in line for line, row in zip(lines[1:], body, strict=False))
    drawn = run("impute", model, table, "--method", "sample", "--draws", 2, "--seed", 0).out.splitlines()
    assert drawn[0] == "draw,,n," and drawn[123] == "1,,," and drawn[121] == "1,Total,150,1200.5" == "1," + last[0]
    assert run("impute", model, table, "-o", tmp_path / "t.parquet").code == 0
    filled = pd.read_parquet(tmp_path / "t.parquet")
    assert len(filled) == 123 and filled.iloc[-2:].isna().all(axis=None) and filled.iloc[:-2].notna().all(axis=None)


def test_predictions_have_the_form_of_file_and_column(run: Any, tmp_path: Path) -> None:
    when = pd.Timestamp("2024-01-13 08:00") + pd.to_timedelta(1440 * RNG.integers(0, 90, N) + 30 * K, unit="min")
    amount = 1000.0 * K + RNG.uniform(900, 999, N)
    european = [f"{x:,.2f}".translate(str.maketrans(",.", ".,")) for x in amount.tolist()]
    frame = pd.DataFrame(
        {
            "shop": np.array(list("ABC"))[K],
            "amount": european,
            "price": [f"{text} €" for text in european],
            "day": when.strftime("%d.%m.%Y"),
            "when": when.strftime("%Y-%m-%d %H:%M"),
            "n": K + RNG.integers(0, 9, N),
            "open": np.where(K == 1, "TRUE", "FALSE"),
            "member": np.where(K == 2, "x", ""),
            "change": [f"{k - 1:+d}" if k != 1 else "0" for k in K.tolist()],
        }
    )
    table, model = tmp_path / "t.csv", tmp_path / "m.joint"
    frame.to_csv(table, sep=";", index=False)
    assert run("fit", table, "-o", model, *FIT, "--rules", "off").code == 0
    joint = jf.load(model)
    rows = pd.read_csv(table, sep=";", parse_dates=["when"])
    number = r"\d{0,3}\.?\d{3},\d\d"
    for name, pattern in (
        ("amount", number),
        ("price", number + " €"),
        ("day", r"\d\d\.\d\d\.2024"),
        ("when", r"2024-\d\d-\d\d \d\d:\d\d"),
        ("n", r"\d+(,\d+)?"),
        ("open", "TRUE|FALSE"),
        ("member", 'x|""'),
    ):
        lines = run("predict", model, table, "--target", name).out.splitlines()
        assert lines[0] == name and len(lines) == N + 1
        assert pd.Series(lines[1:]).str.fullmatch(pattern).all(), lines[1:5]
        found, expected = lines[1:], joint.predict(rows, name)
        if name in ("amount", "price", "n"):
            values = [float(text.removesuffix(" €").replace(".", "").replace(",", ".")) for text in found]
            np.testing.assert_allclose(values, expected, atol=0.0051 if name != "n" else 1e-9)
        elif name in ("day", "when"):
            moments = pd.to_datetime(found, dayfirst=name == "day", format="mixed")
            most = pd.Timedelta(hours=12) if name == "day" else pd.Timedelta(seconds=30)
            assert (np.abs(moments - pd.DatetimeIndex(expected)) <= most).all()
    scores = run("score", model, table).out.splitlines()[1:]
    np.testing.assert_allclose([float(text.replace(",", ".")) for text in scores], joint.log_density(rows))
    shares = run("predict", model, table, "--target", "shop", "--proba").out.splitlines()
    assert shares[0] == "shop=A;shop=B;shop=C" and "," in shares[1] and "." not in shares[1]
    assert run("fit", table, "-o", model, "--target", "amount", "--budget", "fast", "--seed", 0).code == 0
    lines = run("predict", model, table, "--target", "amount").out.splitlines()
    assert pd.Series(lines[1:]).str.fullmatch(number).all(), lines[1:5]


def test_numbers_have_points_where_the_file_has_some(run: Any, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TEXT.replace(",", ";"))
    assert run("fit", tmp_path / "t.csv", "-o", tmp_path / "m.joint", *FIT).code == 0
    assert "," not in run("score", tmp_path / "m.joint", tmp_path / "t.csv").out


def test_drawn_numbers_have_signs_and_powers(run: Any, tmp_path: Path) -> None:
    k = RNG.integers(-4, 5, N)
    frame = pd.DataFrame(
        {
            "goals": [f"{x:+d}" if x else "0" for x in k.tolist()],
            "mass": [f"{x:.2e}" for x in np.exp(k + RNG.normal(12, 1, N)).tolist()],
            "change": [f"{x / 10:+.1f}%" if x else "0.0%" for x in (7 * k).tolist()],
        }
    )
    table, model = tmp_path / "t.csv", tmp_path / "m.joint"
    frame.to_csv(table, index=False)
    assert run("fit", table, "-o", model, *FIT).code == 0
    for line in run("sample", model, "-n", 50, "--seed", 0).out.splitlines()[1:]:
        goals, mass, change = line.split(",")
        assert goals == (f"{int(goals):+d}" if int(goals) else "0") and mass == f"{float(mass):.2e}"
        value = float(change.removesuffix("%"))
        assert change == (f"{value:+.1f}%" if value else "0.0%")


def test_errors_of_infinite_numbers_say_what_to_do(run: Any, tmp_path: Path) -> None:
    table, model = tmp_path / "t.csv", tmp_path / "m.joint"
    table.write_text(TEXT + "A,1,inf\nB,2,-Infinity\n")
    refused = run("fit", table, "-o", model, *FIT)
    assert refused.code == 1 and "column 'x': 2 infinite values" in refused.err and "--na inf" in refused.err
    assert run("fit", table, "-o", model, *FIT, "--na", "inf").code == 0
    assert "warning" not in run("score", model, table).err


def test_questions_about_durations_are_answered_as_durations(run: Any, tmp_path: Path) -> None:
    wait = pd.to_timedelta(60 * K + RNG.integers(0, 9, N), unit="min")
    pd.DataFrame({"shop": np.array(list("ABC"))[K], "wait": wait}).to_parquet(tmp_path / "t.parquet")
    assert run("fit", tmp_path / "t.parquet", "-o", tmp_path / "m.joint", *FIT).code == 0
    mean = run("query", tmp_path / "m.joint", "E(wait | shop = C)").out
    assert mean.startswith("0 days 02:0") and float(jf.load(tmp_path / "m.joint").query("E(wait)")) > 0
    likely = run("query", tmp_path / "m.joint", "P(wait >= '1 h 59 min' | shop = C)").out
    assert 0.9 < float(likely.split()[0]) < 1.0
    asked = json.loads(run("query", tmp_path / "m.joint", "E(wait)", "--json").out)
    assert asked["answer"] == jf.load(tmp_path / "m.joint").query("E(wait)")
