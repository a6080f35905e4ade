"""Parameters of R's arf: log-densities by its formula written out, there and back, what cannot be said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy.stats import truncnorm

import jointforest as jf

pytestmark = pytest.mark.filterwarnings("ignore:the joint has lost")


def table(n: int = 200, n_levels: int = 3) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    group = rng.integers(0, n_levels, n)
    frame = pd.DataFrame(
        {
            "g": [f"level {k}" for k in group],
            "x": rng.normal(size=n) + group / n_levels,
            "flag": rng.random(n) < 0.3,
            "k": rng.poisson(20, n) + rng.integers(0, 9, n),
        }
    )
    return frame.mask(rng.random(frame.shape) < 0.05).astype({"flag": "boolean"})


def learned(frame: pd.DataFrame, **settings: object) -> jf.Joint:
    settings = {"leaf": "normal", "epsilon": 0.0, "min_samples_leaf": 5, "random_state": 0} | settings
    return jf.AdversarialForest(4, **settings).fit(frame).joint_


def read(folder: Path) -> dict[str, pd.DataFrame]:
    return {path.stem: parquet.read_table(path).to_pandas() for path in folder.glob("*.parquet")}


def log_lik(tables: dict[str, pd.DataFrame], rows: pd.DataFrame) -> np.ndarray:
    """log of the mean over trees of sum over leaves of cvg times the densities of known cells: leaf by leaf."""
    forest = tables["forest"]
    family = tables["meta"].set_index("variable")["family"]
    out = []
    for row in rows.to_dict("records"):
        total = 0.0
        for leaf in forest.itertuples():
            density = leaf.cvg
            for name, value in row.items():
                if pd.isna(value):
                    continue
                if family[name] == "multinom":
                    cat = tables["cat"]
                    text = str(value).upper() if isinstance(value, bool | np.bool_) else str(value)
                    own = cat[(cat["f_idx"] == leaf.f_idx) & (cat["variable"] == name) & (cat["val"] == text)]
                    density *= own["prob"].sum()
                else:
                    cnt = tables["cnt"]
                    (own,) = cnt[(cnt["f_idx"] == leaf.f_idx) & (cnt["variable"] == name)].itertuples()
                    a, b = (own.min - own.mu) / own.sigma, (own.max - own.mu) / own.sigma
                    density *= truncnorm.pdf(value, a, b, own.mu, own.sigma)
            total += density
        out.append(np.log(total / forest["tree"].nunique()))
    return np.array(out)


def test_log_density_is_that_of_the_formula(tmp_path):
    frame = table()
    joint = learned(frame, kinds={"k": "continuous"})
    joint.to_forde(tmp_path / "new")
    rows = frame.head(25)
    want = log_lik(read(tmp_path / "new"), rows)
    np.testing.assert_allclose(joint.log_density(rows), want, atol=1e-9)
    again = jf.from_forde(tmp_path / "new")
    texts = rows.astype({"flag": object}).assign(flag=rows["flag"].map({True: "TRUE", False: "FALSE"}))
    np.testing.assert_allclose(again.log_density(texts), want, atol=1e-9)
    known = {"g": "level 1", "k": jf.between(20, 25)}
    assert again.given(**known).mean("x") == pytest.approx(joint.given(**known).mean("x"), abs=1e-9)
    assert again.query("P(x is missing)") == pytest.approx(joint.query("P(x is missing)"), abs=1e-12)


def test_tables_are_those_of_arf(tmp_path):
    joint = learned(table())
    joint.to_forde(tmp_path)
    tables = read(tmp_path)
    assert list(tables["forest"]) == ["f_idx", "tree", "leaf", "cvg"]
    assert list(tables["cnt"]) == ["f_idx", "variable", "min", "max", "mu", "sigma", "NA_share"]
    assert list(tables["cat"]) == ["f_idx", "variable", "val", "prob", "NA_share"]
    meta = tables["meta"].set_index("variable")
    assert meta["class"].to_dict() == {"g": "factor", "x": "numeric", "flag": "logical", "k": "integer"}
    assert meta["family"].to_dict() == {"g": "multinom", "x": "truncnorm", "flag": "multinom", "k": "truncnorm"}
    assert meta.loc["k", "decimals"] == 0 and np.isnan(meta.loc["x", "decimals"])
    np.testing.assert_allclose(tables["forest"].groupby("tree")["cvg"].sum(), 1.0)
    np.testing.assert_allclose(tables["cat"].groupby(["f_idx", "variable"])["prob"].sum(), 1.0)
    assert len(tables["forest"]) == joint.n_leaves and len(tables["cnt"]) == 2 * joint.n_leaves


def test_uniform_leaves_and_columns_of_many_levels(tmp_path):
    frame = table(600, n_levels=90)[["g", "x"]]
    joint = learned(frame, leaf="uniform", min_samples_leaf=20)
    joint.to_forde(tmp_path)
    assert set(read(tmp_path)["meta"]["family"]) == {"multinom", "unif"}
    again = jf.from_forde(tmp_path)
    np.testing.assert_allclose(again.log_density(frame), joint.log_density(frame), atol=1e-9)
    assert again.given(x=0.2).proba("g") == pytest.approx(joint.given(x=0.2).proba("g"), abs=1e-9)


def test_only_levels_or_only_numbers(tmp_path):
    for names in (["g", "flag"], ["x"]):
        frame, folder = table()[names], tmp_path / names[0]
        joint = learned(frame)
        joint.to_forde(folder)
        again = jf.from_forde(folder)
        if "flag" in frame:
            frame = frame.assign(flag=frame["flag"].map({True: "TRUE", False: "FALSE"}))
        np.testing.assert_allclose(again.log_density(frame), joint.log_density(table()[names]), atol=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 1e-3}, "epsilon=0"),
        ({"leaf": "quantile"}, "quantile leaves"),
        ({"leaf": "chow_liu"}, "one forest of boxes|dependent columns"),
    ],
)
def test_what_arf_cannot_say_is_refused(tmp_path, change, message):
    joint = learned(table(), **change)
    with pytest.raises(ValueError, match=message):
        joint.to_forde(tmp_path)
    assert not list(tmp_path.iterdir())


def test_columns_that_arf_cannot_say_are_named(tmp_path):
    rng = np.random.default_rng(0)
    for column, what in (
        (np.where(rng.random(200) < 0.5, 0.0, rng.normal(size=200)), "mass of their own"),
        (pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 900, 200), "D"), "dates"),
        (rng.integers(0, 900, 200) * 0.25, "grid of 0.25"),
    ):
        joint = learned(pd.DataFrame({"odd": column, "x": rng.normal(size=200)}))
        with pytest.raises(ValueError, match=rf"column 'odd': .*{what}"):
            joint.to_forde(tmp_path)


def changed(tables: dict[str, pd.DataFrame], what: str) -> dict[str, pd.DataFrame]:
    forest, cnt, cat, meta = (tables[name] for name in ("forest", "cnt", "cat", "meta"))
    first = np.arange(len(cnt)) == 0
    return (
        tables
        | {
            "sigma": {"cnt": cnt.assign(sigma=np.where(first, 0.0, cnt["sigma"]))},
            "is missing in leaf": {"cnt": cnt[1:]},
            "twice": {"cnt": pd.concat([cnt, cnt[:1]])},
            "not in forest": {"forest": forest.assign(f_idx=forest["f_idx"] + 1)},
            "cover": {"forest": forest.assign(cvg=forest["cvg"] * 0.5)},
            "coverage": {"forest": forest.assign(cvg=-forest["cvg"])},
            "an f_idx of its own": {"forest": forest.assign(f_idx=1)},
            "sum to": {"cat": cat.assign(prob=cat["prob"] * 0.9)},
            "unknown family": {"meta": meta.assign(family="gamma")},
            "no field 'mu'": {"cnt": cnt.drop(columns="mu")},
            "not numbers": {"cnt": cnt.assign(mu="a")},
            "NA_share": {"cnt": cnt.assign(NA_share=2.0)},
            "each variable once": {"meta": pd.concat([meta, meta])},
        }[what]
    )


@pytest.mark.parametrize(
    "what",
    [
        "sigma",
        "is missing in leaf",
        "twice",
        "not in forest",
        "cover",
        "coverage",
        "an f_idx of its own",
        "sum to",
        "unknown family",
        "no field 'mu'",
        "not numbers",
        "NA_share",
        "each variable once",
    ],
)
def test_broken_tables_are_refused(tmp_path, what):
    learned(table()).to_forde(tmp_path)
    for name, frame in changed(read(tmp_path), what).items():
        parquet.write_table(pa.Table.from_pandas(frame, preserve_index=False), tmp_path / f"{name}.parquet")
    with pytest.raises(ValueError, match=what):
        jf.from_forde(tmp_path)


def test_files_that_are_none(tmp_path):
    with pytest.raises(FileNotFoundError, match="forest"):
        jf.from_forde(tmp_path)
    learned(table()).to_forde(tmp_path)
    (tmp_path / "cnt.parquet").write_bytes(b"PAR1")
    with pytest.raises(ValueError, match="not a whole parquet table"):
        jf.from_forde(tmp_path)
