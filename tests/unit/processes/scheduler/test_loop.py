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


async def test_what_was_learned_in_the_term_before_is_known_before_anything_is_decided() -> None:
    def known() -> list[events.Event]:
        pods = [make.pod(f"p{i}", make.spec(cpu=100 * i, whole=1)) for i in range(20)]
        return [events.NodeChanged(make.node("n", gpus=4)), *map(events.PodChanged, pods)]

    before = Engine(profiles())
    before.learn([*known(), *known()[1:]], 0.0)
    before.learn([events.PodChanged(make.pod("gone", make.spec(cpu=7, whole=1)))], 0.0)
    learned = before.view.plugin_states()
    assert learned
    seen: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

    class Watching(Engine):
        def step(self, *args: Any, **more: Any) -> list[Action]:
            if not seen.done():
                seen.set_result(self.view.plugin_states())
            return []

    feed: Any = SimpleNamespace(inbox=deque(), wake=asyncio.Event(), everything=known)
    told: Any = Told()
    loop_ = Loop(Watching(profiles()), feed, told, Decisions(), learned)
    assert not loop_.knows_all
    running = asyncio.create_task(loop_.run())
    assert await asyncio.wait_for(seen, 10) == learned
    assert loop_.knows_all
    running.cancel()
    await asyncio.wait([running])
