"""What an inspection remembers; what it finds is in tests/native."""

from pathlib import Path

import pytest

from alnair.node.gpu_looks import GpuLook
from alnair.node.readings.values import Load
from alnair.node.vgpu.containers.container_slices import ContainerMatch, ContainerSlices, Share
from alnair.node.vgpu.inspection import Inspection
from alnair.node.vgpu.server import VgpuServer
from alnair.sharing.violations import Action, Kind, Policy, ViolationRules

GPU = "GPU-00000000-0000-0000-0000-000000000001"
#: No process uses it.
IDLE = GpuLook(0.0, 1, {}, {}, loads={GPU: Load({}, {})})


def inspecting(server: VgpuServer) -> Inspection:
    server.prepare(ContainerSlices("a", ContainerMatch(pod="u"), (Share(GPU, 1024),)))
    return Inspection(server, Policy.WARN, lambda *_: None)


async def test_violations_are_counted_as_long_as_their_container_is_there(tmp_path: Path) -> None:
    async with VgpuServer(tmp_path) as server:
        inspection = inspecting(server)
        inspection.confirmed["a", GPU, Kind.MEMORY] = 2
        inspection.take(IDLE)
        assert inspection.confirmed == {("a", GPU, Kind.MEMORY): 2}
        server.remove("a")
        inspection.take(IDLE)
        assert not inspection.confirmed


async def test_a_gpu_that_takes_its_time_is_no_problem_and_one_that_is_gone_is(
    tmp_path: Path,
) -> None:
    async with VgpuServer(tmp_path) as server:
        inspection = inspecting(server)
        inspection.take(GpuLook(0.0, 0, {}, {}))
        assert inspection.problem == "", "the driver has not come yet"
        inspection.take(GpuLook(0.0, 1, {}, {}, late=frozenset({GPU})))
        assert inspection.problem == ""
        inspection.take(GpuLook(0.0, 1, {}, {}))
        assert inspection.problem == f"there is no GPU {GPU} on this node"
        inspection.take(GpuLook(0.0, 1, {}, {GPU: "it is lost"}))
        assert inspection.problem == "it is lost"
        inspection.take(IDLE)
        assert inspection.problem == ""


@pytest.mark.parametrize(("share", "is_accused"), [(Share(GPU, 0, 30), True), (Share(GPU), False)])
async def test_who_has_no_limits_goes_past_none(
    tmp_path: Path, share: Share, is_accused: bool
) -> None:
    async with VgpuServer(tmp_path) as server:
        server.prepare(ContainerSlices("a", ContainerMatch(pod="u"), (share,)))
        told: list[Action] = []
        inspection = Inspection(
            server, Policy.EVICT, lambda *said: told.append(said[2]), ViolationRules(grace=0.0)
        )
        inspection._listed[GPU, 4242] = 0.0
        container = server.containers["a"]
        for second in range(2, 20):
            load = Load({4242: 30 << 30}, {4242: 1.0})
            inspection._suspect(container, GPU, [4242], load, None, container.since + second)
        assert bool(told) is is_accused
