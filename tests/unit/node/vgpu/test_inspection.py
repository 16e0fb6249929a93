"""What an inspection remembers; what it finds is in tests/native."""

from pathlib import Path

from alnair.node.nvml import Load, NvmlGpu
from alnair.node.vgpu.containers.container_slices import ContainerMatch, ContainerSlices, Share
from alnair.node.vgpu.inspection import Inspection
from alnair.node.vgpu.server import VgpuServer
from alnair.sharing.violations import Kind, Policy

GPU = "GPU-00000000-0000-0000-0000-000000000001"


class IdleDriver:
    """No process uses a GPU."""

    gpus: tuple[NvmlGpu, ...] = ()

    def load(self, uuid: str) -> Load:
        """Return nothing of any GPU."""
        return Load({}, {})


async def test_violations_are_counted_as_long_as_their_container_is_there(tmp_path: Path) -> None:
    async with VgpuServer(tmp_path) as server:
        server.prepare(ContainerSlices("a", ContainerMatch(pod="u"), (Share(GPU, 1024),)))
        inspection = Inspection(server, IdleDriver(), Policy.WARN, lambda *_: None)
        inspection.confirmed["a", GPU, Kind.MEMORY] = 2
        await inspection.look()
        assert inspection.confirmed == {("a", GPU, Kind.MEMORY): 2}
        server.remove("a")
        await inspection.look()
        assert not inspection.confirmed
