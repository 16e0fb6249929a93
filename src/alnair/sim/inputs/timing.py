"""Which part of a trace is simulated, how fast its jobs come, and how long they run."""

import math
from collections.abc import Iterable

import msgspec

from alnair.model.plurals import counted
from alnair.sim.inputs.options import InputOptions
from alnair.sim.jobs import Job


def cut(jobs: Iterable[Job], options: InputOptions) -> list[Job]:
    """Return the jobs to simulate, in the order of their arrival.

    Jobs of the same time stay in the order given. First the time is cut out, then the first jobs
    are taken, then they are moved to the begin and closer together.
    """
    ordered = sorted(jobs, key=lambda job: job.submitted)
    since, until = options.since, options.until
    kept = [job for job in ordered if since <= job.submitted < until][: options.limit]
    if since == 0.0 and options.arrivals == 1.0:
        return kept
    return [
        msgspec.structs.replace(job, submitted=(job.submitted - since) / options.arrivals)
        for job in kept
    ]


def end(jobs: Iterable[Job]) -> float:
    """Return when the last job would end if none had to wait; those that never end apart."""
    return max(
        (job.submitted + (job.duration if math.isfinite(job.duration) else 0.0) for job in jobs),
        default=0.0,
    )


def estimated(jobs: Iterable[Job], factor: float) -> list[Job]:
    """Return the jobs whose pods are expected to run `factor` times as long as they do; 0 = no."""
    return [
        msgspec.structs.replace(
            job,
            pods=tuple(
                msgspec.structs.replace(pod, time_limit=_whole(job.duration * factor))
                for pod in job.pods
            ),
        )
        for job in jobs
    ]


def without_run_time(jobs: int, options: InputOptions) -> list[str]:
    """Return the note on jobs whose run time the trace does not say."""
    if not jobs:
        return []
    if options.default_duration is None:
        done = "they are left out (--default-duration keeps them)"
    else:
        done = f"they are taken to run {options.default_duration:g} s"
    return [
        f"{counted(jobs, 'job')} never ran in the trace, so that nobody knows for how long: {done}"
    ]


def _whole(seconds: float) -> int:
    """Return seconds as a limit; what never ends has none."""
    return 0 if seconds == math.inf else round(seconds)
