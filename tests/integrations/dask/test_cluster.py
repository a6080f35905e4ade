"""Learning on workers that are processes: the same joint; workers that die; what travels."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster

import jointforest as jf
from jointforest.integrations import dask as jfd

from .tables import cut, stored, table

pytestmark = [
    pytest.mark.filterwarnings("ignore:the joint has lost"),
    pytest.mark.filterwarnings("ignore:levels never seen"),
]


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client


def part(k: int, n: int = 60) -> pd.DataFrame:
    return table(n, k)


def test_joint_is_that_of_batches(client: Client, tmp_path: Path) -> None:
    lazy = dd.from_map(part, range(10), meta=part(0))
    frame = lazy.compute()
    here = stored(jf.JointTree(2, random_state=0).fit_batches(frame).joint_, tmp_path)
    one = sorted(client.scheduler_info()["workers"])[0]
    for given in (lazy, lazy.persist(), lazy.persist(workers=[one]), cut(frame, [0, 3])):
        assert stored(jfd.JointTree(2, random_state=0).fit(given).joint_, tmp_path) == here
    assert stored(jfd.JointTree(2, random_state=0, client=client).fit(lazy).joint_, tmp_path) == here


def test_answers(client: Client) -> None:
    lazy = dd.from_map(part, range(3), meta=part(0))
    forest = jfd.GenerativeForestClassifier(5, random_state=0).fit(lazy, "flag")
    joint = forest.joint_
    frame = lazy.compute()
    X, y = lazy.drop(columns="flag"), lazy["flag"]
    assert np.array_equal(forest.fit(X, y).joint_.log_density(frame), joint.log_density(frame))
    assert forest.predict(X).compute().tolist() == forest.predict(X.compute()).tolist()
    assert np.array_equal(jfd.log_density(joint, lazy).compute(), joint.log_density(frame))


def dying(k: int, folder: str, dies: int) -> pd.DataFrame:
    """A partition whose worker ends when it is made for the n-th time."""
    if k == 3:
        times = len(list(Path(folder).iterdir())) + 1
        Path(folder, str(times)).write_text(str(os.getpid()))
        if times == dies:
            os.kill(os.getpid(), signal.SIGKILL)
    return part(k)


@pytest.mark.parametrize("dies", [1, 2])
def test_a_worker_that_dies(client: Client, tmp_path: Path, dies: int) -> None:
    (tmp_path / "times").mkdir()
    lazy = dd.from_map(dying, range(6), folder=str(tmp_path / "times"), dies=dies, meta=part(0))
    same = dd.from_map(part, range(6), meta=part(0))
    # beyond the sample: passes follow each other
    found = jfd.AdversarialForest(2, max_samples=100, random_state=0).fit(lazy).joint_
    here = jf.AdversarialForest(2, max_samples=100, random_state=0).fit_batches(same.compute()).joint_
    assert stored(found, tmp_path) == stored(here, tmp_path)
    ended, made = (tmp_path / "times" / str(dies)).read_text(), len(list((tmp_path / "times").iterdir()))
    assert made > 2 and int(ended) not in client.run(os.getpid).values()


def test_errors_reach_the_client(client: Client) -> None:
    lazy = dd.from_map(part, range(3), meta=part(0)).assign(x=np.inf)
    with pytest.raises(ValueError, match="column 'x': 300 infinite values"):
        jfd.JointTree().fit(lazy)


def received(dask_worker: object) -> int:
    """Results that a worker had from others."""
    return sum(len(log["keys"]) for log in dask_worker.transfer_incoming_log)  # type: ignore[attr-defined]


def test_what_travels_does_not_grow_with_the_partitions(client: Client) -> None:
    """Beyond the sample: sums of 8 and of 80 partitions, each of the same rows. Sums that are merged are let go."""
    found = []
    for n in (8, 80):
        lazy = dd.from_map(lambda _: part(0), range(n), meta=part(0))
        before = sum(client.run(received).values())
        jfd.AdversarialForest(1, max_samples=100, leaf="normal", random_state=0).fit(lazy)
        found.append(sum(client.run(received).values()) - before)
    assert found[1] <= found[0] + 10
    assert most_in_memory(client.run_on_scheduler(moves)) < 40


def moves(dask_scheduler: object) -> list[tuple[str, str, str]]:
    return [(str(key), old, new) for key, old, new, *_ in dask_scheduler.transition_log]  # type: ignore[attr-defined]


def most_in_memory(moves: list[tuple[str, str, str]]) -> int:
    """Results that workers held at once."""
    held: set[str] = set()
    most = 0
    for key, _, new in moves:
        (held.add if new == "memory" else held.discard)(key)
        most = max(most, len(held))
    return most
