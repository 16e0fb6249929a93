"""Nodes that do not exist yet: so many with so many GPUs of a model, or like one that exists."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from alnair.kube.projection import project_node
from alnair.kube.simulated_nodes import manifest
from alnair.kube.wire import NodeWire
from alnair.model.cluster import Node
from alnair.model.node_shapes import (
    CPU_MILLI_PER_GPU,
    MEMORY_MIB_PER_GPU,
    MOST_GPUS,
    MOST_NODES,
    amounts,
    known_model,
)
from alnair.model.openb import TraceNode

_MIB: Final = 1 << 20
_KIND: Final = re.compile(r"(\d+)x(\d+)(?:x([A-Za-z0-9._-]+))?(?::(.+))?")
_LIKE: Final = re.compile(r"(\d+)=(\S+)")
_FORMS: Final = (
    "write COUNTxGPUSxMODEL as in 4x8xH100, COUNTxGPUSxMODEL:cpu=96,memory=1Ti, COUNTx0:cpu=64 for "
    "nodes without GPUs, COUNT=NODE for nodes like one of the cluster, or a file of Node manifests"
)


class ShapeError(Exception):
    """What is written describes no nodes; says why and what to write."""


def is_shape(text: str) -> bool:
    """Return whether the text could describe nodes; else it names a file."""
    return bool(_KIND.fullmatch(text) or _LIKE.fullmatch(text))


def nodes(text: str, existing: Mapping[str, Node], taken: Iterable[str] = ()) -> tuple[Node, ...]:
    """Return the nodes that a text such as `4x8xH100` or `4=gpu-7` describes.

    Args:
        text: as in the error's advice.
        existing: the nodes of the cluster.
        taken: further names that are in use.

    Raises:
        ShapeError: it describes none.
    """
    names_ = {*existing, *taken}
    if like := _LIKE.fullmatch(text):
        count, name = _count(text, like[1]), like[2]
        if name not in existing:
            raise ShapeError(f"{text!r}: there is no node {name} that new ones could be like")
        return tuple(_like(existing[name], new) for new in _names(f"{name}-new", count, names_))
    kind = _KIND.fullmatch(text)
    if kind is None:
        raise ShapeError(f"{text!r} describes no nodes: {_FORMS}")
    count, gpus = _count(text, kind[1]), int(kind[2])
    if gpus > MOST_GPUS:
        raise ShapeError(f"{text!r}: a node cannot have {gpus} GPUs: write 0 to {MOST_GPUS}")
    model = _model(text, kind[3] or "", gpus)
    try:
        cpu, memory = amounts(text, kind[4] or "", _usual(existing, gpus, model))
    except ValueError as error:
        raise ShapeError(str(error)) from None
    prefix = f"new-{model.lower()}x{gpus}" if gpus else "new-cpu"
    return tuple(
        _project(TraceNode(name, cpu, memory // _MIB, gpus, model))
        for name in _names(prefix, count, names_)
    )


def _count(text: str, digits: str) -> int:
    count = int(digits)
    if not 1 <= count <= MOST_NODES:
        raise ShapeError(f"{text!r}: {count} nodes cannot be added: write 1 to {MOST_NODES}")
    return count


def _model(text: str, wanted: str, gpus: int) -> str:
    if not gpus:
        if wanted:
            raise ShapeError(f"{text!r}: nodes without GPUs have no model: leave {wanted} away")
        return ""
    if not wanted:
        raise ShapeError(f"{text!r}: of which model are the GPUs? {_FORMS}")
    try:
        return known_model(wanted)
    except ValueError as error:
        raise ShapeError(
            f"{text!r}: {error}; for another, give a file of Node manifests or COUNT=NODE"
        ) from None


def _usual(existing: Mapping[str, Node], gpus: int, model: str) -> tuple[int, int]:
    """Return millicores and bytes of a node of this kind that exists, or else some for each GPU."""
    for node in existing.values():
        if len(node.gpus) == gpus and gpus and node.gpus[0].model == model:
            return node.allocatable.get("cpu", 0), node.allocatable.get("memory", 0)
    size = max(gpus, 1)
    return size * CPU_MILLI_PER_GPU, size * MEMORY_MIB_PER_GPU * _MIB


def _names(prefix: str, count: int, taken: set[str]) -> list[str]:
    found: list[str] = []
    number = 0
    while len(found) < count:
        if (name := f"{prefix}-{number}") not in taken:
            found.append(name)
        number += 1
    return found


def _project(node: TraceNode) -> Node:
    # Only the moment at which its GPUs were described is written: it decides nothing.
    return project_node(msgspec.convert(manifest(node, "1970-01-01T00:00:00Z"), NodeWire))


def _like(node: Node, name: str) -> Node:
    """Return a node like this one as it is when it joins: empty, open, and with its own GPUs."""
    hostname = "kubernetes.io/hostname"
    labels = {**node.labels, **({hostname: name} if hostname in node.labels else {})}
    return replace(
        node,
        name=name,
        labels=labels,
        taints=tuple(t for t in node.taints if not t.key.startswith("node.kubernetes.io/")),
        unschedulable=False,
        gpus=tuple(replace(gpu, uuid=f"{gpu.uuid}-{name}") for gpu in node.gpus),
        images=(),
        loads=(),
        ignored_loads="",
        agent_lease="",
    )
