"""Which ports of the hosts are taken, kept current booking by booking.

Source of semantics: `HostPortInfo` of kube-scheduler: a port is taken per protocol and address, and
the address 0.0.0.0 stands for all of them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from alnair.model.workload import HostPort

EVERY_ADDRESS: Final = "0.0.0.0"


class HostPorts:
    """Ports that pods on nodes hold; ports that nobody holds cost nothing."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, int], dict[str, Counter[int]]] = {}

    def add(self, row: int, ports: Iterable[HostPort], sign: int = 1) -> None:
        """Take ports of a row, or give them back with `sign=-1`."""
        for port in ports:
            key = (port.protocol, port.port)
            rows = self._held.setdefault(key, {}).setdefault(port.address, Counter())
            rows[row] += sign
            if not rows[row]:
                del rows[row]
                if not rows:
                    del self._held[key][port.address]
                    if not self._held[key]:
                        del self._held[key]

    def holders(self, wanted: HostPort) -> Iterator[Counter[int]]:
        """Return the rows where something is in the way of the port, in parts."""
        for address, rows in self._held.get((wanted.protocol, wanted.port), {}).items():
            if EVERY_ADDRESS in (address, wanted.address) or address == wanted.address:
                yield rows
