"""`alnair report`: what became of a live cluster's jobs, in figures."""

import asyncio
import contextlib
import signal
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from alnair.cli.connect import ContextOption, KubeconfigOption, NameOption, first

if TYPE_CHECKING:
    from alnair.history.history import History
    from alnair.kube.connection import Connection
    from alnair.live.recording.known import Known

#: Exit codes: the cluster cannot be read; interrupted.
UNREADABLE = 3
INTERRUPTED = 130

app = typer.Typer(no_args_is_help=True)


@app.callback()
def report() -> None:
    """Report what became of a cluster's jobs."""


@app.command("scheduling")
def scheduling(
    record: Annotated[
        Path | None,
        typer.Option(
            "--record",
            metavar="FILE",
            help="Append all that happens from now on to a record, until interrupted.",
        ),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option("--for", min=0, metavar="SECONDS", help="End --record by itself after this."),
    ] = None,
    history: Annotated[
        list[Path] | None,
        typer.Option(
            "--history",
            metavar="FILE",
            help="Report on a record, or on a history of 'alnair simulate', and not on the cluster"
            " as it is; several are compared with the first.",
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
            "--namespace", metavar="NS", help="Only the jobs of this namespace; repeatable."
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option("--report", metavar="DIR", help="Write a page, plots and tables there."),
    ] = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    name: NameOption = None,
    json: Annotated[
        bool, typer.Option("--json", help="Write the figures as one line of JSON, last.")
    ] = False,
) -> None:
    """Say how well a live cluster is scheduled: the metrics of a simulation, of real jobs.

    One look knows only pods that are still there. So that deleted ones count too, keep a record:
    --record writes down all that happens and may be killed at any moment; the same command goes
    on. --history then reads it, also while it is written.

    Ends with 0, 2 on wrong usage or a wrong file, 3 if the cluster cannot be read, 130 after an
    interrupt; an interrupt is how --record ends well, with 0.

    Examples:
      alnair report scheduling
      alnair report scheduling --record cluster.jsonl
      alnair report scheduling --history cluster.jsonl --since 7d --report week
      alnair report scheduling --history before.jsonl --history after.jsonl --json
    """
    from alnair.history.history_file import HistoryFileError
    from alnair.history.report import NotReportError
    from alnair.kube.errors import KubeError
    from alnair.live.recording.record_file import RecordError
    from alnair.local.errors import LocalClusterError

    if record is not None and (history or since or namespace or folder or json):
        raise typer.BadParameter(
            "it records and reports nothing: leave --history, --since, --namespace, --report and "
            "--json for when it is read",
            param_hint="--record",
        )
    if seconds is not None and record is None:
        raise typer.BadParameter("it is the time of --record: add that", param_hint="--for")
    if history and (kubeconfig or context or name):
        raise typer.BadParameter(
            "a file is read, and no cluster: leave the cluster away", param_hint="--history"
        )
    begin = _moment(since)
    try:
        if record is not None:
            asyncio.run(_record(record, _connection(kubeconfig, context, name), seconds))
            return
        namespaces = frozenset(namespace or ())
        if history:
            found = _read(history, begin, namespaces)
        else:
            cluster = _connection(kubeconfig, context, name)
            found = {"cluster": asyncio.run(_look(cluster, begin, namespaces))}
        _tell(found, folder, json=json)
    except* (RecordError, HistoryFileError, NotReportError) as group:
        typer.echo(f"alnair: {first(group)}", err=True)
        raise typer.Exit(2) from None
    except* (KubeError, LocalClusterError) as group:
        typer.echo(f"alnair: the cluster cannot be read: {first(group)}", err=True)
        raise typer.Exit(UNREADABLE) from None
    except* OSError as group:
        typer.echo(f"alnair: {first(group)}", err=True)
        raise typer.Exit(UNREADABLE) from None
    except* KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


def _connection(kubeconfig: Path | None, context: str | None, name: str | None) -> "Connection":
    from alnair.cli.connect import connection

    return connection(kubeconfig, context, name)


def _moment(since: str | None) -> tuple[float | None, float | None]:
    """Return what --since means: seconds since the epoch, or seconds before the end."""
    from alnair.model import durations

    if since is None:
        return None, None
    with contextlib.suppress(ValueError):
        return None, durations.seconds(since)
    try:
        time = datetime.fromisoformat(since)
    except ValueError:
        raise typer.BadParameter(
            f"{since!r} is not a time: write 90s, 30m, 12h or 7d, or 2026-01-31T12:00:00Z",
            param_hint="--since",
        ) from None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp(), None


def _read(
    paths: list[Path],
    begin: tuple[float | None, float | None],
    namespaces: frozenset[str],
) -> "dict[str, History]":
    """Return the histories of some files, by the names of these."""
    from alnair.history import history_file
    from alnair.live.recording import record_file

    found: dict[str, History] = {}
    for path in paths:
        run, number = path.name.split(".")[0], 1
        while run in found:
            number += 1
            run = f"{path.name.split('.')[0]}-{number}"
        if _is_record(path):
            found[run] = _built(record_file.load(path), begin, namespaces, f"record {path}")
        elif begin == (None, None) and not namespaces:
            found[run] = history_file.load(path)
        else:
            raise typer.BadParameter(
                f"{path} is no record of a cluster: leave --since and --namespace away",
                param_hint="--history",
            )
    return found


def _is_record(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return b'"alnair-record"' in file.readline(1000)
    except OSError:
        return False  # who reads it will say why


def _built(
    known: "Known", begin: tuple[float | None, float | None], namespaces: frozenset[str], what: str
) -> "History":
    from alnair.live.recording.building import build

    at, before_end = begin
    if before_end is not None:
        at = known.last - before_end
    end = datetime.fromtimestamp(known.last, UTC).isoformat(" ", "seconds")
    if at is not None and at >= known.last:
        raise typer.BadParameter(f"that is after the end, {end}", param_hint="--since")
    return build(known, begin=at, namespaces=namespaces, source=f"{what}, until {end}")


async def _look(
    connection: "Connection",
    begin: tuple[float | None, float | None],
    namespaces: frozenset[str],
) -> "History":
    from alnair.kube.client import Client
    from alnair.live.recording import watching

    async with Client(connection, user_agent="alnair-report") as client:
        known = await watching.look(client)
    return _built(known, begin, namespaces, "one look at a cluster: deleted pods are not in it")


async def _record(path: Path, connection: "Connection", seconds: float | None) -> None:
    from alnair.kube.client import Client
    from alnair.live.recording import watching
    from alnair.live.recording.record_file import RecordFile

    asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, asked.set)

    async def stop() -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asked.wait(), seconds)

    def tell(nodes: int, pods: int) -> None:
        typer.echo(f"recording {nodes} nodes and {pods} pods to {path}; Ctrl-C ends it", err=True)

    with RecordFile(path) as file:
        async with Client(connection, user_agent="alnair-report") as client:
            await watching.record(client, file, stop, tell)


def _tell(found: "dict[str, History]", folder: Path | None, *, json: bool) -> None:
    import sys

    from rich.console import Console

    from alnair.cli.text import metrics
    from alnair.history import report as reports
    from alnair.history.metrics import compute

    if folder is not None:
        reports.check(folder)
    runs = {run: compute(history) for run, history in found.items()}
    if folder is not None:
        reports.write(found, folder, runs)
    metrics.show(runs, Console(file=sys.stderr if json else sys.stdout, highlight=False))
    if folder is not None:
        typer.echo(f"report: {folder / 'index.html'}", err=True)
    if json:
        typer.echo(metrics.json(runs))
