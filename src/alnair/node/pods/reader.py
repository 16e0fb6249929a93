"""One reading of all containers and pods of the node."""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import msgspec

from alnair.node.cgroups import Proc
from alnair.node.pods.cgroup_files import SELDOM, V1, V2, Numbers, Reading, working_set
from alnair.node.pods.kept_files import KeptFiles, room
from alnair.node.pods.network import PodNetworks
from alnair.node.pods.pod_groups import Groups, PodGroup, PodGroups, hierarchy
from alnair.node.pods.process_io import ProcessIo, used_disks
from alnair.profiler.samples import CgroupSample, ContainerKey, NetworkSample

#: Readings between looks for folders of a kubelet that was not there; at the start it may come
#: later than we do, and beside another one's.
_ANEW: Final = 30
_ANEW_AT_FIRST: Final = 3
#: Readings between those of files that change seldom; so many for each in which processor time was
#: used, so that of who works they are read more often.
RARELY: Final = 15
_WORKS: Final = 3
#: What a container without a limit of processor time says of throttling: nothing.
_THROTTLING: Final = "cpu.stat"
_MEMORY: Final = frozenset({"memory.current", "memory.usage_in_bytes"})
#: What of the memory is inactive: the longest file, and the one that costs the kernel most.
_INACTIVE: Final = "memory.stat"
#: Part by which memory changes before that is asked for, as it is now and then in any case.
_PART: Final = 0.01
#: What tells of disks; without it, the processes do.
_DISKS: Final = frozenset({"io.stat", "blkio.throttle.io_service_bytes_recursive"})


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


class _File(msgspec.Struct):
    """A file: what takes its text, and the text that was taken last."""

    path: str
    take: Reading
    text: bytes | None = None


class _Files(msgspec.Struct):
    """The files of one container.

    Attributes:
        group: Whose they are.
        often: Those that are read each time.
        busy: Likewise, of those that are read when processor time was used: without it, memory
            does not grow, and nothing is read from disks or written to them.
        inactive: Likewise, of what tells how much memory is inactive.
        seldom: Likewise, of those that are read now and then.
        turn: Readings until then: at once, when it is new.
        then: And until the time after.
        used: Memory when it was asked how much of it is inactive.
        procs: The file with its processes, where these tell of disks; "": its group does.
        numbers: What all of them said last.
        sample: That as a sample; None: something has changed.
    """

    group: PodGroup
    often: list[_File]
    busy: list[_File]
    inactive: list[_File]
    seldom: list[_File]
    turn: int = 0
    then: int = RARELY
    used: int = -1
    procs: str = ""
    numbers: Numbers = {}
    sample: CgroupSample | None = None


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
        self._process_io = ProcessIo(proc, self._files)
        self._known: dict[ContainerKey, _Files] = {}
        #: What is read now, and of it by pod the folders, and with their groups.
        self._found: Groups | None = None
        self._by_pod: dict[str, tuple[frozenset[str], dict[str, PodGroup]]] = {}
        self._count = 0
        #: Hierarchies of v1 that count nothing: the kernel counts disks only where it limits them.
        self._silent = self._silent_ones()

    def close(self) -> None:
        """Let go of all files."""
        self._files.close_all()

    def read(self) -> PodsReading:
        """Read everything once."""
        at = self._clock()
        is_turn = self._count % (_ANEW if self._count > _ANEW else _ANEW_AT_FIRST) == 0
        if is_turn and self._silent and not self._silent_ones():
            # Somebody limits a disk now: so the groups tell of it, and of all containers.
            self._silent = set()
            for known in self._known.values():
                self._let_go(known)
            self._known = {}
        found = self._groups.look(anew=is_turn)
        self._count += 1
        if found is not self._found or len(self._known) != len(found.containers):
            self._take_over(found)
        containers: dict[ContainerKey, CgroupSample] = {}
        for key, known in self._known.items():
            if (sample := self._sample(known)) is not None:
                containers[key] = sample
        networks: dict[str, NetworkSample] = {}
        for uid, (members, groups) in self._by_pod.items():
            sample_ = self._networks.read(uid, members, self._pids(groups), self._clock())
            if sample_ is not None:
                networks[uid] = sample_
        return PodsReading(at, containers, networks, found.pods, found.left_out)

    def _take_over(self, found: Groups) -> None:
        """Read these groups from now on, and no others."""
        self._found = found
        before, self._known = self._known, {}
        for key in before.keys() - found.containers.keys():
            self._let_go(before[key])
        by_pod: dict[str, dict[str, PodGroup]] = {}
        for key, group in found.containers.items():
            known = before.get(key)
            if known is not None and known.group.inode != group.inode:
                self._let_go(known)
                known = None
            self._known[key] = known if known is not None else self._find(group)
            by_pod.setdefault(key.pod, {})[group.folder] = group
        self._by_pod = {uid: (frozenset(groups), groups) for uid, groups in by_pod.items()}
        self._networks.keep(by_pod)

    def _sample(self, files: _Files) -> CgroupSample | None:
        at, cpu_ns = self._clock(), files.numbers.get("cpu_ns", -1)
        is_turn = files.turn <= 0
        if not self._take(files.often, files):
            self._groups.changed(files.group)
            return None  # it went meanwhile
        numbers = files.numbers
        works = numbers.get("cpu_ns") != cpu_ns
        if is_turn or works:
            self._take(files.busy, files)
            used = numbers.get("used", 0)
            if is_turn or abs(used - files.used) > _PART * used:
                self._take(files.inactive, files)
                files.used = used
            found = self._process_io.read(files.procs) if files.procs else None
            if found is not None and found != (numbers.get("io_read"), numbers.get("io_write")):
                numbers["io_read"], numbers["io_write"] = found
                files.sample = None
        if is_turn:
            files.turn, files.then = files.then, RARELY
            self._take(files.seldom, files)
        files.turn -= _WORKS if works else 1
        if files.sample is None:
            files.sample = _made(at, numbers)
            return files.sample
        return msgspec.structs.replace(files.sample, at=at)

    def _take(self, some: list[_File], files: _Files) -> bool:
        """Read some files; what has changed is taken over. Returns whether any is there."""
        is_there = False
        for file in some:
            text = self._files.read(file.path)
            is_there = is_there or text is not None
            if text is not None and text != file.text:
                file.take(text, files.numbers)
                file.text, files.sample = text, None
        return is_there

    def _find(self, group: PodGroup) -> _Files:
        """Find the files of a container that there are, in all hierarchies."""
        found = _Files(group, [], [], [], [], numbers={})
        paths = list(self._paths(group))
        for path, name, take in paths:
            file, before = _File(path, take), len(found.numbers)
            self._take([file], found)
            # In v1 that file has nothing else: whether there is a limit now is looked at seldom.
            says_nothing = len(found.numbers) == before
            if name in SELDOM or (name == _THROTTLING and self._controller != "" and says_nothing):
                found.seldom.append(file)
            elif name == _INACTIVE:
                found.inactive.append(file)
            else:
                (found.busy if name in _MEMORY else found.often).append(file)
        if not any(name in _DISKS for _, name, _ in paths):
            found.procs = f"{group.folder}/cgroup.procs"
        # Not those of all containers at the same time.
        found.then = len(self._known) % RARELY + 1
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

    def _silent_ones(self) -> set[str]:
        return {name for name in ("blkio",) if self._counts_nothing(name)}

    def _counts_nothing(self, controller: str) -> bool:
        """Whether a disk of the machine that was used is missing in the figures of all groups."""
        folder = self._proc.mounts.folder("/", controller)
        texts = [self._files.read(f"{folder}/{name}") for name in V1[controller]]
        disks = used_disks(self._files.read(str(self._proc.path("diskstats"))) or b"")
        return any(
            b" Read " not in text or not all(b"\n%b Read " % disk in b"\n" + text for disk in disks)
            for text in texts
            if text is not None
        )

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

    def _let_go(self, known: _Files) -> None:
        if known.procs:
            self._process_io.forget(known.procs)
        for file in (*known.often, *known.busy, *known.inactive, *known.seldom):
            self._files.close(file.path)


def _made(at: float, numbers: Numbers) -> CgroupSample:
    """Return numbers as a sample."""
    found = dict(numbers)
    pressure = {
        name: found.pop(f"pressure.{name}")
        for name in ("cpu", "memory", "io")
        if f"pressure.{name}" in found
    }
    working_set(found)
    return CgroupSample(at, pressure=pressure, **found)
