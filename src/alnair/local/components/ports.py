"""The loopback ports of a cluster: chosen once, remembered, and checked before anything starts."""

import contextlib
import socket
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path

import psutil

from alnair.local.errors import LocalClusterError

#: Below the ports that Linux (32768) and macOS (49152) hand to outgoing connections, above the
#: well-known ones.
_FIRST, _LAST = 16400, 29999
API_SERVER = "kube-apiserver"


def is_free(port: int) -> bool:
    """Whether a server can listen on this port of 127.0.0.1 now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As Go does: connections of a former server that linger in TIME_WAIT do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            probe.listen(1)
        except OSError:
            return False
    return True


def choose(
    folder: Path,
    components: Iterable[str],
    remembered: Mapping[str, int],
    *,
    api_port: int | None,
    ours: Mapping[str, int],
    taken: AbstractSet[int] = frozenset(),
    free: Callable[[int], bool] = is_free,
    listens: Callable[[int], bool] = lambda _: False,
    patience: float = 2.0,
) -> dict[str, int]:
    """A port for every component.

    Ports in use by the components themselves are kept, then those remembered. A free one is found
    for the rest, starting at a place that depends on the folder.

    Args:
        folder: The cluster's folder.
        components: Those that listen on a port.
        remembered: The ports of former starts.
        api_port: The API server's port where the user chose it.
        ours: The ports on which running components listen now: in use, but by themselves.
        taken: Ports of other clusters, which may be down now and want theirs back.
        free: Tells whether nobody listens on a port.
        listens: Tells whether the API server itself does by now: it may have begun since `ours` was
            looked up, as one that is being started by another command, or that was killed, does.
        patience: Seconds for a process that was just killed to let go of the API server's port.

    Raises:
        LocalClusterError: Somebody else uses the API server's port. Nobody but the cluster knows
            the others, so they just change.
    """
    ports: dict[str, int] = {}
    candidate = _FIRST + zlib.crc32(str(folder).encode()) % (_LAST - _FIRST)
    for component in components:
        chosen = component == API_SERVER and api_port is not None
        wanted = api_port if chosen else ours.get(component, remembered.get(component))
        if wanted is not None and (wanted == ours.get(component) or free(wanted)):
            ports[component] = wanted
            continue
        if component == API_SERVER and wanted is not None:
            if listens(wanted) or _becomes_free(wanted, free, patience):
                ports[component] = wanted
                continue
            raise LocalClusterError(_in_use(wanted, chosen=chosen))
        for _ in range(_LAST - _FIRST):
            candidate = candidate + 1 if candidate < _LAST else _FIRST
            if candidate not in taken and candidate not in ports.values() and free(candidate):
                break
        else:
            raise LocalClusterError(
                f"no port between {_FIRST} and {_LAST} of 127.0.0.1 is free: stop some servers"
            )
        ports[component] = candidate
    return ports


def _becomes_free(port: int, free: Callable[[int], bool], patience: float) -> bool:
    until = time.monotonic() + patience
    while not free(port):
        if time.monotonic() >= until:
            return False
        time.sleep(0.05)
    return True


def _in_use(port: int, *, chosen: bool) -> str:
    whose = "" if chosen else ", which this cluster used before,"
    return (
        f"port {port}{whose} is in use{_by_whom(port)}:"
        " stop that process, or choose another port with --port"
    )


def listening(process: psutil.Process) -> int | None:
    """The port on which a process listens; None: on none, or it cannot be told."""
    with contextlib.suppress(psutil.Error, OSError):
        for connection in process.net_connections("tcp"):
            if connection.status == psutil.CONN_LISTEN:
                return int(connection.laddr.port)
    return None


def _by_whom(port: int) -> str:
    with contextlib.suppress(psutil.Error, OSError):
        for connection in psutil.net_connections("tcp"):
            if (
                connection.status == psutil.CONN_LISTEN
                and connection.laddr
                and connection.laddr.port == port
                and connection.pid
            ):
                return f" by {psutil.Process(connection.pid).name()} (process {connection.pid})"
    return ""
