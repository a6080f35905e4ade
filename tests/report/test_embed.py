"""The joint in the file: its tables are those of the joint, or of one whose distance from it was measured."""

from __future__ import annotations

import base64
import zlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from jointforest.api.joint import Joint
from jointforest.explorer.shown import ShownJoint
from jointforest.inference.histogram import histogram
from jointforest.report import embed
from jointforest.report.cuts import code_shares, page_cuts
from jointforest.report.embed import (
    Packer,
    answers_of,
    embedded,
    measured_errors,
    quantized,
    random_pieces,
    restored,
    rounded,
    row_evidence,
    wire,
)

from ..explorer import tables


@pytest.mark.parametrize("name", tables.JOINTS)
def test_a_joint_of_any_kind_is_embedded_itself(name: str) -> None:
    joint = tables.JOINTS[name]()
    found = embedded(ShownJoint(joint))
    assert found.is_itself and found.errors is None and found.shown.joint is joint
    kinds = [part["kind"] for part in wire(found, "t", "s")["parts"]]
    assert kinds == ["forest" if part.is_forest else "hidden" for part in joint.distribution.components]
    weights = [part["log_weight"] for part in found.written["parts"]]
    assert np.exp(weights).sum() == pytest.approx(1.0)


def test_a_large_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed, "MOST_BYTES", 24_000)
    monkeypatch.setattr(embed, "_DRAWS", 1_000)
    found = embedded(ShownJoint(tables.forest()))
    assert not found.is_itself and found.n_rows == 1_000
    assert found.shown.joint.schema == tables.forest().schema
    assert found.errors is not None and found.errors.n == 200
    assert 0.0 < found.errors.usual < found.errors.largest <= 1.0


def test_fewer_bits_are_tried_before_a_smaller_joint(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = ShownJoint(tables.hidden())
    size = len(embedded(shown).written["packed"])
    monkeypatch.setattr(embed, "MOST_BYTES", size - 1)
    found = embedded(shown)
    assert found.is_itself and found.bits == 8
    assert found.errors is not None and found.errors.largest < 0.02


def test_the_errors_are_those_of_the_answers() -> None:
    shown = ShownJoint(tables.hidden())
    other = rounded(shown.joint.distribution, 3)
    near = Joint(other)
    for piece in random_pieces(shown, 20):
        found = measured_errors(shown, other, [piece])
        text = {shown.columns[c["column"]].name: _said(shown, c) for c in piece}
        worst = max(
            abs(p - near.given(text).proba(name)[level])
            for name in ("member", "size", "town")
            for level, p in shown.joint.given(text).proba(name).items()
        )
        assert worst <= found.largest + 1e-6 and found.n == 1
    every = measured_errors(shown, shown.joint.distribution, random_pieces(shown, 20))
    assert every.largest == 0.0


def _said(shown: ShownJoint, condition: dict[str, Any]) -> Any:
    from jointforest.explorer.state import read_evidence

    name = shown.columns[condition["column"]].name
    return read_evidence(shown.joint.schema, [condition])[name]


def test_pieces_are_of_rows_that_there_can_be() -> None:
    shown = ShownJoint(tables.both())
    pieces = random_pieces(shown, 50)
    assert {len(piece) for piece in pieces} <= {0, 1, 2, 3} and pieces == random_pieces(shown, 50)
    for piece in pieces:
        text = {shown.columns[c["column"]].name: _said(shown, c) for c in piece}
        assert not text or shown.joint.probability(text) > 0.0


@pytest.mark.parametrize("name", ["hidden trees", "mixture"])
def test_masses_of_cuts_are_the_joints(name: str) -> None:
    shown = ShownJoint(tables.JOINTS[name]())
    part = next(c for c in shown.joint.distribution.components if c.hidden_trees() is not None)
    hidden = part.hidden_trees()
    assert hidden is not None
    for j, (column, cuts) in enumerate(zip(shown.columns, page_cuts(shown), strict=True)):
        cut, code, share = code_shares(hidden.scales[j], column, cuts.bins.cuts)
        np.testing.assert_allclose(np.bincount(code, share), 1.0, atol=1e-9)
        shares = np.zeros((hidden.scales[j].n_codes, cuts.n))
        shares[code, cut] = share
        (tree,) = hidden.trees
        state, way, k = np.ones(1), [], tree.node[j]
        while k >= 0:
            way.append(k)
            k = int(tree.parent[k])
        for k in reversed(way):
            state = state @ tree.transition[k]
        mass = state @ tree.emission[tree.node[j]] @ shares
        alone = ShownJoint(Joint(part))
        expected = alone.masses[j]
        fine = alone.bins[j].together(expected) if not column.is_categorical else expected
        np.testing.assert_allclose(cuts.bins.together(mass), fine, atol=1e-5)


def test_arrays_and_tables_are_where_they_are_said_to_be() -> None:
    rng = np.random.default_rng(0)
    table = rng.dirichlet(np.full(5, 0.1), 7)
    table[:, 3] = 0.0
    numbers = rng.normal(size=4)
    packer = Packer()
    first, second = packer.array(numbers, "f8"), packer.table(table, 12)
    data = zlib.decompress(base64.b64decode(packer.text()))
    np.testing.assert_array_equal(np.frombuffer(data, "<f8", first["n"], first["at"]), numbers)
    planes = np.frombuffer(data, np.uint8, 2 * table.size, second["at"]).reshape(2, *table.shape).astype(int)
    top = np.frombuffer(data, "<f4", second["top"]["n"], second["top"]["at"])
    np.testing.assert_array_equal(restored(256 * planes[0] + planes[1], top, 12), restored(*quantized(table, 12), 12))


@pytest.mark.parametrize(("bits", "error"), [(8, 3e-3), (12, 2e-4), (16, 1e-5)])
def test_rounded_entries_are_near(bits: int, error: float) -> None:
    table = np.random.default_rng(1).dirichlet(np.full(30, 0.2), 40)
    found = restored(*quantized(table, bits), bits)
    assert (np.abs(found - table) / table.max(axis=0)).max() < 1.5 * error
    assert (restored(*quantized(np.zeros((2, 3)), bits), bits) < 1e-29).all()


@pytest.mark.parametrize(("learned", "drawn"), [(100, 5_000), (4_000, 8_000), (10**7, 40_000), (0, 40_000)])
def test_draws_for_a_smaller_joint_go_with_the_rows_of_the_joint(
    monkeypatch: pytest.MonkeyPatch, learned: int, drawn: int
) -> None:
    joint = tables.hidden()
    schema = replace(joint.schema, n_rows=float(learned))
    many = Joint(joint.distribution.with_schema(schema))
    asked = []
    monkeypatch.setattr(embed, "MOST_BYTES", 1)
    monkeypatch.setattr(embed, "_smaller", lambda shown, X: (asked.append(len(X)), (shown, 8, {}))[1])
    monkeypatch.setattr(embed, "_errors", lambda *_: None)
    assert embedded(ShownJoint(many)).n_rows == drawn == asked[0]


def test_answers_of_a_mixture_are_those_of_its_posterior() -> None:
    shown = ShownJoint(tables.both())
    model, evidence = shown.joint.distribution, row_evidence(shown.joint.schema, random_pieces(shown, 20))
    assert len(model.components) > 1
    for j, (shares, bins) in enumerate(zip(answers_of(model, evidence, shown.bins), shown.bins, strict=True)):
        np.testing.assert_allclose(shares, histogram(model.observe(evidence), j, bins.edges), atol=1e-6)
