"""What a pod held is taken back when the last of its processes has ended, and not before."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from alnair.node.cgroups import Proc
from alnair.processes.agent.device_plugin import leaving
from alnair.processes.agent.device_plugin.leaving import LeavingPods
from kit.manual_clock import running


class Machine(Proc):
    """Pods have processes as the test says; `looks` counts the looks."""

    def __init__(self) -> None:
        super().__init__()
        self.alive: set[str] = set()
        self.looks = 0

    def pods(self) -> set[str]:
        self.looks += 1
        return set(self.alive)


class Leaving:
    """Pods that leave, and the news of those that are gone."""

    def __init__(self) -> None:
        self.machine = Machine()
        self.gone: list[str] = []
        self.news = asyncio.Event()
        self.pods = LeavingPods(self.machine, self._gone)

    def _gone(self, uid: str) -> None:
        self.gone.append(uid)
        self.news.set()

    async def next(self) -> list[str]:
        """Wait for the next pods that are gone; return all so far."""
        async with asyncio.timeout(30):
            await self.news.wait()
        self.news.clear()
        return sorted(self.gone)


@pytest.fixture
async def leaves(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Leaving]:
    monkeypatch.setattr(leaving, "_EVERY", 0.01)
    found = Leaving()
    async with running(found.pods.run()):
        yield found


async def test_a_pod_without_processes_is_gone_at_once(leaves: Leaving) -> None:
    leaves.pods.add(["a", "b"])
    assert await leaves.next() == ["a", "b"]


async def test_a_pod_is_gone_when_its_last_process_is(leaves: Leaving) -> None:
    leaves.machine.alive = {"a", "other"}
    leaves.pods.add(["a", "b"])
    assert await leaves.next() == ["b"]
    leaves.pods.add(["c"])  # while another is waited for
    assert await leaves.next() == ["b", "c"]
    leaves.machine.alive = {"other"}
    assert await leaves.next() == ["a", "b", "c"]


async def test_each_is_told_once_and_nothing_is_looked_at_without_need(leaves: Leaving) -> None:
    assert leaves.machine.looks == 0
    leaves.pods.add(["a", "a"])
    leaves.pods.add(["a"])
    assert await leaves.next() == ["a"]
    assert leaves.machine.looks == 1
