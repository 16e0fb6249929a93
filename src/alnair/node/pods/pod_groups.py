"""Which pods and containers have control groups now: the folders below the kubelet's.

A folder is listed when the number of its folders has changed, which the kernel keeps as its links
(of a pod's folder every other time), and now and then, as one may have come for another. Its time
does not change, and a listener would need a watch for each pod.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from alnair.node.cgroups import Cgroup, Mounts, Proc
from alnair.profiler.samples import ContainerKey

#: Folders of a kubelet for its pods, by the drivers cgroupfs and systemd; kind has a prefix.
_ROOT: Final = re.compile(r"(?:[\w.-]+-)?kubepods(?:\.slice)?")
#: How deep they are looked for, and among how many folders.
_DEPTH: Final = 4
_MOST_FOLDERS: Final = 4096
#: Looks after which a folder is listed though it seems to be as it was.
_AGAIN: Final = 5
#: Pods and containers that are followed at most.
MOST_GROUPS: Final = 4096


class PodGroup(msgspec.Struct, frozen=True):
    """A container's control group.

    Attributes:
        key: Whose it is.
        path: As the kernel gives it.
        folder: Where it is mounted.
        inode: Of the folder; one that was made anew has another.
    """

    key: ContainerKey
    path: str
    folder: str
    inode: int


class Groups(msgspec.Struct, frozen=True):
    """What there is.

    Attributes:
        containers: By whose they are.
        pods: Uids of the pods with a group, also of those without containers.
        left_out: Containers beyond `MOST_GROUPS`.
    """

    containers: dict[ContainerKey, PodGroup]
    pods: frozenset[str]
    left_out: int = 0


def hierarchy(mounts: Mounts) -> str | None:
    """Return the hierarchy in which pods are looked for; None if none is mounted.

    On v1, that of memory: all runtimes use it. Where v1 and v2 are mounted, v1 has the figures.
    """
    return next((name for name in ("memory", "") if name in mounts.at), None)


class _Listing(msgspec.Struct):
    """What a folder had: its links, and (path, inode) of its folders; whether it is a pod's."""

    links: int
    folders: list[tuple[str, int]]
    turn: int
    is_pod: bool


class PodGroups:
    """Lists them.

    Args:
        proc: This machine's.
        controller: The hierarchy; None: none is mounted, so there are none.
    """

    def __init__(self, proc: Proc, controller: str | None) -> None:
        self._proc = proc
        self._controller = controller
        self._roots: list[str] = []
        self._places: dict[str, Cgroup] = {}
        self._listings: dict[str, _Listing] = {}
        self._count = 0
        #: What the last look found; None: all is to be looked through.
        self._found: Groups | None = None
        #: Whether a folder went while it was looked for.
        self._is_stale = False

    def changed(self, group: PodGroup) -> None:
        """List the folder that the group is in at the next look: it cannot be read any more."""
        self._listings.pop(str(Path(group.folder).parent), None)
        self._found = None

    def look(self, *, anew: bool = True) -> Groups:
        """List the groups; the same object as before if they are the same.

        Args:
            anew: Look for folders of a kubelet, too; done in any case while there is none.
        """
        if self._controller is None:
            return Groups({}, frozenset())
        point, root = self._proc.mounts.at[self._controller]
        if anew or not self._roots:
            roots = sorted(_kubelets(point))
            if roots != self._roots:
                self._roots, self._found = roots, None
        if self._found is not None and self._is_as_before():
            return self._found
        found: dict[ContainerKey, PodGroup] = {}
        pods: set[str] = set()
        left_out, seen = 0, dict[str, Cgroup]()
        for folder, inode in self._below_kubelets():
            path = _path(folder, point, root)
            place = seen[folder] = self._places.get(folder) or self._proc.place(
                path, self._controller
            )
            if place.pod:
                pods.add(place.pod)
            # What a container makes below its own group is its own affair.
            if place.pod and place.container and place.root == path:
                if len(found) == MOST_GROUPS:
                    left_out += 1
                    continue
                key = ContainerKey(place.pod, place.container)
                found[key] = PodGroup(key, path, folder, inode)
        self._places = seen
        groups = Groups(found, frozenset(pods), left_out)
        self._found = None if self._is_stale else groups
        return groups

    def _is_as_before(self) -> bool:
        """Whether no folder has got or lost one since the last look."""
        self._count += 1
        for folder, before in self._listings.items():
            listing = self._list(folder, is_pod=before.is_pod)
            if listing is before:
                continue
            if listing is None or listing.folders != before.folders:
                return False
            self._listings[folder] = listing
        return True

    def _below_kubelets(self) -> Iterator[tuple[str, int]]:
        """Folders three levels below a kubelet's: classes of pods, pods, containers."""
        waiting = [(root, 0) for root in self._roots]
        listings: dict[str, _Listing] = {}
        stale: set[str] = set()
        self._count += 1
        while waiting:
            folder, depth = waiting.pop()
            listing = self._list(folder, is_pod=depth == 2)
            if listing is None:
                stale.add(str(Path(folder).parent))  # another may have come in its place
                continue
            listings[folder] = listing
            for path, inode in listing.folders:
                yield path, inode
                place = self._places.get(path)
                if depth < 2 and not (place is not None and place.container):
                    waiting.append((path, depth + 1))
        self._listings = {path: one for path, one in listings.items() if path not in stale}
        self._is_stale = bool(stale)

    def _list(self, folder: str, *, is_pod: bool) -> _Listing | None:
        before = self._listings.get(folder)
        if is_pod and before is not None and before.turn % 2:
            before.turn -= 1
            return before
        try:
            links = os.stat(folder).st_nlink  # noqa: PTH116 (on a warm path)
        except OSError:
            return None  # it is gone
        # Storages that do not count folders say 1 of each.
        if before is None or before.links != links or links == 1 or before.turn <= 0:
            # Not all at the same time.
            turn = _AGAIN if before is not None else self._count % _AGAIN + 1
            return _Listing(links, _folders(folder), turn, is_pod)
        before.turn -= 1
        return before


def _kubelets(point: str) -> set[str]:
    """Folders of kubelets, and those with containers in the form `SLICE:cri-containerd:ID`."""
    found: set[str] = set()
    waiting, seen = [(point, 0)], 0
    while waiting and seen < _MOST_FOLDERS:
        folder, depth = waiting.pop(0)
        seen += 1
        for path, _ in _folders(folder):
            name = Path(path).name
            if _ROOT.fullmatch(name):
                found.add(path)
            elif ":cri-containerd:" in name:
                found.add(folder)
            elif depth + 1 < _DEPTH:
                waiting.append((path, depth + 1))
    return found


def _folders(folder: str) -> list[tuple[str, int]]:
    try:
        with os.scandir(folder) as entries:
            return [(e.path, e.inode()) for e in entries if e.is_dir(follow_symlinks=False)]
    except OSError:
        return []  # it is gone


def _path(folder: str, point: str, root: str) -> str:
    """Return a group's path as the kernel gives it, from where it is mounted."""
    inside = folder[len(point) :]
    return inside if root == "/" else root.rstrip("/") + inside
