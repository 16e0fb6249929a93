"""What isolates the containers of a node beside the interposer: the driver's limits, and MPS.

Which tiers the node offers is asked again and again, for a GPU may be lost and an MPS daemon die.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import msgspec

from alnair.node.mps import MpsDaemon
from alnair.node.own_thread import in_own_thread
from alnair.node.vgpu.interposer_path import interposer
from alnair.node.vgpu.server import VgpuServer
from alnair.sharing.tiers import NodeFacts, Offer, Tier, offer

#: Seconds between looks.
EVERY: Final = 5.0

_log = logging.getLogger(__name__)


class DriverState(Protocol):
    """What is to be known of NVML: see `alnair.node.gpu_driver.GpuDriver`."""

    opened: int
    problem: str


class Isolation:
    """Keeps what a node offers.

    Args:
        server: The containers.
        mps: The daemon; None: the operator did not choose MPS.
        driver: NVML; None: it is open, and stays so.
        tell: Told of each change, again and again until it does not answer why it could not hear.

    Attributes:
        offer: What the node offers, as of the last look; at first nothing.
        mps: As given; may be given later, once the GPUs are known.
        mps_missing: Why there is none.
    """

    def __init__(
        self,
        server: VgpuServer,
        mps: MpsDaemon | None = None,
        driver: DriverState | None = None,
        tell: Callable[[Offer], Awaitable[str]] | None = None,
    ) -> None:
        self.offer: Offer = offer(NodeFacts(driver="", interposer="not known yet", accounting="-"))
        self.mps = mps
        self._server = server
        self.mps_missing = "not chosen"
        self._driver = driver
        self._tell = tell
        self._told: Offer | None = None

    async def run(self) -> None:
        """Look every few seconds, until cancelled; the MPS daemon is cared for meanwhile.

        Raises:
            OSError: The MPS daemon's folder cannot be written.
        """
        async with asyncio.TaskGroup() as group:
            caring: asyncio.Task[None] | None = None
            limiting: asyncio.Task[None] | None = None
            opened = 0
            while True:
                if caring is None and self.mps:
                    caring = group.create_task(self.mps.run())
                await self.look()
                if self._driver and self._driver.opened != opened:
                    opened = self._driver.opened
                    if limiting is not None:  # a driver that was reloaded has forgotten the limits
                        limiting.cancel()
                        limiting = None
                if limiting is None and self.offer.memory is Tier.DRIVER:
                    from alnair.node.vgpu.driver_limits import DriverLimits

                    limiting = group.create_task(DriverLimits(self._server).run())
                await asyncio.sleep(EVERY)

    async def look(self) -> None:
        """Look once, and tell what has changed."""
        found = offer(await in_own_thread(self._facts))
        if found != self.offer:
            lacks = [f"{one.tier.value}: {one.missing}" for one in found.standings if one.missing]
            _log.info("isolation %s; not %s", found.label, "; not ".join(lacks) or "less")
            self.offer = found
        if self._tell and self._told != found:
            if problem := await self._tell(found):
                _log.warning("the node's label: %s", problem)
            else:
                self._told = found

    def _facts(self) -> NodeFacts:
        mps = self.mps.health.missing if self.mps else self.mps_missing
        problem = self._driver.problem if self._driver else ""
        library = "" if interposer() else "libalnair_vgpu.so is not installed"
        unknown = NodeFacts(driver="", interposer=library, mps=mps, accounting=problem)
        if problem:
            return unknown
        import pynvml

        from alnair.node.memory_limits import observe

        mounts = self._server.proc.mounts
        # With both versions mounted, runtimes put containers into groups of version 1.
        cgroups = mounts.folder("/") if set(mounts.at) == {""} else None
        try:
            return observe(interposer=library, mps=mps, cgroups=cgroups)
        except pynvml.NVMLError as error:
            return msgspec.structs.replace(unknown, accounting=f"NVML: {error}")
