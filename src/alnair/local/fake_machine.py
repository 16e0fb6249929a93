"""A fake GPU of its own for a few processes of this machine, without a cluster."""

import contextlib
import ctypes
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from alnair.local.errors import LocalClusterError
from alnair.local.real_node import fake_gpu
from alnair.local.report import ProgressReport


@contextlib.contextmanager
def fake_machine(
    model: str, report: ProgressReport, *, mps: bool = False
) -> Iterator[dict[str, str]]:
    """Yield the environment of processes that see one fake GPU, until the end of the block.

    Args:
        model: A profile of native/fakegpu/profiles.
        report: Is told if the libraries must be built first.
        mps: Processes share it as through MPS; otherwise they take turns.

    Raises:
        InvalidArgumentError: There is no such profile, or no source to build from.
        LocalClusterError: It cannot be built or made.
    """
    fake_gpu.check_model(model)
    fake_gpu.build(report)
    facts = profile(model)
    # Copies within a GPU read and write, so they have half of its bandwidth.
    inside = int(facts["memory_clock_mhz"]) * 2 * int(facts["bus_bits"]) // 8 // 2
    options = f"mode={'mps' if mps else 'timeslice'},inside_mbps={inside}"
    with tempfile.TemporaryDirectory(prefix="alnair-fake-", dir="/dev/shm") as folder:
        state = Path(folder) / "state"
        create = ctypes.CDLL(str(fake_gpu.BUILT / "libfakegpu.so")).fakegpu_create
        if create(str(state).encode(), str(_path(model)).encode(), 1, options.encode()):
            raise LocalClusterError(f"the fake GPU {model} cannot be made at {state}")
        yield {
            "FAKEGPU_STATE": str(state),
            "FAKEGPU_TAG": "pair",
            "LD_LIBRARY_PATH": str(fake_gpu.BUILT),
        }


def profile(model: str) -> dict[str, str]:
    """Return what a profile says, by key."""
    text = _path(model).read_text()
    lines = (line.partition("#")[0].split(None, 1) for line in text.splitlines())
    return {words[0]: words[1].strip() for words in lines if len(words) == 2}


def _path(model: str) -> Path:
    return fake_gpu.BUILT / "profiles" / model


@contextlib.contextmanager
def fake_agent(environment: dict[str, str]) -> Iterator[Path]:
    """Yield the folder of an agent that serves slices of a fake GPU, until the end of the block.

    Raises:
        LocalClusterError: It does not start: it needs root, and control groups.
    """
    with (
        tempfile.TemporaryDirectory(prefix="alnair-agent-", dir="/dev/shm") as folder,
        tempfile.TemporaryFile() as log,
    ):
        words = [sys.executable, "-m", "alnair", "agent", "--folder", folder]
        agent = subprocess.Popen(
            [*words, "--metrics", "127.0.0.1:0"],
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        try:
            assert agent.stdout is not None
            if not agent.stdout.readline().startswith("ready: "):
                log.seek(0)
                said = log.read().decode("utf-8", "replace").strip()[-500:]
                raise LocalClusterError(f"no agent can serve slices here: {said}")
            yield Path(folder)
        finally:
            agent.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                agent.wait(10)
            agent.kill()
            agent.wait()
            if agent.stdout is not None:
                agent.stdout.close()
