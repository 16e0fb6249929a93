"""Where a gang goes: all that must start together in one part of the cluster, on one statement."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np

from alnair.model.workload import GangTopology, Planned
from alnair.scheduler.gangs.gang_refusal import too_few
from alnair.scheduler.gangs.gangs import GangState
from alnair.scheduler.placement.admission import Admission
from alnair.scheduler.placement.context import EngineContext
from alnair.scheduler.placement.statement import Statement
from alnair.scheduler.placement.topology_domains import Codes, Demand, Region, lack_of_room, regions
from alnair.scheduler.queue.unit import ClassKey
from alnair.scheduler.state.accounts import Record
from alnair.scheduler.state.capacity import capacity
from alnair.scheduler.state.gpus.gpu_assignment import planned_bookings

#: A pod that found no place, and why.
Left = tuple[Record, str]


class GangOutcome(msgspec.Struct, frozen=True):
    """What became of a try: who found no place, and why nobody did (empty if some did)."""

    left: list[Left]
    refusal: str = ""


class GangPlacement:
    """One try to place pods of a gang.

    Args:
        context: what to decide from.
        admission: what holds pods back besides their nodes.
        state: the gang.
        pods: those to place, in their order.
        now: seconds since the epoch.

    Attributes:
        statement: what was placed.
    """

    def __init__(
        self,
        context: EngineContext,
        admission: Admission,
        state: GangState,
        pods: Sequence[Record],
        now: float,
    ) -> None:
        self._context = context
        self._admission = admission
        self._state = state
        self._pods = pods
        self._now = now
        self._topology = topology_of(state, pods)
        self.statement = Statement(context.accounts, context.evaluations, now)

    def place(self, lacking: int, plan: Mapping[str, Planned]) -> GangOutcome:
        """Place so many of the pods or none, and then as many more as fit.

        Args:
            lacking: how many must be placed together.
            plan: where members go that a leader before us meant to place.
        """
        left: list[Left] = [(r, "") for r in self._pods if not self._as_planned(r, plan)]
        needed = lacking - len(self.statement.placed)
        if needed > 0:
            left, refusal = self._together(left, needed)
            if refusal:
                self.statement.rollback()
                return GangOutcome(left, refusal)
        if left and (needed <= 0 or self._topology is not None):
            left = self._near(left)
        return GangOutcome(left, "" if self.statement.placed else left[0][1])

    def _together(self, pods: list[Left], needed: int) -> tuple[list[Left], str]:
        """Place so many pods in one region; returns who is left, and why it cannot be done."""
        demands = self._demands(pods)
        before = len(self.statement.placed)
        refusal: tuple[list[Left], str] | None = None
        for region in self._regions(demands, needed):
            left = self._within(pods, region)
            here = len(self.statement.placed) - before
            if here >= needed:
                return left, ""
            self.statement.rollback(before)
            # Of several regions, the best one tells most; of all, the whole cluster.
            if refusal is None or region.rows is None:
                refusal = left, self._too_few(left, here, needed)
        if refusal is None:
            assert self._topology is not None  # else the whole cluster was tried
            required = self._topology.required
            room, text = lack_of_room(self._context.accounts.columns, required, demands, needed)
            text = too_few(self._state.key, room, needed, text)
            refusal = [(record, text) for record, _ in pods], text
        return refusal

    def _near(self, pods: list[Left]) -> list[Left]:
        """Place pods one by one, as near to the gang's others as each can be."""
        for region in self._regions(self._demands(pods), 0):
            pods = self._within(pods, region)
            if not pods:
                break
        required = self._topology.required if self._topology else ""
        return [(r, text or f"no domain of {required} has room for it") for r, text in pods]

    def _home(self) -> list[int]:
        """Return the rows on which pods of the gang are."""
        return [r.row for r in self._state.placed() if r.row >= 0]

    def _regions(self, demands: list[Demand], needed: int) -> Iterator[Region]:
        home = self._home()
        if self._topology is None and not home:
            return iter((Region("", None),))
        return regions(self._context.accounts.columns, self._topology, home, demands, needed)

    def _demands(self, pods: list[Left]) -> list[Demand]:
        """Return the pods by class, with what each row could take; needed to choose among rows."""
        if self._topology is None:
            return []
        classes: dict[ClassKey, list[Record]] = {}
        for record, _ in pods:
            if not record.pod.problem:
                classes.setdefault(record.key, []).append(record)
        found = []
        cluster = self._context.accounts.cluster
        for (scheduler, spec), records in classes.items():
            evaluation = self._context.evaluations.of(spec, self._context.profiles[scheduler])
            room = np.zeros(cluster.columns.n)
            if evaluation.refusal is None:
                rows = np.flatnonzero(evaluation.possible())
                if (allowed := self._allowed(records[0])) is not None:
                    rows = np.intersect1d(rows, allowed, assume_unique=True)
                room[rows] = np.minimum(capacity(spec, cluster, rows), len(records))
            found.append(Demand(len(records), room))
        return found

    def _allowed(self, record: Record) -> Codes | None:
        """Return the rows that are not kept for units before this one; None for all."""
        mask = self._admission.allowed(self._state.unit, record, self._now)
        return None if mask is None else np.flatnonzero(mask)

    def _within(self, pods: list[Left], region: Region) -> list[Left]:
        """Place pods in a region; returns who found no place there, and why."""
        refused: dict[tuple[ClassKey, bool], tuple[str, tuple[str, ...]]] = {}
        left = []
        for record, _ in pods:
            record.refused_by = ()
            message = record.pod.problem or self._admission.refuse([record])
            if not message:
                message = self._place(record, region, refused)
            if message:
                left.append((record, message))
        return left

    def _place(
        self,
        record: Record,
        region: Region,
        refused: dict[tuple[ClassKey, bool], tuple[str, tuple[str, ...]]],
    ) -> str:
        """Place one pod; returns why not, or an empty text."""
        allowed = self._allowed(record)
        key = record.key, allowed is None
        if key not in refused:
            rows = region.rows
            if allowed is not None:
                rows = allowed if rows is None else np.intersect1d(rows, allowed)
            profile = self._context.profiles[record.pod.scheduler]
            evaluation = self.statement.place(record, profile, rows)
            if evaluation is None:
                return ""
            where = f"in {region.name}: " if region.name else ""
            text = self._admission.why(evaluation, allowed)
            refused[key] = where + text, evaluation.refused_by()
        message, record.refused_by = refused[key]
        return message

    def _as_planned(self, record: Record, plan: Mapping[str, Planned]) -> bool:
        """Place a pod where a plan says; returns whether that could be done."""
        planned = plan.get(record.pod.name)
        if planned is None or record.pod.problem or self._admission.refuse([record]):
            return False
        node, indices = planned
        accounts = self._context.accounts
        row = accounts.columns.row_of.get(node)
        if row is None:
            return False
        bookings = None  # to be chosen, if the plan names no GPUs
        demand = record.pod.spec.gpu
        if demand is not None and indices:
            bookings = planned_bookings(demand, indices, accounts.devices.gpus[row])
            if bookings is None:
                return False
        profile = self._context.profiles[record.pod.scheduler]
        return self.statement.place_on(record, profile, node, bookings)

    def _too_few(self, left: list[Left], placed: int, needed: int) -> str:
        record, message = left[0]
        if needed == 1:
            return message
        return too_few(self._state.key, placed, needed, f"for {record.pod.name}: {message}")


def topology_of(state: GangState, pods: Sequence[Record]) -> GangTopology | None:
    """Return what the gang asks for: the PodGroup's own word, or else that of its first pod.

    Pods that must be near others (mostly each other) ask for a domain too: the one that the first
    of them happens to choose may have no room for all.
    """
    if state.gang is not None and state.gang.topology is not None:
        return state.gang.topology
    own = next((r.pod.topology for r in pods if r.pod.topology is not None), None)
    if own is not None:
        return own
    affinities = {r.spec.pod_affinity for r in pods} - {None}
    keys = {t.topology_key for a in affinities if a is not None for t in a.required}
    return GangTopology(preferred=tuple(sorted(keys))) if keys else None
