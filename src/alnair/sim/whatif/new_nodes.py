"""Nodes that do not exist yet: of a shape such as `4x8xH100`, or like one that exists."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from alnair.model.nodes import Node
from alnair.sim.inputs import pod_templates
from alnair.traces import node_shapes
from alnair.traces.node_shapes import MOST_NODES

_LIKE: Final = re.compile(r"(\d+)=(\S+)")
_HOSTNAME: Final = "kubernetes.io/hostname"


class ShapeError(Exception):
    """What is written describes no nodes; says why and what to write."""


def is_shape(text: str) -> bool:
    """Return whether the text is meant to describe nodes, and not to name a file."""
    return node_shapes.is_shape(text) or bool(_LIKE.fullmatch(text))


def nodes(text: str, existing: Mapping[str, Node], taken: Iterable[str] = ()) -> tuple[Node, ...]:
    """Return the nodes that a text such as `4x8xH100` or `4=gpu-7` describes.

    Args:
        text: shapes (see `alnair.traces.node_shapes`), or how many nodes like which one.
        existing: the nodes of the cluster, by name.
        taken: further names that are in use.

    Raises:
        ShapeError: it describes none.
    """
    names = {*existing, *taken}
    if like := _LIKE.fullmatch(text):
        count, name = int(like[1]), like[2]
        if not 1 <= count <= MOST_NODES:
            raise ShapeError(f"{text!r}: {count} nodes cannot be added: write 1 to {MOST_NODES}")
        if name not in existing:
            raise ShapeError(f"{text!r}: there is no node {name} that new ones could be like")
        wanted = [f"{name}-new-{number}" for number in range(count)]
        return tuple(_like(existing[name], new) for new in _free(wanted, names))
    try:
        shapes = node_shapes.read_shapes(text)
    except ValueError as error:
        raise ShapeError(
            f"{error}; or write 4=NODE for four like a node of the cluster, or a file of Node "
            "manifests"
        ) from None
    new_names = _free([f"new-{node.name}" for node in shapes], names)
    return tuple(
        pod_templates.node(replace(node, name=name))
        for node, name in zip(shapes, new_names, strict=True)
    )


def _free(wanted: Iterable[str], taken: set[str]) -> list[str]:
    """Return these names, made longer where they are in use."""
    found: list[str] = []
    for name in wanted:
        while name in taken:
            name += "-x"
        taken.add(name)
        found.append(name)
    return found


def _like(node: Node, name: str) -> Node:
    """Return a node like this one as it is when it joins: empty, open, and with its own GPUs."""
    labels = {**node.labels, **({_HOSTNAME: name} if _HOSTNAME in node.labels else {})}
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
