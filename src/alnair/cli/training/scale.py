"""`alnair scale`: how many workers a training job may have."""

from typing import TYPE_CHECKING, Annotated

import typer

from alnair.cli.cluster_selection import ClusterOptions
from alnair.cli.json_output import json_option, write_json
from alnair.cli.option_groups import grouped
from alnair.cli.training.job_argument import JobName, Namespace, Timeout, teller, with_job
from alnair.model.plurals import counted

if TYPE_CHECKING:
    from alnair.kube.client import Client
    from alnair.model.training_job import TrainingJob


@grouped
def scale(
    *,
    job: JobName,
    workers: Annotated[
        int | None, typer.Argument(metavar="N", min=1, help="Most workers for now.")
    ] = None,
    least: Annotated[
        int | None, typer.Option("--min", min=1, metavar="N", help="Fewest workers.")
    ] = None,
    most: Annotated[
        int | None, typer.Option("--max", min=1, metavar="N", help="Most workers ever.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it has as many.")] = False,
    timeout: Timeout = 300.0,
    namespace: Namespace = None,
    cluster: ClusterOptions,
    json: Annotated[bool, json_option("the job")] = False,
) -> None:
    """Say how many workers an elastic training job may have, as 'kubectl scale' does.

    It is given as many of them as there is room for, never fewer than its minimum, and goes on
    while their number changes. With --min and --max its bounds change, too.

    Ends with 0, 1 if it cannot be so, 2 on wrong usage, 3 if the cluster cannot be reached.

    Examples:
      alnair scale mnist 6
      alnair scale mnist 12 --max 16 --wait
      alnair scale etj/llama --min 4 -n team-a --json
    """
    from alnair.live.training import changing
    from alnair.live.training.summary import progress, summary

    if workers is None and least is None and most is None:
        raise typer.BadParameter("how many? Give a number, --min or --max", param_hint="N")

    async def work(client: "Client", found: "TrainingJob") -> "TrainingJob":
        changed = await changing.scale(client, found, workers, least, most)
        if not wait:
            return changed
        return await changing.until(client, changed, _has_as_many, teller(), timeout)

    made = with_job(cluster, "scale", namespace, job, work)
    if json:
        write_json(summary(made))
    else:
        wish = f"{counted(made.wish, 'worker')} {'is' if made.wish == 1 else 'are'} wanted"
        typer.echo(f"{made.name}: up to {wish}; {progress(summary(made))}")


def _has_as_many(job: "TrainingJob") -> bool:
    return job.status.available_replicas == job.status.replicas == job.wish
