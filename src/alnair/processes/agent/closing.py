"""What an agent does last: it sees to it that nobody comes whom the kubelet would refuse.

Between the end of one agent and the beginning of the next the kubelet refuses pods for good. So the
node is closed first: its GPUs are told to take nothing new, and who was bound before may start. The
next agent opens it.
"""

import asyncio
import logging
from collections.abc import Callable, Collection
from typing import Final

import msgspec

from alnair.processes.agent.inventory import InventoryPublisher

#: What is told of each GPU.
REASON: Final = "the agent of the node is being replaced, or has ended"
#: Seconds to tell it, to an API server under load; with none there is nobody to tell.
TELL: Final = 3.0
#: Seconds in which a binding may be on its way: decided before the scheduler heard of it.
ON_THE_WAY: Final = 1.0
#: Most seconds for the kubelet to admit those who were bound: it would refuse them.
ADMIT: Final = 10.0
#: Most seconds for them to start. Who does not is tried again by the kubelet, some seconds later.
START: Final = 5.0
_LOOK: Final = 0.02

_log = logging.getLogger(__name__)


class Coming(msgspec.Struct, frozen=True):
    """Pods that are bound here and do not run yet, by their uids.

    Attributes:
        unadmitted: The kubelet has not given them devices.
        unstarted: Nothing of them was let start; these are among them.
    """

    unadmitted: Collection[str] = ()
    unstarted: Collection[str] = ()


async def close_node(publisher: InventoryPublisher, coming: Callable[[], Coming]) -> None:
    """Close the node, as far as that goes in some seconds.

    Args:
        publisher: Tells of the GPUs; it runs.
        coming: Says who is on the way, at each call anew.
    """
    try:
        async with asyncio.timeout(TELL):
            await publisher.close(REASON)
    except TimeoutError:
        _log.warning("the cluster could not be told that this agent ends")
        return
    loop = asyncio.get_running_loop()
    began = loop.time()
    settled = began + ON_THE_WAY
    while True:
        # The clock before the look: who came while this process was held up is seen, too.
        now = loop.time()
        found = coming()
        if (found.unadmitted and now - began < ADMIT) or (found.unstarted and now - began < START):
            settled = now + ON_THE_WAY
        if now >= settled:
            break
        await asyncio.sleep(_LOOK)
    _log.info(
        "the node is closed; %d pods are not admitted, %d not started",
        len(found.unadmitted),
        len(found.unstarted),
    )
