"""Strays on the fake GPU: the real nvidia-ml-py, real processes, control groups as of pods."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from alnair.node.gpu_looks import GpuLook
from alnair.node.nvml import Nvml
from alnair.node.vgpu.containers.container_slices import (
    ContainerMatch,
    ContainerSlices,
    OwningPod,
    Share,
)
from alnair.node.vgpu.inspection import Inspection
from alnair.node.vgpu.server import VgpuServer
from alnair.node.vgpu.stray_processes import StrayProcesses
from alnair.sharing.strays import StrayAction, StrayFound, StrayGone, StrayPolicy, StrayRules
from alnair.sharing.violations import Action, EvictTenant, Policy, ViolationRules
from native.fake import Fake
from native.server_kit import Group, Hold, control_group, looks, until

UID = "6b2b1f5c-9c3e-4d7f-8a51-0f6f3f0c9e11"
POD = OwningPod("default", "thief", UID)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[VgpuServer]:
    """A server without containers."""
    async with VgpuServer(tmp_path) as serving:
        yield serving


@pytest.fixture
def groups() -> Iterator[list[Group]]:
    """The control groups of two containers of the pod."""
    with control_group() as outer, ExitStack() as stack:
        pod = outer.folder / f"pod{UID}"
        pod.mkdir()
        stack.callback(pod.rmdir)
        made = [Group(f"{outer.name}/pod{UID}/{digits * 32}") for digits in ("3f", "4a")]
        for one in made:
            stack.callback(one.close)
        yield made


class Agent:
    """An inspection with what its strays led to."""

    def __init__(
        self, server: VgpuServer, nvml: Nvml, whole: dict[str, frozenset[str]], confirmed: float
    ) -> None:
        self.seen: list[GpuLook] = []
        #: With the number of looks by then.
        self.told: list[tuple[int, StrayAction]] = []
        self.violations: list[Action] = []
        self.strays = StrayProcesses(
            server.proc,
            StrayPolicy.EVICT,
            lambda _, __, action: self.told.append((len(self.seen), action)),
            whole_gpus=lambda: whole,
            pod_of=lambda uid: POD if uid == UID else None,
            rules=StrayRules(confirmed),
        )
        self.inspection = Inspection(
            server,
            Policy.EVICT,
            lambda _, __, action: self.violations.append(action),
            ViolationRules(grace=0.0, confirmed=confirmed, confirmed_hidden=confirmed, settled=0.0),
            self.strays,
        )
        self.looks = looks(nvml, self.inspection, self.seen.append)


async def test_a_stray_on_a_gpu_without_slices_is_evicted_within_five_seconds(
    fake: Fake, groups: list[Group], nvml: Nvml, server: VgpuServer
) -> None:
    agent = Agent(server, nvml, {}, StrayRules().confirmed)
    async with asyncio.TaskGroup() as running:
        task = running.create_task(agent.looks.run())
        await asyncio.sleep(1.3)
        with contextlib.closing(await asyncio.to_thread(Hold, fake, groups[0], 64)) as stray:
            before = len(agent.seen)
            await until(lambda: len(agent.told) >= 2, 20)
            assert agent.told[-1][0] - before <= 4, "looks, one a second"
            pid = stray.process.pid
        await until(lambda: len(agent.told) >= 3, 20)  # the process is gone
        task.cancel()
    said = f"1 process(es) use a GPU of which the pod was given nothing (host pid {pid})"
    assert [action for _, action in agent.told] == [
        StrayFound(said),
        EvictTenant(said),
        StrayGone(),
    ]
    assert agent.strays.confirmed == {f"GPU-{fake.uuid()}": 1}


async def test_who_holds_the_whole_gpu_or_a_slice_of_it_is_no_stray(
    fake: Fake, groups: list[Group], nvml: Nvml, server: VgpuServer
) -> None:
    uuid = f"GPU-{fake.uuid()}"
    whole = {UID: frozenset({uuid})}
    agent = Agent(server, nvml, whole, confirmed=0.0)
    elsewhere = Share("GPU-00000000-0000-0000-0000-000000000009", 1024, 50)
    # A container of the same pod that has not registered could be meant by any of its processes.
    server.prepare(ContainerSlices("a", ContainerMatch(pod=UID), (elsewhere,), POD))
    with contextlib.closing(await asyncio.to_thread(Hold, fake, groups[0], 64)):
        for _ in range(3):
            await agent.looks.look()
        assert (agent.told, agent.violations) == ([], [])
        assert agent.strays.seen == {(uuid, "pod"): 0, (uuid, "host"): 0}
        # That it would be found:
        whole.clear()
        await agent.looks.look()
        assert agent.violations


async def test_a_container_beside_one_with_a_slice_is_a_stray(
    fake: Fake, groups: list[Group], nvml: Nvml, server: VgpuServer
) -> None:
    uuid = f"GPU-{fake.uuid()}"
    agent = Agent(server, nvml, {}, confirmed=0.0)
    who = ContainerMatch(pod=UID, container="3f" * 32)
    server.prepare(ContainerSlices("a", who, (Share(uuid, 1024, 50),), POD))
    with contextlib.closing(await asyncio.to_thread(Hold, fake, groups[1], 64)):
        await agent.looks.look()
    assert [type(action) for _, action in agent.told] == [StrayFound, EvictTenant]
    assert not agent.violations


async def test_a_program_of_the_node_is_counted(fake: Fake, nvml: Nvml, server: VgpuServer) -> None:
    agent = Agent(server, nvml, {}, confirmed=0.0)
    with (
        control_group() as outside,
        contextlib.closing(await asyncio.to_thread(Hold, fake, outside, 64)),
    ):
        await agent.looks.look()
    uuid = f"GPU-{fake.uuid()}"
    assert agent.strays.seen == {(uuid, "pod"): 0, (uuid, "host"): 1}
    assert not agent.told


async def test_without_a_kubelet_a_pods_strays_are_counted_and_not_judged(
    fake: Fake, groups: list[Group], nvml: Nvml, server: VgpuServer
) -> None:
    inspection = Inspection(server, Policy.EVICT, lambda *_: None)
    with contextlib.closing(await asyncio.to_thread(Hold, fake, groups[0], 64)):
        await looks(nvml, inspection).look()
    uuid = f"GPU-{fake.uuid()}"
    assert inspection.strays.seen == {(uuid, "pod"): 1, (uuid, "host"): 0}
    assert inspection.strays.confirmed == {}


async def test_a_container_that_cannot_be_served_is_no_stray(
    fake: Fake, groups: list[Group], nvml: Nvml, tmp_path: Path
) -> None:
    uuid = f"GPU-{fake.uuid()}"
    async with VgpuServer(tmp_path / "agent") as first:
        share = (Share(uuid, 1024, 50),)
        assert first.prepare(ContainerSlices("a", ContainerMatch(pod=UID), share, POD)) == ""
        counters = first.containers["a"].folder / "counters"
    counters.unlink()
    counters.mkdir()
    async with VgpuServer(tmp_path / "agent") as second:
        assert list(second.damaged) == ["a"]
        agent = Agent(second, nvml, {}, confirmed=0.0)
        with contextlib.closing(await asyncio.to_thread(Hold, fake, groups[0], 64)):
            await agent.looks.look()
    assert agent.strays.seen == {(uuid, "pod"): 0, (uuid, "host"): 0}
    assert not agent.told
