"""What GPUs do, and what pods do with them, over the last half minute, by the looks at the GPUs."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import msgspec

from alnair.node.gpu_looks import GpuLook
from alnair.node.vgpu.containers.container import VgpuContainer
from alnair.node.vgpu.containers.container_slices import OwningPod, guaranteed
from alnair.sharing.load import WINDOW, Course, PodLoad, sampled, together

_GIGA: Final = 1_000_000_000
#: (name of a container with slices, GPU).
_Slice = tuple[str, str]


class GpuHolder(msgspec.Struct, frozen=True):
    """A container that has whole GPUs."""

    pod: OwningPod
    uuids: tuple[str, ...]


class GpuLoad(msgspec.Struct, frozen=True):
    """What a GPU does.

    Attributes:
        util: Percent of time in which kernels ran, mean over the window.
        memory_bytes: In use, as of the last look.
        window_s: Seconds of the window by now.
    """

    util: float
    memory_bytes: int
    window_s: float


class GpusLoad:
    """The loads of all GPUs and pods; `take` is given every look.

    A slice's use is the GPU time that was charged to the container. Where none is charged, as it
    has neither a guarantee nor a soft share, it is that of the whole GPU: more than its own, maybe,
    but never less, so nobody is called idle who is not.

    Args:
        containers: Those with slices, by name.
        holders: Those with whole GPUs.
        window: Seconds.
    """

    def __init__(
        self,
        containers: Mapping[str, VgpuContainer],
        holders: Callable[[], Iterable[GpuHolder]] = tuple,
        window: float = WINDOW,
    ) -> None:
        self._containers = containers
        self._holders = holders
        self._window = window
        self._now = 0.0
        self._gpus: dict[str, Course] = {}
        self._memory: dict[str, int] = {}
        #: GPU → bytes in use of its MIG devices, by UUID.
        self.mig: dict[str, dict[str, int]] = {}
        #: GPUs that have not answered the last look yet.
        self.late: frozenset[str] = frozenset()
        #: GPU → processes with a use of it, by the last look, that the driver does not list there.
        self.unmapped: dict[str, int] = {}
        #: Looks so far that came to nothing, as the one before took too long.
        self.skipped = 0
        self._slices: dict[_Slice, Course] = {}
        #: When a slice was looked at last, and what had been charged to it by then.
        self._charged: dict[_Slice, tuple[float, int]] = {}
        #: By (pod, container, GPU): what the GPU did before is not its holder's.
        self._whole: dict[tuple[str, str, str], Course] = {}

    def take(self, seen: GpuLook) -> None:
        """Take in one look."""
        self._now = seen.now
        self.late, self.skipped = seen.late, seen.skipped
        self.unmapped = {uuid: seen.unmapped.get(uuid, 0) for uuid in seen.usages}
        self.mig = {uuid: usage.mig for uuid, usage in seen.usages.items() if usage.mig}
        for uuid, usage in seen.usages.items():
            self._memory[uuid] = usage.memory_bytes
            if usage.util is not None:
                before = self._gpus.get(uuid, Course())
                self._gpus[uuid] = sampled(before, usage.util, seen.now, self._window)
        utils = {uuid: u.util for uuid, u in seen.usages.items() if u.util is not None}
        self._take_slices(utils, seen.now)
        held = {
            (holder.pod.uid, holder.pod.container, uuid): utils.get(uuid)
            for holder in self._holders()
            for uuid in holder.uuids
        }
        self._whole = {
            key: before if util is None else sampled(before, util, seen.now, self._window)
            for key, util in held.items()
            for before in [self._whole.get(key, Course())]
        }

    def gpus(self) -> dict[str, GpuLoad]:
        """Return the loads of the GPUs of which it is known what they do now."""
        return {
            uuid: GpuLoad(course.mean, self._memory[uuid], course.seconds)
            for uuid, course in self._gpus.items()
            if course.is_fresh(self._now)
        }

    def pods(self) -> dict[OwningPod, PodLoad | None]:
        """Return the loads of the pods (without a container), None where not known."""
        parts: dict[OwningPod, list[Course]] = {}
        for pod, course in self._parts():
            if pod.uid:
                plain = OwningPod(pod.namespace, pod.name, pod.uid)
                parts.setdefault(plain, []).append(course)
        return {pod: together(courses, self._now) for pod, courses in parts.items()}

    def idle_for(self, uid: str) -> float | None:
        """Return for how many seconds a pod has not used its GPUs; None if it does, or unknown."""
        loads = (load for pod, load in self.pods().items() if pod.uid == uid)
        load = next(loads, None)
        return None if load is None else load.idle_for

    def _parts(self) -> Iterator[tuple[OwningPod, Course]]:
        for name, container in self._containers.items():
            for share in container.assignment.shares:
                yield container.assignment.pod, self._slices.get((name, share.uuid), Course())
        for holder in self._holders():
            for uuid in holder.uuids:
                key = holder.pod.uid, holder.pod.container, uuid
                yield holder.pod, self._whole.get(key, Course())

    def _take_slices(self, utils: Mapping[str, float], now: float) -> None:
        slices: dict[_Slice, Course] = {}
        charged: dict[_Slice, tuple[float, int]] = {}
        for name, container in self._containers.items():
            for row, share in enumerate(container.assignment.shares):
                key = name, share.uuid
                course = self._slices.get(key, Course())
                total = int(container.totals.devices[row]["charged_ns"])
                then, before = self._charged.get(key, (now, total))
                charged[key] = now, total
                if not guaranteed(share):
                    util = utils.get(share.uuid)
                elif now > then:
                    util = 100 * (total - before) / _GIGA / (now - then)
                else:
                    util = None
                if util is not None:
                    course = sampled(course, util, now, self._window)
                slices[key] = course
        self._slices, self._charged = slices, charged
