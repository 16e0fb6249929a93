"""How two workloads share a GPU while they are measured: what is changed about their commands."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from alnair.model.pair_rates import LIMITED, MPS
from alnair.node.pairing.workload import Command, RunError

#: Where an MPS control daemon listens unless it is told otherwise (NVIDIA's MPS documentation).
_PIPES: Final = Path("/tmp/nvidia-mps")
_PIPE_VARIABLE: Final = "CUDA_MPS_PIPE_DIRECTORY"
#: A folder without a daemon: who looks there takes turns, though the machine may have one.
_NO_DAEMON: Final = "/var/empty/alnair-no-mps"


def sharing(
    command: Command,
    mode: str,
    *,
    percent: int = 50,
    gpu: str | None = None,
    folder: Path | None = None,
) -> Command:
    """Return a command that shares the GPU in a mode.

    Args:
        command: As it is given.
        mode: One of `alnair.model.pair_rates.MODES`.
        percent: Its share of the GPU's time where that is limited.
        gpu: The only one that it sees.
        folder: Of the agent that serves slices; None = where an agent's is.

    Raises:
        RunError: MPS is wanted, and there is none.
    """
    environment = dict(command.environment)
    if gpu is not None:
        environment["CUDA_VISIBLE_DEVICES"] = gpu
    if mode == MPS:
        return replace(command, environment=_through_mps(environment))
    environment[_PIPE_VARIABLE] = _NO_DAEMON
    if mode == LIMITED:
        words = [sys.executable, "-m", "alnair", "agent", "run", "--gpu", gpu or "0"]
        words += ["--compute", str(percent)]
        words += ["--folder", str(folder)] if folder is not None else []
        # The slice has one GPU, which it sees as the first.
        environment.pop("CUDA_VISIBLE_DEVICES", None)
        return replace(command, words=(*words, "--", *command.words), environment=environment)
    return replace(command, environment=environment)


def _through_mps(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a client of the machine's MPS daemon."""
    if "FAKEGPU_STATE" in environment:
        return dict(environment)  # the fake GPU was made to share so
    pipes = Path(os.environ.get(_PIPE_VARIABLE, _PIPES))
    if not (pipes / "control").exists():
        raise RunError(
            f"there is no MPS daemon at {pipes}: start one with 'nvidia-cuda-mps-control -d', or"
            f" name the folder of the one that runs in {_PIPE_VARIABLE} (that of a node's agent is"
            " run/mps/pipe of its folder), or measure without --mode mps"
        )
    return {**environment, _PIPE_VARIABLE: str(pipes)}
