"""`alnair report scheduling`: how well a live cluster was scheduled, in figures."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from alnair.cli.cluster_selection import ClusterOptions, ask, unreadable
from alnair.cli.failures import INTERRUPTED, UNREADABLE, USAGE, expected
from alnair.cli.json_output import json_option_last, write_json
from alnair.cli.option_groups import grouped
from alnair.model.plurals import counted

if TYPE_CHECKING:
    from alnair.history.history import History
    from alnair.kube.client import Client
    from alnair.live.recording.recorded_cluster import Known


@grouped
def scheduling(
    *,
    record: Annotated[
        str | None,
        typer.Option(
            "--record",
            metavar="DB",
            help="Write all that happens from now on into a history (a file or a URL), until"
            " interrupted.",
        ),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option("--for", min=0, metavar="SECONDS", help="End --record by itself after this."),
    ] = None,
    history: Annotated[
        list[str] | None,
        typer.Option(
            "--history",
            metavar="FILE",
            help="Report on a history (a file or a URL), on a record of an earlier version, or on"
            " one of 'alnair simulate', and not on the cluster as it is; several are compared with"
            " the first.",
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="TIME",
            help="From when: 90s, 30m, 12h, 7d before the end, or a time as 2026-01-31T12:00:00Z.",
        ),
    ] = None,
    namespace: Annotated[
        list[str] | None,
        typer.Option(
            "--namespace", "-n", metavar="NS", help="Only the jobs of this namespace; repeatable."
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option("--report", metavar="DIR", help="Write a page, plots and tables there."),
    ] = None,
    cluster: ClusterOptions,
    json: Annotated[bool, json_option_last("the figures")] = False,
) -> None:
    """Say how well a live cluster is scheduled: the metrics of a simulation, of real jobs.

    One look knows only pods that are still there. So that deleted ones count too, let the
    controller keep a history. Where it keeps none, --record keeps one from outside: it may be
    killed at any moment, and the same command goes on. --history reads both, also while they are
    written.

    Ends with 0, 2 on wrong usage or a wrong file, 3 if the cluster cannot be read, 130 after an
    interrupt; an interrupt is how --record ends well, with 0.

    Examples:
      alnair report scheduling
      alnair report scheduling --record cluster.db
      alnair report scheduling --history cluster.db --since 7d --report week
      alnair report scheduling --history before.jsonl --history after.db --json
    """
    from alnair.history import report as reports
    from alnair.history.database.addresses import HistoryError
    from alnair.history.history_file import HistoryFileError
    from alnair.live.recording import one_look, windows
    from alnair.live.recording.record_file import RecordError

    if record is not None and (history or since or namespace or folder or json):
        raise typer.BadParameter(
            "it records and reports nothing: leave --history, --since, --namespace, --report and "
            "--json for when it is read",
            param_hint="--record",
        )
    if seconds is not None and record is None:
        raise typer.BadParameter("it is the time of --record: add that", param_hint="--for")
    if history and cluster.are_given:
        raise typer.BadParameter(
            "a file is read, and no cluster: leave the cluster away", param_hint="--history"
        )
    errors = (RecordError, HistoryError, HistoryFileError, reports.NotReportError)
    with (
        _bad_parameters(),
        unreadable(),
        expected(OSError, code=UNREADABLE),
        expected(*errors, code=USAGE),
    ):
        part = windows.window(since, namespace or ())
        if record is not None:
            _record(record, cluster, seconds)
            return
        if history:
            found = windows.read(history, part, _database)
        else:
            known = ask(cluster.connection(), "report", one_look.look)
            what = "one look at a cluster: deleted pods are not in it"
            found = {"cluster": windows.history_of(known, part, what)}
        _show(found, folder, json=json)


def _database(source: str) -> "tuple[Known, str]":
    from alnair.history.database import opening
    from alnair.live.recording import known_from_database

    return known_from_database.load(source), f"history {opening.shown(opening.address(source))}"


@contextlib.contextmanager
def _bad_parameters() -> Iterator[None]:
    """Name the option that cannot be used with what was found."""
    from alnair.live.recording.windows import NotRecordError, SinceError

    try:
        yield
    except SinceError as error:
        raise typer.BadParameter(str(error), param_hint="--since") from None
    except NotRecordError as error:
        raise typer.BadParameter(str(error), param_hint="--history") from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


def _record(name: str, cluster: ClusterOptions, seconds: float | None) -> None:
    from alnair.cli.interrupts import until_interrupted
    from alnair.history.database import opening
    from alnair.live.recording import windows
    from alnair.processes.controller.history import recording

    windows.check_no_record(name)
    shown = opening.shown(opening.address(name))

    def tell(nodes: int, pods: int) -> None:
        typer.echo(
            f"recording {counted(nodes, 'node')} and {counted(pods, 'pod')} to {shown}; "
            f"Ctrl-C ends it",
            err=True,
        )

    async def work(client: "Client") -> None:
        await recording.record(client, name, until_interrupted(seconds), tell)

    ask(cluster.connection(), "report", work)


def _show(found: "dict[str, History]", folder: Path | None, *, json: bool) -> None:
    from alnair.cli.text import metrics
    from alnair.cli.text.console import console
    from alnair.history import report as reports
    from alnair.history.metrics import compute

    if folder is not None:
        reports.check(folder)
    runs = {run: compute(history) for run, history in found.items()}
    if folder is not None:
        reports.write(found, folder, runs)
    metrics.show(runs, console(json=json))
    if folder is not None:
        typer.echo(f"report: {folder / 'index.html'}", err=True)
    if json:
        write_json(metrics.figures(runs))
