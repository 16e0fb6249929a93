"""Which container a process belongs to, by its control groups: the kernel's word, not its own.

The paths are those of runtimes in use: cgroup v1, v2, and both; systemd and cgroupfs drivers;
containerd, CRI-O, Docker (with cri-dockerd and without), Podman; a node that is itself a container.

A container may be allowed to make groups below its own, of any name: so the outermost match counts.
"""

import os
import re
from pathlib import Path
from typing import Final, Self

import msgspec

_UID = r"[0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12}|[0-9a-f]{32}"
_ID = r"[0-9a-f]{64}"
#: kubepods/burstable/podUID (cgroupfs) or …/kubepods-burstable-podUID.slice (systemd). A static
#: pod's uid is a hash without dashes.
_POD: Final = re.compile(rf"(?:pod|[\w.-]*kubepods(?:-\w+)?-pod)({_UID})(?:\.slice)?")
#: A bare id (cgroupfs), RUNTIME-ID.scope (systemd), or SLICE:RUNTIME:ID, which containerd makes
#: with cgroupfs under a kubelet with systemd. `crio-conmon-` is the monitor, not the container.
_CONTAINER: Final = re.compile(
    rf"(?:(?:cri-containerd|crio|docker|libpod|containerd)-)?({_ID})(?:\.scope)?"
    rf"|([\w.-]+):(?:cri-containerd|crio|docker):({_ID})"
)
#: Hierarchies of v1 that every runtime uses, the most telling first; "" is v2.
_PREFERRED: Final = ("", "devices", "memory", "pids", "cpu", "name=systemd")
_PROC: Final = Path("/proc")
#: Groups that are read below a container's at most, and processes: it may have made any number.
MOST_GROUPS: Final = 1024
MOST_PROCESSES: Final = 8192


class Cgroup(msgspec.Struct, frozen=True):
    """Where a process is.

    Attributes:
        path: Its group's path.
        root: The path of its container's group, or `path` where it is in no container.
        container: The runtime's id of the container, or "".
        pod: The pod's uid with dashes, as the API server writes it, or "".
        controller: Hierarchy of these paths: "" is v2.
    """

    path: str
    root: str
    container: str = ""
    pod: str = ""
    controller: str = ""

    def is_below(self, path: str) -> bool:
        """Tell whether the group is `path` or lies below it."""
        return self.path == path or self.path.startswith(path.rstrip("/") + "/")


def parse(text: str, below: str = "") -> Cgroup | None:
    """Read /proc/PID/cgroup; None if it has no line.

    Args:
        text: Of the file.
        below: Path in which the node lives, where the node is itself a container.
    """
    order = {name: rank for rank, name in enumerate(_PREFERRED)}

    def rank(one: Cgroup) -> tuple[bool, bool, int]:
        # On a machine with both, v2 may be there and empty: where it is "/", v1 knows more.
        return not one.container, one.path == "/", order.get(one.controller, len(order))

    return min(places(text, below), key=rank, default=None)


def places(text: str, below: str = "") -> list[Cgroup]:
    """Read /proc/PID/cgroup: where the process is in each hierarchy; see `parse`."""
    found: list[Cgroup] = []
    for line in text.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        # A process that ended in a removed group.
        path = path.removesuffix(" (deleted)")
        if path.startswith("/"):
            found += [place(path, one, below) for one in controllers.split(",")]
    return found


def place(path: str, controller: str = "", below: str = "") -> Cgroup:
    """Tell what a group's path says: whose it is.

    Args:
        path: As the kernel gives it.
        controller: Its hierarchy; "" is v2.
        below: Path in which the node lives, where the node is itself a container.
    """
    prefix = below.rstrip("/") if below and path.startswith(below.rstrip("/") + "/") else ""
    walked, pod = prefix, ""
    for part in path[len(prefix) :].split("/")[1:]:
        walked += f"/{part}"
        if match := _CONTAINER.fullmatch(part):
            if match[2] and (slice_ := _POD.fullmatch(match[2])):
                pod = slice_[1]
            uid = _uid(pod) if pod else ""
            return Cgroup(path, walked, match[1] or match[3], uid, controller)
        if not pod and (match := _POD.fullmatch(part)):
            pod = match[1]
    return Cgroup(path, path, "", _uid(pod) if pod else "", controller)


def _uid(text: str) -> str:
    return text.replace("_", "-")


def ns_pid(status: str) -> int:
    """Read from /proc/PID/status what the process itself calls its pid; 0 if it is not said."""
    match = re.search(r"^NSpid:\s+(.*)$", status, re.MULTILINE)
    return int(match[1].split()[-1]) if match else 0


def started(stat: str) -> int:
    """Read from /proc/PID/stat the start, in clock ticks since boot; 0 if it is not said."""
    # The command, in parentheses, may contain anything, parentheses and spaces too.
    fields = stat.rpartition(")")[2].split()
    return int(fields[19]) if len(fields) > 19 and fields[19].isdecimal() else 0


class Mounts(msgspec.Struct, frozen=True):
    """Where hierarchies are mounted: controller ("" is v2) → (mount point, root of the mount)."""

    at: dict[str, tuple[str, str]]

    @classmethod
    def parse(cls, mountinfo: str) -> Self:
        """Read /proc/self/mountinfo."""
        at: dict[str, tuple[str, str]] = {}
        for line in mountinfo.splitlines():
            before, _, after = line.partition(" - ")
            fields, kind = before.split(), after.split()
            if len(fields) < 5 or len(kind) < 3 or kind[0] not in {"cgroup", "cgroup2"}:
                continue
            names = [""] if kind[0] == "cgroup2" else kind[2].split(",")
            for name in names:
                at.setdefault(name, (fields[4], fields[3]))
        return cls(at)

    def folder(self, path: str, controller: str = "") -> Path | None:
        """Return the folder of a group; None if its hierarchy is not mounted here."""
        if controller not in self.at:
            return None
        point, root = self.at[controller]
        inside = path.removeprefix(root) if root != "/" else path
        return Path(point) / inside.lstrip("/")


class Processes(msgspec.Struct, frozen=True):
    """The processes of a control group, by their pids here.

    Attributes:
        pids: Ascending.
        is_complete: Whether these are all; of a group with too many, only some are read.
    """

    pids: list[int]
    is_complete: bool


class Proc:
    """`/proc` and the cgroup mounts of this machine.

    Args:
        folder: Another folder, for tests.
    """

    def __init__(self, folder: Path = _PROC) -> None:
        self._folder = folder
        self.mounts = Mounts.parse(self._read("self/mountinfo"))
        init = parse(self._read("1/cgroup"))
        #: The container in which the node itself lives, if it does.
        self._below = init.root if init is not None and init.container else ""

    def _read(self, name: str) -> str:
        try:
            with open(f"{self._folder}/{name}", "rb") as file:  # noqa: PTH123 (on a warm path)
                return file.read().decode(errors="replace")
        except OSError:
            return ""

    def path(self, name: str) -> Path:
        """Return the path of one of its files, such as `17/net/dev`."""
        return self._folder / name

    def cgroup(self, pid: int) -> Cgroup | None:
        """Where a process is; None if it is gone."""
        return parse(self._read(f"{pid}/cgroup"), self._below)

    def places(self, pid: int) -> list[Cgroup]:
        """Where a process is in each hierarchy; empty if it is gone."""
        return places(self._read(f"{pid}/cgroup"), self._below)

    def place(self, path: str, controller: str = "") -> Cgroup:
        """Whose a group is, by its path."""
        return place(path, controller, self._below)

    def pods(self) -> set[str]:
        """The uids of all pods that have processes."""
        pids = (int(name) for name in os.listdir(self._folder) if name.isdecimal())  # noqa: PTH208
        return {place.pod for pid in pids if (place := self.cgroup(pid)) is not None} - {""}

    def ns_pid(self, pid: int) -> int:
        """Return what the process itself calls its pid; 0 if it is gone."""
        return ns_pid(self._read(f"{pid}/status"))

    def started(self, pid: int) -> int:
        """When a process started, in clock ticks since boot; 0 if it is gone."""
        return started(self._read(f"{pid}/stat"))

    def watch(self, pid: int) -> int:
        """Return a descriptor that becomes readable when a process ends.

        -1 if there is none: it is gone, these are not this machine's files, or there is no room.
        """
        if self._folder != _PROC:
            return -1
        try:
            return os.pidfd_open(pid)
        except OSError:
            return -1

    def processes(self, path: str, controller: str = "") -> Processes | None:
        """The processes of a group and of all groups below; None if it is not there any more."""
        folder = self.mounts.folder(path, controller)
        if folder is None or not folder.is_dir():
            return None
        pids: set[int] = set()
        waiting, seen = [str(folder)], 0
        while waiting:
            if seen == MOST_GROUPS or len(pids) > MOST_PROCESSES:
                return Processes(sorted(pids), is_complete=False)
            group = waiting.pop()
            seen += 1
            try:
                with open(f"{group}/cgroup.procs") as file:  # noqa: PTH123 (on a warm path)
                    pids.update(int(line) for line in file)
                with os.scandir(group) as entries:
                    waiting += [e.path for e in entries if e.is_dir(follow_symlinks=False)]
            except OSError:
                continue  # it is gone, or has threads only
        return Processes(sorted(pids), is_complete=True)
