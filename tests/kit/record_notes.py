"""What earlier versions wrote into records, made of what they saw."""

from alnair.kube.pod_groups.dialects import GangProjector, PodGroupWire
from alnair.live.list_and_watch import Batch
from alnair.live.recording.record_lines import (
    GroupRecord,
    NodeRecord,
    NodeWire,
    PodReader,
    PodRecord,
    PodWire,
    node_record,
    utilization,
)
from alnair.live.recording.recorded_cluster import Known, Line


class Notes:
    """What was noted last of everything that is there; makes the lines of what is new.

    Args:
        before: What an earlier record says was there.
    """

    def __init__(self, before: Known | None = None) -> None:
        self.lines: list[Line] = []
        self._read = PodReader()
        self._pods: dict[str, tuple[PodRecord, float | None]] = {}
        self._nodes: dict[str, NodeRecord] = {}
        self._groups: dict[tuple[str, str], GroupRecord] = {}
        self._decided: tuple[int, float] | None = None
        # What went while nobody looked was there last when somebody looked last.
        self._seen = before.last if before else 0.0
        self._unseen_pods: set[str] = set()
        self._unseen_nodes: set[str] = set()
        if before is not None:
            for uid, pod in before.pods.items():
                if pod.gone is None:
                    self._pods[uid] = (pod.record, pod.utils[-1][1] if pod.utils else None)
            self._unseen_pods = set(self._pods)
            self._unseen_nodes = {n for n, node in before.nodes.items() if node.up[-1][1] is None}

    def counts(self) -> tuple[int, int]:
        """Return how many nodes and pods there are."""
        return len(self._nodes), len(self._pods)

    def pods(self, batch: Batch[PodWire], now: float) -> None:
        """Note a list of pods, or changes of some."""
        if batch.listed is not None:
            there = {pod.metadata.uid for pod in batch.listed}
            for uid in sorted(self._pods.keys() - there):
                self._pod_gone(uid, now, self._seen if uid in self._unseen_pods else 0.0)
            self._unseen_pods.clear()
            for pod in batch.listed:
                self._pod(pod, now)
        for event in batch.events:
            self._pod(event.object, now)
            if event.type == "DELETED":
                self._pod_gone(event.object.metadata.uid, now, 0.0)

    def _pod(self, pod: PodWire, now: float) -> None:
        record, util = self._read(pod), utilization(pod)
        before, used = self._pods.get(record.uid, (None, None))
        if before != record:
            self.lines.append(Line(t=now, pod=record))
        if util is not None and util != used:
            self.lines.append(Line(t=now, util=(record.uid, util)))
        self._pods[record.uid] = (record, util if util is not None else used)

    def _pod_gone(self, uid: str, now: float, seen: float) -> None:
        if self._pods.pop(uid, None) is not None:
            self.lines.append(Line(t=now, gone_pod=uid, seen=seen))

    def nodes(self, batch: Batch[NodeWire], now: float) -> None:
        """Note a list of nodes, or changes of some."""
        if batch.listed is not None:
            there = {node.metadata.name for node in batch.listed}
            for name in sorted((self._nodes.keys() | self._unseen_nodes) - there):
                is_late = self._nodes.pop(name, None) is None
                self.lines.append(Line(t=now, gone_node=name, seen=self._seen if is_late else 0.0))
            self._unseen_nodes.clear()
            for node in batch.listed:
                self._node(node, now)
        for event in batch.events:
            name = event.object.metadata.name
            self._node(event.object, now)
            if event.type == "DELETED" and self._nodes.pop(name, None) is not None:
                self.lines.append(Line(t=now, gone_node=name))

    def _node(self, node: NodeWire, now: float) -> None:
        record = node_record(node)
        if self._nodes.get(record.name) != record:
            self._nodes[record.name] = record
            self.lines.append(Line(t=now, node=record))

    def groups(self, batch: Batch[PodGroupWire], api_version: str, now: float) -> None:
        """Note PodGroups; those that are gone are kept, as their pods are."""
        project = GangProjector(api_version)
        for group in (*(batch.listed or ()), *(event.object for event in batch.events)):
            gang = project(group)
            record = GroupRecord(gang.namespace, gang.name, gang.min_member)
            if self._groups.get((gang.namespace, gang.name)) != record:
                self._groups[gang.namespace, gang.name] = record
                self.lines.append(Line(t=now, group=record))

    def decided(self, counted: tuple[int, float], now: float) -> None:
        """Note how many decisions the scheduler has made, and their seconds."""
        if counted != self._decided:
            self._decided = counted
            self.lines.append(Line(t=now, decided=counted))

    def taken(self) -> list[Line]:
        """Return the lines since the last call."""
        found, self.lines = self.lines, []
        return found
