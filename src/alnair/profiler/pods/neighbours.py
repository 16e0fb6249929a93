"""Which pods are on the same GPUs, by the processes there, and since when they are just these."""

from collections.abc import Mapping

from alnair.profiler.pods.gpu_use import devices
from alnair.profiler.samples import GpuSample

_NOBODY: frozenset[str] = frozenset()


class Neighbours:
    """Follows the pods of a node."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[float, frozenset[str]]] = {}

    def take(
        self,
        now: float,
        samples: Mapping[str, GpuSample],
        places: Mapping[int, tuple[str, str]],
        titles: Mapping[str, str],
    ) -> None:
        """Take in a look.

        Args:
            now: Seconds since the epoch.
            samples: Of the GPUs, by UUID.
            places: Pid → pod and container; those of the node have neither.
            titles: Pod → how to call it.
        """
        found: dict[str, set[str]] = {}
        for sample in devices(samples).values():
            pods = {places.get(process.pid, ("", ""))[0] for process in sample.processes} - {""}
            for pod in pods:
                found.setdefault(pod, set()).update(pods - {pod})
        known: dict[str, tuple[float, frozenset[str]]] = {}
        for pod, others in found.items():
            named = frozenset(titles.get(other, other) for other in others)
            old = self._known.get(pod)
            known[pod] = old if old is not None and old[1] == named else (now, named)
        self._known = known

    def of(self, pod: str) -> tuple[float, frozenset[str]]:
        """Return since when who is beside a pod; of one without processes, from now on nobody."""
        return self._known.get(pod, (float("inf"), _NOBODY))
