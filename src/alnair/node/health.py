"""Which GPUs can be given to containers, by what the looks at them show."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from alnair.node.gpu_looks import GpuLook
from alnair.sharing.health import GpuHealth, HealthRules, after_answer, after_xid, sentence

#: Seconds between reopenings of NVML while a GPU does not answer: it may answer a new one.
AGAIN: Final = 60.0

_log = logging.getLogger(__name__)


class GpusHealth:
    """The health of all GPUs; `take` is given every look.

    Args:
        suspect: Asks for NVML to be opened anew.
        rules: When a GPU is healthy again.

    Attributes:
        states: By GPU; those seen so far.
        unhealthy: Why, by GPU.
        xids: Errors so far, by (GPU, XID), programs' own included.
        changes: How often `unhealthy` has changed.
    """

    def __init__(
        self,
        suspect: Callable[[], None],
        rules: HealthRules = HealthRules(),  # noqa: B008 (frozen)
    ) -> None:
        self.states: dict[str, GpuHealth] = {}
        self.unhealthy: dict[str, str] = {}
        self.xids: dict[tuple[str, int], int] = {}
        self.changes = 0
        self._suspect = suspect
        self._rules = rules
        self._suspected = -AGAIN
        self._changed = asyncio.Event()

    async def changed(self, changes: int) -> int:
        """Wait until `unhealthy` has changed more often than so; return how often by now."""
        while self.changes <= changes:
            await self._changed.wait()
        return self.changes

    def take(self, seen: GpuLook) -> None:
        """Judge by one look."""
        for uuid in (*seen.usages, *seen.problems):
            self.states.setdefault(uuid, GpuHealth())
        for uuid, xid in seen.xids:
            # Of an error whose GPU is not known, any of them may be the one.
            for one in [uuid] if uuid else list(self.states):
                count = self.xids[one, xid] = self.xids.get((one, xid), 0) + 1
                if count == 1:  # programs can make as many as they like
                    _log.info("GPU %s: %s", one, sentence(xid))
                before = self.states.get(one, GpuHealth())
                self.states[one] = after_xid(before, xid, opened=seen.opened)
        for uuid, state in self.states.items():
            if uuid in seen.late:
                continue
            self.states[uuid] = after_answer(
                state,
                "" if uuid in seen.usages else seen.problems.get(uuid, "it is not looked at"),
                now=seen.now,
                opened=seen.opened,
                rules=self._rules,
            )
        if not seen.problems:
            self._suspected = seen.now
        elif seen.now - self._suspected >= AGAIN:
            self._suspected = seen.now
            self._suspect()
        self._publish()

    def _publish(self) -> None:
        found = {uuid: one.reason for uuid, one in self.states.items() if not one.is_healthy}
        if found == self.unhealthy:
            return
        for uuid in found.keys() - self.unhealthy.keys():
            _log.warning("GPU %s is unhealthy: %s", uuid, found[uuid])
        for uuid in self.unhealthy.keys() - found.keys():
            _log.info("GPU %s is healthy again", uuid)
        self.unhealthy = found
        self.changes += 1
        self._changed.set()
        self._changed = asyncio.Event()
