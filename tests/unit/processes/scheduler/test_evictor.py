"""Evictions that a disruption budget refuses: which of them end in a deletion, and who waits."""

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import cast

import pytest
from aiohttp import web

from alnair.kube.client import Client
from alnair.kube.pod_groups.dialects import BY_API
from alnair.live.engine_feed import Feed
from alnair.model.action import PREEMPTED, Evict, WritePlan
from alnair.processes.scheduler.actuator import Actuator
from alnair.processes.scheduler.evictor import Evictor
from alnair.processes.scheduler.reporter import Reporter
from alnair.scheduler.engine import events
from alnair.scheduler.engine.budgets import budget_seconds
from alnair.scheduler.engine.engine import INCOMPLETE
from alnair.scheduler.engine.evictions import CROSSED
from kit import make
from kit.fault_server import FaultServer, serving, status
from kit.manual_clock import Clock, running


class Budget(FaultServer):
    """Refuses every eviction, while `holds`; takes all else for done."""

    def __init__(self) -> None:
        super().__init__()
        self.holds = True
        self.asked: list[tuple[str, str]] = []
        self.news = asyncio.Event()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        what = request.path.rsplit("/", 1)[1]
        self.asked.append((request.method, what))
        self.news.set()
        if what == "eviction" and self.holds:
            said = "Cannot evict pod as it would violate the pod's disruption budget."
            return web.json_response(status(429, "TooManyRequests", said), status=429)
        return web.json_response({})

    async def next(self, count: int) -> list[tuple[str, str]]:
        """Wait until so many requests have come; return them."""
        async with asyncio.timeout(30):
            while len(self.asked) < count:
                self.news.clear()
                await self.news.wait()
        return self.asked


@pytest.fixture
async def server() -> AsyncIterator[Budget]:
    async with serving(Budget()) as found:
        yield cast("Budget", found)


@pytest.fixture
async def client(server: Budget) -> AsyncIterator[Client]:
    async with Client(server.connection, timeout=5) as found:
        yield found


class Outcomes:
    """What became of evictions."""

    def __init__(self) -> None:
        self.errors: dict[str, str] = {}
        self.news = asyncio.Event()

    def done(self, uid: str, error: str) -> None:
        self.errors[uid] = error
        self.news.set()

    async def next(self) -> dict[str, str]:
        async with asyncio.timeout(30):
            await self.news.wait()
        return self.errors


async def test_who_crossed_with_another_scheduler_is_deleted_when_the_budget_had_its_time(
    server: Budget, client: Client
) -> None:
    clock, outcomes, pod = Clock(), Outcomes(), make.pod("p")
    evictor = Evictor(client, lambda: True, outcomes.done, clock)
    async with running(evictor.run()):
        evictor.evict(Evict(pod, CROSSED, "it crossed"))
        while clock.now < 3.0:
            await clock.until_next()
        assert clock.now == 3.0  # and not later: the node is relieved within 5 s
        assert await outcomes.next() == {pod.uid: ""}
    *refused, last = server.asked
    assert last == ("DELETE", "p")
    assert set(refused) == {("POST", "eviction")}


async def test_a_gang_left_in_part_is_never_deleted_against_a_budget(
    server: Budget, client: Client
) -> None:
    clock, outcomes, pod = Clock(), Outcomes(), make.pod("p")
    evictor = Evictor(client, lambda: True, outcomes.done, clock)
    async with running(evictor.run()):
        evictor.evict(Evict(pod, INCOMPLETE, "its gang could not be completed"))
        while clock.now < 3600.0:
            await clock.until_next()
        assert not outcomes.errors
        server.holds = False
        assert await outcomes.next() == {pod.uid: ""}
    assert set(server.asked) == {("POST", "eviction")}
    assert len(server.asked) < 3 * 3600 / 5  # it asks about every five seconds


async def test_a_victim_of_preemption_is_marked_and_deleted_at_once(
    server: Budget, client: Client
) -> None:
    outcomes, pod = Outcomes(), make.pod("p")
    evictor = Evictor(client, lambda: True, outcomes.done)
    async with running(evictor.run()):
        evictor.evict(Evict(pod, PREEMPTED, "for another"))
        assert await outcomes.next() == {pod.uid: ""}
    assert server.asked == [("PATCH", "status"), ("DELETE", "p")]


async def test_nothing_is_sent_by_who_leads_no_more(server: Budget, client: Client) -> None:
    clock, outcomes = Clock(), Outcomes()
    leads = True
    evictor = Evictor(client, lambda: leads, outcomes.done, clock)
    async with running(evictor.run()):
        evictor.evict(Evict(make.pod("p"), INCOMPLETE, "its gang could not be completed"))
        await server.next(1)
        await clock.until_next()
        await server.next(2)
        leads = False
        await clock.until_next()
        evictor.evict(Evict(make.pod("q"), PREEMPTED, "for another"))
        await asyncio.sleep(0)  # the workers have taken both and sent neither
        assert evictor._due.empty()
    assert [what for _, what in server.asked] == ["eviction", "eviction"]
    assert not outcomes.errors


async def test_a_hundred_refused_evictions_do_not_hold_up_the_plan_of_a_gang(
    server: Budget, client: Client
) -> None:
    told: asyncio.Queue[object] = asyncio.Queue()
    feed = SimpleNamespace(put=told.put_nowait)
    reporter = SimpleNamespace(evicting=lambda _: None)
    actuator = Actuator(
        client, cast("Feed", feed), cast("Reporter", reporter), lambda: True, asyncio.Event()
    )
    gang = make.gang("g", 2)
    assert gang.api in BY_API
    async with running(actuator.run()):
        for index in range(100):
            actuator.carry_out(Evict(make.pod(f"p{index}"), INCOMPLETE, "left in part"))
        await server.next(1)
        actuator.carry_out(WritePlan(gang, {}))
        async with asyncio.timeout(30):
            assert await told.get() == events.PlanDone(gang.namespace, gang.name, "")


@pytest.mark.parametrize(
    ("reason", "seconds"), [(PREEMPTED, 0.0), (CROSSED, 3.0), (INCOMPLETE, None), ("Other", None)]
)
def test_only_preemption_and_crossings_end_without_a_budgets_leave(
    reason: str, seconds: float | None
) -> None:
    assert budget_seconds(reason) == seconds
