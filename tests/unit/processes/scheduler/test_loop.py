"""The loop that drives the engine in the live process."""

import asyncio
from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest

from alnair.model.action import Action, Report
from alnair.model.nodes import Taint
from alnair.processes.scheduler import loop
from alnair.processes.scheduler.loop import Decisions, Loop
from alnair.scheduler.engine import events
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.profiles import profiles
from kit import make


class Told:
    """Instead of the API server: keeps what owners are told."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.more = asyncio.Event()

    def carry_out(self, action: Action) -> None:
        assert isinstance(action, Report)
        self.messages.append(action.message)
        self.more.set()

    async def next(self) -> str:
        async with asyncio.timeout(10):
            await self.more.wait()
        self.more.clear()
        return self.messages[-1]


async def test_a_pod_that_nothing_helps_is_told_why_it_waits_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop, "REFUSAL_UPDATE_SECONDS", 0.02)
    known = [
        events.NodeChanged(make.node("n", cpu=4000)),
        events.PodChanged(make.pod("p", make.spec(cpu=16_000))),
    ]
    feed: Any = SimpleNamespace(inbox=deque(), wake=asyncio.Event(), everything=lambda: known)
    told: Any = Told()
    running = asyncio.create_task(Loop(Engine(profiles()), feed, told, Decisions()).run())
    assert "Insufficient cpu" in await told.next()
    taints = [Taint("gpu", "NoSchedule", "v")]
    feed.inbox.append(events.NodeChanged(make.node("n", cpu=4000, taints=taints)))
    feed.wake.set()
    assert "untolerated taint" in await told.next()
    running.cancel()
    await asyncio.wait([running])
    assert len(told.messages) == 2
