"""Memory that nobody was granted: lent on request, given back, and never in an owner's way.

The server and the library are those that ship; the GPU is the fake one, which knows what is true.
"""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import pytest

from alnair.node import memory_limits
from alnair.node.nvml import Nvml
from alnair.node.vgpu import memory_loans
from alnair.node.vgpu.driver_limits import DriverLimits
from alnair.node.vgpu.inspection import Inspection
from alnair.node.vgpu.server import VgpuServer
from alnair.sharing.loans import RESERVE
from alnair.sharing.violations import Action, Policy, ViolationRules
from native.calls import BLOCK, MIB, SUCCESS, Out
from native.fake import Fake
from native.live_node import CONTEXT, GIB, SLICE, Node, Tenant
from native.server_kit import control_group, until


@pytest.fixture
async def node(fake: Fake, nvml: Nvml, tmp_path: Path) -> AsyncIterator[Node]:
    with ExitStack() as stack:
        async with VgpuServer(tmp_path / "agent") as server:
            made = Node(fake, nvml, server, stack)
            yield made
            stack.close()


async def test_what_nobody_was_granted_is_lent_on_request(node: Node) -> None:
    one = await node.tenant("one", borrows=True)
    early = asyncio.create_task(one.allocate("early", SLICE))
    await asyncio.sleep(0.1)
    assert not early.done(), "nobody has told yet what is free"
    await node.look()
    assert await early
    await one.free("early")
    early_loan = node.loan("one")
    assert CONTEXT <= early_loan <= CONTEXT + 256 * MIB
    assert await one.allocate("a", SLICE - CONTEXT)
    assert node.loan("one") == early_loan, "the slice comes first"
    assert await one.allocate("b", 4 * GIB + 1)
    assert 4 * GIB < node.loan("one") <= 4 * GIB + 256 * MIB
    assert node.fake.used("one") == SLICE + 4 * GIB + 2 * MIB
    # Within what is lent already it is not asked again.
    lent = node.loan("one")
    assert await one.allocate("c", 128 * MIB)
    assert node.loan("one") == lent
    assert await one("cuMemGetInfo_v2", Out("free"), Out("total")) == SUCCESS
    assert (one.call.get("free"), one.call.get("total")) == (0, SLICE), "programs see the slice"


async def test_no_more_is_lent_than_is_nobodys(node: Node) -> None:
    total = node.fake.total()
    most = (total - 20 * GIB) // BLOCK * BLOCK
    owner = await node.tenant("owner", mib=most // MIB)
    one = await node.tenant("one", borrows=True)
    strict = await node.tenant("strict", mib=1024)
    await node.look()
    room = total - most - SLICE - GIB - RESERVE
    assert await one.allocate("slice", SLICE - CONTEXT)
    assert not await one.allocate("a", room + BLOCK)
    assert await one.allocate("a", room // BLOCK * BLOCK)
    assert not await one.allocate("b", BLOCK)
    assert not await strict.allocate("a", GIB), "who does not borrow is refused at its slice"
    assert await strict.allocate("a", GIB - CONTEXT)
    # All of it is there, though the owner takes it last, in one piece.
    assert await owner.allocate("all", most - CONTEXT)


@pytest.mark.parametrize(
    "call",
    [
        ("cuMemAllocAsync", Out("a"), GIB, 0),
        ("cuMemAllocManaged", Out("a"), GIB, 1),
        ("cuMemAllocPitch_v2", Out("a"), Out("pitch"), 1 << 20, 1024, 4),
        ("cuCtxCreate_v2", Out("a"), 0, 0),
    ],
    ids=lambda call: call[0],
)
async def test_each_way_to_memory_borrows(node: Node, call: tuple[str, int | Out]) -> None:
    one = await node.tenant("one", borrows=True)
    await node.look()
    assert await one.allocate("slice", SLICE - CONTEXT)
    assert await one(*call) == SUCCESS
    assert node.fake.used("one") > SLICE


async def test_unused_loans_go_to_who_asks(node: Node) -> None:
    total = node.fake.total()
    await node.tenant("owner", mib=(total - 24 * GIB) // MIB)
    one, other = await node.tenant("one", borrows=True), await node.tenant("two", borrows=True)
    await node.look()
    for tenant in (one, other):
        assert await tenant.allocate("slice", SLICE - CONTEXT)
    assert await one.allocate("a", 5 * GIB)
    assert not await other.allocate("a", 5 * GIB), "one holds it"
    await one.free("a")
    assert node.loan("one") >= 5 * GIB, "it keeps the loan while nobody needs it"
    assert await other.allocate("a", 5 * GIB)
    assert node.loan("one") < 5 * GIB
    assert not await one.allocate("a", 5 * GIB)


async def test_an_owner_waits_for_what_is_lent_and_growth_ends(node: Node) -> None:
    total = node.fake.total()
    one = await node.tenant("one", borrows=True)
    await node.look()
    assert await one.allocate("slice", SLICE - CONTEXT)
    assert await one.allocate("a", 3 * GIB)
    assert await one.allocate("b", 3 * GIB)
    needs = {node.uuid: (total - SLICE) // BLOCK * BLOCK}
    said = node.server.loans.claim("owner", needs)
    assert "are lent to one and come back" in said
    await until(lambda: node.loan("one") == 6 * GIB)
    assert not await one.allocate("c", BLOCK), "growth is refused first"
    await one.free("a")
    await until(lambda: node.loan("one") == 3 * GIB)
    assert not await one.allocate("a", BLOCK)
    assert node.server.loans.claim("owner", needs)
    await one.free("b")
    await until(lambda: not node.server.loans.claim("owner", needs))
    owner_slices = node.slices("owner", group := node.group(), needs[node.uuid] // MIB)
    assert not node.server.prepare(owner_slices)
    owner = await node.process("owner", group)
    assert not await one.allocate("a", BLOCK)
    assert await owner.allocate("all", needs[node.uuid] - CONTEXT)
    # When it has gone again its memory may be lent.
    owner.end()
    assert not node.server.remove("owner")
    await until(lambda: node.fake.sweep() >= 0 and node.fake.used("owner") == 0)
    for _ in range(6):
        await node.look()
    assert await one.allocate("a", 3 * GIB)


async def test_who_holds_what_an_owner_waits_for_is_ended(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_loans, "PATIENCE", 0.0)
    total = node.fake.total()
    for name, beyond in (("one", 2 * GIB), ("two", 6 * GIB), ("three", 4 * GIB)):
        tenant = await node.tenant(name, borrows=True)
        await node.look()
        assert await tenant.allocate("slice", SLICE - CONTEXT)
        assert await tenant.allocate("a", beyond)
    needs = {node.uuid: total - 3 * SLICE - RESERVE - 8 * GIB}
    assert node.server.loans.claim("owner", needs)
    await node.look()
    assert [one.partition(":")[0] for one in node.evicted] == ["two"]
    assert "holds 6144 MiB" in node.evicted[0]
    await node.look()
    assert len(node.evicted) == 1, "it is on its way"
    assert not node.server.remove("two")
    await until(lambda: not node.server.loans.claim("owner", needs))
    await node.look()
    assert len(node.evicted) == 1


async def test_a_server_that_died_lends_nothing(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_loans, "_HOLDS_NS", 400_000_000)
    one = await node.tenant("one", borrows=True)
    await node.look()
    assert await one.allocate("slice", SLICE - CONTEXT)
    assert await one.allocate("a", 700 * MIB)
    lent = node.loan("one")
    assert lent > 700 * MIB
    with contextlib.ExitStack() as stack:
        # It does not come to its ticks any more.
        node.server.loans.tick = lambda: None  # type: ignore[method-assign]
        stack.callback(lambda: node.server.loans.__dict__.pop("tick"))
        await asyncio.sleep(0.5)
        assert not await one.allocate("b", BLOCK), "the loan ran out"
        assert node.fake.used("one") == SLICE + 700 * MIB, "what is held stays"
    assert await one.allocate("b", BLOCK), "it is renewed"


async def test_a_borrower_breaks_no_rule(node: Node) -> None:
    told: list[Action] = []
    rules = ViolationRules(grace=0.0, confirmed=0.0)
    inspection = Inspection(node.server, Policy.EVICT, lambda _, __, a: told.append(a), rules)
    one = await node.tenant("one", borrows=True)
    await node.look()
    assert await one.allocate("slice", SLICE - CONTEXT)
    assert await one.allocate("a", 4 * GIB)
    inspection.take(await node.look())
    assert not told
    node.server.containers["one"].loan = lambda _: 0  # type: ignore[method-assign]
    inspection.take(await node.look())
    assert told, "without its loan it would"


async def test_the_drivers_own_limit_allows_for_the_loan_first(node: Node) -> None:
    with control_group() as probe:
        if probe.controller:
            pytest.skip("no cgroup v2 is mounted here")
    limits = DriverLimits(node.server)
    one = await node.tenant("one", borrows=True)
    await node.look()
    await limits.look()
    running = asyncio.create_task(limits.run())
    assert await one.allocate("slice", SLICE - CONTEXT)
    assert await one.allocate("a", 4 * GIB)
    lent = node.loan("one")
    running.cancel()
    handle = node._nvml.handles[node.uuid]
    known = memory_limits.read(handle, one.group.folder)
    assert known is not None
    assert known.limit == SLICE + lent
    # Another agent comes, which has lent nothing itself yet.
    node.server.loans.wanted.clear()
    await DriverLimits(node.server).look()
    assert memory_limits.read(handle, one.group.folder) == known


@asynccontextmanager
async def _churning(one: Tenant, stop: threading.Event) -> AsyncIterator[asyncio.Task[int]]:
    """A borrower that takes whatever it can get, and gives it back, until told to stop."""

    async def churn() -> int:
        got = 0
        while not stop.is_set():
            held = []
            for number in range(12):
                if not await one.allocate(f"x{number}", 2 * GIB):
                    break
                held.append(f"x{number}")
            got = max(got, len(held))
            for name in held:
                await one.free(name)
        return got

    task = asyncio.create_task(churn())
    try:
        yield task
    finally:
        stop.set()
        await task


async def test_owners_within_their_slices_are_never_refused_beside_borrowers(node: Node) -> None:
    """Two that take all they can beside one that fills and empties its slice again and again."""
    total = node.fake.total()
    whole = (total - 2 * SLICE - 12 * GIB) // MIB * MIB
    owner = await node.tenant("owner", mib=whole // MIB)
    ones = [await node.tenant(name, borrows=True) for name in ("one", "two")]
    await node.look()
    stop = threading.Event()
    async with _churning(ones[0], stop) as first, _churning(ones[1], stop) as second:
        for turn in range(60):
            size = (whole - CONTEXT) // (1 + turn % 3)
            names = [f"o{number}" for number in range(1 + turn % 3)]
            for name in names:
                assert await owner.allocate(name, size // BLOCK * BLOCK)
            for name in names:
                await owner.free(name)
            if turn % 10 == 0:
                await node.look()
        stop.set()
    assert max(await first, await second) * 2 * GIB > SLICE, "somebody borrowed"
