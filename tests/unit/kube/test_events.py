"""The event recorder, against a small server that keeps what it is given and fails on demand."""

import asyncio
import datetime as dt
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from alnair.kube.access.connection import Connection
from alnair.kube.backoff import Backoff
from alnair.kube.client import Client
from alnair.kube.events import EventRecorder, ObjectReference

NOW = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)


class EventServer:
    """Keeps events; answers the next requests with `failures` instead."""

    def __init__(self) -> None:
        self.events: dict[str, dict[str, Any]] = {}
        self.failures: list[int] = []
        self.order: list[str] = []
        self.asked = asyncio.Event()
        self.answered = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()
        self.busy = 0
        self.busiest = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.busy += 1
        self.busiest = max(self.busiest, self.busy)
        self.asked.set()
        await self.gate.wait()
        try:
            return await self._answer(request)
        finally:
            self.busy -= 1
            self.answered.set()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        if self.failures and (code := self.failures.pop(0)):
            return web.json_response({"code": code, "message": "as asked"}, status=code)
        body = await request.json()
        if request.method == "POST":
            name = body["metadata"]["name"]
            if name in self.events:
                reason = {"code": 409, "reason": "AlreadyExists"}
                return web.json_response(reason, status=409)
            self.events[name] = body
            self.order.append(f"{body['message']}")
        else:
            name = request.path.rpartition("/")[2]
            if name not in self.events:
                return web.json_response({"code": 404, "reason": "NotFound"}, status=404)
            self.events[name].update(body)
            self.order.append(f"{self.events[name]['message']} again")
        return web.json_response({})

    @property
    def counts(self) -> dict[str, int]:
        return {event["message"]: event["count"] for event in self.events.values()}


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def server() -> EventServer:
    return EventServer()


@asynccontextmanager
async def recording(server: EventServer, **options: Any) -> AsyncIterator[EventRecorder]:
    runner = web.ServerRunner(
        web.Server(server.handle, handler_cancellation=True), shutdown_timeout=0.01
    )
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    async with Client(Connection(url)) as client:
        recorder = EventRecorder(
            client,
            "alnair-test",
            instance="host",
            now=lambda: NOW,
            backoff=lambda: Backoff(0.001, 0.002),
            **options,
        )
        task = asyncio.create_task(recorder.run())
        yield recorder
        task.cancel()
        await asyncio.wait([task])
    await runner.cleanup()


def pod(name: str) -> ObjectReference:
    return ObjectReference("Pod", name, "team", f"uid-{name}")


async def test_an_event_says_who_told_what_of_whom(server: EventServer) -> None:
    async with recording(server) as recorder:
        recorder.record(pod("a"), "FailedScheduling", "no room", "Warning")
        assert await recorder.drain(30) == 0
    (event,) = server.events.values()
    assert event["metadata"]["name"].startswith("a.")
    assert event == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": event["metadata"]["name"], "namespace": "team"},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "a",
            "namespace": "team",
            "uid": "uid-a",
            "resourceVersion": "",
        },
        "reason": "FailedScheduling",
        "message": "no room",
        "type": "Warning",
        "source": {"component": "alnair-test", "host": "host"},
        "firstTimestamp": "2026-11-21T12:00:00Z",
        "lastTimestamp": "2026-11-21T12:00:00Z",
        "count": 1,
        "reportingComponent": "alnair-test",
        "reportingInstance": "host",
    }


async def test_repeats_within_the_window_raise_the_count_of_one_object(
    server: EventServer,
) -> None:
    clock = Clock()
    async with recording(server, clock=clock, window=60.0) as recorder:
        for _ in range(3):
            recorder.record(pod("a"), "R", "same")
            await recorder.drain(30)
        assert server.counts == {"same": 3}
        clock.now = 61.0
        recorder.record(pod("a"), "R", "same")
        await recorder.drain(30)
        assert sorted(event["count"] for event in server.events.values()) == [1, 3]


async def test_repeats_that_still_wait_cost_one_write(server: EventServer) -> None:
    async with recording(server) as recorder:
        for _ in range(100):
            recorder.record(pod("a"), "R", "same")
        await recorder.drain(30)
        assert recorder.written == 1
    assert server.counts == {"same": 100}


async def test_a_repeat_of_what_is_being_written_waits_for_that(server: EventServer) -> None:
    server.gate.clear()
    async with recording(server) as recorder:
        recorder.record(pod("a"), "R", "same")
        await asyncio.wait_for(server.asked.wait(), 30)
        for _ in range(2):
            recorder.record(pod("a"), "R", "same")
            await asyncio.sleep(0.05)  # in which another request would arrive
        assert server.busiest == 1
        server.gate.set()
        assert await recorder.drain(30) == 0
        assert recorder.written == 2
    assert server.order == ["same", "same again"]
    assert [event["count"] for event in server.events.values()] == [3]


async def test_repeats_are_told_together_once_their_time_has_come(server: EventServer) -> None:
    clock = Clock()
    async with recording(server, clock=clock, repeat_every=30.0) as recorder:
        for _ in range(6):
            recorder.record(pod("a"), "R", "same")
            assert await recorder.drain(30) == 0
            clock.now += 1.0
        assert recorder.written == 1, "its time has not come"
        recorder.record(pod("b"), "R", "another is told at once")
        await recorder.drain(30)
        assert recorder.written == 2


async def test_the_last_repeat_is_told_though_no_further_one_comes(server: EventServer) -> None:
    async with recording(server, repeat_every=0.02) as recorder:
        for _ in range(6):
            recorder.record(pod("a"), "R", "same")
            await recorder.drain(30)
        async with asyncio.timeout(30):
            while server.counts != {"same": 6}:
                server.answered.clear()
                await server.answered.wait()


async def test_another_object_reason_or_message_is_another_event(server: EventServer) -> None:
    async with recording(server) as recorder:
        recorder.record(pod("a"), "R", "one")
        recorder.record(pod("a"), "R", "two")
        recorder.record(pod("a"), "S", "one")
        recorder.record(pod("b"), "R", "one")
        await recorder.drain(30)
    assert len(server.events) == 4


async def test_a_full_queue_drops_the_oldest_repeat_first_and_counts(server: EventServer) -> None:
    async with recording(server, capacity=3, in_flight=1) as recorder:
        recorder.record(pod("known"), "R", "known")
        recorder.record(pod("other"), "R", "other")
        await recorder.drain(30)
        recorder.record(pod("known"), "R", "known")
        recorder.record(pod("other"), "R", "other")
        for name in ("n1", "n2"):
            recorder.record(pod(name), "R", name)
        assert recorder.dropped == 1
        recorder.record(pod("n3"), "R", "n3")
        assert recorder.dropped == 2
        recorder.record(pod("n4"), "R", "n4")
        assert recorder.dropped == 3
        await recorder.drain(30)
        assert server.order == ["known", "other", "n2", "n3", "n4"]
        recorder.record(pod("known"), "R", "known")
        await recorder.drain(30)
    assert server.counts["known"] == 3


async def test_a_burst_within_the_capacity_is_written_whole_with_few_requests_at_a_time(
    server: EventServer,
) -> None:
    async with recording(server, capacity=2000, in_flight=3) as recorder:
        for number in range(2000):
            recorder.record(pod(f"p{number}"), "Scheduled", f"placed {number}")
        assert recorder.pending == 2000
        assert await recorder.drain(30) == 0
        assert (recorder.written, recorder.dropped, recorder.refused) == (2000, 0, 0)
    assert len(server.events) == 2000
    assert server.busiest <= 3


async def test_a_server_that_is_away_delays_and_loses_nothing(server: EventServer) -> None:
    server.failures = [503, 429, 500, 0, 503]
    async with recording(server, in_flight=1) as recorder:
        recorder.record(pod("a"), "R", "one")
        recorder.record(pod("b"), "R", "two")
        assert await recorder.drain(30) == 0
    assert server.counts == {"one": 1, "two": 1}


async def test_an_event_that_is_refused_for_good_is_given_up_and_counted(
    server: EventServer,
) -> None:
    server.failures = [403]
    async with recording(server, in_flight=1) as recorder:
        recorder.record(pod("a"), "R", "namespace is being deleted")
        recorder.record(pod("b"), "R", "fine")
        await recorder.drain(30)
        assert (recorder.written, recorder.refused) == (1, 1)


async def test_a_repeat_of_an_event_that_expired_is_told_anew(server: EventServer) -> None:
    async with recording(server) as recorder:
        recorder.record(pod("a"), "R", "same")
        await recorder.drain(30)
        server.events.clear()
        recorder.record(pod("a"), "R", "same")
        await recorder.drain(30)
    assert server.counts == {"same": 2}


async def test_a_drain_that_takes_too_long_says_how_many_wait(
    server: EventServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.gate.clear()
    async with recording(server) as recorder:
        recorder.record(pod("a"), "R", "slow")
        assert await recorder.drain(0.05) == 1
    assert "1 events are not written yet" in caplog.text


async def test_a_long_message_is_cut_and_a_cluster_object_goes_to_default(
    server: EventServer,
) -> None:
    async with recording(server) as recorder:
        recorder.record(ObjectReference("Node", "n"), "R", "x" * 5000)
        await recorder.drain(30)
    (event,) = server.events.values()
    assert len(event["message"]) == 1024
    assert event["metadata"]["namespace"] == "default"


def test_a_recorder_without_room_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        EventRecorder(Client(Connection("http://x")), "c", capacity=0)
