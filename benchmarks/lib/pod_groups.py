"""Pods of a made-up node: real control groups, with a process in each pod that is hardly busy."""

import ctypes
import os
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from alnair.local.real_node import cgroups
from lib.left_behind import dies_with_us, remove_groups

_NEW_NETWORK = 0x40000000


class Names(msgspec.Struct, frozen=True):
    """What the API server says of a pod."""

    uid: str
    name: str
    containers: dict[str, str]
    namespace: str = "team"
    is_ended: bool = False
    owner: tuple[str, str] = ("Job", "job")


@contextmanager
def pods(uids: Iterable[str], containers: int) -> Iterator[dict[str, Names]]:
    """Make pods' groups, with a process each in a network of its own; yields them by uid."""
    remove_groups()  # of those that were killed
    root = f"alnair-bench-{os.getpid()}"
    cgroups.make(root)
    names: dict[str, Names] = {}
    children: list[int] = []
    try:
        for number, uid in enumerate(uids):
            ids = {f"{number * containers + n:064x}": f"c{n}" for n in range(containers)}
            names[uid] = Names(uid, f"pod-{number}", ids)
            for one in ids:
                folders = make(root, f"kubepods/pod{uid}/{one}")
            children.append(child(folders))
        yield names
    finally:
        for pid in children:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        cgroups.remove(root)


def make(root: str, path: str) -> list[Path]:
    found = []
    for hierarchy in cgroups.hierarchies():
        folder = hierarchy / root
        for part in path.split("/"):
            folder /= part
            if folder.exists():
                continue
            folder.mkdir()
            for limit in ("cpuset.cpus", "cpuset.mems"):
                file = folder / limit
                if hierarchy != cgroups.ROOT and file.exists() and not file.read_text().strip():
                    file.write_text((folder.parent / limit).read_text())
        found.append(folder)
    return found


def child(folders: list[Path]) -> int:
    """A process in the groups, with a network of its own, that wakes twice a second."""
    read, written = os.pipe()
    if (pid := os.fork()) == 0:
        dies_with_us()
        for folder in folders:
            (folder / "cgroup.procs").write_text(str(os.getpid()))
        ctypes.CDLL(None).unshare(_NEW_NETWORK)
        os.write(written, b"x")
        while True:
            time.sleep(0.5)
    os.read(read, 1)
    os.close(read)
    os.close(written)
    return pid
