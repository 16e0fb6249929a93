"""What is written into a history, as values; times are seconds since the epoch."""

from typing import Any

import msgspec

from alnair.history.history import End
from alnair.model.usage import PodUsage


class JobRow(msgspec.Struct, frozen=True, kw_only=True):
    """What a job is; what became of it follows from its pods.

    Attributes:
        uid: Of the controller, or of the lone pod.
        series: The same for all runs of one work.
        user: Whose it is.
        least: Pods that it needs at once, of a gang; 0 = it is none.
    """

    uid: str
    namespace: str
    api_group: str = ""
    api_version: str = ""
    kind: str
    name: str
    series: str = ""
    user: str = ""
    scheduler: str = ""
    labels: dict[str, str] = {}
    submitted: float = 0.0
    least: int = 0


class PodRow(msgspec.Struct, frozen=True, kw_only=True):
    """A pod as the API server told of it last.

    Attributes:
        job: Uid of its job.
        gpus: That it holds or asks for, a half is 0.5.
        bound: When it got its node; None while it has none, or if that is not known.
        waited: Why it has no node; empty if nothing is said, and of one that has one.
        ended: When its last container ended, or it was gone; None while it lasts.
        outcome: How it ended; empty while it lasts.
        record: All that a report needs, as JSON.
    """

    uid: str
    job: str
    namespace: str
    name: str
    node: str = ""
    gpus: float = 0.0
    gpu_model: str = ""
    created: float = 0.0
    bound: float | None = None
    waited: str = ""
    started: float | None = None
    ended: float | None = None
    gone: float | None = None
    outcome: End = ""
    record: dict[str, Any] | None = None


class NodeRow(msgspec.Struct, frozen=True, kw_only=True):
    """A node as the API server told of it last; `since` is when it came to be ready, or not."""

    name: str
    ready: bool
    since: float
    record: dict[str, Any]


class Gone(msgspec.Struct, frozen=True):
    """A pod that is there no more, since `when`, and how it ended if it had not ended before."""

    uid: str
    when: float
    outcome: End


class Position(msgspec.Struct, frozen=True):
    """How far the outbox of a node was read: of this stream, up to and with `seq`."""

    node: str
    stream: str = ""
    seq: int = 0


class Changes(msgspec.Struct, kw_only=True):
    """What is written at once, or not at all.

    Attributes:
        usages: What agents measured; `ended` says whether it is the whole life.
        position: Of the outbox that the usages came from.
        looked: When the cluster was looked at last.
        decided: The scheduler's decisions since its start, and the seconds that they took.
    """

    jobs: list[JobRow] = []
    pods: list[PodRow] = []
    gone: list[Gone] = []
    nodes: list[NodeRow] = []
    usages: list[PodUsage] = []
    position: Position | None = None
    looked: float | None = None
    decided: tuple[int, float] | None = None
