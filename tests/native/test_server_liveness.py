"""What dead processes and hostile files leave behind: nothing, within a second."""

import asyncio
import os
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from alnair.node.vgpu.pages import abi
from alnair.node.vgpu.server import VgpuServer
from native.server_kit import Group, claim, control_group, limits, slot, until, write


@pytest.fixture
def group() -> Iterator[Group]:
    """A container's control group."""
    with control_group() as made:
        yield made


@pytest.fixture
async def server(tmp_path: Path, group: Group) -> AsyncIterator[VgpuServer]:
    """A server with the container "a", which has registered."""
    async with VgpuServer(tmp_path) as serving:
        serving.prepare(group.assignment())
        tenant = group.start(serving.containers["a"].folder)
        await asyncio.to_thread(tenant.ask, do="register")
        yield serving


async def test_the_bytes_of_a_killed_process_are_back_within_a_second(
    server: VgpuServer, group: Group
) -> None:
    container = server.containers["a"]
    tenants = [group.start(container.folder) for _ in range(4)]
    for index, tenant in enumerate(tenants):
        pid, started = await asyncio.to_thread(tenant.ask, do="pid")
        claim(container.folder, index, pid, started, held=100 << 20, charged_ns=5)
    await until(lambda: len(container.census.pids) == 4)
    assert container.held(0) == 400 << 20
    for tenant in tenants[1:]:
        tenant.kill()
    assert await until(lambda: container.held(0) == 100 << 20) < 1
    assert [slot(container.folder, i).device[0].held for i in range(4)] == [100 << 20, 0, 0, 0]
    assert slot(container.folder, 0).owner
    assert container.totals.devices[0]["charged_ns"] == 20


async def test_a_process_that_died_before_anybody_looked_is_freed_too(
    server: VgpuServer, group: Group
) -> None:
    container = server.containers["a"]
    tenant = group.start(container.folder)
    pid, started = await asyncio.to_thread(tenant.ask, do="pid")
    tenant.kill()
    claim(container.folder, 0, pid, started, held=1 << 30)
    calls = abi.HEAD_BYTES + abi.offset(abi.Slot, "calls")
    write(container.folder, calls, (5).to_bytes(8, "little"))
    assert await until(lambda: slot(container.folder, 0).owner == 0) < 1
    # Its start would tell the next owner's siblings that this one is dead, its calls count twice.
    assert not any(bytes(slot(container.folder, 0)))


async def test_a_slot_that_names_a_process_of_others_or_an_older_one_is_freed(
    server: VgpuServer, group: Group
) -> None:
    container = server.containers["a"]
    pid, started = await asyncio.to_thread(group.tenants[0].ask, do="pid")
    claim(container.folder, 0, os.getpid(), held=1 << 30)
    claim(container.folder, 1, 1, held=1 << 30)
    claim(container.folder, 2, pid, started - 1, held=1 << 30)
    claim(container.folder, 3, pid, started, held=1 << 30)
    await until(lambda: [slot(container.folder, i).owner for i in range(4)] == [0, 0, 0, pid])
    assert container.census.pids == {pid: 3}


async def test_a_process_that_has_not_yet_said_when_it_started_keeps_its_slot(
    server: VgpuServer, group: Group
) -> None:
    container = server.containers["a"]
    pid, started = await asyncio.to_thread(group.tenants[0].ask, do="pid")
    # At the first look the slot still has the start of its owner before, at the next its own.
    claim(container.folder, 0, pid, started - 7, held=1 << 30)
    container.look(0.0)
    assert slot(container.folder, 0).owner == pid
    claim(container.folder, 0, pid, started, held=1 << 30)
    container.look(0.0)
    await asyncio.sleep(0.7)
    assert (slot(container.folder, 0).owner, container.census.pids) == (pid, {pid: 0})


async def test_processes_are_known_also_without_a_descriptor_for_each(
    server: VgpuServer, group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(pid: int) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "pidfd_open", none_left)
    container = server.containers["a"]
    tenant = group.start(container.folder)
    pid, started = await asyncio.to_thread(tenant.ask, do="pid")
    claim(container.folder, 0, pid, started, held=1 << 30)
    await until(lambda: container.census.pids == {pid: 0})
    tenant.kill()
    await until(lambda: slot(container.folder, 0).owner == 0)


async def test_a_slot_that_was_claimed_again_is_left_alone(
    server: VgpuServer, group: Group
) -> None:
    container = server.containers["a"]
    claim(container.folder, 0, 4_000_000, 1, held=1 << 30)
    claim(container.folder, 1, 4_000_001, 1, held=1 << 30)
    # Of the two that the server believes dead, one has another owner by now.
    assert container.counters.free([(0, 4_000_000, 1), (1, 4_000_002, 1)]) == 1
    assert slot(container.folder, 1).device[0].held == 1 << 30


async def test_slots_are_not_freed_while_a_process_of_the_container_does_so(
    server: VgpuServer,
) -> None:
    import fcntl

    container = server.containers["a"]
    with (container.folder / "counters").open("r+b") as peer:
        fcntl.flock(peer, fcntl.LOCK_EX)
        claim(container.folder, 0, 4_000_000, 1, held=1 << 30)
        await asyncio.sleep(0.7)
        assert slot(container.folder, 0).owner == 4_000_000
    await until(lambda: slot(container.folder, 0).owner == 0)


HOSTILE: dict[str, Callable[[Path], object]] = {
    "cut off": lambda folder: os.truncate(folder / "counters", 0),
    "cut in the middle": lambda folder: os.truncate(folder / "counters", 5000),
    "made huge": lambda folder: os.truncate(folder / "counters", 1 << 33),
    "renamed": lambda folder: (folder / "counters").rename(folder / "elsewhere"),
    "replaced by a pipe": lambda folder: (
        (folder / "counters").unlink(),
        os.mkfifo(folder / "counters"),
    ),
    "random bytes": lambda folder: write(folder, 0, random.Random(1).randbytes(abi.COUNTERS_BYTES)),
    "all ones": lambda folder: write(folder, 0, b"\xff" * abi.COUNTERS_BYTES),
    "no slots used": lambda folder: write(folder, abi.offset(abi.Counters, "slots_used"), bytes(8)),
    "too many slots": lambda folder: write(
        folder, abi.offset(abi.Counters, "slots_used"), b"\xff" * 8
    ),
}


@pytest.mark.parametrize("harm", HOSTILE.values(), ids=HOSTILE)
async def test_whatever_a_tenant_does_to_its_counters_harms_it_alone(
    server: VgpuServer, group: Group, harm: Callable[[Path], object]
) -> None:
    with control_group() as other:
        server.prepare(other.assignment("b"))
        good = server.containers["b"]
        tenant = other.start(good.folder)
        pid, started = await asyncio.to_thread(tenant.ask, do="pid")
        await asyncio.to_thread(tenant.ask, do="register")
        claim(good.folder, 0, pid, started, held=7 << 20)
        bad = server.containers["a"]
        for _ in range(3):
            before = server.ticks[0]
            harm_file(harm, bad.folder)
            await asyncio.sleep(0.25)
            await until(lambda before=before: server.ticks[0] - before > 2, 1)
        harmed = time.monotonic_ns()
        await until(lambda: limits(good.folder).heartbeat_ns > harmed, 1)
        assert good.held(0) == 7 << 20
        assert os.fstat(bad.counters._fd).st_size == abi.COUNTERS_BYTES
        await until(lambda: bad.held(0) == 0)
        assert limits(bad.folder).device[0].memory_limit == 1 << 30
        assert sum(bad.totals.devices[0].values()) < 1 << 50


def harm_file(harm: Callable[[Path], object], folder: Path) -> None:
    if (folder / "counters").is_file():
        harm(folder)


async def test_a_container_whose_control_group_is_gone_is_removed(
    tmp_path: Path, group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    import msgspec

    from alnair.node.vgpu import server as serving

    monkeypatch.setattr(serving, "LINGER", 0.2)
    async with VgpuServer(tmp_path) as server:
        server.prepare(msgspec.structs.replace(group.assignment("kept"), keep=True))
        server.prepare(msgspec.structs.replace(group.assignment("kept"), keep=False))
        folder = server.containers["kept"].folder
        tenant = group.start(folder)
        await asyncio.to_thread(tenant.ask, do="register")
        await asyncio.sleep(0.8)
        assert folder.exists()
        tenant.kill()
        group.remove()
        await until(lambda: not server.containers)
        assert not folder.exists()
