"""What the loop leaves if it is turned off while pods move: a plan under way, and its cordons."""

import asyncio
import logging
import time
from typing import Final

from alnair.kube.client import Client
from alnair.kube.errors import Forbidden, KubeError
from alnair.model import names
from alnair.model.rebalancing import RebalanceBounds
from alnair.processes.controller.rebalancing.cordons import Cordons
from alnair.processes.controller.rebalancing.memory_store import MemoryStore

_log = logging.getLogger(__name__)

_RETRY: Final = 5.0
#: What stands there in place of those of the loop: how long it remembers the plan.
_BOUNDS: Final = RebalanceBounds(every=600.0)


async def tidy(client: Client, retry: float = _RETRY) -> None:
    """Give up the plan under way, if there is one, and take off the cordons that are ours.

    Without a plan it is one read. Jobs and pods that are leaving their nodes go on by themselves.

    Args:
        client: An open client, of a controller that leads and does not rebalance.
        retry: Seconds until the next try if the API server does not answer.
    """
    while True:
        try:
            await _tidy(client)
            return
        except Forbidden as error:
            _log.warning(
                "rebalancing was turned off while pods moved, and its cordons stay: %s. Take them "
                "off: kubectl uncordon those nodes that have the annotation %s",
                error,
                names.REBALANCING,
            )
            return
        except KubeError as error:
            _log.warning("rebalancing is off, and what it left is not tidied up: %s", error)
        await asyncio.sleep(retry)


async def _tidy(client: Client) -> None:
    store = MemoryStore(client)
    await store.read()
    if (plan := store.memory.plan) is None:
        return
    # Its cordons first: if this ends here, the plan still says that there may be some.
    await Cordons(client).release_others(None)
    await store.write(store.memory.ended(_BOUNDS, time.time()))
    _log.info("rebalancing is off: the moves for %s are given up, no cordon stays", plan.name)
