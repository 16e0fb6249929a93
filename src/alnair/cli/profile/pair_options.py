"""The options of `alnair profile pair`, in groups."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from alnair.cli.option_groups import OptionGroup

_PATTERN = (
    "How the {} shows its steps: a regular expression with a group (?P<step>...), or one without"
    " groups, of which each match is a step; by default as alnair analyze log reads it."
)


class StepOptions(OptionGroup, frozen=True, kw_only=True):
    """How steps are read."""

    pattern: Annotated[
        str | None, typer.Option("--pattern", metavar="REGEX", help=_PATTERN.format("first"))
    ] = None
    pattern2: Annotated[
        str | None,
        typer.Option("--pattern2", metavar="REGEX", help="The same of the second, if it differs."),
    ] = None


class SharingOptions(OptionGroup, frozen=True, kw_only=True):
    """Which GPU is shared, and how."""

    mode: Annotated[
        Literal["time-sliced", "mps", "limited"],
        typer.Option(
            "--mode",
            metavar="MODE",
            help="How they share it: time-sliced (the GPU takes turns), mps (through the MPS daemon"
            " of this machine), limited (a slice of compute each, by the agent that serves here).",
        ),
    ] = "time-sliced"
    limits: Annotated[
        str,
        typer.Option("--limits", metavar="A,B", help="Percent of compute of each, with limited."),
    ] = "50,50"
    gpu: Annotated[
        str | None,
        typer.Option("--gpu", metavar="ID", help="Both see this one alone (CUDA_VISIBLE_DEVICES)."),
    ] = None
    fake_gpu: Annotated[
        list[str] | None,
        typer.Option(
            "--fake-gpu",
            metavar="PROFILE",
            help="On a fake GPU of this model (native/fakegpu/profiles), in a clone; again for"
            " more of them with --suite.",
        ),
    ] = None


class TimeOptions(OptionGroup, frozen=True, kw_only=True):
    """How long is measured."""

    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Measure so often.")] = 3
    warm_up: Annotated[
        float, typer.Option("--warm-up", min=0, help="Seconds of each run that do not count.")
    ] = 10.0
    seconds: Annotated[float, typer.Option("--seconds", min=0.1, help="Seconds that do.")] = 30.0


class TableOptions(OptionGroup, frozen=True, kw_only=True):
    """What becomes of it."""

    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Add what is measured to this table of pairs."),
    ] = None
    kinds: Annotated[
        str | None,
        typer.Option(
            "--kinds",
            metavar="A,B",
            help="What the two are called in the table; with --suite, which workloads of it.",
        ),
    ] = None
    model: Annotated[
        str | None,
        typer.Option(
            "--model", metavar="MODEL", help="The GPU model of the table; default the driver's."
        ),
    ] = None
    heat_map: Annotated[
        Path | None,
        typer.Option("--heat-map", metavar="FILE", help="Draw the table as .svg or .png."),
    ] = None
