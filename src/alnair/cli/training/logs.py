"""`alnair logs`: what a training job writes."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from alnair.cli.cluster_selection import ClusterOptions
from alnair.cli.failures import INTERRUPTED
from alnair.cli.option_groups import grouped
from alnair.cli.training.job_argument import JobName, Namespace, with_job

if TYPE_CHECKING:
    from collections.abc import Callable

    from alnair.kube.client import Client
    from alnair.live.training.logs import Wanted
    from alnair.model.training_job import TrainingJob


@grouped
def logs(
    *,
    job: JobName,
    rank: Annotated[
        int | None,
        typer.Option(
            "--rank",
            min=0,
            metavar="N",
            help="Of Horovod only what this process writes; of torchrun the worker of this number"
            " (else the first).",
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Of all pods, each line with its pod.")
    ] = False,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the job has ended.")
    ] = False,
    tail: Annotated[
        int | None, typer.Option("--tail", min=0, metavar="N", help="The last N lines of each pod.")
    ] = None,
    namespace: Namespace = None,
    cluster: ClusterOptions,
) -> None:
    """Show what a training job writes: of Horovod its launcher, of torchrun its first worker.

    With -f it goes on with the pods that come later, over broken connections, until the job has
    ended; Ctrl-C ends this command, and not the job.

    Ends with 0, 1 if there is no such job or log, 2 on wrong usage, 3 if the cluster cannot be
    read, 130 after an interrupt.

    Examples:
      alnair logs mnist -f
      alnair logs mnist --rank 3 --tail 100
      alnair logs etj/llama --all -n team-a
    """
    from alnair.live.training.logs import Wanted

    if everything and rank is not None:
        raise typer.BadParameter("it is among those of --all: leave one away", param_hint="--rank")
    if follow and tail is not None:
        raise typer.BadParameter(
            "all of it comes with --follow: leave it away", param_hint="--tail"
        )
    wanted = Wanted(rank, everything)
    write = writer(prefixed=everything)

    async def work(client: "Client", found: "TrainingJob") -> bool:
        if follow:
            return await _follow(client, found, wanted, write)
        await _read(client, found, wanted, tail, write)
        return True

    if not with_job(cluster, "logs", namespace, job, work):
        raise typer.Exit(INTERRUPTED)


def writer(*, prefixed: bool, error: bool = False) -> "Callable[[str, bytes], None]":
    """Return what writes lines on stdout, or on stderr, at once, with their pod before or not."""

    def write(place: str, line: bytes) -> None:
        out = (sys.stderr if error else sys.stdout).buffer
        out.write((f"{place}: ".encode() if prefixed else b"") + line + b"\n")
        out.flush()

    return write


async def _read(
    client: "Client",
    job: "TrainingJob",
    wanted: "Wanted",
    tail: int | None,
    write: "Callable[[str, bytes], None]",
) -> None:
    from alnair.live.training import logs as live

    found = await live.pods(client, job, wanted)
    if not any(pod.started for pod in found):
        raise live.nothing(job, wanted)
    for pod in found:
        if pod.started:
            # The last lines of a process are those that are left when others' are gone.
            filtered = pod.place == "launcher" and wanted.rank is not None
            lines = await live.read(client, pod, job.namespace, None if filtered else tail)
            lines = live.chosen(lines, pod, wanted)
            for line in lines[-tail:] if tail else lines if tail is None else []:
                write(pod.place, line)


async def _follow(
    client: "Client",
    job: "TrainingJob",
    wanted: "Wanted",
    write: "Callable[[str, bytes], None]",
) -> bool:
    """Follow to the end; returns whether it came there."""
    import asyncio

    from alnair.cli.interrupts import setting
    from alnair.live.training.watching import watch

    stop = asyncio.Event()
    with setting(stop):
        return await watch(client, job, stop, write, lambda _: None, wanted) is not None
