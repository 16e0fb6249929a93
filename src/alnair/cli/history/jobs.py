"""`alnair history`: the jobs that there were."""

import time
from typing import Annotated, Literal

import typer

from alnair.cli.cluster_selection import ClusterOptions
from alnair.cli.history.source import HistoryUrl, jobs
from alnair.cli.json_output import write_json
from alnair.cli.option_groups import grouped


@grouped
def history(
    *,
    called: typer.Context,
    url: HistoryUrl = "",
    cluster: ClusterOptions,
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", metavar="NS", help="Only of this namespace.")
    ] = None,
    user: Annotated[str | None, typer.Option(metavar="USER", help="Only of this user.")] = None,
    kind: Annotated[
        str | None, typer.Option(metavar="KIND", help="Only of this kind, such as Job.")
    ] = None,
    state: Annotated[
        str | None,
        typer.Option(
            metavar="STATE",
            help="running, pending, completed, failed, preempted, evicted, lost or deleted.",
        ),
    ] = None,
    series: Annotated[
        str | None,
        typer.Option(metavar="SERIES", help="Only runs of this work, such as CronJob/nightly."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Only jobs that lasted after this: 2d, yesterday, or 2026-01-31T12:00:00Z.",
        ),
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only jobs that were submitted before.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=10000, metavar="N", help="The newest N.")] = 100,
    output: Annotated[
        Literal["table", "json", "csv"], typer.Option("--output", "-o", help="How to write them.")
    ] = "table",
    json: Annotated[bool, typer.Option("--json", help="The same as -o json.")] = False,
) -> None:
    """List the jobs that there were, the newest first, also those that are gone.

    The controller keeps them with 'alnair controller --history'. It is asked through the API
    server, unless --history names the database.

    Ends with 0, 2 on wrong usage, 3 if the history cannot be read.

    Examples:
      alnair history --since 2d --state failed
      alnair history --since yesterday --until today
      alnair history -n team-a --user ann -o csv
      alnair history show team-a/Job/train-7
      alnair history --history postgresql://alnair@db/alnair --json
    """
    if called.invoked_subcommand is not None:
        return
    wanted = {
        "namespace": namespace, "user": user, "kind": kind, "state": state, "series": series,
        "since": since, "until": until,
    }  # fmt: skip
    query = {name: value for name, value in wanted.items() if value is not None}
    found = jobs(url, cluster, {**query, "limit": str(limit)})
    if json or output == "json":
        write_json({"v": 1, "jobs": found})
    elif output == "csv":
        from alnair.cli.text import history as text

        typer.echo(text.csv_of(found), nl=False)
    else:
        from alnair.cli.text import history as text
        from alnair.cli.text.console import console

        text.show_jobs(found, console(wide=True), time.time())
        if not found:
            typer.echo("no job is as wanted: leave a filter away, or name another time", err=True)
        elif len(found) == limit:
            typer.echo(f"the newest {limit}: for more, --limit", err=True)
