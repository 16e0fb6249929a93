"""The cluster followed change by change, every instant judged; time comes in with the changes.

Feed it what the watches bring (`nodes`, `pods`, `gangs`, `quotas`) and when the API server answers
(`requests`), call `tick` now and then, and take what it finds from `violations`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from alnair.checker import registry
from alnair.checker.objects import api_names
from alnair.checker.objects.nodes import CheckedNode, node_of
from alnair.checker.objects.pods import CheckedPod, is_preempted, pod_of
from alnair.checker.over_time import binding_conflicts
from alnair.checker.over_time.binding_conflicts import Holder
from alnair.checker.over_time.bindings import Bindings
from alnair.checker.over_time.gang_watch import GangWatch
from alnair.checker.over_time.neighbour_watch import NeighbourWatch
from alnair.checker.over_time.node_versions import AFTER, Judgement, NodeVersions, PendingJudgement
from alnair.checker.over_time.preemption_watch import PreemptionWatch
from alnair.checker.over_time.quota_watch import QuotaWatch
from alnair.checker.over_time.request_times import RequestTimes
from alnair.checker.violation import Violation

Manifest = Mapping[str, Any]
#: ("ADDED" | "MODIFIED" | "DELETED", object)
Change = tuple[str, Manifest]

#: Seconds that committing a gang may take.
GANG_GRACE: Final = 5.0


class Watching:
    """Everything known about the cluster, and all that was ever wrong with it.

    Args:
        ours: The names of our schedulers.
        namespaces: Report only on pods of these, and on nodes that run one; empty = all.
        expected: How many pods there should be in the end; with it, lost pods are reported.
        gang_grace: Seconds that a gang may be partly bound.
    """

    def __init__(
        self,
        ours: frozenset[str] = api_names.SCHEDULERS,
        namespaces: frozenset[str] = frozenset(),
        expected: int | None = None,
        gang_grace: float = GANG_GRACE,
    ) -> None:
        self.violations: list[Violation] = []
        self.gangs = GangWatch(gang_grace)
        self.requests = RequestTimes()
        self._ours = ours
        self._namespaces = namespaces
        self._expected = expected
        self._histories: dict[str, NodeVersions] = {}
        self._bindings = Bindings(self._histories)
        self.quotas = QuotaWatch(self._bindings)
        self._neighbours = NeighbourWatch(self._bindings, gang_grace)
        self._preemptions = PreemptionWatch(self._bindings, self.quotas.has)
        self._pods: dict[str, Holder] = {}
        self._fingerprints: dict[str, tuple[object, ...]] = {}
        self._on_node: dict[str, dict[str, Holder]] = {}
        #: Node → since when it is over-committed with foreign pods among the causes.
        self._crossed: dict[str, float] = {}
        self._suspicions: list[PendingJudgement] = []
        self._reported: set[tuple[str, str, str, str]] = set()
        self._started = False

    def counts(self) -> tuple[int, int, int]:
        """Return how many nodes, pods and bound pods there are now."""
        nodes = sum(history.last is not None for history in self._histories.values())
        pods = [holder.pod for holder in self._pods.values() if self._in_scope(holder.pod)]
        return nodes, len(pods), sum(bool(pod.node) for pod in pods)

    def nodes(
        self, listed: Iterable[Manifest] | None, changes: Sequence[Change], now: float
    ) -> None:
        """Take a list of all nodes, or changes."""
        if listed is not None:
            there = {node.name: node for node in map(node_of, listed)}
            for name in self._histories.keys() - there.keys():
                self._node(name, None, now)
            for name, node in there.items():
                self._node(name, node, now)
        for kind, manifest in changes:
            node = node_of(manifest)
            self._node(node.name, None if kind == "DELETED" else node, now)

    def _node(self, name: str, node: CheckedNode | None, now: float) -> None:
        history = self._histories.setdefault(name, NodeVersions())
        if history.last != node:
            history.add(now, node)
            self._judge_node(name, now)

    def pods(
        self,
        listed: Sequence[Manifest] | None,
        changes: Sequence[Change],
        now: float,
        earliest: float | None = None,
    ) -> None:
        """Take a list of all pods, or changes.

        Args:
            listed: All pods; those that are not in it are gone.
            changes: What changed, in order.
            now: When this was read (seconds, monotonic).
            earliest: All this happened after that moment; None = just now.
        """
        earliest = now if earliest is None else earliest
        if listed is not None:
            self._pods_listed(listed, now, earliest)
            # The watch had broken: until the API server answered again, nobody could clear up.
            self._crossed = dict.fromkeys(self._crossed, now)
        for kind, manifest in changes:
            uid = manifest["metadata"]["uid"]
            if kind == "DELETED":
                self._lost(uid, manifest)
                self._judge_node(self._forget(uid, now), now)
                continue
            pod, is_new = self._learn(uid, manifest, now, earliest)
            if pod is not None:
                self._judge_pod(pod, now, is_new=is_new)
                self._judge_node(pod.node, now, earliest if pod.ours and is_new else None)

    def _pods_listed(self, listed: Sequence[Manifest], now: float, earliest: float) -> None:
        # A list is one moment: all of it is taken before any of it is judged.
        there = {manifest["metadata"]["uid"] for manifest in listed}
        nodes = {self._forget(uid, now): False for uid in self._pods.keys() - there}
        for manifest in listed:
            uid = manifest["metadata"]["uid"]
            pod, is_new = self._learn(uid, manifest, now, earliest)
            if pod is not None:
                self._judge_pod(pod, now, is_new=is_new)
                nodes[pod.node] = nodes.get(pod.node, False) or (pod.ours and is_new)
        for name, ours in nodes.items():
            self._judge_node(name, now, earliest if ours and self._started else None)
        self._started = True

    def _lost(self, uid: str, manifest: Manifest) -> None:
        """Tell of a pod that went without being asked to."""
        holder = self._pods.get(uid)
        if (
            self._expected is None
            or holder is None
            or manifest["metadata"].get("deletionTimestamp")
        ):
            return
        pod = holder.pod
        if pod.holds and not pod.deleting and self._in_scope(pod):
            self._report([Violation("pod-lost", pod.title, pod.node, used="gone", limit="there")])

    def _forget(self, uid: str, now: float) -> str:
        """Take a pod away; return its node."""
        self._fingerprints.pop(uid, None)
        self._bindings.learn(uid, None, now, start=False)
        holder = self._pods.pop(uid, None)
        if holder is None:
            return ""
        self._on_node.get(holder.pod.node, {}).pop(uid, None)
        self.gangs.member(uid, holder.pod, now, gone=True)
        return holder.pod.node

    def _learn(
        self, uid: str, manifest: Manifest, now: float, earliest: float
    ) -> tuple[CheckedPod | None, bool]:
        """Take a pod's new state; return it if it matters to its node, and if it is new there."""
        fingerprint = _fingerprint(manifest)
        if self._fingerprints.get(uid) == fingerprint:
            return None, False
        self._fingerprints[uid] = fingerprint
        pod = pod_of(manifest, self._ours)
        before = self._pods.get(uid)
        self._follow(uid, pod, now, earliest, was_preempted=before is None or before.pod.preempted)
        was = before.pod.node if before else ""
        if was and was != pod.node:
            if self._in_scope(pod):
                found = Violation("bound-once", pod.title, pod.node, used=pod.node, limit=was)
                self._report([found])
            self._on_node[was].pop(uid, None)
        is_new = was != pod.node
        holder = Holder(pod, now if before is None or is_new else before.seen)
        self._pods[uid] = holder
        self.gangs.member(uid, pod, now)
        if not pod.node:
            return None, False
        on_node = self._on_node.setdefault(pod.node, {})
        on_node.pop(uid, None)
        if pod.holds:
            on_node[uid] = holder
        return pod, is_new

    def _follow(
        self, uid: str, pod: CheckedPod, now: float, earliest: float, *, was_preempted: bool
    ) -> None:
        """Note a pod's new state for what is judged by the order of events."""
        bound = self._bindings.learn(uid, pod, now, start=not self._started)
        if pod.preempted and not was_preempted and self._in_scope(pod):
            self._preemptions.preempted(pod, now)
        if bound is not None:
            self._preemptions.bound(bound, now)
            if self._in_scope(pod):
                self._neighbours.bound(bound, now, earliest)
                self.quotas.bound(bound, now, earliest)

    # --- judging ------------------------------------------------------------------------------

    def _judge_pod(self, pod: CheckedPod, now: float, *, is_new: bool) -> None:
        """Look at a pod and the node that it was bound to, or at what was changed about it."""
        if pod.holds and self._in_scope(pod) and (is_new or not pod.deleting):
            self._suspect(pod.node, now, lambda node: registry.of_pod(pod, node))

    def _judge_node(self, name: str, now: float, bound: float | None = None) -> None:
        """Look at what is promised of a node now.

        Args:
            name: The node; without pods, nothing is done.
            now: The moment.
            bound: If a pod of ours was bound just now, the earliest moment at which it was.
        """
        holders = tuple(self._on_node.get(name, {}).values())
        history = self._histories.get(name)
        node = history.last if history else None
        # What all pods together do not break, no part of them breaks.
        if node is None or not holders or not registry.of_node(node, [h.pod for h in holders]):
            self._crossed.pop(name, None)
            return
        if binding_conflicts.not_cleared(node, holders):
            self._crossed.setdefault(name, now)
        else:
            self._crossed.pop(name, None)
        if not any(self._in_scope(holder.pod) for holder in holders):
            return
        # What was sent is not taken back: only what was visible then could be known.
        sent = None if bound is None else bound - self.requests.longest(bound, now)

        def alone(version: CheckedNode | None) -> list[Violation]:
            return binding_conflicts.ours_alone(version, holders) if version else []

        def knowingly(version: CheckedNode | None) -> list[Violation]:
            return binding_conflicts.knowingly(version, holders, sent or 0.0) if version else []

        self._suspect(name, now, alone)
        if sent is not None:
            self._suspect(name, now, knowingly)

    def _suspect(self, name: str, now: float, judge: Judgement) -> None:
        history = self._histories.get(name)
        if judge(history.last if history else None):
            self._suspicions.append(PendingJudgement(now, name, judge))

    def tick(self, now: float, *, last: bool = False) -> None:
        """Judge what only time decides. `last`: nothing more will come, judge all suspicions."""
        due = [s for s in self._suspicions if last or s.moment + AFTER <= now]
        self._suspicions = [] if last else [s for s in self._suspicions if s.moment + AFTER > now]
        for suspicion in due:
            self._report(suspicion.confirmed(self._histories.get(suspicion.node) or NodeVersions()))
        for name, since in self._crossed.items():
            holders = tuple(self._on_node.get(name, {}).values())
            node = self._histories[name].last
            is_seen = any(self._in_scope(holder.pod) for holder in holders)
            if now - since > binding_conflicts.LASTING and node is not None and is_seen:
                self._report(binding_conflicts.not_cleared(node, holders))
        for judging in (self._neighbours, self.quotas, self._preemptions):
            self._report(judging.judged(now, last=last))
        for namespace, violation in self.gangs.overdue(now):
            if not self._namespaces or namespace in self._namespaces:
                self._report([violation])

    def finish(self, now: float) -> None:
        """Judge all that can be judged without waiting on."""
        self.tick(now, last=True)
        pods = self.counts()[1]
        if self._expected is not None and pods != self._expected:
            self._report([Violation("pods-expected", "pods", used=pods, limit=self._expected)])

    def _in_scope(self, pod: CheckedPod) -> bool:
        return not self._namespaces or pod.namespace in self._namespaces

    def _report(self, found: Iterable[Violation]) -> None:
        for violation in found:
            if violation.key not in self._reported:
                self._reported.add(violation.key)
                self.violations.append(violation)


def _fingerprint(manifest: Manifest) -> tuple[object, ...]:
    """Return what a pod is judged by; a change of anything else, its status mostly, is nothing."""
    metadata, spec = manifest["metadata"], manifest["spec"]
    annotations = metadata.get("annotations") or {}
    return (
        spec.get("nodeName"),
        (manifest.get("status") or {}).get("phase") in {"Succeeded", "Failed"},
        bool(metadata.get("deletionTimestamp")),
        is_preempted(manifest.get("status") or {}),
        api_names.UTILIZATION in annotations,
        repr(metadata.get("labels")),
        annotations.get(api_names.ASSIGNMENT),
        *(annotations.get(name) for name in api_names.ABOUT_GPUS),
        # The generation grows with the spec, where the server counts it.
        metadata.get("generation") or repr(spec),
    )
