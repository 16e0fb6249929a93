"""Memory beyond the slice from the host: where it is allowed, as much as is allowed, and there."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from native import build
from native.calls import BLOCK, INVALID_VALUE, MIB, OUT_OF_MEMORY, SUCCESS, Calls, Out, Var
from native.container import Container
from native.fake import Fake

LIMIT, SHARE, CONTEXT = 4096 * MIB, 5120 * MIB, 522 * MIB
ROOM = LIMIT - CONTEXT
#: CUmem_advise and CUmemLocation of cuda.h.
READ_MOSTLY, PREFERRED, GPU_0 = 1, 3, (1).to_bytes(4, "little") + bytes(4)


class Tenant:
    """A container whose slice is full, and a process in it."""

    def __init__(self, fake: Fake, container: Container, call: Calls) -> None:
        self.fake, self.container, self.call = fake, container, call

    @property
    def swapped(self) -> int:
        """Bytes in the host's memory, by the container's own account."""
        return sum(slot.swapped[0] for slot in self.container.slots())

    def is_true(self) -> bool:
        """Whether both accounts are what the fake knows."""
        held = self.container.total("held")
        return (held, self.swapped) == (self.fake.used(), self.fake.managed_host())

    def another(self) -> Calls:
        """One more process of the container."""
        return Calls({**self.fake.environment(), **self.container.environment()})


@contextmanager
def tenant(share: int = SHARE, fill: int = ROOM, profile: str = "h200") -> Iterator[Tenant]:
    with (
        Fake(profile) as fake,
        Container(
            fake.uuid(), memory_limit=LIMIT, context_bytes=CONTEXT, swap_limit=share
        ) as container,
    ):
        fake.watch(LIMIT)
        with Calls({**fake.environment(), **container.environment()}) as call:
            if fill:
                assert call("cuMemAlloc_v2", Out("full"), fill) == SUCCESS
            one = Tenant(fake, container, call)
            yield one
            assert fake.over() == (0, 0), "the slice is the limit on the GPU, whatever is swapped"


@pytest.fixture
def one() -> Iterator[Tenant]:
    with tenant() as made:
        yield made


def test_what_the_slice_has_no_room_for_comes_from_the_host(one: Tenant) -> None:
    call = one.call
    assert call("cuMemAlloc_v2", Out("a"), 100 * MIB) == SUCCESS
    assert (one.container.total("held"), one.swapped) == (LIMIT, 100 * MIB)
    assert one.is_true()
    assert one.container.total("refused") == 0
    assert call("cuMemsetD8_v2", Var("a"), 7, MIB) == SUCCESS
    assert call("cuMemFree_v2", Var("a")) == SUCCESS
    assert (one.container.total("held"), one.swapped) == (LIMIT, 0)
    assert one.is_true()


def test_the_slice_comes_first() -> None:
    with tenant(fill=0) as one:
        assert one.call("cuMemAlloc_v2", Out("a"), ROOM) == SUCCESS
        assert one.swapped == 0
        assert one.call("cuMemFree_v2", Var("a")) == SUCCESS
        assert one.call("cuMemAlloc_v2", Out("a"), ROOM + 1) == SUCCESS
        assert (one.container.total("held"), one.swapped) == (CONTEXT, ROOM + BLOCK)
        assert one.is_true()


def test_the_share_of_the_host_is_a_limit(one: Tenant) -> None:
    call = one.call
    assert call("cuMemFree_v2", Var("full")) == SUCCESS
    assert call("cuMemAlloc_v2", Out("full"), ROOM - CONTEXT) == SUCCESS
    assert call("cuMemAlloc_v2", Out("rest"), CONTEXT) == SUCCESS
    assert call("cuMemAlloc_v2", Out("a"), SHARE + 1) == OUT_OF_MEMORY
    assert call("cuMemAlloc_v2", Out("a"), SHARE - BLOCK) == SUCCESS
    assert call("cuMemAlloc_v2", Out("b"), 2 * BLOCK) == OUT_OF_MEMORY
    assert call("cuMemFree_v2", Var("rest")) == SUCCESS
    with one.another() as other:  # whose context fills the slice again
        assert other("cuMemAlloc_v2", Out("b"), 2 * BLOCK) == OUT_OF_MEMORY
        assert one.container.total("refused") == 3
        assert call("cuMemFree_v2", Var("a")) == SUCCESS
        assert other("cuMemAlloc_v2", Out("b"), SHARE) == SUCCESS
        assert call("cuMemAlloc_v2", Out("c"), MIB) == OUT_OF_MEMORY
        assert one.is_true()
        other.kill()
    assert call("cuMemAlloc_v2", Out("rest"), CONTEXT) == SUCCESS
    assert call("cuMemAlloc_v2", Out("c"), SHARE) == SUCCESS
    assert one.is_true()


def test_the_share_can_change_while_the_container_runs(one: Tenant) -> None:
    one.container.change(swap_limit=BLOCK)
    assert one.call("cuMemAlloc_v2", Out("a"), 2 * BLOCK) == OUT_OF_MEMORY
    one.container.change(swap_limit=2 * BLOCK)
    assert one.call("cuMemAlloc_v2", Out("a"), 2 * BLOCK) == SUCCESS
    one.container.change(swap_limit=0)
    assert one.call("cuMemAlloc_v2", Out("b"), BLOCK) == OUT_OF_MEMORY
    assert one.call("cuMemFree_v2", Var("a")) == SUCCESS
    assert one.is_true()


def test_without_a_share_it_is_refused() -> None:
    """As in a page of an agent before this, which has zeros there."""
    with tenant(share=0) as one:
        assert one.call("cuMemAlloc_v2", Out("a"), BLOCK) == OUT_OF_MEMORY
        assert one.container.total("refused") == 1
        assert one.fake.managed_host() == 0


def test_a_gpu_that_does_not_share_managed_memory_refuses() -> None:
    with tenant(profile="k80") as one:
        assert one.call("cuMemAlloc_v2", Out("a"), BLOCK) == OUT_OF_MEMORY
        assert one.container.total("refused") == 1
        assert one.swapped == one.fake.managed_host() == 0


def test_programs_see_the_slice_as_before(one: Tenant) -> None:
    """A framework that took the host's memory for the GPU's would put all it has there."""
    call = one.call
    assert call("cuMemFree_v2", Var("full")) == SUCCESS
    assert call("cuMemAlloc_v2", Out("a"), ROOM + MIB) == SUCCESS
    assert one.swapped == ROOM + BLOCK
    assert call("cuMemGetInfo_v2", Out("free"), Out("total")) == SUCCESS
    assert call("cuDeviceTotalMem_v2", Out("bytes"), 0) == SUCCESS
    assert call.get("total") == call.get("bytes") == LIMIT
    assert call.get("free") == ROOM


@pytest.mark.parametrize(
    ("name", "arguments", "bytes_"),
    [
        ("cuMemAlloc_v2", (Out("a"), 3 * MIB), 2 * BLOCK),
        ("cuMemAllocPitch_v2", (Out("a"), Out("pitch"), 1000, 4096, 4), 2 * BLOCK),
        ("cuMemAllocManaged", (Out("a"), 3 * MIB, 1), 2 * BLOCK),
    ],
)
@pytest.mark.parametrize("end", ["cuMemFree_v2", "cuMemFreeAsync", "cuMemFreeAsync_ptsz"])
def test_each_way_to_it_and_from_it(
    one: Tenant, name: str, arguments: tuple[int | Out, ...], bytes_: int, end: str
) -> None:
    assert one.call(name, *arguments) == SUCCESS
    assert one.swapped == bytes_
    assert one.is_true()
    if name == "cuMemAllocPitch_v2":
        assert one.call.get("pitch") == 1024
    stream = () if end == "cuMemFree_v2" else (0,)
    assert one.call(end, Var("a"), *stream) == SUCCESS
    assert one.swapped == 0
    assert one.is_true()
    assert one.call("cuMemFree_v2", Var("a")) != SUCCESS


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("cuMemAlloc", (Out("a"), 3 * MIB)),
        ("cuMemAllocAsync", (Out("a"), 3 * MIB, 0)),
    ],
)
def test_other_ways_to_memory_are_refused(
    one: Tenant, name: str, arguments: tuple[int | Out, ...]
) -> None:
    assert one.call(name, *arguments) == OUT_OF_MEMORY
    assert one.swapped == 0
    assert one.container.total("refused") == 1


def test_it_ends_with_its_context(one: Tenant) -> None:
    call = one.call
    assert call("cuMemFree_v2", Var("full")) == SUCCESS
    assert call("cuMemAlloc_v2", Out("full"), ROOM - CONTEXT) == SUCCESS
    assert call("cuCtxCreate_v2", Out("second"), 0, 0) == SUCCESS
    assert call("cuMemAlloc_v2", Out("a"), 10 * MIB) == SUCCESS
    assert one.swapped == 10 * MIB
    assert call("cuCtxDestroy_v2", Var("second")) == SUCCESS
    assert one.swapped == 0
    assert one.is_true()


#: Calls that would have the driver move memory to the GPU, by what they need beside `address`.
HINTS = {
    "cuMemAdvise": (Var("a"), BLOCK, PREFERRED, 0),
    "cuMemAdvise_v2": (Var("a"), BLOCK, PREFERRED, 1),
    "cuMemPrefetchAsync": (Var("a"), BLOCK, 0, 0),
    "cuMemPrefetchAsync_ptsz": (Var("a"), BLOCK, 0, 0),
    "cuMemPrefetchAsync_v2": (Var("a"), BLOCK, 1, 0, 0),
    "cuMemPrefetchAsync_v2_ptsz": (Var("a"), BLOCK, 1, 0, 0),
}
BATCHES = ("cuMemPrefetchBatchAsync", "cuMemPrefetchBatchAsync_ptsz")


def hinted(one: Tenant, name: str) -> int:
    """Calls it for memory that was taken beyond the slice."""
    assert one.call("cuMemAlloc_v2", Out("a"), 10 * MIB) == SUCCESS
    if name in HINTS:
        return one.call(name, *HINTS[name])
    address = one.call.get("a").to_bytes(8, "little")
    size, first = BLOCK.to_bytes(8, "little"), bytes(8)
    return one.call(name, address, size, 1, GPU_0, first, 1, 0, 0)


@pytest.mark.parametrize("name", [*HINTS, *BATCHES])
def test_what_would_fetch_it_to_the_gpu_does_nothing(one: Tenant, name: str) -> None:
    before = one.container.total("held")
    assert hinted(one, name) == SUCCESS
    assert one.swapped == one.fake.managed_host() == 10 * MIB
    assert one.container.total("held") == one.fake.used() == before


@pytest.mark.parametrize("name", [*HINTS, *BATCHES])
def test_past_the_library_it_would(name: str) -> None:
    with (
        Fake() as fake,
        Container(
            fake.uuid(), memory_limit=LIMIT, context_bytes=CONTEXT, swap_limit=SHARE
        ) as container,
        Calls({**fake.environment(), **container.environment()}) as call,
    ):
        fake.watch(LIMIT)
        assert call("cuMemAlloc_v2", Out("full"), ROOM) == SUCCESS
        call.ask("bypass", name)
        assert hinted(Tenant(fake, container, call), name) == SUCCESS
        assert fake.over()[1] == 10 * MIB


def test_hints_about_other_memory_reach_the_driver(one: Tenant) -> None:
    call = one.call
    assert call("cuMemAlloc_v2", Out("swapped"), BLOCK) == SUCCESS
    assert call("cuMemAdvise", Var("full"), BLOCK, READ_MOSTLY, 0) == INVALID_VALUE
    assert call("cuMemFree_v2", Var("full")) == SUCCESS
    assert call("cuMemAllocManaged", Out("m"), BLOCK, 1) == SUCCESS
    assert call("cuMemAdvise", Var("m"), BLOCK, READ_MOSTLY, 0) == SUCCESS
    assert call("cuMemPrefetchAsync", Var("m"), 2 * BLOCK, 0, 0) == INVALID_VALUE


def test_a_forked_child_has_nothing_of_it(one: Tenant) -> None:
    assert one.call("cuMemAlloc_v2", Out("a"), BLOCK) == SUCCESS
    one.call.ask("fork")
    one.call("cuMemFree_v2", Var("a"))
    assert one.swapped == BLOCK


def test_processes_that_race_stay_within_both() -> None:
    program = build.client("memory_race", "-l:libcuda.so.1")
    with tenant(share=64 * MIB, fill=ROOM - 2 * CONTEXT - 64 * MIB) as one:
        its = {**one.fake.environment(), **one.container.environment()}
        most, until = 0, time.monotonic() + 60
        # Once more where this process stood still as long as they raced, and saw nothing of it.
        while not most and time.monotonic() < until:
            racers = [build.start(program, 0.5, seed, environment=its) for seed in range(2)]
            while any(racer.poll() is None for racer in racers):
                most = max(most, one.fake.managed_host())
            for racer in racers:
                out, err = racer.communicate(timeout=60)
                assert not racer.returncode, out + err
        assert 0 < most <= 64 * MIB
        assert one.fake.managed_host() == 0
