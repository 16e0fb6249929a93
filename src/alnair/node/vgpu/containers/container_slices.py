"""Who may use how much of which GPU: what the device plugin, or a person, tells the server."""

import re
import uuid
from typing import Final

import msgspec

from alnair.node.cgroups import Cgroup
from alnair.node.vgpu.pages import abi

_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9._-]{0,98}[a-z0-9])?")
_CONTAINER: Final = re.compile(r"[0-9a-f]{12,64}")
_MIB: Final = 1 << 20


class Share(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a container may use of one GPU.

    Attributes:
        uuid: The GPU, as NVML names it.
        memory_mib: 0 is no limit.
        compute_percent: Guaranteed part of the GPU's time; 0 is no limit, if soft none.
        soft: May use what others leave; otherwise never more than guaranteed.
        low_priority: Yields to the tenants that are not low.
        context_mib: Cost of a context on this GPU and driver where it is known.
        tier_a: The driver itself holds the memory limit.
        sm_count: SMs that the container shall see (MPS); 0 is all. Not with a share of time.
        swap_mib: Memory of the host that it may have beyond `memory_mib`.
        borrows: May hold more than `memory_mib` while nobody was granted it.
    """

    uuid: str
    memory_mib: int = 0
    compute_percent: int = 0
    soft: bool = False
    low_priority: bool = False
    context_mib: int = 0
    tier_a: bool = False
    sm_count: int = 0
    swap_mib: int = 0
    borrows: bool = False


class ContainerMatch(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """By what the kernel's word on a process is held against a container: all that is given counts.

    Before a container is created, its id is not known: then the pod's uid tells, together with the
    socket, which is mounted into this container only. The id is learned from who registers first.

    Attributes:
        container: The runtime's id, or its first 12 or more characters.
        pod: The pod's uid.
        cgroup: A control group that is, or is above, those of the container's processes.
    """

    container: str = ""
    pod: str = ""
    cgroup: str = ""

    def is_met_by(self, place: Cgroup) -> bool:
        """Tell whether a process in this place belongs to the container."""
        if not (self.container or self.pod or self.cgroup):
            return False
        return (
            (not self.container or place.container.startswith(self.container))
            and (not self.pod or place.pod == self.pod)
            and (not self.cgroup or place.is_below(self.cgroup))
        )


class OwningPod(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Whose container it is, for events, evictions and metrics."""

    namespace: str = ""
    name: str = ""
    uid: str = ""
    container: str = ""


class ContainerSlices(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A container with its slices of GPUs.

    Attributes:
        name: Unique on the node; names its folder.
        who: Tells its processes.
        shares: At most one per GPU; row i of the pages is share i.
        pod: Whose it is, where it is a pod's.
        host_memory_mib: Page-locked host memory; 0 is only counted.
        deadline_ms: How long a process waits to be registered before CUDA fails: longer than an
            agent takes that is upgraded, or that the node's load holds up.
        keep: Stays when its control group is gone, until somebody removes it.
    """

    name: str
    who: ContainerMatch
    shares: tuple[Share, ...]
    pod: OwningPod = OwningPod()
    host_memory_mib: int = 0
    deadline_ms: int = 30_000
    keep: bool = False


def problem(wanted: ContainerSlices) -> str:
    """Say why an assignment cannot be carried out, and what to do; "" if it can."""
    if not _NAME.fullmatch(wanted.name):
        return (
            f"{wanted.name!r} cannot name a container: use 1 to 100 lower-case letters, digits, "
            "dots, dashes and underscores"
        )
    who = wanted.who
    if not (who.container or who.pod or who.cgroup):
        return "nothing tells the container's processes: give a container id, a pod uid or a cgroup"
    if who.container and not _CONTAINER.fullmatch(who.container):
        return f"container id {who.container!r} is not 12 to 64 hexadecimal digits"
    if who.cgroup and (not who.cgroup.startswith("/") or who.cgroup.rstrip("/") == ""):
        return f"cgroup {who.cgroup!r} is not the path of a group below the root: begin with /"
    if not 1 <= len(wanted.shares) <= abi.DEVICES:
        return f"{len(wanted.shares)} GPUs: a container has 1 to {abi.DEVICES}"
    for share in wanted.shares:
        if said := _of_share(share):
            return said
    if len({uuid_bytes(share.uuid) for share in wanted.shares}) < len(wanted.shares):
        return "a GPU is given twice: add its shares up"
    if not 0 <= wanted.host_memory_mib < 1 << 40:
        return f"{wanted.host_memory_mib} MiB of host memory: give 0 (no limit) or more"
    if not 100 <= wanted.deadline_ms <= 60_000:
        return f"a deadline of {wanted.deadline_ms} ms: give 100 to 60000"
    return ""


def _of_share(share: Share) -> str:
    if share.uuid.startswith("MIG-"):
        return (
            f"{share.uuid} is a MIG device, of which there are no slices (it is a fixed part of "
            "its GPU): give the whole of it as nvidia.com/mig-PROFILE, or a slice of a GPU that is "
            "not in MIG mode"
        )
    try:
        uuid_bytes(share.uuid)
    except ValueError:
        return f"{share.uuid!r} is not a GPU's UUID: see `nvidia-smi -L`"
    if not 0 <= share.memory_mib < 1 << 40:
        return f"{share.memory_mib} MiB of {share.uuid}: give 0 (no limit) or more"
    if not 0 <= share.swap_mib < 1 << 40:
        return f"{share.swap_mib} MiB of the host beyond {share.uuid}: give 0 (none) or more"
    if share.swap_mib and not share.memory_mib:
        return (
            f"{share.swap_mib} MiB of the host beyond {share.uuid}, of whose memory there is no "
            "limit to go beyond: give a limit, or no memory of the host"
        )
    if share.borrows and not share.memory_mib:
        return f"there is no limit of {share.uuid}'s memory to borrow beyond: give one, or no loans"
    if share.borrows and share.swap_mib:
        return (
            f"loans and memory of the host beyond {share.uuid}: give one of the two, as both are "
            "for what the slice has no room for"
        )
    if not 0 <= share.compute_percent <= 100:
        return f"{share.compute_percent} % of {share.uuid}: give 0 (no limit) to 100"
    if not 0 <= share.context_mib < 1 << 20 or not 0 <= share.sm_count < 1 << 16:
        return f"context_mib and sm_count of {share.uuid} must be 0 or more, and plausible"
    if share.sm_count and guaranteed(share):
        return (
            f"{share.sm_count} SMs and {guaranteed(share)} % of the time of {share.uuid}: a "
            "container that MPS gives SMs would be held back twice; give sm_count or "
            "compute_percent (or soft), not both"
        )
    return ""


def uuid_bytes(text: str) -> bytes:
    """Return the 16 bytes of "GPU-8a1b…" or "MIG-8a1b…".

    Raises:
        ValueError: It is something else.
    """
    prefix, _, digits = text.partition("-")
    if prefix not in {"GPU", "MIG"}:
        raise ValueError(f"{text!r} is not a GPU's UUID")
    return uuid.UUID(digits).bytes


def guaranteed(share: Share) -> int:
    """Return the guaranteed percent of GPU time, 0 without a limit.

    A soft share without a guarantee has 1, or nothing would hold it back when others need the GPU.
    """
    return max(1, share.compute_percent) if share.soft else share.compute_percent


def row(share: Share) -> abi.DeviceLimit:
    """Return the share as the row that the container reads."""
    flags = (
        (abi.Flag.SOFT if share.soft else 0)
        | (abi.Flag.LOW_PRIORITY if share.low_priority else 0)
        | (abi.Flag.TIER_A if share.tier_a else 0)
        | (abi.Flag.BORROWS if share.borrows else 0)
    )
    return abi.DeviceLimit(
        uuid=(abi.U8 * 16)(*uuid_bytes(share.uuid)),
        memory_limit=share.memory_mib * _MIB,
        context_bytes=share.context_mib * _MIB,
        compute_percent=guaranteed(share),
        flags=int(flags),
        sm_count=share.sm_count,
        swap_limit=share.swap_mib * _MIB,
    )
