"""`alnair report efficiency`: who held GPUs and did not use them, and what to do about it."""

import time
from pathlib import Path
from typing import Annotated, Literal

import typer

from alnair.cli.cluster_selection import unreadable
from alnair.cli.json_output import json_option_last, write_json


def efficiency(
    *,
    url: Annotated[
        str,
        typer.Option(
            "--history",
            metavar="URL",
            envvar="ALNAIR_HISTORY",
            show_default=False,
            help="The controller's history: a file, or postgresql://…",
        ),
    ],
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
    worst: Annotated[int, typer.Option(min=0, metavar="N", help="So many jobs with advice.")] = 10,
    folder: Annotated[
        Path | None,
        typer.Option("--report", metavar="DIR", help="Write a page, plots and tables there."),
    ] = None,
    json: Annotated[bool, json_option_last("the figures")] = False,
) -> None:
    """Say who held GPUs and did not use them, and which change would free how much.

    Wasted are hours of GPUs that were held, measured and not used: where no agent measured, nothing
    is said to be wasted. A job counts with its whole life if it lasted after --since; one that
    lasts counts as far as it was measured. The advice leaves room above what was seen, and is for
    pods with whole GPUs.

    Ends with 0, 2 on wrong usage, 3 if the history cannot be read.

    Examples:
      alnair report efficiency --history history.db --since 7d
      alnair report efficiency --history history.db --since 30d --report waste
      alnair report efficiency --history postgresql://alnair@db/alnair --by user --json
    """
    from alnair.cli.failures import UNREADABLE, USAGE, expected
    from alnair.cli.text import efficiency as text
    from alnair.cli.text.console import console
    from alnair.history import report as reports
    from alnair.history.database import efficiency as ask
    from alnair.history.database import opening
    from alnair.history.database.addresses import HistoryError
    from alnair.history.report import efficiency_files
    from alnair.model import durations

    try:
        begin = None if since is None else durations.moment(since, time.time())
    except ValueError:
        raise typer.BadParameter(
            f"{since!r} is not a time: write 90s, 30m, 12h or 7d, or 2026-01-31T12:00:00Z",
            param_hint="--since",
        ) from None
    with expected(reports.NotReportError, code=USAGE):
        if folder is not None:
            reports.check(folder)
    with unreadable(HistoryError, before=""), opening.readable(url) as connection:
        shares = ask.shares(connection, by, begin)
        days = ask.by_day(connection, by, begin) if folder is not None else []
        jobs = ask.worst(connection, begin, worst, namespace)
    found = text.document(by, shares, jobs)
    if folder is not None:
        with expected(OSError, code=UNREADABLE):
            reports.write_files(efficiency_files.render(by, shares, days, found), folder)
    text.show(by, shares, jobs, console(json=json))
    if folder is not None:
        typer.echo(f"report: {folder / 'index.html'}", err=True)
    if json:
        write_json(found)
