"""The argument JOB and what goes with it: its namespace, its completion, how errors end."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from alnair.cli.cluster_selection import ClusterOptions, ask, unreadable
from alnair.cli.failures import expected

if TYPE_CHECKING:
    from alnair.kube.client import Client
    from alnair.model.training_job import TrainingJob

T = TypeVar("T")

#: Begins what is said of an answer that is none.
REFUSED = "the cluster refuses, or cannot be reached: "
#: Seconds in which names are completed, or not at all.
_COMPLETE = 2.0


def complete(context: typer.Context, incomplete: str) -> list[str]:
    """Return the names of jobs that begin so; none where the cluster does not answer at once."""
    from alnair.kube.errors import KubeError
    from alnair.live.training.finding import JobError, listed_jobs
    from alnair.local.errors import LocalClusterError

    given = context.params
    options = ClusterOptions(
        kubeconfig=given.get("kubeconfig"), context=given.get("context"), name=given.get("name")
    )
    try:
        found = options.connection()
        space = given.get("namespace") or found.namespace

        async def names(client: "Client") -> list[str]:
            import asyncio

            async with asyncio.timeout(_COMPLETE):
                return [one.name for one in await listed_jobs(client, space)]

        known = ask(found, "complete", names)
    except (KubeError, LocalClusterError, JobError, OSError):
        return []
    return [name for name in known if name.startswith(incomplete)]


JobName = Annotated[
    str,
    typer.Argument(
        metavar="JOB", help="Its name, or KIND/NAME such as ehj/mnist.", autocompletion=complete
    ),
]
Namespace = Annotated[
    str | None,
    typer.Option("--namespace", "-n", metavar="NS", help="Default: that of the context."),
]
Timeout = Annotated[
    float, typer.Option("--timeout", min=0, metavar="S", help="With --wait: seconds at most.")
]


def with_job(
    cluster: ClusterOptions,
    verb: str,
    namespace: str | None,
    name: str,
    work: "Callable[[Client, TrainingJob], Awaitable[T]]",
) -> T:
    """Find a job, and return what `work` returns of it; ends with 1 or 3 if it cannot be."""
    from alnair.live.training.finding import JobError, find

    with unreadable(before=REFUSED), expected(JobError):
        connection = cluster.connection()
        space = namespace or connection.namespace

        async def run(client: "Client") -> T:
            return await work(client, await find(client, space, name))

        return ask(connection, verb, run)


def teller() -> "Callable[[TrainingJob], None]":
    """Return what says on stderr how far a job is, whenever it is further."""
    from alnair.live.training.summary import progress, summary

    said: list[str] = []

    def tell(job: "TrainingJob") -> None:
        now = progress(summary(job))
        if said[-1:] != [now]:
            typer.echo(f"{job.name}: {now}", err=True)
            said.append(now)

    return tell
