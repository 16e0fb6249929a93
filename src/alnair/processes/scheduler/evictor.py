"""Evicts pods: by the API server's leave, which disruption budgets may refuse, or by deletion.

An eviction that is refused is set aside until it is due again, so that any number of them that a
budget blocks for hours hold up nothing.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable

from alnair.kube.answered import answered
from alnair.kube.backoff import Backoff, Timers
from alnair.kube.client import Client
from alnair.kube.errors import (
    ApiError,
    Conflict,
    ConnectionFailed,
    NotFound,
    ServerUnavailable,
    TooManyRequests,
)
from alnair.kube.objects.pod_projection import PREEMPTION_BY_SCHEDULER
from alnair.kube.resources import PODS
from alnair.kube.status import condition, patch_pod_status
from alnair.model import names
from alnair.model.action import PREEMPTED, Evict
from alnair.scheduler.engine.budgets import budget_seconds

_log = logging.getLogger(__name__)

#: Evictions under way at once.
_WORKERS = 4
#: Seconds between tries of one that must be done soon, from the first to the last.
_FIRST_WAIT, _LAST_WAIT = 0.05, 1.0
#: Most seconds between tries of one that may wait for its budget; `kubectl drain` asks as often.
_LAST_WAIT_FOR_BUDGET = 5.0


class _Eviction:
    """One that is to be done; `deadline` is when budgets are respected no more."""

    def __init__(self, action: Evict, now: float) -> None:
        self.action = action
        patience = budget_seconds(action.reason)
        self.deadline = None if patience is None else now + patience
        most = _LAST_WAIT if patience is not None else _LAST_WAIT_FOR_BUDGET
        self.backoff = Backoff(_FIRST_WAIT, most)
        self.refusal = ""

    def wait(self, now: float) -> float:
        """Return the seconds until the next try; one falls on the deadline."""
        wait = self.backoff.next()
        if self.deadline is not None and self.deadline > now:
            wait = min(wait, self.deadline - now)
        return wait


class Evictor:
    """Carries out evictions with a bounded number of requests at once.

    Args:
        client: An open client.
        may_act: Whether we still lead; nothing is sent after it says no.
        on_done: Called with the pod's uid and an error, empty if the pod is gone or leaves.
        timers: Clock and timers; by default the running event loop.
    """

    def __init__(
        self,
        client: Client,
        may_act: Callable[[], bool],
        on_done: Callable[[str, str], None],
        timers: Timers | None = None,
    ) -> None:
        self._client = client
        self._may_act = may_act
        self._on_done = on_done
        self._timers = timers
        self._due: asyncio.Queue[_Eviction] = asyncio.Queue()

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(_WORKERS):
                group.create_task(self._work())

    def evict(self, action: Evict) -> None:
        """Take an eviction on; returns at once."""
        self._due.put_nowait(_Eviction(action, self._clock.time()))

    @property
    def _clock(self) -> Timers:
        return self._timers or asyncio.get_running_loop()

    async def _work(self) -> None:
        while True:
            eviction = await self._due.get()
            if not self._may_act():
                continue  # who leads now finds out for itself
            error = await self._try(eviction)
            if error is not None:
                self._on_done(eviction.action.pod.uid, error)

    async def _try(self, eviction: _Eviction) -> str | None:
        """Send it once; return the error, empty if it is done, None if it was set aside."""
        pod = eviction.action.pod
        try:
            # NotFound: it is gone; Conflict: another pod has its name by now.
            with contextlib.suppress(NotFound, Conflict):
                await answered(self._send(eviction))
        except (ConnectionFailed, ServerUnavailable, TooManyRequests) as error:
            if str(error) != eviction.refusal:  # said once, and not at every try
                eviction.refusal = str(error)
                _log.warning("evicting %s/%s: %s; trying again", pod.namespace, pod.name, error)
            wait = eviction.wait(self._clock.time())
            self._clock.call_later(wait, self._due.put_nowait, eviction)
            return None
        except ApiError as error:
            return str(error)
        return ""

    async def _send(self, eviction: _Eviction) -> None:
        pod, deadline = eviction.action.pod, eviction.deadline
        if deadline is None or self._clock.time() < deadline:
            await self._client.evict(pod.namespace, pod.name, pod.uid)
            return
        if eviction.action.reason == PREEMPTED:
            status = {"conditions": [_preempted()]}
            await patch_pod_status(self._client, pod.namespace, pod.name, pod.uid, status)
        await self._client.delete(PODS, pod.name, pod.namespace, uid=pod.uid)


def _preempted() -> dict[str, str]:
    return condition(
        "DisruptionTarget",
        is_true=True,
        reason=PREEMPTION_BY_SCHEDULER,
        message=f"{names.SCHEDULER}: preempting to accommodate a higher priority pod",
    )
