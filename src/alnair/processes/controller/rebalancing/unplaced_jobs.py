"""Training jobs that wait and have no pods yet: a round sees them as if their workers were made.

The operator makes workers only once there is room for the least of them, so no pod says that
somebody waits.
"""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from alnair.elastic.child_names import child_names
from alnair.processes.controller.elastic.demands import Unplaced
from alnair.scheduler.advice.rebalance_round import Round
from alnair.scheduler.engine import events

#: Jobs that a round is told of: the most important, and those that wait longest.
_MOST: Final = 16


def first(jobs: Sequence[Unplaced]) -> list[Unplaced]:
    """Return those that go first."""
    return sorted(jobs, key=lambda one: (-one.pod.priority, one.since, _unit(one)))[:_MOST]


def as_if_made(one: Unplaced) -> list[events.Event]:
    """Return what would have happened had the least of its workers been made when it came."""
    children = child_names(one.job)
    made: list[events.Event] = [events.GangChanged(one.gang)]
    for index in range(one.job.least):
        pod = replace(
            one.pod,
            uid=f"{one.job.uid}-worker-{index}",
            name=children.worker(index),
            group=one.gang.name,
            created=one.since,
        )
        made.append(events.PodChanged(pod))
    return made


def told_of(found: Round, jobs: Sequence[Unplaced]) -> Round:
    """Return a round whose plan is for the job itself, and not for pods that nobody has made."""
    plan = found.plan
    job = next((one.job for one in jobs if plan and _unit(one) == plan.unit), None)
    if plan is None or job is None:
        return found
    name = f"{job.kind} {job.namespace}/{job.name}"
    told = replace(plan, job=job.kind, name=name, pod=(job.namespace, job.name, job.uid))
    return replace(found, plan=told)


def _unit(one: Unplaced) -> str:
    """Return the key of the unit that its workers would be."""
    return f"gang:{one.gang.namespace}/{one.gang.name}"
