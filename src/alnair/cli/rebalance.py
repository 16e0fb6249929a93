"""`alnair rebalance`: moves pods so that a node has whole GPUs free, or is empty."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from alnair.cli.cluster_selection import ClusterOptions, ask
from alnair.cli.failures import FAILED, USAGE, expected
from alnair.cli.json_output import json_option, write_json
from alnair.cli.option_groups import grouped

if TYPE_CHECKING:
    from alnair.kube.client import Client
    from alnair.scheduler.advice.rebalance import RebalanceOutcome


@grouped
def rebalance(
    *,
    cluster: ClusterOptions,
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
    json: Annotated[bool, json_option("the plan")] = False,
) -> None:
    """Plan, and with --apply carry out, a few moves of pods that free whole GPUs or a node.

    Only pods are moved that a controller replaces, whose disruption budgets allow it, that are in
    no gang (but members that an elastic gang can spare), and that are not annotated
    `ai.centaurus.io/evictable: "false"`. Where their replacements go is decided by the scheduler's
    own code. With --apply the node is cordoned meanwhile, and pods are evicted one at a time, each
    after the replacement of the last is bound; of an elastic gang, when it runs. Of an elastic
    training job all of whose workers leave a node, the training is told first, as by 'alnair
    migrate'.

    Ends with 0 if the plan can be (or was) carried out, 1 if not, 2 on wrong usage.

    Examples:
      alnair rebalance --free-gpus 4
      alnair rebalance --free-gpus 8 --node gpu-17 --max-moves 3 --apply
      alnair rebalance --node gpu-17
    """
    from alnair.cli.text.rebalance_plan import lines
    from alnair.configuration.profile_assembly import load_profiles
    from alnair.configuration.scheduler_file import ConfigurationError
    from alnair.kube.errors import KubeError
    from alnair.live import rebalancing
    from alnair.local.errors import LocalClusterError

    if free_gpus is None and node is None:
        raise typer.BadParameter("give it, or --node, or both", param_hint="--free-gpus")
    with expected(ConfigurationError, code=USAGE):
        _, profiles = load_profiles(config)

    def show(plan: "RebalanceOutcome") -> None:
        if json:
            write_json(plan)
        else:
            typer.echo("\n".join(lines(plan)))

    async def work(client: "Client") -> "RebalanceOutcome":
        plan = await rebalancing.plan(client, profiles, free_gpus, node or "", max_moves)
        show(plan)
        if apply and plan.moves:
            await rebalancing.carry_out(
                client, plan.node, plan.moves, timeout, lambda text: typer.echo(text, err=True)
            )
        return plan

    errors = (KubeError, LocalClusterError, OSError, rebalancing.MoveError)
    with expected(*errors, wordless="the cluster could not be read in a minute"):
        outcome = ask(cluster.connection(), "rebalance", work)
    if outcome.problem:
        raise typer.Exit(FAILED)
