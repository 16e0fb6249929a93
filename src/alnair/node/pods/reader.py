"""One reading of all containers and pods of the node."""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import msgspec

from alnair.node.cgroups import Proc
from alnair.node.pods.cgroup_files import SELDOM, V1, V2, Numbers, Reading
from alnair.node.pods.kept_files import KeptFiles, room
from alnair.node.pods.network import PodNetworks
from alnair.node.pods.pod_groups import PodGroup, PodGroups, hierarchy
from alnair.profiler.samples import CgroupSample, ContainerKey, NetworkSample

#: Readings between looks for folders of a kubelet that was not there.
_ANEW: Final = 30
#: Readings between those of files that change seldom.
RARELY: Final = 5
#: What a container without a limit of processor time says of throttling: nothing.
_THROTTLING: Final = "cpu.stat"


class PodsReading(msgspec.Struct, frozen=True):
    """What was read.

    Attributes:
        at: When it began, seconds, monotonic.
        containers: By whose they are; the sandboxes' are among them.
        networks: By pod uid.
        pods: Uids of the pods that have a group.
        left_out: Containers that were not read, as there are too many.
    """

    at: float
    containers: dict[ContainerKey, CgroupSample]
    networks: dict[str, NetworkSample]
    pods: frozenset[str]
    left_out: int = 0


class _Files(msgspec.Struct):
    """The files of one container.

    Attributes:
        group: Whose they are.
        often: (path, what takes its text).
        seldom: Likewise, of those that are read now and then.
        known: What the latter said.
        turn: Readings until then.
    """

    group: PodGroup
    often: list[tuple[str, Reading]]
    seldom: list[tuple[str, Reading]]
    known: Numbers
    turn: int = 0


class PodsReader:
    """Reads; in one thread at a time.

    Args:
        proc: This machine's.
        clock: Seconds, monotonic.
        most: Descriptors that it may keep; None: what the process's limit allows.
    """

    def __init__(
        self,
        proc: Proc,
        clock: Callable[[], float] = time.monotonic,
        most: int | None = None,
    ) -> None:
        self._proc = proc
        self._clock = clock
        self._controller = hierarchy(proc.mounts)
        self._groups = PodGroups(proc, self._controller)
        self._files = KeptFiles(room() if most is None else most)
        self._networks = PodNetworks(proc, self._files)
        self._known: dict[ContainerKey, _Files] = {}
        self._count = 0
        #: Hierarchies of v1 that count nothing: the kernel counts disks only where it limits them.
        self._silent = {name for name in ("blkio",) if self._counts_nothing(name)}

    def close(self) -> None:
        """Let go of all files."""
        self._files.close_all()

    def read(self) -> PodsReading:
        """Read everything once."""
        at = self._clock()
        found = self._groups.look(anew=self._count % _ANEW == 0)
        self._count += 1
        for key in [key for key in self._known if key not in found.containers]:
            self._forget(key)
        containers: dict[ContainerKey, CgroupSample] = {}
        by_pod: dict[str, dict[str, PodGroup]] = {}
        for key, group in found.containers.items():
            known = self._known.get(key)
            if known is None or known.group.inode != group.inode:
                self._forget(key)
                known = self._known[key] = self._find(group)
            if (sample := self._sample(known)) is not None:
                containers[key] = sample
            by_pod.setdefault(key.pod, {})[group.folder] = group
        networks: dict[str, NetworkSample] = {}
        for uid, groups in by_pod.items():
            pids = self._pids(groups)
            sample_ = self._networks.read(uid, frozenset(groups), pids, self._clock())
            if sample_ is not None:
                networks[uid] = sample_
        self._networks.keep(by_pod)
        return PodsReading(at, containers, networks, found.pods, found.left_out)

    def _sample(self, files: _Files) -> CgroupSample | None:
        at = self._clock()
        numbers: Numbers = {}
        self._take(files.often, numbers)
        if not numbers:
            self._groups.changed(files.group)
            return None  # it went meanwhile
        if files.turn == 0:
            files.turn, files.known = RARELY, {}
            self._take(files.seldom, files.known)
        files.turn -= 1
        numbers |= files.known
        pressure = {
            name: numbers.pop(f"pressure.{name}")
            for name in ("cpu", "memory", "io")
            if f"pressure.{name}" in numbers
        }
        numbers.pop("used", None)
        return CgroupSample(at, pressure=pressure, **numbers)

    def _take(self, files: list[tuple[str, Reading]], numbers: Numbers) -> None:
        for path, take in files:
            text = self._files.read(path)
            if text is not None:
                take(text, numbers)

    def _find(self, group: PodGroup) -> _Files:
        """Find the files of a container that there are, in all hierarchies."""
        often: list[tuple[str, Reading]] = []
        seldom: list[tuple[str, Reading]] = []
        for path, name, take in self._paths(group):
            numbers: Numbers = {}
            self._take([(path, take)], numbers)
            # In v1 that file has nothing else: whether there is a limit now is looked at seldom.
            is_idle = name == _THROTTLING and self._controller != "" and not numbers
            (seldom if name in SELDOM or is_idle else often).append((path, take))
        found = _Files(group, often, seldom, {})
        self._take(seldom, found.known)
        # Not those of all containers at the same time.
        found.turn = len(self._known) % RARELY + 1
        return found

    def _paths(self, group: PodGroup) -> Iterator[tuple[str, str, Reading]]:
        hierarchies: Mapping[str, Mapping[str, Reading]] = V1 if self._controller else V2
        roots = self._roots(group)
        for controller, files in hierarchies.items():
            if controller in self._silent:
                continue
            folder = self._proc.mounts.folder(roots.get(controller, group.path), controller)
            for name, take in files.items():
                path = f"{folder}/{name}"
                if folder is not None and self._files.read(path) is not None:
                    yield path, name, take

    def _counts_nothing(self, controller: str) -> bool:
        """Whether not even all of the machine has read or written anything."""
        folder = self._proc.mounts.folder("/", controller)
        texts = [self._files.read(f"{folder}/{name}") for name in V1[controller]]
        return any(text is not None and b" Read " not in text for text in texts)

    def _roots(self, group: PodGroup) -> dict[str, str]:
        """Where the container is in each hierarchy, by the kernel's word on one of its processes.

        Without a process, and of v2, it is the same path.
        """
        if not self._controller:
            return {}
        for pid in self._pids({group.folder: group}):
            found = self._proc.places(pid)
            if found:
                return {
                    one.controller: one.root
                    for one in found
                    if one.container == group.key.container
                }
        return {}

    def _pids(self, groups: Mapping[str, PodGroup]) -> Iterator[int]:
        for group in groups.values():
            found = self._proc.processes(group.path, self._controller or "")
            if found is not None:
                yield from found.pids[:1]

    def _forget(self, key: ContainerKey) -> None:
        known = self._known.pop(key, None)
        for path, _ in (*known.often, *known.seldom) if known is not None else ():
            self._files.close(path)
