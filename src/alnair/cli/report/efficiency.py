"""`alnair report efficiency`: who held GPUs and did not use them, and what to do about it."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from alnair.cli.cluster_selection import ClusterOptions
from alnair.cli.history import source
from alnair.cli.history.source import HistoryUrl
from alnair.cli.json_output import json_option_last, write_json
from alnair.cli.option_groups import grouped


@grouped
def efficiency(
    *,
    url: HistoryUrl = "",
    cluster: ClusterOptions,
    by: Annotated[
        Literal["namespace", "user"], typer.Option(help="Whose GPU hours are added up.")
    ] = "namespace",
    since: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Only jobs that lasted after this: 7d, or 2026-01-31T12:00:00Z."
        ),
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option("--namespace", "-n", metavar="NS", help="Only the worst jobs of this one."),
    ] = None,
    worst: Annotated[
        int, typer.Option(min=0, max=1000, metavar="N", help="So many jobs with advice.")
    ] = 10,
    folder: Annotated[
        Path | None,
        typer.Option("--report", metavar="DIR", help="Write a page, plots and tables there."),
    ] = None,
    json: Annotated[bool, json_option_last("the figures")] = False,
) -> None:
    """Say who held GPUs and did not use them, and which change would free how much.

    The controller is asked, which keeps the history with 'alnair controller --history', unless
    --history names the database.

    Wasted are hours of GPUs that were held, measured and not used: where no agent measured, nothing
    is said to be wasted. A job counts with its whole life if it lasted after --since; one that
    lasts counts as far as it was measured. The advice leaves room above what was seen, and is for
    pods with whole GPUs.

    Ends with 0, 2 on wrong usage, 3 if the history cannot be read.

    Examples:
      alnair report efficiency --since 7d
      alnair report efficiency --history history.db --since 30d --report waste
      alnair report efficiency --history postgresql://alnair@db/alnair --by user --json
    """
    from alnair.cli.failures import UNREADABLE, USAGE, expected
    from alnair.cli.text import efficiency as text
    from alnair.cli.text.console import console
    from alnair.history import report as reports
    from alnair.history.report import efficiency_files

    with expected(reports.NotReportError, code=USAGE):
        if folder is not None:
            reports.check(folder)
    wanted = {"by": by, "since": since, "namespace": namespace, "worst": str(worst)}
    query = {name: value for name, value in wanted.items() if value is not None}
    figures = source.efficiency(url, cluster, query)
    found = text.document(by, figures.shares, figures.jobs)
    if folder is not None:
        with expected(OSError, code=UNREADABLE):
            files = efficiency_files.render(by, figures.shares, figures.days, found)
            reports.write_files(files, folder)
    text.show(by, figures.shares, figures.jobs, console(json=json))
    if folder is not None:
        typer.echo(f"report: {folder / 'index.html'}", err=True)
    if json:
        write_json(found)
