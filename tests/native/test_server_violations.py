"""Tier D on the fake GPU: the real nvidia-ml-py, real processes, real control groups."""

import asyncio
import contextlib
import ctypes
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest

from alnair.node.gpu_looks import GpuLook
from alnair.node.nvml import Nvml, NvmlError
from alnair.node.vgpu.compute_shares import THROTTLED
from alnair.node.vgpu.containers.container_slices import ContainerMatch, ContainerSlices, Share
from alnair.node.vgpu.inspection import Inspection
from alnair.node.vgpu.server import VgpuServer
from alnair.sharing.violations import (
    Action,
    EvictTenant,
    Kind,
    Policy,
    SliceViolation,
    Throttle,
    ViolationRules,
)
from native import build
from native.fake import Fake
from native.server_kit import Group, Hold, claim, control_group, limits, looks, start_time, until

MIB = 1 << 20


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


def assignment(fake: Fake, group: Group, mib: int = 8192, **fields: object) -> ContainerSlices:
    share = Share(f"GPU-{fake.uuid()}", mib, 50)
    return ContainerSlices(
        "a",
        ContainerMatch(cgroup=group.name),
        (msgspec.structs.replace(share, **fields),),
        keep=True,
    )


def test_nvml_without_a_driver_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    ctypes.CDLL(str(build.PLAIN / "libnvidia-ml.so.1"))
    monkeypatch.setenv("FAKEGPU_STATE", "/nowhere")
    with pytest.raises(NvmlError, match="does not answer"):
        Nvml.open()


def test_nvml_tells_what_processes_hold(fake: Fake, group: Group, nvml: Nvml) -> None:
    (gpu,) = nvml.gpus
    assert gpu.uuid == f"GPU-{fake.uuid()}"
    with contextlib.closing(Hold(fake, group, 256)) as held:
        memory = nvml.read(gpu.uuid).load.memory
        assert memory.keys() == {held.process.pid}
        assert (memory[held.process.pid] or 0) >= 256 * MIB
    with pytest.raises(NvmlError, match="no GPU"):
        nvml.read("GPU-none")


async def test_a_bypass_is_found_and_its_eviction_posted_within_five_seconds(
    fake: Fake, group: Group, nvml: Nvml, server: VgpuServer
) -> None:
    told: list[tuple[int, Action]] = []
    seen: list[GpuLook] = []
    server.prepare(assignment(fake, group))
    container = server.containers["a"]
    inspection = Inspection(
        server,
        Policy.EVICT,
        lambda _, __, action: told.append((len(seen), action)),
        ViolationRules(grace=0.0),
    )
    async with asyncio.TaskGroup() as running:
        task = running.create_task(looks(nvml, inspection, seen.append).run())
        await asyncio.sleep(1.3)
        assert not told
        with contextlib.closing(await asyncio.to_thread(Hold, fake, group, 64)):
            before = len(seen)
            await until(lambda: any(isinstance(action, EvictTenant) for _, action in told), 20)
            assert told[-1][0] - before <= 4, "looks, one a second"
            assert [type(action) for _, action in told] == [SliceViolation, Throttle, EvictTenant]
            throttled = round(THROTTLED * 1e6)
            await until(lambda: limits(container.folder).device[0].rate_ppm == throttled)
        assert inspection.confirmed == {("a", f"GPU-{fake.uuid()}", Kind.UNREGISTERED): 1}
        # The process is gone, and the container is let off.
        await until(lambda: not inspection.violations("a", f"GPU-{fake.uuid()}"), 20)
        await until(lambda: not limits(container.folder).device[0].rate_ppm)
        task.cancel()


async def test_what_the_driver_charges_beyond_the_ledger_counts_as_used(
    fake: Fake, group: Group, nvml: Nvml, server: VgpuServer
) -> None:
    server.prepare(assignment(fake, group))
    container = server.containers["a"]
    told: list[Action] = []
    inspection = Inspection(
        server, Policy.EVICT, lambda _, __, a: told.append(a), ViolationRules(grace=0.0)
    )
    tenant = group.start(container.folder)
    await asyncio.to_thread(tenant.ask, do="register")
    with ExitStack() as stack:
        held = stack.enter_context(
            contextlib.closing(await asyncio.to_thread(Hold, fake, group, 1024))
        )
        claim(container.folder, 0, held.process.pid, held.start_time(), held=1024 * MIB)
        await until(lambda: held.process.pid in container.census.pids)
        for _ in range(6):
            await looks(nvml, inspection).look()
        measured = inspection.measured["a", f"GPU-{fake.uuid()}"]
        page = limits(container.folder).device[0]
        assert page.memory_overhead == measured - 1024 * MIB > 0
        assert not told


@pytest.mark.parametrize(("is_listed", "credit"), [(True, 300 * MIB), (False, 0)])
async def test_what_the_driver_did_not_load_of_modules_counts_as_free(
    fake: Fake, group: Group, nvml: Nvml, server: VgpuServer, *, is_listed: bool, credit: int
) -> None:
    """If the driver lists all who hold something: what it charges to nobody may be somebody's."""
    server.prepare(assignment(fake, group))
    container = server.containers["a"]
    inspection = Inspection(server, Policy.WARN, lambda _, __, a: None, ViolationRules(grace=0.0))
    tenant = group.start(container.folder)
    await asyncio.to_thread(tenant.ask, do="register")
    with ExitStack() as stack:
        held = stack.enter_context(
            contextlib.closing(await asyncio.to_thread(Hold, fake, group, 1024))
        )
        await looks(nvml, inspection).look()
        measured = inspection.measured["a", f"GPU-{fake.uuid()}"]
        pid, start = held.process.pid, held.start_time()
        claim(container.folder, 0, pid, start, held=measured + 300 * MIB, loaded=400 * MIB)
        if not is_listed:
            pid_too = tenant.process.pid
            claim(
                container.folder,
                1,
                pid_too,
                start_time(pid_too),
                held=MIB,
            )
        await until(lambda: pid in container.census.pids)
        for _ in range(6):
            await looks(nvml, inspection).look()
        page = limits(container.folder).device[0]
        assert (page.memory_credit, page.memory_overhead) == (credit, 0)


async def test_a_gpu_that_does_not_answer_is_named_and_nobody_is_accused(
    fake: Fake, group: Group, nvml: Nvml, server: VgpuServer
) -> None:
    server.prepare(
        msgspec.structs.replace(
            assignment(fake, group), shares=(Share("GPU-00000000-0000-0000-0000-000000000009"),)
        )
    )
    inspection = Inspection(server, Policy.EVICT, lambda *_: None)
    await looks(nvml, inspection).look()
    assert "there is no GPU" in inspection.problem


async def test_a_process_is_not_taken_for_one_of_a_container_of_its_pod_that_has_not_registered(
    fake: Fake, nvml: Nvml, server: VgpuServer
) -> None:
    pod = "6b2b1f5c-9c3e-4d7f-8a51-0f6f3f0c9e11"
    share = (Share(f"GPU-{fake.uuid()}", 8192, 50),)
    with control_group() as outer, ExitStack() as stack:
        (outer.folder / f"pod{pod}").mkdir()
        stack.callback((outer.folder / f"pod{pod}").rmdir)
        inner = Group(f"{outer.name}/pod{pod}/{'3f4b8c1d' * 8}")
        stack.callback(inner.close)
        for name in ("a-waits", "b-works"):
            assert server.prepare(ContainerSlices(name, ContainerMatch(pod=pod), share)) == ""
        works = server.containers["b-works"]
        await asyncio.to_thread(inner.start(works.folder).ask, do="register")
        assert works.group is not None
        assert works.group.container == "3f4b8c1d" * 8
        told: list[object] = []
        inspection = Inspection(
            server,
            Policy.EVICT,
            lambda c, _, a: told.append((c, a)),
            ViolationRules(grace=0.0),
        )
        with contextlib.closing(await asyncio.to_thread(Hold, fake, inner, 64)) as held:
            claim(works.folder, 0, held.process.pid, held.start_time(), held=64 * MIB)
            await until(lambda: held.process.pid in works.census.pids)
            for _ in range(5):
                await looks(nvml, inspection).look()
                await asyncio.sleep(0.25)
        assert inspection.measured["a-waits", share[0].uuid] == 0
        assert inspection.measured["b-works", share[0].uuid] >= 64 * MIB
        assert not told
