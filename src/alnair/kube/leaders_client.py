"""Requests of a process of which one leads: what it writes, it writes while it leads."""

import asyncio
from collections.abc import Callable
from typing import Any

from alnair.kube.answered import answered
from alnair.kube.client import Client


class LeadersClient(Client):
    """A client whose writes end with the lease, and whose reads do not.

    A process that was held up, as by a full machine, may wake after another has taken its lease,
    and goes on where it was: the next thing it does would be a write. And a write that is under way
    when the lease is given back may be carried out when the next leader has begun.

    Args:
        client: An open one, whose connections are used; who made it closes it.
        leads: Whether we may write at this very moment, as `LeaderElector.is_leader`.
    """

    def __init__(self, client: Client, leads: Callable[[], bool]) -> None:
        self.connection = client.connection
        self.transport = client.transport
        self._leads = leads

    async def _request(self, method: str, path: str, **how: Any) -> bytes:
        if method == "GET":
            return await super()._request(method, path, **how)
        if not self._leads():
            # Whoever lost the lease is cancelled in a moment, and must not try something else.
            await asyncio.Future()
        return await answered(super()._request(method, path, **how))
