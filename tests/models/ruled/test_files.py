"""Ruled distributions in files: they come back as they were, and broken ones are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jointforest as jf
from jointforest.models.file import contents, model_of
from tests.data.rules.tables import obedient


@pytest.fixture(scope="module")
def joint() -> jf.Joint:
    return jf.HiddenTreeForest(n_states=4, max_iter=1, random_state=0).fit(obedient(900, 0)).joint_


def test_files_keep_rules(joint: jf.Joint, tmp_path: Path) -> None:
    joint.save(tmp_path / "m.joint")
    again = jf.load(tmp_path / "m.joint")
    frame = obedient(50, 3)
    assert again.rules == joint.rules and any(rule.is_enforced for rule in again.rules)
    assert np.array_equal(again.log_density(frame), joint.log_density(frame))
    assert again.sample(20, random_state=0, missing=True).equals(joint.sample(20, random_state=0, missing=True))
    again.save(tmp_path / "n.joint")
    assert (tmp_path / "n.joint").read_bytes() == (tmp_path / "m.joint").read_bytes()
    assert jf.from_arrow(joint.to_arrow()).sample(9, random_state=1).equals(joint.sample(9, random_state=1))


def _changes() -> list[tuple[str, Any]]:
    def put(*path: Any, value: Any) -> Any:
        def change(about: dict[str, Any]) -> None:
            for step in path[:-1]:
                about = about[step]
            about[path[-1]] = value

        return change

    return [
        ("sources", put("sources", value=[])),
        ("source", put("sources", 0, value={"terms": [], "constant": 0.0})),
        ("coefficient", put("sources", 0, "terms", 0, 1, value=float("nan"))),
        ("coordinate", put("sources", 0, "terms", 0, 0, value=99)),
        ("no table", put("sources", 0, "terms", 0, 2, value=99)),
        ("columns", put("columns", 0, value=500)),
        ("made", put("made", value=[])),
        ("absence", put("absences", 0, "like", value=77)),
        ("values", put("absences", 0, "values", value=[1.0])),
        ("inner", put("inner", value={"kind": "ruled"})),
        ("more", put("more", value=1)),
    ]


@pytest.mark.parametrize(("what", "change"), _changes(), ids=lambda x: x if isinstance(x, str) else "")
def test_broken_metadata_are_refused(joint: jf.Joint, what: str, change: Any) -> None:
    import json

    about, arrays = contents(joint.distribution)
    about = json.loads(json.dumps(about))
    model_of(about, arrays)
    change(about["components"][0])
    with pytest.raises(ValueError, match=r"rules|unknown|expected|parts"):
        model_of(about, arrays)


def test_broken_arrays_are_refused(joint: jf.Joint) -> None:
    about, arrays = contents(joint.distribution)
    for name, wrong in (("0.ruled.table", np.full_like(arrays["0.ruled.table"], np.nan)),
                        ("0.ruled.table", arrays["0.ruled.table"] + 0.5),
                        ("0.ruled.table_start", arrays["0.ruled.table_start"][::-1].copy()),
                        ("0.ruled.table", arrays["0.ruled.table"][:-1])):  # fmt: skip
        with pytest.raises(ValueError, match="rules"):
            model_of(about, arrays | {name: wrong})
