"""The options of `alnair simulate whatif`, in groups: the state, the changes, the plan."""

from pathlib import Path
from typing import Annotated, Final

import typer

from alnair.cli.option_groups import OptionGroup

#: Moves that a plan may take if nothing is said; as `alnair rebalance`.
MOVES: Final = 5


class StateOptions(OptionGroup, frozen=True, kw_only=True):
    """What the question starts from."""

    from_cluster: Annotated[
        bool, typer.Option("--from-cluster", help="Start from a live cluster; nothing is written.")
    ] = False
    snapshot: Annotated[
        Path | None,
        typer.Option(
            "--snapshot",
            metavar="FILE",
            help="Or start from what 'alnair scheduler snapshot' saved.",
        ),
    ] = None


class ChangeOptions(OptionGroup, frozen=True, kw_only=True):
    """What is changed."""

    add_nodes: Annotated[
        list[str] | None,
        typer.Option(
            "--add-nodes",
            metavar="NODES",
            help="Nodes join: 4x8xH100 (count, GPUs, model), 4x8xH100:cpu=96,memory=1Ti, 4=NODE"
            " (like one there is), or a file of Node manifests; repeatable.",
        ),
    ] = None
    remove_node: Annotated[
        list[str] | None,
        typer.Option("--remove-node", metavar="NODE", help="It is gone at once; repeatable."),
    ] = None
    drain: Annotated[
        list[str] | None,
        typer.Option(
            "--drain", metavar="NODE", help="It is cordoned, its pods are evicted; repeatable."
        ),
    ] = None
    cordon: Annotated[
        list[str] | None,
        typer.Option("--cordon", metavar="NODE", help="It takes no more pods; repeatable."),
    ] = None
    submit: Annotated[
        list[Path] | None,
        typer.Option(
            "--submit",
            metavar="FILE",
            help="Manifests of Pods, Jobs, PodGroups, … that are created then; repeatable.",
        ),
    ] = None
    count: Annotated[
        int, typer.Option("--count", min=1, max=10_000, metavar="N", help="Submit them N times.")
    ] = 1
    namespace: Annotated[
        str,
        typer.Option("--namespace", "-n", metavar="NS", help="Of submitted objects without one."),
    ] = "default"


class FreeingOptions(OptionGroup, frozen=True, kw_only=True):
    """Which GPUs shall be freed."""

    free_gpus: Annotated[
        int | None,
        typer.Option(
            "--free-gpus", min=1, metavar="N", help="Plan moves that free N whole GPUs on a node."
        ),
    ] = None
    nodes_to_free: Annotated[
        int,
        typer.Option("--nodes-to-free", min=1, metavar="N", help="On so many nodes."),
    ] = 1
    max_moves: Annotated[
        int, typer.Option("--max-moves", min=0, metavar="K", help="Of at most so many pods.")
    ] = MOVES
