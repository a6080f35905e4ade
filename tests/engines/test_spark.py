"""docs/how-to/spark.md, as it is: the joint of fit_batches, and its answers, however the frame is cut."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import jointforest as jf

from .pages import names_of
from .tables import table

pytestmark = pytest.mark.filterwarnings("ignore:the joint has lost")


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    made = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = made.getOrCreate()
    yield spark
    spark.stop()


@pytest.mark.parametrize("n_partitions", [1, 5])
def test_the_page(spark: SparkSession, n_partitions: int) -> None:
    page, rows = names_of("how-to/spark.md"), table()
    frame = spark.createDataFrame(rows).repartition(n_partitions)
    joint = page["learn"](spark, frame)
    here = jf.JointTree(random_state=0).fit_batches(rows).joint_
    assert np.array_equal(joint.log_density(rows), here.log_density(rows))
    scored = page["scored"](frame, joint).toArrow()
    assert np.array_equal(scored["log_density"], here.log_density(scored.drop(["log_density"])))
    filled = page["imputed"](frame, joint).toArrow()
    expected = here.impute(frame.toArrow())
    assert sum(column.null_count for column in filled.columns) == 0
    assert filled.cast(expected.schema).sort_by("x").equals(expected.sort_by("x"))


def test_empty_partitions_and_a_target(spark: SparkSession) -> None:
    page, rows = names_of("how-to/spark.md"), table(40)
    frame = spark.createDataFrame(pa.table(rows)).repartition(60)
    found = jf.GenerativeForestClassifier(3, random_state=0).fit_batches(page["SparkRows"](frame, 60), "flag").joint_
    here = jf.GenerativeForestClassifier(3, random_state=0).fit_batches(rows, "flag").joint_
    assert np.array_equal(found.log_density(rows), here.log_density(rows))
