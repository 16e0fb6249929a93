"""`alnair migrate`: the workers of a running job leave a node."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from alnair.cli.cluster_selection import ClusterOptions
from alnair.cli.json_output import json_option_last, write_json
from alnair.cli.option_groups import grouped
from alnair.cli.training.job_argument import JobName, Namespace, teller, with_job

if TYPE_CHECKING:
    from alnair.kube.client import Client
    from alnair.model.training_job import TrainingJob
    from alnair.scheduler.advice.migration import MigrationPlan


@grouped
def migrate(
    *,
    job: JobName,
    off: Annotated[
        list[str] | None,
        typer.Option(
            "--off",
            metavar="NODE",
            help="The node to leave; repeatable. Without it, those of its nodes that are cordoned.",
        ),
    ] = None,
    cancel: Annotated[
        bool, typer.Option("--cancel", help="Workers that have not left yet may stay.")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Only say whether they would fit elsewhere, and where."),
    ] = False,
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Ask for it, and do not wait for its end.")
    ] = False,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0, metavar="S", help="Seconds to wait for its end.")
    ] = 600.0,
    namespace: Namespace = None,
    cluster: ClusterOptions,
    json: Annotated[bool, json_option_last("the job and the plan")] = False,
) -> None:
    """Move the workers of an elastic job off a node, with no committed step lost.

    Horovod goes on meanwhile: one worker after the other leaves, after the training was told, and
    comes back elsewhere; a job that has none to spare has one more for that time. torchrun begins
    anew elsewhere, from its last checkpoint. The scheduler's own code is asked first whether it
    fits. The controller carries it out, also if it is restarted, or this command ends.

    Ends with 0, 1 if it cannot be, 2 on wrong usage, 3 if the cluster cannot be reached.

    Examples:
      alnair migrate mnist --off gpu-7
      alnair migrate mnist --off gpu-7 --dry-run
      kubectl cordon gpu-7 && alnair migrate mnist
      alnair migrate mnist --cancel
    """
    from alnair.live.training import changing
    from alnair.live.training.summary import summary

    if cancel and (off or dry_run):
        raise typer.BadParameter("it goes with no other option", param_hint="--cancel")

    async def work(client: "Client", found: "TrainingJob") -> "tuple[TrainingJob, MigrationPlan]":
        from alnair.kube.objects.annotations import rfc3339
        from alnair.scheduler.advice.migration import MigrationPlan

        if cancel:
            return await changing.leave(client, found, (), ""), MigrationPlan()
        nodes, plan = await _planned(client, found, tuple(off or ()))
        if dry_run:
            return found, plan
        now = rfc3339(time.time())
        asked = await changing.leave(client, found, nodes, now)
        if detach:
            return asked, plan
        return await changing.until(client, asked, _has_left, teller(), timeout), plan

    made, plan = with_job(cluster, "migrate", namespace, job, work)
    if json:
        write_json({"job": summary(made), "plan": plan})
    elif cancel:
        typer.echo(f"{made.name}: its workers may stay where they are")
    elif not dry_run:
        said = made.status.migration
        done = said is not None and said.done and not detach
        typer.echo(f"{made.name}: {said.message if said and done else 'its workers are to leave'}")


async def _planned(
    client: "Client", job: "TrainingJob", off: tuple[str, ...]
) -> "tuple[tuple[str, ...], MigrationPlan]":
    """Return the nodes to leave, and how that would go; says it on stderr."""
    from alnair.live.training import changing, room
    from alnair.live.training.finding import JobError
    from alnair.scheduler.advice.migration import MigrationPlan
    from alnair.scheduler.profiles import profiles

    changing.going_on(job)
    if job.elastic is None:
        raise JobError(
            f"a HorovodJob cannot go on with other workers: 'kubectl cordon' the node, then"
            f" 'alnair suspend {job.name}' and 'alnair resume {job.name}'"
        )
    nodes = await room.to_leave(client, job, off)
    plan = await room.fits(client, profiles(), job, nodes)
    if plan is None:
        typer.echo(
            "note: you may not read all nodes and pods, so nobody was asked whether it fits; a"
            " worker leaves only when its job can do without it",
            err=True,
        )
        return nodes, MigrationPlan()
    if plan.problem:
        raise JobError(f"it cannot leave {', '.join(nodes)} now: {plan.problem}")
    for step in plan.steps:
        if step.what == "grow":
            typer.echo(f"one worker more, on {step.target}", err=True)
        elif step.what == "move":
            typer.echo(f"{step.pod}: {step.source} -> {step.target}", err=True)
        else:
            typer.echo("one worker less", err=True)
    return nodes, plan


def _has_left(job: "TrainingJob") -> bool:
    said = job.status.migration
    return said is not None and said.done and said.request == job.leave
