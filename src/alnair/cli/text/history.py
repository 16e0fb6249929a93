"""Jobs of the history for people to read, and as CSV."""

import csv
import io
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from alnair.cli.text import job_facts
from alnair.history.database.queries import Details, Job
from alnair.history.database.writing import WORKLOAD
from alnair.model import durations
from alnair.model.api_types import Workload
from alnair.model.usage import PodUsage

_COLUMNS = ("NAMESPACE", "JOB", "USER", "STATE", "SUBMITTED", "TIME", "GPUS", "GPU-HOURS", "USED")
#: Columns from which on they are short, and from which on they are numbers.
_SHORT = 3
_NUMBERS = 5


def csv_of(jobs: Sequence[Job]) -> str:
    """Return jobs as CSV: a line of names, then one for each job; what is not known is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Job.__struct_fields__)
    writer.writerows(msgspec.structs.astuple(job) for job in jobs)
    return text.getvalue()


def show_jobs(jobs: Sequence[Job], console: Console, now: float) -> None:
    """Print jobs as a table; of those that run, the time until now."""
    table = Table(box=None, pad_edge=False)
    for number, name in enumerate(_COLUMNS):
        # In a narrow terminal, names go on in the next line; what is short does not.
        table.add_column(
            name,
            justify="right" if number >= _NUMBERS else "left",
            no_wrap=number >= _SHORT,
            overflow="fold",
        )
    for job in jobs:
        gpus = f"{job.gpus:g}" + (f" {job.gpu_model}" if job.gpu_model and job.gpus else "")
        table.add_row(
            escape(job.namespace),
            escape(f"{job.kind}/{job.name}"),
            escape(job.user),
            job.state,
            _moment(job.submitted)[:16],
            _ran(job, now),
            escape(gpus) if job.gpus else "-",
            f"{job.gpu_hours:.1f}" if job.gpu_hours else "-",
            _percent(job.gpu_util),
        )
    console.print(table)


def show_job(details: Details, console: Console, now: float) -> None:
    """Print all that is known of a job; of one that runs, the time until now."""
    job = details.job
    console.print(f"[bold]{escape(f'{job.namespace}/{job.kind}/{job.name}')}[/bold]  {job.state}")
    rows = [
        ("user", job.user),
        ("series", job.series),
        ("scheduler", job.scheduler),
        ("submitted", _moment(job.submitted)),
        ("started", _moment(job.started)),
        ("ended", _moment(job.completed)),
        ("ran for", _ran(job, now) + (" so far" if job.state == "running" else "")),
        ("GPUs", f"{job.gpus:g} {job.gpu_model}".strip() if job.gpus else "-"),
        ("GPU hours", f"{job.gpu_hours:.2f}, of which used {_percent(job.gpu_util)}"),
        ("GPU memory", "-" if job.gpu_memory_mib is None else f"{job.gpu_memory_mib:.0f} MiB"),
    ]
    table = Table(box=None, pad_edge=False, show_header=False)
    for name, value in rows:
        table.add_row(name, escape(value))
    console.print(table)
    pods = Table(box=None, pad_edge=False)
    for name in ("POD", "NODE", "WAITED", "OUTCOME", "TIME", "METRIC", "MEAN", "MAX", "P95"):
        pods.add_column(name)
    for pod in details.pods:
        time = None if pod.started is None or pod.ended is None else pod.ended - pod.started
        used = msgspec.convert(pod.usage, PodUsage).metrics if pod.usage else {}
        waited = None if pod.bound is None else max(pod.bound - pod.created, 0.0)
        state = pod.outcome or ("running" if pod.node else "pending")
        first = (escape(pod.name), escape(pod.node), _span(waited), state, _span(time))
        lines = [
            (name, f"{one.mean:.2f}", f"{one.max:.2f}", f"{one.p95:.2f}")
            for name, one in used.items()
        ] or [("-", "", "", "")]
        for number, line in enumerate(lines):
            pods.add_row(*(first if not number else ("",) * 5), *line)
    console.print(pods)
    for pod in details.pods:
        if pod.waited:
            tense = "waited" if pod.bound else "waits"
            console.print(f"{escape(pod.name)} {tense}: {escape(pod.waited)}")
    for pod in details.pods:
        workload = msgspec.convert(pod.usage, PodUsage).workload if pod.usage else None
        if workload is not None and (workload.model or workload.input or workload.cuda):
            work = Table(box=None, pad_edge=False, show_header=False)
            for name, value in job_facts.lines(workload):
                work.add_row(escape(pod.name), name, escape(value))
            console.print(work)
    for kind, document in details.findings.items():
        if kind == WORKLOAD:
            console.print(f"workload: {escape(_workload(document))}")
            continue
        console.print(f"{escape(kind)}: {escape(msgspec.json.encode(document).decode())}")


def _workload(document: dict[str, Any]) -> str:
    """Return what a job does, or did last, in words; what is not known is left out."""
    found = msgspec.convert(document, Workload)
    words = [found.type, found.framework, found.bottleneck]
    if found.phase is not None:
        words.append(f"phase {found.phase}")
    if found.period_s is not None:
        words.append(f"{found.period_s:.3g} s an iteration")
    if found.step is not None:
        words.append(f"step {found.step}")
    if found.progress is not None:
        words.append(f"{100 * found.progress:.0f} % done")
    if found.eta_s is not None:
        words.append(f"{durations.span(found.eta_s)} left at {found.t}")
    return ", ".join(word for word in words if word) or "not known"


def _ran(job: Job, now: float) -> str:
    if job.state == "running" and job.started is not None:
        return _span(max(now - job.started, 0.0))
    return _span(job.duration)


def _moment(time: float | None) -> str:
    if not time:
        return "-"
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _span(seconds: float | None) -> str:
    return "-" if seconds is None else durations.span(seconds)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.0f} %"
