"""`alnair rebalance`: moves pods so that a node has whole GPUs free, or is empty."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from alnair.cli.connect import ContextOption, KubeconfigOption, NameOption, first

if TYPE_CHECKING:
    from alnair.kube.connection import Connection
    from alnair.scheduler.advice.rebalance import Outcome
    from alnair.scheduler.framework.contract import Profile


def rebalance(
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    name: NameOption = None,
    free_gpus: Annotated[
        int | None,
        typer.Option(
            "--free-gpus", min=1, metavar="N", help="Free so many whole GPUs on one node."
        ),
    ] = None,
    node: Annotated[
        str | None,
        typer.Option(
            "--node", metavar="NODE", help="This node; without --free-gpus, empty it of all pods."
        ),
    ] = None,
    max_moves: Annotated[
        int, typer.Option("--max-moves", min=1, metavar="K", help="Move at most so many pods.")
    ] = 5,
    apply: Annotated[
        bool,
        typer.Option("--apply/--dry-run", help="Move the pods, or only show the plan (default)."),
    ] = False,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", metavar="FILE", help="The scheduler's configuration file, for its profiles."
        ),
    ] = None,
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout", min=1, metavar="SECONDS", help="With --apply: wait so long for each move."
        ),
    ] = 120.0,
    json: Annotated[
        bool, typer.Option("--json", help="Write the plan as one line of JSON.")
    ] = False,
) -> None:
    """Plan, and with --apply carry out, a few moves of pods that free whole GPUs or a node.

    Only pods are moved that a controller replaces, whose disruption budgets allow it, that are in
    no gang, and that are not annotated `ai.centaurus.io/evictable: "false"`. Where their
    replacements go is decided by the scheduler's own code. With --apply the node is cordoned
    meanwhile, and pods are evicted one at a time, each after the replacement of the last is bound.

    Ends with 0 if the plan can be (or was) carried out, 1 if not, 2 on wrong usage.

    For example:
      alnair rebalance --free-gpus 4
      alnair rebalance --free-gpus 8 --node gpu-17 --max-moves 3 --apply
      alnair rebalance --node gpu-17
    """
    from alnair.cli.connect import connection
    from alnair.configuration import scheduler_file as conf
    from alnair.configuration.profile_assembly import assemble
    from alnair.kube.errors import KubeError
    from alnair.live.rebalancing import MoveError
    from alnair.local.errors import LocalClusterError

    if free_gpus is None and node is None:
        raise typer.BadParameter("give it, or --node, or both", param_hint="--free-gpus")
    try:
        wanted = conf.load(config)
        profiles = assemble(wanted, str(config or "command line")).profiles()
    except conf.ConfigurationError as error:
        typer.echo(f"alnair: {error}", err=True)
        raise typer.Exit(2) from error
    try:
        found = connection(kubeconfig, context, name)
        outcome = asyncio.run(
            _run(found, profiles, free_gpus, node or "", max_moves, apply, timeout, json)
        )
    except* (KubeError, LocalClusterError, OSError, TimeoutError, MoveError) as group:
        text = str(first(group)) or "the cluster could not be read in a minute"
        typer.echo(f"alnair: {text}", err=True)
        raise typer.Exit(1) from None
    if outcome.problem:
        raise typer.Exit(1)


async def _run(
    connection: "Connection",
    profiles: "Sequence[Profile]",
    free_gpus: int | None,
    node: str,
    most: int,
    apply: bool,
    seconds: float,
    json: bool,
) -> "Outcome":
    from alnair.kube.client import Client
    from alnair.live import rebalancing

    async with Client(connection, user_agent="alnair-rebalance") as client:
        books = await rebalancing.learn(client, profiles)
        if free_gpus is None:
            outcome = books.empty(node, most)
        else:
            outcome = books.free_gpus(free_gpus, most, node)
        typer.echo(_json(outcome) if json else _table(outcome))
        if apply and outcome.moves:
            await rebalancing.carry_out(
                client, outcome.node, outcome.moves, seconds, lambda t: typer.echo(t, err=True)
            )
    return outcome


def _table(outcome: "Outcome") -> str:
    from alnair.cli.text.rebalance_plan import lines

    return "\n".join(lines(outcome))


def _json(outcome: "Outcome") -> str:
    import msgspec

    return msgspec.json.encode(outcome).decode()
