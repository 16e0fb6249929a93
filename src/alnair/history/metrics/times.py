"""When jobs and pods began and ended, whole gangs, and what became of each."""

from typing import Literal

import msgspec

from alnair.history.history import History, JobHistory, PodHistory, Stay

#: What became of a job or pod; see `result.Counts`.
JobEnd = Literal["finished", "left", "running", "waiting"]


#: What happens at one moment, in this order: ends, begins, ends of what began just then.
_ENDS, _BEGINS, _AT_ONCE = range(3)


class JobTimes(msgspec.Struct, frozen=True):
    """A job's times.

    Attributes:
        first: when its first pod was placed; None if none was.
        started: when as many of its pods were in place as it needs; None if they never were.
        until: when it had ended or gone, or the end of the history.
        partial: GPU seconds that its pods held while they were fewer than it needs.
        spread: of a gang that started, seconds since the first of these pods was placed.
    """

    first: float | None
    started: float | None
    until: float
    fate: JobEnd
    partial: float = 0.0
    spread: float = 0.0


def pod_until(pod: PodHistory, history: History) -> tuple[float, JobEnd]:
    """Return when a pod had ended or gone, or the end of the history, and which it was."""
    last = pod.stays[-1] if pod.stays else None
    if last is not None and last.end is None and pod.gone is None:
        return history.end, "running"
    if last is not None and last.end is not None:
        return last.end, "finished" if last.how == "completed" else "left"
    return (history.end, "waiting") if pod.gone is None else (pod.gone, "left")


def job_times(job: JobHistory, history: History) -> JobTimes:
    """Return the times of a job."""
    pods = [history.pods[uid] for uid in job.pods]
    first = min([pod.stays[0].begin for pod in pods if pod.stays], default=None)
    until, fate = _fate(job, pods, history)
    if not job.gang:
        return JobTimes(first, first, until, fate)
    started, spread, partial = _gathering(pods, needed(job, history), history)
    return JobTimes(first, started, until, fate, partial, spread)


def needed(job: JobHistory, history: History) -> int:
    """Return how many pods a gang needs at once."""
    together = [uid for uid in job.pods if history.pods[uid].submitted <= job.submitted]
    return job.least or len(together) or len(job.pods)


def _fate(job: JobHistory, pods: list[PodHistory], history: History) -> tuple[float, JobEnd]:
    if job.finished is not None:
        return job.finished, "finished"
    ends = [pod_until(pod, history) for pod in pods]
    fates = {fate for _, fate in ends}
    if "running" in fates:
        return history.end, "running"
    if not fates or "waiting" in fates:
        return history.end, "waiting"
    return max(time for time, _ in ends), "left"


def _gathering(
    pods: list[PodHistory], need: int, history: History
) -> tuple[float | None, float, float]:
    """Return when a gang was whole first, its spread then, and GPU seconds held in part."""
    moments: list[tuple[float, int, Stay]] = []
    for pod in pods:
        for stay in pod.stays:
            moments.append((stay.begin, _BEGINS, stay))
            if stay.end is not None:
                moments.append((stay.end, _AT_ONCE if stay.end == stay.begin else _ENDS, stay))
    moments.sort(key=lambda moment: moment[:2])
    there: dict[int, Stay] = {}
    started: float | None = None
    spread = partial = 0.0
    done = 0
    for number, (time, what, stay) in enumerate(moments):
        if what == _BEGINS:
            there[id(stay)] = stay
        else:
            del there[id(stay)]
            done += stay.how == "completed"
        if started is None and len(there) >= need:
            started = time
            spread = time - min(stay.begin for stay in there.values())
        # What has done its work is not missing, once the gang was whole.
        if len(there) + (done if started is not None else 0) < need:
            after = moments[number + 1][0] if number + 1 < len(moments) else history.end
            gpus = sum(part.milli for stay in there.values() for part in stay.gpus) / 1000.0
            partial += gpus * max(after - max(time, 0.0), 0.0)
    return started, spread, partial
