"""Suspends containers that are to rest, and resumes them: what they hold of GPUs goes to the host.

Which ones, others say: a pod's annotation, or a person at the node. The driver does it
(`checkpoint_calls`). A process that is suspended goes on by itself until it calls CUDA, and waits
there; a new one of the container gets no CUDA. Its slice is lent to nobody who could not give it
back: to resume, the container claims its memory as one that starts.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Final

from alnair.node.vgpu import checkpoint_calls
from alnair.node.vgpu.containers.container import VgpuContainer
from alnair.node.vgpu.server import VgpuServer, missing

#: Seconds between looks.
EVERY: Final = 0.5
#: Seconds after which what failed is tried again.
AGAIN: Final = 60.0

_log = logging.getLogger(__name__)

Ask = Callable[[str, Iterable[int]], Awaitable[str]]
#: Called with (container, whether it is suspended, why it could not be done or "").
Tell = Callable[[VgpuContainer, bool, str], None]
#: Why nobody is, where the operator has not allowed it.
_MAY_NOT: Final = "this agent suspends nobody: start it with --suspend (in the chart agent.suspend)"


class Suspensions:
    """Keeps containers suspended that are to be.

    Args:
        server: The containers.
        enabled: Whether any may be; else those that are, are resumed.
        pods: Uids of the pods that are to be; None while that is not known.
        tell: Told what was done, and what could not be.
        ask: Has the driver do it.

    Attributes:
        problems: Why a container is not as it is to be, by its name.
    """

    def __init__(
        self,
        server: VgpuServer,
        *,
        enabled: bool,
        pods: Callable[[], Collection[str] | None] = tuple,
        tell: Tell = lambda *_: None,
        ask: Ask = checkpoint_calls.ask,
    ) -> None:
        self._server = server
        self._enabled = enabled
        self._pods = pods
        self._tell = tell
        self._ask = ask
        self._rests: dict[str, float] = {}
        self._by_hand = {
            name
            for name, one in server.containers.items()
            if one.suspended and not one.assignment.pod.uid
        }
        self.problems: dict[str, str] = {}

    def want(self, name: str, suspended: bool) -> str:
        """Have a container of no pod suspended or resumed; return why not, or ""."""
        container = self._server.containers.get(name)
        if container is None:
            return missing(name)
        if not self._enabled:
            return _MAY_NOT
        if container.assignment.pod.uid:
            return "it is a pod's: annotate the pod with ai.centaurus.io/vgpu-suspended: 'true'"
        (self._by_hand.add if suspended else self._by_hand.discard)(name)
        self._rests.pop(name, None)
        return ""

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(EVERY)

    async def look(self) -> None:
        """Suspend and resume who is not as it is to be, one after the other."""
        containers = self._server.containers
        self._by_hand &= containers.keys()
        for known in (self._rests, self.problems):
            for name in known.keys() - containers.keys():
                del known[name]
        pods = self._pods()
        for name, container in tuple(containers.items()):
            uid = container.assignment.pod.uid
            if uid and pods is None:
                continue
            asked = uid in pods if uid and pods else name in self._by_hand
            wanted = self._enabled and asked
            if asked and not wanted and not container.suspended:
                self._note(container, True, _MAY_NOT)
                continue
            if self.problems.get(name) == _MAY_NOT:
                del self.problems[name]  # told anew if it is asked again
            is_as_wanted = container.released if wanted else not container.suspended
            if is_as_wanted or self._rests.get(name, 0.0) > asyncio.get_running_loop().time():
                continue
            why = await (self._suspend if wanted else self._resume)(container)
            self._note(container, wanted, why)

    def _note(self, container: VgpuContainer, wanted: bool, why: str) -> None:
        name = container.assignment.name
        if why and self.problems.get(name) == why:
            return
        if why:
            self.problems[name] = why
        else:
            self.problems.pop(name, None)
            self._rests.pop(name, None)
        self._tell(container, wanted, why)

    async def _suspend(self, container: VgpuContainer) -> str:
        container.suspend()  # from now on no further process of it gets CUDA
        done: set[int] = set()
        while pids := container.census.pids.keys() - done:
            if why := await self._ask("suspend", sorted(pids)):
                # All or none: those of the round before are resumed by whoever resumes it.
                undone = await self._ask("resume", sorted(done)) if done else ""
                container.resume()
                self._rest(container)
                return "; ".join(filter(None, (why, undone)))
            done |= pids
            container.look(asyncio.get_running_loop().time())
        container.released = True
        self._server.loans.unclaim(_whose(container))
        return ""

    async def _resume(self, container: VgpuContainer) -> str:
        needs = {
            share.uuid: max(share.memory_mib << 20, container.held(row))
            for row, share in enumerate(container.assignment.shares)
        }
        if container.released and (lent := self._server.loans.claim(_whose(container), needs)):
            return lent  # it comes back, by eviction if need be: looked at again soon
        # From here on its memory counts as its own, so nobody takes it in between.
        was, container.released = container.released, False
        pids = sorted(container.census.pids)
        if pids and (why := await self._ask("resume", pids)):
            container.released = was
            self._rest(container)
            return why
        self._server.loans.unclaim(_whose(container))
        container.resume()
        return ""

    def _rest(self, container: VgpuContainer) -> None:
        self._rests[container.assignment.name] = asyncio.get_running_loop().time() + AGAIN


def _whose(container: VgpuContainer) -> str:
    return container.assignment.pod.uid or container.assignment.name
