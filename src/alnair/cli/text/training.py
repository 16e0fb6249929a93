"""Training jobs for people to read."""

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from alnair.live.training.summary import JobSummary, summary
from alnair.model.training_job import TrainingJob

_COLUMNS = ("NAMESPACE", "JOB", "PHASE", "WORKERS", "BOUNDS", "GPUS", "AGE", "WHY")
#: Columns that are numbers.
_NUMBERS = ("WORKERS", "GPUS", "AGE")


def show_jobs(jobs: Sequence[JobSummary], console: Console, now: float) -> None:
    """Print jobs as a table; of the workers, how many work of how many the job is given."""
    table = Table(box=None, pad_edge=False)
    for name in _COLUMNS:
        table.add_column(
            name,
            justify="right" if name in _NUMBERS else "left",
            no_wrap=name not in ("JOB", "WHY"),
            overflow="fold",
        )
    for job in jobs:
        table.add_row(
            escape(job.namespace),
            escape(f"{job.kind}/{job.name}"),
            job.phase,
            "-" if job.finished and not job.workers else f"{job.ready}/{job.target}",
            f"{job.least}..{job.most}",
            f"{job.gpus:g}",
            age(now - job.created),
            escape(job.migration or job.message),
        )
    console.print(table)


def show_job(job: TrainingJob, nodes: Mapping[str, int], console: Console, now: float) -> None:
    """Print all that its status says, and where its workers are."""
    made = summary(job)
    where = ", ".join(f"{node} ({count})" for node, count in nodes.items()) or "-"
    rows = {
        "job": f"{job.namespace}/{job.kind}/{job.name}",
        "phase": made.phase,
        "workers": _workers(made),
        "bounds": f"{made.least}..{made.most}, {made.wish} are wanted",
        "GPUs": f"{made.gpus:g}",
        "nodes": where,
        "age": age(now - job.created),
    }
    if job.status.migration is not None:
        rows["migration"] = job.status.migration.message
    table = Table(box=None, pad_edge=False, show_header=False)
    for name, value in rows.items():
        table.add_row(name, escape(value))
    console.print(table)
    if not job.status.conditions:
        console.print(escape(f"\n{made.message}"))
        return
    said = Table(box=None, pad_edge=False)
    for column in ("CONDITION", "IS", "REASON", "MESSAGE"):
        said.add_column(column, overflow="fold")
    for one in job.status.conditions:
        said.add_row(one.type, one.status, one.reason, escape(one.message))
    console.print()
    console.print(said)


def _workers(made: JobSummary) -> str:
    if made.finished:
        return f"{made.workers or 'none'} left; it was given {made.target}"
    return f"{made.ready} ready of {made.workers}; it is given {made.target}"


def age(seconds: float) -> str:
    """Return a time in its largest unit, as kubectl does: 5s, 3m, 4h, 2d."""
    seconds = max(0.0, seconds)
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f}{unit}"
    return f"{seconds:.0f}s"
