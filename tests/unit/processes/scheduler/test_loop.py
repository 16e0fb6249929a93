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
        async with asyncio.timeout(30):
            await self.more.wait()
        self.more.clear()
        return self.messages[-1]


async def its_turns() -> None:
    """Let other tasks do all that they can do now."""
    for _ in range(20):
        await asyncio.sleep(0)


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
    running = asyncio.create_task(Loop(Engine(profiles()), feed, Decisions()).run(told))
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
    loop_ = Loop(Watching(profiles()), feed, Decisions())
    assert not loop_.decides
    running = asyncio.create_task(loop_.run(told, learned))
    assert await asyncio.wait_for(seen, 10) == learned
    assert loop_.decides
    running.cancel()
    await asyncio.wait([running])


async def test_who_stands_by_learns_and_decides_nothing_until_it_leads() -> None:
    feed: Any = SimpleNamespace(
        inbox=deque(),
        wake=asyncio.Event(),
        everything=lambda: [events.NodeChanged(make.node("n", cpu=4000))],
    )
    told: Any = Told()
    engine = Engine(profiles())
    next_one = Loop(engine, feed, Decisions())
    standing_by = asyncio.create_task(next_one.stand_by())
    await its_turns()
    too_large = make.pod("p", make.spec(cpu=16_000))
    for event in (events.PodChanged(make.pod("gone")), events.PodChanged(too_large)):
        feed.inbox.append(event)
        feed.wake.set()
        await its_turns()
    assert engine.waiting == 2
    assert not next_one.decides
    standing_by.cancel()
    await asyncio.wait([standing_by])
    feed.inbox.append(events.PodGone(make.pod("gone").uid))  # between the two
    running = asyncio.create_task(next_one.run(told))
    assert "Insufficient cpu" in await told.next()
    assert engine.waiting == 1
    running.cancel()
    await asyncio.wait([running])
