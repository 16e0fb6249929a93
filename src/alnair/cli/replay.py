"""`alnair replay`: a production trace as real pods on a real API server."""

import re
from pathlib import Path
from typing import Annotated

import typer

from alnair.cli.cluster_selection import ClusterOptions, ask, unreadable
from alnair.cli.failures import FAILED, INTERRUPTED, USAGE, expected
from alnair.cli.json_output import json_option_last, write_json
from alnair.cli.option_groups import grouped

_NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


@grouped
def replay(
    *,
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
        str, typer.Option("--namespace", "-n", metavar="NS", help="Where the pods live.")
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
    cluster: ClusterOptions,
    json: Annotated[bool, json_option_last("the report")] = False,
) -> None:
    """Place the pods of a production GPU trace on a cluster, and report how well that went.

    Creates the nodes of the trace (simulated, see 'alnair up') and its pods as real objects and
    follows them until each has a node or a reason why it has none. What is there already is left
    alone: after an interrupt, the same command goes on. A cluster whose nodes are machines is
    refused; the real node of a local cluster is not in the way.

    Ends with 0 if every pod has a node or a reason, 1 if some have neither, 2 on wrong usage or a
    wrong trace, 3 if the cluster cannot be reached, 130 after an interrupt.

    Examples:
      alnair replay --limit 2000
      alnair replay --trace ../openb --pods gpuspec10 --tune 1.3 --seed 7 --fresh
      alnair replay --order default-42.pods --fresh --json
    """
    from alnair.cli.text import replay_report
    from alnair.cli.text.console import console
    from alnair.cli.trace_replay import carry_out
    from alnair.live.replay.session import Settings
    from alnair.traces import arrival_orders, openb_files
    from alnair.traces.files import TraceFileError

    if not _NAMESPACE.fullmatch(namespace):
        raise typer.BadParameter(
            f"{namespace!r} cannot name a namespace: use 1 to 63 lower-case letters, digits and "
            "dashes, starting and ending with a letter or digit",
            param_hint="--namespace",
        )
    if order is not None and tune is not None:
        raise typer.BadParameter(
            "an order says itself which pods arrive: leave --tune away", param_hint="--order"
        )
    with expected(TraceFileError, code=USAGE):
        found = openb_files.load(trace, pods)
        arrivals = arrival_orders.of_pods(found, order, tune=tune, seed=seed)[:limit]
    settings = Settings(
        namespace=namespace,
        profile=profile,
        rate=rate,
        in_flight=1 if order else 32,
        patience=patience,
        timeout=timeout or float("inf"),
        fresh=fresh,
    )
    with unreadable(before=""):
        outcome = ask(
            cluster.connection(), "replay", lambda c: carry_out(c, found, arrivals, settings)
        )
    if outcome.problem:
        typer.echo(f"alnair: {outcome.problem}", err=True)
    replay_report.show(outcome.report, console(json=json))
    if json:
        write_json(outcome.report)
    if outcome.interrupted:
        typer.echo("interrupted; the same command goes on where this ended", err=True)
        raise typer.Exit(INTERRUPTED)
    if outcome.problem:
        raise typer.Exit(FAILED)
