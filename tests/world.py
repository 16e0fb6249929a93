"""A tiny API server of values: it holds pods, nodes and gangs, and carries out an engine's actions.

What an action changes reaches the engine as events, in the order of the changes; answers come on
their own. By default everything arrives at once; `hold` keeps requests or changes back.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

import invariants
from alnair.model import names
from alnair.model.action import PREEMPTED, Action, Bind, Evict, Nominate, Report, WritePlan
from alnair.model.cluster import Node
from alnair.model.disruption import DisruptionBudget
from alnair.model.volumes import Claim, ClaimBinding, Disk, PersistentVolume
from alnair.model.workload import Assignment, Gang, Pod, Requirement, Term
from alnair.scheduler import events
from alnair.scheduler.budgets import KIND as BUDGETS
from alnair.scheduler.claims import CLAIMS, CLASSES, VOLUMES
from alnair.scheduler.engine import Engine
from alnair.scheduler.profiles import profiles

OURS = frozenset(p.scheduler for p in profiles())


class World:
    """The cluster as the API server has it, and one engine that schedules on it."""

    def __init__(self, *nodes: Node, seed: int = 0, check: bool = True) -> None:
        self.now = 1000.0
        self.seed = seed
        self.check = check
        #: Evicted pods stay until `delete` ends them, as if they took their time to terminate.
        self.graceful = False
        self.pods: dict[str, Pod] = {}
        self.nodes: dict[str, Node] = {}
        self.gangs: dict[tuple[str, str], Gang] = {}
        #: Other objects by kind, namespace and name.
        self.objects: dict[tuple[str, str, str], Any] = {}
        #: Changes and answers that the engine has not been told.
        self.inbox: deque[events.Event] = deque()
        #: Actions that are not carried out yet.
        self.outbox: deque[Action] = deque()
        self.log: list[Action] = []
        self.reports: list[Report] = []
        self.bound: Counter[str] = Counter()
        #: Returns an error for an action that must fail; empty text = let it succeed.
        self.fault: Callable[[Action], str] = lambda action: ""
        self.engine = self._new_engine()
        for node in nodes:
            self.put(node)

    # --- what happens in the cluster --------------------------------------------------------------

    def put(self, node: Node) -> None:
        """Add or change a node."""
        self.nodes[node.name] = node
        self.inbox.append(events.NodeChanged(node))

    def remove(self, name: str) -> None:
        """Delete a node; its pods stay."""
        del self.nodes[name]
        self.inbox.append(events.NodeGone(name))

    def create(self, *pods: Pod) -> None:
        """Create pods."""
        for pod in pods:
            assert pod.uid not in self.pods
            self._set(pod)

    def update(self, name: str, **changes: object) -> None:
        """Change fields of a pod."""
        self._set(msgspec.structs.replace(self.pod(name), **changes))

    def delete(self, name: str) -> None:
        """Delete a pod; it is gone at once."""
        uid = self.pod(name).uid
        del self.pods[uid]
        self.inbox.append(events.PodGone(uid))

    def declare(self, gang: Gang) -> None:
        """Create or change a PodGroup; the plan annotation stays."""
        old = self.gangs.get((gang.namespace, gang.name))
        if old is not None and not gang.plan:
            gang = msgspec.structs.replace(gang, plan=old.plan, planned=old.planned)
        self.gangs[gang.namespace, gang.name] = gang
        self.inbox.append(events.GangChanged(gang))

    def budget(self, budget: DisruptionBudget) -> None:
        """Create or change a disruption budget."""
        self.set_object(BUDGETS, budget.name, budget, budget.namespace)

    def evicted(self) -> set[str]:
        """Return the names of pods that the engine evicted."""
        return {a.pod.name for a in self.log if isinstance(a, Evict)}

    def undeclare(self, name: str, namespace: str = "default") -> None:
        """Delete a PodGroup."""
        del self.gangs[namespace, name]
        self.inbox.append(events.GangGone(namespace, name))

    def set_object(self, kind: str, name: str, value: Any, namespace: str = "") -> None:
        """Create or change an object of another kind."""
        self.objects[kind, namespace, name] = value
        self.inbox.append(events.ObjectChanged(kind, namespace, name, value))

    def drop_object(self, kind: str, name: str, namespace: str = "") -> None:
        """Delete an object of another kind."""
        del self.objects[kind, namespace, name]
        self.inbox.append(events.ObjectGone(kind, namespace, name))

    def pod(self, name: str, namespace: str = "default") -> Pod:
        """Return a pod as it is now."""
        return next(p for p in self.pods.values() if (p.namespace, p.name) == (namespace, name))

    def where(self, *names_: str) -> list[str]:
        """Return the nodes of pods, empty where there is none."""
        return [self.pod(name).node for name in names_]

    def placed(self) -> set[str]:
        """Return the names of our pods that have a node."""
        return {p.name for p in self.pods.values() if p.node and p.scheduler in OURS}

    def foreign(self, pod: Pod, node: str) -> None:
        """Let another scheduler create and bind a pod."""
        self._set(
            msgspec.structs.replace(
                pod, scheduler="default-scheduler", node=node, bound_at=self.now
            )
        )

    # --- the engine -------------------------------------------------------------------------------

    def step(self, limit: int = 64, deliver: int | None = None) -> list[Action]:
        """Tell the engine what is new (so many changes, or all), and queue what it decides."""
        count = len(self.inbox) if deliver is None else min(deliver, len(self.inbox))
        batch = [self.inbox.popleft() for _ in range(count)]
        actions = self.engine.step(batch, self.now, limit)
        self.outbox.extend(a for a in actions if not isinstance(a, Report))
        self.reports.extend(a for a in actions if isinstance(a, Report))
        self.log.extend(actions)
        if self.check:
            invariants.check(self.engine)
        return actions

    def carry_out(self, which: int = 0) -> None:
        """Carry out one queued action; its changes and its answer go to the inbox."""
        action = self.outbox[which]
        del self.outbox[which]
        error = self.fault(action)
        match action:
            case Bind(pod, node, assignment, bindings):
                for claim in bindings:
                    error = error or self.bind_claim(claim, node)
                error = error or self._bind(pod, node, assignment)
                self.inbox.append(events.BindDone(pod.uid, error))
            case WritePlan(gang, plan):
                error = error or self._write_plan(gang, plan)
                self.inbox.append(events.PlanDone(gang.namespace, gang.name, error))
            case Nominate(pod, node):
                if not error and pod.uid in self.pods:
                    self._set(msgspec.structs.replace(self.pods[pod.uid], nominated=node))
            case Evict(pod, reason):
                if not error and pod.uid in self.pods:
                    if self.graceful:
                        going = self.pods[pod.uid]
                        preempted = going.preempted or reason == PREEMPTED
                        self._set(
                            msgspec.structs.replace(going, deleting=True, preempted=preempted)
                        )
                    else:
                        self.delete_uid(pod.uid)
                self.inbox.append(events.EvictDone(pod.uid, error))

    def settle(self, seconds: float = 120.0) -> None:
        """Run until nothing happens any more for this long, jumping over idle time."""
        until = self.now + seconds
        for _ in range(100_000):
            self.step()
            while self.outbox:
                self.carry_out()
            if self.inbox:
                continue
            wake = self.engine.next_wake(self.now)
            if wake is None or wake > until:
                return
            self.now = max(self.now, wake)
        raise AssertionError("the engine never comes to rest")

    def crash(self, done: Iterable[int] = ()) -> None:
        """Kill the engine: of the requests under way these are done, the others are lost."""
        requests, self.outbox = list(self.outbox), deque()
        chosen = set(done)
        for number, action in enumerate(requests):
            if number in chosen:
                self.outbox.append(action)
                self.carry_out()
        self.restart()

    def restart(self) -> None:
        """Start a new engine from what the API server has."""
        self.inbox.clear()
        self.outbox.clear()
        self.engine = self._new_engine()
        known: list[events.Event] = [
            *map(events.NodeChanged, self.nodes.values()),
            *(events.ObjectChanged(*key, value) for key, value in self.objects.items()),
            *map(events.GangChanged, self.gangs.values()),
            *map(events.PodChanged, self.pods.values()),
        ]
        half = len(known) // 2
        self.engine.learn(known[:half], self.now)
        self.engine.learn(known[half:], self.now)

    # --- carrying out -----------------------------------------------------------------------------

    def _new_engine(self) -> Engine:
        return Engine(profiles(), seed=self.seed)

    def _set(self, pod: Pod) -> None:
        self.pods[pod.uid] = pod
        self.inbox.append(events.PodChanged(pod))

    def delete_uid(self, uid: str) -> None:
        del self.pods[uid]
        self.inbox.append(events.PodGone(uid))

    def _bind(self, pod: Pod, node: str, assignment: Assignment) -> str:
        here = self.pods.get(pod.uid)
        if here is None:
            return "not found"
        if here.deleting or here.gated:
            return "the pod is being deleted or gated"
        if here.node:
            return f"already bound to {here.node}"
        self.bound[pod.uid] += 1
        assert self.bound[pod.uid] == 1, f"{pod.name} is bound twice"
        self._set(
            msgspec.structs.replace(here, node=node, assignment=assignment, bound_at=self.now)
        )
        return ""

    def bind_claim(self, binding: ClaimBinding, node: str) -> str:
        """Bind a claim to its volume, or to one that is made for the node."""
        claim: Claim | None = self.objects.get((CLAIMS, binding.namespace, binding.name))
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

    def _write_plan(self, gang: Gang, plan: dict[str, tuple[str, dict[str, list[int]]]]) -> str:
        here = self.gangs.get((gang.namespace, gang.name))
        if here is None:
            return "not found"
        planned = self.now if plan else 0.0
        self.declare_exactly(msgspec.structs.replace(here, plan=plan, planned=planned))
        return ""

    def declare_exactly(self, gang: Gang) -> None:
        self.gangs[gang.namespace, gang.name] = gang
        self.inbox.append(events.GangChanged(gang))

    # --- what must hold ---------------------------------------------------------------------------

    def check_room(self, *, ours_only: bool = True) -> None:
        """Fail if a node or GPU is over-committed; nodes with foreign pods may be left out."""
        for node in self.nodes.values():
            here = [p for p in self.pods.values() if p.node == node.name and not p.finished]
            if ours_only and any(p.scheduler not in OURS for p in here):
                continue
            used: Counter[str] = Counter()
            for pod in here:
                used.update(dict(pod.spec.requests))
            for name, amount in used.items():
                assert amount <= node.allocatable.get(name, 0), (node.name, name, amount)
            self._check_gpus(node, here)

    def _check_gpus(self, node: Node, here: list[Pod]) -> None:
        memory: Counter[str] = Counter()
        compute: Counter[str] = Counter()
        hard: Counter[str] = Counter()
        whole: Counter[str] = Counter()
        for pod in here:
            demand = pod.spec.gpu
            if demand is None:
                continue
            shares = [s for _, parts in pod.assignment for s in parts]
            owned = {s.uuid for s in shares if s.whole}
            sliced = {s.uuid for s in shares if not s.whole}
            if node.gpus:
                assert len(owned) == demand.whole, f"{pod.name} has {owned}"
                assert len(sliced) == bool(demand.memory_mib), f"{pod.name} has {sliced}"
            whole.update(owned)
            for uuid in sliced:
                memory[uuid] += demand.memory_mib
                compute[uuid] += demand.compute
                hard[uuid] += demand.compute if demand.hard else 0
        promised = node.allocatable.get(names.VGPU_COMPUTE, 0)
        for gpu in node.gpus:
            most = round(promised / len(node.gpus))
            assert whole[gpu.uuid] <= 1
            assert not (whole[gpu.uuid] and memory[gpu.uuid]), f"{gpu.uuid} is whole and shared"
            assert memory[gpu.uuid] <= gpu.memory_mib
            assert hard[gpu.uuid] <= 100
            assert compute[gpu.uuid] <= most

    def check_gangs(self) -> None:
        """Fail if a gang is there in part."""
        for gang in self.gangs.values():
            here = [
                p
                for p in self.pods.values()
                if (p.namespace, p.group) == (gang.namespace, gang.name)
            ]
            running = [p for p in here if p.node]
            assert not running or len(running) >= gang.min_member, f"{gang.name} is partial"
