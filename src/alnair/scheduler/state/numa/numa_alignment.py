"""Whether, and into which zones, a kubelet would align a pod: single-numa-node, on columns.

Source of semantics: `pkg/noderesourcetopology` of scheduler-plugins. Each container (or the pod)
goes to the lowest zone that has all of what it requests. Init containers are looked at one by one
and leave nothing taken; unlike there, sidecars do, since they keep running.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from alnair.model.pod_requests import ContainerRequests, ends_first, pod_requests
from alnair.model.workload import ContainerPart, PodSpec
from alnair.scheduler.state.nodes.columns import Column, Columns, Mask
from alnair.scheduler.state.numa.numa_zones import ABSENT, Take, Zones

#: Rows by number: what is aligned is always a choice of rows.
Picked = NDArray[np.intp]

#: Resources that every node has, as Kubernetes counts them.
_ALWAYS_THERE: Final = frozenset(("cpu", "memory", "pods", "ephemeral-storage"))
_HOST_LEVEL: Final = frozenset(("ephemeral-storage", "storage"))


def parts_of(spec: PodSpec) -> tuple[ContainerPart, ...]:
    """Return the containers of a pod with what each requests, init containers first."""
    if spec.containers:
        return spec.containers
    return (ContainerPart(tuple((n, amount) for n, amount in spec.requests if n != "pods")),)


def whole_pod(spec: PodSpec) -> ContainerPart:
    """Return the pod as if it were one container: the most that is in use at once."""
    total = pod_requests(
        [ContainerRequests(dict(p.requests), p.init, p.sidecar) for p in parts_of(spec)]
    )
    return ContainerPart(tuple(sorted((n, amount) for n, amount in total.items() if amount)))


def is_native(resource: str) -> bool:
    """Return whether the resource is Kubernetes' own."""
    return "/" not in resource or "kubernetes.io/" in resource


def is_shared(resource: str) -> bool:
    """Return whether only Guaranteed pods get this resource from a zone: cpu, memory, pages."""
    return resource in ("cpu", "memory") or resource.startswith("hugepages-")


class Alignment:
    """A pod class on the zones of nodes."""

    def __init__(self, spec: PodSpec, zones: Zones, columns: Columns) -> None:
        self.parts = parts_of(spec)
        self.pod = whole_pod(spec)
        self._guaranteed = spec.guaranteed
        self._zones = zones
        self._columns = columns

    @property
    def trivial(self) -> bool:
        """Whether every zone will do: nothing is asked for that has a place."""
        return all(is_native(n) and n not in ("cpu", "memory") for n, _ in self.pod.requests)

    def fits_any(self, part: ContainerPart, rows: Picked) -> Mask:
        """Return which zones have all that the part requests, shape (slots, rows)."""
        return self._fits(part, rows, self._free(rows))

    def pod_fits(self, rows: Picked) -> Mask:
        """Return on which rows the pod as a whole fits into a zone."""
        found: Mask = np.logical_or.reduce(self.fits_any(self.pod, rows), axis=0)
        return found

    def containers_fit(self, rows: Picked) -> tuple[Mask, Mask]:
        """Return on which rows all init containers, and all containers, find their zones."""
        ok, init_ok, _ = self._containers(rows)
        return init_ok, ok

    def chosen(self, row: int) -> list[tuple[ContainerPart, int | None]]:
        """Return the zone (slot) of each container that keeps running, None if none will do."""
        found = self._containers(np.array([row], np.intp))[2]
        return [(part, int(fits.argmax()) if fits.any() else None) for part, fits in found]

    def takes(self, row: int, *, exact: bool) -> tuple[Take, ...]:
        """Return what the pod takes of which zones of a row that aligns to a single zone.

        The kubelet chooses the lowest zone that will do. If zones have more left than we know, that
        may be a lower one than it seems, so the pod is taken of all up to there. Where none will
        do, the pod is there all the same, and is taken of every zone.

        Args:
            row: of the node.
            exact: we know just what the zones have left.
        """
        if self._zones.pod_scope[row]:
            chosen = [(self.pod, self.fits_any(self.pod, np.array([row], np.intp)))]
        else:
            chosen = self._containers(np.array([row], np.intp))[2]
        known = bool(chosen) and all(fits.any() for _, fits in chosen)
        lowest = [int(fits[:, 0].argmax()) for _, fits in chosen]
        count = int((self._zones.ids[:, row] >= 0).sum())
        takes: list[Take] = []
        for (part, _), slot in zip(chosen, lowest, strict=True):
            slots = range(max(lowest) + 1) if known else range(count)
            takes += self._take(part, (slot,) if known and exact else slots)
        return tuple(takes)

    def takes_everywhere(self, row: int) -> tuple[Take, ...]:
        """Return what the pod takes of every zone of a row, for a pod of which we know no zone."""
        count = int((self._zones.ids[:, row] >= 0).sum())
        return tuple(self._take(self.pod, range(count)))

    def _take(self, part: ContainerPart, slots: Iterable[int]) -> Iterator[Take]:
        for name, amount in part.requests:
            column = self._zones.resources.get(name)
            if column is not None and self._counts(name):
                for slot in slots:
                    yield Take(column, slot, float(amount))

    def _containers(self, rows: Picked) -> tuple[Mask, Mask, list[tuple[ContainerPart, Mask]]]:
        free = self._free(rows)
        ok = np.ones(len(rows), bool)
        init_ok = ok.copy()
        chosen = []
        for part in self.parts:
            fits = self._fits(part, rows, free)
            found: Mask = np.logical_or.reduce(fits, axis=0)
            (init_ok if part.init else ok).__iand__(found)
            if not ends_first(part):
                chosen.append((part, fits))
                self._subtract(part, fits.argmax(axis=0), free)
        return ok, init_ok, chosen

    def _free(self, rows: Picked) -> dict[str, Column]:
        resources = self._zones.resources
        return {
            name: self._zones.free[resources[name]][:, rows]
            for name in dict.fromkeys(n for p in (*self.parts, self.pod) for n, _ in p.requests)
            if name in resources
        }

    def _fits(self, part: ContainerPart, rows: Picked, free: dict[str, Column]) -> Mask:
        slots = max(self._zones.ids.shape[0], 1)
        fits = np.ones((slots, len(rows)), bool)
        for name, amount in part.requests:
            if name in free:
                there = free[name] >= 0
                # Others than Guaranteed pods share what all zones have.
                enough = free[name] >= amount if self._counts(name) else there
                if not is_native(name) or name in _HOST_LEVEL:
                    host_has_it: Mask = ~np.logical_or.reduce(there, axis=0)
                    enough = enough | host_has_it
                fits &= enough
            elif is_native(name) and name not in _HOST_LEVEL:
                fits[:] = False
            if name not in _ALWAYS_THERE:
                fits &= self._columns.allocatable[self._columns.resource(name), rows] > 0
        return fits

    def _subtract(self, part: ContainerPart, slots: Picked, free: dict[str, Column]) -> None:
        at = (slots, np.arange(len(slots)))
        for name, amount in part.requests:
            if name in free and self._counts(name):
                before = free[name][at]
                free[name][at] = np.where(before >= 0, np.maximum(before - amount, 0), ABSENT)

    def _counts(self, name: str) -> bool:
        return self._guaranteed or not is_shared(name)
