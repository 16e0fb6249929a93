"""A training job in a few words: for a table, for a line of progress, and as JSON."""

import msgspec

from alnair.model.api_types import Workload
from alnair.model.training_job import RUNNING, SCHEDULED, SUSPENDED, WORKERS_ENDED, TrainingJob


class JobSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A job.

    Attributes:
        phase: The last of its conditions that is true; Pending before the operator saw it.
        least, most, wish: Workers; `wish` is what its user wants for now.
        target: Workers that it is given.
        workers, ready: There are so many, and so many of them work.
        gpus: Of all workers that there are; slices count as their part of the time.
        created: Seconds since the epoch.
        reason, message: Why it is no further, or how it ended.
        migration: What the move of its workers waits for; empty if there is none.
    """

    kind: str
    namespace: str
    name: str
    phase: str
    least: int
    most: int
    wish: int
    target: int
    workers: int
    ready: int
    gpus: float
    created: float
    reason: str = ""
    message: str = ""
    migration: str = ""

    @property
    def finished(self) -> bool:
        """Whether the training has ended."""
        return self.phase in ("Succeeded", "Failed")


def summary(job: TrainingJob) -> JobSummary:
    """Return a job as it is."""
    status = job.status
    reason, message = _why(job)
    part = job.workers.gpu_slice
    each = float(job.gpus) if part is None else (part.compute_percent or 0) / 100
    moving = status.migration
    return JobSummary(
        kind=job.kind,
        namespace=job.namespace,
        name=job.name,
        phase="Terminating" if job.deleting else status.phase or "Pending",
        least=job.least,
        most=job.most,
        wish=job.wish,
        target=status.target_replicas or 0,
        workers=status.replicas or 0,
        ready=status.available_replicas or 0,
        gpus=each * (status.replicas or 0),
        created=job.created,
        reason=reason,
        message=message,
        migration="" if moving is None or moving.done else moving.message,
    )


def progress(made: JobSummary) -> str:
    """Return how far a job is, without what changes all the time."""
    size = f"{made.ready} of {made.target or made.wish} workers"
    bounds = f"{made.least}..{made.most}" if made.least != made.most else f"{made.most}"
    text = f"{made.phase}, {size} ({bounds})"
    if made.migration:
        text += f"; {made.migration}"
    if made.message:
        text += f": {made.message}"
    return text


def work(found: Workload) -> str:
    """Return how far a training is, as its profiler tells; empty if it does not."""
    parts = []
    if found.progress is not None:
        parts.append(f"{found.progress:.0%}")
    if found.step is not None:
        parts.append(f"step {found.step}")
    if found.epoch is not None:
        parts.append(f"epoch {found.epoch:.3g}")
    if found.eta_s is not None:
        parts.append(f"about {_span(found.eta_s)} left")
    return ", ".join(parts)


def _why(job: TrainingJob) -> tuple[str, str]:
    """Return reason and words of the condition that tells most."""
    by_type = {one.type: one for one in job.status.conditions or ()}
    if job.finished:
        ended = by_type[job.finished]
        return ended.reason, ended.message
    if (one := by_type.get(SUSPENDED)) is not None and one.status == "True":
        return one.reason, one.message
    for kind in (SCHEDULED, RUNNING):
        one = by_type.get(kind)
        if one is not None and (one.status != "True" or one.reason == WORKERS_ENDED):
            return one.reason, one.message
    if not by_type:
        return "NotSeen", "the controller has not read it yet: does 'alnair controller' run?"
    return "", ""


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
