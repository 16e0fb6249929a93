"""The node's fake GPU: built from native/fakegpu, put where a driver would be, and switched on."""

import os
import subprocess
import sys
from pathlib import Path

from alnair.local.components.locks import exclusive
from alnair.local.errors import InvalidArgumentError, LocalClusterError
from alnair.local.layout import cache_folder, write_atomically
from alnair.local.real_node.earlier_builds import EarlierBuilds
from alnair.local.report import ProgressReport

#: The sources are a part of the repository and of no package.
SOURCES = Path(__file__).parents[4] / "native"
BUILT = SOURCES.parent / "build" / "native"
#: Where the driver looks for it; on the node's own tmpfs.
STATE = "/run/fakegpu/state"
_SWITCH_ON = """
import ctypes, os, stat, sys
library, state, profile, gpus = sys.argv[1:]
if not os.path.exists(state):
    create = ctypes.CDLL(library).fakegpu_create
    if create(state.encode(), profile.encode(), int(gpus), b""):
        sys.exit(1)
os.chmod(state, 0o666)
devices = os.path.join(os.path.dirname(state), "dev")
os.makedirs(devices, exist_ok=True)
for name in ["nvidiactl", *(f"nvidia{i}" for i in range(int(gpus)))]:
    device = os.path.join(devices, name)
    if not os.path.exists(device):
        # Which of them a container has says which GPUs it sees; nothing is written to them.
        os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        os.chmod(device, 0o666)
"""
LIBRARIES = ("libcuda.so.1", "libnvidia-ml.so.1", "libfakegpu.so")


def models() -> list[str]:
    """The GPU models that there are profiles of."""
    return sorted(path.name for path in (SOURCES / "fakegpu" / "profiles").glob("*"))


def check_model(model: str) -> None:
    """Refuses a model that there is no profile of.

    Raises:
        InvalidArgumentError: There is none, or this Alnair was installed without any.
    """
    if said := missing_sources():
        raise InvalidArgumentError(said)
    if model not in models():
        raise InvalidArgumentError(
            f"there is no fake GPU {model!r}: choose among {', '.join(models())}"
        )


def build(report: ProgressReport) -> None:
    """Builds the libraries, the interposer and the images' programs, where they are out of date.

    Raises:
        LocalClusterError: The build failed, with what the compiler said.
    """
    BUILT.parent.mkdir(exist_ok=True)
    # The lock is that of the native tests, which build the same.
    lock = BUILT.parent / ".native.lock"
    with exclusive(lock, lambda: report.step("waiting for another build of native/ to end")):
        earlier = EarlierBuilds(cache_folder(os.environ) / "native-built", SOURCES, BUILT)
        earlier.fetch()
        if not all((BUILT / name).exists() for name in LIBRARIES):
            report.step("building the fake GPU (native/fakegpu)")
        jobs = f"-j{os.cpu_count() or 1}"
        command = ["make", "-s", jobs, "-C", str(SOURCES), f"PYTHON={sys.executable}"]
        result = subprocess.run(
            [*command, "fakegpu", "vgpu", "workload"], capture_output=True, text=True, check=False
        )
        if result.returncode != 0:
            raise LocalClusterError(
                f"the fake GPU cannot be built (make -C {SOURCES} fakegpu vgpu workload):"
                f" {result.stderr.strip()[-1000:]}"
            )
        earlier.keep()


def install(folder: Path) -> None:
    """Copies the libraries into a folder, where they differ from those there."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in LIBRARIES:
        wanted = (BUILT / name).read_bytes()
        place = folder / name
        if not place.exists() or place.read_bytes() != wanted:
            write_atomically(place, wanted, 0o755)


def switch_on(model: str, gpus: int) -> list[str]:
    """The command that makes the GPUs' state in the node, if there is none.

    All processes of the node that use the GPUs share it; as /dev/nvidia* it is for every user.

    Args:
        model: A profile.
        gpus: How many.
    """
    arguments = [str(BUILT / "libfakegpu.so"), STATE, str(BUILT / "profiles" / model), str(gpus)]
    return [sys.executable, "-I", "-c", _SWITCH_ON, *arguments]


def missing_sources() -> str | None:
    """Says why the fake GPU cannot be built here, or None."""
    if not (SOURCES / "Makefile").exists():
        return (
            "a real node's fake GPU and images are made from Alnair's repository, and this Alnair"
            " was installed from a wheel: leave out --real-node, or run alnair from a clone"
        )
    return None
