"""`alnair submit`: a training job from a script or a command, followed to its end."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from alnair.cli.cluster_selection import ClusterOptions, ask, unreadable
from alnair.cli.failures import FAILED, INTERRUPTED, expected
from alnair.cli.json_output import write_json
from alnair.cli.option_groups import grouped
from alnair.cli.training.job_argument import REFUSED, Namespace
from alnair.cli.training.submit_options import PolicyOptions, ProgramOptions, SizeOptions

if TYPE_CHECKING:
    from alnair.elastic.submission import Submission
    from alnair.kube.client import Client
    from alnair.model.training_job import TrainingJob


@grouped
def submit(
    *,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SCRIPT -- ARG",
            help="A Python file, which travels with the job, and its arguments after --; or after"
            " -- a command of the image.",
        ),
    ] = None,
    program: ProgramOptions,
    size: SizeOptions,
    policy: PolicyOptions,
    replace: Annotated[
        bool, typer.Option("--replace", help="Delete a job of this name first, and all it has.")
    ] = False,
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Make it, and do not wait for its end.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Write what would be made; ask no cluster.")
    ] = False,
    output: Annotated[
        Literal["yaml", "json"] | None,
        typer.Option(
            "--output", "-o", help="With --dry-run how it is written; else json: the job, last."
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="The same as -o json.")] = False,
    namespace: Namespace = None,
    cluster: ClusterOptions,
) -> None:
    """Submit an elastic training job from a script or a command, and follow it to its end.

    Everything is checked before anything is made. The log is that of Horovod's launcher or of
    torchrun's first worker; how far the job is comes on stderr. Ctrl-C leaves the job alone: it
    goes on, and 'alnair logs JOB -f' follows it again.

    Ends with 0 if the training succeeded (or was made, with --detach), 1 if it failed or could not
    be made, 2 on wrong usage, 3 if the cluster cannot be reached, 130 after an interrupt.

    Examples:
      alnair submit train.py --image pytorch:2 --workers 2..8 -- --epochs 3
      alnair submit train.py --image horovod:1 --kind horovod --min 2 --max 8 --gpu-memory 8Gi
      alnair submit --job mnist --image mnist:1 -w 4 --detach -- python /app/train.py
      alnair submit train.py --image pytorch:2 --dry-run -o yaml | kubectl apply -f -
    """
    from alnair.cli.training.submission_of_options import submission

    wanted = submission(words or [], program, size, policy)
    as_json = json or output == "json"
    if dry_run:
        _write(wanted, namespace, as_json=as_json)
        return
    if output == "yaml":
        raise typer.BadParameter("it is of --dry-run: add that", param_hint="--output")
    _carry_out(wanted, namespace, cluster, replace=replace, detach=detach, as_json=as_json)


def _carry_out(
    wanted: "Submission",
    namespace: str | None,
    cluster: ClusterOptions,
    *,
    replace: bool,
    detach: bool,
    as_json: bool,
) -> None:
    from alnair.live.training.finding import JobError, find
    from alnair.live.training.submitting import check
    from alnair.live.training.submitting import submit as make
    from alnair.live.training.summary import summary
    from alnair.model.training_job import SUCCEEDED

    with unreadable(before=REFUSED), expected(JobError):
        connection = cluster.connection()
        space = namespace or connection.namespace

        async def work(client: "Client") -> "tuple[TrainingJob, TrainingJob | None]":
            notes, there = await check(client, space, wanted, replace=replace)
            for note in notes:
                typer.echo(f"note: {note}", err=True)
            made = await make(client, space, wanted, there)
            kind, name = made["kind"], made["metadata"]["name"]
            typer.echo(f"{kind}/{name} created in namespace {space}", err=True)
            job = await find(client, space, f"{kind}/{name}")
            return job, None if detach else await _follow(client, job, as_json=as_json)

        job, last = ask(connection, "submit", work)
    if as_json:
        write_json(summary(last or job))
    again = f"'alnair logs {job.name} -n {space} -f'"
    if last is None:
        typer.echo(f"{job.name} goes on: follow it with {again}", err=True)
        raise typer.Exit(0 if detach else INTERRUPTED)
    if last.finished != SUCCEEDED:
        why = summary(last)
        typer.echo(f"alnair: {job.name} failed: {why.reason}: {why.message}", err=True)
        raise typer.Exit(FAILED)


async def _follow(client: "Client", job: "TrainingJob", *, as_json: bool) -> "TrainingJob | None":
    """Follow a job to its end; None if the user left it."""
    import asyncio

    from alnair.cli.interrupts import setting
    from alnair.cli.training.logs import writer
    from alnair.live.training.watching import watch

    stop = asyncio.Event()
    write = writer(prefixed=False, error=as_json)
    with setting(stop):
        return await watch(
            client, job, stop, write, lambda text: typer.echo(f"{job.name}: {text}", err=True)
        )


def _write(wanted: "Submission", namespace: str | None, *, as_json: bool) -> None:
    """Write the manifests, the script's first: it is there then when the job's pods come."""
    import msgspec

    from alnair.elastic.submission import job_manifest, script_manifest

    made = [one for one in (script_manifest(wanted), job_manifest(wanted)) if one is not None]
    for one in made:
        if namespace is not None:
            one["metadata"]["namespace"] = namespace
    if as_json:
        write_json({"apiVersion": "v1", "kind": "List", "items": made})
    else:
        texts = (msgspec.yaml.encode(one).decode() for one in made)
        typer.echo("---\n".join(texts), nl=False)
