"""Every learner draws and imputes only what the columns could have: steps, ends and calendars, in any combination."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.data import times
from tests.data.test_steps_and_ends import made, valid_numbers

LEARNERS = {
    "adversarial": lambda **more: jf.AdversarialForest(n_estimators=5, random_state=0, **more),
    "quantile": lambda **more: jf.AdversarialForest(n_estimators=5, leaf="quantile", random_state=0, **more),
    "chow_liu": lambda **more: jf.AdversarialForest(n_estimators=5, leaf="chow_liu", random_state=0, **more),
    "tree": lambda **more: jf.JointTree(random_state=0, **more),
    "hidden": lambda **more: jf.HiddenTreeForest(n_states=8, max_iter=3, random_state=0, **more),
}


def on(step, low=-math.inf, high=math.inf):
    def may(cells):
        x = cells.to_numpy(np.float64)
        return (np.abs(x / step - np.rint(x / step)) < 1e-6) & (x >= low - 1e-9) & (x <= high + 1e-9)

    return may


def kinds_of_columns(rng, n):
    """Columns of random scales, and which cells they may have."""
    step, low, width = rng.choice([0.01, 0.25, 5, 100]), int(rng.integers(-40, 40)), int(rng.integers(20, 90))
    slot = int(rng.choice([300, 900, 3600]))
    size = 10.0 ** rng.integers(0, 3)
    z = rng.normal(size=n)
    rank = pd.Series(z).rank(pct=True).to_numpy()
    few = int(rng.integers(2, 9))
    columns = {
        "steps": (step * np.rint(np.exp(3 + z) * size), on(step, 0)),
        "ends": (low + np.floor(width * rank.clip(0, 0.9999)).astype(int), on(1)),
        "few": (np.floor(few * rank.clip(0, 0.9999)).astype(int), on(1, 0, few - 1)),
        "positive": (np.exp(z) * size, lambda cells: cells.to_numpy() >= 0.0),
        "negative": (-np.exp(z) * size, lambda cells: cells.to_numpy() <= 0.0),
        "slots": (
            np.datetime64("2022-05-01", "s") + slot * np.rint(500 * rank).astype(int),
            lambda cells: (cells.dt.floor(f"{slot}s") == cells).to_numpy(),
        ),
    }
    for name in times.CALENDARS:
        cells = pd.Series(made(name, rng, n))
        columns[name] = (cells.sort_values().to_numpy()[np.argsort(np.argsort(z))], None)
    return columns


def may_have(name, may, cells):
    if may is not None:
        return may(cells)
    if name in times.OF_NUMBERS:
        return valid_numbers(name, cells.astype(np.int64))
    return (cells.dt.day == 1).to_numpy() if name == "month starts" else (cells.dt.dayofweek < 5).to_numpy()


def table(seed, n=250):
    rng = np.random.default_rng(seed)
    columns = kinds_of_columns(rng, n)
    frame = pd.DataFrame({name: cells for name, (cells, _) in columns.items()})
    frame["label"] = np.where(rng.random(n) < frame["ends"].rank(pct=True), "a", "b")
    return columns, frame


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("learner", LEARNERS)
def test_no_cell_that_the_column_could_not_have(learner, seed, tmp_path):
    columns, frame = table(seed)
    holes = frame.mask(np.random.default_rng(seed).random(frame.shape) < 0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        joint = LEARNERS[learner]().fit(holes).joint_
        joint.save(tmp_path / "a.joint")
        joint = jf.load(tmp_path / "a.joint")
        drawn = joint.sample(3000, random_state=seed)
        of_label = joint.given(label="a").sample(1000, random_state=seed)
        filled = joint.impute(frame.head(60).assign(**dict.fromkeys(columns, None)))
        random = joint.impute(frame.head(60).assign(**dict.fromkeys(columns, None)), method="sample", random_state=seed)
    for name, (_, may) in columns.items():
        column = joint.schema[name]
        for cells in (drawn[name], of_label[name], filled[name], random[name]):
            assert may_have(name, may, cells).all(), name
            if column.kind != "datetime" and name not in times.OF_NUMBERS:
                assert cells.min() >= column.lower and cells.max() <= column.upper, name
    for name in ("few", "positive", "steps"):
        assert joint.schema[name].lower >= 0.0
    assert np.isfinite(joint.log_density(frame)).all()


@pytest.mark.parametrize("learner", ["adversarial", "tree"])
def test_values_beyond_hard_ends_keep_a_density_and_can_be_evidence(learner):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"day": rng.integers(1, 32, 400), "price": np.round(rng.lognormal(3, 1, 400), 2)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        joint = LEARNERS[learner]().fit(frame).joint_
        odd = pd.DataFrame({"day": [40, 5], "price": [10.0, -3.0]})
        assert np.isfinite(joint.log_density(odd)).all()
        assert joint.log_density(odd).max() < joint.log_density(frame).mean() - 3.0
        assert joint.given().probability({"day": jf.between(32, None)}) < 2e-3
        below = joint.given(price=jf.between(None, -1.0)).sample(50, random_state=0)
    assert (below["price"] <= -1.0).all()


def test_a_rule_of_order_holds_among_cents_and_slots():
    rng = np.random.default_rng(0)
    low = np.round(rng.lognormal(4, 1, 600), 2)
    start = np.datetime64("2023-01-01", "s") + 900 * rng.integers(0, 9000, 600)
    frame = pd.DataFrame(
        {
            "net": low,
            "gross": np.round(low + rng.lognormal(2, 1, 600), 2),
            "from": start,
            "to": start + 900 * rng.integers(0, 40, 600),
        }
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        joint = jf.HiddenTreeForest(n_states=8, max_iter=3, rules="all", random_state=0).fit(frame).joint_
        drawn = joint.sample(2000, random_state=0)
    assert any(rule.is_enforced for rule in joint.schema.rules)
    assert (drawn["from"] <= drawn["to"]).all()
    for name in ("net", "gross"):
        assert np.abs(100 * drawn[name] - np.rint(100 * drawn[name])).max() < 1e-6
    for name in ("from", "to"):
        assert (drawn[name].dt.floor("900s") == drawn[name]).all()


@pytest.mark.parametrize("learner", LEARNERS)
def test_probabilities_on_calendars_are_those_of_drawn_cells(learner):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: made(name, rng, 400) for name in times.CALENDARS})
    joint = LEARNERS[learner]().fit(frame).joint_
    n = 20_000
    drawn = joint.sample(n, random_state=0)
    for name in times.CALENDARS:
        values = np.sort(drawn[name].unique())
        low, middle, high = values[[len(values) // 5, len(values) // 2, 4 * len(values) // 5]]
        share = drawn[name].value_counts()
        events = [
            (jf.between(low, high), drawn[name].between(low, high).mean()),
            (jf.between(None, middle), (drawn[name] <= middle).mean()),
            (share.index[0], share.iloc[0] / n),
            ([low, middle, high], drawn[name].isin([low, middle, high]).mean()),
        ]
        for event, found in events:
            p = joint.probability({name: event})
            assert p == pytest.approx(found, abs=5.0 * math.sqrt(max(p * (1.0 - p), 1.0 / n) / n)), (name, event)
        # each number between is moved to one value
        assert joint.probability({name: list(values)}) == pytest.approx(1.0, abs=0.05)
        assert joint.probability({name: jf.between(low, high)}) + joint.probability(
            f"`{name}` < {_text(low)} or `{name}` > {_text(high)}"
        ) == pytest.approx(1.0, abs=1e-6)


def _text(value):
    return f"'{pd.Timestamp(value).date()}'" if isinstance(value, np.datetime64 | pd.Timestamp) else str(value)
