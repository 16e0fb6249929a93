"""Fairness between users: Jain's index of what they got, and finish-time fairness."""

from collections.abc import Iterable, Mapping

import numpy as np

from alnair.history.history import History, JobHistory
from alnair.history.metrics.isolated import Alone, completions
from alnair.history.metrics.result import Fairness, User
from alnair.history.metrics.times import JobTimes

_HOUR = 3600.0


def jain(shares: Iterable[float]) -> float | None:
    """Return Jain's index, (sum x)^2 / (n sum x^2): 1 = all alike, 1/n = one has all.

    Source: Jain, Chiu, Hawe, DEC-TR-301, 1984. None without shares, or if all are 0.
    """
    x = np.array(list(shares), dtype=np.float64)
    squares = float(np.dot(x, x))
    return float(x.sum()) ** 2 / (len(x) * squares) if squares else None


def fairness(
    history: History,
    times: Mapping[str, JobTimes],
    held: Mapping[str, float],
    gpus: float,
) -> Fairness:
    """Return how the users of a history fared.

    Args:
        history: It.
        times: of its jobs.
        held: GPU seconds of each job within the history.
        gpus: of the cluster, the mean over time.
    """
    jobs: dict[str, list[JobHistory]] = {}
    for job in history.jobs.values():
        jobs.setdefault(job.user, []).append(job)
    sharers = sum(any(job.gpus > 0 for job in own) for own in jobs.values())
    users = {
        name: _user(own, times, held, history.end, gpus / sharers if sharers else 0.0)
        for name, own in sorted(jobs.items())
    }
    rhos = [user.rho for user in users.values() if user.rho is not None]
    shares = [user.share for user in users.values() if user.share is not None]
    return Fairness(jain(shares), max(rhos, default=None), users)


def _user(
    jobs: list[JobHistory],
    times: Mapping[str, JobTimes],
    held: Mapping[str, float],
    end: float,
    gpus: float,
) -> User:
    got = sum(held.get(job.name, 0.0) for job in jobs)
    wanted = sum(
        job.gpus * max(times[job.name].until - max(job.submitted, 0.0), 0.0) for job in jobs
    )
    waits = [
        started - job.submitted for job in jobs if (started := times[job.name].started) is not None
    ]
    rho, at_least, unfinished = _rho(jobs, times, end, gpus)
    return User(
        len(jobs),
        got / _HOUR,
        wanted / _HOUR,
        got / wanted if wanted else None,
        float(np.mean(waits)) if waits else None,
        rho,
        at_least,
        unfinished,
    )


def _rho(
    jobs: list[JobHistory], times: Mapping[str, JobTimes], end: float, gpus: float
) -> tuple[float | None, float | None, int]:
    """Return T_shared / T_isolated of finished jobs, of all as far as they got; and unfinished."""
    asking = [job for job in jobs if job.gpus > 0]
    unfinished = sum(job.finished is None for job in asking)
    known = [job for job in asking if job.duration is not None and job.submitted <= end]
    if not known or not gpus:
        return None, None, unfinished
    known.sort(key=lambda job: job.submitted)
    isolated = completions(
        [Alone(job.submitted, job.gpus, job.duration or 0.0) for job in known], gpus
    )
    shared_done = isolated_done = shared_all = isolated_all = 0.0
    for job, alone in zip(known, isolated, strict=True):
        if job.finished is not None:
            shared_done += job.finished - job.submitted
            isolated_done += alone
        else:
            so_far = times[job.name].until - job.submitted
            shared_all += so_far
            isolated_all += min(alone, so_far)
    shared_all += shared_done
    isolated_all += isolated_done
    return (
        shared_done / isolated_done if isolated_done else None,
        shared_all / isolated_all if isolated_all else None,
        unfinished,
    )
