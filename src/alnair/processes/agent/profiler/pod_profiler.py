"""Once a second: what every container of the node uses, into the books.

The files of the kernel are read in a thread; the books are kept in the event loop. GPUs come from
the looks at them, which have a loop of their own: one that does not answer holds up nothing here,
and what it does is unknown meanwhile.
"""

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

import msgspec

from alnair.model.api_types import Workload
from alnair.model.usage import PodUsage
from alnair.node.cgroups import Proc
from alnair.node.fixed_rate import FixedRate
from alnair.node.gpu_looks import GpuLook
from alnair.node.inventory import Inventory
from alnair.node.load import GpuHolder
from alnair.node.own_thread import in_own_thread
from alnair.node.pods.kubelet_page import KubeletPage
from alnair.node.pods.reader import PodsReader, PodsReading
from alnair.node.process_places import ProcessPlaces
from alnair.processes.agent.profiler.dcgm_source import DcgmSource
from alnair.processes.agent.profiler.given_gpus import (
    Sliced,
    given_gpus,
    names_by_gpus,
    names_of_processes,
    used_gpus,
)
from alnair.processes.agent.profiler.kept_usage import KeptUsage
from alnair.profiler.pods.accounts import Account, Named, PodAccounts, Seen
from alnair.profiler.pods.busy_series import BusySeries
from alnair.profiler.pods.gpu_use import Disagreement, GpuAttribution, GpusUsed
from alnair.profiler.pods.neighbours import Neighbours
from alnair.profiler.pods.rates import Figures, link_rates
from alnair.profiler.samples import ContainerKey, GpuSample

#: Seconds between readings.
EVERY: Final = 1.0
#: Seconds after which what was seen of GPUs says nothing of now; where it is looked less often,
#: so many times the time between looks.
FRESH: Final = 3.0
#: Seconds between saves of the books: what a kill may cost of a running pod's figures.
SAVED_EVERY: Final = 30.0
#: Seconds that the end waits for a reading that is under way.
_LAST_READING: Final = 2.0
#: Pods that have ended whose largest values are at hand, for their annotations.
_FINALS: Final = 500

_TICKS: Final = os.sysconf("SC_CLK_TCK")

_log = logging.getLogger(__name__)


class OwnedPod(Named, Protocol):
    """A pod and its controller; see `PodOnNode`."""

    @property
    def owner(self) -> tuple[str, str]:
        """Kind and name of its controller; empty without one."""
        ...


class Cycles(msgspec.Struct):
    """How the profiler itself does.

    Attributes:
        count: Readings so far.
        seconds: Time in them, with the books.
        longest: The longest of the last minute, seconds.
        at: When the last was, seconds, monotonic; None: there was none.
        left_out: Containers that were not read, as there are too many.
    """

    count: int = 0
    seconds: float = 0.0
    longest: float = 0.0
    at: float | None = None
    left_out: int = 0


class PodProfiler:
    """Reads and keeps books; `take` is given every look at the GPUs.

    Args:
        node: Name of this node.
        proc: This machine's.
        names: The pods of this node, by the uids in their groups.
        kept: Where the books go.
        containers: Those with slices.
        holders: Those with whole GPUs, or MIG devices.
        inventory: The node's GPUs.
        dcgm: Fills in what the driver does not say of GPUs.
        every: Seconds between readings.
        page: Read in place of control groups, where none of a pod can be; None: nothing is.

    Attributes:
        accounts: The books.
        busy: The driver's samples of GPUs that one pod has alone.
        neighbours: Which pods are on the same GPUs.
        cycles: How it does.
        disagreements: Where what was given and what is used differ, now.
        links: What goes over each GPU's links.
        finals: Uid → the largest values of pods that have ended a moment ago.
        workloads: Uid → what a pod does, as far as was found; whoever looks writes it here.
    """

    def __init__(
        self,
        node: str,
        proc: Proc,
        names: Callable[[], Mapping[str, OwnedPod]],
        kept: KeptUsage,
        *,
        containers: Callable[[], Iterable[Sliced]] = tuple,
        holders: Callable[[], Iterable[GpuHolder]] = tuple,
        inventory: Callable[[], Inventory] = Inventory,
        dcgm: DcgmSource | None = None,
        every: float = EVERY,
        page: KubeletPage | None = None,
    ) -> None:
        self.dcgm = dcgm
        self.node = node
        self.kept = kept
        self.names = names
        self.accounts = PodAccounts(node)
        self.cycles = Cycles()
        self.disagreements: tuple[Disagreement, ...] = ()
        self.links: dict[str, Figures] = {}
        self.finals: dict[str, dict[str, float]] = {}
        self.workloads: dict[str, Workload] = {}
        #: Held by the thread that reads.
        self._reading = threading.Lock()
        self._living = ProcessPlaces(proc)
        self._reader = PodsReader(proc)
        self._page = page
        self._said: str | None = None
        self._containers = containers
        self._holders = holders
        self._inventory = inventory
        self._every = every
        self._gpus = GpuAttribution()
        self.busy = BusySeries()
        self.neighbours = Neighbours()
        self._used = GpusUsed()
        self._look: GpuLook | None = None
        self._taken: GpuLook | None = None
        #: Pid → when it started, and where it is: a pid is given again.
        self._places: dict[int, tuple[int, tuple[str, str]]] = {}
        #: Of containers that run: the API server may tell their names too late.
        self._by_gpus: dict[ContainerKey, str] = {}
        self._saved_at = time.monotonic()
        self._saving: asyncio.Task[None] | None = None
        self._minute: list[float] = []
        saved, written = kept.saved()
        if saved is not None:
            try:
                self.accounts.restore(saved, written)
            except ValueError as error:
                _log.warning("the books of pods that ran before cannot be used: %s", error)

    @property
    def samples(self) -> Mapping[str, GpuSample]:
        """What was seen of the GPUs, while that says something of now."""
        fresh = FRESH * max(1.0, self._every)
        if self._look is None or time.monotonic() - self._look.now > fresh:
            return {}
        return self._look.samples

    def take(self, seen: GpuLook) -> None:
        """Take in a look at the GPUs."""
        before = self._look.samples if self._look is not None else {}
        self.links = {
            uuid: (self.dcgm.links(uuid) if self.dcgm is not None else {})
            | link_rates(before.get(uuid), sample)
            for uuid, sample in seen.samples.items()
        }
        self._look = seen if self.dcgm is None else self.dcgm.fill(seen)

    async def run(self, synced: asyncio.Event) -> None:
        """Read at a fixed rate, until cancelled.

        Args:
            synced: Set once all pods are known: before that, none has ended.
        """
        await synced.wait()
        rate = FixedRate(self._every, time.monotonic())
        try:
            while True:
                await self.tick()
                await asyncio.sleep(rate.rest(time.monotonic()))
        finally:
            if self._saving is not None:
                await asyncio.wait({self._saving})
            self.kept.write_now(self.accounts.saved())
            # It was cancelled, its thread was not. One that hangs is left to the process's end.
            if self._reading.acquire(timeout=_LAST_READING):
                self._reader.close()
                self._living.close()

    async def tick(self) -> None:
        """Read once."""
        began = time.monotonic()
        look = self._look if self._look is not self._taken else None
        reading, places = await in_own_thread(self._read, look)
        if reading is None:
            return  # nothing is known, and so nothing has ended
        ended = [self._with_workload(one) for one in self._account(reading, look, places)]
        if ended or self.kept.problem:
            self._saved_at = began
            await self.kept.write(ended, self.accounts.saved())
        elif began - self._saved_at >= SAVED_EVERY and (
            self._saving is None or self._saving.done()
        ):
            # Beside the readings: a disk that is busy takes seconds.
            self._saved_at = began
            self._saving = asyncio.create_task(self.kept.write([], self.accounts.saved()))
        for one in ended:
            self.finals[one.uid] = {name: digest.max for name, digest in one.metrics.items()}
        while len(self.finals) > _FINALS:
            del self.finals[next(iter(self.finals))]
        self._note(began, time.monotonic() - began, reading)

    def usage(self, group: str) -> PodUsage:
        """Return a pod that runs, until now, by its uid in its groups."""
        return self._with_workload(self.accounts.usage(group))

    def values(self, uid: str) -> dict[str, tuple[float | None, float]]:
        """Return metric → (newest, largest) of a pod that runs, and largest of one that ended."""
        if (found := self.account(uid)) is not None:
            return self.accounts.values(found[0])
        return {metric: (None, most) for metric, most in self.finals.get(uid, {}).items()}

    def account(self, uid: str) -> tuple[str, Account] | None:
        """Return a pod that runs, by its uid at the API server, with that in its groups."""
        if (found := self.accounts.pods.get(uid)) is not None and found.uid == uid:
            return uid, found
        items = self.accounts.pods.items()
        return next(((group, one) for group, one in items if one.uid == uid), None)

    def _read(self, look: GpuLook | None) -> tuple[PodsReading | None, dict[int, tuple[str, str]]]:
        with self._reading:
            return self._read_all(look)

    def _read_all(
        self, look: GpuLook | None
    ) -> tuple[PodsReading | None, dict[int, tuple[str, str]]]:
        reading: PodsReading | None = self._reader.read()
        if self._page is not None and reading is not None and not reading.pods and self.names():
            reading = self._page.read()
            if self._page.problem != self._said:  # once, and not at every try
                self._said = self._page.problem
                _log.warning(
                    "no pod's control group can be read here, so that figures are those of the "
                    "kubelet, every 10 to 15 s%s",
                    f", which cannot be read either: {self._said}" if self._said else "",
                )
        return reading, self._find(look)

    def _find(self, look: GpuLook | None) -> dict[int, tuple[str, str]]:
        """Return whose the processes on GPUs are, by the kernel."""
        if look is None:
            return {}
        samples = [one for gpu in look.samples.values() for one in (gpu, *gpu.mig.values())]
        pids = {process.pid for sample in samples for process in sample.processes}
        known: dict[int, tuple[int, tuple[str, str]]] = {}
        latest = _ticks(look.now)
        self._living.renew()
        for pid in pids:
            started = self._living.started(pid)
            if started > latest:
                continue  # it was given again since the look
            before = self._places.get(pid)
            if started and before is not None and before[0] == started:
                known[pid] = before
            elif started and (place := self._living.cgroup(pid)) is not None:
                known[pid] = started, (place.pod, place.container if place.pod else "")
        self._places = known
        return {pid: place for pid, (_, place) in known.items()}

    def _account(
        self, reading: PodsReading, look: GpuLook | None, places: Mapping[int, tuple[str, str]]
    ) -> list[PodUsage]:
        names = self.names()
        groups = {pod.uid: group for group, pod in names.items() if pod.uid != group}
        given = given_gpus(self._containers(), self._holders(), groups)
        if look is not None:
            self._by_gpus = names_by_gpus(given, look.samples, places) | {
                key: name for key, name in self._by_gpus.items() if key in reading.containers
            }
        seen = Seen(
            now=reading.at,
            epoch=time.time(),
            names=names,
            containers=reading.containers,
            networks=reading.networks,
            present=reading.pods,
            given=used_gpus(given, self._inventory()),
            by_gpus=self._by_gpus,
        )
        if look is not None:
            owners = names_of_processes(places, seen.name_of)
            self._used = self._gpus.take(look.samples, owners, given)
            self._taken = look
            self.busy.take(look.samples, _alone(look, places))
            titles = {uid: f"{pod.namespace}/{pod.name}" for uid, pod in names.items()}
            self.neighbours.take(time.time(), look.samples, places, titles)
        elif not self.samples:
            self._used = GpusUsed()
        else:  # the same look again: what it says holds, but its energy is in the books
            self._used = _without_energy(self._used)
        self.disagreements = self._used.disagreements
        uses = self._used if self._used.uses else None
        return self.accounts.tick(msgspec.structs.replace(seen, gpus=uses))

    def _with_workload(self, pod: PodUsage) -> PodUsage:
        return msgspec.structs.replace(pod, workload=self.workloads.get(pod.uid))

    def _note(self, began: float, seconds: float, reading: PodsReading) -> None:
        self._minute = [*self._minute[-59:], seconds]
        self.cycles.count += 1
        self.cycles.seconds += seconds
        self.cycles.longest = max(self._minute)
        self.cycles.at = began
        self.cycles.left_out = reading.left_out


def _ticks(now: float) -> float:
    """Return a moment of the monotonic clock as `/proc` has the start of processes."""
    since_boot = time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic() + now
    return since_boot * _TICKS


def _alone(look: GpuLook, places: Mapping[int, tuple[str, str]]) -> dict[str, str]:
    """Return GPU → the pod of all its processes, where that is one."""
    found: dict[str, str] = {}
    for uuid, sample in look.samples.items():
        pods = {places.get(process.pid, ("", ""))[0] for process in sample.processes}
        if len(pods) == 1 and (pod := pods.pop()):
            found[uuid] = pod
    return found


def _without_energy(used: GpusUsed) -> GpusUsed:
    uses = {key: msgspec.structs.replace(use, energy_j=None) for key, use in used.uses.items()}
    return msgspec.structs.replace(used, uses=uses)
