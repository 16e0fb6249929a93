"""What is remembered of a cluster between two commands: ports, components, extra flags."""

import contextlib
from pathlib import Path

import msgspec

from alnair.local.layout import write_atomically


class ClusterState(msgspec.Struct, frozen=True):
    """The file `state.json` of a cluster."""

    name: str
    components: tuple[str, ...]
    ports: dict[str, int]
    extra_args: dict[str, tuple[str, ...]] = {}
    v: int = 1


def load(path: Path) -> ClusterState | None:
    """The remembered state; None without one.

    An unreadable file is set aside as `state.json.corrupt` and counts as none: everything in it can
    be chosen anew, and the processes of the cluster are found without it.
    """
    try:
        data = path.read_bytes()
    except OSError:
        return None
    try:
        state = msgspec.json.decode(data, type=ClusterState)
        valid = state.v == 1 and all(0 < port < 65536 for port in state.ports.values())
    except (msgspec.DecodeError, UnicodeDecodeError):
        valid = False
    if valid:
        return state
    with contextlib.suppress(OSError):
        path.replace(path.with_suffix(".json.corrupt"))
    return None


def save(path: Path, state: ClusterState) -> None:
    """Writes the state, readable by the user alone."""
    write_atomically(path, msgspec.json.format(msgspec.json.encode(state)) + b"\n")
