"""Tier A in the vGPU server: the driver is told each container's limit and holds it alone."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
import pytest

from alnair.node import memory_limits
from alnair.node.memory_limits import MemoryLimit
from alnair.node.vgpu.containers.container_slices import ContainerMatch, ContainerSlices, Share
from alnair.node.vgpu.driver_limits import PATIENCE, DriverLimits
from alnair.node.vgpu.server import VgpuServer
from native import build
from native.fake import Fake
from native.server_kit import Group, control_group

MIB = 1 << 20


@pytest.fixture
def group() -> Iterator[Group]:
    with control_group() as found:
        if found.controller:
            pytest.skip("no cgroup v2 is mounted here")
        yield found


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[VgpuServer]:
    async with VgpuServer(tmp_path / "agent") as found:
        yield found


def assignment(fake: Fake, group: Group, mib: int) -> ContainerSlices:
    shares = (Share(f"GPU-{fake.uuid()}", memory_mib=mib),)
    return ContainerSlices("a", ContainerMatch(cgroup=group.name), shares, keep=True)


def holds(fake: Fake, group: Group, mib: int) -> bool:
    """Whether a program that knows no interposer gets so much."""
    environment = fake.environment(group.folder.name)
    program = build.client("hold", "-l:libcuda.so.1")
    return build.checked(program, mib, environment=environment) == "held\n"


async def test_the_driver_holds_what_the_server_assigns_and_changes(
    fake: Fake, gpu: object, group: Group, server: VgpuServer
) -> None:
    limits = DriverLimits(server)
    assert server.prepare(assignment(fake, group, 2048)) == ""
    await limits.look()
    assert limits.refused == {}
    assert memory_limits.read(gpu, group.folder) == MemoryLimit(2048 * MIB, 2048 * MIB, 0)
    assert holds(fake, group, 1024)
    assert not holds(fake, group, 2048)
    (share,) = server.containers["a"].assignment.shares
    assert share.tier_a

    wider = msgspec.structs.replace(share, memory_mib=4096)
    changed = msgspec.structs.replace(server.containers["a"].assignment, shares=(wider,))
    assert server.change(changed) == ""
    await limits.look()
    assert holds(fake, group, 2048)

    before = fake.calls("nvmlDeviceSetMemoryLimits_v1")
    await limits.look()
    assert fake.calls("nvmlDeviceSetMemoryLimits_v1") == before, "what is set is left alone"

    assert server.remove("a") == ""
    await limits.look()
    assert memory_limits.read(gpu, group.folder) is None


async def test_a_limit_waits_for_the_group(fake: Fake, gpu: object, server: VgpuServer) -> None:
    limits = DriverLimits(server)
    with control_group() as group:
        if group.controller:
            pytest.skip("no cgroup v2 is mounted here")
        group.remove()
        assert server.prepare(assignment(fake, group, 2048)) == ""
        await limits.look()
        assert fake.calls("nvmlDeviceSetMemoryLimits_v1") == 0
        group.folder.mkdir()
        await limits.look()
        assert not holds(fake, group, 2048)


async def test_a_refusal_is_kept_in_words_and_tried_again_later(
    fake: Fake, gpu: object, group: Group, server: VgpuServer
) -> None:
    fake.fault("nvml_limits_off=1")
    limits = DriverLimits(server)
    assert server.prepare(assignment(fake, group, 2048)) == ""
    for _ in range(PATIENCE):
        await limits.look()
    assert fake.calls("nvmlDeviceSetMemoryLimits_v1") == 1
    assert list(limits.refused.values()) == ["this GPU and kernel have no memory limits"]
    assert not server.containers["a"].assignment.shares[0].tier_a
    fake.fault("")
    for _ in range(PATIENCE):
        await limits.look()
    assert limits.refused == {}
    assert server.containers["a"].assignment.shares[0].tier_a
