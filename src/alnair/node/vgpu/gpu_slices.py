"""Whether the GPUs of a node can give what containers are to have: by index, by size, together."""

from collections.abc import Iterable, Sequence

import msgspec

from alnair.node.nvml import NvmlGpu
from alnair.node.vgpu.containers.container_slices import ContainerSlices, Share


def uuid_of(gpus: Iterable[NvmlGpu], gpu: str) -> str:
    """Return the UUID of a GPU that is named by its index or UUID."""
    return next((one.uuid for one in gpus if str(one.index) == gpu), gpu)


def by_uuid(gpus: Sequence[NvmlGpu], wanted: ContainerSlices) -> ContainerSlices:
    """Return the assignment with the UUIDs of GPUs that are named by their index."""
    shares = tuple(
        msgspec.structs.replace(share, uuid=uuid_of(gpus, share.uuid)) for share in wanted.shares
    )
    return msgspec.structs.replace(wanted, shares=shares)


def unlike_gpus(gpus: Sequence[NvmlGpu], wanted: ContainerSlices, unknown: str) -> str:
    """Return why the node's GPUs cannot give this; "" if they can, or if they are not known.

    Args:
        gpus: Those of the node.
        wanted: By UUID.
        unknown: Why they are not known, or "".
    """
    known = {gpu.uuid: gpu for gpu in gpus}
    for share in wanted.shares:
        gpu = known.get(share.uuid)
        if gpu is not None and share.memory_mib > gpu.memory_bytes >> 20:
            return (
                f"{share.memory_mib} MiB of GPU {gpu.index}, which has {gpu.memory_bytes >> 20}: "
                "give less, or 0 for no limit"
            )
        if gpu is None and known and not share.uuid.startswith("MIG-"):
            has = ", ".join(f"{one.index} ({one.uuid})" for one in gpus)
            return f"there is no GPU {share.uuid}: this node has {has}"
        if share.uuid.isdecimal():
            return f"GPU {share.uuid} is not known ({unknown or 'no GPUs'}): give its UUID"
    return ""


def overbooked(gpus: Sequence[NvmlGpu], given: ContainerSlices, shares: Sequence[Share]) -> str:
    """Return what the slices of a container's GPUs add up to where that is more than there is.

    Args:
        gpus: Those of the node.
        given: The container's, whose GPUs are looked at.
        shares: Of all containers.
    """
    said = []
    for gpu in (one for one in gpus if one.uuid in {share.uuid for share in given.shares}):
        slices = [share for share in shares if share.uuid == gpu.uuid]
        if (percent := sum(share.compute_percent for share in slices)) > 100:
            said.append(f"{percent} % of GPU {gpu.index}")
        has = gpu.memory_bytes >> 20
        if (mib := sum(share.memory_mib for share in slices)) > has:
            said.append(f"{mib} MiB of GPU {gpu.index}, which has {has}")
    return f"all containers together may use {' and '.join(said)}" if said else ""
