"""`alnair replay`: a production trace as real pods on a real API server."""

import asyncio
import contextlib
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from alnair.cli.connect import ContextOption, KubeconfigOption, NameOption, first

if TYPE_CHECKING:
    from alnair.kube.connection import Connection
    from alnair.live.replay.report import Report
    from alnair.traces.arrivals import Arrival
    from alnair.traces.openb_files import Trace

#: Exit codes: pods wait and nobody decides; the cluster cannot be reached; interrupted.
UNDECIDED = 1
UNREACHABLE = 3
INTERRUPTED = 130

_NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


class Settings(msgspec.Struct, frozen=True):
    """How to replay; see the options of the command."""

    namespace: str = "openb"
    profile: str = "alnair-scheduler"
    rate: float | None = None
    in_flight: int = 32
    patience: float = 60.0
    timeout: float = float("inf")
    fresh: bool = False


class Outcome(msgspec.Struct, frozen=True):
    """How it ended: the report, and why it did not come to its end, if so."""

    report: "Report"
    problem: str = ""
    interrupted: bool = False


def replay(
    trace: Annotated[
        Path | None,
        typer.Option(
            "--trace",
            metavar="DIR",
            help="Folder with an openb node list, or the list itself; default: the shipped trace.",
        ),
    ] = None,
    pods: Annotated[
        Path | None,
        typer.Option(
            "--pods",
            metavar="FILE",
            help="Pod list: a path, or which one of the folder, such as gpuspec10.",
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, metavar="N", help="Only the first N pods.")
    ] = None,
    tune: Annotated[
        float | None,
        typer.Option(
            "--tune",
            min=0.01,
            max=10,
            metavar="X",
            help="Inflate (or thin) the list until it asks for X times the GPUs there are.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Of the draws of --tune.")] = 0,
    order: Annotated[
        str | None,
        typer.Option(
            "--order",
            metavar="FILE",
            help="Names in the order of arrival; default-42.pods is shipped (130 %).",
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            "--rate", min=0.001, metavar="R", help="Create R pods a second; default: all."
        ),
    ] = None,
    profile: Annotated[
        str, typer.Option("--profile", metavar="NAME", help="The pods' schedulerName.")
    ] = "alnair-scheduler",
    namespace: Annotated[
        str, typer.Option("--namespace", metavar="NS", help="Where the pods live.")
    ] = "openb",
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh/--keep", help="Delete the pods of an earlier replay first, or go on."
        ),
    ] = False,
    patience: Annotated[
        float,
        typer.Option(
            "--patience", min=1, metavar="SECONDS", help="Give up when nobody decides for so long."
        ),
    ] = 60.0,
    timeout: Annotated[
        float | None,
        typer.Option("--timeout", min=1, metavar="SECONDS", help="Give up after so long in all."),
    ] = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    name: NameOption = None,
    json: Annotated[
        bool, typer.Option("--json", help="Write the report as one line of JSON, last.")
    ] = False,
) -> None:
    """Place the pods of a production GPU trace on a cluster, and report how well that went.

    Creates the nodes of the trace (simulated, see 'alnair up') and its pods as real objects and
    follows them until each has a node or a reason why it has none. What is there already is left
    alone: after an interrupt, the same command goes on.

    Ends with 0 if every pod has a node or a reason, 1 if some have neither, 2 on wrong usage or a
    wrong trace, 3 if the cluster cannot be reached, 130 after an interrupt.

    For example:
      alnair replay --limit 2000
      alnair replay --trace ../openb --pods gpuspec10 --tune 1.3 --seed 7 --fresh
      alnair replay --order default-42.pods --fresh --json
    """
    from alnair.cli.connect import connection
    from alnair.kube.errors import KubeError
    from alnair.local.errors import LocalClusterError
    from alnair.traces.files import TraceFileError

    if not _NAMESPACE.fullmatch(namespace):
        raise typer.BadParameter(
            f"{namespace!r} cannot name a namespace: use 1 to 63 lower-case letters, digits and "
            "dashes, starting and ending with a letter or digit",
            param_hint="--namespace",
        )
    try:
        found, arrivals = _plan(trace, pods, limit=limit, tune=tune, seed=seed, order=order)
    except TraceFileError as error:
        for line in str(error).splitlines():
            typer.echo(f"alnair: {line}", err=True)
        raise typer.Exit(2) from None
    settings = Settings(
        namespace=namespace,
        profile=profile,
        rate=rate,
        in_flight=1 if order else 32,
        patience=patience,
        timeout=timeout or float("inf"),
        fresh=fresh,
    )
    try:
        outcome = asyncio.run(
            carry_out(connection(kubeconfig, context, name), found, arrivals, settings)
        )
    except* (KubeError, LocalClusterError, OSError) as group:
        typer.echo(f"alnair: {first(group)}", err=True)
        raise typer.Exit(UNREACHABLE) from None
    if outcome.problem:
        typer.echo(f"alnair: {outcome.problem}", err=True)
    _print(outcome.report, json=json)
    if outcome.interrupted:
        typer.echo("interrupted; the same command goes on where this ended", err=True)
        raise typer.Exit(INTERRUPTED)
    if outcome.problem:
        raise typer.Exit(UNDECIDED)


def _plan(
    trace: Path | None,
    pods: Path | None,
    *,
    limit: int | None,
    tune: float | None,
    seed: int,
    order: str | None,
) -> "tuple[Trace, list[Arrival]]":
    from alnair.traces import openb_files
    from alnair.traces.arrivals import capacity, in_given_order, in_trace_order

    if order is not None and tune is not None:
        raise typer.BadParameter(
            "an order says itself which pods arrive: leave --tune away", param_hint="--order"
        )
    found = openb_files.load(trace, pods)
    if order is not None:
        arrivals = in_given_order(found.pods, openb_files.names(order), order)
    else:
        arrivals = in_trace_order(found.pods, tune=tune, capacity=capacity(found.nodes), seed=seed)
    return found, arrivals[:limit]


async def carry_out(
    connection: "Connection", trace: "Trace", arrivals: "list[Arrival]", settings: Settings
) -> Outcome:
    """Replay, with progress on stderr; an interrupt ends it with what is known by then.

    Raises:
        KubeError: The cluster cannot be reached, or refuses.
        LocalClusterError: Other nodes have the names of the trace's.
    """
    import datetime as dt
    import time

    from alnair.cli.text.replay_progress import ReplayDisplay
    from alnair.kube.client import Client
    from alnair.live.replay import report as replay_report
    from alnair.live.replay import scheduler
    from alnair.live.replay.run import ReplayError, Run, StalledError
    from alnair.local import simnodes
    from alnair.scheduler.published.fragmentation import target_workload

    stop = asyncio.Event()
    since, deadline = time.time(), time.monotonic() + settings.timeout
    problem, is_settled = "", False
    async with Client(connection, user_agent="alnair-replay") as client:
        with ReplayDisplay() as display, _interrupts(stop):
            display.step(f"{len(trace.nodes)} nodes and {len(arrivals)} pods of {settings.profile}")
            await simnodes.ensure(client, trace.nodes, dt.datetime.now(dt.UTC), display)
            run = Run(
                client,
                arrivals,
                namespace=settings.namespace,
                profile=settings.profile,
                models=sorted({node.model for node in trace.nodes if node.model}),
                rate=settings.rate,
                in_flight=settings.in_flight,
                patience=settings.patience,
            )
            try:
                await run.prepare(fresh=settings.fresh)
                is_settled = await run.run(
                    stop, deadline, lambda: display.show(run.ledger.counts())
                )
            except* ReplayError as group:
                error = first(group)
                problem = str(error)
                if isinstance(error, StalledError):
                    now = dt.datetime.now(dt.UTC)
                    problem += f": {await scheduler.absence(client, settings.profile, now)}"
        report = await replay_report.report(
            client, run.ledger, target_workload(trace.pods), settings.profile, since
        )
    return Outcome(report, problem, interrupted=not is_settled and not problem)


@contextlib.contextmanager
def _interrupts(stop: asyncio.Event) -> Iterator[None]:
    """Have the first interrupt end the replay in good order; the second ends it at once."""
    loop = asyncio.get_running_loop()

    def interrupted() -> None:
        stop.set()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupted)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


def _print(report: "Report", *, json: bool) -> None:
    import sys

    from rich.console import Console

    from alnair.live.replay.report import show

    show(report, Console(file=sys.stderr if json else sys.stdout, highlight=False))
    if json:
        typer.echo(msgspec.json.encode(report).decode())
