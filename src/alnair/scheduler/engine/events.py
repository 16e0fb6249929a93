"""What the scheduler is told: changes of the cluster, and what became of its actions."""

from collections.abc import Mapping
from typing import Any

import msgspec

from alnair.model.nodes import Node
from alnair.model.workload import Gang, Pod


class NodeChanged(msgspec.Struct, frozen=True):
    """A node was added or changed."""

    node: Node


class NodeGone(msgspec.Struct, frozen=True):
    """A node was deleted."""

    name: str


class PodChanged(msgspec.Struct, frozen=True):
    """A pod was added or changed."""

    pod: Pod


class PodGone(msgspec.Struct, frozen=True):
    """A pod was deleted."""

    uid: str


class GangChanged(msgspec.Struct, frozen=True):
    """A PodGroup was added or changed."""

    gang: Gang


class GangGone(msgspec.Struct, frozen=True):
    """A PodGroup was deleted."""

    namespace: str
    name: str


class ObjectChanged(msgspec.Struct, frozen=True):
    """An API object of another kind was added or changed; `namespace` is "" without one."""

    kind: str
    namespace: str
    name: str
    value: Any


class ObjectGone(msgspec.Struct, frozen=True):
    """An API object of another kind was deleted."""

    kind: str
    namespace: str
    name: str


class PluginStates(msgspec.Struct, frozen=True):
    """What plugins of another scheduler have learned, by their names: it replaces our own."""

    states: Mapping[str, Any]


class AgentAlive(msgspec.Struct, frozen=True):
    """A node's agent renewed its lease, at this time (seconds since the epoch)."""

    lease: str
    renewed: float


class BindDone(msgspec.Struct, frozen=True):
    """A Binding succeeded (`error` empty) or failed for good."""

    uid: str
    error: str = ""


class PlanDone(msgspec.Struct, frozen=True):
    """A gang's plan was written (`error` empty) or could not be."""

    namespace: str
    name: str
    error: str = ""


class EvictDone(msgspec.Struct, frozen=True):
    """An eviction was accepted (`error` empty) or failed for good."""

    uid: str
    error: str = ""


Event = (
    NodeChanged
    | NodeGone
    | PodChanged
    | PodGone
    | GangChanged
    | GangGone
    | ObjectChanged
    | ObjectGone
    | PluginStates
    | AgentAlive
    | BindDone
    | PlanDone
    | EvictDone
)
