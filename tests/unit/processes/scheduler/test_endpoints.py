"""What the leader says about its decisions."""

from aiohttp.test_utils import TestClient, TestServer

from alnair.model.action import Bind, Report, WritePlan
from alnair.processes.scheduler.endpoints import application
from alnair.processes.scheduler.loop import Decisions
from kit import make


async def test_percentiles_count_only_decisions_since_the_time_asked_for() -> None:
    decisions = Decisions()
    decisions.add(100.0, [9.0])
    decisions.add(200.0, [i * 1e-6 for i in range(1, 101)])
    async with TestClient(TestServer(application(decisions, lambda: True))) as client:
        answer = await client.get("/debug/decisions", params={"since": "150"})
        assert await answer.json() == {"count": 100, "p50_us": 50.0, "p99_us": 99.0}
        answer = await client.get("/debug/decisions", params={"since": "300"})
        assert await answer.json() == {"count": 0, "p50_us": None, "p99_us": None}


async def test_a_time_that_is_no_number_is_refused() -> None:
    async with TestClient(TestServer(application(Decisions(), lambda: True))) as client:
        answer = await client.get("/debug/decisions", params={"since": "noon"})
        assert answer.status == 400
        assert "seconds since the epoch" in await answer.text()


async def test_it_is_ready_only_when_the_caches_are_filled() -> None:
    filled = False
    async with TestClient(TestServer(application(Decisions(), lambda: filled))) as client:
        assert (await client.get("/healthz")).status == 200
        assert (await client.get("/readyz")).status == 503
        filled = True
        assert (await client.get("/readyz")).status == 200


async def test_the_last_decisions_are_shown_oldest_first() -> None:
    decisions = Decisions()
    pod = make.pod("p")
    decisions.note(1.0, Report(pod, "FailedScheduling", "no room"))
    decisions.note(2.0, Bind(pod, "n"))
    decisions.note(3.0, WritePlan(make.gang("g"), {}))
    async with TestClient(TestServer(application(decisions, lambda: True))) as client:
        answer = await client.get("/debug/decisions", params={"last": "2"})
        assert await answer.json() == [
            {"time": 2.0, "action": "Bind", "object": "default/p", "node": "n"},
            {"time": 3.0, "action": "WritePlan", "object": "default/g"},
        ]
        answer = await client.get("/debug/decisions", params={"last": "-1"})
        assert answer.status == 400
