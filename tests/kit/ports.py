"""Ports for servers that cannot choose one themselves."""

import os
import random
from typing import Final

from alnair.local.components import ports

#: Above those of local clusters, below those that Linux gives to outgoing connections: of these,
#: one that was free may be taken before a server has started.
_FIRST, _LAST = 30_000, 32_767
_TRIES: Final = 1000
#: Each process of a run of tests chooses among ports of its own: what is free and not bound yet is
#: not chosen by another.
_PLACES: Final = 16
_PLACE: Final = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _PLACES


def free_port() -> int:
    """A port of loopback on which nobody listens."""
    for _ in range(_TRIES):
        port = random.randrange(_FIRST + _PLACE, _LAST + 1, _PLACES)
        if ports.is_free(port):
            return port
    raise OSError(f"no port from {_FIRST} to {_LAST} is free")
