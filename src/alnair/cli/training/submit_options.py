"""The options of `alnair submit`, in groups: what runs, how much of it, and what it may."""

from typing import Annotated, Literal

import typer

from alnair.cli.option_groups import OptionGroup


class ProgramOptions(OptionGroup, frozen=True, kw_only=True):
    """What runs."""

    image: Annotated[
        str,
        typer.Option(
            "--image",
            metavar="IMAGE",
            help="Container image: for torch with torchrun, for horovod with horovodrun and an ssh"
            " server.",
        ),
    ]
    kind: Annotated[
        Literal["torch", "horovod"],
        typer.Option("--kind", help="What runs the workers: torchrun, or Elastic Horovod."),
    ] = "torch"
    job: Annotated[
        str | None,
        typer.Option(
            "--job", metavar="NAME", help="Of the job; default that of the script, without .py."
        ),
    ] = None
    env: Annotated[
        list[str] | None,
        typer.Option("--env", "-e", metavar="K=V", help="Variable of all pods; repeatable."),
    ] = None
    pull: Annotated[
        Literal["Always", "IfNotPresent", "Never"] | None,
        typer.Option("--pull", help="When nodes pull the image."),
    ] = None
    service_account: Annotated[
        str | None,
        typer.Option("--service-account", metavar="NAME", help="Of the pods, with its token."),
    ] = None


class SizeOptions(OptionGroup, frozen=True, kw_only=True):
    """How much of it."""

    workers: Annotated[
        str | None,
        typer.Option("--workers", "-w", metavar="MIN..MAX", help="2..8, or 4 for always four."),
    ] = None
    least: Annotated[
        int | None, typer.Option("--min", metavar="N", help="Or the fewest workers alone.")
    ] = None
    most: Annotated[int | None, typer.Option("--max", metavar="N", help="And the most.")] = None
    gpus: Annotated[
        int | None,
        typer.Option("--gpus", min=0, max=64, metavar="N", help="Whole GPUs of a worker; 1."),
    ] = None
    gpu_memory: Annotated[
        str | None,
        typer.Option(
            "--gpu-memory", metavar="SIZE", help="Instead, so much memory of one GPU, as in 8Gi."
        ),
    ] = None
    gpu_share: Annotated[
        int | None,
        typer.Option(
            "--gpu-share", min=1, max=100, metavar="PERCENT", help="With it, so much of its time."
        ),
    ] = None
    gpu_type: Annotated[
        list[str] | None,
        typer.Option("--gpu-type", metavar="MODEL", help="A model that will do; repeatable."),
    ] = None
    slots: Annotated[
        int | None,
        typer.Option(
            "--slots", min=1, max=256, metavar="N", help="Processes of a worker; as many as GPUs."
        ),
    ] = None
    resource: Annotated[
        list[str] | None,
        typer.Option(
            "--resource",
            metavar="NAME=AMOUNT",
            help="Of a worker besides GPUs, as in cpu=4 or memory=16Gi; repeatable.",
        ),
    ] = None


class PolicyOptions(OptionGroup, frozen=True, kw_only=True):
    """When, where and how long."""

    priority: Annotated[
        str | None, typer.Option("--priority", metavar="CLASS", help="PriorityClass of the pods.")
    ] = None
    scheduler: Annotated[
        str | None,
        typer.Option("--scheduler", metavar="NAME", help="Profile, such as alnair-cost-saving."),
    ] = None
    node_label: Annotated[
        list[str] | None,
        typer.Option("--node-label", metavar="K=V", help="Only nodes with it; repeatable."),
    ] = None
    retries: Annotated[
        int | None,
        typer.Option("--retries", min=0, metavar="N", help="Starts again after failures; 1."),
    ] = None
    deadline: Annotated[
        str | None,
        typer.Option("--deadline", metavar="SPAN", help="It has failed after this, as in 12h."),
    ] = None
    keep: Annotated[
        str | None,
        typer.Option("--keep", metavar="SPAN", help="It is deleted so long after its end."),
    ] = None
