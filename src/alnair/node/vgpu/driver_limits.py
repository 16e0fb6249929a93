"""Tier A of the vGPU server: where the driver can limit memory, it is told every container's limit.

The interposer's limit stays in force beside it: this one also stops programs that bypass it. It is
set once a container's control group is known and there, again when the container's memory changes,
and taken away with the container. The driver keeps limits over a restart of the agent, and setting
one twice is the same as once.
"""

import asyncio
import logging
from pathlib import Path
from typing import Final

import msgspec
import pynvml

from alnair.node import memory_limits
from alnair.node.vgpu.containers.container import VgpuContainer
from alnair.node.vgpu.server import VgpuServer

#: Seconds between looks: a container shall be limited before its first allocation.
EVERY: Final = 0.2
#: Looks that a limit which the driver refused is left alone.
PATIENCE: Final = 25

_log = logging.getLogger(__name__)

_Key = tuple[str, str]


class _Wish(msgspec.Struct, frozen=True):
    cgroup: Path
    limit_bytes: int


class DriverLimits:
    """Keeps the driver's limits as the server's containers want them; NVML must be initialised.

    Args:
        server: The containers.

    Attributes:
        refused: Why there is no limit, by (container, GPU).
    """

    def __init__(self, server: VgpuServer) -> None:
        self._server = server
        self._set: dict[_Key, _Wish] = {}
        self._rests: dict[_Key, int] = {}
        self.refused: dict[_Key, str] = {}

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(EVERY)

    async def look(self) -> None:
        """Set what is missing, take away what is left over. A driver that hangs holds up this."""
        wishes = {
            (container.assignment.name, share.uuid): _Wish(cgroup, self._limit(container, row))
            for container in self._server.containers.values()
            if (cgroup := self._cgroup(container)) is not None
            for row, share in enumerate(container.assignment.shares)
            if share.memory_mib
        }
        for key, wish in wishes.items():
            if self._set.get(key) == wish or self._is_resting(key):
                continue
            why = await asyncio.to_thread(_limit, key[1], wish)
            self._note(key, wish, why)
        for key in self._set.keys() - wishes.keys():
            wish = self._set.pop(key)
            if wish.cgroup.is_dir():  # a limit goes with its group
                await asyncio.to_thread(_unlimit, key[1], wish)
        for key in self.refused.keys() - wishes.keys():
            del self.refused[key]
            self._rests.pop(key, None)

    def _limit(self, container: VgpuContainer, row: int) -> int:
        """Bytes of a slice, with what is lent, or is to be as soon as the driver allows for it."""
        share = container.assignment.shares[row]
        key = container.assignment.name, share.uuid
        # Of a server that came anew nobody has asked yet: what was lent is in the page.
        return (share.memory_mib << 20) + self._server.loans.wanted.get(key, container.loan(row))

    def _cgroup(self, container: VgpuContainer) -> Path | None:
        """The folder of a container's group, where it is known, there, and of version 2."""
        group = container.group
        path = group.path if group else container.assignment.who.cgroup
        if not path or (group and group.controller):
            return None
        folder = self._server.proc.mounts.folder(path)
        return folder if folder is not None and folder.is_dir() else None

    def _is_resting(self, key: _Key) -> bool:
        self._rests[key] = self._rests.get(key, 1) - 1
        return self._rests[key] > 0

    def _note(self, key: _Key, wish: _Wish, why: str) -> None:
        name, uuid = key
        if why:
            if self.refused.get(key) != why:
                _log.warning("container %s, %s: no limit by the driver: %s", name, uuid, why)
            self.refused[key], self._rests[key] = why, PATIENCE
            self._set.pop(key, None)
        else:
            self.refused.pop(key, None)
            self._rests.pop(key, None)
            self._set[key] = wish
            self._note_loan(key, wish)
        self._tell(name, uuid, held=not why)

    def _note_loan(self, key: _Key, wish: _Wish) -> None:
        """Let the server lend what the driver allows for by now."""
        container = self._server.containers.get(key[0])
        shares = container.assignment.shares if container is not None else ()
        for share in shares:
            if share.uuid == key[1] and share.borrows:
                beyond = wish.limit_bytes - (share.memory_mib << 20)
                self._server.loans.at_driver[key] = max(0, beyond)

    def _tell(self, name: str, uuid: str, *, held: bool) -> None:
        """Let pages, status and metrics say which tier holds the memory."""
        container = self._server.containers.get(name)
        if container is None:
            return
        shares = tuple(
            msgspec.structs.replace(share, tier_a=held) if share.uuid == uuid else share
            for share in container.assignment.shares
        )
        if shares != container.assignment.shares:
            changed = msgspec.structs.replace(container.assignment, shares=shares)
            if said := self._server.change(changed):
                _log.warning("container %s: %s", name, said)


def _limit(uuid: str, wish: _Wish) -> str:
    try:
        device = pynvml.nvmlDeviceGetHandleByUUID(uuid)
    except pynvml.NVMLError as error:
        return f"NVML: {error}"
    return memory_limits.set_limit(device, wish.cgroup, limit=wish.limit_bytes)


def _unlimit(uuid: str, wish: _Wish) -> None:
    try:
        device = pynvml.nvmlDeviceGetHandleByUUID(uuid)
    except pynvml.NVMLError as error:
        _log.warning("%s: NVML: %s", uuid, error)
        return
    if why := memory_limits.clear(device, wish.cgroup):
        _log.warning("%s: the limit of %s stays: %s", uuid, wish.cgroup, why)
