"""`alnair simulate placement`: how full a profile or policy fills the GPUs of a trace."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from alnair.traces.arrivals import Arrival
    from alnair.traces.openb_files import Trace


#: Demand that a list is inflated to, as a part of the GPUs there are.
_TUNE = 1.3


def placement(
    nodes: Annotated[
        Path | None,
        typer.Option(
            "--nodes", metavar="FILE", help="An openb node list; default: the shipped one."
        ),
    ] = None,
    pods: Annotated[
        Path | None,
        typer.Option("--pods", metavar="FILE", help="An openb pod list; default: the shipped one."),
    ] = None,
    orders: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--orders",
            metavar="PODS NODES",
            help="Files with the names of pods in the order of arrival, and of nodes in the order "
            "that breaks ties; default-42.pods and default-42.nodes are shipped.",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option("--seed", metavar="N", help="Of orders of our own, if none are given [0]."),
    ] = None,
    tune: Annotated[
        float | None,
        typer.Option(
            "--tune",
            min=0.01,
            max=10,
            metavar="X",
            help="With --seed: inflate (or thin) the list to X times the GPUs there are [1.3].",
        ),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option("--profile", metavar="NAME", help="Which profile places [alnair-scheduler]."),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            metavar="NAME",
            help="Instead, alone: opportunitycost (ours), or of the literature fgd, bestfit, "
            "dotprod, packing, clustering, firstfit or random.",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", metavar="FILE", help="A scheduler configuration with profiles of one's own."
        ),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Write the result as one line of JSON, last.")
    ] = False,
) -> None:
    """Place the pods of a GPU trace one after another, and say how much GPU nobody got.

    Pods arrive in order and never leave; one that no node has room for is dropped. This is the
    benchmark of Weng et al., Beware of Fragmentation (USENIX ATC'23), and with the published
    orders a published policy gives the published figures.

    Ends with 0 when all pods were tried, 2 on wrong usage or a wrong file, 130 after an interrupt.

    Examples:
      alnair simulate placement
      alnair simulate placement --policy fgd --orders default-42.pods default-42.nodes
      alnair simulate placement --pods my_pods.csv --nodes my_nodes.csv --seed 7 --json
    """
    import time

    from alnair.cli.progress import Display
    from alnair.cli.text import placement_result
    from alnair.configuration.scheduler_file import ConfigurationError
    from alnair.scheduler.published.fragmentation import target_workload
    from alnair.sim.placement import benchmark as simulation
    from alnair.sim.placement import policies
    from alnair.traces.files import TraceFileError

    if orders is not None and (seed is not None or tune is not None):
        raise typer.BadParameter(
            "orders say themselves which pods arrive, and when: leave --seed and --tune away",
            param_hint="--orders",
        )
    if policy is not None and (profile is not None or config is not None):
        raise typer.BadParameter(
            "a policy has a profile of its own: leave --profile and --config away",
            param_hint="--policy",
        )
    try:
        trace, arrivals, order = _plan(nodes, pods, orders, seed or 0, tune or _TUNE)
        workload = target_workload(trace.pods)
        if policy is not None:
            chosen = policies.policy(policy, workload, seed or 0)
        else:
            chosen = policies.profile(profile, config)
    except policies.UnknownPolicyError as error:
        hint = "--policy" if policy is not None else "--profile"
        raise typer.BadParameter(str(error), param_hint=hint) from None
    except (TraceFileError, ConfigurationError) as error:
        for line in str(error).splitlines():
            typer.echo(f"alnair: {line}", err=True)
        raise typer.Exit(2) from None
    with Display() as display:
        run = simulation.run(
            trace.nodes,
            arrivals,
            chosen,
            workload,
            order=order,
            timer=time.perf_counter,
            progress=lambda done: display.progress("placing pods", done, len(arrivals)),
        )
    result = placement_result.of(
        run,
        trace=str(pods) if pods is not None else "openb default",
        policy=chosen.scheduler,
        seed=None if orders is not None else seed or 0,
        orders=orders or (),
    )
    placement_result.show(result, json=json)


def _plan(
    nodes: Path | None,
    pods: Path | None,
    orders: tuple[str, str] | None,
    seed: int,
    tune: float,
) -> "tuple[Trace, list[Arrival], list[str]]":
    """Return the trace, who arrives when, and the nodes in the order that breaks ties."""
    from alnair.traces import arrivals, openb_files

    found = openb_files.load(nodes, pods)
    if orders is None:
        seeded = arrivals.in_seeded_order(
            found.pods, tune=tune, capacity=arrivals.capacity(found.nodes), seed=seed
        )
        return found, seeded, arrivals.nodes_in_seeded_order(found.nodes, seed)
    given = arrivals.in_given_order(found.pods, openb_files.names(orders[0]), orders[0])
    order = arrivals.nodes_in_given_order(found.nodes, openb_files.names(orders[1]), orders[1])
    return found, given, order
