"""A dcgm-exporter beside the driver: what it adds, and that it holds nothing up."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import aiohttp
import pytest
from aiohttp import web

from alnair.model import usage
from alnair.node.gpu_looks import GpuLook
from alnair.processes.agent.profiler import dcgm_source
from alnair.processes.agent.profiler.dcgm_source import DcgmSource
from alnair.profiler.samples import GpuSample
from alnair.serving.server import Server
from unit.profiler.test_dcgm import EXPOSITION, GPU, OTHER

MIB = 1 << 20


@contextlib.asynccontextmanager
async def exporter(
    answer: Callable[[web.Request], Awaitable[web.StreamResponse]],
) -> AsyncIterator[tuple[DcgmSource, aiohttp.ClientSession, list[float]]]:
    """A source of an exporter that answers so, with a clock that a test moves."""
    app = web.Application()
    app.router.add_get("/metrics", answer)
    now = [100.0]
    timeout = aiohttp.ClientTimeout(total=dcgm_source.PATIENCE)
    async with (
        Server(app, "127.0.0.1", 0) as server,
        aiohttp.ClientSession(timeout=timeout) as session,
    ):
        yield DcgmSource(f"{server.url}/metrics", lambda: now[0]), session, now


async def sample(_: web.Request) -> web.Response:
    return web.Response(text=EXPOSITION)


def look(**profiling: float) -> GpuLook:
    gpus = {GPU: GpuSample(1.0, 60.0, profiling=profiling), OTHER: GpuSample(1.0, 0.0)}
    return GpuLook(1.0, 1, {}, {}, samples=gpus)


async def test_what_the_driver_does_not_say_is_filled_in() -> None:
    async with exporter(sample) as (source, session, _):
        assert source.fill(look()) == look()
        await source.ask(session)
        assert source.problem == ""
        filled = source.fill(look()).samples
        assert filled[GPU].profiling == {"sm_active": 0.712345, "tensor_active": 0.401}
        assert filled[GPU].util == 60.0  # the driver's own
        assert filled[OTHER].profiling == {}
        assert source.links(GPU) == {usage.PCIE_TX_MIB_S: 123456789 / MIB}
        assert source.links("GPU-of-another-node") == {}


async def test_the_drivers_own_counters_go_first() -> None:
    async with exporter(sample) as (source, session, _):
        await source.ask(session)
        found = source.fill(look(sm_active=0.5)).samples[GPU].profiling
        assert found == {"sm_active": 0.5, "tensor_active": 0.401}


async def test_what_it_said_long_ago_says_nothing_of_now() -> None:
    async with exporter(sample) as (source, session, now):
        await source.ask(session)
        now[0] += 60
        assert source.fill(look()) == look()
        assert source.links(GPU) == {}


@pytest.mark.parametrize(
    ("text", "status", "why"),
    [
        ("not an exposition {", 200, "line 1 is no line of Prometheus"),
        ("", 500, "it answers 500"),
        ("", 302, "it answers 302"),
        ("# " + "x" * (5 << 20), 200, "longer than 4 MiB"),
    ],
)
async def test_a_bad_answer_is_said_once_and_keeps_what_was_known(
    text: str, status: int, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    is_bad = False

    async def answer(request: web.Request) -> web.Response:
        headers = {"Location": "http://127.0.0.1:1/"} if status == 302 else {}
        bad = web.Response(text=text, status=status, headers=headers)
        return bad if is_bad else await sample(request)

    async with exporter(answer) as (source, session, _):
        await source.ask(session)
        is_bad = True
        await source.ask(session)
        await source.ask(session)
        assert why in source.problem
        assert "sm_active" in source.fill(look()).samples[GPU].profiling
        assert caplog.text.count(why) == 1


async def test_one_that_never_answers_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dcgm_source, "PATIENCE", 0.05)
    ended = asyncio.Event()

    async def hang(_: web.Request) -> web.Response:
        await ended.wait()
        return web.Response()

    async with exporter(hang) as (source, session, _):
        await source.ask(session)
        assert "has not answered within" in source.problem
        assert source.fill(look()) == look()
        ended.set()


async def test_one_that_is_not_there_is_said() -> None:
    source = DcgmSource("http://127.0.0.1:1/metrics")
    async with aiohttp.ClientSession() as session:
        await source.ask(session)
    assert "127.0.0.1" in source.problem
