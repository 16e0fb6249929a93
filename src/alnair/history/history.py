"""What happened in a cluster, simulated or live: what metrics of scheduling are computed from.

All times are seconds since the begin of the history; nothing here says where it comes from.
"""

from typing import Literal

import msgspec

from alnair.model.nodes import Node

#: How a pod's stay on a node ended: its work was done, it failed by itself, it made room for
#: another pod, it was evicted for another reason, its node was lost, its owner deleted it; empty =
#: it is still there.
End = Literal["", "completed", "failed", "preempted", "evicted", "lost", "deleted"]


class Part(msgspec.Struct, frozen=True, gc=False):
    """A part of a GPU: thousandths of it, 1000 = whole."""

    uuid: str
    milli: float


class Stay(msgspec.Struct, gc=False):
    """A pod's time on a node, from its binding.

    Attributes:
        end: None while it lasts.
        lost: seconds of its work there (at the speed of running alone) that have to be done again.
        used: seconds of GPU time in which its GPUs worked for it; None = as its job's `util` says.
    """

    node: str
    begin: float
    gpus: tuple[Part, ...] = ()
    end: float | None = None
    how: End = ""
    lost: float = 0.0
    used: float | None = None


class PodHistory(msgspec.Struct, kw_only=True):
    """A pod; `gpus` GPUs with `gpu_milli` thousandths of each; `models` it names, if any.

    Attributes:
        job: its job; if that is not in the history, the pod only takes room.
        refused: why it has no node, if it has none.
        gone: when it was deleted or given up without a node; None if it was not.
    """

    uid: str
    job: str
    submitted: float
    cpu_milli: int = 0
    memory_mib: int = 0
    gpus: int = 0
    gpu_milli: int = 0
    models: tuple[str, ...] = ()
    priority: int = 0
    stays: list[Stay] = []
    refused: str = ""
    gone: float | None = None


class JobHistory(msgspec.Struct, kw_only=True):
    """A job.

    Attributes:
        gpus: that all its pods ask for together, a half is 0.5.
        gang: its pods are placed together or not at all.
        least: pods that a gang needs at once; 0 = all that were submitted with it.
        duration: seconds that it would run alone; None if nobody knows.
        util: percent of its GPUs' time that it uses while it runs; None if nobody knows.
        kind: what it computes.
        finished: when its last work was done; None if it was not.
        pods: their uids, in the order of their creation; further ones replace evicted ones.
    """

    name: str
    user: str
    submitted: float
    gpus: float = 0.0
    gang: bool = False
    least: int = 0
    duration: float | None = None
    util: float | None = None
    kind: str = ""
    finished: float | None = None
    pods: list[str] = []


class NodeHistory(msgspec.Struct, kw_only=True):
    """A node and when it was there: (from, to) pairs, None = to the end."""

    node: Node
    up: list[tuple[float, float | None]]


class PairRate(msgspec.Struct, kw_only=True):
    """Two jobs on one GPU for some time, and how fast each ran, as a part of its speed alone."""

    first: str
    second: str
    seconds: float
    first_rate: float
    second_rate: float


class History(msgspec.Struct, kw_only=True):
    """All that happened between the begin (0) and `end`, seconds.

    Attributes:
        nodes, jobs, pods: by name and by uid, in the order in which they came.
        pairs: those that shared GPUs.
        decisions: attempts at pods, and `decision_seconds` what they took, in all; 0 if not known.
        source: what it is a history of, for people.
    """

    end: float
    nodes: dict[str, NodeHistory]
    jobs: dict[str, JobHistory]
    pods: dict[str, PodHistory]
    pairs: list[PairRate] = []
    decisions: int = 0
    decision_seconds: float = 0.0
    source: str = ""
