"""The sockets of the device plugin, served before anything else of the agent is there.

A kubelet refuses for good what it admits while nobody serves it. So an agent that starts tells at
once what the one before it told last, and gives out ids: they promise nothing. No container starts
before the plugin itself has come, which decides by what NVML says.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from alnair.model import names
from alnair.node.kubelet import cdi
from alnair.node.kubelet.other_plugin import OtherPlugin
from alnair.node.kubelet.plugin_server import (
    DevicePlugin,
    PluginDevice,
    PluginServer,
    StartRefusedError,
)
from alnair.node.kubelet.registration import Registrations
from alnair.node.kubelet.told_devices import ToldDevices
from alnair.processes.agent.settings import PluginSettings

#: Seconds for which a start is held for the plugin to come; the kubelet gives up at 30.
_HOLD: Final = 10.0


class StandIn:
    """Answers for the plugin of a resource until that has come, and passes all on to it then.

    Args:
        resource: Such as `nvidia.com/gpu`.
        told: What was told of it last.
    """

    def __init__(self, resource: str, told: Sequence[PluginDevice]) -> None:
        self.resource = resource
        self._told = told
        self._plugin: DevicePlugin | None = None
        self._is_known: Callable[[], bool] = lambda: False
        self._came = asyncio.Event()
        self._left = asyncio.Event()

    def come(self, plugin: DevicePlugin, is_known: Callable[[], bool]) -> None:
        """Let the plugin answer; whether its devices are known yet is asked each time."""
        self._plugin, self._is_known = plugin, is_known
        self._came.set()

    def leave(self) -> None:
        """Answer in place of the plugin again, which ends; starts are held for the next agent."""
        self._told = tuple(self.devices())
        self._plugin = None
        self._came.clear()
        # What the plugin has not let start by now, it must not: others take its place.
        self._left.set()

    def devices(self) -> Sequence[PluginDevice]:
        """Those of the plugin; those of before, if it does not know any.

        While it has not come these are as they were. One that has come and knows none has waited
        for the driver in vain: then none may be given.
        """
        if self._plugin is None:
            return self._told
        if self._is_known():
            return self._plugin.devices()
        return [msgspec.structs.replace(one, is_healthy=False) for one in self._told]

    def prefer(self, available: Sequence[str], must: Sequence[str], size: int) -> Sequence[str]:
        """Those that the plugin prefers, or any."""
        if self._plugin is not None:
            return self._plugin.prefer(available, must, size)
        return [*must, *(one for one in sorted(available) if one not in must)][:size]

    def allocate(self, ids: Sequence[str]) -> str:
        """Return a name that nobody had before; whose it is becomes known at the start."""
        del ids
        return cdi.fresh_device()

    async def start(self, ids: frozenset[str]) -> None:
        """Let the plugin decide, once it is there; raises StartRefusedError."""
        try:
            async with asyncio.timeout(_HOLD):
                await self._came.wait()
        except TimeoutError:
            text = "the node's agent is starting: the kubelet tries again"
            raise StartRefusedError(text) from None
        assert self._plugin is not None
        start = asyncio.ensure_future(self._plugin.start(ids))
        left = asyncio.ensure_future(self._left.wait())
        try:
            await asyncio.wait((start, left), return_when=asyncio.FIRST_COMPLETED)
            if not start.done():
                raise StartRefusedError("the node's agent is ending: the kubelet tries again")
            await start
        finally:
            start.cancel()
            left.cancel()


class EarlyPlugins:
    """Serves all resources, from its beginning to its end.

    Args:
        settings: How.
        folder: The agent's, whose lock is held.

    Attributes:
        servers: One for each resource.
    """

    def __init__(self, settings: PluginSettings, folder: Path) -> None:
        self._settings = settings
        self._told = ToldDevices(folder)
        self._plugins = settings.kubelet / "device-plugins"
        self._stand_ins: dict[str, StandIn] = {}
        #: The registrations see what is added to these.
        self.servers: list[PluginServer] = []
        self._others: dict[str, OtherPlugin] = {}
        told = (one for one in sorted(self._told.devices) if one.startswith(names.MIG_PREFIX))
        for resource in (names.GPU, names.VGPU, *told):
            self._serve(resource)
        self.registrations = Registrations(self._plugins, self.servers, self._others)
        self._task: asyncio.Task[None] | None = None

    def _serve(self, resource: str) -> None:
        """Serve a resource, if it is not served already and shall be."""
        if resource in self._stand_ins or (
            self._settings.whole == "never" and resource != names.VGPU
        ):
            return
        self._stand_ins[resource] = StandIn(resource, self._told.devices.get(resource, ()))
        self.servers.append(PluginServer(self._plugins, self._stand_ins[resource]))
        if self._settings.whole == "auto" and resource != names.VGPU:
            self._others[resource] = OtherPlugin(self._plugins, resource)

    @property
    def profiles(self) -> set[str]:
        """The resources of MIG devices that are served."""
        return {one for one in self._stand_ins if one.startswith(names.MIG_PREFIX)}

    @property
    def may_begin(self) -> bool:
        """Whether there is something to tell already."""
        return bool(self._told.devices)

    def begin(self) -> None:
        """Serve from now on, beside the caller."""
        if self._task is None:
            self._task = asyncio.create_task(self.registrations.run())

    async def registered(self, seconds: float) -> None:
        """Wait until the kubelet knows of all, if it is there; no longer than so."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.registrations.looked.wait()

    async def run(self) -> None:
        """Serve, from now on if not before; cancelled, only the plugins leave, until `end`."""
        self.begin()
        assert self._task is not None
        try:
            # Shielded: the kubelet is served to the very end, as it refuses pods in between.
            await asyncio.shield(self._task)
        finally:
            for one in self._stand_ins.values():
                one.leave()

    async def end(self) -> None:
        """Serve no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))

    def come(self, plugins: Sequence[DevicePlugin], is_known: Callable[[], bool]) -> None:
        """Let the plugins answer from now on, those of the resources that are served."""
        for plugin in plugins:
            self._serve(plugin.resource)
            if stand_in := self._stand_ins.get(plugin.resource):
                stand_in.come(plugin, is_known)

    def tell(self, *, is_known: bool) -> None:
        """Send the devices anew: they changed.

        Args:
            is_known: Whether they are what the driver says; then the next agent begins with them.
        """
        for server in self.servers:
            server.tell()
        if is_known:
            self._told.note({name: tuple(one.devices()) for name, one in self._stand_ins.items()})
