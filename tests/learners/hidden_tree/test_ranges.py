"""Learning from cells that are ranges: counts against enumeration, limits that are values or missing cells, bias."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import gamma, norm

import jointforest as jf
from jointforest.data.frames import encode_ranges, read
from jointforest.data.infer_schema import infer_schema
from jointforest.data.ranges import Ranges, complete_table
from jointforest.learners.hidden_tree.codes import scales_of, share_of_informed, table_of
from jointforest.learners.hidden_tree.em import expected_counts, from_tree, log_probabilities, split_tables
from jointforest.learners.hidden_tree.learn import LearnSettings, learn_tree
from jointforest.learners.hidden_tree.structure import CodeTable
from jointforest.learners.history.prepare import prepare_histories
from jointforest.learners.rows import read_training_rows

from ...oracle import hidden_learning as oracle
from .test_em import random_tree


@pytest.mark.parametrize("n", [2, 4, 12])  # fewer rows than cells, and more
@pytest.mark.parametrize("seed", range(4))
def test_expected_counts_against_enumeration(seed, n):
    """Whole codes and parts of codes, beside values, missing cells and weights; some columns have no ranges."""
    rng = np.random.default_rng(seed)
    tree, n_codes = random_tree(rng, d=5 if seed else 1)
    covers = tuple(
        np.where(rng.random((R, K)) < 0.5, rng.integers(0, 2, (R, K)), rng.random((R, K))) for K, R in
        zip(n_codes.tolist(), rng.integers(0, 4, len(n_codes)).tolist(), strict=True)
    )  # fmt: skip
    for cover in covers:
        cover[:, 0] = np.maximum(cover[:, 0], 0.1)
    codes = rng.integers(0, n_codes + 1 + [len(cover) for cover in covers], (n, len(tree)))
    weight = rng.uniform(0.2, 3.0, n)
    pairs, cells, total = oracle.expected_counts(
        tree.column, tree.parent, tree.transition, tree.emission, codes.tolist(), weight.tolist(), covers
    )
    nodes, tables = from_tree(tree)
    by_column = np.ascontiguousarray(codes.T, dtype=np.int32)
    found = expected_counts(nodes, tables, by_column, np.arange(n), weight.astype(np.float32), covers=covers)
    found_pairs, found_cells = split_tables(nodes, found)
    for a, b in zip(found_pairs + [cell[:-1].T for cell in found_cells], pairs + cells, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)
    assert log_probabilities(nodes, tables, by_column, covers=covers) @ weight == pytest.approx(total, abs=1e-5)
    for j, cell in zip(tree.column, found_cells, strict=True):
        assert cell[-1].sum() == pytest.approx(weight[codes[:, j] == n_codes[j]].sum(), abs=1e-5)


def numbers_and_levels(seed=0, n=400):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 12, n)
    return pd.DataFrame({
        "whole": a,
        "real": a + rng.normal(size=n),
        "level": np.where(rng.random(n) < 0.8, a > 6, a <= 6).astype(str),
    })  # fmt: skip


def learned(frame, **more):
    return jf.HiddenTreeForest(n_states=6, random_state=0, **more).fit(frame).joint_


@pytest.mark.parametrize("weighed", [False, True])
def test_ranges_of_one_grid_value_are_this_value(weighed):
    frame = numbers_and_levels()
    frame.loc[::7, "real"] = np.nan
    hidden = frame.astype({"whole": object})
    hidden.loc[::3, "whole"] = [jf.between(v - 0.4, v + 0.4) for v in frame.loc[::3, "whole"]]
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(frame)) if weighed else None
    joints = [
        jf.HiddenTreeForest(n_states=6, random_state=0).fit(one, sample_weight=weight).joint_
        for one in (frame.astype({"whole": float}), hidden)
    ]
    a, b = (joint.log_density(frame) for joint in joints)
    np.testing.assert_allclose(a, b, atol=2e-3)


def test_ranges_of_the_whole_line_are_missing_cells():
    frame = numbers_and_levels()
    missing, whole = frame.copy(), frame.astype({"real": object})
    missing.loc[::3, "real"] = np.nan
    whole.loc[::3, "real"] = jf.between(None, None)
    a, b = (learned(one).log_density(frame) for one in (missing, whole))
    np.testing.assert_allclose(a, b, atol=1e-6)


def test_a_limit_of_detection_is_the_end_of_a_code():
    rng = np.random.default_rng(0)
    x = rng.exponential(size=1_000)
    frame = pd.DataFrame({"x": [jf.between(None, 0.3) if v <= 0.3 else v for v in x], "y": rng.normal(size=1_000)})
    rows = read_training_rows(frame, None)
    scales = scales_of(rows.schema, rows.X, None, 32, 0.0, False, rows.ranges)
    table = table_of(rows.schema, scales, rows.X, None, rows.ranges)
    assert set(np.unique(table.covers[0])) == {0.0, 1.0} and len(table.covers[1]) == 0
    assert 0.3 in scales[0].hi
    K = scales[0].n_codes
    is_range = table.known[:, 0] == K + 1
    np.testing.assert_array_equal(is_range, x <= 0.3)
    assert (table.covers[0][0][table.codes[is_range, 0]] == 1.0).all()  # draws are inside


def test_values_in_place_of_ranges_follow_other_cells_and_stay_what_they_are():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(4_000, 2))
    x, y = z[:, 0], 0.9 * z[:, 0] + 0.3 * z[:, 1]
    below = x <= -0.3
    frame = pd.DataFrame({"x": [jf.between(None, -0.3) if v <= -0.3 else v for v in x], "y": y})
    schema = infer_schema(frame)
    X, _, ranges = encode_ranges(schema, frame)
    plain, cells = complete_table(schema, X, ranges), read_training_rows(frame, None).X
    np.testing.assert_array_equal(np.sort(plain[below, 0]), np.sort(cells[below, 0]))
    np.testing.assert_array_equal(plain[~below], cells[~below])
    before, after, truth = (np.corrcoef(v[below], y[below])[0, 1] for v in (plain[:, 0], cells[:, 0], x))
    assert abs(before) < 0.1 and abs(after - truth) < 0.05


def test_the_likelihood_of_ranges_rises_with_full_passes():
    frame = numbers_and_levels()
    hidden = frame.astype({"real": object})
    hidden.loc[frame.real < 4, "real"] = jf.between(None, 4)
    rows = read_training_rows(hidden, None)
    scales = scales_of(rows.schema, rows.X, None, 16, 0.0, False, rows.ranges)
    table = table_of(rows.schema, scales, rows.X, None, rows.ranges)
    by_column = np.ascontiguousarray(table.known.T, dtype=np.int32)

    def mean(full):
        nodes, tables = from_tree(learn_tree(table, LearnSettings(n_states=6, passes=1, full=full)))
        return log_probabilities(nodes, tables, by_column, covers=table.covers).mean()

    assert mean(8) > mean(1) > mean(0)


@pytest.mark.parametrize("share", [0.3, 0.6])
def test_means_and_correlations_below_a_limit(share):
    off = []
    for seed in (3, 4, 5):
        rng = np.random.default_rng(seed)
        z = rng.normal(size=(4_000, 2))
        x, y = np.exp(0.7 * z[:, 0]), z[:, 0] + z[:, 1]
        limit = np.quantile(x, share)
        cells = [jf.between(None, limit, closed="neither") if v < limit else v for v in x]
        joint, full = (
            jf.HiddenTreeForest(n_states=64, random_state=0).fit(pd.DataFrame({"x": of, "y": y})).joint_
            for of in (cells, x)
        )
        off.append(abs(joint.given().mean("x") - x.mean()) / x.std())
        drawn, of_full = (one.sample(20_000, random_state=0).corr().loc["x", "y"] for one in (joint, full))
        assert abs(drawn - of_full) < 0.03
        low = np.abs(y + 2.0) < 0.1
        assert abs(joint.given(y=-2.0).mean("x") - x[low].mean()) < 0.1 * x.std()
    assert np.mean(off) < 0.02


def test_times_that_are_not_over_yet(tmp_path):
    rng = np.random.default_rng(0)
    dose = rng.integers(0, 2, 3_000)
    time, end = rng.exponential(np.where(dose == 1, 20.0, 8.0)), rng.exponential(20.0, 3_000)
    frame = pd.DataFrame({"months": np.minimum(time, end), "died": time <= end, "dose": dose.astype(str)})
    joint = jf.HiddenTreeForest(
        n_states=16, kinds={"months": jf.censored(event="died")}, random_state=0
    ).fit(frame).joint_  # fmt: skip
    assert tuple(joint.columns) == ("months", "dose")
    for level in "01":
        own = joint.given(dose=level)
        for t in (4.0, 8.0, 16.0):
            truth = np.exp(-t / (20.0 if level == "1" else 8.0))
            later = joint.given(dose=level, months=jf.between(t, None))
            assert np.exp(later.log_probability - own.log_probability) == pytest.approx(truth, abs=0.05)
    # frames are read alike: the number of a row without an event is a bound
    row = pd.DataFrame({"months": [10.0], "died": [False]})
    after = joint.given(months=jf.between(10.0, None, closed="neither"))
    assert joint.log_density(row)[0] == pytest.approx(after.log_probability)
    # a drawn row has no flag, and an exact number
    drawn = joint.sample(5, random_state=0)
    assert np.isfinite(joint.log_density(drawn)).all() and drawn.months.notna().all()
    joint.save(tmp_path / "joint.npz")
    again = jf.load(tmp_path / "joint.npz")
    assert again.log_density(row)[0] == pytest.approx(joint.log_density(row)[0])


@pytest.mark.parametrize("learner", [jf.AdversarialForest(5, random_state=0), jf.JointTree(random_state=0)])
def test_forests_learn_draws_within_ranges(learner):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(1_500, 2))
    x, y = np.exp(z[:, 0]), z[:, 0] + 0.5 * z[:, 1]
    frame = pd.DataFrame({"x": [jf.between(None, 0.6) if v <= 0.6 else v for v in x], "y": y})
    frame.loc[::10, "y"] = np.nan
    joint = learner.fit(frame).joint_
    assert np.exp(joint.given(x=jf.between(None, 0.6)).log_probability) == pytest.approx((x <= 0.6).mean(), abs=0.02)
    assert abs(joint.given().mean("x") - x.mean()) < 0.04 * x.std()


def test_fit_compares_learners_on_draws_and_learns_ranges():
    frame = numbers_and_levels(n=300)
    hidden = frame.astype({"real": object})
    hidden.loc[frame.real < 4, "real"] = jf.between(None, 4)
    joint = jf.fit(hidden, random_state=0, budget="fast")
    share = np.exp(joint.given(real=jf.between(None, 4)).log_probability)
    assert share == pytest.approx((frame.real < 4).mean(), abs=0.05)


def test_rules_are_not_about_ranges():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 50, (2, 2_000))
    frame = pd.DataFrame({"a": a, "b": b, "sum": a + b, "low": np.minimum(a, b)})
    hidden = frame.astype({"sum": object})
    hidden.loc[frame["sum"] > 80, "sum"] = jf.between(81, None)
    rows = read_training_rows(hidden, None)
    assert rows.schema.rules and not any("sum" in rule.columns for rule in rows.schema.rules)
    joint = jf.HiddenTreeForest(n_states=8, random_state=0).fit(hidden).joint_  # of coordinates of the other rules
    share = np.exp(joint.given(sum=jf.between(81, None)).log_probability)
    assert share == pytest.approx((frame["sum"] > 80).mean(), abs=0.02)
    with pytest.raises(ValueError, match=r"rules: 'sum = a \+ b' is about column 'sum', .* are ranges"):
        jf.HiddenTreeForest(n_states=8, rules=["sum = a + b"]).fit(hidden)


def test_many_different_limits_are_joined():
    rng = np.random.default_rng(0)
    time, end = rng.exponential(10.0, 3_000), rng.exponential(15.0, 3_000)
    frame = pd.DataFrame({"t": [jf.between(c, None) if c < v else v for v, c in zip(time, end, strict=True)]})
    rows = read_training_rows(frame, None)
    scales = scales_of(rows.schema, rows.X, None, 32, 0.0, False, rows.ranges)
    table = table_of(rows.schema, scales, rows.X, None, rows.ranges)
    assert len(table.covers[0]) <= 513
    K, is_range = scales[0].n_codes, (end < time)
    assert (table.known[is_range, 0] > K).all() and (table.known[~is_range, 0] < K).all()


def test_ranges_are_rows_and_columns_like_others():
    ranges = Ranges(np.array([[0, -1], [-1, 1]], np.int32), (jf.between(0, 1), jf.between(2, 3)))
    assert ranges.take(np.array([1])).number.tolist() == [[-1, 1]]
    assert ranges.select([1, -1, 0]).number.tolist() == [[-1, -1, 0], [1, -1, -1]]
    assert ranges.select([-1]) is None


def test_a_schema_of_ranges_alone():
    cells = [jf.between(0, 5), jf.between(5, 10), None, jf.between(3, 7)]
    frame = pd.DataFrame({"x": cells, "y": [1.0, 2.0, 3.0, 4.5]})
    column = infer_schema(frame).columns[0]
    assert (column.n_observed, column.n_ranges, column.kind) == (3, 3, "continuous")


def test_frames_with_ranges_are_evidence():
    frame = numbers_and_levels()
    joint = learned(frame)
    rows = pd.DataFrame({"real": ["<3", "8.5", "10+"], "whole": [2, 9, 10]})
    for i, condition in enumerate((jf.between(None, 3, "neither"), 8.5, jf.between(10, None))):
        own = joint.given(real=condition, whole=int(rows.whole[i]))
        np.testing.assert_allclose(joint.predict_proba(rows, "level")[i], list(own.proba("level").values()))
        assert joint.log_density(rows)[i] == pytest.approx(own.log_probability)
        np.testing.assert_allclose(joint.given(rows).mean("real")[i], own.mean("real"))


def test_ranges_are_kept_or_filled():
    frame = numbers_and_levels()
    cells = frame.real.map("{:.2f}".format).where(frame.real >= 4, "<4.00")
    hidden = frame.assign(real=cells)
    hidden.loc[::5, "whole"] = np.nan
    joint = learned(hidden)
    for method in ("mean", "sample"):
        kept = joint.impute(hidden, method, random_state=0)
        assert (kept.real == cells).all() and kept.whole.notna().all()
        filled = joint.impute(hidden, method, random_state=0, ranges="fill").real
        assert (filled[frame.real >= 4] == cells[frame.real >= 4]).all()
        assert (filled[frame.real < 4].astype(float) <= 4).all()
    with pytest.raises(ValueError, match="ranges must be 'keep' or 'fill', got 'drop'"):
        joint.impute(hidden, ranges="drop")


def as_text(frame):
    return frame.assign(real=[f"{v:.2f}" if isinstance(v, float) else "<4" for v in frame.real])


def conformal(frame):
    learner = jf.GenerativeForestClassifier(3, conformal=True, random_state=0)
    return learner.fit(frame[["whole", "real"]], frame.level)


def subjects(frame):
    return frame.assign(g=np.arange(len(frame)) // 4)


def history(frame):
    return jf.HistoryForest(random_state=0).fit(subjects(frame), group="g")


@pytest.mark.parametrize(
    ("learn", "why"),
    [
        (lambda frame: conformal(frame).predict_set(frame[["whole", "real"]]), "not taken here"),
        (lambda frame: history(frame).joint_.log_density(subjects(frame)), "not taken here"),
    ],
)
def test_what_takes_no_ranges_says_so(learn, why):
    frame = numbers_and_levels()
    hidden = frame.astype({"real": object})
    hidden.loc[frame.real < 4, "real"] = jf.between(None, 4)
    with pytest.raises(ValueError, match=rf"column 'real' has .* cells that are ranges, .*{why}"):
        learn(hidden)


def test_ranges_that_are_meant_as_levels_are_learned_in_batches():
    frame = as_text(numbers_and_levels().astype({"real": object}).assign(real=lambda of: [*["<4"] * 9, *of.real[9:]]))
    joint = jf.HiddenTreeForest(n_states=2, kinds={"real": "categorical"}, random_state=0).fit_batches(frame).joint_
    assert joint.given().probability("real = '<4'") == pytest.approx(9 / 400, abs=0.02)


def test_generative_forests_learn_draws_and_answer_given_ranges():
    rng = np.random.default_rng(0)
    x = rng.normal(size=2_000)
    label = (rng.random(2_000) < 1 / (1 + np.exp(-2 * x))).astype(int)
    X = pd.DataFrame({"x": [jf.between(None, -0.3) if v <= -0.3 else v for v in x]})
    forest = jf.GenerativeForestClassifier(20, min_samples_leaf=20, random_state=0).fit(X, label)
    low = forest.predict_proba(pd.DataFrame({"x": [jf.between(None, -0.3)]}))[0, 1]
    assert low == pytest.approx(label[x <= -0.3].mean(), abs=0.05)
    assert np.exp(forest.joint_.given(x=jf.between(None, -0.3)).log_probability) == pytest.approx(
        (x <= -0.3).mean(), abs=0.03
    )


def test_histories_learn_values_that_suit_the_rows_beside_them():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 6))
    for t in range(1, 6):
        x[:, t] = 0.8 * x[:, t - 1] + 0.6 * x[:, t]
    limit = np.quantile(x, 0.3)
    cells = [jf.between(None, limit) if v <= limit else v for v in x.ravel()]
    frame = pd.DataFrame({"id": np.repeat(np.arange(300), 6), "t": np.tile(np.arange(6), 300), "x": cells})
    frame["y"] = x.ravel() + rng.normal(size=1_800)
    found = prepare_histories(read(frame), "id", "t", None, True).X[:, 0].reshape(300, 6)
    assert (found[x <= limit] <= limit).all() and (found[x > limit] == x[x > limit]).all()
    lag, of_true = (np.corrcoef(of[:, 1:].ravel(), of[:, :-1].ravel())[0, 1] for of in (found, x))
    assert lag == pytest.approx(of_true, abs=0.06)
    drawn = jf.HistoryForest(random_state=0).fit(frame, group="id", order="t").joint_.sample(300, random_state=0)
    assert (drawn.x.astype(float) <= limit).mean() == pytest.approx(0.3, abs=0.05)


def as_gamma(z):
    return gamma.ppf(norm.cdf(z), 3.0)


@pytest.mark.parametrize("shape", ["lognormal", "normal", "gamma"])
def test_a_joint_of_few_rows_agrees_with_its_own_rows_and_with_the_truth(shape):
    """Shares below the limit are counted in the rows; moments are those of the values that it has not seen."""
    off = []
    for seed in (0, 1, 2):
        rng = np.random.default_rng(seed)
        z = rng.normal(size=(500, 2))
        x = {"lognormal": np.exp(0.6 * z[:, 0]), "normal": 8 + z[:, 0], "gamma": gamma.ppf(norm.cdf(z[:, 0]), 3.0)}[
            shape
        ]
        y = 0.8 * z[:, 0] + 0.6 * z[:, 1]
        limit = float(np.quantile(x, 0.3))
        low = x < limit
        frame = pd.DataFrame(
            {"x": [jf.between(None, limit, "neither") if a else v for v, a in zip(x, low, strict=True)], "y": y}
        )
        joint = jf.HiddenTreeForest(random_state=0).fit(frame).joint_
        is_low = {"x": jf.between(None, limit, "neither")}
        assert np.exp(joint.given(**is_low).log_probability) == pytest.approx(low.mean(), abs=0.01)
        for lo, hi in ((-9.0, -0.5), (-0.5, 0.5), (0.5, 9.0)):
            here = (y > lo) & (y <= hi)
            near = jf.between(lo, hi, "right")
            both = joint.given(y=near, **is_low).log_probability - joint.given(y=near).log_probability
            assert np.exp(both) == pytest.approx(low[here].mean(), abs=0.06)
            assert abs(joint.given(y=near).mean("x") - x[here].mean()) / x.std() < 0.07
        for q in (0.4, 0.5, 0.9):  # above the limit
            assert abs(joint.given().quantile("x", q) - np.quantile(x, q)) < 0.08 * x.std()
        off.append((joint.given().mean("x") - x.mean()) / x.std())
        assert abs(joint.given().std("x") / x.std() - 1) < 0.1
        assert joint.given().mean("x") == pytest.approx(read_training_rows(frame, None).X[:, 0].mean(), abs=0.005)
    assert np.abs(off).max() < 0.04 and np.abs(off).mean() < 0.02


@pytest.mark.parametrize(
    ("known", "covers", "share"),
    [
        ([0, 1, 2, 4, 4, 4], [[1, 1, 0]], 1.0),  # values lie in the range
        ([2, 2, 2, 4, 4, 4], [[1, 1, 0]], 0.0),  # one limit
        ([2, 3, 2, 4, 4, 5], [[1, 0, 0], [0, 1, 0]], 0.0),  # brackets beside each other, and a missing cell
        ([4, 4, 4, 5, 5, 5], [[1, 1, 0], [1, 0, 0]], 1.0),  # one ends inside another
        ([2, 4, 4, 5, 5, 5], [[1, 1, 0], [0, 0, 1]], 0.6),
    ],
)
def test_which_ranges_hold_values_or_ends_of_others(known, covers, share):
    codes = np.array(known).reshape(-1, 1)
    table = CodeTable(
        np.minimum(codes, 3), np.array([3]), np.array([True]), known=codes, covers=(np.array(covers, float),)
    )
    assert share_of_informed(table) == pytest.approx(share)
    assert share_of_informed(table._replace(known=None, covers=())) == 0.0


def test_dependence_below_one_limit_is_kept():
    """Values below a limit are exchanged as other cells say; passes over ranges must not undo it."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(1500, 2))
    frame = pd.DataFrame({"x": z[:, 0], "y": 0.8 * z[:, 0] + 0.6 * z[:, 1]})
    cells = [jf.between(None, -0.2) if x <= -0.2 else x for x in frame.x]
    low = frame.x <= -0.2
    joint = jf.HiddenTreeForest(n_states=16, random_state=0).fit(frame.assign(x=cells)).joint_
    of_values = jf.HiddenTreeForest(n_states=16, random_state=0).fit(frame).joint_
    found = [
        np.mean(
            [
                of.impute(frame.assign(x=cells), "sample", random_state=k, ranges="fill").astype(float)[low].corr().x.y
                for k in range(4)
            ]
        )
        for of in (joint, of_values)
    ]
    assert found[0] == pytest.approx(found[1], abs=0.09)


@pytest.mark.parametrize(("step", "half"), [(1.0, 0.4), (0.1, 0.04), (0.01, 0.004), (5.0, 1.0)])
def test_ranges_of_one_value_are_values_to_every_learner(step: float, half: float) -> None:
    rng = np.random.default_rng(0)
    x = (step * np.maximum(rng.integers(-20, 60, 200), 0)).round(2)  # with a point mass and a hard end
    ranges = [jf.between(v - half, v + half) if i % 3 else v for i, v in enumerate(x.tolist())]
    other = rng.normal(size=200)
    values, held = (pd.DataFrame({"x": of, "other": other}) for of in (x, pd.Series(ranges, dtype=object)))
    for learner in (
        jf.AdversarialForest(5, random_state=0),
        jf.HiddenTreeForest(n_states=8, max_iter=2, random_state=0),
    ):
        one, same = (learner.fit(frame).joint_.log_density(values) for frame in (values, held))
        np.testing.assert_array_equal(one, same)
