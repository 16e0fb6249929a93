"""All that was ever noted of a cluster, folded from the lines of a record."""

from typing import Literal

import msgspec

from alnair.live.recording.record_lines import GroupRecord, NodeRecord, PodRecord


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """What a record is of; `cluster` is the uid of its namespace kube-system."""

    format: Literal["alnair-record"] = "alnair-record"
    v: Literal[1] = 1
    cluster: str


class Line(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What was seen at a moment: one of these or, if nothing changed, nothing.

    Attributes:
        t: seconds since the epoch, by the clock of who looked.
        util: a pod's uid, and the percent of its GPUs that it uses from now on.
        decided: the scheduler's decisions since its start, and the seconds that they took.
        gone_pod, gone_node: it is there no more.
        seen: when it was there last, if nobody looked for a while; 0 = until now.
    """

    t: float
    head: Head | None = None
    pod: PodRecord | None = None
    node: NodeRecord | None = None
    group: GroupRecord | None = None
    util: tuple[str, float] | None = None
    decided: tuple[int, float] | None = None
    gone_pod: str | None = None
    gone_node: str | None = None
    seen: float = 0.0


class KnownPod(msgspec.Struct):
    """A pod.

    Attributes:
        bound, ended, gone: seconds since the epoch; None if it was not.
        utils: from when it used so many percent of its GPUs.
    """

    record: PodRecord
    bound: float | None = None
    ended: float | None = None
    gone: float | None = None
    utils: list[tuple[float, float]] = []


class KnownNode(msgspec.Struct):
    """A node, as it had most GPUs, and when it was there and ready."""

    record: NodeRecord
    up: list[tuple[float, float | None]] = []


class Known:
    """What is known of a cluster.

    Attributes:
        head: what the record is of; None for a look without a record.
        first, last: when it was looked at first and last.
        decided: when, decisions and their seconds from the first look until then.
    """

    def __init__(self) -> None:
        self.head: Head | None = None
        self.pods: dict[str, KnownPod] = {}
        self.nodes: dict[str, KnownNode] = {}
        self.groups: dict[tuple[str, str], int] = {}
        self.first = self.last = 0.0
        self.decided: list[tuple[float, int, float]] = []
        self._counted: tuple[int, float] | None = None

    def take(self, line: Line) -> None:
        """Add a line; lines come in the order in which they were written."""
        self.first = self.first or line.t
        self.last = max(self.last, line.t)
        when = line.seen or line.t
        if line.head is not None:
            self.head = line.head
        if line.pod is not None:
            self._pod(line.pod, line.t)
        if line.node is not None:
            self._node(line.node, line.t)
        if line.group is not None:
            self.groups[line.group.namespace, line.group.name] = line.group.least
        if line.util is not None and (pod := self.pods.get(line.util[0])) is not None:
            pod.utils.append((line.t, line.util[1]))
        if line.decided is not None:
            self._decided(line.decided, line.t)
        if line.gone_pod is not None and (pod := self.pods.get(line.gone_pod)) is not None:
            pod.gone = when
        if line.gone_node is not None and (node := self.nodes.get(line.gone_node)) is not None:
            self._down(node, when)

    def _decided(self, counted: tuple[int, float], now: float) -> None:
        count, seconds = counted
        before, self._counted = self._counted, counted
        if before is not None and before[0] <= count:  # else it has started anew
            count, seconds = count - before[0], seconds - before[1]
        if before is None:
            count, seconds = 0, 0.0
        _, all_count, all_seconds = self.decided[-1] if self.decided else (now, 0, 0.0)
        self.decided.append((now, all_count + count, all_seconds + seconds))

    def _pod(self, record: PodRecord, now: float) -> None:
        known = self.pods.get(record.uid)
        is_new = known is None
        if known is None:
            known = self.pods[record.uid] = KnownPod(record)
        known.record = record
        if record.node and known.bound is None:
            # Who sets the node of a pod at its creation need not set the condition.
            known.bound = record.bound or (record.created if is_new else now)
        if record.phase and known.ended is None:
            known.ended = record.ended or now

    def _node(self, record: NodeRecord, now: float) -> None:
        known = self.nodes.get(record.name)
        if known is None:
            known = self.nodes[record.name] = KnownNode(record)
            known.up.append((record.created or now, None))
        elif record.ready and known.up[-1][1] is not None:
            known.up.append((max(record.since or now, known.up[-1][1]), None))
        if not record.ready and known.up[-1][1] is None:
            self._down(known, record.since or now)
        if len(record.gpus) >= len(known.record.gpus):
            known.record = record

    @staticmethod
    def _down(node: KnownNode, when: float) -> None:
        begin, end = node.up[-1]
        if end is None:
            node.up[-1] = (begin, max(begin, when))
