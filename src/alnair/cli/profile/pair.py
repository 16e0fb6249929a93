"""`alnair profile pair`: how fast two workloads run beside one another."""

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from alnair.cli.cluster_selection import ClusterOptions
from alnair.cli.failures import FAILED, INTERRUPTED, UNREADABLE, USAGE, expected
from alnair.cli.json_output import json_option_last, write_json
from alnair.cli.option_groups import grouped
from alnair.cli.profile.measured_gpu import (
    MeasuredGpu,
    checked_model,
    limits,
    measured_gpu,
    shared,
)
from alnair.cli.profile.on_cluster import JobRunOptions, cluster_gpu, refuse_alone
from alnair.cli.profile.pair_options import (
    SharingOptions,
    StepOptions,
    TableOptions,
    TimeOptions,
)
from alnair.cli.profile.pair_output import check_files, name_of, two_kinds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from alnair.node.pairing.workload import Command


@grouped
def pair(
    *,
    first: Annotated[
        str | None, typer.Argument(metavar="CMD1", help="Runs until it is ended.")
    ] = None,
    second: Annotated[str | None, typer.Argument(metavar="CMD2", help="The same.")] = None,
    suite: Annotated[
        bool,
        typer.Option("--suite", help="Six workloads of Alnair's own, and all pairs of them."),
    ] = False,
    steps: StepOptions,
    sharing: SharingOptions,
    times: TimeOptions,
    jobs: JobRunOptions,
    cluster: ClusterOptions,
    table: TableOptions,
    json: Annotated[bool, json_option_last("what was measured")] = False,
) -> None:
    r"""Measure how fast two workloads run beside one another, as a part of their speed alone.

    Each round runs both alone and both together, on the same GPU; rounds alternate in order. The
    first seconds do not count. A speed is the median of the rounds' own ratios, with half of
    their range. Commands are run without a shell, and ended with all of their processes.

    With --suite it measures six workloads that need nothing but a driver, in all 21 pairs, and says
    which to put on a GPU together.

    With --on-cluster they run as Jobs on one GPU of a node, and their rates are read from their
    logs; the Jobs are removed, by the cluster if need be.

    Ends with 0, 1 if a workload cannot be measured, 2 on wrong usage, 3 if the cluster cannot be
    reached, 130 after an interrupt.

    Examples:
      alnair profile pair 'python resnet.py' 'python bert.py' --gpu 0
      alnair profile pair ./a ./b --pattern 'iteration (?P<step>\d+)' --rounds 5
      alnair profile pair ./a ./b --out pairs.json --kinds resnet,bert --mode mps
      alnair profile pair --suite --out pairs.json --heat-map pairs.svg
      alnair profile pair --suite --fake-gpu k80 --warm-up 1 --seconds 3
      alnair profile pair --on-cluster --node gpu-1 --image team/train 'python a.py' 'python b.py'
    """
    from alnair.cli.profile.suite import run_suite
    from alnair.kube.errors import KubeError
    from alnair.local.errors import LocalClusterError
    from alnair.node.pairing.workload import RunError
    from alnair.traces.pair_tables import PairTableError

    limits(sharing)
    check_files(table)
    refuse_alone(jobs, cluster)
    if suite and first is not None:
        raise typer.BadParameter("the suite has workloads of its own", param_hint="CMD1")
    if not suite and (first is None or second is None):
        raise typer.BadParameter("give two commands, or --suite", param_hint="CMD1 CMD2")
    commands = [
        _command(text, pattern)
        for text, pattern in ((first, steps.pattern), (second, steps.pattern2 or steps.pattern))
        if text is not None
    ]
    with (
        expected(KubeError, code=UNREADABLE, before="the cluster cannot be used: "),
        expected(RunError, LocalClusterError, code=FAILED),
        expected(OSError, PairTableError, code=USAGE),
        expected(KeyboardInterrupt, code=INTERRUPTED, wordless="interrupted; nothing is kept"),
    ):
        there = cluster_gpu(jobs, cluster, sharing, times) if jobs.on_cluster else None
        if suite:
            run_suite(there, sharing, times, table, json=json)
        else:
            _run_pair(commands, there, sharing, times, table, json=json)


def _run_pair(
    commands: "Sequence[Command]",
    there: MeasuredGpu | None,
    sharing: SharingOptions,
    options: TimeOptions,
    table: TableOptions,
    *,
    json: bool,
) -> None:
    """Measure two commands, show what was found, and keep it in the table if there is one."""
    from alnair.cli.profile.pair_output import keep
    from alnair.cli.progress import Display
    from alnair.cli.text import pair_speeds
    from alnair.cli.text.console import console
    from alnair.node.pairing.measuring import Times
    from alnair.node.pairing.measuring import rounds as measure
    from alnair.profiler.pair_speeds import summarise

    kinds = two_kinds(table)
    if len(sharing.fake_gpu or ()) > 1:
        raise typer.BadParameter("several GPUs go with --suite", param_hint="--fake-gpu")
    fake = sharing.fake_gpu[0] if sharing.fake_gpu else None
    with Display() as display, measured_gpu(fake, there, sharing, display) as gpu:
        model = checked_model(table.model, gpu)
        name = name_of(model, sharing.mode, needed=table.out is not None)
        first, second = (shared(one, gpu, sharing, which) for which, one in enumerate(commands))
        times = Times(options.warm_up, options.seconds)
        found = summarise(measure(first, second, times, options.rounds, display.step, gpu.measure))
    keep(table, name, {kinds: found})
    pair_speeds.show(found, kinds, console(json=json))
    if json:
        write_json(found)


def _command(text: str, pattern: str | None) -> "Command":
    """Return the command, after a look at its pattern."""
    from alnair.node.pairing.workload import Command
    from alnair.profiler.logs.linear_pattern import PatternError
    from alnair.profiler.logs.step_counter import StepCounter

    try:
        words = shlex.split(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text}: {error}", param_hint="CMD") from None
    if not words:
        raise typer.BadParameter("there is no command in it", param_hint="CMD")
    try:
        StepCounter(pattern)
    except PatternError as error:
        raise typer.BadParameter(str(error), param_hint="--pattern") from None
    return Command(tuple(words), pattern)
