"""A cluster simulated onward: an engine, an API server of values, controllers, and a clock.

Running pods end by their time limits; nobody submits anything that the question does not.
"""

import heapq
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from alnair.model import names
from alnair.model.action import Action, Bind, Evict, Report
from alnair.model.workload import Pod, PodGpuAssignment
from alnair.scheduler.engine import events
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.framework.extension_points import Profile
from alnair.sim.virtual_api import GRACE, VirtualApi
from alnair.sim.whatif import budgets

#: Seconds without a decision after which waiting alone is taken to change nothing any more.
_PATIENCE: Final = 900.0
#: Part of the time since the begin within which pods are taken to end together.
_AT_ONCE: Final = 0.02
#: Decisions in one moment without an end would be a mistake of the engine.
_MOST_STEPS: Final = 1_000_000


class PodPlacement(msgspec.Struct, frozen=True):
    """The node that a pod got, its GPUs there, and when (seconds since the epoch)."""

    node: str
    assignment: PodGpuAssignment
    time: float


class Lookahead:
    """A cluster that goes on from what is known of it.

    Args:
        known: all that exists.
        profiles: of the scheduler.
        now: seconds since the epoch.
        seed: of the engine.

    Attributes:
        placed: by uid, the pods that got a node on the way.
        messages: by uid, why a pod was last refused.
        evicted: by uid, pods that the scheduler evicted, as they were, and why.
        successor: by uid of a pod that went, the one that replaces it.
        overdue: pods that run longer than their time limit says; they are taken not to end.
    """

    def __init__(
        self,
        known: Sequence[events.Event],
        profiles: Iterable[Profile],
        *,
        now: float,
        seed: int = 0,
    ) -> None:
        self._begin = now
        self.api = VirtualApi(now)
        self.engine = Engine(profiles, seed=seed)
        self.placed: dict[str, PodPlacement] = {}
        self.messages: dict[str, str] = {}
        self.evicted: dict[str, tuple[Pod, str]] = {}
        self.successor: dict[str, str] = {}
        self.overdue: list[Pod] = []
        self._ends: list[tuple[float, str]] = []
        #: Replacements that wait, and count as disrupted until they are placed.
        self._disrupted: set[str] = set()
        for event in known:
            self._take(event)
        self.api.inbox.clear()
        self.engine.learn(list(known), now)

    @property
    def now(self) -> float:
        """Seconds since the epoch."""
        return self.api.now

    @property
    def limited(self) -> int:
        """How many running pods are known to end, by their time limits."""
        return sum(not self.api.pods[uid].deleting for _, uid in self._ends if uid in self.api.pods)

    def run(self, until: float, is_over: Callable[[], bool] = lambda: False) -> None:
        """Go on to this time, or to where nothing changes any more before it.

        Pods that end within 2 % of the time since the begin after others ended are taken to end
        together, at the end of it: in a large cluster some pod ends every few seconds.

        Args:
            until: seconds since the epoch.
            is_over: whether nobody wants to know what comes; asked after every moment.
        """
        self.settle()
        decided = ended = self.now
        while not is_over():
            together = _AT_ONCE * (self.now - self._begin)
            wake = self.engine.next_wake(self.now) if self.engine.waiting else None
            end = self._ends[0][0] if self._ends else None
            if end is None and self.now > decided + _PATIENCE:
                wake = None
            moment = min(
                math.inf if wake is None else max(wake, self.now + together),
                math.inf if end is None else max(end, ended + together, self.now),
            )
            if moment > until:
                break
            self.api.now = moment
            if self._let_end():
                ended = moment
            if self.settle():
                decided = self.now
        self.api.now = max(self.now, until)

    def settle(self) -> bool:
        """Let the engine decide until it has nothing left to do now; returns whether it acted."""
        acted = False
        for _ in range(_MOST_STEPS):
            batch = list(self.api.inbox)
            self.api.inbox.clear()
            for action in self.engine.step(batch, self.now):
                acted |= not isinstance(action, Report)
                self._carry_out(action)
            due = self.engine.next_wake(self.now)
            if not self.api.inbox and (due is None or due > self.now):
                return acted
        raise AssertionError("the engine never comes to rest")

    def evict(self, pod: Pod) -> Pod | None:
        """Take a pod away; its controller, if it has one, replaces it at once.

        Returns:
            The replacement, of the same name.
        """
        self.api.delete_uid(pod.uid)
        if not pod.owned or pod.finished:
            return None
        uid = f"{pod.uid}+"
        self.successor[pod.uid] = uid
        again = replace(
            self.ours(pod),
            uid=uid,
            created=self.now,
            node="",
            assignment=(),
            bound_at=0.0,
            started=0.0,
            deleting=False,
            preempted=False,
            nominated="",
            idle_since=0.0,
        )
        budgets.change(self.api, pod, -1)
        self._disrupted.add(uid)
        self.api.set_pod(again)
        return again

    def ours(self, pod: Pod) -> Pod:
        """Return the pod as one that our scheduler places: no other one is here."""
        profiles = self.engine.view.profiles
        if pod.scheduler in profiles:
            return pod
        scheduler = names.SCHEDULER if names.SCHEDULER in profiles else next(iter(profiles))
        return replace(pod, scheduler=scheduler)

    def chain(self, uid: str) -> list[str]:
        """Return the uids of a pod and of those that replaced it one after another."""
        found = [uid]
        while uid in self.successor:
            uid = self.successor[uid]
            found.append(uid)
        return found

    def _take(self, event: events.Event) -> None:
        match event:
            case events.NodeChanged(node):
                self.api.put(node)
            case events.ObjectChanged(kind, namespace, name, value):
                self.api.set_object(kind, name, value, namespace)
            case events.GangChanged(gang):
                self.api.declare_exactly(gang)
            case events.PodChanged(pod):
                self.api.set_pod(pod)
                self._note_end(pod)
            case events.AgentAlive() | events.PluginStates():
                pass  # only the engine learns of it
            case _:
                raise ValueError(f"{event} is not about what exists")

    def _note_end(self, pod: Pod) -> None:
        if pod.node and pod.deleting:
            heapq.heappush(self._ends, (self.now + GRACE, pod.uid))
        if not pod.node or pod.deleting or pod.finished or not pod.time_limit:
            return
        since = max(pod.started, pod.bound_at) or self.now
        if since + pod.time_limit <= self.now:
            self.overdue.append(pod)
        else:
            heapq.heappush(self._ends, (since + pod.time_limit, pod.uid))

    def _let_end(self) -> bool:
        ends = False
        while self._ends and self._ends[0][0] <= self.now:
            _, uid = heapq.heappop(self._ends)
            if pod := self.api.pods.get(uid):
                if pod.deleting:  # whatever replaces it is there by now
                    self.api.delete_uid(uid)
                else:
                    self.api.set_pod(replace(pod, finished=True))
                ends = True
        return ends

    def _carry_out(self, action: Action) -> None:
        match action:
            case Evict(pod, reason, message):
                if (here := self.api.pods.get(pod.uid)) is not None:
                    self.evicted[pod.uid] = here, f"{reason}: {message}"
                    self.evict(here)
                self.api.inbox.append(events.EvictDone(pod.uid))
            case Report(pod, "FailedScheduling", message):
                self.messages[pod.uid] = message
            case Bind(pod, node, assignment):
                if not self.api.apply(action):
                    self.placed[pod.uid] = PodPlacement(node, assignment, self.now)
                    self._note_end(self.api.pods[pod.uid])
                    if pod.uid in self._disrupted:
                        self._disrupted.remove(pod.uid)
                        budgets.change(self.api, pod, +1)
            case _:
                self.api.apply(action)
