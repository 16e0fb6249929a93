"""`alnair simulate placement`: how full a profile or policy fills the GPUs of a trace."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from alnair.cli.failures import UNREADABLE, USAGE, expected
from alnair.cli.interrupted import saying
from alnair.cli.json_output import json_option_last, write_json

if TYPE_CHECKING:
    from alnair.scheduler.framework.extension_points import Profile
    from alnair.scheduler.published.fragmentation import WorkloadClass
    from alnair.sim.placement.benchmark import Run
    from alnair.sim.placement.result import Result

#: Demand that a list is inflated to, as a part of the GPUs there are.
_TUNE = 1.3
_ORDERS = "orders say themselves which pods arrive, and when: leave --seed and --tune away"
_POLICY = "a policy has a profile of its own: leave --profile and --config away"


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
    folder: Annotated[
        Path | None,
        typer.Option("--report", metavar="DIR", help="Write a page, plots and a table there."),
    ] = None,
    json: Annotated[bool, json_option_last("the result")] = False,
) -> None:
    """Place the pods of a GPU trace one after another, and say how much GPU nobody got.

    Pods arrive in order and never leave; one that no node has room for is dropped. This is the
    benchmark of Weng et al., Beware of Fragmentation (USENIX ATC'23), and with the published
    orders a published policy gives the published figures.

    Ends with 0 when all pods were tried, 2 on wrong usage or a wrong file, 3 if the report cannot
    be written, 130 after an interrupt.

    Examples:
      alnair simulate placement
      alnair simulate placement --policy fgd --orders default-42.pods default-42.nodes
      alnair simulate placement --pods my_pods.csv --nodes my_nodes.csv --seed 7 --json
      alnair simulate placement --profile alnair-in-order --report out/
    """
    import time

    from alnair.cli.process_memory import peak_rss_mb
    from alnair.cli.text import placement_result
    from alnair.cli.text.console import console
    from alnair.configuration.profile_assembly import UnknownProfileError
    from alnair.configuration.scheduler_file import ConfigurationError
    from alnair.scheduler.published.fragmentation import target_workload
    from alnair.sim.placement import benchmark
    from alnair.sim.placement.policies import UnknownPolicyError
    from alnair.sim.placement.result import of
    from alnair.traces import arrival_orders, openb_files
    from alnair.traces.files import TraceFileError

    if orders is not None and (seed is not None or tune is not None):
        raise typer.BadParameter(_ORDERS, param_hint="--orders")
    _check(folder)
    if policy is not None and (profile is not None or config is not None):
        raise typer.BadParameter(_POLICY, param_hint="--policy")
    try:
        with expected(TraceFileError, ConfigurationError, code=USAGE):
            trace = openb_files.load(nodes, pods)
            arrivals, order = arrival_orders.of_pods_and_nodes(
                trace, orders, tune=tune or _TUNE, seed=seed or 0
            )
            workload = target_workload(trace.pods)
            chosen = _chosen(policy, workload, seed or 0, profile, config)
    except UnknownPolicyError as error:
        raise typer.BadParameter(str(error), param_hint="--policy") from None
    except UnknownProfileError as error:
        raise typer.BadParameter(str(error), param_hint="--profile") from None
    with _placing(len(arrivals)) as show:
        run = benchmark.run(
            trace.nodes,
            arrivals,
            chosen,
            workload,
            order=order,
            timer=time.perf_counter,
            progress=show,
        )
    result = of(
        run,
        trace=str(pods) if pods is not None else "openb default",
        policy=chosen.scheduler,
        seed=None if orders is not None else seed or 0,
        orders=orders or (),
        peak_rss_mb=peak_rss_mb(),
    )
    _report(result, run, folder)
    placement_result.show(result, console(json=json))
    if json:
        write_json(result)


@contextlib.contextmanager
def _placing(total: int) -> Iterator[Callable[[int], None]]:
    """Give what shows how many pods are placed; an interrupt ends with that number."""
    from alnair.cli.progress import Display

    placed = 0
    left = f"of {total} pods; nothing is written, and the same command begins anew"
    with saying(lambda: f" after {placed} {left}"), Display() as display:

        def show(done: int) -> None:
            nonlocal placed
            placed = done
            display.progress("placing pods", done, total)

        yield show


def _check(folder: Path | None) -> None:
    """Refuse a folder with something else in it, before anything is done."""
    from alnair.history import report as reports

    if folder is not None:
        with expected(reports.NotReportError, code=USAGE):
            reports.check(folder)


def _report(result: "Result", run: "Run", folder: Path | None) -> None:
    """Write the report, if one is wanted, and say where it is."""
    from alnair.history import report as reports
    from alnair.sim.placement.report import render

    if folder is None:
        return
    with expected(OSError, code=UNREADABLE):
        reports.write_files(render(result, run.levels), folder)
    typer.echo(f"report: {folder / 'index.html'}", err=True)


def _chosen(
    policy: str | None,
    workload: "tuple[WorkloadClass, ...]",
    seed: int,
    profile: str | None,
    config: Path | None,
) -> "Profile":
    """Return what places: a published policy, or a profile, the first if none is named."""
    from alnair.configuration.profile_assembly import find_profile, load_profiles
    from alnair.sim.placement import policies

    if policy is not None:
        return policies.policy(policy, workload, seed)
    _, profiles = load_profiles(config)
    return profiles[0] if profile is None else find_profile(profiles, profile)
