"""Keeps plugins registered: whenever the kubelet comes, or has forgotten them.

A kubelet that starts empties the folder and listens on a new socket. So the folder is looked at
five times a second, which costs less than a watch that would have to be made anew with the folder.

A kubelet that starts admits the pods that it finds at the next look of its main loop, 0 to 5 s
after it listens (kubelet.go, syncLoop): those whose containers do not run are refused for good if
their resource is not registered by then. So while it is away it is looked for more often.
"""

import asyncio
import logging
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import grpc
import msgspec

from alnair.node.kubelet.checkpoint import CLOCK_TICK_NS
from alnair.node.kubelet.other_plugin import OtherPlugin
from alnair.node.kubelet.plugin_server import PluginServer, identity

#: Seconds between looks.
EVERY: Final = 0.2
#: The same while the kubelet is away, for so many seconds: it is being restarted.
SOON: Final = 0.01
_SOON_FOR: Final = 300.0
#: Seconds after which a kubelet that was told of a plugin and does not watch it is told again.
_UNWATCHED: Final = 5.0
#: Most seconds between tries.
_LAST_WAIT: Final = 1.0

#: Seconds in which one look comes at once, as the kubelet hung up; the others come in their turn.
_HURRY_EVERY: Final = 2.0

_log = logging.getLogger(__name__)


class _Registered(msgspec.Struct, frozen=True):
    """When a plugin was registered (loop time), and its streams until then."""

    since: float
    watches: int


class Registrations:
    """Serves and registers while it runs.

    Args:
        folder: Of device plugins.
        servers: The plugins.
        others: Resources that are left to another plugin where there is one.

    Attributes:
        looked: Set once all that could be registered at the start is.
    """

    def __init__(
        self,
        folder: Path,
        servers: Sequence[PluginServer],
        others: Mapping[str, OtherPlugin] | None = None,
    ) -> None:
        self.looked = asyncio.Event()
        self._folder = folder
        self._servers = servers
        self._others = {} if others is None else others
        #: Resources that are another plugin's until this agent ends.
        self._left: set[str] = set()
        self._warned: set[str] = set()
        self._said = ""
        #: By index, with the kubelet of this socket.
        self._registered: dict[int, _Registered] = {}
        self._kubelet = (0, 0)
        #: The folder when all was well: sockets come and go by its changes.
        self._well = (-1, -1)
        self._wait = EVERY
        self._away_since: float | None = None
        self._hung_up = asyncio.Event()
        #: When the kubelet hung up last (loop time).
        self._hurried = -_HURRY_EVERY

    async def run(self) -> None:
        """Look and register, until cancelled; then serve no more."""
        try:
            while True:
                self._hung_up.clear()
                await self._look()
                self.looked.set()
                await self._pause()
        finally:
            await asyncio.gather(*(server.stop() for server in self._servers))

    async def _pause(self) -> None:
        """Wait for the next look; where the kubelet hangs up, that is now: it refuses pods."""
        try:
            async with asyncio.timeout(self._wait):
                await self._hung_up.wait()
        except TimeoutError:
            return
        now = asyncio.get_running_loop().time()
        if now - self._hurried < _HURRY_EVERY:
            await asyncio.sleep(self._wait)  # perhaps another plugin insists: it is not fought
        self._hurried = now

    async def _look(self) -> None:
        folder = identity(self._folder)
        if folder == self._well and all(
            server.watched or server.plugin.resource in self._left for server in self._servers
        ):
            return
        now = asyncio.get_running_loop().time()
        path = self._folder / "kubelet.sock"
        kubelet = identity(path)
        if kubelet != self._kubelet:
            self._kubelet = kubelet
            self._registered.clear()
        try:
            ours = [i for i, server in enumerate(self._servers) if not await self._is_left(server)]
        except OSError as error:
            self._fail(f"the plugins cannot be served in {self._folder}: {error}")
            return
        wanted = [index for index in ours if not self._is_well(index, now)]
        if not wanted and kubelet != (0, 0):
            self._wait, self._said, self._away_since = EVERY, "", None
            # Two changes within a tick of the kernel's clock have one time.
            if time.time_ns() - folder[1] > CLOCK_TICK_NS:
                self._well = folder
        elif not _is_listening(path):
            self._wait_for_kubelet(now)
        else:
            await self._register(wanted)

    def _is_well(self, index: int, now: float) -> bool:
        server, registered = self._servers[index], self._registered.get(index)
        if registered is None or not server.is_there:
            return False
        if server.watched:
            return True
        # It calls back a moment later; once it did and hung up, it is another, or was ended.
        return server.watches == registered.watches and now - registered.since < _UNWATCHED

    def _wait_for_kubelet(self, now: float) -> None:
        self._say(f"there is no kubelet at {self._folder}: it is waited for")
        if self._away_since is None:
            self._away_since = now
        self._wait = SOON if now - self._away_since < _SOON_FOR else EVERY

    async def _register(self, wanted: Sequence[int]) -> None:
        try:
            # At once: a kubelet that starts may admit pods in the next moment.
            results = await asyncio.gather(*map(self._register_one, wanted), return_exceptions=True)
            for error in results:
                if error is not None:
                    raise error
        except grpc.aio.AioRpcError as error:
            self._fail(f"the kubelet does not take the plugins: {error.details()}")
        except OSError as error:
            self._fail(f"the plugins cannot be served in {self._folder}: {error}")
        else:
            self._wait, self._said, self._away_since = EVERY, "", None

    async def _register_one(self, index: int) -> None:
        server = self._servers[index]
        if not server.is_there:
            await server.serve()
        if other := self._others.get(server.plugin.resource):
            other.note_ours()
        server.on_hang_up = self._hung_up.set
        watches = server.watches
        await server.register()
        since = asyncio.get_running_loop().time()
        self._registered[index] = _Registered(since, watches)

    async def _is_left(self, server: PluginServer) -> bool:
        """Return whether another plugin serves it; one that comes after ours is only told of."""
        resource = server.plugin.resource
        other = self._others.get(resource)
        if other is None or resource in self._left:
            return resource in self._left
        is_ours = server.is_there and bool(server.watched)
        if is_ours and (resource in self._warned or not other.may_have_come()):
            return False
        if not (why := other.seen()):
            return False
        if is_ours:
            self._warned.add(resource)
            _log.warning(
                "another plugin has come for %s, which this agent serves: %s. Say which of them "
                "shall (--whole-gpus), and restart the other plugin after this agent",
                resource,
                why,
            )
            return False
        _log.info("%s is left to another plugin: %s", resource, why)
        self._left.add(resource)
        await server.stop()
        return True

    def _fail(self, text: str) -> None:
        self._wait = min(max(self._wait, EVERY / 2) * 2, _LAST_WAIT)
        self._say(text)

    def _say(self, text: str) -> None:
        if text != self._said:  # once, and not at every try
            self._said = text
            _log.warning("%s", text)


def _is_listening(path: Path) -> bool:
    """Whether somebody serves a socket: its file outlives a kubelet that was killed."""
    with socket.socket(socket.AF_UNIX) as tried:
        tried.setblocking(False)
        try:
            tried.connect(str(path))
        except BlockingIOError:
            return True  # too many knock at once
        except OSError:
            return False
    return True
