"""docs/how-to/ray.md, as it is: the joint of fit_batches, and its answers, however the data set is cut."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
import ray

import jointforest as jf

from .pages import names_of
from .tables import table

pytestmark = pytest.mark.filterwarnings("ignore:the joint has lost")


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=200_000_000, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.mark.parametrize("n_blocks", [1, 5])
def test_the_page(n_blocks: int) -> None:
    page, rows = names_of("how-to/ray.md"), table()
    dataset = ray.data.from_arrow(
        [rows.slice(start, -(-600 // n_blocks)) for start in range(0, 600, -(-600 // n_blocks))]
    )
    joint = page["learn"](dataset)
    here = jf.JointTree(random_state=0).fit_batches(rows).joint_
    assert np.array_equal(joint.log_density(rows), here.log_density(rows))
    scored = pa.concat_tables(ray.get(page["scored"](dataset, joint, 1).to_arrow_refs()))
    assert np.array_equal(scored["log_density"], here.log_density(scored.drop(["log_density"])))
    filled = pa.concat_tables(ray.get(page["imputed"](dataset, joint).to_arrow_refs()))
    assert filled.sort_by("x").equals(here.impute(rows).sort_by("x"))
