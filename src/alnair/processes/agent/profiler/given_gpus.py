"""Which container was given which GPU: slices by the vGPU server, the rest by the plugins."""

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from alnair.model.usage import UsedGpu
from alnair.node.inventory import Inventory
from alnair.node.load import GpuHolder
from alnair.node.vgpu.containers.container_slices import ContainerSlices, guaranteed
from alnair.profiler.pods.gpu_use import Given, Holder
from alnair.profiler.samples import ContainerKey, GpuSample


class Sliced(Protocol):
    """A container with slices; see `VgpuContainer`."""

    assignment: ContainerSlices

    @property
    def totals(self) -> "ChargedTimes":
        """What it used."""
        ...


class ChargedTimes(Protocol):
    """Sums per GPU; see `Totals`."""

    devices: list[dict[str, int]]


def given_gpus(
    containers: Iterable[Sliced],
    holders: Iterable[GpuHolder],
    groups: Mapping[str, str] = {},
) -> list[Given]:
    """Return what all containers of pods were given.

    Args:
        containers: Those with slices.
        holders: Those with whole GPUs, or MIG devices.
        groups: Uid at the API server → that in the groups, of pods of which it is another.
    """
    found: dict[tuple[Holder, str], Given] = {}
    for container in containers:
        pod = container.assignment.pod
        if not pod.uid:
            continue  # it was added by hand
        holder = Holder(groups.get(pod.uid, pod.uid), pod.container)
        for row, share in enumerate(container.assignment.shares):
            # Without a guarantee nothing is held back, and so nothing is charged.
            charged = container.totals.devices[row]["charged_ns"] if guaranteed(share) else None
            found[holder, share.uuid] = Given(
                holder, share.uuid, whole=False, memory_mib=share.memory_mib, charged_ns=charged
            )
    for one in holders:
        holder = Holder(groups.get(one.pod.uid, one.pod.uid), one.pod.container)
        for uuid in one.uuids:
            found[holder, uuid] = Given(holder, uuid, whole=True)
    return list(found.values())


def used_gpus(given: Iterable[Given], inventory: Inventory) -> dict[str, list[UsedGpu]]:
    """Return what each pod was given, with models and memory: of several slices of a GPU the sum.

    Args:
        given: All of the node.
        inventory: The node's GPUs.
    """
    gpus = {gpu.uuid: (gpu.model, gpu.memory_mib) for gpu in inventory.gpus}
    for uuid, (gpu, device) in inventory.mig_devices.items():
        gpus[uuid] = f"{gpu.model} {device.profile}", device.memory_mib
    found: dict[str, dict[str, UsedGpu]] = {}
    for one in given:
        model, all_of_it = gpus.get(one.uuid, ("", 0))
        pod = found.setdefault(one.holder.pod, {})
        before = pod.get(one.uuid)
        memory = all_of_it if one.whole else one.memory_mib + (before.memory_mib if before else 0)
        pod[one.uuid] = UsedGpu(one.uuid, model, memory, one.whole)
    return {pod: list(by_uuid.values()) for pod, by_uuid in found.items()}


def names_by_gpus(
    given: Iterable[Given],
    samples: Mapping[str, GpuSample],
    places: Mapping[int, tuple[str, str]],
) -> dict[ContainerKey, str]:
    """Return the names of containers that use a GPU which one container of their pod was given.

    The API server tells a container's id seconds after its start: to a short one, too late.

    Args:
        given: All of the node.
        samples: What was seen of each GPU.
        places: As of `names_of_processes`.
    """
    holders: dict[tuple[str, str], set[str]] = {}
    for one in given:
        holders.setdefault((one.holder.pod, one.uuid), set()).add(one.holder.container)
    found: dict[ContainerKey, str] = {}
    for uuid, sample in samples.items():
        for part, seen in ((uuid, sample), *sample.mig.items()):
            for process in seen.processes:
                pod, container = places.get(process.pid, ("", ""))
                mine = holders.get((pod, part), set())
                if container and len(mine) == 1:
                    found[ContainerKey(pod, container)] = next(iter(mine))
    return found


def names_of_processes(
    places: Mapping[int, tuple[str, str]], name_of: Callable[[ContainerKey], str | None]
) -> dict[int, Holder | None]:
    """Return whose each process is.

    Args:
        places: Pid → (pod uid, id of the container), as the kernel says; "": of no pod.
        name_of: A container's name, if it is known.
    """
    return {
        pid: Holder(pod, name_of(ContainerKey(pod, container)) or "") if pod else None
        for pid, (pod, container) in places.items()
    }
