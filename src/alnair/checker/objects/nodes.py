"""A node as the checker sees it."""

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import msgspec

from alnair.checker.objects import api_names
from alnair.checker.objects.amounts import UnreadableError
from alnair.checker.objects.requests import read


class CheckedGpu(msgspec.Struct, frozen=True):
    """One GPU as the node's annotation describes it."""

    uuid: str
    index: int
    model: str
    memory_mib: int
    problem: str = ""


class CheckedNode(msgspec.Struct, frozen=True):
    """What a node offers.

    Attributes:
        allocatable: What new pods may have.
        gpus: UUID → GPU; empty if the node describes none.
        described: The node has a GPU description, so assignments can be checked against it.
        problem: Why a part of it cannot be read; empty if all can.
        capacity: What there is, of devices those that are not well too.
    """

    name: str
    allocatable: dict[str, Fraction]
    labels: dict[str, str]
    taints: tuple[dict[str, str], ...]
    unschedulable: bool
    gpus: dict[str, CheckedGpu]
    described: bool = False
    problem: str = ""
    capacity: dict[str, Fraction] = {}

    def limit(self, resource: str) -> Fraction | None:
        """Return how much of a resource may be held; None: the node does not say it now.

        Devices whose plugin is away are offered to nobody, and who has some keeps them. Their
        capacity stays for five minutes, or until the kubelet starts again; then it is 0, which only
        says that there was a plugin (devicemanager/manager.go, GetCapacity and readCheckpoint).
        """
        offered = self.allocatable.get(resource, Fraction(0))
        if offered or "/" not in resource or resource not in self.allocatable:
            return offered
        return self.capacity.get(resource) or None

    def compute_factor(self) -> Fraction:
        """How far the compute of a GPU may be promised beyond 100 %, as the node publishes it.

        What it publishes is that of its healthy GPUs.
        """
        offered = self.allocatable.get(api_names.COMPUTE)
        healthy = len(self.gpus) - len(self.unhealthy)
        if not offered or not healthy:
            return Fraction(1)
        return offered / (100 * healthy)

    @property
    def unhealthy(self) -> frozenset[str]:
        """UUIDs of the GPUs on which nothing may start."""
        return frozenset(uuid for uuid, gpu in self.gpus.items() if gpu.problem)


def node_of(manifest: Mapping[str, Any]) -> CheckedNode:
    """Return a node; what cannot be read becomes its problem."""
    metadata = manifest.get("metadata") or {}
    spec = manifest.get("spec") or {}
    status = manifest.get("status") or {}
    problem = ""
    allocatable: dict[str, Fraction] = {}
    capacity: dict[str, Fraction] = {}
    gpus: dict[str, CheckedGpu] = {}
    text = (metadata.get("annotations") or {}).get(api_names.STATIC)
    try:
        capacity = read(status.get("capacity"))
        allocatable = read(status.get("allocatable")) or capacity
        gpus = gpus_of(text) if text is not None else {}
    except UnreadableError as error:
        problem = str(error)
    return CheckedNode(
        name=metadata.get("name", ""),
        allocatable=allocatable,
        labels=dict(metadata.get("labels") or {}),
        taints=tuple(spec.get("taints") or ()),
        unschedulable=bool(spec.get("unschedulable")),
        gpus=gpus,
        described=text is not None,
        problem=problem,
        capacity=capacity,
    )


def gpus_of(text: str) -> dict[str, CheckedGpu]:
    """Read the GPU description of a node.

    Raises:
        UnreadableError: It is not what the contract says.
    """
    try:
        document = json.loads(text)
        entries = document["gpus"]
        if document["v"] != 1:
            raise UnreadableError(f"{api_names.STATIC}: version {document['v']!r}")
        found = [
            CheckedGpu(
                e["uuid"], int(e["index"]), e["model"], int(e["memory_mib"]), e.get("problem", "")
            )
            for e in entries
        ]
        by_uuid = {gpu.uuid: gpu for gpu in found}
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        if isinstance(error, UnreadableError):
            raise
        raise UnreadableError(f"{api_names.STATIC}: {type(error).__name__}: {error}") from error
    if len(by_uuid) < len(found) or len({gpu.index for gpu in found}) < len(found):
        raise UnreadableError(f"{api_names.STATIC}: a GPU is there twice")
    return by_uuid
