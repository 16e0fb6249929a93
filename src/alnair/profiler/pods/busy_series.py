"""The driver's own samples of each GPU, several a second, for as long as one pod has it alone.

Of a GPU that several pods use they say nothing of any of them, so they are forgotten then.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from alnair.profiler.samples import GpuSample

Values = NDArray[np.float64]
#: Samples that are kept of a GPU: three minutes of ten a second, five of six.
LENGTH: Final = 1800
#: Fewer a second are no more than what is kept anyway.
_LEAST_RATE: Final = 1.5


class _Ring:
    """The newest samples of one GPU, and whose they are."""

    def __init__(self, pod: str) -> None:
        self.pod = pod
        self._values = np.zeros((LENGTH, 2), np.float64)
        self._count = 0

    def add(self, samples: tuple[tuple[float, float], ...]) -> None:
        newest = np.array(sorted(samples)[-LENGTH:], np.float64)
        places = (self._count + np.arange(len(newest))) % LENGTH
        self._values[places] = newest
        self._count += len(newest)

    def ordered(self) -> tuple[Values, Values]:
        if self._count <= LENGTH:
            found = self._values[: self._count].copy()
        else:
            found = np.roll(self._values, -(self._count % LENGTH), axis=0)
        return found[:, 0], found[:, 1]


class BusySeries:
    """Keeps them."""

    def __init__(self) -> None:
        self._rings: dict[str, _Ring] = {}

    def take(self, samples: Mapping[str, GpuSample], users: Mapping[str, str]) -> None:
        """Take in a look.

        Args:
            samples: By UUID.
            users: UUID → the pod whose processes are the only ones there; no other GPU is named.
        """
        for uuid, sample in samples.items():
            pod, ring = users.get(uuid), self._rings.get(uuid)
            if pod is None:
                self._rings.pop(uuid, None)
            elif ring is None or ring.pod != pod:
                # What was before, up to now, may be of the one before.
                self._rings[uuid] = _Ring(pod)
            elif sample.busy:
                ring.add(sample.busy)

    def of(self, pod: str) -> dict[str, tuple[Values, Values]]:
        """Return UUID → times in seconds since the epoch, and percents, of a pod's GPUs."""
        found = {uuid: ring.ordered() for uuid, ring in self._rings.items() if ring.pod == pod}
        return {
            uuid: (times, values)
            for uuid, (times, values) in found.items()
            if len(times) > 1 and len(times) > _LEAST_RATE * (times[-1] - times[0])
        }
