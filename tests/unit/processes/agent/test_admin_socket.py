"""Containers are called by their own names, or as `alnair agent status` shows them."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from alnair.node.gpu_looks import GpuLook
from alnair.node.nvml import NvmlGpu
from alnair.node.readings.values import Usage
from alnair.node.vgpu.containers.container_slices import (
    ContainerMatch,
    ContainerSlices,
    OwningPod,
    Share,
)
from alnair.node.vgpu.server import VgpuServer
from alnair.node.vgpu.suspensions import Suspensions
from alnair.processes.agent.admin_socket import (
    Add,
    Admin,
    AdminError,
    Change,
    Remove,
    Request,
    Suspend,
    ask,
)
from kit.kubelet_sockets import short_folder

UUID = "GPU-00000000-0000-0000-0000-000000000000"


def of_pod(uid: str, container: str = "main") -> ContainerSlices:
    return ContainerSlices(
        f"{uid}-{container}",
        ContainerMatch(cgroup=f"/{uid}/{container}"),
        (Share(UUID, 1000),),
        pod=OwningPod("team", "job", uid, container),
    )


@pytest.fixture
def folder() -> Iterator[Path]:
    with short_folder() as found:
        yield found


@pytest.fixture
async def server(folder: Path) -> AsyncIterator[VgpuServer]:
    async with VgpuServer(folder) as found, Admin(folder / "admin.sock", found):
        yield found


async def do(server: VgpuServer, request: Request) -> None:
    await asyncio.to_thread(ask, server.folder, request)


@pytest.mark.parametrize("name", ["a-main", "team/job/main", "team/job main"])
async def test_a_container_of_a_pod_is_removed_by_any_of_its_names(
    server: VgpuServer, name: str
) -> None:
    assert not server.prepare(of_pod("a")) + server.prepare(of_pod("a", "second"))
    await do(server, Change(name, memory_mib=500))
    assert server.containers["a-main"].assignment.shares[0].memory_mib == 500
    await do(server, Remove(name))
    assert list(server.containers) == ["a-second"]


async def test_a_name_that_means_two_containers_does_nothing(server: VgpuServer) -> None:
    assert not server.prepare(of_pod("a")) + server.prepare(of_pod("b"))
    for request in (Remove("team/job/main"), Change("team/job/main", memory_mib=500)):
        with pytest.raises(AdminError, match=r"several are called .* give one of a-main, b-main"):
            await do(server, request)
    assert len(server.containers) == 2


async def test_a_name_that_nobody_has_is_told(server: VgpuServer) -> None:
    with pytest.raises(AdminError, match="there is no container team/job/main"):
        await do(server, Remove("team/job/main"))


async def test_memory_that_is_lent_is_given_to_nobody_by_hand(server: VgpuServer) -> None:
    lender = of_pod("a")
    lender = replace(lender, shares=(replace(lender.shares[0], borrows=True),))
    assert not server.prepare(lender)
    gpu, all_held = NvmlGpu(0, UUID, "", 4000 << 20), 2500 << 20
    page = server.containers["a-main"].limits
    page.update(0, memory_overhead=all_held)
    server.loans.take(GpuLook(0.0, 1, {UUID: Usage(0.0, all_held)}, {}), [gpu])
    with pytest.raises(AdminError, match=r"12 MiB of .* are lent to team/job and come back: try"):
        await do(server, Add(replace(of_pod("b"), shares=(Share(UUID, 1000),))))
    assert list(server.containers) == ["a-main"]
    page.update(0, memory_overhead=1500 << 20)
    await do(server, Add(of_pod("b")))
    assert list(server.containers) == ["a-main", "b-main"]
    await do(server, Change("b-main", borrows=True))
    assert server.containers["b-main"].assignment.shares[0].borrows


async def test_containers_of_pods_are_not_suspended_by_hand(folder: Path) -> None:
    async with VgpuServer(folder) as server:
        suspensions = Suspensions(server, enabled=True)
        async with Admin(folder / "admin.sock", server, suspensions=suspensions):
            assert not server.prepare(of_pod("a"))
            with pytest.raises(AdminError, match="it is a pod's: annotate the pod with"):
                await do(server, Suspend("team/job/main", on=True))
            with pytest.raises(AdminError, match="there is no container x"):
                await do(server, Suspend("x", on=True))
        async with Admin(folder / "admin.sock", server):
            with pytest.raises(AdminError, match="this agent suspends nobody"):
                await do(server, Suspend("team/job/main", on=False))
