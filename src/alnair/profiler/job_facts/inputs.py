"""What a job reads: how much came in so far, and in one epoch."""

from typing import Final

import msgspec

from alnair.model.job_facts import Figure, InputFacts, InputPlace

_MIB: Final = 1 << 20
_DISKS: Final = "bytes read from disks"
_NETWORK: Final = "bytes received by network"
#: MiB below which what came in is no input: programs and libraries are read, too.
_LEAST: Final = 1.0


class Incoming(msgspec.Struct, frozen=True):
    """Counters of a pod at one moment, bytes; None: not counted.

    Attributes:
        disk: Read from disks, by all its containers.
        network: Received.
        epoch: That its log says it is in, from 0 or 1 on.
    """

    disk: int | None = None
    network: int | None = None
    epoch: float | None = None


class InputReads:
    """Follows one pod's counters from look to look; they may begin again."""

    def __init__(self) -> None:
        self._at_epoch: Incoming | None = None
        self._disk = self._network = 0
        self._last = Incoming()
        self._most: tuple[float, str] = (0.0, "")

    def take(self, now: Incoming) -> None:
        """Take in the counters as they are now."""
        self._disk += _grown(self._last.disk, now.disk)
        self._network += _grown(self._last.network, now.network)
        self._last = now
        so_far = Incoming(self._disk, self._network, now.epoch)
        if now.epoch is None:
            return
        begun = self._at_epoch
        if begun is None or begun.epoch is None or now.epoch < begun.epoch:
            self._at_epoch = so_far  # the first that is seen began before
        elif (epochs := now.epoch - begun.epoch) >= 1:
            amount, source = _larger(
                (self._disk - (begun.disk or 0)) / epochs,
                (self._network - (begun.network or 0)) / epochs,
            )
            if amount > self._most[0]:
                self._most = amount, source
            self._at_epoch = so_far

    def facts(self, places: tuple[InputPlace, ...]) -> InputFacts | None:
        """Return what is known, with the places that the pod's specification names."""
        found = InputFacts(
            places, _figure(*_larger(self._disk, self._network)), _figure(*self._most)
        )
        return found if found != InputFacts() else None


def _grown(before: int | None, now: int | None) -> int:
    if now is None:
        return 0
    # Smaller than before: begun anew.
    return now - before if before is not None and now >= before else now


def _larger(disk: float, network: float) -> tuple[float, str]:
    return (disk, _DISKS) if disk >= network else (network, _NETWORK)


def _figure(amount: float, source: str) -> Figure | None:
    mib = amount / _MIB
    return Figure(float(f"{mib:.2g}"), source) if mib >= _LEAST else None
