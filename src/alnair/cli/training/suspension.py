"""A training job gives all back, or goes on: what `alnair suspend` and `alnair resume` share."""

from typing import TYPE_CHECKING, Annotated

import typer

from alnair.cli.cluster_selection import ClusterOptions
from alnair.cli.json_output import write_json
from alnair.cli.training.job_argument import teller, with_job

if TYPE_CHECKING:
    from alnair.kube.client import Client
    from alnair.model.training_job import TrainingJob

Wait = Annotated[bool, typer.Option("--wait", help="Wait until it is so.")]


def become(
    cluster: ClusterOptions,
    namespace: str | None,
    name: str,
    *,
    suspended: bool,
    seconds: float | None,
    json: bool,
) -> None:
    """Suspend a job or have it go on, wait if seconds are given, and say how it is."""
    from alnair.live.training import changing
    from alnair.live.training.summary import progress, summary
    from alnair.model.training_job import RUNNING, SCALING, SUSPENDED

    def is_so(job: "TrainingJob") -> bool:
        phase = job.status.phase
        return phase == SUSPENDED if suspended else phase in (RUNNING, SCALING)

    async def work(client: "Client", found: "TrainingJob") -> "TrainingJob":
        changed = await changing.suspend(client, found, suspended=suspended)
        if seconds is None:
            return changed
        return await changing.until(client, changed, is_so, teller(), seconds)

    made = with_job(cluster, "suspend" if suspended else "resume", namespace, name, work)
    if json:
        write_json(summary(made))
    elif seconds is None:
        typer.echo(f"{made.name} is to be {'suspended' if suspended else 'resumed'}")
    else:
        typer.echo(f"{made.name}: {progress(summary(made))}")
