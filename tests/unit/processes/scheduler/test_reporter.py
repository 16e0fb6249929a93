"""Conditions of refused pods reach them although the API server fails for a while."""

import asyncio
from typing import Any, cast

import msgspec
import pytest

from alnair.kube.errors import ConnectionFailed, Forbidden, KubeError
from alnair.model.action import Report
from alnair.processes.scheduler import reporter
from alnair.processes.scheduler.reporter import Reporter
from kit import make
from kit.manual_clock import running


class Api:
    """Takes patches of pods' status, once its failures are spent."""

    def __init__(self, *failures: KubeError) -> None:
        self.failures = list(failures)
        self.asked = 0
        self.written: list[str] = []

    async def raw(self, method: str, path: str, *, body: bytes, **_: Any) -> bytes:
        self.asked += 1
        if self.failures:
            raise self.failures.pop()
        self.written.append(msgspec.json.decode(body)["status"]["conditions"][0]["message"])
        return b""


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reporter.Backoff, "next", lambda *_: 0.0)


def refusal(message: str) -> Report:
    return Report(make.pod("a"), "FailedScheduling", message)


async def until(api: Api, *, asked: int) -> None:
    """Let the writers go on until nothing is left to do."""
    for _ in range(200):
        await asyncio.sleep(0)
    assert api.asked >= asked


async def test_what_the_api_server_could_not_take_is_written_later() -> None:
    api = Api(ConnectionFailed("it was killed"), ConnectionFailed("it is starting"))
    told = Reporter(cast("Any", api), asyncio.Event())
    async with running(told._write_conditions()):
        told.report(refusal("no room"))
        await until(api, asked=3)
    assert api.written == ["no room"]


async def test_what_it_refuses_is_not_asked_again() -> None:
    api = Api(Forbidden(403, "Forbidden", "not you"))
    told = Reporter(cast("Any", api), asyncio.Event())
    async with running(told._write_conditions()):
        told.report(refusal("no room"))
        await until(api, asked=1)
    assert api.asked == 1


async def test_a_refusal_that_holds_no_more_is_not_written_later() -> None:
    api = Api(ConnectionFailed("it was killed"))
    told = Reporter(cast("Any", api), asyncio.Event())
    waited = asyncio.Event()

    async def keep(report: Report, error: KubeError) -> None:
        told.report(Report(report.pod, "Scheduled", "placed"))
        await Reporter._keep(told, report, error)
        waited.set()

    told._keep = keep  # type: ignore[method-assign]
    async with running(told._write_conditions()):
        told.report(refusal("no room"))
        await asyncio.wait_for(waited.wait(), 10)
        await until(api, asked=1)
    assert api.written == []


async def test_a_later_refusal_takes_the_place_of_one_that_failed() -> None:
    api = Api(ConnectionFailed("it was killed"))
    told = Reporter(cast("Any", api), asyncio.Event())
    told.report(refusal("no room"))
    told.report(refusal("no room, and another model"))
    async with running(told._write_conditions()):
        await until(api, asked=2)
    assert api.written == ["no room, and another model"]


async def test_a_refusal_is_not_lost_as_an_earlier_one_fails_beside_it() -> None:
    class Slow(Api):
        """Answers the first two requests when it is let, that they failed."""

        def __init__(self) -> None:
            super().__init__()
            self.let = [asyncio.Event(), asyncio.Event()]

        async def raw(self, method: str, path: str, *, body: bytes, **_: Any) -> bytes:
            number = self.asked
            if number < len(self.let):
                self.asked += 1
                await self.let[number].wait()
                raise ConnectionFailed("it was killed")
            return await super().raw(method, path, body=body)

    api = Slow()
    told = Reporter(cast("Any", api), asyncio.Event())
    async with running(told._write_conditions()), running(told._write_conditions()):
        for number, message in enumerate(("no room", "another model")):
            told.report(refusal(message))
            await until(api, asked=number + 1)
        for let in api.let:
            let.set()
            await until(api, asked=2)
        await until(api, asked=3)
    assert api.written == ["another model"]


async def test_pods_of_a_gang_that_comes_within_a_second_are_not_told_that_others_lack(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reporter, "_COMING", 0.0)
    lacks = "gang default/g needs 3 pods and has 2: waiting for 1 more"
    for then, written in (
        ([], [lacks]),
        ([Report(make.pod("a"), "Scheduled", "placed")], []),
        ([refusal("no room")], ["no room"]),
        ([refusal(lacks.replace("2", "1"))], [lacks.replace("2", "1")]),
    ):
        api = Api()
        told = Reporter(cast("Any", api), asyncio.Event())
        async with running(told._write_conditions()):
            told.report(refusal(lacks))
            assert told._recorder.pending == 0, "nor by an event"
            for one in then:
                told.report(one)
            await until(api, asked=len(written))
        assert api.written == written
