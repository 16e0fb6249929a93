"""What GPUs were held for and not used, for people to read, with the commands that change it."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from alnair.history.database.efficiency import JobShare, Share
from alnair.model.usage import PodUsage
from alnair.profiler.right_size import Advice, advice

#: Kinds whose pods follow a change of the template, and where in the object the template is.
_PATCHED: Final = {
    ("apps/v1", "Deployment"): ("spec",),
    ("apps/v1", "StatefulSet"): ("spec",),
    ("apps/v1", "DaemonSet"): ("spec",),
}
_CRON_JOB: Final = ("spec", "jobTemplate", "spec")


def advice_of(job: JobShare) -> Advice | None:
    """Return advice for a job by what was measured of its pods."""
    return advice([msgspec.convert(one, PodUsage) for one in job.usages])


def patch_of(job: JobShare, found: Advice) -> str:
    """Return the command that gives a job's next pods what they need.

    Of what cannot be changed while it is there (a Job, a pod) it is the limits to write into its
    manifest.
    """
    limits = {"limits": found.limits, "requests": found.limits}
    containers = {"containers": [{"name": found.container, "resources": limits}]}
    if job.series.startswith("CronJob/") and job.kind == "Job":
        return _patch("cronjob", job.series.partition("/")[2], job.namespace, _CRON_JOB, containers)
    place = _PATCHED.get((job.api_version, job.kind))
    if place is not None:
        return _patch(job.kind.lower(), job.name, job.namespace, place, containers)
    kept = {name: value for name, value in found.limits.items() if value is not None}
    return (
        f"write into the manifest of container {found.container}: resources:"
        f" {{limits: {msgspec.json.encode(kept).decode()}}}"
    )


def _patch(
    kind: str, name: str, namespace: str, place: Sequence[str], containers: dict[str, Any]
) -> str:
    document: dict[str, Any] = {"template": {"spec": containers}}
    for part in reversed(place):
        document = {part: document}
    text = msgspec.json.encode(document).decode()
    return f"kubectl patch {kind} {name} -n {namespace} -p '{text}'"


def document(by: str, shares: Sequence[Share], jobs: Sequence[JobShare]) -> dict[str, Any]:
    """Return the same for programs."""
    told = []
    for job in jobs:
        found = advice_of(job)
        who = {"namespace": job.namespace, "kind": job.kind, "name": job.name, "user": job.user}
        what = None
        if found is not None:
            what = {**msgspec.to_builtins(found), "apply": patch_of(job, found)}
        told.append({**who, **_figures(job), "advice": what})
    return {"v": 1, by: {one.name: _figures(one) for one in shares}, "jobs": told}


def _figures(share: Share) -> dict[str, Any]:
    return {
        "jobs": share.jobs,
        "held_gpu_hours": round(share.held, 3),
        "measured_gpu_hours": round(share.measured, 3),
        "used_gpu_hours": round(share.used, 3),
        "wasted_gpu_hours": round(share.wasted, 3),
    }


def show(by: str, shares: Sequence[Share], jobs: Sequence[JobShare], console: Console) -> None:
    """Print who held GPUs and did not use them, and what to do about the worst jobs."""
    table = Table(box=None, pad_edge=False, title="GPU hours", title_justify="left")
    table.add_column(by.upper())
    for name in ("JOBS", "HELD", "MEASURED", "USED", "WASTED", "USED %"):
        table.add_column(name, justify="right")
    for one in shares:
        table.add_row(escape(one.name), str(one.jobs), *_hours(one))
    console.print(table)
    if not any(one.measured for one in shares):
        console.print("Nothing was measured: is an agent on the nodes, and its outbox read?")
    for job in jobs:
        what = escape(f"{job.namespace}/{job.kind}/{job.name}")
        console.print(f"\n[bold]{what}[/bold] wasted {job.wasted:.1f} of {job.measured:.1f} hours")
        if (found := advice_of(job)) is not None:
            console.print(f"  {escape(found.why)}; {100 * found.saves:.0f} % would be free:")
            console.print(f"  {escape(patch_of(job, found))}", soft_wrap=True)


def _hours(one: Share) -> list[str]:
    percent = f"{100 * one.used / one.measured:.0f}" if one.measured else "-"
    hours = (one.held, one.measured, one.used, one.wasted)
    return [*(f"{amount:.1f}" for amount in hours), percent]
