"""A column that is another one in another unit, both on grids, beside the other column's masses added up."""

import numpy as np
import pandas as pd
import pytest

import jointforest as jf
from jointforest.data.evidence import build
from jointforest.learners.hidden_tree.hidden_tree_forest import HiddenTreeForest

UNITS = [(0.19, 0.0, 2, 2), (1.19, 0.0, 2, 2), (-0.5, 10.0, 0, 0), (-1.25, 3.0, 0, 0), (2.54, 0.0, 1, 0)]


def table(factor: float, constant: float, digits: int, inner_digits: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    kind = rng.choice(["a", "b"], 400)
    net = np.round(np.exp(rng.normal(2.0, 0.7, 400)) * np.where(kind == "a", 1.0, 1.5), inner_digits)
    made = np.rint(np.round((constant + factor * net) * 10.0**digits, 6)) / 10.0**digits  # the even one of two
    return pd.DataFrame({"kind": kind, "net": net, "made": np.round(made, digits)})


@pytest.mark.parametrize(("factor", "constant", "digits", "inner_digits"), UNITS)
def test_masses_quantiles_and_histograms(factor: float, constant: float, digits: int, inner_digits: int) -> None:
    t = table(factor, constant, digits, inner_digits)
    joint = HiddenTreeForest(n_estimators=2, n_states=8, random_state=0).fit(t).joint_
    assert [rule.columns for rule in joint.rules if rule.is_enforced] == [("made", "net")]
    schema = joint.schema
    rows = [{}, {"kind": "a"}, {"net": jf.between(4, 9)}, {"made": float(t.made.iloc[3])}]
    step, x = 10.0**-inner_digits, np.arange(int(3 * t.net.max() * 10**inner_digits)) * 10.0**-inner_digits
    of_x = np.rint(np.round((constant + factor * x) * 10.0**digits, 6)) / 10.0**digits
    asked = np.quantile(t.made, [0.0, 0.11, 0.3, 0.5, 0.77, 1.0]) + np.array([-1.0, 0.0, 0.3, 0.0, 0.0, 1.0])
    levels = np.array([0.03, 0.25, 0.5, 0.9])
    for evidence in rows:
        state = joint.distribution.observe(build(schema, conditions=evidence, n=1))
        p = state.pdf(1, x)[0] * step
        below = np.array([p[of_x <= one + 1e-9].sum() for one in asked])
        assert state.cdf(2, asked)[0] == pytest.approx(below, abs=2e-5)
        each = np.array([p[np.abs(of_x - one) < 1e-9].sum() for one in t.made[:40]])
        assert state.pdf(2, t.made[:40].to_numpy())[0] * 10.0**-digits == pytest.approx(each, abs=2e-6)
        cuts = asked[1:5]
        assert state.histogram(2, cuts)[0].sum() == pytest.approx(1.0)
        found = state.quantile(2, levels)[0]
        assert (state.cdf(2, found)[0] >= levels - 1e-6).all()
        assert (np.diag(state.cdf(2, found - 10.0**-digits)[:1].repeat(4, 0)) < levels + 1e-6).all()
        mean = (p * of_x).sum() / p.sum()
        assert state.moments(2)[0][0] == pytest.approx(mean, rel=2e-3)
