"""Pods of all kinds, and a scheduler that gives them GPUs by its own books."""

import random
from collections.abc import Mapping, Sequence

from alnair.model import names
from alnair.model.api_types import AssignedGpu
from alnair.model.gpu_demand import ContainerGpus
from alnair.sharing.matching.node_state import PodOnNode
from kit.model_node.api import Api
from kit.node_state import MEMORY, asks, pod_on_node, slice_of, whole_gpu

#: A resource of somebody else's plugin, whose `Allocate` fails now and then.
NIC = "vendor/nic"


def random_containers(rng: random.Random) -> list[ContainerGpus]:
    """One to four containers, init containers and sidecars first; what they ask adds up."""
    count = rng.choice((1, 1, 1, 2, 2, 3, 4))
    inits = rng.randrange(count)
    kind = rng.choice(("slices", "slices", "slices", "whole", "both"))
    containers = []
    for number in range(count):
        is_init = number < inits
        is_sidecar = is_init and rng.random() < 0.4
        name = f"c{number}"
        if kind == "slices" or (kind == "both" and rng.random() < 0.5):
            memory = rng.randrange(1, 5) * 500
            compute = rng.choice((0, 10, 20, 25))
            made = asks(name, memory=memory, compute=compute, init=is_init, sidecar=is_sidecar)
            amounts = {**made.resources, names.VGPU: 1}
        else:
            whole = rng.choice((1, 1, 2))
            made = asks(name, whole=whole, init=is_init, sidecar=is_sidecar)
            amounts = dict(made.resources)
        if rng.random() < 0.2:
            amounts[NIC] = 1
        if rng.random() < 0.005:
            amounts = {names.VGPU: 1}  # somebody wrote it by hand
        containers.append(ContainerGpus(name, amounts, made.init, made.sidecar))
    return containers


def random_pod(rng: random.Random, number: int) -> tuple[PodOnNode, list[ContainerGpus]]:
    """Return a pod without an assignment, and its containers."""
    containers = random_containers(rng)
    pod = pod_on_node(
        f"p{number}", *containers, soft=rng.random() < 0.2, created=float(number // 2)
    )
    return pod, containers


class OurScheduler:
    """Gives GPUs that have room, by its own books; the pod is bound in the same write.

    A pod holds its GPUs until its object is gone or has ended. With `eager` the room
    of a pod that is being deleted is given on at once.
    """

    def __init__(self, rng: random.Random, api: Api, gpus: int) -> None:
        self.rng = rng
        self.api = api
        self.gpus = gpus

    def assign(
        self, pod: PodOnNode, containers: Sequence[ContainerGpus], *, eager: bool
    ) -> dict[str, list[AssignedGpu]] | None:
        """Return the pod's parts, or None where there is no room."""
        memory, compute, whole = peak(containers)
        is_hard = pod.demand is not None and pod.demand.hard
        order = list(range(self.gpus))
        self.rng.shuffle(order)
        free = {index: self._free(index, eager=eager) for index in order}
        shared = None
        if memory:
            room = [
                i
                for i in order
                if free[i] and free[i][0] >= memory and free[i][1] >= (compute if is_hard else 0)
            ]
            if not room:
                return None
            shared = room[0]
        own = [i for i in order if free[i] == (MEMORY, 100, 0) and i != shared][:whole]
        if len(own) < whole:
            return None
        return _divided(containers, own, shared)

    def _free(self, index: int, *, eager: bool) -> tuple[int, int, int] | tuple[()]:
        """Return MiB, hard percent and how many have a part; () if it is somebody's whole."""
        memory, compute, there = MEMORY, 100, 0
        for pod in self.api.pods.values():
            if pod.is_ended or (eager and pod.is_leaving) or not pod.assignment:
                continue
            parts = [p for own in pod.assigned.values() for p in own if p.index == index]
            if any(part.whole for part in parts):
                return ()
            if parts and pod.demand:
                there += 1
                memory -= pod.demand.memory_mib
                compute -= pod.demand.compute if pod.demand.hard else 0
        return memory, compute, there


def peak(containers: Sequence[ContainerGpus]) -> tuple[int, int, int]:
    """Return MiB, percent and whole GPUs at the worst moment, by going through the moments."""
    moments = []
    kept: list[ContainerGpus] = []
    for container in containers:
        if container.init:
            moments.append([*kept, container])
        if container.sidecar or not container.init:
            kept.append(container)
    moments.append(kept)

    def most(resource: str) -> int:
        return max(sum(c.resources.get(resource, 0) for c in moment) for moment in moments)

    return most(names.VGPU_MEMORY), most(names.VGPU_COMPUTE), most(names.GPU)


def _divided(
    containers: Sequence[ContainerGpus], own: Sequence[int], shared: int | None
) -> dict[str, list[AssignedGpu]]:
    parts: dict[str, list[AssignedGpu]] = {}
    taken = 0
    for container in containers:
        amounts: Mapping[str, int] = container.resources
        if whole := amounts.get(names.GPU, 0):
            parts[container.name] = [whole_gpu(i) for i in own[taken : taken + whole]]
            if container.sidecar or not container.init:
                taken += whole
        elif memory := amounts.get(names.VGPU_MEMORY, 0):
            assert shared is not None
            share = amounts.get(names.VGPU_COMPUTE, 0)
            parts[container.name] = [slice_of(shared, memory, share)]
    return parts
