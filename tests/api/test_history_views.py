"""Joints of histories, their forecasts and estimates in notebooks: tables that can be read."""

from __future__ import annotations

import re

import pytest

import jointforest as jf


def words(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", html))


def test_views_of_histories() -> None:
    visits = jf.datasets.make_visits(100, random_state=0)
    joint = jf.fit(visits, group="patient", order="date", random_state=0)
    said = words(joint._repr_html_())
    assert "100 subjects" in said
    for name in joint.varying:
        assert f"{name} {joint.schema[name].kind} varies from row to row" in said
    forecast = joint.forecast(visits, random_state=0)
    said = words(forecast._repr_html_())
    assert "and 92 subjects more" in said
    first = forecast.mean("pressure")[0, 0]
    assert f" {first:.4g} " in said and f" {100 * forecast.end_probability[0, 0]:.1f}% " in said
    assert forecast.mean("status")[0, 0] in said
    found = joint.fidelity(visits, random_state=0)
    assert str(found).split("\n")[0] in words(found._repr_html_())


@pytest.mark.parametrize("method", ["exact", "sampling"])
def test_views_of_estimates(method: str) -> None:
    error = 0.0 if method == "exact" else 0.0123
    said = words(jf.Estimate(0.25, error, method)._repr_html_())
    assert "0.25" in said and ("exact" in said) == (method == "exact") and ("0.012" in said) == (method == "sampling")
