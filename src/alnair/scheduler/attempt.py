"""One attempt at a unit: place it whole and say so, or say why not."""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from alnair.model.action import Action, Bind, Report, WritePlan
from alnair.model.workload import Assignment, GpuShare, Planned
from alnair.scheduler.accounts import Accounts, Record
from alnair.scheduler.assignment import assign
from alnair.scheduler.evaluations import Evaluations
from alnair.scheduler.explain import refusal_message
from alnair.scheduler.framework import Profile
from alnair.scheduler.gangs import GangState
from alnair.scheduler.queue import ClassKey, Queue, Unit
from alnair.scheduler.statement import Statement

_NO_DIGITS: Final = str.maketrans("", "", "0123456789")


class Attempts:
    """Tries units; `seconds` collects how long each pod's decision took."""

    def __init__(
        self,
        accounts: Accounts,
        evaluations: Evaluations,
        profiles: Mapping[str, Profile],
        queue: Queue,
        timer: Callable[[], float] | None,
    ) -> None:
        self._accounts = accounts
        self._evaluations = evaluations
        self._profiles = profiles
        self._queue = queue
        self._timer = timer
        self.seconds: list[float] = []

    def pod(self, unit: Unit, record: Record, now: float, actions: list[Action]) -> None:
        """Try a lone pod."""
        start = self._timer() if self._timer else 0.0
        profile = self._profiles[record.pod.scheduler]
        refused = None
        if record.pod.problem:
            message = record.pod.problem
        else:
            refused = Statement(self._accounts, self._evaluations, now).place(record, profile)
            message = refusal_message(refused) if refused else ""
        if message:
            unit.attempts += 1
            self._queue.park(unit, (record.pod.scheduler, record.pod.spec))
            self._refuse(record, message, actions)
        else:
            actions.append(self.bind(record))
        if self._timer:
            self.seconds.append(self._timer() - start)

    def gang(self, state: GangState, now: float, actions: list[Action]) -> None:
        """Try a gang: enough of its pods for `minMember`, and as many more as fit."""
        if state.planning:  # nobody is bound before the plan is written; that event comes soon
            return
        start = self._timer() if self._timer else 0.0
        pods = sorted(
            state.unit.pods.values(), key=lambda r: (-r.pod.priority, r.pod.created, r.pod.name)
        )
        lacking = state.lacking()
        message = self._not_ready(state, len(pods), lacking)
        if message:
            self._wait(state, pods, message, None, actions)
        else:
            self._place_gang(state, pods, lacking, now, actions)
        if self._timer:
            each = (self._timer() - start) / len(pods)
            self.seconds.extend(each for _ in pods)

    def bind(self, record: Record) -> Bind:
        """Return the Binding of a placed pod, with its GPUs."""
        return Bind(record.pod, record.node, self._assignment(record))

    def _not_ready(self, state: GangState, pods: int, lacking: int) -> str:
        namespace, name = state.key
        if state.gang is None:
            return f"PodGroup {namespace}/{name} does not exist: create it, or drop the pod's label"
        if pods < lacking:
            have = state.min_member - lacking + pods
            return (
                f"gang {namespace}/{name} needs {state.min_member} pods and has {have}: "
                f"waiting for {lacking - pods} more"
            )
        return ""

    def _place_gang(
        self,
        state: GangState,
        pods: list[Record],
        lacking: int,
        now: float,
        actions: list[Action],
    ) -> None:
        gang = state.gang
        assert gang is not None
        statement = Statement(self._accounts, self._evaluations, now)
        refused: dict[ClassKey, str] = {}
        # A plan counts only while it is being carried out, by us or by a leader that died over it.
        plan = gang.plan if state.bound() else {}
        left = []
        for record in pods:
            message = self._place_member(statement, record, plan, refused)
            if message:
                left.append((record, message))
        if len(statement.placed) < lacking or not statement.placed:
            placed = len(statement.placed)
            statement.rollback()
            worst = left[0]
            message = worst[1]
            if lacking > 1:
                message = (
                    f"gang {state.key[0]}/{state.key[1]}: {placed} of the {lacking} pods that must start "
                    f"together fit; for {worst[0].pod.name}: {message}"
                )
            # Other classes of the gang may be the ones that a change helps, so any change is worth a try.
            only = (worst[0].pod.scheduler, worst[0].pod.spec)
            classes = {(r.pod.scheduler, r.pod.spec) for r in pods}
            self._wait(state, pods, message, only if len(classes) == 1 else None, actions)
            return
        for record in statement.placed:
            state.unit.pods.pop(record.pod.uid)
        if left:
            key = (left[0][0].pod.scheduler, left[0][0].pod.spec)
            self._queue.park(state.unit, key if len(left) == 1 else None)
            for record, message in left:
                self._refuse(record, message, actions)
        if lacking > 1 and not plan:
            state.planning = True
            new = {r.pod.name: _planned(r, self._assignment(r)) for r in statement.placed}
            actions.append(WritePlan(gang, new))
        else:
            actions.extend(self.bind(r) for r in statement.placed)

    def _place_member(
        self,
        statement: Statement,
        record: Record,
        plan: Mapping[str, Planned],
        refused: dict[ClassKey, str],
    ) -> str:
        """Place one pod of a gang; returns why not, or an empty text."""
        if record.pod.problem:
            return record.pod.problem
        profile = self._profiles[record.pod.scheduler]
        planned = plan.get(record.pod.name)
        if planned and self._place_as_planned(statement, record, planned, profile):
            return ""
        key = (record.pod.scheduler, record.pod.spec)
        if key not in refused:
            evaluation = statement.place(record, profile)
            if evaluation is None:
                return ""
            refused[key] = refusal_message(evaluation)
        return refused[key]

    def _place_as_planned(
        self, statement: Statement, record: Record, planned: Planned, profile: Profile
    ) -> bool:
        node, slots = planned
        pod = record.pod
        row = self._accounts.columns.row_of.get(node)
        if row is None:
            return False
        gpus = {gpu.index: gpu for gpu in self._accounts.devices.gpus[row]}
        demand = pod.spec.gpu
        parts = []
        for request in demand.requests if demand else ():
            indices = slots.get(request.container, [])
            if any(index not in gpus for index in indices):
                return False
            parts.append(
                (
                    request.container,
                    tuple(
                        GpuShare(
                            gpus[i].uuid, i, request.memory_mib, request.compute, request.whole > 0
                        )
                        for i in indices
                    ),
                )
            )
        record.pod = msgspec.structs.replace(pod, assignment=tuple(parts))
        placed = statement.place_on(record, profile, node)
        record.pod = pod
        return placed

    def _wait(
        self,
        state: GangState,
        pods: list[Record],
        message: str,
        class_key: ClassKey | None,
        actions: list[Action],
    ) -> None:
        state.unit.attempts += 1
        self._queue.park(state.unit, class_key)
        for record in pods:
            self._refuse(record, message, actions)

    def _refuse(self, record: Record, message: str, actions: list[Action]) -> None:
        # The counts of a full cluster change with every pod; only a new set of reasons is news.
        gist = message.translate(_NO_DIGITS)
        if record.message != gist:
            record.message = gist
            actions.append(Report(record.pod, "FailedScheduling", message))

    def _assignment(self, record: Record) -> Assignment:
        demand = record.pod.spec.gpu
        if demand is None or not record.bookings:
            return ()
        return assign(demand, record.bookings, self._accounts.devices.gpus[record.row])


def _planned(record: Record, assignment: Assignment) -> Planned:
    return record.node, {name: [share.index for share in shares] for name, shares in assignment}
