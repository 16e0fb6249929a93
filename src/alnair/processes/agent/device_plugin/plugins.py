"""The two resources: whole GPUs by their UUIDs, and anonymous slots for slices.

An id of a slot says nothing: the kubelet counts them, and which GPU a slice lies on is the
scheduler's word. An id of a whole GPU is its UUID, which other programs read, and the kubelet is
asked to take the right one; but the assignment decides, should it have taken another.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from alnair.model import names
from alnair.node.kubelet import cdi, checkpoint
from alnair.node.kubelet.checkpoint import CheckpointError
from alnair.node.kubelet.plugin_server import PluginDevice
from alnair.processes.agent.device_plugin.starts import Starts
from alnair.sharing.matching.node_state import NodeGpu, PodOnNode
from alnair.sharing.matching.preference import preferred_ids


class _Plugin:
    resource: str

    def __init__(self, starts: Starts, gpus: Callable[[], Sequence[NodeGpu]]) -> None:
        self._starts = starts
        self._gpus = gpus

    def allocate(self, ids: Sequence[str]) -> str:
        """Return a name that nobody had before; whose it is becomes known at the start."""
        del ids
        return cdi.fresh_device()

    async def start(self, ids: frozenset[str]) -> None:
        """Let the container with these ids start; raises StartRefusedError."""
        await self._starts.start(self.resource, ids)


class WholeGpus(_Plugin):
    """`nvidia.com/gpu`.

    Args:
        starts: Decides about starts.
        gpus: Those of the node, as they are now.
        folder: Of device plugins, with the kubelet's checkpoint.
        pods: The pods of the node.
    """

    resource = names.GPU

    def __init__(
        self,
        starts: Starts,
        gpus: Callable[[], Sequence[NodeGpu]],
        folder: Path,
        pods: Callable[[], Sequence[PodOnNode]],
    ) -> None:
        super().__init__(starts, gpus)
        self._folder = folder
        self._pods = pods

    def devices(self) -> Sequence[PluginDevice]:
        """The GPUs that are given whole; those in MIG mode are not."""
        return [
            PluginDevice(gpu.uuid, not gpu.problem, gpu.numa)
            for gpu in self._gpus()
            if gpu.may_be_sliced
        ]

    def prefer(self, available: Sequence[str], must: Sequence[str], size: int) -> Sequence[str]:
        """The GPUs of the pod that is most likely asked for."""
        try:
            allocations = checkpoint.read(self._folder)
        except CheckpointError:
            allocations = []
        return preferred_ids(size, available, must, self._pods(), allocations)


class Slots(_Plugin):
    """`alnair/vgpu`."""

    resource = names.VGPU

    def devices(self) -> Sequence[PluginDevice]:
        """So many slots for each GPU; those of GPUs on which nothing may start are not healthy."""
        gpus = [gpu for gpu in self._gpus() if gpu.may_be_sliced]
        well = names.VGPU_SLOTS * sum(not gpu.problem for gpu in gpus)
        return [PluginDevice(f"slot-{i}", i < well) for i in range(names.VGPU_SLOTS * len(gpus))]

    def prefer(self, available: Sequence[str], must: Sequence[str], size: int) -> Sequence[str]:
        """Any: they are alike."""
        others = [one for one in sorted(available) if one not in must]
        return [*must, *others][:size]
