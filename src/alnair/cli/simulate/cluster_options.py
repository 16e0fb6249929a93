"""The options of `alnair simulate cluster`, in groups: what is simulated, how, what comes of it."""

import math
from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from alnair.cli.json_output import json_option_last
from alnair.cli.option_groups import OptionGroup

#: Seconds; 31 years, as in traces: sums of times stay exact enough to order what happens.
_LONGEST: Final = 1e9


def _seconds(parameter: typer.CallbackParam, value: float | None) -> float | None:
    """Refuse what is no span of time."""
    if value is not None and not 0 <= value <= _LONGEST:
        raise typer.BadParameter(
            f"{value:g} is no number of seconds from 0 to {_LONGEST:g}",
            param_hint=parameter.opts[0],
        )
    return value


def _seconds_or_forever(parameter: typer.CallbackParam, value: float | None) -> float | None:
    """Refuse what is neither a span of time nor `inf`."""
    return value if value == math.inf else _seconds(parameter, value)


class TraceOptions(OptionGroup, frozen=True, kw_only=True):
    """What is simulated."""

    from_history: Annotated[
        str,
        typer.Option(
            "--from-history",
            metavar="URL",
            help="The jobs of a controller's history instead of a trace: a file or a URL.",
        ),
    ] = ""
    last: Annotated[
        str,
        typer.Option(
            "--last",
            metavar="SPAN",
            help="Of the history, only jobs that came in its last 7d, 12h or so.",
        ),
    ] = ""
    nodes: Annotated[
        str,
        typer.Option(
            "--nodes", metavar="NODES", help="A node list, or shapes such as 300x8xV100M32."
        ),
    ] = ""
    pods: Annotated[
        str, typer.Option("--pods", metavar="FILE", help="Which pod list of an openb folder.")
    ] = ""
    format_: Annotated[
        Literal["", "openb", "philly", "swf", "manifests", "snapshot", "synthetic"],
        typer.Option("--format", help="Of the trace, if its content does not tell.", metavar="F"),
    ] = ""


class PartOptions(OptionGroup, frozen=True, kw_only=True):
    """Which part of it."""

    limit: Annotated[
        int | None, typer.Option("--limit", min=1, metavar="N", help="Only the first N jobs.")
    ] = None
    since: Annotated[
        float,
        typer.Option("--since", min=0, metavar="S", help="Only jobs that come S seconds in."),
    ] = 0.0
    until: Annotated[
        float | None,
        typer.Option("--until", min=0, metavar="S", help="Only jobs that come before."),
    ] = None
    stop_at: Annotated[
        float | None,
        typer.Option(
            "--stop-at",
            min=0,
            callback=_seconds,
            metavar="S",
            help="End after S simulated seconds, work or not.",
        ),
    ] = None


class WorkOptions(OptionGroup, frozen=True, kw_only=True):
    """What jobs are taken to do and to ask for where the trace does not say."""

    arrivals: Annotated[
        float,
        typer.Option("--arrivals", metavar="X", help="Jobs come X times as fast."),
    ] = 1.0
    default_duration: Annotated[
        float | None,
        typer.Option(
            "--default-duration",
            metavar="S",
            callback=_seconds_or_forever,
            help="Jobs of unknown run time run S seconds.",
        ),
    ] = None
    submit_at: Annotated[
        float | None,
        typer.Option(
            "--submit-at",
            min=0,
            callback=_seconds,
            metavar="S",
            help="Jobs that do not say when come S seconds in.",
        ),
    ] = None
    pod_units: Annotated[
        int | None,
        typer.Option(
            "--pod-units",
            min=1,
            metavar="N",
            help="Most GPUs (or cores) of a pod of a large job; default: those of a node.",
        ),
    ] = None
    shares: Annotated[
        Literal["compute", "memory"],
        typer.Option(
            "--shares",
            metavar="compute|memory",
            help="Pods that share a GPU ask for compute and memory, or for its memory alone.",
        ),
    ] = "compute"
    estimate: Annotated[
        float | None,
        typer.Option(
            "--estimate", min=0, metavar="X", help="Pods say X times their true run time."
        ),
    ] = None
    jobs: Annotated[
        int,
        typer.Option("--jobs", min=1, metavar="N", help="Of the trace 'synthetic': so many jobs."),
    ] = 1000
    per_hour: Annotated[
        float,
        typer.Option("--per-hour", metavar="X", help="… so many an hour, on average."),
    ] = 60.0
    elastic_share: Annotated[
        float,
        typer.Option(
            "--elastic-share",
            min=0,
            max=1,
            metavar="X",
            help="This part of the jobs with several GPUs is elastic: they run with a quarter to "
            "twice of what they ask for, a worker per GPU.",
        ),
    ] = 0.0
    utilisation: Annotated[
        Literal["", "measured"],
        typer.Option(
            "--utilisation",
            metavar="measured",
            help="Give each GPU job what a measured training run used, drawn by the seed.",
        ),
    ] = ""


class FailureOptions(OptionGroup, frozen=True, kw_only=True):
    """How nodes fail."""

    node_mtbf: Annotated[
        float,
        typer.Option(
            "--node-mtbf",
            min=0,
            callback=_seconds,
            metavar="S",
            help="Nodes fail every S seconds on average.",
        ),
    ] = 0.0
    node_mttr: Annotated[
        float,
        typer.Option(
            "--node-mttr", min=0, callback=_seconds, metavar="S", help="… and are back after S."
        ),
    ] = 3600.0


class SchedulingOptions(OptionGroup, frozen=True, kw_only=True):
    """Which scheduler decides, what it knows, and how jobs run."""

    profile: Annotated[
        str, typer.Option("--profile", metavar="NAME", help="schedulerName of all pods.")
    ] = ""
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", metavar="FILE", help="A scheduler configuration with profiles of one's own."
        ),
    ] = None
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Of all draws.")] = 0
    durations: Annotated[
        Literal["exact", "limit", "learned", "none"],
        typer.Option(
            "--durations",
            metavar="HOW",
            help="What the scheduler is told of run times: exact, limit (what pods say), learned "
            "(from the user's finished jobs) or none.",
        ),
    ] = "limit"
    interference: Annotated[
        Literal["on", "off"],
        typer.Option(
            "--interference", metavar="on|off", help="Jobs that share a GPU slow one another down."
        ),
    ] = "on"
    pairs: Annotated[
        Path | None,
        typer.Option(
            "--pairs",
            metavar="FILE",
            help="Pairs that alnair profile pair measured: so fast neighbours run, and so much the"
            " scheduler knows of it, unless its configuration names other pairs.",
        ),
    ] = None
    elastic: Annotated[
        Literal["fair", "none"],
        typer.Option(
            "--elastic",
            metavar="fair|none",
            help="How many workers elastic jobs have: as the fair plan says, or what they ask for.",
        ),
    ] = "fair"
    job_checkpoint: Annotated[
        float,
        typer.Option(
            "--job-checkpoint",
            min=0,
            callback=_seconds,
            metavar="S",
            help="Jobs save their work every S seconds; 0 = never: what is evicted begins anew.",
        ),
    ] = 0.0
    grace: Annotated[
        float,
        typer.Option(
            "--grace",
            min=0,
            callback=_seconds,
            metavar="S",
            help="Evicted pods are gone after S seconds.",
        ),
    ] = 30.0


class ResultOptions(OptionGroup, frozen=True, kw_only=True):
    """What comes of it; these may be given with --resume."""

    checkpoint: Annotated[
        Path | None,
        typer.Option("--checkpoint", metavar="FILE", help="Keep the simulation here as it goes."),
    ] = None
    checkpoint_every: Annotated[
        float,
        typer.Option(
            "--checkpoint-every",
            min=0,
            callback=_seconds,
            metavar="S",
            help="… every S seconds of real time.",
        ),
    ] = 60.0
    resume: Annotated[
        Path | None,
        typer.Option(
            "--resume",
            metavar="FILE",
            help="Go on with this checkpoint; it says itself what is simulated.",
        ),
    ] = None
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="DIR", help="Write page, plots and tables here."),
    ] = None
    history: Annotated[
        Path | None,
        typer.Option("--history", metavar="FILE", help="Write all that happened here."),
    ] = None
    json: Annotated[bool, json_option_last("the result")] = False
