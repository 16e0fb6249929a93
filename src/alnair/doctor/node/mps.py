"""Can the agent run the MPS daemon that it was told to run?"""

from typing import Final

from alnair.doctor.finding import Finding, error, ok
from alnair.doctor.node.look import NodeLook

_PROGRAMS: Final = ("nvidia-cuda-mps-control", "nvidia-cuda-mps-server")
_FOLDERS: Final = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")


def mps(look: NodeLook) -> list[Finding]:
    """With agent.mps.enabled, the node has NVIDIA's MPS programs, which come with its driver."""
    if not look.seen(look.folder / "mps").is_dir():
        return [ok("the agent runs no MPS daemon")]
    for program in _PROGRAMS:
        if not any(look.seen(f"{folder}/{program}").is_file() for folder in _FOLDERS):
            text = f"the agent shall run MPS, and {program} is in no folder of the node's PATH"
            fix = "apt-get install nvidia-compute-utils-DRIVER, or agent.mps.enabled=false"
            return [error(text, ", ".join(_FOLDERS), fix=fix)]
    return [ok("NVIDIA's MPS programs are on the node")]
