"""The objects that say who holds which GPU and what it does, read from the API server."""

from typing import Final

import msgspec

from alnair.kube.client import Client
from alnair.kube.errors import Forbidden
from alnair.kube.objects.wire import NodeWire, ObjectMeta
from alnair.kube.resources import LEASES, NODES, PODS
from alnair.model import names

#: Pods that have ended hold nothing.
_ALIVE: Final = "status.phase!=Succeeded,status.phase!=Failed,spec.nodeName!="


class _Limits(msgspec.Struct, gc=False):
    limits: dict[str, str | int] | None = None


class _Container(msgspec.Struct, gc=False):
    resources: _Limits | None = None


class _PodSpec(msgspec.Struct, rename="camel", gc=False):
    node_name: str = ""
    containers: list[_Container] = []


class SeenPod(msgspec.Struct):
    """What is read of a pod."""

    metadata: ObjectMeta
    spec: _PodSpec

    @property
    def whole_gpus(self) -> int:
        """GPUs that its limits ask for; whose they are, another scheduler's pod does not say."""
        asked = ((one.resources and one.resources.limits) or {} for one in self.spec.containers)
        values = (str(limits.get(names.GPU, 0)) for limits in asked)
        return sum(int(value) for value in values if value.isdecimal())


class _LeaseSpec(msgspec.Struct, rename="camel"):
    renew_time: str = ""


class _Lease(msgspec.Struct):
    metadata: ObjectMeta
    spec: _LeaseSpec = msgspec.field(default_factory=_LeaseSpec)


class Objects(msgspec.Struct):
    """What the API server has.

    Attributes:
        nodes: All.
        pods: Those that have a node and have not ended.
        renewed: Lease of an agent → when it was renewed, RFC 3339; None where it may not be read.
    """

    nodes: list[NodeWire]
    pods: list[SeenPod]
    renewed: dict[str, str] | None


async def read(client: Client, namespace: str | None = None) -> Objects:
    """Read them.

    Args:
        client: An open client.
        namespace: Whose pods are read where those of all may not be.

    Raises:
        KubeError: The cluster cannot be read.
    """
    nodes = await client.list(NODES.typed(NodeWire))
    try:
        pods = await client.list(PODS.typed(SeenPod), field_selector=_ALIVE)
    except Forbidden:
        if namespace is None:
            raise
        pods = await client.list(PODS.typed(SeenPod), namespace, field_selector=_ALIVE)
    try:
        leases = await client.list(LEASES.typed(_Lease), names.NAMESPACE)
    except Forbidden:
        renewed = None
    else:
        renewed = {one.metadata.name: one.spec.renew_time for one in leases.items}
    return Objects(nodes.items, pods.items, renewed)
