"""Moving the workers of a running job off nodes, with no step lost that was committed.

What is asked for stands in the job's annotation, how far it is in its status and in what there is,
so any pass may be the first. New workers keep away from the nodes first. Then, of Horovod, one
worker after the other: the training is told to do without it, it is evicted after the grace, and
comes back elsewhere under its own number. A job that has none to spare has one more meanwhile,
which goes in the end as in any scaling down. torchrun begins anew with each change of its workers,
so all of them are made anew at once, and go on from the last checkpoint.
"""

from collections.abc import Sequence

import msgspec

from alnair.elastic import horovod
from alnair.elastic.observed import Observed, Worker
from alnair.model.elastic_types import MigrationStatus
from alnair.model.training_job import TrainingJob


class Moves(msgspec.Struct, frozen=True, kw_only=True):
    """What a migration does in one pass.

    Attributes:
        size: Workers that there shall be meanwhile.
        held: Numbers of workers that the training is not told of any more.
        retemplate: New workers are to keep away from other nodes than they do.
        evict: Workers that go, and come back elsewhere.
        anew: All workers are made anew.
        waits: None is made before the last of the old ones is gone.
        status: How far it is.
        again: When to look again though nothing has changed, seconds since the epoch.
    """

    size: int
    held: frozenset[int] = frozenset()
    retemplate: bool = False
    evict: tuple[Worker, ...] = ()
    anew: bool = False
    waits: bool = False
    status: MigrationStatus | None = None
    again: float | None = None


def moves(job: TrainingJob, observed: Observed, target: int, now: float) -> Moves:
    """Return what a job's migration does now.

    Args:
        job: Which; it goes on, and is not suspended.
        observed: What there is of it.
        target: Workers that it shall have, 1 or more.
        now: Seconds since the epoch.
    """
    if not job.leaves:
        changed = job.framework == "horovod" and observed.size is not None and observed.avoids
        last = job.status.migration if job.leave else None
        return Moves(size=target, retemplate=bool(changed), status=last)
    if job.framework == "torch":
        return _all_at_once(job, observed, target)
    return _one_by_one(job, observed, target, now)


def hosts(job: TrainingJob, observed: Observed, size: int, held: frozenset[int]) -> tuple[str, ...]:
    """Return the hosts that the training may use, without those that it is to do without."""
    if not held:
        return horovod.host_names(job, observed, size)
    left = [worker for worker in observed.workers if worker.index not in held]
    return horovod.host_names(job, msgspec.structs.replace(observed, workers=left), size)


def _one_by_one(job: TrainingJob, observed: Observed, target: int, now: float) -> Moves:
    there = [worker for worker in observed.workers if worker.node in job.leaves]
    if observed.size is None or observed.avoids != job.leaves or not observed.settled:
        differs = observed.size is not None and observed.avoids != job.leaves
        text = "new workers are being kept away from the nodes"
        return Moves(size=target, retemplate=differs, status=_said(job, text))
    # A worker more than it needs least, while one is on its way.
    grows = (there or observed.size > target) and target <= job.least
    if grows and target >= job.most:
        text = (
            f"it has no worker to spare, and may not have more than {job.most}: raise maxReplicas"
        )
        return Moves(size=target, status=_said(job, text))
    size = target + 1 if grows else target
    going = [worker for worker in there if not worker.leaving and worker.index < size]
    useless = tuple(worker for worker in going if not worker.ready)
    if useless:
        # The training does not know of them, or no more: nothing is lost with them.
        return Moves(size=size, evict=useless, status=_said(job, _waits_for(useless)))
    missing = _missing(observed, size)
    if missing:
        text = f"waits for worker {missing[0]} to be ready elsewhere"
        return Moves(size=size, status=_said(job, text))
    if not going:
        return Moves(size=target, status=_done(job, there))
    last = max(going, key=lambda worker: worker.index)
    held = frozenset([last.index])
    status = _said(job, _waits_for([last]))
    if observed.launcher is None:
        return Moves(size=size, evict=(last,), status=status)
    grace = job.elastic.scale_down_grace_seconds if job.elastic is not None else 0
    told = observed.hosts
    if told is None or told.names != hosts(job, observed, size, held):
        return Moves(size=size, held=held, status=status, again=now + grace)
    if now < told.since + grace:
        return Moves(size=size, held=held, status=status, again=told.since + grace)
    return Moves(size=size, held=held, evict=(last,), status=status)


def _all_at_once(job: TrainingJob, observed: Observed, target: int) -> Moves:
    there = [worker for worker in observed.workers if worker.node in job.leaves]
    if observed.size is None:
        text = "waits for the workers to end, to begin anew from the last checkpoint"
        return Moves(size=target, waits=bool(observed.workers), status=_said(job, text))
    if any(not worker.leaving for worker in there) and observed.avoids != job.leaves:
        return Moves(size=target, anew=True, status=_said(job, "all workers are being made anew"))
    if there or observed.placed < target:
        text = "waits for the workers to have nodes elsewhere"
        return Moves(size=target, status=_said(job, text))
    return Moves(size=target, status=_done(job, ()))


def _missing(observed: Observed, size: int) -> list[int]:
    """Return the numbers of the first so many workers that do not work."""
    ready = {worker.index for worker in observed.ready(size)}
    return [index for index in range(size) if index not in ready]


def _waits_for(going: Sequence[Worker]) -> str:
    listed = ", ".join(f"{worker.index} ({worker.node})" for worker in going)
    return f"moves worker {listed}"


def _said(job: TrainingJob, text: str) -> MigrationStatus:
    return MigrationStatus(request=job.leave, message=text)


def _done(job: TrainingJob, still_there: Sequence[Worker]) -> MigrationStatus:
    if still_there:
        return _said(job, f"waits for worker {still_there[0].index} to end")
    nodes = ", ".join(job.leaves)
    return MigrationStatus(request=job.leave, done=True, message=f"no worker is on {nodes}")
