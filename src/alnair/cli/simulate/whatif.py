"""`alnair simulate whatif`: what the scheduler would do if the cluster were another one."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from alnair.cli.cluster_selection import ClusterOptions, ask, unreadable
from alnair.cli.failures import FAILED, NOT_IN_TIME, USAGE, expected
from alnair.cli.json_output import json_option_last, write_json
from alnair.cli.option_groups import grouped
from alnair.cli.simulate.whatif_options import (
    MOVES,
    ChangeOptions,
    FreeingOptions,
    StateOptions,
)

if TYPE_CHECKING:
    from alnair.kube.client import Client
    from alnair.sim.whatif.answer import Answer
    from alnair.sim.whatif.changes import Changes
    from alnair.sim.whatif.inputs import State
    from alnair.sim.whatif.plans import Freeing

_LOOKING = "looking ahead"


@grouped
def whatif(
    *,
    state: StateOptions,
    change: ChangeOptions,
    horizon: Annotated[
        str,
        typer.Option(
            "--horizon",
            metavar="SPAN",
            help="How far to look ahead for what must wait, such as 90m, 24h, 7d.",
        ),
    ] = "24h",
    plan: FreeingOptions,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="With --from-cluster: the scheduler's configuration file.",
        ),
    ] = None,
    cluster: ClusterOptions,
    json: Annotated[bool, json_option_last("the answer")] = False,
) -> None:
    """Say what the scheduler would do: where pods would go, why not, when, and at whose cost.

    The production scheduler decides, on an API server that is only imagined. Nodes change first,
    then pods are submitted; what does not fit at once may wait for running pods to reach their
    time limits. A plan to free GPUs starts from the changed cluster. Nothing is written anywhere.

    Ends with 0 if all that was asked for can be had, at once or within the horizon, 1 if not, 2 on
    wrong usage or a wrong file, 3 if the cluster cannot be read, 130 after an interrupt.

    Examples:
      alnair simulate whatif --from-cluster --submit train.yaml --count 4
      alnair simulate whatif --snapshot now.json.gz --drain gpu-7 --add-nodes 2x8xH100
      alnair simulate whatif --from-cluster --free-gpus 8 --nodes-to-free 2 --max-moves 6 --json
    """
    from alnair.cli.text.whatif_answer import lines
    from alnair.sim.whatif.changes import ChangeError
    from alnair.sim.whatif.inputs import InputError, Wanted, changes, files, from_snapshot
    from alnair.sim.whatif.plans import Freeing

    _check_usage(state, plan, config)
    ahead = _seconds(horizon)
    wanted = Wanted(
        add=tuple(change.add_nodes or ()),
        remove=tuple(change.remove_node or ()),
        drain=tuple(change.drain or ()),
        cordon=tuple(change.cordon or ()),
        submit=tuple(change.submit or ()),
        count=change.count,
        namespace=change.namespace,
    )
    freeing = (
        Freeing(plan.free_gpus, plan.max_moves, plan.nodes_to_free) if plan.free_gpus else None
    )
    if wanted.is_empty and freeing is None:
        raise typer.BadParameter(
            "what if what? Give --submit, --add-nodes, --drain, --remove-node, --cordon or"
            " --free-gpus",
            param_hint="--submit",
        )
    with expected(InputError, ChangeError, code=USAGE):
        found = files(wanted)  # a wrong file is told before a cluster is asked
        if state.snapshot is not None:
            now = from_snapshot(state.snapshot)
        else:
            now = _of_cluster(cluster, config)
        made, notes = changes(wanted, found, now)
        answer = _ask(now, made, ahead, freeing)
    for note in notes:
        typer.echo(f"note: {note}", err=True)
    for line in lines(answer):
        typer.echo(line, err=json)
    if json:
        write_json({"satisfied": answer.satisfied, **msgspec.structs.asdict(answer)})
    if not answer.satisfied:
        raise typer.Exit(FAILED)


def _ask(state: "State", made: "Changes", ahead: float, freeing: "Freeing | None") -> "Answer":
    """Ask, with progress on stderr."""
    from alnair.cli.progress import Display
    from alnair.sim.whatif.question import ask as ask_scheduler

    with Display() as display:
        return ask_scheduler(
            state.known,
            state.profiles,
            made,
            now=state.now,
            horizon=ahead,
            seed=state.seed,
            freeing=freeing,
            progress=lambda done: display.progress(_LOOKING, round(done), round(ahead) + 1),
        )


def _of_cluster(cluster: ClusterOptions, config: Path | None) -> "State":
    """Return what a cluster is like now."""
    import time

    from alnair.configuration.profile_assembly import load_profiles
    from alnair.configuration.scheduler_file import ConfigurationError
    from alnair.kube.resources import PRIORITY_CLASSES
    from alnair.live import rebalancing
    from alnair.sim.inputs.workloads import PriorityClass
    from alnair.sim.whatif.inputs import State

    with expected(ConfigurationError, code=USAGE):
        configuration, profiles = load_profiles(config)

    async def read(client: "Client") -> State:
        known = await rebalancing.read(client, profiles)
        priorities = (await client.list(PRIORITY_CLASSES.typed(PriorityClass))).items
        return State(known, profiles, configuration.seed, time.time(), priorities)

    with unreadable(wordless=NOT_IN_TIME):
        return ask(cluster.connection(), "whatif", read)


def _check_usage(state: StateOptions, plan: FreeingOptions, config: Path | None) -> None:
    """Refuse options that do not go together."""
    if state.from_cluster == (state.snapshot is not None):
        raise typer.BadParameter(
            "give either --from-cluster or --snapshot FILE", param_hint="--from-cluster"
        )
    if state.snapshot is not None and config is not None:
        raise typer.BadParameter(
            "a snapshot has its profiles in it: leave --config away", param_hint="--config"
        )
    if plan.free_gpus is None and (plan.nodes_to_free, plan.max_moves) != (1, MOVES):
        raise typer.BadParameter(
            "how many GPUs shall be free? Give --free-gpus", param_hint="--free-gpus"
        )


def _seconds(horizon: str) -> float:
    """Return the seconds of the horizon."""
    from alnair.model.durations import seconds

    try:
        return seconds(horizon)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--horizon") from None
