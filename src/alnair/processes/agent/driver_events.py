"""Tells on the node's object, and in the log, that containers cannot be given the driver's files.

The agent serves nevertheless: a driver may be installed after it. But whoever starts it with the
wrong folders shall not have to wait for the first pod that fails.
"""

import asyncio
import logging
from typing import Final

from alnair.kube.client import Client
from alnair.kube.events import EventRecorder, ObjectReference
from alnair.model import names
from alnair.node.gpu_driver import GpuDriver
from alnair.node.kubelet import driver_files
from alnair.node.kubelet.driver_files import DriverError, DriverPlaces

#: Reason of the event.
MISSING: Final = "GpuDriverFilesMissing"
#: Seconds between looks.
EVERY: Final = 10.0

_log = logging.getLogger(__name__)


class DriverEvents:
    """Tells while it runs, from the moment at which the driver answers.

    Args:
        client: An open client.
        node: Name of this node.
        driver: NVML; without it no file is missed.
        places: Where the driver's files should be.
    """

    def __init__(self, client: Client, node: str, driver: GpuDriver, places: DriverPlaces) -> None:
        self._recorder = EventRecorder(client, names.AGENT, instance=node)
        # As the kubelet does it: the name for the uid, by which `kubectl describe node` finds them.
        self._node = ObjectReference("Node", node, uid=node)
        self._driver = driver
        self._places = places

    async def run(self) -> None:
        """Tell, until cancelled."""
        await self._driver.reopened(0)
        told = ""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._recorder.run())
            while True:
                problem = self._problem()
                if problem and problem != told:
                    said = f"no container with a GPU can start: {problem}"
                    _log.warning("%s", said)
                    self._recorder.record(self._node, MISSING, said, "Warning")
                elif told and not problem:
                    _log.info("the driver's files are there")
                told = problem
                await asyncio.sleep(EVERY)

    def _problem(self) -> str:
        try:
            driver_files.find(self._places)
        except DriverError as error:
            return str(error)
        return ""
