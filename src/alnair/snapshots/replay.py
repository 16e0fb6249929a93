"""Decides again on what a snapshot holds, with the code of the live scheduler."""

from collections import deque
from collections.abc import Sequence

import msgspec

from alnair.configuration.profile_assembly import assemble
from alnair.configuration.scheduler_file import Configuration
from alnair.model.action import Action, Bind, Evict, Report, WritePlan
from alnair.model.workload import Pod, PodGpuAssignment
from alnair.scheduler.engine import events
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.engine.view import View
from alnair.snapshots.snapshot import Snapshot, SnapshotError, check_plugins, replay_events

#: Steps without an end would be a mistake of the engine; no snapshot needs so many.
_MOST_STEPS = 1_000_000
_SHOWN_NODES = 5


class DecisionOutcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was decided on a pod.

    Attributes:
        pod: namespace/name.
        node: empty if it was not placed.
        message: why not.
        best: nodes that would do and their scores before the decision, best first; only when one
            pod was asked for.
    """

    pod: str
    node: str = ""
    assignment: PodGpuAssignment = ()
    message: str = ""
    evicted: bool = False
    best: tuple[tuple[str, int], ...] = ()


def replay(snapshot: Snapshot, source: str, pod: str = "") -> list[DecisionOutcome]:
    """Decide on all pods that wait, or on one (`namespace/name`) and its gang alone.

    Every action counts as done, and no time passes.

    Raises:
        ConfigurationError: A plugin of the snapshot's profiles is not there.
        SnapshotError: The pod is not in it, or is not waiting; or a plugin's state is damaged.
    """
    if pod:
        snapshot = _only(snapshot, source, pod)
    assembly = assemble(Configuration(profiles=snapshot.profiles), source)
    profiles = assembly.profiles()
    check_plugins(snapshot, profiles, source)
    engine = Engine(profiles, seed=snapshot.seed)
    engine.learn(list(replay_events(snapshot)), snapshot.time)
    best = _best(engine.view, pod) if pod else ()
    outcomes: dict[str, DecisionOutcome] = {}
    inbox: deque[events.Event] = deque()
    for _ in range(_MOST_STEPS):
        batch, inbox = inbox, deque()
        actions = engine.step(list(batch), snapshot.time)
        for action in actions:
            inbox.extend(_answer(action))
            _note(action, outcomes)
        due = engine.next_wake(snapshot.time)
        if not inbox and (due is None or due > snapshot.time):
            break
    found = list(outcomes.values())
    return [msgspec.structs.replace(o, best=best if o.pod == pod else ()) for o in found]


def _only(snapshot: Snapshot, source: str, name: str) -> Snapshot:
    """Return the snapshot without other pods that wait."""
    found = [p for p in snapshot.pods if f"{p.namespace}/{p.name}" == name]
    if not found:
        raise SnapshotError(f"{source} has no pod {name}: write it as namespace/name")
    wanted = found[0]
    if wanted.node:
        raise SnapshotError(
            f"pod {name} of {source} is on {wanted.node} already: a replay decides on pods that"
            " wait"
        )
    return msgspec.structs.replace(
        snapshot, pods=tuple(p for p in snapshot.pods if p.node or _together(p, wanted))
    )


def _together(pod: Pod, wanted: Pod) -> bool:
    if pod.uid == wanted.uid:
        return True
    return bool(wanted.group) and (pod.namespace, pod.group) == (wanted.namespace, wanted.group)


def _best(view: View, name: str) -> tuple[tuple[str, int], ...]:
    """Return the nodes with the highest scores for a pod."""
    record = next(r for r in view.pods.values() if f"{r.pod.namespace}/{r.pod.name}" == name)
    profile = view.profiles.get(record.pod.scheduler)
    if profile is None or (evaluation := view.evaluate(record.spec, profile)).refusal is not None:
        return ()
    rows = evaluation.rank.argsort()[::-1][:_SHOWN_NODES]
    return tuple(
        (node.name, evaluation.score(row))
        for row in rows
        if evaluation.rank[row] >= 0 and (node := view.cluster.columns.nodes[row]) is not None
    )


def _answer(action: Action) -> Sequence[events.Event]:
    match action:
        case Bind(pod):
            return [events.BindDone(pod.uid)]
        case WritePlan(gang):
            return [events.PlanDone(gang.namespace, gang.name)]
        case Evict(pod):
            return [events.EvictDone(pod.uid), events.PodGone(pod.uid)]
    return []


def _note(action: Action, outcomes: dict[str, DecisionOutcome]) -> None:
    match action:
        case Bind(pod, node, assignment):
            name = f"{pod.namespace}/{pod.name}"
            outcomes[pod.uid] = DecisionOutcome(name, node, assignment)
        case Evict(pod, _, message):
            name = f"{pod.namespace}/{pod.name}"
            outcomes[pod.uid] = DecisionOutcome(name, message=message, evicted=True)
        case Report(pod, "FailedScheduling", message):
            name = f"{pod.namespace}/{pod.name}"
            outcomes[pod.uid] = DecisionOutcome(name, message=message)
