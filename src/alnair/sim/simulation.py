"""The event-driven simulation: the production engine on a virtual clock.

At each moment at which something happens, all that happens is told to the engine, what it decides
is carried out at once, and what that changes is told to it again, until it rests. Then the clock
jumps to the next moment: an arrival, an end of work, a node's failure or return, or the time at
which the engine asked to be woken. No wall clock, no threads and no randomness other than the seed
take part, so equal inputs give equal decisions (`digest`).

What is modelled and what is not: docs/concepts/simulator.md.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from alnair.history.history import End, History
from alnair.model.action import PREEMPTED, Action, Bind, Evict, Report
from alnair.scheduler.advice.holdings import holdings
from alnair.scheduler.advice.worker_room import worker_room
from alnair.scheduler.engine import events
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.framework.extension_points import Profile
from alnair.scheduler.state.gpus.gpu_loads import SETTLE_SECONDS
from alnair.sim.controller import Controller
from alnair.sim.duration_estimates import Durations, Estimates
from alnair.sim.elastic import ElasticPlan
from alnair.sim.event_queue import Arrives, Ends, EventQueue, Gone, Reports, SimulationEvent
from alnair.sim.interference import SpeedModel
from alnair.sim.jobs import NodeEvent, Scenario
from alnair.sim.recorder import Recorder
from alnair.sim.shared_gpus import Tenancy
from alnair.sim.virtual_api import GRACE, VirtualApi

#: Seconds without a change after which nothing more is expected of an engine that still looks.
_REST: Final = 1800.0
#: Steps at one moment after which the engine is taken to go round in circles.
_MOST_STEPS: Final = 1_000_000


class SimulationOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How to simulate.

    Attributes:
        seed: of the engine's order of nodes.
        order: names of nodes that win ties before all others.
        until: seconds from the begin at which to stop.
        profile: scheduler name of all pods; empty = as they say.
        durations: what the scheduler is told of durations.
        checkpoint: seconds of work between checkpoints of jobs, which bound what an eviction
            costs; 0 = all is lost. Elastic jobs lose nothing.
        grace: seconds from the eviction of a pod to its end.
        loads: agents report what GPUs do, and pods say what they expect to use.
        patience: seconds that a unit waits before nodes are reserved for it; None = never.
    """

    seed: int = 0
    order: tuple[str, ...] = ()
    until: float = math.inf
    profile: str = ""
    durations: Durations = "limit"
    checkpoint: float = 0.0
    grace: float = GRACE
    loads: bool = False
    patience: float | None = 300.0


class Progress(msgspec.Struct, frozen=True):
    """How far a simulation is: seconds since the begin, and of all jobs those so far."""

    time: float
    jobs: int
    submitted: int
    finished: int


class Simulation:
    """A simulation; it can be pickled between any two calls.

    Args:
        scenario: what happens.
        profiles: those of the scheduler.
        options: how.
        interference: how fast jobs run that share a GPU; None = as if alone.
        elastic: how many pods elastic jobs run with; None = as many as they ask for.
        timer: seconds from anywhere, to measure decisions with.
        source: what is simulated, for the history.

    Attributes:
        now: seconds since the epoch.
    """

    def __init__(
        self,
        scenario: Scenario,
        profiles: Iterable[Profile],
        options: SimulationOptions | None = None,
        *,
        interference: SpeedModel | None = None,
        elastic: ElasticPlan | None = None,
        timer: Callable[[], float] | None = None,
        source: str = "",
    ) -> None:
        self.options = options = options or SimulationOptions()
        self.now = self.begin = scenario.begin
        self._stop = scenario.begin + options.until
        self.api = VirtualApi(scenario.begin)
        self.api.graceful = True
        self.engine = Engine(
            profiles,
            seed=options.seed,
            order=options.order,
            timer=timer or _no_time,
            patience=options.patience,
        )
        self._recorder = Recorder(scenario.begin, source)
        self._agenda = EventQueue()
        self._tenancy = Tenancy(interference, self._recorder)
        self._controller = Controller(
            self.api,
            self._agenda,
            self._recorder,
            self._tenancy,
            Estimates(options.durations),
            checkpoint=options.checkpoint,
            profile=options.profile,
            planned=elastic is not None,
            expects=options.loads,
        )
        self._elastic = elastic
        self._jobs = len(scenario.jobs) + len(scenario.running)
        self._wake: float | None = scenario.begin
        self._changed = scenario.begin
        #: Nodes whose agents report soon.
        self._reporting: set[str] = set()
        self._fill(scenario)

    @property
    def digest(self) -> str:
        """Equal for equal decisions at equal times, in hexadecimal."""
        return self._recorder.digest

    @property
    def time(self) -> float:
        """Seconds since the begin."""
        return self.now - self.begin

    @property
    def work(self) -> tuple[float, float]:
        """Seconds of work done for tasks that have finished, and done in vain for any."""
        return self._controller.executed, self._controller.lost

    @property
    def progress(self) -> Progress:
        """How far it is."""
        submitted, finished = self._recorder.counts
        return Progress(self.time, self._jobs, submitted, finished)

    def pods_waiting(self) -> int:
        """Return the number of pods without a node."""
        return self._controller.waiting

    def advance(self, moments: int = 1) -> bool:
        """Simulate up to so many moments at which something happens; returns whether more follow.

        Args:
            moments: to simulate.
        """
        for _ in range(moments):
            when = self._next()
            if when is None or when > self._stop:
                if math.isfinite(self._stop):
                    self.now = max(self.now, self._stop)
                return False
            self.now = self.api.now = when
            for what in self._agenda.take(when):
                self._happen(what)
            self._rest()
        return True

    def run(self) -> History:
        """Simulate to the end."""
        while self.advance(1000):
            pass
        return self.history()

    def history(self) -> History:
        """Return what has happened until now."""
        self._controller.end(self.now)
        self._tenancy.end(self.now)
        return self._recorder.history(self.now)

    # --- what happens -----------------------------------------------------------------------------

    def _fill(self, scenario: Scenario) -> None:
        for node in scenario.nodes:
            self.api.put(node)
            self._recorder.node_up(node, self.now)
        for kind, namespace, name, value in scenario.objects:
            self.api.set_object(kind, name, value, namespace)
        for job in scenario.running:
            self._controller.adopt(job, self.now)
        self._controller.settle(self.now)
        self.api.inbox.clear()
        self.engine.learn(list(self.api.known()), self.now)
        for job in scenario.jobs:
            self._agenda.note(self.begin + job.submitted, Arrives(job))
        for event in scenario.node_events:
            self._agenda.note(self.begin + event.time, event)
        if self.options.loads:
            for node in scenario.nodes:
                self._agenda.note(self.begin, Reports(node.name))

    def _next(self) -> float | None:
        """Return the next moment, None if nothing more will happen."""
        happens, wake = self._agenda.next(), self._wake
        if wake is None or wake == math.inf:
            return happens
        if happens is None and wake > self._changed + _REST:
            return None
        return wake if happens is None else min(happens, wake)

    def _happen(self, what: SimulationEvent) -> None:
        match what:
            case Arrives(job):
                self._controller.submit(job, self.now)
            case Ends(task, version):
                if version == task.version:
                    self._controller.finish(task, self.now)
            case Gone(uid):
                pod = self.api.pods.get(uid)
                how: End = "preempted" if pod is not None and pod.preempted else "evicted"
                self._controller.gone(uid, how, self.now)
            case Reports(node):
                self._report(node)
            case NodeEvent(_, "fails", node):
                self._fail(node.name)
            case NodeEvent(_, _, node):
                self._join(what)
        self._changed = self.now

    def _fail(self, name: str) -> None:
        if name not in self.api.nodes:
            return
        self.api.remove(name)
        self._recorder.node_down(name, self.now)
        for uid in self._controller.on_node(name):
            self._controller.gone(uid, "lost", self.now)

    def _join(self, event: NodeEvent) -> None:
        node = event.node
        is_new = node.name not in self.api.nodes
        self.api.put(node)
        if is_new:
            self._recorder.node_up(node, self.now)
        if self.options.loads:
            self._report(node.name)

    def _report(self, name: str) -> None:
        """Publish what the GPUs of a node do, as its agent does; its lease never ends."""
        self._reporting.discard(name)
        node = self.api.nodes.get(name)
        if node is None or not node.gpus:
            return
        lease = node.agent_lease or f"agent-{name}"
        loads = self._tenancy.loads(node, self.now)
        if [(load.util, load.memory_used_mib) for load in loads] == [
            (load.util, load.memory_used_mib) for load in node.loads
        ]:
            return
        self.api.put(msgspec.structs.replace(node, loads=loads, agent_lease=lease))
        self.api.inbox.append(events.AgentAlive(lease, math.inf))

    # --- the engine -------------------------------------------------------------------------------

    def _rest(self) -> None:
        """Let the engine decide, and carry that out, until it has nothing more to do now."""
        inbox, engine = self.api.inbox, self.engine
        self._controller.settle(self.now)
        for _ in range(_MOST_STEPS):
            batch = list(inbox)
            inbox.clear()
            actions = engine.step(batch, self.now)
            if actions:
                self._recorder.decided(actions, self.now)
                self._carry_out(actions)
                self._controller.settle(self.now)
            if inbox:
                continue
            self._wake = engine.next_wake(self.now)
            if (self._wake is None or self._wake > self.now) and not self._resize():
                break
        else:
            raise RuntimeError(f"the engine does not come to rest at {self.time:.3f} s")
        self._recorder.note_decisions(engine.decision_seconds)
        engine.decision_seconds.clear()
        if self.options.loads:
            for name in self._controller.used:
                if name not in self._reporting:
                    self._reporting.add(name)
                    self._agenda.note(self.now + SETTLE_SECONDS, Reports(name))
        self._controller.used.clear()

    def _carry_out(self, actions: Sequence[Action]) -> None:
        for action in actions:
            error = self.api.apply(action)
            if isinstance(action, Report):
                if action.kind == "FailedScheduling":
                    self._recorder.refused(action.pod.uid, action.message)
                continue
            self._changed = self.now
            if error:
                continue
            if isinstance(action, Bind):
                self._controller.bound(self.api.pods[action.pod.uid], self.now)
            elif isinstance(action, Evict):
                self._evicted(action)

    def _evicted(self, action: Evict) -> None:
        uid = action.pod.uid
        if self.options.grace > 0:
            self._controller.evicted(uid, self.now)
            self._agenda.note(self.now + self.options.grace, Gone(uid))
        else:
            how: End = "preempted" if action.reason == PREEMPTED else "evicted"
            self._controller.gone(uid, how, self.now)

    def _resize(self) -> bool:
        """Ask the elastic plan; returns whether it changed anything."""
        if self._elastic is None or not (jobs := self._controller.elastic()):
            return False
        view = self.engine.view
        templates = {demand.key: template for demand, template in jobs}
        with worker_room(view, templates, self.now, holdings(view).quota) as room:
            plan = self._elastic.plan([demand for demand, _ in jobs], room.cluster(), self.now)
        if plan.again is not None and plan.again > self.now:
            self._wake = min(plan.again, math.inf if self._wake is None else self._wake)
        return self._controller.resize(plan.sizes, self.now)


def _no_time() -> float:
    return 0.0
