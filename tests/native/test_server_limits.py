"""Limits that change while a container runs: whole at any instant, soon, and never for ever."""

import asyncio
import itertools
import mmap
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import msgspec
import pytest

from alnair.node.vgpu.containers.container_slices import ContainerMatch, ContainerSlices, Share
from alnair.node.vgpu.pages import abi
from alnair.node.vgpu.server import VgpuServer
from native.server_kit import GPU, OTHER_GPU, claim, limits, until

MIB = 1 << 20


@pytest.fixture
async def server() -> AsyncIterator[VgpuServer]:
    """A server without containers, on a tmpfs as in production: its journal is flushed."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        async with VgpuServer(Path(folder)) as serving:
            yield serving


def container(
    name: str, memory_mib: int = 1024, percent: int = 50, **share: bool
) -> ContainerSlices:
    slice_ = Share(GPU, memory_mib, percent, **share)
    return ContainerSlices(name, ContainerMatch(cgroup=f"/none/{name}"), (slice_,), keep=True)


def use(folder: Path, charged_ns: int, waiting: int = 0) -> None:
    """Count GPU time, as the library does: slot and bucket."""
    claim(folder, 0, 1, charged_ns=charged_ns, waiting=waiting, launches=charged_ns)
    with (folder / "counters").open("r+b") as file:
        file.seek(abi.offset(abi.Counters, "bucket"))
        file.write(charged_ns.to_bytes(8, "little"))


async def rate(folder: Path, true: Callable[[int], bool], seconds: float = 0.5) -> None:
    """Wait until the rate granted in millionths is so."""
    await until(lambda: true(limits(folder).device[0].rate_ppm), seconds)


async def test_a_changed_limit_is_in_the_page_within_ten_milliseconds(server: VgpuServer) -> None:
    server.prepare(container("a"))
    folder = server.containers["a"].folder
    took = []
    for mib in range(1000, 1050):
        began = time.perf_counter()
        assert server.change(container("a", mib, 25)) == ""
        assert limits(folder).device[0].memory_limit == mib * MIB
        took.append(time.perf_counter() - began)
    assert limits(folder).device[0].compute_percent == 25
    assert sorted(took)[25] < 0.01


async def test_a_reader_of_the_page_never_sees_half_of_a_change(server: VgpuServer) -> None:
    server.prepare(container("a", 1, 1))
    stop, torn, read = threading.Event(), [], [0]
    path = server.containers["a"].folder / "limits"

    def watch() -> None:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 4096, prot=mmap.PROT_READ) as page:
            view = abi.Limits.from_buffer_copy(page)
            while not stop.is_set():
                first = abi.Limits.from_buffer_copy(page)
                view = abi.Limits.from_buffer_copy(page)
                if first.sequence % 2 == 0 and first.sequence == view.sequence:
                    row = first.device[0]
                    read[0] += 1
                    if row.memory_limit != row.compute_percent * MIB:
                        torn.append((row.memory_limit, row.compute_percent))

    thread = threading.Thread(target=watch)
    thread.start()
    end = time.monotonic() + 60
    for turn in itertools.count():
        server.containers["a"].change(container("a", turn % 100 + 1, turn % 100 + 1))
        # The reader has the interpreter's lock when the writer lets go of it, and may come late.
        if turn > 2000 and (read[0] > 10 or time.monotonic() > end):
            break
    stop.set()
    thread.join()
    assert not torn
    assert read[0] > 10


async def test_a_soft_container_borrows_what_is_idle_and_gives_it_back(server: VgpuServer) -> None:
    server.prepare(container("a", percent=30, soft=True))
    server.prepare(container("b", percent=70, soft=True))
    alone, other = server.containers["a"].folder, server.containers["b"].folder
    assert limits(alone).device[0].rate_ppm == 0

    async def work(folder: Path, share: float, stop: asyncio.Event) -> None:
        began = time.monotonic_ns()
        while not stop.is_set():
            use(folder, int((time.monotonic_ns() - began) * share) + 1, waiting=1)
            await asyncio.sleep(0.01)
        use(folder, int((time.monotonic_ns() - began) * share) + 1, waiting=0)

    stop, later = asyncio.Event(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(work(alone, 0.3, stop))
        await rate(alone, lambda ppm: ppm >= 970_000)

        def ends_soon() -> bool:
            return 0 < limits(alone).device[0].rate_until_ns - time.monotonic_ns() <= 250_000_000

        await until(ends_soon)
        group.create_task(work(other, 0.7, later))
        await rate(alone, lambda ppm: ppm <= 320_000)
        assert limits(alone).device[0].neighbours == 1
        await until(lambda: limits(alone).device[0].others_ppm > 500_000)
        later.set()
        await rate(alone, lambda ppm: ppm >= 970_000, 1.0)
        stop.set()
    await rate(alone, lambda ppm: ppm == 0, 2.0)


async def test_a_borrowed_share_ends_by_itself_when_the_server_does(tmp_path: Path) -> None:
    async with VgpuServer(tmp_path) as server:
        server.prepare(container("a", percent=30, soft=True))
        folder = server.containers["a"].folder
        use(folder, 1)
        await asyncio.sleep(0.1)
        use(folder, 50_000_000, waiting=1)
        await rate(folder, lambda ppm: ppm >= 970_000)
    assert limits(folder).device[0].rate_until_ns < time.monotonic_ns() + 250_000_000


async def test_what_cannot_be_is_refused_in_words(server: VgpuServer) -> None:
    good = container("a")
    assert server.prepare(good) == ""
    wrong: list[tuple[ContainerSlices, str]] = [
        (msgspec.structs.replace(good, name="../b"), "cannot name a container"),
        (msgspec.structs.replace(good, name="b"), "told by the same"),
        (msgspec.structs.replace(good, name="b", who=ContainerMatch()), "nothing tells"),
        (msgspec.structs.replace(good, name="b", who=ContainerMatch(cgroup="/")), "below the root"),
        (
            msgspec.structs.replace(good, name="b", who=ContainerMatch(container="xyz")),
            "hexadecimal",
        ),
        (msgspec.structs.replace(good, name="b", shares=()), "0 GPUs"),
        (msgspec.structs.replace(good, shares=good.shares * 2), "given twice"),
        (container("a", -1), "MiB"),
        (container("a", 1, 101), "101 %"),
        (msgspec.structs.replace(good, shares=(Share("0"),)), "not a GPU's UUID"),
    ]
    for assignment, said in wrong:
        assert said in server.prepare(assignment), assignment
    other = msgspec.structs.replace(good, shares=(Share(OTHER_GPU),))
    assert "cannot be changed" in server.change(other)
    assert "no container b" in server.change(container("b"))
    assert "no container b" in server.remove("b")
    assert list(server.containers) == ["a"]
