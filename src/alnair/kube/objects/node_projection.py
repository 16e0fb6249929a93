"""From API objects: a node, with the GPUs that its agent describes."""

import sys
from collections.abc import Mapping

import msgspec

from alnair.kube.objects import wire
from alnair.kube.objects.amounts import base_units
from alnair.kube.objects.annotation_documents import UNREADABLE, check_version
from alnair.kube.objects.images_and_ports import node_images
from alnair.kube.objects.load_annotations import agent_lease, read_loads
from alnair.model import api_types, names, quantity
from alnair.model.nodes import Gpu, Node, Taint

_gpu_static_decoder = msgspec.json.Decoder(api_types.GpuStatic)


def project_node(node: wire.NodeWire) -> Node:
    """Return the node as scheduling sees it; what cannot be read of it becomes its `problem`."""
    meta = node.metadata
    spec = node.spec or wire.NodeSpecWire()
    problem = ""
    allocatable: dict[str, int] = {}
    try:
        allocatable = base_units(node.status.allocatable if node.status else None)
    except quantity.QuantityError as error:
        problem = f"status.allocatable: {error}"
    gpus: tuple[Gpu, ...] = ()
    if text := (meta.annotations or {}).get(names.GPU_STATIC):
        try:
            gpus = _gpus(text)
        except UNREADABLE as error:
            problem = f"annotation {names.GPU_STATIC} cannot be read: {error}"
    annotations = meta.annotations or {}
    loads, ignored = read_loads(annotations, gpus) if annotations else ((), "")
    return Node(
        name=meta.name,
        allocatable=allocatable,
        labels=meta.labels or {},
        taints=tuple(Taint(t.key, t.effect, t.value or "") for t in spec.taints or ()),
        unschedulable=bool(spec.unschedulable),
        gpus=gpus,
        problem=problem,
        images=node_images(node.status),
        loads=loads,
        ignored_loads=ignored,
        agent_lease=agent_lease(annotations, meta.name) if loads else "",
    )


def _gpus(text: str) -> tuple[Gpu, ...]:
    document = _gpu_static_decoder.decode(text)
    check_version(document.v)
    gpus = tuple(
        Gpu(
            g.uuid,
            g.index,
            sys.intern(g.model),
            g.memory_mib,
            g.numa,
            _links(g.links),
            problem="" if g.problem is msgspec.UNSET else g.problem,
        )
        for g in sorted(document.gpus, key=lambda g: g.index)
    )
    if len({g.uuid for g in gpus}) != len(gpus) or len({g.index for g in gpus}) != len(gpus):
        raise ValueError("a uuid or an index occurs twice")
    return gpus


def _links(links: Mapping[str, str]) -> tuple[tuple[int, str], ...]:
    """Return the kinds of links by the other GPU's index, in order."""
    return tuple(sorted((int(index), sys.intern(kind)) for index, kind in links.items()))
