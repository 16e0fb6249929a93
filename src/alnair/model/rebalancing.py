"""What the controller's rebalancing does and has done: its bounds, its plan, and its memory.

The memory is one small document in the cluster. It is written before anything is done, so whoever
reads it can go on: after a crash nothing is done twice.
"""

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from alnair.model.plurals import counted

#: waits: its turn has not come; begun: it is to leave, or has left and is not back at work; done: a
#: replacement has a node; gone: it had ended before; refused: it may not be evicted, or its job
#: does not leave; late: it left, and no replacement has a node; spared: nobody needs it any more.
Stage = Literal["waits", "begun", "done", "gone", "refused", "late", "spared"]
_OVER: Final = frozenset(("done", "gone", "refused", "late", "spared"))
#: Moves that are remembered, whatever the spans say: the document must stay small.
_KEPT: Final = 256


class RebalanceBounds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What keeps rebalancing small.

    Attributes:
        every: Seconds between two plans; who has waited for less is not helped.
        moves: Pods that a plan may move.
        at_once: Moves under way at a time; a training job that migrates is one.
        cool_down: Seconds for which a pod or job that has just come to its node stays there, for
            which a unit is not helped again, and no pod goes back to a node that one of its kind
            left.
        gain: GPUs of pods that start for each GPU whose pod is moved, at least.
        timeout: Seconds that a move may take; of a job, for each of its workers.
    """

    every: float
    moves: int = 4
    at_once: int = 1
    cool_down: float = 3600.0
    gain: float = 2.0
    timeout: float = 300.0


class PlannedMove(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that leaves a node.

    Attributes:
        uid: Of the pod.
        kind: What its replacements have in common with it, such as `ReplicaSet/web`.
        source, target: Names of nodes; the target is where the scheduler is expected to put it.
        gang: Namespace and name of its gang; empty if it has none.
        stage: How far it is.
        begun: When, seconds since the epoch.
        owner: Uid of its controller, once begun.
        peers: Pods of that controller that were at work then.
        job: Kind and name of the training job that migrates instead, once begun.
    """

    namespace: str
    name: str
    uid: str
    kind: str
    source: str
    target: str
    gang: str = ""
    stage: Stage = "waits"
    begun: float = 0.0
    owner: str = ""
    peers: int = 0
    job: str = ""

    @property
    def over(self) -> bool:
        """Nothing more is done about it."""
        return self.stage in _OVER

    @property
    def mover(self) -> str:
        """What moves as one: the pod, or its job."""
        return f"{self.namespace}/{self.job}" if self.job else self.uid


class RebalancePlan(msgspec.Struct, frozen=True, kw_only=True):
    """Moves that are carried out in their order, so that a unit of the queue starts.

    Attributes:
        unit: Its key.
        name: What people call it.
        pod: Namespace, name and uid of one of its pods, which waits; of itself if it has none yet.
        gpus: GPUs that are freed for it: whole ones, and one for the slices of each pod.
        at: When it was made, seconds since the epoch.
        nodes: Those that are freed.
        moves: Which.
        asks: What it gets, in words; empty in a plan of an earlier version.
        job: Kind of the training job that waits and has no pods yet; empty where a pod waits.
    """

    unit: str
    name: str
    pod: tuple[str, str, str]
    gpus: int
    at: float
    nodes: tuple[str, ...]
    moves: tuple[PlannedMove, ...]
    asks: str = ""
    job: str = ""

    @property
    def gets(self) -> str:
        """What it gets, for people."""
        return self.asks or counted(self.gpus, "GPU")

    @property
    def broken(self) -> bool:
        """A move failed: those that have not begun never do."""
        return any(move.stage in ("refused", "late") for move in self.moves)

    @property
    def over(self) -> bool:
        """Nothing is under way, and nothing will be."""
        return all(move.over or (self.broken and move.stage == "waits") for move in self.moves)

    @property
    def under_way(self) -> set[str]:
        """What moves now."""
        return {move.mover for move in self.moves if move.stage == "begun"}

    @property
    def cordoned(self) -> set[str]:
        """The nodes that take no pods now: those to be freed, and those that a pod is leaving."""
        leaving = {move.source for move in self.moves if move.stage == "begun"}
        return set() if self.over else {*self.nodes, *leaving}

    @property
    def touched(self) -> set[str]:
        """All nodes that it cordons at some time."""
        return {*self.nodes, *(move.source for move in self.moves)}

    def next_move(self, at_once: int) -> int | None:
        """Return the index of the move that may begin now; None if none may.

        They begin in their order, for a later one may need the room that an earlier one leaves, and
        the members of a gang one after the other, for they work together.
        """
        if self.broken or len(self.under_way) >= at_once:
            return None
        before: list[PlannedMove] = []
        for index, move in enumerate(self.moves):
            if move.stage == "waits":
                waits = any(
                    one.source == move.target or (one.gang and one.gang == move.gang)
                    for one in before
                )
                return None if waits else index
            if move.stage == "begun":
                before.append(move)
        return None

    def replaced(self, changes: dict[int, PlannedMove]) -> "RebalancePlan":
        """Return it with other moves at these indices."""
        moves = tuple(changes.get(index, move) for index, move in enumerate(self.moves))
        return msgspec.structs.replace(self, moves=moves)


class RebalanceMemory(msgspec.Struct, frozen=True, kw_only=True):
    """What must be known to go on: the plan under way, and those before it, the last one last."""

    v: int = 1
    plan: RebalancePlan | None = None
    past: tuple[RebalancePlan, ...] = ()

    def planned_at(self) -> float:
        """Return when the last plan was made; 0 if none was."""
        last = self.plan or (self.past[-1] if self.past else None)
        return last.at if last else 0.0

    def ended(self, bounds: RebalanceBounds, now: float) -> "RebalanceMemory":
        """Return it when the plan is over; what is older than the cool-down is forgotten."""
        every = (*self.past, *([self.plan] if self.plan else ()))
        past = [plan for plan in every if now - plan.at <= bounds.cool_down] or [*every[-1:]]
        while len(past) > 1 and sum(len(plan.moves) for plan in past) > _KEPT:
            past.pop(0)
        return msgspec.structs.replace(self, plan=None, past=tuple(past))


def undone(moves: Sequence[PlannedMove], past: Sequence[RebalancePlan]) -> str:
    """Return which move would undo one of earlier plans; empty if none would.

    One does that brings a pod to a node that a pod of its kind has left.

    Args:
        moves: those that are thought of.
        past: earlier plans.
    """
    left = {
        (one.namespace, one.kind, one.source)
        for plan in past
        for one in plan.moves
        if one.stage not in ("waits", "gone", "refused", "spared")
    }
    for move in moves:
        if (move.namespace, move.kind, move.target) in left:
            return f"{move.namespace}/{move.name} would go back to {move.target}"
    return ""
