"""`alnair agent run`: a program with slices of GPUs, without Kubernetes."""

from pathlib import Path
from typing import Annotated

import typer

from alnair.cli.agent.slice_options import (
    DEFAULT_FOLDER,
    BorrowOption,
    ComputeOption,
    FolderOption,
    GpuOption,
    MemoryOption,
    SoftOption,
    SwapOption,
)
from alnair.cli.failures import expected


def run(
    command: Annotated[list[str], typer.Argument(metavar="COMMAND...", help="What to run.")],
    gpu: GpuOption,
    memory: MemoryOption = 0,
    compute: ComputeOption = 0,
    soft: SoftOption = False,
    swap: SwapOption = 0,
    borrow: BorrowOption = False,
    library: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="libalnair_vgpu.so; default that of 'make -C native'."),
    ] = None,
    folder: FolderOption = DEFAULT_FOLDER,
) -> None:
    """Run a program with slices of GPUs, where an agent serves: the quickest way to try one.

    The program gets a control group and a mount namespace of its own, and CUDA shows it no other
    GPU (CUDA_VISIBLE_DEVICES); ends as it ends. Needs root.

    Examples:
      alnair agent run --gpu 0 --memory 8192 --compute 50 -- python train.py
      alnair agent run --gpu 0 --memory 2048 --soft -- nvidia-smi
    """
    from alnair.node.vgpu.containers.container_slices import Share
    from alnair.processes.agent.run_command import TrialError, run_with_slices

    shares = tuple(
        Share(one, memory, compute, soft=soft, swap_mib=swap, borrows=borrow) for one in gpu
    )
    with expected(TrialError, prefix="error: "):
        code = run_with_slices(folder, shares, command, library)
    raise typer.Exit(code)
