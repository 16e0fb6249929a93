"""`alnair simulate whatif`: what the scheduler would do if the cluster were another one."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from alnair.cli.connect import ClusterOptions, ask, unreadable
from alnair.cli.failures import FAILED, NOT_IN_TIME, USAGE, expected
from alnair.cli.json_output import json_option_last, write_json
from alnair.cli.option_groups import grouped

if TYPE_CHECKING:
    from alnair.kube.client import Client
    from alnair.sim.whatif.answer import Answer
    from alnair.sim.whatif.changes import Changes
    from alnair.sim.whatif.inputs import State
    from alnair.sim.whatif.plans import Freeing

#: Moves that a plan may take if nothing is said; as `alnair rebalance`.
_MOVES = 5
_LOOKING = "looking ahead"


@grouped
def whatif(
    *,
    from_cluster: Annotated[
        bool, typer.Option("--from-cluster", help="Start from a live cluster; nothing is written.")
    ] = False,
    snapshot: Annotated[
        Path | None,
        typer.Option(
            "--snapshot",
            metavar="FILE",
            help="Or start from what 'alnair scheduler snapshot' saved.",
        ),
    ] = None,
    add_nodes: Annotated[
        list[str] | None,
        typer.Option(
            "--add-nodes",
            metavar="NODES",
            help="Nodes join: 4x8xH100 (count, GPUs, model), 4x8xH100:cpu=96,memory=1Ti, 4=NODE"
            " (like one there is), or a file of Node manifests; repeatable.",
        ),
    ] = None,
    remove_node: Annotated[
        list[str] | None,
        typer.Option("--remove-node", metavar="NODE", help="It is gone at once; repeatable."),
    ] = None,
    drain: Annotated[
        list[str] | None,
        typer.Option(
            "--drain", metavar="NODE", help="It is cordoned, its pods are evicted; repeatable."
        ),
    ] = None,
    cordon: Annotated[
        list[str] | None,
        typer.Option("--cordon", metavar="NODE", help="It takes no more pods; repeatable."),
    ] = None,
    submit: Annotated[
        list[Path] | None,
        typer.Option(
            "--submit",
            metavar="FILE",
            help="Manifests of Pods, Jobs, PodGroups, … that are created then; repeatable.",
        ),
    ] = None,
    count: Annotated[
        int, typer.Option("--count", min=1, max=10_000, metavar="N", help="Submit them N times.")
    ] = 1,
    namespace: Annotated[
        str,
        typer.Option("--namespace", metavar="NS", help="Of submitted objects that name none."),
    ] = "default",
    horizon: Annotated[
        str,
        typer.Option(
            "--horizon",
            metavar="SPAN",
            help="How far to look ahead for what must wait, such as 90m, 24h, 7d.",
        ),
    ] = "24h",
    free_gpus: Annotated[
        int | None,
        typer.Option(
            "--free-gpus", min=1, metavar="N", help="Plan moves that free N whole GPUs on a node."
        ),
    ] = None,
    nodes_to_free: Annotated[
        int,
        typer.Option("--nodes-to-free", min=1, metavar="N", help="On so many nodes."),
    ] = 1,
    max_moves: Annotated[
        int, typer.Option("--max-moves", min=0, metavar="K", help="Of at most so many pods.")
    ] = _MOVES,
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
    from alnair.sim.whatif.inputs import InputError, State, Wanted, changes, files, from_snapshot
    from alnair.sim.whatif.plans import Freeing

    ahead = _usage(from_cluster, snapshot, config, horizon, free_gpus, nodes_to_free, max_moves)
    wanted = Wanted(
        add=tuple(add_nodes or ()),
        remove=tuple(remove_node or ()),
        drain=tuple(drain or ()),
        cordon=tuple(cordon or ()),
        submit=tuple(submit or ()),
        count=count,
        namespace=namespace,
    )
    freeing = Freeing(free_gpus, max_moves, nodes_to_free) if free_gpus is not None else None
    if wanted.is_empty and freeing is None:
        raise typer.BadParameter(
            "what if what? Give --submit, --add-nodes, --drain, --remove-node, --cordon or"
            " --free-gpus",
            param_hint="--submit",
        )
    with expected(InputError, ChangeError, code=USAGE):
        found = files(wanted)  # a wrong file is told before a cluster is asked
        state: State = _of_cluster(cluster, config) if snapshot is None else from_snapshot(snapshot)
        made, notes = changes(wanted, found, state)
        answer = _ask(state, made, ahead, freeing)
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


def _usage(
    from_cluster: bool,
    snapshot: Path | None,
    config: Path | None,
    horizon: str,
    free_gpus: int | None,
    nodes_to_free: int,
    max_moves: int,
) -> float:
    """Refuse options that do not go together; returns the seconds of the horizon."""
    from alnair.model.durations import seconds

    if from_cluster == (snapshot is not None):
        raise typer.BadParameter(
            "give either --from-cluster or --snapshot FILE", param_hint="--from-cluster"
        )
    if snapshot is not None and config is not None:
        raise typer.BadParameter(
            "a snapshot has its profiles in it: leave --config away", param_hint="--config"
        )
    if free_gpus is None and (nodes_to_free, max_moves) != (1, _MOVES):
        raise typer.BadParameter(
            "how many GPUs shall be free? Give --free-gpus", param_hint="--free-gpus"
        )
    try:
        return seconds(horizon)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--horizon") from None
