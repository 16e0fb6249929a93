"""An API server of values with an engine, for tests: faults, crashes, and checks at every step.

What an action changes reaches the engine as events, in the order of the changes; answers come on
their own. By default everything arrives at once; `hold` keeps requests or changes back.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence

import msgspec

from alnair.model import names
from alnair.model.action import Action, Bind, Evict, Report
from alnair.model.disruption import DisruptionBudget
from alnair.model.nodes import Node
from alnair.model.workload import Pod
from alnair.scheduler.engine import events
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.framework.extension_points import Profile
from alnair.scheduler.profiles import profiles
from alnair.scheduler.state.disruption_budgets import KIND as BUDGETS
from alnair.sim.virtual_api import VirtualApi
from kit import invariants

OURS = frozenset(p.scheduler for p in profiles())
#: What an engine is told of its own actions: nobody else hears it.
_ANSWERS = events.BindDone | events.PlanDone | events.EvictDone


class World(VirtualApi):
    """The cluster as the API server has it, and one engine that schedules on it.

    Attributes:
        stands_by: Whether another engine learns all the time, and takes over at a restart. Else a
            new one is told what there is.
    """

    stands_by = False

    def __init__(
        self,
        *nodes: Node,
        seed: int = 0,
        order: Sequence[str] = (),
        check: bool = True,
        profiles: Callable[[], tuple[Profile, ...]] = profiles,
    ) -> None:
        super().__init__(now=1000.0)
        self._profiles = profiles
        self.seed = seed
        self.order = order
        self.check = check
        #: Actions that are not carried out yet.
        self.outbox: deque[Action] = deque()
        self.log: list[Action] = []
        self.reports: list[Report] = []
        self.bound: Counter[str] = Counter()
        #: Returns an error for an action that must fail; empty text = let it succeed.
        self.fault: Callable[[Action], str] = lambda action: ""
        self.engine = self._new_engine()
        self._second: Engine | None = None
        for node in nodes:
            self.put(node)

    # --- what happens in the cluster --------------------------------------------------------------

    def create(self, *pods: Pod) -> None:
        """Create pods."""
        for pod in pods:
            assert pod.uid not in self.pods
            self.set_pod(pod)

    def update(self, name: str, **changes: object) -> None:
        """Change fields of a pod."""
        self.set_pod(msgspec.structs.replace(self.pod(name), **changes))

    def delete(self, name: str) -> None:
        """Delete a pod; it is gone at once."""
        self.delete_uid(self.pod(name).uid)

    def budget(self, budget: DisruptionBudget) -> None:
        """Create or change a disruption budget."""
        self.set_object(BUDGETS, budget.name, budget, budget.namespace)

    def drop_object(self, kind: str, name: str, namespace: str = "") -> None:
        """Delete an object that is no node, pod or gang."""
        del self.objects[kind, namespace, name]
        self.inbox.append(events.ObjectGone(kind, namespace, name))

    def evicted(self) -> set[str]:
        """Return the names of pods that the engine evicted."""
        return {a.pod.name for a in self.log if isinstance(a, Evict)}

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
        self.set_pod(
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
        if self.stands_by:
            self._hear(batch)
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
        error = self.apply(action, self.fault(action))
        if isinstance(action, Bind) and not error:
            self.bound[action.pod.uid] += 1
            assert self.bound[action.pod.uid] == 1, f"{action.pod.name} is bound twice"

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
        """Let an engine that has decided nothing yet take over, with what the API server has."""
        self.outbox.clear()
        self.engine = self._hear(self.inbox) if self.stands_by else self._informed()
        self.inbox.clear()
        self._second = self._informed() if self.stands_by else None

    def _informed(self) -> Engine:
        engine = self._new_engine()
        known = list(self.known())
        half = len(known) // 2
        engine.learn(known[:half], self.now)
        engine.learn(known[half:], self.now)
        return engine

    def _hear(self, batch: Iterable[events.Event]) -> Engine:
        """Tell the engine that stands by; the first time there is nothing that it has missed."""
        self._second = self._second or self._new_engine()
        self._second.learn([one for one in batch if not isinstance(one, _ANSWERS)], self.now)
        return self._second

    def _new_engine(self) -> Engine:
        return Engine(self._profiles(), seed=self.seed, order=self.order)

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
                hard[uuid] += demand.compute if not demand.soft else 0
        healthy = sum(not gpu.problem for gpu in node.gpus)
        most = round(node.allocatable.get(names.VGPU_COMPUTE, 0) / (healthy or 1))
        for gpu in node.gpus:
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
