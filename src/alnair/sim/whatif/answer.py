"""The answer to a question, as values; its JSON is these structs."""

from typing import Literal

import msgspec

from alnair.scheduler.advice.diagnosis import Change, ChangePair
from alnair.scheduler.advice.rebalance import RebalanceOutcome
from alnair.sim.whatif.changes import Stays
from alnair.sim.whatif.figures import Figures
from alnair.sim.whatif.trainings import WorkersResult

#: Why a pod is looked at: it is new, it waited before and found a place, its node was drained or
#: removed, or the scheduler evicted it for others.
Role = Literal["submitted", "waiting", "drained", "removed", "evicted"]


class PodResult(msgspec.Struct, frozen=True):
    """What becomes of a pod, or of its replacement.

    Attributes:
        pod: `namespace/name`.
        gang: name of its PodGroup, or empty.
        source: the node that it was on, or empty.
        node: where it goes; empty if nowhere within the horizon.
        gpus: indices of its GPUs there.
        after: seconds from now until it has the node; None if it gets none.
        now: it has the node as soon as the scheduler has worked off the changes, before any pod had
            to end for it.
        why: the scheduler's reason why it did not fit at once, or why it was evicted.
        changes: single changes of the pod with which it would fit at once.
        pairs: pairs of changes, if no single one would do.
        note: what else to know.
    """

    pod: str
    role: Role
    gang: str = ""
    source: str = ""
    node: str = ""
    gpus: tuple[int, ...] = ()
    after: float | None = None
    now: bool = False
    why: str = ""
    changes: tuple[Change, ...] = ()
    pairs: tuple[ChangePair, ...] = ()
    note: str = ""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What would happen.

    Attributes:
        time: the moment of the question, seconds since the epoch.
        horizon: seconds that were looked ahead.
        before, after: the cluster as it was, and with the changes worked off.
        fates: of the pods that the question is about, submitted ones first.
        staying: pods that a drain could not evict.
        plan: how GPUs are freed, if that was asked; of the state after the changes.
        moved: the cluster after the plan's moves.
        notes: what the answer rests on.
        workers: with how many workers submitted training jobs would start.
    """

    time: float
    horizon: float
    before: Figures
    after: Figures
    fates: tuple[PodResult, ...] = ()
    staying: tuple[Stays, ...] = ()
    plan: RebalanceOutcome | None = None
    moved: Figures | None = None
    notes: tuple[str, ...] = ()
    workers: tuple[WorkersResult, ...] = ()

    @property
    def satisfied(self) -> bool:
        """Whether all that was asked for can be had: every pod a node, every drain, the plan."""
        found = all(fate.node for fate in self.fates if fate.role != "evicted")
        return found and not self.staying and not (self.plan and self.plan.problem)
