"""The joint in the file: its tables are those of the joint, or of one that is near it."""

from __future__ import annotations

import base64
from dataclasses import replace

import numpy as np
import pytest

import jointforest as jf
from jointforest.explorer.subject import Subject
from jointforest.models.hidden_tree.hidden_tree import HiddenTree
from jointforest.report import embed
from jointforest.report.embed import cut_shares, embedded, wire

from ..explorer import tables


def test_a_small_joint_of_hidden_trees_is_embedded_itself() -> None:
    found = embedded(Subject(tables.hidden()))
    assert found.is_itself and found.difference == 0.0
    (part,) = tables.hidden().distribution.components
    assert isinstance(part, HiddenTree) and found.hidden is part.hidden


def test_a_large_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed, "MOST_BYTES", 10_000)
    monkeypatch.setattr(embed, "DRAWS", 1_000)
    found = embedded(Subject(tables.hidden()))
    assert not found.is_itself
    said = wire(found, "t", "s")
    assert len(base64.b64decode(said["tables"])) <= 10_000


def test_the_difference_said_is_the_largest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed, "DRAWS", 2_000)
    joint = tables.forest()
    found = embedded(Subject(joint))
    small = found.subject.joint
    assert small.columns == joint.columns and small.schema == joint.schema
    shares = [
        abs(p - small.given().proba(name)[level])
        for name in ("member", "size", "town")
        for level, p in joint.given().proba(name).items()
    ]
    assert max(shares) <= found.difference + 1e-9 < 0.1


def test_masses_of_cuts_are_the_joints(monkeypatch: pytest.MonkeyPatch) -> None:
    found = embedded(Subject(tables.hidden()))
    (tree,) = found.hidden.trees
    for j, (scale, column, bins) in enumerate(
        zip(found.hidden.scales, found.subject.columns, found.subject.bins, strict=True)
    ):
        shares = cut_shares(scale, column, bins.cuts)
        np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-12)
        state = np.ones(1)
        way, k = [], tree.node[j]
        while k >= 0:
            way.append(k)
            k = int(tree.parent[k])
        for k in reversed(way):
            state = state @ tree.transition[k]
        mass = state @ tree.emission[tree.node[j]] @ shares
        np.testing.assert_allclose(mass, found.subject.masses[j], atol=1e-5)


def test_tables_lie_one_after_the_other() -> None:
    found = embedded(Subject(tables.hidden()))
    said = wire(found, "t", "s")
    numbers = np.frombuffer(base64.b64decode(said["tables"]), "<f4")
    (tree,), (about,) = found.hidden.trees, said["trees"]
    at = 0
    for k, (states, cuts) in enumerate(zip(about["states"], about["cuts"], strict=True)):
        size = tree.transition[k].size
        np.testing.assert_array_equal(numbers[at : at + size], tree.transition[k].ravel())
        at += size + states * cuts + states
    assert at == len(numbers)


def test_several_trees_are_embedded_with_their_weights() -> None:
    joint = jf.HiddenTreeForest(2, n_states=4, max_iter=1, random_state=0).fit(jf.datasets.load_penguins()).joint_
    said = wire(embedded(replace(Subject(joint), title="two")), "two", "")
    assert len(said["trees"]) == 2
    assert np.exp([one["log_weight"] for one in said["trees"]]).sum() == pytest.approx(1.0)
