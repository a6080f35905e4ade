"""Learning from batches: one joint, however the table is cut; sources; what goes wrong."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable
from dataclasses import replace
from unittest.mock import patch

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import dataset, parquet

import jointforest as jf
from jointforest.data.batches import batches_of, known_rows
from jointforest.data.frames import read
from jointforest.data.sample_rows import row_keys
from jointforest.learners.batches import sample as sampling
from jointforest.learners.batches.sample import fold_of
from jointforest.learners.generative import base as generative
from jointforest.learners.hidden_tree import hidden_tree_forest
from jointforest.learners.joint_tree import joint_tree
from jointforest.models.box_forest.files import check_forest
from jointforest.models.hidden_tree.files import check_hidden

pytestmark = pytest.mark.filterwarnings("ignore:the joint has lost")


class FewRows(jf.JointTree):
    """A joint tree that a sample of a few rows makes."""

    def _sampled_rows(self):
        return 150


LEARNERS: dict[str, Callable[[], jf.AdversarialForest | jf.JointTree]] = {
    "adversarial": lambda: jf.AdversarialForest(3, min_samples_leaf=5, random_state=0),
    "adversarial, sample": lambda: jf.AdversarialForest(3, max_samples=150, leaf="normal", random_state=0),
    "joint trees": lambda: jf.JointTree(2, leaf="quantile", min_samples_leaf=20, random_state=0),
    "joint trees, sample": lambda: FewRows(2, leaf="quantile", min_samples_leaf=20, random_state=0),
}
CHOW_LIU: dict[str, Callable[[], jf.AdversarialForest | jf.JointTree]] = {
    "adversarial": lambda: jf.AdversarialForest(2, leaf="chow_liu", max_samples=150, random_state=0),
    "joint trees": lambda: FewRows(2, leaf="chow_liu", min_samples_leaf=20, random_state=0),
}
IN_MEMORY = {
    "adversarial": (lambda: jf.AdversarialForest(3, random_state=0), None),
    "joint tree": (lambda: jf.JointTree(random_state=0), None),
    "hidden tree": (lambda: jf.HiddenTreeForest(n_states=8, max_iter=1, random_state=0), None),
    "classes": (lambda: jf.GenerativeForestClassifier(10, random_state=0), "many"),
    "numbers": (lambda: jf.GenerativeForestRegressor(10, leaf="auto", random_state=0), "x"),
    "outliers": (lambda: jf.ForestOutlierDetector(random_state=0), None),
}


def table(n: int = 400, seed: int = 0) -> pd.DataFrame:
    """Dependent columns of all kinds with missing cells and repeated rows; one has more than 64 levels."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, n)
    frame = pd.DataFrame(
        {
            "g": np.array(["a", "b", "c"])[group],
            "x": rng.lognormal(size=n) * (1 + group),
            "k": rng.poisson(3 * group + 1),
            "many": (rng.integers(0, 40, n) + 40 * group).astype(str),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 30, n) + 30 * group, "D"),
        }
    )
    frame = frame.mask(rng.random(frame.shape) < 0.08)
    return pd.concat([frame, frame.iloc[:40]], ignore_index=True)


def batches(frame: pd.DataFrame, ends: list[int]) -> Callable[[], list[pd.DataFrame]]:
    ends = [0, *ends, len(frame)]
    return lambda: [frame.iloc[a:b].reset_index(drop=True) for a, b in itertools.pairwise(ends)]


def answers(joint: jf.Joint, frame: pd.DataFrame) -> np.ndarray:
    return np.concatenate([joint.log_density(frame), joint.given(g="b").mean("x") * np.ones(1)])


def otherwise(learner, frame: pd.DataFrame, cuts: list[int], seed: int, n_jobs: int) -> jf.Joint:
    """What is learned of the rows in another order, in other batches, by so many threads."""
    shuffled = frame.sample(frac=1, random_state=seed).reset_index(drop=True)
    return learner.set_params(n_jobs=n_jobs).fit_batches(batches(shuffled, sorted(cuts))).joint_


@pytest.mark.parametrize("name", LEARNERS)
@settings(max_examples=6)
@given(st.lists(st.integers(1, 439), max_size=5, unique=True), st.integers(0, 99), st.sampled_from([1, 2]))
def test_joint_does_not_depend_on_cuts_order_or_threads(name, cuts, seed, n_jobs):
    frame = table()
    learned = LEARNERS[name]().fit_batches(frame).joint_
    forest = learned.distribution.components[0].forest
    check_forest(forest.schema, forest.columns, forest.trees, forest.leaves, forest.has_background)
    other = otherwise(LEARNERS[name](), frame, cuts, seed, n_jobs)
    assert other.schema == learned.schema or str(other.schema) == str(learned.schema)
    assert np.array_equal(answers(other, frame), answers(learned, frame))


@settings(max_examples=4)
@given(st.lists(st.integers(1, 439), max_size=5, unique=True), st.integers(0, 99))
def test_generative_and_hidden_joints_do_not_depend_on_cuts_or_order(cuts, seed):
    frame = table().assign(k=lambda of: of["k"].fillna(0))
    shuffled = frame.sample(frac=1, random_state=seed).reset_index(drop=True)
    sources = frame, batches(shuffled, sorted(cuts))
    with (
        patch.object(generative, "FIXED", replace(generative.FIXED, batch_rows=150)),
        patch.object(hidden_tree_forest, "FIXED", replace(hidden_tree_forest.FIXED, batch_rows=150)),
    ):
        forests = [jf.GenerativeForestRegressor(3, random_state=0).fit_batches(of, "k") for of in sources]
        hidden = [jf.HiddenTreeForest(n_states=4, max_iter=1, random_state=0).fit_batches(of) for of in sources]
    assert np.array_equal(*(of.joint_.log_density(frame) for of in forests))
    assert forests[0].beta_ == forests[1].beta_
    assert np.allclose(*(of.joint_.log_density(frame) for of in hidden), atol=1e-4)  # sums of float32


@pytest.mark.parametrize("name", [name for name in LEARNERS if "sample" in name])
def test_leaves_hold_all_rows(name):
    """The weights of leaves, levels and missing cells are those of the whole table, not of the sample."""
    frame = table(3000)
    learned = LEARNERS[name]().set_params(epsilon=0.0).fit_batches(frame).joint_
    shares = frame["g"].value_counts(normalize=True)
    for level, p in learned.given().proba("g").items():
        assert p == pytest.approx(shares[level], abs=5e-3)  # smoothing, and rows without a level
    rate = float(frame["x"].isna().mean())
    assert learned.query("P(x is missing)") == pytest.approx(rate, abs=1e-9)


@pytest.mark.parametrize("name", IN_MEMORY)
def test_a_table_no_larger_than_the_sample_is_learned_as_in_memory(name):
    """Bit for bit what `fit` learns of the same rows in the order of their keys."""
    make, target = IN_MEMORY[name]
    frame = table().dropna(subset=[target] if target else None, how="any" if target else "all").reset_index(drop=True)
    learner, reader = make(), read(frame)
    keys = row_keys(((column, reader.cells(column)) for column in frame), len(frame), learner._draw_seed())
    rows = frame.iloc[np.argsort(keys)].reset_index(drop=True)
    at_once = learner.fit(rows.drop(columns=target), rows[target]) if target else learner.fit(rows)
    parts = (batches(frame, [100, 130]), target) if target else (batches(frame, [100, 130]),)
    in_parts = make().fit_batches(*parts)
    assert np.array_equal(in_parts.joint_.log_density(frame), at_once.joint_.log_density(frame))
    if target:
        assert np.array_equal(in_parts.predict(frame.drop(columns=target)), at_once.predict(frame.drop(columns=target)))


@pytest.mark.parametrize("name", CHOW_LIU)
@settings(max_examples=4)
@given(st.lists(st.integers(1, 439), max_size=5, unique=True), st.integers(0, 99), st.sampled_from([1, 2]))
def test_chow_liu_leaves_do_not_depend_on_cuts_order_or_threads(name, cuts, seed, n_jobs):
    frame = table()
    learned = CHOW_LIU[name]().fit_batches(frame).joint_
    assert learned.distribution.components[0].kind == "forest with Chow-Liu leaves"
    check_hidden(learned.distribution.components[0].hidden)
    other = otherwise(CHOW_LIU[name](), frame, cuts, seed, n_jobs)
    assert np.array_equal(answers(other, frame), answers(learned, frame))


@pytest.mark.parametrize("name", CHOW_LIU)
def test_chow_liu_leaves_hold_all_rows(name):
    """Shares of leaves are those of the whole table's rows, and so are those of levels and missing cells."""
    frame = table(3000).dropna().reset_index(drop=True)
    frame.loc[:299, "x"] = np.nan
    learned = CHOW_LIU[name]().set_params(epsilon=0.0).fit_batches(frame).joint_
    hidden = learned.distribution.components[0].hidden
    rows = np.exp(hidden.log_weight) * 2 * len(frame)
    assert np.abs(rows - np.rint(rows)).max() < 1e-6
    for level, share in frame["g"].value_counts(normalize=True).items():
        assert learned.given().proba("g")[level] == pytest.approx(share, abs=0.01)
    assert learned.query("P(x is missing)") == pytest.approx(300 / len(frame), abs=2e-3)
    assert learned.given().mean("k") == pytest.approx(frame["k"].mean(), rel=0.02)


def test_leaves_turn_to_chow_liu_leaves_in_batches_as_in_memory(monkeypatch):
    """Where quantile leaves lose a pair; beyond the sample, too. Held-out rows are then as likely as in memory."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(9_000, 3))
    frame = pd.DataFrame(np.concatenate([x, x + 0.6 * rng.normal(size=x.shape)], axis=1), columns=list("abcdef"))
    learn, test = frame[:6000], frame[6000:]
    monkeypatch.setattr(joint_tree, "MOST_ROWS", 2000)
    learner, plain = jf.JointTree(random_state=0), jf.JointTree(leaf="quantile", random_state=0)
    parts, whole = learner.fit_batches(learn).joint_, learner.fit(learn).joint_
    assert (
        parts.distribution.components[0].kind == whole.distribution.components[0].kind == "forest with Chow-Liu leaves"
    )
    assert parts.log_density(test).mean() == pytest.approx(whole.log_density(test).mean(), abs=0.05)
    assert parts.log_density(test).mean() > plain.fit_batches(learn).score(test) + 0.2
    few = learner.fit(learn[:2000]).joint_
    assert parts.log_density(test).mean() > few.log_density(test).mean()


def test_likelihood_is_that_of_learning_in_memory():
    """In the mean over seeds: the same rows in another order, whose missing cells are drawn by other numbers."""
    frame, test = table(4000, 1), table(2000, 2)
    for name in ("adversarial", "joint trees"):
        gains = []
        for seed in range(3):
            learner = LEARNERS[name]().set_params(random_state=seed)
            whole = learner.fit(frame).score(test)
            gains.append(learner.fit_batches(batches(frame, [1000, 2500])).score(test) - whole)
        assert np.mean(gains) == pytest.approx(0.0, abs=0.1)


def test_leaves_are_pruned_by_the_rows_of_the_whole_table():
    """As in memory: leaves that hold few rows of the sample, or none, stay if enough rows of the table end there."""
    frame = table(3000).dropna().reset_index(drop=True)
    learner = jf.AdversarialForest(3, min_samples_leaf=4, max_samples=300, leaf="normal", epsilon=0.0, random_state=0)
    few, all_rows = learner.fit(frame.iloc[:300]).joint_, learner.fit_batches(frame).joint_
    forest = all_rows.distribution.components[0].forest
    rows = forest.trees.weight[forest.trees.left < 0] * len(frame)
    assert rows.min() > 3.99 and (np.abs(rows - np.rint(rows)) < 1e-6).all()
    assert len(rows) > 2 * (few.distribution.components[0].forest.trees.left < 0).sum()


def test_quantile_leaves_follow_all_rows(monkeypatch):
    """A leaf's distribution function is that of the whole table's rows, and so are its mean and spread."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.gamma(2.0, size=20_000), "k": rng.poisson(9.0, 20_000)})
    monkeypatch.setattr(joint_tree, "MOST_ROWS", 150)
    learned = jf.JointTree(max_depth=1, epsilon=0.0, random_state=0).fit_batches(frame).joint_
    for name in frame:
        marginal, values = learned.marginal(name), frame[name].to_numpy()
        at = np.quantile(values, np.linspace(0.01, 0.99, 99))
        assert np.abs(marginal.cdf(at) - [(values <= x).mean() for x in at]).max() < 0.025
        assert marginal.mean() == pytest.approx(values.mean(), rel=1e-3)
        assert marginal.std() == pytest.approx(values.std(), rel=0.03)


def test_sources_agree(tmp_path):
    frame = table()
    arrow = pa.Table.from_pandas(frame, preserve_index=False)
    (tmp_path / "parts").mkdir()
    for k in range(3):
        parquet.write_table(arrow.slice(150 * k, 150), tmp_path / "parts" / f"{k}.parquet")
    parquet.write_table(arrow, tmp_path / "whole.parquet")
    files = sorted((tmp_path / "parts").iterdir())
    sources = [
        tmp_path / "whole.parquet",
        str(tmp_path / "parts"),
        files[::-1],
        dataset.dataset(tmp_path / "parts"),
        arrow,
        lambda: arrow.to_batches(max_chunksize=77),
    ]
    found = [jf.JointTree(random_state=0).fit_batches(source).joint_.log_density(frame) for source in sources]
    assert all(np.array_equal(of, found[0]) for of in found[1:])
    lazy = pl.scan_parquet(tmp_path / "whole.parquet").with_columns(pl.col("day").cast(pl.Datetime("us")))
    joint = jf.JointTree(random_state=0).fit_batches(lazy).joint_
    assert np.allclose(joint.log_density(frame), found[0], atol=1e-9)
    assert isinstance(joint.sample(3, random_state=0), pl.DataFrame)
    # a frame of polars has a method fold, and is no engine that makes passes
    eager = jf.JointTree(random_state=0).fit_batches(lazy.collect()).joint_
    assert np.array_equal(eager.log_density(frame), joint.log_density(frame))


def test_a_query_of_duckdb(tmp_path):
    frame = table()
    frame.to_parquet(tmp_path / "t.parquet")
    with duckdb.connect() as database:
        query = database.sql(f"select * from '{tmp_path / 't.parquet'}' order by x")
        joint = jf.JointTree(random_state=0).fit_batches(query).joint_
    other = jf.JointTree(random_state=0).fit_batches(tmp_path / "t.parquet").joint_
    assert np.array_equal(joint.log_density(frame), other.log_density(frame))


def test_an_engine_makes_the_passes():
    class Engine:
        """Sums that travel as bytes, each of its own part of the rows, merged from the last to the first."""

        def fold(self, one, n=None):
            step = pickle.dumps(one)
            seen.append((one.what, n))
            parts = [pickle.dumps(pickle.loads(step).over([part])) for part in batches(frame, [100, 100, 101])()]
            sums = [pickle.loads(part) for part in parts[::-1]]
            first, again = one.together(sums), one.together(sums)  # the parts stay as they are
            assert pickle.dumps(first) == pickle.dumps(again)
            return first

    frame, seen = table(), []
    for learner in (FewRows(random_state=0), jf.AdversarialForest(2, max_samples=100, random_state=0)):
        found = learner.fit_batches(Engine()).joint_
        assert np.array_equal(found.log_density(frame), learner.fit_batches(frame).joint_.log_density(frame))
    assert seen[0] == ("looking at rows", None) and seen[-1] == ("counting rows", 440)


def test_a_column_named_fold_makes_no_engine():
    frame = table().rename(columns={"k": "fold"})
    assert jf.JointTree(random_state=0).fit_batches(frame).joint_.columns[2] == "fold"


def test_csv_files(tmp_path):
    for k in range(2):
        pd.DataFrame({"a": np.arange(50) % 7, "b": np.where(np.arange(50) % 7 > 3, "u", "v")}).to_csv(
            tmp_path / f"{k}.csv", index=False
        )
    joint = jf.JointTree(random_state=0).fit_batches([tmp_path / "0.csv", tmp_path / "1.csv"]).joint_
    assert joint.given(a=6).proba("b")["u"] > 0.9


def test_sample_is_no_larger_than_asked():
    rows = sampling.take_sample(fold_of(lambda: iter([table(900, 1), table(900, 2)])), None, 500, 0)
    assert rows.X.shape == (500, 5) and rows.n == 1880


def test_common_rows_are_counted_in_a_second_pass():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=4000), "b": rng.normal(size=4000)})
    frame.iloc[:800] = 0.0
    found = sampling.take_sample(
        fold_of(lambda: iter([frame.iloc[:1000], frame.iloc[1000:].reset_index(drop=True)])), None, 400, 0
    )
    assert (found.X == 0.0).all(axis=1).mean() == pytest.approx(0.2, abs=0.01)


def test_levels_that_appear_late_are_known():
    first, last = pd.DataFrame({"a": ["x"] * 30, "b": range(30)}), pd.DataFrame({"a": ["y"] * 3, "b": [100, 101, 102]})
    joint = jf.AdversarialForest(2, random_state=0).fit_batches(lambda: [first, last]).joint_
    assert joint.schema["a"].levels == ("x", "y") and joint.schema["b"].maximum == 102.0


def test_small_record_batches_are_put_together():
    frame = table()
    records = pa.Table.from_pandas(frame).to_batches(max_chunksize=7)
    seen = [len(part) for part in batches_of(lambda: iter([*records, frame, *records[:2]]))()]
    assert seen == [440, 440, 14]


def test_batches_without_rows_or_known_cells():
    frame = table()
    gaps = frame.iloc[:5].assign(g=None, x=np.nan)
    parts = [frame.iloc[:0], frame.iloc[:200], gaps, frame.iloc[200:]]
    joint = jf.JointTree(random_state=0).fit_batches(lambda: [p.reset_index(drop=True) for p in parts]).joint_
    assert np.isfinite(joint.log_density(frame)).all()


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        (lambda: [], ValueError, "gave no batch of rows"),
        (lambda: [table().iloc[:0]], ValueError, "no rows"),
        (lambda: table(), TypeError, "iterable of frames, got DataFrame"),
        ("nowhere.parquet", FileNotFoundError, "nowhere.parquet"),
        (3, TypeError, "expected files"),
        (lambda: [table(), table().drop(columns="x")], ValueError, "lacks 'x'"),
        (lambda: [table(), table().assign(x="text")], ValueError, "column 'x': numbers in one part of the table, text"),
        (lambda: [table(), table().assign(x=np.inf)], ValueError, "column 'x': 440 infinite values"),
    ],
)
def test_sources_that_cannot_be_used(source, error, message):
    learner = jf.JointTree(random_state=0)
    with pytest.raises(error, match=message):
        learner.fit_batches(source)
    assert not hasattr(learner, "joint_")


def test_source_that_changes():
    given_before = []

    def source(rows: int):
        given_before.append(1)
        return [table().iloc[: rows if len(given_before) > 1 else 440]]

    with pytest.raises(ValueError, match="gave 440 rows at first and 400 later"):
        FewRows(random_state=0).fit_batches(lambda: source(400))
    frames = iter([table(), table().assign(g="new")])
    with pytest.raises(ValueError, match="column 'g' has a level that it did not have"):
        FewRows(random_state=0).fit_batches(lambda: [next(frames)])


@pytest.mark.parametrize("damage", ["truncated", "overwritten"])
def test_a_damaged_file_is_named(tmp_path, damage):
    whole, cut = tmp_path / "whole.parquet", tmp_path / "cut.parquet"
    table().to_parquet(whole)
    raw = whole.read_bytes()
    at = len(raw) // 2
    cut.write_bytes(raw[:-2000] if damage == "truncated" else raw[: at - 200] + b"\xff" * 400 + raw[at + 200 :])
    learner = jf.JointTree(random_state=0)
    with pytest.raises(ValueError, match=r"cut\.parquet is not a whole parquet table"):
        learner.fit_batches([whole, cut])
    assert not hasattr(learner, "joint_")


def test_a_file_that_is_damaged_between_two_passes(tmp_path):
    """What was seen of it before makes no joint."""
    source = tmp_path / "t.parquet"
    table().to_parquet(source)

    class Damaging(FewRows):
        def _structure(self, *given):
            source.write_bytes(source.read_bytes()[:-2000])
            return super()._structure(*given)

    learner = Damaging(random_state=0)
    with pytest.raises(ValueError, match=r"t\.parquet is not a whole parquet table"):
        learner.fit_batches(source)
    assert not hasattr(learner, "joint_")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop(columns="x"), r"b\.parquet: there is no column 'x', which .*a\.parquet has"),
        (lambda t: t.assign(more=1), r"b\.parquet: column 'more' is not in .*a\.parquet"),
        (lambda t: t.assign(g=1.5), r"b\.parquet: column 'g' is of type double, in .*a\.parquet it is"),
    ],
)
def test_a_file_with_another_schema_is_named(tmp_path, change, message):
    frame = table()
    frame.to_parquet(tmp_path / "a.parquet")
    change(frame).to_parquet(tmp_path / "b.parquet")
    learner = jf.JointTree(random_state=0)
    with pytest.raises(ValueError, match=message):
        learner.fit_batches(tmp_path)
    assert not hasattr(learner, "joint_")


@pytest.mark.parametrize(
    "learner",
    [
        jf.AdversarialForest(leaf_rows="oob"),
        jf.AdversarialForest(oob_score=True),
        jf.AdversarialForest(max_samples=None),
    ],
)
def test_what_needs_all_rows_is_refused(learner):
    with pytest.raises(ValueError, match=r"all rows at once|max_samples=None"):
        learner.fit_batches(table())


def test_hidden_trees(monkeypatch):
    frame, test = (of.assign(g=of["g"].fillna("c")) for of in (table(3000), table(1000, 5)))
    learner = jf.HiddenTreeForest(2, n_states=8, max_leaf_nodes=2, random_state=0)
    whole = learner.fit(frame).score(test)
    assert learner.fit_batches(batches(frame, [900, 2000])).score(test) == pytest.approx(whole, abs=0.15)
    monkeypatch.setattr(hidden_tree_forest, "FIXED", replace(hidden_tree_forest.FIXED, batch_rows=1500))
    shuffled = frame.sample(frac=1, random_state=3).reset_index(drop=True)
    found = [learner.fit_batches(source).joint_ for source in (frame, batches(shuffled, [100, 150, 2500]))]
    assert np.allclose(found[0].log_density(test), found[1].log_density(test), atol=1e-4)
    assert found[0].log_density(test).mean() == pytest.approx(whole, abs=0.2)
    share = frame["g"].value_counts(normalize=True)["a"]
    assert found[0].given().proba("g")["a"] == pytest.approx(share, abs=2e-3)
    some = jf.HiddenTreeForest(2, n_states=8, max_leaf_nodes=2, random_state=0).fit(frame.iloc[:1500]).joint_
    assert abs(some.given().proba("g")["a"] - share) > 2e-3  # what a sample says


def test_outlier_detector(monkeypatch):
    from jointforest.estimators import outliers

    frame = table(3000)
    odd = frame.iloc[[0]].assign(x=1e4)
    small = jf.ForestOutlierDetector(random_state=0).fit_batches(batches(frame, [1000]))
    assert len(small.training_scores_) == len(frame) and small.predict(odd)[0] == -1
    monkeypatch.setattr(outliers, "MOST_ROWS", 1000)
    monkeypatch.setattr(outliers, "_USUAL_ROWS", 500)
    learner = jf.ForestOutlierDetector(jf.AdversarialForest(20, max_samples=1000, leaf="uniform", random_state=0))
    found = [learner.fit_batches(source).score_samples(frame) for source in (frame, batches(frame, [70, 2000]))]
    assert np.array_equal(*found) and len(learner.training_scores_) == 500
    assert learner.predict(odd)[0] == -1 and learner.predict(frame).mean() > 0.7
    large = jf.ForestOutlierDetector(random_state=0).fit_batches(frame)
    assert large.joint_.info()["columns"][2]["kind"] == "continuous"  # heaps count as densities
    with pytest.raises(ValueError, match="GenerativeForestClassifier does not learn whole tables in batches"):
        jf.ForestOutlierDetector(jf.GenerativeForestClassifier()).fit_batches(frame)


@pytest.mark.parametrize("target", ["g", "k"])
@pytest.mark.parametrize("most", [5000, 300])
def test_generative_forests(target, most, monkeypatch):
    monkeypatch.setattr(generative, "FIXED", replace(generative.FIXED, batch_rows=most))
    frame, test = (of.dropna(subset=["g", "k"]).reset_index(drop=True) for of in (table(1500), table(800, 5)))
    kind = jf.GenerativeForestClassifier if target == "g" else jf.GenerativeForestRegressor
    shuffled = frame.sample(frac=1, random_state=1).reset_index(drop=True)
    found = [kind(20, random_state=0).fit_batches(s, target) for s in (frame, batches(shuffled, [10, 700]))]
    assert np.array_equal(*(of.predict(test.drop(columns=target)) for of in found))
    first = found[0]
    forest = first.joint_.distribution.components[0].forest
    check_forest(forest.schema, forest.columns, forest.trees, forest.leaves, forest.has_background)
    assert first.joint_.columns[-1] == target and first.n_features_in_ == 4
    whole = kind(20, random_state=0).fit(frame.drop(columns=target), frame[target])
    X, y = test.drop(columns=target), test[target]
    scores = first.score(X, y), whole.score(X, y)
    assert scores[0] == pytest.approx(scores[1], abs=0.06) and scores[0] > 0.5
    if target == "g":
        if most < len(frame):  # in memory each tree has the classes of its own bootstrap
            share = frame["g"].value_counts(normalize=True)
            assert first.joint_.given().proba("g")["a"] == pytest.approx(share["a"], abs=1e-3)
        assert first.classes_.tolist() == ["a", "b", "c"]


def test_generative_forests_describe_held_out_rows_as_in_memory_or_better(monkeypatch):
    """Beyond the sample trees have fewer rows to grow on, and more that fill them: all, not their bootstrap."""
    frame, test = (of.dropna(subset=["k"]).reset_index(drop=True) for of in (table(4000, 1), table(2000, 2)))
    learner = jf.GenerativeForestRegressor(10, kinds={"k": "integer"}, random_state=0)
    whole = learner.fit(frame.drop(columns="k"), frame["k"]).joint_.log_density(test[frame.columns])
    monkeypatch.setattr(generative, "FIXED", replace(generative.FIXED, batch_rows=2500))
    parts = learner.fit_batches(batches(frame, [1000, 2500]), "k").joint_.log_density(test)
    assert parts.mean() > whole.mean() - 0.05


@pytest.mark.parametrize(
    ("learner", "target", "message"),
    [
        (jf.GenerativeForestClassifier(), "no", "target: there is no column 'no'"),
        (jf.GenerativeForestClassifier(), "g", "column 'g': .* missing cells in the target"),
        (jf.GenerativeForestClassifier(leaf="spn"), "g", "all rows at once"),
        (jf.GenerativeForestClassifier(class_weight="balanced"), "g", "all rows at once"),
        (jf.GenerativeForestRegressor(), "day", "not 'continuous'"),
    ],
)
def test_targets_that_cannot_be_used(learner, target, message):
    with pytest.raises(ValueError, match=message):
        learner.fit_batches(table(), target)


def test_rows_that_are_known_before_they_are_read(tmp_path):
    frame = table(50)
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_csv(tmp_path / "a.csv", index=False)
    (tmp_path / "bad.parquet").write_bytes(b"PAR1")
    assert known_rows(frame) == 90
    assert known_rows([tmp_path / "a.parquet"] * 2) == 180
    assert known_rows(tmp_path / "a.csv") is None and known_rows(lambda: [frame]) is None
    assert known_rows(tmp_path / "bad.parquet") is None
