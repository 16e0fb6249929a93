"""The API server, played by values: it holds what exists and carries out what is decided.

Every change and every answer goes to `inbox`, in order, as the events that an engine is fed with.
"""

from collections import deque
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from alnair.model.action import PREEMPTED, Action, Bind, Evict, Nominate, Report, WritePlan
from alnair.model.nodes import Node
from alnair.model.volumes import ClaimBinding, Disk, PersistentVolume, PersistentVolumeClaim
from alnair.model.workload import Gang, Planned, Pod, PodGpuAssignment, Requirement, Term
from alnair.scheduler.engine import events
from alnair.scheduler.state.objects.storage_objects import CLAIMS, CLASSES, VOLUMES

#: Seconds that a pod which is being deleted still takes, if nobody says otherwise: the default of
#: `terminationGracePeriodSeconds`.
GRACE: Final = 30.0
_Plan = dict[str, Planned]


class VirtualApi:
    """Nodes, pods, gangs and further objects as the API server has them.

    Attributes:
        now: seconds since the epoch; its owner moves it on.
        graceful: evicted pods stay, marked as being deleted, until `delete_uid`.
        pods: by uid.
        gangs: by namespace and name.
        objects: by kind, namespace and name.
        inbox: changes and answers that the engine has not been told.
    """

    def __init__(self, now: float = 0.0) -> None:
        self.now = now
        self.graceful = False
        self.pods: dict[str, Pod] = {}
        self.nodes: dict[str, Node] = {}
        self.gangs: dict[tuple[str, str], Gang] = {}
        self.objects: dict[tuple[str, str, str], Any] = {}
        self.inbox: deque[events.Event] = deque()

    # --- what happens in the cluster --------------------------------------------------------------

    def put(self, node: Node) -> None:
        """Add or change a node."""
        self.nodes[node.name] = node
        self.inbox.append(events.NodeChanged(node))

    def remove(self, name: str) -> None:
        """Delete a node; its pods stay."""
        del self.nodes[name]
        self.inbox.append(events.NodeGone(name))

    def set_pod(self, pod: Pod) -> None:
        """Create or change a pod."""
        self.pods[pod.uid] = pod
        self.inbox.append(events.PodChanged(pod))

    def delete_uid(self, uid: str) -> None:
        """Delete a pod; it is gone at once."""
        del self.pods[uid]
        self.inbox.append(events.PodGone(uid))

    def declare(self, gang: Gang) -> None:
        """Create or change a PodGroup; the plan annotation and the status stay."""
        old = self.gangs.get((gang.namespace, gang.name))
        if old is not None:
            gang = msgspec.structs.replace(gang, placed=gang.placed or old.placed)
            if not gang.plan:
                gang = msgspec.structs.replace(gang, plan=old.plan, planned=old.planned)
        self.declare_exactly(gang)

    def declare_exactly(self, gang: Gang) -> None:
        """Create or change a PodGroup with just this plan."""
        self.gangs[gang.namespace, gang.name] = gang
        self.inbox.append(events.GangChanged(gang))

    def undeclare(self, name: str, namespace: str = "default") -> None:
        """Delete a PodGroup."""
        del self.gangs[namespace, name]
        self.inbox.append(events.GangGone(namespace, name))

    def set_object(self, kind: str, name: str, value: Any, namespace: str = "") -> None:
        """Create or change an object of another kind."""
        self.objects[kind, namespace, name] = value
        self.inbox.append(events.ObjectChanged(kind, namespace, name, value))

    def known(self) -> Iterator[events.Event]:
        """Return what an engine that begins is told: all that exists."""
        yield from map(events.NodeChanged, self.nodes.values())
        for key, value in self.objects.items():
            yield events.ObjectChanged(*key, value)
        yield from map(events.GangChanged, self.gangs.values())
        yield from map(events.PodChanged, self.pods.values())

    # --- carrying out -----------------------------------------------------------------------------

    def apply(self, action: Action, error: str = "") -> str:
        """Carry out an action; what it changes and its answer go to the inbox.

        Args:
            action: what the engine decided.
            error: why it must fail, if it must.

        Returns:
            Why it failed; empty if it did not.
        """
        match action:
            case Bind(pod, node, assignment, claims):
                for claim in claims:
                    error = error or self.bind_claim(claim, node)
                error = error or self._bind(pod, node, assignment)
                self.inbox.append(events.BindDone(pod.uid, error))
            case WritePlan(gang, plan):
                error = error or self._write_plan(gang, plan)
                self.inbox.append(events.PlanDone(gang.namespace, gang.name, error))
            case Nominate(pod, node):
                if not error and pod.uid in self.pods:
                    self.set_pod(msgspec.structs.replace(self.pods[pod.uid], nominated=node))
            case Evict(pod, reason):
                if not error and pod.uid in self.pods:
                    self._evict(self.pods[pod.uid], reason)
                self.inbox.append(events.EvictDone(pod.uid, error))
            case Report():
                pass
        return error

    def _bind(self, pod: Pod, node: str, assignment: PodGpuAssignment) -> str:
        here = self.pods.get(pod.uid)
        if here is None:
            return "not found"
        if here.deleting or here.gated:
            return "the pod is being deleted or gated"
        if here.node:
            return f"already bound to {here.node}"
        now = self.now  # kubelets start pods at once
        self.set_pod(
            msgspec.structs.replace(
                here, node=node, assignment=assignment, bound_at=now, started=here.started or now
            )
        )
        self._note_placed((here.namespace, here.group))
        return ""

    def _note_placed(self, key: tuple[str, str]) -> None:
        """Note on an elastic gang that it was placed once, as the controller does."""
        gang = self.gangs.get(key)
        if gang is None or not gang.elastic_min or gang.placed:
            return
        bound = sum(bool(p.node) and (p.namespace, p.group) == key for p in self.pods.values())
        if bound >= gang.min_member:
            self.declare_exactly(msgspec.structs.replace(gang, placed=True))

    def _evict(self, pod: Pod, reason: str) -> None:
        if not self.graceful:
            self.delete_uid(pod.uid)
            return
        preempted = pod.preempted or reason == PREEMPTED
        self.set_pod(msgspec.structs.replace(pod, deleting=True, preempted=preempted))

    def bind_claim(self, binding: ClaimBinding, node: str) -> str:
        """Bind a claim to its volume, or to one that is made for the node."""
        claim: PersistentVolumeClaim | None = self.objects.get(
            (CLAIMS, binding.namespace, binding.name)
        )
        if claim is None or claim.uid != binding.uid:
            return "the claim is gone"
        key = (claim.namespace, claim.name)
        if binding.volume:
            volume: PersistentVolume | None = self.objects.get((VOLUMES, "", binding.volume))
            if volume is None or volume.claim not in (None, key):
                return f"volume {binding.volume} belongs to another claim by now"
        else:
            here = Term((Requirement("kubernetes.io/hostname", "In", (node,)),))
            volume = PersistentVolume(
                f"for-{claim.uid}",
                claim.storage_class,
                nodes=(here,),
                disk=Disk(self.objects[CLASSES, "", claim.storage_class].provisioner, claim.uid),
            )
        taken = msgspec.structs.replace(volume, claim=key, claim_uid=claim.uid, available=False)
        self.set_object(VOLUMES, taken.name, taken)
        bound = msgspec.structs.replace(claim, volume=taken.name, bound=True)
        self.set_object(CLAIMS, claim.name, bound, claim.namespace)
        return ""

    def _write_plan(self, gang: Gang, plan: _Plan) -> str:
        here = self.gangs.get((gang.namespace, gang.name))
        if here is None:
            return "not found"
        planned = self.now if plan else 0.0
        self.declare_exactly(msgspec.structs.replace(here, plan=plan, planned=planned))
        return ""
