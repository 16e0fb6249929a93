"""Containers that rest: the driver brings what they hold into the host's memory, and back."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from alnair.node.nvml import Nvml
from alnair.node.vgpu import checkpoint_calls, memory_loans
from alnair.node.vgpu.containers.container import VgpuContainer
from alnair.node.vgpu.server import VgpuServer
from alnair.node.vgpu.suspensions import Suspensions
from native.calls import MIB, SUCCESS, Out, Var
from native.fake import Fake
from native.live_node import CONTEXT, GIB, SLICE, Node
from native.server_kit import until


class Resting(Node):
    """The same, with what suspends its containers."""

    def begin(self, enabled: bool = True) -> Suspensions:
        self.told: list[tuple[str, bool, str]] = []
        self.suspensions = Suspensions(self.server, enabled=enabled, tell=self._tell)
        return self.suspensions

    def _tell(self, container: VgpuContainer, suspended: bool, why: str) -> None:
        self.told.append((container.assignment.name, suspended, why))

    async def suspend(self, name: str, on: bool = True) -> None:
        assert self.suspensions.want(name, on) == ""
        await self.suspensions.look()

    def listed(self) -> set[int]:
        """Pids that NVML lists."""
        return set(self._nvml.read(self.uuid).load.memory)


@pytest.fixture
async def node(
    fake: Fake, nvml: Nvml, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Resting]:
    for name, value in fake.environment("agent").items():
        monkeypatch.setenv(name, value)
    with ExitStack() as stack:
        async with VgpuServer(tmp_path / "agent") as server:
            made = Resting(fake, nvml, server, stack)
            made.begin()
            yield made
            stack.close()


async def test_a_suspended_container_holds_nothing_and_goes_on_where_it_was(node: Resting) -> None:
    one = await node.tenant("one")
    assert await one.allocate("a", 2 * GIB)
    assert await one("cuMemsetD8_v2", Var("a"), 7, MIB) == SUCCESS
    held = node.fake.used("one")
    await until(lambda: node.server.containers["one"].census.pids)
    await node.suspend("one")
    assert node.told == [("one", True, "")]
    assert (node.fake.used("one"), node.listed()) == (0, set())
    assert node.server.containers["one"].held(0) == held, "it stays charged in its own slice"
    assert node.server.status()[0].state == "suspended"
    call = asyncio.create_task(one("cuMemFree_v2", Var("a")))
    await asyncio.sleep(0.2)
    assert not call.done(), "its calls wait"
    await node.suspend("one", on=False)
    assert await call == SUCCESS
    assert node.fake.used("one") == held - 2 * GIB
    assert node.listed() == {one.call.process.pid}
    assert await one.allocate("b", SLICE - CONTEXT)
    assert not await one.allocate("c", 2 * MIB)
    assert node.told[1:] == [("one", False, "")]


async def test_a_new_process_of_it_gets_no_cuda(node: Resting) -> None:
    one = await node.tenant("one")
    await until(lambda: node.server.containers["one"].census.pids)
    await node.suspend("one")
    with pytest.raises(AssertionError):
        await node.process("one", one.group)
    await node.suspend("one", on=False)
    again = await node.process("one", one.group)
    assert await again.allocate("a", GIB)


async def test_its_memory_is_lent_and_comes_back_before_it_goes_on(
    node: Resting, monkeypatch: pytest.MonkeyPatch
) -> None:
    total = node.fake.total()
    owner = await node.tenant("owner", mib=(total - 2 * SLICE) // (2 * MIB) * 2)
    borrower = await node.tenant("borrower", borrows=True)
    await node.look()
    assert await owner.allocate("a", 20 * GIB)
    assert await borrower.allocate("slice", SLICE - CONTEXT)
    assert not await borrower.allocate("b", 40 * GIB)
    await until(lambda: len(node.server.containers["owner"].census.pids) == 1)
    await node.suspend("owner")
    for _ in range(6):
        await node.look()
    assert await borrower.allocate("b", 40 * GIB)
    monkeypatch.setattr(memory_loans, "PATIENCE", 0.0)
    call = asyncio.create_task(owner("cuMemFree_v2", Var("a")))
    await node.suspend("owner", on=False)
    assert "are lent to borrower and come back" in node.suspensions.problems["owner"]
    await node.look()
    assert [one.partition(":")[0] for one in node.evicted] == ["borrower"]
    assert not call.done()
    await borrower.free("b")

    async def resumed() -> bool:
        await node.suspensions.look()
        return call.done()

    for _ in range(50):
        if await resumed():
            break
        await asyncio.sleep(0.05)
    assert await call == SUCCESS
    assert await owner.allocate("all", (total - 2 * SLICE) // (2 * MIB) * 2 * MIB - CONTEXT)


async def test_what_the_driver_cannot_suspend_goes_on(node: Resting) -> None:
    one = await node.tenant("one")
    other = await node.process("one", one.group)
    assert await other("cuMemAllocManaged", Out("a"), GIB, 1) == SUCCESS
    await until(lambda: len(node.server.containers["one"].census.pids) == 2)
    held = node.fake.used("one")
    await node.suspend("one")
    ((_, _, why),) = node.told
    assert f"process {other.call.process.pid}: cuCheckpointProcessCheckpoint gave" in why
    assert node.fake.used("one") == held
    for tenant in (one, other):
        assert await tenant.allocate("b", GIB)
    again = await node.process("one", one.group)
    assert await again.allocate("a", GIB)


async def test_a_driver_that_is_too_old_says_so(
    node: Resting, monkeypatch: pytest.MonkeyPatch
) -> None:
    from native import build

    monkeypatch.setenv("LD_LIBRARY_PATH", f"{build.PLAIN / 'cuda-12040'}:{build.PLAIN}")
    assert "older than release 570" in await checkpoint_calls.ask("suspend", [1])


async def test_a_server_that_comes_anew_keeps_it_suspended(node: Resting, tmp_path: Path) -> None:
    one = await node.tenant("one")
    assert await one.allocate("a", GIB)
    await until(lambda: node.server.containers["one"].census.pids)
    await node.suspend("one")
    await node.server.__aexit__()
    await node.server.__aenter__()
    container = node.server.containers["one"]
    assert (container.suspended, container.released) == (True, False)
    node.begin()
    await until(lambda: node.server.containers["one"].census.pids)
    await node.suspensions.look()
    assert container.released
    assert node.fake.used("one") == 0
    node.begin(enabled=False)
    await node.suspensions.look()
    assert not container.suspended
    assert await one.allocate("b", GIB)


async def test_whoever_may_not_be_suspended_by_hand_is_told(node: Resting) -> None:
    await node.tenant("one")
    assert "there is no container two" in node.suspensions.want("two", suspended=True)
    assert "start it with --suspend" in node.begin(enabled=False).want("one", suspended=True)
