"""`alnair simulate cluster`: what a cluster does with recorded or invented work over time."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from alnair.sim.inputs import Loaded
    from alnair.sim.simulation import Simulation

#: Seconds; 31 years, as in traces: sums of times stay exact enough to order what happens.
_LONGEST = 1e9
#: Options that say what comes of a simulation, and may be given with --resume.
_OF_RESULTS = frozenset(("resume", "checkpoint", "checkpoint_every", "report", "history", "json"))


def cluster(
    context: typer.Context,
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TRACE]...",
            help="A trace (openb, Philly's CSV, SWF), Kubernetes manifests, a snapshot, or the "
            "name of a trace that ships with Alnair [openb].",
        ),
    ] = None,
    nodes: Annotated[
        str,
        typer.Option(
            "--nodes", metavar="NODES", help="A node list, or shapes such as 300x8xV100M32."
        ),
    ] = "",
    pods: Annotated[
        str, typer.Option("--pods", metavar="FILE", help="Which pod list of an openb folder.")
    ] = "",
    format_: Annotated[
        Literal["", "openb", "philly", "swf", "manifests", "snapshot", "synthetic"],
        typer.Option("--format", help="Of the trace, if its content does not tell.", metavar="F"),
    ] = "",
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, metavar="N", help="Only the first N jobs.")
    ] = None,
    since: Annotated[
        float,
        typer.Option("--since", min=0, metavar="S", help="Only jobs that come S seconds in."),
    ] = 0.0,
    until: Annotated[
        float | None,
        typer.Option("--until", min=0, metavar="S", help="Only jobs that come before."),
    ] = None,
    stop_at: Annotated[
        float | None,
        typer.Option(
            "--stop-at", min=0, metavar="S", help="End after S simulated seconds, work or not."
        ),
    ] = None,
    arrivals: Annotated[
        float,
        typer.Option("--arrivals", metavar="X", help="Jobs come X times as fast."),
    ] = 1.0,
    default_duration: Annotated[
        float | None,
        typer.Option(
            "--default-duration", metavar="S", help="Jobs of unknown run time run S seconds."
        ),
    ] = None,
    submit_at: Annotated[
        float | None,
        typer.Option(
            "--submit-at", min=0, metavar="S", help="Jobs that do not say when come S seconds in."
        ),
    ] = None,
    pod_units: Annotated[
        int | None,
        typer.Option(
            "--pod-units",
            min=1,
            metavar="N",
            help="Most GPUs (or cores) of a pod of a large job; default: those of a node.",
        ),
    ] = None,
    shares: Annotated[
        Literal["compute", "memory"],
        typer.Option(
            "--shares",
            metavar="compute|memory",
            help="Pods that share a GPU ask for compute and memory, or for its memory alone.",
        ),
    ] = "compute",
    estimate: Annotated[
        float | None,
        typer.Option(
            "--estimate", min=0, metavar="X", help="Pods say X times their true run time."
        ),
    ] = None,
    jobs: Annotated[
        int,
        typer.Option("--jobs", min=1, metavar="N", help="Of the trace 'synthetic': so many jobs."),
    ] = 1000,
    per_hour: Annotated[
        float,
        typer.Option("--per-hour", metavar="X", help="… so many an hour, on average."),
    ] = 60.0,
    utilisation: Annotated[
        Literal["", "measured"],
        typer.Option(
            "--utilisation",
            metavar="measured",
            help="Give each GPU job what a measured training run used, drawn by the seed.",
        ),
    ] = "",
    node_mtbf: Annotated[
        float,
        typer.Option(
            "--node-mtbf", min=0, metavar="S", help="Nodes fail every S seconds on average."
        ),
    ] = 0.0,
    node_mttr: Annotated[
        float,
        typer.Option("--node-mttr", min=0, metavar="S", help="… and are back after S."),
    ] = 3600.0,
    profile: Annotated[
        str, typer.Option("--profile", metavar="NAME", help="schedulerName of all pods.")
    ] = "",
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", metavar="FILE", help="A scheduler configuration with profiles of one's own."
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Of all draws.")] = 0,
    durations: Annotated[
        Literal["exact", "limit", "learned", "none"],
        typer.Option(
            "--durations",
            metavar="HOW",
            help="What the scheduler is told of run times: exact, limit (what pods say), learned "
            "(from the user's finished jobs) or none.",
        ),
    ] = "limit",
    interference: Annotated[
        Literal["on", "off"],
        typer.Option(
            "--interference", metavar="on|off", help="Jobs that share a GPU slow one another down."
        ),
    ] = "on",
    job_checkpoint: Annotated[
        float,
        typer.Option(
            "--job-checkpoint",
            min=0,
            metavar="S",
            help="Jobs save their work every S seconds; 0 = never: what is evicted begins anew.",
        ),
    ] = 0.0,
    grace: Annotated[
        float,
        typer.Option("--grace", min=0, metavar="S", help="Evicted pods are gone after S seconds."),
    ] = 30.0,
    checkpoint: Annotated[
        Path | None,
        typer.Option("--checkpoint", metavar="FILE", help="Keep the simulation here as it goes."),
    ] = None,
    checkpoint_every: Annotated[
        float,
        typer.Option(
            "--checkpoint-every", min=0, metavar="S", help="… every S seconds of real time."
        ),
    ] = 60.0,
    resume: Annotated[
        Path | None,
        typer.Option(
            "--resume",
            metavar="FILE",
            help="Go on with this checkpoint; it says itself what is simulated.",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="DIR", help="Write page, plots and tables here."),
    ] = None,
    history: Annotated[
        Path | None,
        typer.Option("--history", metavar="FILE", help="Write all that happened here."),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Write the result as one line of JSON, last.")
    ] = False,
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
      alnair simulate cluster --resume philly.sim --report out/
    """
    from alnair.cli.simulate import cluster_run
    from alnair.configuration.scheduler_file import ConfigurationError
    from alnair.sim.checkpoint import CheckpointError
    from alnair.sim.inputs import Mix, Options, load
    from alnair.traces.files import TraceFileError

    for option, value in (
        ("--stop-at", stop_at),
        ("--default-duration", None if default_duration == math.inf else default_duration),
        ("--submit-at", submit_at),
        ("--node-mtbf", node_mtbf),
        ("--node-mttr", node_mttr),
        ("--job-checkpoint", job_checkpoint),
        ("--grace", grace),
        ("--checkpoint-every", checkpoint_every),
    ):
        if value is not None and not 0 <= value <= _LONGEST:
            raise typer.BadParameter(
                f"{value:g} is no number of seconds from 0 to {_LONGEST:g}", param_hint=option
            )
    if resume is not None:
        _refuse_fixed(context)
    places = cluster_run.Places(
        checkpoint=checkpoint or resume,
        every=checkpoint_every,
        report=report,
        history=history,
    )
    try:
        places.check()
        if resume is not None:
            simulation = cluster_run.resumed(resume)
        else:
            inputs = Options(
                format=format_,
                nodes=nodes,
                pods=pods,
                limit=limit,
                since=since,
                until=math.inf if until is None else until,
                arrivals=arrivals,
                default_duration=default_duration,
                submit_at=submit_at,
                pod_units=pod_units or 0,
                shares=shares,
                estimate=estimate,
                utilisation=utilisation,
                seed=seed,
                node_mtbf=node_mtbf,
                node_mttr=node_mttr,
                mix=Mix(jobs=jobs, per_hour=per_hour),
            )
            found = load(sources or [], inputs)
            for line in (*found.notes, *found.warnings):
                typer.echo(f"alnair: {line}", err=True)
            simulation = _begun(
                found,
                config,
                profile=profile,
                stop_at=stop_at,
                seed=seed,
                durations=durations,
                checkpoint=job_checkpoint,
                grace=grace,
                interference=interference == "on",
            )
    except (TraceFileError, ConfigurationError, CheckpointError, cluster_run.PlaceError) as error:
        for line in str(error).splitlines():
            typer.echo(f"alnair: {line}", err=True)
        raise typer.Exit(2) from None
    cluster_run.carry_out(simulation, places, json=json)


def _refuse_fixed(context: typer.Context) -> None:
    """Refuse options that a checkpoint says itself."""
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE" and name not in _OF_RESULTS:
            raise typer.BadParameter(
                "the checkpoint says what is simulated and how: leave this away with --resume",
                param_hint=parameter.opts[0] if name != "sources" else "TRACE",
            )


def _begun(
    found: "Loaded",
    config: Path | None,
    *,
    profile: str,
    stop_at: float | None,
    seed: int,
    durations: Literal["exact", "limit", "learned", "none"],
    checkpoint: float,
    grace: float,
    interference: bool,
) -> "Simulation":
    """Return the simulation of what was read."""
    import time

    from alnair.configuration import scheduler_file as conf
    from alnair.configuration.profile_assembly import assemble
    from alnair.sim.interference import measured
    from alnair.sim.simulation import Options, Simulation

    wanted = conf.load(config)
    profiles = tuple(assemble(wanted, str(config or "command line")).profiles())
    known = [each.scheduler for each in profiles]
    if profile and profile not in known:
        raise typer.BadParameter(
            f"there is no profile {profile!r}; known are {', '.join(known)}",
            param_hint="--profile",
        )
    scenario = found.scenario
    used = {profile} if profile else {p.scheduler for job in scenario.jobs for p in job.pods}
    options = Options(
        seed=seed,
        until=math.inf if stop_at is None else stop_at,
        profile=profile,
        durations=durations,
        checkpoint=checkpoint,
        grace=grace,
        loads=any(each.reads_loads for each in profiles if each.scheduler in used),
        patience=conf.seconds(wanted.backfill.patience) if wanted.backfill.enabled else None,
    )
    return Simulation(
        scenario,
        profiles,
        options,
        interference=measured() if interference else None,
        timer=time.perf_counter,
        source=found.source,
    )
