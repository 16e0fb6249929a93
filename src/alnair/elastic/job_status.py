"""A training job's status: conditions with reasons, a phase, and counts that are true."""

from datetime import UTC, datetime
from typing import Final

import msgspec

from alnair.elastic.child_names import child_names
from alnair.elastic.observed import Ending, Observed
from alnair.elastic.pod_templates import labels
from alnair.elastic.troubles import Trouble, trouble
from alnair.model import names
from alnair.model import training_job as words
from alnair.model.api_types import Condition
from alnair.model.elastic_types import JobStatus
from alnair.model.plurals import counted
from alnair.model.training_job import TrainingJob

#: Reasons of conditions that are not true and need not be: nobody has to do anything.
_CALM: Final = frozenset(
    (
        *("Suspended", "Ended", "NoRoom", "NoPods", "Waiting"),
        *("NotAtWork", "WorkersNotReady", "LauncherNotReady"),
        *("NotStarted", "Steady", "NotSuspended", "Suspending"),
    )
)
#: Phases that other events tell.
_UNTOLD: Final = (words.CREATED, words.SCHEDULED)
#: What decides on which nodes a worker fits.
_WHERE_TO_FIT: Final = (
    "change spec.workersSpec.gpusPerWorker, .gpuSlice, .gpuTypes, .resources, .nodeSelector,"
    " .affinity or .tolerations to what a node has"
)
#: Characters of a message.
_LONGEST: Final = 1000


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """How far a job is: workers that it shall have, how it ended, whether it is suspended."""

    target: int | None = None
    ending: Ending | None = None
    suspended: bool = False


class _Said(msgspec.Struct, frozen=True):
    """What a condition shall say."""

    is_true: bool
    reason: str
    message: str


def next_status(job: TrainingJob, observed: Observed, stage: Stage, now: float) -> JobStatus:
    """Return what the status shall say.

    Args:
        job: Which, with the status that it has.
        observed: What there is of it.
        stage: What was decided of it.
        now: Seconds since the epoch.
    """
    old = job.status
    children = child_names(job)
    staying = observed.staying
    ended = job.finished
    started = _started(job, observed, stage, now)
    said = _conditions(job, observed, stage, started)
    kind = "job.batch" if job.framework == "torch" else "statefulset.apps"
    completed = old.completion_time
    if stage.ending is not None and not ended:
        completed = stamp(now)
    return JobStatus(
        phase=_phase(said),
        target_replicas=old.target_replicas if ended else stage.target or 0,
        replicas=len(staying),
        scheduled_replicas=observed.placed,
        available_replicas=sum(worker.ready for worker in staying),
        launcher=f"job.batch/{children.launcher}" if job.launcher is not None else "",
        workers=f"{kind}/{children.workers}",
        selector=",".join(f"{key}={value}" for key, value in labels(job, "worker").items()),
        start_time=started,
        completion_time=completed,
        resize_time=_resized(old, stage, now, ended=bool(ended)),
        observed_generation=job.generation or None,
        migration=old.migration if job.leave else None,
        conditions=_written(old, said, now),
    )


def refused(before: JobStatus, status: JobStatus, why: Trouble, now: float) -> JobStatus:
    """Return a status that tells that the job's objects could not be made.

    Args:
        before: What the status is.
        status: What it would be.
        why: What is wrong.
        now: Seconds since the epoch.
    """
    said = {
        one.type: _Said(one.status == "True", one.reason, one.message)
        for one in status.conditions or ()
    }
    said[words.CREATED] = _Said(False, why.reason, why.message)
    return msgspec.structs.replace(
        status, conditions=_written(before, said, now), phase=_phase(said)
    )


def news(before: JobStatus, status: JobStatus) -> list[tuple[str, str, bool]]:
    """Return the events that a change of the status is worth: reason, words, and is it a warning.

    One tells that it trains, was suspended or has ended, and one for each condition why the job
    does not get on. That it was read, and that its workers have nodes, its pods' own events tell
    within moments; why it has another size, whoever planned it.
    """
    known = {one.type: one.reason for one in before.conditions or ()}
    found = [
        (one.reason, one.message, True)
        for one in status.conditions or ()
        if one.status == "False" and one.reason not in {*_CALM, known.get(one.type)}
    ]
    was_true = {one.type for one in before.conditions or () if one.status == "True"}
    for one in status.conditions or ():
        if one.type != status.phase or one.status != "True" or one.type in was_true:
            continue
        if one.type not in _UNTOLD and not (one.type == words.SCALING and _resizes(before, status)):
            found.append((one.reason, one.message, one.type == words.FAILED))
    return found


def _resizes(before: JobStatus, status: JobStatus) -> bool:
    """Whether a job has workers for the first time, or shall have another number of them."""
    return not before.start_time or before.target_replicas != status.target_replicas


def ends(before: JobStatus, status: JobStatus) -> bool:
    """Whether a status tells that the job has ended, and the one before did not."""
    over = (words.SUCCEEDED, words.FAILED)
    return status.phase in over and before.phase not in over


def migrates(before: JobStatus, status: JobStatus) -> bool:
    """Whether a status tells that a migration has begun or is done, and the one before did not."""
    stages = [one and (one.request, one.done) for one in (before.migration, status.migration)]
    return stages[0] != stages[1]


def is_created(job: TrainingJob) -> bool:
    """Whether the API server takes a job's objects, as far as its status says."""
    return all(
        one.status == "True" for one in job.status.conditions or () if one.type == words.CREATED
    )


def waits_since(job: TrainingJob) -> float | None:
    """Return since when a job waits for room for its first workers; None if it does not.

    It has no pods then. One that would fit on no node, however empty, waits for something else;
    one that was suspended waits since then.

    Returns:
        Seconds since the epoch.
    """
    if job.finished or job.deleting or job.run.suspend or job.status.target_replicas:
        return None
    for one in job.status.conditions or ():
        if one.type == words.SCHEDULED and one.reason == "NoRoom":
            return max(job.created, seconds(one.last_transition_time))
    return None


def only_counts(before: JobStatus, status: JobStatus) -> bool:
    """Whether nothing has changed but counts of workers and words of conditions."""
    return _but_counts(before) == _but_counts(status)


def _but_counts(status: JobStatus) -> JobStatus:
    said = [
        msgspec.structs.replace(one, message="", last_transition_time="")
        for one in status.conditions or ()
    ]
    return msgspec.structs.replace(
        status, replicas=0, scheduled_replicas=0, available_replicas=0, conditions=said
    )


def seconds(time: str) -> float:
    """Return an RFC 3339 time in seconds since the epoch; 0 if it is none."""
    try:
        return datetime.fromisoformat(time).timestamp()
    except ValueError:
        return 0.0


def stamp(now: float) -> str:
    """Return a time in seconds since the epoch as Kubernetes writes it."""
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _started(job: TrainingJob, observed: Observed, stage: Stage, now: float) -> str | None:
    """Return when the gang was first placed; a job that is suspended begins anew."""
    if stage.suspended:
        return None
    if job.status.start_time or job.finished:
        return job.status.start_time
    group = observed.group
    all_placed = stage.target is not None and observed.placed >= stage.target
    placed = all_placed or (group is not None and group.placed)
    return stamp(now) if placed else None


def _resized(old: JobStatus, stage: Stage, now: float, *, ended: bool) -> str | None:
    if ended or (stage.target or 0) == (old.target_replicas or 0):
        return old.resize_time
    return stamp(now)


def _conditions(
    job: TrainingJob, observed: Observed, stage: Stage, started: str | None
) -> dict[str, _Said]:
    said = {words.CREATED: _Said(True, "JobRead", "the job's objects are made and followed")}
    over = job.finished
    if over:
        before = {one.type: one for one in job.status.conditions or ()}
        kept = {
            kind: _Said(one.status == "True", one.reason, one.message)
            for kind, one in before.items()
        }
        return said | kept
    ending = stage.ending
    at_work = not stage.suspended and ending is None
    said[words.SCHEDULED] = _scheduled(job, observed, stage, started)
    said[words.RUNNING] = _running(job, observed, is_at_work=at_work)
    said[words.SCALING] = _scaling(job, observed, stage, started if at_work else None)
    said[words.SUSPENDED] = _suspended(observed, stage)
    if ending is not None:
        kind = words.SUCCEEDED if ending.succeeded else words.FAILED
        reason = ending.reason or ("TrainingCompleted" if ending.succeeded else "TrainingFailed")
        text = ending.message or f"the training has ended: {reason}"
        if ending.succeeded and job.framework == "torch":
            # Kubernetes' words are of its Job: "Matched rules at index 0".
            text = "the first worker has ended well, and with it the training"
        said[kind] = _Said(True, reason, text if ending.succeeded else _why_failed(job, text))
    return said


def _scheduled(job: TrainingJob, observed: Observed, stage: Stage, started: str | None) -> _Said:
    needed = job.least if started else stage.target or job.least
    if stage.suspended:
        return _Said(False, "Suspended", "the job is suspended")
    if stage.ending is not None:
        return _Said(False, "Ended", "the training has ended")
    if stage.target is None:
        text = f"no room yet for the {counted(job.least, 'worker')} that it needs at least"
        if observed.no_room:
            text = f"{text}: {observed.no_room}"
        if observed.fits_nowhere:
            return _Said(False, "FitsNowhere", f"{text.removesuffix('.')}: {_WHERE_TO_FIT}")
        return _Said(False, "NoRoom", text)
    if observed.placed + observed.completed >= needed:
        return _Said(True, "EnoughPlaced", f"at least {_have(needed)} a node")
    if observed.group is not None and observed.group.refusal:
        return _Said(False, "Unschedulable", observed.group.refusal)
    if len(observed.staying) < needed:
        role, words = observed.problem
        if words and role == "worker":
            return _told(role, words)
        made = f"{needed} workers are not all" if needed > 1 else "worker is not"
        return _Said(False, "NoPods", f"the {made} made yet")
    if job.scheduler not in names.SCHEDULERS:
        text = (
            f"no node from {job.scheduler}: spec.schedulerName: name one of Alnair's profiles,"
            " unless a scheduler of this name runs in the cluster"
        )
        return _Said(False, "OtherScheduler", text)
    few = f"fewer than {needed} workers have" if needed > 1 else "no worker has"
    return _Said(False, "Waiting", f"{few} a node")


def _have(workers: int) -> str:
    return f"{counted(workers, 'worker')} {'has' if workers == 1 else 'have'}"


def _running(job: TrainingJob, observed: Observed, *, is_at_work: bool) -> _Said:
    ready = len(observed.ready(job.most))
    if not is_at_work:
        return _Said(False, "NotAtWork", "the training does not run")
    launcher = observed.launcher
    if job.framework == "torch":
        if ready >= job.least:
            return _Said(
                True,
                "WorkersRun",
                f"at least {counted(job.least, 'worker')} {'runs' if job.least == 1 else 'run'}",
            )
        if observed.completed and ready + observed.completed >= job.least:
            workers = counted(observed.completed, "worker")
            text = f"{workers} {'has' if observed.completed == 1 else 'have'} ended well"
            return _Said(True, words.WORKERS_ENDED, text)
    elif launcher is not None and launcher.running:
        return _Said(True, "LauncherRuns", "the launcher runs")
    elif launcher is not None and launcher.ended_well:
        return _Said(True, "LauncherEnded", "the launcher has ended well")
    role, problem = observed.problem
    if problem:
        return _told(role, problem)
    if ready < job.least:
        few = f"fewer than {job.least} workers are" if job.least > 1 else "no worker is"
        text = f"{few} ready"
        if any(worker.placed and not worker.ready for worker in observed.staying):
            # A kubelet says nothing more of it, also where no registry answers: for a minute.
            text += ": on their nodes images are being pulled, or containers started"
        return _Said(False, "WorkersNotReady", text)
    if launcher is not None and launcher.ended_well is False:
        return _Said(False, "LauncherNotReady", "the launcher has failed")
    return _Said(False, "LauncherNotReady", "the launcher does not run yet")


def _why_failed(job: TrainingJob, text: str) -> str:
    children, limit = child_names(job), job.run.backoff_limit
    if job.run.active_deadline_seconds is not None and "activeDeadlineSeconds" in text:
        return text
    made = children.workers if job.framework == "torch" else children.launcher
    return f"{text}; see kubectl logs job/{made}; spec.runPolicy.backoffLimit is {limit}"


def _told(role: str, words: str) -> _Said:
    found = trouble(words, role)
    return _Said(False, found.reason, found.message)


def _scaling(job: TrainingJob, observed: Observed, stage: Stage, started: str | None) -> _Said:
    target = stage.target
    if started is None or target is None:
        return _Said(False, "NotStarted", "it has no workers yet")
    there, ready = len(observed.staying), len(observed.ready(target))
    if there > target:
        return _Said(True, "ScalingDown", f"the job goes down to {counted(target, 'worker')}")
    if ready + observed.completed < target:
        text = f"the job is to have {target} workers that are ready"
        role, words = observed.problem
        if words and role == "worker":
            text = f"{text}: {trouble(words, role).message}"
        return _Said(True, "ScalingUp", text)
    return _Said(False, "Steady", f"the job has the {counted(target, 'worker')} that it shall have")


def _suspended(observed: Observed, stage: Stage) -> _Said:
    if not stage.suspended:
        return _Said(False, "NotSuspended", "spec.runPolicy.suspend is not true")
    if observed.workers:
        return _Said(False, "Suspending", "its pods are ending")
    return _Said(True, "Suspended", "spec.runPolicy.suspend is true, and it holds nothing")


def _phase(said: dict[str, _Said]) -> str:
    true = [kind for kind in words.CONDITIONS if kind in said and said[kind].is_true]
    return true[-1] if true else words.CREATED


def _written(old: JobStatus, said: dict[str, _Said], now: float) -> list[Condition]:
    before = {one.type: one for one in old.conditions or ()}
    made = []
    for kind in words.CONDITIONS:
        if kind not in said:
            continue
        one = said[kind]
        status = "True" if one.is_true else "False"
        last = before.get(kind)
        since = last.last_transition_time if last and last.status == status else stamp(now)
        made.append(Condition(kind, status, one.reason, one.message[:_LONGEST], since))
    return made
