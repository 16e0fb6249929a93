"""The profiler of pods, on files as the kernel writes them and GPUs as a look shows them."""

import asyncio
import contextlib
import os
import shutil
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import msgspec
import pytest
from aiohttp import ClientSession, web

from alnair.model import usage
from alnair.model.usage import PodUsage, UsedGpu
from alnair.model.usage_feed import PodSeries, UsagePage
from alnair.node.cgroups import Proc
from alnair.node.load import GpuHolder
from alnair.node.pods.kubelet_page import KubeletPage
from alnair.node.pods.reader import PodsReading
from alnair.node.usage_outbox import UsageOutbox
from alnair.node.vgpu.containers.container_slices import OwningPod
from alnair.processes.agent.profiler import pod_profiler
from alnair.processes.agent.profiler.kept_usage import KeptUsage
from alnair.processes.agent.profiler.pod_profiler import PodProfiler
from alnair.processes.agent.profiler.usage_pages import add_usage_pages
from alnair.profiler.pods.gpu_use import Disagreement, Holder, Kind
from alnair.profiler.samples import CgroupSample, ContainerKey, ProcessSample
from alnair.serving.server import Server
from kit.fake_cgroups import ID, OTHER, UID
from kit.profiled_node import GPU, MIB, ProfiledNode

STRANGER = "7" * 8 + UID[8:]


@pytest.fixture
def node(tmp_path: Path) -> ProfiledNode:
    return ProfiledNode(tmp_path)


@contextlib.asynccontextmanager
async def served(node: ProfiledNode) -> AsyncIterator[ClientSession]:
    app = web.Application()
    add_usage_pages(app, node.profiler)
    async with Server(app, "127.0.0.1", 0) as server, ClientSession(server.url) as session:
        yield session


async def page(session: ClientSession, after: int = 0) -> UsagePage:
    async with session.get("/v1/usage", params={"after": str(after)}) as answer:
        return msgspec.json.decode(await answer.read(), type=UsagePage)


def only(profiler: pod_profiler.PodProfiler) -> PodUsage:
    (found,) = profiler.accounts.running()
    return found


async def test_a_pods_use_comes_from_its_groups_and_its_processes(node: ProfiledNode) -> None:
    path = node.pod()
    node.machine.process(17, path, text="")
    node.machine.proc.joinpath("17", "stat").write_text("17 (x) R" + " 1" * 18 + " 4242 0\n")
    for _ in range(3):
        await node.second(ProcessSample(17, 40.0, 5.0, 100 * MIB), path=path)
    found = only(node.profiler)
    assert (found.namespace, found.pod, found.uid) == ("team", "train", UID)
    assert found.containers["main"][usage.GPU_UTIL].mean == 40.0
    assert found.metrics[usage.GPU_MEMORY_MIB].last == 100.0
    assert found.metrics[usage.MEMORY_MIB].last == pytest.approx(800_000 / MIB, rel=1e-4)
    assert found.metrics[usage.CPU_CORES].max > 0
    assert found.gpus == [UsedGpu(GPU, "NVIDIA H100", 81_559, whole=True)]
    await node.second(path=path)
    assert only(node.profiler).metrics[usage.GPU_UTIL].last == 0.0
    assert node.profiler.disagreements == (
        Disagreement(Kind.GIVEN_IDLE, GPU, Holder(UID, "main"), 0),
    )


async def test_a_short_container_counts_though_the_api_server_tells_its_id_too_late(
    node: ProfiledNode,
) -> None:
    path = node.pod()
    node.names[UID] = msgspec.structs.replace(node.names[UID], containers={})
    node.machine.process(17, path, text="")
    node.machine.proc.joinpath("17", "stat").write_text("17 (x) R" + " 1" * 18 + " 4242 0\n")
    await node.second(ProcessSample(17, 40.0, 5.0, 100 * MIB), path=path)
    await node.second(path=path)  # it is between two kernels
    found = only(node.profiler)
    assert found.containers["main"][usage.GPU_UTIL].max == 40.0
    assert usage.CPU_CORES in found.metrics


async def test_a_pid_that_is_given_again_is_another_process(node: ProfiledNode) -> None:
    mine, theirs = node.pod(), node.machine.container(STRANGER, OTHER)
    stat = node.machine.proc / "17" / "stat"
    node.machine.process(17, mine)
    stat.write_text("17 (x) R" + " 1" * 18 + " 4242 0\n")
    await node.second(ProcessSample(17, 40.0))
    assert node.profiler.disagreements == ()
    node.machine.process(17, theirs)
    stat.write_text("17 (y) R" + " 1" * 18 + " 9999 0\n")
    await node.second(ProcessSample(17, 40.0))
    assert only(node.profiler).metrics[usage.GPU_UTIL].last == 0.0
    kinds = [one.kind for one in node.profiler.disagreements]
    assert kinds == [Kind.USES_NOT_GIVEN, Kind.GIVEN_IDLE]
    await node.second(ProcessSample(99, 40.0))
    assert node.profiler.disagreements[-1] == Disagreement(Kind.UNMAPPED, GPU, None, 1)


async def test_a_pid_that_was_given_again_since_the_look_is_of_nobody_known(
    node: ProfiledNode,
) -> None:
    path = node.pod()
    node.machine.process(17, path)
    later = int((time.clock_gettime(time.CLOCK_BOOTTIME) + 60) * os.sysconf("SC_CLK_TCK"))
    node.machine.proc.joinpath("17", "stat").write_text(f"17 (x) R{' 1' * 18} {later} 0\n")
    await node.second(ProcessSample(17, 40.0))
    assert only(node.profiler).metrics[usage.GPU_UTIL].last == 0.0
    assert [one.kind for one in node.profiler.disagreements] == [Kind.GIVEN_IDLE, Kind.UNMAPPED]


async def test_a_pod_from_a_file_has_the_gpu_that_it_was_given(node: ProfiledNode) -> None:
    hash_ = "0123456789abcdef" * 2
    path = node.pod(hash_)
    node.names[hash_] = msgspec.structs.replace(node.names[hash_], uid="copy")
    node.given[:] = [GpuHolder(OwningPod("team", "train", "copy", "main"), (GPU,))]
    node.machine.process(17, path)
    node.machine.proc.joinpath("17", "stat").write_text(f"17 (x) R{' 1' * 18} 4242 0\n")
    await node.second(ProcessSample(17, 40.0))
    found = only(node.profiler)
    assert found.uid == "copy"
    assert found.metrics[usage.GPU_UTIL].last == 40.0
    assert [gpu.uuid for gpu in found.gpus] == [GPU]
    assert node.profiler.disagreements == ()


async def test_gpus_that_do_not_answer_hold_up_nothing_and_are_unknown(
    node: ProfiledNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = node.pod()
    await node.second(path=path)
    await node.profiler.tick()
    assert only(node.profiler).metrics[usage.GPU_UTIL].last == 0.0, "it is of a moment ago"
    monkeypatch.setattr(pod_profiler, "FRESH", 0.0)
    await node.profiler.tick()
    found = only(node.profiler)
    assert found.metrics[usage.GPU_UTIL].last is None
    assert found.metrics[usage.MEMORY_MIB].last is not None


async def test_an_ended_pod_waits_for_who_keeps_it(node: ProfiledNode) -> None:
    path = node.pod()
    await node.second(path=path)
    async with served(node) as session:
        first = await page(session)
        assert (first.last, first.ended, [one.uid for one in first.running]) == (0, [], [UID])
        shutil.rmtree((node.machine.root / path[1:]).parent)
        await node.second()
        ended = await page(session)
        assert [(one.seq, one.usage.uid) for one in ended.ended] == [(1, UID)]
        assert (ended.last, ended.running, ended.more) == (1, [], False)
        assert (await page(session, after=1)).ended == []
        params = {"upto": "1", "stream": "another"}
        async with session.delete("/v1/usage", params=params) as answer:
            assert answer.status == 409
            assert "begin after 0" in await answer.text()
        async with session.delete("/v1/usage", params={"upto": "2"}) as answer:
            assert answer.status == 409
        params = {"upto": "1", "stream": ended.stream}
        async with session.delete("/v1/usage", params=params) as answer:
            assert await answer.json() == {"v": 1, "forgotten": 1}
        assert (await page(session)).ended == []
        assert (await page(session)).stream == first.stream


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", "9" * 19, "²"])
async def test_a_number_that_is_none_is_refused_before_anything_is_done(
    text: str, node: ProfiledNode
) -> None:
    async with served(node) as session:
        for method, name in (("GET", "after"), ("DELETE", "upto")):
            async with session.request(method, "/v1/usage", params={name: text}) as answer:
                assert answer.status == 400
                assert "is not a number" in await answer.text()


async def test_a_pods_last_minutes_can_be_read(node: ProfiledNode) -> None:
    path = node.pod()
    for _ in range(3):
        await node.second(path=path)
    async with served(node) as session:
        async with session.get("/v1/series", params={"pod": UID}) as answer:
            found = msgspec.json.decode(await answer.read(), type=PodSeries)
        assert found.pod == UID
        assert len(found.times) == 3
        assert found.metrics[usage.GPU_UTIL] == [0.0, 0.0, 0.0]
        async with session.get("/v1/series", params={"pod": "gone"}) as answer:
            assert answer.status == 404


async def ran_until_killed(node: ProfiledNode, path: str) -> None:
    """Runs for some seconds, with a save in between, and then is no more."""
    for _ in range(3):
        await node.second(path=path)
    await node.profiler.kept.write([], node.profiler.accounts.saved())
    await node.second(path=path)


async def test_a_killed_agent_loses_what_came_after_the_last_save(node: ProfiledNode) -> None:
    path = node.pod()
    await ran_until_killed(node, path)
    before = only(node.profiler)
    node.start()
    await node.second(path=path)
    found = only(node.profiler)
    assert found.started == before.started
    assert found.metrics[usage.MEMORY_MIB].seconds == pytest.approx(
        before.metrics[usage.MEMORY_MIB].seconds, abs=2
    )


async def test_a_pod_that_ended_while_no_agent_ran_is_told_once(node: ProfiledNode) -> None:
    path = node.pod()
    await ran_until_killed(node, path)
    shutil.rmtree((node.machine.root / path[1:]).parent)
    node.names.clear()
    node.given.clear()
    node.start()
    await node.second()
    assert (await node.profiler.kept.page(0, [])).last == 1
    # Killed again, before the books were written without it.
    saved = node.folder / "usage" / "running"
    books = saved.read_bytes()
    await node.second()
    saved.write_bytes(books)
    node.start()
    await node.second()
    assert (await node.profiler.kept.page(0, [])).last == 1


async def test_what_cannot_be_written_is_kept_until_it_can(
    node: ProfiledNode, caplog: pytest.LogCaptureFixture
) -> None:
    path = node.pod()
    await node.second(path=path)
    (node.folder / "usage").rename(node.folder / "away")
    shutil.rmtree((node.machine.root / path[1:]).parent)
    for _ in range(3):
        await node.second()
    assert caplog.text.count("what pods used is not written") == 1
    assert node.profiler.kept.waiting == 1
    (node.folder / "away").rename(node.folder / "usage")
    await node.second()
    assert [one.usage.uid for one in (await node.profiler.kept.page(0, [])).ended] == [UID]


async def test_a_pod_whose_end_is_being_written_when_the_agent_ends_is_told_once(
    node: ProfiledNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    await node.second(path=node.pod())
    kept, books = node.profiler.kept, node.profiler.accounts.saved()
    began, goes_on, done = (threading.Event() for _ in range(3))
    add = UsageOutbox.add

    def slow(box: UsageOutbox, ended: PodUsage) -> int:
        monkeypatch.undo()
        began.set()
        goes_on.wait(10)
        try:
            return add(box, ended)
        finally:
            done.set()

    monkeypatch.setattr(UsageOutbox, "add", slow)
    writing = asyncio.create_task(kept.write([only(node.profiler)], books))
    await asyncio.to_thread(began.wait)
    writing.cancel()
    await asyncio.wait([writing])
    threading.Timer(0.05, goes_on.set).start()
    kept.write_now(books)
    await asyncio.to_thread(done.wait)
    again = await KeptUsage(node.folder / "usage").page(0, [])
    assert [one.usage.uid for one in again.ended] == [UID]


async def test_damaged_books_are_left_behind_with_a_word(
    node: ProfiledNode, caplog: pytest.LogCaptureFixture
) -> None:
    path = node.pod()
    await ran_until_killed(node, path)
    node.profiler.kept.write_now(msgspec.structs.replace(node.profiler.accounts.saved(), v=2))
    node.start()
    assert "the books of pods that ran before cannot be used: version 2" in caplog.text
    assert node.profiler.accounts.running() == []


async def test_nothing_ends_before_all_pods_are_known_and_the_end_is_saved(
    node: ProfiledNode,
) -> None:
    path = node.pod()
    await ran_until_killed(node, path)
    known, node.names = node.names, {}
    profiler = node.start()
    synced = asyncio.Event()
    running = asyncio.create_task(profiler.run(synced))
    await asyncio.sleep(0.05)
    assert [one.uid for one in profiler.accounts.running()] == [UID]
    node.names = known
    synced.set()
    while profiler.cycles.count == 0:  # noqa: ASYNC110 (nobody is told of it)
        await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.wait([running])
    seconds = only(profiler).metrics[usage.MEMORY_MIB].seconds
    again = node.start()
    assert only(again).metrics[usage.MEMORY_MIB].seconds == seconds


class Page:
    """As `KubeletPage`, saying what a test wants."""

    problem = "no right"

    def __init__(self, reading: PodsReading | None) -> None:
        self.reading = reading

    def read(self) -> PodsReading | None:
        return self.reading


async def test_where_no_groups_can_be_read_the_kubelet_tells_and_that_is_said(
    node: ProfiledNode, caplog: pytest.LogCaptureFixture
) -> None:
    path = node.pod()
    shutil.rmtree((node.machine.root / path[1:]).parent)
    page = Page(None)
    profiler = PodProfiler(
        "n1",
        Proc(node.machine.proc),
        lambda: node.names,
        KeptUsage(node.folder / "page"),
        page=cast("KubeletPage", page),
    )
    await profiler.tick()
    assert profiler.cycles.count == 0, "nothing is known"
    key = ContainerKey(UID, ID)
    for second in (1, 11):
        sample = CgroupSample(float(second), cpu_ns=second * 10**9, memory_bytes=5 * MIB)
        page.reading = PodsReading(float(second), {key: sample}, {}, frozenset({UID}))
        await profiler.tick()
    found = only(profiler)
    assert found.metrics[usage.CPU_CORES].last == 1.0
    page.problem = ""
    await profiler.tick()
    assert [text.rpartition(" s")[2] for text in caplog.messages] == [
        ", which cannot be read either: no right",
        "",
    ]


async def test_it_knows_who_is_beside_whom_and_keeps_samples_of_who_is_alone(
    node: ProfiledNode,
) -> None:
    def process(pid: int, path: str) -> ProcessSample:
        node.machine.process(pid, path)
        stat = node.machine.proc / str(pid) / "stat"
        stat.write_text(f"{pid} (x) R" + " 1" * 18 + " 4242 0\n")
        return ProcessSample(pid, 40.0)

    path = node.pod()
    mine = process(17, path)
    at = 1_800_000_000.0
    for number in range(5):
        node.driver_samples = tuple((at + number + part / 6, 50.0) for part in range(6))
        await node.second(mine, path=path)
    times, percents = node.profiler.busy.of(UID)[GPU]
    assert len(times) == 24, "all but the first look's"
    assert set(percents) == {50.0}
    since, beside = node.profiler.neighbours.of(UID)
    assert beside == frozenset()

    other = process(18, node.pod(STRANGER, OTHER, "other"))
    await node.second(mine, other, path=path)
    assert node.profiler.busy.of(UID) == {}, "they are of both now"
    then, beside = node.profiler.neighbours.of(UID)
    assert beside == frozenset({"team/other"})
    assert then > since
