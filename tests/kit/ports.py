"""Ports for servers that cannot choose one themselves."""

import random
from typing import Final

from alnair.local.components import ports

#: Above those of local clusters, below those that Linux gives to outgoing connections: of these,
#: one that was free may be taken before a server has started.
_FIRST, _LAST = 30_000, 32_767
_TRIES: Final = 1000


def free_port() -> int:
    """A port of loopback on which nobody listens."""
    for _ in range(_TRIES):
        port = random.randint(_FIRST, _LAST)
        if ports.is_free(port):
            return port
    raise OSError(f"no port from {_FIRST} to {_LAST} is free")
