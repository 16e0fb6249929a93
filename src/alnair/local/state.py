"""What is remembered of a cluster between two commands: ports, components, extra flags."""

import contextlib
from pathlib import Path

import msgspec

from alnair.local.layout import write_atomically


class RealNodeState(msgspec.Struct, frozen=True):
    """The real node of a cluster."""

    slot: int
    """Which network it has."""
    gpus: int
    gpu_model: str
    installed: bool = False
    """Alnair runs on it as pods, installed by its chart."""


class ClusterState(msgspec.Struct, frozen=True):
    """The file `state.json` of a cluster."""

    name: str
    components: tuple[str, ...]
    ports: dict[str, int]
    extra_args: dict[str, tuple[str, ...]] = {}
    real_node: RealNodeState | None = None
    v: int = 1


def load(path: Path) -> ClusterState | None:
    """The remembered state; None when there is none, or none that can be read."""
    try:
        state = msgspec.json.decode(path.read_bytes(), type=ClusterState)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    valid = state.v == 1 and all(0 < port < 65536 for port in state.ports.values())
    return state if valid else None


def set_aside(path: Path) -> None:
    """Keeps a file that cannot be read as `state.json.corrupt`, out of the way.

    Everything in it can be chosen anew, and the processes of the cluster are found without it.
    """
    with contextlib.suppress(FileNotFoundError):
        path.replace(path.with_suffix(".json.corrupt"))


def save(path: Path, state: ClusterState) -> None:
    """Writes the state, readable by the user alone."""
    write_atomically(path, msgspec.json.format(msgspec.json.encode(state)) + b"\n")
