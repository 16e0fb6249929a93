"""The placement benchmark: pods arrive one at a time, never leave, and go away if none has room.

Protocol: Weng et al., USENIX ATC'23, as their simulator carries it out. Each pod is put to the
production engine once; if it finds no node the pod is deleted at once: no retry, no preemption, no
backfill. After every arrival, a = GPUs that arrived so far / capacity and u = GPUs allocated /
capacity; the value at x % is the mean of u over the arrivals whose a rounds to x %.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence

import msgspec

from alnair.model.action import Action, Bind
from alnair.scheduler.engine import events
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.framework.extension_points import Profile
from alnair.scheduler.published.fragmentation import WorkloadClass
from alnair.sim.placement import trace_values
from alnair.sim.placement.gpu_ledger import NodeLedger
from alnair.traces.arrivals import Arrival, capacity
from alnair.traces.openb import TraceNode


class TracePlacement(msgspec.Struct, frozen=True, gc=False):
    """Where a pod went: its node and GPUs there; no node = it found none."""

    pod: str
    node: str = ""
    gpus: tuple[int, ...] = ()


class Level(msgspec.Struct, gc=False):
    """Means over the arrivals at one percentage of the capacity.

    Attributes:
        arrived_pct: rounded percent of the capacity that had arrived.
        arrivals: how many.
        unallocated_pct: percent of the capacity that was allocated to nobody.
        frag_pct: F as percent of the capacity.
        failed: pods without a node so far, at the last of the arrivals.
    """

    arrived_pct: int
    arrivals: int = 0
    unallocated_pct: float = 0.0
    frag_pct: float = 0.0
    failed: int = 0


class Run(msgspec.Struct, frozen=True):
    """What came of it.

    Attributes:
        levels: by percent arrived, ascending.
        decisions: one per arrival, in their order.
        seconds: that the engine took for each, all that it does between hearing of the pod and
            saying where it goes.
    """

    capacity: int
    levels: tuple[Level, ...]
    decisions: tuple[TracePlacement, ...]
    seconds: tuple[float, ...]

    @property
    def failed(self) -> int:
        """Pods that found no node."""
        return sum(not d.node for d in self.decisions)

    @property
    def digest(self) -> str:
        """A number that is the same just if every decision is."""
        text = "".join(f"{d.pod} {d.node} {d.gpus}\n" for d in self.decisions)
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    def at(self, percent: int) -> Level | None:
        """Return the level; None if no arrival was there."""
        return next((level for level in self.levels if level.arrived_pct == percent), None)


def run(
    nodes: Sequence[TraceNode],
    arrivals: Sequence[Arrival],
    profile: Profile,
    workload: Sequence[WorkloadClass],
    *,
    order: Sequence[str],
    timer: Callable[[], float],
    progress: Callable[[int], None] = lambda done: None,
) -> Run:
    """Place the arrivals one after another.

    Args:
        nodes: of the trace.
        arrivals: in their order.
        profile: that places them.
        workload: that F is about; only the figures depend on it.
        order: names of the nodes; the first wins ties.
        timer: seconds from anywhere.
        progress: called now and then with the number of arrivals so far.
    """
    ledger = NodeLedger(nodes, workload)
    total = capacity(nodes)
    levels: dict[int, Level] = {}
    decisions: list[TracePlacement] = []
    seconds: list[float] = []
    arrived = failed = 0
    for arrival, placed, took in _decisions(nodes, arrivals, profile, order, timer):
        if placed.node:
            ledger.take(arrival.pod, placed.node, placed.gpus)
        else:
            failed += 1
        decisions.append(placed)
        seconds.append(took)
        arrived += arrival.pod.demand
        if total:
            percent = (200 * arrived + total) // (2 * total)  # halves up, as Go rounds
            level = levels.setdefault(percent, Level(percent))
            level.arrivals += 1
            level.unallocated_pct += 100.0 - 100.0 * ledger.allocated / total
            level.frag_pct += 100.0 * ledger.fragmented / total
            level.failed = failed
        if len(decisions) % 100 == 0:
            progress(len(decisions))
    for level in levels.values():
        level.unallocated_pct /= level.arrivals
        level.frag_pct /= level.arrivals
    progress(len(decisions))
    return Run(total, tuple(levels.values()), tuple(decisions), tuple(seconds))


def _decisions(
    nodes: Sequence[TraceNode],
    arrivals: Sequence[Arrival],
    profile: Profile,
    order: Sequence[str],
    timer: Callable[[], float],
) -> Iterator[tuple[Arrival, TracePlacement, float]]:
    """Yield where each arrival goes, and the seconds that the engine took for it."""
    engine = Engine([profile], order=order, patience=None)
    engine.learn([events.NodeChanged(trace_values.node(n)) for n in nodes], 0.0)
    pods = trace_values.TracePodMaker(profile.scheduler)
    answers: list[events.Event] = []
    for number, arrival in enumerate(arrivals):
        pod = pods.of(arrival, float(number))
        # What became of the pod before is heard together with the next one.
        batch = [*answers, events.PodChanged(pod)]
        begin = timer()
        actions = engine.step(batch, float(number), limit=1)
        took = timer() - begin
        placed, answer = _outcome(pod.uid, actions)
        answers = [answer]
        yield arrival, placed, took


def _outcome(uid: str, actions: Sequence[Action]) -> tuple[TracePlacement, events.Event]:
    for action in actions:
        if isinstance(action, Bind):
            gpus = tuple(share.index for _, parts in action.assignment for share in parts)
            return TracePlacement(uid, action.node, gpus), events.BindDone(uid)
    return TracePlacement(uid), events.PodGone(uid)
