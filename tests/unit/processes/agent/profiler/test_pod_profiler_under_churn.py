"""Pods that come and go by chance: none is lost, none has the figures of another.

250 events here; `ALNAIR_SOAK=40` has 10,000.
"""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from alnair.model import usage
from kit.pod_churn import PodChurn
from kit.soak import TIMES


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory: thousands of small files."""
    with tempfile.TemporaryDirectory(prefix="alnair-churn-", dir="/dev/shm") as made:
        yield Path(made)


@pytest.fixture(autouse=True)
def _no_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """No machine fails here, so nothing need be flushed."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


async def churn(node: PodChurn, events: int) -> None:
    while node.events < events:
        for _ in range(5):
            node.event()
        await node.second()


async def test_no_pod_is_lost_or_taken_for_another(folder: Path) -> None:
    node = PodChurn(folder, seed=1)
    await churn(node, 250 * TIMES)
    assert node.judge(await node.found()) == []


async def test_agents_that_are_killed_lose_no_more_than_what_came_after_the_last_save(
    folder: Path,
) -> None:
    node = PodChurn(folder, seed=2)
    for part in range(6):
        await churn(node, (part + 1) * 20 * TIMES)
        node.restart_agent()
        await node.second()
    assert node.judge(await node.found()) == []


async def test_the_judge_sees_what_is_lost_told_twice_or_of_another(folder: Path) -> None:
    node = PodChurn(folder, seed=3)
    await churn(node, 120)
    found = await node.found()
    cores = {one.uid: one.metrics.get(usage.CPU_CORES) for one in found}
    whole = [one for one in found if (used := cores[one.uid]) is not None and used.seconds > 5]
    one, other = whole[0], whole[1]
    replace = msgspec.structs.replace
    lost = node.judge([each for each in found if each is not one])
    assert lost == [f"{one.pod} {one.uid} is lost"]
    assert node.judge([*found, one]) == [f"{one.pod} {one.uid} is told twice"]
    swapped = replace(one, containers=other.containers, metrics=other.metrics)
    assert node.judge([swapped if each is one else each for each in found])
    stranger = replace(one, uid="strange")
    assert node.judge([*found, stranger]) == [f"nobody knows {one.pod} strange"]
