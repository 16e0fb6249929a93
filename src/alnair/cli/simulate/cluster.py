"""`alnair simulate cluster`: what a cluster does with recorded or invented work over time."""

import math
from typing import TYPE_CHECKING, Annotated

import typer

from alnair.cli.failures import USAGE, expected
from alnair.cli.json_output import OUTPUT
from alnair.cli.option_groups import grouped
from alnair.cli.simulate.cluster_options import (
    FailureOptions,
    PartOptions,
    ResultOptions,
    SchedulingOptions,
    TraceOptions,
    WorkOptions,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from alnair.model.nodes import Node
    from alnair.model.pair_rates import PairTables
    from alnair.sim.inputs import InputOptions, Loaded
    from alnair.sim.inputs.options import Found
    from alnair.sim.simulation import Simulation

_DAY = 86400.0


@grouped
def cluster(
    *,
    context: typer.Context,
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TRACE]...",
            help="A trace (openb, Philly's CSV, SWF), Kubernetes manifests, a snapshot, or the "
            "name of a trace that ships with Alnair [openb].",
        ),
    ] = None,
    trace: TraceOptions,
    part: PartOptions,
    work: WorkOptions,
    failures: FailureOptions,
    scheduling: SchedulingOptions,
    results: ResultOptions,
) -> None:
    """Run a trace through the scheduler in virtual time, and measure what it did.

    Jobs arrive, wait, run, are preempted, lose their nodes and finish as in a live cluster; every
    decision is made by the code that schedules live clusters. The same inputs and the same seed
    give the same decisions, which the digest proves. An interrupt leaves a checkpoint, if one was
    named, and --resume goes on from it.

    Ends with 0 when the simulation ended, 1 if a result cannot be written, 2 on wrong usage or a
    wrong file, 130 after an interrupt.

    Examples:
      alnair simulate cluster openb --report out/
      alnair simulate cluster philly.csv --nodes 150x8xV100 --durations learned --json
      alnair simulate cluster philly.csv --nodes 300x8xV100 --checkpoint philly.sim
      alnair simulate cluster synthetic --nodes 8x8xA100 --elastic-share 0.5 --elastic none
      alnair simulate cluster --resume philly.sim --report out/
      alnair simulate cluster --from-history history.db --last 7d --nodes 20x8xA100
    """
    from alnair.cli.simulate.cluster_progress import carry_out
    from alnair.configuration.scheduler_file import ConfigurationError
    from alnair.sim import checkpoint
    from alnair.sim.inputs import load
    from alnair.sim.outputs import OutputError, Outputs
    from alnair.traces.files import TraceFileError
    from alnair.traces.pair_tables import PairTableError

    if results.resume is not None:
        _refuse_fixed(context)
    outputs = Outputs(
        checkpoint=results.checkpoint or results.resume,
        every=results.checkpoint_every,
        report=results.report,
        history=results.history,
    )
    errors = TraceFileError, ConfigurationError, checkpoint.CheckpointError, OutputError
    with expected(*errors, PairTableError, code=USAGE):
        outputs.check()
        if results.resume is not None:
            simulation = checkpoint.load(results.resume)
            days = simulation.time / _DAY
            typer.echo(f"going on after {days:.2f} simulated days", err=True)
        else:
            inputs = _inputs(trace, part, work, failures, scheduling.seed)
            found = load(_sources(sources, trace), inputs)
            for line in (*found.notes, *found.warnings):
                typer.echo(f"alnair: {line}", err=True)
            simulation = _begun(found, scheduling, part.stop_at)
    carry_out(simulation, outputs, json=results.json)


def _refuse_fixed(context: typer.Context) -> None:
    """Refuse options that a checkpoint says itself."""
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        is_given = source is not None and source.name == "COMMANDLINE"
        if is_given and name not in (*ResultOptions.__struct_fields__, OUTPUT):
            raise typer.BadParameter(
                "the checkpoint says what is simulated and how: leave this away with --resume",
                param_hint=parameter.opts[0] if name != "sources" else "TRACE",
            )


def _sources(sources: list[str] | None, trace: TraceOptions) -> list[str]:
    """Return the traces, or the history in place of them."""
    if trace.from_history and sources:
        raise typer.BadParameter(
            "a history takes the place of a trace: leave one of them away",
            param_hint="--from-history",
        )
    return [trace.from_history] if trace.from_history else sources or []


def _history(url: str, last: str) -> "Callable[[InputOptions, tuple[Node, ...]], Found] | None":
    """Return what reads a history; its packages are not always there."""
    from functools import partial

    from alnair.model import durations

    if last and not url:
        raise typer.BadParameter("it is of a history: add --from-history", param_hint="--last")
    if not url:
        return None
    try:
        span = durations.seconds(last) if last else None
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--last") from None
    from alnair.sim.inputs import history_jobs

    return partial(history_jobs.read, url, last=span)


def _inputs(
    trace: TraceOptions, part: PartOptions, work: WorkOptions, failures: FailureOptions, seed: int
) -> "InputOptions":
    """Return how the trace becomes a scenario."""
    from alnair.sim.inputs import InputOptions, Mix

    return InputOptions(
        format=trace.format_,
        nodes=trace.nodes,
        pods=trace.pods,
        limit=part.limit,
        since=part.since,
        until=math.inf if part.until is None else part.until,
        arrivals=work.arrivals,
        default_duration=work.default_duration,
        submit_at=work.submit_at,
        pod_units=work.pod_units or 0,
        shares=work.shares,
        estimate=work.estimate,
        utilisation=work.utilisation,
        elastic_share=work.elastic_share,
        seed=seed,
        node_mtbf=failures.node_mtbf,
        node_mttr=failures.node_mttr,
        history=_history(trace.from_history, trace.last),
        mix=Mix(jobs=work.jobs, per_hour=work.per_hour),
    )


def _pairs(found: "Loaded", path: "Path | None") -> "PairTables | None":
    """Return the measured pairs, and say so where they are of other GPUs."""
    from alnair.model.pair_rates import Pairs
    from alnair.traces import pair_tables

    if path is None:
        return None
    tables = pair_tables.load(path)
    models = {gpu.model for node in found.scenario.nodes for gpu in node.gpus}
    if not any(map(Pairs(tables).has, models)):
        typer.echo(
            f"alnair: {path} has pairs of {', '.join(sorted(tables)) or 'no GPU'}, and the GPUs"
            f" here are {', '.join(sorted(models)) or 'none'}: it changes nothing",
            err=True,
        )
    return tables


def _begun(found: "Loaded", scheduling: SchedulingOptions, stop_at: float | None) -> "Simulation":
    """Return the simulation of what was read."""
    import time

    from alnair.configuration.profile_assembly import UnknownProfileError, load_profiles
    from alnair.sim.beginning import begin
    from alnair.sim.simulation import SimulationOptions

    pairs = _pairs(found, scheduling.pairs)
    configuration, profiles = load_profiles(scheduling.config, scheduling.pairs)
    options = SimulationOptions(
        seed=scheduling.seed,
        until=math.inf if stop_at is None else stop_at,
        profile=scheduling.profile,
        durations=scheduling.durations,
        checkpoint=scheduling.job_checkpoint,
        grace=scheduling.grace,
    )
    try:
        return begin(
            found,
            configuration,
            profiles,
            options,
            interference=scheduling.interference == "on",
            pairs=pairs,
            elastic=scheduling.elastic == "fair",
            timer=time.perf_counter,
        )
    except UnknownProfileError as error:
        raise typer.BadParameter(str(error), param_hint="--profile") from None
