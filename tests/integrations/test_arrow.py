"""Joints as Arrow tables, and back, also through Parquet files: the same answers to the last bit."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import jointforest as jf

pytestmark = pytest.mark.filterwarnings("ignore:the joint has lost")

LEARNERS = {
    "adversarial": lambda: jf.AdversarialForest(3, random_state=0),
    "quantile": lambda: jf.JointTree(2, random_state=0),
    "chow-liu": lambda: jf.AdversarialForest(2, leaf="chow_liu", random_state=0),
    "hidden": lambda: jf.HiddenTreeForest(2, n_states=8, max_iter=2, random_state=0),
}


def same(a: jf.Joint, b: jf.Joint, frame: object) -> None:
    np.testing.assert_array_equal(a.log_density(frame), b.log_density(frame))
    assert a.schema == b.schema or str(a.schema) == str(b.schema)
    given = {"island": "Biscoe"}
    assert a.given(**given).mean("body_mass_g") == b.given(**given).mean("body_mass_g")


@pytest.mark.parametrize("name", LEARNERS)
def test_there_and_back(name, tmp_path):
    frame = jf.datasets.load_penguins()
    joint = LEARNERS[name]().fit(frame).joint_
    tables = joint.to_arrow()
    same(jf.from_arrow(tables), joint, frame)
    for table, data in tables.items():
        parquet.write_table(data, tmp_path / f"{table}.parquet")
    read = {path.stem: parquet.read_table(path) for path in tmp_path.glob("*.parquet")}
    same(jf.from_arrow(read), joint, frame)


def test_mixtures_have_parts():
    frame = jf.datasets.load_penguins()
    joint = jf.mix([LEARNERS[name]().fit(frame).joint_ for name in ("adversarial", "hidden")], [0.25, 0.75])
    tables = joint.to_arrow()
    assert tables["components"].to_pydict()["kind"] == ["forest", "hidden trees"]
    np.testing.assert_allclose(np.exp(tables["components"]["log_weight"].to_numpy()), [0.25, 0.75])
    same(jf.from_arrow(tables), joint, frame)


def test_only_numbers_or_only_levels():
    for frame in ({"x": np.arange(50.0) ** 1.5}, {"c": np.array(list("ab") * 25)}):
        joint = jf.AdversarialForest(2, random_state=0).fit(pa.table(frame)).joint_
        again = jf.from_arrow(joint.to_arrow())
        np.testing.assert_array_equal(again.log_density(pa.table(frame)), joint.log_density(pa.table(frame)))


def test_tables_say_what_they_are():
    joint = LEARNERS["adversarial"]().fit(jf.datasets.load_penguins()).joint_
    tables = joint.to_arrow()
    nodes, leaves = tables["0.nodes"], tables["0.leaves"]
    assert (nodes["trees.leaf"].to_numpy() >= 0).sum() == len(leaves)
    assert np.exp(leaves["leaves.log_weight"].to_numpy()).sum() == pytest.approx(1.0)
    assert pa.types.is_fixed_size_list(tables["0.leaves"].schema.field("leaves.a").type)


@pytest.fixture(scope="module")
def tables() -> dict[str, pa.Table]:
    return jf.AdversarialForest(2, random_state=0).fit(jf.datasets.load_penguins()).joint_.to_arrow()


def with_column(table: pa.Table, name: str, column: pa.Array, metadata: dict | None) -> pa.Table:
    at = table.schema.get_field_index(name)
    return table.set_column(at, pa.field(name, column.type, metadata=metadata), column)


def broken(tables: dict[str, pa.Table], what: str) -> dict[str, pa.Table]:
    nodes, parts, typed = tables["0.nodes"], tables["components"], {b"dtype": b"<i4"}
    left = nodes["trees.left"].to_numpy().copy()
    left[0] = 0
    missing = pa.array([None] * len(nodes), pa.int32())
    changed = {
        "metadata 'jointforest'": {"components": parts.replace_schema_metadata(None)},
        "'log_weight'": {"components": parts.drop_columns("log_weight")},
        "JSON": {"components": parts.replace_schema_metadata({b"jointforest": b"{"})},
        "format 99": {"components": parts.replace_schema_metadata({b"jointforest": b'{"format": 99}'})},
        "trees.left": {"0.nodes": with_column(nodes, "trees.left", pa.array(left), typed)},
        "expected the type": {"0.nodes": with_column(nodes, "trees.left", pa.array(left.astype(float)), typed)},
        "has the type": {"0.nodes": with_column(nodes, "trees.left", pa.array(left), None)},
        "missing values": {"0.nodes": with_column(nodes, "trees.left", missing, typed)},
        "arrays missing or unknown": {"0.more": nodes.select(["trees.left"]).rename_columns(["more"])},
    }  # fmt: skip
    return tables | changed[what]


@pytest.mark.parametrize(
    "what",
    [
        "metadata 'jointforest'",
        "'log_weight'",
        "JSON",
        "format 99",
        "trees.left",
        "expected the type",
        "has the type",
        "missing values",
        "arrays missing or unknown",
    ],
)
def test_what_is_broken_is_refused(tables, what):
    with pytest.raises(ValueError, match=what):
        jf.from_arrow(broken(tables, what))


def test_what_is_missing_is_refused(tables):
    with pytest.raises(ValueError, match=r"0\.leaves: expected a pyarrow.Table, got pandas's DataFrame; .* metadata"):
        jf.from_arrow(tables | {"0.leaves": tables["0.leaves"].to_pandas()})
    with pytest.raises(ValueError, match="'components' among them"):
        jf.from_arrow({name: table for name, table in tables.items() if name != "components"})
    with pytest.raises(ValueError, match=r"missing or unknown: 0\.leaves"):
        jf.from_arrow({name: table for name, table in tables.items() if name != "0.leaves"})
