"""Which GPU `alnair profile pair` measures on, and what its commands find there."""

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import typer

from alnair.cli.profile.pair_options import SharingOptions

if TYPE_CHECKING:
    from alnair.local.report import ProgressReport
    from alnair.node.pairing.measuring import Measure
    from alnair.node.pairing.workload import Command


class MeasuredGpu(msgspec.Struct, frozen=True):
    """A GPU to measure on.

    Attributes:
        model: Spelled as the node label `nvidia.com/gpu.product`; empty if no driver says it.
        environment: Variables of processes that use it.
        agent: Folder of the agent that serves slices; None = where an agent's is.
        measure: Runs workloads on it; None = as processes of this machine.
    """

    model: str
    environment: Mapping[str, str] = {}
    agent: Path | None = None
    measure: "Measure | None" = None


@contextlib.contextmanager
def measured_gpu(
    fake: str | None,
    there: MeasuredGpu | None,
    options: SharingOptions,
    report: "ProgressReport",
) -> Iterator[MeasuredGpu]:
    """Yield the GPU; one that is fake is there until the end of the block.

    Args:
        fake: Its profile, if it is to be a fake one.
        there: One of a cluster, if it is to be that.
        options: How it is shared.
        report: Is told what is built for it.
    """
    if there is not None:
        yield there
        return
    if fake is None:
        yield MeasuredGpu(_real_model(options.gpu))
        return
    from alnair.local.fake_machine import fake_agent, fake_machine, profile

    with (
        fake_machine(fake, report, mps=options.mode == "mps") as environment,
        contextlib.ExitStack() as stack,
    ):
        folder = None
        if options.mode == "limited":
            folder = stack.enter_context(fake_agent(environment))
        yield MeasuredGpu(profile(fake)["name"].replace(" ", "-"), environment, folder)


def shared(command: "Command", gpu: MeasuredGpu, options: SharingOptions, which: int) -> "Command":
    """Return a command as it is run on the GPU, the first or second of a pair."""
    from alnair.node.pairing.modes import sharing

    if gpu.measure is not None:
        return command  # its Job says how it shares
    command = msgspec.structs.replace(
        command, environment={**command.environment, **gpu.environment}
    )
    return sharing(
        command,
        options.mode,
        percent=limits(options)[which],
        gpu=options.gpu,
        folder=gpu.agent,
    )


def limits(options: SharingOptions) -> tuple[int, int]:
    """Return the percents of --limits."""
    found = re.fullmatch(r"\s*(\d+)\s*,\s*(\d+)\s*", options.limits)
    percents = (int(found[1]), int(found[2])) if found else (0, 0)
    if not all(1 <= percent <= 100 for percent in percents):
        raise typer.BadParameter(
            f"{options.limits!r} are not two percents from 1 to 100: A,B", param_hint="--limits"
        )
    return percents


def checked_model(wanted: str | None, gpu: MeasuredGpu) -> str:
    """Return what the GPU is called in a table; a name that is another GPU's is refused."""
    if not wanted:
        return gpu.model
    from alnair.model.pair_rates import spelling

    here = spelling(gpu.model)
    if gpu.model and not all(word in here for word in spelling(wanted).split()):
        raise typer.BadParameter(
            f"the GPU here is {gpu.model}, not {wanted}: its pairs belong into its own table",
            param_hint="--model",
        )
    return wanted


def _real_model(gpu: str | None) -> str:
    """Return the model that the driver tells, of the first GPU unless one is named."""
    from alnair.node.nvml import Nvml, NvmlError

    try:
        nvml = Nvml.open()
    except NvmlError:
        return ""
    try:
        wanted = gpu if gpu is not None else os.environ.get("CUDA_VISIBLE_DEVICES", "")
        first = wanted.partition(",")[0]
        found = [one for one in nvml.gpus if first in (str(one.index), one.uuid)] or nvml.gpus
        return found[0].model.replace(" ", "-") if found else ""
    finally:
        nvml.close()
