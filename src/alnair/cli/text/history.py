"""Jobs of the history for people to read, and as CSV."""

import csv
import io
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from alnair.history.database.queries import Details, Job
from alnair.model import durations
from alnair.model.usage import PodUsage

_COLUMNS = ("NAMESPACE", "JOB", "USER", "STATE", "SUBMITTED", "TIME", "GPUS", "GPU-HOURS", "USED")
_NUMBERS = 5


def csv_of(jobs: Sequence[Job]) -> str:
    """Return jobs as CSV: a line of names, then one for each job; what is not known is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Job.__struct_fields__)
    writer.writerows(msgspec.structs.astuple(job) for job in jobs)
    return text.getvalue()


def show_jobs(jobs: Sequence[Job], console: Console) -> None:
    """Print jobs as a table."""
    table = Table(box=None, pad_edge=False)
    for number, name in enumerate(_COLUMNS):
        table.add_column(name, justify="right" if number >= _NUMBERS else "left")
    for job in jobs:
        gpus = f"{job.gpus:g}" + (f" {job.gpu_model}" if job.gpu_model and job.gpus else "")
        table.add_row(
            escape(job.namespace),
            escape(f"{job.kind}/{job.name}"),
            escape(job.user),
            job.state,
            _moment(job.submitted),
            _span(job.duration),
            escape(gpus) if job.gpus else "-",
            f"{job.gpu_hours:.1f}" if job.gpu_hours else "-",
            _percent(job.gpu_util),
        )
    console.print(table)


def show_job(details: Details, console: Console) -> None:
    """Print all that is known of a job."""
    job = details.job
    console.print(f"[bold]{escape(f'{job.namespace}/{job.kind}/{job.name}')}[/bold]  {job.state}")
    rows = [
        ("user", job.user),
        ("series", job.series),
        ("scheduler", job.scheduler),
        ("submitted", _moment(job.submitted)),
        ("started", _moment(job.started)),
        ("ended", _moment(job.completed)),
        ("ran for", _span(job.duration)),
        ("GPUs", f"{job.gpus:g} {job.gpu_model}".strip() if job.gpus else "-"),
        ("GPU hours", f"{job.gpu_hours:.2f}, of which used {_percent(job.gpu_util)}"),
        ("GPU memory", "-" if job.gpu_memory_mib is None else f"{job.gpu_memory_mib:.0f} MiB"),
    ]
    table = Table(box=None, pad_edge=False, show_header=False)
    for name, value in rows:
        table.add_row(name, escape(value))
    console.print(table)
    pods = Table(box=None, pad_edge=False)
    for name in ("POD", "NODE", "OUTCOME", "TIME", "METRIC", "MEAN", "MAX", "P95"):
        pods.add_column(name)
    for pod in details.pods:
        time = None if pod.started is None or pod.ended is None else pod.ended - pod.started
        used = msgspec.convert(pod.usage, PodUsage).metrics if pod.usage else {}
        first = (escape(pod.name), escape(pod.node), pod.outcome or "running", _span(time))
        lines = [
            (name, f"{one.mean:.2f}", f"{one.max:.2f}", f"{one.p95:.2f}")
            for name, one in used.items()
        ] or [("-", "", "", "")]
        for number, line in enumerate(lines):
            pods.add_row(*(first if not number else ("",) * 4), *line)
    console.print(pods)
    for kind, document in details.findings.items():
        console.print(f"{escape(kind)}: {escape(msgspec.json.encode(document).decode())}")


def _moment(time: float | None) -> str:
    if not time:
        return "-"
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _span(seconds: float | None) -> str:
    return "-" if seconds is None else durations.span(seconds)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.0f} %"
