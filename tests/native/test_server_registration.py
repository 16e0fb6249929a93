"""Registration: who is let in, by the kernel's word alone; and what hostile peers cannot do."""

import asyncio
import statistics
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from alnair.node.vgpu.containers import registration
from alnair.node.vgpu.pages import abi
from alnair.node.vgpu.server import VgpuServer
from native.server_kit import Group, Tenant, control_group, limits, until

BAD = int(abi.Reply.BAD)
OK = int(abi.Reply.OK)
REFUSED = int(abi.Reply.REFUSED)


@pytest.fixture
def group() -> Iterator[Group]:
    """A container's control group."""
    with control_group() as made:
        yield made


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[VgpuServer]:
    """A server without containers."""
    async with VgpuServer(tmp_path) as serving:
        yield serving


async def ask(tenant: Tenant, **words: Any) -> Any:
    return await asyncio.to_thread(tenant.ask, **words)


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_the_first_process_registers_the_container(server: VgpuServer, group: Group) -> None:
    assert server.prepare(group.assignment()) == ""
    folder = server.containers["a"].folder
    page = limits(folder)
    assert (page.magic, page.abi, page.state) == (abi.LIMITS_MAGIC, abi.ABI, abi.State.WAITING)
    assert page.device[0].memory_limit == 1 << 30
    assert (folder / "limits").stat().st_mode & 0o777 == 0o444
    assert (folder / "counters").stat().st_size == abi.COUNTERS_BYTES
    # None of it is missing when a neighbour fills the file system: its processes would be killed.
    assert (folder / "counters").stat().st_blocks * 512 >= abi.COUNTERS_BYTES

    answer = await ask(group.start(folder), do="register")
    assert answer[:2] == [OK, ""]
    assert limits(folder).state == abi.State.REGISTERED
    journal = (server.folder / "journal").stat().st_ino

    assert (await ask(group.start(folder), do="register"))[0] == OK
    assert (server.folder / "journal").stat().st_ino == journal  # nothing new was learned


async def test_a_process_of_another_container_is_refused_whatever_it_says(
    server: VgpuServer, group: Group
) -> None:
    with control_group() as other:
        server.prepare(group.assignment("a"))
        server.prepare(other.assignment("b"))
        folder = server.containers["a"].folder
        reply, text, _ = await ask(other.start(folder), do="register")
        assert (reply, limits(folder).state) == (REFUSED, abi.State.WAITING)
        assert other.name in text


async def test_a_process_of_no_container_is_refused(server: VgpuServer, group: Group) -> None:
    server.prepare(group.assignment())
    stranger = Tenant(None, server.containers["a"].folder)
    assert (await ask(stranger, do="register"))[0] == REFUSED
    stranger.kill()


async def test_a_refused_container_hears_why(server: VgpuServer, group: Group) -> None:
    server.prepare(group.assignment())
    container = server.containers["a"]
    container.refuse("its GPU is gone: delete the pod")
    reply, text, _ = await ask(group.start(container.folder), do="register")
    assert (reply, text) == (REFUSED, "its GPU is gone: delete the pod")
    assert limits(container.folder).message.decode() == text


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        ({"magic": 7}, "not a frame"),
        ({"version": 2}, "restart the container"),
        ({"operation": 99}, "no operation 99"),
    ],
)
async def test_a_wrong_frame_hears_what_is_wrong(
    server: VgpuServer, group: Group, frame: dict[str, int], said: str
) -> None:
    server.prepare(group.assignment())
    folder = server.containers["a"].folder
    reply, text, _ = await ask(group.start(folder), do="register", frame=frame)
    assert reply == BAD
    assert said in text


async def test_frames_of_any_bytes_are_answered_or_dropped_and_nothing_breaks(
    server: VgpuServer, group: Group
) -> None:
    server.prepare(group.assignment())
    folder = server.containers["a"].folder
    tenant = group.start(folder)
    good = bytes.fromhex("414c4e41564746310100000001000000").ljust(abi.FRAME_BYTES, b"\0")
    sent: list[bytes] = []

    @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        st.binary(min_size=1, max_size=600)
        | st.tuples(st.integers(0, 23), st.binary(min_size=1, max_size=8)).map(
            lambda cut: good[: cut[0]] + cut[1] + good[cut[0] + len(cut[1]) :]
        )
    )
    def collect(frame: bytes) -> None:
        sent.append(frame)

    collect()
    socket = server.containers["a"].registration
    for frame in sent:
        socket._credit = registration.BURST  # this is about the frames, not about their number
        reply, text = await ask(tenant, do="send", hex=frame.hex())
        assert reply in (BAD, OK)
        assert reply == OK or text
    assert (await ask(tenant, do="register"))[0] == OK


async def test_who_connects_and_says_nothing_is_cut_off_and_holds_nobody_up(
    server: VgpuServer, group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registration, "PATIENCE", 0.3)
    server.prepare(group.assignment())
    folder = server.containers["a"].folder
    idle, honest = group.start(folder), group.start(folder)
    assert await ask(idle, do="hold", times=20) == 20
    assert (await ask(honest, do="register"))[0] == OK
    assert all(await ask(idle, do="heard"))
    assert server.containers["a"].registration.late == 20


async def test_peers_that_leave_in_the_middle_leave_nothing_behind(
    server: VgpuServer, group: Group
) -> None:
    server.prepare(group.assignment())
    folder = server.containers["a"].folder
    tenant = group.start(folder)
    assert (await ask(tenant, do="register"))[0] == OK
    before = descriptors()
    assert await ask(tenant, do="vanish", times=100)
    await until(lambda: descriptors() == before)


async def test_a_thousand_knocks_of_one_container_do_not_keep_another_waiting(
    server: VgpuServer, group: Group
) -> None:
    with control_group() as other:
        server.prepare(group.assignment("loud"))
        server.prepare(other.assignment("quiet"))
        loud = group.start(server.containers["loud"].folder)
        quiet = other.start(server.containers["quiet"].folder)
        await ask(quiet, do="register")
        storm = asyncio.create_task(ask(loud, do="storm", times=1000))
        waits = []
        while not storm.done():
            waits.append((await ask(quiet, do="register"))[2])
            await asyncio.sleep(0.02)
        assert (await storm)[str(OK)] == 1000
        assert statistics.median(waits) < 0.02
        # Two busy cores, which may stand still now and then: the kernel's share, not ours.
        assert sorted(waits)[len(waits) * 9 // 10] < 0.5


async def test_sixty_four_processes_at_once_are_all_registered(
    server: VgpuServer, group: Group
) -> None:
    server.prepare(group.assignment())
    folder = server.containers["a"].folder
    with ExitStack() as stack:
        tenants = [group.start(folder) for _ in range(64)]
        for tenant in tenants:
            stack.callback(tenant.kill)
            await ask(tenant, do="pid")  # it is up
        answers = await asyncio.gather(*(ask(tenant, do="register") for tenant in tenants))
        assert [answer[0] for answer in answers] == [OK] * 64
