"""The command line, as a user calls it: tables in, tables out, exit codes, one-line errors, pipes."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

import jointforest as jf
from jointforest import cli
from jointforest.data import table_files as files

from .quick_predictors import quick

__all__ = ["quick"]


class Result(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


class Pipe(io.TextIOWrapper):
    """Standard output or input in memory."""

    def __init__(self, data: bytes = b"") -> None:
        super().__init__(io.BytesIO(data), encoding="utf-8", write_through=True)

    def text(self) -> str:
        self.flush()
        return self.buffer.getvalue().decode()


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> object:
    """Run the command line in this process."""

    def call(*words: object, stdin: bytes = b"") -> Result:
        out, err = Pipe(), Pipe()
        monkeypatch.setattr(sys, "argv", ["jointforest", *map(str, words)])
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)
        monkeypatch.setattr(sys, "stdin", Pipe(stdin))
        with warnings.catch_warnings(), pytest.raises(SystemExit) as stop:
            cli.main()
        return Result(int(stop.value.code), out.text(), err.text())

    return call


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table as CSV and Parquet, and the model learned from it."""
    folder = tmp_path_factory.mktemp("cli")
    table = jf.datasets.load_penguins("pyarrow")
    files.write_table(table, str(folder / "penguins.csv"))
    files.write_table(table, str(folder / "penguins.parquet"))
    jf.AdversarialForest(n_estimators=3, random_state=0).fit(table).joint_.save(folder / "p.joint")
    return folder


def test_fit_then_info(run: object, home: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.joint"
    kinds = ("--kinds", "body_mass_g=continuous", "--kinds", "flipper_length_mm=continuous")
    done = run(
        "fit",
        home / "penguins.csv",
        "-o",
        model,
        "--learner",
        "adversarial",
        "--trees",
        2,
        "--min-leaf",
        20,
        "--seed",
        1,
        *kinds,
    )
    assert (done.code, done.out) == (0, "")
    assert "344 rows, 7 columns: 2 trees" in done.err
    about = json.loads(run("info", model, "--json").out)
    assert about["trees"] == 2
    assert {c["name"]: c["kind"] for c in about["columns"]}["body_mass_g"] == "continuous"
    shown = run("info", model).out
    assert "3 levels: Adelie, Chinstrap, Gentoo" in shown and shown.startswith("2 trees")
    again = tmp_path / "again.joint"
    run(
        "fit",
        home / "penguins.csv",
        "-o",
        again,
        "--learner",
        "adversarial",
        "--trees",
        2,
        "--min-leaf",
        20,
        "--seed",
        1,
        "--jobs",
        1,
        *kinds,
    )
    assert model.read_bytes() == again.read_bytes()


def test_fit_chooses_a_learner(run: object, tmp_path: Path) -> None:
    table = jf.datasets.load_penguins("pyarrow").select(["species", "body_mass_g"])
    files.write_table(table, str(tmp_path / "t.parquet"))
    words = ("fit", tmp_path / "t.parquet", "-o", tmp_path / "m.joint", "--seed", 0)
    done = run(*words, "--budget", "fast")
    assert (done.code, done.out) == (0, "")
    joint = jf.fit(table, budget="fast", random_state=0)
    assert joint.fitted_by.in_words in done.err
    assert np.allclose(jf.load(tmp_path / "m.joint").log_density(table), joint.log_density(table), atol=1e-3)
    done = run(*words, "--budget", "1e-6")
    assert done.code == 0 and "was too short" in done.err


def test_fit_by_hidden_trees(run: object, home: Path, tmp_path: Path) -> None:
    done = run("fit", home / "penguins.parquet", "-o", tmp_path / "m.joint", "--learner", "hidden", "--seed", 0)
    assert (done.code, done.out) == (0, "")
    table = jf.datasets.load_penguins("pyarrow")
    joint = jf.HiddenTreeForest(random_state=0).fit(table).joint_
    assert np.allclose(jf.load(tmp_path / "m.joint").log_density(table), joint.log_density(table), atol=1e-3)


def test_fit_enforces_rules(run: object, tmp_path: Path) -> None:
    k = np.arange(600)
    table = pd.DataFrame({"net": k * 7 % 31, "tax": k % 5, "shop": k % 12, "town": k % 4})
    table.assign(total=table["net"] + table["tax"]).to_csv(tmp_path / "t.csv", index=False)
    words = ("fit", tmp_path / "t.csv", "-o", tmp_path / "m.joint", "--learner", "hidden", "--seed", 0)
    done = run(*words, "--rule", "total = net + tax", "--rules", "off")
    assert done.code == 0
    rules = {str(rule): rule.is_enforced for rule in jf.load(tmp_path / "m.joint").rules}
    assert rules.pop("total = net + tax") and not any(rules.values())
    rows = pd.read_csv(io.StringIO(run("sample", tmp_path / "m.joint", "-n", 500, "--seed", 0).out))
    assert (rows["total"] == rows["net"] + rows["tax"]).all()
    done = run("score", tmp_path / "m.joint", tmp_path / "t.csv")
    assert np.isfinite(pd.read_csv(io.StringIO(done.out)).iloc[:, -1]).all()
    for more, is_enforced in (((), False), (("--rules", "all"), True)):
        assert run(*words, "--objective", "likelihood", *more).code == 0
        rules = {str(rule): rule.is_enforced for rule in jf.load(tmp_path / "m.joint").rules}
        assert len(rules) > 1 and any(rules.values()) == is_enforced
    done = run(*words, "--rule", "total = net")
    assert done.code == 1 and "rows contradict it" in done.err
    done = run(*words, "--rule", "total = = net")
    assert done.code != 0 and "Traceback" not in done.err


WRONG_RULES = {
    "nett = net + tax": ("no column 'nett'", "did you mean 'net'"),
    "total = net": ("net = 7, expected total = 7", "leave out the rule"),
    "total => net": ("there is no comparison '=>'", "write a >= b"),
    "total = net * tax": ("found 'tax'", "2 * net + tax"),
    "total = net + my col": ("found 'col'", "backticks", "quote the rule"),
    "total = net + tax; shop -> town": ("';' does not join rules", "one rule"),
    "total = net + tax, shop -> town": ("expected one rule, found ','", "one rule"),
    "": ("the rule is empty", "rules are: start <= end"),
    "day <= net": ("column 'net' is integer", "expected dates as in 'day'"),
    "shop <= town": ("column 'shop' is categorical", "expected numbers or dates", "'->'"),
    "town = shop + 1": ("column 'town' is categorical", "expected numbers or dates", "'->'"),
    "net < total": ("net = 0, total = 0", "expected net < total", "'net <= total' holds in all rows"),
    "town -> shop": ("town = t0, shop = s0", "expected shop = s8 as in other rows", "'shop -> town' holds"),
    "net missing iff shop = 's1'": ("shop = s1", "expected net to be missing"),
    "net missing iff shop = 'x'": ("'x' is not one of its 12 levels", "known: 's0'"),
    "combinations(shop, nowhere)": ("no column 'nowhere'", "known: 'net'"),
}


@pytest.mark.parametrize("rule", WRONG_RULES)
def test_wrong_rules_name_what_is_wrong_and_what_to_do(run: object, tmp_path: Path, rule: str) -> None:
    k = np.arange(600)
    table = pd.DataFrame({"net": k * 7 % 31, "tax": k % 5, "shop": [f"s{i % 12}" for i in k]})
    table = table.assign(town=[f"t{i % 4}" for i in k], total=table["net"] + table["tax"])
    table["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(k % 90, unit="D")
    table.to_csv(tmp_path / "t.csv", index=False)
    done = run("fit", tmp_path / "t.csv", "-o", tmp_path / "m.joint", "--learner", "hidden", "--rule", rule)
    assert done.code == 1 and done.err.startswith("error: --rule: ")
    for text in WRONG_RULES[rule]:
        assert text in done.err.replace(";", ",") or text in done.err


def test_two_rules_for_one_column_are_refused(run: object, tmp_path: Path) -> None:
    k = np.arange(600)
    table = pd.DataFrame({"net": k * 7 % 31, "tax": k % 5})
    table.assign(total=table["net"] + table["tax"]).to_csv(tmp_path / "t.csv", index=False)
    words = ("fit", tmp_path / "t.csv", "-o", tmp_path / "m.joint", "--learner", "hidden")
    done = run(*words, "--rule", "total = net + tax", "--rule", "combinations(tax, total)")
    assert (
        done.code == 1
        and "--rule: combinations(tax, total): it cannot be enforced, because its columns have 155 combinations"
        in done.err
    )


def test_rules_are_declared_when_a_joint_is_learned(run: object, home: Path, tmp_path: Path) -> None:
    for words in (("sample",), ("info",), ("impute",)):
        done = run(*words, home / "penguins.joint", "--rule", "bill_depth_mm < bill_length_mm")
        assert done.code == 2 and "jointforest fit TABLE --rule TEXT" in done.err
    done = run("fit", home / "penguins.joint", "-o", tmp_path / "m.joint", "--rule", "bill_depth_mm < bill_length_mm")
    assert done.code == 1 and "got a learned joint" in done.err


@pytest.mark.parametrize(
    "more", [("--out-of-core",), ("--learner", "adversarial"), ("--target", "sex"), ("--group", "island")]
)
def test_rules_go_with_hidden_trees_in_memory(run: object, home: Path, tmp_path: Path, more: tuple[str, ...]) -> None:
    for words in (("--rule", "bill_depth_mm < bill_length_mm"), ("--rules", "off")):
        done = run("fit", home / "penguins.parquet", "-o", tmp_path / "m.joint", *words, *more)
        assert done.code == 2 and "leave out" in done.err and words[0] in done.err


@pytest.mark.parametrize("more", [("--out-of-core",), ("--learner", "hidden"), ("--target", "sex"), ("--group", "sex")])
def test_errors_go_with_a_joint_of_a_table(run: object, home: Path, tmp_path: Path, more: tuple[str, ...]) -> None:
    done = run("fit", home / "penguins.parquet", "-o", tmp_path / "m.joint", "--errors", *more)
    assert done.code == 2 and "leave out" in done.err and "--errors" in done.err


def test_errors_are_left_out_when_learning(run: object, tmp_path: Path) -> None:
    penguins = jf.datasets.load_penguins()[["species", "body_mass_g", "flipper_length_mm"]]
    penguins.loc[4, "body_mass_g"] *= 10
    penguins.to_csv(tmp_path / "dirty.csv", index=False)
    words = ("fit", tmp_path / "dirty.csv", "--budget", "fast", "--seed", 0)
    assert run(*words, "--errors", "-o", tmp_path / "m.joint").code == 0
    assert jf.load(tmp_path / "m.joint").probability("body_mass_g > 20000") < 1e-3


@pytest.mark.parametrize("more", [("--out-of-core",), ("--learner", "adversarial"), ("--target", "sex")])
def test_an_objective_goes_with_hidden_trees(run: object, home: Path, tmp_path: Path, more: tuple[str, ...]) -> None:
    done = run("fit", home / "penguins.parquet", "-o", tmp_path / "m.joint", "--objective", "likelihood", *more)
    assert done.code == 2 and "leave out" in done.err and "--objective" in done.err


def test_an_objective_is_that_of_python(run: object, home: Path, tmp_path: Path) -> None:
    words = ("fit", home / "penguins.parquet", "-o", tmp_path / "m.joint", "--objective", "likelihood", "--seed", 0)
    assert run(*words, "--learner", "hidden").code == 0
    table = jf.datasets.load_penguins("pyarrow")
    joint = jf.HiddenTreeForest(objective="likelihood", random_state=0).fit(table).joint_
    assert np.allclose(jf.load(tmp_path / "m.joint").log_density(table), joint.log_density(table), atol=1e-3)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("target", ["island", "flipper_length_mm"])
def test_fit_for_a_target(run: object, home: Path, tmp_path: Path, target: str) -> None:
    """The file holds the joint, and a predictor of the target, which `predict` asks."""
    table = jf.datasets.load_penguins("pandas").dropna(subset=[target]).reset_index(drop=True)
    table.to_csv(tmp_path / "known.csv", index=False)
    model = tmp_path / "m.joint"
    done = run("fit", tmp_path / "known.csv", "-o", model, "--target", target, "--seed", 1)
    assert done.code == 0 and f"{len(table)} rows, 7 columns: " in done.err and "validation rows" in done.err
    joint, predictor = jf.load(model), jf.load_predictor(model)
    assert joint.columns[-1] == target == predictor.joint_.columns[-1]
    X, y = table.drop(columns=target), table[target]
    kind = jf.JointClassifier if target == "island" else jf.JointRegressor
    expected = kind(random_state=1).fit(X, y).predict(X)
    assert (predictor.predict(X) == expected).all()
    done = run("predict", model, tmp_path / "known.csv", "--target", target)
    found = pd.read_csv(io.StringIO(done.out))[target]
    assert done.code == 0 and np.all(found == expected if target == "island" else np.isclose(found, expected))
    other = pd.read_csv(io.StringIO(run("predict", model, tmp_path / "known.csv", "--target", "sex").out))["sex"]
    assert other.fillna("").tolist() == pd.Series(joint.predict(table, "sex")).fillna("").tolist()
    done = run("predict", model, tmp_path / "known.csv", "--target", target, "--proba")
    if target == "island":
        np.testing.assert_allclose(pd.read_csv(io.StringIO(done.out)), predictor.predict_proba(X))
    else:
        assert done.code == 1 and "it has no levels" in done.err
    if target != "island":
        again = run("fit", home / "penguins.csv", "-o", tmp_path / "all.joint", "--target", target, "--seed", 1)
        assert again.code == 0 and f"2 of 344 rows are left out: {target} is missing there" in again.err
        assert (jf.load_predictor(tmp_path / "all.joint").predict(X) == expected).all()
    assert run("query", model, f"E(body_mass_g | {target} = 190)" if target[0] == "f" else "E(body_mass_g)").code == 0
    done = run("fit", tmp_path / "known.csv", "-o", tmp_path / "n.joint", "--target", "iland")
    assert done.code == 1 and "'iland'" in done.err and "island" in done.err


def test_fidelity(run: object, home: Path, tmp_path: Path) -> None:
    model, table = home / "p.joint", home / "penguins.parquet"
    done = run("fidelity", model, home / "penguins.csv", "--holdout", table, "--seed", 1, "-o", tmp_path / "f.csv")
    assert (done.code, done.err) == (0, "")
    expected = jf.fidelity(jf.load(model), pa.parquet.read_table(table), pa.parquet.read_table(table), random_state=1)
    assert done.out == f"{expected}\n"
    written = pd.read_csv(tmp_path / "f.csv")
    assert written["value"].tolist() == expected.to_frame()["value"].to_pylist()
    assert run("fidelity", model, table, "--seed", 1).out != done.out
    failed = run("fidelity", model, table, "--holdout", tmp_path / "none.csv")
    assert failed.code == 1 and "none.csv: No such file" in failed.err


def test_sample(run: object, home: Path, tmp_path: Path) -> None:
    out = tmp_path / "s.parquet"
    assert run("sample", home / "p.joint", "-n", 50, "--given", "species = Gentoo", "--seed", 3, "-o", out) == (
        0,
        "",
        "",
    )
    drawn = pa.parquet.read_table(out)
    assert drawn.num_rows == 50 and set(drawn["species"].to_pylist()) == {"Gentoo"}
    learned = pa.parquet.read_table(home / "penguins.parquet")
    assert drawn.schema.types == learned.schema.types
    expected = jf.load(home / "p.joint").given(species="Gentoo").sample(50, random_state=3)
    assert drawn.equals(expected)
    piped = pd.read_csv(io.StringIO(run("sample", home / "p.joint", "-n", 5, "--missing").out))
    assert piped.shape == (5, 7)
    where = "bill_length_mm > 2.5 * bill_depth_mm, island in {Dream, Biscoe}"
    assert run("sample", home / "p.joint", "-n", 30, "--where", where, "--seed", 3, "-o", out).code == 0
    assert pa.parquet.read_table(out).equals(jf.load(home / "p.joint").sample(30, random_state=3, where=where))


def test_score_of_csv_parquet_and_a_pipe(run: object, home: Path, tmp_path: Path) -> None:
    expected = jf.load(home / "p.joint").log_density(jf.datasets.load_penguins("pyarrow"))
    for table in ("penguins.csv", "penguins.parquet"):
        done = run("score", home / "p.joint", home / table, "-o", tmp_path / "d.csv")
        assert done.code == 0 and done.err == f"mean log-density {expected.mean():.6g} over 344 rows\n"
        assert np.allclose(pd.read_csv(tmp_path / "d.csv")["log_density"], expected, rtol=1e-12)
    piped = run("score", home / "p.joint", "-", stdin=(home / "penguins.csv").read_bytes())
    assert np.allclose(pd.read_csv(io.StringIO(piped.out))["log_density"], expected, rtol=1e-12)
    raw = (home / "penguins.parquet").read_bytes()
    piped = run("score", home / "p.joint", "-", "--format", "parquet", "-o", tmp_path / "d.csv", stdin=raw)
    assert piped.code == 0


def test_spellings_of_missing(run: object, home: Path) -> None:
    lines = ["species,body_mass_g,sex", "Gentoo,5000,NA", "Gentoo,5000,?", "Gentoo,5000,", "Gentoo,5000,NaN"]
    table = "\n".join(lines).encode()
    scores = run("score", home / "p.joint", "-", stdin=table).out.split()[1:]
    assert len(scores) == 4 and len(set(scores)) == 1
    other = run("score", home / "p.joint", "-", "--na", "NA", "--only-na", stdin=table)
    assert "warning: levels never seen" in other.err and "'?'" in other.err and "say so with --na" in other.err


def test_impute(run: object, home: Path, tmp_path: Path) -> None:
    table = b"sex,species,body_mass_g\n,Gentoo,5000\nMALE,,\n"
    filled = pd.read_csv(io.StringIO(run("impute", home / "p.joint", "-", stdin=table).out))
    assert not filled.isna().any(axis=None) and filled.shape == (2, 7)
    assert (
        filled.loc[0, "species"] == "Gentoo" and filled.loc[0, "body_mass_g"] == 5000 and filled.loc[1, "sex"] == "MALE"
    )
    words = ("impute", home / "p.joint", "-", "--method", "sample", "--seed", 4)
    assert run(*words, stdin=table) == run(*words, stdin=table)
    drawn = pd.read_csv(io.StringIO(run(*words, "--draws", 3, stdin=table).out))
    assert drawn["draw"].tolist() == [1, 1, 2, 2, 3, 3] and drawn.loc[::2, "species"].eq("Gentoo").all()
    assert run("impute", home / "p.joint", "-", "--draws", 3).code == 2


def test_ranges_are_filled_if_that_is_asked(run: object, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, end = rng.exponential(5.0, 200), rng.exponential(6.0, 200)
    frame = pd.DataFrame({"x": [f"{v:.2f}" if v >= 2 else "<2.00" for v in x], "months": np.minimum(x, end).round(1)})
    frame["died"] = x <= end
    learner = jf.HiddenTreeForest(n_states=4, kinds={"months": jf.censored(event="died")}, random_state=0)
    learner.fit(frame).joint_.save(tmp_path / "m.joint")
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = ("impute", tmp_path / "m.joint", tmp_path / "t.csv", "--method", "sample", "--seed", 1)
    assert run(*words).out.split() == (tmp_path / "t.csv").read_text().split()
    filled = pd.read_csv(io.StringIO(run(*words, "--ranges", "fill").out))
    low = frame.x == "<2.00"
    assert (filled.x[low] <= 2).all() and (filled.x[~low] == frame.x[~low].astype(float)).all()
    assert filled.died.isna().all() and (filled.months >= frame.months).all()
    assert (filled.months == frame.months).sum() == frame.died.sum()


@pytest.mark.parametrize("how", [(), ("--out-of-core",)])
def test_censored_columns_are_named(run: object, tmp_path: Path, how: tuple[str, ...]) -> None:
    rng = np.random.default_rng(0)
    time, end = rng.exponential(10.0, 600), rng.uniform(0.0, 20.0, 600)
    frame = pd.DataFrame({"months": np.minimum(time, end).round(1), "died": time <= end, "x": rng.normal(size=600)})
    frame["dose"], frame["is_low"] = np.maximum(x := rng.exponential(1.0, 600).round(2), 0.5), (x < 0.5).astype(int)
    frame.to_csv(tmp_path / "t.csv", index=False)
    kinds = {"months": jf.censored(event="died"), "dose": jf.censored(below="is_low")}
    words = ("fit", tmp_path / "t.csv", "--kinds", "months=event:died", "--kinds", "dose=below:is_low", *how)
    done = run(*words, "--learner", "hidden", "--seed", 0, "-o", tmp_path / "m.joint")
    assert done.code == 0 and "ranges, by column 'died'" in done.err and "ranges, by column 'is_low'" in done.err
    joint = jf.load(tmp_path / "m.joint")
    learner = jf.HiddenTreeForest(kinds=kinds, random_state=0)
    known = (learner.fit_batches(frame) if how else learner.fit(frame)).joint_
    for event in ("months > 5", "dose < 0.5"):
        assert joint.probability(event) == pytest.approx(known.probability(event), abs=0.01)
        assert run("query", tmp_path / "m.joint", f"P({event})").out.split()[0] == f"{joint.probability(event):.6g}"
    drawn = pd.read_csv(io.StringIO(run("sample", tmp_path / "m.joint", "-n", 9, "--seed", 1).out))
    assert drawn[["months", "dose"]].notna().all(axis=None) and drawn[["died", "is_low"]].isna().all(axis=None)
    assert "not learned beyond" in run("query", tmp_path / "m.joint", "P(months > 40)").err


def test_a_predictor_of_censored_numbers_is_refused(run: object, tmp_path: Path) -> None:
    pd.DataFrame({"months": range(1, 31), "died": [0, 1] * 15, "x": range(30)}).to_csv(tmp_path / "t.csv", index=False)
    words = ("fit", tmp_path / "t.csv", "--kinds", "months=event:died", "-o", tmp_path / "m.joint")
    done = run(*words, "--target", "months")
    assert done.code == 2 and "leave out --target, and ask the joint" in done.err
    done = run("fit", tmp_path / "t.csv", "--kinds", "months=censored:died", "-o", tmp_path / "m.joint")
    assert done.code == 1 and "on the command line event:COLUMN or below:COLUMN" in done.err


def test_imputed_tables_keep_the_text_of_known_cells(run: object, tmp_path: Path) -> None:
    rows = ["00007;1,50;True;Zoë", "01234;;False;", "NA;2,25;;b", "00007;1,00;True;None"]
    (tmp_path / "t.csv").write_bytes("\n".join(["zip;price;ok;name", *rows * 8]).encode("latin-1"))
    how = ("--sep", ";", "--decimal", ",", "--encoding", "latin-1", "--na", "None")
    words = ("fit", tmp_path / "t.csv", "-o", tmp_path / "m.joint", "--kinds", "zip=categorical", *how)
    done = run(*words, "--learner", "adversarial", "--trees", 2, "--seed", 0)
    assert done.code == 0 and "warning" not in done.err
    joint = jf.load(tmp_path / "m.joint")
    assert joint.levels("zip") == ("00007", "01234") and joint.schema["price"].kind == "rounded"
    words = ("impute", tmp_path / "m.joint", tmp_path / "t.csv", *how)
    for more, n in (((), 1), (("--method", "sample", "--seed", 1), 1), (("--method", "sample", "--draws", 2), 2)):
        lines = [line.split(";") for line in run(*words, *more).out.splitlines()]
        number = lines[0][0] == "draw"
        assert lines[0][number:] == ["zip", "price", "ok", "name"] and len(lines) == 1 + 32 * n
        for filled, given in zip(lines[1:], rows * 8 * n, strict=True):
            for cell, known in zip(filled[number:], given.split(";"), strict=True):
                assert cell == known if known not in ("", "NA", "None") else cell
        assert {line[number + 2] for line in lines[1:]} == {"True", "False"}
    done = run(*words, "-o", tmp_path / "filled.parquet")
    filled = pa.parquet.read_table(tmp_path / "filled.parquet")
    assert done.code == 0 and filled["price"].to_pylist()[0] == 1.5 and filled["ok"].to_pylist()[0] is True


def test_a_table_may_be_replaced_by_its_own_imputation(run: object, home: Path, tmp_path: Path) -> None:
    table = tmp_path / "t.parquet"
    table.write_bytes((home / "penguins.parquet").read_bytes())
    before = pa.parquet.read_table(table)
    assert run("impute", home / "p.joint", table, "-o", table).code == 0
    after = pa.parquet.read_table(table)
    assert after.num_rows == before.num_rows and sum(column.null_count for column in after.columns) == 0
    assert after.schema.types == before.schema.types
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]


def test_query(run: object, home: Path) -> None:
    joint = jf.load(home / "p.joint")
    text = "P(species | body_mass_g > 5000, sex = MALE)"
    answer = json.loads(run("query", home / "p.joint", text, "--json").out)
    n_rows = joint.given("body_mass_g > 5000, sex = MALE").n_rows
    assert answer == {"query": text, "answer": joint.query(text), "n_rows": pytest.approx(n_rows)}
    lines = run("query", home / "p.joint", text).out.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["Adelie", "Chinstrap", "Gentoo"]
    assert lines[3] == f"(about {n_rows:.0f} of 344 rows)"
    assert float(run("query", home / "p.joint", "E(body_mass_g)").out) == pytest.approx(
        joint.query("E(body_mass_g)"), rel=1e-5
    )
    assert run("query", home / "p.joint", "Mode(species | island = Torgersen)").out.startswith("Adelie (about ")
    answer = json.loads(run("query", home / "p.joint", "Q(body_mass_g, 0.1, 0.9)", "--json").out)["answer"]
    assert list(answer) == ["0.1", "0.9"]


def test_query_warns_without_support(run: object, home: Path) -> None:
    done = run("query", home / "p.joint", "P(species | body_mass_g > 50000)")
    assert (
        done.code == 0
        and done.err.startswith("warning: the evidence is unlike anything learned")
        and done.err.count("\n") == 1
        and "'jointforest score'" in done.err
        and ".supported" not in done.err
    )


def test_predict(run: object, home: Path) -> None:
    joint, table = jf.load(home / "p.joint"), jf.datasets.load_penguins("pyarrow")
    found = pd.read_csv(io.StringIO(run("predict", home / "p.joint", home / "penguins.csv", "--target", "species").out))
    assert found["species"].tolist() == joint.predict(table, "species").tolist()
    words = ("predict", home / "p.joint", home / "penguins.csv", "--target", "sex", "--proba")
    found = pd.read_csv(io.StringIO(run(*words).out))
    assert list(found) == [f"sex={level}" for level in joint.levels("sex")]
    assert np.allclose(found, joint.predict_proba(table, "sex"))


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("query", "HOME/none.joint", "E(x)"), 1, "none.joint: No such file or directory"),
        (("query", "HOME/penguins.csv", "E(x)"), 1, "error: "),
        (("query", "HOME/p.joint", "E(mass)"), 1, "no column is called 'mass'"),
        (("query", "HOME/p.joint", "E(species)"), 1, "use proba('species')"),
        (("query", "HOME/p.joint", "P(sex = Man)"), 1, "'Man' is not one of its 2 levels"),
        (("query", "HOME/p.joint", "P(sex | body_mass_g > 4, body_mass_g < 3)"), 1, "probability 0"),
        (("score", "HOME/p.joint", "HOME/none.csv"), 1, "none.csv: No such file or directory"),
        (("score", "HOME/p.joint", "HOME/p.joint"), 1, "got a learned joint; give the table"),
        (("score", "HOME/p.joint", "HOME/p.joint", "--format", "parquet"), 1, "is not a parquet table"),
        (("predict", "HOME/p.joint", "HOME/penguins.csv", "--target", "mass"), 1, "mass"),
        (("sample", "HOME/p.joint", "-n", "3", "-o", "HOME/none/x.csv"), 1, "none/x.csv: No such file or directory"),
        (("sample", "HOME/p.joint", "-n", "3", "-o", "HOME/x.html"), 1, "--format"),
        (("fit", "HOME/penguins.csv", "-o", "HOME/x.joint", "--kinds", "sex=continuous"), 1, "sex"),
        (("fit", "HOME/penguins.csv", "-o", "HOME/x.joint", "--kinds", "sex"), 2, "COLUMN=KIND"),
        (("fit", "HOME/penguins.csv", "-o", "HOME/x.joint", "--budget", "cheap"), 1, "a number of seconds above 0"),
        (("fit", "HOME/penguins.csv", "-o", "HOME/x.joint", "--trees", "3"), 2, "--trees goes with --learner"),
        (("fit", "HOME/penguins.csv", "-o", "HOME/x.joint", "--trees", "3", "--target", "sex"), 2, "in batches alone"),
        (("fit", "HOME/penguins.csv", "-o", "HOME/x.joint", "--learner", "hidden", "--min-leaf", "3"), 2, "--min-leaf"),
        (("fit", "HOME/penguins.csv", "-o", "HOME/x.joint", "--learner", "hidden", "--budget", "5"), 2, "--budget"),
        (("fit", "HOME/penguins.csv", "-o", "HOME/x.joint", "--learner", "hidden", "--target", "sex"), 2, "give one"),
        (("sample", "HOME/p.joint"), 2, "'-n'"),
        (("sample", "HOME/p.joint", "-n", "-3"), 2, "-3"),
        (("guess",), 2, "guess"),
    ],
)
def test_errors(run: object, home: Path, words: tuple[str, ...], code: int, message: str) -> None:
    before = sorted(path.name for path in home.iterdir())
    done = run(*(word.replace("HOME", str(home)) for word in words))
    assert (done.code, done.out) == (code, "")
    assert message in done.err and "Traceback" not in done.err
    if code == 1:
        assert done.err.startswith("error: ")
        assert done.err.count("\n") == 1 or done.err.endswith("^\n")
    assert sorted(path.name for path in home.iterdir()) == before


def test_a_failed_write_leaves_the_old_file(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "t.csv"
    target.write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "_write", full)
    with pytest.raises(OSError, match="No space"):
        files.write_table(pa.table({"a": [1]}), str(target))
    assert target.read_text() == "old" and len(list(tmp_path.iterdir())) == 1


def test_text_that_looks_like_numbers(run: object, tmp_path: Path) -> None:
    codes = np.array(["01", "02", "x"])[np.arange(60) % 3]
    pd.DataFrame({"code": codes, "y": np.arange(60) % 3 + 0.125 * np.arange(60)}).to_csv(
        tmp_path / "t.csv", index=False
    )
    assert run("fit", tmp_path / "t.csv", "-o", tmp_path / "m.joint", "--budget", "fast", "--seed", 0).code == 0
    done = run("score", tmp_path / "m.joint", "-", stdin=b"code,y\n01,1\n02,2\n")
    assert done.code == 0 and "warning" not in done.err


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_cells_not_separated_by_commas(run: object, tmp_path: Path, separator: str) -> None:
    (tmp_path / "t.csv").write_text(f"a{separator}b\n1{separator}2,5\n3{separator}4,25\n")
    done = run("inspect", tmp_path / "t.csv")
    assert done.code == 0 and "2 rows, 2 columns" in done.out and "decimal commas" in done.out
    refused = run("inspect", tmp_path / "t.csv", "--sep", "!")
    assert refused.code == 1 and "t.csv: its one column" in refused.err


def test_a_messy_file_through_all_commands(run: object, tmp_path: Path) -> None:
    rows = [
        f"C-{k:04d};{' South' if k % 3 else 'North'};${1000 + 7 * k:,}.50;{k % 28 + 1}/11/2022;{k % 9:05d};x"
        for k in range(120)
    ]
    rows[7] = rows[7].replace("$1,049.50", "-")
    (tmp_path / "t.csv").write_text("\n".join(["id;region;pay;day;zip;pay", *rows]) + "\n")
    table, model = tmp_path / "t.csv", tmp_path / "m.joint"
    looked = run("inspect", table)
    assert looked.code == 0 and "names the rows (120 distinct values)" in looked.out and "unit $" in looked.out
    done = run("fit", table, "-o", model, "--learner", "adversarial", "--trees", 2, "--seed", 0, "--drop", "pay_2")
    assert done.code == 0 and "'pay' is now 'pay_2'" in done.err and "left out on request" in done.err
    assert "4 columns" in done.err and "column 'day': text read as dates" in done.err
    drawn = run("sample", model, "-n", 3, "--seed", 0).out.splitlines()
    assert drawn[0] == "id;region;pay;day;zip;pay_2" and drawn[1].startswith("C-0120;")
    filled = run("impute", model, table).out.splitlines()
    assert filled[1] == rows[0] and filled[8] != rows[7] and filled[8].split(";")[2].startswith("$")
    answer = run("query", model, "E(pay | region = South)").out
    assert float(answer.split()[0]) > 1000 and "(about 80 of 120 rows)" in answer
    assert "(extrapolated: fewer than 5 of 120 rows are like this)" in run("query", model, "P(region | pay < 900)").out
    refused = run("query", model, "P(id = 'C-0001')")
    assert refused.code == 1 and "takes no part in the model" in refused.err
    chosen = run("inspect", table, "--columns", "pay,day")
    assert "120 rows, 2 columns" in chosen.out
    assert "--columns: there is no column 'pya'" in run("inspect", table, "--columns", "pya").err
    assert "--drop: there is no column 'pya'" in run("inspect", table, "--drop", "pya").err
    piped = ("fit", "-", "-o", model, "--learner", "adversarial", "--trees", 2, "--columns", "region,day", "--sep", ";")
    assert "2 columns" in run(*piped, stdin=table.read_bytes()).err
    batches = ("fit", table, "-o", model, "--out-of-core", "--trees", 2, "--learner", "adversarial")
    assert "1 column:" in run(*batches, "--columns", "region").err
    assert run("query", model, "P(region = 'a|b' or region = South)").out.count("(") == 0


def test_one_column_with_a_semicolon_in_its_name(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a;b\n1\n2\n")
    assert files.read_table(str(tmp_path / "t.csv")).column_names == ["a;b"]


def test_a_pipe_with_a_name(run: object, home: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"species,sex\nGentoo,MALE\n")
    os.close(writing)
    done = run("score", home / "p.joint", f"/dev/fd/{reading}", "--format", "csv")
    os.close(reading)
    frame = pd.DataFrame({"species": ["Gentoo"], "sex": ["MALE"]})
    assert float(done.out.split()[1]) == pytest.approx(jf.load(home / "p.joint").log_density(frame)[0])


def test_text_in_another_encoding(run: object, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("a,name\n1,café\n".encode("latin-1"))
    done = run("inspect", tmp_path / "t.csv")
    assert done.code == 0 and "café" in done.out and "read as Windows-1252, such as 'café'" in done.err
    done = run("inspect", tmp_path / "t.csv", "--encoding", "utf-8")
    assert done.code == 1 and "t.csv: column 'name' holds bytes that are not UTF-8; leave out --encoding" in done.err


def test_words_for_missing_are_added_or_replaced(run: object, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n" + "x,1\ny,1\nNA,2\n-9,3\n" * 20)
    done = run("inspect", tmp_path / "t.csv")
    assert "3 levels: -9, x, y" in done.out
    assert "'NA' is taken as missing in column 'a' (20 of 80 cells); --na NA makes it missing, --keep NA" in done.err
    assert "2 levels: x, y" in run("inspect", tmp_path / "t.csv", "--na", "-9").out
    assert "3 levels: NA, x, y" in run("inspect", tmp_path / "t.csv", "--na", "-9", "--only-na").out
    for option, levels in (("--na", "3 levels: -9, x, y"), ("--keep", "4 levels: -9, NA, x, y")):
        done = run("inspect", tmp_path / "t.csv", option, "NA")
        assert levels in done.out and done.err == ""
    assert "'x' is not one of" in run("inspect", tmp_path / "t.csv", "--keep", "x").err


def test_info_names_the_parts(run: object, tmp_path: Path) -> None:
    penguins, model = jf.datasets.load_penguins(), tmp_path / "m.joint"
    hidden = jf.HiddenTreeForest(n_states=4, random_state=0).fit(penguins).joint_
    hidden.save(model)
    assert run("info", model).out.startswith("1 hidden tree of 4 states, background 0\n")
    assert json.loads(run("info", model, "--json").out)["components"] == [
        {"kind": "hidden trees", "weight": 1.0, "trees": 1, "states": 4}
    ]
    assert run("query", model, "E(bill_length_mm | species = Gentoo)").code == 0
    forest = jf.AdversarialForest(n_estimators=2, random_state=0).fit(penguins).joint_
    jf.mix([forest, hidden], [3, 1]).save(model)
    words = f"75.0% 2 trees, {forest.n_leaves} leaves + 25.0% 1 hidden tree of 4 states"
    assert run("info", model).out.startswith(words)


@pytest.mark.parametrize(("model", "message"), [("none/m.joint", "none: No such"), ("", "Is a directory")])
def test_fit_looks_first_whether_it_can_write(
    run: object, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, message: str
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("read the table")

    monkeypatch.setattr(cli, "read", never)
    done = run("fit", home / "penguins.csv", "-o", tmp_path / model)
    assert done.code == 1 and message in done.err


def test_durations(run: object, tmp_path: Path) -> None:
    frame = pd.DataFrame({"day": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(90) % 30, unit="D")})
    joint = jf.AdversarialForest(n_estimators=2, random_state=0).fit(frame).joint_
    joint.save(tmp_path / "m.joint")
    seconds = json.loads(run("query", tmp_path / "m.joint", "Sd(day)", "--json").out)["answer"]
    assert seconds == pytest.approx(joint.given().var("day") ** 0.5)
    assert run("query", tmp_path / "m.joint", "Sd(day)").out.startswith(f"{int(seconds // 86400)} days, ")


def test_version_and_help(run: object) -> None:
    assert run("--version") == (0, f"jointforest {jf.__version__}\n", "")
    assert "query" in run("--help").out


def test_a_reader_that_leaves_is_no_error(home: Path) -> None:
    command = [sys.executable, "-m", "jointforest.cli", "sample", str(home / "p.joint"), "-n", "100000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


def test_report_writes_one_file(run: object, home: Path, tmp_path: Path) -> None:
    model, path = tmp_path / "m.joint", tmp_path / "r.html"
    jf.HiddenTreeForest(n_states=4, max_iter=1, random_state=0).fit(jf.datasets.load_penguins("pyarrow")).joint_.save(
        model
    )
    assert run("report", model, "-o", path, "--target", "species") == Result(0, "", "")
    text = path.read_text(encoding="utf-8")
    assert "<title>m.joint</title>" in text and "What predicts" in text
    table = tmp_path / "t.csv"
    jf.datasets.load_penguins().to_csv(table, index=False)
    assert run("report", model, table, "-o", path) == Result(0, "", "")
    assert path.read_text(encoding="utf-8") != text
    assert "one table is enough" in run("report", model, table, "--table", table, "-o", path).err
    wrong = run("report", model, "-o", path, "--target", "nothing")
    assert wrong.code != 0 and "nothing" in wrong.err


def test_later_commands_know_what_means_missing(run: object, tmp_path: Path) -> None:
    rows = [f"{k % 50};{'abc'[k % 3]};{k % 7},5" for k in range(200)]
    rows[::10] = [f"k.A.;{'abc'[k % 3]};-999" for k in range(0, 200, 10)]
    table, model = tmp_path / "t.csv", tmp_path / "t.joint"
    table.write_text("\n".join(["a;b;c", *rows]) + "\n")
    options = ("--na", "k.A.", "--na=-999", "--decimal", ",")
    for more in (("--learner", "hidden"), ("--target", "b"), ("--group", "b")):
        assert run("fit", table, "-o", model, "--seed", 0, *options, *more).code == 0
        joint = jf.load(model)
        schema = joint.model.columns.schema if more[0] == "--group" else joint.schema
        assert schema["c"].minimum == 0.5 and schema.spelling.decimal == ","
        assert run("score", model, table).out == run("score", model, table, *options).out
        filled = run("impute", model, table, "--seed", 0)
        assert filled.out == run("impute", model, table, "--seed", 0, *options).out
        assert filled.code == 0 and "k.A." not in filled.out
        refused = run("score", model, table, "--decimal", ".")  # what is said anew counts
        assert refused.code == 1 and "expected numbers, got the text" in refused.err
        refused = run("score", model, table, "--only-na", "--na", "-999")  # and with --only-na it counts alone
        assert refused.code == 1 and "'k.A.'" in refused.err
    assert run("predict", model, table, "--target", "a").code == 1
    table.write_text(table.read_text().replace("k.A.", "nichts"))
    assert "'nichts'" in run("score", model, table).err
    assert run("score", model, table, "--na", "nichts").code == 0  # besides those of learning
    assert (
        run("fit", table, "-o", model, "--na", "nichts", "--na=-999", "--trees", 2, "--learner", "adversarial").code
        == 0
    )
    assert jf.load(model).schema.spelling.na[-2:] == ("nichts", "-999")


def test_inspect_refuses_what_fit_refuses(run: object, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n1e300\n2e300\n")
    assert "1e+300 is too large" in run("inspect", tmp_path / "t.csv").err
    (tmp_path / "t.csv").write_text("a\n1\n")
    assert run("inspect", tmp_path / "t.csv").out.startswith("1 row, 1 column in the model")


def test_a_target_of_two_whole_numbers_may_be_classes(run: object, tmp_path: Path) -> None:
    pd.DataFrame({"x": range(200), "churn": [0, 1] * 100}).to_csv(tmp_path / "t.csv", index=False)
    words = ("fit", tmp_path / "t.csv", "--target", "churn", "--seed", 0, "--budget", "fast")
    done = run(*words, "-o", tmp_path / "t.joint")
    assert done.code == 0 and "the values 0 and 1 and is learned as a number; --kinds churn=categorical" in done.err
    done = run(*words, "--kinds", "churn=categorical", "-o", tmp_path / "t.joint")
    assert done.code == 0 and "learned as a number" not in done.err
    done = run("predict", tmp_path / "t.joint", tmp_path / "t.csv", "--target", "churn", "--proba")
    assert done.code == 0 and pd.read_csv(io.StringIO(done.out)).shape == (200, 2)


def test_info_shows_columns_as_inspect_does(run: object, tmp_path: Path) -> None:
    table, model = tmp_path / "t.csv", tmp_path / "t.joint"
    table.write_text(" a ;pay;\n" + "".join(f"{k % 9};{k},50 €;\n" for k in range(1, 100)))
    assert run("fit", table, "-o", model, "--learner", "adversarial", "--trees", 2).code == 0
    looked, told = run("inspect", table).out.splitlines(), run("info", model).out.splitlines()
    assert told[1:] == [line for line in looked[1:] if not line.startswith("rule")]
    assert "' a '  integer" in told[1] and "1,50 € to 99,50 €" in told[2] and "''     set aside" in told[-2]


def test_inspect_says_which_rules_a_fit_enforces(run: object, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, is_seen = rng.integers(0, 40, 400), rng.random(400) < 0.7
    frame = pd.DataFrame(
        {"x": x, "y": 250 * x, "seen": np.where(is_seen, "yes", "no"), "a": rng.normal(size=400).round(2)}
    )
    frame["shot"] = np.where(is_seen, rng.choice(["a", "b"], 400), "")
    frame.to_csv(tmp_path / "t.csv", index=False)
    looked = run("inspect", tmp_path / "t.csv").out
    run("fit", tmp_path / "t.csv", "-o", tmp_path / "t.joint", "--budget", "fast", "--seed", 0)
    found = jf.load(tmp_path / "t.joint").rules
    assert {str(rule) for rule in found if rule.is_enforced} == {"y = 250 * x", "shot missing iff seen = 'no'"}
    for rule in found:
        assert f"rule: {rule} ({rule.rows} rows; {'' if rule.is_enforced else 'not '}enforced)" in looked


def test_compare_lists_changes_and_scores_rows(run: object, home: Path, tmp_path: Path) -> None:
    table = jf.datasets.load_penguins("pandas")
    half = [table[k::2].assign(code=["01", "02", "03", "04"] * 43) for k in (0, 1)]
    half[1] = half[1].assign(body_mass_g=half[1]["body_mass_g"] + 400, code=half[1]["code"].str[1:])
    for name, frame in zip(("old", "new"), half, strict=True):
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    paths = [tmp_path / name for name in ("old.csv", "new.csv", "changes.csv", "rows.csv")]
    done = run("compare", *paths[:2], "-o", paths[2], "--rows", paths[3], "--seed", 0)
    assert (done.code, done.err) == (0, "")
    first, second = done.out.splitlines()[:2]
    assert first == "172 old and 172 new rows: p-value 0.001 (hypothesis: nothing changed)"
    assert second.startswith("  share of code = ") and "  mean of body_mass_g: " in done.out
    changes = files.read_table(str(paths[2]), csv=files.PLAIN).to_pylist()
    assert {"body_mass_g", "code"} <= {change["column"] for change in changes}  # codes stay texts in both tables
    rows = files.read_table(str(paths[3])).to_pydict()
    assert rows["row"] == list(range(172)) and min(rows["percentile"]) >= 0.0
    assert run("compare", paths[0], tmp_path / "none.csv").code == 1
