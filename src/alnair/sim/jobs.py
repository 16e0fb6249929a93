"""What a simulation is made of: a cluster, the jobs that arrive, and what else happens to it."""

import math
from typing import Literal

import msgspec

from alnair.model.nodes import Node
from alnair.model.workload import Gang, Pod


class Elastic(msgspec.Struct, frozen=True, kw_only=True):
    """A job that can run with fewer or more pods than it has.

    Attributes:
        least, most: pods.
        speeds: its speed with 1, 2, … pods, as a multiple of the speed with as many as it asks
            for; beyond the end it grows no more. Empty: in proportion to its pods.
    """

    least: int
    most: int
    speeds: tuple[float, ...] = ()


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """Pods that are submitted together and have ended when their work is done.

    Attributes:
        name: unique.
        user: whom fairness is measured for.
        submitted: seconds from the simulation's begin, 0 or more.
        pods: as they would be created; `created`, `node` and what else the cluster fills in is
            left empty, and so may be `uid` where no two pods have the same namespace and name.
        gang: their PodGroup, if they are placed together or not at all.
        duration: seconds that it runs if nothing disturbs it; infinite = it never ends.
        util: percent of its GPUs' time that it uses while it runs alone.
        kind: what it computes, such as the name of a model; the key of measured pair throughputs.
        elastic: if it can run with other numbers of pods.
    """

    name: str
    submitted: float
    pods: tuple[Pod, ...]
    user: str = ""
    gang: Gang | None = None
    duration: float = math.inf
    util: float = 100.0
    kind: str = ""
    elastic: Elastic | None = None


class NodeEvent(msgspec.Struct, frozen=True):
    """A node that is lost, with all pods on it, or is there (again).

    Attributes:
        time: seconds from the simulation's begin.
    """

    time: float
    what: Literal["fails", "joins"]
    node: Node


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a simulation is told.

    Attributes:
        nodes: there from the begin.
        jobs: in the order of `submitted`; jobs of the same time arrive in the order given.
        node_events: in the order of time.
        objects: further API objects such as quotas: kind, namespace, name, value.
        running: pods on nodes at the begin, with `bound_at` relative to it (negative), of jobs that
            are not among `jobs`.
        begin: what the engine takes for the time of the begin, seconds since the epoch.
    """

    nodes: tuple[Node, ...]
    jobs: tuple[Job, ...]
    node_events: tuple[NodeEvent, ...] = ()
    objects: tuple[tuple[str, str, str, object], ...] = ()
    running: tuple[Job, ...] = ()
    begin: float = 0.0
