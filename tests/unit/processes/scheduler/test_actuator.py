"""Bindings that wait for a worker, while their room is taken, or the process is told to end."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import cast

import pytest
from aiohttp import web

from alnair.kube.client import Client
from alnair.live.engine_feed import Feed
from alnair.model.action import Bind
from alnair.processes.scheduler.actuator import Actuator
from alnair.processes.scheduler.reporter import Reporter
from alnair.scheduler.engine import events
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.profiles import profiles
from kit import make
from kit.fault_server import FaultServer, serving
from kit.manual_clock import running


class SlowBindings(FaultServer):
    """Answers Bindings when it is told to, and keeps which pods they were for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: asyncio.Queue[str] = asyncio.Queue()
        self.answers = asyncio.Event()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.put_nowait(request.path.split("/")[-2])
        await self.answers.wait()
        return web.json_response({})


@contextlib.asynccontextmanager
async def slow(
    told: Callable[[events.Event], None] = lambda _event: None,
    has_crossed: Callable[[str], bool] = lambda _uid: False,
) -> AsyncIterator[tuple[SlowBindings, Actuator]]:
    """An actuator that binds one pod after the other at a server which is slow."""
    async with (
        serving(SlowBindings()) as server,
        Client(server.connection) as client,
        asyncio.timeout(20),
    ):
        feed = cast("Feed", SimpleNamespace(put=told, pod=lambda _pod: None))
        nobody = cast("Reporter", SimpleNamespace())
        yield (
            cast("SlowBindings", server),
            Actuator(
                client,
                feed,
                nobody,
                lambda: True,
                asyncio.Event(),
                binders=1,
                has_crossed=has_crossed,
            ),
        )


async def test_who_is_told_to_end_waits_for_what_was_sent_and_sends_no_more() -> None:
    async with slow() as (server, actuator):
        acting = asyncio.create_task(actuator.run())
        for name in ("first", "second"):
            actuator.carry_out(Bind(make.pod(name), "n"))
        assert await server.asked.get() == "first"
        acting.cancel()
        await asyncio.sleep(0.05)
        assert not acting.done(), "the lease would be given back while a Binding is under way"
        server.answers.set()
        with pytest.raises(asyncio.CancelledError):
            await acting
        assert server.asked.empty()


async def test_a_binding_is_not_sent_once_it_is_known_that_its_room_is_taken() -> None:
    engine = Engine(profiles())
    engine.step([events.NodeChanged(make.node("n", cpu=1000))], 1.0)
    pods = [make.pod(name, make.spec(cpu=500)) for name in ("first", "second")]
    binds = engine.step([events.PodChanged(pod) for pod in pods], 2.0)
    assert [bind.pod.name for bind in binds if isinstance(bind, Bind)] == ["first", "second"]

    told: asyncio.Queue[events.Event] = asyncio.Queue()
    async with (
        slow(told.put_nowait, engine.has_crossed) as (server, actuator),
        running(actuator.run()),
    ):
        for bind in binds:
            actuator.carry_out(bind)
        assert await server.asked.get() == "first"
        theirs = make.pod("theirs", make.spec(cpu=500), scheduler="default-scheduler", node="n")
        assert engine.step([events.PodChanged(theirs)], 3.0) == []
        server.answers.set()
        answers = [await told.get(), await told.get()]
        assert server.asked.empty(), "the second one was sent"
    assert answers == [
        events.BindDone(pods[0].uid, ""),
        events.BindDone(
            pods[1].uid, "another scheduler placed a pod on n before the Binding was sent"
        ),
    ]
    done = engine.step(answers, 4.0)
    assert [type(action).__name__ for action in done] == ["Report"], "nobody is evicted"
    again = engine.step([events.PodGone(theirs.uid)], 60.0)
    assert [bind.pod.name for bind in again if isinstance(bind, Bind)] == ["second"]
