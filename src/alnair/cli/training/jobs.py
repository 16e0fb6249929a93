"""`alnair jobs`: the training jobs that there are, or one of them."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from alnair.cli.cluster_selection import ClusterOptions, ask, unreadable
from alnair.cli.failures import expected
from alnair.cli.json_output import json_option, write_json
from alnair.cli.option_groups import grouped
from alnair.cli.training.job_argument import REFUSED, Namespace, complete, with_job

if TYPE_CHECKING:
    from alnair.kube.client import Client
    from alnair.model.training_job import TrainingJob


@grouped
def jobs(
    *,
    job: Annotated[
        str | None,
        typer.Argument(metavar="JOB", help="Only this one, in full.", autocompletion=complete),
    ] = None,
    namespace: Namespace = None,
    everywhere: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="Of all namespaces.")
    ] = False,
    cluster: ClusterOptions,
    json: Annotated[bool, json_option("the jobs")] = False,
) -> None:
    """List the training jobs that there are, or show one with its conditions and workers.

    Those that are gone, and jobs of other kinds, are in 'alnair history'.

    Ends with 0, 1 if there is no such job, 2 on wrong usage, 3 if the cluster cannot be read.

    Examples:
      alnair jobs -A
      alnair jobs mnist -n team-a
      alnair jobs --json | jq '.jobs[] | select(.phase == "Failed") | .name'
    """
    from alnair.cli.known_namespace import must_exist
    from alnair.cli.text import training as text
    from alnair.cli.text.console import console
    from alnair.live.training.finding import JobError, listed_jobs
    from alnair.live.training.room import nodes_of
    from alnair.live.training.summary import summary

    if job is not None:

        async def one(
            client: "Client", found: "TrainingJob"
        ) -> "tuple[TrainingJob, dict[str, int]]":
            return found, await nodes_of(client, found)

        found, nodes = with_job(cluster, "jobs", namespace, job, one)
        if json:
            said = found.status.conditions or []
            write_json({"job": summary(found), "nodes": nodes, "conditions": said})
        else:
            text.show_job(found, nodes, console(wide=True), time.time())
        return
    with unreadable(before=REFUSED), expected(JobError):
        connection = cluster.connection()
        space = None if everywhere else namespace or connection.namespace

        async def read(client: "Client") -> "list[TrainingJob]":
            await must_exist(client, None if everywhere else namespace)
            return await listed_jobs(client, space)

        listed = ask(connection, "jobs", read)
    made = [summary(one) for one in listed]
    if json:
        write_json({"v": 1, "jobs": made})
    elif made:
        text.show_jobs(made, console(wide=True), time.time())
    else:
        where = "the cluster" if space is None else f"namespace {space}"
        typer.echo(f"no training jobs in {where}" + ("" if space is None else ": try -A"), err=True)
